//! `glovebox approver`: who answers by passphrase.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Name, Problem};
use glovebox_identity::Approvers;
use glovebox_runtime::{Clock as _, SystemClock};

use super::{asking, printed};
use crate::args::ApproverCommand;
use crate::config::Config;
use crate::table::Table;
use crate::{house, print, who};

pub(crate) fn run(command: ApproverCommand, config: &Config) -> Result<ExitCode, Problem> {
    let path = house::approvers_path(config);
    let mut approvers = Approvers::load(&path).map_err(|error| Problem::of(&error))?;
    match command {
        ApproverCommand::Add { name, passphrase_stdin } => {
            who::person(config)?;
            add(&mut approvers, &name, passphrase_stdin)
        }
        ApproverCommand::List { json } => list(&approvers, json),
        ApproverCommand::Remove { name } => {
            who::person(config)?;
            approvers.remove(&name).map_err(|error| Problem::of(&error))?;
            printed(writeln!(anstream::stdout().lock(), "`{name}` answers no more"), 0)
        }
    }
}

fn add(approvers: &mut Approvers, name: &Name, from_stdin: bool) -> Result<ExitCode, Problem> {
    let passphrase = asking::passphrase("a new passphrase: ", from_stdin)?;
    if !from_stdin && passphrase != asking::passphrase("the same again: ", false)? {
        return Err(Problem::new(env_contracts::Code::CredentialWrong, "the two passphrases differ")
            .with_help("type the same twice"));
    }
    let now = SystemClock.now().unix_millis;
    let record = approvers.add(name, &passphrase, now).map_err(|error| Problem::of(&error))?;
    printed(writeln!(anstream::stdout().lock(), "`{}` answers by passphrase (key {})", record.name, record.public), 0)
}

fn list(approvers: &Approvers, json: bool) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(&serde_json::json!({ "approvers": approvers.list() })), 0);
    }
    let mut table = Table::default();
    for record in approvers.list() {
        table.row([record.name.as_str(), &record.public.to_string(), &record.created.to_string()]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}
