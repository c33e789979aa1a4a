//! What a person who decides gets to see.

use env_contracts::{
    Artifact, Assurance, CapabilityRef, Clause, Code, DerivedEffects, Id, Name, Outcome, Plan, Principal, Problem,
    Scope,
};
use glovebox_events::{
    Action, ActionState, Approval, ApprovalState, AskedFor, Asks, Control, GrantScope, Logged, Review, Reviewed,
};
use schemars::JsonSchema;
use serde::Serialize;

use crate::machine::step;
use crate::planning::{NATIVE, UNCONTAINED};
use crate::service::{Kept, describe};

/// A card: what would happen, why it is asked, who may answer and what.
/// Whatever decides is here whole; nothing is cut.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Card {
    /// The approval.
    pub approval: Id,
    /// The action.
    pub action: Id,
    /// What equal intents have in common: they share a card, never an
    /// approval.
    pub card: String,
    /// How many approvals wait for the same thing, with this one.
    pub same: usize,
    /// What became of it.
    pub state: ApprovalState,
    /// Where the action is.
    pub action_state: ActionState,
    /// The first characters of the plan digest.
    pub plan: String,
    /// The capability.
    pub capability: CapabilityRef,
    /// Who asks.
    pub requester: Principal,
    /// The session and the task.
    pub session: Id,
    /// The same.
    pub task: Id,
    /// What the task is for, as its opener said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_purpose: Option<String>,
    /// Where the task stands, as the loop's credential says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task_stage: Option<String>,
    /// Why, in the model's words. Untrusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_purpose: Option<String>,
    /// What is asked for: that it runs, or a decision.
    pub asks: Asks,
    /// The plan or the result that is to be accepted. Whoever wrote it is not
    /// trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<serde_json::Value>,
    /// For a permission: what is asked for, in the shape of a request's scope.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Scope>,
    /// The canonical arguments, whole. Absent: they were erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<String>,
    /// What it may do to the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effects: Option<DerivedEffects>,
    /// Each clause of the contract in force. None where nothing would hold it
    /// to one, and where the plan was erased as the arguments were.
    pub clauses: Vec<CardClause>,
    /// Who carries it out, where nothing of ours contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uncontained: Option<String>,
    /// The folder that is the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// Why it is asked.
    pub asked_for: AskedFor,
    /// What changed since it was approved.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The reasons that the rules give.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reasons: Vec<String>,
    /// Whether a rule wants the tool's preview looked at first.
    pub preview: bool,
    /// The capability that shows what this one would do, without doing it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preview_by: Option<CapabilityRef>,
    /// What the preview showed, or why there is none. Evidence, and no
    /// authority. Absent: nothing would run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub previewed: Option<CardPreview>,
    /// What reviewers that are no persons said before. Their words are
    /// untrusted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reviews: Vec<Review>,
    /// Which classes of approvers may answer.
    pub classes: Vec<Name>,
    /// What they can answer.
    pub offers: Vec<CardOffer>,
    /// When it was opened, in milliseconds since 1970.
    pub opened_ms: u64,
    /// When it ends unanswered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// Nobody who may answer is known, and so it ends soon.
    pub nobody_reachable: bool,
    /// Who answered what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<CardAnswer>,
}

/// What a preview showed. The tool's words are untrusted.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct CardPreview {
    /// The action that looked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<Id>,
    /// Whether it ended well.
    pub ok: bool,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// What it says, compact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The version of the object that it saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What it made, such as a diff.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// Why there is none, how it failed, or what is missing in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A clause of the contract in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CardClause {
    /// Which one.
    pub clause: String,
    /// What it says.
    pub value: String,
}

/// An answer that is offered.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CardOffer {
    /// Its name.
    pub id: Id,
    /// What it does, in words.
    pub does: String,
    /// For how much.
    pub scope: GrantScope,
    /// For how long, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasts_ms: Option<u64>,
}

/// An answer that was given.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CardAnswer {
    /// Which offer.
    pub offer: Id,
    /// Who.
    pub by: Name,
    /// How sure that is.
    pub assurance: Assurance,
    /// What they said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
}

impl Card {
    pub(crate) fn new(
        action: Action,
        approval: Approval,
        submission: Option<Vec<u8>>,
        plan: Option<Vec<u8>>,
        words: Option<Vec<u8>>,
        same: usize,
    ) -> Result<Self, Problem> {
        let corrupt = |error: serde_json::Error| {
            Problem::new(Code::StoreCorrupt, format!("a payload has a form that this version does not know: {error}"))
        };
        let kept: Option<Kept> = submission.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(corrupt)?;
        let plan: Option<Plan> = plan.map(|bytes| serde_json::from_slice(&bytes)).transpose().map_err(corrupt)?;
        let words = words.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let denied = approval.reviews.iter().any(|review| review.verdict == Reviewed::Denied);
        let context = kept.as_ref().map(|kept| kept.context.clone());
        let workspace = kept.as_ref().and_then(|kept| kept.workspace.as_ref());
        Ok(Self {
            card: approval.intent.short().to_owned(),
            plan: approval.digest.short().to_owned(),
            same,
            state: approval.state,
            action_state: action.state,
            capability: action.capability,
            requester: action.principal,
            session: action.session,
            task: action.task,
            task_purpose: context.as_ref().and_then(|context| context.purpose.clone()),
            task_stage: context.and_then(|context| context.stage),
            asks: action.asks,
            proposal: plan
                .as_ref()
                .filter(|_| matches!(action.asks, Asks::Plan | Asks::Result))
                .and_then(|plan| serde_json::from_str(&plan.arguments).ok()),
            model_purpose: kept.as_ref().and_then(|kept| kept.request.purpose.clone()),
            scope: kept
                .as_ref()
                .filter(|_| action.asks == Asks::Permission)
                .and_then(|kept| kept.request.scope.clone()),
            arguments: plan.as_ref().map(|plan| plan.arguments.clone()),
            effects: action.effects,
            uncontained: plan.as_ref().filter(|plan| plan.backend == NATIVE).map(|_| UNCONTAINED.to_owned()),
            clauses: plan.map(|plan| clauses(&plan)).unwrap_or_default(),
            workspace: workspace.map(|path| path.display().to_string()),
            asked_for: approval.asked_for,
            changed: approval.changed,
            reasons: approval.reasons,
            preview: approval.preview,
            preview_by: None,
            previewed: None,
            classes: approval.classes,
            reviews: approval.reviews,
            offers: approval
                .offers
                .iter()
                // Over a reviewer's no, a person lets this one action past.
                .filter(|offer| !denied || offer.matcher.is_none())
                .map(|offer| CardOffer {
                    id: offer.id.clone(),
                    does: does(offer),
                    scope: offer.scope,
                    lasts_ms: offer.lasts_ms,
                })
                .collect(),
            opened_ms: approval.opened_ms,
            expires_ms: approval.expires_ms,
            nobody_reachable: approval.nobody_reachable,
            answer: approval.answer.map(|answer| CardAnswer {
                offer: answer.offer,
                by: answer.by.name,
                assurance: answer.by.assurance,
                words,
                at_ms: answer.at_ms,
            }),
            approval: approval.id,
            action: action.id,
        })
    }
}

fn clauses(plan: &Plan) -> Vec<CardClause> {
    if plan.backend == NATIVE {
        return Vec::new();
    }
    let shown = |clause: &Clause<'_>| CardClause { clause: clause.path().to_string(), value: clause.value() };
    plan.contract.clauses().iter().map(shown).collect()
}

/// What an offer does, in words.
fn does(offer: &glovebox_events::Offer) -> String {
    use glovebox_events::Answered;
    match (offer.answer, &offer.matcher, offer.control) {
        (Answered::Approve, None, _) => "approve this, once".to_owned(),
        (Answered::Approve, Some(matcher), _) => {
            let place = match offer.scope {
                GrantScope::Once => "once",
                GrantScope::Turn => "in this turn",
                GrantScope::Task => "in this task",
                GrantScope::Session => "in this session",
                GrantScope::Rule => "wherever the same user and agent ask",
            };
            format!("approve {place}: {}", describe(matcher))
        }
        (Answered::Decline, _, Control::StopTask) => "decline, and stop what else the task has under way".to_owned(),
        (Answered::Decline, ..) => "decline".to_owned(),
        (Answered::Edit, ..) => "put other arguments in its place".to_owned(),
    }
}

/// An approval as the log of its action says, also one that others followed.
pub(crate) fn replayed(events: &[Logged], id: &Id) -> Option<Approval> {
    let (mut action, mut found) = (None, None);
    for logged in events.iter().filter(|logged| logged.event.action.is_some()) {
        let next = step(action, &logged.log, &logged.event).ok()?;
        if let Some(approval) = next.approval.as_ref().filter(|approval| approval.id == *id) {
            found = Some(approval.clone());
        }
        action = Some(next);
    }
    found
}
