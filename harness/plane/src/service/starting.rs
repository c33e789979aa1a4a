//! What a loop is told when it opens a turn: everything that was said, decided
//! and done since the one before.

use env_contracts::{CapabilityRef, Id, Name, OutcomeKind, Problem, SideEffects, Wanted};
use glovebox_events::{Action, ActionState, Asks, Grant, Task};
use glovebox_store::{ActionFilter, GrantFilter};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::deed::Deed;
use super::questions::{Answered, QuestionText};
use super::task_view::{BudgetView, GoalView, Said};
use super::tasks::words;
use super::{ActionService, granting};

/// What a loop is told when it opens a turn. All words in it are data: those of
/// people are labelled as theirs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TurnStart {
    /// The version of this format.
    pub schema: TurnSchema,
    /// The session.
    pub session: Id,
    /// The task.
    pub task: Id,
    /// The number of the turn that was opened.
    pub turn: u64,
    /// The goal.
    pub goal: GoalView,
    /// What holds besides, in the order in which it was said.
    pub constraints: Vec<Said>,
    /// What was said since the last turn.
    pub steers: Vec<Said>,
    /// Why the loop has to plan anew: `goal-changed`, `constrained`,
    /// `interrupted`.
    pub replan: Vec<Name>,
    /// The newest interrupt, where it is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Said>,
    /// What became of its questions since the last turn.
    pub answers: Vec<Answered>,
    /// Questions of agents that it called, which it has to answer, merge or
    /// pass on.
    pub asked: Vec<ChildQuestion>,
    /// What it may do more, or less, than in the last turn.
    pub permissions: PermissionDiff,
    /// What is under way, or was approved and can be resumed.
    pub open: Vec<OpenAction>,
    /// What became of the plans and results that it put before people since
    /// the last turn.
    pub decided: Vec<DecidedProposal>,
    /// Where it has to plan anew: what was changed outside until now, each to
    /// be kept, undone or handed over. Otherwise what ended since the last turn
    /// without anybody knowing whether it took effect.
    pub effects: Vec<Happened>,
    /// What the task may use, has used and has left.
    pub budget: BudgetView,
    /// Whether this was told before: the turn was opened by an earlier call
    /// with the same key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub repeated: bool,
}

/// The version tag of a turn's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TurnSchema {
    /// The first.
    #[serde(rename = "glovebox/turn/v1")]
    V1,
}

/// A question of an agent that this one called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChildQuestion {
    /// The question.
    pub id: Id,
    /// In which session it was asked.
    pub session: Id,
    /// Who asks: the agents, the asking one last.
    pub chain: Vec<Name>,
    /// The question and its options. Absent: they were erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<QuestionText>,
}

/// What a loop may do more, or less, than before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PermissionDiff {
    /// What it may do more.
    pub granted: Vec<GrantView>,
    /// What it may do no longer.
    pub revoked: Vec<GrantView>,
}

/// A grant, in words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct GrantView {
    /// Which one.
    pub id: Id,
    /// What it covers.
    pub covers: String,
    /// Until when, in milliseconds since 1970.
    pub expires_ms: u64,
}

/// An action that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OpenAction {
    /// Which one.
    pub id: Id,
    /// What it does.
    pub capability: CapabilityRef,
    /// Where it is.
    pub state: ActionState,
}

/// A plan or a result that a person decided on, or nobody did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecidedProposal {
    /// The action that put it forward.
    pub id: Id,
    /// `plan` or `result`.
    pub asks: Asks,
    /// Whether it was accepted.
    pub accepted: bool,
    /// How it ended.
    pub outcome: OutcomeKind,
}

/// Something that was changed outside, or may have been.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Happened {
    /// By which action.
    pub action: Id,
    /// What it did.
    pub capability: CapabilityRef,
    /// How it ended.
    pub outcome: OutcomeKind,
    /// Whether something changed, as far as is known.
    pub side_effects: SideEffects,
    /// For which version of the goal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<u32>,
    /// What undoes it, where the tool names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<CapabilityRef>,
    /// What finds out whether it took effect, where the tool names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<CapabilityRef>,
    /// What can be done about it.
    pub choices: Vec<Choice>,
}

/// What can be done about something that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// It stays.
    Keep,
    /// It is undone, by an action of its own.
    Undo,
    /// A person takes care of it.
    HandOver,
}

impl ActionService {
    /// What a loop is told when it opens this turn.
    pub(super) fn start(&self, deed: &mut Deed, task: &Task, turn: u64) -> Result<TurnStart, Problem> {
        let view = self.task_view(task)?;
        let since = task.turn.as_ref().map_or(task.opened_ms, |turn| turn.opened_ms);
        // What waits in the turn before ends with it.
        let ends = |action: &Action| action.turn.is_some_and(|of| of < turn) && action.state != ActionState::Running;
        let open = self
            .actions_of(task)?
            .into_iter()
            .filter(|action| action.state == ActionState::Authorized || !ends(action));
        let open = open.map(|action| OpenAction { id: action.id, capability: action.capability, state: action.state });
        let Since { mut effects, decided } = self.happened(task, since)?;
        if task.replan.is_empty() {
            effects.retain(|(effect, at_ms)| effect.outcome == OutcomeKind::Unknown && *at_ms >= since);
        }
        Ok(TurnStart {
            schema: TurnSchema::V1,
            session: task.session.clone(),
            task: task.id.clone(),
            turn,
            goal: view.goal,
            constraints: view.constraints,
            steers: view.steers,
            replan: task.replan.clone(),
            interrupted: self.interrupted(task)?,
            answers: self.answers_for(task)?,
            asked: self.asked_of(task)?,
            permissions: self.permission_diff(task, since, deed.at_ms())?,
            open: open.collect(),
            decided,
            effects: effects.into_iter().map(|(effect, _)| effect).collect(),
            budget: view.budget,
            repeated: false,
        })
    }

    /// Who interrupted the task since its last turn, and why.
    fn interrupted(&self, task: &Task) -> Result<Option<Said>, Problem> {
        let since = task.replan.iter().any(|why| why.as_str() == "interrupted");
        let Some(interrupt) = task.interrupt.as_ref().filter(|_| since) else { return Ok(None) };
        let text = interrupt.reason.as_ref().map(|reason| words(&self.parts, task, reason)).transpose()?.flatten();
        let (id, by, at_ms) = (interrupt.id.clone(), interrupt.by.clone(), interrupt.at_ms);
        Ok(Some(Said { id, text, by, at_ms }))
    }

    /// What was granted and taken back since a moment, for who works here.
    fn permission_diff(&self, task: &Task, since: u64, now: u64) -> Result<PermissionDiff, Problem> {
        let filter =
            GrantFilter { live_at: None, user: Some(task.principal.user.clone()), session: Some(task.session.clone()) };
        let mut diff = PermissionDiff::default();
        let view = |grant: &Grant| GrantView {
            id: grant.id.clone(),
            covers: granting::describe(&grant.matcher),
            expires_ms: grant.expires_ms,
        };
        for grant in self.parts.store.grants(&task.principal.tenant, &filter)? {
            if grant.task.as_ref().is_some_and(|of| *of != task.id) {
                continue;
            }
            // It ended with a turn before, and that was told then.
            let last = task.turn.as_ref().map_or(0, |turn| turn.number);
            if grant.turn.is_some_and(|turn| turn < last) {
                continue;
            }
            let made = grant.made_ms >= since;
            // What holds for the turn before ends with it.
            let holds = grant.live(now) && grant.turn.is_none();
            let ended = grant.revoked.as_ref().is_some_and(|revoked| revoked.at_ms >= since)
                || (grant.expires_ms >= since && grant.expires_ms <= now)
                || (grant.live(now) && grant.turn.is_some());
            if made && holds {
                diff.granted.push(view(&grant));
            } else if ended {
                diff.revoked.push(view(&grant));
            }
        }
        Ok(diff)
    }

    /// What was changed outside in a task, or may have been, with when; and
    /// what was decided on plans and results since a moment.
    fn happened(&self, task: &Task, since: u64) -> Result<Since, Problem> {
        let mut filter = ActionFilter {
            task: Some(task.id.clone()),
            states: vec![ActionState::Succeeded, ActionState::Failed, ActionState::Cancelled],
            ..ActionFilter::default()
        };
        let (mut out, mut decided) = (Vec::new(), Vec::new());
        loop {
            let page = self.parts.store.actions(&task.principal.tenant, &filter)?;
            for action in page.items.into_iter().filter(|action| action.session == task.session) {
                decided.extend(proposal(&action).filter(|_| action.changed_ms >= since));
                let at_ms = action.changed_ms;
                out.extend(self.changed_outside(action).map(|effect| (effect, at_ms)));
            }
            match page.next {
                // All of it matters only where everything is planned anew.
                Some(next) if !task.replan.is_empty() => filter.after = Some(next),
                _ => break,
            }
        }
        // In the order in which it happened.
        out.reverse();
        decided.reverse();
        Ok(Since { effects: out, decided })
    }

    fn changed_outside(&self, action: Action) -> Option<Happened> {
        let end = action.end.as_ref().filter(|end| end.side_effects != SideEffects::None)?;
        let wanted = Wanted { name: action.capability.name.clone(), version: Some(action.capability.version.clone()) };
        let manifest = self.parts.registry.get(&wanted).ok().map(|tool| tool.manifest.clone());
        let undo = manifest.as_ref().and_then(|manifest| manifest.compensate.clone());
        let verify = manifest.and_then(|manifest| manifest.verify);
        let mut choices = vec![Choice::Keep];
        if undo.is_some() {
            choices.push(Choice::Undo);
        }
        choices.push(Choice::HandOver);
        Some(Happened {
            outcome: end.kind,
            side_effects: end.side_effects,
            action: action.id,
            capability: action.capability,
            goal: action.goal,
            undo,
            verify,
            choices,
        })
    }
}

/// What happened in a task.
struct Since {
    /// What was changed outside, or may have been, with when it ended.
    effects: Vec<(Happened, u64)>,
    decided: Vec<DecidedProposal>,
}

/// What became of a plan or a result, if the action is one.
fn proposal(action: &Action) -> Option<DecidedProposal> {
    let end = action.end.as_ref().filter(|_| matches!(action.asks, Asks::Plan | Asks::Result))?;
    Some(DecidedProposal {
        id: action.id.clone(),
        asks: action.asks,
        accepted: action.state == ActionState::Succeeded,
        outcome: end.kind,
    })
}
