//! Ids come in from outside.

use env_contracts::Id;
use glovebox_runtime::Instant;

/// Makes ids. Tests bring their own.
pub trait IdSource: Send + Sync {
    /// A new id, for something that begins now.
    fn next(&self, now: Instant) -> Id;

    /// A new id that nobody can guess and that says nothing, for what a
    /// person's answer names.
    fn random(&self) -> Id;
}

/// Ids that sort by time: UUIDs of version 7.
#[derive(Debug, Clone, Copy, Default)]
pub struct TimeOrderedIds;

impl IdSource for TimeOrderedIds {
    fn next(&self, now: Instant) -> Id {
        let seconds = now.unix_millis / 1000;
        let nanos = u32::try_from(now.unix_millis % 1000).unwrap_or_default() * 1_000_000;
        let stamp = uuid::Timestamp::from_unix(uuid::NoContext, seconds, nanos);
        let text = uuid::Uuid::new_v7(stamp).to_string();
        text.parse().unwrap_or_else(|error| unreachable!("a UUID is an id: {error}"))
    }

    fn random(&self) -> Id {
        let text = uuid::Uuid::new_v4().simple().to_string();
        text.parse().unwrap_or_else(|error| unreachable!("a UUID is an id: {error}"))
    }
}
