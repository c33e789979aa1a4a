//! Every attack, made where strangers' bytes are compiled.

use std::io::{Read as _, Seek as _};
use std::os::fd::AsRawFd as _;

use glovebox_jail::{Attempt, Layers, syscall_name};

use super::super::{CompileLimits, Compiler};
use super::*;
use crate::cell::Helper;
use crate::error::WasmError;

/// What is said before the answer; the test's program says things of its own.
const ANSWER: &str = "answer: ";

/// In place of compiling: makes the attempt that the "component" names, or
/// tells what this process still has.
fn attempt(_task: Task, name: &[u8]) -> Result<Vec<u8>, String> {
    let answer = match std::str::from_utf8(name).unwrap() {
        "descriptors" => {
            // A number that is free is the one that is given when it is asked for.
            let free = |fd: &i32| rustix::io::fcntl_dupfd_cloexec(io::stdin(), *fd).unwrap().as_raw_fd() == *fd;
            let most = i32::try_from(DESCRIPTORS).unwrap();
            format!("{:?}", (0..most).filter(|fd| !free(fd)).collect::<Vec<_>>())
        }
        "privileges" => {
            let sets = rustix::thread::capabilities(None).unwrap();
            let files = rustix::thread::CapabilitySet::DAC_OVERRIDE | rustix::thread::CapabilitySet::FOWNER;
            format!("{} {}", sets.permitted.difference(files).bits(), rustix::thread::no_new_privs().unwrap())
        }
        name => match Attempt::named(name).unwrap().make() {
            Ok(()) => "done".to_owned(),
            Err(error) => error.raw_os_error().unwrap().to_string(),
        },
    };
    Ok(format!("{ANSWER}{answer}").into_bytes())
}

/// Where this test's program was started by itself, as the compiler: does what
/// it is told, behind these walls, and ends.
fn inside(walls: &Walls) {
    let about = std::env::args().next_back();
    if about.as_deref().and_then(decode).is_some() {
        let _ = serve(about.as_deref(), walls, &attempt);
        #[expect(clippy::exit, reason = "the other threads of the test's program wait for this one")]
        std::process::exit(0);
    }
}

/// Starts the test again as the compiler; its answer, and how it ended.
fn ask(test: &str, what: &str) -> (Option<String>, Result<(), WasmError>) {
    let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let arguments = vec!["--exact".into(), test.into(), "--nocapture".into()];
    let compiler = Compiler::new(Helper::new("/proc/self/exe", arguments), CompileLimits::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("artefact");
    let mut artefact = fs_err::OpenOptions::new().read(true).write(true).create_new(true).open(path).unwrap();
    let ended = compiler.compile(what.as_bytes(), &artefact, &mut |_| {});
    let mut said = String::new();
    artefact.rewind().unwrap();
    artefact.read_to_string(&mut said).unwrap();
    (said.split_once(ANSWER).map(|(_, answer)| answer.to_owned()), ended)
}

#[test]
fn every_attack_fails_inside_the_compiler() {
    inside(&shut_in);
    for row in Attempt::all() {
        let (answer, ended) = ask("every_attack_fails_inside_the_compiler", row.name());
        match (row.name(), row.forbidden_call()) {
            // Threads are what a compiler has, and they have names.
            ("name-process", _) => assert_eq!(answer.as_deref(), Some("done")),
            // Answered as if the kernel did not have them; see the filter.
            ("start-thread", _) => assert_eq!(answer.as_deref(), Some("38")),
            (name, None) if name != "call-32-bit" => assert_eq!(answer.as_deref(), Some("38"), "{name}: {ended:?}"),
            (name, call) => {
                let error = ended.unwrap_err().to_string();
                let call = call.map_or_else(|| "of another processor".into(), syscall_name);
                assert!(error.contains(&*call) && error.contains("forbidden"), "{name}: {error}");
                assert_eq!(answer, None, "{name}");
            }
        }
    }
}

/// The filter hides what Landlock does; so once without it.
#[test]
fn the_compiler_has_no_files_even_without_its_filter() {
    inside(&leave_the_world);
    let abi = Layers::probe().landlock.unwrap();
    for row in Attempt::all().iter().filter(|row| row.landlock_from().is_some_and(|from| from <= abi)) {
        let (answer, _) = ask("the_compiler_has_no_files_even_without_its_filter", row.name());
        assert!(matches!(answer.as_deref(), Some("13" | "1")), "{}: {answer:?}", row.name());
    }
}

#[test]
fn the_compiler_has_three_descriptors_and_no_privileges() {
    inside(&leave_the_world);
    let more = fs_err::File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(more.file(), rustix::io::FdFlags::empty()).unwrap();
    assert!(more.as_raw_fd() > 2, "inherited by the child, if nobody closes it");
    let ask = |what| ask("the_compiler_has_three_descriptors_and_no_privileges", what).0;
    assert_eq!(ask("descriptors").as_deref(), Some("[0, 1, 2]"));
    assert_eq!(ask("privileges").as_deref(), Some("0 true"));
}
