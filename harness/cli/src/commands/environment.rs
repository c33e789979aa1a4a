//! `glovebox environment`: what actions that share one find of each other.

use std::io::{self, Write};
use std::process::ExitCode;

use env_contracts::{Code, Digest, Id, Principal, Problem};
use glovebox_plane::{ActionService, EnvironmentState, EnvironmentView, SnapshotView};

use super::action::when;
use super::{only, printed};
use crate::args::EnvironmentCommand;
use crate::config::Config;
use crate::terminal::escaped_line;
use crate::{house, print, who};

pub(crate) fn run(command: EnvironmentCommand, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::requester_of_answers(config);
    let runtime = house::tokio_runtime()?;
    let environment = |begins: &Id| {
        let all = service.environments(&principal)?;
        only(begins, "environment", Code::EnvironmentUnknown, all.iter().map(|view| &view.environment.id))
    };
    let mut out = anstream::stdout().lock();
    match command {
        EnvironmentCommand::List { json } => {
            let all = service.environments(&principal)?;
            if json {
                return printed(print::json(&serde_json::json!({ "environments": all })), 0);
            }
            printed(all.iter().try_for_each(|view| line(&mut out, view)), 0)
        }
        EnvironmentCommand::Show(args) => {
            let view = service.environment_shown(&principal, &environment(&args.id)?)?;
            if args.json {
                return printed(print::json(&view), 0);
            }
            printed(whole(&mut out, &view), 0)
        }
        EnvironmentCommand::Snapshot(args) => {
            let id = environment(&args.id)?;
            let taken = runtime.block_on(service.take_environment_snapshot(&principal, &id))?;
            if args.json {
                return printed(print::json(&taken), 0);
            }
            printed(writeln!(out, "snapshot {} of environment {id}", taken.snapshot), 0)
        }
        EnvironmentCommand::Snapshots { json } => {
            let all = service.environment_snapshots(&principal)?;
            if json {
                return printed(print::json(&serde_json::json!({ "snapshots": all })), 0);
            }
            printed(all.iter().try_for_each(|view| snapshot(&mut out, view)), 0)
        }
        EnvironmentCommand::Diff { from, to, json } => {
            let (from, to) = (named(&service, &principal, &from)?, named(&service, &principal, &to)?);
            let changes = service.snapshot_changes(&principal, &from, &to)?;
            if json {
                let change =
                    |change: &glovebox_plane::Change| serde_json::json!({ "was": change.was, "path": change.path });
                let changes: Vec<_> = changes.iter().map(change).collect();
                return printed(print::json(&serde_json::json!({ "changes": changes })), 0);
            }
            // Their paths are text that no tool can colour.
            printed(changes.iter().try_for_each(|change| writeln!(out, "{}", escaped_line(&change.to_string()))), 0)
        }
        EnvironmentCommand::Restore(args) => {
            let snapshot = named(&service, &principal, &args.snapshot)?;
            let into = args.into.as_ref().map(environment).transpose()?;
            let restored = service.restore_environment(&principal, &snapshot, into.as_ref(), args.accept_drift);
            let restored = runtime.block_on(restored)?;
            if args.json {
                return printed(print::json(&restored), 0);
            }
            let id = &restored.environment.id;
            printed(writeln!(out, "environment {id} has the folders of snapshot {snapshot}"), 0)
        }
        EnvironmentCommand::End(args) => {
            let id = environment(&args.id)?;
            runtime.block_on(service.end_environment(&principal, &id))?;
            if args.json {
                return printed(print::json(&serde_json::json!({ "ended": id })), 0);
            }
            printed(writeln!(out, "environment {id} is ended"), 0)
        }
    }
}

/// The snapshot of which this is the name, or its beginning.
fn named(service: &ActionService, principal: &Principal, begins: &Id) -> Result<Digest, Problem> {
    let all = service.environment_snapshots(principal)?;
    let names: Vec<Id> = all.iter().filter_map(|view| view.snapshot.as_str().parse().ok()).collect();
    let name = only(begins, "snapshot", Code::SnapshotUnknown, names.iter())?;
    name.as_str().parse().map_err(|_| Problem::new(Code::SnapshotUnknown, format!("there is no snapshot `{begins}`")))
}

fn line(out: &mut impl Write, view: &EnvironmentView) -> io::Result<()> {
    let environment = &view.environment;
    let shared = &environment.shared;
    let sharing = format!("{:?}", shared.sharing).to_lowercase();
    let state = match view.state {
        EnvironmentState::Ready => format!("ready until {}", when(view.expires_ms)),
        EnvironmentState::Busy => match &environment.running {
            Some(action) => format!("busy with {action}"),
            None => "busy".to_owned(),
        },
        EnvironmentState::Over => "over".to_owned(),
    };
    let by = escaped_line(&shared.by);
    let (id, capability) = (&environment.id, &shared.capability);
    writeln!(out, "{id}  {capability}  {sharing} {by}  {} bytes  {state}", environment.bytes)
}

fn whole(out: &mut impl Write, view: &EnvironmentView) -> io::Result<()> {
    line(out, view)?;
    let environment = &view.environment;
    let owner = &environment.shared.owner;
    let agent = owner.agent.as_ref().map_or_else(String::new, |agent| format!(" by {agent}"));
    writeln!(out, "  of {}{agent}, begun {}", owner.user, when(environment.begun_ms))?;
    writeln!(
        out,
        "  {} actions, the last at {}; {} entries",
        environment.actions,
        when(environment.used_ms),
        environment.entries
    )?;
    if let Some(from) = &environment.from {
        writeln!(out, "  began with snapshot {}", from.short())?;
    }
    view.snapshots.iter().try_for_each(|view| snapshot(out, view))
}

fn snapshot(out: &mut impl Write, view: &SnapshotView) -> io::Result<()> {
    let of = &view.of;
    let why = of.action.as_ref().map_or_else(|| "asked for".to_owned(), |action| format!("with action {action}"));
    let (capability, taken) = (&of.shared.capability, when(of.at_ms));
    writeln!(out, "{}  {capability}  {} bytes in {} entries  {taken}  {why}", view.snapshot, of.bytes, of.entries)
}
