//! `glovebox audit`: looking after the log.

mod checkpoint;
pub(super) mod replay;

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use env_contracts::{Code, Id, Moment, Problem};
use glovebox_identity::CheckpointKey;
use glovebox_runtime::{Clock as _, SystemClock};
use glovebox_store::{AuditReport, Checkpoint, ExportError, ExportFilter, ExportFormat};
use serde::Serialize;

use self::replay::Replayed;
use super::{db, printed};
use crate::args::{self, AuditCommand, ExportArgs, VerifyArgs};
use crate::config::Config;
use crate::print::{self, FAILED, SUCCEEDED};
use crate::terminal::escaped_line;
use crate::{house, who};

pub(crate) fn run(command: AuditCommand, config: &Config) -> Result<ExitCode, Problem> {
    match command {
        AuditCommand::Verify(args) => verify(&args, config),
        AuditCommand::Export(args) => export(&args, config),
        AuditCommand::Checkpoint { key } => sign(&key, config),
        AuditCommand::Key { file } => {
            let key = CheckpointKey::create(&file).map_err(|error| Problem::of(&error))?;
            printed(writeln!(anstream::stdout().lock(), "{}", key.public()), 0)
        }
        AuditCommand::Erase { action } => erase(&action, config),
    }
}

/// All that a verification found.
#[derive(Serialize)]
struct Report<'a> {
    sound: bool,
    /// Of what the log was compared with, besides itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Since>,
    log: &'a AuditReport,
    /// What the log adds up to, against what the store has.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'a Replayed>,
    /// Why that could not be found out.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<&'a Problem>,
}

/// The checkpoint that a log was compared with.
#[derive(Serialize)]
struct Since {
    made: Moment,
    logs: usize,
}

impl Since {
    fn of(checkpoint: &Checkpoint) -> Self {
        Self { made: Moment::at(checkpoint.at_ms / 1000), logs: checkpoint.logs.len() }
    }
}

fn verify(args: &VerifyArgs, config: &Config) -> Result<ExitCode, Problem> {
    let checkpoint = match (&args.checkpoint, &args.key) {
        (Some(file), Some(key)) => Some(checkpoint::read(file, key)?),
        _ => None,
    };
    let store = db::store(config)?;
    let log = store.verify(checkpoint.as_ref())?;
    // A log with faults may add up to nothing: that is one more of them.
    let state = replay::compare(&store);
    let sound = log.sound() && state.as_ref().is_ok_and(|state| state.faults == 0);
    let code = if sound { 0 } else { Code::AuditBroken.exit_code() };
    let report = Report {
        sound,
        checkpoint: checkpoint.as_ref().map(Since::of),
        log: &log,
        state: state.as_ref().ok(),
        unread: state.as_ref().err(),
    };
    printed(if args.json { print::json(&report) } else { report.print() }, code)
}

impl Report<'_> {
    fn print(&self) -> std::io::Result<()> {
        let mut out = anstream::stdout().lock();
        let mut fault = |text: &str| writeln!(out, "{FAILED}fault{FAILED:#}  {}", escaped_line(text));
        for finding in &self.log.findings {
            fault(&finding.to_string())?;
        }
        if let Some(state) = self.state {
            state.findings.iter().try_for_each(|finding| fault(finding))?;
        }
        if let Some(problem) = self.unread {
            fault(&format!("the log does not add up: {}", problem.message))?;
        }
        let more = |faults: u64, listed: usize| faults.saturating_sub(listed as u64);
        let unlisted = more(self.log.faults, self.log.findings.len())
            + self.state.map_or(0, |state| more(state.faults, state.findings.len()));
        if unlisted > 0 {
            writeln!(out, "  and {unlisted} more")?;
        }
        let AuditReport { logs, events, payloads, erased, .. } = self.log;
        let (style, word) = if self.sound { (SUCCEEDED, "sound") } else { (FAILED, "not sound") };
        write!(out, "{style}{word}{style:#}  {events} events in {logs} logs, {payloads} contents, {erased} erased")?;
        if let Some(Replayed { actions, grants, .. }) = self.state {
            write!(out, "; they add up to {actions} actions and {grants} grants")?;
        }
        writeln!(out)?;
        if !self.sound {
            writeln!(out, "  hint: {}", Code::AuditBroken.remedy())?;
        }
        match &self.checkpoint {
            Some(since) => writeln!(out, "  compared with the checkpoint of {} ({} logs)", since.made, since.logs),
            None => writeln!(
                out,
                "  without a checkpoint: whoever can write the file could have cut it off or written it anew unseen"
            ),
        }
    }
}

fn export(args: &ExportArgs, config: &Config) -> Result<ExitCode, Problem> {
    who::person(config)?;
    let store = db::store(config)?;
    let format = match args.format {
        args::ExportFormat::Ndjson => ExportFormat::Ndjson,
        args::ExportFormat::Cloudevents => ExportFormat::CloudEvents,
    };
    let tenant = args.session.as_ref().map(|_| who::principal().tenant);
    let filter = ExportFilter { tenant, session: args.session.clone(), ..ExportFilter::default() };
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match store.export(&mut out, format, &filter) {
        Ok(_) => printed(out.flush(), 0),
        Err(ExportError::Write(error)) => printed(Err(error), 0),
        Err(ExportError::Problem(problem)) => {
            // What was written until then is whole lines.
            let _ = out.flush();
            Err(problem)
        }
    }
}

fn sign(key: &Path, config: &Config) -> Result<ExitCode, Problem> {
    who::person(config)?;
    let key = CheckpointKey::load(key).map_err(|error| Problem::of(&error))?;
    let checkpoint = db::store(config)?.checkpoint(SystemClock.now().unix_millis)?;
    printed(print::bytes(checkpoint::signed(&checkpoint, &key).as_bytes()), 0)
}

fn erase(action: &Id, config: &Config) -> Result<ExitCode, Problem> {
    let service = house::overseer(config)?;
    let principal = who::requester_of_answers(config);
    let action = super::action::whole(&service, &principal, action)?;
    house::tokio_runtime()?.block_on(service.erase(&principal, &action))?;
    let mut line = format!("the contents of action {action} are erased; its events stay");
    let gone = db::store(config)?.scrubbed()?;
    if !gone {
        line.push_str(
            "\n  their bytes are still in `store.db-wal`: another process keeps reading or writing; once it has ended, \
             the same command again takes them away",
        );
    }
    let code = if gone { 0 } else { Code::Partial.exit_code() };
    printed(writeln!(anstream::stdout().lock(), "{line}"), code)
}
