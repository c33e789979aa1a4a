//! From a request to a decision: plan, decide, bind, decide again.

use std::sync::Arc;

use env_contracts::{BoundFacts, Code, Id, ManifestEntry, OutcomeKind, Problem, Verdict, Wanted};
use glovebox_events::{ActionState, Asks, DecidedAt, PayloadRole, Right, What};
use glovebox_policy::{Decision, PastFacts};
use glovebox_runtime::{Backend, Stop};

use super::ActionService;
use super::binding::Ready;
use super::claiming::Room;
use super::flight::{Flight, Halt, Step};
use super::halting::problem_of;
use super::preview::looks;
use super::running::unless_stopped;
use super::submission::Edit;
use crate::observe::Refusal;
use crate::planning::{Asked, Planned, plan};
use crate::watch::Watch;

impl ActionService {
    /// Plans, decides, binds and decides again. Runs what policy allows, and
    /// asks a person where it says so.
    pub(super) async fn propose(&self, flight: &mut Flight, watch: &Arc<dyn Watch>, stop: &Stop) -> Result<Step, Halt> {
        self.not_stopped(flight)?;
        self.not_too_late(flight)?;
        let planned = self.plan(flight)?;
        if let Some(companion) = flight.companion {
            companion.admits(&planned.plan)?;
        }
        let first = self.decide(flight, &planned, None, DecidedAt::Plan, None)?;
        match flight.action().asks {
            Asks::Run => {}
            Asks::Permission => return self.ask_for_permission(flight, &planned, &first).await,
            Asks::Plan | Asks::Result => return self.ask_for_decision(flight, &planned, &first).await,
        }
        let mut room = None;
        if first.verdict == Verdict::Allow {
            room = Some(self.enter(flight, &planned, stop).await?);
        } else if self.asks_in_vain(flight, &first)? {
            return Err(super::asking::unattended(&first).into());
        }
        let ready = unless_stopped(stop, "setup", self.bind(flight, planned, room.as_ref(), &**watch)).await??;
        self.settle(flight, ready, Some(first), room, watch, stop).await
    }

    /// Decides on what is bound, where that is more than was decided on before,
    /// and goes on as policy says.
    pub(super) async fn settle(
        &self,
        flight: &mut Flight,
        mut ready: Ready,
        first: Option<Decision>,
        mut room: Option<Room>,
        watch: &Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Step, Halt> {
        self.bound(flight, &ready)?;
        let facts = &ready.bound.facts;
        if let Some(drifted) = &facts.drifted
            && flight.drift.is_empty()
        {
            flight.drift.clone_from(&drifted.changed);
        }
        let decision = match first {
            // Nothing was found that policy has not seen.
            Some(first) if *facts == BoundFacts::default() && self.past(flight)? == PastFacts::default() => first,
            _ => self.decide(flight, &ready.planned, Some(facts), DecidedAt::Bound, None)?,
        };
        if (decision.verdict == Verdict::Ask || decision.preview) && looks(flight)? {
            if decision.verdict == Verdict::Ask {
                // Nobody looks for a question that is not put.
                self.declined_before(flight, &ready.bound.intent)?;
                if self.asks_in_vain(flight, &decision)? {
                    return Err(super::asking::unattended(&decision).into());
                }
            }
            // Nobody holds room while another one runs.
            drop(room.take());
            if self.preview(flight, ready.planned.arguments.value(), stop).await? {
                return Ok(Step::Again);
            }
        }
        let right = match decision.verdict {
            Verdict::Allow => Right::Policy,
            _ => match self.grant_for(flight, &ready)? {
                Some(grant) => Right::Grant { grant },
                None => {
                    let approval = self.question(flight, &ready, &decision)?;
                    // Nothing is held while a person is asked.
                    drop((ready, room));
                    return self.put_question(flight, approval).await;
                }
            },
        };
        if flight.asking == super::Asking::Leave && flight.proposing {
            // Whoever edited a plan may not run it: that is the requester's.
            return Ok(Step::Left);
        }
        let room = match room {
            Some(room) => room,
            None => {
                let room = self.enter(flight, &ready.planned, stop).await?;
                if room.environment.is_some() {
                    // Now that nobody else is in it, its folders are opened.
                    let digest = ready.bound.digest.clone();
                    let planned = ready.planned;
                    ready = unless_stopped(stop, "setup", self.bind(flight, planned, Some(&room), &**watch)).await??;
                    if ready.bound.digest != digest {
                        return Ok(Step::Again);
                    }
                }
                room
            }
        };
        Box::pin(self.claim(flight, ready, room, right, watch, stop)).await
    }

    /// Makes the plan: pure, no file is opened.
    pub(super) fn plan(&self, flight: &mut Flight) -> Result<Planned, Halt> {
        let parts = &self.parts;
        let action = flight.action();
        let fresh = action.state == ActionState::Requested;
        let revision = action.revision + u32::from(fresh && action.plan.is_some());
        let id: Id = action.id.clone();
        let wanted = Wanted { name: action.capability.name.clone(), version: Some(action.capability.version.clone()) };
        let operator = parts.operator.current()?;
        let tool = parts.registry.callable_by(&wanted, &flight.principal, &operator.profiles)?;
        if action.asks.runs() && tool.manifest.entry == ManifestEntry::Decision {
            let message =
                format!("`{}` runs nothing: a decision is all that it is asked for", tool.manifest.capability());
            let problem = Problem::new(Code::Usage, message);
            return Err(Refusal::new(OutcomeKind::Unsupported, problem).into());
        }
        if tool.manifest.entry == ManifestEntry::Native && !action.asks.runs() {
            let problem = super::natives::no_permission(&tool.manifest.capability());
            return Err(Refusal::new(OutcomeKind::Unsupported, problem).into());
        }
        let asked = Asked {
            tool: &tool,
            request: &flight.kept.request,
            received: flight.kept.received.as_deref().map(str::as_bytes),
            principal: &flight.principal,
            action_id: id,
            revision,
            permission: action.asks == Asks::Permission,
        };
        let backends = parts.runtime.backends().iter().map(|backend| &**backend as &dyn Backend);
        let planned = plan(asked, &operator.ceiling, backends)?;
        flight.story.narrowed(&tool.manifest.contract, &planned.plan.contract);
        flight.story.planned(planned.plan.effects, &planned.plan.backend, planned.enforcement.clone());
        if fresh {
            let payload = flight.journal.payload(PayloadRole::Plan, &planned.plan);
            let what = What::Planned {
                revision,
                plan: payload,
                effects: planned.plan.effects,
                backend: planned.plan.backend.clone(),
            };
            flight.journal.event(self.now_ms(), what)?;
        }
        Ok(planned)
    }

    /// Whether there can be a plan with what a person wants to put in place.
    pub(super) fn possible(&self, flight: &Flight, edit: &Edit) -> Result<(), Problem> {
        let kept = flight.kept.clone().edited(edit.clone());
        let action = flight.action();
        if flight.tool()?.manifest.entry == ManifestEntry::Native {
            return Err(super::natives::no_edit(&action.capability));
        }
        let asked = Asked {
            tool: flight.tool()?,
            request: &kept.request,
            received: kept.received.as_deref().map(str::as_bytes),
            principal: &flight.principal,
            action_id: action.id.clone(),
            revision: action.revision + 1,
            permission: action.asks == Asks::Permission,
        };
        let backends = self.parts.runtime.backends().iter().map(|backend| &**backend as &dyn Backend);
        plan(asked, &self.parts.operator.current()?.ceiling, backends).map(drop).map_err(problem_of)
    }

    /// Writes down what binding found.
    pub(super) fn bound(&self, flight: &mut Flight, ready: &Ready) -> Result<(), Halt> {
        let bound = &ready.bound;
        flight.story.bound(&bound.intent, &bound.digest, bound.files.evidence.clone());
        flight.story.sealed(&bound.facts);
        flight.story.0.times.setup_us += ready.setup_us;
        let facts = flight.journal.payload(PayloadRole::Facts, &bound.facts);
        let what = What::Bound { intent: bound.intent.clone(), digest: bound.digest.clone(), facts };
        flight.journal.event(self.now_ms(), what)?;
        Ok(())
    }
}
