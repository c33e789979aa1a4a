//! What the host says.

use serde::{Deserialize, Serialize};

use crate::frame::{Decoder, FrameError, Key, Sealer};

/// The longest piece of input, output or file in one frame.
pub const PIECE_MAX: usize = 64 << 10;

const STDIN: u8 = 1;
const OTHER: u8 = 2;
const CONTENT: u8 = 3;

/// One thing that the host says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order<'a> {
    /// The first word: the key for all that comes back.
    Key(Key),
    /// What lies at these places? Answered with [`Report::Seen`](crate::Report::Seen).
    Look(Vec<String>),
    /// Run this. One at a time.
    Start(Start),
    /// Bytes for its standard input.
    Stdin(&'a [u8]),
    /// No more of them.
    StdinEnd,
    /// End what runs: asked to first, and killed after so many milliseconds.
    End(u32),
    /// Lay this out. What is wrong is told once all is placed.
    Place(Placing),
    /// Content of the file that was placed last.
    Content(&'a [u8]),
    /// Everything is placed; what changes from now on is a change. Answered with
    /// [`Report::Placed`](crate::Report::Placed).
    Placed,
    /// Hand over the files in a folder.
    Collect(String),
    /// Hand over what changed in a folder since everything was placed, and name
    /// what did not.
    CollectChanges(String),
    /// A sign of life; answered with the same number.
    Ping(u64),
}

/// What is run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The environment, complete.
    pub env: Vec<(String, String)>,
    /// Where it begins.
    pub cwd: String,
    /// What is watched while it runs.
    pub watch: Watch,
}

/// What is watched while something runs. Going beyond ends it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Watch {
    /// The folders that it may fill.
    pub folders: Vec<String>,
    /// Bytes in all of them together.
    pub storage: u64,
    /// Entries in all of them together.
    pub inodes: u64,
    /// Processor time in microseconds, of all that it starts.
    pub cpu_us: Option<u64>,
}

/// Something that is laid out before anything runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placing {
    /// Its path, from the root: bytes, as file systems have them.
    pub path: Vec<u8>,
    /// Its permissions.
    pub mode: u32,
    /// When its content was changed last: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// What it is.
    pub what: Laid,
}

/// What is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Laid {
    /// A folder.
    Folder,
    /// A file; its content follows.
    File,
    /// A symbolic link to this.
    Link(Vec<u8>),
}

#[derive(Serialize, Deserialize)]
enum Word {
    Key(Key),
    Look(Vec<String>),
    Start(Start),
    StdinEnd,
    End(u32),
    Place(Placing),
    Placed,
    Collect(String),
    CollectChanges(String),
    Ping(u64),
}

impl Order<'_> {
    /// Appends it to `out`; input is cut into pieces.
    pub fn write(&self, sealer: &mut Sealer, out: &mut Vec<u8>) {
        let word = match self {
            Self::Stdin(bytes) => {
                return bytes.chunks(PIECE_MAX).for_each(|piece| sealer.frame(out, STDIN, piece));
            }
            Self::Content(bytes) => {
                return bytes.chunks(PIECE_MAX).for_each(|piece| sealer.frame(out, CONTENT, piece));
            }
            Self::Key(key) => Word::Key(*key),
            Self::Look(places) => Word::Look(places.clone()),
            Self::Start(start) => Word::Start(start.clone()),
            Self::StdinEnd => Word::StdinEnd,
            Self::End(grace) => Word::End(*grace),
            Self::Place(placing) => Word::Place(placing.clone()),
            Self::Placed => Word::Placed,
            Self::Collect(folder) => Word::Collect(folder.clone()),
            Self::CollectChanges(folder) => Word::CollectChanges(folder.clone()),
            Self::Ping(number) => Word::Ping(*number),
        };
        let bytes = postcard::to_allocvec(&word).unwrap_or_else(|_| unreachable!("memory takes all of it"));
        sealer.frame(out, OTHER, &bytes);
    }

    /// Takes orders apart.
    ///
    /// # Errors
    /// [`FrameError`] for what is none.
    pub fn read(decoder: &mut Decoder, bytes: &[u8], mut each: impl FnMut(Order<'_>)) -> Result<(), FrameError> {
        decoder.push(bytes, |kind, payload| {
            if kind == STDIN || kind == CONTENT {
                each(if kind == STDIN { Order::Stdin(payload) } else { Order::Content(payload) });
                return Ok(());
            }
            let word = postcard::from_bytes(payload).map_err(|_| FrameError("an order that there is none"))?;
            each(match word {
                Word::Key(key) => Order::Key(key),
                Word::Look(places) => Order::Look(places),
                Word::Start(start) => Order::Start(start),
                Word::StdinEnd => Order::StdinEnd,
                Word::End(grace) => Order::End(grace),
                Word::Place(placing) => Order::Place(placing),
                Word::Placed => Order::Placed,
                Word::Collect(folder) => Order::Collect(folder),
                Word::CollectChanges(folder) => Order::CollectChanges(folder),
                Word::Ping(number) => Order::Ping(number),
            });
            Ok(())
        })
    }
}
