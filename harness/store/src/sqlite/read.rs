//! Queries: each is one statement, or a point read and one statement.

use env_contracts::{Digest, Id, Name, Principal};
use glovebox_events::{Action, ActionState, Approval, Event, Grant, Halt, LogKey, Logged, Owner};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, ToSql, params, params_from_iter};

use super::apply::{int, parse};
use super::conditions::{digest, id};
use super::fault::Fault;
use super::tasks;
use crate::chain::raw;
use crate::{
    ActionFilter, ApprovalFilter, ApprovalTally, Content, Due, DueOf, EventFilter, EventsOf, GrantFilter, MAX_PAGE,
    Page,
};

/// A question that is put together from the parts of a filter.
pub(super) struct Query {
    pub(super) text: String,
    pub(super) values: Vec<Box<dyn ToSql>>,
}

impl Query {
    pub(super) fn new(text: &str, tenant: &Name) -> Self {
        Self { text: text.to_owned(), values: vec![Box::new(tenant.as_str().to_owned())] }
    }

    pub(super) fn and(&mut self, text: &str, value: impl ToSql + 'static) -> &mut Self {
        self.text.push_str(" AND ");
        self.text.push_str(text);
        self.values.push(Box::new(value));
        self
    }

    /// Only what this one of the user's agents works in.
    pub(super) fn family(&mut self, agent: Option<&Name>) -> &mut Self {
        match agent {
            Some(agent) => self.and(FAMILY, agent.as_str().to_owned()),
            None => self,
        }
    }

    /// Only what is this user's, where no column says so.
    pub(super) fn of_user(&mut self, user: Option<&Name>) -> &mut Self {
        match user {
            Some(user) => self.and("CAST(body AS TEXT) ->> '$.principal.user' = ?", user.as_str().to_owned()),
            None => self,
        }
    }

    /// One of these words of ours; none means any.
    pub(super) fn and_one_of(&mut self, column: &str, words: &[&'static str]) -> &mut Self {
        // As literals, so that SQLite sees which partial index will do.
        match words {
            [] => {}
            [word] => self.text.push_str(&format!(" AND {column} = '{word}'")),
            words => self.text.push_str(&format!(" AND {column} IN ('{}')", words.join("', '"))),
        }
        self
    }

    pub(super) fn limited(&mut self, order: &str, limit: u32) -> &mut Self {
        self.text.push_str(order);
        self.text.push_str(" LIMIT ?");
        self.values.push(Box::new(limit));
        self
    }

    fn statement<'a>(&self, sql: &'a Connection) -> Result<CachedStatement<'a>, Fault> {
        Ok(sql.prepare_cached(&self.text)?)
    }

    pub(super) fn rows<T>(
        &self,
        sql: &Connection,
        read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        collect(&mut self.statement(sql)?, params_from_iter(&self.values), read)
    }
}

pub(super) fn collect<T>(
    statement: &mut CachedStatement<'_>,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Fault>,
) -> Result<Vec<T>, Fault> {
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// What a page may hold, whatever was asked for.
pub(super) fn bounded(limit: u32) -> u32 {
    if limit == 0 { MAX_PAGE } else { limit.min(MAX_PAGE) }
}

/// Actions that have not ended, by the index of those.
const OPEN: &str = "SELECT body FROM actions INDEXED BY actions_open \
                    WHERE state NOT IN ('succeeded', 'failed', 'cancelled') AND tenant = ?";

/// Asked for by this very agent, as the document says. There is no column for
/// it: who looks for what an agent did looks through what its user has.
fn by_agent(document: &str) -> String {
    format!("CAST({document} AS TEXT) ->> '$.principal.agent' = ?")
}

/// Opened by this agent, by one that it called, or by none.
const FAMILY: &str = "(CAST(body AS TEXT) ->> '$.principal.agent' IS NULL \
                      OR ? IN (SELECT CAST(body AS TEXT) ->> '$.principal.agent' \
                      UNION ALL SELECT value FROM json_each(CAST(body AS TEXT), '$.principal.chain')))";

/// One more than the page was read, to know whether there is a next.
pub(super) fn page<T>(mut items: Vec<T>, limit: u32, cursor: impl Fn(&T) -> Id) -> Page<T> {
    let next = items.len() > limit as usize;
    items.truncate(limit as usize);
    let next = if next { items.last().map(cursor) } else { None };
    Page { items, next }
}

/// A document in the named column.
pub(super) fn document<T: serde::de::DeserializeOwned>(what: &str, row: &Row<'_>, column: usize) -> Result<T, Fault> {
    parse(what, row.get_ref(column)?.as_blob().map_err(|_| Fault::Damaged(format!("{what} is not stored as bytes")))?)
}

pub(super) fn action(sql: &Connection, tenant: &Name, id: &Id) -> Result<Option<Action>, Fault> {
    let mut query = Query::new("SELECT body FROM actions WHERE tenant = ?", tenant);
    query.and("id = ?", id.as_str().to_owned());
    Ok(query.rows(sql, |row| document("an action", row, 0))?.pop())
}

pub(super) fn by_approval(sql: &Connection, tenant: &Name, approval: &Id) -> Result<Option<Action>, Fault> {
    let mut query =
        Query::new("SELECT actions.body FROM approvals JOIN actions USING (action) WHERE approvals.tenant = ?", tenant);
    query.and("approvals.id = ?", approval.as_str().to_owned());
    Ok(query.rows(sql, |row| document("an action", row, 0))?.pop())
}

pub(super) fn key(sql: &Connection, scope: &Digest) -> Result<Option<(Digest, Id)>, Fault> {
    let found: Option<([u8; 32], String)> = sql
        .prepare_cached("SELECT request, action FROM keys WHERE scope = ?")?
        .query_row([raw(scope)], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    found.map(|(request, action)| Ok((digest(request), id(&action)?))).transpose()
}

pub(super) fn actions(sql: &Connection, tenant: &Name, filter: &ActionFilter) -> Result<Page<Action>, Fault> {
    // Those that have not ended are few and have an index of their own.
    let open = !filter.states.is_empty() && !filter.states.iter().any(|state| state.ended());
    let from = if open { OPEN } else { "SELECT body FROM actions WHERE tenant = ?" };
    let mut query = Query::new(from, tenant);
    if let Some(session) = &filter.session {
        let Some(log) = log(sql, tenant, session)? else { return Ok(Page { items: Vec::new(), next: None }) };
        query.and("log = ?", log);
    }
    if let Some(task) = &filter.task {
        query.and("task = ?", task.as_str().to_owned());
    }
    if let Some(turn) = filter.turn {
        query.and("turn = ?", int(turn));
    }
    if let Some(user) = &filter.user {
        query.and("user = ?", user.as_str().to_owned());
    }
    if let Some(agent) = &filter.agent {
        query.and(&by_agent("body"), agent.as_str().to_owned());
    }
    if let Some(after) = &filter.after {
        query.and(
            "action < (SELECT action FROM actions AS cursor WHERE cursor.tenant = actions.tenant AND cursor.id = ?)",
            after.as_str().to_owned(),
        );
    }
    let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
    let limit = bounded(filter.limit);
    query.and_one_of("state", &states).limited(" ORDER BY action DESC", limit + 1);
    Ok(page(query.rows(sql, |row| document("an action", row, 0))?, limit, |action: &Action| action.id.clone()))
}

pub(super) fn approvals(
    sql: &Connection,
    tenant: &Name,
    filter: &ApprovalFilter,
) -> Result<Page<(Action, Approval)>, Fault> {
    let mut query = Query::new(
        "SELECT actions.body, approvals.body FROM approvals JOIN actions USING (action) WHERE approvals.tenant = ?",
        tenant,
    );
    if let Some(session) = &filter.session {
        let Some(log) = log(sql, tenant, session)? else { return Ok(Page { items: Vec::new(), next: None }) };
        query.and("approvals.log = ?", log);
    }
    if let Some(user) = &filter.user {
        query.and("user = ?", user.as_str().to_owned());
    }
    if let Some(agent) = &filter.agent {
        query.and(&by_agent("actions.body"), agent.as_str().to_owned());
    }
    if let Some(intent) = &filter.intent {
        query.and("approvals.intent = ?", raw(intent));
    }
    if let Some(after) = &filter.after {
        query.and(
            "approvals.approval > (SELECT approval FROM approvals AS cursor \
             WHERE cursor.tenant = approvals.tenant AND cursor.id = ?)",
            after.as_str().to_owned(),
        );
    }
    let states: Vec<_> = filter.states.iter().map(|state| state.as_str()).collect();
    let limit = bounded(filter.limit);
    query.and_one_of("approvals.state", &states).limited(" ORDER BY approvals.approval", limit + 1);
    let found = query.rows(sql, |row| Ok((document("an action", row, 0)?, document("an approval", row, 1)?)))?;
    Ok(page(found, limit, |(_, approval): &(Action, Approval)| approval.id.clone()))
}

pub(super) fn grant(sql: &Connection, tenant: &Name, id: &Id) -> Result<Option<Grant>, Fault> {
    let mut query = Query::new("SELECT body FROM grants WHERE tenant = ?", tenant);
    query.and("id = ?", id.as_str().to_owned());
    Ok(query.rows(sql, |row| document("a grant", row, 0))?.pop())
}

pub(super) fn grants(sql: &Connection, tenant: &Name, filter: &GrantFilter) -> Result<Vec<Grant>, Fault> {
    let mut query = Query::new("SELECT body, rank FROM grants WHERE tenant = ?", tenant);
    if let Some(user) = &filter.user {
        query.and("user = ?", user.as_str().to_owned());
    }
    if let Some(live_at) = filter.live_at {
        query.and("revoked = 0 AND expires_ms > ?", int(live_at));
    }
    if let Some(session) = &filter.session {
        query.and("(session IS NULL OR session = ?)", session.as_str().to_owned());
    }
    // Asked with every action, and mostly there are none: SQLite's sorter takes
    // several times as long to set up as the rest.
    let mut found: Vec<(i64, Grant)> = query.rows(sql, |row| Ok((row.get(1)?, document("a grant", row, 0)?)))?;
    found.sort_unstable_by_key(|(rank, _)| *rank);
    Ok(found.into_iter().map(|(_, grant)| grant).collect())
}

pub(super) fn declined(sql: &Connection, tenant: &Name, task: &Id, intent: &Digest) -> Result<Option<Action>, Fault> {
    let mut query =
        Query::new("SELECT actions.body FROM approvals JOIN actions USING (action) WHERE approvals.tenant = ?", tenant);
    query
        .and("approvals.task = ?", task.as_str().to_owned())
        .and("approvals.intent = ?", raw(intent))
        .and_one_of("approvals.state", &["declined"])
        .limited(" ORDER BY approval DESC", 1);
    Ok(query.rows(sql, |row| document("an action", row, 0))?.pop())
}

pub(super) fn tally(sql: &Connection, tenant: &Name, task: &Id, intent: &Digest) -> Result<ApprovalTally, Fault> {
    let (approved, declined): (u64, u64) = sql
        .prepare_cached(
            "SELECT count(*) FILTER (WHERE state IN ('approved', 'consumed')), \
             count(*) FILTER (WHERE state = 'declined') FROM approvals WHERE tenant = ? AND task = ? AND intent = ?",
        )?
        .query_row(params![tenant.as_str(), task.as_str(), raw(intent)], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(ApprovalTally { approved, declined })
}

pub(super) fn expiring(sql: &Connection, now_ms: u64, limit: u32) -> Result<Vec<Due>, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT approvals.tenant, approvals.id, actions.id, expires_ms FROM approvals JOIN actions USING (action) \
         WHERE approvals.state IN ('pending', 'approved') AND expires_ms IS NOT NULL AND expires_ms <= ?1 \
         UNION ALL SELECT tenant, id, NULL, expires_ms FROM questions \
         WHERE state = 'pending' AND expires_ms IS NOT NULL AND expires_ms <= ?1 ORDER BY expires_ms LIMIT ?2",
    )?;
    collect(&mut statement, params![int(now_ms), bounded(limit)], |row| {
        let (tenant, of, action): (String, String, Option<String>) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let what = match action {
            Some(action) => DueOf::Approval { action: id(&action)?, approval: id(&of)? },
            None => DueOf::Question(id(&of)?),
        };
        Ok(Due { tenant: tenant.parse().map_err(Fault::Damaged)?, what })
    })
}

pub(super) fn open_in(sql: &Connection, state: ActionState, limit: u32) -> Result<Vec<Action>, Fault> {
    let mut statement = sql.prepare_cached(
        // The second condition is what makes the small index of open actions usable.
        "SELECT body FROM actions WHERE state = ? AND state NOT IN ('succeeded', 'failed', 'cancelled') \
         ORDER BY action LIMIT ?",
    )?;
    collect(&mut statement, params![state.as_str(), bounded(limit)], |row| document("an action", row, 0))
}

/// They are looked for among what has not ended, by the index of that.
pub(super) fn held(sql: &Connection, limit: u32) -> Result<Vec<(Principal, Id)>, Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT id, CAST(body AS TEXT) -> '$.principal' FROM actions INDEXED BY actions_open \
         WHERE state NOT IN ('succeeded', 'failed', 'cancelled') AND state <> 'running' \
         AND CAST(body AS TEXT) ->> '$.held' ORDER BY action LIMIT ?",
    )?;
    collect(&mut statement, [limit], |row| {
        let (action, principal): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((parse("who asked", principal.as_bytes())?, id(&action)?))
    })
}

pub(super) fn payload(sql: &Connection, tenant: &Name, of: &Owner, sha256: &Digest) -> Result<Option<Content>, Fault> {
    let (statement, id) = match of {
        Owner::Action(id) => {
            ("SELECT bytes FROM payloads JOIN actions USING (action) WHERE tenant = ? AND id = ? AND sha256 = ?", id)
        }
        Owner::Task(id) => ("SELECT bytes FROM texts WHERE tenant = ? AND task = ? AND sha256 = ?", id),
    };
    let found: Option<Option<Vec<u8>>> = sql
        .prepare_cached(statement)?
        .query_row(params![tenant.as_str(), id.as_str(), raw(sha256)], |row| row.get(0))
        .optional()?;
    Ok(found.map(|bytes| bytes.map_or(Content::Erased, Content::Bytes)))
}

pub(super) fn events(sql: &Connection, tenant: &Name, filter: &EventFilter) -> Result<Vec<Logged>, Fault> {
    let mut query = Query::new(
        "SELECT session, events.seq, at_ms, actions.id, events.body, hash FROM logs JOIN events USING (log) \
         LEFT JOIN actions USING (action) WHERE logs.tenant = ?",
        tenant,
    );
    match &filter.of {
        EventsOf::Session(session) => query.and("session = ?", session.as_str().to_owned()),
        EventsOf::Action(action) => query.and(
            "events.action = (SELECT action FROM actions AS one WHERE one.tenant = logs.tenant AND one.id = ?)",
            action.as_str().to_owned(),
        ),
        EventsOf::Task(task) => return tasks::events(sql, tenant, task, filter.after, bounded(filter.limit)),
    };
    query.and("events.seq > ?", int(filter.after)).limited(" ORDER BY events.seq", bounded(filter.limit));
    query.rows(sql, |row| logged(row, tenant))
}

pub(super) fn head(sql: &Connection, tenant: &Name, session: &Id) -> Result<u64, Fault> {
    let mut query = sql.prepare_cached("SELECT seq FROM logs WHERE tenant = ? AND session = ?")?;
    let head = query.query_row([tenant.as_str(), session.as_str()], |row| row.get(0)).optional()?;
    Ok(head.unwrap_or_default())
}

/// An event from the columns session, seq, at_ms, action's id, body, hash.
pub(super) fn logged(row: &Row<'_>, tenant: &Name) -> Result<Logged, Fault> {
    let (session, action): (String, Option<String>) = (row.get(0)?, row.get(3)?);
    Ok(Logged {
        log: LogKey { tenant: tenant.clone(), session: id(&session)? },
        seq: row.get(1)?,
        event: Event {
            at_ms: row.get(2)?,
            action: action.as_deref().map(id).transpose()?,
            what: document("an event", row, 4)?,
        },
        hash: digest(row.get(5)?),
    })
}

pub(super) fn halted(sql: &Connection) -> Result<Option<Halt>, Fault> {
    let found: Option<Vec<u8>> = sql
        .prepare_cached("SELECT value FROM facts WHERE name = 'halt'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    found.map(|halt| parse("the operator's stop", &halt)).transpose()
}

/// The row of a session's log.
pub(super) fn log(sql: &Connection, tenant: &Name, session: &Id) -> Result<Option<i64>, Fault> {
    Ok(sql
        .prepare_cached("SELECT log FROM logs WHERE tenant = ? AND session = ?")?
        .query_row([tenant.as_str(), session.as_str()], |row| row.get(0))
        .optional()?)
}
