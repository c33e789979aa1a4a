//! No sequence of events of tasks, sessions and questions adds up to anything
//! else when it is replayed.

use std::collections::BTreeMap;

use env_contracts::Id;
use glovebox_events::{
    AskedOf, Event, Interrupt, Logged, Question, QuestionEvent, Session, SessionEvent, Task, TaskEvent, TaskState, What,
};
use glovebox_plane::machine::{Illegal, question_step, replay, session_step, task_step};
use proptest::prelude::*;

use crate::deeds::*;
use crate::house::{id, name};
use crate::steps::{log, named};

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
            Made::Question(asked, Box::new(QuestionEvent::Opened { asked: opened }))
        }
        17 => Made::Question(asked, Box::new(answer(Some("one"), number > 100))),
        18 => Made::Question(asked, Box::new(QuestionEvent::Expired)),
        19 => Made::Question(asked, Box::new(QuestionEvent::PassedOn { by: name("coder") })),
        20 => Made::Question(asked, Box::new(QuestionEvent::Merged { into: id("q1"), by: name("coder") })),
        21 => Made::Question(asked, Box::new(QuestionEvent::Told { turn: 1 })),
        _ => Made::Session(SessionEvent::Closed { by: name("u") }),
    }
}

enum Made {
    Task(Id, TaskEvent),
    Session(SessionEvent),
    Question(Id, Box<QuestionEvent>),
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
                Ok(What::Question { question, task: id("t1"), event: *event })
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
