//! What the end of a guest means.

use glovebox_runtime::job::{DescribedArtifact, End, Frame, Limit, Timer, ToolFailure};
use wasmtime::component::ResourceTableError;
use wasmtime::{PoolConcurrencyLimitError, Trap, WasmBacktrace};
use wasmtime_wasi::I32Exit;

use crate::bindings::tool::exports::glovebox::tool::tool::{Output, ToolError};
use crate::bindings::tool::glovebox::tool::types::ErrorKind;
use crate::execute::{Answer, Ended};
use crate::host::cut;
use crate::run::{Run, Stop};

/// What is kept of a result. More is a file.
pub(crate) const RESULT_MAX: usize = 8 << 20;
/// What is kept of a tool's error message.
pub(crate) const MESSAGE_MAX: usize = 16 << 10;
/// What is kept of the text of a trap.
pub(crate) const TRAP_MAX: usize = 4 << 10;
/// Functions of the guest named in the text of a trap.
const TRAP_FRAMES: usize = 8;

/// What is known beside the error.
pub(crate) struct Facts {
    /// Whether the guest got as far as the call.
    pub(crate) entered: bool,
    /// Whether it was entered as a command, which may end with an exit code.
    pub(crate) command: bool,
    /// How often memory was refused.
    pub(crate) denied_memory: u64,
    /// What was refused of storage last.
    pub(crate) denied_storage: Option<Limit>,
}

/// How the execution ended.
///
/// A refused request for memory or storage ends nothing by itself: the guest
/// may cope. A guest that then fails, in whatever way, is taken to have failed
/// because of it, so that the caller learns which limit to raise; its own
/// words are kept as a log line.
pub(crate) fn end(ended: Ended, facts: &Facts, run: &Run) -> End {
    match ended {
        Ended::Expired(timer) => End::TimedOut(timer),
        Ended::Interrupted => End::Interrupted,
        Ended::Panicked(text) => End::HostFailed(text),
        Ended::Done(Ok(Answer::Described(content))) => returned(content, Vec::new()),
        Ended::Done(Ok(Answer::Tool(Ok(Output { content, artifacts })))) => {
            let described = artifacts.into_iter().map(|artifact| DescribedArtifact {
                path: artifact.path,
                media_type: artifact.media_type,
                description: artifact.description,
            });
            returned(content, described.collect())
        }
        Ended::Done(Ok(Answer::Tool(Err(error)))) => failed(failure(error), facts, run),
        Ended::Done(Ok(Answer::Export(Ok(content)))) => returned(content, Vec::new()),
        Ended::Done(Ok(Answer::Export(Err(failure)))) => failed(failure, facts, run),
        Ended::Done(Ok(Answer::Refused(problem))) => End::Refused(problem),
        Ended::Done(Ok(Answer::Command(result))) => exited(u32::from(result.is_err()), facts),
        Ended::Done(Err(error)) => stopped(&error, facts),
    }
}

fn returned(content: String, artifacts: Vec<DescribedArtifact>) -> End {
    if content.len() > RESULT_MAX {
        return End::LimitHit(Limit::HostCall);
    }
    End::Returned { content, artifacts }
}

fn failed(failure: ToolFailure, facts: &Facts, run: &Run) -> End {
    let message = cut(&failure.message, MESSAGE_MAX).to_owned();
    match denied(facts) {
        Some(limit) => {
            run.frame(Frame::Log { level: "error", message: &message });
            End::LimitHit(limit)
        }
        // Half a JSON value is none.
        None => {
            let details = failure.details.filter(|details| details.len() <= RESULT_MAX);
            End::Failed(ToolFailure { message, details, ..failure })
        }
    }
}

fn failure(error: ToolError) -> ToolFailure {
    let kind = match error.kind {
        ErrorKind::InvalidArgs => "invalid-args",
        ErrorKind::NotFound => "not-found",
        ErrorKind::Denied => "denied",
        ErrorKind::Unavailable => "unavailable",
        ErrorKind::Timeout => "timeout",
        ErrorKind::Conflict => "conflict",
        ErrorKind::Internal => "internal",
    };
    ToolFailure { kind: kind.into(), message: error.message, retryable: error.retryable, details: error.details }
}

fn exited(code: u32, facts: &Facts) -> End {
    match denied(facts) {
        Some(limit) if code != 0 => End::LimitHit(limit),
        _ => End::Exited { code },
    }
}

fn stopped(error: &wasmtime::Error, facts: &Facts) -> End {
    if let Some(&I32Exit(code)) = error.downcast_ref() {
        if !facts.command {
            return denied(facts).map_or_else(
                || End::Trapped(format!("the tool ended itself with code {code} instead of returning")),
                End::LimitHit,
            );
        }
        return exited(u32::try_from(code).unwrap_or(1), facts);
    }
    match error.downcast_ref() {
        Some(&Stop::Limit(limit)) => return End::LimitHit(limit),
        Some(&Stop::Time(timer)) => return End::TimedOut(timer),
        None => {}
    }
    if matches!(error.downcast_ref(), Some(ResourceTableError::Full)) {
        return End::LimitHit(Limit::Handles);
    }
    match error.downcast_ref() {
        Some(Trap::StackOverflow) => return End::LimitHit(Limit::Stack),
        Some(Trap::Interrupt) => return End::TimedOut(Timer::Wall),
        _ => {}
    }
    if let Some(limit) = by_text(error) {
        return End::LimitHit(limit);
    }
    if let Some(limit) = denied(facts) {
        return End::LimitHit(limit);
    }
    let pool = error.downcast_ref::<PoolConcurrencyLimitError>().is_some();
    if pool
        || (!facts.entered && error.downcast_ref::<Trap>().is_none() && error.downcast_ref::<WasmBacktrace>().is_none())
    {
        return End::HostFailed(text(error));
    }
    End::Trapped(text(error))
}

/// Limits that the engine reports by message only; a test meets each.
fn by_text(error: &wasmtime::Error) -> Option<Limit> {
    let cause = error.root_cause().to_string();
    if cause.contains("fuel allocated for hostcalls has been exhausted") {
        Some(Limit::HostCall)
    } else if cause.contains("handle limit exceeded") {
        Some(Limit::Handles)
    } else if cause.starts_with("resource limit exceeded") {
        Some(Limit::Instances)
    } else {
        None
    }
}

fn denied(facts: &Facts) -> Option<Limit> {
    facts.denied_storage.or((facts.denied_memory > 0).then_some(Limit::Memory))
}

fn text(error: &wasmtime::Error) -> String {
    let mut text = error.root_cause().to_string();
    if let Some(trace) = error.downcast_ref::<WasmBacktrace>() {
        let names: Vec<&str> = trace.frames().iter().filter_map(|frame| frame.func_name()).take(TRAP_FRAMES).collect();
        if !names.is_empty() {
            text.push_str(" (in ");
            text.push_str(&names.join(", called by "));
            text.push(')');
        }
    }
    cut(&text, TRAP_MAX).to_owned()
}
