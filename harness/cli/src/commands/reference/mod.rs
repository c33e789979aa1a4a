//! `glovebox __reference`: the pages of `docs/` that are made from the program
//! itself, the same on every machine.

mod http;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::CommandFactory as _;
use env_contracts::{Code, Problem};

use crate::args::{Cli, ReferenceArgs};
use crate::config::SETTINGS;

/// The width of the help texts on the page.
const WIDTH: usize = 100;

/// What stands at the top of each page.
const MADE: &str = "<!-- Made by `cargo xtask gen`; changes made here are lost. -->";

pub(crate) fn run(args: &ReferenceArgs) -> Result<ExitCode, Problem> {
    let failed = |error: std::io::Error| Problem::new(Code::FileUnreadable, error.to_string());
    fs_err::create_dir_all(&args.dir).map_err(failed)?;
    let pages = [
        ("cli.md", cli()),
        ("errors.md", errors()),
        ("config.md", config()),
        ("http.md", http::page()),
        ("openapi.json", http::openapi()),
    ];
    for (name, text) in pages {
        fs_err::write(args.dir.join(name), text).map_err(failed)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Every command with its help.
fn cli() -> String {
    let mut command = Cli::command().term_width(WIDTH);
    command.build();
    let mut page = format!("{MADE}\n\n# Commands\n");
    section(&mut command, "glovebox", &mut page);
    page
}

fn section(command: &mut clap::Command, path: &str, page: &mut String) {
    let help = command.render_long_help().to_string();
    let lines: Vec<&str> = help.lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## `{path}`\n\n```text\n{}\n```\n", lines.join("\n").trim());
    for sub in command.get_subcommands_mut() {
        if sub.is_hide_set() || sub.get_name() == "help" {
            continue;
        }
        let path = format!("{path} {}", sub.get_name());
        section(sub, &path, page);
    }
}

/// Every error code.
fn errors() -> String {
    let mut page = format!(
        "{MADE}\n\n# Error codes\n\nA code is stable: the command line prints it, HTTP and MCP carry it. *Retry* says whether the same \
         request can succeed later without being changed.\n\n\
         | code | exit | HTTP | retry | meaning | what helps |\n|---|---|---|---|---|---|\n"
    );
    for code in Code::ALL {
        let retry = if code.retryable() { "yes" } else { "no" };
        let (exit, http) = (code.exit_code(), code.http_status());
        let _ = writeln!(
            page,
            "| `{code}` | {exit} | {http} | {retry} | {} | {} |",
            cell(code.meaning()),
            cell(code.remedy())
        );
    }
    page
}

/// Every configuration key.
fn config() -> String {
    let mut page = format!(
        "{MADE}\n\n# Configuration\n\nFlags of the command line come before the environment, that before the file, that before the \
         default. The file is `config.toml` in `$XDG_CONFIG_HOME/glovebox` (`~/.config/glovebox`), or the one that \
         `$GLOVEBOX_CONFIG` names and which must then exist. Keys and `GLOVEBOX_` variables that are not listed here are \
         refused. `glovebox config show --origin` prints what holds, \
         and why.\n\n| key | environment | default | meaning |\n|---|---|---|---|\n"
    );
    for setting in SETTINGS {
        let default = if setting.default.is_empty() {
            "depends on the host".to_owned()
        } else {
            format!("`{}`", setting.default)
        };
        let _ = writeln!(page, "| `{}` | `{}` | {default} | {} |", setting.key, setting.env, cell(setting.doc));
    }
    page
}

/// Text that can stand in a cell of a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|")
}
