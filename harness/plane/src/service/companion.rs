//! Actions that belong to another one: its preview, its verify, its review.
//! Each takes the same way in as all others, with a plan and a verdict of its
//! own, and never asks anybody.

use std::sync::Arc;

use env_contracts::{
    Access, ActionRequest, CapabilityRef, Code, Contract, Delegation, DerivedEffects, Id, Observation, OutcomeKind,
    Plan, Principal, Problem, Source, Span, Wanted,
};
use glovebox_events::Asks;
use glovebox_runtime::{BoxFuture, Stop};
use serde_json::{Map, Value};

use super::flight::Flight;
use super::{ActionService, Asking, Submission, Submitted, TaskContext};
use crate::observe::Refusal;
use crate::registry::Tool;
use crate::watch::Unwatched;

/// The methods that ask and change nothing, as HTTP defines them.
const READING: [&str; 2] = ["GET", "HEAD"];

/// What an action is to the one that it belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Companion {
    /// It shows what the other would do.
    Preview,
    /// It finds out whether the other took effect.
    Verify,
    /// It says whether the other may run.
    Review,
}

/// What is asked of a companion.
pub(super) struct Errand {
    pub(super) role: Companion,
    pub(super) capability: CapabilityRef,
    pub(super) principal: Principal,
    pub(super) arguments: Value,
    /// The most time that it may run.
    pub(super) limit: Option<Span>,
}

impl Companion {
    /// Refuses a plan that could do more than its role needs. Policy decides
    /// on what is left.
    pub(super) fn admits(self, plan: &Plan) -> Result<(), Refusal> {
        let (which, wrong) = match self {
            Self::Preview => ("preview", more_than_looking(&plan.contract)),
            Self::Review if plan.effects != DerivedEffects::None => {
                ("review", Some("a reviewer changes nothing, and its contract lets it".to_owned()))
            }
            Self::Review | Self::Verify => return Ok(()),
        };
        let Some(why) = wrong else { return Ok(()) };
        let problem = Problem::new(Code::ContractUnsatisfied, format!("`{}` was not run: {why}", plan.capability));
        Err(Refusal::new(OutcomeKind::ContractUnsatisfied, problem).which(which))
    }
}

/// What of a contract is more than looking takes.
fn more_than_looking(contract: &Contract) -> Option<String> {
    let own = |source: &Source| matches!(source, Source::Scratch | Source::Outputs);
    let reads = |methods: &Option<Vec<String>>| {
        methods.as_ref().is_some_and(|methods| methods.iter().all(|method| READING.contains(&method.as_str())))
    };
    if let Some(secret) = contract.secrets.first() {
        return Some(format!("a preview gets no secret, and its contract has `{}`", secret.reference));
    }
    if contract.identity.delegation != Delegation::None {
        return Some("a preview acts in nobody's name, and its contract has a delegated identity".to_owned());
    }
    if let Some(rule) = contract.network.egress.iter().find(|rule| !reads(&rule.methods)) {
        return Some(format!("a preview only reads, and its contract lets it write to `{}`", rule.host));
    }
    if !contract.network.ingress.is_empty() {
        return Some("a preview listens to nobody, and its contract lets it".to_owned());
    }
    let written = contract.filesystem.iter().find(|mount| mount.access == Access::Write && !own(&mount.source));
    written.map(|mount| format!("a preview changes nothing, and its contract lets it write `{}`", mount.guest))
}

/// Of these arguments those that a tool's schema names.
pub(super) fn named(tool: &Tool, arguments: &Value) -> Map<String, Value> {
    let all = arguments.as_object().into_iter().flatten();
    all.filter(|(name, _)| tool.input.names(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

impl ActionService {
    /// The tool of a companion.
    pub(super) fn companion(&self, capability: &CapabilityRef) -> Result<Arc<Tool>, Problem> {
        let CapabilityRef { name, version } = capability.clone();
        self.parts.registry.get(&Wanted { name, version: Some(version) })
    }

    /// Carries a companion to its end. Its type is erased: it goes the way on
    /// which it is sent out.
    ///
    /// # Errors
    /// Why there is no such action.
    pub(super) fn send_out<'a>(
        &'a self,
        flight: &'a Flight,
        errand: Errand,
        stop: &'a Stop,
    ) -> BoxFuture<'a, Result<Observation, Problem>> {
        Box::pin(async move {
            let errand_flight = self.set_out(flight, errand)?;
            match Box::pin(self.go_on(errand_flight, Arc::new(Unwatched), stop)).await? {
                Submitted::Done(observation) => Ok(observation),
                Submitted::Waiting(action) => {
                    let message = format!("action `{}` waits, and nobody waits for it", action.id);
                    Err(Problem::new(Code::BackendError, message))
                }
            }
        })
    }

    fn set_out(&self, flight: &Flight, errand: Errand) -> Result<Flight, Problem> {
        let Errand { role, capability, principal, arguments, limit } = errand;
        let CapabilityRef { name, version } = capability;
        let tool = self.capability(&principal, &Wanted { name: name.clone(), version: Some(version.clone()) })?;
        let own: Id = flight.journal.id().clone();
        let mut request = ActionRequest::new(Wanted { name, version: Some(version) }, arguments);
        request.parents = vec![own];
        request.timeout = limit;
        // The same files, as far as it asks for any.
        let wants = |name: &env_contracts::Name| {
            let wanted = |source: &Source| match source {
                Source::Input(input) => input.as_ref().is_none_or(|input| input == name),
                _ => false,
            };
            tool.manifest.contract.filesystem.iter().any(|mount| wanted(&mount.source))
        };
        let kept = &flight.kept;
        let inputs = kept.request.inputs.iter().filter(|(name, _)| wants(name));
        request.inputs = inputs.map(|(name, uri)| (name.clone(), uri.clone())).collect();
        let brought = kept.inputs.iter().filter(|(name, _)| wants(name));
        let mut submission = Submission {
            principal,
            context: kept.context.clone(),
            request,
            received: None,
            workspace: kept.workspace.clone(),
            inputs: brought.map(|(name, path)| (name.clone(), path.clone())).collect(),
            asking: Asking::Never,
            held: false,
        };
        let begun = match Flight::begin(&self.parts, submission.opening()?, tool.clone(), Asks::Run) {
            Err(problem) if problem.code == Code::TurnConflict => {
                // What was begun in a turn can outlive it; what belongs to it
                // then belongs to the task.
                submission.context = TaskContext { turn: None, ..submission.context };
                Flight::begin(&self.parts, submission.opening()?, tool, Asks::Run)
            }
            begun => begun,
        };
        begun.map(|mut flight| {
            flight.companion = Some(role);
            flight
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn contract(section: &str, value: &Value) -> Contract {
        let mut contract = json!({ "schema": "glovebox/contract/v1" });
        contract[section] = value.clone();
        serde_json::from_value(contract).unwrap()
    }

    #[test]
    fn a_preview_gets_what_looking_takes_and_no_more() {
        let egress = |methods: Value| {
            let mut rule = json!({ "host": "a.example.com", "ports": [443] });
            rule["methods"] = methods;
            ("network", json!({ "egress": [rule] }))
        };
        let mount =
            |source: &str, access: &str| ("filesystem", json!([{ "guest": "/x", "source": source, "access": access }]));
        for (section, value) in [
            mount("workspace", "read"),
            mount("workspace", "overlay"),
            mount("scratch", "write"),
            mount("outputs", "write"),
            egress(json!(["GET", "HEAD"])),
        ] {
            assert_eq!(more_than_looking(&contract(section, &value)), None, "{value}");
        }
        let inject = json!({ "host": "a.example.com", "header": "authorization", "format": "Bearer {secret}" });
        for ((section, value), why) in [
            (("secrets", json!([{ "ref": "token", "inject": inject }])), "no secret"),
            (egress(Value::Null), "only reads"),
            (egress(json!(["GET", "POST"])), "only reads"),
            (("identity", json!({ "delegation": "user" })), "in nobody's name"),
            (("network", json!({ "ingress": [{ "port": 80, "protocol": "http" }] })), "listens to nobody"),
            (mount("workspace", "write"), "changes nothing"),
            (mount("host:/srv", "write"), "changes nothing"),
        ] {
            let said = more_than_looking(&contract(section, &value)).unwrap_or_default();
            assert!(said.contains(why), "{value}: {said}");
        }
    }
}
