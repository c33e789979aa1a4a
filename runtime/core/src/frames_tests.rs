use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::job::{End, JobUsage};

/// What came through, owned.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    lines: Vec<(String, String)>,
    progress: Vec<(u64, Option<u64>, String)>,
}

impl FrameSink for Heard {
    fn frame(&mut self, frame: Frame<'_>) {
        match frame {
            Frame::Stdout(bytes) => self.stdout.extend_from_slice(bytes),
            Frame::Stderr(bytes) => self.stderr.extend_from_slice(bytes),
            Frame::Log { level, message } => self.lines.push((level.into(), message.into())),
            Frame::Progress { done, total, message } => self.progress.push((done, total, message.into())),
        }
    }
}

/// Reads a stream in pieces of the given sizes, over and over.
fn read(bytes: &[u8], sizes: &[usize]) -> (Heard, Result<Option<Last>, NotAFrame>) {
    let (mut heard, mut reader, mut rest) = (Heard::default(), Reader::default(), bytes);
    for size in sizes.iter().cycle() {
        let (piece, after) = rest.split_at(rest.len().min((*size).max(1)));
        rest = after;
        match reader.push(piece, &mut heard) {
            Ok(None) if !rest.is_empty() => {}
            other => return (heard, other),
        }
    }
    (heard, Ok(None))
}

fn report() -> JobReport {
    JobReport {
        end: End::Returned { content: "{\"a\":1}".into(), artifacts: vec![] },
        usage: JobUsage { run: Duration::from_micros(7), ..JobUsage::default() },
    }
}

proptest! {
    #[test]
    fn whatever_is_said_arrives_in_any_pieces(
        out in prop::collection::vec(any::<u8>(), 0..200_000),
        err in prop::collection::vec(any::<u8>(), 0..100),
        message in ".{0,2000}",
        (done, total) in any::<(u64, Option<u64>)>(),
        sizes in prop::collection::vec(1_usize..70_000, 1..8),
    ) {
        let mut bytes = Vec::new();
        encode(&mut bytes, &Frame::Stdout(&out)).unwrap();
        encode(&mut bytes, &Frame::Log { level: "warn", message: &message }).unwrap();
        encode(&mut bytes, &Frame::Stderr(&err)).unwrap();
        encode(&mut bytes, &Frame::Progress { done, total, message: &message }).unwrap();
        let marks = Marks { received: 5, confined: 9 };
        encode_report(&mut bytes, &report(), marks).unwrap();
        let (heard, last) = read(&bytes, &sizes);
        prop_assert_eq!(last, Ok(Some(Last::Report(Box::new(report()), marks))));
        prop_assert_eq!(heard.stdout, out);
        prop_assert_eq!(heard.stderr, err);
        let line = String::from_utf8_lossy(cut(&message)).into_owned();
        prop_assert_eq!(heard.lines, vec![("warn".to_owned(), line.clone())]);
        prop_assert_eq!(heard.progress, vec![(done, total, line)]);
    }

    #[test]
    fn any_bytes_are_frames_or_refused_but_never_harm(
        bytes in prop::collection::vec(prop_oneof![3 => 0_u8..8, 1 => any::<u8>(), 1 => Just(VIOLATION)], 0..400),
        sizes in prop::collection::vec(1_usize..50, 1..4),
    ) {
        let (heard, last) = read(&bytes, &sizes);
        prop_assert!(heard.stdout.len() + heard.stderr.len() <= bytes.len());
        // The same bytes mean the same, however they are cut.
        prop_assert_eq!(read(&bytes, &[bytes.len()]).1.is_err(), last.is_err());
    }
}

#[test]
fn every_end_arrives() {
    use crate::job::{DescribedArtifact, Limit, Timer, ToolFailure};
    let text = || "a \"text\"\n".to_owned();
    let artifact = DescribedArtifact { path: text(), media_type: None, description: Some(text()) };
    let failure = ToolFailure { kind: text(), message: text(), retryable: true, details: Some("{}".into()) };
    for end in [
        End::Returned { content: text(), artifacts: vec![artifact] },
        End::Failed(failure),
        End::Exited { code: u32::MAX },
        End::TimedOut(Timer::Idle),
        End::LimitHit(Limit::HostCall),
        End::Trapped(text()),
        End::Interrupted,
        End::Refused(env_contracts::Problem::new(env_contracts::Code::Busy, text())),
        End::HostFailed(text()),
        End::Violation(text()),
    ] {
        let report = JobReport { end, usage: JobUsage::default() };
        let mut bytes = Vec::new();
        encode_report(&mut bytes, &report, Marks::default()).unwrap();
        assert_eq!(read(&bytes, &[7]).1, Ok(Some(Last::Report(Box::new(report), Marks::default()))));
    }
}

#[test]
fn impossible_frames_are_refused() {
    let header = |kind: u8, length: u32| [&[kind][..], &length.to_le_bytes()].concat();
    for (bytes, why) in [
        (header(0, 1), "a kind of frame that there is none"),
        (header(STDOUT, 0), "a frame of impossible length"),
        (header(STDOUT, u32::MAX), "a frame of impossible length"),
        (header(REPORT, u32::try_from(LAST_MAX).unwrap() + 1), "a frame of impossible length"),
        ([header(LOG, 2), vec![9, b'x']].concat(), "a log level that there is none"),
        ([header(LOG, 2), vec![1, 0xff]].concat(), "text that is not UTF-8"),
        ([header(PROGRESS, 3), vec![1, 2, 3]].concat(), "half a progress report"),
        ([header(REPORT, 18), vec![b'{'; 18]].concat(), "a report that can't be read"),
        ([header(VIOLATION, 3), vec![1, 2, 3]].concat(), "half a number"),
    ] {
        assert_eq!(read(&bytes, &[1]).1, Err(NotAFrame(why)));
    }
}

#[test]
fn nothing_follows_the_end() {
    let mut bytes = Vec::new();
    encode_report(&mut bytes, &report(), Marks::default()).unwrap();
    bytes.push(STDOUT);
    assert_eq!(read(&bytes, &[bytes.len()]).1, Err(NotAFrame("bytes after the end")));
}

#[test]
fn memory_grows_with_what_came_not_with_what_was_claimed() {
    let mut reader = Reader::default();
    let header = [&[REPORT][..], &u32::try_from(LAST_MAX).unwrap().to_le_bytes(), b"x"].concat();
    assert_eq!(reader.push(&header, &mut Heard::default()), Ok(None));
    assert!(matches!(&reader.state, State::Whole { bytes, .. } if bytes.capacity() < 1024));
}
