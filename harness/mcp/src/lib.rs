//! The MCP door: translates between the Model Context Protocol and the
//! [`ActionService`](glovebox_plane::ActionService), in the revision 2026-07-28
//! and the older ones that begin with a handshake.
//!
//! What it is: a [`Door`] that a pair of pipes ([`Door::serve`]) or an HTTP
//! server (as a handler of rmcp's) stands in; the tools that are registered, as
//! its client lists and calls them; and the ways in which a client waits for a
//! person.
//!
//! The other way round, [`upstream`] has the tools of MCP servers elsewhere as
//! capabilities.
//!
//! What it is not: it decides nothing, keeps nothing and runs nothing itself. It
//! knows no engine, no SQL and no server. Who asks is what its channel says,
//! never what a message does.
//!
//! ```
//! use env_contracts::OutcomeKind;
//! use glovebox_mcp::{Plain, TaskImage, ended};
//!
//! // What a person declined is a result that the model reads, with tasks and without.
//! let image = ended(OutcomeKind::Declined, Some(env_contracts::Code::Declined));
//! assert_eq!(image.plain, Plain::Answered { error: true });
//! assert_eq!(image.task, TaskImage::Completed { error: true });
//! ```

mod answer;
mod asking;
mod call;
mod door;
mod drive;
mod party;
mod progress;
mod project;
mod resources;
mod state;
mod stdio;
mod tasks;
mod tools;
pub mod upstream;

pub use call::Received;
pub use door::{Door, DoorParts, InboxUrl, WAIT};
pub use party::{Party, Workspace};
pub use project::{McpState, Plain, TaskImage, ended, project};
pub use state::StateKey;
