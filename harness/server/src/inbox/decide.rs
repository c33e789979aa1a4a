//! What people send from their pages.

use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse as _, Redirect, Response};
use env_contracts::{Code, Id, Name, Problem, Scope};
use glovebox_plane::{Answering, Interrupting, QuestionReply, Reply, Target};
use serde::Deserialize;

use super::layout::Refused;
use super::pages::{approval_page, question_page};
use super::visitor::{OnPage, Sent, Visitor};
use crate::decide;
use crate::extract::In;
use crate::state::App;

/// Through which door these answers come.
const CHANNEL: &str = "inbox";

/// How long what runs may go on to end by itself when a person stops it here.
const GRACE: Duration = Duration::from_secs(5);

/// An answer to an approval.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// The plan that was on the screen.
    seen: Option<String>,
    /// The offer that is picked.
    offer: Option<Id>,
    /// Whether other arguments are proposed instead.
    edit: Option<String>,
    /// Those. They stand in each form; only with `edit` they count.
    arguments: Option<String>,
    /// What is left of a permission.
    scope: Option<String>,
    words: Option<String>,
    approver: Option<Name>,
    passphrase: Option<String>,
}

pub(super) async fn approval(
    State(app): State<App>,
    OnPage(In(id)): OnPage<In<Id>>,
    Sent(visitor, answer): Sent<Answer>,
) -> Result<Response, Refused> {
    match answered(&app, &visitor, &id, answer).await {
        Ok(()) => Ok(Redirect::to(&format!("/inbox/approvals/{id}")).into_response()),
        Err(problem) => Ok(approval_page(&app, &visitor, &id, Some(&problem))?.into_response()),
    }
}

async fn answered(app: &App, visitor: &Visitor, approval: &Id, form: Answer) -> Result<(), Problem> {
    let seen = form.seen.ok_or_else(|| Problem::new(Code::Usage, "the form does not say which plan was seen"))?;
    let answer = match (form.offer, form.edit) {
        (Some(id), None) => {
            let narrowed = form.scope.as_deref().map(Scope::from_toml).transpose();
            Answering::Offer { id, narrowed: narrowed.map_err(|error| Problem::of(&error))? }
        }
        (None, Some(_)) => Answering::Edit { arguments: form.arguments, scope: None },
        _ => return Err(Problem::new(Code::Usage, "the form picks no offer").with_help("press one of its buttons")),
    };
    // A name without a passphrase is a choice that was not made.
    let approver = form.approver.filter(|_| form.passphrase.is_some());
    let key = decide::key(app, &visitor.caller, approver, form.passphrase).await?;
    let reply = Reply { approval: approval.clone(), seen: Some(seen), answer, words: form.words };
    decide::answer(app, &visitor.caller, key.as_ref(), reply, CHANNEL).await.map(drop)
}

/// An answer to a question.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    option: Option<Id>,
    /// Whether only the words count.
    #[serde(rename = "said")]
    _said: Option<String>,
    words: Option<String>,
}

pub(super) async fn question(
    State(app): State<App>,
    OnPage(In(id)): OnPage<In<Id>>,
    Sent(visitor, said): Sent<Said>,
) -> Result<Response, Refused> {
    let channel = visitor.caller.channel(CHANNEL);
    let reply = QuestionReply { option: said.option, text: said.words };
    let caller = &visitor.caller;
    match caller.service.answer_question(&caller.principal, &id, reply, &channel).await {
        Ok(_) => Ok(Redirect::to(&format!("/inbox/questions/{id}")).into_response()),
        Err(problem) => Ok(question_page(&app, &visitor, &id, Some(&problem))?.into_response()),
    }
}

/// A direction.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Steer {
    text: Option<String>,
    task: Option<Id>,
}

pub(super) async fn steer(
    OnPage(In(id)): OnPage<In<Id>>,
    Sent(visitor, steer): Sent<Steer>,
) -> Result<Response, Refused> {
    let caller = &visitor.caller;
    let text = steer.text.ok_or_else(|| Problem::new(Code::Usage, "a direction says something"))?;
    caller.service.steer(&caller.principal, &id, steer.task.as_ref(), &text).await?;
    Ok(Redirect::to(&format!("/sessions/{id}")).into_response())
}

/// An interrupt.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Interrupt {
    reason: Option<String>,
}

pub(super) async fn interrupt(
    OnPage(In(id)): OnPage<In<Id>>,
    Sent(visitor, asked): Sent<Interrupt>,
) -> Result<Response, Refused> {
    let caller = &visitor.caller;
    let asked = Interrupting { target: Target::Session(id.clone()), grace: Some(GRACE), reason: asked.reason };
    caller.service.interrupt(&caller.principal, asked).await?;
    Ok(Redirect::to(&format!("/sessions/{id}")).into_response())
}
