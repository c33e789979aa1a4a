//! What an agent does with a tool of its own: whether it may is decided here,
//! and its own process carries it out.
//!
//! The run of such an action is the word that it may go ahead. Only a service
//! that was given the backend of that name can say it, because only there
//! somebody listens who can let it go: a door that said it would use the right
//! up, and nothing would happen.

use std::sync::Arc;

use env_contracts::{BoundFacts, CapabilityRef, Code, Id, ManifestEntry, Principal, Problem, Wanted};
use glovebox_events::{Action, ApprovalState, Asks};
use glovebox_runtime::Stop;
use glovebox_store::ApprovalFilter;

use super::flight::Flight;
use super::{ActionService, Submission, Submitted};
use crate::planning::NATIVE;
use crate::registry::Tool;
use crate::watch::Watch;

impl ActionService {
    /// Carries the question whether an agent may do something with a tool of
    /// its own. Where the very same is asked already in this session, by the same
    /// agent, and was not used up, it is gone on with: so who asks again after a
    /// person approved goes ahead, once.
    ///
    /// That the answer is a success says only that it went ahead once, which may
    /// have been for somebody else who asked the same. Who asks here is let go
    /// where the backend [`NATIVE`] of this very service ran the action.
    ///
    /// # Errors
    /// As of [`ActionService::submit`]; `unsupported` for what runs here.
    pub async fn let_go(
        &self,
        submission: Submission,
        watch: Arc<dyn Watch>,
        stop: &Stop,
    ) -> Result<Submitted, Problem> {
        let tool = self.runnable(&submission.principal, &submission.request.capability)?;
        if tool.manifest.entry != ManifestEntry::Native {
            let message = format!("`{}` runs here: it is asked for as any other tool", tool.manifest.capability());
            return Err(Problem::new(Code::Unsupported, message));
        }
        match self.asked_already(&submission, tool)? {
            Some(action) => self.resume(&submission.principal, &action, submission.asking, watch, stop).await,
            None => Box::pin(self.submit(submission, watch, stop)).await,
        }
    }

    /// The oldest action that asks for the very same and can still go ahead.
    fn asked_already(&self, submission: &Submission, tool: Arc<Tool>) -> Result<Option<Id>, Problem> {
        // Why it can't begin or be planned, whoever submits it is told.
        let Ok(mut flight) = Flight::begin(&self.parts, submission.opening()?, tool, Asks::Run) else {
            return Ok(None);
        };
        let Ok(planned) = self.plan(&mut flight) else { return Ok(None) };
        let filter = ApprovalFilter {
            states: vec![ApprovalState::Pending, ApprovalState::Approved],
            session: Some(submission.context.session.clone()),
            intent: Some(planned.plan.intent(&BoundFacts::default())),
            user: Some(submission.principal.user.clone()),
            agent: submission.principal.agent.clone(),
            limit: 1,
            ..ApprovalFilter::default()
        };
        let found = self.parts.store.approvals(&submission.principal.tenant, &filter)?;
        Ok(found.items.into_iter().next().map(|(action, _)| action.id))
    }

    /// The capability, if it can be run by who asks here.
    ///
    /// # Errors
    /// Those of [`ActionService::capability`]; `unsupported` for a tool of an
    /// agent's own, where nobody would carry it out.
    pub fn runnable(&self, principal: &Principal, wanted: &Wanted) -> Result<Arc<Tool>, Problem> {
        let tool = self.capability(principal, wanted)?;
        if tool.manifest.entry == ManifestEntry::Native && !self.lets_go() {
            let message = format!(
                "`{}` is what an agent does with a tool of its own: nothing of it runs here",
                tool.manifest.capability()
            );
            return Err(Problem::new(Code::Unsupported, message)
                .with_help("call a tool that runs here; the agent's `glovebox hook` asks for its own"));
        }
        Ok(tool)
    }

    /// What there is to say of an action that only its agent can go on with:
    /// how it ended, or that it waits. `None`: it can be gone on with here.
    pub(super) fn left_to_its_agent(&self, action: &Action) -> Result<Option<Submitted>, Problem> {
        let wanted = Wanted { name: action.capability.name.clone(), version: Some(action.capability.version.clone()) };
        let native = self.parts.registry.get(&wanted).is_ok_and(|tool| tool.manifest.entry == ManifestEntry::Native);
        if !native || self.lets_go() {
            return Ok(None);
        }
        if action.state.ended() {
            return self.observation(action).map(Submitted::Done).map(Some);
        }
        Ok(Some(Submitted::Waiting(action.clone())))
    }

    /// Whether somebody listens here who lets an agent go ahead.
    fn lets_go(&self) -> bool {
        self.parts.runtime.backend(NATIVE).is_some()
    }
}

/// Why nobody puts other arguments in place: the agent has its own.
pub(super) fn no_edit(capability: &CapabilityRef) -> Problem {
    let message = format!("`{capability}` can't be edited: the agent carries out what it asked for, and nothing else");
    Problem::new(Code::Usage, message).with_help("decline it, and say what to do instead")
}

/// Why there is no permission for it.
pub(super) fn no_permission(capability: &CapabilityRef) -> Problem {
    let message = format!("`{capability}` has no contract that could be widened: nothing holds the agent to one");
    Problem::new(Code::Unsupported, message)
}
