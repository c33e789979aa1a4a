//! The examples of a manifest, run for real.

use std::collections::BTreeMap;
use std::path::{Component, Path};
use std::sync::Arc;

use env_contracts::{ActionRequest, Code, Example, Name, Observation, Problem, Wanted};
use glovebox_plane::{ActionService, Asking, Submission, Tool, Unwatched};
use glovebox_runtime::Stop;
use serde_json::Value;

use crate::{house, who};

/// Runs an example in a fresh workspace.
///
/// # Errors
/// What differs from what the example promises, in words.
pub(super) async fn run(service: &ActionService, tool: &Tool, example: &Example) -> Result<(), String> {
    let observation = observe(service, tool, example).await.map_err(|problem| problem.message)?;
    judge(example, &observation)
}

async fn observe(service: &ActionService, tool: &Tool, example: &Example) -> Result<Observation, Problem> {
    let failed =
        |error: std::io::Error| Problem::new(Code::FileUnreadable, format!("cannot make the workspace: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let workspace = folder.path().join("workspace");
    fs_err::create_dir(&workspace).map_err(failed)?;
    for (path, text) in &example.files {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        if path.is_empty() || !plain {
            return Err(Problem::new(Code::ManifestInvalid, format!("`{path}` is no path inside a workspace")));
        }
        let path = workspace.join(path);
        fs_err::create_dir_all(path.parent().unwrap_or(&workspace)).map_err(failed)?;
        fs_err::write(path, text).map_err(failed)?;
    }
    let mut inputs = BTreeMap::new();
    for (name, text) in &example.inputs {
        let name: Name = name.parse().map_err(|error: String| Problem::new(Code::ManifestInvalid, error))?;
        let path = folder.path().join(format!("input-{name}"));
        fs_err::write(&path, text).map_err(failed)?;
        inputs.insert(name, path);
    }
    let capability = tool.manifest.capability();
    let wanted = Wanted { name: capability.name, version: Some(capability.version) };
    let submission = Submission {
        principal: who::principal(),
        request: ActionRequest::new(wanted, Value::Null),
        received: Some(serde_json::to_vec(&example.args).unwrap_or_default()),
        workspace: Some(workspace),
        inputs,
        context: who::trial_context(),
        asking: Asking::Never,
        held: false,
    };
    house::done(service.submit(submission, Arc::new(Unwatched), &Stop::default()).await?)
}

fn judge(example: &Example, observation: &Observation) -> Result<(), String> {
    let outcome = &observation.outcome;
    let ended = || {
        let message = outcome.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
        format!("it ended as {outcome}{message}")
    };
    if let Some(error) = &example.error {
        let names = [
            outcome.which.clone(),
            outcome.exit.map(|exit| format!("exit:{exit}")),
            outcome.code.map(|code| code.to_string()),
        ];
        let is = outcome.code.is_some() && names.iter().flatten().any(|name| name == error);
        return if is { Ok(()) } else { Err(format!("expected error `{error}`; {}", ended())) };
    }
    if outcome.code.is_some() {
        return Err(ended());
    }
    match example.expect.as_ref().and_then(|expected| differs("", expected, &observation.data)) {
        Some(difference) => Err(difference),
        None => Ok(()),
    }
}

/// Where a value lacks something of what is expected: of objects, the keys
/// that are named; of anything else, all of it.
fn differs(at: &str, expected: &Value, got: &Value) -> Option<String> {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => expected.iter().find_map(|(key, value)| {
            let at = format!("{at}/{key}");
            got.get(key).map_or_else(
                || Some(format!("at `{at}`: expected {value}, there is nothing")),
                |got| differs(&at, value, got),
            )
        }),
        (Value::Array(all), Value::Array(got)) if all.len() == got.len() => all
            .iter()
            .zip(got)
            .enumerate()
            .find_map(|(index, (value, got))| differs(&format!("{at}/{index}"), value, got)),
        (Value::Number(a), Value::Number(b)) if a == b || a.as_f64() == b.as_f64() && (a.is_f64() || b.is_f64()) => {
            None
        }
        _ if expected == got => None,
        _ => Some(format!("at `{}`: expected {expected}, got {got}", if at.is_empty() { "/" } else { at })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_expectation_is_a_part_of_the_result() {
        let got = json!({ "a": 1, "b": [{ "c": "x", "d": 2 }], "e": 1.0 });
        for part in [json!({}), json!({ "a": 1 }), json!({ "b": [{ "c": "x" }] }), json!({ "e": 1 })] {
            assert_eq!(differs("", &part, &got), None, "{part}");
        }
        for (other, at) in [
            (json!({ "a": 2 }), "/a"),
            (json!({ "z": 1 }), "/z"),
            (json!({ "b": [] }), "/b"),
            (json!({ "b": [{ "c": "y" }] }), "/b/0/c"),
            (json!([]), "`/`"),
        ] {
            let difference = differs("", &other, &got).unwrap();
            assert!(difference.contains(at), "{difference}");
        }
    }
}
