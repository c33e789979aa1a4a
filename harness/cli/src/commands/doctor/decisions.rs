//! Who decides here, what their answers are worth, and what is remembered of
//! it.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use env_contracts::{ByteSize, Code, Problem};
use glovebox_identity::{Approvers, By, Credential, Credentials};
use glovebox_plane::PolicySource as _;
use glovebox_runtime::{Clock as _, SystemClock};
use glovebox_store::{Options, Sqlite, Store as _, VERSION};

use super::Line;
use crate::commands::action::when;
use crate::config::Config;
use crate::house;
use crate::places::Places;

/// A larger database is opened and not read as a whole: that takes longer than
/// whoever asks how things are wants to wait.
const READ_WHOLE: ByteSize = ByteSize::mib(64);

pub(super) fn look(config: &Config) -> Vec<Line> {
    let places = Places::of(config);
    let mut lines = vec![
        Line::required("policy", policy(config, &places)),
        Line::required("profiles", profiles(config)),
        Line::required("store", store(&places)),
        Line::required("stop", stop(&places)),
    ];
    let (path, doors) = (house::approvers_path(config), house::credentials_path(config));
    let credentials = Credentials::load(&doors).map_err(|error| Problem::of(&error));
    let separate = credentials.as_ref().map_or(0, separate);
    match Approvers::load(&path).map_err(|error| Problem::of(&error)) {
        Ok(approvers) => {
            let people = approvers.list().len();
            lines.push(Line::ok("approvers", registered(&path, people)));
            lines.push(Line::ok("assurance", assurance(&path, people, separate)));
        }
        Err(problem) => lines.push(Line::required("approvers", Err(problem))),
    }
    lines.push(Line::required("credentials", credentials.map(|known| let_in(&doors, &known))));
    lines
}

/// How many people the kernel tells from this user.
fn separate(credentials: &Credentials) -> usize {
    let now_ms = SystemClock.now().unix_millis;
    credentials.list().iter().filter(|known| known.is_separate() && known.in_force(now_ms)).count()
}

/// Who may call at a door, and who could let others in.
fn let_in(path: &Path, credentials: &Credentials) -> String {
    let (who, path) = (adds(path), path.display());
    let by_token = |known: &&Credential| matches!(known.by, By::Token { .. });
    let tokens = credentials.list().iter().filter(by_token).count();
    let peers = credentials.list().len() - tokens;
    format!("{tokens} by token, {peers} as users of this machine (`{path}`; {who})")
}

fn policy(config: &Config, places: &Places) -> Result<String, Problem> {
    let registry = house::registry(places);
    let (tools, folder) = (registry.manifests()?, house::policy_dir(config)?);
    let report = glovebox_policy::check(folder.as_deref(), &*tools).map_err(|error| Problem::of(&error))?;
    if let Some(first) = report.problems.first() {
        let message = format!("{} problems, the first: {first}", report.problems.len());
        return Err(Problem::new(Code::PolicyInvalid, message));
    }
    let revision = house::policy(config, places, &registry)?.current().revision();
    let name = folder.map_or_else(|| "the shipped one".to_owned(), |folder| format!("`{}`", folder.display()));
    let warnings = match report.warnings.len() {
        0 => String::new(),
        many => format!("; {many} warnings, which `glovebox policy check` lists"),
    };
    Ok(format!("{name}, revision {}: {} rules, {} tests hold{warnings}", revision.short(), report.rules, report.tests))
}

fn profiles(config: &Config) -> Result<String, Problem> {
    Ok(match crate::profiles::load(config)? {
        Some(_) => format!("`{}`", config.entry("profiles").0),
        None => "there are none: agents may find and call everything".to_owned(),
    })
}

/// The store, where there is one: whoever asks how things are makes none.
fn open(places: &Places) -> Result<Option<(Sqlite, u64)>, Problem> {
    let Ok(meta) = fs_err::metadata(places.state.join("store.db")) else { return Ok(None) };
    Ok(Some((Sqlite::open(&places.state, &Options { create: false })?, meta.len())))
}

fn store(places: &Places) -> Result<String, Problem> {
    let Some((_, size)) = open(places)? else { return Ok("none yet: the first action makes it".to_owned()) };
    if size > READ_WHOLE.0 {
        return Ok(format!("opens, version {VERSION}, {} MiB; `glovebox db check` reads all of it", size >> 20));
    }
    let faults = Sqlite::check(&places.state)?;
    match faults.first() {
        None => Ok(format!("opens, version {VERSION}, {} KiB, whole", size >> 10)),
        Some(first) => Err(Problem::new(Code::StoreCorrupt, format!("{} faults, the first: {first}", faults.len()))),
    }
}

fn stop(places: &Places) -> Result<String, Problem> {
    let halt = match open(places)? {
        Some((store, _)) => store.halted()?,
        None => None,
    };
    match halt {
        None => Ok("nobody stopped everything".to_owned()),
        Some(halt) => {
            let why = halt.reason.map_or_else(String::new, |reason| format!(": {reason}"));
            let message = format!("`{}` stopped everything at {}{why}", halt.by, when(halt.at_ms));
            Err(Problem::new(Code::Halted, message))
        }
    }
}

/// Who is registered, and who could register others.
fn registered(path: &Path, people: usize) -> String {
    let who = adds(path);
    match people {
        0 => format!("nobody answers by passphrase (`{}`; {who})", path.display()),
        1 => format!("one answers by passphrase (`{}`; {who})", path.display()),
        many => format!("{many} answer by passphrase (`{}`; {who})", path.display()),
    }
}

/// Who can add to such a list.
fn adds(path: &Path) -> &'static str {
    if is_ours(path) { "any program that runs as you can add to it" } else { "only root can add to it" }
}

/// Whether this user can write the file, or make it where it is not.
fn is_ours(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let owner = |path: &Path| fs_err::metadata(path).map(|meta| meta.uid());
    let folder = path.ancestors().skip(1).find(|folder| folder.exists()).unwrap_or(path);
    owner(path).map_or(true, |uid| uid == me) || owner(folder).map_or(true, |uid| uid == me)
}

/// What an answer shows on this install, in plain words.
fn assurance(path: &Path, people: usize, separate: usize) -> String {
    const SHELL: &str = "an agent that has a shell as your user can";
    if separate > 0 {
        return format!(
            "separate-user: {separate} answer as users of this machine that the kernel tells from this one; {SHELL} \
             answer for each of them, so agents need a user that is neither theirs nor this one"
        );
    }
    if people == 0 {
        return format!(
            "same-user: {SHELL} approve what it asks itself; what can't be undone nobody can approve, until \
             `glovebox approver add` registers somebody"
        );
    }
    if is_ours(path) {
        return format!(
            "console-login: answers by passphrase are signed and can't be forged, but {SHELL} register an approver of \
             its own, change the policy or watch a passphrase being typed; let root own both files and their folders, \
             or give the agent a user of its own"
        );
    }
    format!(
        "console-login: answers by passphrase are signed and can't be forged; {SHELL} still approve what asks for no \
         passphrase, change a policy that is yours, and start this program with another configuration"
    )
}
