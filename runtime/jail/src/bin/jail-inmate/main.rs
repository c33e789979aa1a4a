//! A process that shuts itself in as it is told and then does one thing, for
//! the tests of this crate. It has one thread, which a test has not.
//!
//! `jail-inmate WALLS DEED FOLDER…`: walls by comma, in their order; folders
//! as `r:PATH` or `w:PATH`. It says `done`, or `refused ERRNO`, or what it was
//! asked for, on standard output, which is also where violations are reported.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, reason = "the test reads it")]

mod deeds;

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use glovebox_jail::{
    Attempt, Filter, Folder, Limits, Pid, die_with_parent, give_up_privileges, install, keep_descriptors, limit,
    report_violations, restrict_files,
};
use rustix::fs::{Mode, OFlags};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (walls, deed) = (arguments.next().unwrap(), arguments.next().unwrap());
    let folders: Vec<(OwnedFd, bool)> = arguments
        .map(|argument| {
            let (how, path) = argument.split_once(':').unwrap();
            (open_folder(path), how == "w")
        })
        .collect();
    for wall in walls.split(',').filter(|wall| !wall.is_empty()) {
        build(wall, &folders);
    }
    match perform(&deed, &folders) {
        Ok(said) => println!("{said}"),
        Err(error) => println!("refused {}", error.raw_os_error().unwrap()),
    }
}

fn open_folder(path: &str) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).unwrap()
}

fn build(wall: &str, folders: &[(OwnedFd, bool)]) {
    match wall {
        "landlock" | "landlock-but-first" => {
            let first = usize::from(wall != "landlock");
            let folders: Vec<_> = folders
                .iter()
                .skip(first)
                .map(|(dir, writable)| Folder { dir: dir.as_fd(), writable: *writable })
                .collect();
            restrict_files(&folders).unwrap();
        }
        "template" => install(Filter::Template).unwrap(),
        "cell" => install(Filter::Cell).unwrap(),
        "compile" => install(Filter::Compile).unwrap(),
        "report" => report_violations(1).unwrap(),
        "privileges" => give_up_privileges().unwrap(),
        "descriptors" => {
            let (input, output, errors) = (std::io::stdin(), std::io::stdout(), std::io::stderr());
            let mut keep = vec![errors.as_fd(), input.as_fd(), output.as_fd()];
            // The last one, so that there is a gap.
            keep.extend(folders.last().map(|(dir, _)| dir.as_fd()));
            keep_descriptors(&keep).unwrap();
        }
        "limits" => {
            let cpu = Some(Duration::from_millis(1500));
            limit(&Limits { data: 64 << 20, cpu, file_size: 1000, descriptors: 20 }).unwrap();
        }
        "parent" => die_with_parent(rustix::process::getppid().unwrap()).unwrap(),
        "stranger" => die_with_parent(Pid::from_raw(i32::MAX).unwrap()).unwrap(),
        other => panic!("no such wall: {other}"),
    }
}

fn perform(deed: &str, folders: &[(OwnedFd, bool)]) -> std::io::Result<String> {
    if let Some(attempt) = Attempt::named(deed) {
        return attempt.make().map(|()| "done".to_owned());
    }
    deeds::perform(deed, folders)
}
