//! Which clauses hold for what a server elsewhere does, and by what: nothing
//! of it runs here, so most of them hold of themselves, and what would need a
//! hand on the server is refused.

use env_contracts::{Clause, Delegation, Persistence, Sharing, Snapshot, Source, Tls};
use glovebox_runtime::Enforcement;

use super::adopt::CONNECTIONS;

/// What is enforced, clause by clause.
pub(super) fn enforce(clause: &Clause<'_>) -> Enforcement {
    let by = Enforcement::By;
    let nothing = Enforcement::By("dialed by the host, nothing runs here");
    let no = Enforcement::refused;
    match clause {
        Clause::Os(_) | Clause::Arch(_) | Clause::Image(_) | Clause::Runtime(_) | Clause::Package(_) => {
            no("nobody here knows where the server runs, and with what", "leave it out")
        }
        Clause::Mount(mount) if mount.source == Source::Outputs => by("files that the host makes of the answer"),
        Clause::Mount(_) => no("no file of this host is shown to a server elsewhere", "leave it out"),
        Clause::Hide(_) => nothing,
        Clause::Egress(rule) if rule.methods.is_some() || rule.paths.is_some() => {
            no("a whole conversation is had with the server", "leave `methods` and `paths` out")
        }
        Clause::Egress(rule) if rule.tls == Tls::Terminate => {
            no("TLS goes from this host to the server", "`tls = \"tunnel\"`")
        }
        Clause::Egress(rule) if rule.connections.is_some_and(|most| most < CONNECTIONS) => {
            no("a call needs three connections", "`connections = 3` or more")
        }
        Clause::Egress(_) => {
            by("dialed by the host at this address alone, checked, no redirects, bytes counted; nothing runs here")
        }
        Clause::Ingress(_) => no("nothing runs here that could be reached", "leave `network.ingress` out"),
        Clause::Secret(_) => {
            no("what is sent along is named when the server is added", "leave `secrets` out, and use `--header-file`")
        }
        Clause::Delegation(identity) if identity.delegation == Delegation::None => by("no identity is passed on"),
        Clause::Delegation(_) => no("no identity can be passed on here", "`delegation = \"none\"`"),
        Clause::NeedMemory(_) => by("admission"),
        Clause::NeedCpus(_) | Clause::NeedGpu(0) => nothing,
        Clause::NeedStorage(_) => no("no space is set aside here", "leave `needs.storage` out"),
        Clause::NeedGpu(_) => no("nobody here knows what the server has", "leave `needs.gpu` out"),
        Clause::Wall(_) => by("the host's clock: the call is cancelled"),
        Clause::Idle(_) => by("the host's clock since the last that was heard: the call is cancelled"),
        Clause::Output(_) => by("counted as it comes"),
        Clause::Storage(_) | Clause::Inodes(_) => by("counted before a file of the answer is made"),
        Clause::Memory(_) => by("bytes of the answer are counted as they come; nothing runs here"),
        Clause::Cpu(_) | Clause::Cpus(_) | Clause::Pids(_) | Clause::Gpu(_) => nothing,
        Clause::Concurrency(_) => by("locks in the state folder"),
        Clause::Persistence(Persistence::None) => by("a connection for each action"),
        Clause::Persistence(Persistence::Environment) => no("no environment is kept here", "`persistence = \"none\"`"),
        Clause::Snapshot(Snapshot::Never) => by("none is taken"),
        Clause::Snapshot(_) => no("no snapshots are taken here", "`snapshot = \"never\"`"),
        Clause::Sharing(Sharing::Action) => by("a connection for each action"),
        Clause::Sharing(_) => no("no environment is kept between actions here", "`sharing = \"action\"`"),
        Clause::Walls(_) => no("no walls stand around a server elsewhere", "leave `isolation.walls` out"),
        Clause::Label(_) => by("label on every artifact"),
        Clause::Audit(_) | Clause::Retain(_) => by("artifact store"),
        Clause::CleanScratch(_) => by("run folder"),
        Clause::Deterministic(_) => no("nobody here decides what a server's clock says", "leave it out"),
        Clause::Imports(_) => nothing,
    }
}
