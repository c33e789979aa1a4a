//! Questions: what loops want to know. Data, never authority.

use axum::routing::{get, post};
use env_contracts::{Id, Name};
use glovebox_events::QuestionState;
use glovebox_plane::{NewQuestion, QuestionReply, QuestionText, QuestionView};
use glovebox_store::QuestionFilter;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Paged, limit};
use crate::auth::Caller;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::table::Answer::Json as Gives;
use crate::table::{ACTS, Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::post(
        "askQuestion",
        "/v1/questions",
        ACTS,
        "Asks a person, or the agent that called this one.",
        Gives(schema::<QuestionView>),
        || post(ask),
    )
    .body(schema::<Ask>),
    Route::get(
        "listQuestions",
        "/v1/questions",
        SEES,
        "Questions, oldest first.",
        Gives(schema::<Paged<QuestionView>>),
        || get(list),
    )
    .query(schema::<List>),
    Route::get(
        "getQuestion",
        "/v1/questions/{question}",
        SEES,
        "A question with its words.",
        Gives(schema::<QuestionView>),
        || get(one),
    ),
    Route::post(
        "answerQuestion",
        "/v1/questions/{question}/answer",
        SEES,
        "Answers a question.",
        Gives(schema::<QuestionView>),
        || post(answer),
    )
    .body(schema::<AnswerBody>),
    Route::post(
        "withdrawQuestion",
        "/v1/questions/{question}/withdraw",
        ACTS,
        "Takes a question back.",
        Gives(schema::<QuestionView>),
        || post(withdraw),
    ),
    Route::post(
        "passOnQuestion",
        "/v1/questions/{question}/pass-on",
        ACTS,
        "Passes a question of a called agent on to whoever is above.",
        Gives(schema::<QuestionView>),
        || post(pass_on),
    ),
];

/// A question.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ask {
    /// The task that it is about.
    task: Id,
    /// In which turn.
    turn: Option<u64>,
    /// What it decides, in a word.
    topic: Name,
    /// Its words.
    words: QuestionText,
    /// The action whose output made the loop ask.
    induced_by: Option<Id>,
    /// How long it waits, in milliseconds.
    lasts_ms: Option<u64>,
}

async fn ask(caller: Caller, Body(ask): Body<Ask>) -> Answered<Json<QuestionView>> {
    let new = NewQuestion {
        task: ask.task,
        turn: ask.turn,
        topic: ask.topic,
        text: ask.words,
        induced_by: ask.induced_by,
        lasts_ms: ask.lasts_ms,
    };
    Ok(Json(caller.service.ask(&caller.principal, new).await?))
}

/// Which questions.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// In this state. Absent: those that wait.
    state: Option<QuestionState>,
    /// Of this task.
    task: Option<Id>,
    /// Those after this one: `next` of the page before.
    after: Option<Id>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

async fn list(caller: Caller, Args(list): Args<List>) -> Answered<Json<Paged<QuestionView>>> {
    let filter = QuestionFilter {
        states: vec![list.state.unwrap_or(QuestionState::Pending)],
        task: list.task,
        after: list.after,
        limit: limit(list.limit)?,
        ..QuestionFilter::default()
    };
    Ok(Json(Paged::of(caller.service.questions(&caller.principal, &filter)?, |question| question)))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<QuestionView>> {
    Ok(Json(caller.service.question_of(&caller.principal, &id)?))
}

/// An answer: an option, words, or both.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// The option that is picked.
    option: Option<Id>,
    /// Words, besides or instead.
    text: Option<String>,
}

async fn answer(caller: Caller, In(id): In<Id>, Body(body): Body<AnswerBody>) -> Answered<Json<QuestionView>> {
    let reply = QuestionReply { option: body.option, text: body.text };
    let channel = caller.channel("http");
    Ok(Json(caller.service.answer_question(&caller.principal, &id, reply, &channel).await?))
}

async fn withdraw(caller: Caller, In(id): In<Id>) -> Answered<Json<QuestionView>> {
    Ok(Json(caller.service.withdraw_question(&caller.principal, &id).await?))
}

async fn pass_on(caller: Caller, In(id): In<Id>) -> Answered<Json<QuestionView>> {
    Ok(Json(caller.service.pass_on(&caller.principal, &id).await?))
}
