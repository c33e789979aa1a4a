//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use env_contracts::Moment;

/// Runs untrusted tool code, inside what its Environment Contract names.
#[derive(Debug, Parser)]
#[command(
    name = "glovebox",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  glovebox run text.count --arg path=README.md
  glovebox tool add ./my-tool.wasm
  glovebox contract check contract.toml
  glovebox explain timed-out

Exit codes: 0 succeeded, 1 the tool failed, 2 usage; `glovebox explain` lists the others."
)]
pub(crate) struct Cli {
    /// The folder of artifacts, registered tools, caches and runs.
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a tool and print its Observation.
    Run(RunArgs),
    /// Register tools and look at them.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox tool list\n  glovebox tool show text.count\n  glovebox tool check ./count.wasm --manifest tool.toml\n  glovebox tool add ./count.wasm --manifest tool.toml"
    )]
    Tool(ToolCommand),
    /// See what this host can enforce of a contract.
    #[command(subcommand, after_help = "Examples:\n  glovebox contract check contract.toml")]
    Contract(ContractCommand),
    /// Look at what actions made.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox artifacts list\n  glovebox artifacts get artifact/ACTION/1 --out report.csv"
    )]
    Artifacts(ArtifactsCommand),
    /// See the configuration.
    #[command(subcommand, after_help = "Examples:\n  glovebox config show --origin\n  glovebox config show --ceiling")]
    Config(ConfigCommand),
    /// Take away what is too old or too much, and what crashes left behind.
    Gc(GcArgs),
    /// See what this host offers, and run the self-tests of each wall.
    Doctor(DoctorArgs),
    /// Say what an error code means and what helps; without a code, list all.
    Explain(ExplainArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Write the generated references into a folder. For our own use.
    #[command(name = "__reference", hide = true)]
    Reference(ReferenceArgs),
}

impl Command {
    /// How it is called, after the program's name.
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Run(_) => "run",
            Self::Tool(ToolCommand::Add(_)) => "tool add",
            Self::Tool(ToolCommand::List { .. }) => "tool list",
            Self::Tool(ToolCommand::Show { .. }) => "tool show",
            Self::Tool(ToolCommand::Check(_)) => "tool check",
            Self::Tool(ToolCommand::Remove { .. }) => "tool remove",
            Self::Contract(ContractCommand::Check { .. }) => "contract check",
            Self::Artifacts(ArtifactsCommand::List { .. }) => "artifacts list",
            Self::Artifacts(ArtifactsCommand::Get { .. }) => "artifacts get",
            Self::Config(ConfigCommand::Show { .. }) => "config show",
            Self::Gc(_) => "gc",
            Self::Doctor(_) => "doctor",
            Self::Explain(_) => "explain",
            Self::Completions(_) => "completions",
            Self::Reference(_) => "__reference",
        }
    }

    /// Whether the answer is wanted as JSON.
    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Run(RunArgs { json, .. })
            | Self::Tool(
                ToolCommand::List { json }
                | ToolCommand::Show { json, .. }
                | ToolCommand::Check(ToolCheckArgs { json, .. }),
            )
            | Self::Contract(ContractCommand::Check { json, .. })
            | Self::Artifacts(ArtifactsCommand::List { json, .. })
            | Self::Config(ConfigCommand::Show { json, .. })
            | Self::Gc(GcArgs { json, .. })
            | Self::Doctor(DoctorArgs { json }) => *json,
            Self::Tool(ToolCommand::Add(_) | ToolCommand::Remove { .. })
            | Self::Artifacts(ArtifactsCommand::Get { .. })
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Reference(_) => false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ReferenceArgs {
    /// The folder.
    pub(crate) dir: PathBuf,
}

/// Run a tool.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  glovebox run text.count --arg path=README.md
  glovebox run fs.search --arg pattern=TODO --workspace ~/src/project --json
  glovebox run fs.read --args '{\"path\": \"Cargo.toml\", \"line_count\": 20}' --raw
  echo '{\"path\": \"a.txt\"}' | glovebox run text.count --args -
  glovebox run my.tool --input table=data.csv --contract stricter.toml
  glovebox run my.tool --seed 7 --time 2026-01-01T00:00:00Z")]
pub(crate) struct RunArgs {
    /// The tool: NAME (its newest version) or NAME@VERSION.
    pub(crate) tool: String,
    /// An argument. The value is read as the schema has it: as text, as a
    /// number, or as JSON. Repeat it for an array, or write one JSON array.
    #[arg(long = "arg", value_name = "KEY=VALUE")]
    pub(crate) arg: Vec<String>,
    /// All arguments as one JSON object: the text itself, @FILE, or - for
    /// standard input.
    #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "arg")]
    pub(crate) args: Option<String>,
    /// The folder to work on, and the most that may be done with it: read
    /// (the default) or write.
    #[arg(long, value_name = "DIR[:read|:write]", default_value = ".")]
    pub(crate) workspace: String,
    /// A file for the tool, under a name: a path, or the URI of an artifact.
    #[arg(long = "input", value_name = "NAME=FILE")]
    pub(crate) input: Vec<String>,
    /// An Environment Contract to narrow the tool's with: of its sections,
    /// those that are present count.
    #[arg(long, value_name = "FILE")]
    pub(crate) contract: Option<PathBuf>,
    /// Give the tool a clock and random numbers that are the same in every run
    /// with this number, so that the run can be repeated.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// When that clock begins: 2000-01-01T00:00:00Z if nothing else is said.
    #[arg(long, value_name = "TIME", requires = "seed")]
    pub(crate) time: Option<Moment>,
    /// Print the whole Observation as JSON; where there is none, the problem.
    #[arg(long, conflicts_with = "raw")]
    pub(crate) json: bool,
    /// Print the bare result: standard output of a command, or the data of a
    /// tool as JSON.
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolCommand {
    /// Register a component. Its manifest is FILE's sibling `tool.toml`, or
    /// the one named; without any, a command gets one that is printed, and so
    /// does each function that the component exports with types of its own.
    #[command(
        after_help = "Examples:\n  glovebox tool add ./count.wasm --manifest tool.toml\n  glovebox tool add ./jq.wasm --name jq.filter\n  glovebox tool add ./calc.wasm --export add --name calc.add"
    )]
    Add(ToolAddArgs),
    /// List what is registered.
    #[command(after_help = "Examples:\n  glovebox tool list\n  glovebox tool list --json")]
    List {
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
    pub(crate) file: PathBuf,
    /// Its manifest.
    #[arg(long, value_name = "FILE")]
    pub(crate) manifest: Option<PathBuf>,
    /// The name for a command or function that has no manifest.
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

#[derive(Debug, Subcommand)]
pub(crate) enum ContractCommand {
    /// Print each clause and what would enforce it on each backend here, or
    /// why not and what would do.
    #[command(
        after_help = "Examples:\n  glovebox contract check contract.toml\n  glovebox contract check tool.toml --json"
    )]
    Check {
        /// A contract, or a tool's manifest.
        file: PathBuf,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactsCommand {
    /// List what is kept.
    #[command(after_help = "Examples:\n  glovebox artifacts list\n  glovebox artifacts list --action 0197f0c0-51")]
    List {
        /// Of this action alone: its id, or the beginning of it, from eight
        /// characters, where no other begins so.
        #[arg(long)]
        action: Option<String>,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write an artifact to a file or to standard output.
    #[command(after_help = "Examples:\n  glovebox artifacts get artifact/ACTION/1 --out report.csv")]
    Get {
        /// Its URI: artifact/ACTION/N.
        uri: String,
        /// The file; it must not exist.
        #[arg(long, short, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print every key and its value.
    #[command(
        after_help = "Examples:\n  glovebox config show --origin\n  glovebox config show --ceiling\n  glovebox config show --ceiling=shipped > ~/.config/glovebox/ceiling.toml"
    )]
    Show {
        /// And where it comes from.
        #[arg(long)]
        origin: bool,
        /// As JSON.
        #[arg(long)]
        json: bool,
        /// Print a ceiling as TOML instead: the one in force, or the shipped
        /// one to start from.
        #[arg(
            long,
            value_enum,
            value_name = "WHICH",
            num_args = 0..=1,
            require_equals = true,
            default_missing_value = "in-force",
            conflicts_with_all = ["origin", "json"]
        )]
        ceiling: Option<WhichCeiling>,
    },
}

/// One of two ceilings.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum WhichCeiling {
    /// What tools may be given at most, here and now.
    InForce,
    /// What holds where the operator wrote none.
    Shipped,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox gc --dry-run\n  glovebox gc")]
pub(crate) struct GcArgs {
    /// Only say what would go.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox doctor\n  glovebox doctor --json")]
pub(crate) struct DoctorArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox explain\n  glovebox explain limit-hit")]
pub(crate) struct ExplainArgs {
    /// The error code.
    pub(crate) code: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  glovebox completions bash > ~/.local/share/bash-completion/completions/glovebox")]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}
