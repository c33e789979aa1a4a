//! The tool `fs.patch`: applies a unified diff to files of the workspace.
//!
//! It is careful rather than clever: a hunk goes where its old lines stand, to
//! the letter unless the call allows for some fuzz, and nothing is written
//! unless everything fits. No renames, modes, links or binary files.
//!
//! ```
//! use glovebox_guest::{Context, Kind, Tool as _, json};
//! use serde::Deserialize as _;
//!
//! let patch = "--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n";
//! let args = fs_patch::Args::deserialize(json!({ "patch": patch })).unwrap();
//! let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
//! // Refused before any file is looked at.
//! assert_eq!(fs_patch::FsPatch::call(args, &context).unwrap_err().kind, Kind::InvalidArgs);
//! ```

mod apply;
mod names;
mod parse;

use std::fs;

use glovebox_guest::{
    Context, Failure, Json, Kind, Place, Staged, Tool, json, make_parents, place, read, resolve, sha256,
};

use apply::Applied;
use parse::{Action, FilePatch};

/// The longest patch, in bytes. What is longer is no edit.
const MOST_PATCH: usize = 1 << 20;

/// The largest file that is patched, in bytes.
const MOST_FILE: u64 = 8 << 20;

/// All files together, in bytes: they are held in memory, old and new, until
/// every hunk fits.
const MOST_TOGETHER: usize = 32 << 20;

/// The most lines of context that may differ at either end of a hunk. With
/// more of them nothing but the change itself would be left to compare.
const MOST_FUZZ: usize = 2;

/// The most folders that are taken off names.
const MOST_STRIP: usize = 8;

/// How many rejected hunks are described; all are counted.
const NAMED_REJECTS: usize = 50;

/// The tool.
pub struct FsPatch;

/// The arguments of `fs.patch`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Args {
    patch: String,
    strip: Option<usize>,
    #[serde(default)]
    fuzz: usize,
    #[serde(default)]
    partial: bool,
    #[serde(default)]
    dry_run: bool,
}

impl Args {
    /// What a schema can't say.
    fn check(&self) -> Result<(), Failure> {
        if self.patch.len() > MOST_PATCH {
            return Err(Failure::invalid(format!("the patch is longer than {MOST_PATCH} bytes")));
        }
        if self.fuzz > MOST_FUZZ {
            return Err(Failure::invalid(format!("`fuzz` must be from 0 to {MOST_FUZZ}")));
        }
        if self.strip.is_some_and(|strip| strip > MOST_STRIP) {
            return Err(Failure::invalid(format!("`strip` must be from 0 to {MOST_STRIP}")));
        }
        Ok(())
    }
}

impl Tool for FsPatch {
    const NAME: &'static str = "fs.patch";
    const MANIFEST: &'static str = include_str!(concat!(env!("OUT_DIR"), "/manifest.json"));
    type Args = Args;

    fn call(args: Args, _context: &Context) -> Result<Json, Failure> {
        args.check()?;
        let patch = parse::parse(&args.patch, args.strip).map_err(|fault| {
            Failure::invalid(format!("line {} of the patch: {}", fault.line, fault.why))
                .with_details(json!({ "line": fault.line }))
        })?;
        run(patch, &args)
    }
}

/// Applies what was read, in memory first.
fn run(patch: Vec<FilePatch>, args: &Args) -> Result<Json, Failure> {
    let mut together = 0;
    let mut outcomes = Vec::with_capacity(patch.len());
    for file in patch {
        let outcome = Outcome::of(file, args.fuzz)?;
        together += outcome.size();
        if together > MOST_TOGETHER {
            return Err(Failure::invalid(format!("the patched files have more than {MOST_TOGETHER} bytes")));
        }
        outcomes.push(outcome);
    }
    let rejected: usize = outcomes.iter().map(|outcome| outcome.rejects.len()).sum();
    let rejects: Vec<Json> = outcomes.iter().flat_map(|outcome| outcome.rejects.clone()).collect();
    let rejects = json!(rejects.into_iter().take(NAMED_REJECTS).collect::<Vec<_>>());
    if rejected > 0 && !args.partial {
        let first = rejects[0]["reason"].as_str().unwrap_or_default();
        let path = rejects[0]["path"].as_str().unwrap_or_default();
        let message = format!("{rejected} hunks do not fit, so nothing was written; the first, in `{path}`: {first}");
        return Err(Failure::conflict(message).with_details(json!({ "rejected": rejects, "count": rejected })));
    }
    if !args.dry_run {
        write(&outcomes)?;
    }
    Ok(json!({
        "written": !args.dry_run,
        "files": outcomes.iter().filter(|outcome| outcome.changes()).map(Outcome::report).collect::<Vec<_>>(),
        "rejected": rejects,
        "rejected_count": rejected,
    }))
}

/// What a patch does to one file.
struct Outcome {
    path: String,
    action: Action,
    old: Option<String>,
    /// What will be there; nothing where the file goes or stays as it is.
    new: Option<String>,
    applied: Applied,
    rejects: Vec<Json>,
}

impl Outcome {
    /// Reads a file and applies what the patch says of it, in memory.
    fn of(file: FilePatch, fuzz: usize) -> Result<Self, Failure> {
        let FilePatch { path, action, hunks } = file;
        let mut outcome = Self { path, action, old: None, new: None, applied: Applied::default(), rejects: Vec::new() };
        match (action, place(&outcome.path)?) {
            (Action::Create, Place::File(_)) => {
                outcome.reject("the patch makes the file, and it exists already");
                return Ok(outcome);
            }
            (Action::Modify | Action::Delete, Place::Free) => {
                outcome.reject("the file does not exist");
                return Ok(outcome);
            }
            (Action::Create, Place::Free) => {}
            (Action::Modify | Action::Delete, Place::File(_)) => {
                let text = String::from_utf8(read(&outcome.path, MOST_FILE)?);
                let Ok(text) = text else {
                    outcome.reject("the file is not UTF-8 text");
                    return Ok(outcome);
                };
                outcome.old = Some(text);
            }
        }
        let mut applied = apply::apply(outcome.old.as_deref().unwrap_or_default(), &hunks, fuzz);
        for reject in &applied.rejected {
            let mut reject = json!(reject);
            reject["path"] = outcome.path.as_str().into();
            outcome.rejects.push(reject);
        }
        let text = std::mem::take(&mut applied.text);
        outcome.applied = applied;
        match action {
            // Some of its hunks must fit, or there is nothing to do.
            Action::Modify if !outcome.applied.hunks.is_empty() => outcome.new = Some(text),
            Action::Create if outcome.rejects.is_empty() => outcome.new = Some(text),
            Action::Delete if outcome.rejects.is_empty() && !text.is_empty() => {
                outcome.reject("the patch deletes the file, and its hunks leave something of it");
            }
            _ => {}
        }
        Ok(outcome)
    }

    fn reject(&mut self, reason: &str) {
        self.rejects.push(json!({ "path": self.path, "reason": reason }));
    }

    fn deletes(&self) -> bool {
        self.action == Action::Delete && self.rejects.is_empty()
    }

    /// Whether anything becomes of the file.
    fn changes(&self) -> bool {
        self.deletes() || self.new.is_some()
    }

    fn size(&self) -> usize {
        self.old.as_ref().map_or(0, String::len) + self.new.as_ref().map_or(0, String::len)
    }

    fn report(&self) -> Json {
        let action = match self.action {
            Action::Create => "created",
            Action::Modify => "modified",
            Action::Delete => "deleted",
        };
        let mut report = json!({
            "path": self.path,
            "action": action,
            "hunks": self.applied.hunks,
            "added": self.applied.added,
            "removed": self.applied.removed,
        });
        if let Some(old) = &self.old {
            report["sha256_before"] = sha256(old.as_bytes()).into();
        }
        if let Some(new) = &self.new {
            report["sha256"] = sha256(new.as_bytes()).into();
        }
        report
    }
}

/// Writes everything beside its place first, where most goes wrong; then puts
/// it there.
fn write(outcomes: &[Outcome]) -> Result<(), Failure> {
    let mut staged = Vec::new();
    for outcome in outcomes {
        if let Some(new) = &outcome.new {
            if outcome.action == Action::Create {
                make_parents(&outcome.path)?;
            }
            staged.push((outcome, Staged::new(&outcome.path, new.as_bytes())?));
        }
    }
    // As late as can be: whoever changed a file since it was read keeps it.
    for outcome in outcomes.iter().filter(|outcome| outcome.changes()) {
        unchanged(outcome)?;
    }
    let mut written: Vec<&str> = Vec::new();
    let half = |failure: Failure, written: &[&str]| {
        let message = format!("{}; {} files are written already", failure.message, written.len());
        Failure { message, ..failure }.with_details(json!({ "written": written }))
    };
    for (outcome, staged) in staged {
        staged.commit().map_err(|failure| half(failure, &written))?;
        written.push(&outcome.path);
    }
    for outcome in outcomes.iter().filter(|outcome| outcome.deletes()) {
        let removed = fs::remove_file(resolve(&outcome.path));
        removed.map_err(|error| half(Failure::writing(&outcome.path, &error), &written))?;
        written.push(&outcome.path);
    }
    Ok(())
}

/// Refuses where a file is not what it was when its hunks were applied.
fn unchanged(outcome: &Outcome) -> Result<(), Failure> {
    let now = match place(&outcome.path)? {
        Place::Free => None,
        Place::File(_) => Some(read(&outcome.path, MOST_FILE)?),
    };
    if now.as_deref() == outcome.old.as_ref().map(String::as_bytes) {
        return Ok(());
    }
    let message = format!("`{}` was changed while the patch was applied; nothing was written", outcome.path);
    Err(Failure { retryable: true, ..Failure::new(Kind::Conflict, message) })
}

glovebox_guest::export!(FsPatch);

#[cfg(test)]
mod tests;
