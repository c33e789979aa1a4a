//! Carrying actions for requests, and beyond them.
//!
//! What runs for a request is stopped when the request is given up. What waits
//! for a person goes on waiting, whatever becomes of the request.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Id, Principal, Problem};
use glovebox_events::{Action, ActionState};
use glovebox_plane::{ActionService, Asking, Submission, Submitted, Watch};
use glovebox_runtime::Stop;
use rmcp::RoleServer;
use rmcp::service::RequestContext;
use tokio::sync::watch;

use crate::progress::Progress;

/// How long the end of what was told to stop is waited for when a door closes.
/// A run that is stuck in the kernel is given up after five seconds.
const CLOSING: Duration = Duration::from_secs(10);

/// How long a request stays open for a run whose client would as well come back
/// for it: most are over by then.
const LONG: Duration = Duration::from_secs(2);

/// How soon it is looked again whether a run was written down by then.
const AGAIN: Duration = Duration::from_millis(200);

/// What becomes of a run when its request is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnGone {
    /// It is stopped: the request was for it.
    Stop,
    /// It goes on: the request only looked at it.
    Leave,
}

/// Everything that is under way in a door.
#[derive(Debug)]
pub(crate) struct Traffic {
    /// The door closes: what runs is stopped.
    closing: Stop,
    /// So many are under way.
    busy: watch::Sender<usize>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self { closing: Stop::default(), busy: watch::Sender::new(0) }
    }
}

/// One that is under way.
struct UnderWay(watch::Sender<usize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.send_modify(|busy| *busy = busy.saturating_sub(1));
    }
}

/// An action that somebody carries.
struct Work {
    future: Pin<Box<dyn Future<Output = Result<Submitted, Problem>> + Send>>,
    stop: Stop,
    _under_way: UnderWay,
}

impl Traffic {
    fn begin(&self) -> UnderWay {
        self.busy.send_modify(|busy| *busy += 1);
        UnderWay(self.busy.clone())
    }

    /// Tells everything that runs to stop.
    pub(crate) fn stop(&self) {
        self.closing.request();
    }

    /// Tells everything that runs to stop, and waits until nothing is under
    /// way.
    pub(crate) async fn close(&self) {
        self.stop();
        let mut busy = self.busy.subscribe();
        let _ = tokio::time::timeout(CLOSING, busy.wait_for(|busy| *busy == 0)).await;
    }

    /// Carries a new action: to its end, to the person who has to decide, or,
    /// where its client comes back for what takes long, until it has run for a
    /// while.
    ///
    /// # Errors
    /// Those of [`ActionService::submit`].
    pub(crate) async fn submit(
        &self,
        service: &ActionService,
        submission: Submission,
        context: &RequestContext<RoleServer>,
        comes_back: bool,
    ) -> Result<Submitted, Problem> {
        let (progress, principal) = (Arc::new(Progress::default()), submission.principal.clone());
        let mut work = self.work(service, submission, progress.clone());
        let long = tokio::time::sleep(LONG);
        tokio::pin!(long);
        loop {
            let stopped = work.stop.is_requested();
            tokio::select! {
                biased;
                done = &mut work.future => return done,
                () = progress.tell(context) => {}
                // What comes after a stop is its end, which is written down.
                () = gone(context, &self.closing), if !stopped => work.stop.request(),
                () = &mut long, if comes_back && !stopped => {
                    let running = progress.action().and_then(|id| now(service, (&principal, id)).ok());
                    // What is not written down can't be come back for.
                    if let Some(action) = running.filter(|action| action.state == ActionState::Running) {
                        self.leave(service.clone(), (&principal, &action.id), work);
                        return Ok(Submitted::Waiting(action));
                    }
                    long.as_mut().reset(tokio::time::Instant::now() + AGAIN);
                }
            }
        }
    }

    fn work(&self, service: &ActionService, submission: Submission, watch: Arc<dyn Watch>) -> Work {
        let (service, stop) = (service.clone(), Stop::default());
        let heard = stop.clone();
        let future = Box::pin(async move { service.submit(submission, watch, &heard).await });
        Work { future, stop, _under_way: self.begin() }
    }

    /// Goes on with an action that was left, for as long as there is patience.
    /// The answer is its end, or what it is by then.
    ///
    /// # Errors
    /// Those of [`ActionService::resume`].
    pub(crate) async fn follow(
        &self,
        service: &ActionService,
        of: (&Principal, &Id),
        asking: Asking,
        patience: impl Future<Output = ()> + Send,
        (context, on_gone): (&RequestContext<RoleServer>, OnGone),
    ) -> Result<Submitted, Problem> {
        // What runs already is carried by somebody: here it is only waited for.
        let joins = now(service, of)?.state == ActionState::Running;
        let progress = Arc::new(Progress::default());
        let mut work = self.resume(service, of, asking, progress.clone());
        let mut patience = std::pin::pin!(patience);
        loop {
            let stopped = work.stop.is_requested();
            let given_up = tokio::select! {
                biased;
                done = &mut work.future => return done,
                () = progress.tell(context) => continue,
                () = gone(context, &self.closing), if !stopped => true,
                () = &mut patience, if !stopped => false,
            };
            let action = now(service, of)?;
            match (action.state, given_up) {
                // It only waits: whoever stops carrying it takes nothing away.
                (ActionState::WaitingApproval, _) => return Ok(Submitted::Waiting(action)),
                _ if joins => return Ok(Submitted::Waiting(action)),
                (ActionState::Running, true) if on_gone == OnGone::Stop || self.closing.is_requested() => {
                    work.stop.request();
                }
                (_, true) if self.closing.is_requested() => return Ok(Submitted::Waiting(action)),
                _ => {
                    self.leave(service.clone(), of, work);
                    return Ok(Submitted::Waiting(action));
                }
            }
        }
    }

    fn resume(
        &self,
        service: &ActionService,
        (principal, id): (&Principal, &Id),
        asking: Asking,
        watch: Arc<dyn Watch>,
    ) -> Work {
        let (service, principal, id) = (service.clone(), principal.clone(), id.clone());
        let stop = Stop::default();
        let heard = stop.clone();
        let future = Box::pin(async move { service.resume(&principal, &id, asking, watch, &heard).await });
        Work { future, stop, _under_way: self.begin() }
    }

    /// Carries on what nobody waits for right now: whoever asked comes back for
    /// its end.
    fn leave(&self, service: ActionService, (principal, id): (&Principal, &Id), mut work: Work) {
        let (principal, id, closing) = (principal.clone(), id.clone(), self.closing.clone());
        tokio::spawn(async move {
            tokio::select! {
                biased;
                _ = &mut work.future => return,
                () = closing.requested() => {}
            }
            if now(&service, (&principal, &id)).is_ok_and(|action| action.state == ActionState::Running) {
                work.stop.request();
                let _ = work.future.await;
            }
        });
    }
}

/// What an action is now.
fn now(service: &ActionService, (principal, id): (&Principal, &Id)) -> Result<Action, Problem> {
    service.action(principal, id).map(|view| view.action)
}

/// Until a request is given up: by its client, or because the door closes.
async fn gone(context: &RequestContext<RoleServer>, closing: &Stop) {
    tokio::select! {
        () = context.ct.cancelled() => {}
        () = closing.requested() => {}
    }
}
