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
  idempotent: Bool, reversible: Bool, has_preview: Bool,
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
const CONTEXT: &str = "    simple: Bool, wrapper: Bool, may_run: Set<String>,
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
