//! Looking at what is remembered, as the one who asks may.

use env_contracts::{Code, Digest, Id, Observation, Principal, Problem, Wanted};
use glovebox_events::{Action, ActionState, Approval, ApprovalState, Grant, Logged, Owner};
use glovebox_store::{ActionFilter, ApprovalFilter, Content, EventFilter, EventsOf, GrantFilter, Page};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::halting::is_person;
use super::seeing::asked;
use super::{ActionService, Parts, unknown_action};
use crate::cards::{self, Card, CardPreview};

/// An action with what can be read of it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ActionView {
    /// What it is now.
    #[serde(flatten)]
    pub action: Action,
    /// Its Observation, once it ended. Absent also where it was erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observation: Option<Box<Observation>>,
}

impl ActionService {
    /// Actions that were asked for in this user's name, newest first. An
    /// agent sees its own. Pages are full, whatever is left out: only the last
    /// is shorter.
    ///
    /// # Errors
    /// Those of the store.
    pub fn actions(&self, principal: &Principal, mut filter: ActionFilter) -> Result<Page<Action>, Problem> {
        if !self.oversees(principal) {
            filter.user = Some(principal.user.clone());
            filter.agent = principal.agent.clone();
        }
        let mut page = self.parts.store.actions(&principal.tenant, &filter)?;
        page.items.iter_mut().for_each(|action| unoffered(principal, action));
        Ok(page)
    }

    /// One action.
    ///
    /// # Errors
    /// `action-unknown`, also for those of others.
    pub fn action(&self, principal: &Principal, id: &Id) -> Result<ActionView, Problem> {
        self.view(self.shown(principal, id)?)
    }

    /// An action that just ended, with its Observation as whoever carried it has
    /// it: nothing of that is read again.
    ///
    /// # Errors
    /// `action-unknown`, also where it could not be written down.
    pub fn action_after(&self, principal: &Principal, observation: Observation) -> Result<ActionView, Problem> {
        let action = self.shown(principal, &observation.action_id)?;
        Ok(ActionView { action, observation: Some(Box::new(observation)) })
    }

    /// An action as somebody may know it.
    pub(super) fn shown(&self, principal: &Principal, id: &Id) -> Result<Action, Problem> {
        let mut action = self.visible(principal, id)?;
        unoffered(principal, &mut action);
        Ok(action)
    }

    pub(super) fn view(&self, action: Action) -> Result<ActionView, Problem> {
        let observation = match &action.end {
            Some(end) => content(&self.parts, &action, &end.observation)?,
            None => None,
        };
        let observation = observation.map(|bytes| decode(&bytes)).transpose()?.map(Box::new);
        Ok(ActionView { action, observation })
    }

    /// The events of an action.
    ///
    /// # Errors
    /// `action-unknown`, also for those of others.
    pub fn events(&self, principal: &Principal, id: &Id, after: u64) -> Result<Vec<Logged>, Problem> {
        let action = self.visible(principal, id)?;
        let filter = EventFilter { of: EventsOf::Action(action.id), after, limit: 0 };
        self.parts.store.events(&principal.tenant, &filter)
    }

    /// Approvals in these states, oldest first, as cards: those of the whole
    /// tenant, because others than the user may decide; for an agent those of
    /// its own actions.
    ///
    /// # Errors
    /// Those of the store.
    pub fn approvals(
        &self,
        principal: &Principal,
        states: Vec<ApprovalState>,
        after: Option<Id>,
        limit: u32,
    ) -> Result<Page<Card>, Problem> {
        let agent = principal.agent.clone();
        let user = agent.is_some().then(|| principal.user.clone());
        let filter = ApprovalFilter { states, user, agent, after, limit, ..ApprovalFilter::default() };
        let page = self.parts.store.approvals(&principal.tenant, &filter)?;
        let items = page.items.into_iter().map(|(action, approval)| self.card_of(action, approval));
        Ok(Page { items: items.collect::<Result<_, _>>()?, next: page.next })
    }

    /// One approval, as a card.
    ///
    /// # Errors
    /// `approval-unknown`, also for those of other tenants.
    pub fn approval(&self, principal: &Principal, id: &Id) -> Result<Card, Problem> {
        let action = self.parts.store.by_approval(&principal.tenant, id)?;
        let mine = |action: &Action| principal.agent.is_none() || asked(principal, &action.principal);
        let action = action.filter(mine).ok_or_else(|| unknown_approval(id))?;
        let approval = self.that_approval(&action, id)?;
        self.card_of(action, approval)
    }

    /// An approval of an action, also one that is not its newest.
    pub(super) fn that_approval(&self, action: &Action, id: &Id) -> Result<Approval, Problem> {
        if let Some(newest) = action.approval.clone().filter(|approval| approval.id == *id) {
            return Ok(newest);
        }
        // It is in the log: what it was for, and what became of it.
        let filter = EventFilter { of: EventsOf::Action(action.id.clone()), after: 0, limit: 0 };
        let events = self.parts.store.events(&action.principal.tenant, &filter)?;
        cards::replayed(&events, id).ok_or_else(|| unknown_approval(id))
    }

    /// The card of an action's newest approval.
    pub(super) fn card(&self, action: Action) -> Result<Card, Problem> {
        match action.approval.clone() {
            Some(approval) => self.card_of(action, approval),
            None => Err(Problem::new(Code::BackendError, "an action waits without an approval")),
        }
    }

    fn card_of(&self, action: Action, approval: Approval) -> Result<Card, Problem> {
        let submission = content(&self.parts, &action, &action.submission)?;
        let plan = action.plan.as_ref().map(|plan| content(&self.parts, &action, plan)).transpose()?.flatten();
        let words = approval.answer.as_ref().and_then(|answer| answer.words.clone());
        let words = words.map(|words| content(&self.parts, &action, &words)).transpose()?.flatten();
        let filter = ApprovalFilter {
            states: vec![ApprovalState::Pending],
            intent: Some(approval.intent.clone()),
            ..ApprovalFilter::default()
        };
        let same = match approval.state {
            ApprovalState::Pending => self.parts.store.approvals(&action.principal.tenant, &filter)?.items.len(),
            _ => 0,
        };
        let wanted = Wanted { name: action.capability.name.clone(), version: Some(action.capability.version.clone()) };
        let preview_by = self.parts.registry.get(&wanted).ok().and_then(|tool| tool.manifest.preview.clone());
        let previewed = self.previewed(&action, preview_by.is_some())?;
        Ok(Card { preview_by, previewed, ..Card::new(action, approval, submission, plan, words, same)? })
    }

    /// What an action's preview showed, for whoever decides.
    fn previewed(&self, action: &Action, named: bool) -> Result<Option<CardPreview>, Problem> {
        if !action.asks.runs() {
            return Ok(None);
        }
        let Some(found) = &action.preview else {
            let reason = if named { "it was not looked at" } else { "the tool names no preview" };
            return Ok(Some(CardPreview { reason: Some(reason.to_owned()), ..CardPreview::default() }));
        };
        let looked = found.action.as_ref().map(|id| self.parts.store.action(&action.principal.tenant, id));
        let seen = match looked.transpose()?.flatten() {
            Some(looked) => self.view(looked)?.observation,
            None => None,
        };
        let mut card = CardPreview {
            action: found.action.clone(),
            ok: found.ok,
            version: found.version.clone(),
            reason: found.reason.clone(),
            ..CardPreview::default()
        };
        match seen {
            Some(seen) => {
                card.outcome = Some(seen.outcome);
                card.text = Some(seen.text);
                card.artifacts = seen.artifacts;
            }
            None if card.action.is_some() && card.reason.is_none() => {
                card.reason = Some("what it showed was erased".to_owned());
            }
            None => {}
        }
        Ok(Some(card))
    }

    /// Grants to this user, oldest first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn grants(&self, principal: &Principal, all: bool) -> Result<Vec<Grant>, Problem> {
        let live_at = (!all).then(|| self.now_ms());
        let user = (!self.oversees(principal)).then(|| principal.user.clone());
        let filter = GrantFilter { live_at, user, session: None };
        self.parts.store.grants(&principal.tenant, &filter)
    }

    /// Takes a grant back. What it let run goes on; nothing new is let past.
    ///
    /// # Errors
    /// `grant-unknown`, also for those of others.
    pub async fn revoke(&self, principal: &Principal, id: &Id) -> Result<Grant, Problem> {
        let grant = self.parts.store.grant(&principal.tenant, id)?;
        let may = |grant: &Grant| {
            is_person(principal) && (grant.principal.user == principal.user || self.oversees(principal))
        };
        let grant = grant.filter(may);
        let grant = grant.ok_or_else(|| Problem::new(Code::GrantUnknown, format!("there is no grant `{id}`")))?;
        self.take_back(&principal.tenant, grant, &principal.user).await
    }

    /// The Observation of an action that ended.
    pub(super) fn observation(&self, action: &Action) -> Result<Observation, Problem> {
        let end = action.end.as_ref().ok_or_else(|| unknown_action(&action.id))?;
        payload(&self.parts, action, &end.observation)
    }

    /// Erases the words and contents of an action; its events stay, and the
    /// digests in them.
    ///
    /// # Errors
    /// `action-unknown`; `usage` while it has not ended.
    pub async fn erase(&self, principal: &Principal, id: &Id) -> Result<u64, Problem> {
        let action = self.same_user(principal, id)?;
        if !action.state.ended() || !is_person(principal) {
            let message = format!("action `{id}` is `{}`: only a person erases, and only what has ended", action.state);
            return Err(Problem::new(Code::Usage, message).with_help("`glovebox action cancel ID` ends it"));
        }
        let of = Owner::Action(id.clone());
        let erased = self.parts.store.erase(&principal.tenant, &of, &principal.user, self.now_ms()).await;
        match erased {
            Ok(count) => Ok(count.unwrap_or_default()),
            Err(glovebox_store::StoreError::Problem(problem)) => Err(problem),
            Err(glovebox_store::StoreError::Conflict(conflict)) => {
                Err(Problem::new(Code::BackendError, format!("not expected here: {conflict:?}")))
            }
        }
    }
}

/// Without what people are offered, where an agent looks: it answers nothing,
/// and offers name folders of the host.
fn unoffered(principal: &Principal, action: &mut Action) {
    if let Some(approval) = action.approval.as_mut().filter(|_| !is_person(principal)) {
        approval.offers.clear();
    }
}

/// What is answered alike for an approval that does not exist and for one of
/// others.
pub(super) fn unknown_approval(id: &Id) -> Problem {
    Problem::new(Code::ApprovalUnknown, format!("there is no approval `{id}`"))
}

/// The bytes of a payload. `None`: they were erased.
fn content(parts: &Parts, action: &Action, sha256: &Digest) -> Result<Option<Vec<u8>>, Problem> {
    let of = Owner::Action(action.id.clone());
    match parts.store.payload(&action.principal.tenant, &of, sha256)? {
        Some(Content::Bytes(bytes)) if Digest::of(&bytes) == *sha256 => Ok(Some(bytes)),
        Some(Content::Erased) => Ok(None),
        Some(Content::Bytes(_)) | None => {
            let message = format!("a payload of action `{}` is not what was recorded", action.id);
            Err(Problem::new(Code::StoreCorrupt, message))
        }
    }
}

/// A payload as the value that it is.
pub(super) fn payload<T: DeserializeOwned>(parts: &Parts, action: &Action, sha256: &Digest) -> Result<T, Problem> {
    match content(parts, action, sha256)? {
        Some(bytes) => decode(&bytes),
        None => {
            let message = format!("what action `{}` holds was erased", action.id);
            Err(Problem::new(Code::Expired, message).with_help("ask for it anew"))
        }
    }
}

pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        Problem::new(Code::StoreCorrupt, format!("a payload has a form that this version does not know: {error}"))
    })
}

/// By whom an action was declined, and with what words.
pub(super) fn said(parts: &Parts, action: &Action) -> Result<String, Problem> {
    let answer = action.approval.as_ref().and_then(|approval| approval.answer.as_ref());
    let Some(answer) = answer else { return Ok("somebody".to_owned()) };
    let words = answer.words.as_ref().map(|words| content(parts, action, words)).transpose()?.flatten();
    let words = words.map_or_else(String::new, |words| format!(": {}", String::from_utf8_lossy(&words)));
    Ok(format!("`{}`{words}", answer.by.name))
}

/// The states of what has not ended.
pub(super) fn open_states() -> Vec<ActionState> {
    use ActionState::{Authorized, Requested, Running, Validated, WaitingApproval};
    vec![Requested, Validated, WaitingApproval, Authorized, Running]
}
