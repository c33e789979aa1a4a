//! The tables of system calls, each with what needs it.
//!
//! Found by running every guest of the tests, and the compiler on components
//! of every size, behind them.

use super::{Rule, Test};

/// `SIGSYS` reports violations: its handler stays.
const SIGSYS: u32 = libc::SIGSYS.cast_unsigned();
/// `PAGEMAP_SCAN`, with which the engine finds the pages that a guest touched;
/// no library names it.
const PAGEMAP_SCAN: u32 = 0xC060_6610;
/// What the C library forks with: a signal at the end, and the thread id kept
/// in memory. Nothing is shared, no namespace is made.
const FORK: u32 = (libc::CLONE_CHILD_CLEARTID | libc::CLONE_CHILD_SETTID | libc::SIGCHLD).cast_unsigned();
/// Of the flags of a new thread: it must be one, and have no namespace, tracer
/// or descriptor of its own.
const THREAD: u32 = libc::CLONE_THREAD.cast_unsigned();
const THREAD_MASK: u32 = THREAD
    | (libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET
        | libc::CLONE_PTRACE
        | libc::CLONE_VFORK
        | libc::CLONE_PIDFD)
        .cast_unsigned();
const EXEC: u32 = libc::PROT_EXEC.cast_unsigned();
const PRIVATE: u32 = libc::MAP_PRIVATE.cast_unsigned();
/// What decides how memory counts.
const SHAPE: u32 = (libc::MAP_SHARED | libc::MAP_PRIVATE | libc::MAP_GROWSDOWN | libc::MAP_HUGETLB).cast_unsigned();

/// Memory, time, randomness, waiting, reading and writing what is open: what
/// any computing process does.
pub(super) const COMPUTING: &[Rule] = &[
    Rule::always(&[libc::SYS_read, libc::SYS_readv, libc::SYS_write, libc::SYS_writev]),
    Rule::always(&[libc::SYS_close, libc::SYS_fstat, libc::SYS_lseek]),
    Rule::when(
        &[libc::SYS_fcntl],
        &[
            Test::Is(1, libc::F_GETFD.cast_unsigned()),
            Test::Is(1, libc::F_SETFD.cast_unsigned()),
            Test::Is(1, libc::F_GETFL.cast_unsigned()),
            Test::Is(1, libc::F_SETFL.cast_unsigned()),
            Test::Is(1, libc::F_DUPFD_CLOEXEC.cast_unsigned()),
        ],
    ),
    // Code that can be executed was mapped before; nothing more becomes so. And
    // memory is private and of the size that was asked for: what is shared, or
    // grows by itself, counts against no limit.
    Rule::when_all(&[libc::SYS_mmap], &[Test::Bits(2, EXEC, 0), Test::Bits(3, SHAPE, PRIVATE)]),
    Rule::when(&[libc::SYS_mprotect], &[Test::Bits(2, EXEC, 0)]),
    Rule::always(&[libc::SYS_munmap, libc::SYS_mremap, libc::SYS_madvise, libc::SYS_brk]),
    Rule::always(&[libc::SYS_futex, libc::SYS_restart_syscall, libc::SYS_sched_yield]),
    Rule::always(&[libc::SYS_nanosleep, libc::SYS_clock_nanosleep]),
    // Without the kernel's page for it, the clock is a system call.
    Rule::always(&[libc::SYS_clock_gettime, libc::SYS_clock_getres, libc::SYS_gettimeofday]),
    Rule::always(&[libc::SYS_getrandom]),
    // A crash ends in the handlers of the engine and of Rust.
    Rule::always(&[libc::SYS_sigaltstack, libc::SYS_rt_sigprocmask, libc::SYS_rt_sigreturn]),
    Rule::always(&[libc::SYS_getpid, libc::SYS_gettid, libc::SYS_getppid]),
    Rule::always(&[libc::SYS_exit, libc::SYS_exit_group]),
];

/// The files of a guest, beneath descriptors. What may be reached and changed
/// is Landlock's to say: a filter sees no paths. No call changes modes or
/// owners, which Landlock does not judge.
pub(super) const FILES: &[Rule] = &[
    Rule::always(&[libc::SYS_openat, libc::SYS_openat2]),
    Rule::always(&[
        libc::SYS_newfstatat,
        libc::SYS_statx,
        libc::SYS_fstatfs,
        libc::SYS_readlinkat,
        libc::SYS_getdents64,
    ]),
    Rule::always(&[libc::SYS_pread64, libc::SYS_preadv, libc::SYS_preadv2]),
    Rule::always(&[libc::SYS_pwrite64, libc::SYS_pwritev, libc::SYS_pwritev2]),
    Rule::always(&[libc::SYS_ftruncate, libc::SYS_fsync, libc::SYS_fdatasync, libc::SYS_fadvise64]),
    Rule::always(&[libc::SYS_mkdirat, libc::SYS_unlinkat, libc::SYS_linkat, libc::SYS_symlinkat]),
    // A panic in a host call looks where it is when it is asked for a trace.
    Rule::always(&[libc::SYS_getcwd]),
    Rule::always(&[libc::SYS_renameat2, RENAMEAT, libc::SYS_utimensat]),
];

/// Newer processors have only `renameat2`.
#[cfg(target_arch = "x86_64")]
const RENAMEAT: libc::c_long = libc::SYS_renameat;
#[cfg(not(target_arch = "x86_64"))]
const RENAMEAT: libc::c_long = 38;

/// What waits for orders and forks, and what its children shut themselves in
/// with before they run anything of a stranger's.
pub(super) const FORKING: &[Rule] = &[
    Rule::when(&[libc::SYS_clone], &[Test::Is(0, FORK)]),
    Rule::always(&[libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_set_tid_address]),
    Rule::always(&[libc::SYS_wait4, libc::SYS_waitid, libc::SYS_pidfd_open]),
    Rule::always(&[libc::SYS_recvmsg, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_sendto, libc::SYS_ppoll]),
    Rule::always(&[libc::SYS_dup, libc::SYS_dup3, libc::SYS_close_range]),
    Rule::always(&[libc::SYS_setitimer, libc::SYS_rt_sigaction]),
    Rule::when(&[libc::SYS_ioctl], &[Test::Is(1, PAGEMAP_SCAN)]),
    // `abort` is a signal to oneself.
    Rule::when(&[libc::SYS_tgkill], &[Test::Is(2, libc::SIGABRT.cast_unsigned())]),
    Rule::when(
        &[libc::SYS_prctl],
        &[
            Test::Is(0, libc::PR_SET_PDEATHSIG.cast_unsigned()),
            Test::Is(0, libc::PR_SET_DUMPABLE.cast_unsigned()),
            Test::Is(0, libc::PR_SET_NO_NEW_PRIVS.cast_unsigned()),
            Test::Is(0, libc::PR_GET_NO_NEW_PRIVS.cast_unsigned()),
            Test::Is(0, libc::PR_CAPBSET_DROP.cast_unsigned()),
            Test::Is(0, libc::PR_CAP_AMBIENT.cast_unsigned()),
            Test::Is(0, libc::PR_SET_NAME.cast_unsigned()),
        ],
    ),
    Rule::always(&[libc::SYS_geteuid, libc::SYS_capget, libc::SYS_capset]),
    // Of itself only.
    Rule::when(&[libc::SYS_prlimit64], &[Test::Is(0, 0)]),
    Rule::always(&[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self]),
    Rule::always(&[libc::SYS_seccomp]),
    #[cfg(target_arch = "x86_64")]
    Rule::always(&[libc::SYS_poll, libc::SYS_dup2]),
];

/// What a cell takes from itself before it runs its guest.
pub(super) const CELL_LOSES: &[Rule] = &[
    Rule::always(&[libc::SYS_clone, libc::SYS_wait4, libc::SYS_waitid, libc::SYS_pidfd_open]),
    // No descriptor comes in any more, and none goes out to the host.
    Rule::always(&[libc::SYS_recvmsg, libc::SYS_recvfrom, libc::SYS_sendmsg, libc::SYS_sendto]),
    Rule::always(&[libc::SYS_prctl, libc::SYS_capset, libc::SYS_prlimit64, libc::SYS_seccomp]),
    Rule::always(&[libc::SYS_landlock_create_ruleset, libc::SYS_landlock_add_rule, libc::SYS_landlock_restrict_self]),
    // Other handlers may be replaced: Rust's own does so when it gives up.
    Rule::when(&[libc::SYS_rt_sigaction], &[Test::Is(0, SIGSYS)]),
];

/// A compiler's threads.
pub(super) const COMPILING: &[Rule] = &[
    Rule::when(&[libc::SYS_clone], &[Test::Bits(0, THREAD_MASK, THREAD)]),
    Rule::always(&[libc::SYS_set_robust_list, libc::SYS_rseq, libc::SYS_sched_getaffinity]),
    Rule::when(&[libc::SYS_prctl], &[Test::Is(0, libc::PR_SET_NAME.cast_unsigned())]),
    Rule::when(&[libc::SYS_rt_sigaction], &[Test::Not(0, SIGSYS)]),
];

/// What a compiler is answered as if the kernel did not have it. The flags of
/// `clone3` lie in memory where no filter sees them, and the C library then
/// takes `clone`; and libraries that look for the number of processors in
/// files do without.
pub(super) const COMPILE_MISSES: &[libc::c_long] = &[libc::SYS_clone3, libc::SYS_openat];
