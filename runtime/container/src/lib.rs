//! Executes container images through a Docker engine.
//!
//! The engine is asked through its API alone, over a Unix socket. Each action
//! gets a container of its own: created with everything shut, held against what
//! the engine really applied, entered through our own PID 1
//! (`runtime/supervisor`), and gone afterwards. Nothing is sent to a container
//! whose surroundings are not as asked.
//!
//! What it is not: it decides nothing, pulls nothing, and knows no door, no
//! policy and no database.
//!
//! ```
//! use glovebox_container::{Containers, Socket};
//!
//! let socket = Socket::find(Some("unix:///run/user/1000/docker.sock"), None).unwrap();
//! // Nothing is asked of an engine, and nothing written, until an action needs it.
//! let containers = Containers::new(socket, "/var/lib/glovebox/containers".into());
//! assert_eq!(containers.engine().socket().path().to_str(), Some("/run/user/1000/docker.sock"));
//! // Others are spoken to by nobody here.
//! assert!(Socket::find(Some("tcp://10.0.0.1:2375"), None).is_err());
//! ```

mod applied;
mod backend;
mod changes;
mod containers;
mod converse;
mod drive;
mod enforce;
mod engine;
mod error;
mod folders;
mod haul;
mod image;
mod ladder;
mod layout;
mod marks;
mod pool;
mod prepare;
mod recipe;
mod seccomp;
mod session;
mod streams;
mod supervisor;
mod takeout;
mod watch;

pub use backend::ContainerBackend;
pub use containers::Containers;
pub use converse::{Conversation, Life, Program};
pub use engine::{Engine, Facts, Socket};
pub use image::{ImageRecord, MAX_RECORD};
pub use marks::{Left, Swept};
