//! A tool in files: a component and its manifest.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use env_contracts::{ByteSize, Code, Digest, Manifest, ManifestEntry, Problem};
use glovebox_runtime::job::UngrantedImports;
use glovebox_wasm::{Inspection, Kind, WasmError, inspect, typed};

use super::{exported, generate};
use crate::backends;
use crate::commands::files;
use crate::config::Config;

/// A component that can be called, and what it was made from.
pub(super) struct Source {
    /// The component, adapted if it was a module.
    pub(super) component: Vec<u8>,
    /// What it imports and exports.
    pub(super) inspection: Inspection,
    /// Whether it was a preview 1 module.
    pub(super) adapted: bool,
}

impl Source {
    /// Reads and inspects a file; a preview 1 module becomes a component.
    ///
    /// # Errors
    /// `file-unreadable`, `component-too-large`, `component-invalid`,
    /// `component-exports`, `compile-failed`, `isolation-unavailable`.
    pub(super) fn read(path: &Path, config: &Config) -> Result<Self, Problem> {
        let limit = config.get::<ByteSize>("component.max_size").0;
        let bytes = read(path, limit)?;
        let named = |error: WasmError| {
            let problem = Problem::of(&error);
            Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem }
        };
        let of =
            |bytes: &[u8]| inspect(bytes, limit).and_then(|found| found.check(UngrantedImports::Stub).map(|()| found));
        let found = of(&bytes).map_err(named)?;
        if found.kind == Kind::Component {
            return Ok(Self { component: bytes, inspection: found, adapted: false });
        }
        let component = backends::compiler(config).adapt(&bytes, &found).map_err(named)?.into_owned();
        let inspection = of(&component).map_err(named)?;
        Ok(Self { component, inspection, adapted: true })
    }

    /// The component's sha256.
    pub(super) fn digest(&self) -> Digest {
        Digest::of(&self.component)
    }

    /// Whether the component offers what the manifest calls, and imports no
    /// more than the contract grants.
    ///
    /// # Errors
    /// `component-exports`, `component-imports`.
    pub(super) fn agrees(&self, manifest: &Manifest) -> Result<(), Problem> {
        fits(&self.component, &self.inspection, manifest)
    }
}

/// Whether a component offers what a manifest calls, and imports no more than
/// its contract grants.
///
/// # Errors
/// `component-exports`, `component-imports`.
pub(super) fn fits(component: &[u8], inspection: &Inspection, manifest: &Manifest) -> Result<(), Problem> {
    if let ManifestEntry::Export { interface, function } = &manifest.entry {
        callable(component, interface.as_deref(), function)?;
    }
    if let ManifestEntry::Mcp { .. } | ManifestEntry::McpStdio { .. } = &manifest.entry {
        let message = "the manifest's entry is a tool of an MCP server, which no component is";
        return Err(Problem::new(Code::ManifestInvalid, message).with_help(
            "register what the server offers: `glovebox tool add --mcp-http URL`, or `--mcp-stdio --image IMAGE`",
        ));
    }
    if manifest.contract.platform.image.is_some() {
        let message = "the manifest's contract names an image, which no component is";
        return Err(Problem::new(Code::ManifestInvalid, message)
            .with_help("leave `platform.image` out, or register the image: `glovebox tool add --image IMAGE`"));
    }
    let missing = match manifest.entry {
        ManifestEntry::Tool { .. } if !inspection.tool => Some(("tool", "glovebox:tool/tool")),
        ManifestEntry::Command { .. } if !inspection.command => Some(("command", "wasi:cli/run")),
        _ => None,
    };
    if let Some((kind, interface)) = missing {
        let message = format!("the manifest's entry is a {kind}, and the component does not export `{interface}`");
        return Err(Problem::new(Code::ComponentExports, message)
            .with_help("correct `entry.kind` in the manifest, or build the component for it"));
    }
    let imports = manifest.contract.wasm.imports.into();
    inspection.check(imports).map_err(|error| Problem::of(&error))
}

/// Whether a component exports this function, with types that JSON has a form
/// for.
fn callable(component: &[u8], interface: Option<&str>, function: &str) -> Result<(), Problem> {
    let all = typed::exports(component).map_err(|error| Problem::of(&error))?;
    let known = all.iter().find(|known| known.interface.as_deref() == interface && known.function == function);
    match known.map(|known| &known.signature) {
        Some(Ok(_)) => Ok(()),
        Some(Err(reason)) => {
            Err(Problem::new(Code::ComponentExports, format!("no JSON can be given to the function: {reason}"))
                .with_help("name another function in `entry` of the manifest"))
        }
        None => {
            let message = "the component does not export the function that the manifest's entry names";
            Err(Problem::new(Code::ComponentExports, message)
                .with_help("`glovebox tool add FILE` without a manifest lists the functions that it exports"))
        }
    }
}

/// A manifest's text, and where it comes from.
pub(super) struct Text {
    pub(super) text: String,
    /// `None`: it was made here.
    pub(super) from: Option<PathBuf>,
}

/// What was found or made.
pub(super) struct Found {
    /// One, or one for each function.
    pub(super) texts: Vec<Text>,
    /// Functions that can't be called, and why.
    pub(super) left_out: Vec<String>,
}

impl Text {
    /// The manifest of a component's file: the named one, else the one beside
    /// it. Without any, a command and each function get one of ours.
    ///
    /// # Errors
    /// `file-unreadable` for a named one, `manifest-invalid` if there is none
    /// for a tool, `usage` for a name that is none.
    pub(super) fn find(
        path: &Path,
        named: Option<&Path>,
        source: &Source,
        ours: &generate::Wish<'_>,
    ) -> Result<Found, Problem> {
        let one = |text| Found { texts: vec![text], left_out: Vec::new() };
        if let Some(named) = named {
            return Self::from_file(named).map(one);
        }
        let Inspection { tool, command, functions, .. } = source.inspection;
        if ours.name.is_none()
            && ours.exports.is_empty()
            && let Some(beside) = beside(path)
        {
            return Self::from_file(&beside).map(one);
        }
        if !ours.exports.is_empty() || (functions && !tool && !command) {
            let made = exported::manifests(path, source, ours)?;
            let texts = made.texts.into_iter().map(|text| Self { text, from: None }).collect();
            return Ok(Found { texts, left_out: made.left_out });
        }
        if !command {
            let message =
                format!("`{}` exports the tool interface, and there is no manifest beside it", path.display());
            return Err(Problem::new(Code::ManifestInvalid, message)
                .with_help("write a `tool.toml` beside it, or name one with --manifest FILE"));
        }
        Ok(one(Self { text: generate::manifest(path, source, ours)?, from: None }))
    }

    fn from_file(path: &Path) -> Result<Self, Problem> {
        let text = files::read_text(path)?;
        Ok(Self { text, from: Some(path.to_owned()) })
    }

    /// The manifest in it.
    ///
    /// # Errors
    /// `manifest-invalid`, `contract-invalid`, with the file and the line.
    pub(super) fn parse(&self) -> Result<Manifest, Problem> {
        Manifest::from_toml(&self.text).map_err(|error| {
            let problem = Problem::of(&error);
            match &self.from {
                Some(path) => Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem },
                None => problem,
            }
        })
    }
}

/// Refuses a mark that rules would not see: a command line that nobody looks
/// at passes for one that was looked at.
///
/// # Errors
/// `manifest-invalid`.
pub(super) fn marked(manifest: &Manifest) -> Result<(), Problem> {
    let wrong = glovebox_policy::wrong_marks(&manifest.input);
    if wrong.is_empty() {
        return Ok(());
    }
    let message = format!("`x-glovebox-argv` marks what is no command line: {}", wrong.join(", "));
    Err(Problem::new(Code::ManifestInvalid, message).with_help(
        "put `\"x-glovebox-argv\": true` beside a top-level argument that is a string or an array of strings",
    ))
}

/// `NAME.toml` or `tool.toml` beside `NAME.wasm`.
fn beside(path: &Path) -> Option<PathBuf> {
    let mut own = path.file_stem()?.to_owned();
    own.push(".toml");
    [path.with_file_name(own), path.with_file_name("tool.toml")].into_iter().find(|path| path.is_file())
}

/// A whole file, if it is no larger than the limit: asked first, so that a
/// huge one costs nothing.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Problem> {
    let file = files::open(path)?;
    let failed = |error: std::io::Error| Problem::new(Code::FileUnreadable, format!("`{}`: {error}", path.display()));
    let size = file.metadata().map_err(failed)?.len();
    let too_large = |size| Problem::of(&WasmError::TooLarge { size, limit });
    if size > limit {
        return Err(too_large(size));
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > limit { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
}
