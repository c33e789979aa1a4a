//! Something between a service and its store, which a test tells when to fail.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use env_contracts::{Code, Digest, Id, Name, Principal, Problem};
use glovebox_events::{Action, Approval, Grant, Halt, Logged, Owner, Question, Session, Task};
use glovebox_store::{
    ActionFilter, ApprovalFilter, ApprovalTally, BoxFuture, Commit, Content, Due, EventFilter, GrantFilter, Page,
    QuestionFilter, Recorded, SessionFilter, Store, StoreError, TaskFilter, TaskSeen,
};
use tokio::sync::watch;

/// When a test is asked whether the store goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// Before this commit, counted from 1.
    Before(u32),
    /// After it: it is durable, and the service does not know yet.
    After(u32),
    /// Before something is read.
    Read,
}

type Hook = dyn Fn(Moment) -> bool + Send + Sync;

pub(crate) struct Between {
    inner: Arc<dyn Store>,
    commits: AtomicU32,
    /// Whether the store goes on.
    hook: Box<Hook>,
}

impl Between {
    pub(crate) fn over(inner: Arc<dyn Store>, hook: impl Fn(Moment) -> bool + Send + Sync + 'static) -> Arc<dyn Store> {
        Arc::new(Self { inner, commits: AtomicU32::new(0), hook: Box::new(hook) })
    }

    fn at(&self, moment: Moment) -> Result<(), Problem> {
        if (self.hook)(moment) { Ok(()) } else { Err(Problem::new(Code::StateUnavailable, "the disk is full")) }
    }

    fn read<T>(&self, read: impl FnOnce(&dyn Store) -> Result<T, Problem>) -> Result<T, Problem> {
        self.at(Moment::Read)?;
        read(&*self.inner)
    }
}

impl Store for Between {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Vec<u64>, StoreError>> {
        let number = self.commits.fetch_add(1, Ordering::SeqCst) + 1;
        Box::pin(async move {
            self.at(Moment::Before(number))?;
            let done = self.inner.commit(commit).await?;
            self.at(Moment::After(number))?;
            Ok(done)
        })
    }

    fn action(&self, tenant: &Name, id: &Id) -> Result<Option<Action>, Problem> {
        self.read(|store| store.action(tenant, id))
    }

    fn by_approval(&self, tenant: &Name, approval: &Id) -> Result<Option<Action>, Problem> {
        self.read(|store| store.by_approval(tenant, approval))
    }

    fn key(&self, scope: &Digest) -> Result<Option<(Digest, Id)>, Problem> {
        self.read(|store| store.key(scope))
    }

    fn actions(&self, tenant: &Name, filter: &ActionFilter) -> Result<Page<Action>, Problem> {
        self.read(|store| store.actions(tenant, filter))
    }

    fn approvals(&self, tenant: &Name, filter: &ApprovalFilter) -> Result<Page<(Action, Approval)>, Problem> {
        self.read(|store| store.approvals(tenant, filter))
    }

    fn grant(&self, tenant: &Name, id: &Id) -> Result<Option<Grant>, Problem> {
        self.read(|store| store.grant(tenant, id))
    }

    fn grants(&self, tenant: &Name, filter: &GrantFilter) -> Result<Vec<Grant>, Problem> {
        self.read(|store| store.grants(tenant, filter))
    }

    fn declined(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<Option<Action>, Problem> {
        self.read(|store| store.declined(tenant, task, intent))
    }

    fn tally(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<ApprovalTally, Problem> {
        self.read(|store| store.tally(tenant, task, intent))
    }

    fn session(&self, tenant: &Name, id: &Id) -> Result<Option<Session>, Problem> {
        self.read(|store| store.session(tenant, id))
    }

    fn sessions(&self, tenant: &Name, filter: &SessionFilter) -> Result<Page<Session>, Problem> {
        self.read(|store| store.sessions(tenant, filter))
    }

    fn task(&self, tenant: &Name, task: &Id) -> Result<TaskSeen, Problem> {
        self.read(|store| store.task(tenant, task))
    }

    fn tasks(&self, tenant: &Name, filter: &TaskFilter) -> Result<Page<Task>, Problem> {
        self.read(|store| store.tasks(tenant, filter))
    }

    fn stopping(&self, limit: u32) -> Result<Vec<Task>, Problem> {
        self.read(|store| store.stopping(limit))
    }

    fn stopping_sessions(&self, limit: u32) -> Result<Vec<Session>, Problem> {
        self.read(|store| store.stopping_sessions(limit))
    }

    fn question(&self, tenant: &Name, id: &Id) -> Result<Option<Question>, Problem> {
        self.read(|store| store.question(tenant, id))
    }

    fn questions(&self, tenant: &Name, filter: &QuestionFilter) -> Result<Page<Question>, Problem> {
        self.read(|store| store.questions(tenant, filter))
    }

    fn expiring(&self, now_ms: u64, limit: u32) -> Result<Vec<Due>, Problem> {
        self.read(|store| store.expiring(now_ms, limit))
    }

    fn running(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.read(|store| store.running(limit))
    }

    fn requested(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.read(|store| store.requested(limit))
    }

    fn held(&self, limit: u32) -> Result<Vec<(Principal, Id)>, Problem> {
        self.read(|store| store.held(limit))
    }

    fn payload(&self, tenant: &Name, of: &Owner, sha256: &Digest) -> Result<Option<Content>, Problem> {
        self.read(|store| store.payload(tenant, of, sha256))
    }

    fn events(&self, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Problem> {
        self.read(|store| store.events(tenant, filter))
    }

    fn recorded(&self, after: u64, limit: u32) -> Result<Vec<Recorded>, Problem> {
        self.read(|store| store.recorded(after, limit))
    }

    fn head(&self, tenant: &Name, session: &Id) -> Result<u64, Problem> {
        self.read(|store| store.head(tenant, session))
    }

    fn database(&self) -> Result<Id, Problem> {
        self.read(|store| store.database())
    }

    fn last_recorded(&self) -> Result<u64, Problem> {
        self.read(|store| store.last_recorded())
    }

    fn halted(&self) -> Result<Option<Halt>, Problem> {
        self.read(|store| store.halted())
    }

    fn changes(&self) -> Result<watch::Receiver<u64>, Problem> {
        self.read(|store| store.changes())
    }

    fn erase(
        &self,
        tenant: &Name,
        of: &Owner,
        by: &Name,
        at_ms: u64,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        self.inner.erase(tenant, of, by, at_ms)
    }
}
