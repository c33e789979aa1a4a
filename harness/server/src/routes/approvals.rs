//! Approvals, permissions and grants: what people decide.

use axum::extract::State;
use axum::routing::{get, post};
use env_contracts::{Code, Id, Name, Problem, Scope, Wanted};
use glovebox_events::{ApprovalState, Grant};
use glovebox_plane::{Answering, Asking, Card, PermissionRequest, Reply, Settled};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::actions::{self, Carry, Waited};
use super::{Paged, limit};
use crate::auth::{Caller, Sight};
use crate::decide;
use crate::extract::{Args, Body, In, Json};
use crate::problem::Answered;
use crate::state::App;
use crate::table::Answer::{Action as Runs, Json as Gives};
use crate::table::{ACTS, DECIDES, LOOKS, Route, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::get(
        "listApprovals",
        "/v1/approvals",
        LOOKS,
        "What people are asked to decide, oldest first. Those who may not decide see that something waits, and not what.",
        Gives(schema::<Paged<Shown>>),
        || get(list),
    )
    .query(schema::<List>),
    Route::get(
        "getApproval",
        "/v1/approvals/{approval}",
        LOOKS,
        "An approval, for those who may decide as a card: whatever decides is in it, whole. Others see that there is one, and what became of it.",
        Gives(schema::<Shown>),
        || get(one),
    ),
    Route::post(
        "answerApproval",
        "/v1/approvals/{approval}/answer",
        DECIDES,
        "Answers an approval, as the person whose credential it is. The first answer counts; approving runs nothing.",
        Gives(schema::<Settled>),
        || post(answer),
    )
    .body(schema::<AnswerBody>),
    Route::post(
        "requestPermission",
        "/v1/permissions",
        ACTS,
        "Asks for more than a tool's contract gives.",
        Runs(schema::<Waited>),
        || post(permission),
    )
    .query(schema::<Carry>)
    .body(schema::<Permission>),
    Route::get(
        "listGrants",
        "/v1/grants",
        DECIDES,
        "What was allowed for more than once.",
        Gives(schema::<Paged<Grant>>),
        || get(grants),
    )
    .query(schema::<Grants>),
    Route::post(
        "revokeGrant",
        "/v1/grants/{grant}/revoke",
        DECIDES,
        "Takes a grant back.",
        Gives(schema::<Grant>),
        || post(revoke),
    ),
];

/// Which approvals.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// In this state. Absent: those that wait.
    state: Option<ApprovalState>,
    /// Those after this one: `next` of the page before.
    after: Option<Id>,
    /// At most so many.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<u32>,
}

/// A card, or that there is one.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Shown {
    Card(Box<Card>),
    Outline(Outline),
}

impl Shown {
    fn of(card: Card, sight: Sight) -> Self {
        match sight {
            Sight::All => Self::Card(Box::new(card)),
            Sight::Objects | Sight::Outlines => Self::Outline(Outline::of(card)),
        }
    }
}

/// That something waits.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Outline {
    /// The approval.
    approval: Id,
    /// The action.
    action: Id,
    /// The session.
    session: Id,
    /// The task.
    task: Id,
    /// What became of it.
    state: ApprovalState,
    /// Which classes of approvers may answer.
    classes: Vec<Name>,
    /// When it was opened, in milliseconds since 1970.
    opened_ms: u64,
    /// When it ends unanswered.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

impl Outline {
    /// Of a card.
    pub(crate) fn of(card: Card) -> Self {
        Self {
            approval: card.approval,
            action: card.action,
            session: card.session,
            task: card.task,
            state: card.state,
            classes: card.classes,
            opened_ms: card.opened_ms,
            expires_ms: card.expires_ms,
        }
    }
}

async fn list(caller: Caller, Args(list): Args<List>) -> Answered<Json<Paged<Shown>>> {
    let state = list.state.unwrap_or(ApprovalState::Pending);
    let page = caller.service.approvals(&caller.principal, vec![state], list.after, limit(list.limit)?)?;
    let sight = caller.sight();
    Ok(Json(Paged::of(page, |card| Shown::of(card, sight))))
}

async fn one(caller: Caller, In(id): In<Id>) -> Answered<Json<Shown>> {
    let card = caller.service.approval(&caller.principal, &id)?;
    Ok(Json(Shown::of(card, caller.sight())))
}

/// An answer. Exactly one of `offer`, `arguments` and `scope` with `arguments`
/// says what it is.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AnswerBody {
    /// The plan that was shown, or the beginning of its digest: what is
    /// answered is what was seen, or nothing.
    plan: String,
    /// The offer that is picked.
    offer: Option<Id>,
    /// What is left of a permission, where less is given than was asked; with
    /// an edit, the other scope.
    scope: Option<Scope>,
    /// Other arguments, as JSON text: a new plan, decided anew.
    arguments: Option<String>,
    /// What is said with it. It is handed to whoever asked.
    words: Option<String>,
    /// Who answers by passphrase. Absent: only the credential speaks for them.
    approver: Option<Name>,
    /// Their passphrase. It is used at once and kept nowhere.
    passphrase: Option<String>,
}

async fn answer(
    State(app): State<App>,
    caller: Caller,
    In(approval): In<Id>,
    Body(body): Body<AnswerBody>,
) -> Answered<Json<Settled>> {
    let answer = match (body.offer, body.arguments) {
        (Some(id), None) => Answering::Offer { id, narrowed: body.scope },
        (None, arguments) => Answering::Edit { arguments, scope: body.scope },
        (Some(_), Some(_)) => {
            return Err(Problem::new(Code::Usage, "an answer picks an offer or gives other arguments, not both").into());
        }
    };
    let reply = Reply { approval, seen: Some(body.plan), answer, words: body.words };
    let key = decide::key(&app, &caller, body.approver, body.passphrase).await?;
    Ok(Json(decide::answer(&app, &caller, key.as_ref(), reply, "http").await?))
}

/// What somebody wants to be allowed.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Permission {
    /// The task.
    task: Option<Id>,
    /// The session. Absent: that of the task, or of this credential.
    session: Option<Id>,
    /// The turn.
    turn: Option<u64>,
    /// For which tool.
    capability: Wanted,
    /// What it is to have: the sections that are named, in place of its own.
    scope: Scope,
    /// Why, in the requester's words. Shown, never matched.
    reason: Option<String>,
}

async fn permission(
    State(app): State<App>,
    caller: Caller,
    Args(how): Args<Carry>,
    Body(body): Body<Permission>,
) -> Answered<actions::Reply> {
    let wait = how.wait()?;
    let context = actions::context(&caller, body.session, body.task, body.turn)?;
    let asking = how.asking.unwrap_or(Asking::Wait);
    let (service, session) = (caller.service.clone(), context.session.clone());
    let request = PermissionRequest {
        principal: caller.principal.clone(),
        context,
        capability: body.capability,
        scope: body.scope,
        reason: body.reason,
        asking,
    };
    let ride = app.carried.carry(&app, caller.principal.clone(), session, None, move |watch, stop| async move {
        service.request_permission(request, watch, &stop).await
    });
    actions::reply(&caller, ride, wait).await
}

/// Which grants.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Grants {
    /// Also those that hold no more.
    all: Option<bool>,
}

async fn grants(caller: Caller, Args(which): Args<Grants>) -> Answered<Json<Paged<Grant>>> {
    Ok(Json(Paged::whole(caller.service.grants(&caller.principal, which.all.unwrap_or_default())?)))
}

async fn revoke(caller: Caller, In(id): In<Id>) -> Answered<Json<Grant>> {
    Ok(Json(caller.service.revoke(&caller.principal, &id).await?))
}
