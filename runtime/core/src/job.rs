//! A [`Job`]: everything one execution needs, as plain data.
//!
//! A job can be serialised; the descriptors it needs travel beside it in
//! [`Descriptors`] and are named by index. The same code executes a job in
//! this process or in a cell that received job and descriptors over a socket.
//! What the guest says while it runs comes out as [`Frame`]s; how it ended is
//! a [`JobReport`].

use std::os::fd::OwnedFd;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// One execution, complete.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// The action this belongs to, as the guest may see it in its context.
    pub action: String,
    /// The sha256 of the component as it was registered, in lower-case hex.
    pub component: String,
    /// What to call.
    pub entry: Entry,
    /// The canonical arguments: the bytes that were validated, hashed and shown.
    pub args: String,
    /// The folders the guest sees; nothing else exists for it.
    pub mounts: Vec<Mount>,
    /// Files whose content was fixed when the plan was bound. Whatever the
    /// folder holds by now, the guest reads these bytes at these places.
    pub sealed: Vec<SealedFile>,
    /// What the execution may use at most.
    pub limits: JobLimits,
    /// What happens to imports that nothing grants.
    pub imports: UngrantedImports,
    /// A clock and random numbers that are the same in every run; none: the
    /// real ones.
    pub deterministic: Option<env_contracts::Deterministic>,
}

/// The descriptors of a job, owned; [`FdIndex`] counts into them.
pub type Descriptors = Vec<OwnedFd>;

/// The place of a descriptor in the job's [`Descriptors`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FdIndex(pub u32);

/// What to call in the component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Entry {
    /// `glovebox:tool/tool.call(name, args, context)`.
    Tool {
        /// The tool's name inside the component.
        name: String,
    },
    /// `wasi:cli/run.run()`.
    Command {
        /// The arguments, `argv[0]` first.
        argv: Vec<String>,
        /// What of the arguments is the standard input.
        stdin: env_contracts::Stdin,
        /// The environment, complete; the host's is never inherited.
        env: Vec<(String, String)>,
    },
    /// A function that the component exports with types of its own; the
    /// arguments are its parameters by name.
    Export {
        /// The exported interface it stands in; none is the component itself.
        interface: Option<String>,
        /// The function's name.
        function: String,
    },
}

/// A folder of the guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mount {
    /// Where the guest sees it: absolute, normalised, `/workspace`.
    pub guest: String,
    /// The folder itself, opened when the plan was bound.
    pub dir: FdIndex,
    /// Whether the guest may change what is in it.
    pub writable: bool,
    /// Whether its bytes and entries count against the storage limits:
    /// scratch folders do, a workspace does too.
    pub counted: bool,
    /// Globs of paths that don't exist for the guest, relative to the folder
    /// (`.env*` and `*.key` match a name at any depth, `.git/config` a path
    /// suffix at any depth, `.aws/` a folder with all in it): not listed, not
    /// found, not created, whichever link leads there.
    pub hide: Vec<String>,
}

/// A file whose bytes are fixed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SealedFile {
    /// The guest path of its mount.
    pub mount: String,
    /// Where it lies in that mount: relative, without links, `.` and `..`.
    pub path: String,
    /// How the argument spells it, relative to the mount and without empty
    /// parts and `.`: links on that way may lead elsewhere by now, and still
    /// these bytes are what the guest finds there.
    pub spelled: String,
    /// The file it was read from, so that another name of it (a hard link, a
    /// symlink) leads to the same bytes: device and inode.
    pub identity: (u64, u64),
    /// The fixed content, readable from its start.
    pub content: FdIndex,
}

/// What a job may use. Every number is final: nothing is unlimited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobLimits {
    /// Wall-clock time from instantiation on, host calls included.
    pub wall: Duration,
    /// The longest silence: no output, log or progress.
    pub idle: Option<Duration>,
    /// Processor time.
    pub cpu: Option<Duration>,
    /// Linear memory and tables, summed over the whole store, in bytes.
    pub memory: u64,
    /// Standard output and standard error together, in bytes. What goes
    /// beyond ends the action.
    pub output: u64,
    /// Bytes that all writable folders may grow by.
    pub storage: u64,
    /// Entries that all writable folders may grow by.
    pub inodes: u64,
}

/// What happens to imports that nothing grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UngrantedImports {
    /// The component is refused, with the list.
    Refuse,
    /// Calls are answered with access-denied.
    Stub,
}

impl From<env_contracts::Imports> for UngrantedImports {
    fn from(imports: env_contracts::Imports) -> Self {
        match imports {
            env_contracts::Imports::Refuse => Self::Refuse,
            env_contracts::Imports::Stub => Self::Stub,
        }
    }
}

/// What a guest says while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame<'a> {
    /// Bytes of standard output, in order.
    Stdout(&'a [u8]),
    /// Bytes of standard error, in order.
    Stderr(&'a [u8]),
    /// A log line through the tool interface. Untrusted text, bounded.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: &'static str,
        /// The text.
        message: &'a str,
    },
    /// Progress through the tool interface. Untrusted text, bounded.
    Progress {
        /// Units done.
        done: u64,
        /// Units in all, where the guest knows.
        total: Option<u64>,
        /// The text.
        message: &'a str,
    },
}

/// Where frames go. Called from the execution; must not block for long.
pub trait FrameSink: Send {
    /// Takes one frame. The bytes are borrowed: copy what is kept.
    fn frame(&mut self, frame: Frame<'_>);
}

/// How an execution ended and what it used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobReport {
    /// How it ended.
    pub end: End,
    /// What it used.
    pub usage: JobUsage,
}

/// How an execution ended. One of these, never two merged into one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", content = "about", rename_all = "kebab-case", deny_unknown_fields)]
pub enum End {
    /// The tool interface returned a result.
    Returned {
        /// Its content: JSON, unchecked.
        content: String,
        /// Files below `/outputs` that it described.
        artifacts: Vec<DescribedArtifact>,
    },
    /// The tool interface returned an error.
    Failed(ToolFailure),
    /// A command ended by itself.
    Exited {
        /// Its exit code; 0 is success.
        code: u32,
    },
    /// Time ran out.
    TimedOut(Timer),
    /// A limit was hit.
    LimitHit(Limit),
    /// The guest stopped abnormally; the text is the engine's.
    Trapped(String),
    /// The caller asked it to stop.
    Interrupted,
    /// The component can't be run here at all: what it imports is not
    /// granted, or it does not export the entry.
    Refused(env_contracts::Problem),
    /// What does the work elsewhere was not heard of again, and whether it did
    /// it is not known. The text says how.
    Lost(String),
    /// The engine or the host failed; not the guest's fault.
    HostFailed(String),
    /// The second wall stopped it: something in the cell did what the engine
    /// never does. The text says what.
    Violation(String),
}

/// A file that the tool described in its result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DescribedArtifact {
    /// Where it lies below `/outputs`. Untrusted.
    pub path: String,
    /// Its media type. Untrusted.
    pub media_type: Option<String>,
    /// What it is. Untrusted.
    pub description: Option<String>,
}

/// An error that the tool itself reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolFailure {
    /// The name of its kind in the tool interface, such as `not-found`.
    pub kind: String,
    /// The tool's own words. Untrusted, bounded.
    pub message: String,
    /// Whether the tool says that a retry can help.
    pub retryable: bool,
    /// Further details as JSON. Untrusted, unchecked.
    pub details: Option<String>,
}

/// Which clock ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Timer {
    /// Wall-clock time.
    Wall,
    /// Time without output.
    Idle,
    /// Processor time.
    Cpu,
}

/// Which limit was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// Linear memory and tables.
    Memory,
    /// Instances, memories or tables of the store.
    Instances,
    /// Open handles.
    Handles,
    /// The stack.
    Stack,
    /// Standard output and error.
    Output,
    /// Bytes written to folders.
    Storage,
    /// Entries made in folders.
    Inodes,
    /// Bytes that pass a single host call.
    HostCall,
}

/// What an execution used. Denials are counted, so that a tool that failed
/// because of a limit can be told from one that failed by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobUsage {
    /// Making the store and the instance.
    pub setup: Duration,
    /// The call itself.
    pub run: Duration,
    /// Taking everything down.
    pub teardown: Duration,
    /// Processor time of the call.
    pub cpu: Duration,
    /// The most memory and tables the store held at once, in bytes.
    pub memory_peak: u64,
    /// Bytes read from files.
    pub bytes_read: u64,
    /// Bytes written to files.
    pub bytes_written: u64,
    /// Requests for memory, tables or instances that were refused.
    pub denied_memory: u64,
    /// Requests for storage or entries that were refused.
    pub denied_storage: u64,
}
