//! `glovebox ps`: what runs now, whoever started it.

use std::process::ExitCode;

use env_contracts::Problem;
use glovebox_events::{Action, ActionState};
use glovebox_store::ActionFilter;
use serde_json::json;

use super::action::when;
use super::printed;
use crate::args::PsArgs;
use crate::config::Config;
use crate::places::Places;
use crate::table::Table;
use crate::{house, print, who};

pub(crate) fn run(args: &PsArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    // What ran in a process that is gone does not run.
    house::tokio_runtime()?.block_on(service.recover())?;
    let filter = ActionFilter { states: vec![ActionState::Running], limit: args.limit, ..ActionFilter::default() };
    let page = service.actions(&who::requester_of_answers(config), filter)?;
    let places = Places::of(config);
    let process = |action: &Action| glovebox_store::process_of(&places.state, action.holder.as_ref()?);
    if args.json {
        let each = |action: &Action| {
            json!({
                "action": action.id,
                "capability": action.capability.to_string(),
                "session": action.session,
                "task": action.task,
                "principal": action.principal,
                "since_ms": action.changed_ms,
                "stopping": action.stop.is_some(),
                "holder": action.holder,
                "process": process(action),
            })
        };
        let running: Vec<_> = page.items.iter().map(each).collect();
        return printed(print::json(&json!({ "running": running, "next": page.next })), 0);
    }
    let mut table = Table::default();
    for action in &page.items {
        let whom = action.principal.agent.as_ref().unwrap_or(&action.principal.user);
        let process = process(action).map_or_else(|| "elsewhere".to_owned(), |process| format!("process {process}"));
        let stopping = if action.stop.is_some() { "told to stop" } else { "" };
        table.row([
            action.id.as_str(),
            &action.capability.to_string(),
            action.session.as_str(),
            &format!("since {}", when(action.changed_ms)),
            &format!("for {whom}"),
            &process,
            stopping,
        ]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}
