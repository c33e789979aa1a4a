//! `glovebox policy`: reading, testing and explaining what decides.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use env_contracts::{Code, Problem, Verdict};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use glovebox_plane::Explained;
use glovebox_policy::{CheckReport, Facet, PolicyProblem, SHIPPED, TestReport};
use glovebox_runtime::{io_problem, private_dir};

use super::{asking, printed, run};
use crate::args::{PolicyArgs, PolicyCommand, PolicyExplainArgs};
use crate::config::Config;
use crate::house;
use crate::places::Places;
use crate::print::{self, FAILED, FAINT, SUCCEEDED};
use crate::terminal::{escaped, escaped_line};

pub(crate) fn run(command: PolicyCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        PolicyCommand::Check(args) => check(&args, config),
        PolicyCommand::Test(args) => test(&args, config),
        PolicyCommand::Explain(args) => explain(&args, config),
        PolicyCommand::Schema => {
            let tools = house::registry(&Places::of(config)).manifests()?;
            printed(print::bytes(glovebox_policy::schema_text(&tools).as_bytes()), 0)
        }
        PolicyCommand::Init { dir } => init(&dir),
    }
}

/// The folder that is meant: the named one, else that of the policy in force.
/// `None`: the shipped policy.
fn folder(args: &PolicyArgs, config: &Config) -> Result<Option<PathBuf>, Problem> {
    match &args.dir {
        Some(dir) if dir.is_dir() => Ok(Some(dir.clone())),
        Some(dir) => {
            let message = format!("`{}` is not a folder", dir.display());
            Err(Problem::new(Code::FileUnreadable, message)
                .with_help("name the folder of a policy; `glovebox policy init DIR` makes one to start from"))
        }
        None => house::policy_dir(config),
    }
}

/// What the report of a policy is called: its folder.
fn named(folder: Option<&Path>) -> String {
    folder.map_or_else(|| "the shipped policy".to_owned(), |folder| format!("`{}`", folder.display()))
}

fn code(holds: bool) -> u8 {
    if holds { 0 } else { Code::PolicyInvalid.exit_code() }
}

fn check(args: &PolicyArgs, config: &Config) -> Result<ExitCode, Problem> {
    let places = Places::of(config);
    let (registry, folder) = (house::registry(&places), folder(args, config)?);
    let tools = registry.manifests()?;
    let report = glovebox_policy::check(folder.as_deref(), &*tools).map_err(|error| Problem::of(&error))?;
    if args.dir.is_none() && report.problems.is_empty() {
        // What others could have written is not in force either.
        house::policy(config, &places, &registry)?;
    }
    let code = code(report.problems.is_empty());
    printed(if args.json { print::json(&report) } else { checked(&report, &named(folder.as_deref())) }, code)
}

fn checked(report: &CheckReport, name: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    for problem in &report.problems {
        writeln!(out, "{FAILED}problem{FAILED:#}  {}", escaped(&problem.to_string()))?;
    }
    for warning in &report.warnings {
        writeln!(out, "warning  {}", escaped(&warning.to_string()))?;
    }
    for hidden in &report.hidden {
        let (path, why) = (escaped_line(&hidden.hidden.path.join(".")), escaped_line(&hidden.hidden.why));
        writeln!(out, "{FAINT}not visible to rules{FAINT:#}  `{path}` of {}: {why}", hidden.capability)?;
    }
    let (style, word) = if report.problems.is_empty() { (SUCCEEDED, "valid") } else { (FAILED, "not valid") };
    let CheckReport { rules, tests, .. } = report;
    writeln!(out, "{style}{word}{style:#}  {}: {rules} rules, {tests} tests hold", escaped_line(name))
}

fn test(args: &PolicyArgs, config: &Config) -> Result<ExitCode, Problem> {
    let folder = folder(args, config)?;
    let tools = house::registry(&Places::of(config)).manifests()?;
    let report = glovebox_policy::run_tests(folder.as_deref(), &*tools).map_err(|error| Problem::of(&error))?;
    let code = code(report.failed.is_empty());
    printed(if args.json { print::json(&report) } else { tested(&report, &named(folder.as_deref())) }, code)
}

fn tested(report: &TestReport, name: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let failed: &[PolicyProblem] = &report.failed;
    for problem in failed {
        writeln!(out, "{FAILED}failed{FAILED:#}  {}", escaped(&problem.to_string()))?;
    }
    writeln!(out, "{}: {} tests hold, {} do not", escaped_line(name), report.passed, failed.len())
}

fn explain(args: &PolicyExplainArgs, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::service(config, run::SLOTS)?;
    let (asking, _) = asking::mode(config, args.call.context.ask)?;
    let submission = run::submission(&args.call, config, &service, asking)?;
    let tool = service.capability(&submission.principal, &submission.request.capability)?.manifest.capability();
    let explained = house::tokio_runtime()?.block_on(service.explain(submission))?;
    if args.json {
        return printed(print::json(&explained), 0);
    }
    let mut out = anstream::stdout().lock();
    let mut shown = Ok(());
    for line in lines(&explained, &tool.to_string()) {
        shown = shown.and_then(|()| writeln!(out, "{line}"));
    }
    drop(out);
    printed(shown, 0)
}

/// A decision for people: what, by which rules, and what would be permitted.
fn lines(explained: &Explained, tool: &str) -> Vec<String> {
    let (explanation, decision) = (&explained.explanation, &explained.explanation.decision);
    let style = if decision.verdict == Verdict::Deny { FAILED } else { SUCCEEDED };
    let mut lines = vec![format!("{style}{}{style:#}  {tool}  policy {}", decision.verdict, decision.revision.short())];
    let mut line = |name: &str, text: &str| {
        // As on a card: a text can't pass for ours by breaking the line.
        lines.push(format!("  {name:12}  {}", escaped(text).replace('\n', "\n                │ ")));
    };
    for reason in &decision.for_people {
        line("why", reason);
    }
    for error in &decision.errors {
        line("error", error);
    }
    for clause in &decision.delta {
        line("beyond", &format!("`{clause}`, which no rule names"));
    }
    for rule in &explanation.rules {
        line("rule", &format!("{} ({}:{})", rule.rule.id, rule.rule.file, rule.rule.line));
        line("", rule.text.trim());
    }
    if !decision.classes.is_empty() {
        let classes: Vec<&str> = decision.classes.iter().map(env_contracts::Name::as_str).collect();
        line("may answer", &classes.join(" or "));
    }
    if let Some(grant) = &explained.grant {
        line("granted", &format!("by {grant}: nobody is asked"));
    }
    if let Some(problem) = &explained.ends {
        line("it ends", &format!("[{}] {}", problem.code, problem.message));
    }
    for facet in &explanation.facets {
        line("command", &format!("`{}`: {}", facet.argument, told(&facet.facet)));
    }
    if let Some(narrower) = &explanation.narrower {
        let rules: Vec<&str> = narrower.rules.iter().map(|rule| rule.id.as_str()).collect();
        line("less", &format!("the same {} is {} by {}", narrower.change, Verdict::Allow, rules.join(", ")));
    }
    for hidden in &explanation.hidden {
        line("not visible", &format!("`{}`: {}", hidden.path.join("."), hidden.why));
    }
    lines
}

/// What rules see of a command line.
fn told(facet: &Facet) -> String {
    let mut text = match &facet.program {
        Some(program) => format!("one simple command, `{program}`"),
        None => "not one simple command".to_owned(),
    };
    if facet.wrapper || facet.program.is_none() {
        let may: Vec<&str> = facet.may_run.iter().map(String::as_str).collect();
        text.push_str(&format!("; it may run {}", may.join(", ")));
    }
    text
}

/// Writes the shipped policy where nothing is yet.
fn init(dir: &Path) -> Result<ExitCode, Problem> {
    let failed = |error: std::io::Error| {
        io_problem(&format!("cannot write a policy to `{}`", dir.display()), Code::FileUnreadable, &error)
    };
    // Whoever can write to it decides what runs here.
    let make = |dir: &Path| private_dir(dir).map_err(failed);
    make(dir)?;
    if fs_err::read_dir(dir).map_err(failed)?.next().is_some() {
        return Err(Problem::new(Code::Usage, format!("`{}` is not empty", dir.display()))
            .with_help("name a folder that does not exist, or is empty: nothing is overwritten"));
    }
    for (name, text) in SHIPPED {
        let path = dir.join(name);
        make(path.parent().unwrap_or(dir))?;
        let mut options = fs_err::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
    }
    printed(written(dir), 0)
}

fn written(dir: &Path) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    let dir = escaped_line(&dir.display().to_string());
    for (name, _) in SHIPPED {
        writeln!(out, "{dir}/{name}")?;
    }
    Ok(())
}
