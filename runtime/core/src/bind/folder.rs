//! Opening folders and files of the user's.

use std::collections::HashMap;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use env_contracts::{Code, Problem};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;

use crate::holds_plain_files;

/// A folder of the user's.
pub(super) struct Opened {
    pub(super) dir: OwnedFd,
    /// Where it really lies.
    pub(super) path: PathBuf,
    pub(super) identity: (u64, u64),
    /// When it was made, in nanoseconds since 1970.
    pub(super) born_ns: Option<u64>,
}

/// Opens a folder once; every later step uses the descriptor.
pub(super) fn open_folder(path: &Path, protect: &Protected<'_>) -> Result<Opened, Problem> {
    let refuse = |why: String| Problem::new(Code::WorkspaceUnavailable, format!("folder `{}`: {why}", path.display()));
    let dir = rustix::fs::open(path, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| refuse(describe(errno)))?;
    let real = real_path(dir.as_fd()).map_err(|errno| refuse(describe(errno)))?;
    if !holds_plain_files(&dir).map_err(|errno| refuse(describe(errno)))? {
        return Err(refuse("it lies in a file system of the kernel's, whose files are no files".into()));
    }
    // It counts as plain files, and is full of devices.
    if real.starts_with("/dev") && !real.starts_with("/dev/shm") {
        return Err(refuse("it lies in `/dev`, where devices are".into()));
    }
    let ours = protect.settled.iter().find(|ours| real.starts_with(ours));
    if let Some(ours) = ours {
        return Err(refuse(format!("it lies in `{}`, where Glovebox keeps its own state", ours.display())));
    }
    let stat = rustix::fs::fstat(&dir).map_err(|errno| refuse(describe(errno)))?;
    let born_ns = born_ns(dir.as_fd());
    Ok(Opened { dir, path: real, identity: (stat.st_dev, stat.st_ino), born_ns })
}

/// When a folder was made, where the file system knows.
fn born_ns(dir: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::statx(dir, "", AtFlags::EMPTY_PATH, StatxFlags::BTIME).ok()?;
    let known = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
    let seconds = u64::try_from(stat.stx_btime.tv_sec).ok().filter(|_| known)?;
    seconds.checked_mul(1_000_000_000)?.checked_add(stat.stx_btime.tv_nsec.into())
}

/// What no guest may see, looked up once for all folders of a plan.
pub(super) struct Protected<'a> {
    /// As it is spelled.
    pub(super) spelled: &'a [PathBuf],
    /// Without links in what exists of it: what does not exist yet can be made,
    /// and must be protected just the same.
    pub(super) settled: Vec<PathBuf>,
}

impl<'a> Protected<'a> {
    pub(super) fn new(spelled: &'a [PathBuf]) -> Self {
        // Most of them lie side by side.
        let mut folders: HashMap<PathBuf, PathBuf> = HashMap::new();
        let mut settle = |path: &PathBuf| {
            // Without a dot at its end, behind which a link would not show.
            let path: PathBuf = path.components().collect();
            let link = rustix::fs::lstat(&path).is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_symlink());
            match (path.parent(), path.file_name()) {
                (Some(above), Some(name)) if !link => {
                    folders.entry(above.to_owned()).or_insert_with(|| settled(above)).join(name)
                }
                _ => settled(&path),
            }
        };
        Self { settled: spelled.iter().map(&mut settle).collect(), spelled }
    }
}

/// A path without links in what exists of it.
fn settled(path: &Path) -> PathBuf {
    let existing = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
    match existing {
        // Joining nothing would only add a slash.
        Some((above, real)) if above == path => real,
        Some((above, real)) => path.strip_prefix(above).map_or_else(|_| path.to_owned(), |rest| real.join(rest)),
        None => path.to_owned(),
    }
}

/// A regular file found beneath a folder.
pub(super) struct Found {
    pub(super) file: OwnedFd,
    /// Its real path, relative to the folder.
    pub(super) path: String,
    pub(super) identity: (u64, u64),
}

/// Opens what a path names beneath a folder, if that is a regular file.
///
/// `None`: it names nothing, or a folder. Links are followed as long as they
/// stay beneath the folder.
pub(super) fn open_beneath(
    dir: BorrowedFd<'_>,
    path: &str,
    outside: &dyn Fn(&str) -> Problem,
) -> Result<Option<Found>, Problem> {
    let path = if path.is_empty() { "." } else { path };
    // Looked at before it is opened: opening a FIFO waits for a writer, and
    // opening a device can do something.
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let place = match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
        Ok(place) => place,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(Errno::XDEV) => return Err(outside("leads out of its folder")),
        Err(errno) => return Err(outside(&format!("can't be opened: {}", describe(errno)))),
    };
    if !holds_plain_files(&place).map_err(|errno| outside(&describe(errno)))? {
        return Err(outside("lies in a file system of the kernel's"));
    }
    let stat = rustix::fs::fstat(&place).map_err(|errno| outside(&describe(errno)))?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::Directory => return Ok(None),
        _ => return Err(outside("is neither a file nor a folder")),
    }
    let file = rustix::fs::open(descriptor_path(place.as_fd()), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
        .map_err(|errno| outside(&format!("can't be opened: {}", describe(errno))))?;
    let root = real_path(dir).map_err(|errno| outside(&describe(errno)))?;
    let real = real_path(file.as_fd()).map_err(|errno| outside(&describe(errno)))?;
    let relative = real.strip_prefix(&root).map_err(|_| outside("moved while it was being bound"))?;
    let path = relative.to_str().ok_or_else(|| outside("has a name that is not UTF-8"))?.to_owned();
    Ok(Some(Found { file, path, identity: (stat.st_dev, stat.st_ino) }))
}

/// Where an open descriptor really lies, as the kernel knows it.
fn real_path(fd: BorrowedFd<'_>) -> Result<PathBuf, Errno> {
    use std::os::unix::ffi::OsStringExt as _;
    let link = rustix::fs::readlink(descriptor_path(fd), Vec::new())?;
    Ok(PathBuf::from(std::ffi::OsString::from_vec(link.into_bytes())))
}

/// A host error in words.
fn describe(errno: Errno) -> String {
    std::io::Error::from(errno).to_string()
}

/// The name that a descriptor has in the kernel: it leads to what was opened,
/// whatever lies under the old name by now.
fn descriptor_path(fd: BorrowedFd<'_>) -> String {
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each is where it leads, whether it exists, is a link, leads nowhere or
    /// lies behind one.
    #[test]
    fn what_is_protected_is_found_behind_links() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |path: &str| root.join(path);
        fs_err::create_dir_all(at("real/state")).unwrap();
        fs_err::write(at("real/file"), "").unwrap();
        for (link, to) in [("way", "real"), ("link", "real/file"), ("lost", "real/none"), ("folder", "real/state")] {
            fs_err::os::unix::fs::symlink(at(to), at(link)).unwrap();
        }
        for (spelled, leads) in [
            ("real/file", "real/file"),
            ("way/file", "real/file"),
            ("way/state/store.db", "real/state/store.db"),
            ("way/not/yet", "real/not/yet"),
            ("link", "real/file"),
            ("folder", "real/state"),
            ("folder/.", "real/state"),
            ("folder/..", "real"),
            // A link that leads nowhere is where it stands.
            ("lost", "lost"),
        ] {
            let spelled = [at(spelled)];
            assert_eq!(Protected::new(&spelled).settled, [at(leads)], "{spelled:?}");
        }
    }
}
