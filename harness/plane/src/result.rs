//! The typed result: read, and held against what the manifest promises.

use std::io::{Read, Seek, SeekFrom};

use env_contracts::canon::{Canonical, ParseLimits};
use env_contracts::{Code, ManifestEntry, Outcome, OutcomeKind, Problem, ResultFormat};
use glovebox_capture::Captured;
use glovebox_runtime::job::End;
use serde_json::Value;

use crate::arguments::Schema;
use crate::command;
use crate::observe::{Refusal, Story};
use crate::registry::Tool;
use crate::streams::SpillFile;

/// The longest result that is read as data, in bytes; what is longer belongs
/// into `/outputs`.
const MAX_RESULT: usize = 4 << 20;

/// A command's standard output, as far as it can be a result.
#[derive(Default)]
pub(crate) struct Stdout {
    /// All of it, if it is no longer than a result may be.
    whole: Option<Vec<u8>>,
    total: u64,
}

impl Stdout {
    /// From memory, or from the spill where the middle is only there.
    pub(crate) fn of(captured: &mut Captured<SpillFile>) -> Self {
        let total = captured.total;
        let whole = if total > MAX_RESULT as u64 {
            None
        } else if captured.omitted == 0 {
            Some([captured.head.as_slice(), captured.tail.as_slice()].concat())
        } else {
            captured
                .spilled
                .as_mut()
                .filter(|spilled| spilled.complete)
                .and_then(|spilled| read(spilled.writer.as_mut()?))
        };
        Self { whole, total }
    }
}

fn read(spill: &mut SpillFile) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    spill.seek(SeekFrom::Start(0)).ok()?;
    spill.get_mut().read_to_end(&mut bytes).ok()?;
    spill.seek(SeekFrom::End(0)).ok()?;
    Some(bytes)
}

/// The schema that a request wants the result to fit.
pub(crate) fn expectation(schema: &Value) -> Result<Schema, Refusal> {
    Schema::compile(schema).map_err(|error| {
        let problem = Problem::of(&error);
        let message = format!("`expect`: {}", problem.message);
        Refusal::new(OutcomeKind::SchemaRejected, Problem { code: Code::SchemaRejected, message, ..problem })
    })
}

/// Puts the result into the Observation. A result that is not what was
/// promised turns a success into a failure of the tool; what it said is kept.
pub(crate) fn judge(
    tool: &Tool,
    end: &End,
    stdout: Stdout,
    expect: Option<&Schema>,
    story: &mut Story,
    outcome: &mut Outcome,
) {
    let data = match (end, &tool.manifest.entry) {
        (End::Returned { content, .. }, _) => parse(content.as_bytes()),
        (End::Failed(failure), _) => {
            // Details of a failure are data too, if they are JSON at all.
            let details = failure.details.as_ref().and_then(|details| parse(details.as_bytes()).ok());
            story.0.data = details.map_or(Value::Null, |details| details.value().clone());
            return;
        }
        (End::Exited { .. }, ManifestEntry::Command { result: ResultFormat::Text, .. }) => text(stdout),
        (End::Exited { .. }, ManifestEntry::Command { .. }) => json(stdout),
        _ => return,
    };
    let data = match data {
        Ok(data) => data,
        // A command that failed owes no result.
        Err(_) if outcome.code.is_some() => return,
        Err(why) => {
            *outcome = bad(format!("the tool's result {why}"));
            return;
        }
    };
    if outcome.code.is_none() {
        let promised = tool.output.iter().map(|schema| ("the manifest promises", schema));
        let wanted = expect.into_iter().map(|schema| ("the request expects", schema));
        for (who, schema) in promised.chain(wanted) {
            if let Err(violations) = schema.check(&data) {
                let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
                *outcome = bad(format!("the tool's result is not what {who}: {}", list.join("; ")));
                break;
            }
        }
    }
    story.0.data = data.value().clone();
}

fn bad(message: String) -> Outcome {
    Outcome::failed(OutcomeKind::Completed, Problem::new(Code::ToolBadResult, message)).which("result")
}

fn parse(bytes: &[u8]) -> Result<Canonical, String> {
    Canonical::parse(bytes, ParseLimits::default()).map_err(|error| format!("is not acceptable JSON: {error}"))
}

fn json(stdout: Stdout) -> Result<Canonical, String> {
    match stdout.whole {
        Some(bytes) => parse(bytes.trim_ascii()),
        None => Err(format!("has {} bytes, at most {MAX_RESULT} are read", stdout.total)),
    }
}

/// Text is its own result where it is text and short enough; otherwise it
/// stands in the Observation's output, and whole in its artifact.
fn text(stdout: Stdout) -> Result<Canonical, String> {
    let text = stdout.whole.and_then(|bytes| String::from_utf8(bytes).ok());
    Canonical::from_value(&text.map_or(Value::Null, Value::String)).map_err(|error| error.to_string())
}

/// A command's template with its places filled in.
pub(crate) fn filled_entry(entry: &ManifestEntry, arguments: &Value) -> ManifestEntry {
    match entry {
        ManifestEntry::Command { argv, stdin, result, env } => ManifestEntry::Command {
            argv: command::argv(argv, arguments),
            stdin: *stdin,
            result: *result,
            env: env.clone(),
        },
        ManifestEntry::Tool { .. }
        | ManifestEntry::Export { .. }
        | ManifestEntry::Mcp { .. }
        | ManifestEntry::McpStdio { .. }
        | ManifestEntry::Decision
        | ManifestEntry::Native => entry.clone(),
    }
}
