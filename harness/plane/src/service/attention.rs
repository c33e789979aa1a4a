//! How often people were asked, and because of what.

use std::collections::BTreeMap;

use env_contracts::{Id, Principal, Problem};
use glovebox_store::{ApprovalFilter, QuestionFilter};
use serde::Serialize;

use super::ActionService;

/// How often something led to people being asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Prompts {
    /// The rule; `no rule` where none permitted it without a person,
    /// `question` for what loops wanted to know.
    pub rule: String,
    /// How often.
    pub count: u64,
}

impl ActionService {
    /// How often people were asked in a session, by what led to it, the most
    /// often first.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn prompts(&self, principal: &Principal, session: &Id) -> Result<Vec<Prompts>, Problem> {
        let root = self.session(principal, session)?.root;
        let (store, tenant) = (&self.parts.store, &principal.tenant);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut filter = ApprovalFilter { session: Some(session.clone()), ..ApprovalFilter::default() };
        loop {
            let page = store.approvals(tenant, &filter)?;
            for (_, approval) in page.items {
                let rules = if approval.rules.is_empty() { vec!["no rule".to_owned()] } else { approval.rules };
                for rule in rules {
                    *counts.entry(rule).or_default() += 1;
                }
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let mut filter = QuestionFilter { root: Some(root), ..QuestionFilter::default() };
        loop {
            let page = store.questions(tenant, &filter)?;
            let here = page.items.iter().filter(|question| question.session == *session).count();
            if here > 0 {
                *counts.entry("question".to_owned()).or_default() += here as u64;
            }
            match page.next {
                Some(next) => filter.after = Some(next),
                None => break,
            }
        }
        let mut out: Vec<Prompts> = counts.into_iter().map(|(rule, count)| Prompts { rule, count }).collect();
        out.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.rule.cmp(&b.rule)));
        Ok(out)
    }
}
