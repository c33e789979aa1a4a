//! The outer process: whatever the inner one does, it says no unless that said
//! something clear, and in time.

use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Child, Command, ExitCode, ExitStatus, Output, Stdio};
use std::time::Duration;

use env_contracts::Span;
use rustix::process::{Pid, Signal, kill_process};

use super::answer::Answer;
use crate::args::HookArgs;

/// The exit code that stops a call: agents take any other for no objection.
const BLOCKS: u8 = 2;

/// The longest wait for a person.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(50);

/// What the inner process may take beside that wait: to start, to open the
/// store behind others, to end.
const BESIDE: Duration = Duration::from_secs(5);

/// When an agent gives a hook up, and goes ahead: the shortest of those known,
/// and what `hook install` writes down.
pub(super) const GIVEN_UP: Duration = Duration::from_secs(60);

const _: () = assert!(MAX_WAIT.as_secs() + BESIDE.as_secs() < GIVEN_UP.as_secs(), "we are heard before that");

/// Where whatever is written is gone.
const NULL: &str = "/dev/null";

/// The longest reason on standard error, in characters.
const MAX_SAID: usize = 4000;

/// Has the inner process decide, and says what the agent is to be told.
pub(crate) fn guard(args: &HookArgs) -> ExitCode {
    // A panic of ours is a no, too: its own exit code would be none.
    let guarded = catch_unwind(AssertUnwindSafe(|| outer(args.wait)));
    match guarded.unwrap_or_else(|_| Err("the hook broke down".to_owned())) {
        Ok(answer) => match say(&answer) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => block(&format!("nobody hears the answer: {error}")),
        },
        Err(why) => block(&why),
    }
}

fn say(answer: &Answer) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    // What was closed is this by now, and takes everything.
    if is_null(&rustix::fs::fstat(&out)?) {
        return Err(std::io::Error::other("standard output is closed, or leads nowhere"));
    }
    out.write_all(format!("{}\n", answer.line()).as_bytes())?;
    out.flush()
}

/// Whether it is the device that forgets everything.
fn is_null(stat: &rustix::fs::Stat) -> bool {
    rustix::fs::stat(NULL).is_ok_and(|null| (null.st_rdev, null.st_mode) == (stat.st_rdev, stat.st_mode))
        && rustix::fs::FileType::from_raw_mode(stat.st_mode).is_char_device()
}

/// The way of saying no that needs nothing but an exit code.
fn block(why: &str) -> ExitCode {
    let why: String = why.trim().chars().take(MAX_SAID).collect();
    let _ = writeln!(std::io::stderr().lock(), "glovebox hook: denied: {why}");
    ExitCode::from(BLOCKS)
}

/// What came of the inner process.
enum Came {
    Ended(std::io::Result<Output>),
    Signal,
    TooLate,
}

fn outer(wait: Span) -> Result<Answer, String> {
    if wait.0 > MAX_WAIT {
        return Err(format!(
            "--wait {wait}: an agent gives its hook up after a minute; wait at most {}",
            Span(MAX_WAIT)
        ));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    let came = runtime.block_on(async {
        // Before there is anything to end.
        let mut told = told_to_end()?;
        let child = inner().map_err(|error| format!("cannot start the part that decides: {error}"))?;
        let pid = child.id();
        let (ended, mut end) = tokio::sync::oneshot::channel();
        let waiter = std::thread::Builder::new().name("hook".into()).spawn(move || {
            let _ = ended.send(child.wait_with_output());
        });
        if let Err(error) = waiter {
            kill(pid);
            return Err(format!("cannot wait for the part that decides: {error}"));
        }
        let came = tokio::select! {
            biased;
            ended = &mut end => return ended.map(Came::Ended).map_err(|_| "the hook broke down".to_owned()),
            () = told.any() => Came::Signal,
            () = tokio::time::sleep(wait.0 + BESIDE) => Came::TooLate,
        };
        kill(pid);
        Ok(came)
    })?;
    match came {
        Came::Ended(output) => {
            let output = output.map_err(|error| format!("the part that decides can't be heard: {error}"))?;
            judged(output.status, &output.stdout, &output.stderr)
        }
        Came::Signal => Err("it was told to end before it was decided".to_owned()),
        Came::TooLate => Err("it took too long to decide".to_owned()),
    }
}

/// What the inner process said: an answer only where it ended well and said
/// one, and nothing else.
fn judged(status: ExitStatus, said: &[u8], complained: &[u8]) -> Result<Answer, String> {
    let complained = String::from_utf8_lossy(complained);
    let complained = complained.trim();
    match Answer::read(said) {
        Some(answer) if status.success() => Ok(answer),
        _ if !status.success() && !complained.is_empty() => Err(complained.to_owned()),
        _ => Err(format!("the part that decides ended without an answer ({status}) {complained}")),
    }
}

/// Starts the inner process: this program, with the same arguments.
#[expect(clippy::disallowed_methods, reason = "the inner process is this program once more")]
fn inner() -> std::io::Result<Child> {
    let arguments = std::env::args_os().skip(1);
    Command::new("/proc/self/exe").args(arguments).arg("--inside").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// Ends the inner process, which nobody reaped yet.
fn kill(pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
}

/// Whatever tells a program to end.
struct Told([tokio::signal::unix::Signal; 3]);

fn told_to_end() -> Result<Told, String> {
    use tokio::signal::unix::{SignalKind, signal};
    let listen = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
    Ok(Told([listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?, listen(SignalKind::hangup())?]))
}

impl Told {
    async fn any(&mut self) {
        let [int, term, hup] = &mut self.0;
        tokio::select! {
            _ = int.recv() => {}
            _ = term.recv() => {}
            _ = hup.recv() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;

    /// The ways in which a process ends, as the kernel tells them: a panic is 101,
    /// and a signal has no code at all.
    #[test]
    fn only_an_answer_of_a_process_that_ended_well_counts() {
        let allow = format!("{}\n", Answer::allow("by a rule").line());
        let exited = |code: i32| ExitStatus::from_raw(code << 8);
        assert_eq!(judged(exited(0), allow.as_bytes(), b""), Ok(Answer::allow("by a rule")));
        let signals = [6, 9, 11, 15].map(ExitStatus::from_raw);
        for status in [1, 2, 26, 101].map(exited).into_iter().chain(signals) {
            let why = judged(status, allow.as_bytes(), b"").unwrap_err();
            assert!(why.contains("without an answer"), "{status}: {why}");
            assert_eq!(judged(status, b"", b"thread 'main' panicked"), Err("thread 'main' panicked".to_owned()));
        }
        for said in ["", "{}", "allow\n"] {
            judged(exited(0), said.as_bytes(), b"").unwrap_err();
        }
    }
}
