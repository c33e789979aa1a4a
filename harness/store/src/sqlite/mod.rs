//! The store in one SQLite file.

mod apply;
mod approvals;
mod audit;
mod backup;
mod check;
mod conditions;
mod fault;
mod open;
mod read;
mod watcher;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

use env_contracts::{Digest, Id, Name, Problem};
use glovebox_events::{Action, Approval, Event, Grant, Halt, LogKey, Logged, What};
use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot, watch};

use crate::holder::Holder;
use crate::{
    ActionFilter, ApprovalFilter, ApprovalTally, BoxFuture, Commit, Content, Due, EventFilter, GrantFilter, Page,
    Store, StoreError, TaskUse,
};
use fault::Fault;
use watcher::Watcher;
use writer::{Order, Writer};

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
            let writer = Writer { sql, path: path.clone(), changes: watcher.changes() };
            let thread = std::thread::Builder::new()
                .name("store-write".into())
                .spawn(move || writer.run(receiver))
                .map_err(|error| open::unavailable(&path, &format!("no thread to write it: {error}")))?;
            Ok((orders, thread, watcher))
        };
        let (orders, thread, watcher) = opened().map_err(|fault: Fault| fault.problem(&path))?;
        let holder = Holder::new(folder)?;
        Ok(Self { path, orders: Some(orders), writer: Some(thread), readers: Mutex::default(), watcher, holder })
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
        let (answer, answered) = oneshot::channel();
        let orders = self.orders.as_ref().ok_or_else(writer::gone)?;
        orders.send(Order { commit, answer }).await.map_err(|_| writer::gone())?;
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

    fn task(&self, tenant: &Name, task: &Id) -> Result<TaskUse, Problem> {
        self.read(|sql| read::task(sql, tenant, task))
    }

    fn expiring(&self, now_ms: u64, limit: u32) -> Result<Vec<Due>, Problem> {
        self.read(|sql| read::expiring(sql, now_ms, limit))
    }

    fn running(&self, limit: u32) -> Result<Vec<Action>, Problem> {
        self.read(|sql| read::running(sql, limit))
    }

    fn payload(&self, tenant: &Name, action: &Id, sha256: &Digest) -> Result<Option<Content>, Problem> {
        self.read(|sql| read::payload(sql, tenant, action, sha256))
    }

    fn events(&self, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Problem> {
        self.read(|sql| read::events(sql, tenant, filter))
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
        action: &Id,
        by: &Name,
        at_ms: u64,
    ) -> BoxFuture<'_, Result<Option<u64>, StoreError>> {
        let (tenant, action, by) = (tenant.clone(), action.clone(), by.clone());
        Box::pin(async move {
            let Some(found) = self.action(&tenant, &action)? else { return Ok(None) };
            let mut commit = Commit::new(LogKey { tenant, session: found.session });
            commit.events.push(Event { at_ms, action: Some(action), what: What::Erased { by } });
            Ok(self.order(commit).await?.pop())
        })
    }
}
