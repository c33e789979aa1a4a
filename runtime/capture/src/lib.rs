//! Bounded capture of one output stream: the first bytes, the last bytes, the
//! exact number of bytes between them, and the whole stream in a spill.
//!
//! What it is: a [`Capture`] that a backend writes standard output or standard
//! error into. It holds a fixed number of bytes however much is written, never
//! blocks the writer on anything but the spill, and never refuses a write. The
//! tail is kept because that is where the error message stands.
//!
//! What it is not: it knows no guests, no artifacts and no wire format, it does
//! not escape what a terminal would obey, and it decides nothing about what to
//! do with a flood. Where the spill lies is the caller's affair.
//!
//! ```
//! use glovebox_capture::{Body, Capture, CaptureLimits};
//!
//! let limits = CaptureLimits { head: 5, tail: 6, spill: 0 };
//! let mut capture: Capture = Capture::new(limits, None);
//! capture.write(b"start, a long story, ");
//! capture.write(b"error!");
//!
//! let shown = capture.finish().render();
//! assert_eq!(shown.body, Body::Text("starterror!".into()));
//! assert_eq!((shown.total, shown.omitted, shown.cut), (27, 16, 5));
//! ```

mod capture;
mod reading;
mod render;
mod spill;

pub use capture::{Capture, CaptureLimits, Captured};
pub use reading::{Piece, ReadAt};
pub use render::{Body, Rendered};
pub use spill::{OpenSpill, Spilled};
