//! The second wall alone: for these tests, and in no other build, guests have a
//! host function that makes any system call for them. What then comes of it is
//! the kernel's answer.

use std::ffi::CString;
use std::fs::File;
use std::future::pending;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::Stdin;
use glovebox_runtime::job::{
    End, Entry, FdIndex, Frame, FrameSink, Job, JobLimits, JobReport, Mount, UngrantedImports,
};
use libc::c_long;
use wasmtime::component::Linker;

use super::{Cells, Errand, Helper};
use crate::component::Artefact;
use crate::run::Channel;
use crate::state::State;

/// Stands for the address of the text, or of memory of the host's that may be
/// written to.
const TEXT: i64 = -7_001;
const MEMORY: i64 = -7_002;
const CWD: i64 = libc::AT_FDCWD as i64;

/// Links the function that makes system calls.
pub(crate) fn add_to_linker(linker: &mut Linker<State>) -> wasmtime::Result<()> {
    type Call = (u64, String, i64, i64, i64, i64, i64);
    linker.instance("test:raw/kernel")?.func_wrap("call", |store, (number, text, a, b, c, d, e): Call| {
        let text = CString::new(text)?;
        let mut memory = [0_u64; 64];
        let place = |argument: i64| match argument {
            TEXT => text.as_ptr() as i64,
            MEMORY => memory.as_mut_ptr() as i64,
            number => number,
        };
        let [a, b, c, d, e] = [a, b, c, d, e].map(place);
        #[expect(unsafe_code, reason = "what a guest could do that has left the engine")]
        // SAFETY: none is wanted. The calls of these tests touch no memory but
        // the text and the buffer, whatever the kernel answers.
        let answer = unsafe { libc::syscall(number as c_long, a, b, c, d, e) };
        let errno = if answer < 0 { std::io::Error::last_os_error().raw_os_error().unwrap_or(0) } else { 0 };
        store.data().run.output(Channel::Out, errno.to_string().as_bytes()).map_err(wasmtime::Error::new)?;
        Ok((i64::from(errno),))
    })
}

/// What the kernel makes of a call.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    /// It does it.
    Done,
    /// It answers with this error, and the guest goes on.
    Refused(i32),
    /// It ends the cell.
    Ended,
}

/// A guest that makes one call: number, text, arguments.
fn guest(number: c_long, text: &str, arguments: [i64; 5]) -> String {
    let constants: String = arguments.iter().map(|argument| format!("(i64.const {argument}) ")).collect();
    let length = text.len();
    format!(
        r#"(component
          (import "test:raw/kernel" (instance $k (export "call" (func (param "number" u64) (param "text" string)
            (param "a" s64) (param "b" s64) (param "c" s64) (param "d" s64) (param "e" s64) (result s64)))))
          (core module $memory (memory (export "memory") 1) (data (i32.const 8) "{text}"))
          (core instance $m (instantiate $memory))
          (core func $call (canon lower (func $k "call") (memory (core memory $m "memory"))))
          (core module $main
            (import "k" "call" (func $call (param i64 i32 i32 i64 i64 i64 i64 i64) (result i64)))
            (func (export "run") (result i32)
              (drop (call $call (i64.const {number}) (i32.const 8) (i32.const {length}) {constants}))
              (i32.const 0)))
          (core instance $i (instantiate $main (with "k" (instance (export "call" (func $call))))))
          (func $f (result (result)) (canon lift (core func $i "run")))
          (instance $r (export "run" (func $f)))
          (export "wasi:cli/run@0.2.0" (instance $r)))"#
    )
}

#[expect(unsafe_code, reason = "this test compiled it")]
fn artefact(wat: &str) -> Artefact {
    let bytes = wat::parse_str(wat).unwrap();
    let compiled = crate::engine::compiling().unwrap().precompile_component(&bytes).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    std::io::Write::write_all(&mut file, &compiled).unwrap();
    // SAFETY: the compiler of this version made it, and nobody else has it.
    unsafe { Artefact::from_verified(file.into(), env_contracts::Digest::of(&bytes).to_string()) }
}

struct Ear(Arc<Mutex<String>>);

impl FrameSink for Ear {
    fn frame(&mut self, frame: Frame<'_>) {
        if let Frame::Stdout(bytes) = frame {
            self.0.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        }
    }
}

/// Runs a guest in a cell that has a folder to read and one to write.
fn in_cell(cells: &Cells, wat: &str, folder: &Path) -> (JobReport, String) {
    let artefact = Arc::new(artefact(wat));
    let open = |name: &str| OwnedFd::from(File::from(fs_err::File::open(folder.join(name)).unwrap()));
    let mount = |guest: &str, dir, writable| Mount {
        guest: guest.into(),
        dir: FdIndex(dir),
        writable,
        counted: true,
        hide: Vec::new(),
    };
    let job = Job {
        action: "act-1".into(),
        component: artefact.component().into(),
        entry: Entry::Command { argv: Vec::new(), stdin: Stdin::None, env: Vec::new() },
        args: String::new(),
        mounts: vec![mount("/read", 0, false), mount("/write", 1, true)],
        sealed: Vec::new(),
        limits: JobLimits {
            wall: Duration::from_secs(10),
            idle: None,
            cpu: None,
            memory: 16 << 20,
            output: 1 << 10,
            storage: 1 << 20,
            inodes: 10,
        },
        imports: UngrantedImports::Refuse,
        deterministic: None,
    };
    let heard = Arc::new(Mutex::new(String::new()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fds = vec![open("read"), open("write")];
    let ear = Box::new(Ear(Arc::clone(&heard)));
    let run = cells.run(&artefact, UngrantedImports::Refuse, Errand::Job(&job), fds, ear, pending());
    let (report, _) = runtime.block_on(run);
    let said = heard.lock().unwrap().clone();
    (report, said)
}

fn answer(report: &JobReport, said: &str) -> Answer {
    match (&report.end, said) {
        (End::Exited { code: 0 }, "0") => Answer::Done,
        (End::Exited { code: 0 }, errno) => Answer::Refused(errno.parse().unwrap()),
        (End::Violation(why), "") if why.contains("was refused by the second wall") => Answer::Ended,
        _ => panic!("{report:?} {said:?}"),
    }
}

#[test]
fn whatever_a_guest_asks_of_the_kernel_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["read", "write", "beside"] {
        fs_err::create_dir(dir.path().join(name)).unwrap();
        fs_err::write(dir.path().join(name).join("file"), "text").unwrap();
    }
    let path = |name: &str| dir.path().join(name).display().to_string();
    let (read, write, beside) = (path("read/file"), path("write/file"), path("beside/file"));
    let (new, beside_new) = (path("write/new"), path("beside/new"));
    let (ro, rw) = (i64::from(libc::O_RDONLY), i64::from(libc::O_RDWR));
    let exec = i64::from(libc::PROT_READ | libc::PROT_EXEC);
    let anonymous = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    let parent = i64::from(std::process::id());
    let open = |text, flags, answer| (libc::SYS_openat, text, [CWD, TEXT, flags, 0, 0], answer);
    let ended = |number, arguments| (number, "x", arguments, Answer::Ended);
    let rows = [
        // What the contract gives, and no more of it.
        open(read.as_str(), ro, Answer::Done),
        open(&read, rw, Answer::Refused(libc::EACCES)),
        open(&write, rw, Answer::Done),
        (libc::SYS_mkdirat, new.as_str(), [CWD, TEXT, 0o700, 0, 0], Answer::Done),
        // Everything else of the file system.
        open(&beside, ro, Answer::Refused(libc::EACCES)),
        open("/etc/passwd", ro, Answer::Refused(libc::EACCES)),
        open("/proc/1/environ", ro, Answer::Refused(libc::EACCES)),
        open("/proc/self/mem", rw, Answer::Refused(libc::EACCES)),
        open("/dev/null", rw, Answer::Refused(libc::EACCES)),
        (libc::SYS_mkdirat, &beside_new, [CWD, TEXT, 0o700, 0, 0], Answer::Refused(libc::EACCES)),
        (libc::SYS_unlinkat, &beside, [CWD, TEXT, 0, 0, 0], Answer::Refused(libc::EACCES)),
        (libc::SYS_symlinkat, &beside_new, [TEXT, CWD, TEXT, 0, 0], Answer::Refused(libc::EACCES)),
        // The network, in every form.
        ended(libc::SYS_socket, [i64::from(libc::AF_INET), i64::from(libc::SOCK_STREAM), 0, 0, 0]),
        ended(libc::SYS_socket, [i64::from(libc::AF_INET), i64::from(libc::SOCK_DGRAM), 0, 0, 0]),
        ended(libc::SYS_socket, [i64::from(libc::AF_UNIX), i64::from(libc::SOCK_STREAM), 0, 0, 0]),
        ended(libc::SYS_socketpair, [i64::from(libc::AF_UNIX), i64::from(libc::SOCK_STREAM), 0, MEMORY, 0]),
        ended(libc::SYS_recvmsg, [0, MEMORY, 0, 0, 0]),
        ended(libc::SYS_sendmsg, [0, MEMORY, 0, 0, 0]),
        // Other processes.
        ended(libc::SYS_clone, [0x0120_0011, 0, 0, 0, 0]),
        ended(libc::SYS_clone3, [MEMORY, 88, 0, 0, 0]),
        ended(libc::SYS_execve, [TEXT, 0, 0, 0, 0]),
        ended(libc::SYS_kill, [parent, 0, 0, 0, 0]),
        ended(libc::SYS_tgkill, [parent, parent, 0, 0, 0]),
        ended(libc::SYS_ptrace, [i64::from(libc::PTRACE_SEIZE), parent, 0, 0, 0]),
        ended(libc::SYS_process_vm_readv, [parent, MEMORY, 1, MEMORY, 1]),
        ended(libc::SYS_pidfd_open, [parent, 0, 0, 0, 0]),
        // More memory than the job may have, and more time.
        (
            libc::SYS_mmap,
            "x",
            [0, 1 << 30, i64::from(libc::PROT_READ | libc::PROT_WRITE), anonymous, -1],
            Answer::Refused(libc::ENOMEM),
        ),
        ended(
            libc::SYS_mmap,
            [0, 4096, i64::from(libc::PROT_READ), i64::from(libc::MAP_SHARED | libc::MAP_ANONYMOUS), -1],
        ),
        // New machine code.
        ended(libc::SYS_mmap, [0, 4096, exec, anonymous, -1]),
        ended(libc::SYS_mprotect, [MEMORY, 4096, exec, 0, 0]),
        ended(libc::SYS_memfd_create, [TEXT, 0, 0, 0, 0]),
        // Undoing the wall, or going around it.
        ended(libc::SYS_prctl, [i64::from(libc::PR_SET_DUMPABLE), 1, 0, 0, 0]),
        ended(libc::SYS_seccomp, [0, 0, 0, 0, 0]),
        ended(libc::SYS_rt_sigaction, [i64::from(libc::SIGSYS), MEMORY, 0, 8, 0]),
        ended(libc::SYS_prlimit64, [0, 0, MEMORY, 0, 0]),
        ended(libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0, 0, 0]),
        ended(libc::SYS_setns, [0, 0, 0, 0, 0]),
        ended(libc::SYS_mount, [TEXT, TEXT, TEXT, 0, 0]),
        ended(libc::SYS_fchmodat, [CWD, TEXT, 0o777, 0, 0]),
        ended(libc::SYS_io_uring_setup, [8, MEMORY, 0, 0, 0]),
        ended(libc::SYS_bpf, [0, MEMORY, 8, 0, 0]),
        ended(libc::SYS_keyctl, [0, 0, 0, 0, 0]),
        ended(libc::SYS_open_by_handle_at, [CWD, MEMORY, 0, 0, 0]),
    ];
    // This program is its own helper: its `main` is the test harness, which
    // comes to `becomes_a_cell`.
    let arguments = ["--exact", "--test-threads=1", "cell::raw::becomes_a_cell"].map(Into::into).to_vec();
    let cells = Cells::new(Helper::new("/proc/self/exe", arguments)).unwrap();
    for (number, text, arguments, expected) in &rows {
        let (report, said) = in_cell(&cells, &guest(*number, text, *arguments), dir.path());
        let name = glovebox_jail::syscall_name(u32::try_from(*number).unwrap());
        assert_eq!(&answer(&report, &said), expected, "{name}({arguments:?}) with {text:?}");
        if let End::Violation(why) = &report.end {
            assert!(why.contains(&format!("`{name}`")), "{why}");
        }
    }
    assert!(dir.path().join("write/new").is_dir() && dir.path().join("beside/file").exists());
}

/// No test: where the one above starts this program as its helper.
#[test]
#[expect(clippy::exit, reason = "a helper must not go on as a test harness")]
fn becomes_a_cell() {
    if super::maybe_enter_cell().is_some() {
        std::process::exit(0);
    }
}
