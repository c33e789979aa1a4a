//! The command line.

mod environment;
mod exec;
mod hook;
mod loops;
mod mcp;
mod operate;
mod other;
mod people;
mod run;
mod serve;
mod tasks;
mod token;
mod tool;
mod webhook;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

pub(crate) use environment::*;
pub(crate) use exec::*;
pub(crate) use hook::*;
pub(crate) use loops::*;
pub(crate) use mcp::*;
pub(crate) use operate::*;
pub(crate) use other::*;
pub(crate) use people::*;
pub(crate) use run::*;
pub(crate) use serve::*;
pub(crate) use tasks::*;
pub(crate) use token::*;
pub(crate) use tool::*;
pub(crate) use webhook::*;

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
    Run(Box<RunArgs>),
    /// Run a command in a container image.
    #[command(
        after_help = "Examples:\n  glovebox exec --image debian:12 -- cat /etc/os-release\n  glovebox exec --image python:3 --workspace .:read -- python3 -m unittest\n  glovebox exec --image busybox --workspace ./docs:read --limits wall=30s,memory=128MiB -- grep -rn TODO ."
    )]
    Exec(Box<ExecArgs>),
    /// Register tools and look at them.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox tool list\n  glovebox tool search json\n  glovebox tool show text.count\n  glovebox tool check ./count.wasm --manifest tool.toml\n  glovebox tool add ./count.wasm --manifest tool.toml"
    )]
    Tool(ToolCommand),
    /// Hand in actions, look at them, stop them, go on with them.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox action list --open\n  glovebox action show ACTION\n  glovebox action resume ACTION"
    )]
    Action(ActionCommand),
    /// See what waits for a person, and decide.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox approvals list\n  glovebox approvals show APPROVAL\n  glovebox approvals approve APPROVAL\n  glovebox approvals decline APPROVAL --say 'not on a Friday'"
    )]
    Approvals(ApprovalsCommand),
    /// See what was allowed for more than once, and take it back.
    #[command(subcommand, after_help = "Examples:\n  glovebox grants list\n  glovebox grants revoke GRANT")]
    Grants(GrantsCommand),
    /// See what actions that share an environment leave each other, go back to an
    /// earlier state, and end it.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox environment list\n  glovebox environment show ENVIRONMENT\n  glovebox environment restore SNAPSHOT"
    )]
    Environment(EnvironmentCommand),
    /// Open sessions, look at them, steer and interrupt what is done in them.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox session list\n  glovebox session steer build-7 'keep the interface'\n  glovebox session interrupt build-7 --tree"
    )]
    Session(SessionCommand),
    /// Open tasks, look at them, say what is to be reached and what has to hold.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox task new docs --session build-7 --goal 'write the guide'\n  glovebox task show docs\n  glovebox task constrain docs 'no new dependencies'"
    )]
    Task(TaskCommand),
    /// The steps of a loop: begin one, and record what happens in it.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox turn open docs --expected 0 --goal-version 1\n  glovebox turn tell docs text 'reading the parser first' --turn 1"
    )]
    Turn(TurnCommand),
    /// See what loops want to know, and answer.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox questions list\n  glovebox questions answer QUESTION --option two-years"
    )]
    Questions(QuestionsCommand),
    /// Tell the story of a task: what happened, and because of what.
    #[command(after_help = "Examples:\n  glovebox trace docs\n  glovebox trace docs --json")]
    Trace(TraceArgs),
    /// Serve HTTP: the API, streams of events, and the inbox where people
    /// decide.
    #[command(
        after_help = "Examples:\n  glovebox serve\n  glovebox serve --workspace docs=./docs --workspace site=./site:write\n  glovebox serve --listen 127.0.0.1:0"
    )]
    Serve(ServeArgs),
    /// List what runs now, whoever started it, and in which process.
    #[command(after_help = "Examples:\n  glovebox ps\n  glovebox ps --json")]
    Ps(PsArgs),
    /// Say where people decide, and print a code that logs a browser in.
    #[command(after_help = "Examples:\n  glovebox inbox")]
    Inbox(InboxArgs),
    /// Ask for more than a tool's contract gives.
    #[command(subcommand, after_help = "Examples:\n  glovebox permission request my.tool --contract more.toml")]
    Permission(PermissionCommand),
    /// Say who may approve by passphrase.
    #[command(subcommand, after_help = "Examples:\n  glovebox approver add mira\n  glovebox approver list")]
    Approver(ApproverCommand),
    /// Say who may call at a door, and as whom.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox token add ci --role agent --agent builder --expires 30d\n  glovebox token list\n  glovebox token remove ci"
    )]
    Token(TokenCommand),
    /// Say who is told of what waits for people.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox webhook add portal --url https://portal.example/glovebox --secret-file portal.secret\n  glovebox webhook list\n  glovebox webhook test portal"
    )]
    Webhook(WebhookCommand),
    /// Check, test and explain the policy.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox policy check\n  glovebox policy test\n  glovebox policy explain fs.read --arg path=a.txt"
    )]
    Policy(PolicyCommand),
    /// Look after the log: verify, export, sign, erase.
    #[command(
        subcommand,
        after_help = "Examples:\n  glovebox audit verify\n  glovebox audit export --format cloudevents"
    )]
    Audit(AuditCommand),
    /// Look after the database.
    #[command(subcommand, after_help = "Examples:\n  glovebox db check\n  glovebox db backup copy.db")]
    Db(DbCommand),
    /// Serve the tools to an agent that speaks MCP, on standard input and output.
    Mcp(McpArgs),
    /// Decide on what an agent does with tools of its own.
    Hook(HookArgs),
    /// Stop everything, or let it go on.
    Stop(StopArgs),
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
            Self::Exec(_) => "exec",
            Self::Tool(command) => command.path(),
            Self::Action(command) => command.path(),
            Self::Approvals(command) => command.path(),
            Self::Grants(command) => command.path(),
            Self::Environment(command) => command.path(),
            Self::Session(command) => command.path(),
            Self::Task(command) => command.path(),
            Self::Turn(command) => command.path(),
            Self::Questions(command) => command.path(),
            Self::Trace(_) => "trace",
            Self::Ps(_) => "ps",
            Self::Serve(_) => "serve",
            Self::Inbox(_) => "inbox",
            Self::Permission(PermissionCommand::Request(_)) => "permission request",
            Self::Approver(command) => command.path(),
            Self::Token(command) => command.path(),
            Self::Webhook(command) => command.path(),
            Self::Policy(command) => command.path(),
            Self::Audit(command) => command.path(),
            Self::Db(command) => command.path(),
            Self::Mcp(_) => "mcp",
            Self::Hook(args) => args.path(),
            Self::Stop(_) => "stop",
            Self::Contract(ContractCommand::Check { .. }) => "contract check",
            Self::Artifacts(command) => command.path(),
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
            Self::Run(args) => args.json,
            Self::Exec(args) => args.json,
            Self::Tool(command) => command.json(),
            Self::Action(command) => command.json(),
            Self::Approvals(command) => command.json(),
            Self::Grants(command) => command.json(),
            Self::Environment(command) => command.json(),
            Self::Session(command) => command.json(),
            Self::Task(command) => command.json(),
            // A loop reads what they print.
            Self::Turn(_) => true,
            Self::Questions(command) => command.json(),
            Self::Trace(args) => args.json,
            Self::Ps(args) => args.json,
            Self::Inbox(args) => args.json,
            Self::Permission(PermissionCommand::Request(args)) => args.json,
            Self::Approver(command) => command.json(),
            Self::Token(command) => command.json(),
            Self::Webhook(command) => command.json(),
            Self::Policy(command) => command.json(),
            Self::Audit(command) => command.json(),
            Self::Db(command) => command.json(),
            Self::Stop(args) => args.json,
            Self::Contract(ContractCommand::Check { json, .. })
            | Self::Config(ConfigCommand::Show { json, .. })
            | Self::Gc(GcArgs { json, .. })
            | Self::Doctor(DoctorArgs { json }) => *json,
            Self::Artifacts(command) => command.json(),
            // Standard output is the protocol's.
            Self::Serve(_)
            | Self::Mcp(_)
            | Self::Hook(_)
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Reference(_) => false,
        }
    }
}
