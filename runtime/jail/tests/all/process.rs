//! Privileges, limits, descriptors, the parent, and reports.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::inmate::{Outcome, command, run};

fn said(text: &str) -> Outcome {
    Outcome::Said(text.to_owned())
}

#[test]
fn no_privilege_is_left_but_the_two_for_files() {
    let Outcome::Said(facts) = run("privileges", "privileges", &[]) else { panic!("nothing said") };
    let facts: Vec<_> = facts.split(' ').collect();
    // CAP_DAC_OVERRIDE and CAP_FOWNER, as far as they were there.
    let kept = if rustix::process::geteuid().is_root() {
        let had = rustix::thread::capabilities(None).unwrap().permitted.bits();
        format!("{:x}", had & (1 << 1 | 1 << 3))
    } else {
        "0".to_owned()
    };
    assert_eq!(facts[..3], [&*kept, &*kept, "0"]);
    assert_eq!(facts[4..], ["true", "NotDumpable"]);
    if rustix::process::geteuid().is_root() {
        assert_eq!(facts[3], "0", "bounding");
    }
}

#[test]
fn limits_are_hard() {
    let mebibytes = 64 << 20;
    let expected = format!("{mebibytes}-{mebibytes} 2-3 1000-1000 20-20 0-0 0-0 0-0 0-0");
    assert_eq!(run("limits", "limits", &[]), said(&expected));
}

#[test]
fn memory_is_limited_by_what_is_writable() {
    assert_eq!(run("", "allocate", &[]), said("room"));
    assert_eq!(run("limits", "allocate", &[]), said("no room"));
}

#[test]
fn a_file_that_grows_too_large_is_an_error_and_no_end() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(run("limits", "write-much", &[('w', folder.path())]), Outcome::Refused(libc::EFBIG));
}

#[test]
fn only_the_named_descriptors_stay_open() {
    let folder = tempfile::tempdir().unwrap();
    let folders = [('r', folder.path()), ('r', folder.path())];
    assert_eq!(run("descriptors", "descriptors", &folders), said("0 1 2 4"));
    let more = fs_err::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(more.file(), rustix::io::FdFlags::empty()).unwrap();
    assert_eq!(run("descriptors", "descriptors", &[]), said("0 1 2"));
    assert_ne!(run("", "descriptors", &[]), said("0 1 2"), "it is inherited");
}

#[test]
fn threads_are_a_compilers_alone() {
    let walls = |filter: &str| format!("privileges,landlock,report,{filter}");
    assert_eq!(run(&walls("compile"), "threads", &[]), said("12"));
    // The C library blocks signals while it makes one, and then the kernel kills.
    assert_eq!(run(&walls("template"), "threads", &[]), Outcome::Killed(libc::SIGSYS));
}

#[test]
fn a_crash_is_told_as_a_crash() {
    for walls in ["report,template,cell", "report,compile"] {
        assert_eq!(run(walls, "abort", &[]), Outcome::Killed(libc::SIGABRT), "{walls}");
    }
}

#[test]
fn a_violation_without_a_watcher_still_ends_the_process() {
    assert_eq!(run("template,cell", "connect-tcp", &[]), Outcome::Killed(libc::SIGSYS));
}

#[test]
fn an_inmate_ends_with_its_parent() {
    let mut middle = command("", "start-and-wait=parent").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(middle.stdout.take().unwrap());
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    assert_eq!(line, "here\n");
    // Its standard input stays open: only the parent's end can end it.
    let _input = middle.stdin.take();
    middle.kill().unwrap();
    middle.wait().unwrap();
    let patience = Timespec { tv_sec: 30, tv_nsec: 0 };
    let mut watched = [PollFd::new(output.get_ref(), PollFlags::IN | PollFlags::HUP)];
    assert_eq!(poll(&mut watched, Some(&patience)).unwrap(), 1, "it lives on");
    assert_eq!(output.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_process_whose_parent_is_gone_does_not_start() {
    let output = command("stranger", "limits").output().unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("Orphan"));
}
