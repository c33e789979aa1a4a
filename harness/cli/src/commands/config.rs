//! `glovebox config show`: every key, its value, and where it comes from. The
//! text is itself a configuration file; and so is the ceiling's.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::Problem;
use glovebox_runtime::DEFAULT_CEILING;
use serde_json::json;

use super::printed;
use crate::args::{ConfigCommand, WhichCeiling};
use crate::ceiling;
use crate::config::{Config, SETTINGS, file_path};
use crate::print;
use crate::table::Table;
use crate::terminal::escaped_line;

pub(crate) fn run(command: &ConfigCommand, config: &Config) -> Result<ExitCode, Problem> {
    let ConfigCommand::Show { origin, json, ceiling } = *command;
    if let Some(which) = ceiling {
        return show_ceiling(which, config);
    }
    printed(if json { as_json(config) } else { as_text(config, origin) }, 0)
}

/// A ceiling as it was written, comments and all.
fn show_ceiling(which: WhichCeiling, config: &Config) -> Result<ExitCode, Problem> {
    let own = match which {
        WhichCeiling::InForce => {
            // What can't be understood is not in force.
            ceiling::read(config)?;
            ceiling::text(config)?
        }
        WhichCeiling::Shipped => None,
    };
    let text = own.as_deref().unwrap_or(DEFAULT_CEILING);
    printed(print::bytes(text.as_bytes()), 0)
}

fn as_json(config: &Config) -> std::io::Result<()> {
    let keys: serde_json::Map<_, _> = SETTINGS
        .iter()
        .map(|setting| {
            let (value, origin) = config.entry(setting.key);
            let about = json!({ "value": value, "origin": origin.to_string(), "env": setting.env, "doc": setting.doc });
            (setting.key.to_owned(), about)
        })
        .collect();
    let (file, ceiling) = (file_path(), Path::new(config.entry("ceiling").0));
    let shipped = matches!(ceiling::text(config), Ok(None));
    print::json(&json!({
        "file": { "path": file.display().to_string(), "exists": file.exists() },
        "ceiling": { "path": ceiling.display().to_string(), "exists": ceiling.exists(), "shipped": shipped },
        "keys": keys,
    }))
}

fn as_text(config: &Config, with_origin: bool) -> std::io::Result<()> {
    let shown = |path: &Path| escaped_line(&path.display().to_string());
    let mut out = anstream::stdout().lock();
    let file = file_path();
    let note = if file.exists() { "" } else { " (there is none)" };
    writeln!(out, "# configuration file: {}{note}", shown(&file))?;
    let note = match ceiling::text(config) {
        Ok(Some(_)) => "",
        Ok(None) => " (there is none: the shipped one holds)",
        Err(_) => " (can't be read: nothing runs until it can)",
    };
    writeln!(out, "# ceiling: {}{note}", shown(Path::new(config.entry("ceiling").0)))?;
    let mut table = Table::default();
    for setting in SETTINGS {
        let (value, origin) = config.entry(setting.key);
        // A string of TOML; what it can't hold as it is, it holds escaped.
        let line = format!("{} = {}", setting.key, toml::Value::from(value));
        let origin = if with_origin { format!("# {}", escaped_line(&origin.to_string())) } else { String::new() };
        table.row([&line, &origin]);
    }
    table.write(&mut out, "")
}
