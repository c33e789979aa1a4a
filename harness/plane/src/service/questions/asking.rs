//! Asking: what can be put to a person, and what becomes of it unanswered.

use env_contracts::{Code, DerivedEffects, Id, Principal, Problem};
use glovebox_events::{AskedOf, Origin, PayloadRole, Question, QuestionEvent, QuestionState, Task};
use glovebox_store::{ActionFilter, Condition, Conflict, QuestionFilter, Thing};

use super::{
    Asking, LASTS, MAX_AFFECTS, MAX_OPTION, MAX_QUESTION, QuestionOption, QuestionText, QuestionView, refused,
};
use crate::machine::{Change, Pending, Then, after};
use crate::service::deed::Deed;
use crate::service::flight::Flight;
use crate::service::halting::word;
use crate::service::journal::Lost;
use crate::service::tasks::{log, log_of};
use crate::service::{ActionService, standing};

impl ActionService {
    /// Asks a question. The loop is told at the start of a turn what became of
    /// it.
    ///
    /// # Errors
    /// `question-refused` for what is not one decision with its effects, or is
    /// asked or answered already; `turn-conflict`, `task-closed`,
    /// `ask-limited`.
    pub async fn ask(&self, principal: &Principal, asking: Asking) -> Result<QuestionView, Problem> {
        one_decision(&asking.text)?;
        loop {
            let task = self.known_task(principal, &asking.task)?;
            self.acts(principal, &task)?;
            standing::open(&task)?;
            self.in_open_session(&task).await?;
            if task.stopping().is_some() {
                return Err(standing::stopping(&format!("task `{}`", task.id)));
            }
            if let Some(turn) = asking.turn
                && task.open_turn().is_none_or(|open| open.number != turn)
            {
                return Err(standing::other_turn(&task, turn));
            }
            // A loop with turns asks in the one that it is in.
            let turn = asking.turn.or(task.open_turn().map(|open| open.number));
            if let Some(turn) = turn {
                self.nothing_done_in(&task, turn)?;
            }
            if let Some(action) = &asking.induced_by {
                self.same_user(principal, action)?;
            }
            let session = self.parts.store.session(&principal.tenant, &task.session)?;
            let interrupt = session.as_ref().and_then(|session| session.interrupt.as_ref());
            let interrupt = interrupt.map(|interrupt| interrupt.id.clone());
            let root = session.map_or_else(|| task.session.clone(), |session| session.root);
            let mut deed = Deed::new(log_of(&task), self.now_ms());
            let now = deed.at_ms();
            let lasts = asking.lasts_ms.unwrap_or(u64::try_from(LASTS.as_millis()).unwrap_or(u64::MAX));
            let id = self.parts.ids.random();
            let question = Question {
                id: id.clone(),
                session: task.session.clone(),
                to: if root == task.session { AskedOf::Person } else { AskedOf::Root },
                root,
                task: task.id.clone(),
                turn,
                goal: task.goal.version,
                principal: principal.clone(),
                topic: asking.topic.clone(),
                text: deed.json(&task.id, PayloadRole::Question, &asking.text),
                options: asking.text.options.iter().map(|option| option.id.clone()).collect(),
                recommended: asking.text.recommended.clone(),
                origin: match &asking.induced_by {
                    Some(action) => Origin::ToolOutput { action: action.clone() },
                    None => Origin::Loop,
                },
                state: QuestionState::Pending,
                merged_into: None,
                answer: None,
                told: None,
                version: 1,
                opened_ms: now,
                expires_ms: Some(now.saturating_add(lasts)),
                changed_ms: now,
            };
            let event = QuestionEvent::Opened { asked: question };
            let question = deed.question(None, (&id, &task.id), event)?;
            let (topic, goal) = (asking.topic.clone(), task.goal.version);
            deed.condition(Condition::TopicFree { task: task.id.clone(), topic, goal });
            // The task is as it was looked at. What is left of its budget does
            // not matter: a question costs nothing of it.
            let of = Thing::Task(task.id.clone());
            deed.condition(Condition::Version { of, version: task.version });
            let asks = &self.parts.settings.asks;
            let since_ms = now.saturating_sub(u64::try_from(asks.per.as_millis()).unwrap_or(u64::MAX));
            deed.condition(Condition::AsksBelow { session: task.session.clone(), since_ms, most: asks.most });
            deed.condition(Condition::NotHalted);
            deed.condition(Condition::SessionGoing { interrupt });
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(QuestionView { question, words: Some(asking.text), said: None }),
                Err(Lost::Changed) => {}
                Err(Lost::Refused(Conflict::Topic { question })) => {
                    let message = format!("`{}` is asked or answered already, by question {question}", asking.topic);
                    return Err(refused(message).with_help("use that answer, or ask about something else"));
                }
                Err(Lost::Refused(Conflict::Asks)) => {
                    let message =
                        format!("this session asked {} times, which is as often as it may for now", asks.most);
                    return Err(Problem::new(Code::AskLimited, message));
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// What changes something does not run ahead of an answer that was asked for
    /// in the same turn.
    pub(in crate::service) fn no_question_waits(&self, flight: &Flight) -> Result<(), Problem> {
        let action = flight.action();
        let Some(turn) = action.turn else { return Ok(()) };
        let filter = QuestionFilter {
            states: vec![QuestionState::Pending],
            task: Some(action.task.clone()),
            ..QuestionFilter::default()
        };
        let waiting = self.parts.store.questions(&action.principal.tenant, &filter)?;
        match waiting.items.iter().find(|question| question.turn == Some(turn)) {
            Some(question) => {
                let message = format!("question {} was asked in the same turn and waits for its answer", question.id);
                Err(Problem::new(Code::QuestionPending, message))
            }
            None => Ok(()),
        }
    }

    /// Whoever is asked in a turn must not be surprised by what was done in
    /// the same one.
    fn nothing_done_in(&self, task: &Task, turn: u64) -> Result<(), Problem> {
        let filter =
            ActionFilter { task: Some(task.id.clone()), turn: Some(turn), limit: 0, ..ActionFilter::default() };
        let done = self.parts.store.actions(&task.principal.tenant, &filter)?;
        let changes = done.items.iter().find(|action| {
            let ran = action.right.is_some() || !action.state.ended();
            action.asks.runs() && ran && action.effects.is_some_and(|effects| effects != DerivedEffects::None)
        });
        match changes {
            Some(action) => {
                let message = format!("action {} of the same turn has side effects", action.id);
                Err(refused(message).with_help("ask first, and act in a turn after the answer"))
            }
            None => Ok(()),
        }
    }

    /// Takes a question back, by whoever asked.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`; `not-eligible` for an agent that
    /// did not ask it.
    pub async fn withdraw_question(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        let question = self.known_question(principal, id)?;
        let own = principal.agent == question.principal.agent && principal.chain == question.principal.chain;
        if principal.agent.is_some() && !own {
            let message = format!("question {id} is another agent's, which alone takes it back");
            return Err(Problem::new(Code::NotEligible, message));
        }
        self.close_question(principal, id, QuestionEvent::Withdrawn { why: word("withdrawn") }, None).await
    }

    /// Ends a question that nobody answered in time.
    pub(in crate::service) async fn expire_question(&self, question: Question) -> Result<(), Problem> {
        let (id, task) = (question.id.clone(), question.task.clone());
        let mut deed = Deed::new(log(&question.principal, &question.session), self.now_ms());
        deed.question(Some(question), (&id, &task), QuestionEvent::Expired)?;
        match deed.commit(&*self.parts.store).await {
            // Whoever was faster settled it.
            Ok(()) | Err(Lost::Changed) => Ok(()),
            Err(lost) => Err(self.lost(lost)),
        }
    }

    /// Withdraws the questions of a task that wait.
    pub(in crate::service) fn withdraw_questions(
        &self,
        deed: &mut Deed,
        task: &Task,
        change: Change,
        why: &str,
    ) -> Result<(), Problem> {
        if after(Pending::Question, change) != Then::Cancel {
            return Ok(());
        }
        let filter = QuestionFilter {
            states: vec![QuestionState::Pending],
            task: Some(task.id.clone()),
            ..QuestionFilter::default()
        };
        for question in self.all_questions(&task.principal.tenant, filter)? {
            let (id, task) = (question.id.clone(), question.task.clone());
            deed.question(Some(question), (&id, &task), QuestionEvent::Withdrawn { why: word(why) })?;
        }
        Ok(())
    }
}

/// Whether this is one decision that a person can make.
fn one_decision(text: &QuestionText) -> Result<(), Problem> {
    let long = |text: &str, most: usize| text.chars().count() > most;
    let bare = |text: &str| text.trim().is_empty();
    if bare(&text.question) || long(&text.question, MAX_QUESTION) {
        return Err(refused(format!("a question has between 1 and {MAX_QUESTION} characters")));
    }
    if several(&text.question) {
        return Err(refused("it asks for several decisions at once"));
    }
    if !(2..=3).contains(&text.options.len()) {
        return Err(refused(format!("it has {} options, and two or three can be weighed", text.options.len())));
    }
    for (at, option) in text.options.iter().enumerate() {
        if bare(&option.effect) {
            return Err(refused(format!("option `{}` does not say what it has as its effect", option.id)));
        }
        if bare(&option.label) || long(&option.label, MAX_OPTION) || long(&option.effect, MAX_OPTION) {
            return Err(refused(format!("option `{}` is empty or has over {MAX_OPTION} characters", option.id)));
        }
        let same = |other: &QuestionOption| {
            other.id == option.id || other.label.trim() == option.label.trim() || other.effect == option.effect
        };
        if text.options[..at].iter().any(same) {
            return Err(refused(format!("option `{}` does not exclude the others", option.id)));
        }
    }
    if !text.options.iter().any(|option| option.id == text.recommended) {
        return Err(refused("the recommended option is none of its options"));
    }
    let affects = &text.affects;
    if affects.is_empty()
        || affects.len() > MAX_AFFECTS
        || affects.iter().any(|text| bare(text) || long(text, MAX_OPTION))
    {
        return Err(refused("it does not say, in a few words each, what the answer affects"));
    }
    Ok(())
}

/// Whether a text asks for several things, as far as its form tells: a second
/// sentence that is a question, or a list. That its words ask for one thing,
/// nothing of ours can say.
fn several(question: &str) -> bool {
    let ends = |(at, mark): (usize, char)| {
        let next = question[at + mark.len_utf8()..].chars().next();
        mark == '？' || (mark == '?' && next.is_none_or(char::is_whitespace))
    };
    let listed = |one: &str, two: &str| question.contains(one) && question.contains(two);
    question.char_indices().filter(|at| ends(*at)).count() > 1 || listed("1)", "2)") || listed("1. ", "2. ")
}
