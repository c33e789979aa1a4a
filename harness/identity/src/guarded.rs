//! Files that decide whom one believes: read only where nobody else could have
//! written them, and replaced as a whole or not at all.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use env_contracts::Code;
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rustix::fs::{FlockOperation, Gid, OFlags};
use zeroize::Zeroizing;

use crate::error::IdentityError;

/// The most bytes of a file: room for some thousand approvers. More is a
/// mistaken path.
const MAX_FILE: u64 = 1 << 20;

/// What nobody but its owner may do with such a file.
const OTHERS: u32 = 0o077;

/// The same where the owner is root: a service in the file's group may read.
const OTHERS_OF_ROOT: u32 = 0o037;

/// A path at which such a file lies, or will.
#[derive(Debug, Clone)]
pub(crate) struct Guarded {
    path: PathBuf,
    code: Code,
    /// Whether a service in its group may read it where root owns it.
    shared: bool,
}

/// Which file was read: none, or one that is kept open, so that no other can
/// get its number.
#[derive(Debug)]
pub(crate) struct Seen(Option<(fs_err::File, State)>);

/// What changes with a file.
#[derive(Debug, PartialEq, Eq)]
struct State {
    file: (u64, u64),
    size: u64,
    changed: (i64, i64),
}

/// A held lock; dropping it unlocks, and so does the end of the process.
pub(crate) struct Lock {
    _file: fs_err::File,
}

impl State {
    fn of(meta: &std::fs::Metadata) -> Self {
        Self { file: (meta.dev(), meta.ino()), size: meta.len(), changed: (meta.ctime(), meta.ctime_nsec()) }
    }
}

impl Guarded {
    /// The file at this path; `code` is what faults of it are called.
    pub(crate) fn new(path: &Path, code: Code) -> Self {
        Self { path: path.to_owned(), code, shared: true }
    }

    /// The same, where no group may read it, whoever owns it.
    pub(crate) fn alone_with(path: &Path, code: Code) -> Self {
        Self { shared: false, ..Self::new(path, code) }
    }

    /// What it holds; `None` if it is not there.
    pub(crate) fn read(&self) -> Result<Option<Zeroizing<String>>, IdentityError> {
        Ok(self.read_seen()?.0)
    }

    /// What it holds, and which file that was.
    pub(crate) fn read_seen(&self) -> Result<(Option<Zeroizing<String>>, Seen), IdentityError> {
        let failed = |source| self.failed("read", source);
        // A link would be somebody else's say, and a FIFO would wait.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = fs_err::OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(&self.path);
        let file = match opened {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((None, Seen(None))),
            Err(_) if fs_err::symlink_metadata(&self.path).is_ok_and(|meta| meta.is_symlink()) => {
                return Err(self.invalid("is a link: name the file itself"));
            }
            Err(error) => return Err(failed(error)),
        };
        let meta = file.metadata().map_err(failed)?;
        if !meta.is_file() {
            return Err(self.invalid("is not a plain file"));
        }
        self.alone(&meta)?;
        self.folders_alone()?;
        if meta.len() > MAX_FILE {
            return Err(self.invalid(&format!("has {} bytes, at most {MAX_FILE} are read", meta.len())));
        }
        // Room for all of it: text that grows leaves copies behind.
        let mut text = Zeroizing::new(String::with_capacity(usize::try_from(meta.len()).unwrap_or_default() + 1));
        (&file).take(MAX_FILE).read_to_string(&mut text).map_err(failed)?;
        Ok((Some(text), Seen(Some((file, State::of(&meta))))))
    }

    /// Whether it is still the file that was read, as it was then.
    pub(crate) fn still(&self, seen: &Seen) -> bool {
        match (fs_err::symlink_metadata(&self.path), &seen.0) {
            (Ok(now), Some((_, then))) => State::of(&now) == *then,
            (Err(error), None) => error.kind() == ErrorKind::NotFound,
            (Ok(_), None) | (Err(_), Some(_)) => false,
        }
    }

    /// Writes it where there is none yet.
    pub(crate) fn create(&self, text: &str) -> Result<(), IdentityError> {
        self.write(text, |file, path| file.persist_noclobber(path))
    }

    /// Puts this in the place of what it holds.
    pub(crate) fn replace(&self, text: &str) -> Result<(), IdentityError> {
        self.write(text, |file, path| file.persist(path))
    }

    /// Keeps other processes from replacing it meanwhile. The lock has a file
    /// of its own, which only its owner can open: the other one is replaced,
    /// and a folder can be locked by whoever may list it.
    pub(crate) fn lock(&self) -> Result<Lock, IdentityError> {
        let failed = |source| self.failed("lock", source);
        self.make_folder().map_err(failed)?;
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".lock");
        let mut options = fs_err::OpenOptions::new();
        options.create(true).append(true).mode(0o600).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        let file = options.open(self.path.with_file_name(name)).map_err(failed)?;
        rustix::io::retry_on_intr(|| rustix::fs::flock(file.file(), FlockOperation::LockExclusive))
            .map_err(|errno| failed(errno.into()))?;
        Ok(Lock { _file: file })
    }

    /// What it holds is not what it should.
    pub(crate) fn invalid(&self, why: &str) -> IdentityError {
        IdentityError::Invalid { path: self.path.clone(), why: why.to_owned(), code: self.code }
    }

    /// The host did not do it.
    pub(crate) fn failed(&self, what: &'static str, source: io::Error) -> IdentityError {
        IdentityError::Host { what, path: self.path.clone(), source, code: self.code }
    }

    /// Whether nobody but its owner, who is this user or root, decides over
    /// the file.
    fn alone(&self, meta: &std::fs::Metadata) -> Result<(), IdentityError> {
        let path = &self.path;
        self.owned(path, meta.uid())?;
        let others = if self.shared && meta.uid() == 0 { OTHERS_OF_ROOT } else { OTHERS };
        if meta.mode() & others == 0 {
            return Ok(());
        }
        let why = format!("can be read or written by others (its mode is {:o})", meta.mode() & 0o777);
        let help = format!("take that away: `chmod 600 {}`", path.display());
        Err(IdentityError::Exposed { path: path.clone(), why, help, code: self.code })
    }

    /// The same of the folders above it: who can write to one can put another
    /// file there. In a folder like `/tmp` only owners can take things away.
    fn folders_alone(&self) -> Result<(), IdentityError> {
        let failed = |source| self.failed("look at the folders above", source);
        let folder = fs_err::canonicalize(self.folder()).map_err(failed)?;
        for folder in folder.ancestors() {
            let meta = fs_err::metadata(folder).map_err(failed)?;
            self.owned(folder, meta.uid())?;
            if meta.mode() & 0o022 != 0 && meta.mode() & 0o1000 == 0 {
                let why = format!("can be written by others (its mode is {:o})", meta.mode() & 0o7777);
                let help = format!("take that away: `chmod go-w {}`", folder.display());
                return Err(IdentityError::Exposed { path: folder.to_owned(), why, help, code: self.code });
            }
        }
        Ok(())
    }

    fn owned(&self, path: &Path, owner: u32) -> Result<(), IdentityError> {
        if owner == 0 || owner == rustix::process::geteuid().as_raw() {
            return Ok(());
        }
        let why = format!("belongs to user {owner}");
        let help = "give it to yourself or to root, or name a file in a folder that is".into();
        Err(IdentityError::Exposed { path: path.to_owned(), why, help, code: self.code })
    }

    fn write(
        &self,
        text: &str,
        put: impl FnOnce(tempfile::NamedTempFile, &Path) -> Result<std::fs::File, tempfile::PersistError>,
    ) -> Result<(), IdentityError> {
        let failed = |source| self.failed("write", source);
        if text.len() as u64 > MAX_FILE {
            return Err(self.invalid(&format!("would have {} bytes, at most {MAX_FILE} are read", text.len())));
        }
        self.make_folder().map_err(failed)?;
        self.folders_alone()?;
        // For its owner alone, and gone again if anything fails.
        let mut file = tempfile::Builder::new().prefix(".").tempfile_in(self.folder()).map_err(failed)?;
        file.write_all(text.as_bytes()).and_then(|()| self.like_before(file.as_file())).map_err(failed)?;
        file.as_file().sync_all().map_err(failed)?;
        put(file, &self.path).map_err(|error| failed(error.error))?;
        fs_err::File::open(self.folder()).and_then(|folder| folder.sync_all()).map_err(failed)
    }

    /// Gives the new file the old one's group and mode, so that a service that
    /// could read it still can.
    fn like_before(&self, file: &std::fs::File) -> io::Result<()> {
        let old = match fs_err::symlink_metadata(&self.path) {
            Ok(old) => old,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        if old.uid() != rustix::process::geteuid().as_raw() {
            let what = format!("it belongs to user {}, who alone changes it", old.uid());
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        if file.metadata()?.gid() != old.gid() {
            rustix::fs::fchown(file, None, Some(Gid::from_raw(old.gid())))?;
        }
        file.set_permissions(std::fs::Permissions::from_mode(old.mode() & 0o640))
    }

    fn make_folder(&self) -> io::Result<()> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(self.folder())
    }

    fn folder(&self) -> &Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }
}
