//! What an intruder would try, to be tried where it must fail.

mod files;
mod kernel;
mod memory;
mod network;
mod processes;

use std::io;

/// One attack on the host, as native code in this process would make it.
///
/// Nothing is exploited: each asks the kernel for something that a process
/// shut in has no business with. Where nothing forbids it, it harms nobody.
#[derive(Debug)]
pub struct Attempt {
    name: &'static str,
    /// The Landlock ABI from which on Landlock alone refuses it.
    landlock: Option<u32>,
    /// The call that the filters of a cell refuse.
    seccomp: Option<libc::c_long>,
    call: fn() -> io::Result<()>,
}

impl Attempt {
    /// Every one.
    pub fn all() -> &'static [Self] {
        ALL
    }

    /// The one with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|attempt| attempt.name == name)
    }

    /// A short name: `connect-tcp`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Which layers refuse it inside a cell, each of them alone: `Landlock`,
    /// `seccomp` or `Landlock and seccomp`.
    pub fn forbidden_by(&self) -> &'static str {
        match (self.landlock, self.seccomp) {
            (Some(_), None) => "Landlock",
            (None, _) => "seccomp",
            (Some(_), Some(_)) => "Landlock and seccomp",
        }
    }

    /// The oldest Landlock ABI that refuses it without a filter.
    pub fn landlock_from(&self) -> Option<u32> {
        self.landlock
    }

    /// The system call that the filters of a cell refuse; `None` where the
    /// filters let it pass, or end the process without a word.
    pub fn forbidden_call(&self) -> Option<u32> {
        self.seccomp.and_then(|call| u32::try_from(call).ok())
    }

    /// Tries it. `Ok` means that nothing held it back: the kernel did it, or
    /// got as far as looking at arguments that are wrong on purpose.
    ///
    /// Under a filter this usually does not return. `execute` does not return
    /// when it succeeds: the process then is another program, which ends with
    /// code 0. `call-32-bit` ends the process by a signal where the kernel has
    /// no such calls.
    ///
    /// # Errors
    /// What the kernel said, refusing.
    pub fn make(&self) -> io::Result<()> {
        (self.call)()
    }
}

/// One line of the table.
const fn attempt(
    name: &'static str,
    landlock: Option<u32>,
    seccomp: Option<libc::c_long>,
    call: fn() -> io::Result<()>,
) -> Attempt {
    Attempt { name, landlock, seccomp, call }
}

/// Landlock ABIs: from the first on; TCP; scopes; pathname sockets; UDP.
const FIRST: Option<u32> = Some(1);
const TCP: Option<u32> = Some(crate::layers::LANDLOCK_NEEDED);
const SCOPES: Option<u32> = Some(crate::layers::LANDLOCK_SCOPES);
const SOCKET_FILES: Option<u32> = Some(9);
const UDP: Option<u32> = Some(10);

static ALL: &[Attempt] = &[
    attempt("read-passwd", FIRST, None, files::read_passwd),
    attempt("read-environment-of-init", FIRST, None, files::read_environment_of_init),
    attempt("read-environment-of-parent", FIRST, None, files::read_environment_of_parent),
    attempt("read-own-memory-map", FIRST, None, files::read_own_memory_map),
    attempt("write-own-memory-file", FIRST, None, files::write_own_memory_file),
    attempt("list-root", FIRST, None, files::list_root),
    attempt("write-outside", FIRST, None, files::write_outside),
    attempt("change-mode", None, Some(libc::SYS_fchmodat), files::change_mode),
    attempt("change-owner", None, Some(libc::SYS_fchownat), files::change_owner),
    attempt("make-device", None, Some(libc::SYS_mknodat), files::make_device),
    attempt("open-by-handle", None, Some(libc::SYS_open_by_handle_at), files::open_by_handle),
    attempt("watch-files", None, Some(libc::SYS_inotify_init1), files::watch),
    attempt("change-root", None, Some(libc::SYS_chroot), files::change_root),
    attempt("mount", FIRST, Some(libc::SYS_mount), files::mount),
    attempt("connect-tcp", TCP, Some(libc::SYS_socket), network::connect_tcp),
    attempt("listen-tcp", TCP, Some(libc::SYS_socket), network::listen_tcp),
    attempt("send-udp", UDP, Some(libc::SYS_socket), network::send_udp),
    attempt("connect-unix", SOCKET_FILES, Some(libc::SYS_socket), network::connect_unix),
    attempt("talk-to-kernel", None, Some(libc::SYS_socket), network::netlink),
    attempt("make-socketpair", None, Some(libc::SYS_socketpair), network::socketpair),
    attempt("send-descriptor", None, Some(libc::SYS_sendmsg), network::send_descriptor),
    attempt("receive-descriptor", None, Some(libc::SYS_recvmsg), network::receive_descriptor),
    attempt("signal-parent", SCOPES, Some(libc::SYS_kill), processes::signal_parent),
    attempt("signal-thread-of-parent", SCOPES, Some(libc::SYS_tgkill), processes::signal_thread_of_parent),
    attempt("signal-by-descriptor", None, Some(libc::SYS_fcntl), processes::signal_by_descriptor),
    attempt("trace-parent", FIRST, Some(libc::SYS_ptrace), processes::trace_parent),
    attempt("read-memory-of-parent", FIRST, Some(libc::SYS_process_vm_readv), processes::read_memory_of_parent),
    attempt("watch-parent", None, Some(libc::SYS_pidfd_open), processes::watch_parent),
    attempt("take-descriptor", None, Some(libc::SYS_pidfd_getfd), processes::take_descriptor),
    attempt("limit-parent", None, Some(libc::SYS_prlimit64), processes::limit_parent),
    attempt("execute", FIRST, Some(libc::SYS_execve), processes::execute),
    attempt("fork", None, Some(libc::SYS_clone), processes::fork),
    attempt("start-thread", None, Some(libc::SYS_clone3), processes::start_thread),
    attempt("new-user-namespace", None, Some(libc::SYS_unshare), processes::new_user_namespace),
    attempt("enter-namespace", None, Some(libc::SYS_setns), processes::enter_namespace),
    attempt("become-root", None, Some(libc::SYS_setresuid), processes::become_root),
    attempt("map-executable", None, Some(libc::SYS_mmap), memory::map_executable),
    attempt("make-executable", None, Some(libc::SYS_mprotect), memory::make_executable),
    attempt("make-executable-by-key", None, Some(libc::SYS_pkey_mprotect), memory::make_executable_by_key),
    attempt("reading-means-executing", None, Some(libc::SYS_personality), memory::reading_means_executing),
    attempt("share-memory", None, Some(libc::SYS_mmap), memory::share),
    attempt("grow-memory-by-itself", None, Some(libc::SYS_mmap), memory::grow_by_itself),
    attempt("memory-file", None, Some(libc::SYS_memfd_create), memory::memory_file),
    attempt("secret-memory", None, Some(libc::SYS_memfd_secret), memory::secret_memory),
    attempt("user-page-faults", None, Some(libc::SYS_userfaultfd), memory::user_page_faults),
    attempt("io-uring", None, Some(libc::SYS_io_uring_setup), kernel::io_uring),
    attempt("load-bpf", None, Some(libc::SYS_bpf), kernel::load_bpf),
    attempt("count-events", None, Some(libc::SYS_perf_event_open), kernel::count_events),
    attempt("read-keys", None, Some(libc::SYS_keyctl), kernel::read_keys),
    attempt("type-into-terminal", None, Some(libc::SYS_ioctl), kernel::type_into_terminal),
    attempt("replace-reporting", None, Some(libc::SYS_rt_sigaction), kernel::replace_reporting),
    attempt("add-filter", None, Some(libc::SYS_seccomp), kernel::add_filter),
    attempt("name-process", None, Some(libc::SYS_prctl), kernel::name_process),
    #[cfg(target_arch = "x86_64")]
    attempt("call-x32", None, Some(kernel::X32_GETPID), kernel::call_x32),
    #[cfg(target_arch = "x86_64")]
    attempt("call-32-bit", None, None, kernel::call_32_bit),
];

/// A system call as it is, answered with its result.
///
/// The arguments are numbers and addresses of what lives in the caller, of the
/// size that the call expects.
fn call(number: libc::c_long, arguments: [usize; 6]) -> io::Result<usize> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: as above; every caller is in this module's files.
    let answer = unsafe { libc::syscall(number, a, b, c, d, e, f) };
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}

/// The same, where these refusals come from the arguments, not from a wall.
fn reaches(number: libc::c_long, arguments: [usize; 6], beyond: &[libc::c_int]) -> io::Result<()> {
    match call(number, arguments) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error().is_some_and(|errno| beyond.contains(&errno)) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The same, where the answer is a descriptor that nobody wants.
fn opens(number: libc::c_long, arguments: [usize; 6]) -> io::Result<()> {
    let fd = call(number, arguments)?;
    call(libc::SYS_close, [fd, 0, 0, 0, 0, 0]).map(drop)
}

/// A number that may be negative, as an argument.
const fn number(value: i32) -> usize {
    (value as isize).cast_unsigned()
}

/// No descriptor.
const NONE: usize = number(-1);
/// The current folder, in place of a descriptor.
const HERE: usize = number(libc::AT_FDCWD);

/// The parent's process id.
fn parent() -> io::Result<usize> {
    call(libc::SYS_getppid, [0; 6])
}
