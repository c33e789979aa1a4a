//! What a container's PID 1 and its host say to each other.
//!
//! The bytes travel on the container's standard input and output. A frame is a
//! length (four bytes, little-endian), a kind (one byte) and so many bytes: raw
//! ones for output and files, postcard for everything else. Each frame that
//! leaves the container ends in a MAC over its place in the stream and all
//! before it, under a key that the host gives first and nothing in the
//! container can read: whoever got hold of the stream could add nothing to it.
//!
//! The crate is the program too (`src/main.rs`), which is built static and
//! carried by `runtime/container`. It knows nothing of contracts, plans and
//! engines.
//!
//! ```
//! use glovebox_supervisor::{Decoder, Report, Sealer};
//!
//! let (key, mut bytes) = ([7; 32], Vec::new());
//! Report::Stdout(b"hello").write(&mut Sealer::new(&key), &mut bytes);
//!
//! let mut said = Vec::new();
//! Report::read(&mut Decoder::new(&key), &bytes, |report| {
//!     said.push(matches!(report, Report::Stdout(b"hello")));
//!     Ok(())
//! })
//! .unwrap();
//! assert_eq!(said, [true]);
//! // Under another key it is nothing.
//! assert!(Report::read(&mut Decoder::new(&[8; 32]), &bytes, |_| Ok(())).is_err());
//! ```

mod frame;
mod order;
mod report;

pub use frame::{Decoder, FrameError, Key, MAC, Sealer};
pub use order::{Laid, Order, PIECE_MAX, Placing, Start, Watch};
pub use report::{Ended, Exited, Left, Limits, Place, Ready, Report, Why};

/// What the two sides have to agree on. A supervisor of another version is
/// another program: it is never spoken to.
pub const PROTOCOL: u32 = 1;

/// How many entries of a folder are handed over: all that may be laid out there,
/// and as many again that a tool makes.
pub const ENTRIES_MAX: usize = 400_000;

/// How long a supervisor goes on without a word from its host: long enough for
/// a host that is busy or was stopped for a moment, short enough that nothing
/// outlives one that is gone.
pub const DEAD_MAN: std::time::Duration = std::time::Duration::from_secs(30);
