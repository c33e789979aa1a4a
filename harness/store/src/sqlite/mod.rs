//! The store in one SQLite file.

mod apply;
mod approvals;
mod audit;
mod backup;
mod check;
mod conditions;
mod derived;
mod fault;
mod open;
mod payloads;
mod read;
mod recorded;
mod records;
mod scrub;
mod tasks;
mod watcher;
mod writer;

pub use open::VERSION;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use env_contracts::{Digest, Id, Name, Principal, Problem};
use glovebox_events::{
    Action, ActionState, Approval, Event, Grant, Halt, LogKey, Logged, Owner, Question, Session, Task, TaskEvent, What,
};
use rusqlite::Connection;
use tokio::sync::{mpsc, watch};

use crate::holder::Holder;
use crate::{
    ActionFilter, ApprovalFilter, ApprovalTally, BoxFuture, Commit, Content, Due, EventFilter, GrantFilter, Page,
    QuestionFilter, Recorded, SessionFilter, Store, StoreError, TaskFilter, TaskSeen,
};
use fault::Fault;
use watcher::Watcher;
use writer::{Desk, Order, Writer};

/// Connections for reading that are kept open. More are opened when so many
/// threads read at once, and closed again.
const READERS: usize = 4;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether it is made where there is none. Who only looks does not want
    /// that.
    pub create: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { create: true }
    }
}

/// The store in one SQLite file, which any number of processes share.
pub struct Sqlite {
    path: PathBuf,
    orders: Option<mpsc::Sender<Order>>,
    desk: Desk,
    writer: Option<JoinHandle<()>>,
    readers: Mutex<Vec<Connection>>,
    watcher: Watcher,
    holder: Holder,
}

impl Sqlite {
    /// Opens the store in this folder, or makes it. The folder has to exist
    /// and to be private.
    pub fn open(folder: &Path, options: &Options) -> Result<Self, Problem> {
        let path = open::file(folder);
        let opened = || {
            let sql = open::writer(&path, options.create)?;
            let watcher = Watcher::new();
            let (orders, receiver) = writer::queue();
            let desk = Desk::new(Writer { sql, path: path.clone(), changes: watcher.changes() });
            let writing = desk.clone();
            let thread = std::thread::Builder::new()
                .name("store-write".into())
                .spawn(move || writing.run(receiver))
                .map_err(|error| open::unavailable(&path, &format!("no thread to write it: {error}")))?;
            Ok((orders, desk, thread, watcher))
        };
        let (orders, desk, thread, watcher) = opened().map_err(|fault: Fault| fault.problem(&path))?;
        let holder = Holder::new(folder)?;
        Ok(Self { path, orders: Some(orders), desk, writer: Some(thread), readers: Mutex::default(), watcher, holder })
    }

    /// This process, as others know it: what runs here is held by it.
    pub fn holder(&self) -> &Id {
        self.holder.id()
    }

    /// Whether the process that is known by this id still lives and has the
    /// store open.
    pub fn holder_alive(&self, id: &Id) -> Result<bool, Problem> {
        self.holder.alive(id)
    }

    fn read<T>(&self, read: impl FnOnce(&Connection) -> Result<T, Fault>) -> Result<T, Problem> {
        let answer = || {
            let kept = self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let sql = kept.map_or_else(|| open::reader(&self.path), Ok)?;
            let answer = read(&sql);
            let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
            if readers.len() < READERS {
                readers.push(sql);
            }
            answer
        };
        answer().map_err(|fault| fault.problem(&self.path))
    }

    async fn order(&self, commit: Commit) -> Result<Vec<u64>, StoreError> {
        let commit = match self.desk.at_once(commit) {
            ControlFlow::Break(answer) => return answer,
            ControlFlow::Continue(commit) => commit,
        };
        let (order, answered) = self.desk.order(commit);
        let orders = self.orders.as_ref().ok_or_else(writer::gone)?;
        orders.send(order).await.map_err(|_| writer::gone())?;
        answered.await.map_err(|_| writer::gone())?
    }
}

impl Drop for Sqlite {
    /// Waits until everything that was ordered is written.
    fn drop(&mut self) {
        // Readers first: the last to close the file empties its log, and they can't.
        self.readers.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
        self.orders = None;
        if let Some(writer) = self.writer.take() {
            // It panicked or it is done; there is nothing left to save.
            let _ = writer.join();
        }
    }
}

impl Store for Sqlite {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Vec<u64>, StoreError>> {
        Box::pin(self.order(commit))
    }

    fn action(&self, tenant: &Name, id: &Id) -> Result<Option<Action>, Problem> {
        self.read(|sql| read::action(sql, tenant, id))
    }

    fn by_approval(&self, tenant: &Name, approval: &Id) -> Result<Option<Action>, Problem> {
        self.read(|sql| read::by_approval(sql, tenant, approval))
    }

    fn key(&self, scope: &Digest) -> Result<Option<(Digest, Id)>, Problem> {
        self.read(|sql| read::key(sql, scope))
    }

    fn actions(&self, tenant: &Name, filter: &ActionFilter) -> Result<Page<Action>, Problem> {
        self.read(|sql| read::actions(sql, tenant, filter))
    }

    fn approvals(&self, tenant: &Name, filter: &ApprovalFilter) -> Result<Page<(Action, Approval)>, Problem> {
        self.read(|sql| read::approvals(sql, tenant, filter))
    }

    fn grant(&self, tenant: &Name, id: &Id) -> Result<Option<Grant>, Problem> {
        self.read(|sql| read::grant(sql, tenant, id))
    }

    fn grants(&self, tenant: &Name, filter: &GrantFilter) -> Result<Vec<Grant>, Problem> {
        self.read(|sql| read::grants(sql, tenant, filter))
    }

    fn declined(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<Option<Action>, Problem> {
        self.read(|sql| read::declined(sql, tenant, task, intent))
    }

    fn tally(&self, tenant: &Name, task: &Id, intent: &Digest) -> Result<ApprovalTally, Problem> {
        self.read(|sql| read::tally(sql, tenant, task, intent))
    }

    fn session(&self, tenant: &Name, id: &Id) -> Result<Option<Session>, Problem> {
        self.read(|sql| tasks::session(sql, tenant, id))
    }

    fn sessions(&self, tenant: &Name, filter: &SessionFilter) -> Result<Page<Session>, Problem> {
        self.read(|sql| tasks::sessions(sql, tenant, filter))
    }

    fn task(&self, tenant: &Name, task: &Id) -> Result<TaskSeen, Problem> {
        self.read(|sql| tasks::task(sql, tenant, task))
    }

    fn tasks(&self, tenant: &Name, filter: &TaskFilter) -> Result<Page<Task>, Problem> {
        self.read(|sql| tasks::tasks(sql, tenant, filter))
    }

    fn stopping(&self, limit: u32) -> Result<Vec<Task>, Problem> {
        self.read(|sql| tasks::stopping(sql, limit))
    }

    fn stopping_sessions(&self, limit: u32) -> Result<Vec<Session>, Problem> {
        self.read(|sql| tasks::stopping_sessions(sql, limit))
    }

    fn question(&self, tenant: &Name, id: &Id) -> Result<Option<Question>, Problem> {
        self.read(|sql| tasks::question(sql, tenant, id))
    }

    fn questions(&self, tenant: &Name, filter: &QuestionFilter) -> Result<Page<Question>, Problem> {
        self.read(|sql| tasks::questions(sql, tenant, filter))
    }

    fn expiring(&self, now_ms: u64, limit: u32) -> Result<Vec<Due>, Problem> {
        self.read(|sql| read::expiring(sql, now_ms, limit))
    }

    fn running(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.read(|sql| read::open_in(sql, ActionState::Running, limit))
    }

    fn requested(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.read(|sql| read::open_in(sql, ActionState::Requested, limit))
    }

    fn held(&self, limit: u32) -> Result<Vec<(Principal, Id)>, Problem> {
        self.read(|sql| read::held(sql, limit))
    }

    fn payload(&self, tenant: &Name, of: &Owner, sha256: &Digest) -> Result<Option<Content>, Problem> {
        self.read(|sql| read::payload(sql, tenant, of, sha256))
    }

    fn events(&self, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Problem> {
        self.read(|sql| read::events(sql, tenant, filter))
    }

    fn recorded(&self, after: u64, limit: u32) -> Result<Vec<Recorded>, Problem> {
        self.read(|sql| Ok(recorded::after(sql, None, after, limit)?.0))
    }

    fn last_recorded(&self) -> Result<u64, Problem> {
        self.read(recorded::last)
    }

    fn database(&self) -> Result<Id, Problem> {
        self.read(open::database_id)
    }

    fn head(&self, tenant: &Name, session: &Id) -> Result<u64, Problem> {
        self.read(|sql| read::head(sql, tenant, session))
    }

    fn halted(&self) -> Result<Option<Halt>, Problem> {
        self.read(read::halted)
    }

    fn changes(&self) -> Result<watch::Receiver<u64>, Problem> {
        self.watcher.listen(&self.path).map_err(|fault| fault.problem(&self.path))
    }

    fn erase(
        &self,
        tenant: &Name,
        of: &Owner,
        by: &Name,
        at_ms: u64,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        let (tenant, of, by) = (tenant.clone(), of.clone(), by.clone());
        Box::pin(async move {
            let found = match &of {
                Owner::Action(action) => self.action(&tenant, action)?.map(|action| action.session),
                Owner::Task(task) => self.read(|sql| tasks::with_texts(sql, &tenant, task))?,
            };
            let Some(session) = found else { return Ok(None) };
            let event = match of {
                Owner::Action(action) => Event { at_ms, action: Some(action), what: What::Erased { by } },
                Owner::Task(task) => {
                    Event { at_ms, action: None, what: What::Task { task, event: TaskEvent::Erased { by } } }
                }
            };
            let mut commit = Commit::new(LogKey { tenant, session });
            commit.events.push(event);
            Ok(self.order(commit).await?.pop())
        })
    }
}
