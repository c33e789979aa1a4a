//! Who sees what. Everything begins with the tenant: what belongs to another is
//! not even looked for.

use std::collections::BTreeMap;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{Action, Logged, QuestionEvent, SessionEvent, TaskEvent, What};
use glovebox_store::{ActionFilter, EventFilter, EventsOf, MAX_PAGE};

use super::halting::is_person;
use super::tasks::sees;
use super::{ActionService, unknown_action, unknown_session};

impl ActionService {
    /// This service for people who look over all of a tenant: observers,
    /// approvers, operators. What can be read, listed, cancelled, interrupted,
    /// steered and taken back is then every user's, and questions can be
    /// answered. What acts in somebody's name is not: to go on with an action,
    /// to open a turn, to end a task, to close a session and to erase stay with
    /// the user.
    ///
    /// It changes nothing for an agent, nor for whoever acts through a chain of
    /// them: they see what they always saw.
    #[must_use]
    pub fn overseeing(&self) -> Self {
        Self { overseeing: true, ..self.clone() }
    }

    /// Whether somebody looks over all of their tenant here.
    pub(super) fn oversees(&self, principal: &Principal) -> bool {
        self.overseeing && is_person(principal)
    }

    /// Whether somebody may look at what another opened in the same tenant.
    pub(super) fn looks_at(&self, principal: &Principal, of: &Principal) -> bool {
        self.oversees(principal) || sees(principal, of)
    }

    /// Whether somebody may look at what another asked for in the same tenant.
    pub(super) fn looks_at_action(&self, principal: &Principal, of: &Principal) -> bool {
        self.oversees(principal) || asked(principal, of)
    }

    /// An action that somebody may look at, and have stopped.
    pub(super) fn visible(&self, principal: &Principal, id: &Id) -> Result<Action, Problem> {
        let action = self.parts.store.action(&principal.tenant, id)?;
        let mine = |action: &Action| self.looks_at_action(principal, &action.principal);
        action.filter(mine).ok_or_else(|| unknown_action(id))
    }

    /// An action of the same user, whichever agent asked for it: what a person
    /// may go on with, whoever looks over the tenant.
    pub(super) fn same_user(&self, principal: &Principal, id: &Id) -> Result<Action, Problem> {
        let action = self.parts.store.action(&principal.tenant, id)?;
        action.filter(|action| asked(principal, &action.principal)).ok_or_else(|| unknown_action(id))
    }

    /// The events of a session after a number, as far as this principal may see
    /// them. Fewer than `limit` means that there are no more yet, none means
    /// that nothing is to be seen behind `after`: what belongs to others is left
    /// out and never ends a page.
    ///
    /// A session that nobody opened is there for whoever asked for something in
    /// it.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn session_events(
        &self,
        principal: &Principal,
        session: &Id,
        after: u64,
        limit: u32,
    ) -> Result<Vec<Logged>, Problem> {
        self.readable(principal, session)?;
        let limit = if limit == 0 { MAX_PAGE } else { limit.min(MAX_PAGE) };
        let mut filter = EventFilter { of: EventsOf::Session(session.clone()), after, limit };
        if self.oversees(principal) {
            return self.parts.store.events(&principal.tenant, &filter);
        }
        let (mut found, mut known) = (Vec::new(), BTreeMap::new());
        loop {
            let page = self.parts.store.events(&principal.tenant, &filter)?;
            let Some(last) = page.last() else { return Ok(found) };
            filter.after = last.seq;
            for logged in page {
                let of = Subject::of(&logged);
                // One read for each thing, however much happened to it.
                let seen = match known.get(&of) {
                    Some(seen) => *seen,
                    None => *known.entry(of).or_insert(self.may_see(principal, &logged)?),
                };
                if seen {
                    found.push(logged);
                    if found.len() == limit as usize {
                        return Ok(found);
                    }
                }
            }
        }
    }

    /// The number of the newest event of a session, whether or not this
    /// principal may see it.
    ///
    /// # Errors
    /// `session-unknown`, also for those of others.
    pub fn session_head(&self, principal: &Principal, session: &Id) -> Result<u64, Problem> {
        self.readable(principal, session)?;
        self.parts.store.head(&principal.tenant, session)
    }

    /// Whether there is something to read in a session for somebody.
    fn readable(&self, principal: &Principal, session: &Id) -> Result<(), Problem> {
        let tenant = &principal.tenant;
        if self.parts.store.session(tenant, session)?.is_some_and(|known| self.looks_at(principal, &known.principal)) {
            return Ok(());
        }
        let there = if self.oversees(principal) {
            let filter = EventFilter { of: EventsOf::Session(session.clone()), after: 0, limit: 1 };
            !self.parts.store.events(tenant, &filter)?.is_empty()
        } else {
            let filter = ActionFilter { session: Some(session.clone()), limit: 1, ..ActionFilter::default() };
            !self.actions(principal, filter)?.items.is_empty()
        };
        if there { Ok(()) } else { Err(unknown_session(session)) }
    }

    /// Whether somebody may see an event that came by itself. The answer is the
    /// same for all events of one action, task, question, session or grant, and
    /// stays the same. It takes at most one read, by the name of that thing.
    ///
    /// # Errors
    /// Those of the store.
    pub fn may_see(&self, principal: &Principal, event: &Logged) -> Result<bool, Problem> {
        let (tenant, store) = (&event.log.tenant, &self.parts.store);
        if *tenant != principal.tenant {
            return Ok(false);
        }
        if self.oversees(principal) {
            return Ok(true);
        }
        let opened = |of: &Principal| sees(principal, of);
        // What begins something says whose it is.
        match &event.event.what {
            What::Requested { principal: of, .. } => return Ok(asked(principal, of)),
            What::Session { event: SessionEvent::Opened { principal: of, .. } }
            | What::Task { event: TaskEvent::Opened { principal: of, .. }, .. } => return Ok(opened(of)),
            What::Environment { owner: of, .. } => return Ok(asked(principal, of)),
            What::Question { event: QuestionEvent::Opened { asked }, .. } => return Ok(opened(&asked.principal)),
            _ => {}
        }
        Ok(match Subject::of(event) {
            Subject::Action(id) => store.action(tenant, &id)?.is_some_and(|of| asked(principal, &of.principal)),
            Subject::Task(id) => store.task(tenant, &id)?.record.is_some_and(|of| opened(&of.principal)),
            Subject::Question(id) => store.question(tenant, &id)?.is_some_and(|of| opened(&of.principal)),
            Subject::Session(id) => store.session(tenant, &id)?.is_some_and(|of| opened(&of.principal)),
            Subject::Grant(id) => store.grant(tenant, &id)?.is_some_and(|of| of.principal.user == principal.user),
            Subject::Environment(_) | Subject::Everything => false,
        })
    }
}

/// What an event is about: whoever may see that may see the event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Subject {
    Action(Id),
    Task(Id),
    Question(Id),
    Session(Id),
    Grant(Id),
    Environment(Id),
    /// All of the tenant: stops, policies.
    Everything,
}

impl Subject {
    fn of(logged: &Logged) -> Self {
        match (&logged.event.what, &logged.event.action) {
            (What::GrantMade { grant }, None) => Self::Grant(grant.id.clone()),
            (What::GrantRevoked { grant, .. }, None) => Self::Grant(grant.clone()),
            (What::Session { .. }, _) => Self::Session(logged.log.session.clone()),
            (What::Task { task, .. }, _) => Self::Task(task.clone()),
            (What::Question { question, .. }, _) => Self::Question(question.clone()),
            (What::Environment { environment, .. }, _) => Self::Environment(environment.clone()),
            (_, Some(action)) => Self::Action(action.clone()),
            (_, None) => Self::Everything,
        }
    }
}

/// Whether somebody sees what was asked for: an agent what it asked for itself,
/// a person all that was asked for in their name.
pub(super) fn asked(principal: &Principal, of: &Principal) -> bool {
    principal.user == of.user && (principal.agent.is_none() || principal.agent == of.agent)
}
