//! The questions of agents that were called: they go to the one at the root.

use env_contracts::{Code, Id, Principal, Problem};
use glovebox_events::{AskedOf, Question, QuestionEvent, QuestionState, Task};
use glovebox_store::{Condition, QuestionFilter, Thing};

use super::{QuestionView, closed};
use crate::service::ActionService;
use crate::service::starting::ChildQuestion;
use crate::service::tasks::speaker;

impl ActionService {
    /// Passes the question of an agent below on to a person.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`; `not-eligible` for whoever was
    /// not asked.
    pub async fn pass_on(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        self.asked_here(principal, &self.known_question(principal, id)?)?;
        self.close_question(principal, id, QuestionEvent::PassedOn { by: speaker(principal) }, None).await
    }

    /// Lets one question of an agent below stand for another: both get its
    /// answer.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`; `not-eligible` for whoever was
    /// not asked; `usage` for questions of other trees or with other options,
    /// and for one that changed meanwhile.
    pub async fn merge(&self, principal: &Principal, id: &Id, into: &Id) -> Result<QuestionView, Problem> {
        let (question, stands) = (self.known_question(principal, id)?, self.known_question(principal, into)?);
        if question.state != QuestionState::Pending {
            return Err(closed(&question));
        }
        self.asked_here(principal, &question)?;
        if question.root != stands.root || id == into || stands.merged_into.is_some() {
            return Err(Problem::new(Code::Usage, format!("question {into} can't stand for {id}")));
        }
        if !matches!(stands.state, QuestionState::Pending | QuestionState::Answered) {
            return Err(closed(&stands));
        }
        if stands.options != question.options {
            return Err(Problem::new(Code::Usage, "they have other options, and so are not the same question")
                .with_help("answer one of them yourself"));
        }
        let event = QuestionEvent::Merged { into: into.clone(), by: speaker(principal) };
        // Two that are merged into each other at once would have no answer.
        let same = Condition::Version { of: Thing::Question(into.clone()), version: stands.version };
        self.close_question(principal, id, event, Some(same)).await
    }

    /// Whether an agent is the one that a question was put to: that of the
    /// root of the tree, and never the one that asks.
    pub(super) fn asked_here(&self, principal: &Principal, question: &Question) -> Result<(), Problem> {
        let not = || {
            Problem::new(Code::NotEligible, format!("question {} was put to somebody else", question.id))
                .with_help("`glovebox questions show ID` says who is to answer it")
        };
        if principal.agent.is_none() {
            return Ok(());
        }
        let root = self.parts.store.session(&principal.tenant, &question.root)?.ok_or_else(not)?;
        let called = question.principal.chain.as_slice();
        // The one whose session it is; where a person opened it, the one that
        // called all others.
        let of_root = match &root.principal.agent {
            Some(agent) => {
                let above = &root.principal.chain;
                principal.agent.as_ref() == Some(agent)
                    && principal.chain == *above
                    && called.starts_with(above)
                    && called.get(above.len()) == Some(agent)
            }
            None => called
                .first()
                .is_some_and(|first| Some(first) == principal.agent.as_ref() && principal.chain.is_empty()),
        };
        if question.to == AskedOf::Root && of_root { Ok(()) } else { Err(not()) }
    }

    /// The question whose end is this one's: others can stand for it, and
    /// others again for those.
    pub(super) fn that_stands_for(&self, question: Question) -> Result<Question, Problem> {
        let mut stands = question;
        while let Some(into) = &stands.merged_into {
            let known = self.parts.store.question(&stands.principal.tenant, into)?;
            stands = known.ok_or_else(|| {
                Problem::new(Code::StoreCorrupt, format!("question {into} is not there, which stands for another"))
            })?;
        }
        Ok(stands)
    }

    /// What agents below ask the one that works here, where it is the root.
    pub(in crate::service) fn asked_of(&self, task: &Task) -> Result<Vec<ChildQuestion>, Problem> {
        let filter = QuestionFilter {
            states: vec![QuestionState::Pending],
            root: Some(task.session.clone()),
            to: Some(AskedOf::Root),
            ..QuestionFilter::default()
        };
        let asked = self.all_questions(&task.principal.tenant, filter)?;
        let child = |question: Question| {
            let text = self.question_words(&question)?;
            let chain = question.principal.chain.iter().chain(&question.principal.agent).cloned().collect();
            Ok(ChildQuestion { id: question.id, session: question.session, chain, text })
        };
        asked.into_iter().map(child).collect()
    }
}
