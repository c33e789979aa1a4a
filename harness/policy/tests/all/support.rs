//! A policy in a folder, and facts to decide about.

use env_contracts::{Contract, DerivedEffects, Digest, Id, Label, Manifest, Principal};
use glovebox_policy::{
    BudgetFacts, Decision, Facts, LabelFacts, PastFacts, Policy as _, PolicyError, PolicySet, TaskFacts, ToolFacts,
};
use serde_json::{Value, json};

/// A folder with a policy.
pub(crate) struct Folder(pub(crate) tempfile::TempDir);

/// The classes that most tests need.
pub(crate) const APPROVERS: &str = "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n\
     [classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";

impl Folder {
    pub(crate) fn new(rules: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put("rules.cedar", rules);
        folder.put("approvers.toml", APPROVERS);
        folder
    }

    pub(crate) fn put(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs_err::create_dir_all(path.parent().unwrap()).unwrap();
        fs_err::write(path, text).unwrap();
    }

    pub(crate) fn load(&self, tools: &[Manifest]) -> Result<PolicySet, PolicyError> {
        PolicySet::load(Some(self.0.path()), tools, None)
    }
}

/// The policy of these rules, checked with these tools.
pub(crate) fn policy(rules: &str, tools: &[Manifest]) -> PolicySet {
    Folder::new(rules).load(tools).unwrap()
}

/// A tool with this schema of arguments and this contract.
pub(crate) fn tool(input: Value, contract: Value) -> Manifest {
    let mut contract = contract;
    contract["schema"] = json!("glovebox/contract/v1");
    serde_json::from_value(json!({
        "schema": "glovebox/tool/v1", "name": "test.tool", "version": "1.0.0", "title": "t", "description": "d",
        "entry": { "kind": "tool" }, "input": input, "contract": contract,
    }))
    .unwrap()
}

/// A tool whose arguments have these properties, and which does nothing.
pub(crate) fn taking(properties: Value) -> Manifest {
    tool(json!({ "type": "object", "properties": properties }), json!({}))
}

/// What facts borrow from.
pub(crate) struct World {
    pub(crate) principal: Principal,
    pub(crate) manifest: Manifest,
    pub(crate) arguments: Value,
    pub(crate) contract: Contract,
    artifact: Digest,
    id: Id,
}

impl World {
    /// An agent that calls this tool.
    pub(crate) fn new(manifest: Manifest) -> Self {
        Self {
            principal: serde_json::from_value(json!({ "tenant": "acme", "user": "ann", "agent": "coder" })).unwrap(),
            arguments: json!({}),
            contract: manifest.contract.clone(),
            artifact: Digest::of(b"tool"),
            id: "one".parse().unwrap(),
            manifest,
        }
    }

    pub(crate) fn with(mut self, arguments: Value) -> Self {
        self.arguments = arguments;
        self
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts {
            principal: &self.principal,
            tool: ToolFacts { manifest: &self.manifest, artifact: &self.artifact, builtin: false, accepted: false },
            arguments: &self.arguments,
            contract: &self.contract,
            effects: DerivedEffects::of(&self.contract),
            delta: &[],
            backend: "wasm",
            task: TaskFacts { session: &self.id, task: &self.id, purpose: None, stage: None },
            budget: BudgetFacts::default(),
            past: PastFacts::default(),
            attended: true,
            bound: None,
            labels: LabelFacts { inputs: Label::Public, tenants: &[] },
            secrets: &[],
            always_ask: false,
            approval: None,
        }
    }

    pub(crate) fn decide(&self, policy: &PolicySet) -> Decision {
        policy.decide(&self.facts())
    }
}
