//! Reading and writing.

use std::io::IoSlice;

use rustix::fs::ftruncate;
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2, retry_on_intr};

use super::descriptor::File;
use super::error::FsResult;
use super::stat::Facts;
use crate::bindings::files::wasi::filesystem::types::ErrorCode;

/// The most that one read brings into host memory.
pub(super) const READ_MAX: usize = 64 << 10;

impl File {
    /// Up to `len` bytes from `offset`. Empty at the end of the file.
    pub(super) fn read_at(&self, len: usize, offset: u64) -> FsResult<Vec<u8>> {
        if !self.read {
            return Err(ErrorCode::BadDescriptor.into());
        }
        let mut buffer = vec![0; len.min(READ_MAX)];
        let read = retry_on_intr(|| pread(&self.fd, &mut buffer[..], offset))?;
        buffer.truncate(read);
        self.shared.ledger.count_read(read);
        Ok(buffer)
    }

    /// Writes at `offset`, or at the end if there is none. Answers how much.
    pub(super) fn write_at(&self, bytes: &[u8], offset: Option<u64>) -> FsResult<usize> {
        if !self.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        if !self.counted {
            return self.put(bytes, offset);
        }
        let size = Facts::of(&self.fd)?.size();
        let start = offset.unwrap_or(size);
        let end = start.checked_add(bytes.len() as u64).ok_or(ErrorCode::FileTooLarge)?;
        let growth = end.saturating_sub(size);
        self.shared.ledger.grow(self.mount, growth)?;
        let written = self.put(bytes, offset);
        let grown = match &written {
            Ok(count) => (start + *count as u64).saturating_sub(size),
            Err(_) => 0,
        };
        if grown < growth {
            self.shared.ledger.shrink(self.mount, growth - grown);
        }
        written
    }

    pub(super) fn set_size(&self, size: u64) -> FsResult<()> {
        if !self.write {
            return Err(ErrorCode::BadDescriptor.into());
        }
        if !self.counted {
            return Ok(ftruncate(&self.fd, size)?);
        }
        let old = Facts::of(&self.fd)?.size();
        let growth = size.saturating_sub(old);
        self.shared.ledger.grow(self.mount, growth)?;
        if let Err(errno) = ftruncate(&self.fd, size) {
            self.shared.ledger.shrink(self.mount, growth);
            return Err(errno.into());
        }
        self.shared.ledger.shrink(self.mount, old.saturating_sub(size));
        Ok(())
    }

    fn put(&self, bytes: &[u8], offset: Option<u64>) -> FsResult<usize> {
        let written = match offset {
            Some(offset) => retry_on_intr(|| pwrite(&self.fd, bytes, offset))?,
            None => {
                let slices = [IoSlice::new(bytes)];
                match retry_on_intr(|| pwritev2(&self.fd, &slices, 0, ReadWriteFlags::APPEND)) {
                    Err(Errno::NOSYS | Errno::NOTSUP) => {
                        let end = Facts::of(&self.fd)?.size();
                        retry_on_intr(|| pwrite(&self.fd, bytes, end))?
                    }
                    other => other?,
                }
            }
        };
        self.shared.ledger.count_written(written);
        Ok(written)
    }
}
