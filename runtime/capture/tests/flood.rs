//! Memory under a flood. Alone in its process, so that the peak is its own.

#![expect(clippy::unwrap_used, reason = "a test, helpers included")]

use glovebox_capture::{Capture, CaptureLimits, OpenSpill};

/// What a flood may cost beyond the 1 MiB that is kept: allocator and test
/// harness noise, three orders of magnitude below the flood.
const SLACK_KIB: u64 = 1024;

#[test]
fn a_gibibyte_takes_constant_memory() {
    let spill: OpenSpill<std::io::Sink> = Box::new(|| Ok(std::io::sink()));
    let piece = vec![b'y'; 64 << 10];
    let before = peak_kib();
    let mut capture = Capture::new(CaptureLimits::split(1 << 20, u64::MAX), Some(spill));
    for _ in 0..(1 << 30) / piece.len() {
        capture.write(&piece);
    }
    let captured = capture.finish();
    assert_eq!((captured.total, captured.omitted), (1 << 30, (1 << 30) - (1 << 20)));
    assert_eq!(captured.spilled.map(|spilled| (spilled.bytes, spilled.complete)), Some((1 << 30, true)));
    let grown = peak_kib() - before;
    assert!(grown <= 1024 + SLACK_KIB, "the peak grew by {grown} KiB");
}

fn peak_kib() -> u64 {
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
