//! The commands that say who is told of what waits for people.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use env_contracts::Name;
use glovebox_identity::WebhookKind;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Tell a front end, wherever a server runs on this state folder, of what
    /// happens from then on.
    #[command(
        after_help = "Examples:\n  glovebox webhook add portal --url https://portal.example/glovebox --secret-file portal.secret\n  glovebox webhook add bell --url http://127.0.0.1:8080/ --allow-private --secret-env BELL_SECRET --outline --kind approval.opened"
    )]
    Add(WebhookAddArgs),
    /// List who is told, and how each fares.
    #[command(after_help = "Examples:\n  glovebox webhook list\n  glovebox webhook list --json")]
    List {
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Tell somebody nothing any more.
    #[command(after_help = "Examples:\n  glovebox webhook remove portal")]
    Remove {
        /// What the webhook is called.
        name: Name,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Send something that is about nothing, to see whether it is taken.
    #[command(after_help = "Examples:\n  glovebox webhook test portal")]
    Test {
        /// What the webhook is called.
        name: Name,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct WebhookAddArgs {
    /// What the webhook is called.
    pub(crate) name: Name,
    /// Where to: an https address.
    #[arg(long, value_name = "URL")]
    pub(crate) url: String,
    /// The file with the secret that signs what is sent: `whsec_` and base64,
    /// readable by its owner alone.
    #[arg(long, value_name = "FILE", required_unless_present = "secret_env", conflicts_with = "secret_env")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The variable of the server's environment that holds the secret.
    #[arg(long, value_name = "NAME")]
    pub(crate) secret_env: Option<String>,
    /// Whose approvals and questions it is about.
    #[arg(long, value_name = "NAME", default_value = crate::house::TENANT)]
    pub(crate) tenant: Name,
    /// Of what: approval.opened, approval.resolved, question.opened or
    /// question.resolved. May be given several times; without it, of all.
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<WebhookKind>,
    /// Only of approvals that approvers of this class may answer. May be given
    /// several times.
    #[arg(long, value_name = "CLASS")]
    pub(crate) class: Vec<Name>,
    /// That something waits, and not what: no arguments, no texts.
    #[arg(long)]
    pub(crate) outline: bool,
    /// It may lead to this host and to private networks, and without TLS to
    /// this host.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

impl WebhookCommand {
    pub(crate) fn path(&self) -> &'static str {
        match self {
            Self::Add(_) => "webhook add",
            Self::List { .. } => "webhook list",
            Self::Remove { .. } => "webhook remove",
            Self::Test { .. } => "webhook test",
        }
    }

    pub(crate) fn json(&self) -> bool {
        match self {
            Self::Add(args) => args.json,
            Self::List { json } | Self::Remove { json, .. } | Self::Test { json, .. } => *json,
        }
    }
}
