//! What a tool says of itself, held against its manifest.

use std::collections::BTreeMap;
use std::time::Duration;

use env_contracts::canon::Canonical;
use env_contracts::{Code, Digest, Manifest, ManifestEntry, Problem};
use glovebox_plane::Watch as _;
use glovebox_runtime::job::{End, JobLimits};
use glovebox_runtime::{ArtifactBytes, Backend as _, Registered};
use serde_json::Value;

use crate::config::Config;
use crate::places::Places;
use crate::progress::Progress;
use crate::{backends, house};

/// What describing itself may use: it is a constant in every sane tool.
const LIMITS: JobLimits = JobLimits {
    wall: Duration::from_secs(10),
    idle: None,
    cpu: None,
    memory: 256 << 20,
    output: 64 << 10,
    storage: 0,
    inodes: 0,
};

/// Compiles a component into the cache, and lets a tool describe itself.
///
/// # Errors
/// `compile-failed`, `component-imports`, `state-unavailable` and the like;
/// `tool-check-failed` with what differs.
pub(super) fn compile(component: &[u8], manifest: &Manifest, places: &Places, config: &Config) -> Result<(), Problem> {
    let backend = backends::wasm(config, places, 1)?;
    let registered = Registered {
        digest: Digest::of(component),
        bytes: ArtifactBytes::Memory(component.into()),
        entry: manifest.entry.clone(),
        name: manifest.name.to_string(),
    };
    let progress = Progress::start();
    let line = progress.watch();
    let runtime = house::tokio_runtime()?;
    let prepared = runtime.block_on(backend.prepare(&registered, &manifest.contract, &|text| line.phase(text)));
    progress.end();
    let prepared = prepared?;
    if let ManifestEntry::Tool { name } = &manifest.entry {
        let report = runtime.block_on(backend.describe(prepared, &LIMITS));
        let said = match report.end {
            End::Returned { content, .. } => content,
            End::Refused(problem) => return Err(problem),
            other => return Err(failed(format!("`describe` did not answer: {other:?}"))),
        };
        compare(&said, name.as_deref(), manifest)?;
    }
    Ok(())
}

/// What a tool says of itself never counts; where it contradicts the
/// manifest, one of them belongs to another tool.
fn compare(said: &str, entry: Option<&str>, manifest: &Manifest) -> Result<(), Problem> {
    let said: Value =
        serde_json::from_str(said).map_err(|error| failed(format!("`describe` answers no JSON: {error}")))?;
    let Value::Object(said) = said else { return Err(failed("`describe` answers no object".into())) };
    let mut expected = BTreeMap::from([
        ("name", Value::from(entry.unwrap_or(manifest.name.as_str()))),
        ("version", Value::from(manifest.version.as_str())),
        ("input", manifest.input.clone()),
    ]);
    if let Some(output) = &manifest.output {
        expected.insert("output", output.clone());
    }
    let differing: Vec<String> = expected
        .iter()
        .filter_map(|(key, registered)| {
            let own = said.get(*key)?;
            (!equal(own, registered))
                .then(|| format!("`{key}` ({} there, {} in the manifest)", short(own), short(registered)))
        })
        .collect();
    if !said.contains_key("name") {
        return Err(failed("`describe` does not say the tool's name".into()));
    }
    if differing.is_empty() {
        Ok(())
    } else {
        Err(failed(format!("what the tool says of itself differs: {}", differing.join(", "))))
    }
}

fn equal(a: &Value, b: &Value) -> bool {
    match (Canonical::from_value(a), Canonical::from_value(b)) {
        (Ok(a), Ok(b)) => a.as_str() == b.as_str(),
        _ => false,
    }
}

/// Enough of a value to recognise it.
fn short(value: &Value) -> String {
    let text = value.to_string();
    let cut = text.floor_char_boundary(60);
    if cut < text.len() { format!("{}…", &text[..cut]) } else { text }
}

fn failed(message: String) -> Problem {
    Problem::new(Code::ToolCheckFailed, message)
        .with_help("let the manifest and the component come from the same build")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_contradicts_the_manifest_is_refused() {
        let manifest = Manifest::from_toml(include_str!("../../../../../tools/text-count/tool.toml")).unwrap();
        let honest = serde_json::to_value(&manifest).unwrap();
        assert_eq!(compare(&honest.to_string(), None, &manifest), Ok(()));
        for (key, value, named) in [
            ("name", Value::from("other"), "`name`"),
            ("input", serde_json::json!({ "type": "object" }), "`input`"),
            ("output", serde_json::json!({}), "`output`"),
            ("version", Value::from("9.9.9"), "`version`"),
        ] {
            let mut said = honest.clone();
            said[key] = value;
            let problem = compare(&said.to_string(), None, &manifest).unwrap_err();
            assert!(problem.code == Code::ToolCheckFailed && problem.message.contains(named), "{problem}");
        }
        for said in ["", "[]", "{}", "{\"name\": 5}"] {
            assert!(compare(said, None, &manifest).is_err(), "{said}");
        }
    }
}
