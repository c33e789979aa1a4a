//! What an execution says to the process that started it, as bytes on a
//! stream.
//!
//! A frame is a kind (one byte), a length (four bytes, little-endian) and so
//! many bytes. [`encode`] is used inside, where the guest runs; [`Reader`]
//! outside. The reader trusts nothing: whoever breaks out of the engine can
//! write anything into the stream, so everything is bounded and checked, and
//! what is not a frame ends the execution as a violation.

use std::io::{self, IoSlice, Write};

use crate::job::{Frame, FrameSink, JobReport};

/// The bytes before each payload.
pub const HEADER: usize = 5;
/// The longest piece of output in one frame. The writer splits what is longer.
pub const PIECE_MAX: usize = 64 << 10;
/// The longest log line or progress report, with its numbers. Tools may say 4
/// KiB at once.
const LINE_MAX: usize = 8 << 10;
/// The longest last frame: a result of 8 MiB, whose quotes are escaped.
pub const LAST_MAX: usize = 32 << 20;

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const LOG: u8 = 3;
const PROGRESS: u8 = 4;
const REPORT: u8 = 5;
/// A system call was refused; its number follows, as four bytes. Written by a
/// signal handler, in the place of a last frame.
pub const VIOLATION: u8 = 0xEE;

const LEVELS: [&str; 4] = ["debug", "info", "warn", "error"];

/// What comes last: nothing may follow.
#[derive(Debug, Clone, PartialEq)]
pub enum Last {
    /// The execution reported its end.
    Report(Box<JobReport>, Marks),
    /// The kernel refused the system call with this number.
    Violation(u32),
}

/// When what happened inside, on the host's monotonic clock, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// The job was received.
    pub received: u64,
    /// Everything but the job's own folders was shut off.
    pub confined: u64,
}

/// Why bytes are no frames. The text is ours, not the sender's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotAFrame(pub &'static str);

/// Writes one frame.
///
/// # Errors
/// Those of the stream.
pub fn encode(out: &mut impl Write, frame: &Frame<'_>) -> io::Result<()> {
    match frame {
        Frame::Stdout(bytes) => bytes.chunks(PIECE_MAX).try_for_each(|piece| write(out, STDOUT, &[piece])),
        Frame::Stderr(bytes) => bytes.chunks(PIECE_MAX).try_for_each(|piece| write(out, STDERR, &[piece])),
        Frame::Log { level, message } => {
            let level = LEVELS.iter().position(|known| known == level).unwrap_or(1);
            write(out, LOG, &[&[u8::try_from(level).unwrap_or(1)], cut(message)])
        }
        Frame::Progress { done, total, message } => {
            let known = [u8::from(total.is_some())];
            let (done, total) = (done.to_le_bytes(), total.unwrap_or(0).to_le_bytes());
            write(out, PROGRESS, &[&done, &known, &total, cut(message)])
        }
    }
}

/// Writes the last frame.
///
/// # Errors
/// Those of the stream; [`io::ErrorKind::FileTooLarge`] for a report that the
/// reader would not take.
pub fn encode_report(out: &mut impl Write, report: &JobReport, marks: Marks) -> io::Result<()> {
    let json = serde_json::to_vec(report)?;
    if json.len() > LAST_MAX - 16 {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    write(out, REPORT, &[&marks.received.to_le_bytes(), &marks.confined.to_le_bytes(), &json])
}

/// What of a text fits into a frame.
fn cut(text: &str) -> &[u8] {
    &text.as_bytes()[..text.floor_char_boundary(LINE_MAX - 32)]
}

fn write(out: &mut impl Write, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
    let length: usize = parts.iter().map(|part| part.len()).sum();
    let mut header = [0; HEADER];
    header[0] = kind;
    header[1..].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(parts.len() + 1);
    slices.push(IoSlice::new(&header));
    slices.extend(parts.iter().map(|part| IoSlice::new(part)));
    let mut rest = &mut slices[..];
    // One call where the stream has room, so that small frames stay cheap.
    while !rest.is_empty() {
        match out.write_vectored(rest) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut rest, count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Takes a stream of frames apart, in whatever pieces it comes.
#[derive(Debug, Default)]
pub struct Reader {
    state: State,
    /// Bytes of output and log that were passed on.
    said: u64,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Start,
    Header {
        bytes: [u8; HEADER],
        have: usize,
    },
    /// Output is passed on as it comes.
    Output {
        kind: u8,
        left: usize,
    },
    /// Everything else is taken whole.
    Whole {
        kind: u8,
        length: usize,
        bytes: Vec<u8>,
    },
    Over,
}

impl Reader {
    /// Takes the next bytes of the stream. Frames go to `sink`; the last one
    /// is the answer.
    ///
    /// # Errors
    /// [`NotAFrame`]: the sender is not what it should be. Nothing that comes
    /// after that can be used.
    pub fn push(&mut self, mut bytes: &[u8], sink: &mut dyn FrameSink) -> Result<Option<Last>, NotAFrame> {
        while !bytes.is_empty() {
            match std::mem::take(&mut self.state) {
                State::Start => self.state = State::Header { bytes: [0; HEADER], have: 0 },
                State::Header { bytes: mut header, have } => {
                    let count = bytes.len().min(HEADER - have);
                    header[have..have + count].copy_from_slice(&bytes[..count]);
                    bytes = &bytes[count..];
                    self.state = if have + count == HEADER {
                        begin(header)?
                    } else {
                        State::Header { bytes: header, have: have + count }
                    };
                }
                State::Output { kind, left } => {
                    let count = bytes.len().min(left);
                    let (piece, rest) = bytes.split_at(count);
                    self.said += count as u64;
                    sink.frame(if kind == STDOUT { Frame::Stdout(piece) } else { Frame::Stderr(piece) });
                    bytes = rest;
                    if left > count {
                        self.state = State::Output { kind, left: left - count };
                    }
                }
                State::Whole { kind, length, bytes: mut whole } => {
                    let count = bytes.len().min(length - whole.len());
                    whole.extend_from_slice(&bytes[..count]);
                    bytes = &bytes[count..];
                    if whole.len() < length {
                        self.state = State::Whole { kind, length, bytes: whole };
                    } else if let Some(last) = self.whole(kind, &whole, sink)? {
                        self.state = State::Over;
                        return if bytes.is_empty() { Ok(Some(last)) } else { Err(NotAFrame("bytes after the end")) };
                    }
                }
                State::Over => return Err(NotAFrame("bytes after the end")),
            }
        }
        Ok(None)
    }

    /// Bytes of output and log so far.
    pub fn said(&self) -> u64 {
        self.said
    }

    fn whole(&mut self, kind: u8, bytes: &[u8], sink: &mut dyn FrameSink) -> Result<Option<Last>, NotAFrame> {
        match kind {
            LOG => {
                let (&level, message) = bytes.split_first().ok_or(NotAFrame("an empty log line"))?;
                let level = LEVELS.get(usize::from(level)).ok_or(NotAFrame("a log level that there is none"))?;
                let message = text(message)?;
                self.said += message.len() as u64;
                sink.frame(Frame::Log { level, message });
                Ok(None)
            }
            PROGRESS => {
                let short = NotAFrame("half a progress report");
                let (done, rest) = bytes.split_first_chunk().ok_or(short.clone())?;
                let (&known, rest) = rest.split_first().ok_or(short.clone())?;
                let (total, message) = rest.split_first_chunk().ok_or(short)?;
                let total = (known != 0).then(|| u64::from_le_bytes(*total));
                sink.frame(Frame::Progress { done: u64::from_le_bytes(*done), total, message: text(message)? });
                Ok(None)
            }
            REPORT => {
                let short = NotAFrame("half a report");
                let (received, rest) = bytes.split_first_chunk().ok_or(short.clone())?;
                let (confined, json) = rest.split_first_chunk().ok_or(short)?;
                let report = serde_json::from_slice(json).map_err(|_| NotAFrame("a report that can't be read"))?;
                let marks = Marks { received: u64::from_le_bytes(*received), confined: u64::from_le_bytes(*confined) };
                Ok(Some(Last::Report(Box::new(report), marks)))
            }
            _ => {
                let number = bytes.try_into().map_err(|_| NotAFrame("half a number"))?;
                Ok(Some(Last::Violation(u32::from_le_bytes(number))))
            }
        }
    }
}

fn begin(header: [u8; HEADER]) -> Result<State, NotAFrame> {
    let [kind, length @ ..] = header;
    let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
    let most = match kind {
        STDOUT | STDERR => PIECE_MAX,
        LOG | PROGRESS => LINE_MAX,
        REPORT => LAST_MAX,
        VIOLATION => size_of::<u32>(),
        _ => return Err(NotAFrame("a kind of frame that there is none")),
    };
    if length == 0 || length > most {
        return Err(NotAFrame("a frame of impossible length"));
    }
    Ok(match kind {
        STDOUT | STDERR => State::Output { kind, left: length },
        // Not as much as the sender claims, but as it comes.
        _ => State::Whole { kind, length, bytes: Vec::new() },
    })
}

fn text(bytes: &[u8]) -> Result<&str, NotAFrame> {
    std::str::from_utf8(bytes).map_err(|_| NotAFrame("text that is not UTF-8"))
}

#[cfg(test)]
#[path = "frames_tests.rs"]
mod tests;
