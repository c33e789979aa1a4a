//! Questions: what a loop wants to know of a person. The answer is data, never
//! a right.

use std::time::Duration;

use env_contracts::{Code, DerivedEffects, Digest, Id, Name, Principal, Problem};
use glovebox_events::{
    AskedOf, Origin, Owner, PayloadRole, Question, QuestionAnswer, QuestionEvent, QuestionState, Task,
};
use glovebox_store::{ActionFilter, Condition, Conflict, Content, Page, QuestionFilter};
use serde::{Deserialize, Serialize};

use super::deed::Deed;
use super::halting::word;
use super::journal::Lost;
use super::starting::{ChildQuestion, TurnStart};
use super::tasks::{log, log_of, sees, speaker};
use super::{ActionService, looking, standing};

/// The longest question, in characters: it is read at a glance, or not at all.
pub const MAX_QUESTION: usize = 300;

/// The longest label or effect of an option, in characters.
pub const MAX_OPTION: usize = 200;

/// The longest answer in words, in bytes: a page. It is handed to a model.
pub const MAX_ANSWER: usize = 4000;

/// The most things that a question can affect.
const MAX_AFFECTS: usize = 10;

/// How long a question waits where the loop does not say: a working day and
/// the night.
const LASTS: Duration = Duration::from_secs(24 * 3600);

/// A question with all its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionText {
    /// The one decision that is asked for.
    pub question: String,
    /// Two or three ways to decide, of which one excludes the others.
    pub options: Vec<QuestionOption>,
    /// The option that the loop recommends.
    pub recommended: Id,
    /// What the answer affects: files, interfaces, people.
    pub affects: Vec<String>,
}

/// A way to decide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionOption {
    /// Its name, by which it is answered.
    pub id: Id,
    /// A few words.
    pub label: String,
    /// What happens if it is picked.
    pub effect: String,
}

/// A question that a loop asks.
#[derive(Debug, Clone)]
pub struct Asking {
    /// The task that it is about.
    pub task: Id,
    /// In which turn.
    pub turn: Option<u64>,
    /// What it decides, in a word.
    pub topic: Name,
    /// Its words.
    pub text: QuestionText,
    /// The action whose output made the loop ask.
    pub induced_by: Option<Id>,
    /// How long it waits, in milliseconds.
    pub lasts_ms: Option<u64>,
}

/// What somebody says to a question.
#[derive(Debug, Clone, Default)]
pub struct Answering {
    /// The option that is picked.
    pub option: Option<Id>,
    /// Words, besides or instead.
    pub text: Option<String>,
}

/// A question with its words.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QuestionView {
    /// What it is now.
    #[serde(flatten)]
    pub question: Question,
    /// The words. Absent: they were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<QuestionText>,
    /// What was answered, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
}

/// What became of a question, as the loop is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answered {
    /// The question.
    pub question: Id,
    /// What it decides.
    pub topic: Name,
    /// What became of it.
    pub state: QuestionState,
    /// The option that was picked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<Id>,
    /// What was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Who said so. Absent: nobody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Name>,
    /// What it is: an answer to a question, which gives no right to anything.
    pub source: AnswerSource,
}

/// Where an answer comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AnswerSource {
    /// A person.
    Person,
    /// The agent that called the one that asked.
    Agent,
    /// Nobody answered.
    None,
}

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
            if let Some(turn) = asking.turn {
                if task.open_turn().is_none_or(|open| open.number != turn) {
                    return Err(standing::other_turn(&task, turn));
                }
                self.nothing_done_in(&task, turn)?;
            }
            if let Some(action) = &asking.induced_by {
                self.same_user(principal, action)?;
            }
            let session = self.parts.store.session(&principal.tenant, &task.session)?;
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
                turn: asking.turn,
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
            deed.condition(Condition::TaskAt {
                task: task.id.clone(),
                goal: Some(goal),
                turn: asking.turn,
                interrupt: task.interrupt.as_ref().map(|known| known.id.clone()),
            });
            let asks = &self.parts.settings.asks;
            let since_ms = now.saturating_sub(u64::try_from(asks.per.as_millis()).unwrap_or(u64::MAX));
            deed.condition(Condition::AsksBelow { session: task.session.clone(), since_ms, most: asks.most });
            deed.condition(Condition::NotHalted);
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return Ok(QuestionView { question, words: Some(asking.text), said: None }),
                Err(Lost::Changed) => {}
                Err(Lost::Refused(Conflict::Topic { question })) => {
                    let message =
                        format!("`{}` is asked or answered already, by question {question}", asking.topic);
                    return Err(refused(message).with_help("use that answer, or ask about something else"));
                }
                Err(Lost::Refused(Conflict::Asks)) => {
                    let message = format!("this session asked {} times, which is as often as it may for now", asks.most);
                    return Err(Problem::new(Code::AskLimited, message));
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Whoever is asked in a turn must not be surprised by what was done in
    /// the same one.
    fn nothing_done_in(&self, task: &Task, turn: u64) -> Result<(), Problem> {
        let filter =
            ActionFilter { task: Some(task.id.clone()), turn: Some(turn), limit: 0, ..ActionFilter::default() };
        let done = self.parts.store.actions(&task.principal.tenant, &filter)?;
        let changes = done.items.iter().find(|action| {
            action.asks.runs() && action.effects.is_some_and(|effects| effects != DerivedEffects::None)
        });
        match changes {
            Some(action) => {
                let message = format!("action {} of the same turn has side effects", action.id);
                Err(refused(message).with_help("ask first, and act in a turn after the answer"))
            }
            None => Ok(()),
        }
    }

    /// Answers a question. The first answer counts; the same one again gets
    /// the same result.
    ///
    /// # Errors
    /// `question-unknown`, also for those of others; `expired`;
    /// `question-closed`; `usage` for an answer that says nothing or too much;
    /// `not-eligible` for an agent that was not asked.
    pub async fn answer_question(
        &self,
        principal: &Principal,
        id: &Id,
        answering: Answering,
        channel: &Name,
    ) -> Result<QuestionView, Problem> {
        let text = answering.text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        if answering.option.is_none() && text.is_none() {
            return Err(Problem::new(Code::Usage, "an answer picks an option, or says something"));
        }
        if text.is_some_and(|text| text.len() > MAX_ANSWER) {
            return Err(Problem::new(Code::Usage, format!("an answer has at most {MAX_ANSWER} bytes")));
        }
        loop {
            let question = self.known_question(principal, id)?;
            let agent = principal.agent.is_some();
            if agent {
                self.asked_here(principal, &question)?;
            }
            let words = text.map(|text| Digest::of(text.as_bytes()));
            if question.state != QuestionState::Pending {
                let again = question.answer.as_ref().is_some_and(|answer| {
                    answer.option == answering.option && answer.text == words && answer.by == speaker(principal)
                });
                return if again { self.question_view(question) } else { Err(closed(&question)) };
            }
            let mut deed = Deed::new(log(&question.principal, &question.session), self.now_ms());
            if question.expires_ms.is_some_and(|expires| deed.at_ms() >= expires) {
                self.expire_question(question).await?;
                continue;
            }
            if let Some(option) = &answering.option
                && !question.options.contains(option)
            {
                let all: Vec<&str> = question.options.iter().map(Id::as_str).collect();
                let message = format!("`{option}` is none of its options");
                return Err(Problem::new(Code::Usage, message).with_help(format!("they are: {}", all.join(", "))));
            }
            let task = question.task.clone();
            let answer = QuestionAnswer {
                option: answering.option.clone(),
                text: text.map(|text| deed.text(&task, PayloadRole::Answer, text)),
                by: speaker(principal),
                agent,
                channel: channel.clone(),
                at_ms: deed.at_ms(),
            };
            let event = QuestionEvent::Answered { answer };
            let answered = deed.question(Some(question), (id, &task), event)?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return self.question_view(answered),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Says that the front end of a session can't ask: the loop is told.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`.
    pub async fn cannot_ask(&self, principal: &Principal, id: &Id, channel: &Name) -> Result<QuestionView, Problem> {
        self.close_question(principal, id, QuestionEvent::Unsupported { channel: channel.clone() }).await
    }

    /// Takes a question back, by whoever asked.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`.
    pub async fn withdraw_question(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        self.close_question(principal, id, QuestionEvent::Withdrawn { why: word("withdrawn") }).await
    }

    /// Passes the question of an agent below on to a person.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`; `not-eligible` for whoever was
    /// not asked.
    pub async fn pass_on(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        self.asked_here(principal, &self.known_question(principal, id)?)?;
        self.close_question(principal, id, QuestionEvent::PassedOn { by: speaker(principal) }).await
    }

    /// Lets one question of an agent below stand for another: both get its
    /// answer.
    ///
    /// # Errors
    /// `question-unknown`, `question-closed`; `not-eligible` for whoever was
    /// not asked; `usage` for questions of other trees.
    pub async fn merge(&self, principal: &Principal, id: &Id, into: &Id) -> Result<QuestionView, Problem> {
        let (question, stands) = (self.known_question(principal, id)?, self.known_question(principal, into)?);
        self.asked_here(principal, &question)?;
        if question.root != stands.root || id == into || stands.merged_into.is_some() {
            return Err(Problem::new(Code::Usage, format!("question {into} can't stand for {id}")));
        }
        if stands.options != question.options {
            return Err(Problem::new(Code::Usage, "they have other options, and so are not the same question")
                .with_help("answer one of them yourself"));
        }
        let event = QuestionEvent::Merged { into: into.clone(), by: speaker(principal) };
        self.close_question(principal, id, event).await
    }

    async fn close_question(
        &self,
        principal: &Principal,
        id: &Id,
        event: QuestionEvent,
    ) -> Result<QuestionView, Problem> {
        loop {
            let question = self.known_question(principal, id)?;
            if question.state != QuestionState::Pending {
                return Err(closed(&question));
            }
            if matches!(event, QuestionEvent::PassedOn { .. }) && question.to == AskedOf::Person {
                return self.question_view(question);
            }
            let task = question.task.clone();
            let mut deed = Deed::new(log(&question.principal, &question.session), self.now_ms());
            let after = deed.question(Some(question), (id, &task), event.clone())?;
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return self.question_view(after),
                Err(Lost::Changed) => {}
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// Ends a question that nobody answered in time.
    pub(super) async fn expire_question(&self, question: Question) -> Result<(), Problem> {
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
    pub(super) fn withdraw_questions(&self, deed: &mut Deed, task: &Task, why: &str) -> Result<(), Problem> {
        let filter = QuestionFilter {
            states: vec![QuestionState::Pending],
            task: Some(task.id.clone()),
            ..QuestionFilter::default()
        };
        for question in self.parts.store.questions(&task.principal.tenant, &filter)?.items {
            let (id, task) = (question.id.clone(), question.task.clone());
            deed.question(Some(question), (&id, &task), QuestionEvent::Withdrawn { why: word(why) })?;
        }
        Ok(())
    }

    /// A question.
    ///
    /// # Errors
    /// `question-unknown`, also for those of others.
    pub fn question_of(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        self.question_view(self.known_question(principal, id)?)
    }

    /// Questions, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn questions(&self, principal: &Principal, filter: &QuestionFilter) -> Result<Page<QuestionView>, Problem> {
        let page = self.parts.store.questions(&principal.tenant, filter)?;
        let mine = page.items.into_iter().filter(|question| sees(principal, &question.principal));
        let items = mine.map(|question| self.question_view(question)).collect::<Result<_, _>>()?;
        Ok(Page { items, next: page.next })
    }

    fn known_question(&self, principal: &Principal, id: &Id) -> Result<Question, Problem> {
        let question = self.parts.store.question(&principal.tenant, id)?;
        let question = question.filter(|question| sees(principal, &question.principal));
        question.ok_or_else(|| Problem::new(Code::QuestionUnknown, format!("there is no question `{id}`")))
    }

    /// Whether an agent is the one that a question was put to: that of the
    /// root of the tree, and never the one that asks.
    fn asked_here(&self, principal: &Principal, question: &Question) -> Result<(), Problem> {
        let not = || Problem::new(Code::NotEligible, format!("question {} was put to somebody else", question.id));
        if principal.agent.is_none() {
            return Ok(());
        }
        let root = self.parts.store.session(&principal.tenant, &question.root)?.ok_or_else(not)?;
        let called = principal.agent.as_ref().is_some_and(|agent| question.principal.chain.contains(agent));
        let of_root = root.principal.agent.is_none() || root.principal.agent == principal.agent;
        if question.to == AskedOf::Root && called && of_root { Ok(()) } else { Err(not()) }
    }

    fn question_view(&self, question: Question) -> Result<QuestionView, Problem> {
        let words = self.question_words(&question)?;
        let said = question.answer.as_ref().and_then(|answer| answer.text.clone());
        let said = said.map(|said| self.question_bytes(&question, &said)).transpose()?.flatten();
        let said = said.map(|said| String::from_utf8_lossy(&said).into_owned());
        Ok(QuestionView { question, words, said })
    }

    fn question_words(&self, question: &Question) -> Result<Option<QuestionText>, Problem> {
        let bytes = self.question_bytes(question, &question.text)?;
        bytes.map(|bytes| looking::decode(&bytes)).transpose()
    }

    fn question_bytes(&self, question: &Question, sha256: &Digest) -> Result<Option<Vec<u8>>, Problem> {
        let of = Owner::Task(question.task.clone());
        match self.parts.store.payload(&question.principal.tenant, &of, sha256)? {
            Some(Content::Bytes(bytes)) => Ok(Some(bytes)),
            Some(Content::Erased) => Ok(None),
            None => {
                Err(Problem::new(Code::StoreCorrupt, format!("the words of question {} are not there", question.id)))
            }
        }
    }

    /// What became of a task's questions that it was not told yet.
    pub(super) fn answers_for(&self, task: &Task) -> Result<Vec<Answered>, Problem> {
        let filter = QuestionFilter { task: Some(task.id.clone()), untold: true, ..QuestionFilter::default() };
        let mut out = Vec::new();
        for question in self.parts.store.questions(&task.principal.tenant, &filter)?.items {
            // Another stands for it: its end is this one's.
            let ended = match &question.merged_into {
                Some(into) => self.parts.store.question(&task.principal.tenant, into)?,
                None => Some(question.clone()),
            };
            let Some(ended) = ended.filter(|ended| ended.state != QuestionState::Pending) else { continue };
            let view = self.question_view(ended)?;
            let answer = view.question.answer.as_ref();
            out.push(Answered {
                question: question.id,
                topic: question.topic,
                state: view.question.state,
                option: answer.and_then(|answer| answer.option.clone()),
                text: view.said.clone(),
                by: answer.map(|answer| answer.by.clone()),
                source: match answer {
                    Some(answer) if answer.agent => AnswerSource::Agent,
                    Some(_) => AnswerSource::Person,
                    None => AnswerSource::None,
                },
            });
        }
        Ok(out)
    }

    /// Writes down that the loop was told what became of them.
    pub(super) fn tell_answers(&self, deed: &mut Deed, task: &Task, start: &TurnStart) -> Result<(), Problem> {
        for told in &start.answers {
            let question = self.parts.store.question(&task.principal.tenant, &told.question)?;
            let event = QuestionEvent::Told { turn: start.turn };
            deed.question(question, (&told.question, &task.id), event)?;
        }
        Ok(())
    }

    /// What agents below ask the one that works here, where it is the root.
    pub(super) fn asked_of(&self, task: &Task) -> Result<Vec<ChildQuestion>, Problem> {
        let filter = QuestionFilter {
            states: vec![QuestionState::Pending],
            root: Some(task.session.clone()),
            to: Some(AskedOf::Root),
            ..QuestionFilter::default()
        };
        let asked = self.parts.store.questions(&task.principal.tenant, &filter)?.items;
        let child = |question: Question| {
            let text = self.question_words(&question)?;
            let chain = question.principal.chain.iter().chain(&question.principal.agent).cloned().collect();
            Ok(ChildQuestion { id: question.id, session: question.session, chain, text })
        };
        asked.into_iter().map(child).collect()
    }
}

/// Whether this is one decision that a person can make.
fn one_decision(text: &QuestionText) -> Result<(), Problem> {
    let long = |text: &str, most: usize| text.chars().count() > most;
    let bare = |text: &str| text.trim().is_empty();
    if bare(&text.question) || long(&text.question, MAX_QUESTION) {
        return Err(refused(format!("a question has between 1 and {MAX_QUESTION} characters")));
    }
    // A second question mark asks for a second thing.
    if text.question.matches(['?', '？']).count() > 1 {
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
    if affects.is_empty() || affects.len() > MAX_AFFECTS || affects.iter().any(|text| bare(text) || long(text, MAX_OPTION))
    {
        return Err(refused("it does not say, in a few words each, what the answer affects"));
    }
    Ok(())
}

fn refused(why: impl Into<String>) -> Problem {
    Problem::new(Code::QuestionRefused, why)
}

/// What there is to say about a question that nobody can answer any more.
fn closed(question: &Question) -> Problem {
    let by = question.answer.as_ref().map_or_else(String::new, |answer| format!(" by `{}`", answer.by));
    let message = format!("question {} is {}{by}: no answer counts any more", question.id, question.state.as_str());
    let code = if question.state == QuestionState::Expired { Code::Expired } else { Code::QuestionClosed };
    Problem { retryable: false, ..Problem::new(code, message) }
}
