//! The capture itself: head, tail and count.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use crate::spill::{OpenSpill, Spill, Spilled};

/// How much of a stream is kept, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureLimits {
    /// How many of the first bytes stay in memory.
    pub head: usize,
    /// How many of the last bytes stay in memory.
    pub tail: usize,
    /// How many bytes the spill takes at most, from the start of the stream.
    pub spill: u64,
}

impl CaptureLimits {
    /// Splits a budget of `kept` bytes in memory. A quarter goes to the head,
    /// which says what started; the rest to the tail, where programs put their
    /// results and their errors.
    pub const fn split(kept: usize, spill: u64) -> Self {
        Self { head: kept / 4, tail: kept - kept / 4, spill }
    }
}

/// The capture of one stream.
///
/// It holds at most `head + tail` bytes. While no more than that was written
/// it holds everything; after that the bytes in the middle are counted, and
/// the stream goes to the spill, from its first byte on.
pub struct Capture<W = File> {
    limits: CaptureLimits,
    pub(crate) head: Vec<u8>,
    pub(crate) tail: VecDeque<u8>,
    total: u64,
    pub(crate) spill: Spill<W>,
}

/// What a finished capture holds.
#[derive(Debug)]
pub struct Captured<W = File> {
    /// The first bytes of the stream.
    pub head: Vec<u8>,
    /// The last bytes of the stream, as far as they are not in the head.
    pub tail: Vec<u8>,
    /// How many bytes were written.
    pub total: u64,
    /// How many bytes lie between head and tail: exactly `total` less what
    /// both hold.
    pub omitted: u64,
    /// The spill, if the stream needed one and the caller offered one.
    pub spilled: Option<Spilled<W>>,
}

impl<W: Write> Capture<W> {
    /// Starts a capture. `spill` is called only once the stream exceeds
    /// `head + tail`. Where guests write in small pieces, let it return a
    /// buffered writer.
    pub fn new(limits: CaptureLimits, spill: Option<OpenSpill<W>>) -> Self {
        Self {
            limits,
            head: Vec::with_capacity(limits.head),
            tail: VecDeque::with_capacity(limits.tail),
            total: 0,
            spill: spill.map_or(Spill::Absent, Spill::Closed),
        }
    }

    /// Takes the next bytes of the stream. It always takes all of them: what
    /// is neither kept nor spilled is counted.
    pub fn write(&mut self, bytes: &[u8]) {
        self.total += bytes.len() as u64;
        if self.total > self.kept_at_most() {
            if self.spill.open(self.limits.spill) {
                // Nothing was omitted so far, so that head and tail together
                // are the stream up to here.
                self.spill.append(&self.head);
                let (front, back) = self.tail.as_slices();
                self.spill.append(front);
                self.spill.append(back);
            }
            self.spill.append(bytes);
        }
        self.keep(bytes);
    }

    /// How many bytes were written so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Ends the capture and flushes the spill.
    pub fn finish(self) -> Captured<W> {
        let omitted = self.total - (self.head.len() + self.tail.len()) as u64;
        Captured {
            head: self.head,
            tail: self.tail.into(),
            total: self.total,
            omitted,
            spilled: self.spill.finish(self.total),
        }
    }

    fn kept_at_most(&self) -> u64 {
        self.limits.head as u64 + self.limits.tail as u64
    }

    /// Both buffers were reserved whole and are never filled beyond that, so
    /// nothing allocates here.
    fn keep(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.limits.head - self.head.len()));
        self.head.extend_from_slice(first);

        let last = &rest[rest.len().saturating_sub(self.limits.tail)..];
        let surplus = (self.tail.len() + last.len()).saturating_sub(self.limits.tail);
        self.tail.drain(..surplus);
        self.tail.extend(last);
    }
}

impl<W> std::fmt::Debug for Capture<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("limits", &self.limits).field("total", &self.total).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
