//! `glovebox action`: handing in, looking, stopping, going on.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::process::ExitCode;

use env_contracts::{ActionRequest, Code, Id, Moment, Principal, Problem, Span};
use glovebox_events::ActionState;
use glovebox_plane::{ActionService, Interrupting, Submission, Target};
use glovebox_store::ActionFilter;
use serde_json::value::RawValue;

use super::run;
use super::{asking, files, printed};
use crate::args::{ActionCommand, ActionListArgs, IdArgs, ResumeArgs, SubmitArgs};
use crate::config::Config;
use crate::table::Table;
use crate::{house, print, who};

/// The longest request that is read, in bytes.
const MAX_REQUEST: u64 = 4 << 20;

pub(crate) fn run(command: ActionCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        ActionCommand::Submit(args) => submit(&args, config),
        ActionCommand::Show(args) => show(&args, config),
        ActionCommand::List(args) => list(&args, config),
        ActionCommand::Events(args) => events(&args, config),
        ActionCommand::Cancel { action, grace } => cancel(&action, grace, config),
        ActionCommand::Resume(args) => resume(&args, config),
    }
}

/// A request as it stands in a file: the arguments are kept as their bytes, to
/// be parsed once and strictly.
#[derive(serde::Deserialize)]
struct Request<'a> {
    #[serde(borrow, default)]
    arguments: Option<&'a RawValue>,
}

fn submit(args: &SubmitArgs, config: &Config) -> Result<ExitCode, Problem> {
    let text = if args.file.as_os_str() == "-" {
        let mut text = String::new();
        let read = std::io::stdin().lock().take(MAX_REQUEST + 1).read_to_string(&mut text);
        read.map_err(|error| Problem::new(Code::Usage, format!("standard input: {error}")))?;
        text
    } else {
        files::read_text(&args.file)?
    };
    if text.len() as u64 > MAX_REQUEST {
        return Err(Problem::new(Code::Usage, format!("the request has more than {MAX_REQUEST} bytes")));
    }
    let usage = |error: serde_json::Error| Problem::new(Code::Usage, format!("request: {error}"));
    let received = serde_json::from_str::<Request<'_>>(&text).map_err(usage)?.arguments;
    let received = received.map(|raw| raw.get().as_bytes().to_vec());
    let request: ActionRequest = serde_json::from_str(&text).map_err(usage)?;
    let service = house::service(config, run::SLOTS)?;
    let (asking, here) = asking::mode(config, args.context.ask)?;
    let workspace = args.workspace.as_deref().map(run::workspace).transpose()?;
    let mut submission = Submission {
        principal: who::requester(config, &args.context)?,
        context: who::context(config, &args.context),
        request,
        received,
        workspace: None,
        inputs: BTreeMap::new(),
        asking,
        held: false,
    };
    if let Some((folder, access)) = workspace {
        let tool = service.registry().get(&submission.request.capability)?;
        glovebox_plane::limit_workspace(&mut submission.request.scope, &tool.manifest.contract, access);
        submission.workspace = Some(folder);
    }
    if let Some(task) = submission.request.task_id.clone()
        && args.context.task.is_none()
    {
        submission.context.task = task;
    }
    let answer = run::drive(&service, config, here, async |service, watch, stop| {
        service.submit(submission, watch, &stop).await
    })?;
    answer.print(args.json, false, &service)
}

fn show(args: &IdArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let view = service
        .action(&who::requester_of_answers(config), &whole(&service, &who::requester_of_answers(config), &args.id)?)?;
    if args.json {
        return printed(print::json(&view), 0);
    }
    let action = &view.action;
    let mut out = anstream::stdout().lock();
    let shown = (|| {
        writeln!(out, "{}  {}  {}", action.state, action.capability, action.id)?;
        writeln!(out, "  session {}  task {}  asked for {}", action.session, action.task, when(action.requested_ms))?;
        if let Some(approval) = &action.approval {
            writeln!(out, "  approval {}  {}", approval.id, approval.state.as_str())?;
        }
        if let Some(right) = &action.right {
            writeln!(out, "  ran by right of {}", right_text(right))?;
        }
        Ok(())
    })();
    drop(out);
    printed(shown, 0)?;
    match &view.observation {
        Some(observation) => printed(print::observation(observation), 0),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn right_text(right: &glovebox_events::Right) -> String {
    use glovebox_events::Right;
    match right {
        Right::Policy => "a rule".to_owned(),
        Right::Approval { approval } => format!("approval {approval}"),
        Right::Grant { grant } => format!("grant {grant}"),
    }
}

fn list(args: &ActionListArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    recover(&service)?;
    let states = if args.open {
        use ActionState::{Authorized, Requested, Running, Validated, WaitingApproval};
        vec![Requested, Validated, WaitingApproval, Authorized, Running]
    } else {
        Vec::new()
    };
    let filter = ActionFilter {
        session: args.session.clone(),
        task: args.task.clone(),
        states,
        limit: args.limit,
        ..ActionFilter::default()
    };
    let page = service.actions(&who::requester_of_answers(config), filter)?;
    if args.json {
        return printed(print::json(&serde_json::json!({ "actions": page.items, "next": page.next })), 0);
    }
    let mut table = Table::default();
    for action in &page.items {
        let ended = action.end.as_ref().map(|end| end.kind.to_string()).unwrap_or_default();
        let (tool, when) = (action.capability.to_string(), when(action.requested_ms));
        table.row([action.id.as_str(), action.state.as_str(), &tool, &ended, &when]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

fn events(args: &IdArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let id = whole(&service, &who::requester_of_answers(config), &args.id)?;
    let events = service.events(&who::requester_of_answers(config), &id, 0)?;
    if args.json {
        return printed(print::json(&serde_json::json!({ "events": events })), 0);
    }
    let mut table = Table::default();
    for logged in &events {
        let what = serde_json::to_value(&logged.event.what).unwrap_or_default();
        let (seq, when) = (logged.seq.to_string(), when(logged.event.at_ms));
        table.row([&seq, &when, logged.event.what.name(), &crate::terminal::escaped_line(&summary(&what))]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

/// The plain values of an event, on one line.
fn summary(what: &serde_json::Value) -> String {
    let Some(fields) = what.as_object() else { return String::new() };
    let plain = fields.iter().filter(|(name, value)| *name != "kind" && !value.is_object() && !value.is_array());
    let plain = plain.map(|(name, value)| match value.as_str() {
        Some(text) => format!("{name}={}", text.chars().take(24).collect::<String>()),
        None => format!("{name}={value}"),
    });
    plain.collect::<Vec<_>>().join(" ")
}

fn cancel(args: &IdArgs, grace: Option<Span>, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let id = whole(&service, &who::requester_of_answers(config), &args.id)?;
    if let Some(grace) = grace {
        let asked = Interrupting { target: Target::Action(id), grace: Some(grace.0), reason: None };
        let done = house::tokio_runtime()?.block_on(service.interrupt(&who::requester_of_answers(config), asked))?;
        return super::session::shown(&done, args.json);
    }
    let view =
        house::tokio_runtime()?.block_on(service.cancel(&who::requester_of_answers(config), &id, "cancelled"))?;
    if args.json {
        return printed(print::json(&view), 0);
    }
    let line = match view.action.state {
        ActionState::Running => format!("{} was told to stop", view.action.id),
        state => format!("{} is {state}", view.action.id),
    };
    printed(writeln!(anstream::stdout().lock(), "{line}"), 0)
}

fn resume(args: &ResumeArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, run::SLOTS)?;
    let principal = who::requester(config, &args.context)?;
    let id = whole(&service, &principal, &args.id)?;
    let (asking, here) = asking::mode(config, args.context.ask)?;
    let answer = run::drive(&service, config, here, async |service, watch, stop| {
        service.resume(&principal, &id, asking, watch, &stop).await
    })?;
    answer.print(args.json, args.raw, &service)
}

/// The one action whose id begins so.
pub(super) fn whole(service: &ActionService, principal: &Principal, id: &Id) -> Result<Id, Problem> {
    if service.action(principal, id).is_ok() {
        return Ok(id.clone());
    }
    let page = service.actions(principal, ActionFilter { limit: 0, ..ActionFilter::default() })?;
    super::only(id, "action", Code::ActionUnknown, page.items.iter().map(|action| &action.id))
}

/// Ends what a crash or a deadline left: what is listed is what is.
pub(super) fn recover(service: &ActionService) -> Result<(), Problem> {
    house::tokio_runtime()?.block_on(service.recover()).map(drop)
}

/// A time, as people read it.
pub(super) fn when(ms: u64) -> String {
    Moment::at(ms / 1000).to_string()
}
