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

mod applied;
mod backend;
mod changes;
mod containers;
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
mod supervisor;
mod takeout;
mod watch;

pub use backend::ContainerBackend;
pub use containers::Containers;
pub use engine::{Engine, Facts, Socket};
pub use image::{ImageRecord, MAX_RECORD};
pub use marks::{Left, Swept};
