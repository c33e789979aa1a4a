//! The system calls that a container may make.
//!
//! A list of what programs need, not of what is dangerous: a call that the
//! kernel gets tomorrow is not on it. What reaches the kernel's own workings
//! (tracing, BPF, keys, io_uring, userfaultfd, performance counters, modules,
//! mounts, namespaces) is left out on purpose.

use serde_json::{Value, json};

/// `clone` flags that make a namespace.
const NAMESPACES: u64 = 0x7E02_0000;
/// What a call that is not on the list answers with: "operation not permitted".
const EPERM: u32 = 1;
/// "No such call": the C library then takes the older one, whose flags can be
/// looked at.
const ENOSYS: u32 = 38;

/// What programs need, by what it is for.
const CALLS: &[(&str, &str)] = &[
    (
        "files",
        "access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 \
         fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr flistxattr \
         flock fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents getdents64 getxattr \
         inotify_add_watch inotify_init inotify_init1 inotify_rm_watch lchown lgetxattr link linkat listxattr \
         llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat mknod mknodat newfstatat open openat openat2 \
         pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead readlink readlinkat readv removexattr rename \
         renameat renameat2 rmdir sendfile setxattr splice stat statfs statx symlink symlinkat sync sync_file_range \
         syncfs tee truncate umask unlink unlinkat utime utimensat utimes vmsplice write writev",
    ),
    (
        "memory",
        "brk madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap msync munlock \
         munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages",
    ),
    (
        "processes, threads, signals",
        "alarm arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue futex_wait \
         futex_waitv futex_wake get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups getitimer \
         getpgid getpgrp getpid getppid getpriority getresgid getresuid getrlimit getrusage getsid gettid getuid \
         ioprio_get kill landlock_add_rule landlock_create_ruleset landlock_restrict_self pause pidfd_open \
         pidfd_send_signal prctl restart_syscall rseq rt_sigaction rt_sigpending rt_sigprocmask \
         rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max \
         sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler \
         sched_rr_get_interval sched_yield seccomp \
         set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer setpgid \
         setregid setresgid setresuid setreuid setrlimit setsid setuid sigaltstack signalfd signalfd4 \
         sysinfo tgkill times tkill uname vfork wait4 waitid",
    ),
    (
        "waiting, pipes, sockets, shared memory between a tool's own processes",
        "accept accept4 bind connect epoll_create epoll_create1 epoll_ctl epoll_pwait epoll_pwait2 epoll_wait eventfd \
         eventfd2 getpeername getsockname getsockopt ioctl listen mq_getsetattr mq_notify mq_open mq_timedreceive \
         mq_timedsend mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 poll ppoll pselect6 recvfrom recvmmsg recvmsg \
         select semctl semget semop semtimedop sendmmsg sendmsg sendto setsockopt shmat shmctl shmdt shmget shutdown \
         socketpair",
    ),
    (
        "time and chance",
        "clock_getres clock_gettime clock_nanosleep getrandom gettimeofday nanosleep time timer_create timer_delete \
         timer_getoverrun timer_gettime timer_settime timerfd_create timerfd_gettime timerfd_settime",
    ),
];

/// Every call that needs no look at its arguments.
fn calls() -> impl Iterator<Item = &'static str> {
    CALLS.iter().flat_map(|(_, names)| names.split_whitespace())
}

/// Calls that a process may make for itself alone, with the arguments that mean
/// itself: PID 1 has the same user, and would have to take what it is given.
const ITSELF: &[(&str, &[(u32, u64)])] = &[
    ("prlimit64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler", &[(0, 0)]),
    ("setpriority", &[(0, 0), (1, 0)]),
    ("ioprio_set", &[(0, 1), (1, 0)]),
];

/// The family of sockets that have a place in the file system.
const UNIX: u64 = 1;
/// Socket families that programs talk with: between themselves, IPv4, IPv6, and
/// to ask the kernel which addresses there are. Others reach into the kernel.
const FAMILIES: [u64; 4] = [UNIX, 2, 10, 16];

/// The profile, as the engine takes it: its text, not a path.
///
/// `live`: a folder of the user's is shown. A read-only folder keeps nobody from
/// talking to a socket in it, at whose other end a process of this host is, and
/// so there are none of that family; a pair of them for its own use there is.
pub(crate) fn profile(live: bool) -> String {
    let masked =
        |value: u64, mask: u64| json!([{ "index": 0, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ" }]);
    let mut calls: Vec<Value> = vec![
        json!({ "names": calls().collect::<Vec<_>>(), "action": "SCMP_ACT_ALLOW" }),
        // A new process or thread, but no namespace.
        json!({ "names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": masked(0, NAMESPACES) }),
        // Its flags lie in memory, where a filter can't look.
        json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": ENOSYS }),
        // Personalities without the ones that take protections away.
        json!({ "names": ["personality"], "action": "SCMP_ACT_ALLOW",
                "args": [{ "index": 0, "value": 0, "op": "SCMP_CMP_EQ" }] }),
        json!({ "names": ["personality"], "action": "SCMP_ACT_ALLOW",
                "args": [{ "index": 0, "value": 0xFFFF_FFFF_u64, "op": "SCMP_CMP_EQ" }] }),
    ];
    calls.extend(FAMILIES.into_iter().filter(|family| !(live && *family == UNIX)).map(|family| {
        json!({ "names": ["socket"], "action": "SCMP_ACT_ALLOW",
                "args": [{ "index": 0, "value": family, "op": "SCMP_CMP_EQ" }] })
    }));
    calls.extend(ITSELF.iter().map(|(names, arguments)| {
        let is = |(index, value): &(u32, u64)| json!({ "index": index, "value": value, "op": "SCMP_CMP_EQ" });
        json!({ "names": names.split(' ').collect::<Vec<_>>(), "action": "SCMP_ACT_ALLOW",
                "args": arguments.iter().map(is).collect::<Vec<_>>() })
    }));
    json!({
        "defaultAction": "SCMP_ACT_ERRNO",
        "defaultErrnoRet": EPERM,
        "archMap": [
            { "architecture": "SCMP_ARCH_X86_64", "subArchitectures": [] },
            { "architecture": "SCMP_ARCH_AARCH64", "subArchitectures": [] },
        ],
        "syscalls": calls,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reaches_into_the_kernel_is_not_on_the_list() {
        let mut sorted: Vec<&str> = calls().collect();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), calls().count(), "a call is there twice");
        for call in [
            "add_key",
            "bpf",
            "clone",
            "clone3",
            "delete_module",
            "fanotify_init",
            "finit_module",
            "fsopen",
            "init_module",
            "io_uring_setup",
            "kexec_load",
            "keyctl",
            "mount",
            "move_mount",
            "name_to_handle_at",
            "open_by_handle_at",
            "open_tree",
            "perf_event_open",
            "pidfd_getfd",
            "pivot_root",
            "prlimit64",
            "process_vm_readv",
            "process_vm_writev",
            "ptrace",
            "quotactl",
            "reboot",
            "request_key",
            "setns",
            "setpriority",
            "socket",
            "swapon",
            "umount2",
            "unshare",
            "userfaultfd",
        ] {
            assert!(!calls().any(|own| own == call), "{call}");
        }
    }
}
