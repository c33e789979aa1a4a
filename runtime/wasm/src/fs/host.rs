//! `wasi:filesystem` for the guest: arguments unpacked, the work done elsewhere.

use rustix::fs::{
    Advice as Hint, OFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, fadvise, fdatasync, fsync, futimens,
};
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

use super::descriptor::Descriptor;
use super::entries::Entries;
use super::error::{FsError, FsResult, code_of};
use super::file::READ_MAX;
use super::stat::{Facts, type_of};
use super::stream::{Input, Output};
use crate::bindings::files::wasi::filesystem::preopens;
use crate::bindings::files::wasi::filesystem::types::{
    self, Advice, DescriptorFlags, DescriptorStat, DescriptorType, DirectoryEntry, ErrorCode, MetadataHashValue,
    NewTimestamp, OpenFlags, PathFlags,
};
use crate::state::State;

/// Nanoseconds of a second.
const SECOND: u32 = 1_000_000_000;

impl preopens::Host for State {
    fn get_directories(&mut self) -> wasmtime::Result<Vec<(Resource<Descriptor>, String)>> {
        let mut directories = Vec::new();
        for (descriptor, path) in self.files.preopens() {
            directories.push((self.table.push(descriptor)?, path));
        }
        Ok(directories)
    }
}

impl types::Host for State {
    fn convert_error_code(&mut self, error: FsError) -> wasmtime::Result<ErrorCode> {
        match error {
            FsError::Code(code) => Ok(code),
            FsError::Trap(error) => Err(error),
        }
    }

    fn filesystem_error_code(&mut self, error: Resource<wasmtime::Error>) -> wasmtime::Result<Option<ErrorCode>> {
        Ok(code_of(self.table.get(&error)?))
    }
}

impl types::HostDescriptor for State {
    fn read_via_stream(&mut self, fd: Resource<Descriptor>, offset: u64) -> FsResult<Resource<DynInputStream>> {
        let file = self.table.get(&fd)?.file()?.clone();
        Ok(self.table.push(Box::new(Input::new(file, offset)) as DynInputStream)?)
    }

    fn write_via_stream(&mut self, fd: Resource<Descriptor>, offset: u64) -> FsResult<Resource<DynOutputStream>> {
        self.output(&fd, Some(offset))
    }

    fn append_via_stream(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<DynOutputStream>> {
        self.output(&fd, None)
    }

    fn advise(&mut self, fd: Resource<Descriptor>, offset: u64, len: u64, advice: Advice) -> FsResult<()> {
        let hint = match advice {
            Advice::Normal => Hint::Normal,
            Advice::Sequential => Hint::Sequential,
            Advice::Random => Hint::Random,
            Advice::WillNeed => Hint::WillNeed,
            Advice::DontNeed => Hint::DontNeed,
            Advice::NoReuse => Hint::NoReuse,
        };
        Ok(fadvise(&self.table.get(&fd)?.file()?.fd, offset, std::num::NonZeroU64::new(len), hint)?)
    }

    fn sync_data(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        match self.table.get(&fd)? {
            Descriptor::File(file) => Ok(fdatasync(&file.fd)?),
            Descriptor::Dir(_) => self.sync(fd),
        }
    }

    fn get_flags(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorFlags> {
        let mut flags = DescriptorFlags::empty();
        match self.table.get(&fd)? {
            Descriptor::File(file) => {
                if file.read {
                    flags |= DescriptorFlags::READ;
                }
                if file.write {
                    flags |= DescriptorFlags::WRITE;
                }
            }
            Descriptor::Dir(dir) => {
                flags |= DescriptorFlags::READ;
                if dir.mounted().writable {
                    flags |= DescriptorFlags::MUTATE_DIRECTORY;
                }
            }
        }
        Ok(flags)
    }

    fn get_type(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorType> {
        Ok(type_of(Facts::of(self.table.get(&fd)?.fd())?.kind()))
    }

    fn set_size(&mut self, fd: Resource<Descriptor>, size: u64) -> FsResult<()> {
        self.table.get(&fd)?.file()?.set_size(size)
    }

    fn set_times(
        &mut self,
        fd: Resource<Descriptor>,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(access, modification)?;
        match self.table.get(&fd)? {
            Descriptor::File(file) if file.mutable => Ok(futimens(&file.fd, &times)?),
            Descriptor::File(_) => Err(ErrorCode::ReadOnly.into()),
            Descriptor::Dir(dir) => dir.set_times_at(false, ".", &times),
        }
    }

    fn read(&mut self, fd: Resource<Descriptor>, len: u64, offset: u64) -> FsResult<(Vec<u8>, bool)> {
        let len = usize::try_from(len).unwrap_or(usize::MAX).min(READ_MAX);
        let bytes = self.table.get(&fd)?.file()?.read_at(len, offset)?;
        let end = bytes.is_empty();
        Ok((bytes, end))
    }

    fn write(&mut self, fd: Resource<Descriptor>, bytes: Vec<u8>, offset: u64) -> FsResult<u64> {
        Ok(self.table.get(&fd)?.file()?.write_at(&bytes, Some(offset))? as u64)
    }

    fn read_directory(&mut self, fd: Resource<Descriptor>) -> FsResult<Resource<Entries>> {
        let entries = Entries::new(self.table.get(&fd)?.dir()?)?;
        Ok(self.table.push(entries)?)
    }

    fn sync(&mut self, fd: Resource<Descriptor>) -> FsResult<()> {
        match self.table.get(&fd)? {
            Descriptor::File(file) => Ok(fsync(&file.fd)?),
            Descriptor::Dir(dir) => {
                // The descriptor itself may be one that can only be looked through.
                let flags = OFlags::RDONLY | OFlags::DIRECTORY;
                Ok(fsync(super::walk::open(&dir.fd, ".", flags, rustix::fs::Mode::empty())?)?)
            }
        }
    }

    fn create_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.table.get(&fd)?.dir()?.create_directory_at(&path)
    }

    fn stat(&mut self, fd: Resource<Descriptor>) -> FsResult<DescriptorStat> {
        let stat = Facts::of(self.table.get(&fd)?.fd())?.to_guest();
        Ok(self.timeless(stat))
    }

    fn stat_at(&mut self, fd: Resource<Descriptor>, flags: PathFlags, path: String) -> FsResult<DescriptorStat> {
        let stat = self.table.get(&fd)?.dir()?.stat_at(follow(flags), &path)?.to_guest();
        Ok(self.timeless(stat))
    }

    fn set_times_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        access: NewTimestamp,
        modification: NewTimestamp,
    ) -> FsResult<()> {
        let times = timestamps(access, modification)?;
        self.table.get(&fd)?.dir()?.set_times_at(follow(flags), &path, &times)
    }

    fn link_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
        to: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        if follow(flags) {
            return Err(ErrorCode::Invalid.into());
        }
        self.table.get(&fd)?.dir()?.link_at(&path, self.table.get(&to)?.dir()?, &new_path)
    }

    fn open_at(
        &mut self,
        fd: Resource<Descriptor>,
        path_flags: PathFlags,
        path: String,
        how: OpenFlags,
        flags: DescriptorFlags,
    ) -> FsResult<Resource<Descriptor>> {
        let opened = self.table.get(&fd)?.dir()?.open_at(follow(path_flags), &path, how, flags)?;
        Ok(self.table.push(opened)?)
    }

    fn readlink_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<String> {
        self.table.get(&fd)?.dir()?.readlink_at(&path)
    }

    fn remove_directory_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.table.get(&fd)?.dir()?.remove_directory_at(&path)
    }

    fn rename_at(
        &mut self,
        fd: Resource<Descriptor>,
        path: String,
        to: Resource<Descriptor>,
        new_path: String,
    ) -> FsResult<()> {
        self.table.get(&fd)?.dir()?.rename_at(&path, self.table.get(&to)?.dir()?, &new_path)
    }

    fn symlink_at(&mut self, fd: Resource<Descriptor>, target: String, path: String) -> FsResult<()> {
        self.table.get(&fd)?.dir()?.symlink_at(&target, &path)
    }

    fn unlink_file_at(&mut self, fd: Resource<Descriptor>, path: String) -> FsResult<()> {
        self.table.get(&fd)?.dir()?.unlink_file_at(&path)
    }

    fn is_same_object(&mut self, fd: Resource<Descriptor>, other: Resource<Descriptor>) -> wasmtime::Result<bool> {
        let identity = |fd: &Resource<Descriptor>| match Facts::of(self.table.get(fd)?.fd()) {
            Ok(facts) => Ok(Some(facts.identity())),
            Err(FsError::Code(_)) => Ok(None),
            Err(FsError::Trap(error)) => Err(error),
        };
        let (this, that) = (identity(&fd)?, identity(&other)?);
        Ok(this.is_some() && this == that)
    }

    fn metadata_hash(&mut self, fd: Resource<Descriptor>) -> FsResult<MetadataHashValue> {
        Ok(Facts::of(self.table.get(&fd)?.fd())?.to_hash())
    }

    fn metadata_hash_at(
        &mut self,
        fd: Resource<Descriptor>,
        flags: PathFlags,
        path: String,
    ) -> FsResult<MetadataHashValue> {
        Ok(self.table.get(&fd)?.dir()?.stat_at(follow(flags), &path)?.to_hash())
    }

    fn drop(&mut self, fd: Resource<Descriptor>) -> wasmtime::Result<()> {
        self.table.delete(fd)?;
        Ok(())
    }
}

impl State {
    /// Where every run has to be the same, all files are from one moment.
    fn timeless(&self, stat: DescriptorStat) -> DescriptorStat {
        match self.clocks.file_time() {
            None => stat,
            time => DescriptorStat {
                data_access_timestamp: time,
                data_modification_timestamp: time,
                status_change_timestamp: time,
                ..stat
            },
        }
    }
}

impl types::HostDirectoryEntryStream for State {
    fn read_directory_entry(&mut self, entries: Resource<Entries>) -> FsResult<Option<DirectoryEntry>> {
        self.table.get_mut(&entries)?.next()
    }

    fn drop(&mut self, entries: Resource<Entries>) -> wasmtime::Result<()> {
        self.table.delete(entries)?;
        Ok(())
    }
}

impl State {
    fn output(&mut self, fd: &Resource<Descriptor>, position: Option<u64>) -> FsResult<Resource<DynOutputStream>> {
        let file = self.table.get(fd)?.file()?.clone();
        if !file.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        Ok(self.table.push(Box::new(Output::new(file, position)) as DynOutputStream)?)
    }
}

fn follow(flags: PathFlags) -> bool {
    flags.contains(PathFlags::SYMLINK_FOLLOW)
}

fn timestamps(access: NewTimestamp, modification: NewTimestamp) -> FsResult<Timestamps> {
    let one = |new| {
        Ok::<_, FsError>(match new {
            NewTimestamp::NoChange => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            NewTimestamp::Now => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            NewTimestamp::Timestamp(time) => {
                if time.nanoseconds >= SECOND {
                    return Err(ErrorCode::Invalid.into());
                }
                let tv_sec = i64::try_from(time.seconds).map_err(|_| ErrorCode::Overflow)?;
                Timespec { tv_sec, tv_nsec: time.nanoseconds.into() }
            }
        })
    };
    Ok(Timestamps { last_access: one(access)?, last_modification: one(modification)? })
}
