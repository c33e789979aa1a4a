//! Environments while actions use them: found or begun, entered by one action at a
//! time, left as that one leaves them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, Digest, Drifted, Id, Name, OutcomeKind, Problem, SharedEnvironment, Sharing, Snapshot};
use glovebox_events::{EnvironmentEvent, EnvironmentOver, Event, LogKey, TaskState, What};
use glovebox_runtime::bind::Kept;
use glovebox_store::{Commit, StoreError};

use super::ActionService;
use super::flight::{Flight, Halt};
use crate::environments::{Checkpoint, Environment, EnvironmentSchema, Environments, Held, Shared};
use crate::observe::Refusal;
use crate::planning::Planned;

/// How often whoever waits for an environment looks again: other processes have
/// no way to tell.
pub(super) const LOOK: Duration = Duration::from_millis(10);

/// How long an action waits for the one that is in its environment: as long as
/// for room, unless the operator says otherwise.
const WAIT: Duration = Duration::from_secs(60);

/// An environment that an action has to itself.
pub(super) struct Inside {
    held: Arc<Held>,
    pub(super) record: Environment,
}

impl ActionService {
    pub(super) fn environments_of(&self, tenant: &Name) -> Environments {
        Environments::new(&self.parts.environments, tenant.as_str())
    }

    /// What an environment keeps for an action, and how it is not what it was
    /// used with before. Without room, it is named and not opened.
    pub(super) async fn shared_folders(
        &self,
        flight: &Flight,
        planned: &Planned,
        room: Option<&super::claiming::Room>,
    ) -> Result<(Option<Kept>, Option<Drifted>), Halt> {
        let contract = &planned.plan.contract;
        let (record, folders) = match room.and_then(|room| room.environment.as_ref()) {
            Some(inside) => (inside.record.clone(), inside.held.folders(&inside.record, contract)?),
            None => (self.environment(flight, planned).await?, BTreeMap::new()),
        };
        let drifted = (record.artifact != planned.plan.artifact).then(|| Drifted {
            sha256: planned.plan.artifact.clone(),
            changed: vec![format!(
                "environment {}: its files were made by component {}, and this is {}",
                record.id,
                record.artifact.short(),
                planned.plan.artifact.short()
            )],
        });
        Ok((Some(Kept { identity: record.identity(), folders }), drifted))
    }

    /// The environment of an action. One that is over is ended, and another begun.
    async fn environment(&self, flight: &Flight, planned: &Planned) -> Result<Environment, Halt> {
        let shared = shared(flight, planned);
        let environments = self.environments_of(&shared.owner.tenant);
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let Some(record) = environments.find(&shared)? else {
                return Ok(self.begin_environment(&environments, &shared, &planned.plan.artifact).await?);
            };
            let Some(why) = self.over(&record)? else { return Ok(record) };
            match environments.enter(&shared)? {
                Some(held) => self.end_held(held, why, None).await?,
                None => patience(&record, deadline)?,
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    pub(super) async fn begin_environment(
        &self,
        environments: &Environments,
        shared: &Shared,
        artifact: &Digest,
    ) -> Result<Environment, Problem> {
        let now = self.parts.clock.now();
        let new = Environment {
            schema: EnvironmentSchema::V1,
            id: self.parts.ids.next(now),
            shared: shared.clone(),
            artifact: artifact.clone(),
            layer: 1,
            from: None,
            running: None,
            actions: 0,
            entries: 0,
            bytes: 0,
            begun_ms: now.unix_millis,
            used_ms: now.unix_millis,
            over: None,
        };
        let begun = environments.begin(&new)?;
        if begun.id == new.id {
            let event = EnvironmentEvent::Begun {
                sharing: shared.sharing,
                capability: shared.capability.clone(),
                artifact: artifact.clone(),
            };
            self.log_environment(&begun, event).await?;
        }
        Ok(begun)
    }

    /// Waits until nobody else is in the environment of an action.
    pub(super) async fn step_in(&self, flight: &Flight, planned: &Planned) -> Result<Inside, Halt> {
        let deadline = tokio::time::Instant::now() + WAIT;
        loop {
            let wanted = self.environment(flight, planned).await?;
            let environments = self.environments_of(&wanted.shared.owner.tenant);
            let Some(held) = environments.enter(&wanted.shared)? else {
                patience(&wanted, deadline)?;
                tokio::time::sleep(LOOK).await;
                continue;
            };
            // It may have ended, or got another layer, before we had it.
            let Some(mut record) = held.known()?.filter(|known| known.id == wanted.id && known.over.is_none()) else {
                continue;
            };
            if let Some(action) = record.running.take() {
                held.sweep(&record)?;
                let measured = held.measured(&record)?;
                (record.entries, record.bytes) = (measured.entries, measured.bytes);
                held.write(&record)?;
                self.log_environment(&record, EnvironmentEvent::Interrupted { action }).await?;
            }
            room_left(&record, planned)?;
            return Ok(Inside { held: Arc::new(held), record });
        }
    }

    /// The action is about to run.
    pub(super) async fn begin_in(
        &self,
        flight: &mut Flight,
        planned: &Planned,
        inside: &mut Inside,
    ) -> Result<(), Refusal> {
        let snapshot = match planned.plan.contract.state.snapshot {
            Snapshot::Before => Some(self.snapshot(inside, planned).await?),
            Snapshot::Never | Snapshot::After => None,
        };
        let record = &mut inside.record;
        record.running = Some(planned.plan.action_id.clone());
        record.artifact = planned.plan.artifact.clone();
        record.actions += 1;
        record.used_ms = self.now_ms();
        inside.held.write(record)?;
        flight.story.0.environment = Some(SharedEnvironment { id: record.id.clone(), snapshot });
        Ok(())
    }

    /// The run is over. What can't be kept as the contract says is told: the run
    /// itself happened.
    pub(super) async fn leave(&self, flight: &mut Flight, planned: &Planned, inside: &mut Inside) {
        if let Err(problem) = self.left(flight, planned, inside).await {
            flight.story.notice("environment-unkept", problem.message);
        }
    }

    async fn left(&self, flight: &mut Flight, planned: &Planned, inside: &mut Inside) -> Result<(), Problem> {
        let (held, record) = (inside.held.clone(), inside.record.clone());
        let measured = blocking(move || held.measured(&record)).await?;
        let record = &mut inside.record;
        (record.entries, record.bytes) = (measured.entries, measured.bytes);
        record.running = None;
        record.used_ms = self.now_ms();
        inside.held.write(record)?;
        if planned.plan.contract.state.snapshot == Snapshot::After {
            let taken = self.snapshot(inside, planned).await?;
            if let Some(environment) = &mut flight.story.0.environment {
                environment.snapshot = Some(taken);
            }
        }
        Ok(())
    }

    async fn snapshot(&self, inside: &Inside, planned: &Planned) -> Result<Digest, Problem> {
        let limits = planned.plan.contract.limits.clone();
        let action = Some(planned.plan.action_id.clone());
        self.take_snapshot(&inside.held, &inside.record, limits, action).await
    }

    /// Takes a snapshot and writes down what it is of.
    pub(super) async fn take_snapshot(
        &self,
        held: &Arc<Held>,
        record: &Environment,
        limits: env_contracts::Limits,
        action: Option<Id>,
    ) -> Result<Digest, Problem> {
        let environments = self.environments_of(&record.shared.owner.tenant);
        let (held, of) = (held.clone(), record.clone());
        let snapshots = environments.snapshots()?;
        let taken = blocking(move || held.take_snapshot(&of, &limits, &snapshots)).await?;
        let checkpoint = Checkpoint {
            schema: EnvironmentSchema::V1,
            environment: record.id.clone(),
            shared: record.shared.clone(),
            artifact: record.artifact.clone(),
            policy: self.parts.policy.current().revision(),
            tree: taken.tree,
            entries: taken.measured.entries,
            bytes: taken.measured.bytes,
            action: action.clone(),
            at_ms: self.now_ms(),
        };
        let snapshot = environments.keep(&checkpoint)?;
        self.log_environment(record, EnvironmentEvent::Snapshot { snapshot: snapshot.clone(), action }).await?;
        Ok(snapshot)
    }

    /// Why an environment is over, if it is.
    pub(super) fn over(&self, record: &Environment) -> Result<Option<EnvironmentOver>, Problem> {
        if record.over.is_some() {
            return Ok(record.over);
        }
        let (now, limits) = (self.now_ms(), self.parts.settings.environments);
        let longer = |since: u64, most: Duration| u128::from(now.saturating_sub(since)) >= most.as_millis();
        if longer(record.begun_ms, limits.age) {
            return Ok(Some(EnvironmentOver::Age));
        }
        if longer(record.used_ms, limits.idle) {
            return Ok(Some(EnvironmentOver::Idle));
        }
        let tenant = &record.shared.owner.tenant;
        let id =
            || record.shared.by.parse::<Id>().map_err(|error| Problem::new(Code::StateUnavailable, error.to_string()));
        let done = match record.shared.sharing {
            Sharing::Task => {
                self.parts.store.task(tenant, &id()?)?.record.is_some_and(|task| task.state != TaskState::Open)
            }
            Sharing::Session => self.parts.store.session(tenant, &id()?)?.is_some_and(|session| session.closed),
            Sharing::Action | Sharing::Agent => false,
        };
        Ok(done.then_some(EnvironmentOver::Done))
    }

    /// Ends an environment that nobody is in. What its actions made was stored
    /// with their ends.
    pub(super) async fn end_held(&self, held: Held, why: EnvironmentOver, by: Option<&Name>) -> Result<(), Problem> {
        let Some(mut record) = held.known()? else { return held.remove() };
        // From here on nobody uses it, whatever becomes of us.
        record.over = Some(why);
        held.write(&record)?;
        self.log_environment(&record, EnvironmentEvent::Ended { why, by: by.cloned() }).await?;
        blocking(move || held.remove()).await
    }

    /// Writes into the log of the session in which an environment began.
    pub(super) async fn log_environment(&self, record: &Environment, event: EnvironmentEvent) -> Result<(), Problem> {
        let owner = &record.shared.owner;
        let log = LogKey { tenant: owner.tenant.clone(), session: record.shared.session.clone() };
        let mut commit = Commit::new(log);
        let what = What::Environment { environment: record.id.clone(), owner: Box::new(owner.clone()), event };
        commit.events.push(Event { at_ms: self.now_ms(), action: None, what });
        match self.parts.store.commit(commit).await {
            Ok(_) => Ok(()),
            Err(StoreError::Problem(problem)) => Err(problem),
            Err(StoreError::Conflict(conflict)) => {
                Err(Problem::new(Code::BackendError, format!("not expected here: {conflict:?}")))
            }
        }
    }
}

/// Who shares the environment of an action.
fn shared(flight: &Flight, planned: &Planned) -> Shared {
    let (context, principal) = (&flight.kept.context, &planned.plan.principal);
    let sharing = planned.plan.contract.isolation.sharing;
    let by = match sharing {
        Sharing::Action => planned.plan.action_id.to_string(),
        Sharing::Task => context.task.to_string(),
        Sharing::Session => context.session.to_string(),
        Sharing::Agent => principal.agent.as_ref().unwrap_or(&principal.user).to_string(),
    };
    Shared {
        owner: principal.clone(),
        sharing,
        by,
        session: context.session.clone(),
        capability: planned.plan.capability.clone(),
    }
}

/// Whether it is worth waiting for whoever is in an environment.
fn patience(record: &Environment, deadline: tokio::time::Instant) -> Result<(), Problem> {
    if tokio::time::Instant::now() < deadline {
        return Ok(());
    }
    let who = record.running.as_ref().map_or_else(|| "somebody".to_owned(), |action| format!("action {action}"));
    let message = format!("{who} is in environment {}, and was for {WAIT:?}", record.id);
    Err(Problem::new(Code::Busy, message).with_help("wait until it is over, or stop it: `glovebox action stop ACTION`"))
}

/// Whether an environment has room for what a run may write: it may hold as much
/// as one run may write, before that run.
fn room_left(record: &Environment, planned: &Planned) -> Result<(), Refusal> {
    let limits = &planned.plan.contract.limits;
    let storage = limits.storage.is_some_and(|most| record.bytes > most.0);
    let inodes = limits.inodes.is_some_and(|most| record.entries > most);
    if !storage && !inodes {
        return Ok(());
    }
    let message = format!("environment {} is full: {} bytes in {} entries", record.id, record.bytes, record.entries);
    let problem = Problem::new(Code::LimitHit, message).with_help(
        "restore a snapshot of before, or end it: `glovebox environment show` and `glovebox environment end`; \
         `limits.storage` and `limits.inodes` bound it",
    );
    Err(Refusal::new(OutcomeKind::LimitHit, problem).which(if storage { "storage" } else { "inodes" }))
}

/// Does what can take long on a thread of its own.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(Problem::new(Code::BackendError, format!("a thread ended: {error}"))))
}
