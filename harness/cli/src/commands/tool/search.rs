//! `glovebox tool search`: tools by the words of their names, titles and
//! descriptions, as a person or as an agent with its profile.

use std::process::ExitCode;

use env_contracts::{Code, Name, Principal, Problem, Version};
use glovebox_plane::{Found, Health};

use crate::commands::printed;
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::table::Table;
use crate::terminal::escaped_line;
use crate::{print, profiles, who};

pub(crate) fn run(text: &str, agent: Option<&str>, json: bool, config: &Config) -> Result<ExitCode, Problem> {
    let principal = match agent.map(parsed).transpose()? {
        Some((agent, agent_version)) => Principal { agent: Some(agent), agent_version, ..who::principal() },
        None => who::requester_of_answers(config),
    };
    let profiles = profiles::load(config)?.unwrap_or_default();
    let found = house::registry(&Places::of(config)).search(text, &principal, &profiles)?;
    if json {
        return printed(print::json(&serde_json::json!({ "tools": found })), 0);
    }
    let mut table = Table::default();
    for hit in &found {
        table.row([&hit.capability.to_string(), &escaped_line(&hit.title), &note(hit)]);
    }
    printed(table.write(&mut anstream::stdout().lock(), ""), 0)
}

/// Why it can't be called.
fn note(hit: &Found) -> String {
    let forbidden = (!hit.executable).then(|| "not to be called".to_owned());
    let ill = (hit.health != Health::Ok).then(|| hit.health.to_string());
    forbidden.into_iter().chain(ill).collect::<Vec<_>>().join(", ")
}

fn parsed(agent: &str) -> Result<(Name, Option<Version>), Problem> {
    let (name, version) = agent.split_once('@').map_or((agent, None), |(name, version)| (name, Some(version)));
    let both = name.parse().and_then(|name| Ok((name, version.map(str::parse).transpose()?)));
    both.map_err(|error: String| Problem::new(Code::Usage, format!("--agent: {error}")))
}
