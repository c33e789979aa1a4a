//! Time comes in from outside.

use std::time::{Duration, UNIX_EPOCH};

/// A clock: the only place where the time of day comes from.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Instant;
}

/// A point in time: milliseconds since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub unix_millis: u64,
}

impl Instant {
    /// How long ago this was, seen from `now`; nothing if it lies ahead.
    pub fn age(self, now: Self) -> Duration {
        Duration::from_millis(now.unix_millis.saturating_sub(self.unix_millis))
    }
}

/// The clock of the host.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the host's clock")]
    fn now(&self) -> Instant {
        let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Instant { unix_millis: u64::try_from(since.as_millis()).unwrap_or(u64::MAX) }
    }
}
