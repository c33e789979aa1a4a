//! `glovebox tool`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use env_contracts::CapabilityRef;

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// Register a component, a container image, or the tools of an MCP server. A component's
    /// manifest is FILE's sibling `tool.toml`, or the one named; without any, a
    /// command gets one that is printed, and so does each function that the
    /// component exports with types of its own. A server's tools are registered
    /// as it describes them now; what it says otherwise later is asked about.
    #[command(
        after_help = "Examples:\n  glovebox tool add ./count.wasm --manifest tool.toml\n  glovebox tool add ./jq.wasm --name jq.filter\n  glovebox tool add ./calc.wasm --export add --name calc.add\n  glovebox tool add --image debian:12 --manifest tool.toml\n  glovebox tool add --mcp-stdio --image my/notes:1 --limits memory=256MiB -- python3 /srv/notes.py\n  glovebox tool add --mcp-http https://mcp.example.com/mcp --name example --bearer-file token.txt"
    )]
    Add(Box<ToolAddArgs>),
    /// List what is registered.
    #[command(after_help = "Examples:\n  glovebox tool list\n  glovebox tool list --json")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Look for tools by the words of their names, titles and descriptions.
    #[command(
        after_help = "Examples:\n  glovebox tool search json\n  glovebox tool search find text --agent researcher@1.2.0 --json"
    )]
    Search {
        /// Words that all must be there.
        #[arg(required = true)]
        text: Vec<String>,
        /// As this agent would: NAME or NAME@VERSION. It finds what its
        /// profile discloses.
        #[arg(long, value_name = "NAME[@VERSION]")]
        agent: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a tool: what it does, asks for and promises.
    #[command(after_help = "Examples:\n  glovebox tool show text.count\n  glovebox tool show text.count@1.0.0 --json")]
    Show {
        /// NAME or NAME@VERSION.
        tool: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Hold a tool against its manifest: imports, exports, schemas, and every
    /// example, run for real.
    #[command(
        after_help = "Examples:\n  glovebox tool check text.count\n  glovebox tool check ./count.wasm --manifest tool.toml"
    )]
    Check(ToolCheckArgs),
    /// Accept what a tool's manifest claims of its effects (`idempotent`,
    /// `reversible`): from then on it counts for policy, for these bytes.
    #[command(
        after_help = "Examples:\n  glovebox tool accept my.tool@1.0.0\n  glovebox tool accept my.tool@1.0.0 --revoke"
    )]
    Accept {
        /// NAME@VERSION.
        tool: CapabilityRef,
        /// Take it back.
        #[arg(long)]
        revoke: bool,
    },
    /// Remove a registered tool. Its name and version stay taken.
    #[command(after_help = "Examples:\n  glovebox tool remove jq.filter@1.0.0")]
    Remove {
        /// NAME@VERSION.
        tool: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ToolAddArgs {
    /// The component, or a preview 1 module.
    #[arg(
        required_unless_present_any = ["image", "mcp_http", "mcp_stdio"],
        conflicts_with_all = ["image", "mcp_http", "mcp_stdio"]
    )]
    pub(crate) file: Option<PathBuf>,
    /// A container image that the engine has: a tag or an id. It is registered
    /// under its digest; the tag is not followed again. With --mcp-stdio, the
    /// one that the server runs in.
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["mcp_http", "export"])]
    pub(crate) image: Option<String>,
    /// The endpoint of an MCP server that speaks Streamable HTTP. All that it
    /// offers is registered.
    #[arg(
        long,
        value_name = "URL",
        conflicts_with_all = ["mcp_stdio", "manifest", "version", "stdin", "export"]
    )]
    pub(crate) mcp_http: Option<String>,
    /// COMMAND is a program in the image that speaks MCP on standard input and
    /// output. All that it offers is registered; each call runs it in a
    /// container of its own.
    #[arg(long, requires = "command", conflicts_with_all = ["manifest", "version", "stdin", "export"])]
    pub(crate) mcp_stdio: bool,
    /// What the server may use: wall, idle, cpu (time); cpus, pids; memory,
    /// storage, output (bytes); inodes. Repeat it, or separate them by commas.
    /// What is not named is the ceiling's.
    #[arg(long, value_name = "NAME=VALUE,…", value_delimiter = ',', requires = "mcp_stdio")]
    pub(crate) limits: Vec<String>,
    /// A variable of the server's environment. It stands in the manifest: put no
    /// secret in it. Repeat it for more.
    #[arg(long, value_name = "NAME=VALUE", requires = "mcp_stdio")]
    pub(crate) env: Vec<String>,
    /// A file with headers that are sent along to the server, each a line
    /// `NAME: VALUE`. Nobody else may be able to read it.
    #[arg(long, value_name = "FILE", requires = "mcp_http")]
    pub(crate) header_file: Option<PathBuf>,
    /// A file with the bearer token that is sent along to the server.
    #[arg(long, value_name = "FILE", requires = "mcp_http")]
    pub(crate) bearer_file: Option<PathBuf>,
    /// The server's name may lead to an address of this host or of a private
    /// network.
    #[arg(long, requires = "mcp_http")]
    pub(crate) private: bool,
    /// Its manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The name for a command or function that has no manifest; what the names
    /// of a server's tools begin with.
    #[arg(long, conflicts_with = "manifest")]
    pub(crate) name: Option<String>,
    /// The version for commands and functions that have no manifest.
    #[arg(long, default_value = "0.1.0", conflicts_with = "manifest")]
    pub(crate) version: String,
    /// What a command that has no manifest reads on standard input: all
    /// arguments as one JSON object, the argument named `stdin` as it stands
    /// (a script for an interpreter), or nothing.
    #[arg(long, value_enum, default_value_t, conflicts_with = "manifest")]
    pub(crate) stdin: StdinArg,
    /// Of the functions that a component exports, only this one: FUNCTION, or
    /// INTERFACE#FUNCTION. Repeat it for more.
    #[arg(long, value_name = "FUNCTION", conflicts_with = "manifest")]
    pub(crate) export: Vec<String>,
    /// The server's program and its arguments, after `--`.
    #[arg(last = true, value_name = "COMMAND", requires = "mcp_stdio")]
    pub(crate) command: Vec<String>,
}

/// What a command reads on standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum StdinArg {
    /// All arguments as JSON.
    #[default]
    Args,
    /// The argument named `stdin`.
    Argument,
    /// Nothing.
    None,
}

#[derive(Debug, Args)]
pub(crate) struct ToolCheckArgs {
    /// NAME, NAME@VERSION, or a file.
    pub(crate) tool: String,
    /// The manifest of a file.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl ToolCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "tool add",
            Self::List { .. } => "tool list",
            Self::Search { .. } => "tool search",
            Self::Show { .. } => "tool show",
            Self::Check(_) => "tool check",
            Self::Accept { .. } => "tool accept",
            Self::Remove { .. } => "tool remove",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::List { json }
            | Self::Search { json, .. }
            | Self::Show { json, .. }
            | Self::Check(ToolCheckArgs { json, .. }) => *json,
            Self::Add(_) | Self::Accept { .. } | Self::Remove { .. } => false,
        }
    }
}
