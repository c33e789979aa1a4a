//! A loop with tasks and turns, as these tests drive it.

use std::time::Duration;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{Budget, QuestionState, Session, Task};
use glovebox_plane::{
    Interrupted, Interrupting, NewQuestion, NewSession, NewTask, OpenTurn, QuestionOption, QuestionReply, QuestionText,
    QuestionView, Saying, Submission, Target, TurnStart,
};
use glovebox_store::QuestionFilter;

use crate::house::{House, agent, id, name, person};

/// The loop.
pub(crate) fn coder() -> Principal {
    agent("u", "coder")
}

/// An agent that these called, the last one last.
pub(crate) fn called(agent_name: &str, chain: &[&str]) -> Principal {
    Principal { chain: chain.iter().map(|hop| name(hop)).collect(), ..agent("u", agent_name) }
}

pub(crate) fn new_task(task: &str, session: &str, budget: Budget) -> NewTask {
    let goal = "make it work".to_owned();
    NewTask { id: Some(id(task)), session: id(session), goal, purpose: None, stage: None, budget }
}

/// Keep the old form or not.
pub(crate) fn text() -> QuestionText {
    let option = |name: &str, effect: &str| QuestionOption { id: id(name), label: name.into(), effect: effect.into() };
    QuestionText {
        question: "Which compatibility window is kept?".into(),
        options: vec![option("one", "readers of one year ago fail"), option("two", "two more releases are built")],
        recommended: id("two"),
        affects: vec!["src/wire.rs".into()],
    }
}

pub(crate) fn about(topic: &str, turn: Option<u64>) -> NewQuestion {
    NewQuestion { task: id("t1"), turn, topic: name(topic), text: text(), induced_by: None, lasts_ms: Some(1000) }
}

pub(crate) fn picks(option: &str) -> QuestionReply {
    QuestionReply { option: Some(id(option)), text: None }
}

pub(crate) fn says(words: &str) -> QuestionReply {
    QuestionReply { option: None, text: Some(words.into()) }
}

impl House {
    /// The task `t1` in the session `s1`, opened by its loop.
    pub(crate) fn open_task(&self) -> Task {
        self.open_task_with(Budget::default())
    }

    pub(crate) fn open_task_with(&self, budget: Budget) -> Task {
        self.block_on(self.service.open_task(&coder(), new_task("t1", "s1", budget))).unwrap()
    }

    pub(crate) fn open_session(&self, who: &Principal, session: &str, parent: Option<&str>) -> Session {
        let new = NewSession { id: Some(id(session)), parent: parent.map(id) };
        self.block_on(self.service.open_session(who, new)).unwrap()
    }

    pub(crate) fn try_turn(&self, expected_turn: u64, goal_version: u32) -> Result<TurnStart, Problem> {
        let open = OpenTurn { task: id("t1"), expected_turn, goal_version, key: None };
        self.block_on(self.service.open_turn(&coder(), open))
    }

    /// The next turn.
    pub(crate) fn turn(&self) -> TurnStart {
        let task = self.task();
        self.try_turn(task.turn.map_or(0, |turn| turn.number), task.goal.version).unwrap()
    }

    pub(crate) fn task(&self) -> Task {
        self.task_named("t1")
    }

    pub(crate) fn task_named(&self, task: &str) -> Task {
        self.store.task(&name("local"), &id(task)).unwrap().record.unwrap()
    }

    pub(crate) fn in_turn(&self, tool: &str, args: &str, turn: u64) -> Submission {
        let mut submission = self.asked(tool, args);
        submission.context.turn = Some(turn);
        submission
    }

    pub(crate) fn say(&self, saying: Saying<'_>) -> Task {
        self.block_on(self.service.say(&person("u"), &id("t1"), saying)).unwrap()
    }

    pub(crate) fn ask(&self, asking: NewQuestion) -> Result<QuestionView, Problem> {
        self.block_on(self.service.ask(&coder(), asking))
    }

    pub(crate) fn answer_question(
        &self,
        who: &Principal,
        question: &Id,
        reply: QuestionReply,
    ) -> Result<QuestionView, Problem> {
        self.block_on(self.service.answer_question(who, question, reply, &name("test")))
    }

    pub(crate) fn question(&self, question: &Id) -> glovebox_events::Question {
        self.store.question(&name("local"), question).unwrap().unwrap()
    }

    pub(crate) fn open_questions(&self) -> Vec<Id> {
        let filter = QuestionFilter { states: vec![QuestionState::Pending], ..QuestionFilter::default() };
        let page = self.store.questions(&name("local"), &filter).unwrap();
        page.items.into_iter().map(|question| question.id).collect()
    }

    pub(crate) fn interrupt(&self, target: Target, grace: Option<Duration>) -> Result<Interrupted, Problem> {
        let asked = Interrupting { target, grace, reason: Some("it goes astray".into()) };
        self.block_on(self.service.interrupt(&person("u"), asked))
    }
}
