//! What was left out, and why.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;

use serde::Serialize;

use crate::uri::shown;

/// How many paths a notice names; it counts them all. Enough to see what
/// happened, few enough that a guest can't flood the Observation.
const NAMED: usize = 16;

/// Why outputs were left out or stored otherwise than they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoticeKind {
    /// Symbolic links; they are never followed.
    Symlink,
    /// Files with further hard links: they may be files of somebody else.
    HardLink,
    /// FIFOs, sockets and devices.
    Special,
    /// Folders and files of another file system, mounted below.
    OtherFilesystem,
    /// What could not be opened or read.
    Unreadable,
    /// What was gone or replaced when it was to be opened.
    Changed,
    /// Files beyond the limit on their number.
    TooManyFiles,
    /// Folders with so many entries that not all were looked at.
    TooManyEntries,
    /// Files beyond the limit on the size of each.
    FileTooLarge,
    /// Files beyond the limit on the size of all.
    TotalTooLarge,
    /// Paths beyond the limit on their length.
    PathTooLong,
    /// Folders beyond the limit on depth.
    TooDeep,
    /// Files that grew beyond a limit while they were copied: stored up to it.
    Grew,
    /// Names that are not UTF-8: stored, the name with replacement characters.
    NameNotUtf8,
}

/// All that was met of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notice {
    /// Why.
    pub kind: NoticeKind,
    /// How many.
    pub count: u64,
    /// The first of their paths, relative to the folder, escaped and cut so
    /// that they can be shown. Whatever is below a folder goes with it.
    pub names: Vec<String>,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind.as_str())?;
        for (at, name) in self.names.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}\"{name}\"")?;
        }
        match self.count - self.names.len() as u64 {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

impl NoticeKind {
    /// What happened, as the start of a sentence that names what it happened to.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Symlink => "symbolic links in the outputs were not followed",
            Self::HardLink => "outputs with further hard links were left out",
            Self::Special => "FIFOs, sockets and devices in the outputs were left out",
            Self::OtherFilesystem => "outputs on another file system were left out",
            Self::Unreadable => "outputs that could not be read were left out",
            Self::Changed => "outputs that changed while they were collected were left out",
            Self::TooManyFiles => "outputs beyond the limit on their number were left out",
            Self::TooManyEntries => "output folders with too many entries were left out in part",
            Self::FileTooLarge => "outputs that are too large were left out",
            Self::TotalTooLarge => "outputs beyond the limit on their total size were left out",
            Self::PathTooLong => "outputs whose path is too long were left out",
            Self::TooDeep => "output folders that lie too deep were left out",
            Self::Grew => "outputs that grew while they were copied were cut at the limit",
            Self::NameNotUtf8 => "outputs whose name is not UTF-8 were stored under a similar name",
        }
    }
}

/// Notices being gathered, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Notices(BTreeMap<NoticeKind, (u64, Vec<String>)>);

impl Notices {
    pub(crate) fn add(&mut self, kind: NoticeKind, path: &OsStr) {
        let (count, names) = self.0.entry(kind).or_default();
        *count += 1;
        if names.len() < NAMED {
            names.push(shown(&path.to_string_lossy()));
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (kind, (more, others)) in other.0 {
            let (count, names) = self.0.entry(kind).or_default();
            *count += more;
            names.extend(others);
            names.truncate(NAMED);
        }
    }
}

impl From<Notices> for Vec<Notice> {
    fn from(notices: Notices) -> Self {
        notices.0.into_iter().map(|(kind, (count, names))| Notice { kind, count, names }).collect()
    }
}
