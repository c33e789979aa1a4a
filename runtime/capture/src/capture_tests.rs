use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use super::*;
use crate::ReadAt;

/// A spill in memory that fails after `room` bytes and takes at most `step`
/// bytes a call.
#[derive(Clone, Debug)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
    step: usize,
}

impl Disk {
    fn of(room: usize, step: usize) -> Self {
        Self { bytes: Arc::default(), room, step }
    }

    fn opener(&self) -> Option<OpenSpill<Disk>> {
        let disk = self.clone();
        Some(Box::new(move || Ok(disk)))
    }
}

impl Write for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut held = self.bytes.lock().unwrap();
        let taken = bytes.len().min(self.step).min(self.room - held.len());
        if taken == 0 {
            return Err(io::Error::from_raw_os_error(28)); // ENOSPC
        }
        held.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ReadAt for Disk {
    fn read_at(&mut self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let held = self.bytes.lock().unwrap();
        let there = held.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
        // Fewer than are wanted, as a file may.
        let read = there.len().min(bytes.len()).min(self.step);
        bytes[..read].copy_from_slice(&there[..read]);
        Ok(read)
    }
}

/// Reads all of a stream from everywhere while it is written: what comes is
/// right, and what does not is neither kept nor spilled.
fn check_reading(capture: &mut Capture<Disk>, disk: &Disk, limits: CaptureLimits, stream: &[u8], max: usize) {
    let spilled = disk.bytes.lock().unwrap().len();
    let tail = stream.len().saturating_sub(limits.tail).max(stream.len().min(limits.head));
    let whole = stream.len() <= limits.head + limits.tail;
    let there = |at: usize| at < limits.head || at < spilled || at >= tail || whole;
    for offset in 0..=stream.len() + 1 {
        let piece = capture.read_at(offset as u64, max);
        let at = usize::try_from(piece.offset).unwrap();
        assert!(piece.bytes.len() <= max);
        if offset >= stream.len() {
            assert_eq!((at, piece.bytes.len()), (offset, 0), "behind the end is nothing");
            continue;
        }
        assert_eq!(stream[at..at + piece.bytes.len()], piece.bytes, "from {offset}");
        assert!((offset..at).all(|missing| !there(missing)), "from {offset} to {at}");
        let more = (at..stream.len()).take(max).take_while(|byte| there(*byte)).count();
        assert_eq!(piece.bytes.len(), more, "from {offset}: all that stands together");
    }
}

/// Writes `pieces` and checks everything that must hold, whatever they are.
fn check(limits: CaptureLimits, room: usize, step: usize, pieces: &[&[u8]]) {
    let stream = pieces.concat();
    let disk = Disk::of(room, step);
    let mut capture = Capture::new(limits, disk.opener());
    let mut written = 0;
    for piece in pieces {
        capture.write(piece);
        written += piece.len();
        check_reading(&mut capture, &disk, limits, &stream[..written], step + 1);
    }
    assert_eq!(capture.total(), stream.len() as u64);
    let captured = capture.finish();

    let kept = captured.head.len() + captured.tail.len();
    assert_eq!(captured.total, stream.len() as u64);
    assert_eq!(kept as u64 + captured.omitted, captured.total);
    assert_eq!(captured.head, stream[..stream.len().min(limits.head)]);
    assert_eq!(captured.tail.len(), (stream.len() - captured.head.len()).min(limits.tail));
    assert!(stream.ends_with(&captured.tail));

    let held = disk.bytes.lock().unwrap();
    match captured.spilled {
        None => {
            assert_eq!(captured.omitted, 0);
            assert!(held.is_empty(), "the spill was touched without need");
        }
        Some(spilled) => {
            let wanted = stream.len().min(usize::try_from(limits.spill).unwrap());
            assert!(captured.omitted > 0);
            assert_eq!(*held, stream[..wanted.min(room)]);
            assert_eq!(spilled.bytes, held.len() as u64);
            assert_eq!(spilled.error.is_some(), wanted > room);
            assert_eq!(spilled.complete, held.len() == stream.len());
        }
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
        head in 0_usize..50,
        tail in 0_usize..50,
        spill in 0_u64..600,
        room in 0_usize..600,
        step in 1_usize..60,
    ) {
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        check(CaptureLimits { head, tail, spill }, room, step, &pieces);
        check(CaptureLimits { head, tail, spill }, room, step, &[&pieces.concat()]);
    }
}

#[test]
fn a_long_stream_ends_with_its_error_and_counts_what_is_between() {
    let mut capture: Capture = Capture::new(CaptureLimits::split(1 << 20, 0), None);
    capture.write(&vec![b'.'; 5 << 20]);
    capture.write(b"error: the reason\n");
    let shown = capture.finish().render();
    let crate::Body::Text(text) = shown.body else { panic!("plain text") };
    assert!(text.ends_with("....error: the reason\n"));
    assert_eq!((text.len(), shown.omitted), (1 << 20, (4 << 20) + 18));
}

#[test]
fn a_spill_that_cannot_be_opened_costs_only_the_spill() {
    let refuse: OpenSpill<File> = Box::new(|| Err(io::ErrorKind::ReadOnlyFilesystem.into()));
    let mut capture = Capture::new(CaptureLimits { head: 2, tail: 2, spill: 100 }, Some(refuse));
    capture.write(b"abc");
    capture.write(b"defg");
    let captured = capture.finish();
    assert_eq!((captured.head.as_slice(), captured.tail.as_slice(), captured.omitted), (&b"ab"[..], &b"fg"[..], 3));
    let spilled = captured.spilled.unwrap();
    assert_eq!(spilled.error.unwrap().kind(), io::ErrorKind::ReadOnlyFilesystem);
    assert!(spilled.writer.is_none() && spilled.bytes == 0 && !spilled.complete);
}

#[test]
fn a_full_device_is_recorded_and_nothing_kept_is_lost() {
    let open: OpenSpill<File> = Box::new(|| File::options().write(true).open("/dev/full"));
    let mut capture = Capture::new(CaptureLimits { head: 2, tail: 2, spill: 100 }, Some(open));
    for _ in 0..10 {
        capture.write(b"abcdefg");
    }
    let captured = capture.finish();
    assert_eq!((captured.head.as_slice(), captured.tail.as_slice(), captured.omitted), (&b"ab"[..], &b"fg"[..], 66));
    let spilled = captured.spilled.unwrap();
    assert_eq!(spilled.error.unwrap().kind(), io::ErrorKind::StorageFull);
    assert!(spilled.bytes == 0 && !spilled.complete);
}

#[test]
fn the_spill_file_appears_only_when_the_stream_outgrows_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stdout");
    let name = path.clone();
    let open: OpenSpill<File> = Box::new(move || File::options().write(true).create_new(true).open(name));
    let mut capture = Capture::new(CaptureLimits { head: 2, tail: 2, spill: 100 }, Some(open));
    capture.write(b"abcd");
    assert!(!path.exists());
    capture.write(b"e");
    assert!(path.exists());
    assert!(capture.finish().spilled.unwrap().complete);
    assert_eq!(fs_err::read(&path).unwrap(), b"abcde");
}

#[test]
fn what_waits_in_a_buffer_is_read_from_the_file_as_well() {
    let open: OpenSpill<io::BufWriter<File>> = Box::new(|| Ok(io::BufWriter::new(tempfile::tempfile()?)));
    let mut capture = Capture::new(CaptureLimits { head: 2, tail: 2, spill: 6 }, Some(open));
    capture.write(b"abcdefg");
    assert_eq!(capture.read_at(1, 100), crate::Piece { offset: 1, bytes: b"bcdefg".to_vec() });
    capture.write(b"hijk");
    assert_eq!(capture.read_at(3, 100), crate::Piece { offset: 3, bytes: b"def".to_vec() }, "never glued");
    assert_eq!(capture.read_at(6, 100), crate::Piece { offset: 9, bytes: b"jk".to_vec() });
    assert_eq!(capture.finish().spilled.unwrap().bytes, 6, "reading changes nothing");
}
