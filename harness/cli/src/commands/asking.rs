//! Putting a question on the terminal, and taking the answer there.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env_contracts::{Code, Id, Name, Problem};
use glovebox_identity::{Approver, Approvers};
use glovebox_plane::{ActionService, Answering, Asking, Card, Key, Reply, Signed, Watch};
use glovebox_runtime::job::Frame;

use super::approvals::{card_lines, lasts};
use crate::args::AskMode;
use crate::config::Config;
use crate::keyboard::{Keyboard, Typed};
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
pub(super) fn mode(config: &Config, wanted: Option<AskMode>) -> Result<(Asking, bool), Problem> {
    match wanted.unwrap_or_else(|| config.get("approvals.ask")) {
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
    /// The approval that is asked about here, while it needs an answer.
    open: Arc<Mutex<Option<Id>>>,
    /// Whether the last one was answered here.
    answered: Arc<AtomicBool>,
}

impl Watcher {
    pub(super) fn new(line: Line, here: bool, service: &ActionService, config: &Config) -> Self {
        let here = here.then(|| Here {
            service: service.clone(),
            approvers: house::approvers_path(config),
            runtime: tokio::runtime::Handle::current(),
            open: Arc::default(),
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
            self.line.phase(&waiting(&card.approval));
            return;
        };
        self.line.hush();
        *open(&here.open) = Some(card.approval.clone());
        let question = Question {
            service: here.service.clone(),
            runtime: here.runtime.clone(),
            approvers: here.approvers.clone(),
            card: card.clone(),
            open: here.open.clone(),
            answered: here.answered.clone(),
        };
        // A thread of its own: it waits for a key for as long as it takes, or
        // until the answer comes from elsewhere.
        let asking = std::thread::Builder::new().name("question".into()).spawn(move || {
            if let Err(problem) = question.put() {
                crate::print::problem(&problem);
            }
        });
        if asking.is_err() {
            self.line.phase(&waiting(&card.approval));
        }
    }

    fn retired(&self, approval: &Id) {
        let Some(here) = &self.here else { return };
        open(&here.open).take_if(|asked| asked == approval);
        if !here.answered.load(Ordering::SeqCst) {
            note(&format!("\napproval {approval} was answered elsewhere, or is needed no more"));
        }
    }
}

fn open(asked: &Mutex<Option<Id>>) -> MutexGuard<'_, Option<Id>> {
    asked.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One question on this terminal.
struct Question {
    service: ActionService,
    runtime: tokio::runtime::Handle,
    approvers: std::path::PathBuf,
    card: Card,
    open: Arc<Mutex<Option<Id>>>,
    answered: Arc<AtomicBool>,
}

impl Question {
    fn needed(&self) -> bool {
        open(&self.open).as_ref() == Some(&self.card.approval)
    }

    /// Shows the card, once no other is on this terminal, and takes answers until one counts
    /// or none is needed. Whether one was given here is known before anybody can see it.
    fn put(&self) -> Result<(), Problem> {
        let id = &self.card.approval;
        let busy = || {
            note(&format!(
                "approval {id} waits for its turn on this terminal; elsewhere: `glovebox approvals show {id}`"
            ));
        };
        let Some(keyboard) = Keyboard::in_turn(busy, || self.needed()).map_err(unread)? else { return Ok(()) };
        if !self.needed() {
            return Ok(());
        }
        self.answered.store(false, Ordering::SeqCst);
        self.show();
        loop {
            let prompt = "answer (a number, and what you have to say about it): ";
            let line = match keyboard.line(prompt, || self.needed()).map_err(unread)? {
                Typed::Line(line) => line,
                Typed::Unneeded => return Ok(()),
                Typed::Over => {
                    note(&format!("no answer here: `glovebox approvals show {id}` from elsewhere"));
                    return Ok(());
                }
            };
            let text = line.trim();
            let (number, say) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
            let at = number.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
            let Some(offer) = at.and_then(|at| self.card.offers.get(at)) else {
                note(&format!("type a number from 1 to {}", self.card.offers.len()));
                continue;
            };
            let say = say.trim();
            let words = (!say.is_empty()).then(|| say.to_owned());
            self.answered.store(true, Ordering::SeqCst);
            let given = self.answer(&keyboard, &offer.id, words);
            self.answered.store(given.is_ok(), Ordering::SeqCst);
            match given {
                Ok(()) => return Ok(()),
                // Nothing can be answered any more: the action says what became of it.
                Err(problem) if matches!(problem.code, Code::ApprovalClosed | Code::Expired) => return Ok(()),
                Err(problem) => crate::print::problem(&problem),
            }
        }
    }

    fn show(&self) {
        let mut err = anstream::stderr().lock();
        let _ = writeln!(err);
        for line in card_lines(&self.card) {
            let _ = writeln!(err, "{line}");
        }
        for (at, offer) in self.card.offers.iter().enumerate() {
            let _ = writeln!(err, "  [{}] {}{}", at + 1, crate::terminal::escaped_line(&offer.does), lasts(offer));
        }
    }

    fn answer(&self, keyboard: &Keyboard, offer: &Id, words: Option<String>) -> Result<(), Problem> {
        let reply = |words: Option<String>| Reply {
            approval: self.card.approval.clone(),
            seen: Some(self.card.plan.clone()),
            answer: Answering::Offer { id: offer.clone(), narrowed: None },
            words,
        };
        let principal = who::principal();
        let by = |key| Signed { principal: &principal, key, channel: channel("terminal") };
        match self.runtime.block_on(self.service.answer(by(None), reply(words.clone()))) {
            Err(problem) if problem.code == Code::NotEligible => {
                // Somebody who is more than a user of this machine has to say so.
                let known = Approvers::load(&self.approvers).map_err(|error| Problem::of(&error))?;
                if known.list().is_empty() {
                    return Err(problem);
                }
                let typed = keyboard.line("this needs a passphrase; your name: ", || self.needed());
                let Typed::Line(name) = typed.map_err(unread)? else { return Ok(()) };
                let name: Name = name.trim().parse().map_err(|error: String| Problem::new(Code::Usage, error))?;
                let typed = keyboard.secret(PASSPHRASE, || self.needed());
                let Typed::Line(passphrase) = typed.map_err(unread)? else { return Ok(()) };
                let key = known.unlock(&name, &passphrase).map_err(|error| Problem::of(&error))?;
                self.runtime.block_on(self.service.answer(by(Some(Key::Own(&key))), reply(words))).map(drop)
            }
            answered => answered.map(drop),
        }
    }
}

/// The prompt for the passphrase of an approver.
const PASSPHRASE: &str = "passphrase: ";

/// The key of an approver, by passphrase.
///
/// # Errors
/// `credential-wrong`, `usage` where there is nowhere to type it.
pub(super) fn unlock(approvers: &Approvers, name: &Name, from_stdin: bool) -> Result<Approver, Problem> {
    let passphrase = passphrase(PASSPHRASE, from_stdin)?;
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
    let no_terminal = |why: &str| {
        Problem::new(Code::Usage, format!("there is no terminal to type a passphrase on: {why}"))
            .with_help("use --passphrase-stdin")
    };
    let keyboard = Keyboard::of_process().map_err(|error| no_terminal(&error.to_string()))?;
    match keyboard.secret(prompt, || true).map_err(|error| no_terminal(&error.to_string()))? {
        Typed::Line(line) => Ok(line),
        Typed::Over | Typed::Unneeded => Err(no_terminal("it was closed")),
    }
}

fn unread(error: std::io::Error) -> Problem {
    Problem::new(Code::Usage, format!("the terminal can't be read: {error}"))
}

fn note(line: &str) {
    let mut err = anstream::stderr().lock();
    let _ = writeln!(err, "{}", crate::print::pasted(line));
}

fn waiting(approval: &Id) -> String {
    crate::print::pasted(&format!("waiting for a person: `glovebox approvals show {approval}`"))
}

/// A door, as answers name it.
pub(super) fn channel(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| unreachable!("a word of ours: {error}"))
}
