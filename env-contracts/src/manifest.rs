//! The capability manifest, `tool.toml`: what a tool is, asks for and promises.
//!
//! It is a static document, bound by digest together with the component. What
//! a tool says of itself while it runs is only compared with it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    CapabilityName, CapabilityRef, Code, Contract, ContractError, DerivedEffects, Diagnose, ManifestEntry, Name, Rate,
    Version,
};

/// The longest description, in bytes: it is sent to a model with every list.
const MAX_DESCRIPTION: usize = 4096;

/// The most capabilities that one can require: each is looked at before every
/// call.
const MAX_REQUIRES: usize = 16;

/// The longest address of a server, in bytes: longer ones are no addresses of
/// endpoints.
const MAX_URL: usize = 2048;

/// The longest name of a tool at its own server, in bytes: the protocol's.
const MAX_FOREIGN_NAME: usize = 128;

/// The version tag of a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub enum ManifestSchema {
    /// The first.
    #[default]
    #[serde(rename = "glovebox/tool/v1")]
    V1,
}

/// What a tool is, asks for and promises.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The version of this format.
    pub schema: ManifestSchema,
    /// The capability's name.
    pub name: CapabilityName,
    /// The capability's version. What is registered under it never changes.
    pub version: Version,
    /// A few words for lists.
    pub title: String,
    /// What it does and when to use it, for people and models.
    pub description: String,
    /// What it deliberately does not do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_goals: Vec<String>,
    /// The capability that shows what this one would do, without doing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<CapabilityRef>,
    /// The capability that finds out whether this one took effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<CapabilityRef>,
    /// The capability that puts right what this one left half done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repair: Option<CapabilityRef>,
    /// The capability that undoes what this one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compensate: Option<CapabilityRef>,
    /// Who answers for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<Name>,
    /// The capabilities that must be registered for it to be called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requires: Vec<CapabilityRef>,
    /// How often it may be called, by each tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How it is called.
    pub entry: ManifestEntry,
    /// What it does to the world, as its author declares it.
    #[serde(default)]
    pub effects: DeclaredEffects,
    /// The JSON Schema (2020-12) of the arguments: an object.
    pub input: Value,
    /// The JSON Schema (2020-12) of the result. Absent: anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// What can go wrong, and what then helps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorKind>,
    /// Calls with their outcome; `glovebox tool check` runs them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub examples: Vec<Example>,
    /// What its surroundings must be.
    pub contract: Contract,
}

/// What a tool does to the world, as its author declares it. It may claim more
/// than Glovebox derives from the contract; less counts only once an operator
/// accepted it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeclaredEffects {
    /// Whether it changes anything outside its sandbox.
    #[serde(default)]
    pub side_effects: SideEffects,
    /// Whether doing it twice is the same as doing it once.
    #[serde(default)]
    pub idempotent: bool,
    /// Whether it can be undone.
    #[serde(default)]
    pub reversible: bool,
    /// What people want to be asked about: the shipped policy does.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub classes: BTreeSet<EffectClass>,
}

/// A kind of effect that is more than a change of files. Declaring one is a
/// claim of more effect, and so counts whoever wrote the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EffectClass {
    /// Something is said to people outside: a mail, a post, a comment.
    Message,
    /// Something is published for others to install or to use.
    Release,
    /// Money moves, or an obligation to pay begins.
    Payment,
    /// Something is deleted that nobody can bring back.
    Delete,
    /// A system changes that people are using.
    Production,
}

impl EffectClass {
    /// Every class.
    pub const ALL: [Self; 5] = [Self::Message, Self::Release, Self::Payment, Self::Delete, Self::Production];

    /// The class as a manifest spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Release => "release",
            Self::Payment => "payment",
            Self::Delete => "delete",
            Self::Production => "production",
        }
    }
}

impl std::fmt::Display for EffectClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether something outside the sandbox changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SideEffects {
    /// Nothing does.
    None,
    /// Something may.
    #[default]
    Possible,
    /// Something does.
    Certain,
}

/// One way in which a tool can fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ErrorKind {
    /// The kind, as the tool interface names it, or a command's `exit:N`.
    pub kind: String,
    /// When it happens.
    pub when: String,
    /// What then helps.
    pub then: Then,
}

/// What helps after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Then {
    /// The same call again, later.
    Retry,
    /// Other arguments.
    FixArguments,
    /// A person.
    Escalate,
}

/// A call with its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Example {
    /// What it shows.
    pub name: String,
    /// The arguments.
    pub args: Value,
    /// Files of a fresh workspace: path to text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, String>,
    /// Files given as inputs: name to text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub inputs: BTreeMap<String, String>,
    /// What the result holds at least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Value>,
    /// The kind of error that it ends in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a manifest can't be accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The text is not of the format's shape.
    #[error(transparent)]
    Shape(ContractError),
    /// The contract in it can't be.
    #[error("contract: {0}")]
    Contract(ContractError),
    /// A key says something that can't be.
    #[error("`{key}`: {message}")]
    Key {
        /// Which one.
        key: String,
        /// Why it can't be.
        message: String,
    },
}

impl Diagnose for ManifestError {
    fn code(&self) -> Code {
        match self {
            Self::Contract(_) => Code::ContractInvalid,
            Self::Shape(_) | Self::Key { .. } => Code::ManifestInvalid,
        }
    }
}

impl Manifest {
    /// Reads and validates a manifest from TOML.
    ///
    /// # Errors
    /// [`ManifestError`]: unknown keys, wrong types, and keys that can't be.
    pub fn from_toml(text: &str) -> Result<Self, ManifestError> {
        let manifest: Self = crate::contract_from_toml("manifest", text).map_err(ManifestError::Shape)?;
        manifest.validate()?;
        Ok(manifest)
    }

    /// Which capability this is.
    pub fn capability(&self) -> CapabilityRef {
        CapabilityRef { name: self.name.clone(), version: self.version.clone() }
    }

    /// What it may do to the world under a contract: derived from that, unless
    /// nothing holds it to a contract.
    pub fn effects_under(&self, contract: &Contract) -> DerivedEffects {
        match self.entry {
            ManifestEntry::Native => DerivedEffects::External,
            _ => DerivedEffects::of(contract),
        }
    }

    /// Checks what must hold beyond the shape. Schemas are compiled by the
    /// registry, not here.
    ///
    /// # Errors
    /// [`ManifestError`] for the first key that can't be.
    pub fn validate(&self) -> Result<(), ManifestError> {
        self.contract.validate().map_err(ManifestError::Contract)?;
        let short = |key: &str, text: &str, most: usize| {
            ensure(!text.trim().is_empty() && text.len() <= most, key, &format!("write from 1 to {most} bytes of text"))
        };
        short("title", &self.title, 128)?;
        short("description", &self.description, MAX_DESCRIPTION)?;
        ensure(
            self.input.get("type").is_some_and(|ty| ty == "object"),
            "input",
            "arguments are an object: write `type = \"object\"`",
        )?;
        ensure(self.output.as_ref().is_none_or(Value::is_object), "output", "a schema is a table")?;
        ensure(
            self.requires.len() <= MAX_REQUIRES,
            "requires",
            &format!("at most {MAX_REQUIRES} capabilities, this names {}", self.requires.len()),
        )?;
        ensure(!self.requires.contains(&self.capability()), "requires", "a capability can't require itself")?;
        self.rate.map_or(Ok(()), Rate::check).map_err(|why| key("rate", &why))?;
        let mut kinds = BTreeSet::new();
        for error in &self.errors {
            ensure(kinds.insert(&error.kind), &format!("errors[{}]", error.kind), "the kind is listed twice")?;
        }
        let mut names = BTreeSet::new();
        for example in &self.examples {
            let key = format!("examples[{}]", example.name);
            ensure(names.insert(&example.name), &key, "two examples have the same name")?;
            ensure(
                example.expect.is_some() != example.error.is_some(),
                &key,
                "an example has either `expect` or `error`",
            )?;
            ensure(example.args.is_object(), &key, "arguments are an object")?;
        }
        if let ManifestEntry::Export { interface, function } = &self.entry {
            ensure(!function.is_empty(), "entry.function", "name the function")?;
            ensure(
                interface.as_ref().is_none_or(|name| !name.is_empty()),
                "entry.interface",
                "leave it out or name it",
            )?;
        }
        if let ManifestEntry::Mcp { url, tool, .. } = &self.entry {
            ensure((1..=MAX_URL).contains(&url.len()), "entry.url", "name the server's address")?;
            ensure((1..=MAX_FOREIGN_NAME).contains(&tool.len()), "entry.tool", "name the tool as its server does")?;
        }
        if let ManifestEntry::McpStdio { command, tool, env } = &self.entry {
            ensure((1..=256).contains(&command.len()), "entry.command", "name a program, with at most 255 arguments")?;
            ensure((1..=MAX_FOREIGN_NAME).contains(&tool.len()), "entry.tool", "name the tool as its server does")?;
            variables(env)?;
            let inside = self.contract.platform.image.is_some();
            ensure(inside, "contract.platform.image", "name the image that the server runs in: it runs nowhere else")?;
        }
        if let ManifestEntry::Command { argv, env, .. } = &self.entry {
            ensure(argv.len() <= 256, "entry.argv", "at most 256 arguments")?;
            variables(env)?;
            for field in argv.iter().flat_map(|arg| placeholders(arg)) {
                let known = self.input.pointer("/properties").and_then(|all| all.get(field)).is_some();
                ensure(known, "entry.argv", &format!("`{{{field}}}` names no argument of `input`"))?;
            }
        }
        Ok(())
    }
}

fn variables(env: &BTreeMap<String, String>) -> Result<(), ManifestError> {
    let names = env.keys().all(|name| !name.is_empty() && !name.contains(['=', '\0']));
    ensure(names, "entry.env", "a variable's name is not empty and holds no `=`")
}

/// The `{FIELD}` places of a command argument, in order.
pub fn placeholders(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(field, _)| field))
}

fn ensure(holds: bool, key: &str, message: &str) -> Result<(), ManifestError> {
    if holds { Ok(()) } else { Err(self::key(key, message)) }
}

fn key(key: &str, message: &str) -> ManifestError {
    ManifestError::Key { key: key.to_owned(), message: message.to_owned() }
}
