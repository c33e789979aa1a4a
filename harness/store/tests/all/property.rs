//! Whatever is committed in whatever order, some of it against versions that
//! have passed: what is stored is what the answers said, also after the file
//! was closed and opened again.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use env_contracts::Id;
use glovebox_events::{Action, Answered, Question, Task, What};
use glovebox_store::{Commit, Conflict, EventFilter, EventsOf, Options, Sqlite, Store, StoreError, TaskUse};
use proptest::prelude::*;

use crate::suite::made::*;
use crate::suite::opened::*;

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

/// What happens in a task. What does not fit is a word to the task instead.
#[derive(Debug, Clone, Copy)]
enum InTask {
    /// An action is asked for, or claimed.
    Act,
    End,
    Approve,
    /// A question is asked, or answered.
    Ask,
    Steer,
}

fn in_task() -> impl Strategy<Value = InTask> {
    prop_oneof![
        3 => Just(InTask::Act),
        1 => Just(InTask::End),
        1 => Just(InTask::Approve),
        2 => Just(InTask::Ask),
        1 => Just(InTask::Steer),
    ]
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
    #[test]
    fn what_is_told_of_a_task_is_what_happened_in_it(
        steps in prop::collection::vec((0..2_usize, 0..2_usize, in_task()), 1..60),
        after in 0..40_u64,
        limit in 1..10_u32,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(folder.path(), &Options::default()).unwrap();
        let mut opened = [0, 1].map(|n| task(&log("s"), &format!("task-{n}")));
        let mut logged: Vec<(Id, What)> = Vec::new();
        let mut put = |task: &Task, commit: Commit| {
            logged.extend(commit.events.iter().map(|event| (task.id.clone(), event.what.clone())));
            runtime.block_on(store.commit(commit)).unwrap();
        };
        for task in &opened {
            put(task, open_task(task));
        }
        let mut actions: BTreeMap<(usize, usize), Action> = BTreeMap::new();
        let mut questions: BTreeMap<(usize, usize), Question> = BTreeMap::new();
        for (n, (of_task, which, step)) in steps.into_iter().enumerate() {
            let at_ms = 2000 + n as u64;
            let task = &mut opened[of_task];
            let place = actions.entry((of_task, which));
            match (step, place, questions.get_mut(&(of_task, which))) {
                (InTask::Act, Entry::Vacant(new), _) => {
                    let mut action = action(&log("s"), &format!("a-{of_task}-{which}"));
                    action.task = task.id.clone();
                    put(task, request(&action));
                    new.insert(action);
                }
                (InTask::Act, Entry::Occupied(mut action), _) => put(task, claim(action.get_mut(), at_ms)),
                (InTask::End, Entry::Occupied(mut action), _) => put(task, end(action.get_mut(), at_ms)),
                (InTask::Approve, Entry::Occupied(mut action), _) => {
                    let approval = approval(&format!("p-{n}"), b"i", at_ms);
                    put(task, ask(action.get_mut(), approval));
                }
                (InTask::Ask, _, None) => {
                    let asked = question(task, &format!("q-{of_task}-{which}"), "colour");
                    put(task, open_question(&asked));
                    questions.insert((of_task, which), asked);
                }
                (InTask::Ask, _, Some(asked)) => put(task, answer_question(asked, &format!("words {n}"))),
                _ => {
                    let commit = steer(task, &format!("words {n}"));
                    put(task, commit);
                }
            }
        }
        for task in &opened {
            let seen = store.task(&house(), &task.id).unwrap();
            prop_assert_eq!(seen.record.as_ref(), Some(task));
            let of_task = || (1_u64..).zip(&logged).filter(|(_, (of, _))| *of == task.id);
            let count = |is: fn(&What) -> bool| of_task().filter(|(_, (_, what))| is(what)).count() as u64;
            let ends = count(|what| matches!(what, What::Ended { .. }));
            let used = TaskUse {
                actions: count(|what| matches!(what, What::Claimed { .. })),
                run_us: 7500 * ends,
                artifact_bytes: 70 * ends,
                output_bytes: 11 * ends,
                egress_bytes: 12 * ends,
                cost_micros: 13 * ends,
                waiting_us: 14 * ends,
                asks: count(|what| matches!(what.name(), "approval-opened" | "question-opened")),
            };
            prop_assert_eq!(seen.used, used);
            let filter = EventFilter { of: EventsOf::Task(task.id.clone()), after, limit };
            let told: Vec<_> = store.events(&house(), &filter).unwrap();
            let told: Vec<_> = told.iter().map(|logged| (logged.seq, &logged.event.what)).collect();
            let happened = of_task().map(|(seq, (_, what))| (seq, what)).filter(|(seq, _)| *seq > after);
            prop_assert_eq!(told, happened.take(limit as usize).collect::<Vec<_>>());
        }
        prop_assert_eq!(store.verify(None).unwrap().findings, vec![]);
        prop_assert_eq!(Sqlite::check(folder.path()).unwrap(), Vec::<String>::new());
    }
}
