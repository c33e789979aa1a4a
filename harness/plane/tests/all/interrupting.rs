//! Interrupts: soft and hard, of an action, a turn, a task, a session, a tree;
//! received is one fact, stopped another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use env_contracts::{Code, Observation};
use glovebox_events::{ActionState, Reach, TaskState};
use glovebox_plane::{Asking, Interrupted, Interrupting, NewSession, Target, Unwatched};
use glovebox_runtime::Stop;
use glovebox_runtime::job::End;
use glovebox_store::ActionFilter;

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE, returned};
use crate::house::{Ground, House, Setup, agent, approval, done, id, name, person, waiting};
use crate::loops::{about, called, coder, new_task};
use crate::turns::ASK;

const ALLOW: &str = "permit (principal, action, resource);";

fn setup() -> Setup {
    Setup::of(&[WRITE, TOOL]).rules(ASK)
}

fn house() -> House {
    let house = House::of(&setup());
    house.runs_well();
    house.open_task();
    house
}

fn runs_until_stopped(house: &House) {
    house.on_run(|_, ports| {
        while !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(2));
        }
        End::Interrupted
    });
}

/// Interrupts what runs, once it is seen to run.
fn while_it_runs(house: &House, tool: &str, target: Target, grace: Option<Duration>) -> (Observation, Interrupted) {
    let stop = Stop::default();
    let submit = house.service.submit(house.asked(tool, "{}"), Arc::new(Unwatched), &stop);
    let interrupt = async {
        let mut changes = house.store.changes().unwrap();
        let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
        while house.store.actions(&name("local"), &filter).unwrap().items.is_empty() {
            changes.changed().await.unwrap();
        }
        let asked = Interrupting { target, grace, reason: None };
        house.service.interrupt(&person("u"), asked).await.unwrap()
    };
    let (submitted, interrupted) = house.block_on(async { tokio::join!(submit, interrupt) });
    (done(submitted.unwrap()), interrupted)
}

#[test]
fn what_ran_has_stopped_when_that_is_said_and_what_it_did_outside_is_not_known() {
    for (target, reach) in [
        (Target::Turn(id("t1")), Reach::Turn),
        (Target::Task(id("t1")), Reach::Task),
        (Target::Session(id("s1")), Reach::Session),
        (Target::Tree(id("s1")), Reach::Tree),
    ] {
        let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ALLOW));
        house.open_task();
        runs_until_stopped(&house);
        let (seen, interrupted) = while_it_runs(&house, "fake.write", target, None);
        assert_eq!(seen.outcome.to_string(), "unknown(interrupted)", "{reach:?}");
        assert!(seen.outcome.help.unwrap().contains("before it is done again"));
        assert_eq!(interrupted.reach, reach);
        assert_eq!((&interrupted.stopped, interrupted.running.len()), (&vec![seen.action_id], 0));
        assert!(interrupted.stopped_ms.is_some());
        let task = house.task();
        assert!(task.interrupt.is_some() && task.stopping().is_none());
        assert_eq!(task.state == TaskState::Cancelled, reach == Reach::Task);
        house.audit(&["s1"]);
    }
}

#[test]
fn one_action_is_interrupted_and_its_task_goes_on() {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ASK));
    house.open_task();
    let (one, other) = (house.waits("fake.write", "{}"), house.waits("fake.write", r#"{"count":1}"#));
    let interrupted = house.interrupt(Target::Action(one.id.clone()), None).unwrap();
    assert_eq!((interrupted.reach, interrupted.ended, interrupted.id), (Reach::Action, vec![one.id.clone()], None));
    assert!(house.pending().contains(approval(&other)));
    assert_eq!(done(house.resume(&one)).outcome.to_string(), "interrupted(approval)");
    assert_eq!(house.task().interrupt, None);
    house.audit(&["s1"]);
}

#[test]
fn what_can_change_nothing_outside_is_interrupted_for_certain() {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ALLOW));
    house.open_task();
    runs_until_stopped(&house);
    let (seen, _) = while_it_runs(&house, "fake.tool", Target::Session(id("s1")), None);
    assert_eq!(seen.outcome.to_string(), "interrupted(run)");
    house.audit(&["s1"]);
}

#[test]
fn a_soft_interrupt_lets_what_runs_end_by_itself_and_a_hard_one_is_heard_after_it() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    house.open_task();
    // It ends by itself soon after it was told.
    let told = Arc::new(AtomicBool::new(false));
    let (seen_told, store) = (told.clone(), house.store.clone());
    house.on_run(move |bound, ports| {
        while store.action(&name("local"), &bound.plan.action_id).unwrap().unwrap().stop.is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        // Longer than it takes to hear of it.
        std::thread::sleep(Duration::from_millis(400));
        seen_told.store(ports.stop.is_requested(), Ordering::SeqCst);
        returned("{}")
    });
    let hour = Some(Duration::from_secs(3600));
    let (seen, interrupted) = while_it_runs(&house, "fake.write", Target::Turn(id("t1")), hour);
    assert_eq!((seen.outcome.code, interrupted.running.len()), (None, 0), "{:?}", seen.outcome);
    assert!(!told.load(Ordering::SeqCst), "it was stopped within its grace");
    // The grace is over.
    runs_until_stopped(&house);
    let (seen, _) = while_it_runs(&house, "fake.write", Target::Turn(id("t1")), Some(Duration::from_millis(30)));
    assert_eq!(seen.outcome.to_string(), "unknown(interrupted)");
    let longer = Some(Duration::from_secs(3601));
    assert_eq!(house.interrupt(Target::Turn(id("t1")), longer).unwrap_err().code, Code::Usage);
    // Whoever wants it sooner is heard.
    let stop = Stop::default();
    let submit = house.service.submit(house.asked("fake.write", "{}"), Arc::new(Unwatched), &stop);
    let interrupts = async {
        let mut changes = house.store.changes().unwrap();
        let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
        while house.store.actions(&name("local"), &filter).unwrap().items.is_empty() {
            changes.changed().await.unwrap();
        }
        let interrupt = |grace| {
            let asked = Interrupting { target: Target::Turn(id("t1")), grace, reason: None };
            let service = house.service.clone();
            async move { service.interrupt(&person("u"), asked).await.unwrap() }
        };
        let soft = interrupt(hour);
        let hard = async {
            while house.task().stopping().is_none() {
                changes.changed().await.unwrap();
            }
            interrupt(None).await
        };
        tokio::join!(soft, hard)
    };
    let (submitted, both) = house.block_on(async { tokio::join!(submit, interrupts) });
    assert_eq!(done(submitted.unwrap()).outcome.to_string(), "unknown(interrupted)");
    assert!(both.0.running.is_empty() && both.1.running.is_empty());
    house.audit(&["s1"]);
}

#[test]
fn an_interrupt_takes_cards_and_questions_away_for_everybody_and_closes_the_turn() {
    let house = house();
    let other = House::open(&house.ground, &setup());
    house.turn();
    let question = house.ask(about("window", None)).unwrap().question.id;
    let (waits, approved) = (house.waits("fake.write", "{}"), house.waits("fake.write", r#"{"count":1}"#));
    house.approve(&approved);
    let interrupted = house.interrupt(Target::Session(id("s1")), None).unwrap();
    assert_eq!((interrupted.ended.len(), interrupted.stopped.len()), (2, 0));
    assert!(other.pending().is_empty() && other.open_questions().is_empty(), "a card is left");
    for action in [&waits, &approved] {
        assert_eq!(done(other.resume(action)).outcome.code, Some(Code::Interrupted));
        let late = other.answer(approval(action), "task", None).unwrap_err();
        assert_eq!((late.code, late.retryable), (Code::ApprovalClosed, false));
    }
    assert!(other.answer_question(&person("u"), &question, crate::loops::picks("two")).is_err());
    assert!(house.ground.runs().is_empty());
    assert_eq!(house.send(house.in_turn("fake.tool", "{}", 1)).unwrap_err().code, Code::TurnConflict);
    // The loop goes on with another turn, and is told why.
    let start = house.turn();
    let why = start.interrupted.unwrap();
    assert_eq!((start.replan[0].as_str(), why.text.as_deref()), ("interrupted", Some("it goes astray")));
    assert_eq!(house.turn().interrupted, None);
    house.audit(&["s1"]);
}

#[test]
fn only_the_turn_is_meant_where_the_turn_is_interrupted() {
    let house = house();
    house.turn();
    let first = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    house.approve(&first);
    house.turn();
    let second = waiting(house.send(house.in_turn("fake.write", r#"{"count":1}"#, 2)).unwrap());
    house.interrupt(Target::Turn(id("t1")), None).unwrap();
    assert_eq!(house.now(&second.id).state, ActionState::Cancelled);
    assert_eq!(done(house.resume(&first)).outcome.code, None, "what was asked in others goes on");
    house.audit(&["s1"]);
}

#[test]
fn a_cancelled_task_says_why_and_takes_nothing_new() {
    let house = house();
    let waits = house.waits("fake.write", "{}");
    house.interrupt(Target::Task(id("t1")), None).unwrap();
    let end = house.task().end.unwrap();
    assert_eq!((end.state, end.by.as_str()), (TaskState::Cancelled, "u"));
    let of = glovebox_events::Owner::Task(id("t1"));
    let why = house.store.payload(&name("local"), &of, &end.why.unwrap()).unwrap();
    assert_eq!(why, Some(glovebox_store::Content::Bytes(b"it goes astray".to_vec())));
    assert_eq!(done(house.resume(&waits)).outcome.code, Some(Code::Interrupted));
    assert_eq!(house.send(house.asked("fake.tool", "{}")).unwrap_err().code, Code::TaskClosed);
    assert_eq!(house.interrupt(Target::Task(id("t1")), None).unwrap_err().code, Code::TaskClosed);
    house.audit(&["s1"]);
}

#[test]
fn one_interrupt_of_the_tree_stops_all_and_nothing_above_or_beside() {
    let house = House::of(&setup());
    let helper = || called("helper", &["coder"]);
    let deep = || called("deep", &["coder", "helper"]);
    house.open_session(&coder(), "s1", None);
    house.open_session(&helper(), "s2", Some("s1"));
    house.open_session(&deep(), "s3", Some("s2"));
    house.open_session(&coder(), "beside", None);
    let task = |who: &env_contracts::Principal, task: &str, session: &str| {
        let new = new_task(task, session, glovebox_events::Budget::default());
        house.block_on(house.service.open_task(who, new)).unwrap();
        let mut submission = house.asked("fake.write", "{}");
        (submission.principal, submission.context.session, submission.context.task) =
            (who.clone(), id(session), id(task));
        waiting(house.send(submission).unwrap())
    };
    let top = task(&coder(), "t1", "s1");
    let middle = task(&helper(), "t2", "s2");
    let bottom = task(&deep(), "t3", "s3");
    let beside = task(&coder(), "t4", "beside");
    let below = house.interrupt(Target::Session(id("s2")), None).unwrap();
    assert_eq!((below.sessions, below.ended), (vec![id("s2")], vec![middle.id.clone()]));
    let tree = house.interrupt(Target::Tree(id("s1")), None).unwrap();
    assert_eq!(tree.sessions, [id("s1"), id("s2"), id("s3")]);
    assert_eq!(tree.ended, [top.id.clone(), bottom.id.clone()]);
    assert_eq!(house.now(&beside.id).state, ActionState::WaitingApproval);
    for session in ["s1", "s2", "s3"] {
        let session = house.store.session(&name("local"), &id(session)).unwrap().unwrap();
        assert!(session.interrupt.is_some() && session.stopping().is_none());
    }
    let foreign = Interrupting { target: Target::Tree(id("s1")), grace: None, reason: None };
    for who in [person("v"), agent("u", "other"), helper()] {
        let refused = house.block_on(house.service.interrupt(&who, foreign.clone())).unwrap_err();
        assert_eq!(refused.code, Code::SessionUnknown);
    }
    // A parent stops what it called.
    let own = Interrupting { target: Target::Tree(id("s2")), grace: None, reason: None };
    house.block_on(house.service.interrupt(&coder(), own)).unwrap();
    house.audit(&["s1", "s2", "s3", "beside"]);
}

#[test]
fn a_session_that_nobody_opened_is_interrupted_too() {
    let house = House::of(&setup());
    let mut submission = house.asked("fake.write", "{}");
    submission.context.task = id("s1");
    let waits = waiting(house.send(submission).unwrap());
    let other = house.waits("fake.write", r#"{"count":1}"#);
    let interrupted = house.interrupt(Target::Session(id("s1")), None).unwrap();
    assert_eq!(interrupted.ended.len(), 2, "{interrupted:?}");
    for action in [&waits, &other] {
        assert_eq!(house.now(&action.id).state, ActionState::Cancelled);
    }
    house.audit(&["s1"]);
}

/// The process dies at each commit of an interrupt of a tree: from the first on
/// that is durable nothing begins, and another process brings it to its end.
#[test]
fn an_interrupt_that_was_received_is_carried_on_wherever_its_process_died() {
    let mut points = 0;
    for at in 1.. {
        let ground = Ground::new();
        let plain = House::open(&ground, &setup());
        plain.runs_well();
        plain.open_session(&coder(), "s1", None);
        plain.open_session(&called("helper", &["coder"]), "s2", Some("s1"));
        plain.open_task();
        let new = new_task("t2", "s2", glovebox_events::Budget::default());
        plain.block_on(plain.service.open_task(&called("helper", &["coder"]), new)).unwrap();
        plain.turn();
        let approved = plain.waits("fake.write", "{}");
        plain.approve(&approved);
        let mut below = plain.asked("fake.write", "{}");
        below.principal = called("helper", &["coder"]);
        (below.context.session, below.context.task) = (id("s2"), id("t2"));
        let below = waiting(plain.send(below).unwrap());
        let dying = House::open_over(&ground, &setup(), |store| {
            Between::over(store, move |moment| !matches!(moment, Moment::After(number) if number >= at))
        });
        let asked = Interrupting { target: Target::Tree(id("s1")), grace: None, reason: None };
        let died = dying.block_on(dying.service.interrupt(&person("u"), asked)).is_err();
        drop(dying);
        // What a person approved does not begin any more.
        assert!(
            plain.block_on(async {
                let stop = Stop::default();
                let went =
                    plain.service.resume(&coder(), &approved.id, Asking::Leave, Arc::new(Unwatched), &stop).await;
                plain.ground.runs().is_empty() && went.is_ok()
            }),
            "it ran after the interrupt was received, which died at {at}"
        );
        let child = NewSession { id: Some(id("s3")), parent: Some(id("s2")) };
        let late = plain.block_on(plain.service.open_session(&called("helper", &["coder"]), child));
        assert!(!died || at > 4 || late.is_err_and(|late| late.code == Code::Interrupted), "died at {at}");
        plain.block_on(plain.service.recover()).unwrap();
        assert!(plain.pending().is_empty(), "died at {at}");
        for action in [&approved, &below] {
            assert_eq!(plain.now(&action.id).state, ActionState::Cancelled, "died at {at}");
        }
        for session in ["s1", "s2"] {
            let session = plain.store.session(&name("local"), &id(session)).unwrap().unwrap();
            assert!(session.interrupt.is_some() && session.stopping().is_none(), "{session:?} at {at}");
        }
        for task in ["t1", "t2"] {
            let task = plain.task_named(task);
            assert!(task.interrupt.is_some() && task.stopping().is_none(), "{task:?} at {at}");
        }
        assert_eq!(plain.block_on(plain.service.recover()).unwrap(), glovebox_plane::Recovered::default());
        plain.turn();
        assert_eq!(done(plain.send(plain.asked("fake.tool", "{}")).unwrap()).outcome.code, None, "work goes on");
        plain.audit(&["s1", "s2"]);
        if !died {
            break;
        }
        points = at;
    }
    assert!(points >= 6, "it has a commit for each session, each action and each end: {points}");
}

/// The one who interrupts dies; the loop itself comes back first.
#[test]
fn a_loop_that_comes_back_finds_out_that_nothing_runs_any_more() {
    let house = house();
    house.turn();
    let dying =
        House::open_over(&house.ground, &setup(), |store| Between::over(store, |moment| moment != Moment::After(1)));
    dying.interrupt(Target::Session(id("s1")), None).unwrap_err();
    assert!(house.task().stopping().is_some(), "this test proves nothing");
    assert_eq!(house.send(house.asked("fake.tool", "{}")).unwrap_err().code, Code::Interrupted);
    assert_eq!(house.turn().turn, 2);
    house.audit(&["s1"]);
}

/// It can change nothing, and so it is written down late: too late for whoever
/// tells what runs to stop.
#[test]
fn a_run_that_nobody_could_tell_finds_out_by_itself() {
    let house = House::of(&Setup::of(&[TOOL]).rules(ALLOW));
    house.open_task();
    let interrupted = Arc::new(AtomicBool::new(false));
    let (flag, service) = (interrupted.clone(), house.service.clone());
    let handle = house.ground.tokio.handle().clone();
    house.on_run(move |_, ports| {
        if !flag.swap(true, Ordering::SeqCst) {
            let asked = Interrupting { target: Target::Session(id("s1")), grace: None, reason: None };
            handle.block_on(service.interrupt(&person("u"), asked)).unwrap();
        }
        while !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(2));
        }
        End::Interrupted
    });
    let seen = done(house.send(house.asked("fake.tool", "{}")).unwrap());
    assert_eq!(seen.outcome.to_string(), "interrupted(run)");
    house.audit(&["s1"]);
}
