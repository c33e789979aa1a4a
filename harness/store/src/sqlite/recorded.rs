//! Everything that is recorded, in the order in which it was.

use env_contracts::Name;
use rusqlite::{Connection, params};

use super::apply::int;
use super::fault::Fault;
use super::read::{bounded, collect, logged};
use crate::Recorded;

/// A page of events in the order in which they were recorded, after this one,
/// and the last that was looked at.
///
/// The rank is the row of the event. Rows are given inside of the transaction
/// that writes them, one above the highest, no event is ever deleted, and
/// `BEGIN IMMEDIATE` lets one such transaction be open at a time, over all
/// processes: so rows are given in the order of the commits, and what a reader
/// sees is everything up to some commit. What it has not seen is above.
pub(super) fn after(
    sql: &Connection,
    tenant: Option<&Name>,
    after: u64,
    limit: u32,
) -> Result<(Vec<Recorded>, Option<u64>), Fault> {
    let mut statement = sql.prepare_cached(
        "SELECT session, events.seq, at_ms, actions.id, events.body, hash, logs.tenant, event FROM events \
         JOIN logs USING (log) LEFT JOIN actions USING (action) WHERE event > ? ORDER BY event LIMIT ?",
    )?;
    let mut last = None;
    let page = collect(&mut statement, params![int(after), bounded(limit)], |row| {
        let rank = row.get(7)?;
        last = Some(rank);
        let owner: Name = row.get::<_, String>(6)?.parse().map_err(Fault::Damaged)?;
        let mine = tenant.is_none_or(|tenant| *tenant == owner);
        Ok(if mine { Some(Recorded { rank, logged: logged(row, &owner)? }) } else { None })
    })?;
    Ok((page.into_iter().flatten().collect(), last))
}

pub(super) fn last(sql: &Connection) -> Result<u64, Fault> {
    Ok(sql.prepare_cached("SELECT coalesce(max(event), 0) FROM events")?.query_row([], |row| row.get(0))?)
}
