//! The store of snapshots.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use env_contracts::Digest;
use fs_err as fs;
use rustix::fs::{FileType, FlockOperation, Mode, OFlags};

use crate::error::Error;
use crate::names;
use crate::objects::{Objects, entries};
use crate::tree::{Entry, Kind, Tree};
use crate::walk::{Bounds, Measured, open_beneath, walk};

/// The largest tree that is read: of half a million entries.
const TREE_MAX: u64 = 128 << 20;
/// The permissions that are kept; a set-user-id bit is none of them.
const PERMISSIONS: u32 = 0o777;

/// A folder of ours with snapshots in it. Several processes may use it at one
/// time.
///
/// Layout: `trees/SHA256` (what lay in a folder), `objects/AB/ABCD…` (contents of
/// files), `lock` (shared by those that take and restore, held alone by
/// [`Snapshots::retain`]).
#[derive(Debug)]
pub struct Snapshots {
    folder: PathBuf,
    trees: PathBuf,
    objects: Objects,
}

/// A snapshot that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its name: the sha256 of the tree.
    pub tree: Digest,
    /// What it holds.
    pub measured: Measured,
}

/// What went, or would go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Freed {
    /// Trees.
    pub trees: u64,
    /// Contents of files.
    pub objects: u64,
    /// Bytes of both.
    pub bytes: u64,
}

impl Snapshots {
    /// Those of a folder, which is made if it is missing.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let trees = folder.join("trees");
        fs::create_dir_all(&trees).map_err(Error::io("make a folder"))?;
        Ok(Self { objects: Objects::open(folder.join("objects"))?, trees, folder: folder.to_owned() })
    }

    /// Takes a snapshot of a folder. Nobody may write there meanwhile. When this
    /// returns, it is on the disk.
    ///
    /// # Errors
    /// [`Error::TooMuch`], [`Error::Special`], [`Error::Changed`], [`Error::Io`].
    pub fn take(&self, root: BorrowedFd<'_>, bounds: Bounds) -> Result<Taken, Error> {
        let _lock = self.lock(FlockOperation::LockShared)?;
        let (mut tree, mut measured) = (Tree::default(), Measured::default());
        walk(root, |found| {
            measured.count(&found.stat, bounds)?;
            let shown = || names::text(found.path);
            let kind = match FileType::from_raw_mode(found.stat.st_mode) {
                FileType::Directory => Kind::Folder,
                FileType::RegularFile => {
                    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                    let file = rustix::fs::openat(found.dir, found.name, flags, Mode::empty());
                    let mut file = File::from(file.map_err(Error::os(format!("read `{}`", shown())))?);
                    let (size, sha256) = self.objects.keep(&mut file, &shown())?;
                    if u64::try_from(found.stat.st_size) != Ok(size) {
                        return Err(Error::Changed { path: shown() });
                    }
                    Kind::File { size, sha256 }
                }
                FileType::Symlink => {
                    let target = rustix::fs::readlinkat(found.dir, found.name, Vec::new());
                    let target = target.map_err(Error::os(format!("read `{}`", shown())))?;
                    Kind::Link { target: names::text(target.as_bytes()) }
                }
                _ => return Err(Error::Special { path: shown() }),
            };
            tree.entries.insert(found.path.to_vec(), Entry { mode: found.stat.st_mode & PERMISSIONS, kind });
            Ok(())
        })?;
        let written = tree.written();
        let digest = Digest::of(&written);
        let place = self.trees.join(digest.as_str());
        if !place.exists() {
            let keeping = "keep a tree";
            let mut new = tempfile::NamedTempFile::new_in(&self.trees).map_err(Error::io(keeping))?;
            new.write_all(&written).map_err(Error::io(keeping))?;
            // The contents reach the disk before the tree that names them.
            rustix::fs::syncfs(new.as_file()).map_err(Error::os(keeping))?;
            new.persist(&place).map_err(|error| Error::io(keeping)(error.error))?;
            let folder = fs::File::open(&self.trees).map_err(Error::io(keeping))?;
            folder.sync_all().map_err(Error::io(keeping))?;
        }
        Ok(Taken { tree: digest, measured })
    }

    /// What a snapshot holds.
    ///
    /// # Errors
    /// [`Error::Unknown`]; [`Error::Damaged`] where it is not what its name says;
    /// [`Error::Io`].
    pub fn tree(&self, digest: &Digest) -> Result<Tree, Error> {
        let path = self.trees.join(digest.as_str());
        let length = match fs::symlink_metadata(&path) {
            Ok(about) => about.len(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(Error::Unknown(digest.clone())),
            Err(error) => return Err(Error::io("read a tree")(error)),
        };
        if length > TREE_MAX {
            return Err(Error::Damaged(format!("a tree of {length} bytes")));
        }
        let bytes = fs::read(&path).map_err(Error::io("read a tree"))?;
        if Digest::of(&bytes) != *digest {
            return Err(Error::Damaged("a tree is not what its name says".into()));
        }
        Tree::read(&bytes)
    }

    /// Puts what a snapshot holds into an empty folder. Every content is compared
    /// with its digest while it is copied. On an error, what lies there by then
    /// is of no use.
    ///
    /// # Errors
    /// Those of [`Snapshots::tree`].
    pub fn restore(&self, digest: &Digest, root: BorrowedFd<'_>) -> Result<Measured, Error> {
        let _lock = self.lock(FlockOperation::LockShared)?;
        let tree = self.tree(digest)?;
        let mut measured = Measured::default();
        for (path, entry) in &tree.entries {
            let restoring = || format!("restore `{}`", names::text(path));
            let (above, name) = match path.iter().rposition(|byte| *byte == b'/') {
                Some(at) => (&path[..at], OsStr::from_bytes(&path[at + 1..])),
                None => (&b""[..], OsStr::from_bytes(path)),
            };
            let above =
                open_beneath(root, above, OFlags::DIRECTORY | OFlags::RDONLY).map_err(Error::os(restoring()))?;
            measured.entries += 1;
            match &entry.kind {
                Kind::Folder => rustix::fs::mkdirat(&above, name, Mode::RWXU).map_err(Error::os(restoring()))?,
                Kind::File { size, sha256 } => {
                    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                    let file = rustix::fs::openat(&above, name, flags, Mode::RUSR | Mode::WUSR);
                    let mut file = File::from(file.map_err(Error::os(restoring()))?);
                    self.objects.copy(sha256, *size, &mut file)?;
                    let mode = Mode::from_raw_mode(entry.mode);
                    rustix::fs::fchmod(&file, mode).map_err(Error::os(restoring()))?;
                    measured.bytes += size;
                }
                Kind::Link { target } => {
                    let target = names::bytes(target).ok_or_else(|| Error::Damaged("a link to nowhere".into()))?;
                    rustix::fs::symlinkat(OsStr::from_bytes(&target), &above, name).map_err(Error::os(restoring()))?;
                }
            }
        }
        // Only now: a folder that may not be written could not be filled.
        for (path, entry) in tree.entries.iter().rev().filter(|(_, entry)| entry.kind == Kind::Folder) {
            let folder = open_beneath(root, path, OFlags::DIRECTORY | OFlags::RDONLY);
            let mode = Mode::from_raw_mode(entry.mode);
            let set = folder.and_then(|folder| rustix::fs::fchmod(&folder, mode));
            set.map_err(Error::os(format!("restore `{}`", names::text(path))))?;
        }
        rustix::fs::syncfs(root).map_err(Error::os("restore a folder"))?;
        Ok(measured)
    }

    /// Removes every snapshot but these, and the contents that only those had.
    /// Waits until nobody takes or restores one.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Damaged`] where a tree that is to be kept can't be
    /// read: nothing is removed then, since nobody knows what it needs.
    pub fn retain(&self, keep: &BTreeSet<Digest>, dry_run: bool) -> Result<Freed, Error> {
        let _lock = self.lock(FlockOperation::LockExclusive)?;
        let (mut freed, mut needed, mut gone) = (Freed::default(), BTreeSet::new(), Vec::new());
        for path in entries(&self.trees)? {
            let name = path.file_name().and_then(OsStr::to_str).and_then(|name| name.parse::<Digest>().ok());
            match name.filter(|digest| keep.contains(digest)) {
                Some(digest) => needed.extend(self.tree(&digest)?.contents().cloned()),
                None => {
                    freed.trees += 1;
                    gone.push(path);
                }
            }
        }
        for (path, digest) in self.objects.all()? {
            if digest.is_none_or(|digest| !needed.contains(&digest)) {
                freed.objects += 1;
                gone.push(path);
            }
        }
        // Trees go first: one that is left needs what it names.
        for path in gone {
            freed.bytes += fs::symlink_metadata(&path).map_or(0, |about| about.len());
            if !dry_run {
                fs::remove_file(&path).map_err(Error::io("remove what nobody needs"))?;
            }
        }
        Ok(freed)
    }

    fn lock(&self, how: FlockOperation) -> Result<OwnedFd, Error> {
        let path = self.folder.join("lock");
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let lock = rustix::fs::open(&path, flags, Mode::RUSR | Mode::WUSR).map_err(Error::os("open a lock"))?;
        rustix::fs::flock(lock.as_fd(), how).map_err(Error::os("lock the snapshots"))?;
        Ok(lock)
    }
}
