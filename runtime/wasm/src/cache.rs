//! Compiled components on disk.
//!
//! An entry is two files: the artefact, and a small description with its
//! sha256. The artefact is machine code, so it is hashed before every use, on
//! the descriptor that is then loaded; one that differs is thrown away and
//! made again. The folder is ours alone (0700), and lies outside of everything
//! a guest can be given.

use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{io, io::Read};

use env_contracts::{Code, Problem};
use fs_err::os::unix::fs::OpenOptionsExt;
use rustix::fs::{FlockOperation, OFlags, Timespec, Timestamps, UTIME_NOW, flock, futimens};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::compile::Compiler;
use crate::component::Artefact;
use crate::engine::Engine;
use crate::error::WasmError;

/// The largest description; ours have some 300 bytes.
const ABOUT_MAX: u64 = 4 << 10;
/// Digits of the two digests in a file name. The description has them whole.
const NAME_DIGITS: usize = 32;

/// How files of the cache are opened: no link is followed, nothing waited for.
const NO_LINK: i32 = (OFlags::NOFOLLOW.bits() | OFlags::NONBLOCK.bits()).cast_signed();

/// What happens while an artefact is fetched.
#[derive(Debug)]
pub enum CompileEvent<'a> {
    /// Another process or thread compiles the same component.
    Waiting,
    /// The compiler runs, for this long.
    Compiling(Duration),
    /// An entry was damaged; it is made again.
    Rebuilding(&'a Problem),
}

/// Compiled components on disk, for one engine.
#[derive(Debug)]
pub struct CompileCache {
    folder: PathBuf,
    engine: String,
    compiler: Compiler,
}

/// An entry, for people and for cleaning up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheEntry {
    /// The component's digest.
    pub component: String,
    /// What it takes on disk, in bytes.
    pub size: u64,
    /// When it was last used, in seconds since 1970.
    pub used: i64,
    name: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    component: String,
    engine: String,
    size: u64,
    sha256: String,
}

/// What is found under a name.
enum Found {
    Nothing,
    Damaged(String),
    Artefact(Artefact),
}

impl CompileCache {
    /// A cache in `folder`, which is made if it is missing.
    ///
    /// # Errors
    /// [`WasmError::Cache`] if the folder can't be made, or belongs to or can
    /// be written by somebody else: what lies in it is executed.
    pub fn open(folder: impl Into<PathBuf>, engine: &Engine, compiler: Compiler) -> Result<Self, WasmError> {
        let folder = folder.into();
        let check = || -> io::Result<()> {
            let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
            let about = fs_err::symlink_metadata(&folder).map_err(|error| made.err().unwrap_or(error))?;
            if !about.is_dir() {
                return Err(io::Error::new(io::ErrorKind::NotADirectory, "is not a folder"));
            }
            if about.uid() != geteuid().as_raw() || about.mode() & 0o022 != 0 {
                let text = "others can write to this folder, and what lies in it is executed";
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
            }
            Ok(())
        };
        check().map_err(WasmError::cache(&folder))?;
        Ok(Self { folder, engine: engine.compatibility().to_owned(), compiler })
    }

    /// The artefact of a component if it is here and undamaged.
    ///
    /// # Errors
    /// [`WasmError::Cache`] if the cache can't be read.
    pub fn get(&self, component: &str) -> Result<Option<Artefact>, WasmError> {
        match self.find(component)? {
            Found::Artefact(artefact) => Ok(Some(artefact)),
            Found::Nothing | Found::Damaged(_) => Ok(None),
        }
    }

    /// The artefact of a component, compiled if need be. Blocks. Whoever asks
    /// for the same component at the same time, here or in another process,
    /// waits for the same compilation.
    ///
    /// `bytes` is asked only when there is something to compile.
    ///
    /// # Errors
    /// What compiling or the disk say. Nothing is left behind then.
    pub fn get_or_compile(
        &self,
        component: &str,
        bytes: impl FnOnce() -> Result<Vec<u8>, WasmError>,
        event: &mut dyn FnMut(CompileEvent<'_>),
    ) -> Result<Artefact, WasmError> {
        if let Found::Artefact(artefact) = self.find(component)? {
            return Ok(artefact);
        }
        let _lock = self.lock(component, event)?;
        // Somebody may have made it while we waited; and only who holds the
        // lock may call an entry damaged, others may see one half replaced.
        match self.find(component)? {
            Found::Artefact(artefact) => return Ok(artefact),
            Found::Damaged(why) => {
                let text =
                    format!("the cached artefact of component {component} is damaged ({why}); it is compiled again");
                event(CompileEvent::Rebuilding(&Problem::new(Code::CacheCorrupt, text)));
                self.discard(&self.name(component))?;
            }
            Found::Nothing => {}
        }
        let bytes = bytes()?;
        let found = crate::hex(&Sha256::digest(&bytes));
        if found != component {
            return Err(WasmError::Digest { expected: component.to_owned(), found });
        }
        self.make(component, &bytes, event)?;
        match self.find(component)? {
            Found::Artefact(artefact) => Ok(artefact),
            Found::Nothing => Err(WasmError::Compile("the artefact vanished as soon as it was made".into())),
            Found::Damaged(why) => {
                Err(WasmError::Compile(format!("the artefact was damaged as soon as it was made: {why}")))
            }
        }
    }

    /// All entries, those of other engines included.
    ///
    /// # Errors
    /// [`WasmError::Cache`] if the folder can't be read.
    pub fn entries(&self) -> Result<Vec<CacheEntry>, WasmError> {
        let failed = || WasmError::cache(&self.folder);
        let mut entries = Vec::new();
        for file in fs_err::read_dir(&self.folder).map_err(failed())? {
            let path = file.map_err(failed())?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let Some(name) = path.file_stem().and_then(|stem| stem.to_str()) else { continue };
            let (Ok(about), Ok(meta)) = (read_about(&path), fs_err::metadata(&path)) else { continue };
            entries.push(CacheEntry {
                component: about.component,
                size: about.size + meta.len(),
                used: meta.mtime(),
                name: name.to_owned(),
            });
        }
        Ok(entries)
    }

    /// Removes an entry. What is loaded from it stays usable.
    ///
    /// # Errors
    /// [`WasmError::Cache`] if it can't be removed.
    pub fn remove(&self, entry: &CacheEntry) -> Result<(), WasmError> {
        self.discard(&entry.name)
    }

    fn name(&self, component: &str) -> String {
        let cut = |text: &str| text.get(..NAME_DIGITS).unwrap_or(text).to_owned();
        format!("{}-{}", cut(component), cut(&self.engine))
    }

    fn path(&self, name: &str, extension: &str) -> PathBuf {
        self.folder.join(format!("{name}.{extension}"))
    }

    fn find(&self, component: &str) -> Result<Found, WasmError> {
        if component.len() != 64 || !component.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
            return Err(WasmError::Invalid("a component's digest is a sha256 in lower-case hex".into()));
        }
        let name = self.name(component);
        let path = self.path(&name, "json");
        let about = match read_about(&path) {
            Ok(about) => {
                touch(&path);
                about
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Found::Damaged(error.to_string())),
            Err(error) => return Err(WasmError::cache(path)(error)),
        };
        if about.component != component || about.engine != self.engine {
            return Ok(Found::Damaged("its description is that of another entry".into()));
        }
        let path = self.path(&name, "cwasm");
        let mut file = match open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Found::Damaged("the artefact is missing".into()));
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return Ok(Found::Damaged(error.to_string())),
            Err(error) => return Err(WasmError::cache(path)(error)),
        };
        let (size, sha256) = digest(&mut file).map_err(WasmError::cache(&path))?;
        if size != about.size || sha256 != about.sha256 {
            return Ok(Found::Damaged("its digest is not the recorded one".into()));
        }
        Ok(Found::Artefact(Artefact::verified(file.into_parts().0.into(), component.to_owned())))
    }

    fn make(&self, component: &str, bytes: &[u8], event: &mut dyn FnMut(CompileEvent<'_>)) -> Result<(), WasmError> {
        let name = self.name(component);
        let (artefact, about) =
            (Temporary::new(self.path(&name, "cwasm.new")), Temporary::new(self.path(&name, "json.new")));
        let mut file = artefact.create()?;
        self.compiler.compile(bytes, &file, &mut |elapsed| event(CompileEvent::Compiling(elapsed)))?;
        let failed = WasmError::cache(artefact.path());
        let written = file.sync_all().and_then(|()| io::Seek::rewind(&mut file)).and_then(|()| digest(&mut file));
        let (size, sha256) = written.map_err(failed)?;
        let text = About { component: component.to_owned(), engine: self.engine.clone(), size, sha256 };
        let text = serde_json::to_vec(&text).map_err(|error| WasmError::cache(about.path())(error.into()))?;
        let mut file = about.create()?;
        io::Write::write_all(&mut file, &text)
            .and_then(|()| file.sync_all())
            .map_err(WasmError::cache(about.path()))?;
        artefact.rename(&self.path(&name, "cwasm"))?;
        about.rename(&self.path(&name, "json"))?;
        fs_err::File::open(&self.folder).and_then(|folder| folder.sync_all()).map_err(WasmError::cache(&self.folder))
    }

    fn discard(&self, name: &str) -> Result<(), WasmError> {
        // The description first: an artefact without one is nothing.
        for extension in ["json", "cwasm"] {
            remove(&self.path(name, extension))?;
        }
        Ok(())
    }

    /// Waits until nobody else makes the same entry.
    fn lock(&self, component: &str, event: &mut dyn FnMut(CompileEvent<'_>)) -> Result<Lock, WasmError> {
        let path = self.path(&self.name(component), "lock");
        let failed = || WasmError::cache(&path);
        loop {
            let mut options = fs_err::OpenOptions::new();
            options.write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
            let file = options.open(&path).map_err(failed())?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => {
                    event(CompileEvent::Waiting);
                    rustix::io::retry_on_intr(|| flock(&file, FlockOperation::LockExclusive))
                        .map_err(|errno| failed()(errno.into()))?;
                }
                Err(errno) => return Err(failed()(errno.into())),
            }
            // The one before us removed the file when it was done.
            let ours = file.metadata().map_err(failed())?;
            match fs_err::metadata(&path) {
                Ok(there) if (there.dev(), there.ino()) == (ours.dev(), ours.ino()) => {
                    return Ok(Lock { path, _file: file });
                }
                _ => {}
            }
        }
    }
}

struct Lock {
    path: PathBuf,
    _file: fs_err::File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Removed while it is still held. One that stays does no harm.
        let _ = fs_err::remove_file(&self.path);
    }
}

/// A file that goes away unless it is renamed. Its name is fixed, so that what
/// a killed process leaves is overwritten by the next.
struct Temporary(PathBuf);

impl Temporary {
    fn new(path: PathBuf) -> Self {
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn create(&self) -> Result<fs_err::File, WasmError> {
        remove(&self.0)?;
        let mut options = fs_err::OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600).custom_flags(NO_LINK);
        options.open(&self.0).map_err(WasmError::cache(&self.0))
    }

    fn rename(&self, to: &Path) -> Result<(), WasmError> {
        fs_err::rename(&self.0, to).map_err(WasmError::cache(to))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After a rename there is nothing left to remove.
        let _ = fs_err::remove_file(&self.0);
    }
}

/// Opens a file of the cache for reading: what lies there instead of one is
/// neither followed nor waited for.
fn open(path: &Path) -> io::Result<fs_err::File> {
    let mut options = fs_err::OpenOptions::new();
    options.read(true).custom_flags(NO_LINK);
    let file = match options.open(path) {
        Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a link lies in its place"));
        }
        opened => opened?,
    };
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidData, "something else than a file lies in its place"))
    }
}

fn read_about(path: &Path) -> io::Result<About> {
    let file = open(path)?;
    let mut text = Vec::new();
    (&file).take(ABOUT_MAX).read_to_end(&mut text)?;
    serde_json::from_slice(&text)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "its description can't be read"))
}

/// What was used last is cleaned up last. A read-only cache works as well.
fn touch(path: &Path) {
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    if let Ok(file) = open(path) {
        let _ = futimens(&file, &Timestamps { last_access: now, last_modification: now });
    }
}

fn digest(file: &mut fs_err::File) -> io::Result<(u64, String)> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 256 << 10];
    let mut size = 0;
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok((size, crate::hex(&hash.finalize()))),
            Ok(count) => {
                hash.update(&buffer[..count]);
                size += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn remove(path: &Path) -> Result<(), WasmError> {
    match fs_err::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(WasmError::cache(path)(error)),
        _ => Ok(()),
    }
}
