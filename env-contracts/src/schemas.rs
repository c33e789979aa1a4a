//! The JSON Schemas of every wire form, generated from the types.

use schemars::schema_for;
use serde_json::Value;

use crate::{
    ActionRequest, Artifact, BoundFacts, Ceiling, Contract, Manifest, Observation, Plan, Problem, Profiles, Scope,
};

/// Every schema, with the name of its file.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("contract.json", schema_for!(Contract).into()),
        ("scope.json", schema_for!(Scope).into()),
        ("ceiling.json", schema_for!(Ceiling).into()),
        ("profiles.json", schema_for!(Profiles).into()),
        ("tool.json", schema_for!(Manifest).into()),
        ("request.json", schema_for!(ActionRequest).into()),
        ("plan.json", schema_for!(Plan).into()),
        ("facts.json", schema_for!(BoundFacts).into()),
        ("observation.json", schema_for!(Observation).into()),
        ("artifact.json", schema_for!(Artifact).into()),
        ("problem.json", schema_for!(Problem).into()),
    ]
}
