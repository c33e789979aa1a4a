//! What the guest's folders may grow by, and by how much they did.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use glovebox_runtime::job::Limit;

use super::error::{FsError, FsResult};
use super::stat::Identity;
use crate::bindings::files::wasi::filesystem::types::ErrorCode;

/// Bytes and entries of all counted folders together.
///
/// What counts is the growth of each folder; a folder that shrinks gives no
/// credit to another one, because they may lie on different disks. A file with
/// holes counts by its length. A request that would go beyond a limit is
/// answered with "no space" and counted. Whether that ends the action is
/// decided when the guest ends: one that coped with it has done no wrong.
pub(crate) struct Ledger {
    book: Mutex<Book>,
}

struct Book {
    bytes: Vec<i64>,
    entries: Vec<i64>,
    max_bytes: u64,
    max_entries: u64,
    /// How often the guest has each file open: a removed file keeps its
    /// space until it is closed.
    open: HashMap<Identity, u32>,
    totals: Totals,
}

/// What is reported in the end.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Totals {
    pub(crate) read: u64,
    pub(crate) written: u64,
    pub(crate) denied: u64,
    /// The limit of the last denial.
    pub(crate) limit: Option<Limit>,
}

impl Ledger {
    pub(crate) fn new(mounts: usize, max_bytes: u64, max_entries: u64) -> Self {
        Self {
            book: Mutex::new(Book {
                bytes: vec![0; mounts],
                entries: vec![0; mounts],
                max_bytes,
                max_entries,
                open: HashMap::new(),
                totals: Totals::default(),
            }),
        }
    }

    /// Adds bytes to a folder; refuses if that is too much.
    pub(super) fn grow(&self, mount: usize, bytes: u64) -> FsResult<()> {
        let mut book = self.book();
        if bytes > 0 && !add(&mut book.bytes, mount, bytes) {
            return Err(book.deny(Limit::Storage));
        }
        if bytes > 0 && sum(&book.bytes) > book.max_bytes {
            book.bytes[mount] -= signed(bytes);
            return Err(book.deny(Limit::Storage));
        }
        Ok(())
    }

    /// Takes bytes from a folder.
    pub(super) fn shrink(&self, mount: usize, bytes: u64) {
        let mut book = self.book();
        book.bytes[mount] = book.bytes[mount].saturating_sub(signed(bytes));
    }

    /// Adds an entry to a folder; refuses if that is too much.
    pub(super) fn add_entry(&self, mount: usize) -> FsResult<()> {
        let mut book = self.book();
        book.entries[mount] += 1;
        if sum(&book.entries) > book.max_entries {
            book.entries[mount] -= 1;
            return Err(book.deny(Limit::Inodes));
        }
        Ok(())
    }

    /// Takes an entry from a folder.
    pub(super) fn remove_entry(&self, mount: usize) {
        self.book().entries[mount] -= 1;
    }

    /// The guest opened a file.
    pub(super) fn opened(&self, identity: Identity) {
        *self.book().open.entry(identity).or_default() += 1;
    }

    /// The guest closed a file; answers whether it was the last time.
    pub(super) fn closed(&self, identity: Identity) -> bool {
        let mut book = self.book();
        let Some(count) = book.open.get_mut(&identity) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        book.open.remove(&identity);
        true
    }

    /// Whether the guest has a file open.
    pub(super) fn is_open(&self, identity: Identity) -> bool {
        self.book().open.contains_key(&identity)
    }

    pub(super) fn count_read(&self, bytes: usize) {
        self.book().totals.read += bytes as u64;
    }

    pub(super) fn count_written(&self, bytes: usize) {
        self.book().totals.written += bytes as u64;
    }

    pub(crate) fn totals(&self) -> Totals {
        self.book().totals
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        // A panic while the lock is held ends the store: numbers that are off
        // by one request hurt nobody.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Book {
    fn deny(&mut self, limit: Limit) -> FsError {
        self.totals.denied += 1;
        self.totals.limit = Some(limit);
        ErrorCode::InsufficientSpace.into()
    }
}

fn add(column: &mut [i64], mount: usize, more: u64) -> bool {
    let Ok(more) = i64::try_from(more) else { return false };
    let Some(total) = column[mount].checked_add(more) else { return false };
    column[mount] = total;
    true
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn sum(column: &[i64]) -> u64 {
    column.iter().map(|&growth| u64::try_from(growth).unwrap_or(0)).fold(0, u64::saturating_add)
}
