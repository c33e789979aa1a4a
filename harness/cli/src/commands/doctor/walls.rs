//! The self-tests: an action against each wall, through the same service that
//! every door uses. A wall that lets something through is found here.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use env_contracts::{ActionRequest, Code, Observation, Problem, Scope};
use glovebox_plane::{ActionService, Asking, Submission, Watch as _};
use glovebox_runtime::Stop;
use serde_json::{Value, json};

use super::Line;
use crate::config::Config;
use crate::progress::Progress;
use crate::{house, who};

/// What must not come out, whoever asks.
const SECRET: &str = "glovebox-doctor-hidden-text";

/// What most attempts are narrowed to, so that a ceiling below the built-in
/// tools' own limits does not stand in the way.
const SHORT: &str = "[limits]\nwall = \"10s\"\n";

/// How much text the search has to go through before its time is up.
const HAYSTACK_BYTES: usize = 32 << 20;

/// One attempt and what must come of it.
struct Attempt {
    what: &'static str,
    tool: &'static str,
    args: Value,
    /// Sections of a contract that narrow the tool's.
    scope: &'static str,
    stands: fn(&Observation) -> bool,
    proven: &'static str,
}

fn attempts() -> Vec<Attempt> {
    let refused = |seen: &Observation| seen.outcome.code == Some(Code::PathOutsideMounts) && !reveals(seen);
    vec![
        Attempt {
            what: "a tool runs",
            tool: "text.count",
            args: json!({ "path": "a.txt" }),
            scope: SHORT,
            stands: |seen| seen.outcome.code.is_none() && seen.data["lines"] == 2,
            proven: "text.count counts the lines of a file",
        },
        Attempt {
            what: "paths that leave",
            tool: "fs.read",
            args: json!({ "path": "../outside.txt" }),
            scope: SHORT,
            stands: refused,
            proven: "`../` out of the workspace is refused",
        },
        Attempt {
            what: "links that leave",
            tool: "fs.read",
            args: json!({ "path": "link.txt" }),
            scope: SHORT,
            stands: |seen| seen.outcome.code.is_some() && !reveals(seen),
            proven: "a symbolic link out of the workspace leads nowhere",
        },
        Attempt {
            what: "hidden files, read",
            tool: "fs.read",
            args: json!({ "path": ".env" }),
            scope: SHORT,
            stands: |seen| seen.outcome.code.is_some() && !reveals(seen),
            proven: "`.env` can't be read",
        },
        Attempt {
            what: "hidden files, found",
            tool: "fs.search",
            args: json!({ "pattern": SECRET, "hidden": true }),
            scope: SHORT,
            stands: |seen| seen.outcome.code.is_none() && !reveals(seen),
            proven: "a search that includes hidden files does not see `.env`",
        },
        Attempt {
            what: "limits.wall",
            tool: "fs.search",
            args: json!({ "pattern": "(a|b)+c$" }),
            scope: "[limits]\nwall = \"1ms\"\n",
            stands: |seen| seen.outcome.code == Some(Code::TimedOut) && seen.outcome.which.as_deref() == Some("wall"),
            proven: "an action that takes too long is ended",
        },
        Attempt {
            what: "limits.memory",
            tool: "text.count",
            args: json!({ "path": "a.txt" }),
            scope: "[limits]\nwall = \"10s\"\nmemory = \"64KiB\"\n",
            stands: |seen| seen.outcome.code == Some(Code::LimitHit) && seen.outcome.which.as_deref() == Some("memory"),
            proven: "a tool that needs more memory than it may have is ended",
        },
    ]
}

/// Whether something came out that must not.
fn reveals(seen: &Observation) -> bool {
    let outputs = [&seen.output.stdout, &seen.output.stderr];
    seen.data.to_string().contains(SECRET)
        || outputs.iter().any(|stream| stream.text.as_ref().is_some_and(|text| text.contains(SECRET)))
}

pub(super) fn test(config: &Config) -> Result<Vec<Line>, Problem> {
    let service = match house::trial(config) {
        Ok(service) => service,
        Err(problem) => return Ok(vec![Line::required("a service", Err(problem))]),
    };
    let folder = prepare().map_err(|error| {
        Problem::new(Code::StateUnavailable, format!("cannot make a workspace for the self-tests: {error}"))
    })?;
    let workspace = folder.path().join("workspace");
    let runtime = house::tokio_runtime()?;
    let progress = Progress::start();
    let line = Arc::new(progress.watch());
    let mut lines = Vec::new();
    for attempt in attempts() {
        line.phase(attempt.what);
        // Where nothing runs, a failure proves nothing.
        if lines.first().is_some_and(|first: &Line| first.status == super::Status::Failed) {
            lines.push(Line::skipped(attempt.what, "not tried: no tool runs"));
            continue;
        }
        let result = runtime.block_on(observe(&service, &attempt, &workspace, line.clone()));
        lines.push(Line::required(attempt.what, result.and_then(|seen| judge(&attempt, &seen))));
    }
    runtime.shutdown_background();
    progress.end();
    Ok(lines)
}

fn judge(attempt: &Attempt, seen: &Observation) -> Result<String, Problem> {
    if (attempt.stands)(seen) {
        return Ok(attempt.proven.to_owned());
    }
    let message = seen.outcome.message.as_deref().unwrap_or("without a message");
    Err(Problem::new(
        Code::BackendError,
        format!("expected: {}; it ended as {}: {message}", attempt.proven, seen.outcome),
    )
    .with_help(match (&seen.outcome.help, seen.provenance.backend.is_empty()) {
        // Nothing ran: the reason is in front of the walls.
        (Some(help), true) => help.clone(),
        _ => "run no tools that you don't trust here, and report this".to_owned(),
    }))
}

async fn observe(
    service: &ActionService,
    attempt: &Attempt,
    workspace: &Path,
    watch: Arc<crate::progress::Line>,
) -> Result<Observation, Problem> {
    let usage = |error: String| Problem::new(Code::BackendError, error);
    let mut request = ActionRequest::new(attempt.tool.parse().map_err(usage)?, Value::Null);
    request.scope = Some(Scope::from_toml(attempt.scope).map_err(|error| Problem::of(&error))?);
    let submission = Submission {
        principal: who::principal(),
        request,
        received: Some(attempt.args.to_string().into_bytes()),
        workspace: Some(workspace.to_owned()),
        inputs: BTreeMap::new(),
        context: who::trial_context(),
        asking: Asking::Never,
        held: false,
    };
    house::done(service.submit(submission, watch, &Stop::default()).await?)
}

/// A workspace with something beside it that must stay unseen.
fn prepare() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let workspace = folder.path().join("workspace");
    fs_err::create_dir(&workspace)?;
    fs_err::write(workspace.join("a.txt"), "one\ntwo\n")?;
    fs_err::write(workspace.join(".env"), SECRET)?;
    fs_err::write(folder.path().join("outside.txt"), SECRET)?;
    rustix::fs::symlink("../outside.txt", workspace.join("link.txt"))?;
    fs_err::write(workspace.join("haystack.txt"), "abababababababababababababababa\n".repeat(HAYSTACK_BYTES / 32))?;
    Ok(folder)
}
