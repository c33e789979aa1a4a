//! `glovebox exec`.

use std::path::PathBuf;

use clap::Args;

use super::AskMode;

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The image: a tag or an id that the container engine has. Default: the
    /// configuration's `container.image`.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// A folder to work on, at /workspace. It is copied in, and what changed is
    /// brought back when the command has ended; with `:read` it is only shown.
    #[arg(long, value_name = "DIR[:read]")]
    pub(crate) workspace: Option<PathBuf>,
    /// What it may use: wall, idle, cpu (time); cpus, pids; memory, storage,
    /// output (bytes); inodes. Repeat it, or separate them by commas. What is
    /// not named is the ceiling's.
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',')]
    pub(crate) limits: Vec<String>,
    /// A variable of its environment. Repeat it for more.
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) env: Vec<String>,
    /// A file for it, below /inputs, under a name.
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub(crate) input: Vec<String>,
    /// The container runtime, such as runsc. Default: the engine's own.
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Give it what stands on standard input, as text.
    #[arg(long, short = 'i')]
    pub(crate) stdin: bool,
    /// What happens where a person has to decide: here, wait, or never.
    #[arg(long, value_enum)]
    pub(crate) ask: Option<AskMode>,
    /// Print the whole Observation as JSON at the end, and nothing else.
    #[arg(long)]
    pub(crate) json: bool,
    /// The command, after `--`.
    #[arg(required = true, last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
