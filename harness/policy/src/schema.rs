//! The Cedar schema, made of the tools: what a rule can see, and of which type.
//!
//! `request.rs` makes the values; a test gives each to the schema.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use env_contracts::Manifest;

use crate::arguments::{self, Attribute, Type};
use crate::request::RUN;

/// What does not depend on any tool.
pub(crate) const COMMON: &str = r#"entity Tenant;
entity User in [Tenant] { name: String, tenant: String };
entity Agent in [Agent, User, Tenant] {
  name: String, tenant: String, user: String, version?: String, chain: Set<String>, depth: Long,
};
entity Capability {
  name: String, version: String, artifact: String, builtin: Bool, accepted: Bool, classes: Set<String>,
  idempotent: Bool, reversible: Bool, has_preview: Bool, decision: Bool,
};

type Facet = {
  simple: Bool, wrapper: Bool, program?: String, path?: String, args: Set<String>, flags: Set<String>, words: Long,
  may_run: Set<String>,
};
type Data = { label: Long, at_least: Set<String>, tenants: Set<String> };
type Budget = { actions: Long, run_ms: Long, cost_micros: Long, artifact_bytes: Long };
type Past = { approvals: Long, declines: Long, grants: Long };
type Task = { session: String, task: String, purpose?: String, stage?: String };
type Limits = { wall_ms?: Long, memory?: Long };
type Bound = { inputs: Set<String>, paths: Set<String>, workspace?: String };
type Approval = {
  assurance: Long, at_least: Set<String>, classes: Set<String>, source: String, scope: String,
};
"#;

/// The context of every action, after what is of its tool.
pub(crate) const CONTEXT: &str = "    simple: Bool, wrapper: Bool, may_run: Set<String>,
    effects: String, reaches_out: Bool, egress: Set<String>, egress_methods: Set<String>, ingress: Set<Long>,
    writes: Set<String>, workspace?: String, hosts: Set<String>,
    secrets: Set<String>, long_lived_secrets: Set<String>, delegation: String, walls: Long, limits: Limits,
    delta: Set<String>, bypass: Bool, data: Data, cross_tenant: Bool, budget: Budget, past: Past, task: Task,
    attended: Bool, backend: String, bound?: Bound, approval?: Approval,
";

/// The schema for these tools, in Cedar's own notation.
pub(crate) fn of(tools: &[&Manifest]) -> String {
    let mut out = String::from(COMMON);
    let mut by_name: BTreeMap<&str, BTreeMap<String, &Manifest>> = BTreeMap::new();
    for tool in tools {
        by_name.entry(tool.name.as_str()).or_default().insert(tool.capability().to_string(), tool);
    }
    // Writing to a String can't fail.
    let _ = writeln!(out, "\naction {};", quoted(RUN));
    for (name, versions) in by_name {
        if name != RUN {
            let _ = writeln!(out, "\naction {} in [{}];", quoted(name), quoted(RUN));
        }
        for (capability, tool) in versions {
            let mapped = arguments::of_schema(&tool.input);
            let facets = mapped.argv.iter().map(|argument| format!("{}?: Facet", quoted(argument)));
            let _ = writeln!(
                out,
                "action {} in [{}] appliesTo {{\n  principal: [User, Agent], resource: [Capability], context: {{\n    \
                 args: {},\n    facets: {{ {} }},\n{CONTEXT}  }},\n}};",
                quoted(&capability),
                quoted(name),
                record(&mapped.attributes),
                facets.collect::<Vec<_>>().join(", "),
            );
        }
    }
    out
}

fn record(attributes: &[Attribute]) -> String {
    let field = |attribute: &Attribute| {
        let mark = if attribute.required { "" } else { "?" };
        format!("{}{mark}: {}", quoted(&attribute.name), type_text(&attribute.ty))
    };
    format!("{{ {} }}", attributes.iter().map(field).collect::<Vec<_>>().join(", "))
}

fn type_text(ty: &Type) -> String {
    match ty {
        Type::String => "String".into(),
        Type::Long => "Long".into(),
        Type::Bool => "Bool".into(),
        Type::Set(items) => format!("Set<{}>", type_text(items)),
        Type::Record(fields) => record(fields),
    }
}

/// A string as Cedar writes it.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.escape_default())
}

#[cfg(test)]
pub(crate) mod tests {
    use cedar_policy::{Entities, Request, Schema};
    use env_contracts::{Assurance, BoundFacts, Span};
    use serde_json::json;

    use super::*;
    use crate::context::Attributes;
    use crate::request::{Approval, Prepared};
    use crate::sample::Sample;
    use crate::scene::Scene;
    use crate::{Facts, GivenScope, Source, cases};

    /// Facts in which nothing that may be there is missing.
    pub(crate) fn full() -> Sample {
        let mut manifest = cases::example().unwrap();
        manifest.input = json!({ "type": "object", "properties": {
            "line": { "type": "string", "x-glovebox-argv": true }, "n": { "type": "integer" },
            "deep": { "type": "object", "properties": { "a": { "type": "array", "items": { "type": "boolean" } } } },
        } });
        manifest.contract = serde_json::from_value(json!({
            "schema": "glovebox/contract/v1", "limits": { "wall": "30s", "memory": "1MiB" },
            "filesystem": [{ "guest": "/workspace", "source": "workspace", "access": "write" }],
            "network": {
                "egress": [{ "host": "api.example.com", "ports": [443] }],
                "ingress": [{ "port": 80, "protocol": "http" }],
            },
        }))
        .unwrap();
        let mut sample = cases::plain(&manifest, true).unwrap();
        sample.arguments = json!({ "line": "ls -l", "n": 1, "deep": { "a": [true] } });
        sample.principal.agent_version = Some("1.0.0".parse().unwrap());
        sample.principal.chain = vec!["planner".parse().unwrap()];
        (sample.purpose, sample.stage) = (Some("p".into()), Some("s".into()));
        let facts = env!("CARGO_MANIFEST_DIR").to_owned() + "/../../env-contracts/golden/facts.v1.json";
        let bound: BoundFacts = serde_json::from_str(&fs_err::read_to_string(facts).unwrap()).unwrap();
        assert!(bound.workspace.is_some());
        sample.bound = Some(bound);
        sample.tenants = vec!["other".parse().unwrap()];
        sample.secrets = vec![("a".parse().unwrap(), Some(Span::secs(1)))];
        sample
    }

    /// What is made of facts is what rules are checked against, name by name and
    /// type by type, with everything that is optional and without.
    #[test]
    fn facts_have_the_shape_that_the_schema_declares() {
        let bare = cases::plain(&cases::example().unwrap(), false).unwrap();
        for sample in [full(), bare] {
            let (schema, _) = Schema::from_cedarschema_str(&of(&[&sample.manifest])).unwrap();

            let all = |facts: &Facts<'_>| Prepared::new(facts, Scene::new(facts)?.into(), Attributes::ALL);
            let prepared = sample.facts(all).unwrap();
            assert_eq!(prepared.unseen(), Vec::<Vec<String>>::new());
            let approval = Approval {
                assurance: Assurance::Passkey,
                classes: vec!["a"],
                source: Source::Person,
                scope: GivenScope::Once,
            };
            for approval in [None, Some(&approval)] {
                let made = prepared.request(approval).unwrap();
                let (principal, action, resource) = (made.principal(), made.action(), made.resource());
                let [principal, action, resource] = [principal, action, resource].map(|uid| uid.unwrap().clone());
                Request::new(principal, action, resource, made.context().unwrap().clone(), Some(&schema)).unwrap();
            }
            Entities::from_entities(prepared.entities().iter().cloned(), Some(&schema)).unwrap();
        }
    }
}
