//! The vocabulary of the log: what happened, and what things are now.
//!
//! What it is: [`Event`]s in the order of a log, one log for each session;
//! and the records that the events add up to: [`Action`] with its
//! [`Approval`], [`Session`], [`Task`], [`Question`], [`Grant`], [`Halt`]. Plain data.
//!
//! What it is not: it decides nothing and stores nothing. Which event may
//! follow which is the plane's; how both are kept is the store's.
//!
//! Texts of people, models and tools are not in events but in [`Payload`]s
//! beside them, which an event names by their sha256: they can be erased and
//! the log still holds together.
//!
//! ```
//! use glovebox_events::{Event, What};
//!
//! let released: Event = serde_json::from_str(
//!     r#"{ "at_ms": 1800000000000, "what": { "kind": "released", "by": "uid-1000" } }"#,
//! )?;
//! assert!(matches!(&released.what, What::Released { by } if by.as_str() == "uid-1000"));
//! // An event of a kind that nobody knows is none.
//! assert!(serde_json::from_str::<What>(r#"{ "kind": "forgotten" }"#).is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

mod action;
mod answer;
mod approval;
mod entry;
mod environment;
mod event;
mod grant;
mod payload;
mod question;
mod session;
mod task;

pub use action::*;
pub use answer::*;
pub use approval::*;
pub use entry::*;
pub use environment::*;
pub use event::*;
pub use grant::*;
pub use payload::*;
pub use question::*;
pub use session::*;
pub use task::*;
