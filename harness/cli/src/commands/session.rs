//! `glovebox session`: logs of their own, and the hand on the brake.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Id, Problem};
use glovebox_plane::{Interrupted, Interrupting, NewSession, Target};
use glovebox_store::{SessionFilter, TaskFilter};

use super::action::when;
use super::printed;
use crate::args::{InterruptArgs, NamedArgs, SessionCommand};
use crate::config::Config;
use crate::table::Table;
use crate::{house, print, who};

pub(crate) fn run(command: SessionCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        SessionCommand::New { id, parent, who, json } => {
            let service = house::overseer(config)?;
            let principal = who::actor(config, &who)?;
            let opened = service.open_session(&principal, NewSession { id, parent });
            let session = house::tokio_runtime()?.block_on(opened)?;
            if json {
                return printed(print::json(&session), 0);
            }
            printed(writeln!(anstream::stdout().lock(), "{}", session.id), 0)
        }
        SessionCommand::List { limit, json } => list(limit, json, config),
        SessionCommand::Show(args) => show(&args, config),
        SessionCommand::Steer { id, text, task, json } => {
            let service = house::overseer(config)?;
            let principal = who::requester_of_answers(config);
            let tokio = house::tokio_runtime()?;
            let task = tokio.block_on(service.steer(&principal, &id, task.as_ref(), &text))?;
            super::task::said(&task, json)
        }
        SessionCommand::Interrupt(args) => interrupt(args, config),
        SessionCommand::Close(args) => {
            let service = house::overseer(config)?;
            let principal = who::requester_of_answers(config);
            let session = house::tokio_runtime()?.block_on(service.close_session(&principal, &args.id))?;
            if args.json {
                return printed(print::json(&session), 0);
            }
            printed(writeln!(anstream::stdout().lock(), "session {} is closed", session.id), 0)
        }
    }
}

fn list(limit: u32, json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let filter = SessionFilter { limit, ..SessionFilter::default() };
    let page = service.sessions(&who::requester_of_answers(config), filter)?;
    if json {
        return printed(print::json(&serde_json::json!({ "sessions": page.items, "next": page.next })), 0);
    }
    let mut table = Table::default();
    for session in &page.items {
        let below = session.parent.as_ref().map_or_else(String::new, |parent| format!("below {parent}"));
        let state = match (session.closed, session.stopping().is_some()) {
            (true, _) => "closed",
            (false, true) => "stopping",
            (false, false) => "open",
        };
        let by = session.principal.agent.as_ref().unwrap_or(&session.principal.user);
        table.row([session.id.as_str(), state, by.as_str(), &when(session.opened_ms), &below]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

fn show(args: &NamedArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    house::tokio_runtime()?.block_on(service.recover())?;
    let principal = who::requester_of_answers(config);
    let session = service.session(&principal, &args.id)?;
    let filter = TaskFilter { session: Some(args.id.clone()), ..TaskFilter::default() };
    let tasks = service.tasks(&principal, &filter)?.items;
    let attention = service.attention(&principal, &args.id)?;
    if args.json {
        let shown = serde_json::json!({ "session": session, "tasks": tasks, "attention": attention });
        return printed(print::json(&shown), 0);
    }
    let mut out = anstream::stdout().lock();
    let shown = (|| {
        let by = session.principal.agent.as_ref().unwrap_or(&session.principal.user);
        writeln!(out, "session {}  by {by}  opened {}", session.id, when(session.opened_ms))?;
        if let Some(parent) = &session.parent {
            writeln!(out, "  below {parent}, root {}", session.root)?;
        }
        if let Some(interrupt) = &session.interrupt {
            let stopped = match interrupt.stopped_ms {
                Some(at) => format!("stopped {}", when(at)),
                None => "something still runs".to_owned(),
            };
            writeln!(out, "  interrupted by {} at {}: {stopped}", interrupt.by, when(interrupt.at_ms))?;
        }
        let mut table = Table::default();
        for task in &tasks {
            let turn = task.turn.as_ref().map_or_else(String::new, |turn| format!("turn {}", turn.number));
            table.row([task.id.as_str(), task.state.as_str(), &format!("goal {}", task.goal.version), &turn]);
        }
        table.write(&mut out, "  task ")?;
        writeln!(
            out,
            "  people were asked {} times to decide and {} questions; actions ran {} ms and waited {} ms for them",
            attention.approvals, attention.questions, attention.run_ms, attention.waited_ms
        )?;
        super::task::used(&mut out, attention.used, attention.left)?;
        for (rule, count) in &attention.rules {
            writeln!(out, "    {count} by {rule}")?;
        }
        Ok(())
    })();
    drop(out);
    printed(shown, 0)
}

fn interrupt(args: InterruptArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::requester_of_answers(config);
    let tokio = house::tokio_runtime()?;
    let target = match (args.task, args.turn) {
        (Some(task), turn) => {
            let task = service.task_in(&principal, &args.id, &task)?.id;
            if turn { Target::Turn(task) } else { Target::Task(task) }
        }
        (None, true) => Target::Turn(tokio.block_on(service.task_of(&principal, &args.id))?.id),
        (None, false) if args.tree => Target::Tree(args.id),
        (None, false) => Target::Session(args.id),
    };
    let asked = Interrupting { target, grace: args.grace.map(|grace| grace.0), reason: args.reason };
    let done = tokio.block_on(service.interrupt(&principal, asked))?;
    shown(&done, args.json)
}

/// What became of an interrupt.
pub(super) fn shown(done: &Interrupted, json: bool) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(done), 0);
    }
    printed(told(done), 0)
}

/// That it was received, and what has stopped.
fn told(done: &Interrupted) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let list = |ids: &[Id]| ids.iter().map(Id::as_str).collect::<Vec<_>>().join(" ");
    writeln!(out, "received {}", when(done.received_ms))?;
    for (what, ids) in [("ended what waited", &done.ended), ("stopped", &done.stopped), ("still runs", &done.running)] {
        if !ids.is_empty() {
            writeln!(out, "  {what}: {}", list(ids))?;
        }
    }
    match done.stopped_ms {
        Some(at) => writeln!(out, "nothing runs any more, since {}", when(at)),
        None => writeln!(out, "not everything has stopped yet"),
    }
}
