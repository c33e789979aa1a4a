//! Registered tools on disk: `NAME/VERSION/{tool.toml, component.wasm}`, and
//! `@records/NAME@VERSION.json`, the record, which outlives a removal.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env_contracts::{CapabilityName, CapabilityRef, Code, Digest, Manifest, ManifestEntry, Problem, Version};
use glovebox_runtime::{ArtifactBytes, Instant, io_problem, private_dir};

use super::cache::Stamp;
use super::record::{Record, RecordSchema};
use super::{Registry, Tool, parse};

/// What registering did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It is registered now.
    New,
    /// It was registered already, with the same bytes.
    Known,
}

const MANIFEST: &str = "tool.toml";

/// The file of a tool's artifact.
fn artifact(manifest: &Manifest) -> &'static str {
    match manifest.entry {
        // What its server said of it when it was registered.
        ManifestEntry::Mcp { .. } | ManifestEntry::McpStdio { .. } => "upstream.json",
        _ => "component.wasm",
    }
}

/// The folder of records: no capability can have this name, and no version
/// the name of a file in it.
const RECORDS: &str = "@records";

impl Registry {
    /// Registers a tool: its manifest's text and its component, which the
    /// caller has inspected.
    ///
    /// # Errors
    /// `tool-reserved`, `tool-conflict`, `manifest-invalid`, and the host's.
    pub fn add(&self, manifest_text: &str, component: &[u8], now: Instant) -> Result<(Tool, Added), Problem> {
        self.add_like(None, manifest_text, component, now)
    }

    /// The same for a tool whose component is that of another one, which was
    /// registered with it: the file is then shared where the disk allows.
    ///
    /// # Errors
    /// Those of [`Registry::add`].
    pub fn add_like(
        &self,
        like: Option<&Tool>,
        manifest_text: &str,
        component: &[u8],
        now: Instant,
    ) -> Result<(Tool, Added), Problem> {
        let manifest = parse(manifest_text)?;
        let capability = manifest.capability();
        if self.builtin(&capability.name).is_some() {
            return Err(Problem::new(Code::ToolReserved, format!("`{}` is a built-in tool", capability.name)));
        }
        // Schemas are checked before anything is written.
        let place = self.place(&capability).join(artifact(&manifest));
        let tool = Tool::new(manifest, Digest::of(component), ArtifactBytes::File(place), false)?;
        let record = Record {
            schema: RecordSchema::V1,
            capability: capability.clone(),
            artifact: tool.registered.digest.clone(),
            manifest: Digest::of(manifest_text.as_bytes()),
            registered_ms: now.unix_millis,
        };
        let known = self.record(&capability)?;
        if let Some(known) = &known {
            conflict(known, &record)?;
            if self.place(&capability).is_dir() {
                return Ok((tool, Added::Known));
            }
        }
        let shared = like.filter(|like| like.registered.digest == record.artifact).map(|like| &like.registered.bytes);
        let shared = match shared {
            Some(ArtifactBytes::File(path)) => Some(path.as_path()),
            _ => None,
        };
        self.write(&tool.manifest, manifest_text, (component, shared), &record, known.is_some())?;
        Ok((tool, Added::New))
    }

    /// Removes a registered tool. Its name and version stay taken.
    ///
    /// # Errors
    /// `tool-unknown`, `tool-reserved`, and the host's.
    pub fn remove(&self, capability: &CapabilityRef) -> Result<(), Problem> {
        if self.builtin(&capability.name).is_some() {
            return Err(Problem::new(Code::ToolReserved, format!("`{}` is a built-in tool", capability.name))
                .with_help("what comes with Glovebox can't be removed; `glovebox tool list` says what does"));
        }
        // A record that can't be read vouches for nothing; without it the name
        // and version can be registered again.
        let broken = self.record(capability).is_err();
        if broken {
            fs_err::remove_file(self.record_path(capability))
                .map_err(|error| io_problem("cannot remove the record", Code::StateUnavailable, &error))?;
        }
        match fs_err::remove_dir_all(self.place(capability)) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound && broken => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let (name, version) = (capability.name.clone(), Some(capability.version.clone()));
                Err(self.unknown(&env_contracts::Wanted { name, version }, &|_| true))
            }
            Err(error) => Err(io_problem("cannot remove the tool", Code::StateUnavailable, &error)),
        }
    }

    /// A tool that was read before from files that are still the same.
    pub(super) fn known(&self, capability: &CapabilityRef) -> Option<Arc<Tool>> {
        self.cache.tool(capability, &self.stamps(capability)?)
    }

    pub(super) fn load(&self, capability: &CapabilityRef) -> Result<Arc<Tool>, Problem> {
        // Before it is read: what changes meanwhile has another stamp.
        let stamps = self.stamps(capability);
        if let Some(tool) = stamps.and_then(|stamps| self.cache.tool(capability, &stamps)) {
            return Ok(tool);
        }
        let tool = Arc::new(self.read(capability)?);
        if let Some(stamps) = stamps {
            self.cache.keep_tool(capability, stamps, &tool);
        }
        Ok(tool)
    }

    /// The stamps of all that is read of a tool: its record and its manifest.
    fn stamps(&self, capability: &CapabilityRef) -> Option<[Stamp; 2]> {
        let manifest = self.place(capability).join(MANIFEST);
        Some([Stamp::of(&self.record_path(capability))?, Stamp::of(&manifest)?])
    }

    fn read(&self, capability: &CapabilityRef) -> Result<Tool, Problem> {
        let place = self.place(capability);
        let damaged = |what: String| {
            Problem::new(Code::StateUnavailable, what)
                .with_help(format!("`glovebox tool remove {capability}` and register it again"))
        };
        let record =
            self.record(capability)?.ok_or_else(|| damaged(format!("the record of `{capability}` is gone")))?;
        let text = read(&place.join(MANIFEST)).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|error| std::io::Error::new(ErrorKind::InvalidData, error))
        });
        let text = text.map_err(|error| damaged(error.to_string()))?;
        if Digest::of(text.as_bytes()) != record.manifest {
            return Err(damaged(format!("the manifest of `{capability}` was changed after it was registered")));
        }
        let manifest = parse(&text)?;
        let bytes = ArtifactBytes::File(place.join(artifact(&manifest)));
        Tool::new(manifest, record.artifact, bytes, false)
    }

    pub(super) fn names(&self) -> Result<Vec<CapabilityName>, Problem> {
        let folders = entries(&self.dir)?.into_iter().filter(|name| self.dir.join(name).is_dir());
        Ok(folders.filter_map(|name| name.parse().ok()).collect())
    }

    /// The versions of a name, from old to new.
    pub(super) fn versions(&self, name: &CapabilityName) -> Result<Arc<[Version]>, Problem> {
        let dir = self.dir.join(name.as_str());
        let stamp = Stamp::of(&dir);
        if let Some(versions) = stamp.and_then(|stamp| self.cache.versions(name, &stamp)) {
            return Ok(versions);
        }
        let folders = entries(&dir)?.into_iter().filter(|version| dir.join(version).is_dir());
        let mut versions: Vec<Version> = folders.filter_map(|version| version.parse().ok()).collect();
        versions.sort_by_key(Version::precedence);
        let versions = versions.into();
        if let Some(stamp) = stamp {
            self.cache.keep_versions(name, stamp, &versions);
        }
        Ok(versions)
    }

    /// The versions that were removed: their record is all there is of them.
    pub(super) fn removed(&self, name: &CapabilityName) -> Result<Vec<Version>, Problem> {
        let records = entries(&self.dir.join(RECORDS))?;
        let all = records.iter().filter_map(|file| file.strip_suffix(".json")?.parse::<CapabilityRef>().ok());
        let gone = all.filter(|capability| capability.name == *name && !self.place(capability).is_dir());
        Ok(gone.map(|capability| capability.version).collect())
    }

    fn place(&self, capability: &CapabilityRef) -> PathBuf {
        self.dir.join(capability.name.as_str()).join(capability.version.as_str())
    }

    fn record(&self, capability: &CapabilityRef) -> Result<Option<Record>, Problem> {
        let path = self.record_path(capability);
        match read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                Problem::new(Code::StateUnavailable, format!("`{}` can't be read: {error}", path.display()))
                    .with_help(format!("`glovebox tool remove {capability}` and register it again"))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_problem("cannot read the registry", Code::StateUnavailable, &error)),
        }
    }

    fn record_path(&self, capability: &CapabilityRef) -> PathBuf {
        self.dir.join(RECORDS).join(format!("{capability}.json"))
    }

    /// Writes everything beside its place and moves it there: the record
    /// first and never over another, so that of two processes that register
    /// the same version at once with different bytes, one fails.
    fn write(
        &self,
        manifest: &Manifest,
        text: &str,
        (component, shared): (&[u8], Option<&Path>),
        record: &Record,
        known: bool,
    ) -> Result<(), Problem> {
        let failed = |error: std::io::Error| io_problem("cannot register the tool", Code::StateUnavailable, &error);
        let capability = &record.capability;
        let folder = self.dir.join(capability.name.as_str());
        let records = self.dir.join(RECORDS);
        private_dir(&folder).and_then(|()| private_dir(&records)).map_err(failed)?;
        let staged = Staged(folder.join(format!(".{}", uuid::Uuid::now_v7().simple())));
        let write = || -> std::io::Result<()> {
            private_dir(&staged.0)?;
            durable(&staged.0.join(MANIFEST), text.as_bytes())?;
            let place = staged.0.join(artifact(manifest));
            // What is registered never changes, and its digest is compared
            // when it is compiled: one file can be several tools'.
            if shared.is_none_or(|shared| fs_err::hard_link(shared, &place).is_err()) {
                durable(&place, component)?;
            }
            fs_err::File::open(&staged.0)?.sync_all()
        };
        write().map_err(failed)?;
        if !known {
            let bytes = serde_json::to_vec_pretty(record).unwrap_or_default();
            let path = Staged(records.join(format!(".{}", uuid::Uuid::now_v7().simple())));
            durable(&path.0, &bytes).map_err(failed)?;
            match fs_err::hard_link(&path.0, self.record_path(capability)) {
                Ok(()) => fs_err::File::open(&records).and_then(|dir| dir.sync_all()).map_err(failed)?,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    if let Some(known) = self.record(capability)? {
                        conflict(&known, record)?;
                    }
                }
                Err(error) => return Err(failed(error)),
            }
        }
        match fs_err::rename(&staged.0, self.place(capability)) {
            Ok(()) => fs_err::File::open(&folder).and_then(|dir| dir.sync_all()).map_err(failed),
            // The other process was quicker, with the same bytes.
            Err(_) if self.place(capability).is_dir() => Ok(()),
            Err(error) => Err(failed(error)),
        }
    }
}

fn conflict(known: &Record, record: &Record) -> Result<(), Problem> {
    if known.artifact == record.artifact && known.manifest == record.manifest {
        return Ok(());
    }
    let (what, was, is) = if known.artifact == record.artifact {
        ("manifest", &known.manifest, &record.manifest)
    } else {
        ("component", &known.artifact, &record.artifact)
    };
    let message =
        format!("`{}` is registered with {what} {}, this one is {}", record.capability, was.short(), is.short());
    Err(Problem::new(Code::ToolConflict, message))
}

/// Writes a new file so that it is whole after a power cut.
pub(super) fn durable(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = fs_err::OpenOptions::new().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// A path that is gone when this is, unless it was moved away.
struct Staged(PathBuf);

impl Drop for Staged {
    fn drop(&mut self) {
        let _ = fs_err::remove_dir_all(&self.0).or_else(|_| fs_err::remove_file(&self.0));
    }
}

/// The names in a folder; a missing one is empty.
fn entries(dir: &Path) -> Result<Vec<String>, Problem> {
    let failed = |error: std::io::Error| io_problem("cannot read the registry", Code::StateUnavailable, &error);
    match fs_err::read_dir(dir) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry.map_err(failed)?.file_name().into_string().unwrap_or_default()));
            names.collect()
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(error)),
    }
}

/// Reads a plain file: what lies there instead of one is neither followed nor
/// waited for.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use fs_err::os::unix::fs::OpenOptionsExt as _;
    use std::io::Read as _;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let mut file = fs_err::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if !file.metadata()?.is_file() {
        let what = format!("`{}` is not a plain file", path.display());
        return Err(std::io::Error::new(ErrorKind::InvalidData, what));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}
