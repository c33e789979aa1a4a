//! What is known of a file.

use std::hash::{Hash, Hasher};
use std::os::fd::AsFd;

use rustix::fs::{FileType, Stat, fstat};

use super::error::FsResult;
use crate::bindings::files::wasi::filesystem::types::{DescriptorStat, DescriptorType, MetadataHashValue};
use wasmtime_wasi::p2::bindings::clocks::wall_clock::Datetime;

/// Device and inode: what a file is, whatever it is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity(pub(crate) u64, pub(crate) u64);

/// A file's kind, identity and the rest.
#[derive(Clone, Copy)]
pub(super) struct Facts(Stat);

impl Facts {
    pub(super) fn of(fd: impl AsFd) -> FsResult<Self> {
        Ok(Self(fstat(fd)?))
    }

    pub(super) fn new(stat: Stat) -> Self {
        Self(stat)
    }

    pub(super) fn identity(self) -> Identity {
        Identity(self.0.st_dev, self.0.st_ino)
    }

    pub(super) fn kind(self) -> FileType {
        FileType::from_raw_mode(self.0.st_mode)
    }

    pub(super) fn size(self) -> u64 {
        u64::try_from(self.0.st_size).unwrap_or(0)
    }

    pub(super) fn links(self) -> u64 {
        wide(self.0.st_nlink)
    }

    pub(super) fn to_guest(self) -> DescriptorStat {
        DescriptorStat {
            type_: type_of(self.kind()),
            link_count: self.links(),
            size: self.size(),
            data_access_timestamp: time(self.0.st_atime, self.0.st_atime_nsec),
            data_modification_timestamp: time(self.0.st_mtime, self.0.st_mtime_nsec),
            status_change_timestamp: time(self.0.st_ctime, self.0.st_ctime_nsec),
        }
    }

    /// A number that is equal for equal files, without giving away where on
    /// the host they are.
    pub(super) fn to_hash(self) -> MetadataHashValue {
        let half = |salt: u8| {
            let mut hasher = std::hash::DefaultHasher::new();
            (salt, self.identity()).hash(&mut hasher);
            hasher.finish()
        };
        MetadataHashValue { lower: half(0), upper: half(1) }
    }
}

pub(super) fn type_of(kind: FileType) -> DescriptorType {
    match kind {
        FileType::RegularFile => DescriptorType::RegularFile,
        FileType::Directory => DescriptorType::Directory,
        FileType::Symlink => DescriptorType::SymbolicLink,
        FileType::Fifo => DescriptorType::Fifo,
        FileType::Socket => DescriptorType::Socket,
        FileType::CharacterDevice => DescriptorType::CharacterDevice,
        FileType::BlockDevice => DescriptorType::BlockDevice,
        FileType::Unknown => DescriptorType::Unknown,
    }
}

/// The width of the kernel's numbers differs between architectures.
fn wide(number: impl Into<u64>) -> u64 {
    number.into()
}

/// None for what a guest can't be told: times before 1970.
fn time(seconds: impl TryInto<u64>, nanoseconds: impl TryInto<u32>) -> Option<Datetime> {
    Some(Datetime { seconds: seconds.try_into().ok()?, nanoseconds: nanoseconds.try_into().ok()? })
}
