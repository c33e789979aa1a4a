//! The `glovebox` command: the door for people and scripts.
//!
//! Data goes to standard output, everything else to standard error. What
//! guests say is escaped on terminals.

mod args;
mod backends;
mod builtin;
mod ceiling;
mod commands;
mod config;
mod house;
mod keyboard;
mod native;
mod nobody;
mod operator;
mod places;
mod print;
mod profiles;
mod programs;
mod progress;
mod registered;
mod table;
mod terminal;
mod values;
mod who;

use std::process::ExitCode;

use clap::Parser as _;
use env_contracts::{Code, Diagnose as _, Problem};

use args::{Cli, Command};
use config::{Config, Origin};

fn main() -> ExitCode {
    // Before anything else: a part of the second wall is no command.
    if let Some(code) = glovebox_wasm::maybe_enter_cell() {
        return code;
    }
    // Whoever started this may ignore the ends of children. If that can't be
    // undone, compiling says so.
    let _ = glovebox_jail::hear_signals();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return not_understood(&error),
    };
    // Before anything can go wrong: whatever does must stop the agent.
    if let Command::Hook(args) = &cli.command
        && args.command.is_none()
        && !args.inside
    {
        return commands::hook::guard(args);
    }
    let (path, json) = (cli.command.path(), cli.command.json());
    match dispatch(cli) {
        Ok(code) => code,
        Err(problem) => {
            // The general way out of a wrong command line is its help.
            let general = problem.code == Code::Usage && problem.help == Code::Usage.remedy();
            let problem = if general { problem.with_help(format!("see `glovebox {path} --help`")) } else { problem };
            print::problem(&problem);
            if json {
                print::problem_json(&problem);
            }
            ExitCode::from(problem.exit_code())
        }
    }
}

/// What the parser of the command line says, which may be an answer: help and
/// the version.
fn not_understood(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    // It repeats what was typed, which may be a stranger's.
    let text = terminal::escaped(&error.to_string());
    let _ = std::io::Write::write_all(&mut anstream::stderr().lock(), text.as_bytes());
    if std::env::args_os().any(|arg| arg == "--json") {
        let text = error.to_string();
        let line = text.lines().next().unwrap_or_default();
        print::problem_json(&Problem::new(Code::Usage, line.trim_start_matches("error: ")));
    }
    ExitCode::from(Code::Usage.exit_code())
}

fn dispatch(cli: Cli) -> Result<ExitCode, Problem> {
    if !cfg!(target_os = "linux") {
        return Err(Problem::new(Code::PlatformUnsupported, "Glovebox runs on Linux"));
    }
    // These need neither configuration nor state.
    match &cli.command {
        Command::Explain(args) => return commands::explain::run(args),
        Command::Completions(args) => return commands::completions::run(args),
        Command::Reference(args) => return commands::reference::run(args),
        _ => {}
    }
    let mut flags = Vec::new();
    if let Some(state) = &cli.state {
        // Shown otherwise than it is written, it would be another folder.
        let state = state.to_str().ok_or_else(|| Problem::new(Code::Usage, "--state: the path is not UTF-8 text"))?;
        flags.push(("state", "--state", state.to_owned()));
    }
    let config = Config::load(&flags);
    // Of all, this one is asked when something is wrong.
    if let Command::Doctor(args) = &cli.command {
        return commands::doctor::run(args, config);
    }
    let config = config?;
    if let (state, Origin::Flag(_) | Origin::Environment(_)) = config.entry("state") {
        print::name_state(state);
    }
    match cli.command {
        Command::Run(args) => commands::run::run(&args, &config),
        Command::Exec(args) => commands::exec::run(&args, &config),
        Command::Action(command) => commands::action::run(command, &config),
        Command::Approvals(command) => commands::approvals::run(command, &config),
        Command::Grants(command) => commands::grants::run(command, &config),
        Command::Environment(command) => commands::environment::run(command, &config),
        Command::Session(command) => commands::session::run(command, &config),
        Command::Task(command) => commands::task::run(command, &config),
        Command::Turn(command) => commands::turn::run(command, &config),
        Command::Questions(command) => commands::questions::run(command, &config),
        Command::Ps(args) => commands::ps::run(&args, &config),
        Command::Trace(args) => commands::trace::run(&args, &config),
        Command::Serve(args) => commands::serve::serve(&args, config),
        Command::Inbox(args) => commands::serve::inbox(&args, &config),
        Command::Permission(command) => commands::permission::run(command, &config),
        Command::Approver(command) => commands::approver::run(command, &config),
        Command::Webhook(command) => commands::webhook::run(command, &config),
        Command::Token(command) => commands::token::run(command, &config),
        Command::Mcp(args) => commands::mcp::run(&args, &config),
        Command::Hook(args) => commands::hook::run(&args, &config),
        Command::Stop(args) => commands::stop::run(&args, &config),
        Command::Tool(command) => commands::tool::run(command, &config),
        Command::Contract(command) => commands::contract::run(command, &config),
        Command::Artifacts(command) => commands::artifacts::run(command, &config),
        Command::Config(command) => commands::config::run(&command, &config),
        Command::Gc(args) => commands::gc::run(&args, &config),
        Command::Policy(command) => commands::policy::run(command, &config),
        Command::Audit(command) => commands::audit::run(command, &config),
        Command::Db(command) => commands::db::run(command, &config),
        Command::Doctor(_) | Command::Explain(_) | Command::Completions(_) | Command::Reference(_) => {
            unreachable!("answered above")
        }
    }
}
