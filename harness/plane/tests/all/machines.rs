//! The state machines of tasks, sessions and questions: which event may follow
//! in which state.

use glovebox_events::{
    AskedOf, Question, QuestionEvent, QuestionState, Session, SessionEvent, Task, TaskEvent, TaskState, Told,
};
use glovebox_plane::machine::{question_step, session_step, task_step};

use crate::deeds::*;
use crate::house::{agent, id, name};
use crate::steps::{EXPIRES_MS, log};

fn task_after(events: &[TaskEvent]) -> Option<Task> {
    events.iter().fold(None, |task, event| {
        let stepped = task_step(task, &log(), &id("t1"), 1, event);
        Some(stepped.unwrap_or_else(|illegal| panic!("{illegal}")))
    })
}

fn task_states() -> Vec<(&'static str, Vec<TaskEvent>)> {
    let open = vec![task_opened()];
    let and = |before: &[TaskEvent], event: TaskEvent| [before, &[event]].concat();
    let turned = and(&open, turn_opened(1, 1, &[]));
    let closed = and(&turned, turn_closed(1));
    let steered = and(&open, steered("m1"));
    let changed = and(&open, goal(2));
    let stopping = and(&open, TaskEvent::Interrupted { interrupt: interrupt("i1", 1) });
    let stopped = and(&stopping, TaskEvent::Stopped { interrupt: id("i1") });
    let over = and(&open, ended(TaskState::Done));
    let cancelled = and(&stopping, ended(TaskState::Cancelled));
    vec![
        ("none", Vec::new()),
        ("open", open),
        ("turned", turned),
        ("closed", closed),
        ("steered", steered),
        ("changed", changed),
        ("stopping", stopping),
        ("stopped", stopped),
        ("over", over),
        ("cancelled", cancelled),
    ]
}

fn task_events() -> Vec<(&'static str, TaskEvent)> {
    vec![
        ("opened", task_opened()),
        ("turn-1", turn_opened(1, 1, &[])),
        ("turn-1-told", turn_opened(1, 1, &["m1"])),
        ("turn-1-goal-2", turn_opened(1, 2, &[])),
        ("turn-2", turn_opened(2, 1, &[])),
        ("close-1", turn_closed(1)),
        ("close-2", turn_closed(2)),
        ("noticed", noticed(&[])),
        ("noticed-told", noticed(&["m1"])),
        ("steer", steered("m2")),
        ("constrain", TaskEvent::Constrained { constraint: remark("c1") }),
        ("goal-2", goal(2)),
        ("goal-3", goal(3)),
        ("stage", TaskEvent::StageSet { stage: Some("review".into()) }),
        ("text", told(Told::Text, None)),
        ("text-1", told(Told::Text, Some(1))),
        ("verified-1", told(verified(1), None)),
        ("verified-2", told(verified(2), None)),
        ("feedback", told(Told::Feedback, None)),
        ("outcome", told(Told::Outcome, None)),
        ("interrupt", TaskEvent::Interrupted { interrupt: interrupt("i2", 5) }),
        ("interrupt-backwards", TaskEvent::Interrupted { interrupt: interrupt("i2", 0) }),
        ("stopped", TaskEvent::Stopped { interrupt: id("i1") }),
        ("stopped-other", TaskEvent::Stopped { interrupt: id("i2") }),
        ("done", ended(TaskState::Done)),
        ("reopened", ended(TaskState::Open)),
        ("erased", TaskEvent::Erased { by: name("u") }),
    ]
}

const ANY: &str = "steer constrain stage text verified-1 feedback outcome interrupt erased";

/// What may follow in each state; nothing else may.
const TASK: &[(&str, &str)] = &[
    ("none", "opened"),
    ("open", "turn-1 noticed goal-2 done"),
    ("turned", "close-1 goal-2 text-1"),
    ("closed", "turn-2 goal-2 text-1 done"),
    ("steered", "turn-1-told noticed-told goal-2 done"),
    ("changed", "turn-1-goal-2 noticed goal-3 verified-2 done"),
    ("stopping", "noticed goal-2 stopped done"),
    ("stopped", "turn-1 noticed goal-2 done"),
    ("over", "verified-1 feedback outcome erased"),
    ("cancelled", "verified-1 feedback outcome stopped erased"),
];

#[test]
fn a_task_takes_the_events_of_the_table_and_no_other() {
    let mut wrong = Vec::new();
    for ((state, sequence), (same, legal)) in task_states().into_iter().zip(TASK) {
        assert_eq!(state, *same);
        let open = !matches!(state, "none" | "over" | "cancelled");
        let legal: Vec<&str> = legal.split(' ').chain(ANY.split(' ').filter(|_| open)).collect();
        for (event, what) in task_events() {
            let taken = task_step(task_after(&sequence), &log(), &id("t1"), 1, &what);
            if taken.is_ok() != legal.contains(&event) {
                wrong.push(format!("{event} in {state}: {taken:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_turn_tells_everything_and_what_was_told_is_not_told_again() {
    let said = [task_opened(), steered("m1"), steered("m2"), TaskEvent::Constrained { constraint: remark("c1") }];
    for steers in [&["m1"][..], &["m2", "m1"], &[]] {
        let illegal = task_step(task_after(&said), &log(), &id("t1"), 1, &turn_opened(1, 1, steers)).unwrap_err();
        assert_eq!(illegal.why, "it was not told all that was said");
    }
    let task = task_step(task_after(&said), &log(), &id("t1"), 1, &turn_opened(1, 1, &["m1", "m2"])).unwrap();
    assert!(task.steers.is_empty() && task.replan.is_empty() && task.constraints.len() == 1);
}

fn session_after(events: &[SessionEvent]) -> Option<Session> {
    events.iter().fold(None, |session, event| {
        Some(session_step(session, &log(), 1, event).unwrap_or_else(|illegal| panic!("{illegal}")))
    })
}

#[test]
fn a_session_takes_the_events_of_the_table_and_no_other() {
    let closed = SessionEvent::Closed { by: name("u") };
    let received = SessionEvent::Interrupted { interrupt: interrupt("i1", 1) };
    let stopped = SessionEvent::Stopped { interrupt: id("i1") };
    let backwards = SessionEvent::Interrupted { interrupt: interrupt("i1", 0) };
    let child = SessionEvent::Opened { principal: agent("u", "coder"), parent: Some(id("s0")), root: id("s0") };
    let events = [
        ("opened", session_opened()),
        ("child", child),
        ("closed", closed.clone()),
        ("received", received.clone()),
        ("backwards", backwards),
        ("stopped", stopped.clone()),
    ];
    let open = session_opened();
    let table: [(&str, Vec<SessionEvent>, &str); 5] = [
        ("none", vec![], "opened child"),
        ("open", vec![open.clone()], "closed received"),
        ("stopping", vec![open.clone(), received.clone()], "closed received stopped"),
        ("stopped", vec![open.clone(), received.clone(), stopped], "closed received"),
        ("closed", vec![open, received, closed], "received stopped"),
    ];
    for (state, sequence, legal) in table {
        for (event, what) in &events {
            let taken = session_step(session_after(&sequence), &log(), 1, what);
            assert_eq!(taken.is_ok(), legal.split(' ').any(|known| known == *event), "{event} in {state}: {taken:?}");
        }
    }
}

#[test]
fn a_session_has_its_place_in_a_tree() {
    let place = |parent: Option<&str>, root: &str| {
        let opened = SessionEvent::Opened { principal: agent("u", "coder"), parent: parent.map(id), root: id(root) };
        session_step(None, &log(), 1, &opened).is_ok()
    };
    assert!(place(None, "s1") && place(Some("s0"), "s0"));
    assert!(!place(None, "s0") && !place(Some("s0"), "s1") && !place(Some("s1"), "s0"));
    let other = SessionEvent::Opened { principal: agent("u", "coder"), parent: None, root: id("s1") };
    let mut elsewhere = log();
    elsewhere.tenant = name("elsewhere");
    assert!(session_step(None, &elsewhere, 1, &other).is_err());
}

fn question_after(events: &[QuestionEvent]) -> Option<Question> {
    events.iter().fold(None, |question, event| {
        let stepped = question_step(question, &log(), &id("q1"), 1, event);
        Some(stepped.unwrap_or_else(|illegal| panic!("{illegal}")))
    })
}

fn question_events() -> Vec<(&'static str, QuestionEvent)> {
    vec![
        ("asked", ask(AskedOf::Person)),
        ("asked-root", ask(AskedOf::Root)),
        ("answered", answer(Some("one"), false)),
        ("answered-by-agent", answer(Some("one"), true)),
        ("answered-nothing", answer(None, false)),
        ("answered-other", answer(Some("three"), false)),
        ("expired", QuestionEvent::Expired),
        ("withdrawn", QuestionEvent::Withdrawn { why: name("withdrawn") }),
        ("unsupported", QuestionEvent::Unsupported { channel: name("pipe") }),
        ("passed-on", QuestionEvent::PassedOn { by: name("coder") }),
        ("merged", QuestionEvent::Merged { into: id("q2"), by: name("coder") }),
        ("merged-itself", QuestionEvent::Merged { into: id("q1"), by: name("coder") }),
        ("told", QuestionEvent::Told { turn: 1 }),
    ]
}

#[test]
fn a_question_takes_the_events_of_the_table_and_no_other() {
    let [person, root] = [ask(AskedOf::Person), ask(AskedOf::Root)];
    let passed = QuestionEvent::PassedOn { by: name("coder") };
    let merged = QuestionEvent::Merged { into: id("q2"), by: name("coder") };
    let told = QuestionEvent::Told { turn: 1 };
    let pending = "answered expired withdrawn unsupported";
    let table: [(&str, Vec<QuestionEvent>, String); 9] = [
        ("none", vec![], "asked asked-root".into()),
        ("pending", vec![person.clone()], pending.into()),
        ("pending at the root", vec![root.clone()], format!("{pending} answered-by-agent passed-on merged")),
        ("passed on", vec![root.clone(), passed], pending.into()),
        ("answered", vec![person.clone(), answer(Some("one"), false)], "told".into()),
        ("expired", vec![person.clone(), QuestionEvent::Expired], "told".into()),
        ("merged", vec![root, merged], "told".into()),
        ("told", vec![person.clone(), answer(Some("one"), false), told], String::new()),
        ("withdrawn", vec![person, QuestionEvent::Withdrawn { why: name("w") }], "told".into()),
    ];
    for (state, sequence, legal) in table {
        for (event, what) in question_events() {
            let taken = question_step(question_after(&sequence), &log(), &id("q1"), 1, &what);
            assert_eq!(taken.is_ok(), legal.split(' ').any(|known| known == event), "{event} in {state}: {taken:?}");
        }
    }
}

#[test]
fn a_question_is_answered_until_the_millisecond_before_its_time_is_over() {
    let at =
        |ms| question_step(question_after(&[ask(AskedOf::Person)]), &log(), &id("q1"), ms, &answer(Some("one"), false));
    assert!(at(EXPIRES_MS - 1).is_ok() && at(EXPIRES_MS).is_err() && at(0).is_ok());
}

#[test]
fn a_question_begins_as_one_and_in_its_own_log() {
    let begins = |change: fn(&mut Question)| {
        let mut asked = question(AskedOf::Person);
        change(&mut asked);
        question_step(None, &log(), &id("q1"), 1, &QuestionEvent::Opened { asked })
    };
    assert!(begins(|_| ()).is_ok());
    let wrong: [fn(&mut Question); 9] = [
        |asked| asked.state = QuestionState::Answered,
        |asked| asked.told = Some(1),
        |asked| asked.merged_into = Some(id("q2")),
        |asked| asked.version = 2,
        |asked| asked.opened_ms = 2,
        |asked| asked.id = id("q2"),
        |asked| asked.session = id("s2"),
        |asked| asked.principal.tenant = name("elsewhere"),
        |asked| asked.recommended = id("three"),
    ];
    for (number, change) in wrong.into_iter().enumerate() {
        assert!(begins(change).is_err(), "{number}");
    }
}
