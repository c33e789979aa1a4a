//! Whatever is committed in whatever order, some of it against versions that
//! have passed: what is stored is what the answers said, also after the file
//! was closed and opened again.

use std::collections::BTreeMap;

use glovebox_events::{Action, Answered, What};
use glovebox_store::{Commit, Conflict, EventFilter, EventsOf, Options, Sqlite, Store, StoreError};
use proptest::prelude::*;

use crate::suite::made::*;

/// What is tried with an action.
#[derive(Debug, Clone, Copy)]
enum Step {
    Request,
    Ask,
    Answer(Answered),
    Claim,
    End,
    /// Somebody else changed it in between.
    Stale,
}

fn step() -> impl Strategy<Value = (usize, Step)> {
    let answered = prop_oneof![Just(Answered::Approve), Just(Answered::Decline), Just(Answered::Edit)];
    let step = prop_oneof![
        2 => Just(Step::Request),
        2 => Just(Step::Ask),
        2 => answered.prop_map(Step::Answer),
        2 => Just(Step::Claim),
        1 => Just(Step::End),
        1 => Just(Step::Stale),
    ];
    (0..3_usize, step)
}

/// The commit of a step, and the action after it.
fn commit(action: &Action, step: Step, at_ms: u64) -> (Commit, Action) {
    let mut action = action.clone();
    let commit = match step {
        Step::Request => request(&action),
        Step::Ask => {
            let approval = approval(&format!("q-{}-{at_ms}", action.id), b"i", at_ms);
            ask(&mut action, approval)
        }
        Step::Answer(answered) if action.approval.is_some() => answer(&mut action, answered, at_ms),
        Step::Answer(_) | Step::Claim => claim(&mut action, at_ms),
        Step::End => end(&mut action, at_ms),
        Step::Stale => {
            action.version += 7;
            claim(&mut action, at_ms)
        }
    };
    (commit, action)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_stored_is_what_was_answered(steps in prop::collection::vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut expected: BTreeMap<usize, Action> = BTreeMap::new();
        let mut logged: Vec<What> = Vec::new();
        let store = Sqlite::open(folder.path(), &Options::default()).unwrap();
        for (n, (which, step)) in steps.into_iter().enumerate() {
            let fresh = action(&log("s"), numbered("a", which).as_str());
            let (commit, after) = commit(expected.get(&which).unwrap_or(&fresh), step, 2000 + n as u64);
            let known = expected.contains_key(&which);
            let fits = match step {
                Step::Request => !known,
                Step::Stale => false,
                _ => known,
            };
            let events: Vec<_> = commit.events.iter().map(|event| event.what.clone()).collect();
            match runtime.block_on(store.commit(commit)) {
                Ok(seqs) => {
                    prop_assert!(fits, "{step:?}");
                    logged.extend(events);
                    prop_assert_eq!(seqs.last().copied(), Some(logged.len() as u64));
                    expected.insert(which, after);
                }
                Err(StoreError::Conflict(Conflict::Version { version, .. })) => {
                    prop_assert!(!fits, "{step:?}");
                    prop_assert_eq!(version, expected.get(&which).map_or(0, |action| action.version));
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        drop(store);
        let store = Sqlite::open(folder.path(), &Options::default()).unwrap();
        for action in expected.values() {
            let found = store.action(&house(), &action.id).unwrap();
            prop_assert_eq!(found.as_ref(), Some(action));
            if let Some(approval) = &action.approval {
                let found = store.by_approval(&house(), &approval.id).unwrap();
                prop_assert_eq!(found.as_ref(), Some(action));
            }
        }
        let filter = EventFilter { of: EventsOf::Session(of("s")), after: 0, limit: 0 };
        let stored: Vec<_> =
            store.events(&house(), &filter).unwrap().into_iter().map(|logged| logged.event.what).collect();
        prop_assert_eq!(stored, logged);
        prop_assert_eq!(store.verify(None).unwrap().findings, vec![]);
        prop_assert_eq!(Sqlite::check(folder.path()).unwrap(), Vec::<String>::new());
    }
}
