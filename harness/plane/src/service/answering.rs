//! Answering: what a person decided, recorded once.

use env_contracts::{Code, Digest, Id, Problem, Scope};
use glovebox_events::{Action, Answer, Answered, Approval, ApprovalState, Control, Grant, PayloadRole, What};
use glovebox_store::Record;
use schemars::JsonSchema;
use serde::Serialize;

use super::answers::over;
use super::flight::{Flight, Halt};
use super::halting::problem_of;
use super::people::Signed;
use super::submission::Edit;
use super::{ActionService, Asking, looking};
use crate::machine::REVIEWER;

/// The longest that a person can say with an answer, in bytes: a page. It is
/// handed to a model.
const MAX_WORDS: usize = 4000;

/// The longest arguments that a person can put in place, in bytes: as long as
/// those of a request.
const MAX_EDIT: usize = 1 << 20;

/// An answer as a door received it.
pub struct Reply {
    /// To which approval.
    pub approval: Id,
    /// The plan digest that was on the screen, or its beginning. Absent: the
    /// door showed the approval of this id and no other.
    pub seen: Option<String>,
    /// What was answered.
    pub answer: Answering,
    /// What the person said. It is handed to whoever asked.
    pub words: Option<String>,
}

/// What was answered.
pub enum Answering {
    /// One of the offers.
    Offer {
        /// Which one.
        id: Id,
        /// What is left of a permission, where less is given than was asked.
        narrowed: Option<Scope>,
    },
    /// Other arguments, or another scope: a new plan, decided anew.
    Edit {
        /// All of the arguments, as JSON.
        arguments: Option<String>,
        /// The scope.
        scope: Option<Scope>,
    },
}

/// What became of an answer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Settled {
    /// The approval, as it is now.
    pub approval: Approval,
    /// The action, as it is now.
    pub action: Action,
    /// The grant that the answer made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
    /// Whether the same answer had been given before; then it counts once.
    pub repeated: bool,
}

impl ActionService {
    /// Records a person's answer. Approving runs nothing: whoever asked does.
    ///
    /// The first answer counts. The same one again gets the same result.
    ///
    /// # Errors
    /// `approval-unknown`, `approval-closed`, `expired`, `not-eligible`,
    /// `usage` for what was not offered.
    pub async fn answer(&self, by: Signed<'_>, reply: Reply) -> Result<Settled, Problem> {
        check(&reply)?;
        if by.channel.as_str() == REVIEWER {
            return Err(Problem::new(Code::NotEligible, "no person answers as a reviewer"));
        }
        loop {
            let tenant = &by.principal.tenant;
            let known = self.parts.store.by_approval(tenant, &reply.approval)?;
            let action = known.ok_or_else(|| looking::unknown_approval(&reply.approval))?;
            let approval = self.that_approval(&action, &reply.approval)?;
            seen(&reply, &approval)?;
            if let Some(settled) = self.closed(&by, &reply, &action, &approval)? {
                return Ok(settled);
            }
            match Box::pin(self.record(&by, &reply, action, approval)).await {
                Ok(settled) => return Ok(settled),
                Err(Halt::Changed) => {}
                Err(Halt::Failed(problem)) => return Err(problem),
                Err(Halt::Refused(refusal)) => return Err(problem_of(refusal)),
            }
        }
    }

    /// What there is to say about an approval that nobody can answer any more.
    fn closed(
        &self,
        by: &Signed<'_>,
        reply: &Reply,
        action: &Action,
        approval: &Approval,
    ) -> Result<Option<Settled>, Problem> {
        if approval.state == ApprovalState::Pending {
            return Ok(None);
        }
        let given = approval.answer.as_ref();
        let mut again = false;
        if let Some(answer) = given {
            let same = match &reply.answer {
                Answering::Offer { id, narrowed } => answer.offer == *id && narrowed.is_some() == answer.edit.is_some(),
                Answering::Edit { arguments, scope } => self.same_edit(action, answer, arguments, scope)?,
            };
            let words = reply.words.as_ref().map(|words| Digest::of(words.as_bytes()));
            again = same && answer.by.name == by.name() && answer.words == words;
        }
        if again {
            let (approval, action) = (approval.clone(), action.clone());
            return Ok(Some(Settled { approval, action, grant: None, repeated: true }));
        }
        let who = given.map_or_else(String::new, |answer| format!(" by `{}`", answer.by.name));
        let state = approval.state.as_str();
        let code = if approval.state == ApprovalState::Expired { Code::Expired } else { Code::ApprovalClosed };
        let message = format!("approval `{}` is {state}{who}: the answer changes nothing", approval.id);
        Err(last_word(Problem::new(code, message)))
    }

    /// Whether an answer put the same in place before.
    fn same_edit(
        &self,
        action: &Action,
        answer: &Answer,
        arguments: &Option<String>,
        scope: &Option<Scope>,
    ) -> Result<bool, Problem> {
        let Some(edit) = answer.edit.as_ref().filter(|_| answer.answer == Answered::Edit) else { return Ok(false) };
        let edit: Edit = looking::payload(&self.parts, action, edit)?;
        // Given once more, the same sections change nothing.
        let same = over(edit.scope.clone(), scope.clone()) == edit.scope;
        Ok((arguments.is_none() || *arguments == edit.arguments) && same)
    }

    async fn record(
        &self,
        by: &Signed<'_>,
        reply: &Reply,
        action: Action,
        approval: Approval,
    ) -> Result<Settled, Halt> {
        // A clock that jumps back makes no answer earlier than its question.
        let now = self.now_ms().max(approval.opened_ms);
        if approval.expires_ms.is_some_and(|expires| now >= expires) {
            let mut flight = Flight::of(&self.parts, action, Asking::Leave).map_err(Halt::Failed)?;
            self.expire(&mut flight, &approval.id, "nobody answered in time").await?;
            let message = format!("approval `{}` expired before this answer came", approval.id);
            return Err(Halt::Failed(last_word(Problem::new(Code::Expired, message))));
        }
        self.eligible(by, &action, &approval)?;
        let mut flight = Flight::of(&self.parts, action, Asking::Leave).map_err(Halt::Failed)?;
        let words = reply.words.as_ref().map(|words| flight.journal.text(PayloadRole::Words, words));
        let (answer, offer) = self.answer_of(by, reply, &approval, &mut flight, now, words)?;
        let grant = self.grant_of(by, &flight, &approval, &answer, offer.as_ref(), reply)?;
        if answer.answer == Answered::Approve
            && let Some(refusal) = self.answerable(&mut flight)?
        {
            flight.reload(&self.parts).map_err(Halt::Failed)?;
            self.end(&mut flight, refusal.0.clone()).await?;
            return Err(Halt::Failed(last_word(problem_of(refusal))));
        }
        flight.journal.event(now, What::ApprovalAnswered { answer: Box::new(answer.clone()) })?;
        if let Some(grant) = &grant {
            let what = What::GrantMade { grant: Box::new(grant.clone()) };
            flight.journal.beside(now, what, Some(Record::Grant(Box::new(grant.clone()))));
        }
        match answer.answer {
            Answered::Approve if !flight.action().asks.runs() => {
                self.given(&mut flight, &answer, grant.as_ref(), reply.words.as_deref()).await?;
            }
            Answered::Approve | Answered::Edit => self.write(&mut flight).await?,
            Answered::Decline => self.declined(&mut flight, &answer, reply.words.as_deref()).await?,
        }
        if answer.control == Control::StopTask {
            self.stop_task(&flight, by).await?;
        }
        if answer.answer == Answered::Edit {
            self.propose_edit(flight.action().clone()).await?;
        }
        let action = self.parts.store.action(&by.principal.tenant, flight.journal.id())?;
        let action = action.unwrap_or_else(|| flight.action().clone());
        let approval = self.that_approval(&action, &reply.approval)?;
        Ok(Settled { approval, action, grant, repeated: false })
    }
}

/// An approval that is over stays so: whoever tries the same answer again
/// would try for ever. The action can be asked for anew.
fn last_word(problem: Problem) -> Problem {
    Problem { retryable: false, ..problem }
}

/// Whether the plan that is answered is the one that is asked about.
fn seen(reply: &Reply, approval: &Approval) -> Result<(), Problem> {
    match &reply.seen {
        Some(seen) if seen.len() < Digest::SHORT || !approval.digest.as_str().starts_with(seen.as_str()) => {
            let (id, plan) = (&approval.id, approval.digest.short());
            Err(Problem::new(Code::Drift, format!("plan `{seen}` was answered, and approval `{id}` is for {plan}")))
        }
        _ => Ok(()),
    }
}

fn check(reply: &Reply) -> Result<(), Problem> {
    let long = |what: &str, most: usize| Problem::new(Code::Usage, format!("{what} has more than {most} bytes"));
    if reply.words.as_ref().is_some_and(|words| words.len() > MAX_WORDS) {
        return Err(long("what is said with the answer", MAX_WORDS));
    }
    match &reply.answer {
        Answering::Edit { arguments: None, scope: None } => {
            Err(Problem::new(Code::Usage, "an edit gives other arguments or another contract"))
        }
        Answering::Edit { arguments: Some(text), .. } if text.len() > MAX_EDIT => Err(long("the arguments", MAX_EDIT)),
        _ => Ok(()),
    }
}
