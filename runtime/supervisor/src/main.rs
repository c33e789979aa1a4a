//! PID 1 of a container. See the library for what it says and hears.
//!
//! One thread and one loop: threads would count against the tool's limit of
//! processes. It shares its user with the tool, so nothing of it can be traced
//! or read (`PR_SET_DUMPABLE`), none of its descriptors reaches a child, and
//! what it reports is sealed. It never signals a process by its number: all that
//! is not itself is ended at once, whatever became of its parent or session.

mod cgroup;
mod child;
mod collect;
mod place;
mod sys;
mod wire;

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use glovebox_supervisor::{DEAD_MAN, Exited, Order, PROTOCOL, Ready, Report, Start, Why};

use child::Child;
use collect::Collecting;
use place::Placer;
use wire::Wire;

/// How often what runs is held against what it may use.
const TICK: Duration = Duration::from_millis(50);
/// What waits to be sent before more is read from whoever says it.
const QUEUE_MAX: usize = 256 << 10;
/// Ends with this where it can't be what it should be.
const UNFIT: i32 = 125;

fn main() {
    let code = match Supervisor::new() {
        Ok(mut supervisor) => supervisor.run(),
        Err(why) => {
            // Nobody listens for frames yet.
            let _ = sys::say(why);
            UNFIT
        }
    };
    // The end of PID 1 is the end of its container.
    std::process::exit(code);
}

struct Supervisor {
    wire: Wire,
    signals: std::os::fd::OwnedFd,
    /// Comes round while something runs. A time-out of `poll` would come when
    /// others of this user let it (`timerslack_ns`).
    ticks: std::os::fd::OwnedFd,
    child: Option<Child>,
    collecting: Option<Collecting>,
    placer: Placer,
    /// What the last one ended with.
    code: i32,
    heard: Instant,
}

impl Supervisor {
    fn new() -> Result<Self, &'static str> {
        // Before anything is secret, and before anybody else is there.
        sys::shut_in().map_err(|_| "cannot keep others out of this process")?;
        if std::process::id() != 1 {
            // It ends everything that it can reach.
            return Err("this is PID 1 of a container, or nothing");
        }
        let signals = sys::hear_children().map_err(|_| "cannot hear of children")?;
        let wire = Wire::new().map_err(|_| "standard input and output are not there")?;
        Ok(Self {
            wire,
            signals,
            ticks: sys::ticks(TICK).map_err(|_| "cannot keep time")?,
            child: None,
            collecting: None,
            placer: Placer::default(),
            code: 0,
            heard: Instant::now(),
        })
    }

    /// Until the host has nothing more to say, or is gone.
    fn run(&mut self) -> i32 {
        loop {
            let over = self.turn().unwrap_or(true);
            if over || self.heard.elapsed() > DEAD_MAN {
                sys::kill_all();
                return self.code;
            }
        }
    }

    /// Waits until something happens and sees to it. `true`: all is over.
    fn turn(&mut self) -> std::io::Result<bool> {
        let room = self.wire.queued() < QUEUE_MAX;
        let wait = match (&self.child, &self.collecting) {
            (None, Some(_)) if room => Duration::ZERO,
            (Some(_), _) => TICK,
            _ => DEAD_MAN,
        };
        let mut fds = sys::Fds::default();
        let input = fds.add(self.wire.input(), true, false);
        let output = fds.add(self.wire.output(), false, self.wire.queued() > 0);
        let signals = fds.add(&self.signals, true, false);
        let ticks = fds.add(&self.ticks, self.child.is_some(), false);
        let said = self.child.as_ref().map(|child| child.poll(&mut fds, room));
        fds.wait(wait)?;

        if fds.ready(output) {
            self.wire.flush()?;
        }
        if fds.ready(signals) {
            sys::drain(&self.signals);
        }
        if fds.ready(ticks) {
            sys::drain(&self.ticks);
        }
        if let (Some(child), Some(said)) = (&mut self.child, said) {
            child.hear(&fds, &said, &mut self.wire);
            child.feed(&fds, &said);
        }
        if fds.ready(input) {
            match self.listen() {
                Ok(true) => {}
                Ok(false) => return Ok(true),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        self.reap();
        if let Some(collecting) = self.collecting.as_mut().filter(|_| self.wire.queued() < QUEUE_MAX)
            && !collecting.step(&self.placer, &mut self.wire)
        {
            self.collecting = None;
        }
        self.wire.flush()?;
        Ok(false)
    }

    /// Takes what the host said. `false`: it says nothing more.
    fn listen(&mut self) -> std::io::Result<bool> {
        let Some(bytes) = self.wire.read()? else { return Ok(false) };
        self.heard = Instant::now();
        let mut orders = std::mem::replace(&mut self.wire.decoder, glovebox_supervisor::Decoder::open());
        let read = Order::read(&mut orders, &bytes, |order| self.obey(order));
        self.wire.decoder = orders;
        read.map_err(|_| ErrorKind::InvalidData.into()).map(|()| true)
    }

    fn obey(&mut self, order: Order<'_>) {
        match order {
            Order::Key(key) => {
                self.wire.seal(&key);
                let (confined, filtered) = sys::confined();
                let (uid, gid) = sys::identity();
                let limits = cgroup::limits();
                self.wire.say(&Report::Ready(Ready { protocol: PROTOCOL, uid, gid, confined, filtered, limits }));
            }
            Order::Look(places) => {
                let seen = places.iter().map(|place| sys::place(place)).collect();
                self.wire.say(&Report::Seen(seen));
            }
            Order::Start(start) => self.start(&start),
            Order::Stdin(bytes) => {
                if let Some(child) = &mut self.child {
                    child.input(bytes);
                }
            }
            Order::StdinEnd => {
                if let Some(child) = &mut self.child {
                    child.input_ends();
                }
            }
            Order::End(grace_ms) => {
                if let Some(child) = &mut self.child {
                    child.end(Why::Ordered, Duration::from_millis(grace_ms.into()));
                }
            }
            Order::Place(placing) => self.placer.place(&placing),
            Order::Content(bytes) => self.placer.content(bytes),
            Order::Placed => {
                let failed = self.placer.finish();
                self.wire.say(&Report::Placed(failed));
            }
            Order::Collect(folder) => self.collecting = Some(Collecting::new(&folder, false)),
            Order::CollectChanges(folder) => self.collecting = Some(Collecting::new(&folder, true)),
            Order::Ping(number) => self.wire.say(&Report::Pong(number)),
        }
    }

    fn start(&mut self, start: &Start) {
        if self.child.is_some() {
            return self.wire.say(&Report::NotStarted(sys::BUSY));
        }
        match Child::start(start) {
            Ok(child) => self.child = Some(child),
            Err(errno) => self.wire.say(&Report::NotStarted(errno)),
        }
    }

    /// Collects who ended, ends what may not go on, and tells the end once all
    /// that was started is gone and all it said was read.
    fn reap(&mut self) {
        let alone = sys::reap(|pid, ended| {
            if let Some(child) = &mut self.child {
                child.ended(pid, ended);
            }
        });
        let Some(child) = &mut self.child else { return };
        child.check();
        if child.over() && !alone {
            sys::kill_all();
        }
        if !(child.over() && alone && child.silent()) {
            return;
        }
        if let Some((ended, why)) = child.result() {
            self.code = ended.exit_code();
            let used = cgroup::used();
            let exited = Exited {
                ended,
                why,
                cpu_us: child.cpu_us(),
                memory_peak: used.memory_peak,
                oom_kills: used.oom_kills.saturating_sub(child.before.oom_kills),
                pids_refused: used.pids_refused.saturating_sub(child.before.pids_refused),
                full: child.full(),
            };
            self.wire.say(&Report::Exited(exited));
            self.child = None;
        }
    }
}
