//! How often people were asked in a session, by which rules, and what that cost
//! in time.

use std::collections::BTreeMap;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{AskedFor, Budget, TaskState};
use glovebox_store::{ApprovalFilter, TaskFilter};
use schemars::JsonSchema;
use serde::Serialize;

use super::task_view::BudgetView;
use super::{ActionService, unknown_session};

/// What a session asked of people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Attention {
    /// Approvals and permissions that were asked for.
    pub approvals: u64,
    /// Questions.
    pub questions: u64,
    /// How often each rule of policy wanted an approval. What no rule wanted
    /// stands under `requester`, `delta` or `drift`.
    pub rules: BTreeMap<String, u64>,
    /// How long actions ran, in milliseconds.
    pub run_ms: u64,
    /// How long they waited for people, in milliseconds.
    pub waited_ms: u64,
    /// What its tasks used until now, tools and models together.
    pub used: Budget,
    /// What those of its tasks have left that are not over, where each of them
    /// has a bound.
    pub left: Budget,
}

impl ActionService {
    /// What a session asked of people, and why.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn attention(&self, principal: &Principal, session: &Id) -> Result<Attention, Problem> {
        let tenant = &principal.tenant;
        let known = self.parts.store.session(tenant, session)?;
        if known.is_some_and(|known| !self.looks_at(principal, &known.principal)) {
            return Err(unknown_session(session));
        }
        let mut out = Attention::default();
        let mut tasks = std::collections::BTreeSet::new();
        let mut filter = ApprovalFilter { session: Some(session.clone()), ..ApprovalFilter::default() };
        loop {
            let page = self.parts.store.approvals(tenant, &filter)?;
            for (action, approval) in page.items {
                if !self.looks_at(principal, &action.principal) {
                    continue;
                }
                out.approvals += 1;
                let why = match approval.asked_for {
                    AskedFor::Requester => Some("requester"),
                    AskedFor::Delta => Some("delta"),
                    AskedFor::Drift => Some("drift"),
                    AskedFor::Policy => None,
                };
                let rules = approval.rules.into_iter().chain(why.map(str::to_owned));
                rules.for_each(|rule| *out.rules.entry(rule).or_default() += 1);
                tasks.insert(action.task);
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let mut filter = TaskFilter { session: Some(session.clone()), ..TaskFilter::default() };
        loop {
            let page = self.tasks(principal, &filter)?;
            tasks.extend(page.items.into_iter().map(|task| task.id));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let (mut asks, mut left) = (0, None);
        for task in &tasks {
            let seen = self.parts.store.task(tenant, task)?;
            let used = seen.used;
            let (most, models) = seen.record.as_ref().map(|task| (task.budget, task.spent)).unwrap_or_default();
            let view = BudgetView::of(most, &used, models);
            out.used = sum(out.used, view.used, |used, more| Some(used.unwrap_or(0).saturating_add(more?)));
            if seen.record.is_some_and(|task| task.state == TaskState::Open) {
                let both = |left: Option<u64>, more: Option<u64>| Some(left?.saturating_add(more?));
                left = Some(left.map_or(view.left, |left| sum(left, view.left, both)));
            }
            asks += used.asks;
            out.run_ms += used.run_us / 1000;
            out.waited_ms += used.waiting_us / 1000;
        }
        out.left = left.unwrap_or_default();
        out.questions = asks.saturating_sub(out.approvals);
        Ok(out)
    }
}

/// Part by part.
fn sum(a: Budget, b: Budget, of: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Budget {
    Budget {
        actions: of(a.actions, b.actions),
        run_ms: of(a.run_ms, b.run_ms),
        output_bytes: of(a.output_bytes, b.output_bytes),
        egress_bytes: of(a.egress_bytes, b.egress_bytes),
        cost_micros: of(a.cost_micros, b.cost_micros),
    }
}
