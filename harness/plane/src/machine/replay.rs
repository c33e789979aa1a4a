//! What a log adds up to.

use std::collections::BTreeMap;

use env_contracts::{Id, Name};
use glovebox_events::{Action, Grant, Halt, Logged, Question, Revoked, Session, Task, What};

use super::{Illegal, question_step, session_step, step, task_step};

/// What things are now, as the log says.
#[derive(Debug, Default, PartialEq)]
pub struct Live {
    /// Actions, by tenant and id.
    pub actions: BTreeMap<(Name, Id), Action>,
    /// Sessions that were opened, by tenant and id.
    pub sessions: BTreeMap<(Name, Id), Session>,
    /// Tasks that were opened, by tenant and id.
    pub tasks: BTreeMap<(Name, Id), Task>,
    /// Questions, by tenant and id.
    pub questions: BTreeMap<(Name, Id), Question>,
    /// Grants, by tenant and id.
    pub grants: BTreeMap<(Name, Id), Grant>,
    /// The operator's stop.
    pub halt: Option<Halt>,
}

/// A log that can't have come about.
#[derive(Debug, thiserror::Error)]
#[error("event {seq} of session `{session}`: {why}")]
pub struct ReplayError {
    /// Whose log.
    pub session: Id,
    /// Which event.
    pub seq: u64,
    /// What is wrong with it.
    pub why: String,
}

impl Live {
    /// Adds one event. Events of one log come in its order.
    ///
    /// # Errors
    /// [`ReplayError`] for an event that must not follow.
    pub fn add(&mut self, logged: &Logged) -> Result<(), ReplayError> {
        let tenant = &logged.log.tenant;
        let error = |why: String| ReplayError { session: logged.log.session.clone(), seq: logged.seq, why };
        match &logged.event.what {
            What::GrantMade { grant } => {
                self.grants.insert((tenant.clone(), grant.id.clone()), (**grant).clone());
            }
            What::GrantRevoked { grant, by } => {
                let known = self.grants.get_mut(&(tenant.clone(), grant.clone()));
                let known = known.ok_or_else(|| error(format!("there is no grant `{grant}`")))?;
                known.revoked = Some(Revoked { at_ms: logged.event.at_ms, by: by.clone() });
            }
            What::Halted { halt } => self.halt = Some(halt.clone()),
            What::Released { .. } => self.halt = None,
            // What an environment is now lies beside its folders.
            What::PolicyLoaded { .. } | What::PolicyRefused { .. } | What::Environment { .. } => {}
            What::Session { event } => {
                let key = (tenant.clone(), logged.log.session.clone());
                let next = session_step(self.sessions.remove(&key), &logged.log, logged.event.at_ms, event);
                self.sessions.insert(key, next.map_err(|illegal| error(illegal.to_string()))?);
            }
            What::Task { task, event } => {
                let key = (tenant.clone(), task.clone());
                let next = task_step(self.tasks.remove(&key), &logged.log, task, logged.event.at_ms, event);
                self.tasks.insert(key, next.map_err(|illegal| error(illegal.to_string()))?);
            }
            What::Question { question, event, .. } => {
                let key = (tenant.clone(), question.clone());
                let before = self.questions.remove(&key);
                let next = question_step(before, &logged.log, question, logged.event.at_ms, event);
                self.questions.insert(key, next.map_err(|illegal| error(illegal.to_string()))?);
            }
            _ => {
                let id = logged.event.action.clone().ok_or_else(|| error("it names no action".into()))?;
                let key = (tenant.clone(), id);
                let before = self.actions.remove(&key);
                let stepped = step(before, &logged.log, &logged.event);
                let action = stepped.map_err(|illegal: Illegal| error(illegal.to_string()))?;
                self.actions.insert(key, action);
            }
        }
        Ok(())
    }
}

/// What a whole log adds up to.
///
/// # Errors
/// [`ReplayError`] for the first event that must not follow.
pub fn replay<'a>(log: impl IntoIterator<Item = &'a Logged>) -> Result<Live, ReplayError> {
    let mut live = Live::default();
    for logged in log {
        live.add(logged)?;
    }
    Ok(live)
}
