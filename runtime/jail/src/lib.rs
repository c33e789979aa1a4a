//! How a process of ours shuts itself in before it touches what a stranger
//! wrote: descriptors, privileges, limits, files (Landlock), system calls
//! (seccomp). Each step is one function, takes something away for good, and
//! fails rather than take less than it says.
//!
//! The crate knows nothing of WebAssembly, jobs or plans, starts no process
//! and decides no policy; the order of the steps is the caller's:
//!
//! 1. [`die_with_parent`], [`give_up_privileges`], [`keep_descriptors`];
//! 2. [`restrict_files`], [`limit`];
//! 3. [`report_violations`], then [`install`]. Every filter but
//!    [`Filter::Template`] forbids the steps before it.
//!
//! [`Attempt`]s are what an intruder would try; made inside, they show that
//! the walls stand.
//!
//! ```
//! let layers = glovebox_jail::Layers { landlock: Some(3), seccomp: true };
//! let missing = layers.missing();
//! assert_eq!(missing[0].layer, "Landlock");
//! println!("{}; {}", missing[0].reason, missing[0].remedy);
//! ```

#[expect(unsafe_code, reason = "an attack is a system call that no safe library offers")]
mod attempt;
#[expect(unsafe_code, reason = "no safe library offers close_range")]
mod descriptors;
mod error;
mod files;
mod filter;
#[expect(unsafe_code, reason = "asks the kernel what no safe library tells")]
mod layers;
#[expect(unsafe_code, reason = "no safe library ignores a signal")]
mod limits;
mod names;
mod privileges;
#[expect(unsafe_code, reason = "no safe library unblocks signals")]
mod signals;
#[expect(unsafe_code, reason = "a signal handler")]
mod violation;

pub use attempt::Attempt;
pub use descriptors::keep_descriptors;
pub use error::{JailError, Result};
pub use files::{Folder, restrict_files};
pub use filter::{Filter, Prepared, install, prepare};
pub use layers::{LANDLOCK_NEEDED, LANDLOCK_SCOPES, Layers, Missing};
pub use limits::{Limits, limit};
pub use names::syscall_name;
pub use privileges::{die_with_parent, give_up_privileges};
/// Process ids, as [`die_with_parent`] takes them.
pub use rustix::process::Pid;
pub use signals::hear_signals;
pub use violation::{VIOLATION, VIOLATION_EXIT, VIOLATION_FRAME, report_violations, violation};
