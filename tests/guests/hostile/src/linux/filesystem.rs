//! Folders and files, in the words of WASI: a folder is a descriptor, a path is
//! handed to the kernel exactly as it is, and a refusal has the name that it has
//! there. So one probe has one expected result.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use serde_json::{Value, json};

use crate::{Told, refused};

/// Bits that are asked for together.
macro_rules! bits {
    ($(#[$doc:meta] $name:ident: $($bit:ident = $value:expr),+;)+) => {$(
        #[$doc]
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub(crate) struct $name(u8);

        impl $name {
            $(pub(crate) const $bit: Self = Self($value);)+

            pub(crate) fn empty() -> Self {
                Self(0)
            }

            pub(crate) fn contains(self, other: Self) -> bool {
                self.0 & other.0 == other.0
            }
        }

        impl std::ops::BitOrAssign for $name {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }
    )+};
}

bits! {
    /// How a path is opened.
    OpenFlags: CREATE = 1, EXCLUSIVE = 2, TRUNCATE = 4, DIRECTORY = 8;
    /// What is to be done with it.
    DescriptorFlags: READ = 1, WRITE = 2, MUTATE_DIRECTORY = 4;
    /// Whether a last link is followed.
    PathFlags: SYMLINK_FOLLOW = 1;
}

/// What the kernel said, refusing.
#[derive(Debug)]
pub(crate) struct ErrorCode(Errno);

impl ErrorCode {
    #[expect(non_upper_case_globals, reason = "it is called so in WASI")]
    pub(crate) const NoEntry: Self = Self(Errno::NOENT);

    /// As WASI names it.
    pub(crate) fn name(&self) -> String {
        let known = [
            (Errno::NOENT, "no-entry"),
            (Errno::ACCESS, "access"),
            (Errno::PERM, "not-permitted"),
            (Errno::ROFS, "read-only"),
            (Errno::EXIST, "exist"),
            (Errno::NOTDIR, "not-directory"),
            (Errno::ISDIR, "is-directory"),
            (Errno::XDEV, "cross-device"),
            (Errno::LOOP, "loop"),
            (Errno::NOSPC, "insufficient-space"),
        ];
        let name = known.into_iter().find(|(errno, _)| *errno == self.0).map(|(_, name)| name.to_owned());
        name.unwrap_or_else(|| format!("errno-{}", self.0.raw_os_error()))
    }
}

impl From<Errno> for ErrorCode {
    fn from(errno: Errno) -> Self {
        Self(errno)
    }
}

type Result<T> = std::result::Result<T, ErrorCode>;

/// A time of a file.
pub(crate) fn timestamp(seconds: u64, nanoseconds: u32) -> Timespec {
    Timespec { tv_sec: i64::try_from(seconds).unwrap_or(i64::MAX), tv_nsec: nanoseconds.into() }
}

/// An open file or folder.
pub(crate) struct Descriptor(OwnedFd);

impl Descriptor {
    pub(crate) fn open_at(
        &self,
        follow: PathFlags,
        path: &str,
        flags: OpenFlags,
        access: DescriptorFlags,
    ) -> Result<Self> {
        let mut how = match (access.contains(DescriptorFlags::READ), access.contains(DescriptorFlags::WRITE)) {
            (true, true) => OFlags::RDWR,
            (false, true) => OFlags::WRONLY,
            _ => OFlags::RDONLY,
        };
        for (flag, own) in [
            (OpenFlags::CREATE, OFlags::CREATE),
            (OpenFlags::EXCLUSIVE, OFlags::EXCL),
            (OpenFlags::TRUNCATE, OFlags::TRUNC),
            (OpenFlags::DIRECTORY, OFlags::DIRECTORY),
        ] {
            how.set(own, flags.contains(flag));
        }
        how.set(OFlags::NOFOLLOW, !follow.contains(PathFlags::SYMLINK_FOLLOW));
        // Nobody waits at the other end of a pipe: that it opens is enough.
        how |= OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::openat(&self.0, path, how, Mode::from_raw_mode(0o644))?))
    }

    pub(crate) fn read(&self, most: u64, _from: u64) -> Result<(Vec<u8>, bool)> {
        let mut bytes = vec![0; usize::try_from(most).unwrap_or(usize::MAX)];
        // It was opened just now, and what has no places can be read too.
        let count = rustix::io::read(&self.0, &mut bytes)?;
        bytes.truncate(count);
        Ok((bytes, count == 0))
    }

    pub(crate) fn write(&self, bytes: &[u8], at: u64) -> Result<usize> {
        Ok(rustix::io::pwrite(&self.0, bytes, at)?)
    }

    pub(crate) fn get_type(&self) -> Result<FileType> {
        Ok(FileType::from_raw_mode(rustix::fs::fstat(&self.0)?.st_mode))
    }

    pub(crate) fn read_directory(&self) -> Result<Entries> {
        Ok(Entries(std::cell::RefCell::new(Dir::read_from(&self.0)?)))
    }

    pub(crate) fn symlink_at(&self, target: &str, path: &str) -> Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, path)?)
    }

    pub(crate) fn link_at(&self, follow: PathFlags, path: &str, to: &Self, new: &str) -> Result<()> {
        let follow = follow.contains(PathFlags::SYMLINK_FOLLOW);
        let flags = if follow { AtFlags::SYMLINK_FOLLOW } else { AtFlags::empty() };
        Ok(rustix::fs::linkat(&self.0, path, &to.0, new, flags)?)
    }

    pub(crate) fn rename_at(&self, path: &str, to: &Self, new: &str) -> Result<()> {
        Ok(rustix::fs::renameat_with(&self.0, path, &to.0, new, RenameFlags::empty())?)
    }

    pub(crate) fn unlink_file_at(&self, path: &str) -> Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, path, AtFlags::empty())?)
    }

    pub(crate) fn remove_directory_at(&self, path: &str) -> Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, path, AtFlags::REMOVEDIR)?)
    }

    pub(crate) fn create_directory_at(&self, path: &str) -> Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, path, Mode::from_raw_mode(0o755))?)
    }

    pub(crate) fn set_times_at(&self, follow: PathFlags, path: &str, read: Timespec, written: Timespec) -> Result<()> {
        let follow = follow.contains(PathFlags::SYMLINK_FOLLOW);
        let flags = if follow { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
        let times = Timestamps { last_access: read, last_modification: written };
        Ok(rustix::fs::utimensat(&self.0, path, &times, flags)?)
    }

    pub(crate) fn set_times(&self, read: Timespec, written: Timespec) -> Result<()> {
        let times = Timestamps { last_access: read, last_modification: written };
        Ok(rustix::fs::futimens(&self.0, &times)?)
    }
}

/// The entries of a folder.
pub(crate) struct Entries(std::cell::RefCell<Dir>);

/// One of them.
pub(crate) struct Entry {
    pub(crate) name: String,
}

impl Entries {
    pub(crate) fn read_directory_entry(&self) -> Result<Option<Entry>> {
        loop {
            let Some(entry) = self.0.borrow_mut().next().transpose()? else { return Ok(None) };
            let name = entry.file_name().to_string_lossy().into_owned();
            if !matches!(name.as_str(), "." | "..") {
                return Ok(Some(Entry { name }));
            }
        }
    }
}

/// The folders that somebody put there: what is mounted, without the image and
/// the kernel's own.
pub(crate) fn get_directories() -> Vec<(Descriptor, String)> {
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(4));
    let own = |path: &str| {
        let kernels = ["/proc", "/sys", "/dev"].iter().any(|own| Path::new(path).starts_with(own));
        path != "/" && (!kernels || path == "/dev/shm") && Path::new(path).is_dir()
    };
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let open = |path: &str| rustix::fs::open(path, flags, Mode::empty()).ok().map(Descriptor);
    places.filter(|path| own(path)).filter_map(|path| Some((open(path)?, path.to_owned()))).collect()
}

/// Makes what is neither file nor folder in `folder`: links, a pipe, a socket,
/// a second name of a file; and devices, as far as that is let.
pub(crate) fn plant(told: &Told) -> Value {
    let folder = Path::new(told.text("folder", "/outputs"));
    let plant = || -> io::Result<()> {
        std::fs::write(folder.join("plain"), "plain")?;
        std::fs::write(folder.join("one"), "twice")?;
        std::fs::hard_link(folder.join("one"), folder.join("hard"))?;
        symlink("/etc/passwd", folder.join("absolute"))?;
        symlink("/etc", folder.join("folder"))?;
        let mode = Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(CWD, folder.join("fifo"), FileType::Fifo, mode, 0)?;
        std::os::unix::net::UnixListener::bind(folder.join("socket")).map(drop)
    };
    let device =
        |kind, device| rustix::fs::mknodat(CWD, folder.join("device"), kind, Mode::from_raw_mode(0o600), device);
    let devices = [
        device(FileType::CharacterDevice, rustix::fs::makedev(1, 3)),
        device(FileType::BlockDevice, rustix::fs::makedev(8, 0)),
    ];
    match plant() {
        Ok(()) => json!({ "planted": true, "devices": devices.iter().filter(|made| made.is_ok()).count() }),
        Err(error) => refused(error),
    }
}

/// Whose each of `paths` is, and what it may be used for.
pub(crate) fn owners(told: &Told) -> Value {
    let one = |path: &str| match std::fs::symlink_metadata(path) {
        Ok(meta) => json!({ "uid": meta.uid(), "gid": meta.gid(), "mode": meta.mode() & 0o7777 }),
        Err(error) => refused(error),
    };
    let all: serde_json::Map<_, _> = told.list("paths").into_iter().map(|path| (path.to_owned(), one(path))).collect();
    all.into()
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}
