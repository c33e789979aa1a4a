//! Questions: what a loop wants to know of a person. The answer is data, never
//! a right.

mod answering;
mod asking;
mod family;

use std::time::Duration;

use env_contracts::{Code, Digest, Id, Name, Principal, Problem};
use glovebox_events::{Owner, Question, QuestionState};
use glovebox_store::{Content, Page, QuestionFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ActionService, looking};

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewQuestion")]
pub struct Asking {
    /// The task that it is about.
    pub task: Id,
    /// In which turn.
    #[serde(default)]
    pub turn: Option<u64>,
    /// What it decides, in a word.
    pub topic: Name,
    /// Its words.
    pub text: QuestionText,
    /// The action whose output made the loop ask.
    #[serde(default)]
    pub induced_by: Option<Id>,
    /// How long it waits, in milliseconds.
    #[serde(default)]
    pub lasts_ms: Option<u64>,
}

/// What somebody says to a question.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QuestionReply")]
pub struct Answering {
    /// The option that is picked.
    #[serde(default)]
    pub option: Option<Id>,
    /// Words, besides or instead.
    #[serde(default)]
    pub text: Option<String>,
}

/// A question with its words.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "QuestionEnd")]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// A question.
    ///
    /// # Errors
    /// `question-unknown`, also for those of others.
    pub fn question_of(&self, principal: &Principal, id: &Id) -> Result<QuestionView, Problem> {
        self.question_view(self.known_question(principal, id)?)
    }

    /// Questions, oldest first. Pages are full, whatever is left out.
    ///
    /// # Errors
    /// Those of the store.
    pub fn questions(&self, principal: &Principal, filter: &QuestionFilter) -> Result<Page<QuestionView>, Problem> {
        let mut filter = filter.clone();
        if !self.oversees(principal) {
            filter.user = Some(principal.user.clone());
            filter.agent = principal.agent.clone();
        }
        let page = self.parts.store.questions(&principal.tenant, &filter)?;
        let items = page.items.into_iter().map(|question| self.question_view(question)).collect::<Result<_, _>>()?;
        Ok(Page { items, next: page.next })
    }

    /// All questions of a filter, over its pages.
    fn all_questions(&self, tenant: &Name, mut filter: QuestionFilter) -> Result<Vec<Question>, Problem> {
        let mut out = Vec::new();
        loop {
            let page = self.parts.store.questions(tenant, &filter)?;
            out.extend(page.items);
            match page.next {
                Some(next) => filter.after = Some(next),
                None => return Ok(out),
            }
        }
    }

    fn known_question(&self, principal: &Principal, id: &Id) -> Result<Question, Problem> {
        let question = self.parts.store.question(&principal.tenant, id)?;
        let question = question.filter(|question| self.looks_at(principal, &question.principal));
        question.ok_or_else(|| Problem::new(Code::QuestionUnknown, format!("there is no question `{id}`")))
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
