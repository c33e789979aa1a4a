//! The inner process: one call, decided by the service that decides on all.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::{ActionRequest, Code, Digest, Id, Problem, Span, Wanted};
use glovebox_plane::{ActionService, Asking, Card, Submission, Submitted, TaskContext, Watch};
use glovebox_runtime::Stop;
use rustix::process::{Signal, set_parent_process_death_signal};
use serde_json::Value;

use super::answer::Answer;
use super::call::Call;
use super::place::Ground;
use crate::args::{AskMode, HookArgs};
use crate::commands::{mcp, printed};
use crate::config::Config;
use crate::native::LetGo;
use crate::places::{Places, protect};
use crate::{house, who};

/// The agent, where nobody says which.
const AGENT: &str = "claude-code";

/// How often the same is asked anew where others used up what was approved: two
/// of the same call at once are likely, more are not.
const ROUNDS: usize = 3;

/// Decides on the call on standard input, and prints the answer.
///
/// # Errors
/// Whatever keeps it from being decided: then it is denied.
pub(crate) fn decide(args: &HookArgs, config: &Config) -> Result<ExitCode, Problem> {
    // Nobody hears us without the outer process, and a right would be used up.
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|errno| Problem::new(Code::BackendError, format!("cannot end with the outer process: {errno}")))?;
    let call = Call::read(std::io::stdin().lock())?;
    let answer = answer(args, config, &call)?;
    let mut out = std::io::stdout().lock();
    printed(std::io::Write::write_all(&mut out, format!("{}\n", answer.line()).as_bytes()), 0)
}

fn answer(args: &HookArgs, config: &Config, call: &Call) -> Result<Answer, Problem> {
    if args.mcp_server.iter().any(|server| call.is_of(server)) {
        return Ok(Answer::elsewhere());
    }
    let places = Places::of(config);
    let workspace = args.workspace.clone().or_else(|| std::env::var_os("CLAUDE_PROJECT_DIR").map(PathBuf::from));
    let workspace = workspace.unwrap_or_else(|| PathBuf::from("."));
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let ground = Ground::new(&workspace, call.cwd.as_ref(), home, protect(config, &places))?;
    let asked = call.asked(&ground)?;
    let wanted: Wanted = asked.capability.parse().map_err(|error: String| Problem::new(Code::BackendError, error))?;
    let mut request = ActionRequest::new(wanted, Value::Null);
    request.arguments = asked.arguments;
    request.purpose = asked.purpose;
    let session = session(&call.session_id);
    let context = TaskContext { task: session.clone(), session, turn: None, purpose: None, stage: None };
    let asking = match config.get("approvals.ask") {
        AskMode::Never => Asking::Never,
        AskMode::Leave => Asking::Leave,
        AskMode::Auto | AskMode::Here | AskMode::Wait => Asking::Wait,
    };
    let submission = Submission {
        principal: who::speaker(config, args.agent.as_deref(), AGENT)?,
        context,
        request,
        received: None,
        workspace: None,
        inputs: std::collections::BTreeMap::new(),
        asking,
        held: false,
    };
    let let_go = LetGo::default();
    let service = house::letting_go(config, let_go.clone())?;
    let runtime = house::tokio_runtime()?;
    let answer = runtime.block_on(Box::pin(waited(&service, submission, args.wait, &let_go, places)));
    runtime.shutdown_background();
    answer
}

/// The session as agents call it, or what stands for it.
fn session(told: &str) -> Id {
    told.parse().unwrap_or_else(|_| who::id(&format!("hook-{}", Digest::of(told.as_bytes()).short())))
}

/// What a person was asked last.
#[derive(Default)]
struct LastAsked(Mutex<Option<(Id, Id)>>);

impl Watch for LastAsked {
    fn asked(&self, card: &Card) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((card.action.clone(), card.approval.clone()));
    }
}

async fn waited(
    service: &ActionService,
    submission: Submission,
    wait: Span,
    let_go: &LetGo,
    places: Places,
) -> Result<Answer, Problem> {
    // What a crash left is looked at by whoever comes next.
    Box::pin(service.recover()).await?;
    let asked = Arc::new(LastAsked::default());
    let deciding = Box::pin(decided(service, submission, asked.clone(), let_go));
    let waiting = match tokio::time::timeout(wait.0, deciding).await {
        Ok(decided) => match decided? {
            Decided::Answer(answer) => return Ok(answer),
            Decided::Waits(action, approval) => Some((action, approval)),
        },
        Err(_) => asked.0.lock().unwrap_or_else(PoisonError::into_inner).clone(),
    };
    let Some((action, approval)) = waiting else {
        return Ok(Answer::deny("it took too long to decide; make the same call again"));
    };
    let at = mcp::inbox(places)(&approval).map_or_else(String::new, |url| format!(" at {url}"));
    Ok(Answer::deny(&crate::print::pasted(&format!(
        "this waits for a person, as action {action}. They decide{at} or with `glovebox approvals show {approval}`. Make the \
         very same call again later: once it was approved, it goes ahead, once. Do not try another way to the same end \
         meanwhile."
    ))))
}

enum Decided {
    Answer(Answer),
    Waits(Id, Id),
}

async fn decided(
    service: &ActionService,
    submission: Submission,
    asked: Arc<LastAsked>,
    let_go: &LetGo,
) -> Result<Decided, Problem> {
    for _ in 0..ROUNDS {
        let submitted = Box::pin(service.let_go(submission.clone(), asked.clone(), &Stop::default())).await?;
        let observation = match submitted {
            Submitted::Waiting(action) => {
                let approval = action.pending().map(|approval| approval.id.clone());
                let approval = approval.unwrap_or_else(|| action.id.clone());
                return Ok(Decided::Waits(action.id, approval));
            }
            Submitted::Done(observation) => observation,
        };
        if observation.outcome.code.is_some() {
            return Ok(Decided::Answer(Answer::deny(&observation.text)));
        }
        if let_go.has(&observation.action_id) {
            return Ok(Decided::Answer(Answer::allow(&format!(
                "Glovebox let it go ahead as action {}",
                observation.action_id
            ))));
        }
        // The very same call of somebody else went ahead with it: it is asked anew.
    }
    Ok(Decided::Answer(Answer::deny("the same call is made many times at once; make it again later")))
}
