//! What a person types: one question at a time on each terminal, over all
//! processes, and given up when it is no longer needed.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios};

/// How often a wait looks whether anybody still needs the answer: what a
/// person does not notice, at no cost that shows.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The longest line that is taken, in bytes: as long as what can be said with
/// an answer. What is typed beyond it is dropped.
const MAX_LINE: usize = 4096;

/// The terminal as it was before something was typed unseen.
static BEFORE: Mutex<Option<(OwnedFd, Termios)>> = Mutex::new(None);

/// What became of a prompt.
pub(crate) enum Typed {
    /// A line, without its end.
    Line(String),
    /// There will be no more.
    Over,
    /// Nobody needs the answer any more.
    Unneeded,
}

/// The terminal, as this process alone reads it.
pub(crate) struct Keyboard(OwnedFd);

impl Keyboard {
    /// The terminal of this process, wherever its standard input comes from.
    ///
    /// # Errors
    /// There is none.
    pub(crate) fn of_process() -> io::Result<Self> {
        Ok(Self(open("/dev/tty")?))
    }

    /// The terminal behind the standard input, once no other question is on
    /// it: two that wait for one line would take each other's. `busy` is called where
    /// it has to be waited for. `None`: nobody needs it any more.
    pub(crate) fn in_turn(busy: impl FnOnce(), needed: impl Fn() -> bool) -> io::Result<Option<Self>> {
        // Opened anew: what is inherited is one with the descriptors of others, and so are its locks.
        let tty = match open("/proc/self/fd/0") {
            Ok(tty) => tty,
            // It was somebody else's, before they became this user.
            Err(_) => rustix::io::dup(rustix::stdio::stdin())?,
        };
        let mut busy = Some(busy);
        loop {
            match rustix::fs::flock(&tty, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Some(Self(tty))),
                Err(Errno::WOULDBLOCK | Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
            if let Some(busy) = busy.take() {
                busy();
            }
            if !needed() {
                return Ok(None);
            }
            std::thread::sleep(std::time::Duration::from_nanos(LOOK.tv_nsec.unsigned_abs()));
        }
    }

    /// A line, typed after the prompt: what was typed before it answers
    /// nothing.
    pub(crate) fn line(&self, prompt: &str, needed: impl Fn() -> bool) -> io::Result<Typed> {
        rustix::termios::tcflush(&self.0, QueueSelector::IFlush)?;
        {
            let mut err = anstream::stderr().lock();
            let _ = write!(err, "{prompt}");
            let _ = err.flush();
        }
        let mut line = Vec::new();
        loop {
            match self.byte(&needed)? {
                Byte::Unneeded => return Ok(Typed::Unneeded),
                Byte::Over if line.is_empty() => return Ok(Typed::Over),
                Byte::Over | Byte::Is(b'\n') => return Ok(Typed::Line(text(&line))),
                Byte::Is(byte) => push(&mut line, byte),
            }
        }
    }

    /// A line that is not shown. The terminal hides it before the prompt is there to be answered.
    pub(crate) fn secret(&self, prompt: &str, needed: impl Fn() -> bool) -> io::Result<Typed> {
        let _hidden = self.hide()?;
        let mut out = fs_err::OpenOptions::new().write(true).open("/dev/tty")?;
        out.write_all(prompt.as_bytes())?;
        let mut line = Vec::new();
        let typed = loop {
            match self.byte(&needed)? {
                Byte::Unneeded => break Typed::Unneeded,
                Byte::Over | Byte::Is(CTRL_D) if line.is_empty() => break Typed::Over,
                Byte::Over | Byte::Is(b'\n' | b'\r') => break Typed::Line(text(&line)),
                Byte::Is(CTRL_C) => {
                    restore();
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::INT)?;
                    break Typed::Over;
                }
                Byte::Is(CTRL_U) => line.clear(),
                Byte::Is(BACKSPACE | DELETE) => while line.pop().is_some_and(|byte| (0x80..0xC0).contains(&byte)) {},
                Byte::Is(byte) => push(&mut line, byte),
            }
        };
        out.write_all(b"\n")?;
        Ok(typed)
    }

    fn byte(&self, needed: &impl Fn() -> bool) -> io::Result<Byte> {
        loop {
            let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut polled, Some(&LOOK)) {
                Ok(0) | Err(Errno::INTR) if !needed() => return Ok(Byte::Unneeded),
                Ok(0) | Err(Errno::INTR) => continue,
                Ok(_) => {}
                Err(errno) => return Err(errno.into()),
            }
            let mut byte = [0];
            match rustix::io::read(&self.0, &mut byte) {
                Ok(0) | Err(Errno::IO) => return Ok(Byte::Over),
                Ok(_) => return Ok(Byte::Is(byte[0])),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Shows nothing that is typed from here on, and drops what was typed before.
    fn hide(&self) -> io::Result<Hidden> {
        let before = rustix::termios::tcgetattr(&self.0)?;
        let mut now = before.clone();
        now.local_modes.remove(LocalModes::ECHO | LocalModes::ECHONL | LocalModes::ICANON | LocalModes::ISIG);
        now.special_codes[SpecialCodeIndex::VMIN] = 1;
        now.special_codes[SpecialCodeIndex::VTIME] = 0;
        *kept() = Some((self.0.as_fd().try_clone_to_owned()?, before));
        rustix::termios::tcsetattr(&self.0, OptionalActions::Flush, &now)?;
        Ok(Hidden)
    }
}

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const DELETE: u8 = 127;

enum Byte {
    Is(u8),
    Over,
    Unneeded,
}

/// While it lives, the terminal shows nothing that is typed.
struct Hidden;

impl Drop for Hidden {
    fn drop(&mut self) {
        restore();
    }
}

/// Gives the terminal back as it was. Whoever ends this process while a
/// passphrase is typed calls it first.
pub(crate) fn restore() {
    if let Some((tty, before)) = kept().take() {
        let _ = rustix::termios::tcsetattr(&tty, OptionalActions::Now, &before);
    }
}

fn kept() -> MutexGuard<'static, Option<(OwnedFd, Termios)>> {
    BEFORE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Not blocking: another program may be faster with what was there to read.
fn open(path: &str) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

fn push(line: &mut Vec<u8>, byte: u8) {
    if line.len() < MAX_LINE {
        line.push(byte);
    }
}

fn text(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}
