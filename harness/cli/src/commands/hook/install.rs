//! `glovebox hook install`: the hook in an agent's settings, beside what is
//! there.

use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use env_contracts::{Code, Problem};
use glovebox_runtime::{io_problem, read_plain};
use serde_json::{Map, Value, json};

use super::outer::GIVEN_UP;
use crate::args::{HookInstallArgs, HookPlace, HookedAgent};
use crate::commands::{files::MAX_TEXT, printed};

/// What the hook is called as: whoever starts the agent has it on their path.
const COMMAND: &str = "glovebox hook --agent claude-code";

pub(crate) fn install(args: &HookInstallArgs) -> Result<ExitCode, Problem> {
    let HookedAgent::ClaudeCode = args.agent;
    let Some(path) = settings(&args.place)? else {
        let mut settings = Map::new();
        add(&mut settings).map_err(|why| Problem::new(Code::Usage, why))?;
        let mut out = anstream::stdout().lock();
        return printed(writeln!(out, "{}", pretty(&settings)), 0);
    };
    let failed = |error: &std::io::Error| io_problem("cannot change the agent's settings", Code::Usage, error);
    let invalid = |why: &str| {
        Problem::new(Code::Usage, format!("`{}`: {why}", path.display()))
            .with_help("put it right, or add by hand what `glovebox hook install --agent claude-code --print` prints")
    };
    let mut settings = match read_plain(&path, MAX_TEXT) {
        Ok(text) => serde_json::from_str(&text).map_err(|error| invalid(&error.to_string()))?,
        Err(error) if error.kind() == ErrorKind::NotFound => Map::new(),
        Err(error) => return Err(failed(&error)),
    };
    let changed = add(&mut settings).map_err(|why| invalid(&why))?;
    if changed {
        let folder = path.parent().unwrap_or(Path::new("."));
        fs_err::create_dir_all(folder).map_err(|error| failed(&error))?;
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(|error| failed(&error))?;
        writeln!(file, "{}", pretty(&settings)).map_err(|error| failed(&error))?;
        if let Ok(meta) = fs_err::metadata(&path) {
            let _ = file.as_file().set_permissions(meta.permissions());
        }
        file.persist(&path).map_err(|error| failed(&error.error))?;
    }
    let mut err = anstream::stderr().lock();
    let said = if changed { "the hook is in" } else { "the hook was there before, in" };
    let _ = writeln!(err, "{said} {}", path.display());
    let _ = writeln!(err, "an agent that runs as you can take it out again: SECURITY.md says what it is worth");
    Ok(ExitCode::SUCCESS)
}

/// The file; `None`: it is printed.
fn settings(place: &HookPlace) -> Result<Option<PathBuf>, Problem> {
    let file = Path::new(".claude/settings.json");
    if place.print {
        return Ok(None);
    }
    if place.project {
        return Ok(Some(file.to_owned()));
    }
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    let none = || Problem::new(Code::Usage, "there is no home: $HOME names none").with_help("use --project or --print");
    Ok(Some(home.ok_or_else(none)?.join(file)))
}

/// Adds the hook, unless it is there. Returns whether something changed.
fn add(settings: &mut Map<String, Value>) -> Result<bool, String> {
    let hooks = settings.entry("hooks").or_insert_with(|| json!({}));
    let hooks = hooks.as_object_mut().ok_or("`hooks` is no object")?;
    let groups = hooks.entry("PreToolUse").or_insert_with(|| json!([]));
    let groups = groups.as_array_mut().ok_or("`hooks.PreToolUse` is no list")?;
    let ours = json!({
        "matcher": "*",
        "hooks": [{
            "type": "command", "command": COMMAND, "timeout": GIVEN_UP.as_secs(), "onFailure": "block",
        }],
    });
    if groups.contains(&ours) {
        return Ok(false);
    }
    groups.push(ours);
    Ok(true)
}

fn pretty(settings: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(settings).unwrap_or_else(|error| unreachable!("JSON always serialises: {error}"))
}
