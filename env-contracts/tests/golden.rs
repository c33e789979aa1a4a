//! Every wire form ever shipped is still read, and what is written is what
//! was committed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use env_contracts::{
    ActionRequest, Artifact, BoundFacts, Ceiling, Code, Contract, Manifest, Observation, Plan, Problem, Profiles, Scope,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Reads a golden file as a type, and checks that writing it loses nothing.
fn survives<T: DeserializeOwned + Serialize>(name: &str) -> T {
    let text = fs_err::read_to_string(folder("golden").join(name)).unwrap();
    let expected: Value = serde_json::from_str(&text).unwrap();
    let value: T = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(serde_json::to_value(&value).unwrap(), expected, "{name} changes when it is written again");
    value
}

#[test]
fn golden_files_are_read_and_written_without_loss() {
    survives::<Contract>("contract.v1.json");
    survives::<Contract>("contract.v1.walls.json");
    survives::<ActionRequest>("request.v1.json");
    survives::<Observation>("observation.v1.json");
    survives::<Observation>("observation.failed.v1.json");
    survives::<Observation>("observation.verified.v1.json");
    survives::<Artifact>("artifact.v1.json");
    survives::<BoundFacts>("facts.drifted.v1.json");
    survives::<Problem>("problem.v1.json");
}

/// Files that people write: nothing in them is lost or comes to mean something
/// else.
#[test]
fn golden_files_in_toml_are_read_without_loss() {
    fn survives<T: Serialize, E: std::fmt::Display>(name: &str, read: fn(&str) -> Result<T, E>) {
        let text = fs_err::read_to_string(folder("golden").join(name)).unwrap();
        let expected: toml::Table = toml::from_str(&text).unwrap();
        let value = read(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (written, expected) = (serde_json::to_value(&value).unwrap(), serde_json::to_value(&expected).unwrap());
        assert_eq!(written, expected, "{name}");
    }
    survives("tool.v1.toml", Manifest::from_toml);
    survives("tool.command.v1.toml", Manifest::from_toml);
    survives("tool.export.v1.toml", Manifest::from_toml);
    survives("tool.mcp.v1.toml", Manifest::from_toml);
    survives("tool.mcp-stdio.v1.toml", Manifest::from_toml);
    survives("tool.classes.v1.toml", Manifest::from_toml);
    survives("tool.registry.v1.toml", Manifest::from_toml);
    survives("tool.followups.v1.toml", Manifest::from_toml);
    survives("ceiling.v1.toml", Ceiling::from_toml);
    survives("profiles.v1.toml", Profiles::from_toml);
    survives("scope.v1.toml", Scope::from_toml);
}

/// Digests are compared over years and machines: their values are fixed.
#[test]
fn the_digests_of_a_plan_are_what_they_always_were() {
    let plan: Plan = survives("plan.v1.json");
    let facts: BoundFacts = survives("facts.v1.json");
    let intent = plan.intent(&facts);
    let digests = fs_err::read_to_string(folder("golden/plan.v1.digests")).unwrap();
    assert_eq!(format!("intent {intent}\nplan {}\n", plan.digest(&intent)), digests);
}

#[test]
fn every_part_of_a_plan_is_in_its_intent() {
    let plan: Plan = survives("plan.v1.json");
    let facts: BoundFacts = survives("facts.v1.json");
    let intent = plan.intent(&facts);
    let changed = |change: &dyn Fn(&mut Plan, &mut BoundFacts)| {
        let (mut plan, mut facts) = (plan.clone(), facts.clone());
        change(&mut plan, &mut facts);
        assert_ne!(plan.intent(&facts), intent);
    };
    changed(&|plan, _| plan.capability.version = "9.9.9".parse().unwrap());
    changed(&|plan, _| plan.artifact = env_contracts::Digest::of(b"other"));
    changed(&|plan, _| plan.arguments = r#"{"path":"other"}"#.into());
    changed(&|plan, _| plan.contract.limits.wall = None);
    changed(&|plan, _| plan.principal.user = "other".parse().unwrap());
    changed(&|plan, _| plan.principal.tenant = "other".parse().unwrap());
    changed(&|plan, _| plan.principal.agent = Some("other".parse().unwrap()));
    changed(&|plan, _| plan.principal.chain.push("other".parse().unwrap()));
    changed(&|_, facts| facts.inputs.clear());
    changed(&|_, facts| facts.paths.clear());
    changed(&|_, facts| facts.workspace = None);
    changed(&|_, facts| {
        let sha256 = env_contracts::Digest::of(b"now");
        facts.drifted = Some(env_contracts::Drifted { sha256, changed: Vec::new() });
    });
    // The intent is "the same thing again"; the plan is "this one, once".
    let again = Plan { revision: plan.revision + 1, ..plan.clone() };
    assert_eq!(again.intent(&facts), intent);
    assert_ne!(again.digest(&intent), plan.digest(&intent));
    let other = Plan { action_id: "other".parse().unwrap(), ..plan.clone() };
    assert_ne!(other.digest(&intent), plan.digest(&intent));
}

#[test]
fn the_schemas_are_those_that_are_committed() {
    for (name, schema) in env_contracts::schemas::all() {
        let path = folder("schemas").join(name);
        let committed = fs_err::read_to_string(&path).unwrap_or_default();
        assert_eq!(format!("{schema:#}\n"), committed, "{} is out of date: run `cargo xtask gen`", path.display());
    }
}

#[test]
fn every_code_is_complete_and_unique() {
    let mut seen = std::collections::BTreeSet::new();
    for code in Code::ALL {
        let text = code.as_str();
        assert!(seen.insert(text), "{text} is there twice");
        assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{text}");
        assert_eq!(text.parse(), Ok(*code));
        assert_eq!(serde_json::to_value(code).unwrap(), text);
        assert!(code.exit_code() != 0 && code.exit_code() < 64, "{text}");
        assert!((200..=599).contains(&code.http_status()), "{text}");
        assert!(!code.meaning().trim().is_empty() && !code.remedy().is_empty(), "{text}");
    }
}
