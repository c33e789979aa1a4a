//! From what came of an action to what a client is told: the one place.

use env_contracts::{Code, Observation, Outcome, Problem, Trust};
use glovebox_events::Action;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock, MetaObject, Resource};
use serde_json::{Value, json};

use crate::project::{Plain, ended, is_ours};
use crate::resources::{data_uri, uri_of};

/// The longest result that is sent inline, in bytes: some tens of thousands of
/// tokens. What is longer is linked to, and read where it is wanted.
const MAX_INLINE: usize = 128 << 10;

/// The most artifacts that are linked to; the text names all of them.
const MAX_LINKS: usize = 32;

/// How far the content can be trusted.
pub(crate) const TRUST: &str = "glovebox/trust";
/// Where it comes from.
const SOURCE: &str = "glovebox/source";
/// How the action ended, or what it waits for.
pub(crate) const OUTCOME: &str = "glovebox/outcome";

/// What a client is told of an Observation. `typed`: the tool declares a schema
/// of its result, and so nothing else may stand in `structuredContent`.
///
/// # Errors
/// A JSON-RPC error where nothing that a model does helps.
pub(crate) fn answer(seen: &Observation, typed: bool) -> Result<CallToolResult, ErrorData> {
    let error = match ended(seen.outcome.kind, seen.outcome.code).plain {
        Plain::Broke => return Err(broke(seen)),
        Plain::Answered { error } => error,
        Plain::Open | Plain::Asked => unreachable!("an end is neither open nor asked about"),
    };
    let mut content = vec![ContentBlock::text(if seen.text.is_empty() { "done" } else { &seen.text })];
    let large = seen.data.to_string().len() > MAX_INLINE;
    if large {
        let link = Resource::new(data_uri(&seen.action_id), "result.json").with_mime_type("application/json");
        content.push(ContentBlock::resource_link(link.with_description("the whole result of the tool")));
    }
    for artifact in seen.artifacts.iter().take(MAX_LINKS) {
        let link = Resource::new(uri_of(&artifact.uri), artifact.name.escape_debug().to_string());
        let link = link.with_mime_type(artifact.media_type.clone()).with_size(artifact.size);
        content.push(ContentBlock::resource_link(match &artifact.description {
            Some(description) => link.with_description(description.clone()),
            None => link,
        }));
    }
    let mut result = if error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = match (error, typed) {
        (true, true) => None,
        (true, false) => Some(outcome(seen)),
        (false, true) => Some(seen.data.clone()),
        (false, false) => (!large && !seen.data.is_null()).then(|| seen.data.clone()),
    };
    Ok(result.with_meta(Some(meta(seen))))
}

/// How an action ended, for programs.
fn outcome(seen: &Observation) -> Value {
    let Outcome { kind, which, exit, code, message, help, retryable } = &seen.outcome;
    let mut out = json!({ "action_id": seen.action_id, "outcome": kind, "retryable": retryable });
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            out[key] = value;
        }
    };
    put("which", which.as_ref().map(|which| json!(which)));
    put("exit", exit.map(|exit| json!(exit)));
    put("code", code.map(|code| json!(code)));
    put("message", message.as_ref().map(|message| json!(message)));
    put("help", help.as_ref().map(|help| json!(help)));
    put("next", (!seen.next.is_empty()).then(|| json!(seen.next)));
    put("details", (!seen.data.is_null()).then(|| seen.data.clone()));
    out
}

/// What a reader needs to know of content that a tool had a hand in.
fn meta(seen: &Observation) -> MetaObject {
    let Trust::Untrusted = seen.trust;
    let mut meta = MetaObject::new();
    meta.insert(TRUST.to_owned(), json!(seen.trust));
    let source = json!({
        "capability": seen.capability, "artifact": seen.provenance.artifact, "action": seen.action_id,
    });
    meta.insert(SOURCE.to_owned(), source);
    let mut ended = outcome(seen);
    if let Some(ended) = ended.as_object_mut() {
        ended.remove("details");
    }
    meta.insert(OUTCOME.to_owned(), ended);
    meta
}

/// The error of an action at which something of ours failed.
pub(crate) fn broke(seen: &Observation) -> ErrorData {
    let message = seen.outcome.message.clone().unwrap_or_else(|| seen.outcome.to_string());
    ErrorData::internal_error(message, Some(outcome(seen)))
}

/// The error of a task whose end can't be read.
pub(crate) fn lost(action: &Action) -> ErrorData {
    let message = format!("how action `{}` ended can't be read any more", action.id);
    ErrorData::internal_error(message, Some(json!({ "action_id": action.id })))
}

/// What a client is told where there is no action to speak of.
///
/// # Errors
/// A JSON-RPC error for what only the client, or nobody here, can mend.
pub(crate) fn refused(problem: &Problem) -> Result<CallToolResult, ErrorData> {
    let Problem { code, message, help, retryable } = problem;
    let data = json!({ "code": code, "message": message, "help": help, "retryable": retryable });
    match code {
        Code::ToolUnknown | Code::ActionUnknown | Code::ArtifactUnknown => {
            Err(ErrorData::invalid_params(message.clone(), Some(data)))
        }
        code if is_ours(*code) => Err(ErrorData::internal_error(message.clone(), Some(data))),
        code => {
            let text = format!("[{code}] {message}\nwhat helps: {help}");
            let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
            result.structured_content = Some(data.clone());
            let mut meta = MetaObject::new();
            meta.insert(OUTCOME.to_owned(), data);
            Ok(result.with_meta(Some(meta)))
        }
    }
}

/// The error of a request that names something which is not there, or is not
/// the requester's.
pub(crate) fn unknown(problem: &Problem) -> ErrorData {
    match refused(problem) {
        Err(error) => error,
        Ok(_) => ErrorData::invalid_params(problem.message.clone(), Some(json!(problem))),
    }
}
