//! The state machines of tasks, sessions and questions: which event may follow
//! in which state, and that no sequence of events breaks a replay.

use std::collections::BTreeMap;

use env_contracts::Id;
use glovebox_events::{
    AskedOf, Budget, Entry, Event, Goal, Interrupt, Logged, Origin, Question, QuestionAnswer, QuestionEvent,
    QuestionState, Reach, Remark, Session, SessionEvent, Task, TaskEnd, TaskEvent, TaskState, Told, Turn, What,
};
use glovebox_plane::machine::{Illegal, question_step, replay, session_step, task_step};
use proptest::prelude::*;

use crate::house::{agent, id, name};
use crate::steps::{log, named};

const EXPIRES_MS: u64 = 100;

fn remark(remark: &str) -> Remark {
    Remark { id: id(remark), text: named(remark), by: name("u"), at_ms: 1 }
}

fn interrupt(interrupt: &str, grace_ms: u64) -> Interrupt {
    let (by, reason) = (name("u"), None);
    Interrupt { id: id(interrupt), reach: Reach::Task, by, at_ms: 1, grace_ms, reason, stopped_ms: None }
}

fn turn(number: u64, goal: u32) -> Turn {
    Turn { number, goal, start: named("start"), key: None, opened_ms: 1, closed: None }
}

fn told(what: Told, turn: Option<u64>) -> TaskEvent {
    TaskEvent::Told { entry: Entry { id: id("e1"), turn, parents: Vec::new(), by: name("u"), what, content: None } }
}

fn verified(goal: u32) -> Told {
    Told::Verified { holds: true, revision: None, condition: None, goal }
}

fn task_opened() -> TaskEvent {
    let principal = agent("u", "coder");
    TaskEvent::Opened { principal, goal: named("goal"), purpose: None, stage: None, budget: Budget::default() }
}

fn turn_opened(number: u64, goal: u32, steers: &[&str]) -> TaskEvent {
    TaskEvent::TurnOpened { turn: turn(number, goal), steers: steers.iter().map(|steer| id(steer)).collect() }
}

fn turn_closed(turn: u64) -> TaskEvent {
    TaskEvent::TurnClosed { turn, why: name("next") }
}

fn goal(version: u32) -> TaskEvent {
    TaskEvent::GoalChanged { goal: Goal { version, text: named("other"), by: name("u"), at_ms: 1 } }
}

fn noticed(steers: &[&str]) -> TaskEvent {
    TaskEvent::Noticed { action: id("a1"), steers: steers.iter().map(|steer| id(steer)).collect() }
}

fn ended(state: TaskState) -> TaskEvent {
    TaskEvent::Ended { end: TaskEnd { state, by: name("u"), why: None, at_ms: 1 } }
}

fn steered(steer: &str) -> TaskEvent {
    TaskEvent::Steered { steer: remark(steer) }
}

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

fn session_opened() -> SessionEvent {
    SessionEvent::Opened { principal: agent("u", "coder"), parent: None, root: id("s1") }
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

fn question(to: AskedOf) -> Question {
    Question {
        id: id("q1"),
        session: id("s1"),
        root: id("s1"),
        task: id("t1"),
        turn: None,
        goal: 1,
        principal: agent("u", "coder"),
        topic: name("window"),
        text: named("text"),
        options: vec![id("one"), id("two")],
        recommended: id("one"),
        origin: Origin::Loop,
        to,
        state: QuestionState::Pending,
        merged_into: None,
        answer: None,
        told: None,
        version: 1,
        opened_ms: 1,
        expires_ms: Some(EXPIRES_MS),
        changed_ms: 1,
    }
}

fn answer(option: Option<&str>, agent: bool) -> QuestionEvent {
    let (by, channel) = (name("u"), name("test"));
    QuestionEvent::Answered {
        answer: QuestionAnswer { option: option.map(id), text: None, by, agent, channel, at_ms: 1 },
    }
}

fn ask(to: AskedOf) -> QuestionEvent {
    QuestionEvent::Opened { asked: question(to) }
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

/// Something that happens to one of two tasks, the session or one of two
/// questions, mostly in a way that fits.
fn made(choice: u8, fits: bool, number: u8, live: &Small) -> Made {
    let of = id(["t1", "t2"][usize::from(number % 2)]);
    let asked = id(["q1", "q2"][usize::from(number % 2)]);
    let task = live.tasks.get(&of).filter(|_| fits);
    let version = task.map_or(u32::from(number % 3), |task| task.goal.version);
    let last = task.and_then(|task| task.turn.as_ref()).map_or(u64::from(number % 3), |turn| turn.number);
    let steers: Vec<Id> = task.map_or_else(Vec::new, |task| task.steers.iter().map(|steer| steer.id.clone()).collect());
    let known = |interrupt: &Option<Interrupt>| interrupt.as_ref().map_or_else(|| id("i1"), |known| known.id.clone());
    let remarks = remark(&format!("m{number}"));
    match choice {
        0 => Made::Task(of, task_opened()),
        1 | 2 => Made::Task(of, TaskEvent::TurnOpened { turn: turn(last + 1, version), steers }),
        3 => Made::Task(of, turn_closed(last)),
        4 => Made::Task(of, TaskEvent::Steered { steer: remarks }),
        5 => Made::Task(of, TaskEvent::Constrained { constraint: remarks }),
        6 => Made::Task(of, goal(version + 1)),
        7 => Made::Task(of, TaskEvent::Noticed { action: id("a1"), steers }),
        8 => Made::Task(of, told(verified(version), None)),
        9 => Made::Task(of, TaskEvent::Interrupted { interrupt: interrupt(&format!("i{number}"), 2) }),
        10 => {
            let interrupt = task.map_or_else(|| id("i1"), |task| known(&task.interrupt));
            Made::Task(of, TaskEvent::Stopped { interrupt })
        }
        11 => Made::Task(of, ended(if number > 200 { TaskState::Done } else { TaskState::Open })),
        12 => Made::Session(session_opened()),
        13 => Made::Session(SessionEvent::Interrupted { interrupt: interrupt(&format!("i{number}"), 2) }),
        14 => {
            let interrupt = live.session.as_ref().map_or_else(|| id("i1"), |session| known(&session.interrupt));
            Made::Session(SessionEvent::Stopped { interrupt })
        }
        15 | 16 => {
            let mut opened = question(if number > 100 { AskedOf::Root } else { AskedOf::Person });
            opened.id = asked.clone();
            Made::Question(asked, QuestionEvent::Opened { asked: opened })
        }
        17 => Made::Question(asked, answer(Some("one"), number > 100)),
        18 => Made::Question(asked, QuestionEvent::Expired),
        19 => Made::Question(asked, QuestionEvent::PassedOn { by: name("coder") }),
        20 => Made::Question(asked, QuestionEvent::Merged { into: id("q1"), by: name("coder") }),
        21 => Made::Question(asked, QuestionEvent::Told { turn: 1 }),
        _ => Made::Session(SessionEvent::Closed { by: name("u") }),
    }
}

enum Made {
    Task(Id, TaskEvent),
    Session(SessionEvent),
    Question(Id, QuestionEvent),
}

#[derive(Default)]
struct Small {
    session: Option<Session>,
    tasks: BTreeMap<Id, Task>,
    questions: BTreeMap<Id, Question>,
}

impl Small {
    /// What an event makes of it. Nothing, if it must not follow.
    fn take(&mut self, made: Made) -> Result<What, Illegal> {
        match made {
            Made::Task(task, event) => {
                let next = task_step(self.tasks.get(&task).cloned(), &log(), &task, 1, &event)?;
                self.tasks.insert(task.clone(), next);
                Ok(What::Task { task, event })
            }
            Made::Session(event) => {
                self.session = Some(session_step(self.session.clone(), &log(), 1, &event)?);
                Ok(What::Session { event })
            }
            Made::Question(question, event) => {
                let next = question_step(self.questions.get(&question).cloned(), &log(), &question, 1, &event)?;
                self.questions.insert(question.clone(), next);
                Ok(What::Question { question, task: id("t1"), event })
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_adds_up_to_anything_else_when_it_is_replayed(
        moves in proptest::collection::vec((0u8..23, proptest::bool::weighted(0.85), any::<u8>()), 1..120),
    ) {
        let mut live = Small::default();
        let mut taken = Vec::new();
        let (mut turns, mut answers, mut told) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for (choice, fits, number) in moves {
            let made = made(choice, fits, number, &live);
            let before = live.tasks.clone();
            let Ok(what) = live.take(made) else { continue };
            match &what {
                What::Task { task, event: TaskEvent::TurnOpened { turn, .. } } => {
                    let last = turns.insert(task.clone(), turn.number).unwrap_or(0);
                    prop_assert_eq!(turn.number, last + 1);
                    prop_assert!(before[task].stopping().is_none() && before[task].state == TaskState::Open);
                    prop_assert!(live.tasks[task].steers.is_empty());
                }
                What::Question { question, event: QuestionEvent::Answered { .. }, .. } => {
                    prop_assert!(answers.insert(question.clone(), ()).is_none(), "answered twice");
                }
                What::Question { question, event: QuestionEvent::Told { .. }, .. } => {
                    prop_assert!(told.insert(question.clone(), ()).is_none(), "told twice");
                }
                _ => {}
            }
            taken.push(Event { at_ms: 1, action: None, what });
        }
        let logged = taken.into_iter().zip(1..).map(|(event, seq)| Logged { log: log(), seq, event, hash: named("") });
        let again = replay(&logged.collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(again.sessions.into_values().next(), live.session);
        prop_assert_eq!(again.tasks.into_values().collect::<Vec<_>>(), live.tasks.into_values().collect::<Vec<_>>());
        let questions = live.questions.into_values().collect::<Vec<_>>();
        prop_assert_eq!(again.questions.into_values().collect::<Vec<_>>(), questions);
    }
}
