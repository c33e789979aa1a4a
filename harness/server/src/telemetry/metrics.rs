//! Figures for Prometheus.
//!
//! Labels are routes, statuses, codes, kinds of outcomes and names of the
//! registry: never anything that a caller chooses, so that nobody can make
//! them grow.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use env_contracts::{CapabilityName, OutcomeKind};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};

use super::Finished;

/// The media type of what is written.
pub(crate) const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// How many capabilities have figures of their own; the rest is `other`. Each
/// has some KiB here and a screenful in every scrape.
const MOST_CAPABILITIES: usize = 256;

/// Bounds of requests, in seconds: from a look at memory to a long wait.
const REQUEST_BOUNDS: [f64; 12] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.25, 1.0, 5.0, 15.0, 60.0];

/// Bounds of runs, in seconds.
const RUN_BOUNDS: [f64; 10] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0];

/// Bounds of what people take, in seconds: from a look to a day.
const WAIT_BOUNDS: [f64; 8] = [5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0, 28_800.0, 86_400.0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCode {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCapability {
    capability: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfOutcome {
    capability: String,
    outcome: String,
}

/// All of them.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Answered, Counter>,
    took: Family<OfRoute, Histogram, fn() -> Histogram>,
    refused: Family<OfCode, Counter>,
    actions: Family<OfOutcome, Counter>,
    ran: Family<OfCapability, Histogram, fn() -> Histogram>,
    waited: Family<OfCapability, Histogram, fn() -> Histogram>,
    carried: Gauge,
    approvals: Gauge,
    questions: Gauge,
    streams: Gauge,
    lost: Counter<u64, AtomicU64>,
    capabilities: Mutex<HashSet<String>>,
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut all = Self {
            registry: Registry::with_prefix("glovebox"),
            requests: Family::default(),
            took: Family::new_with_constructor(|| Histogram::new(REQUEST_BOUNDS)),
            refused: Family::default(),
            actions: Family::default(),
            ran: Family::new_with_constructor(|| Histogram::new(RUN_BOUNDS)),
            waited: Family::new_with_constructor(|| Histogram::new(WAIT_BOUNDS)),
            carried: Gauge::default(),
            approvals: Gauge::default(),
            questions: Gauge::default(),
            streams: Gauge::default(),
            lost: Counter::default(),
            capabilities: Mutex::default(),
        };
        let registry = &mut all.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "The program", build);
        registry.register("requests", "Requests, by route and status", all.requests.clone());
        registry.register_with_unit(
            "request",
            "From a request to its answer, for streams to its beginning",
            Unit::Seconds,
            all.took.clone(),
        );
        registry.register("refused", "Requests that were answered with an error, by code", all.refused.clone());
        registry.register("actions", "Actions that ended, by capability and outcome", all.actions.clone());
        registry.register_with_unit("action_run", "How long tools ran", Unit::Seconds, all.ran.clone());
        registry.register_with_unit(
            "action_waited",
            "How long actions waited for people",
            Unit::Seconds,
            all.waited.clone(),
        );
        registry.register(
            "actions_carried",
            "Actions that this server carries: they run, wait for room or wait for people",
            all.carried.clone(),
        );
        registry.register(
            "approvals_pending",
            "Approvals that wait for people, in the tenant of the server",
            all.approvals.clone(),
        );
        registry.register(
            "questions_pending",
            "Questions that wait for people, in the tenant of the server",
            all.questions.clone(),
        );
        registry.register("streams_open", "Event streams that are open", all.streams.clone());
        registry.register("span_batches_lost", "Batches of spans that the collector did not take", all.lost.clone());
        all
    }

    /// A request was answered.
    pub(super) fn request(&self, done: &Finished<'_>) {
        self.requests.get_or_create(&Answered { route: done.route, status: done.status }).inc();
        self.took.get_or_create(&OfRoute { route: done.route }).observe(done.took.as_secs_f64());
        if let Some(code) = done.code {
            self.refused.get_or_create(&OfCode { code: code.as_str() }).inc();
        }
    }

    /// An action ended.
    pub(super) fn ended(
        &self,
        capability: Option<&CapabilityName>,
        outcome: OutcomeKind,
        ran: Option<Duration>,
        waited: Option<Duration>,
    ) {
        let capability = self.known(capability);
        self.actions.get_or_create(&OfOutcome { capability: capability.clone(), outcome: outcome.to_string() }).inc();
        let of = OfCapability { capability };
        if let Some(ran) = ran {
            self.ran.get_or_create(&of).observe(ran.as_secs_f64());
        }
        if let Some(waited) = waited {
            self.waited.get_or_create(&of).observe(waited.as_secs_f64());
        }
    }

    fn known(&self, capability: Option<&CapabilityName>) -> String {
        let other = || "other".to_owned();
        let Some(capability) = capability.map(CapabilityName::as_str) else { return other() };
        let mut known = self.capabilities.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.contains(capability) {
            if known.len() >= MOST_CAPABILITIES {
                return other();
            }
            known.insert(capability.to_owned());
        }
        capability.to_owned()
    }

    /// A stream opened; it closes when this is dropped.
    pub(crate) fn stream(&self) -> OpenStream {
        self.streams.inc();
        OpenStream(self.streams.clone())
    }

    /// What is counted when somebody looks.
    pub(crate) fn now(&self, now: &Standing) {
        let set = |gauge: &Gauge, count: usize| gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        set(&self.carried, now.carried);
        set(&self.approvals, now.approvals);
        set(&self.questions, now.questions);
    }

    /// Where spans are counted that nobody took.
    pub(super) fn lost(&self) -> Counter<u64, AtomicU64> {
        self.lost.clone()
    }

    /// All figures, as Prometheus reads them.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a text does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

/// What stands open now.
pub(crate) struct Standing {
    pub(crate) carried: usize,
    pub(crate) approvals: usize,
    pub(crate) questions: usize,
}

/// A stream that is open.
pub(crate) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
