//! How people are asked.

use std::time::Duration;

use env_contracts::Id;

/// How people are asked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How long a question waits for its answer, and an answer for whoever
    /// asked. `None`: for ever.
    pub ttl: Option<Duration>,
    /// How long it waits where nobody who may answer can be reached.
    pub grace: Duration,
    /// How much may be asked.
    pub asks: AskLimits,
    /// How long environments are kept.
    pub environments: EnvironmentLimits,
    /// Who operates this install: the name that stops and revocations carry.
    pub operator_log: Id,
}

/// How much one session may ask: a person who is asked all the time says yes
/// to anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AskLimits {
    /// So many approvals are opened in a session at most.
    pub most: u32,
    /// In this time.
    pub per: Duration,
}

/// How long a question waits, unless the operator says otherwise: a person
/// who was away for a day finds it.
const TTL: Duration = Duration::from_secs(24 * 3600);

/// How long it waits where nobody can be reached: long enough for somebody to
/// log in, short enough for whoever waits to notice.
const GRACE: Duration = Duration::from_secs(600);

impl Default for AskLimits {
    fn default() -> Self {
        // More than a question a minute for an hour is no longer read.
        Self { most: 60, per: Duration::from_secs(3600) }
    }
}

/// How long an environment is kept that nobody ends. What was approved, asked or
/// looked at extends neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EnvironmentLimits {
    /// Without an action in it.
    pub idle: Duration,
    /// At all.
    pub age: Duration,
}

impl Default for EnvironmentLimits {
    fn default() -> Self {
        // Over a lunch break, and until the end of the day.
        Self { idle: Duration::from_secs(2 * 3600), age: Duration::from_secs(24 * 3600) }
    }
}

impl Settings {
    /// Those that hold if nobody says otherwise.
    pub fn new(operator_log: Id) -> Self {
        Self {
            ttl: Some(TTL),
            grace: GRACE,
            asks: AskLimits::default(),
            environments: EnvironmentLimits::default(),
            operator_log,
        }
    }
}
