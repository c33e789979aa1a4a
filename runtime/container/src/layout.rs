//! Copying a folder into a container: what lies in it, as of now.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;

use env_contracts::{ByteSize, Code, Problem};
use glovebox_runtime::Hide;
use glovebox_supervisor::{Laid, Order, PIECE_MAX, Placing};
use glovebox_workspace::{joined, open_beneath};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::folders::Copied;

/// How many entries a folder that is copied may have: more take longer to copy
/// than a tool should wait.
pub(crate) const ENTRIES_MAX: u64 = 200_000;
/// How deep folders are copied.
const DEPTH_MAX: usize = 64;

/// What something was when it was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) folder: bool,
    /// User and group.
    pub(crate) owner: (u32, u32),
    pub(crate) identity: (u64, u64),
    size: i64,
    pub(crate) modified: (i64, u64),
    pub(crate) mode: u32,
}

impl Stamp {
    /// Whether it is what it was. A folder's time changes with every entry, and its
    /// entries have stamps of their own.
    pub(crate) fn is(&self, now: &Self) -> bool {
        let times = self.modified == now.modified || self.folder;
        times && Self { modified: now.modified, ..*self } == *now
    }

    pub(crate) fn of(stat: &rustix::fs::Stat) -> Self {
        let folder = FileType::from_raw_mode(stat.st_mode).is_dir();
        Self {
            folder,
            owner: (stat.st_uid, stat.st_gid),
            identity: (stat.st_dev, stat.st_ino),
            size: if folder { 0 } else { stat.st_size },
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            mode: stat.st_mode & 0o7777,
        }
    }
}

/// A folder, gone through: each path below it, as bytes, in an order in which
/// it can be made.
#[derive(Debug)]
pub(crate) struct Tree {
    pub(crate) entries: BTreeMap<Vec<u8>, Stamp>,
    links: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of its files, a page at the least for each entry.
    pub(crate) bytes: u64,
}

/// Goes through a folder without what is hidden in it. Nothing is followed, no
/// other file system is entered, and what is neither file, folder nor link is
/// passed over.
///
/// # Errors
/// `limit-hit` where there is more than may be copied, `workspace-unavailable`.
pub(crate) fn look(copied: &Copied, most: u64) -> Result<Tree, Problem> {
    let hide = Hide::new(&copied.hide).map_err(|message| Problem::new(Code::ContractInvalid, message))?;
    let failed = |error: std::io::Error| {
        Problem::new(Code::WorkspaceUnavailable, format!("the folder for `{}` can't be copied: {error}", copied.guest))
    };
    let root = copied.dir.try_clone().map_err(failed)?;
    let device = rustix::fs::fstat(&root).map_err(|errno| failed(errno.into()))?.st_dev;
    let mut tree = Tree { entries: BTreeMap::new(), links: BTreeMap::new(), bytes: 0 };
    // By path, and one of them open at a time: there may be more folders than
    // descriptors.
    let mut left: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(path) = left.pop() {
        let dir = match open_beneath(root.as_fd(), &path, OFlags::DIRECTORY | OFlags::RDONLY) {
            Ok(dir) => dir,
            // Gone since, or something else by now: not there.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => continue,
            // What nobody but its owner may see, we don't show.
            Err(Errno::ACCESS) => continue,
            Err(errno) => return Err(failed(errno.into())),
        };
        for entry in Dir::read_from(&dir).map_err(|errno| failed(errno.into()))? {
            let entry = entry.map_err(|errno| failed(errno.into()))?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let path = joined(&path, name.to_bytes());
            if hide.hides(OsStr::from_bytes(&path)) {
                continue;
            }
            // Gone since: not there.
            let Ok(stat) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory if stat.st_dev == device && depth(&path) < DEPTH_MAX => left.push(path.clone()),
                FileType::Directory if stat.st_dev == device => {
                    let message = format!("the folder for `{}` has more than {DEPTH_MAX} levels", copied.guest);
                    return Err(Problem::new(Code::LimitHit, message).with_help(
                        "give it a smaller folder, or one that is shown: `access = \"read\"` and `hide = []`",
                    ));
                }
                FileType::RegularFile if stat.st_dev == device => {
                    tree.bytes += u64::try_from(stat.st_size).unwrap_or(0);
                }
                FileType::Symlink => {
                    let Ok(target) = rustix::fs::readlinkat(&dir, name, Vec::new()) else { continue };
                    tree.links.insert(path.clone(), target.into_bytes());
                }
                _ => continue,
            }
            tree.bytes += 4096;
            tree.entries.insert(path, Stamp::of(&stat));
            let count = tree.entries.len() as u64;
            if count > ENTRIES_MAX || tree.bytes > most {
                let message = format!(
                    "the folder for `{}` is copied into the container's memory, and has more than {} or {ENTRIES_MAX} entries",
                    copied.guest,
                    ByteSize(most)
                );
                return Err(Problem::new(Code::LimitHit, message).with_help(
                    "give it a smaller folder, raise `limits.memory`, or mount it with `access = \"read\"` and `hide = []`: \
                     then it is shown and not copied",
                ));
            }
        }
    }
    Ok(tree)
}

/// Whether a folder holds files, folders and links alone, for a tool that is its
/// owner.
pub(crate) fn is_plain(root: BorrowedFd<'_>) -> std::io::Result<bool> {
    let owner = rustix::fs::fstat(root)?.st_uid;
    let mut left: Vec<Vec<u8>> = vec![Vec::new()];
    while let Some(above) = left.pop() {
        let dir = match open_beneath(root, &above, OFlags::DIRECTORY | OFlags::RDONLY) {
            Ok(dir) => dir,
            // Gone since; or another file system, which is not shown.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::XDEV) => continue,
            // Who is somebody else than us may see more of it: nobody knows what.
            Err(Errno::ACCESS) if owner != rustix::process::geteuid().as_raw() => return Ok(false),
            Err(Errno::ACCESS) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for entry in Dir::read_from(&dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let kind = match entry.file_type() {
                // Some file systems don't say.
                FileType::Unknown => match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                kind => kind,
            };
            match kind {
                FileType::Directory if !matches!(name.to_bytes(), b"." | b"..") => {
                    left.push(joined(&above, name.to_bytes()));
                }
                FileType::RegularFile | FileType::Directory | FileType::Symlink => {}
                _ => return Ok(false),
            }
        }
    }
    Ok(true)
}

/// Says what to lay out for it, piece by piece.
///
/// # Errors
/// `workspace-unavailable` where something can't be read any more.
pub(crate) fn lay(copied: &Copied, tree: &Tree, mut say: impl FnMut(Order<'_>) -> bool) -> Result<(), Problem> {
    let failed = |path: &[u8], error: std::io::Error| {
        let path = String::from_utf8_lossy(path).escape_debug().to_string();
        Problem::new(Code::WorkspaceUnavailable, format!("`{path}` can't be copied into the container: {error}"))
    };
    for (path, stamp) in &tree.entries {
        let what = match tree.links.get(path) {
            Some(target) => Laid::Link(target.clone()),
            None if stamp.folder => Laid::Folder,
            None => Laid::File,
        };
        // Who owns it reads it; what may not be changed can't be by accident.
        let mode = match (stamp.folder, copied.writable) {
            (true, true) => 0o700 | (stamp.mode & 0o777),
            (true, false) => 0o500,
            (false, true) => 0o600 | (stamp.mode & 0o777),
            (false, false) => 0o400 | (stamp.mode & 0o100),
        };
        let modified = (stamp.modified.0, u32::try_from(stamp.modified.1).unwrap_or(0));
        let file = what == Laid::File;
        let place = joined(copied.guest.as_bytes(), path);
        if !say(Order::Place(Placing { path: place, mode, modified, what })) {
            return Ok(());
        }
        if !file {
            continue;
        }
        let mut content = content(copied, path, stamp).map_err(|error| failed(path, error))?;
        let mut piece = vec![0; PIECE_MAX];
        loop {
            match content.read(&mut piece).map_err(|error| failed(path, error))? {
                0 => break,
                count if !say(Order::Content(&piece[..count])) => return Ok(()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// The bytes of a file: those that were sealed, under whichever of its names.
fn content(copied: &Copied, path: &[u8], stamp: &Stamp) -> std::io::Result<File> {
    let own = |file: &&glovebox_runtime::bind::BoundFile| {
        file.path.as_bytes() == path || file.spelled.as_bytes() == path || file.identity == stamp.identity
    };
    if let Some(sealed) = copied.sealed.iter().find(own) {
        // A descriptor of its own place: it is read from the start each time.
        let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&sealed.content));
        return Ok(File::from(rustix::fs::open(again, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?));
    }
    Ok(open_beneath(copied.dir.as_fd(), path, OFlags::RDONLY | OFlags::NONBLOCK)?.into())
}

fn depth(path: &[u8]) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}
