//! What was read from the registry, kept as long as the files are the same.
//!
//! Every look-up asks the kernel about the files first, so that what another
//! process removed is gone at once, and what it changed is read again. A
//! kernel stamps files with a clock that stands still for some milliseconds,
//! and some file systems round to seconds: of two changes in one such moment
//! the second would not be seen. So only what has been at rest for longer is
//! kept.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::{CapabilityName, CapabilityRef, Version};
use rustix::fs::{FileType, lstat};
use rustix::time::{ClockId, clock_gettime};

use super::Tool;

/// How long a file must have been at rest: the coarsest stamps that file
/// systems of today give are two seconds apart.
const AT_REST: i64 = 3;

/// The most tools that are kept: their schemas are compiled and take some ten
/// kilobytes each. Beyond that all are dropped, and read again as they are
/// called.
const MOST: usize = 1024;

/// What the kernel says of a file or folder; different after every change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    device: u64,
    inode: u64,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    /// The stamp of a plain file or a folder.
    pub(super) fn of(path: &Path) -> Option<Self> {
        let stat = lstat(path).ok()?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        let plain = kind == FileType::RegularFile || kind == FileType::Directory;
        // The fields' types differ between processors.
        plain.then_some(Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: stat.st_size as i64,
            modified: (stat.st_mtime as i64, stat.st_mtime_nsec as u64),
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        })
    }

    /// Whether there was no change for so many seconds: then one from now on
    /// gives another stamp.
    fn at_rest(&self, seconds: i64) -> bool {
        // The clock that the kernel stamps files with.
        let now = clock_gettime(ClockId::RealtimeCoarse).tv_sec;
        self.changed.0.max(self.modified.0).saturating_add(seconds) <= now
    }
}

/// What was read, shared by all who use the registry.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    kept: Arc<Mutex<Kept>>,
    /// How many seconds a file must have been at rest.
    at_rest: i64,
}

#[derive(Debug, Default)]
struct Kept {
    tools: BTreeMap<CapabilityRef, ([Stamp; 2], Arc<Tool>)>,
    versions: BTreeMap<CapabilityName, (Stamp, Arc<[Version]>)>,
}

impl Default for Cache {
    fn default() -> Self {
        Self { kept: Arc::default(), at_rest: AT_REST }
    }
}

impl Cache {
    /// One that keeps also what was changed a moment ago: nobody can wait for
    /// files to come to rest in a test.
    #[cfg(test)]
    pub(super) fn hasty() -> Self {
        Self { at_rest: 0, ..Self::default() }
    }

    /// The tool, if it was read from files with these stamps.
    pub(super) fn tool(&self, capability: &CapabilityRef, stamps: &[Stamp; 2]) -> Option<Arc<Tool>> {
        self.with(|kept| kept.tools.get(capability).filter(|(read, _)| read == stamps).map(|(_, tool)| tool.clone()))
    }

    /// Keeps a tool that was read after its files had these stamps.
    pub(super) fn keep_tool(&self, capability: &CapabilityRef, stamps: [Stamp; 2], tool: &Arc<Tool>) {
        if stamps.iter().all(|stamp| stamp.at_rest(self.at_rest)) {
            self.with(|kept| {
                if kept.tools.len() >= MOST {
                    kept.tools.clear();
                }
                kept.tools.insert(capability.clone(), (stamps, tool.clone()));
            });
        }
    }

    /// The versions, if they were read from a folder with this stamp.
    pub(super) fn versions(&self, name: &CapabilityName, stamp: &Stamp) -> Option<Arc<[Version]>> {
        self.with(|kept| {
            kept.versions.get(name).filter(|(read, _)| read == stamp).map(|(_, versions)| versions.clone())
        })
    }

    /// Keeps the versions that were read after the folder had this stamp.
    pub(super) fn keep_versions(&self, name: &CapabilityName, stamp: Stamp, versions: &Arc<[Version]>) {
        if stamp.at_rest(self.at_rest) {
            self.with(|kept| {
                if kept.versions.len() >= MOST {
                    kept.versions.clear();
                }
                kept.versions.insert(name.clone(), (stamp, versions.clone()));
            });
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Kept) -> T) -> T {
        // Every change is whole: who panicked meanwhile left nothing half done.
        work(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
