//! Answering: once, and told once.

use env_contracts::{Code, Digest, Id, Name, Principal, Problem};
use glovebox_events::{AskedOf, PayloadRole, QuestionAnswer, QuestionEvent, QuestionState, Task};
use glovebox_store::{Condition, QuestionFilter};

use super::{AnswerSource, Answered, Answering, MAX_ANSWER, QuestionView, closed};
use crate::service::ActionService;
use crate::service::deed::Deed;
use crate::service::journal::Lost;
use crate::service::starting::TurnStart;
use crate::service::tasks::{log, speaker};

impl ActionService {
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
        let event = QuestionEvent::Unsupported { channel: channel.clone() };
        self.close_question(principal, id, event, None).await
    }

    pub(super) async fn close_question(
        &self,
        principal: &Principal,
        id: &Id,
        event: QuestionEvent,
        besides: Option<Condition>,
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
            let version = question.version;
            let after = deed.question(Some(question), (id, &task), event.clone())?;
            if let Some(besides) = &besides {
                deed.condition(besides.clone());
            }
            match deed.commit(&*self.parts.store).await {
                Ok(()) => return self.question_view(after),
                Err(Lost::Changed) => {
                    if besides.is_some() && self.known_question(principal, id)?.version == version {
                        let message = "the question that was to stand for it changed meanwhile";
                        return Err(Problem::new(Code::Usage, message).with_help("look at both again"));
                    }
                }
                Err(lost) => return Err(self.lost(lost)),
            }
        }
    }

    /// What became of a task's questions that it was not told yet.
    pub(in crate::service) fn answers_for(&self, task: &Task) -> Result<Vec<Answered>, Problem> {
        let filter = QuestionFilter { task: Some(task.id.clone()), untold: true, ..QuestionFilter::default() };
        let mut out = Vec::new();
        for question in self.all_questions(&task.principal.tenant, filter)? {
            let ended = self.that_stands_for(question.clone())?;
            if ended.state == QuestionState::Pending {
                continue;
            }
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
    pub(in crate::service) fn tell_answers(
        &self,
        deed: &mut Deed,
        task: &Task,
        start: &TurnStart,
    ) -> Result<(), Problem> {
        for told in &start.answers {
            let question = self.parts.store.question(&task.principal.tenant, &told.question)?;
            let event = QuestionEvent::Told { turn: start.turn };
            deed.question(question, (&told.question, &task.id), event)?;
        }
        Ok(())
    }
}
