//! Cells that lie: what a process could do that somebody broke into. The other
//! end of the channel is held by these tests.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream as Channel;
use std::process::Command;
use std::sync::Mutex;

use env_contracts::{Code, Stdin};
use glovebox_runtime::frames::{VIOLATION, encode, encode_report};
use glovebox_runtime::job::{Entry, Frame, Limit};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::*;
use crate::cell::held::{Fate, Process};
use crate::cell::wire::Death;

struct Count(Arc<Mutex<usize>>);

impl FrameSink for Count {
    fn frame(&mut self, frame: Frame<'_>) {
        if let Frame::Stdout(bytes) | Frame::Stderr(bytes) = frame {
            *self.0.lock().unwrap() += bytes.len();
        }
    }
}

fn job() -> Job {
    Job {
        action: "act-1".into(),
        component: String::new(),
        entry: Entry::Command { argv: vec![], stdin: Stdin::None, env: vec![] },
        args: "{}".into(),
        mounts: vec![],
        sealed: vec![],
        limits: JobLimits {
            wall: Duration::from_millis(500),
            idle: None,
            cpu: None,
            memory: 1 << 20,
            output: 1 << 20,
            storage: 0,
            inodes: 0,
        },
        imports: UngrantedImports::Refuse,
        deterministic: None,
    }
}

/// Lets `cell` have the other end of a channel; what the host makes of it,
/// whether it ended the process, and what it heard.
fn attended(cell: impl FnOnce(Channel) + Send + 'static) -> (JobReport, bool, usize) {
    attended_until(Some(Death::Killed(libc::SIGSEGV)), cell)
}

/// The same, where the kernel says this of the process's end.
#[expect(clippy::disallowed_methods, reason = "stands for a cell")]
fn attended_until(death: Option<Death>, cell: impl FnOnce(Channel) + Send + 'static) -> (JobReport, bool, usize) {
    let (host, other) = Channel::pair().unwrap();
    host.set_nonblocking(true).unwrap();
    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = i32::try_from(child.id()).unwrap();
    let handle = pidfd_open(Pid::from_raw(pid).unwrap(), PidfdFlags::empty()).unwrap();
    let fate = Arc::<Fate>::default();
    if let Some(death) = death {
        fate.seal(death);
    }
    let heard = Arc::new(Mutex::new(0));
    let cell_thread = std::thread::spawn(move || cell(other));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let job = job();
    let (report, _) = runtime.block_on(async {
        let cell = Cell { channel: host, process: Process { handle, pid, fate } };
        let stop = pin!(std::future::pending());
        attend(cell, Errand::Job(&job), vec![], Box::new(Count(Arc::clone(&heard))), stop).await
    });
    cell_thread.join().unwrap();
    let killed = std::os::unix::process::ExitStatusExt::signal(&child.wait().unwrap()) == Some(libc::SIGKILL);
    let heard = *heard.lock().unwrap();
    (report, killed, heard)
}

/// Reads the claim, as a cell does.
fn claimed(channel: &mut Channel) {
    let mut header = [0; CLAIM_HEADER];
    channel.read_exact(&mut header).unwrap();
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
    channel.read_exact(&mut vec![0; usize::try_from(length).unwrap()]).unwrap();
}

fn says(report: JobReport) -> impl FnOnce(Channel) + Send {
    move |mut channel: Channel| {
        claimed(&mut channel);
        encode_report(&mut channel, &report, Marks { received: u64::MAX, confined: 1 }).unwrap();
    }
}

fn report(end: End) -> JobReport {
    let usage = JobUsage { run: Duration::from_secs(u64::MAX / 4), memory_peak: u64::MAX, ..JobUsage::default() };
    JobReport { end, usage }
}

#[test]
fn what_can_be_true_is_believed_within_bounds() {
    let (JobReport { end, usage }, killed, _) = attended(says(report(End::Exited { code: 3 })));
    assert_eq!((end, killed), (End::Exited { code: 3 }, true));
    assert!(usage.run < Duration::from_secs(5) && usage.memory_peak == 1 << 20, "{usage:?}");
}

#[test]
fn what_can_t_be_true_is_a_violation() {
    let text = String::new;
    for end in [
        End::Returned { content: text(), artifacts: vec![] },
        End::Interrupted,
        End::Violation(text()),
        End::Refused(Problem::new(Code::PolicyDenied, text())),
    ] {
        let (seen, killed, _) = attended(says(report(end.clone())));
        assert!(matches!(seen.end, End::Violation(_)) && killed, "{end:?}: {seen:?}");
    }
    let (seen, ..) = attended(says(report(End::LimitHit(Limit::Stack))));
    assert_eq!(seen.end, End::LimitHit(Limit::Stack));
}

#[test]
fn who_breaks_the_rules_of_the_stream_is_ended() {
    let (seen, killed, _) = attended(|mut channel| {
        claimed(&mut channel);
        channel.write_all(b"HTTP/1.1 200 OK").unwrap();
        // Still there: only the host can end this.
        let _ = channel.read(&mut [0; 1]);
    });
    assert!(matches!(&seen.end, End::Violation(why) if why.contains("protocol")) && killed, "{seen:?}");

    let (seen, killed, heard) = attended(|mut channel| {
        claimed(&mut channel);
        while encode(&mut channel, &Frame::Stdout(&[b'x'; 4096])).is_ok() {}
    });
    assert!(matches!(&seen.end, End::Violation(why) if why.contains("said more")) && killed, "{seen:?}");
    assert!(heard < 2 << 20, "{heard}");
}

#[test]
fn who_never_ends_is_ended_in_time() {
    let (seen, killed, heard) = attended(|mut channel| {
        claimed(&mut channel);
        // Never silent, never too much.
        while encode(&mut channel, &Frame::Stdout(b"x")).is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    assert_eq!((seen.end, killed), (End::TimedOut(Timer::Wall), true));
    assert!(heard > 10, "{heard}");
}

#[test]
fn who_takes_no_claim_is_ended_in_time() {
    let (seen, killed, _) = attended(|mut channel| {
        // Longer than the host waits.
        let _ = channel.read(&mut [0; 1]);
        std::thread::sleep(Duration::from_secs(1));
    });
    assert_eq!((seen.end, killed), (End::TimedOut(Timer::Wall), true));
}

#[test]
fn who_closes_its_channel_and_lives_on_is_ended() {
    let (seen, killed, _) = attended_until(None, |mut channel| claimed(&mut channel));
    assert!(matches!(&seen.end, End::Violation(why) if why.contains("went on")) && killed, "{seen:?}");
}

#[test]
fn long_texts_are_cut() {
    let (seen, ..) = attended(says(report(End::Trapped("x".repeat(2 << 20)))));
    assert!(matches!(&seen.end, End::Trapped(text) if text.len() <= 4 << 10), "{seen:?}");
}

#[test]
fn a_refused_call_and_a_crash_are_named() {
    let call = u32::try_from(libc::SYS_socket).unwrap();
    let (seen, ..) = attended(move |mut channel| {
        claimed(&mut channel);
        channel.write_all(&[&[VIOLATION, 4, 0, 0, 0][..], &call.to_le_bytes()].concat()).unwrap();
    });
    assert!(matches!(&seen.end, End::Violation(why) if why.contains("`socket`")), "{seen:?}");
    let (seen, ..) = attended(|mut channel| claimed(&mut channel));
    assert!(matches!(&seen.end, End::Violation(why) if why.contains("crashed")), "{seen:?}");
}
