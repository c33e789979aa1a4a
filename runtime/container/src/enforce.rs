//! Which clauses a container keeps, and by what. What depends on the engine is
//! looked at where the container is made: its runtimes, and every limit as the
//! kernel has it.

use env_contracts::{Access, Clause, Delegation, Imports, Os, Persistence, Sharing, Snapshot, Source, Walls};
use glovebox_runtime::Enforcement;

/// What is enforced, clause by clause.
pub(crate) fn enforce(clause: &Clause<'_>) -> Enforcement {
    let by = Enforcement::By;
    let no = |reason: &str, remedy: &str| Enforcement::refused(reason, remedy);
    match clause {
        Clause::Os(Os::Linux) => by("the image"),
        Clause::Os(Os::Wasi) => no("an image is a Linux system", "`os = \"linux\"`, or a tool that is a component"),
        Clause::Arch(archs) if archs.iter().any(|arch| arch == std::env::consts::ARCH) => by("host processor"),
        Clause::Arch(_) => no("this host has another processor", "a host with one of them"),
        Clause::Image(_) => by("image by its digest"),
        Clause::Runtime(_) => by("runtime of the engine, refused where it is missing"),
        Clause::Mount(mount) => match (&mount.source, mount.access) {
            (_, Access::Overlay) => {
                no("there is no overlay here", "`access = \"read\"`, or `\"write\"` where the ceiling allows it")
            }
            (Source::Input(_) | Source::Artifact(_), _) => by("copy hashed when bound, shown read-only"),
            (Source::Outputs | Source::Scratch, _) => by("folder in memory; one that is kept comes and goes as a copy"),
            (_, Access::Read) => by("shown read-only, compared from inside; or a copy of what may be seen"),
            (_, Access::Write) => by("copy; what changed is brought back when the tool ended by itself"),
        },
        Clause::Hide(_) => by("what is hidden is not copied"),
        Clause::Egress(_) => no("there is no network here", "leave `network.egress` out"),
        Clause::Ingress(_) => no("there is no network here", "leave `network.ingress` out"),
        Clause::Secret(_) => no("there is no network to insert secrets into", "leave `secrets` out"),
        Clause::Delegation(identity) if identity.delegation == Delegation::None => by("no identity is passed on"),
        Clause::Delegation(_) => no("no identity can be passed on here", "`delegation = \"none\"`"),
        Clause::Package(_) => no(
            "what an image holds is not looked at here",
            "leave `packages` out: the image's digest names every byte of it",
        ),
        Clause::NeedMemory(_) | Clause::NeedCpus(_) => by("admission"),
        Clause::NeedStorage(_) => no("no space is set aside here", "leave `needs.storage` out"),
        Clause::NeedGpu(0) => by("no devices exist"),
        Clause::NeedGpu(_) => no("a container reaches no devices here", "leave `needs.gpu` out"),
        Clause::Wall(_) | Clause::Idle(_) => by("clock outside; supervisor, then the engine end it"),
        Clause::Cpu(_) => by("control group, watched by the supervisor"),
        Clause::Cpus(_) => by("control group (quota)"),
        Clause::Memory(_) => by("control group, no swap; files in memory count"),
        Clause::Pids(_) => by("control group"),
        Clause::Storage(_) | Clause::Inodes(_) => by("limit of each folder in memory; their sum is watched"),
        Clause::Gpu(_) => by("no devices exist"),
        Clause::Output(_) => by("counted in the stream"),
        Clause::Concurrency(_) => by("locks in the state folder"),
        Clause::Persistence(Persistence::None) => by("fresh container for each action"),
        Clause::Persistence(Persistence::Environment) => by("folders in the state folder, one action at a time"),
        Clause::Snapshot(Snapshot::Never) => by("none is taken"),
        Clause::Snapshot(_) => by("copy of the kept folders, by content"),
        Clause::Sharing(Sharing::Action) => by("fresh container for each action"),
        Clause::Sharing(_) => by("fresh container for each action; what is shared is the kept folders"),
        Clause::Walls(Walls(..=1)) => by("namespaces, control groups, no capabilities, seccomp"),
        Clause::Walls(_) => no(
            "a container is one wall: its processes share the kernel with the host",
            "`isolation.walls = 1`, or a tool that is a component, in a cell",
        ),
        Clause::Label(_) => by("label on every artifact"),
        Clause::Audit(_) | Clause::Retain(_) => by("artifact store"),
        Clause::CleanScratch(true) => by("folder in memory, gone with the container"),
        Clause::CleanScratch(false) => no("what lies in memory is gone with the container", "`cleanup.scratch = true`"),
        Clause::Deterministic(_) => {
            no("an image has the clock and the random numbers of this host", "leave `wasm.deterministic` out")
        }
        Clause::Imports(Imports::Refuse) => by("an image imports nothing"),
        Clause::Imports(Imports::Stub) => no("an image imports nothing", "leave `wasm.imports` out"),
    }
}
