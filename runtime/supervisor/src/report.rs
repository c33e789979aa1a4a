//! What the supervisor says.

use serde::{Deserialize, Serialize};

use crate::frame::{Decoder, FrameError, Sealer};
use crate::order::{PIECE_MAX, Placing};

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const FILE: u8 = 3;
const OTHER: u8 = 4;

/// One thing that the supervisor says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report<'a> {
    /// It is there and has the key.
    Ready(Ready),
    /// What lies at the places that were asked for, in their order.
    Seen(Vec<Option<Place>>),
    /// It could not be started: the kernel's error number.
    NotStarted(i32),
    /// Bytes of standard output, in order.
    Stdout(&'a [u8]),
    /// Bytes of standard error, in order.
    Stderr(&'a [u8]),
    /// What was started ended, all that it started is gone, and all it said
    /// was said.
    Exited(Exited),
    /// Everything is placed, or the kernel's error number for what is not.
    Placed(Option<i32>),
    /// Something of the folder that is collected: its path is relative to that.
    /// The content of a file follows.
    Found(Placing),
    /// Something of it that did not change: its path there.
    Kept(Vec<u8>),
    /// Content of the file that was found last.
    Content(&'a [u8]),
    /// Something that is not handed over, and why.
    LeftOut(Left, Vec<u8>),
    /// That was all of the folder.
    Collected,
    /// An answer to [`Order::Ping`](crate::Order::Ping).
    Pong(u64),
}

/// What a supervisor finds where it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    /// [`PROTOCOL`](crate::PROTOCOL).
    pub protocol: u32,
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Whether it is the first process, may gain nothing and has no capability.
    pub confined: bool,
    /// Whether its system calls are filtered.
    pub filtered: bool,
    /// What the kernel holds it to.
    pub limits: Limits,
}

/// What the kernel holds a container to, as its control group says. `None`:
/// it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Limits {
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Processes and threads.
    pub pids: Option<u64>,
    /// Thousandths of a processor.
    pub cpu_millis: Option<u64>,
    /// Whether the processor time that was used can be read.
    pub cpu_known: bool,
}

/// Something at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its device and inode, as the kernel counts them.
    pub identity: (u64, u64),
    /// Its owner.
    pub uid: u32,
}

/// How what was started ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exited {
    /// How.
    pub ended: Ended,
    /// Why the supervisor ended it, if it did.
    pub why: Option<Why>,
    /// Processor time in microseconds.
    pub cpu_us: u64,
    /// The most memory at once, in bytes.
    pub memory_peak: u64,
    /// How many processes the kernel killed because memory ran out.
    pub oom_kills: u64,
    /// How often the kernel refused a process or thread.
    pub pids_refused: u64,
    /// Whether a folder was full at the end: bytes, entries.
    pub full: (bool, bool),
}

/// The end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ended {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Ended {
    /// What the supervisor ends with itself afterwards, so that whoever keeps
    /// the container can tell the same.
    pub fn exit_code(self) -> i32 {
        match self {
            Self::Code(code) => code & 0xFF,
            Self::Signal(signal) => 128 + (signal & 0x7F),
        }
    }
}

/// Why the supervisor ended what ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Why {
    /// The host said so.
    Ordered,
    /// More bytes in its folders than it may have.
    Storage,
    /// More entries in its folders than it may have.
    Inodes,
    /// More processor time than it may have.
    Cpu,
}

/// Why something is not handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Left {
    /// It is a symbolic link.
    Symlink,
    /// It is no file and no folder.
    Special,
    /// It can't be read.
    Unreadable,
    /// It lies too deep, or its path is too long.
    TooDeep,
    /// There is more than is looked at.
    TooMany,
}

#[derive(Serialize, Deserialize)]
enum Word {
    Ready(Ready),
    Seen(Vec<Option<Place>>),
    NotStarted(i32),
    Exited(Exited),
    Placed(Option<i32>),
    Found(Placing),
    Kept(Vec<u8>),
    LeftOut(Left, Vec<u8>),
    Collected,
    Pong(u64),
}

impl Report<'_> {
    /// Appends it to `out`; output and content are cut into pieces.
    pub fn write(&self, sealer: &mut Sealer, out: &mut Vec<u8>) {
        let mut raw = |kind, bytes: &[u8]| bytes.chunks(PIECE_MAX).for_each(|piece| sealer.frame(out, kind, piece));
        let word = match self {
            Self::Stdout(bytes) => return raw(STDOUT, bytes),
            Self::Stderr(bytes) => return raw(STDERR, bytes),
            Self::Content(bytes) => return raw(FILE, bytes),
            Self::Ready(ready) => Word::Ready(ready.clone()),
            Self::Seen(places) => Word::Seen(places.clone()),
            Self::NotStarted(errno) => Word::NotStarted(*errno),
            Self::Exited(exited) => Word::Exited(*exited),
            Self::Placed(errno) => Word::Placed(*errno),
            Self::Found(found) => Word::Found(found.clone()),
            Self::Kept(path) => Word::Kept(path.clone()),
            Self::LeftOut(left, path) => Word::LeftOut(*left, path.clone()),
            Self::Collected => Word::Collected,
            Self::Pong(number) => Word::Pong(*number),
        };
        let bytes = postcard::to_allocvec(&word).unwrap_or_else(|_| unreachable!("memory takes all of it"));
        sealer.frame(out, OTHER, &bytes);
    }

    /// Takes reports apart.
    ///
    /// # Errors
    /// [`FrameError`] for what is none, and whatever `each` says.
    pub fn read(
        decoder: &mut Decoder,
        bytes: &[u8],
        mut each: impl FnMut(Report<'_>) -> Result<(), FrameError>,
    ) -> Result<(), FrameError> {
        decoder.push(bytes, |kind, payload| {
            let report = match kind {
                STDOUT => Report::Stdout(payload),
                STDERR => Report::Stderr(payload),
                FILE => Report::Content(payload),
                OTHER => match postcard::from_bytes(payload).map_err(|_| FrameError("a report that there is none"))? {
                    Word::Ready(ready) => Report::Ready(ready),
                    Word::Seen(places) => Report::Seen(places),
                    Word::NotStarted(errno) => Report::NotStarted(errno),
                    Word::Exited(exited) => Report::Exited(exited),
                    Word::Placed(errno) => Report::Placed(errno),
                    Word::Found(found) => Report::Found(found),
                    Word::Kept(path) => Report::Kept(path),
                    Word::LeftOut(left, path) => Report::LeftOut(left, path),
                    Word::Collected => Report::Collected,
                    Word::Pong(number) => Report::Pong(number),
                },
                _ => return Err(FrameError("a kind of frame that there is none")),
            };
            each(report)
        })
    }
}
