//! `glovebox tool show`: what a tool does, asks for and promises.

use std::io::Write;
use std::process::ExitCode;

use env_contracts::{Code, Manifest, ManifestEntry, Problem, Then, Wanted};
use glovebox_plane::{Health, Tool};
use serde_json::{Value, json};

use super::upstream;
use crate::commands::printed;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::table::Table;
use crate::terminal::{escaped, escaped_line};
use crate::{print, profiles, who};

pub(crate) fn run(tool: &str, json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let wanted: Wanted = tool.parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
    let registry = house::registry(&Places::of(config));
    let principal = who::requester_of_answers(config);
    let tool = registry.disclosed(&wanted, &principal, &profiles::of(config, &principal)?)?;
    let health = registry.health(&tool);
    let accepted = registry.accepted(&tool);
    printed(if json { as_json(&tool, &health, accepted) } else { as_text(&tool, &health, accepted) }, 0)
}

fn as_json(tool: &Tool, health: &Health, accepted: bool) -> std::io::Result<()> {
    print::json(&json!({
        "capability": tool.manifest.capability(),
        "artifact": tool.registered.digest,
        "builtin": tool.builtin,
        "accepted": accepted,
        "health": health,
        "effects": { "derived": tool.manifest.effects_under(&tool.manifest.contract), "declared": tool.manifest.effects },
        "manifest": tool.manifest,
    }))
}

fn as_text(tool: &Tool, health: &Health, accepted: bool) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let out = &mut out;
    let Manifest { title, description, non_goals, errors, examples, contract, .. } = &tool.manifest;
    writeln!(out, "{}  {}\n", tool.manifest.capability(), escaped_line(title))?;
    writeln!(out, "{}", escaped(description).trim())?;
    section(out, "What it does not do", non_goals.iter().map(|goal| escaped_line(goal)))?;

    arguments(out, "Arguments", &tool.manifest.input)?;
    if let Some(output) = &tool.manifest.output {
        arguments(out, "Result", output)?;
    }
    if !errors.is_empty() {
        writeln!(out, "\nErrors")?;
        let mut table = Table::default();
        for error in errors {
            let then = match error.then {
                Then::Retry => "try again later",
                Then::FixArguments => "correct the arguments",
                Then::Escalate => "ask a person",
            };
            table.row([&escaped_line(&error.kind), then, &escaped_line(&error.when)]);
        }
        table.write(out, "  ")?;
    }

    let effects = format!("{:?}", tool.manifest.effects_under(contract)).to_lowercase();
    writeln!(out, "\nContract (what it may change, derived: {effects})")?;
    let mut table = Table::default();
    for clause in contract.clauses() {
        table.row([&escaped_line(clause.path().as_str()), &escaped_line(&clause.value())]);
    }
    table.write(out, "  ")?;

    let line = |args: &Value, name: &str| format!("{}  {}", escaped_line(&args.to_string()), escaped_line(name));
    section(out, "Examples", examples.iter().map(|example| line(&example.args, &example.name)))?;
    let kind = match &tool.manifest.entry {
        ManifestEntry::Tool { .. } => "tool component".to_owned(),
        ManifestEntry::Decision => "decision".to_owned(),
        ManifestEntry::Native => "tool of an agent's own".to_owned(),
        ManifestEntry::Command { .. } => "command".to_owned(),
        ManifestEntry::Mcp { url, tool, .. } => format!("tool `{}` of {}", escaped_line(tool), escaped_line(url)),
        ManifestEntry::McpStdio { command, tool, .. } => {
            format!("tool `{}` of the MCP server `{}`", escaped_line(tool), escaped_line(&command.join(" ")))
        }
        ManifestEntry::Export { interface, function } => {
            let place = interface.iter().chain([function]).map(|name| escaped_line(name)).collect::<Vec<_>>();
            format!("function {}", place.join("#"))
        }
    };
    let from = if tool.builtin { "built in" } else { "registered" };
    writeln!(out, "\n{from} {kind}, sha256 {}", tool.registered.digest)?;
    if accepted && !tool.builtin {
        writeln!(out, "an operator accepted what it claims of its effects")?;
    }
    let server = match &tool.manifest.entry {
        ManifestEntry::Mcp { url, .. } => Some(escaped_line(url)),
        ManifestEntry::McpStdio { .. } => Some("its server".to_owned()),
        _ => None,
    };
    if let Some(server) = server {
        let claims = upstream::claims(tool).unwrap_or_default();
        if !claims.is_empty() {
            writeln!(out, "claimed by {server}, and counted for nothing: {}", claims.join(", "))?;
        }
    }
    place(out, &tool.manifest, health)
}

/// What it is in the registry: whose, with what, how often, and whether it can
/// be called.
fn place(out: &mut impl Write, manifest: &Manifest, health: &Health) -> std::io::Result<()> {
    let Manifest { owner, requires, rate, .. } = manifest;
    if let Some(owner) = owner {
        writeln!(out, "owner: {owner}")?;
    }
    if !requires.is_empty() {
        writeln!(out, "requires: {}", requires.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))?;
    }
    if let Some(rate) = rate {
        writeln!(out, "at most {rate} for each tenant")?;
    }
    if *health == Health::Ok { Ok(()) } else { writeln!(out, "can't be called: {health}") }
}

fn section(out: &mut impl Write, title: &str, lines: impl ExactSizeIterator<Item = String>) -> std::io::Result<()> {
    if lines.len() > 0 {
        writeln!(out, "\n{title}")?;
    }
    for line in lines {
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

/// What a value may be, in a few words.
fn kind(schema: &Value) -> String {
    let or = |kinds: Vec<String>| {
        let mut different: Vec<String> = Vec::new();
        for kind in kinds {
            if !different.contains(&kind) {
                different.push(kind);
            }
        }
        different.join(" or ")
    };
    let choices = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key)?.as_array());
    match (schema.get("type"), choices) {
        (Some(Value::String(kind)), _) => kind.clone(),
        (Some(Value::Array(kinds)), _) => or(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        (_, Some(choices)) => or(choices.iter().map(kind).collect()),
        _ => "any".to_owned(),
    }
}

/// The fields of an object's schema: name, type, whether it must be there,
/// and what it is.
fn arguments(out: &mut impl Write, title: &str, schema: &Value) -> std::io::Result<()> {
    writeln!(out, "\n{title}")?;
    let Some(fields) = schema.get("properties").and_then(Value::as_object).filter(|fields| !fields.is_empty()) else {
        return writeln!(out, "  {}", escaped_line(&schema.to_string()));
    };
    let required = |name: &str| {
        schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
    };
    let mut table = Table::default();
    for (name, field) in fields {
        let kind = kind(field);
        let must = if required(name) { "required" } else { "" };
        let text = field.get("description").and_then(Value::as_str).unwrap_or_default();
        table.row([&escaped_line(name), &escaped_line(&kind), must, &escaped_line(text)]);
    }
    table.write(out, "  ")?;
    if schema.get("additionalProperties").is_none_or(|more| *more != Value::Bool(false)) {
        writeln!(out, "  and others")?;
    }
    Ok(())
}
