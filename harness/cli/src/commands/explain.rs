//! `glovebox explain`: what error codes mean.

use std::io::Write as _;
use std::process::ExitCode;

use env_contracts::{Code, Problem};
use glovebox_plane::arguments::nearest;

use super::printed;
use crate::args::ExplainArgs;
use crate::table::Table;
use crate::terminal::escaped_line;

pub(crate) fn run(args: &ExplainArgs) -> Result<ExitCode, Problem> {
    match &args.code {
        Some(text) => {
            let code = text.parse().map_err(|()| unknown(text))?;
            printed(one(code), 0)
        }
        None => printed(all(), 0),
    }
}

fn unknown(text: &str) -> Problem {
    let problem = Problem::new(Code::CodeUnknown, format!("no error code is called `{}`", escaped_line(text)));
    match nearest(text, Code::ALL.iter().map(|code| code.as_str())) {
        Some(near) => problem.with_help(format!("did you mean `{near}`? `glovebox explain` lists all codes")),
        None => problem,
    }
}

fn one(code: Code) -> std::io::Result<()> {
    let mut table = Table::default();
    table.row(["exit code", &code.exit_code().to_string()]);
    table.row(["HTTP status", &code.http_status().to_string()]);
    table.row(["retry", if code.retryable() { "the same request can succeed later" } else { "not without a change" }]);
    table.row(["what helps", code.remedy()]);
    let mut out = anstream::stdout().lock();
    writeln!(out, "{code}: {}\n", code.meaning().trim())?;
    table.write(&mut out, "  ")
}

fn all() -> std::io::Result<()> {
    let mut table = Table::default();
    table.row(["CODE", "EXIT", "MEANING"]);
    for code in Code::ALL {
        table.row([code.as_str(), &code.exit_code().to_string(), code.meaning().trim()]);
    }
    table.write(&mut anstream::stdout().lock(), "")
}
