//! `glovebox grants`: what was allowed for more than once.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Code, Problem};

use super::action::when;
use super::printed;
use crate::args::GrantsCommand;
use crate::config::Config;
use crate::terminal::escaped_line;
use crate::{house, print, who};

pub(crate) fn run(command: GrantsCommand, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::requester_of_answers(config);
    match command {
        GrantsCommand::List { all, json } => {
            let grants = service.grants(&principal, all)?;
            if json {
                return printed(print::json(&serde_json::json!({ "grants": grants })), 0);
            }
            let mut out = anstream::stdout().lock();
            let mut shown = Ok(());
            for grant in &grants {
                let whom = grant.principal.agent.as_ref().unwrap_or(&grant.principal.user);
                let state = match &grant.revoked {
                    Some(revoked) => format!("taken back by {} at {}", revoked.by, when(revoked.at_ms)),
                    None => format!("until {}", when(grant.expires_ms)),
                };
                let scope = serde_json::to_value(grant.scope).unwrap_or_default();
                let scope = scope.as_str().unwrap_or_default().to_owned();
                let covers = escaped_line(&service.describe(&grant.matcher));
                shown = shown.and_then(|()| {
                    writeln!(
                        out,
                        "{}  {scope}  for {whom}  by {} ({})  {state}",
                        grant.id, grant.by.name, grant.by.assurance
                    )?;
                    writeln!(out, "  {covers}")
                });
            }
            drop(out);
            printed(shown, 0)
        }
        GrantsCommand::Revoke(args) => {
            let all = service.grants(&principal, true)?;
            let id = super::only(&args.id, "grant", Code::GrantUnknown, all.iter().map(|grant| &grant.id))?;
            let grant = house::tokio_runtime()?.block_on(service.revoke(&principal, &id))?;
            if args.json {
                return printed(print::json(&grant), 0);
            }
            printed(writeln!(anstream::stdout().lock(), "grant {} is taken back", grant.id), 0)
        }
    }
}
