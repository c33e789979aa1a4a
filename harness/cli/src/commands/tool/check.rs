//! `glovebox tool check`: a tool held against its manifest.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use env_contracts::{Code, ManifestEntry, Problem, Wanted};
use glovebox_mcp::upstream::ProgramBackend;
use glovebox_plane::{Registry, Tool, Watch as _};
use glovebox_runtime::{ArtifactBytes, Backend, BackendAnswer, ClauseAnswer, ClauseReport, Clock as _, SystemClock};
use glovebox_wasm::inspect;
use serde::Serialize;

use super::generate::Wish;
use super::source::{Source, Text, fits, marked};
use super::{describe, examples, stdio, upstream};
use crate::args::{StdinArg, ToolCheckArgs};
use crate::commands::contract;
use crate::commands::printed;
use crate::config::Config;
use crate::places::Places;
use crate::print::{self, FAILED, SUCCEEDED};
use crate::progress::Progress;
use crate::terminal::{escaped, escaped_line};
use crate::{backends, house};

/// Examples run one after the other.
const SLOTS: u32 = 1;

pub(crate) fn run(args: &ToolCheckArgs, config: &Config) -> Result<ExitCode, Problem> {
    let path = Path::new(&args.tool);
    let subject = if path.is_file() || args.manifest.is_some() || args.tool.contains('/') {
        Subject::file(path, args, config)?
    } else {
        Subject::registered(&args.tool, config)?
    };
    let report = subject.check(config)?;
    if !report.passed {
        let failed = report
            .checks
            .iter()
            .filter(|check| check.failure.is_some())
            .map(|check| format!("{} {}", check.kind, check.subject));
        let message = format!("`{}` fails {}", report.tool, failed.collect::<Vec<_>>().join(", "));
        print::problem(&Problem::new(Code::ToolCheckFailed, message));
    }
    let code = if report.passed { 0 } else { Code::ToolCheckFailed.exit_code() };
    printed(if args.json { print::json(&report) } else { report.print() }, code)
}

/// What is checked, and where it is registered.
struct Subject {
    tool: Arc<Tool>,
    component: Vec<u8>,
    registry: Registry,
    places: Places,
    /// Gone with this, if it was made for the check.
    _folder: Option<tempfile::TempDir>,
}

impl Subject {
    fn registered(name: &str, config: &Config) -> Result<Self, Problem> {
        let wanted: Wanted = name.parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
        let places = Places::of(config);
        let registry = house::registry(&places);
        let tool = registry.get(&wanted)?;
        let component = match &tool.registered.bytes {
            ArtifactBytes::Embedded(bytes) => bytes.to_vec(),
            ArtifactBytes::Memory(bytes) => bytes.to_vec(),
            ArtifactBytes::File(path) => {
                fs_err::read(path).map_err(|error| Problem::new(Code::StateUnavailable, error.to_string()))?
            }
        };
        Ok(Self { tool, component, registry, places, _folder: None })
    }

    /// A file gets a state folder of its own, without built-in tools: looking
    /// at it changes nothing of the user's, and its name may be any.
    fn file(path: &Path, args: &ToolCheckArgs, config: &Config) -> Result<Self, Problem> {
        let source = Source::read(path, config)?;
        let wish = Wish { name: None, version: "0.1.0", stdin: StdinArg::Args, exports: &[] };
        let found = Text::find(path, args.manifest.as_deref(), &source, &wish)?;
        let [text] = &found.texts[..] else {
            let message = format!("`{}` exports {} functions, each a tool", path.display(), found.texts.len());
            return Err(Problem::new(Code::Usage, message).with_help(
                "`glovebox tool add` it and check each by its name, or name a manifest with --manifest FILE",
            ));
        };
        text.parse()?;
        let folder = tempfile::tempdir().map_err(|error| {
            Problem::new(Code::StateUnavailable, format!("cannot make a temporary folder: {error}"))
        })?;
        let places = Places { state: folder.path().join("state") };
        let registry = Registry::new(places.tools(), Vec::new());
        places.make()?;
        let (tool, _) = registry.add(&text.text, &source.component, SystemClock.now())?;
        Ok(Self { tool: Arc::new(tool), component: source.component, registry, places, _folder: Some(folder) })
    }

    fn check(self, config: &Config) -> Result<Report, Problem> {
        let manifest = &self.tool.manifest;
        let mut checks = Vec::new();
        if let ManifestEntry::Mcp { .. } = &manifest.entry {
            return self.elsewhere(config);
        }
        if let ManifestEntry::McpStdio { .. } = &manifest.entry {
            return self.here(config);
        }
        if manifest.contract.platform.image.is_some() {
            return self.in_an_image(config);
        }
        let inspection = inspect(&self.component, u64::MAX).map_err(|error| Problem::of(&error))?;
        checks.push(Check::new("component", "imports and exports", fits(&self.component, &inspection, manifest)));
        // A tool whose schemas don't compile can't be registered.
        checks.push(Check::passed("schemas", if manifest.output.is_some() { "input and output" } else { "input" }));

        checks.push(Check::new("schemas", "command lines", marked(manifest)));

        self.places.make()?;
        checks.extend(clauses(&self.tool, config, Arc::new(backends::wasm(config, &self.places, SLOTS)?)));

        let compiled = describe::compile(&self.component, manifest, &self.places, config);
        let runs = compiled.is_ok();
        checks.push(Check::new("component", "compiles and describes itself", compiled));
        if runs {
            checks.extend(run_examples(self.places, self.registry, &self.tool, config)?);
        }
        Ok(Report::new(&self.tool, checks))
    }
}

/// Every example, run for real.
fn run_examples(places: Places, registry: Registry, tool: &Tool, config: &Config) -> Result<Vec<Check>, Problem> {
    let runtime = house::tokio_runtime()?;
    let service = house::trial_at(places, registry, config, SLOTS)?;
    let progress = Progress::start();
    let line = progress.watch();
    let mut checks = Vec::new();
    for example in &tool.manifest.examples {
        line.phase(&format!("running example {}", example.name));
        let result = runtime.block_on(examples::run(&service, tool, example));
        checks.push(Check { kind: "example", subject: example.name.clone(), failure: result.err() });
    }
    progress.end();
    Ok(checks)
}

impl Subject {
    /// Of a tool that a server elsewhere has.
    fn elsewhere(self, config: &Config) -> Result<Report, Problem> {
        let mut checks = vec![Check::new("server", "says of it what was registered", upstream::check(&self.tool))];
        checks.extend(clauses(&self.tool, config, Arc::new(backends::upstream())));
        Ok(Report::new(&self.tool, checks))
    }

    /// Of a tool of a server that runs in an image.
    fn here(self, config: &Config) -> Result<Report, Problem> {
        self.places.make()?;
        let same = stdio::check(&self.tool, config);
        let mut checks = vec![Check::new("server", "says of it what was registered", same)];
        let backend = ProgramBackend::new(Arc::new(backends::programs(config, &self.places)?));
        checks.extend(clauses(&self.tool, config, Arc::new(backend)));
        Ok(Report::new(&self.tool, checks))
    }

    /// Of a tool that is an image.
    fn in_an_image(self, config: &Config) -> Result<Report, Problem> {
        self.places.make()?;
        let (manifest, registered) = (&self.tool.manifest, &self.tool.registered);
        let backend = Arc::new(backends::container(config, &self.places)?);
        let prepared = house::tokio_runtime()?.block_on(backend.prepare(registered, &manifest.contract, &|_| {}));
        let runs = prepared.is_ok();
        let mut checks = vec![
            Check::new("image", "the engine has it, as it was registered", prepared.map(drop)),
            Check::passed("schemas", if manifest.output.is_some() { "input and output" } else { "input" }),
            Check::new("schemas", "command lines", marked(manifest)),
        ];
        checks.extend(clauses(&self.tool, config, backend));
        if runs {
            checks.extend(run_examples(self.places, self.registry, &self.tool, config)?);
        }
        Ok(Report::new(&self.tool, checks))
    }
}

/// Each clause of a tool's contract, as a backend keeps it.
fn clauses(tool: &Tool, config: &Config, backend: Arc<dyn Backend>) -> Vec<Check> {
    match contract::report(&tool.manifest.contract, config, &[backend]) {
        Ok(report) => report.clauses.iter().map(Check::clause).collect(),
        Err(problem) => vec![Check::new("contract", "limits", Err(problem))],
    }
}

/// Everything that was checked.
#[derive(Debug, Serialize)]
struct Report {
    tool: String,
    passed: bool,
    checks: Vec<Check>,
}

#[derive(Debug, Serialize)]
struct Check {
    kind: &'static str,
    subject: String,
    /// What is wrong; nothing if it passed.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Check {
    fn passed(kind: &'static str, subject: &str) -> Self {
        Self { kind, subject: subject.to_owned(), failure: None }
    }

    fn new(kind: &'static str, subject: &str, result: Result<(), Problem>) -> Self {
        Self { kind, subject: subject.to_owned(), failure: result.err().map(|problem| problem.message) }
    }

    fn clause(line: &ClauseReport) -> Self {
        let refused = |answer: &BackendAnswer| match &answer.kind {
            ClauseAnswer::Refused { reason, remedy } => {
                Some(format!("{}: {reason}; what would do: {remedy}", answer.backend))
            }
            ClauseAnswer::Enforced { .. } | ClauseAnswer::Dropped { .. } => None,
        };
        let above = line.above_ceiling.as_ref().map(|had| format!("it asks {}, the ceiling has {had}", line.value));
        // One backend that enforces it is enough.
        let all: Vec<Option<String>> = line.answers.iter().map(refused).collect();
        let nobody =
            all.iter().all(Option::is_some).then(|| all.iter().flatten().cloned().collect::<Vec<_>>().join("; "));
        Self { kind: "contract", subject: line.clause.clone(), failure: above.or(nobody) }
    }
}

impl Report {
    fn new(tool: &Tool, checks: Vec<Check>) -> Self {
        let passed = checks.iter().all(|check| check.failure.is_none());
        Self { tool: tool.manifest.capability().to_string(), passed, checks }
    }

    fn print(&self) -> std::io::Result<()> {
        let mut out = anstream::stdout().lock();
        for Check { kind, subject, failure } in &self.checks {
            let subject = escaped_line(subject);
            match failure {
                None => writeln!(out, "{SUCCEEDED}ok{SUCCEEDED:#}      {kind}  {subject}")?,
                Some(failure) => {
                    writeln!(
                        out,
                        "{FAILED}failed{FAILED:#}  {kind}  {subject}\n          {}",
                        escaped(failure).replace('\n', "\n          ")
                    )?;
                }
            }
        }
        let failed = self.checks.iter().filter(|check| check.failure.is_some()).count();
        writeln!(out, "{}: {} checks, {failed} failed", self.tool, self.checks.len())
    }
}
