//! The table of approvals, kept up from events and records: an action names
//! only its newest, and people look for the older ones too.

use env_contracts::Id;
use glovebox_events::{Action, Answered, Approval, ApprovalState, Right, What};
use rusqlite::{OptionalExtension, params};

use super::apply::{Writing, int, json, parse};
use super::fault::Fault;
use crate::Record;
use crate::chain::raw;

/// Brings the table up to what the commit says.
pub(super) fn project(writing: &mut Writing<'_>) -> Result<(), Fault> {
    let commit = writing.commit;
    for event in &commit.events {
        let Some(action) = &event.action else { continue };
        match &event.what {
            What::ApprovalOpened { approval } => put(writing, action, approval)?,
            What::ApprovalAnswered { answer } => change(writing, action, &answer.approval, |approval| {
                approval.state = match answer.answer {
                    Answered::Approve => ApprovalState::Approved,
                    Answered::Decline => ApprovalState::Declined,
                    Answered::Edit => ApprovalState::Edited,
                };
                approval.answer = Some((**answer).clone());
            })?,
            What::ApprovalExpired { approval } => {
                change(writing, action, approval, |approval| approval.state = ApprovalState::Expired)?;
            }
            What::ApprovalWithdrawn { approval, .. } => {
                change(writing, action, approval, |approval| approval.state = ApprovalState::Withdrawn)?;
            }
            What::Drifted { approval, .. } => {
                change(writing, action, approval, |approval| approval.state = ApprovalState::Drifted)?;
            }
            What::Claimed { right: Right::Approval { approval }, .. } => {
                change(writing, action, approval, |approval| approval.state = ApprovalState::Consumed)?;
            }
            _ => {}
        }
    }
    // What the record of the action says is final.
    for record in &commit.records {
        if let Record::Action(action) = record
            && let Some(approval) = &action.approval
        {
            put(writing, &action.id, approval)?;
        }
    }
    Ok(())
}

/// What an older approval becomes. The newest one stands in its action, and is
/// put from there.
fn change(writing: &mut Writing<'_>, action: &Id, id: &Id, change: impl FnOnce(&mut Approval)) -> Result<(), Fault> {
    if is_newest(&writing.known(action)?.action, id) {
        return Ok(());
    }
    let body: Option<Vec<u8>> = writing
        .sql
        .prepare_cached("SELECT body FROM approvals WHERE tenant = ? AND id = ?")?
        .query_row(params![writing.tenant().as_str(), id.as_str()], |row| row.get(0))
        .optional()?;
    let body = body.ok_or_else(|| Fault::Misuse(format!("approval `{id}` does not exist")))?;
    let mut approval: Approval = parse("an approval", &body)?;
    change(&mut approval);
    put(writing, action, &approval)
}

fn is_newest(action: &Action, approval: &Id) -> bool {
    action.approval.as_ref().is_some_and(|newest| newest.id == *approval)
}

fn put(writing: &mut Writing<'_>, action: &Id, approval: &Approval) -> Result<(), Fault> {
    let known = writing.known(action)?;
    let (row, task) = (known.row, known.action.task.clone());
    let tenant = writing.tenant().as_str();
    let body = json(approval);
    let same = writing
        .sql
        .prepare_cached("SELECT 1 FROM approvals WHERE tenant = ? AND id = ? AND action = ? AND body = ?")?
        .exists(params![tenant, approval.id.as_str(), row, body])?;
    if same {
        return Ok(());
    }
    let written = writing
        .sql
        .prepare_cached(
            "INSERT INTO approvals (tenant, id, action, log, task, intent, state, opened_ms, expires_ms, body) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) \
             ON CONFLICT (tenant, id) DO UPDATE SET state = excluded.state, expires_ms = excluded.expires_ms, \
             body = excluded.body WHERE action = excluded.action",
        )?
        .execute(params![
            tenant,
            approval.id.as_str(),
            row,
            writing.log,
            task.as_str(),
            raw(&approval.intent),
            approval.state.as_str(),
            int(approval.opened_ms),
            approval.expires_ms.map(int),
            body
        ])?;
    if written == 0 {
        return Err(Fault::Misuse(format!("approval `{}` belongs to another action", approval.id)));
    }
    Ok(())
}
