//! What comes out of a container, put into a folder of ours.
//!
//! The supervisor is ours, and still nothing it says is believed: a path has to
//! be one below the folder, nothing is followed, nothing replaced, and all of it
//! is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use env_contracts::Notice;
use glovebox_supervisor::{ENTRIES_MAX, Laid, Left, Placing, Report};
use glovebox_workspace::open_beneath;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

/// The longest path, and how deep it leads.
const PATH_MAX: usize = 4096;
const DEPTH_MAX: usize = 64;
/// How many paths a notice names.
const NAMED: usize = 8;

/// Why what comes out can't be taken. The text is ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HaulError {
    #[error("{0}")]
    Broken(&'static str),
    #[error("more came out than may")]
    TooMuch,
    #[error("cannot keep what came out: {0}")]
    Host(Errno),
}

/// Things on their way out.
pub(crate) struct Haul {
    root: OwnedFd,
    file: Option<File>,
    /// Where that file lies.
    filling: Option<Vec<u8>>,
    left: u64,
    entries: usize,
    done: bool,
    /// Folders, files and links that came, with their permissions.
    pub(crate) found: BTreeMap<Vec<u8>, Placing>,
    /// What did not change.
    pub(crate) kept: BTreeSet<Vec<u8>>,
    /// What was left out, and why.
    pub(crate) left_out: Vec<(Left, Vec<u8>)>,
}

impl Haul {
    /// Into this folder, and no more than so many bytes.
    pub(crate) fn new(root: OwnedFd, most: u64) -> Self {
        let (found, kept, left_out) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
        Self { root, file: None, filling: None, left: most, entries: 0, done: false, found, kept, left_out }
    }

    /// Whether all of it came.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Takes what the supervisor says next.
    pub(crate) fn take(&mut self, report: Report<'_>) -> Result<(), HaulError> {
        if self.done {
            return Err(HaulError::Broken("something comes after all came out"));
        }
        let taken = self.take_in(report);
        if taken.is_err() {
            self.give_up();
        }
        taken
    }

    /// Nobody takes half of a file for all of it.
    pub(crate) fn give_up(&mut self) {
        if self.file.take().is_some()
            && let Some(path) = self.filling.take()
        {
            let above = path.iter().rposition(|byte| *byte == b'/');
            let (above, name) = above.map_or((&b""[..], &path[..]), |at| (&path[..at], &path[at + 1..]));
            let above = self.above(above);
            let _ = above.map(|above| rustix::fs::unlinkat(&above, OsStr::from_bytes(name), AtFlags::empty()));
        }
    }

    fn take_in(&mut self, report: Report<'_>) -> Result<(), HaulError> {
        match report {
            Report::Found(found) => self.found(found)?,
            Report::Content(bytes) => {
                let file = self.file.as_mut().ok_or(HaulError::Broken("content of no file"))?;
                self.left = self.left.checked_sub(bytes.len() as u64).ok_or(HaulError::TooMuch)?;
                file.write_all(bytes).map_err(|error| host(&error))?;
            }
            Report::Kept(path) => {
                self.count()?;
                plain(&path)?;
                self.kept.insert(path);
            }
            Report::LeftOut(left, path) => {
                self.count()?;
                self.left_out.push((left, path));
            }
            Report::Collected => {
                self.file = None;
                self.done = true;
            }
            _ => return Err(HaulError::Broken("something else comes while a folder comes out")),
        }
        Ok(())
    }

    fn found(&mut self, found: Placing) -> Result<(), HaulError> {
        self.file = None;
        self.count()?;
        plain(&found.path)?;
        let (above, name) = match found.path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&found.path[..at], &found.path[at + 1..]),
            None => (&b""[..], &found.path[..]),
        };
        match &found.what {
            Laid::Folder => {
                let above = self.above(above)?;
                rustix::fs::mkdirat(&above, OsStr::from_bytes(name), Mode::RWXU).map_err(twice)?;
            }
            Laid::File => {
                let above = self.above(above)?;
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let file = rustix::fs::openat(&above, OsStr::from_bytes(name), flags, Mode::RUSR | Mode::WUSR);
                self.file = Some(file.map_err(twice)?.into());
                self.filling = Some(found.path.clone());
            }
            // Made where it is applied, if it is.
            Laid::Link(target) if target.len() <= PATH_MAX => {}
            Laid::Link(_) => return Err(HaulError::Broken("a link that is too long")),
        }
        self.found.insert(found.path.clone(), found);
        Ok(())
    }

    fn above(&self, path: &[u8]) -> Result<OwnedFd, HaulError> {
        open_beneath(self.root.as_fd(), path, OFlags::DIRECTORY | OFlags::RDONLY).map_err(|errno| match errno {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => HaulError::Broken("something in a folder that did not come"),
            errno => HaulError::Host(errno),
        })
    }

    fn count(&mut self) -> Result<(), HaulError> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX { Err(HaulError::TooMuch) } else { Ok(()) }
    }

    /// What was left out, for people: one notice for each reason.
    pub(crate) fn notices(&self, kind: &str) -> Vec<Notice> {
        let mut by: BTreeMap<Left, Vec<&[u8]>> = BTreeMap::new();
        for (left, path) in &self.left_out {
            by.entry(*left).or_default().push(path);
        }
        by.into_iter().map(|(left, paths)| Notice::new(kind, format!("{}: {}", words(left), named(&paths)))).collect()
    }
}

/// Paths for people: the first of them, and how many more.
pub(crate) fn named(paths: &[&[u8]]) -> String {
    let shown = paths.iter().take(NAMED).map(|path| {
        let text = String::from_utf8_lossy(path);
        format!("\"{}\"", &text.escape_debug().to_string())
    });
    let mut text = shown.collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        text.push_str(&format!(" and {} more", paths.len() - NAMED));
    }
    text
}

fn words(left: Left) -> &'static str {
    match left {
        Left::Symlink => "symbolic links were not followed",
        Left::Special => "FIFOs, sockets and devices were left out",
        Left::Unreadable => "what could not be read was left out",
        Left::TooDeep => "what lies too deep was left out",
        Left::TooMany => "folders with too many entries were left out in part",
    }
}

/// Whether a path names something below its folder, and in one way.
fn plain(path: &[u8]) -> Result<(), HaulError> {
    let parts = path.split(|byte| *byte == b'/');
    let fine = path.len() <= PATH_MAX
        && !path.contains(&0)
        && parts.clone().count() <= DEPTH_MAX
        && parts.into_iter().all(|part| !matches!(part, b"" | b"." | b".."));
    if fine { Ok(()) } else { Err(HaulError::Broken("a path that leads elsewhere")) }
}

fn twice(errno: Errno) -> HaulError {
    match errno {
        Errno::EXIST => HaulError::Broken("the same thing comes twice"),
        errno => HaulError::Host(errno),
    }
}

fn host(error: &std::io::Error) -> HaulError {
    HaulError::Host(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

#[cfg(test)]
#[path = "haul_tests.rs"]
mod tests;
