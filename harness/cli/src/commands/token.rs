//! `glovebox token`: who may call at a door.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::Problem;
use glovebox_identity::{By, Credential, Credentials, New, Token};
use glovebox_runtime::{Clock as _, SystemClock};
use serde_json::json;

use super::action::when;
use super::printed;
use crate::args::{TokenAddArgs, TokenCommand};
use crate::config::Config;
use crate::table::Table;
use crate::values::Agent;
use crate::{house, print, who};

pub(crate) fn run(command: TokenCommand, config: &Config) -> Result<ExitCode, Problem> {
    let path = house::credentials_path(config);
    let mut credentials = Credentials::load(&path).map_err(|error| Problem::of(&error))?;
    match command {
        TokenCommand::Add(args) => {
            who::person(config)?;
            add(&mut credentials, args)
        }
        TokenCommand::List { json } => list(&credentials, json),
        TokenCommand::Remove { name, json } => {
            who::person(config)?;
            credentials.remove(&name).map_err(|error| Problem::of(&error))?;
            if json {
                return printed(print::json(&json!({ "removed": name })), 0);
            }
            printed(writeln!(anstream::stdout().lock(), "`{name}` opens nothing any more"), 0)
        }
    }
}

fn add(credentials: &mut Credentials, args: TokenAddArgs) -> Result<ExitCode, Problem> {
    let now_ms = SystemClock.now().unix_millis;
    let (agent, agent_version) = match args.agent {
        Some(Agent(Some((name, version)))) => (Some(name), version),
        _ => (None, None),
    };
    let user = match (args.user, args.peer_uid) {
        (Some(user), _) => user,
        (None, Some(uid)) => who::user(uid),
        (None, None) => who::principal().user,
    };
    let lasts = args.expires.map(|span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX));
    let new = New {
        name: args.name,
        role: args.role,
        tenant: args.tenant,
        user,
        agent,
        agent_version,
        stage: args.stage,
        on_behalf: args.on_behalf,
        expires_ms: lasts.map(|lasts| now_ms.saturating_add(lasts)),
    };
    let (added, token) = match args.peer_uid {
        Some(uid) => (credentials.add_peer(new, uid, now_ms), None),
        None => match credentials.add_token(new, now_ms) {
            Ok((added, token)) => (Ok(added), Some(token)),
            Err(error) => (Err(error), None),
        },
    };
    let added = added.map_err(|error| Problem::of(&error))?;
    if args.json {
        // The one place where a token is written.
        let token = token.as_ref().map(Token::reveal);
        return printed(print::json(&json!({ "credential": added, "token": token })), 0);
    }
    let Some(token) = token else {
        return printed(writeln!(anstream::stdout().lock(), "`{}`: {}", added.name, described(&added)), 0);
    };
    // Alone on standard output, so that it can go where it belongs at once.
    let _ = writeln!(
        anstream::stderr().lock(),
        "`{}`: {}. This is its token; it is shown this once and kept nowhere:",
        added.name,
        described(&added)
    );
    printed(writeln!(anstream::stdout().lock(), "{}", token.reveal()), 0)
}

fn list(credentials: &Credentials, json: bool) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(&json!({ "credentials": credentials.list() })), 0);
    }
    let now_ms = SystemClock.now().unix_millis;
    let mut table = Table::default();
    for credential in credentials.list() {
        let until = match credential.expires_ms {
            None => "until it is removed".to_owned(),
            Some(at) if credential.in_force(now_ms) => format!("until {}", when(at)),
            Some(at) => format!("expired {}", when(at)),
        };
        table.row([credential.name.as_str(), &described(credential), &until]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

/// Who a credential says its holder is.
fn described(credential: &Credential) -> String {
    let Credential { role, tenant, user, agent, agent_version, stage, on_behalf, by, .. } = credential;
    let agent = agent.as_ref().map_or_else(String::new, |agent| {
        let version = agent_version.as_ref().map_or_else(String::new, |version| format!("@{version}"));
        let stage = stage.as_ref().map_or_else(String::new, |stage| format!(" at stage {stage}"));
        format!(" {agent}{version}{stage}")
    });
    let others = if *on_behalf { ", acting for whom it names," } else { "" };
    let by = match by {
        By::Token { .. } => "by token".to_owned(),
        By::Peer { uid } => format!("as user {uid} of this machine"),
    };
    format!("{role}{agent} for {user}{others} of {tenant}, {by}")
}
