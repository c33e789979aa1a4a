//! `glovebox run`: one action, from arguments to Observation.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use env_contracts::{Access, ActionRequest, Code, Deterministic, Name, Observation, Problem, Scope, Wanted, Wasm};
use glovebox_artifacts::ArtifactStore;
use glovebox_events::{Action, ActionState, Asks};
use glovebox_plane::{ActionService, Asking, Submission, Submitted, Tool, Watch, limit_workspace};
use glovebox_runtime::Stop;
use serde_json::Value;

use super::asking::{self, Watcher};
use super::{approvals, arguments, files, printed};
use crate::args::{CallArgs, RunArgs};
use crate::config::Config;
use crate::progress::Progress;
use crate::{house, keyboard, print, who};

/// One action at a time: a small pool is enough and starts faster.
pub(super) const SLOTS: u32 = 1;

pub(crate) fn run(args: &RunArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, SLOTS)?;
    let (asking, here) = asking::mode(config, args.call.context.ask)?;
    let mut submission = submission(&args.call, config, &service, asking)?;
    submission.request.idempotency_key.clone_from(&args.key);
    let answer =
        drive(&service, config, here, async |service, watch, stop| service.submit(submission, watch, &stop).await)?;
    answer.print(args.json, args.raw, &service)
}

/// What the command line asks for.
pub(super) fn submission(
    args: &CallArgs,
    config: &Config,
    service: &ActionService,
    asking: Asking,
) -> Result<Submission, Problem> {
    let wanted: Wanted = args.tool.parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
    let principal = who::requester(config, &args.context)?;
    let tool = service.capability(&principal, &wanted)?;
    let received = arguments::received(args, &tool)?;
    let (workspace, access) = workspace(&args.workspace)?;
    let mut request = ActionRequest::new(wanted, Value::Null);
    request.scope = scope(args, &tool, access)?;
    request.purpose.clone_from(&args.purpose);
    let mut inputs = BTreeMap::new();
    for input in &args.input {
        let (name, from) = arguments::pair("--input", input)?;
        let name: Name =
            name.parse().map_err(|error: String| Problem::new(Code::Usage, format!("--input: {error}")))?;
        if inputs.contains_key(&name) || request.inputs.contains_key(&name) {
            return Err(Problem::new(Code::Usage, format!("--input: `{name}` is given twice")));
        }
        if from.starts_with("artifact/") {
            request.inputs.insert(name, from.to_owned());
        } else {
            // A file that can't be read is a slip of the command line.
            drop(files::open(Path::new(from))?);
            inputs.insert(name, PathBuf::from(from));
        }
    }
    Ok(Submission {
        principal,
        context: who::context(config, &args.context),
        request,
        received: Some(received),
        workspace: Some(workspace),
        inputs,
        asking,
        held: false,
    })
}

/// What became of an action that a command carried.
pub(super) struct Answer(Submitted);

/// Carries an action with progress, questions and interrupts.
pub(super) fn drive(
    service: &ActionService,
    config: &Config,
    here: bool,
    action: impl AsyncFnOnce(&ActionService, Arc<dyn Watch>, Stop) -> Result<Submitted, Problem>,
) -> Result<Answer, Problem> {
    let stop = Stop::default();
    let progress = Progress::start();
    let runtime = house::tokio_runtime()?;
    let submitted = runtime.block_on(async {
        tokio::spawn(interrupt(stop.clone()));
        // What a crash left is looked at by whoever comes next.
        Box::pin(service.recover()).await?;
        let watch = Watcher::new(progress.watch(), here, service, config);
        action(service, Arc::new(watch), stop).await
    });
    // A thread that is stuck in a call of the kernel's, or that waits for a
    // key on the terminal, must not keep us.
    runtime.shutdown_background();
    keyboard::restore();
    progress.end();
    submitted.map(Answer)
}

/// The first Ctrl-C, hang-up or termination asks the action to stop, so that what it
/// said until then is printed; the second ends this process.
async fn interrupt(stop: Stop) {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).ok();
    let kinds = (listen(SignalKind::interrupt()), listen(SignalKind::terminate()), listen(SignalKind::hangup()));
    let (Some(mut int), Some(mut term), Some(mut hup)) = kinds else { return };
    for _ in 0..2 {
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
        if stop.is_requested() {
            keyboard::restore();
            #[expect(clippy::exit, reason = "asked twice: nothing is left to tidy up for")]
            std::process::exit(i32::from(Code::Interrupted.exit_code()));
        }
        stop.request();
    }
}

impl Answer {
    /// What became of it.
    pub(super) fn into_submitted(self) -> Submitted {
        self.0
    }

    /// Prints it, and says how the command ends.
    pub(super) fn print(&self, json: bool, raw: bool, service: &ActionService) -> Result<ExitCode, Problem> {
        let observation = match &self.0 {
            Submitted::Done(observation) => observation,
            Submitted::Waiting(action) => return waiting(action, json, service),
        };
        let code = observation.outcome.exit_code();
        if json {
            return printed(print::json(observation), code);
        }
        if raw {
            self::raw(observation, service.artifacts())?;
            return Ok(ExitCode::from(code));
        }
        printed(print::observation(observation), code)
    }
}

/// An action that was left: stable ids, and what can be done with them.
fn waiting(action: &Action, json: bool, service: &ActionService) -> Result<ExitCode, Problem> {
    if action.state == ActionState::Running {
        return running(action, json);
    }
    let code = Code::ApprovalPending.exit_code();
    let card = match action.pending() {
        Some(approval) => Some(service.approval(&action.principal, &approval.id)?),
        None => None,
    };
    if json {
        let answer = serde_json::json!({ "waiting": { "action": action, "approval": card } });
        return printed(print::json(&answer), code);
    }
    let mut out = anstream::stdout().lock();
    let mut shown = writeln!(out, "{}  {}  {}", action.state, action.capability, action.id);
    if let Some(card) = &card {
        for line in approvals::card_lines(card) {
            shown = shown.and_then(|()| writeln!(out, "{line}"));
        }
        let id = &card.approval;
        let hint = if action.asks == Asks::Permission {
            format!("`glovebox approvals approve {id} --offer session` gives it, or what else `approvals show` offers")
        } else {
            format!("`glovebox approvals approve {id}`, then `glovebox action resume {}`", action.id)
        };
        shown = shown.and_then(|()| writeln!(out, "  hint: {}", print::pasted(&hint)));
    }
    drop(out);
    printed(shown, code)
}

/// An action that somebody else carries, and that nobody waits for here.
fn running(action: &Action, json: bool) -> Result<ExitCode, Problem> {
    let code = Code::ActionRunning.exit_code();
    if json {
        return printed(print::json(&serde_json::json!({ "running": { "action": action } })), code);
    }
    let id = &action.id;
    let hint =
        format!("`glovebox action show {id}` says how it ends; `glovebox action resume {id} --ask wait` waits for it");
    let mut out = anstream::stdout().lock();
    let shown = writeln!(out, "{}  {}  {id}\n  hint: {}", action.state, action.capability, print::pasted(&hint));
    drop(out);
    printed(shown, code)
}

/// The bare result: a command's standard output, byte for byte, or a tool's
/// data. What went wrong, and the tool's log, go to standard error.
fn raw(observation: &Observation, artifacts: &ArtifactStore) -> Result<ExitCode, Problem> {
    if let Some(text) = &observation.output.stderr.text {
        eprint_escaped(text);
    }
    if let Some(code) = observation.outcome.code {
        print::problem(&Problem {
            code,
            message: observation.outcome.message.clone().unwrap_or_default(),
            help: observation.outcome.help.clone().unwrap_or_default(),
            retryable: observation.outcome.retryable,
        });
    }
    let stdout = &observation.output.stdout;
    let whole = |uri: &String| observation.artifacts.iter().any(|kept| kept.uri == *uri && kept.size == stdout.total);
    if stdout.omitted > 0 && !stdout.artifact.as_ref().is_some_and(whole) {
        // A beginning and an end glued together would pass for the result.
        let message = format!("standard output had {} bytes, and not all of them are here", stdout.total);
        return Err(
            Problem::new(Code::Partial, message).with_help("free space on the state folder's disk, and run it again")
        );
    }
    if let Some(uri) = &stdout.artifact {
        let uri = uri.parse().map_err(|error: glovebox_artifacts::Error| Problem::of(&error))?;
        return house::tokio_runtime()?.block_on(async {
            let reader = artifacts.get(&uri).await.map_err(|error| Problem::of(&error))?;
            super::artifacts::to_stdout(reader).await
        });
    }
    let bytes = match (&observation.data, &stdout.text, &stdout.base64) {
        (data, ..) if stdout.total == 0 && data.is_null() => Vec::new(),
        (Value::String(text), ..) if stdout.total == 0 => text.clone().into_bytes(),
        (data, ..) if stdout.total == 0 => format!("{data}\n").into_bytes(),
        (_, Some(text), _) => text.clone().into_bytes(),
        (_, _, Some(base64)) => data_encoding::BASE64.decode(base64.as_bytes()).unwrap_or_default(),
        (_, None, None) => Vec::new(),
    };
    printed(print::bytes(&bytes), 0)
}

fn eprint_escaped(text: &str) {
    let mut err = std::io::stderr().lock();
    let text = if err.is_terminal() { crate::terminal::escaped(text) } else { text.to_owned() };
    let _ = err.write_all(text.as_bytes());
}

/// The folder, and the most that may be done with it: nobody gets to change
/// it by default. A folder whose name ends in `:read` or `:write` is written
/// with that suffix twice.
pub(super) fn workspace(text: &str) -> Result<(PathBuf, Access), Problem> {
    let (path, access) = if let Some(path) = text.strip_suffix(":write") {
        (path, Access::Write)
    } else {
        (text.strip_suffix(":read").unwrap_or(text), Access::Read)
    };
    let path = Path::new(if path.is_empty() { "." } else { path });
    if !path.is_dir() {
        let problem = Problem::new(Code::WorkspaceUnavailable, format!("`{}` is not a folder", path.display()));
        let typo = text.rsplit_once(':').filter(|(folder, _)| Path::new(folder).is_dir());
        return Err(match typo {
            Some((folder, _)) => problem.with_help(format!(
                "after a folder's name, only `:read` and `:write` are known: write `{folder}:read` or `{folder}:write`"
            )),
            None => problem,
        });
    }
    Ok((path.to_owned(), access))
}

/// What the request wants of the tool's contract: the file's sections, the
/// workspace with no more access than the command line gives, and the seed.
fn scope(args: &CallArgs, tool: &Tool, access: Access) -> Result<Option<Scope>, Problem> {
    let mut scope = match &args.contract {
        Some(path) => {
            let text = files::read_text(path)?;
            let scope = Scope::from_toml(&text).map_err(|error| {
                let problem = Problem::of(&error);
                Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem }
            })?;
            Some(scope)
        }
        None => None,
    };
    limit_workspace(&mut scope, &tool.manifest.contract, access);
    if let Some(seed) = args.seed {
        let scope = scope.get_or_insert_default();
        // The rest of the section stays as the file or else the tool has it.
        let wasm = scope.wasm.clone().unwrap_or_else(|| tool.manifest.contract.wasm.clone());
        let time = args.time.unwrap_or_else(Deterministic::beginning);
        scope.wasm = Some(Wasm { deterministic: Some(Deterministic { seed, time }), ..wasm });
    }
    Ok(scope)
}
