//! `glovebox config show`: every key, its value, and where it comes from. The
//! text is itself a configuration file.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::Problem;
use serde_json::json;

use super::printed;
use crate::args::ConfigCommand;
use crate::config::{Config, SETTINGS, file_path};
use crate::print;
use crate::table::Table;
use crate::terminal::escaped_line;

pub(crate) fn run(command: &ConfigCommand, config: &Config) -> Result<ExitCode, Problem> {
    let ConfigCommand::Show { origin, json } = *command;
    if json {
        return printed(as_json(config), 0);
    }
    printed(as_text(config, origin), 0)
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
    print::json(&json!({
        "file": { "path": file.display().to_string(), "exists": file.exists() },
        "ceiling": { "path": ceiling.display().to_string(), "exists": ceiling.exists() },
        "keys": keys,
    }))
}

fn as_text(config: &Config, with_origin: bool) -> std::io::Result<()> {
    let state = |path: &Path, without: &str| {
        let note = if path.exists() { "" } else { without };
        format!("{}{note}", escaped_line(&path.display().to_string()))
    };
    let mut out = anstream::stdout().lock();
    writeln!(out, "# configuration file: {}", state(&file_path(), " (there is none)"))?;
    let ceiling = Path::new(config.entry("ceiling").0);
    writeln!(out, "# ceiling: {}", state(ceiling, " (there is none: the shipped one holds)"))?;
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
