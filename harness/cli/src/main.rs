//! The `glovebox` command: the door for people and scripts.
//!
//! Data goes to standard output, everything else to standard error. What
//! guests say is escaped on terminals.

mod args;
mod builtin;
mod commands;
mod config;
mod house;
mod print;
mod progress;
mod table;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;
use env_contracts::{Code, Diagnose as _, Problem};

use args::{Cli, Command};
use config::Config;

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are answers, not errors.
            let code = if error.use_stderr() { Code::Usage.exit_code() } else { 0 };
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    match dispatch(cli) {
        Ok(code) => code,
        Err(problem) => {
            print::problem(&problem);
            ExitCode::from(problem.exit_code())
        }
    }
}

fn dispatch(cli: Cli) -> Result<ExitCode, Problem> {
    if !cfg!(target_os = "linux") {
        return Err(Problem::new(Code::PlatformUnsupported, "Glovebox runs on Linux"));
    }
    // These need neither configuration nor state.
    match &cli.command {
        Command::Compile(_) => return Ok(glovebox_wasm::compile_child_main()),
        Command::Explain(args) => return commands::explain::run(args),
        Command::Completions(args) => return commands::completions::run(args),
        Command::Reference(args) => return commands::reference::run(args),
        _ => {}
    }
    let flags: Vec<_> = cli.state.iter().map(|state| ("state", "--state", state.display().to_string())).collect();
    let config = Config::load(&flags)?;
    match cli.command {
        Command::Run(args) => commands::run::run(args, &config),
        Command::Tool(command) => commands::tool::run(command, &config),
        Command::Contract(command) => commands::contract::run(command, &config),
        Command::Artifacts(command) => commands::artifacts::run(command, &config),
        Command::Config(command) => commands::config::run(&command, &config),
        Command::Gc(args) => commands::gc::run(&args, &config),
        Command::Doctor(args) => commands::doctor::run(&args, &config),
        Command::Compile(_) | Command::Explain(_) | Command::Completions(_) | Command::Reference(_) => {
            unreachable!("answered above")
        }
    }
}
