//! The seam between the house and what executes: the [`Backend`] trait and
//! the values that pass it.

use std::any::Any;
use std::ops::Deref;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{
    BoundFacts, Clause, Code, Content, Contract, Degrade, Digest, Drifted, Enforced, Evidence, ManifestEntry, Plan,
    Problem,
};

use crate::bind::Files;
use crate::job::{End, FrameSink, JobUsage};

/// A future that a trait object can return.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Something that executes plans: WebAssembly in this process or in a cell,
/// a container engine, later others.
///
/// A backend enforces or refuses; it never weakens. It decides nothing: what
/// reaches [`Backend::run`] was cleared by the [`Runtime`](crate::Runtime).
pub trait Backend: Send + Sync {
    /// Its name in plans and reports.
    fn name(&self) -> &'static str;

    /// Whether this backend can enforce a clause on this host, and by what.
    /// Pure: it looks at no file of the request's.
    fn enforce(&self, clause: &Clause<'_>) -> Enforcement;

    /// Whether it is a backend for what is called so, in such surroundings. What
    /// a server elsewhere or an agent's own process runs is for none that has
    /// artifacts to run, and an image for none but those that have images.
    fn takes(&self, entry: &ManifestEntry, contract: &Contract) -> bool {
        use ManifestEntry::{Mcp, McpStdio, Native};
        !matches!(entry, Mcp { .. } | McpStdio { .. } | Native) && contract.platform.image.is_none()
    }

    /// Makes the artifact ready: compiles or pulls, from a cache if it can.
    /// A job of its own, single-flight per digest, before any authority is
    /// consumed. `progress` gets a line for people now and then.
    fn prepare<'a>(
        &'a self,
        registered: &'a Registered,
        contract: &'a Contract,
        progress: &'a (dyn Fn(&str) + Send + Sync),
    ) -> BoxFuture<'a, Result<Prepared, Problem>>;

    /// What making it ready found that no plan knows: it becomes part of what
    /// was bound.
    fn found(&self, _prepared: &Prepared) -> Found {
        Found::default()
    }

    /// Executes. Always returns a report: what goes wrong is in it.
    fn run(&self, cleared: Cleared, ports: Ports) -> BoxFuture<'_, RunReport>;

    /// How much longer than its wall-clock limit a run may take until it is given
    /// up from outside: the time that taking it down can take on a loaded host.
    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }

    /// Whether polling [`Backend::run`] never holds the thread, whatever the
    /// guest does and however long the kernel takes for it. Such a run can be
    /// polled by whoever waits for it; any other has a thread of its own.
    fn never_blocks(&self) -> bool {
        false
    }
}

/// What making an artifact ready found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// How it differs from what was registered. A person decides then,
    /// whatever the rules say.
    pub drifted: Option<Drifted>,
    /// What it rests on, for a verifier.
    pub evidence: Vec<Evidence>,
}

/// A backend's own form of a ready artifact.
pub type Prepared = Box<dyn Any + Send>;

/// What the registry knows of a capability's artifact.
#[derive(Debug, Clone)]
pub struct Registered {
    /// Its sha256.
    pub digest: Digest,
    /// Where its bytes are.
    pub bytes: ArtifactBytes,
    /// What to call in it.
    pub entry: ManifestEntry,
    /// The name that a tool entry without one of its own uses.
    pub name: String,
}

/// Where the bytes of a registered artifact are.
#[derive(Debug, Clone)]
pub enum ArtifactBytes {
    /// Part of this program.
    Embedded(&'static [u8]),
    /// In memory: not registered yet.
    Memory(Arc<[u8]>),
    /// In a file; whoever reads it compares the digest.
    File(PathBuf),
}

/// Whether a clause can be enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Enforcement {
    /// It is, by this mechanism.
    By(&'static str),
    /// It can't be, and what would do.
    Refused {
        /// Why not.
        reason: String,
        /// What would satisfy it.
        remedy: String,
    },
}

impl Enforcement {
    /// A refusal.
    pub fn refused(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Refused { reason: reason.into(), remedy: remedy.into() }
    }
}

/// A plan with everything it needs, opened and hashed.
pub struct Bound {
    /// The plan.
    pub plan: Plan,
    /// What binding found.
    pub facts: BoundFacts,
    /// The digest of "the same thing again".
    pub intent: Digest,
    /// The digest of "this one, once": what a permit is for.
    pub digest: Digest,
    /// What to call.
    pub registered: Registered,
    /// The ready artifact.
    pub prepared: Prepared,
    /// The opened files.
    pub files: Files,
}

impl Bound {
    /// Ties a plan to what was opened for it, and computes both digests.
    pub fn new(plan: Plan, registered: Registered, prepared: Prepared, files: Files) -> Self {
        let facts = files.facts.clone();
        let intent = plan.intent(&facts);
        let digest = plan.digest(&intent);
        Self { plan, facts, intent, digest, registered, prepared, files }
    }
}

/// A bound plan whose permit was checked. Only the runtime makes one.
pub struct Cleared(Bound);

impl Cleared {
    pub(crate) fn new(bound: Bound) -> Self {
        Self(bound)
    }

    /// The bound plan, to be taken apart.
    pub fn into_bound(self) -> Bound {
        self.0
    }
}

impl Deref for Cleared {
    type Target = Bound;

    fn deref(&self) -> &Bound {
        &self.0
    }
}

/// What a backend may talk to while it runs.
pub struct Ports {
    /// Where the guest's frames go.
    pub frames: Box<dyn FrameSink>,
    /// Whether the execution is still wanted.
    pub stop: Stop,
}

/// Tells a running execution to end. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<StopState>);

#[derive(Debug, Default)]
struct StopState {
    requested: std::sync::atomic::AtomicBool,
    notify: tokio::sync::Notify,
}

impl Stop {
    /// Asks for the end.
    pub fn request(&self) {
        self.0.requested.store(true, std::sync::atomic::Ordering::SeqCst);
        self.0.notify.notify_waiters();
    }

    /// Whether the end was asked for.
    pub fn is_requested(&self) -> bool {
        self.0.requested.load(std::sync::atomic::Ordering::SeqCst)
    }

    /// Waits until the end is asked for.
    pub async fn requested(&self) {
        loop {
            // Registered before the flag is read, so no request is missed.
            let notified = self.0.notify.notified();
            if self.is_requested() {
                return;
            }
            notified.await;
        }
    }
}

/// What came back from a backend.
#[derive(Debug)]
pub struct RunReport {
    /// How it ended.
    pub end: End,
    /// What it used.
    pub usage: JobUsage,
    /// Facts beyond the contract's clauses that a reader should know.
    pub notices: Vec<env_contracts::Notice>,
}

/// Asks a backend for every clause of a contract: the enforcement report, or
/// the first clause that it can't enforce.
///
/// A clause that may degrade and can't be enforced is reported as dropped;
/// [`dropped`](Enforced::enforced_by) clauses are not part of the contract
/// that comes back.
///
/// # Errors
/// `contract-unsatisfied` with clause, backend, reason and remedy.
pub fn enforcement_report(backend: &dyn Backend, contract: &Contract) -> Result<(Contract, Vec<Enforced>), Problem> {
    let mut report = Vec::new();
    let mut effective = contract.clone();
    for clause in contract.clauses() {
        let path = clause.path();
        let enforced_by = match backend.enforce(&clause) {
            Enforcement::By(mechanism) => mechanism.to_owned(),
            Enforcement::Refused { reason, .. } if contract.degrade.get(&path) == Some(&Degrade::Allow) => {
                drop_clause(&mut effective, &clause);
                format!("dropped: {reason}")
            }
            Enforcement::Refused { reason, remedy } => {
                let message = format!(
                    "`{path}` ({}) can't be enforced by backend `{}`: {reason}",
                    clause.value(),
                    backend.name()
                );
                return Err(Problem::new(Code::ContractUnsatisfied, message).with_help(remedy));
            }
        };
        let content = match &clause {
            Clause::Mount(mount) if contract.kept().any(|kept| kept == *mount) => Some(Content::Live),
            Clause::Mount(mount) => Some(content(&mount.source)),
            _ => None,
        };
        report.push(Enforced { clause: path, value: clause.value(), enforced_by, content });
    }
    Ok((effective, report))
}

/// Whether a folder's content is fixed when the plan is bound.
fn content(source: &env_contracts::Source) -> Content {
    use env_contracts::Source;
    match source {
        Source::Workspace | Source::Host(_) => Content::Live,
        Source::Input(_) | Source::Artifact(_) => Content::Sealed,
        Source::Scratch | Source::Outputs => Content::Empty,
    }
}

/// Takes a clause that grants something out of a contract.
fn drop_clause(contract: &mut Contract, clause: &Clause<'_>) {
    match clause {
        Clause::Mount(mount) => contract.filesystem.retain(|own| own != *mount),
        Clause::Egress(rule) => contract.network.egress.retain(|own| own != *rule),
        Clause::Ingress(port) => contract.network.ingress.retain(|own| own != *port),
        Clause::Secret(secret) => contract.secrets.retain(|own| own != *secret),
        Clause::Delegation(_) => contract.identity = env_contracts::Identity::default(),
        Clause::Persistence(_) => contract.state.persistence = env_contracts::Persistence::None,
        Clause::Imports(_) => contract.wasm.imports = env_contracts::Imports::Refuse,
        // A contract that names any other clause in `degrade` is refused when
        // it is read.
        _ => {}
    }
    contract.degrade.remove(&clause.path());
}
