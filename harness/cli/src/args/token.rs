//! The commands that say who may call at a door.

use clap::{Args, Subcommand};
use env_contracts::{Name, Span};
use glovebox_identity::Role;

use crate::values::Agent;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Let a caller in: by a new token, which is printed once, or as a user of
    /// this machine.
    #[command(
        after_help = "Examples:\n  glovebox token add ci --role agent --agent builder@1.2.0 --expires 30d > ci.token\n  glovebox token add eye --role observer --json\n  glovebox token add mira --role approver --user mira --peer-uid 1001"
    )]
    Add(TokenAddArgs),
    /// List who may call; no token is in it.
    #[command(after_help = "Examples:\n  glovebox token list\n  glovebox token list --json")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Take a credential back. It opens nothing from then on, and what was
    /// approved by it and nobody used yet is refused.
    #[command(after_help = "Examples:\n  glovebox token remove ci")]
    Remove {
        /// What the credential is called.
        name: Name,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TokenAddArgs {
    /// What the credential is called.
    pub(crate) name: Name,
    /// What its holder may do: agent, observer, approver or operator. A worker may do nothing here yet.
    #[arg(long, value_name = "ROLE")]
    pub(crate) role: Role,
    /// Whom it speaks for. Default: the user of this machine that it is for.
    #[arg(long, value_name = "NAME")]
    pub(crate) user: Option<Name>,
    /// The tenant that it opens.
    #[arg(long, value_name = "NAME", default_value = crate::house::TENANT)]
    pub(crate) tenant: Name,
    /// The agent that asks with it, NAME or NAME@VERSION: with the role agent,
    /// and no other.
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<Agent>,
    /// At which stage the agent's tasks are.
    #[arg(long, value_name = "NAME")]
    pub(crate) stage: Option<Name>,
    /// A front end that knows its own users: it may say for which of them it
    /// answers. With the role approver, and a token.
    #[arg(long)]
    pub(crate) on_behalf: bool,
    /// After how long it is worth nothing. Without it, it is good until it is
    /// removed.
    #[arg(long, value_name = "TIME")]
    pub(crate) expires: Option<Span>,
    /// No token: the caller is whoever the kernel says is this user of the
    /// machine.
    #[arg(long, value_name = "UID")]
    pub(crate) peer_uid: Option<u32>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl TokenCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "token add",
            Self::List { .. } => "token list",
            Self::Remove { .. } => "token remove",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Add(args) => args.json,
            Self::List { json } | Self::Remove { json, .. } => *json,
        }
    }
}
