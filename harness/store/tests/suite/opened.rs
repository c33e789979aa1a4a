//! Sessions, tasks and questions to put in.

use env_contracts::{Digest, Id, Name};
use glovebox_events::{
    AskedOf, Budget, Event, Goal, Interrupt, LogKey, Origin, Owner, Payload, PayloadRole, Question, QuestionAnswer,
    QuestionEvent, QuestionState, Reach, Remark, Session, SessionEvent, Spent, Task, TaskEvent, TaskState, Turn, What,
};
use glovebox_store::{Commit, Record, Thing};

use super::made::*;

/// A session that was opened, perhaps from another one.
pub(crate) fn session(log: &LogKey, parent: Option<&Session>) -> Session {
    Session {
        id: log.session.clone(),
        principal: principal(&log.tenant),
        parent: parent.map(|parent| parent.id.clone()),
        root: parent.map_or(log.session.clone(), |parent| parent.root.clone()),
        closed: false,
        version: 1,
        interrupt: None,
        opened_ms: 1000,
        changed_ms: 1000,
    }
}

/// What happened to a session, with its record.
pub(crate) fn session_commit(session: &Session, event: SessionEvent) -> Commit {
    let mut commit = Commit::new(LogKey { tenant: session.principal.tenant.clone(), session: session.id.clone() });
    commit.conditions.push(at(Thing::Session(session.id.clone()), session.version - 1));
    commit.events.push(Event { at_ms: session.changed_ms, action: None, what: What::Session { event } });
    commit.records.push(Record::Session(Box::new(session.clone())));
    commit
}

/// That it was opened.
pub(crate) fn open_session(session: &Session) -> Commit {
    let (principal, parent, root) = (session.principal.clone(), session.parent.clone(), session.root.clone());
    session_commit(session, SessionEvent::Opened { principal, parent, root })
}

/// A task that was opened.
pub(crate) fn task(log: &LogKey, id: &str) -> Task {
    Task {
        id: of(id),
        session: log.session.clone(),
        principal: principal(&log.tenant),
        state: TaskState::Open,
        version: 1,
        goal: Goal { version: 1, text: Digest::of(goal(id).as_bytes()), by: of("ann"), at_ms: 1000 },
        purpose: None,
        stage: None,
        constraints: vec![],
        steers: vec![],
        replan: vec![],
        turn: None,
        budget: Budget::default(),
        spent: Spent::default(),
        interrupt: None,
        end: None,
        opened_ms: 1000,
        changed_ms: 1000,
    }
}

/// What a task is to reach.
pub(crate) fn goal(id: &str) -> String {
    format!("the goal of {id}")
}

/// A payload of a task.
pub(crate) fn text(task: &Id, role: PayloadRole, words: &str) -> Payload {
    Payload::new(Owner::Task(task.clone()), role, words.as_bytes().to_vec())
}

/// What happened to a task, with its record, on condition that nobody else was
/// faster.
pub(crate) fn task_commit(task: &Task, event: TaskEvent) -> Commit {
    let mut commit = Commit::new(LogKey { tenant: task.principal.tenant.clone(), session: task.session.clone() });
    commit.conditions.push(at(Thing::Task(task.id.clone()), task.version - 1));
    let what = What::Task { task: task.id.clone(), event };
    commit.events.push(Event { at_ms: task.changed_ms, action: None, what });
    commit.records.push(Record::Task(Box::new(task.clone())));
    commit
}

/// That it was opened, with its goal.
pub(crate) fn open_task(task: &Task) -> Commit {
    let opened = TaskEvent::Opened {
        principal: task.principal.clone(),
        goal: task.goal.text.clone(),
        purpose: None,
        stage: None,
        budget: task.budget,
    };
    let mut commit = task_commit(task, opened);
    commit.payloads.push(text(&task.id, PayloadRole::Goal, &goal(task.id.as_str())));
    commit
}

/// A person said something to it.
pub(crate) fn steer(task: &mut Task, words: &str) -> Commit {
    task.version += 1;
    let id = of(&format!("{}-steer-{}", task.id, task.version));
    let steer = Remark { id, text: Digest::of(words.as_bytes()), by: of("ann"), at_ms: 2000 };
    task.steers.push(steer.clone());
    let mut commit = task_commit(task, TaskEvent::Steered { steer });
    commit.payloads.push(text(&task.id, PayloadRole::Remark, words));
    commit
}

/// The loop opens its next turn.
pub(crate) fn open_turn(task: &mut Task) -> Commit {
    task.version += 1;
    let number = task.turn.as_ref().map_or(1, |turn| turn.number + 1);
    let start = Digest::of(b"what it was told");
    let turn = Turn { number, goal: task.goal.version, start, key: None, opened_ms: 2000, closed: None };
    task.turn = Some(turn.clone());
    let mut commit = task_commit(task, TaskEvent::TurnOpened { turn, steers: vec![] });
    commit.payloads.push(text(&task.id, PayloadRole::Start, "what it was told"));
    commit
}

/// Somebody wants it to stop.
pub(crate) fn interrupt(task: &mut Task, id: &str) -> Commit {
    task.version += 1;
    let interrupt = Interrupt {
        id: of(id),
        reach: Reach::Turn,
        by: of("ann"),
        at_ms: 3000,
        grace_ms: 3000,
        reason: None,
        stopped_ms: None,
    };
    task.interrupt = Some(interrupt.clone());
    task_commit(task, TaskEvent::Interrupted { interrupt })
}

/// A question of a task, until 61000.
pub(crate) fn question(task: &Task, id: &str, topic: &str) -> Question {
    Question {
        id: of(id),
        session: task.session.clone(),
        root: task.session.clone(),
        task: task.id.clone(),
        turn: None,
        goal: task.goal.version,
        principal: task.principal.clone(),
        topic: of(topic),
        text: Digest::of(b"which of the two?"),
        options: vec![of("this"), of("that")],
        recommended: of("this"),
        origin: Origin::Loop,
        to: AskedOf::Person,
        state: QuestionState::Pending,
        merged_into: None,
        answer: None,
        told: None,
        version: 1,
        opened_ms: 2000,
        expires_ms: Some(61_000),
        changed_ms: 2000,
    }
}

/// What happened to a question, with its record, on condition that nobody else
/// was faster.
pub(crate) fn question_commit(question: &Question, event: QuestionEvent) -> Commit {
    let tenant: Name = question.principal.tenant.clone();
    let mut commit = Commit::new(LogKey { tenant, session: question.session.clone() });
    commit.conditions.push(at(Thing::Question(question.id.clone()), question.version - 1));
    let what = What::Question { question: question.id.clone(), task: question.task.clone(), event };
    commit.events.push(Event { at_ms: question.changed_ms, action: None, what });
    commit.records.push(Record::Question(Box::new(question.clone())));
    commit
}

/// That it was asked.
pub(crate) fn open_question(question: &Question) -> Commit {
    let mut commit = question_commit(question, QuestionEvent::Opened { asked: question.clone() });
    commit.payloads.push(text(&question.task, PayloadRole::Question, "which of the two?"));
    commit
}

/// Somebody answers it.
pub(crate) fn answer_question(question: &mut Question, words: &str) -> Commit {
    let answer = QuestionAnswer {
        option: Some(of("this")),
        text: Some(Digest::of(words.as_bytes())),
        by: of("bob"),
        agent: false,
        channel: of("cli"),
        at_ms: 4000,
    };
    question.version += 1;
    (question.state, question.answer) = (QuestionState::Answered, Some(answer.clone()));
    let mut commit = question_commit(question, QuestionEvent::Answered { answer });
    commit.payloads.push(text(&question.task, PayloadRole::Answer, words));
    commit
}

/// The loop was told how it ended.
pub(crate) fn tell(question: &mut Question, turn: u64) -> Commit {
    question.version += 1;
    question.told = Some(turn);
    question_commit(question, QuestionEvent::Told { turn })
}
