//! How often people were asked in a session, by which rules, and what that cost
//! in time.

use std::collections::BTreeMap;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::AskedFor;
use glovebox_store::{ApprovalFilter, TaskFilter};
use serde::Serialize;

use super::tasks::sees;
use super::{ActionService, unknown_session};

/// What a session asked of people.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
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
}

impl ActionService {
    /// What a session asked of people, and why.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn attention(&self, principal: &Principal, session: &Id) -> Result<Attention, Problem> {
        let tenant = &principal.tenant;
        let known = self.parts.store.session(tenant, session)?;
        if known.is_some_and(|known| !sees(principal, &known.principal)) {
            return Err(unknown_session(session));
        }
        let mut out = Attention::default();
        let mut tasks = std::collections::BTreeSet::new();
        let mut filter = ApprovalFilter { session: Some(session.clone()), ..ApprovalFilter::default() };
        loop {
            let page = self.parts.store.approvals(tenant, &filter)?;
            for (action, approval) in page.items {
                if !sees(principal, &action.principal) {
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
            let page = self.parts.store.tasks(tenant, &filter)?;
            tasks.extend(page.items.into_iter().filter(|task| sees(principal, &task.principal)).map(|task| task.id));
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let mut asks = 0;
        for task in &tasks {
            let used = self.parts.store.task(tenant, task)?.used;
            asks += used.asks;
            out.run_ms += used.run_us / 1000;
            out.waited_ms += used.waiting_us / 1000;
        }
        out.questions = asks.saturating_sub(out.approvals);
        Ok(out)
    }
}
