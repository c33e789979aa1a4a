//! Actions that this server carries, whether or not their client still waits.
//!
//! A client that goes away loses nothing: what it asked for goes on, and it
//! comes back for the end. So an action is a task of the server's, and a
//! request only waits beside it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use env_contracts::{Code, Id, Name, Observation, Principal, Problem};
use glovebox_events::Action;
use glovebox_plane::{ActionService, Asking, Card, Submission, Submitted, Watch};
use glovebox_runtime::Stop;
use glovebox_runtime::job::Frame;
use opentelemetry::trace::SpanContext;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::events::Live;
use crate::state::App;
use crate::telemetry::Telemetry;

/// How often a server that stops looks at what it carries.
const LOOK: Duration = Duration::from_millis(100);

/// How long what was told to stop may take, beside the grace: a run that is
/// stuck in the kernel is given up after five seconds.
const DEAF: Duration = Duration::from_secs(10);

/// Who carries what.
#[derive(Default)]
pub(crate) struct Carried {
    tasks: TaskTracker,
    all: Arc<Mutex<HashMap<(Name, Id), Load>>>,
}

struct Load {
    stop: Stop,
    abort: tokio::task::AbortHandle,
    /// Whether it waits for a person: then nothing runs that could be asked to
    /// stop.
    waits: Arc<Mutex<Option<Id>>>,
}

/// What a request that waits beside an action gets to know.
#[derive(Debug, Clone)]
pub(crate) enum Told {
    /// It has this id; more is not known.
    Begun(Id),
    /// It waits for a person, or somebody else runs it.
    Left(Id),
    /// It ended.
    Done(Box<Observation>),
    /// There is no action.
    Failed(Problem),
}

/// An action that is carried.
pub(crate) struct Ride {
    told: watch::Receiver<Option<Told>>,
}

impl Ride {
    /// Waits until it ended or needs a person, for at most so long; and in any
    /// case until its id is known.
    pub(crate) async fn wait(&mut self, most: Duration) -> Told {
        let over = |told: &Option<Told>| told.as_ref().is_some_and(|told| !matches!(told, Told::Begun(_)));
        let _ = tokio::time::timeout(most, self.told.wait_for(over)).await;
        // Whoever carries it says something before it goes.
        let known = self.told.wait_for(Option::is_some).await.map(|told| told.clone());
        let lost = || Told::Failed(Problem::new(Code::BackendError, "the action panicked"));
        known.ok().flatten().unwrap_or_else(lost)
    }
}

impl Carried {
    /// Carries a new action.
    pub(crate) fn submit(&self, app: &App, service: ActionService, submission: Submission) -> Ride {
        let (principal, session) = (submission.principal.clone(), submission.context.session.clone());
        self.carry(app, principal, session, None, move |watch, stop| async move {
            service.submit(submission, watch, &stop).await
        })
    }

    /// Goes on with an action that was left.
    pub(crate) fn resume(
        &self,
        app: &App,
        service: ActionService,
        principal: Principal,
        action: &Action,
        asking: Asking,
    ) -> Ride {
        let (of, session) = (action.id.clone(), action.session.clone());
        let action = of.clone();
        self.carry(app, principal.clone(), session, Some(of), move |watch, stop| async move {
            service.resume(&principal, &action, asking, watch, &stop).await
        })
    }

    /// Carries whatever ends as an action does.
    pub(crate) fn carry<F>(
        &self,
        app: &App,
        principal: Principal,
        session: Id,
        known: Option<Id>,
        action: impl FnOnce(Arc<dyn Watch>, Stop) -> F + Send + 'static,
    ) -> Ride
    where
        F: Future<Output = Result<Submitted, Problem>> + Send + 'static,
    {
        let (tell, told) = watch::channel(known.clone().map(Told::Begun));
        let tell = Arc::new(tell);
        let stop = Stop::default();
        let beside = Arc::new(Beside {
            tenant: principal.tenant.clone(),
            tell: tell.clone(),
            live: app.feed.live(principal.tenant, session),
            waits: Arc::default(),
            place: Mutex::new(Place { id: known, ..Place::default() }),
            all: self.all.clone(),
            telemetry: app.telemetry.clone(),
            origin: app.telemetry.origin(),
        });
        let watching: Arc<dyn Watch> = beside.clone();
        let own = beside.clone();
        let stops = stop.clone();
        let task = self.tasks.spawn(async move {
            let gone = Unloads(own.clone());
            let submitted = action(watching, stops).await;
            // It is written down before anybody is told.
            drop(gone);
            let now = match submitted {
                Ok(Submitted::Done(observation)) => Told::Done(Box::new(observation)),
                Ok(Submitted::Waiting(action)) => Told::Left(action.id),
                Err(problem) => Told::Failed(problem),
            };
            own.tell.send_replace(Some(now));
        });
        let load = Load { stop, abort: task.abort_handle(), waits: beside.waits.clone() };
        beside.enter(|place| place.load = Some(load));
        Ride { told }
    }

    /// How many are carried.
    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    /// Lets go of all: what waits, or comes to wait, goes on waiting without
    /// us; what runs may end by itself for so long and is then asked to stop.
    /// What does not hear that is dropped, as by a crash: the next server finds
    /// it and says what became of it.
    pub(crate) async fn let_go(&self, grace: Duration) {
        self.tasks.close();
        let began = Instant::now();
        loop {
            let (late, over) = (began.elapsed() >= grace, began.elapsed() >= grace + DEAF);
            for load in lock(&self.all).values() {
                if over || lock(&load.waits).is_some() {
                    load.abort.abort();
                } else if late {
                    load.stop.request();
                }
            }
            if tokio::time::timeout(LOOK, self.tasks.wait()).await.is_ok() || over {
                return;
            }
        }
    }
}

/// Watches an action for the request beside it and for everybody who looks.
struct Beside {
    tenant: Name,
    tell: Arc<watch::Sender<Option<Told>>>,
    live: Live,
    waits: Arc<Mutex<Option<Id>>>,
    place: Mutex<Place>,
    all: Arc<Mutex<HashMap<(Name, Id), Load>>>,
    telemetry: Arc<Telemetry>,
    /// The span of the request that brought it.
    origin: Option<SpanContext>,
}

/// Its place among those that are carried: it takes it once its id is known.
#[derive(Default)]
struct Place {
    id: Option<Id>,
    load: Option<Load>,
    over: bool,
}

impl Beside {
    fn enter(&self, change: impl FnOnce(&mut Place)) {
        let mut place = lock(&self.place);
        change(&mut place);
        if let Some(id) = place.id.clone()
            && !place.over
            && let Some(load) = place.load.take()
        {
            lock(&self.all).insert((self.tenant.clone(), id), load);
        }
    }

    fn id(&self) -> Option<Id> {
        lock(&self.place).id.clone()
    }
}

impl Watch for Beside {
    fn begun(&self, action: &Id) {
        self.telemetry.begun(action, self.origin.as_ref());
        self.enter(|place| place.id = Some(action.clone()));
        self.tell.send_if_modified(|told| {
            let first = told.is_none();
            if first {
                *told = Some(Told::Begun(action.clone()));
            }
            first
        });
    }

    fn phase(&self, line: &str) {
        if let Some(action) = self.id() {
            self.live.phase(&action, line);
        }
    }

    fn frame(&self, frame: &Frame<'_>) {
        if let Some(action) = self.id() {
            self.live.frame(&action, frame);
        }
    }

    fn asked(&self, card: &Card) {
        *lock(&self.waits) = Some(card.approval.clone());
        self.tell.send_replace(Some(Told::Left(card.action.clone())));
    }

    fn retired(&self, _: &Id) {
        *lock(&self.waits) = None;
    }
}

/// Takes an action out of those that are carried, however it ends.
struct Unloads(Arc<Beside>);

impl Drop for Unloads {
    fn drop(&mut self) {
        let mut place = lock(&self.0.place);
        (place.over, place.load) = (true, None);
        if let Some(id) = &place.id {
            lock(&self.0.all).remove(&(self.0.tenant.clone(), id.clone()));
            self.0.live.over(id);
        }
    }
}

/// Each of these locks is held for a look or a change that can't panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
