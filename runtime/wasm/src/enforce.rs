//! Which clauses a placement enforces, and by what.

use env_contracts::{
    Access, ByteSize, Clause, Cpus, Delegation, Imports, Os, Persistence, Sharing, Snapshot, Source, Span, Walls,
};
use glovebox_runtime::Enforcement;

use crate::backend::Placement;

/// One thread runs a component, so this is what it can use at most and at
/// least.
const ONE_CPU: Cpus = Cpus { millis: 1000 };

/// What a 32-bit memory can't exceed.
const LARGEST_MEMORY: ByteSize = ByteSize::gib(2);

/// What is enforced, clause by clause.
pub(crate) fn enforce(placement: Placement, clause: &Clause<'_>) -> Enforcement {
    let cell = placement == Placement::Cell;
    let by = Enforcement::By;
    // What the kernel enforces as well, where there is a second wall.
    let walled = |one: &'static str, two: &'static str| Enforcement::By(if cell { two } else { one });
    let no = |reason: &str, remedy: &str| Enforcement::refused(reason, remedy);
    match clause {
        Clause::Os(Os::Wasi) => by("WASI 0.2 interfaces"),
        Clause::Os(Os::Linux) => {
            no("a component sees WASI, not Linux", "`os = \"wasi\"`, or a tool that is a container image")
        }
        Clause::Arch(archs) => {
            if archs.iter().any(|arch| arch == "wasm32" || arch == std::env::consts::ARCH) {
                by("host processor")
            } else {
                no("this host has another processor", "a host with one of them, or `wasm32`")
            }
        }
        Clause::Image(_) | Clause::Runtime(_) => no("a component has no image", "a tool that is a container image"),
        Clause::Mount(mount) => match (&mount.source, mount.access) {
            (_, Access::Overlay) => {
                no("there is no overlay here", "`access = \"read\"`, or `\"write\"` where the ceiling allows it")
            }
            (Source::Input(_) | Source::Artifact(_), _) => walled(
                "copy hashed when bound, read-only preopen",
                "copy hashed when bound, read-only preopen; Landlock",
            ),
            (Source::Outputs | Source::Scratch, _) => {
                walled("private folder, preopen by descriptor", "private folder, preopen by descriptor; Landlock")
            }
            (_, Access::Read) => walled("read-only preopen by descriptor", "read-only preopen by descriptor; Landlock"),
            (_, Access::Write) => walled("preopen by descriptor", "preopen by descriptor; Landlock"),
        },
        Clause::Hide(_) => by("path filter in the WASI host, on resolved paths"),
        Clause::Egress(_) => no("there is no network here", "leave `network.egress` out"),
        Clause::Ingress(_) => no("there is no network here", "leave `network.ingress` out"),
        Clause::Secret(_) => no("there is no network to insert secrets into", "leave `secrets` out"),
        Clause::Delegation(identity) if identity.delegation == Delegation::None => by("no identity is passed on"),
        Clause::Delegation(_) => no("no identity can be passed on here", "`delegation = \"none\"`"),
        Clause::Package(_) => {
            no("a component has no packages", "leave `packages` out, or a tool that is a container image")
        }
        Clause::NeedMemory(size) if *size <= LARGEST_MEMORY => by("admission"),
        Clause::NeedMemory(_) => no("a component's memory has 2 GiB at most", "`needs.memory = \"2GiB\"` or less"),
        Clause::NeedCpus(cpus) if *cpus <= ONE_CPU => by("one thread"),
        Clause::NeedCpus(_) => no("a component runs on one thread", "`needs.cpus = \"1\"` or less"),
        Clause::NeedStorage(_) => no("no space is set aside here", "leave `needs.storage` out"),
        Clause::NeedGpu(0) => by("no devices exist"),
        Clause::NeedGpu(_) => no("a component reaches no devices", "leave `needs.gpu` out"),
        Clause::Wall(Span(_)) => {
            walled("timeout around the call, epochs inside it", "timeout and epochs in the cell; its process is killed")
        }
        Clause::Idle(_) => {
            walled("timeout since the last output", "timeout since the last output; its process is killed")
        }
        Clause::Cpu(_) => walled("thread clock, checked at epochs", "thread clock, checked at epochs; RLIMIT_CPU"),
        Clause::Cpus(cpus) if *cpus >= ONE_CPU => by("one thread"),
        Clause::Cpus(_) => no(
            "a thread can't be given part of a processor here",
            "`limits.cpus = \"1\"` or more, or `limits.cpu` for its time",
        ),
        Clause::Memory(_) => {
            walled("store limiter over memories and tables", "store limiter over memories and tables; RLIMIT_DATA")
        }
        Clause::Pids(_) => walled("no processes exist", "no processes exist; seccomp"),
        Clause::Storage(_) => by("quota in the WASI host"),
        Clause::Inodes(_) => by("quota in the WASI host"),
        Clause::Gpu(_) => by("no devices exist"),
        Clause::Output(_) => walled("counted in the stream", "counted in the stream, on both sides of it"),
        Clause::Concurrency(_) => by("locks in the state folder"),
        Clause::Persistence(Persistence::None) => {
            walled("fresh instance for each action", "fresh process for each action")
        }
        Clause::Persistence(Persistence::Environment) => by("folders in the state folder, one action at a time"),
        Clause::Snapshot(Snapshot::Never) => by("none is taken"),
        Clause::Snapshot(_) => by("copy of the kept folders, by content"),
        Clause::Sharing(Sharing::Action) => walled("fresh instance for each action", "fresh process for each action"),
        Clause::Sharing(_) => walled(
            "fresh instance for each action; what is shared is the kept folders",
            "fresh process for each action; what is shared is the kept folders",
        ),
        Clause::Walls(Walls(..=1)) => by("the engine"),
        Clause::Walls(Walls(2)) if cell => by("the engine; a process behind Landlock and seccomp"),
        Clause::Walls(_) => no(
            "so many walls don't stand here",
            if cell { "`isolation.walls = 2`" } else { "`wasm.placement = \"cell\"` in the configuration" },
        ),
        Clause::Label(_) => by("label on every artifact"),
        Clause::Audit(_) => by("artifact store"),
        Clause::Retain(_) => by("artifact store"),
        Clause::CleanScratch(_) => by("run folder"),
        Clause::Deterministic(_) => by("seeded generator, clock that moves with readings and waits"),
        Clause::Imports(Imports::Refuse) => by("only granted interfaces are linked"),
        Clause::Imports(Imports::Stub) => by("what is not granted answers access-denied or traps"),
    }
}
