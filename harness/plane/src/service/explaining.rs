//! What policy says of a request, and why, without carrying it out.

use std::sync::Arc;

use env_contracts::{Code, Id, Problem, Verdict};
use glovebox_events::{Asks, DecidedAt, PayloadRole, What};
use glovebox_policy::{Decision, Explanation};
use glovebox_runtime::bind::RunDir;
use schemars::JsonSchema;
use serde::Serialize;

use super::deciding::decided;
use super::flight::{Flight, Halt};
use super::halting::problem_of;
use super::{ActionService, Submission, asking};
use crate::planning::Planned;

/// What policy says of a request, and what would become of it now.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Explained {
    /// What policy says, and why.
    #[serde(flatten)]
    pub explanation: Explanation,
    /// The grant that answers, where policy asks: nobody would be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grant: Option<Id>,
    /// What it would end as before it runs and before anybody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends: Option<Problem>,
}

impl ActionService {
    /// What policy says of a request: the same plan, the same facts and the
    /// same order as of [`ActionService::submit`], and nothing is run, asked or
    /// remembered.
    ///
    /// What is bound for a run is opened and hashed for this as well, in a
    /// folder that is gone afterwards; nothing is compiled. Where it can't be
    /// bound, the explanation is of the plan alone and says what it would end as.
    ///
    /// # Errors
    /// Where policy would not be asked: those of `submit`, and how an action
    /// ends that can't be planned.
    pub async fn explain(&self, submission: Submission) -> Result<Explained, Problem> {
        submission.request.validate().map_err(|error| Problem::of(&error))?;
        let tool = self.capability(&submission.principal, &submission.request.capability)?;
        let mut flight = Flight::begin(&self.parts, submission.opening()?, tool, Asks::Run)?;
        self.explained(&mut flight).await.map_err(problem)
    }

    async fn explained(&self, flight: &mut Flight) -> Result<Explained, Halt> {
        self.not_stopped(flight)?;
        let planned = self.plan(flight)?;
        let policy = self.parts.policy.current();
        let mut explanation = policy.explain(&self.sight(flight, &planned, None)?.facts(None));
        // The journal stays in memory: it is what the later steps look at.
        flight.journal.event(self.now_ms(), decided(DecidedAt::Plan, &explanation.decision))?;
        let mut ends = match explanation.decision.verdict {
            Verdict::Deny => return Ok(Explained { explanation, grant: None, ends: None }),
            Verdict::Ask if self.asks_in_vain(flight, &explanation.decision)? => {
                Some(unattended(&explanation.decision))
            }
            Verdict::Ask | Verdict::Allow => None,
        };
        let mut grant = None;
        if ends.is_none() {
            match self.bound_facts(flight, &planned).await {
                Ok(bound) => {
                    explanation = policy.explain(&self.sight(flight, &planned, Some(&bound.facts))?.facts(None));
                    if explanation.decision.verdict == Verdict::Ask {
                        let found = self.granting(flight, &planned, &bound.intent, &bound.facts)?;
                        grant = found.map(|(grant, _)| grant);
                        if grant.is_none() {
                            ends = self.declined_before(flight, &bound.intent).err().map(problem);
                            let never = self.nobody_decides(flight, &explanation.decision);
                            ends = ends.or_else(|| never.then(|| unattended(&explanation.decision)));
                        }
                    }
                }
                Err(halt) => ends = Some(problem(halt)),
            }
        }
        Ok(Explained { explanation, grant, ends })
    }

    /// What binding finds, and the intent that it makes.
    async fn bound_facts(&self, flight: &mut Flight, planned: &Planned) -> Result<Found, Halt> {
        let run_dir = Arc::new(RunDir::new(&self.parts.run_root, planned.plan.action_id.as_str()));
        let facts = self.open_files(flight, planned, &run_dir, None).await?.facts;
        let intent = planned.plan.intent(&facts);
        let digest = planned.plan.digest(&intent);
        let payload = flight.journal.payload(PayloadRole::Facts, &facts);
        flight.journal.event(self.now_ms(), What::Bound { intent: intent.clone(), digest, facts: payload })?;
        Ok(Found { facts, intent })
    }
}

struct Found {
    facts: env_contracts::BoundFacts,
    intent: env_contracts::Digest,
}

fn unattended(decision: &Decision) -> Problem {
    problem_of(asking::unattended(decision))
}

fn problem(halt: Halt) -> Problem {
    match halt {
        Halt::Refused(refusal) => problem_of(refusal),
        Halt::Failed(problem) => problem,
        // Nobody else knows of it.
        Halt::Changed => Problem::new(Code::BackendError, "an action that is not written down was changed"),
    }
}
