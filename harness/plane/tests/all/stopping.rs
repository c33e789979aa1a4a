//! Cancelling, the stop of everything, erasing, and a store that fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use env_contracts::{Code, OutcomeKind};
use glovebox_events::ActionState;
use glovebox_plane::{Halted, Submitted, Unwatched};
use glovebox_runtime::Stop;
use glovebox_runtime::job::End;
use glovebox_store::ActionFilter;

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE};
use crate::house::{Ground, House, Setup, agent, approval, done, id, name, offered, person, waiting};

const ALLOW: &str = "permit (principal, action, resource);";

/// Runs go on until somebody stops them.
fn runs_until_stopped(house: &House) {
    house.on_run(|_, ports| {
        while !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(2));
        }
        End::Interrupted
    });
}

/// Submits, does something once the action is seen to run, and gives the
/// Observation.
fn while_it_runs<T>(house: &House, tool: &str, then: impl Future<Output = T>) -> (env_contracts::Observation, T) {
    let submission = house.asked(tool, "{}");
    let stop = Stop::default();
    let running = async {
        let mut changes = house.store.changes().unwrap();
        let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
        while house.store.actions(&name("local"), &filter).unwrap().items.is_empty() {
            changes.changed().await.unwrap();
        }
        then.await
    };
    let submit = house.service.submit(submission, Arc::new(Unwatched), &stop);
    let (submitted, then) = house.block_on(async { tokio::join!(submit, running) });
    (done(submitted.unwrap()), then)
}

#[test]
fn a_run_is_cancelled_from_another_process_and_answered_exactly_once() {
    // Whether what could change something outside did so, nobody knows.
    let cut_off = (OutcomeKind::Unknown, Some(Code::Unknown), ActionState::Failed);
    let harmless = (OutcomeKind::Interrupted, Some(Code::Interrupted), ActionState::Cancelled);
    for (tool, (kind, code, state)) in [("fake.write", cut_off), ("fake.tool", harmless)] {
        let setup = Setup::of(&[WRITE, TOOL]).rules(ALLOW);
        let house = House::of(&setup);
        let other = House::open(&house.ground, &setup);
        runs_until_stopped(&house);
        let (seen, view) = while_it_runs(&house, tool, async {
            let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
            let action = other.store.actions(&name("local"), &filter).unwrap().items.remove(0);
            other.service.cancel(&person("u"), &action.id, "cancelled").await.unwrap()
        });
        assert_eq!((seen.outcome.kind, seen.outcome.code), (kind, code));
        assert_eq!(view.action.id, seen.action_id);
        let again = other.resume_as(&agent("u", "coder"), &seen.action_id, glovebox_plane::Asking::Leave).unwrap();
        assert_eq!(done(again), seen, "{tool}");
        assert_eq!(other.now(&seen.action_id).state, state);
        house.audit(&["s1"]);
    }
}

#[test]
fn whoever_waits_for_an_answer_is_told_when_it_is_cancelled_elsewhere() {
    let setup = Setup::of(&[WRITE]);
    let house = House::of(&setup);
    let other = House::open(&house.ground, &setup);
    let mut submission = house.asked("fake.write", "{}");
    submission.asking = glovebox_plane::Asking::Wait;
    let stop = Stop::default();
    let submit = house.service.submit(submission, Arc::new(Unwatched), &stop);
    let cancel = async {
        let mut changes = other.store.changes().unwrap();
        while other.pending().is_empty() {
            changes.changed().await.unwrap();
        }
        let filter = ActionFilter { states: vec![ActionState::WaitingApproval], ..ActionFilter::default() };
        let action = other.store.actions(&name("local"), &filter).unwrap().items.remove(0);
        other.service.cancel(&person("u"), &action.id, "cancelled").await.unwrap()
    };
    let (submitted, view) = house.block_on(async { tokio::join!(submit, cancel) });
    let seen = done(submitted.unwrap());
    assert_eq!(seen.outcome.kind, OutcomeKind::Interrupted);
    assert_eq!(*view.observation.unwrap(), seen);
    house.audit(&["s1"]);
}

#[test]
fn whoever_stops_listening_leaves_a_question_pending_and_a_run_with_an_end() {
    let house = House::of(&Setup::of(&[WRITE]));
    let gone = |submission: glovebox_plane::Submission, state: ActionState| {
        let service = house.service.clone();
        let task = house.ground.tokio.spawn(async move {
            let stop = Stop::default();
            drop(service.submit(submission, Arc::new(Unwatched), &stop).await);
        });
        let filter = ActionFilter { states: vec![state], ..ActionFilter::default() };
        let action = loop {
            // It is claimed first, and then begins.
            let begun =
                |action: &glovebox_events::Action| state != ActionState::Running || house.ground.ran(&action.id) == 1;
            let found = house.store.actions(&name("local"), &filter).unwrap().items.pop();
            if let Some(action) = found.filter(begun) {
                break action;
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        // A claim comes a moment before its run.
        while state == ActionState::Running && house.ground.ran(&action.id) == 0 {
            std::thread::sleep(Duration::from_millis(2));
        }
        task.abort();
        assert!(house.block_on(task).unwrap_err().is_cancelled());
        action
    };
    let mut waits = house.asked("fake.write", "{}");
    waits.asking = glovebox_plane::Asking::Wait;
    let action = gone(waits, ActionState::WaitingApproval);
    assert!(house.pending().contains(approval(&action)), "the channel closed, and the question with it");
    house.answer(approval(&action), "session", None).unwrap();
    runs_until_stopped(&house);
    let running = gone(house.asked("fake.write", r#"{"count":1}"#), ActionState::Running);
    // Long enough for a loaded host; it takes milliseconds.
    for _ in 0..2000 {
        if house.now(&running.id).state != ActionState::Running {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_ne!(house.now(&running.id).state, ActionState::Running, "its run has no end");
    // It was not dropped in the middle either: it was asked to stop, and did.
    for _ in 0..2000 {
        if house.ground.manners.over.load(Ordering::SeqCst) == 1 {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(house.ground.manners.over.load(Ordering::SeqCst), 1, "nobody carried it on");
    let seen = done(house.resume(&running));
    assert_eq!(seen.outcome.kind, OutcomeKind::Unknown, "it may have changed something: {:?}", seen.outcome);
    assert_eq!(house.ground.ran(&running.id), 1);
    house.audit(&["s1"]);
}

#[test]
fn what_waits_or_is_approved_is_cancelled_without_a_run_and_its_card_is_gone() {
    let house = House::of(&Setup::of(&[WRITE]));
    let (pending, approved) = (house.waits("fake.write", "{}"), house.waits("fake.write", "{}"));
    house.approve(&approved);
    for action in [&pending, &approved] {
        let foreign = house.block_on(house.service.cancel(&person("v"), &action.id, "cancelled"));
        assert_eq!(foreign.unwrap_err().code, Code::ActionUnknown);
        let view = house.block_on(house.service.cancel(&person("u"), &action.id, "cancelled")).unwrap();
        assert_eq!(view.action.state, ActionState::Cancelled);
        let late = house.reply(&person("v"), None, offered(approval(action), "once", None)).unwrap_err();
        assert_eq!(late.code, Code::ApprovalClosed);
        let seen = done(house.resume(action));
        assert_eq!(seen.outcome.kind, OutcomeKind::Interrupted);
        let twice = house.block_on(house.service.cancel(&person("u"), &action.id, "cancelled")).unwrap();
        assert_eq!(*twice.observation.unwrap(), seen);
    }
    assert!(house.pending().is_empty() && house.ground.runs().is_empty());
    house.audit(&["s1"]);
}

#[test]
fn declining_with_a_stop_ends_what_else_the_task_has_under_way() {
    let house = House::of(&Setup::of(&[WRITE]));
    let (one, two) = (house.waits("fake.write", r#"{"count":1}"#), house.waits("fake.write", r#"{"count":2}"#));
    let mut other = house.asked("fake.write", "{}");
    other.context.task = id("t2");
    let other = waiting(house.send(other).unwrap());
    house.answer(approval(&one), "decline-and-stop", None).unwrap();
    assert_eq!(done(house.resume(&one)).outcome.kind, OutcomeKind::Declined);
    assert_eq!(done(house.resume(&two)).outcome.kind, OutcomeKind::Interrupted);
    assert!(matches!(house.resume(&other), Submitted::Waiting(_)), "another task was stopped");
    house.audit(&["s1"]);
}

#[test]
fn a_stop_of_everything_reaches_what_runs_what_waits_and_what_was_granted() {
    let house = House::of(&Setup::of(&[WRITE, TOOL]));
    house.runs_well();
    let granted = house.waits("fake.write", r#"{"count":1}"#);
    let approved = house.waits("fake.write", r#"{"count":2}"#);
    let pending = house.waits("fake.write", r#"{"count":3}"#);
    house.answer(approval(&granted), "session", None).unwrap();
    done(house.resume(&granted));
    house.approve(&approved);
    runs_until_stopped(&house);
    let operator = person("u");
    let stop = house.service.stop_all(&operator, Some("fire".into()));
    let (seen, halted) = while_it_runs(&house, "fake.write", stop);
    let Halted { running, waiting, grants } = halted.unwrap();
    // What runs listens for the stop itself, and may have ended before it was told.
    assert!(running <= 1);
    assert_eq!((waiting, grants), (2, 1));
    assert_eq!(seen.outcome.kind, OutcomeKind::Unknown, "it may have changed something");
    house.on_run(|_, _| panic!("it ran while everything is stopped"));
    for tool in ["fake.write", "fake.tool"] {
        let refused = done(house.send(house.asked(tool, "{}")).unwrap());
        assert_eq!(refused.outcome.code, Some(Code::Halted), "{tool}");
        assert!(refused.text.contains("fire"), "{}", refused.text);
    }
    for action in [&approved, &pending] {
        assert_eq!(done(house.resume(action)).outcome.kind, OutcomeKind::Interrupted);
    }
    house.block_on(house.service.release(&person("u"))).unwrap();
    house.waits("fake.write", "{}");
    assert_eq!(done(house.resume(&approved)).outcome.kind, OutcomeKind::Interrupted, "letting go revived it");
    house.runs_well();
    assert_eq!(done(house.send(house.asked("fake.tool", "{}")).unwrap()).outcome.code, None);
    house.audit(&["s1"]);
}

/// The stop comes after everything was looked at, right before the claim.
#[test]
fn a_stop_that_comes_at_the_last_moment_still_stops() {
    let ask = "permit (principal, action, resource) when { context has approval };";
    for (rules, answered) in [(ALLOW, false), (ask, true), (ask, false)] {
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE]).rules(rules);
        let plain = House::open(&ground, &setup);
        plain.on_run(|_, _| panic!("it ran while everything is stopped"));
        let action = answered.then(|| {
            let action = plain.waits("fake.write", "{}");
            plain.approve(&action);
            action
        });
        let service = plain.service.clone();
        let house = House::open_over(&ground, &setup, |store| {
            Between::over(store, move |moment| {
                if moment == Moment::Before(1) {
                    tokio::task::block_in_place(|| {
                        let handle = tokio::runtime::Handle::current();
                        handle.block_on(service.stop_all(&person("u"), None)).unwrap();
                    });
                }
                true
            })
        });
        let went = match &action {
            Some(action) => house.resume_as(&action.principal, &action.id, glovebox_plane::Asking::Leave),
            None => house.send(house.asked("fake.write", "{}")),
        };
        let seen = done(went.unwrap());
        assert!(matches!(seen.outcome.code, Some(Code::Halted | Code::Interrupted)), "{:?}", seen.outcome);
        assert!(ground.runs().is_empty() && house.pending().is_empty());
        let opened = house.kinds(&seen.action_id).contains(&"approval-opened");
        assert_eq!(opened, answered, "somebody was asked while everything is stopped");
        house.audit(&["s1"]);
    }
}

#[test]
fn erasing_takes_words_and_contents_and_leaves_what_happened() {
    let house = House::of(&Setup::of(&[WRITE]));
    let action = house.waits("fake.write", r#"{"text":"a secret name"}"#);
    let erase = |by| house.block_on(house.service.erase(&by, &action.id));
    assert_eq!(erase(person("u")).unwrap_err().code, Code::Usage, "it has not ended");
    house.answer(approval(&action), "decline", Some("not this name")).unwrap();
    let before = house.kinds(&action.id);
    assert_eq!(erase(agent("u", "coder")).unwrap_err().code, Code::Usage);
    erase(person("u")).unwrap();
    let card = house.service.approval(&person("u"), approval(&action)).unwrap();
    assert_eq!((card.arguments, card.answer.unwrap().words), (None, None));
    assert_eq!(house.kinds(&action.id), [before, vec!["erased"]].concat());
    assert!(house.service.action(&person("u"), &action.id).unwrap().observation.is_none());
    house.audit(&["s1"]);
}

/// A house whose store takes so many commits, then none until it is told.
fn failing(ground: &Arc<Ground>, setup: &Setup, after: u32) -> (House, Arc<AtomicU32>) {
    let last = Arc::new(AtomicU32::new(after));
    let hook = last.clone();
    let house = House::open_over(ground, setup, move |store| {
        Between::over(store, move |moment| match moment {
            Moment::Before(number) => number <= hook.load(Ordering::SeqCst),
            Moment::After(_) | Moment::Read => true,
        })
    });
    (house, last)
}

#[test]
fn what_can_not_be_written_down_is_not_claimed_and_can_run_later() {
    let ground = Ground::new();
    let setup = Setup::of(&[WRITE]);
    let house = House::open(&ground, &setup);
    let action = house.waits("fake.write", "{}");
    house.approve(&action);
    house.on_run(|_, _| panic!("it ran without a record"));
    let (full, last) = failing(&ground, &setup, 0);
    let seen = done(full.resume(&action));
    assert_eq!(seen.outcome.code, Some(Code::StateUnavailable), "{:?}", seen.outcome);
    assert_eq!(full.now(&action.id).state, ActionState::Authorized);
    last.store(u32::MAX, Ordering::SeqCst);
    full.runs_well();
    assert_eq!(done(full.resume(&action)).outcome.code, None);
    assert_eq!(ground.ran(&action.id), 1);
    full.audit(&["s1"]);
}

#[test]
fn a_result_that_can_not_be_written_down_is_not_lost_and_is_no_success() {
    for (tool, commits, kind) in [("fake.write", 1, OutcomeKind::Unknown), ("fake.tool", 0, OutcomeKind::BackendError)]
    {
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE, TOOL]).rules(ALLOW);
        let (house, _) = failing(&ground, &setup, commits);
        house.runs_well();
        let seen = done(house.send(house.asked(tool, "{}")).unwrap());
        assert_eq!((seen.outcome.kind, seen.outcome.code), (kind, Some(Code::NotRecorded)), "{:?}", seen.outcome);
        assert_ne!(seen.outcome.exit_code(), 0);
        assert!(!seen.outcome.retryable && seen.text.contains("could not be written down"), "{}", seen.text);
        assert_eq!(seen.data["ok"], 1);
    }
}

#[test]
fn the_time_that_a_person_takes_is_no_time_of_the_run() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let action = house.waits("fake.write", "{}");
    let hours = Duration::from_secs(20 * 3600);
    house.ground.clock.forward(hours);
    house.approve(&action);
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None, "the wall limit is ten seconds: {:?}", seen.outcome);
    assert_eq!(u128::from(seen.times.waiting_us), hours.as_micros());
    let used = house.store.task(&name("local"), &id("t1")).unwrap().used;
    assert_eq!((used.actions, used.run_us), (1, seen.times.run_us));
    assert!(Duration::from_micros(used.run_us) < Duration::from_secs(10));
}
