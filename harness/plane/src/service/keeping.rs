//! Looking at environments, and what people do with them: take snapshots, restore,
//! end.

use std::sync::Arc;

use env_contracts::{Code, Digest, Id, Limits, Name, Principal, Problem, Wanted};
use glovebox_events::{EnvironmentEvent, EnvironmentOver};
use glovebox_workspace::Change;
use schemars::JsonSchema;
use serde::Serialize;

use super::ActionService;
use super::environments::{LOOK, blocking};
use super::halting::is_person;
use crate::environments::{Checkpoint, Environment, Held};

/// How often a person's wish is tried again: who only looks is in nobody's way for
/// longer.
const LOOKS: u32 = 5;

/// What can be done with an environment now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EnvironmentState {
    /// The next action finds it.
    Ready,
    /// An action is in it.
    Busy,
    /// It is about to be gone: the next action begins another.
    Over,
}

/// An environment as people see it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct EnvironmentView {
    /// What it is now.
    #[serde(flatten)]
    pub environment: Environment,
    /// What can be done with it.
    pub state: EnvironmentState,
    /// When it is over if nothing uses it until then, in milliseconds since 1970.
    pub expires_ms: u64,
    /// Its snapshots, oldest first.
    pub snapshots: Vec<SnapshotView>,
}

/// A snapshot as people see it.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SnapshotView {
    /// Its name.
    pub snapshot: Digest,
    /// What it is of.
    #[serde(flatten)]
    pub of: Checkpoint,
}

/// What was over, and went.
#[derive(Debug, Default, Serialize)]
pub struct Tended {
    /// Environments.
    pub ended: Vec<Id>,
    /// Snapshots of environments that were gone long ago.
    pub snapshots: u64,
    /// Bytes of those.
    pub bytes: u64,
}

impl ActionService {
    /// The environments that somebody may look at, oldest first.
    ///
    /// # Errors
    /// `state-unavailable`.
    pub fn environments(&self, principal: &Principal) -> Result<Vec<EnvironmentView>, Problem> {
        let environments = self.environments_of(&principal.tenant);
        let mut all = Vec::new();
        for environment in environments.all()? {
            if self.looks_at_action(principal, &environment.shared.owner) {
                all.push(self.environment_view(environment)?);
            }
        }
        Ok(all)
    }

    /// One environment.
    ///
    /// # Errors
    /// `environment-unknown`, also for those of others.
    pub fn environment_shown(&self, principal: &Principal, id: &Id) -> Result<EnvironmentView, Problem> {
        self.environment_view(self.that_environment(principal, id)?)
    }

    fn environment_view(&self, environment: Environment) -> Result<EnvironmentView, Problem> {
        let environments = self.environments_of(&environment.shared.owner.tenant);
        let state = if self.over(&environment)?.is_some() {
            EnvironmentState::Over
        } else if environments.is_taken(&environment.shared)? {
            EnvironmentState::Busy
        } else {
            EnvironmentState::Ready
        };
        let limits = self.parts.settings.environments;
        let after = |since: u64, span: std::time::Duration| {
            since.saturating_add(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
        };
        let expires_ms = after(environment.begun_ms, limits.age).min(after(environment.used_ms, limits.idle));
        let snapshots = environments.checkpoints()?.into_iter();
        let snapshots = snapshots.filter(|(_, of)| of.environment == environment.id);
        let snapshots = snapshots.map(|(snapshot, of)| SnapshotView { snapshot, of }).collect();
        Ok(EnvironmentView { environment, state, expires_ms, snapshots })
    }

    /// The snapshots that somebody may look at, oldest first, also of environments
    /// that ended.
    ///
    /// # Errors
    /// `state-unavailable`.
    pub fn environment_snapshots(&self, principal: &Principal) -> Result<Vec<SnapshotView>, Problem> {
        let all = self.environments_of(&principal.tenant).checkpoints()?.into_iter();
        let mine = all.filter(|(_, of)| self.looks_at_action(principal, &of.shared.owner));
        Ok(mine.map(|(snapshot, of)| SnapshotView { snapshot, of }).collect())
    }

    /// How one snapshot differs from another.
    ///
    /// # Errors
    /// `snapshot-unknown`, also for those of others; `snapshot-damaged`.
    pub fn snapshot_changes(&self, principal: &Principal, from: &Digest, to: &Digest) -> Result<Vec<Change>, Problem> {
        let snapshots = self.environments_of(&principal.tenant).snapshots()?;
        let tree = |id: &Digest| {
            let checkpoint = self.that_checkpoint(principal, id)?;
            snapshots.tree(&checkpoint.tree).map_err(|error| crate::environments::problem(&error))
        };
        Ok(tree(from)?.changes(&tree(to)?))
    }

    /// Takes a snapshot of an environment that no action is in.
    ///
    /// # Errors
    /// `not-eligible` for an agent, `environment-unknown`, `busy`.
    pub async fn take_environment_snapshot(&self, by: &Principal, id: &Id) -> Result<SnapshotView, Problem> {
        people_only(by)?;
        let (held, record) = self.hold(by, id).await?;
        // What lies there was bounded by the limits of the actions that made it.
        let snapshot = self.take_snapshot(&Arc::new(held), &record, Limits::default(), None).await?;
        let of = self.environments_of(&by.tenant).checkpoint(&snapshot)?;
        Ok(SnapshotView { snapshot, of })
    }

    /// Makes the folders of an environment those of a snapshot again; of the one
    /// that the snapshot was taken of, or of another for the same capability. One
    /// that is gone by now is begun again for whoever shared it.
    ///
    /// Policy, component or image and every byte are compared with what they were
    /// when it was taken. `accept`: somebody looked at how they differ.
    ///
    /// # Errors
    /// `not-eligible` for an agent; `snapshot-unknown`, `environment-unknown`;
    /// `drift` where something is another and that was not accepted;
    /// `snapshot-damaged` where the bytes are, whatever was accepted; `busy`.
    pub async fn restore_environment(
        &self,
        by: &Principal,
        snapshot: &Digest,
        into: Option<&Id>,
        accept: bool,
    ) -> Result<EnvironmentView, Problem> {
        people_only(by)?;
        let checkpoint = self.that_checkpoint(by, snapshot)?;
        let accepted = self.drifted(&checkpoint)?;
        if !accepted.is_empty() && !accept {
            let message = format!(
                "snapshot `{}` was taken with another state of things: {}",
                snapshot.short(),
                accepted.join("; ")
            );
            return Err(Problem::new(Code::Drift, message)
                .with_help("look at what differs; `--accept-drift` restores it all the same"));
        }
        let environments = self.environments_of(&by.tenant);
        let into = match into {
            Some(id) => self.that_environment(by, id)?,
            None => match environments.find(&checkpoint.shared)? {
                Some(known) => known,
                None => self.begin_environment(&environments, &checkpoint.shared, &checkpoint.artifact).await?,
            },
        };
        if into.shared.capability.name != checkpoint.shared.capability.name {
            let message = format!(
                "snapshot `{}` is of `{}`, and environment {} is for `{}`",
                snapshot.short(),
                checkpoint.shared.capability.name,
                into.id,
                into.shared.capability.name
            );
            return Err(
                Problem::new(Code::Usage, message).with_help("restore it into an environment for its capability")
            );
        }
        let (held, record) = self.hold(by, &into.id).await?;
        let (from, now, snapshots) = (snapshot.clone(), self.now_ms(), environments.snapshots()?);
        let restored = blocking(move || {
            let artifact = checkpoint.artifact.clone();
            held.restore(&record, &checkpoint, &snapshots, |next| {
                next.from = Some(from);
                next.artifact = artifact;
                next.running = None;
                next.used_ms = now;
            })
        });
        let restored = restored.await?;
        let event = EnvironmentEvent::Restored { snapshot: snapshot.clone(), by: by.user.clone(), accepted };
        self.log_environment(&restored, event).await?;
        self.environment_view(restored)
    }

    /// What is another than it was when a snapshot was taken, for people.
    fn drifted(&self, checkpoint: &Checkpoint) -> Result<Vec<String>, Problem> {
        let mut drifted = Vec::new();
        let capability = &checkpoint.shared.capability;
        let wanted = Wanted { name: capability.name.clone(), version: Some(capability.version.clone()) };
        match self.parts.registry.get(&wanted) {
            Ok(tool) if tool.registered.digest == checkpoint.artifact => {}
            Ok(tool) => drifted.push(format!(
                "`{capability}` was component {} and is {}",
                checkpoint.artifact.short(),
                tool.registered.digest.short()
            )),
            Err(problem) if problem.code == Code::ToolUnknown => {
                drifted.push(format!("`{capability}` is not registered any more"));
            }
            Err(problem) => return Err(problem),
        }
        let policy = self.parts.policy.current().revision();
        if policy != checkpoint.policy {
            drifted.push(format!("the policy was {} and is {}", checkpoint.policy.short(), policy.short()));
        }
        Ok(drifted)
    }

    /// Ends an environment that no action is in. Its snapshots stay for as long as
    /// artifacts do.
    ///
    /// # Errors
    /// `not-eligible` for an agent, `environment-unknown`, `busy`.
    pub async fn end_environment(&self, by: &Principal, id: &Id) -> Result<(), Problem> {
        people_only(by)?;
        let (held, _) = self.hold(by, id).await?;
        self.end_held(held, EnvironmentOver::Asked, Some(&by.user)).await
    }

    /// Ends what is over, and takes away the snapshots from before a moment of
    /// environments that are gone.
    ///
    /// # Errors
    /// `state-unavailable`.
    pub async fn tend_environments(&self, tenant: &Name, before_ms: u64, dry_run: bool) -> Result<Tended, Problem> {
        let environments = self.environments_of(tenant);
        let mut tended = Tended::default();
        for environment in environments.all()? {
            let Some(why) = self.over(&environment)? else { continue };
            // Whoever is in it may end.
            let Some(held) = environments.enter(&environment.shared)? else { continue };
            if !dry_run {
                self.end_held(held, why, None).await?;
            }
            tended.ended.push(environment.id);
        }
        let freed = blocking(move || environments.clean(before_ms, dry_run)).await?;
        (tended.snapshots, tended.bytes) = (freed.trees, freed.bytes);
        Ok(tended)
    }

    fn that_environment(&self, principal: &Principal, id: &Id) -> Result<Environment, Problem> {
        let all = self.environments_of(&principal.tenant).all()?;
        let mine = |known: &Environment| known.id == *id && self.looks_at_action(principal, &known.shared.owner);
        let unknown = || Problem::new(Code::EnvironmentUnknown, format!("there is no environment `{id}`"));
        all.into_iter().find(mine).ok_or_else(unknown)
    }

    fn that_checkpoint(&self, principal: &Principal, id: &Digest) -> Result<Checkpoint, Problem> {
        let checkpoint = self.environments_of(&principal.tenant).checkpoint(id)?;
        if self.looks_at_action(principal, &checkpoint.shared.owner) {
            return Ok(checkpoint);
        }
        Err(Problem::new(Code::SnapshotUnknown, format!("there is no snapshot `{}`", id.short())))
    }

    /// Takes an environment for itself.
    async fn hold(&self, by: &Principal, id: &Id) -> Result<(Held, Environment), Problem> {
        let known = self.that_environment(by, id)?;
        let environments = self.environments_of(&by.tenant);
        let mut held = environments.enter(&known.shared)?;
        // Somebody may only have looked.
        for _ in 0..LOOKS {
            if held.is_some() {
                break;
            }
            tokio::time::sleep(LOOK).await;
            held = environments.enter(&known.shared)?;
        }
        let busy = || {
            Problem::new(Code::Busy, format!("an action is in environment {id}"))
                .with_help("wait until it is over, or stop it: `glovebox ps`, `glovebox action stop ACTION`")
        };
        let held = held.ok_or_else(busy)?;
        let record = held.known()?.filter(|now| now.id == *id);
        let gone = || Problem::new(Code::EnvironmentUnknown, format!("environment {id} is gone"));
        Ok((held, record.ok_or_else(gone)?))
    }
}

/// What an agent must not do: it could undo what others rely on.
fn people_only(by: &Principal) -> Result<(), Problem> {
    if is_person(by) {
        return Ok(());
    }
    Err(Problem::new(Code::NotEligible, "an agent neither restores nor ends an environment")
        .with_help("a person does: without --agent and $GLOVEBOX_AGENT"))
}
