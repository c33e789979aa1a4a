//! Facts that own what they are made of: for tests, and for variants of facts.

use env_contracts::{
    Assurance, BoundFacts, Contract, DerivedEffects, Digest, Id, Label, Manifest, Name, Principal, Span,
};
use serde_json::Value;

use crate::{
    BudgetFacts, DeltaFact, Facts, Given, GivenScope, LabelFacts, PastFacts, SecretFact, Source, TaskFacts, ToolFacts,
};

/// Facts that own what they are made of.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    pub(crate) principal: Principal,
    pub(crate) manifest: Manifest,
    pub(crate) artifact: Digest,
    pub(crate) builtin: bool,
    pub(crate) accepted: bool,
    pub(crate) arguments: Value,
    pub(crate) contract: Contract,
    pub(crate) effects: DerivedEffects,
    pub(crate) delta: Vec<DeltaFact>,
    pub(crate) backend: String,
    pub(crate) session: Id,
    pub(crate) task: Id,
    pub(crate) purpose: Option<String>,
    pub(crate) stage: Option<String>,
    pub(crate) budget: BudgetFacts,
    pub(crate) past: PastFacts,
    pub(crate) attended: bool,
    pub(crate) bound: Option<BoundFacts>,
    pub(crate) inputs: Label,
    pub(crate) tenants: Vec<Name>,
    pub(crate) secrets: Vec<(Name, Option<Span>)>,
    pub(crate) always_ask: bool,
    pub(crate) approval: Option<Answered>,
}

/// An approval that owns what it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    pub(crate) approver: String,
    pub(crate) assurance: Assurance,
    pub(crate) classes: Vec<Name>,
    pub(crate) source: Source,
    pub(crate) scope: GivenScope,
}

impl Sample {
    /// Hands the facts to whoever looks at them.
    pub(crate) fn facts<T>(&self, look: impl FnOnce(&Facts<'_>) -> T) -> T {
        let secrets: Vec<SecretFact<'_>> =
            self.secrets.iter().map(|(reference, lifetime)| SecretFact { reference, lifetime: *lifetime }).collect();
        look(&Facts {
            principal: &self.principal,
            tool: ToolFacts {
                manifest: &self.manifest,
                artifact: &self.artifact,
                builtin: self.builtin,
                accepted: self.accepted,
            },
            arguments: &self.arguments,
            contract: &self.contract,
            effects: self.effects,
            delta: &self.delta,
            backend: &self.backend,
            task: TaskFacts {
                session: &self.session,
                task: &self.task,
                purpose: self.purpose.as_deref(),
                stage: self.stage.as_deref(),
            },
            budget: self.budget,
            past: self.past,
            attended: self.attended,
            bound: self.bound.as_ref(),
            labels: LabelFacts { inputs: self.inputs, tenants: &self.tenants },
            secrets: &secrets,
            always_ask: self.always_ask,
            approval: self.approval.as_ref().map(|given| Given {
                approver: &given.approver,
                assurance: given.assurance,
                classes: &given.classes,
                source: given.source,
                scope: given.scope,
            }),
        })
    }

    /// What the contract says anew of its effects, after it was changed.
    pub(crate) fn derive(&mut self) {
        self.effects = self.manifest.effects_under(&self.contract);
    }
}

impl From<&Facts<'_>> for Sample {
    fn from(facts: &Facts<'_>) -> Self {
        Self {
            principal: facts.principal.clone(),
            manifest: facts.tool.manifest.clone(),
            artifact: facts.tool.artifact.clone(),
            builtin: facts.tool.builtin,
            accepted: facts.tool.accepted,
            arguments: facts.arguments.clone(),
            contract: facts.contract.clone(),
            effects: facts.effects,
            delta: facts.delta.to_vec(),
            backend: facts.backend.to_owned(),
            session: facts.task.session.clone(),
            task: facts.task.task.clone(),
            purpose: facts.task.purpose.map(str::to_owned),
            stage: facts.task.stage.map(str::to_owned),
            budget: facts.budget,
            past: facts.past,
            attended: facts.attended,
            bound: facts.bound.cloned(),
            inputs: facts.labels.inputs,
            tenants: facts.labels.tenants.to_vec(),
            secrets: facts.secrets.iter().map(|fact| (fact.reference.clone(), fact.lifetime)).collect(),
            always_ask: facts.always_ask,
            approval: facts.approval.map(|given| Answered {
                approver: given.approver.to_owned(),
                assurance: given.assurance,
                classes: given.classes.to_vec(),
                source: given.source,
                scope: given.scope,
            }),
        }
    }
}
