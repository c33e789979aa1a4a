//! The Action Request: what a harness proposes. An intent, not a right.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{CapabilityName, CapabilityRef, Code, Diagnose, Id, Name, Scope, Span, Version};

/// The longest purpose or stage text, in bytes. People read it on cards.
pub const MAX_PURPOSE: usize = 2000;

/// The version tag of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum RequestSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/request/v1")]
    V1,
}

/// What a harness proposes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ActionRequest {
    /// The version of this format.
    #[serde(default)]
    pub schema: RequestSchema,
    /// The action's id. Absent: one is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_id: Option<Id>,
    /// The task it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task_id: Option<Id>,
    /// The events that caused it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parents: Vec<Id>,
    /// What is to be done: `name` (its newest version) or `name@version`.
    pub capability: Wanted,
    /// The arguments, an object that fits the capability's schema. Given as a
    /// value here; a door that receives bytes hands the bytes on as they came.
    #[serde(default = "empty_object")]
    pub arguments: Value,
    /// A JSON Schema that the result must fit, besides the capability's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
    /// Why, in the model's words. Shown, never matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<String>,
    /// At which stage of its work, in the model's words. Shown, never matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// What it wants of the tool's contract. Absent: all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// Files that it brings, by name: an artifact's URI, or a path where the
    /// door is one that may name paths of the host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<Name, String>,
    /// Two requests with the same key are the same request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Name>,
    /// When the requester stops waiting. It can only shorten `limits.wall`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// Whether the requester wants a person to decide in any case.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub approval: ApprovalNeed,
    /// Whether the requester wants more recorded than the contract says.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub audit: AuditNeed,
}

/// Which capability: with a version, or the newest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Wanted {
    /// Its name.
    pub name: CapabilityName,
    /// Its version. `None`: the newest.
    pub version: Option<Version>,
}

impl std::fmt::Display for Wanted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.version {
            Some(version) => write!(f, "{}@{version}", self.name),
            None => self.name.fmt(f),
        }
    }
}

impl std::str::FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('@') {
            let CapabilityRef { name, version } = text.parse()?;
            Ok(Self { name, version: Some(version) })
        } else {
            Ok(Self { name: text.parse()?, version: None })
        }
    }
}

mod wanted_text {
    use std::borrow::Cow;

    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Wanted;
    use crate::units::as_text;

    as_text!(
        Wanted,
        "Wanted",
        "^[a-z0-9.-]+(@[0-9A-Za-z.-]+)?$",
        "A capability: name (the newest version) or name@version."
    );
}

/// Whether a person must decide in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalNeed {
    /// As policy says.
    #[default]
    Policy,
    /// In any case.
    Always,
}

/// Whether more is recorded than the contract says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AuditNeed {
    /// As the contract says.
    #[default]
    Contract,
    /// All output.
    Output,
}

/// Why a request can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("request: {0}")]
pub struct RequestError(String);

impl Diagnose for RequestError {
    fn code(&self) -> Code {
        Code::Usage
    }
}

impl ActionRequest {
    /// A request for this capability with these arguments and nothing else.
    pub fn new(capability: Wanted, arguments: Value) -> Self {
        Self {
            schema: RequestSchema::V1,
            action_id: None,
            task_id: None,
            parents: Vec::new(),
            capability,
            arguments,
            expect: None,
            purpose: None,
            stage: None,
            scope: None,
            inputs: BTreeMap::new(),
            idempotency_key: None,
            timeout: None,
            approval: ApprovalNeed::Policy,
            audit: AuditNeed::Contract,
        }
    }

    /// Checks what must hold beyond the shape.
    ///
    /// # Errors
    /// [`RequestError`] for texts over their bounds and scopes that can't be.
    pub fn validate(&self) -> Result<(), RequestError> {
        for (key, text) in [("purpose", &self.purpose), ("stage", &self.stage)] {
            if text.as_ref().is_some_and(|text| text.len() > MAX_PURPOSE) {
                return Err(RequestError(format!("`{key}` has more than {MAX_PURPOSE} bytes")));
            }
        }
        if let Some(scope) = &self.scope {
            scope.validate().map_err(|error| RequestError(format!("`scope`: {error}")))?;
        }
        Ok(())
    }
}

fn empty_object() -> Value {
    Value::Object(serde_json::Map::new())
}
