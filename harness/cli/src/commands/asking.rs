//! Putting a question on the terminal, and taking the answer there.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use env_contracts::{Code, Id, Name, Problem};
use glovebox_identity::{Approver, Approvers};
use glovebox_plane::{ActionService, Answering, Asking, Card, Reply, Signed, Watch};
use glovebox_runtime::job::Frame;

use super::approvals::{card_lines, lasts};
use crate::args::{AskMode, ContextArgs};
use crate::config::Config;
use crate::progress::Line;
use crate::{house, who};

/// Whether a question can be put here: a person reads it and types.
fn terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// What the command line and the configuration want, on this terminal.
///
/// # Errors
/// `unsupported` where the question is to be put here and there is no
/// terminal.
pub(super) fn mode(config: &Config, args: &ContextArgs) -> Result<(Asking, bool), Problem> {
    match args.ask.unwrap_or_else(|| config.get("approvals.ask")) {
        AskMode::Auto if terminal() => Ok((Asking::Wait, true)),
        AskMode::Auto | AskMode::Leave => Ok((Asking::Leave, false)),
        AskMode::Wait => Ok((Asking::Wait, false)),
        AskMode::Never => Ok((Asking::Never, false)),
        AskMode::Here if terminal() => Ok((Asking::Wait, true)),
        AskMode::Here => Err(Problem::new(Code::Unsupported, "there is no terminal here to put a question on")
            .with_help("use --ask wait or --ask leave, and answer with `glovebox approvals`")),
    }
}

/// Watches an action: its progress, and its questions where they are put
/// here.
pub(super) struct Watcher {
    line: Line,
    here: Option<Here>,
}

struct Here {
    service: ActionService,
    approvers: std::path::PathBuf,
    runtime: tokio::runtime::Handle,
    /// The question that is on the terminal: one at a time.
    busy: Arc<Mutex<()>>,
    /// Whether the last one was answered here.
    answered: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(line: Line, here: bool, service: &ActionService, config: &Config) -> Self {
        let here = here.then(|| Here {
            service: service.clone(),
            approvers: house::approvers_path(config),
            runtime: tokio::runtime::Handle::current(),
            busy: Arc::default(),
            answered: Arc::default(),
        });
        Self { line, here }
    }
}

impl Watch for Watcher {
    fn phase(&self, line: &str) {
        self.line.phase(line);
    }

    fn frame(&self, frame: &Frame<'_>) {
        self.line.frame(frame);
    }

    fn asked(&self, card: &Card) {
        let Some(here) = &self.here else {
            self.line.phase(&format!("waiting for a person: glovebox approvals show {}", card.approval));
            return;
        };
        self.line.hush();
        let (service, approvers) = (here.service.clone(), here.approvers.clone());
        let (runtime, busy, shown) = (here.runtime.clone(), here.busy.clone(), card.clone());
        let answered = here.answered.clone();
        // A thread of its own: it waits for a key for as long as it takes, and
        // is left behind when the answer comes from elsewhere.
        let asking = std::thread::Builder::new().name("question".into()).spawn(move || {
            let _one = busy.lock().unwrap_or_else(PoisonError::into_inner);
            answered.store(false, Ordering::SeqCst);
            if let Err(problem) = question(&service, &runtime, &approvers, &shown, &answered) {
                crate::print::problem(&problem);
            }
        });
        if asking.is_err() {
            self.line.phase(&format!("waiting for a person: glovebox approvals show {}", card.approval));
        }
    }

    fn retired(&self, approval: &Id) {
        if self.here.as_ref().is_some_and(|here| !here.answered.load(Ordering::SeqCst)) {
            note(&format!("\napproval {approval} was answered elsewhere, or is needed no more"));
        }
    }
}

/// Shows a card and takes answers until one counts, or none is needed.
/// `answered` says whether one was given here, before anybody can see it.
fn question(
    service: &ActionService,
    runtime: &tokio::runtime::Handle,
    approvers: &std::path::Path,
    card: &Card,
    answered: &AtomicBool,
) -> Result<(), Problem> {
    {
        let mut err = anstream::stderr().lock();
        let _ = writeln!(err);
        for line in card_lines(card) {
            let _ = writeln!(err, "{line}");
        }
        for (at, offer) in card.offers.iter().enumerate() {
            let _ = writeln!(err, "  [{}] {}{}", at + 1, crate::terminal::escaped_line(&offer.does), lasts(offer));
        }
    }
    loop {
        let Some(text) = ask("answer (a number, and what you have to say about it): ")? else {
            note(&format!("no answer here: `glovebox approvals show {}` from elsewhere", card.approval));
            return Ok(());
        };
        let (number, say) = text.split_once(char::is_whitespace).unwrap_or((&text, ""));
        let Some(offer) = number.parse::<usize>().ok().and_then(|at| card.offers.get(at.checked_sub(1)?)) else {
            note(&format!("type a number from 1 to {}", card.offers.len()));
            continue;
        };
        let say = say.trim();
        let words = (!say.is_empty()).then(|| say.to_owned());
        answered.store(true, Ordering::SeqCst);
        let given = answer(service, runtime, approvers, card, &offer.id, words);
        answered.store(given.is_ok(), Ordering::SeqCst);
        match given {
            Ok(()) => return Ok(()),
            // Nothing can be answered any more: the action says what became of it.
            Err(problem) if matches!(problem.code, Code::ApprovalClosed | Code::Expired) => return Ok(()),
            Err(problem) => crate::print::problem(&problem),
        }
    }
}

fn answer(
    service: &ActionService,
    runtime: &tokio::runtime::Handle,
    approvers: &std::path::Path,
    card: &Card,
    offer: &Id,
    words: Option<String>,
) -> Result<(), Problem> {
    let reply = |words: Option<String>| Reply {
        approval: card.approval.clone(),
        seen: Some(card.plan.clone()),
        answer: Answering::Offer { id: offer.clone(), narrowed: None },
        words,
    };
    let principal = who::principal();
    let by = |key| Signed { principal: &principal, key, channel: channel("terminal") };
    match runtime.block_on(service.answer(by(None), reply(words.clone()))) {
        Err(problem) if problem.code == Code::NotEligible => {
            // Somebody who is more than a user of this machine has to say so.
            let known = Approvers::load(approvers).map_err(|error| Problem::of(&error))?;
            if known.list().is_empty() {
                return Err(problem.with_help(
                    "this needs somebody who answers by passphrase: `glovebox approver add NAME` registers one",
                ));
            }
            let Some(name) = ask("this needs a passphrase; your name: ")? else { return Ok(()) };
            let name: Name = name.trim().parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
            let key = unlock(&known, &name, false)?;
            runtime.block_on(service.answer(by(Some(&key)), reply(words))).map(drop)
        }
        answered => answered.map(drop),
    }
}

/// The key of an approver, by passphrase.
///
/// # Errors
/// `credential-wrong`, `usage` where there is nowhere to type it.
pub(super) fn unlock(approvers: &Approvers, name: &Name, from_stdin: bool) -> Result<Approver, Problem> {
    let passphrase = passphrase("passphrase: ", from_stdin)?;
    approvers.unlock(name, &passphrase).map_err(|error| Problem::of(&error))
}

/// A passphrase, typed without being shown.
///
/// # Errors
/// `usage` where there is nowhere to type it.
pub(super) fn passphrase(prompt: &str, from_stdin: bool) -> Result<String, Problem> {
    if from_stdin {
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|error| Problem::new(Code::Usage, format!("standard input: {error}")))?;
        return Ok(line.trim_end_matches(['\n', '\r']).to_owned());
    }
    rpassword::prompt_password(prompt).map_err(|error| {
        Problem::new(Code::Usage, format!("there is no terminal to type a passphrase on: {error}"))
            .with_help("use --passphrase-stdin")
    })
}

/// A line that a person types, after the question: what was typed before it
/// answers nothing. `None`: there will be no more.
fn ask(prompt: &str) -> Result<Option<String>, Problem> {
    let failed = |errno: rustix::io::Errno| {
        Problem::new(Code::Usage, format!("standard input: {}", std::io::Error::from(errno)))
    };
    let stdin = rustix::stdio::stdin();
    let mut byte = [0];
    while ready(stdin) && rustix::io::read(stdin, &mut byte).map_err(failed)? > 0 {}
    {
        let mut err = anstream::stderr().lock();
        let _ = write!(err, "{prompt}");
        let _ = err.flush();
    }
    // Byte by byte, and not ahead: the next question has lines of its own.
    let mut line = Vec::new();
    loop {
        match rustix::io::read(stdin, &mut byte) {
            Ok(0) if line.is_empty() => return Ok(None),
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) => line.push(byte[0]),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(failed(errno)),
        }
    }
    Ok(Some(String::from_utf8_lossy(&line).trim().to_owned()))
}

/// Whether something was typed already.
fn ready(stdin: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut polled, Some(&now)).is_ok_and(|count| count > 0) && polled[0].revents().contains(PollFlags::IN)
}

fn note(line: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{line}");
}

/// A door, as answers name it.
pub(super) fn channel(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"))
}
