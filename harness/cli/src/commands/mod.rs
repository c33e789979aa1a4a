//! One file a command.

pub(crate) mod action;
pub(crate) mod approvals;
pub(crate) mod approver;
mod arguments;
pub(crate) mod artifacts;
mod asking;
pub(crate) mod audit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod contract;
pub(crate) mod db;
pub(crate) mod doctor;
pub(crate) mod environment;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod files;
pub(crate) mod gc;
pub(crate) mod grants;
pub(crate) mod hook;
mod limits;
pub(crate) mod mcp;
pub(crate) mod permission;
pub(crate) mod policy;
mod propose;
pub(crate) mod ps;
pub(crate) mod questions;
pub(crate) mod reference;
pub(crate) mod run;
mod running;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod stop;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod trace;
pub(crate) mod turn;
pub(crate) mod webhook;

use std::process::ExitCode;

use env_contracts::{Code, Id, Problem};

/// What writing to standard output answers: a reader that went away is no
/// error of ours.
pub(crate) fn printed(result: std::io::Result<()>, code: u8) -> Result<ExitCode, Problem> {
    match result {
        Ok(()) => Ok(ExitCode::from(code)),
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::from(code)),
        Err(error) => Err(glovebox_runtime::io_problem("cannot write to standard output", Code::BackendError, &error)),
    }
}

/// The fewest characters of an id that are taken for all of it: fewer are a
/// slip.
const SHORTEST_ID: usize = 8;

/// The one id that is this or begins so.
///
/// # Errors
/// `code` where there is none, `usage` where there are several.
pub(crate) fn only<'a>(begins: &Id, what: &str, code: Code, ids: impl Iterator<Item = &'a Id>) -> Result<Id, Problem> {
    let unknown = || Problem::new(code, format!("there is no {what} `{begins}`"));
    let mut found = None;
    for id in ids {
        if id == begins {
            return Ok(id.clone());
        }
        if begins.as_str().len() >= SHORTEST_ID && id.as_str().starts_with(begins.as_str()) {
            if found.is_some() {
                return Err(Problem::new(Code::Usage, format!("several ids begin with `{begins}`: write more of it")));
            }
            found = Some(id.clone());
        }
    }
    found.ok_or_else(unknown)
}
