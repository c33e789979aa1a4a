//! `glovebox task`: what is to be reached, and what people say to it.

use std::io::Write;
use std::process::ExitCode;

use env_contracts::{Code, Id, Problem, Span};
use glovebox_events::{Budget, Task, TaskState};
use glovebox_plane::{Made, NewTask, Saying, TaskView};
use glovebox_store::TaskFilter;

use super::action::when;
use super::{printed, propose};
use crate::args::{EndWord, NamedArgs, TaskCommand, TaskNewArgs};
use crate::config::Config;
use crate::table::Table;
use crate::terminal::escaped_line;
use crate::{house, print, who};

pub(crate) fn run(command: TaskCommand, config: &Config) -> Result<ExitCode, Problem> {
    let say = |id: &Id, saying: Saying<'_>, json: bool| -> Result<ExitCode, Problem> {
        let service = house::overseer(config)?;
        let principal = who::requester_of_answers(config);
        let task = house::tokio_runtime()?.block_on(service.say(&principal, id, saying))?;
        said(&task, json)
    };
    match command {
        TaskCommand::New(args) => new(*args, config),
        TaskCommand::List { session, open, limit, json } => {
            let service = house::overseer(config)?;
            let filter = TaskFilter { session, open, limit, ..TaskFilter::default() };
            let principal = who::requester_of_answers(config);
            if json {
                let page = service.task_views(&principal, &filter)?;
                return printed(print::json(&serde_json::json!({ "tasks": page.items, "next": page.next })), 0);
            }
            let page = service.tasks(&principal, &filter)?;
            let mut table = Table::default();
            for task in &page.items {
                let goal = format!("goal {}", task.goal.version);
                let turn = task.turn.as_ref().map_or_else(String::new, |turn| format!("turn {}", turn.number));
                let opened = when(task.opened_ms);
                table.row([task.id.as_str(), task.state.as_str(), task.session.as_str(), &goal, &turn, &opened]);
            }
            printed(table.write(&mut anstream::stdout().lock(), ""), 0)
        }
        TaskCommand::Show(args) => show(&args, config),
        TaskCommand::Goal(args) => say(&args.id, Saying::Goal(&args.text), args.json),
        TaskCommand::Constrain(args) => say(&args.id, Saying::Constrain(&args.text), args.json),
        TaskCommand::Steer(args) => say(&args.id, Saying::Steer(&args.text), args.json),
        TaskCommand::Stage { id, stage, json } => say(&id, Saying::Stage(Some(stage.as_str())), json),
        TaskCommand::Plan { proposal, file } => propose::plan(&proposal, &file, config),
        TaskCommand::Result { artifact, sha256, condition, evidence, proposal } => {
            let made = match (artifact, sha256) {
                (Some(uri), _) => Made::Artifact(uri),
                (None, Some(sha256)) => Made::Content(sha256),
                (None, None) => return Err(Problem::new(Code::Usage, "name what was made: --artifact or --sha256")),
            };
            propose::result(&proposal, made, condition, evidence, config)
        }
        TaskCommand::End { id, how, why, json } => {
            let service = house::overseer(config)?;
            let principal = who::requester_of_answers(config);
            let state = match how {
                EndWord::Done => TaskState::Done,
                EndWord::Failed => TaskState::Failed,
            };
            let ended = service.end_task(&principal, &id, state, why.as_deref());
            said(&house::tokio_runtime()?.block_on(ended)?, json)
        }
    }
}

fn new(args: TaskNewArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::actor(config, &args.who)?;
    let millis = |span: Span| u64::try_from(span.0.as_millis()).unwrap_or(u64::MAX);
    let new = NewTask {
        id: args.id,
        session: args.session,
        goal: args.goal,
        purpose: args.purpose,
        stage: args.stage.map(|stage| stage.to_string()),
        budget: Budget {
            actions: args.budget_actions,
            run_ms: args.budget_run.map(millis),
            output_bytes: args.budget_output.map(|size| size.0),
            egress_bytes: args.budget_egress.map(|size| size.0),
            cost_micros: args.budget_cost,
        },
    };
    let task = house::tokio_runtime()?.block_on(service.open_task(&principal, new))?;
    if args.json {
        return printed(print::json(&task), 0);
    }
    printed(writeln!(anstream::stdout().lock(), "{}", task.id), 0)
}

fn show(args: &NamedArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    house::tokio_runtime()?.block_on(service.recover())?;
    let principal = who::requester_of_answers(config);
    let view = service.task(&principal, &args.id)?;
    let plan = service.accepted_plan(&principal, &args.id)?.map(|plan| plan.action.id);
    if args.json {
        return printed(
            print::json(&serde_json::json!({ "task": view.task, "goal": view.goal,
            "constraints": view.constraints, "steers": view.steers, "budget": view.budget, "accepted_plan": plan })),
            0,
        );
    }
    printed(written(&view, plan.as_ref()), 0)
}

fn written(view: &TaskView, plan: Option<&Id>) -> std::io::Result<()> {
    let task = &view.task;
    let mut out = anstream::stdout().lock();
    let by = task.principal.agent.as_ref().unwrap_or(&task.principal.user);
    writeln!(
        out,
        "{}  {}  session {}  opened by {by} {}",
        task.state.as_str(),
        task.id,
        task.session,
        when(task.opened_ms)
    )?;
    let text = |text: &Option<String>| escaped_line(text.as_deref().unwrap_or("(erased)"));
    writeln!(out, "  goal {}: {}", view.goal.version, text(&view.goal.text))?;
    for constraint in &view.constraints {
        writeln!(out, "  constraint of {}: {}", constraint.by, text(&constraint.text))?;
    }
    for steer in &view.steers {
        writeln!(out, "  steer of {}, not told yet: {}", steer.by, text(&steer.text))?;
    }
    if let Some(stage) = &task.stage {
        writeln!(out, "  stage: {}", escaped_line(stage))?;
    }
    if let Some(turn) = &task.turn {
        let closed = turn.closed.as_ref().map_or_else(|| "open".to_owned(), |why| format!("closed: {why}"));
        writeln!(out, "  turn {} for goal {}  {closed}", turn.number, turn.goal)?;
    }
    if let Some(plan) = plan {
        writeln!(out, "  accepted plan: action {plan}")?;
    }
    if !task.replan.is_empty() {
        let why: Vec<&str> = task.replan.iter().map(env_contracts::Name::as_str).collect();
        writeln!(out, "  the loop has to plan anew: {}", why.join(", "))?;
    }
    if let Some(interrupt) = &task.interrupt {
        let stopped = interrupt
            .stopped_ms
            .map_or_else(|| "something still runs".to_owned(), |at| format!("stopped {}", when(at)));
        writeln!(out, "  interrupted by {} at {}: {stopped}", interrupt.by, when(interrupt.at_ms))?;
    }
    used(&mut out, view.budget.used, view.budget.left)?;
    writeln!(out, "  {} ms waiting for people, asked {} times", view.budget.waited_ms, view.budget.asks)
}

/// What was used, and what is left where there is a bound.
pub(super) fn used(out: &mut impl Write, used: Budget, left: Budget) -> std::io::Result<()> {
    let part = |used: Option<u64>, left: Option<u64>, what: &str| {
        let left = left.map_or_else(String::new, |left| format!(" ({left} left)"));
        format!("{} {what}{left}", used.unwrap_or_default())
    };
    let parts = [
        part(used.actions, left.actions, "actions"),
        part(used.run_ms, left.run_ms, "ms running"),
        part(used.output_bytes, left.output_bytes, "bytes of output"),
        part(used.egress_bytes, left.egress_bytes, "bytes outside"),
        part(used.cost_micros, left.cost_micros, "millionths of cost"),
    ];
    writeln!(out, "  used: {}", parts.join(", "))
}

/// A task after something was said to it.
pub(super) fn said(task: &Task, json: bool) -> Result<ExitCode, Problem> {
    if json {
        return printed(print::json(task), 0);
    }
    let waits = task.steers.len();
    let line = match task.state {
        TaskState::Open if waits > 0 => {
            format!("task {}: goal {}, {waits} steers wait for the next step", task.id, task.goal.version)
        }
        TaskState::Open => format!("task {}: goal {}", task.id, task.goal.version),
        state => format!("task {} is {}", task.id, state.as_str()),
    };
    printed(writeln!(anstream::stdout().lock(), "{line}"), 0)
}
