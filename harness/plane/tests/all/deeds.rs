//! Events of tasks, sessions and questions, for the tests of their machines.

use glovebox_events::{
    AskedOf, Budget, Entry, Goal, Interrupt, Origin, Question, QuestionAnswer, QuestionEvent, QuestionState, Reach,
    Remark, SessionEvent, TaskEnd, TaskEvent, TaskState, Told, Turn,
};

use crate::house::{agent, id, name};
use crate::steps::{EXPIRES_MS, named};

pub(crate) fn remark(remark: &str) -> Remark {
    Remark { id: id(remark), text: named(remark), by: name("u"), at_ms: 1 }
}

pub(crate) fn interrupt(interrupt: &str, grace_ms: u64) -> Interrupt {
    let (by, reason) = (name("u"), None);
    Interrupt { id: id(interrupt), reach: Reach::Task, by, at_ms: 1, grace_ms, reason, stopped_ms: None }
}

pub(crate) fn turn(number: u64, goal: u32) -> Turn {
    Turn { number, goal, start: named("start"), key: None, opened_ms: 1, closed: None }
}

pub(crate) fn told(what: Told, turn: Option<u64>) -> TaskEvent {
    TaskEvent::Told { entry: Entry { id: id("e1"), turn, parents: Vec::new(), by: name("u"), what, content: None } }
}

pub(crate) fn verified(goal: u32) -> Told {
    Told::Verified { holds: true, revision: None, condition: None, goal }
}

pub(crate) fn task_opened() -> TaskEvent {
    let principal = agent("u", "coder");
    TaskEvent::Opened { principal, goal: named("goal"), purpose: None, stage: None, budget: Budget::default() }
}

pub(crate) fn turn_opened(number: u64, goal: u32, steers: &[&str]) -> TaskEvent {
    TaskEvent::TurnOpened { turn: turn(number, goal), steers: steers.iter().map(|steer| id(steer)).collect() }
}

pub(crate) fn turn_closed(turn: u64) -> TaskEvent {
    TaskEvent::TurnClosed { turn, why: name("next") }
}

pub(crate) fn goal(version: u32) -> TaskEvent {
    TaskEvent::GoalChanged { goal: Goal { version, text: named("other"), by: name("u"), at_ms: 1 } }
}

pub(crate) fn noticed(steers: &[&str]) -> TaskEvent {
    TaskEvent::Noticed { action: id("a1"), steers: steers.iter().map(|steer| id(steer)).collect() }
}

pub(crate) fn ended(state: TaskState) -> TaskEvent {
    TaskEvent::Ended { end: TaskEnd { state, by: name("u"), why: None, at_ms: 1 } }
}

pub(crate) fn steered(steer: &str) -> TaskEvent {
    TaskEvent::Steered { steer: remark(steer) }
}

pub(crate) fn session_opened() -> SessionEvent {
    SessionEvent::Opened { principal: agent("u", "coder"), parent: None, root: id("s1") }
}

pub(crate) fn question(to: AskedOf) -> Question {
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

pub(crate) fn answer(option: Option<&str>, agent: bool) -> QuestionEvent {
    let (by, channel) = (name("u"), name("test"));
    QuestionEvent::Answered {
        answer: QuestionAnswer { option: option.map(id), text: None, by, agent, channel, at_ms: 1 },
    }
}

pub(crate) fn ask(to: AskedOf) -> QuestionEvent {
    QuestionEvent::Opened { asked: question(to) }
}
