//! `glovebox tool`: registering tools and looking at them.

mod add;
mod check;
mod describe;
mod examples;
mod exported;
mod generate;
mod image;
mod names;
mod search;
mod show;
mod source;
mod stdio;
mod upstream;

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{CapabilityRef, Code, Problem, Wanted};
use glovebox_plane::Health;
use glovebox_runtime::{Clock as _, SystemClock};

use super::printed;
use crate::args::ToolCommand;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::table::Table;
use crate::terminal::escaped_line;
use crate::{print, profiles, who};

pub(crate) fn run(command: ToolCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        ToolCommand::Add(args) => add::run(&args, config),
        ToolCommand::List { json } => list(json, config),
        ToolCommand::Search { text, agent, json } => search::run(&text.join(" "), agent.as_deref(), json, config),
        ToolCommand::Show { tool, json } => show::run(&tool, json, config),
        ToolCommand::Check(args) => check::run(&args, config),
        ToolCommand::Accept { tool, revoke } => accept(tool, revoke, config),
        ToolCommand::Remove { tool } => remove(&tool, config),
    }
}

fn list(json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let mut listing = house::registry(&Places::of(config)).list()?;
    let principal = who::requester_of_answers(config);
    if principal.agent.is_some() {
        // What can't be read has a name too.
        let profiles = profiles::of(config, &principal)?;
        listing.tools.retain(|tool| profiles.disclosed(&principal, &tool.capability));
        listing.unreadable.clear();
    }
    if json {
        return printed(print::json(&listing), 0);
    }
    for problem in &listing.unreadable {
        print::problem(problem);
    }
    // Most tools name no owner, and most can be called.
    let owners = listing.tools.iter().any(|tool| tool.owner.is_some());
    let ill = listing.tools.iter().any(|tool| tool.health != Health::Ok);
    let mut table = Table::default();
    for tool in &listing.tools {
        let from = if tool.builtin { "built in" } else { tool.artifact.short() };
        let mut cells = vec![tool.capability.to_string(), from.to_owned()];
        cells.extend(owners.then(|| tool.owner.as_ref().map(ToString::to_string).unwrap_or_default()));
        cells.extend(ill.then(|| tool.health.to_string()));
        cells.push(escaped_line(&tool.title));
        table.cells(cells);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

fn accept(capability: CapabilityRef, revoke: bool, config: &Config) -> Result<ExitCode, Problem> {
    who::person(config)?;
    let registry = house::registry(&Places::of(config));
    let tool = registry.get(&Wanted { name: capability.name.clone(), version: Some(capability.version.clone()) })?;
    let line = if revoke {
        registry.accept_no_more(&tool)?;
        format!("what {capability} claims of its effects counts no more")
    } else {
        registry.accept(&tool, SystemClock.now())?;
        let claims = serde_json::to_string(&tool.manifest.effects).unwrap_or_default();
        let artifact = tool.registered.digest.short();
        format!("what {capability} (component {artifact}) claims of its effects counts: {}", escaped_line(&claims))
    };
    printed(writeln!(anstream::stdout().lock(), "{line}"), 0)
}

fn remove(tool: &str, config: &Config) -> Result<ExitCode, Problem> {
    let registry = house::registry(&Places::of(config));
    let capability: CapabilityRef = tool.parse().map_err(|error: String| {
        // A name alone gets the version that it would run.
        let newest = tool.parse().ok().and_then(|wanted: Wanted| registry.get(&wanted).ok());
        let named = newest.map_or_else(|| "NAME@VERSION".to_owned(), |tool| tool.manifest.capability().to_string());
        Problem::new(Code::Usage, error)
            .with_help(format!("name the version too, as `{named}`; `glovebox tool list` shows them"))
    })?;
    registry.remove(&capability)?;
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "removed {capability}; its name and version stay taken");
    Ok(ExitCode::SUCCESS)
}
