//! Removing a tree that a stranger made.

use std::ffi::CString;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

/// Empties a folder, whatever is in it.
///
/// A guest can nest folders as deep as its budget of entries, so a removal
/// that recurses would run out of stack or descriptors. This one flattens:
/// what lies in a folder of the top is moved up to the top before the folder
/// is removed, so that two descriptors are enough for any depth. Links are
/// removed, never followed.
///
/// An entry of the top that is called `last` goes last: what tells whether
/// the folder is dead must be there as long as anything else is.
///
/// # Errors
/// The kernel's.
pub fn remove_tree(top: BorrowedFd<'_>, last: &str) -> io::Result<()> {
    let mut moved = 0_u64;
    loop {
        let names = names(top)?;
        if names.is_empty() {
            return Ok(());
        }
        let alone = names.len() == 1;
        for name in names.into_iter().filter(|name| alone || name.as_bytes() != last.as_bytes()) {
            match rustix::fs::unlinkat(top, &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => continue,
                Err(Errno::ISDIR | Errno::PERM) => {}
                Err(errno) => return Err(errno.into()),
            }
            let folder = open_folder(top, &name)?;
            for child in names_of(&folder)? {
                match rustix::fs::unlinkat(&folder, &child, AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => {}
                    Err(Errno::ISDIR | Errno::PERM) => {
                        moved += 1;
                        // A folder without write permission can't be moved:
                        // its `..` would change.
                        drop(open_folder_at(&folder, &child)?);
                        // A removal that was cut short left such names behind.
                        while let Err(errno) = rustix::fs::renameat(&folder, &child, top, format!(".moved-{moved}")) {
                            if !matches!(errno, Errno::EXIST | Errno::NOTEMPTY) {
                                return Err(errno.into());
                            }
                            moved += 1;
                        }
                    }
                    Err(errno) => return Err(errno.into()),
                }
            }
            rustix::fs::unlinkat(top, &name, AtFlags::REMOVEDIR)?;
        }
    }
}

/// Opens a folder for emptying; one whose permissions forbid it gets others.
fn open_folder(dir: BorrowedFd<'_>, name: &CString) -> io::Result<OwnedFd> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let folder = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Err(Errno::ACCESS) => {
            rustix::fs::chmodat(dir, name, Mode::RWXU, AtFlags::empty())?;
            rustix::fs::openat(dir, name, flags, Mode::empty())?
        }
        opened => opened?,
    };
    // Not ours to change where it fails: then the removal below says why.
    let _ = rustix::fs::fchmod(&folder, Mode::RWXU);
    Ok(folder)
}

fn open_folder_at(dir: &OwnedFd, name: &CString) -> io::Result<OwnedFd> {
    use std::os::fd::AsFd as _;
    open_folder(dir.as_fd(), name)
}

fn names_of(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    use std::os::fd::AsFd as _;
    names(dir.as_fd())
}

fn names(dir: BorrowedFd<'_>) -> io::Result<Vec<CString>> {
    let mut out = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            out.push(entry.file_name().to_owned());
        }
    }
    Ok(out)
}
