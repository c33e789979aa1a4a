//! Whether the tables beside the log are what the log adds up to.
//!
//! What an action is after its events is the plane's to say; what keys it took,
//! which runs count, what a task used and what became of older approvals
//! follows from the events alone, and is worked out here once more.

use std::collections::BTreeMap;

use env_contracts::{Id, Name, Problem};
use glovebox_events::{Action, Answered, Approval, ApprovalState, KeyClaim, Right, What};
use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use super::apply::{int, parse};
use super::fault::Fault;
use super::{Sqlite, open};
use crate::TaskUse;
use crate::chain::raw;

impl Sqlite {
    /// Works the tables beside the log out from its events, and lists in words
    /// what is missing in them, changed, or too much. An empty list is good
    /// news.
    ///
    /// # Errors
    /// `store-corrupt` where it can't be read.
    pub fn derived(&self) -> Result<Vec<String>, Problem> {
        let look = || {
            let mut sql = open::reader(&self.path)?;
            // One moment of all tables, while others write.
            let sql = sql.transaction_with_behavior(TransactionBehavior::Deferred)?;
            let mut derived = Derived::default();
            let mut after = Some(0);
            while let Some(row) = after {
                after = derived.action(&sql, row)?;
            }
            derived.rest(&sql)?;
            Ok(derived.faults)
        };
        look().map_err(|fault: Fault| fault.problem(&self.path))
    }
}

/// What the events that were read so far add up to.
#[derive(Default)]
struct Derived {
    keys: u64,
    claims: u64,
    approvals: u64,
    tasks: BTreeMap<(Name, Id), TaskUse>,
    faults: Vec<String>,
}

impl Derived {
    /// Compares what is filed of the first action after this row.
    fn action(&mut self, sql: &Connection, after: i64) -> Result<Option<i64>, Fault> {
        let found: Option<(i64, i64, Vec<u8>)> = sql
            .prepare_cached("SELECT action, log, body FROM actions WHERE action > ? ORDER BY action LIMIT 1")?
            .query_row([after], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .optional()?;
        let Some((row, log, body)) = found else { return Ok(None) };
        let action: Action = parse("an action", &body)?;
        let tenant = action.principal.tenant.clone();
        let mut approvals: Vec<Approval> = Vec::new();
        let mut statement = sql.prepare_cached("SELECT at_ms, body FROM events WHERE action = ? ORDER BY seq")?;
        let mut events = statement.query([row])?;
        while let Some(event) = events.next()? {
            let (at_ms, body): (i64, Vec<u8>) = (event.get(0)?, event.get(1)?);
            let what: What = parse("an event", &body)?;
            match &what {
                What::Requested { key: Some(key), .. } => self.key(sql, key, &action)?,
                What::Claimed { .. } => {
                    self.claim(sql, &action, row, at_ms)?;
                }
                What::ApprovalOpened { approval } => approvals.push((**approval).clone()),
                _ => {}
            }
            self.used(&action).count(&what);
            become_of(&mut approvals, &what);
        }
        for mut approval in approvals {
            // What the action says of its newest is final.
            if let Some(newest) = action.approval.as_ref().filter(|newest| newest.id == approval.id) {
                approval = newest.clone();
            }
            self.approval(sql, &tenant, &action, (row, log), &approval)?;
        }
        Ok(Some(row))
    }

    fn used(&mut self, action: &Action) -> &mut TaskUse {
        self.tasks.entry((action.principal.tenant.clone(), action.task.clone())).or_default()
    }

    fn key(&mut self, sql: &Connection, key: &KeyClaim, action: &Action) -> Result<(), Fault> {
        self.keys += 1;
        let there = sql
            .prepare_cached("SELECT 1 FROM keys WHERE scope = ? AND request = ? AND action = ?")?
            .exists(params![raw(&key.scope), raw(&key.request), action.id.as_str()])?;
        if !there {
            self.faults.push(format!("the key of action `{}` is not taken", action.id));
        }
        Ok(())
    }

    fn claim(&mut self, sql: &Connection, action: &Action, row: i64, at_ms: i64) -> Result<(), Fault> {
        self.claims += 1;
        let there = sql
            .prepare_cached("SELECT 1 FROM claims WHERE tenant = ? AND capability = ? AND at_ms = ? AND action = ?")?
            .exists(params![action.principal.tenant.as_str(), action.capability.name.as_str(), at_ms, row])?;
        if !there {
            self.faults.push(format!("the run of action `{}` is not counted", action.id));
        }
        Ok(())
    }

    fn approval(
        &mut self,
        sql: &Connection,
        tenant: &Name,
        action: &Action,
        (row, log): (i64, i64),
        approval: &Approval,
    ) -> Result<(), Fault> {
        self.approvals += 1;
        let body: Option<Vec<u8>> = sql
            .prepare_cached(
                "SELECT body FROM approvals WHERE tenant = ? AND id = ? AND action = ? AND log = ? AND task = ?",
            )?
            .query_row(params![tenant.as_str(), approval.id.as_str(), row, log, action.task.as_str()], |row| row.get(0))
            .optional()?;
        let filed = body.and_then(|body| serde_json::from_slice::<Approval>(&body).ok());
        match filed {
            Some(filed) if filed == *approval => {}
            Some(_) => self.faults.push(format!("approval `{}` is not what the log says", approval.id)),
            None => self.faults.push(format!("approval `{}` is in the log and not filed", approval.id)),
        }
        Ok(())
    }

    /// What is filed and follows from no event; and what tasks used.
    fn rest(&mut self, sql: &Connection) -> Result<(), Fault> {
        for (table, known) in [("keys", self.keys), ("claims", self.claims), ("approvals", self.approvals)] {
            let filed: u64 = sql.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
            if filed > known {
                self.faults.push(format!("{} rows of {table} follow from no event", filed - known));
            }
        }
        self.questions(sql)?;
        let mut statement = sql.prepare(
            "SELECT tenant, task, actions, asks, run_us, artifact_bytes, output_bytes, egress_bytes, cost_micros, \
             waiting_us FROM tasks",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (tenant, task): (String, String) = (row.get(0)?, row.get(1)?);
            let name = format!("what task `{task}` used");
            let (Ok(tenant), Ok(task)) = (tenant.parse(), task.parse()) else {
                self.faults.push(format!("{name} is of no task that can be"));
                continue;
            };
            let known = self.tasks.remove(&(tenant, task)).unwrap_or_default();
            let known = [
                known.actions,
                known.asks,
                known.run_us,
                known.artifact_bytes,
                known.output_bytes,
                known.egress_bytes,
                known.cost_micros,
                known.waiting_us,
            ];
            let mut same = true;
            for (column, known) in known.into_iter().enumerate() {
                let filed: i64 = row.get(column + 2)?;
                same &= filed == int(known);
            }
            if !same {
                self.faults.push(format!("{name} is not what the log adds up to"));
            }
        }
        let missing = self.tasks.iter().filter(|(_, used)| **used != TaskUse::default());
        self.faults.extend(missing.map(|((_, task), _)| format!("what task `{task}` used is not filed")));
        Ok(())
    }
}

impl Derived {
    /// Questions count for what a task asked.
    fn questions(&mut self, sql: &Connection) -> Result<(), Fault> {
        let mut statement =
            sql.prepare("SELECT tenant, body FROM task_events JOIN logs USING (log) JOIN events USING (event)")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let (tenant, body): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
            let what: What = parse("an event", &body)?;
            if let (What::Question { task, .. }, Ok(tenant)) = (&what, tenant.parse()) {
                self.tasks.entry((tenant, task.clone())).or_default().count(&what);
            }
        }
        Ok(())
    }
}

/// What becomes of approvals by an event of their action.
fn become_of(approvals: &mut [Approval], what: &What) {
    if let What::Reviewed { review } = what {
        if let Some(approval) = approvals.iter_mut().find(|approval| approval.id == review.approval) {
            approval.reviews.push(review.clone());
        }
        return;
    }
    let (id, state) = match what {
        What::ApprovalAnswered { answer } => {
            let state = match answer.answer {
                Answered::Approve => ApprovalState::Approved,
                Answered::Decline => ApprovalState::Declined,
                Answered::Edit => ApprovalState::Edited,
            };
            (&answer.approval, state)
        }
        What::ApprovalExpired { approval } => (approval, ApprovalState::Expired),
        What::ApprovalWithdrawn { approval, .. } => (approval, ApprovalState::Withdrawn),
        What::Drifted { approval, .. } => (approval, ApprovalState::Drifted),
        What::Claimed { right: Right::Approval { approval }, .. } => (approval, ApprovalState::Consumed),
        _ => return,
    };
    let Some(approval) = approvals.iter_mut().find(|approval| approval.id == *id) else { return };
    approval.state = state;
    if let What::ApprovalAnswered { answer } = what {
        approval.answer = Some((**answer).clone());
    }
}
