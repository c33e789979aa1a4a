//! The thread of the host that keeps the processes of the second wall: starts
//! the zygote, has templates and cells made, learns of their ends.
//!
//! The kernel ends the zygote when the thread that started it ends, so this
//! one lives as long as the cells are wanted.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command as Program, Stdio};
use std::sync::Arc;

use env_contracts::Problem;
use glovebox_runtime::job::UngrantedImports;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::held::{Cell, Fate, Process, Template};
use super::pool::{ANSWER_MAX, Answer, Command, Shared, unavailable};
use super::wire::{self, Death, FromTemplate, FromZygote, ToTemplate, ToZygote};
use super::{Helper, INSIDE, ZYGOTE};
use crate::component::Artefact;

/// Templates that are kept. Each has some MiB of its own; the one that was not
/// used for longest goes.
const TEMPLATES: usize = 8;
/// Cells after which the zygote is started anew: all that are forked from one
/// have one layout in memory, and what leaks in one helps in the next.
const FORKS: u64 = 10_000;

pub(super) struct Keeper {
    helper: Helper,
    warm: Option<Arc<Artefact>>,
    shared: Arc<Shared>,
    zygote: Option<Zygote>,
    /// Zygotes that were replaced, until their last templates have ended.
    former: Vec<Child>,
    tended: Vec<Tended>,
}

struct Zygote {
    control: OwnedFd,
    child: Child,
    forks: u64,
}

/// A template's process.
struct Tended {
    template: Arc<Template>,
    control: OwnedFd,
    /// Who waits for its first word.
    asked: Vec<Answer>,
    /// The host's ends of the channels of cells that were asked for.
    coming: VecDeque<OwnedFd>,
    cells: HashMap<i32, Arc<Fate>>,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Loading,
    Ready,
    Retired,
    Gone,
}

impl Keeper {
    /// Starts the thread. If that fails, whoever asks for a template learns of
    /// it because the answer never comes.
    pub(super) fn start(helper: Helper, shared: Arc<Shared>) {
        let mut keeper = Self { helper, warm: None, shared, zygote: None, former: Vec::new(), tended: Vec::new() };
        let _ = std::thread::Builder::new().name("cells".into()).spawn(move || keeper.run());
    }

    fn run(&mut self) {
        while !self.shared.is_gone() {
            self.wait();
            for command in self.shared.take_commands() {
                match command {
                    Command::Make { artefact, imports, answer } => self.make(&artefact, imports, answer),
                    Command::Retire => self.retire(),
                    Command::Warm(artefact) => self.warm(artefact),
                    Command::Refill => {}
                }
            }
            for at in 0..self.tended.len() {
                self.refill(at);
            }
            self.bury();
        }
        // Everything below the zygote ends with it.
        self.lose_zygote();
        for child in &mut self.former {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Waits for something to do, and hears what templates say.
    fn wait(&mut self) {
        let mut watched = vec![PollFd::new(self.shared.waker(), PollFlags::IN)];
        watched.extend(self.tended.iter().map(|tended| PollFd::new(&tended.control, PollFlags::IN)));
        // An error means only that everything is looked at again.
        let _ = poll(&mut watched, None);
        let ready: Vec<bool> = watched.iter().skip(1).map(|fd| !fd.revents().is_empty()).collect();
        for (tended, ready) in self.tended.iter_mut().zip(ready) {
            if ready {
                tended.hear(&self.shared);
            }
        }
    }

    fn make(&mut self, artefact: &Arc<Artefact>, imports: UngrantedImports, answer: Answer) {
        let same = |tended: &&mut Tended| {
            matches!(tended.state, State::Loading | State::Ready)
                && tended.template.artefact.component() == artefact.component()
                && tended.template.imports == imports
        };
        if let Some(tended) = self.tended.iter_mut().find(same) {
            tended.answer(answer);
            return;
        }
        match self.start_template(artefact, imports) {
            Ok(control) => self.tended.push(Tended {
                template: Arc::new(Template::new(Arc::clone(artefact), imports)),
                control,
                asked: vec![answer],
                coming: VecDeque::new(),
                cells: HashMap::new(),
                state: State::Loading,
            }),
            Err(problem) => {
                // Who does not wait any more needs no answer.
                let _ = answer.send(Err(problem));
            }
        }
    }

    fn start_template(&mut self, artefact: &Artefact, imports: UngrantedImports) -> Result<OwnedFd, Problem> {
        self.renew();
        // One that died since is replaced once.
        for _ in 0..2 {
            if self.zygote.is_none() {
                self.zygote = Some(Zygote::start(&self.helper, self.warm.as_deref())?);
            }
            let Some(zygote) = &self.zygote else { break };
            let (ours, theirs) = pair(SocketType::SEQPACKET)?;
            let message = ToZygote::Template { component: artefact.component().to_owned(), imports };
            match wire::send(&zygote.control, &message, &[artefact.file().as_fd(), theirs.as_fd()]) {
                Ok(()) => {
                    // A template that does not listen holds nobody else up.
                    rustix::io::ioctl_fionbio(&ours, true).map_err(unavailable)?;
                    return Ok(ours);
                }
                Err(_) => self.lose_zygote(),
            }
        }
        Err(unavailable("the process that makes templates ends as soon as it is started"))
    }

    /// Gives up the zygote's layout in memory after so many cells.
    fn renew(&mut self) {
        if self.zygote.as_ref().is_some_and(|zygote| zygote.forks >= FORKS) {
            self.retire();
            // Without its control socket it ends when the last template has.
            self.former.extend(self.zygote.take().map(|zygote| zygote.child));
        }
    }

    /// Templates that were made without it give way to ones that have it.
    fn warm(&mut self, artefact: Arc<Artefact>) {
        if let Some(zygote) = &self.zygote {
            zygote.warm(&artefact);
        }
        self.warm = Some(artefact);
        self.retire();
    }

    fn retire(&mut self) {
        for tended in &mut self.tended {
            tended.retire(&self.shared);
        }
    }

    fn lose_zygote(&mut self) {
        if let Some(mut zygote) = self.zygote.take() {
            let _ = zygote.child.kill();
            let _ = zygote.child.wait();
        }
    }

    /// Asks for as many cells as are wanted and not yet on their way.
    fn refill(&mut self, at: usize) {
        let tended = &mut self.tended[at];
        if tended.state != State::Ready {
            return;
        }
        let there = tended.template.idle().len() + tended.coming.len();
        // Warming up takes as long as a small action: only while nobody waits,
        // and there are others if somebody comes.
        let warm = there > 0 && tended.template.waiting() == 0;
        for _ in there..tended.template.wanted() {
            let asked = pair(SocketType::STREAM).and_then(|(ours, theirs)| {
                rustix::io::ioctl_fionbio(&ours, true).map_err(unavailable)?;
                wire::send(&tended.control, &ToTemplate::Cell { warm }, &[theirs.as_fd()]).map_err(unavailable)?;
                Ok(ours)
            });
            match asked {
                Ok(ours) => tended.coming.push_back(ours),
                Err(problem) => {
                    tended.template.failed(problem.message);
                    return;
                }
            }
            if let Some(zygote) = &mut self.zygote {
                zygote.forks += 1;
            }
        }
        if self.zygote.as_ref().is_some_and(|zygote| zygote.forks >= FORKS) {
            // The next request for this component begins anew.
            self.tended[at].retire(&self.shared);
        }
    }

    /// Forgets what has ended, and retires what was not used for longest.
    fn bury(&mut self) {
        for tended in &mut self.tended {
            if tended.state == State::Gone {
                tended.forget(&self.shared);
            }
        }
        self.tended.retain(|tended| tended.state != State::Gone);
        let surplus: Vec<Arc<Template>> = self.shared.templates().iter().skip(TEMPLATES).cloned().collect();
        for tended in &mut self.tended {
            if surplus.iter().any(|template| Arc::ptr_eq(template, &tended.template)) {
                tended.retire(&self.shared);
            }
        }
        self.former.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    }
}

impl Tended {
    /// Hears what the template says, one message.
    fn hear(&mut self, shared: &Shared) {
        match wire::receive::<FromTemplate>(&self.control) {
            Ok(Some((message, fds))) => self.heard(message, fds, shared),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(None) | Err(_) => self.state = State::Gone,
        }
    }

    fn heard(&mut self, message: FromTemplate, fds: Vec<OwnedFd>, shared: &Shared) {
        match message {
            FromTemplate::Ready if self.state == State::Loading => {
                self.state = State::Ready;
                shared.templates().insert(0, Arc::clone(&self.template));
                for answer in std::mem::take(&mut self.asked) {
                    self.answer(answer);
                }
            }
            FromTemplate::Ready => {}
            FromTemplate::Failed(problem) => {
                for answer in self.asked.drain(..) {
                    let _ = answer.send(Err(problem.clone()));
                }
                self.state = State::Gone;
            }
            FromTemplate::Born { pid } => {
                let (Some(channel), Ok([handle])) = (self.coming.pop_front(), <[OwnedFd; 1]>::try_from(fds)) else {
                    return;
                };
                let fate = Arc::<Fate>::default();
                self.cells.insert(pid, Arc::clone(&fate));
                let cell = Cell { channel: channel.into(), process: Process { handle, pid, fate } };
                if self.state == State::Ready {
                    self.template.arrived(cell);
                }
            }
            FromTemplate::Stillborn(why) => {
                self.coming.pop_front();
                self.template.failed(why);
            }
            FromTemplate::Died { pid, how } => {
                if let Some(fate) = self.cells.remove(&pid) {
                    fate.seal(how);
                }
                // One that died before it was claimed is of no use.
                self.template.idle().retain(|cell| cell.process.pid != pid);
            }
        }
    }

    /// Answers at once, or when it is loaded.
    fn answer(&mut self, answer: Answer) {
        if self.state == State::Loading {
            self.asked.push(answer);
        } else {
            let _ = answer.send(Ok(Arc::clone(&self.template)));
        }
    }

    /// Has it end when its last cell has.
    fn retire(&mut self, shared: &Shared) {
        if matches!(self.state, State::Loading | State::Ready) {
            let _ = wire::send(&self.control, &ToTemplate::Retire, &[]);
            self.state = State::Retired;
            self.forget(shared);
        }
    }

    /// Nobody gets it any more; who has it learns that it is over.
    fn forget(&mut self, shared: &Shared) {
        shared.templates().retain(|template| !Arc::ptr_eq(template, &self.template));
        self.template.close();
        for answer in self.asked.drain(..) {
            let _ = answer.send(Err(unavailable("the process that loads the component ended")));
        }
        if self.state == State::Gone {
            for fate in self.cells.values() {
                fate.seal(Death::Killed(0));
            }
        }
    }
}

impl Zygote {
    /// Gives it what cells of its next templates warm up with.
    fn warm(&self, artefact: &Artefact) {
        let message = ToZygote::Warm { component: artefact.component().to_owned() };
        // If it is gone, the next message notices.
        let _ = wire::send(&self.control, &message, &[artefact.file().as_fd()]);
    }

    #[expect(clippy::disallowed_methods, reason = "the zygote")]
    fn start(helper: &Helper, warm: Option<&Artefact>) -> Result<Self, Problem> {
        let (ours, theirs) = pair(SocketType::SEQPACKET)?;
        let mut child = Program::new(&helper.program)
            .arg0(INSIDE)
            .args(&helper.arguments)
            .arg(ZYGOTE)
            .arg(std::process::id().to_string())
            .env_clear()
            .current_dir("/")
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .map_err(|error| unavailable(format!("`{}` can't be started: {error}", helper.program.display())))?;
        let wait = Timespec { tv_sec: ANSWER_MAX.as_secs().cast_signed(), tv_nsec: 0 };
        let _ = poll(&mut [PollFd::new(&ours, PollFlags::IN)], Some(&wait));
        rustix::io::ioctl_fionbio(&ours, true).map_err(unavailable)?;
        let first = wire::receive::<FromZygote>(&ours);
        rustix::io::ioctl_fionbio(&ours, false).map_err(unavailable)?;
        let problem = match first {
            Ok(Some((FromZygote::Ready, _))) => {
                let zygote = Self { control: ours, child, forks: 0 };
                if let Some(warm) = warm {
                    zygote.warm(warm);
                }
                return Ok(zygote);
            }
            Ok(Some((FromZygote::Failed(problem), _))) => problem,
            Ok(None) | Err(_) => unavailable(
                "the program that was started for it does not answer: its `main` has to begin with `maybe_enter_cell`",
            ),
        };
        let _ = child.kill();
        let _ = child.wait();
        Err(problem)
    }
}

fn pair(kind: SocketType) -> Result<(OwnedFd, OwnedFd), Problem> {
    socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)
        .map_err(|errno| unavailable(io::Error::from(errno)))
}
