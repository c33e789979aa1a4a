//! Listing a folder, entry by entry: a folder with a million names costs no
//! more memory than one with ten.

use rustix::fs::{AtFlags, FileType, statat};

use super::descriptor::Dir;
use super::error::FsResult;
use super::stat::{Facts, type_of};
use super::walk::join;
use crate::bindings::files::wasi::filesystem::types::{DirectoryEntry, ErrorCode};

/// A listing in progress.
#[expect(unreachable_pub, reason = "generated code exports it")]
pub struct Entries {
    listing: rustix::fs::Dir,
    dir: Dir,
}

impl Entries {
    pub(super) fn new(dir: &Dir) -> FsResult<Self> {
        Ok(Self { listing: rustix::fs::Dir::read_from(&dir.fd)?, dir: dir.clone() })
    }

    pub(super) fn next(&mut self) -> FsResult<Option<DirectoryEntry>> {
        loop {
            let Some(entry) = self.listing.read() else { return Ok(None) };
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let text = name.to_str();
            if text.is_ok_and(|name| self.is_hidden(name)) {
                continue;
            }
            let kind = match entry.file_type() {
                // Not every file system tells.
                FileType::Unknown => match statat(&self.dir.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => Facts::new(stat).kind(),
                    Err(_) => FileType::Unknown,
                },
                kind => kind,
            };
            let name = text.map_err(|_| ErrorCode::IllegalByteSequence)?;
            return Ok(Some(DirectoryEntry { type_: type_of(kind), name: name.to_owned() }));
        }
    }

    fn is_hidden(&self, name: &str) -> bool {
        let hide = &self.dir.mounted().hidden.hide;
        if hide.is_empty() {
            return false;
        }
        let mut path = self.dir.path.clone();
        join(&mut path, name);
        hide.hides(path)
    }
}
