//! What must hold of everything that was recorded, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use env_contracts::{Digest, Id, Verdict};
use glovebox_events::{Answered, ApprovalState, GrantScope, Logged, Right, What};
use glovebox_plane::machine::{Live, replay};
use glovebox_store::{ApprovalFilter, EventFilter, EventsOf, GrantFilter, Options, Sqlite};

use crate::house::{House, id, name};

impl House {
    /// Every event of these sessions and of the operator, in the order of
    /// their logs.
    pub(crate) fn log(&self, sessions: &[&str]) -> Vec<Logged> {
        let mut out = Vec::new();
        for session in sessions.iter().chain(&["operator"]) {
            let mut after = 0;
            loop {
                let filter = EventFilter { of: EventsOf::Session(id(session)), after, limit: 0 };
                let page = self.store.events(&name("local"), &filter).unwrap();
                let Some(last) = page.last() else { break };
                after = last.seq;
                out.extend(page);
            }
        }
        out
    }

    pub(crate) fn kinds(&self, action: &Id) -> Vec<&'static str> {
        let filter = EventFilter { of: EventsOf::Action(action.clone()), after: 0, limit: 0 };
        let events = self.store.events(&name("local"), &filter).unwrap();
        events.iter().map(|logged| logged.event.what.name()).collect()
    }

    /// After every end nothing of a run is left.
    pub(crate) fn nothing_left(&self) {
        let left = fs_err::read_dir(self.path("state/run")).map_or(0, Iterator::count);
        assert_eq!(left, 0, "a run folder was left behind");
    }

    pub(crate) fn pending(&self) -> BTreeSet<Id> {
        let filter = ApprovalFilter { states: vec![ApprovalState::Pending], ..ApprovalFilter::default() };
        let page = self.store.approvals(&name("local"), &filter).unwrap();
        page.items.into_iter().map(|(_, approval)| approval.id).collect()
    }

    /// Holds everything that was recorded against what ran.
    pub(crate) fn audit(&self, sessions: &[&str]) {
        let log = self.log(sessions);
        let live = replay(&log).unwrap_or_else(|error| panic!("{error}: {log:#?}"));
        for ((tenant, id), action) in &live.actions {
            let stored = self.store.action(tenant, id).unwrap();
            assert_eq!(stored.as_ref(), Some(action), "the log and the record of `{id}` differ");
        }
        for ((tenant, id), session) in &live.sessions {
            let stored = self.store.session(tenant, id).unwrap();
            assert_eq!(stored.as_ref(), Some(session), "the log and the record of session `{id}` differ");
        }
        for ((tenant, id), task) in &live.tasks {
            let stored = self.store.task(tenant, id).unwrap().record;
            assert_eq!(stored.as_ref(), Some(task), "the log and the record of task `{id}` differ");
        }
        for ((tenant, id), question) in &live.questions {
            let stored = self.store.question(tenant, id).unwrap();
            assert_eq!(stored.as_ref(), Some(question), "the log and the record of question `{id}` differ");
        }
        let mut told = BTreeMap::new();
        for logged in &log {
            let What::Question { question, event, .. } = &logged.event.what else { continue };
            let kind = event.name();
            let number = told.entry((question.clone(), kind)).or_insert(0);
            *number += 1;
            assert_eq!(*number, 1, "{} of {question} twice", event.name());
        }
        let grants = self.store.grants(&name("local"), &GrantFilter::default()).unwrap();
        let stored: BTreeMap<_, _> =
            grants.into_iter().map(|grant| ((name("local"), grant.id.clone()), grant)).collect();
        assert_eq!(stored, live.grants, "the log and the records of grants differ");
        assert_eq!(self.store.halted().unwrap(), live.halt);
        let beside = Sqlite::open(&self.path("state"), &Options { create: false }).unwrap().derived().unwrap();
        assert_eq!(beside, Vec::<String>::new(), "the tables beside the log are not what it adds up to");

        let mut known = Live::default();
        for logged in &log {
            begins_where_its_task_is(&known, logged);
            known.add(logged).unwrap();
        }

        let mut rights: BTreeMap<Id, Digest> = BTreeMap::new();
        let mut consumed = BTreeSet::new();
        let (mut answers, mut granted) = (BTreeMap::new(), BTreeMap::new());
        let mut allowed: BTreeMap<Id, Verdict> = BTreeMap::new();
        let mut ended = BTreeSet::new();
        for logged in &log {
            if let What::GrantMade { grant } = &logged.event.what {
                granted.insert(grant.id.clone(), grant.clone());
            }
        }
        for logged in &log {
            let Some(action) = logged.event.action.clone() else { continue };
            match &logged.event.what {
                What::Decided { verdict, .. } => {
                    allowed.insert(action, *verdict);
                }
                What::ApprovalAnswered { answer } => {
                    answers.insert(answer.approval.clone(), (action, answer.clone()));
                }
                What::Claimed { right, digest, .. } => {
                    assert_eq!(allowed.get(&action), Some(&Verdict::Allow), "{action}: policy did not allow it");
                    match right {
                        Right::Policy => {}
                        Right::Approval { approval } => {
                            let (of, answer) = &answers[approval];
                            assert!(*of == action && answer.answer == Answered::Approve, "{action}: {answer:?}");
                            assert_eq!(answer.seen, *digest, "{action} ran another plan than was approved");
                            assert!(consumed.insert(approval.clone()), "approval {approval} was used twice");
                        }
                        Right::Grant { grant } => {
                            assert_ne!(granted[grant].scope, GrantScope::Once, "{grant}");
                        }
                    }
                    assert!(rights.insert(action.clone(), digest.clone()).is_none(), "{action} was claimed twice");
                }
                What::Ended { .. } => assert!(ended.insert(action.clone()), "{action} ended twice"),
                _ => {}
            }
        }
        let mut ran = BTreeMap::new();
        for run in self.ground.runs() {
            assert!(ran.insert(run.action.clone(), run.digest.clone()).is_none(), "{} ran twice", run.action);
        }
        // What can change nothing is written down with its end; it has no
        // claim where the process died before.
        for (action, digest) in &ran {
            if let Some(right) = rights.get(action) {
                assert_eq!(right, digest, "{action} ran another plan than was claimed");
            } else {
                let known = self.store.action(&name("local"), action).unwrap();
                let harmless = known.is_none_or(|action| {
                    action.effects.is_none_or(|effects| effects == env_contracts::DerivedEffects::None)
                });
                assert!(harmless, "{action} ran without a right");
            }
        }
        let open = live.actions.values().filter_map(|action| Some(action.pending()?.id.clone()));
        assert_eq!(open.collect::<BTreeSet<_>>(), self.pending(), "a question was lost");
    }
}

/// Nothing begins in a turn that is over, for a goal that is another's, in a
/// task that is over or is being stopped. What can change nothing is written
/// down late, with its end.
fn begins_where_its_task_is(known: &Live, logged: &Logged) {
    let What::Claimed { right, .. } = &logged.event.what else { return };
    let action = &known.actions[&(logged.log.tenant.clone(), logged.event.action.clone().unwrap())];
    let Some(task) = known.tasks.get(&(logged.log.tenant.clone(), action.task.clone())) else { return };
    if action.effects == Some(env_contracts::DerivedEffects::None) {
        return;
    }
    assert_eq!(task.state, glovebox_events::TaskState::Open, "{} began in a task that is over", action.id);
    assert!(task.stopping().is_none(), "{} began after an interrupt was received", action.id);
    assert_eq!(action.goal.unwrap_or(1), task.goal.version, "{} began for another goal", action.id);
    let approved = matches!(right, Right::Approval { .. });
    let open = task.open_turn().map(|turn| turn.number);
    assert!(approved || action.turn.is_none() || action.turn == open, "{} began in a turn that is over", action.id);
}
