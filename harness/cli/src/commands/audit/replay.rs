//! Whether the log adds up to the state.
//!
//! What is held in memory at one time is one action, a page of events, and the
//! grants, of which there are as many as people gave.

use std::collections::BTreeSet;
use std::io::{self, Write};

use env_contracts::{Code, Id, Name, Problem};
use glovebox_events::{Action, Grant, LogKey, Logged, What};
use glovebox_plane::machine::Live;
use glovebox_store::{
    ActionFilter, EventFilter, EventsOf, ExportError, ExportFilter, ExportFormat, GrantFilter, MAX_PAGE, Sqlite, Store,
};
use serde::Serialize;

/// The most findings that are listed: who has so many needs a backup.
const MAX_FINDINGS: usize = 100;

/// How often something is looked at anew that others may just be changing.
const TRIES: usize = 3;

/// What the log adds up to, compared with what the store has.
#[derive(Debug, Default, Serialize)]
pub(in crate::commands) struct Replayed {
    /// How many actions were replayed.
    pub(in crate::commands) actions: u64,
    /// How many grants.
    pub(in crate::commands) grants: u64,
    /// How many things are not what the log says.
    pub(in crate::commands) faults: u64,
    /// The first of them.
    pub(in crate::commands) findings: Vec<String>,
}

impl Replayed {
    fn fault(&mut self, text: String) {
        self.faults += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(text);
        }
    }
}

/// Replays the whole log and compares it with the state.
///
/// # Errors
/// `store-corrupt` where it can't be read.
pub(in crate::commands) fn compare(store: &Sqlite) -> Result<Replayed, Problem> {
    let mut last = Replayed::default();
    for _ in 0..TRIES {
        last = once(store)?;
        if last.faults == 0 {
            break;
        }
        // Somebody may have written meanwhile; a real fault stays.
    }
    Ok(last)
}

fn once(store: &Sqlite) -> Result<Replayed, Problem> {
    let mut reader = Reader {
        store,
        line: Vec::new(),
        live: Live::default(),
        tenants: BTreeSet::new(),
        out: Replayed::default(),
        failed: None,
    };
    match store.export(&mut reader, ExportFormat::Ndjson, &ExportFilter::default()) {
        Ok(_) => {}
        Err(ExportError::Problem(problem)) => return Err(problem),
        Err(ExportError::Write(error)) => {
            let unexpected = || Problem::new(Code::StoreCorrupt, format!("the log can't be read: {error}"));
            return Err(reader.failed.unwrap_or_else(unexpected));
        }
    }
    reader.rest()?;
    for fault in store.derived()? {
        reader.out.fault(fault);
    }
    Ok(reader.out)
}

/// Takes the log as it is exported, event by event, in the order in which it
/// was recorded.
struct Reader<'a> {
    store: &'a Sqlite,
    line: Vec<u8>,
    /// What is no action's: grants and the operator's stop.
    live: Live,
    tenants: BTreeSet<Name>,
    out: Replayed,
    failed: Option<Problem>,
}

impl Write for Reader<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (part, ended) = match bytes.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&bytes[..=at], true),
            None => (bytes, false),
        };
        self.line.extend_from_slice(part);
        if ended {
            let logged: Logged = serde_json::from_slice(&self.line)?;
            self.line.clear();
            if let Err(problem) = self.take(&logged) {
                self.failed = Some(problem);
                return Err(io::Error::other("the state can't be read"));
            }
        }
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Reader<'_> {
    fn take(&mut self, logged: &Logged) -> Result<(), Problem> {
        let tenant = &logged.log.tenant;
        self.tenants.insert(tenant.clone());
        match (&logged.event.action, &logged.event.what) {
            (Some(action), What::Requested { .. }) => self.action(&logged.log, action),
            // They are replayed with their action.
            (Some(_), _) => Ok(()),
            (None, _) => {
                if let Err(error) = self.live.add(logged) {
                    self.out.fault(error.to_string());
                }
                Ok(())
            }
        }
    }

    /// Replays one action and compares it.
    fn action(&mut self, log: &LogKey, id: &Id) -> Result<(), Problem> {
        self.out.actions += 1;
        let mut fault = String::new();
        for _ in 0..TRIES {
            let replayed = self.replayed(log, id)?;
            let stored = self.store.action(&log.tenant, id)?;
            fault = match (replayed, stored) {
                (Ok(Some(replayed)), Some(stored)) if replayed == stored => return Ok(()),
                (Ok(Some(replayed)), Some(stored)) => {
                    let (is, says) = (stored.state, replayed.state);
                    let (has, adds) = (stored.version, replayed.version);
                    format!("action `{id}` is `{is}` in version {has}; the log says `{says}`, version {adds}")
                }
                (Ok(_), _) => format!("action `{id}` is in the log and nowhere else"),
                (Err(why), _) => why,
            };
        }
        self.out.fault(fault);
        Ok(())
    }

    /// What the log says of one action; or why it can't have come about.
    fn replayed(&self, log: &LogKey, id: &Id) -> Result<Result<Option<Action>, String>, Problem> {
        let mut live = Live::default();
        let mut filter = EventFilter { of: EventsOf::Action(id.clone()), after: 0, limit: MAX_PAGE };
        loop {
            let events = self.store.events(&log.tenant, &filter)?;
            let Some(last) = events.last() else { break };
            filter.after = last.seq;
            for logged in &events {
                if let Err(error) = live.add(logged) {
                    return Ok(Err(error.to_string()));
                }
            }
        }
        Ok(Ok(live.actions.remove(&(log.tenant.clone(), id.clone()))))
    }

    /// What the state has and the log does not, and what is no action's.
    fn rest(&mut self) -> Result<(), Problem> {
        let stand = self.store.halted()?;
        if stand != self.live.halt {
            let word = |halted: bool| if halted { "stopped" } else { "not stopped" };
            let (is, says) = (word(stand.is_some()), word(self.live.halt.is_some()));
            self.out.fault(format!("everything is {is} by other words than the log's, which says {says}"));
        }
        let mut tenants = std::mem::take(&mut self.tenants);
        tenants.insert(crate::who::principal().tenant);
        for tenant in &tenants {
            self.grants(tenant)?;
            self.actions(tenant)?;
        }
        Ok(())
    }

    fn grants(&mut self, tenant: &Name) -> Result<(), Problem> {
        let mut stored: Vec<Grant> = self.store.grants(tenant, &GrantFilter::default())?;
        let mut logged: Vec<&Grant> =
            self.live.grants.iter().filter(|((of, _), _)| of == tenant).map(|(_, grant)| grant).collect();
        self.out.grants += logged.len() as u64;
        stored.retain(|grant| match logged.iter().position(|known| *known == grant) {
            Some(at) => {
                logged.swap_remove(at);
                false
            }
            None => true,
        });
        let ids: BTreeSet<&Id> = stored.iter().chain(logged).map(|grant| &grant.id).collect();
        for id in ids {
            self.out.fault(format!("grant `{id}` is not what the log says"));
        }
        Ok(())
    }

    /// Actions of which the log does not know the request.
    fn actions(&mut self, tenant: &Name) -> Result<(), Problem> {
        let mut filter = ActionFilter { limit: MAX_PAGE, ..ActionFilter::default() };
        loop {
            let page = self.store.actions(tenant, &filter)?;
            for action in &page.items {
                let first = EventFilter { of: EventsOf::Action(action.id.clone()), after: 0, limit: 1 };
                let first = self.store.events(tenant, &first)?;
                if !first.first().is_some_and(|logged| matches!(logged.event.what, What::Requested { .. })) {
                    self.out.fault(format!("action `{}` is in no log", action.id));
                }
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(()),
            }
        }
    }
}
