//! A stream of events: what was, then what is, without a hole between.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::convert::Infallible;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use env_contracts::{Code, Id, Problem};
use futures_util::stream;
use glovebox_events::{Action, ActionState, LogKey, Logged, What};
use glovebox_plane::OutputStream;
use glovebox_store::{ActionFilter, TaskFilter};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::live::Saying;
use super::{BATCH, Item, Kind, Sent, Subscription, Wire};
use crate::auth::{self, Caller};
use crate::state::App;
use crate::telemetry::OpenStream;

/// How often a comment shows that a quiet stream lives: proxies give up after
/// a minute, some after half of it.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// How long a browser waits before it comes back.
const RETRY: Duration = Duration::from_secs(2);

/// How often progress and output of what runs are looked at: a person sees no
/// more, and a flood of output is merged into this.
const MERGE: Duration = Duration::from_millis(100);

/// The most of an output that one event carries, in bytes. What is left out is
/// read by its offset.
const MAX_TEXT: usize = 4 << 10;

/// How many actions a reader remembers whether it may see.
const MOST_SEEN: usize = 1000;

/// The states of what has not ended.
const OPEN: [ActionState; 5] = [
    ActionState::Requested,
    ActionState::Validated,
    ActionState::WaitingApproval,
    ActionState::Authorized,
    ActionState::Running,
];

/// Somebody who reads.
struct Reader {
    app: App,
    caller: Caller,
    subscription: Subscription,
    session: Id,
    /// Only this action.
    only: Option<Id>,
    /// The number of the last event that was handed out.
    after: u64,
    ready: VecDeque<Sent>,
    /// What was handed out of each running action.
    said: BTreeMap<Id, Said>,
    /// Whether the reader may see an action, once that was looked up.
    seen: HashMap<Id, bool>,
    /// Nothing will come any more.
    over: bool,
    /// Whether it was looked at if something can come.
    looked: bool,
    head: watch::Receiver<u64>,
    ticks: watch::Receiver<u64>,
    _counted: OpenStream,
}

#[derive(Default)]
struct Said {
    saying: Saying,
    /// Up to where each output was handed out.
    offsets: (u64, u64),
}

/// The stream of a session, after this event.
pub(crate) async fn of_session(app: &App, caller: Caller, session: Id, after: u64) -> Result<Response, Problem> {
    Reader::new(app, caller, session, None, after).answer().await
}

/// The stream of one action, after this event.
pub(crate) async fn of_action(app: &App, caller: Caller, action: Action, after: u64) -> Result<Response, Problem> {
    let (session, id) = (action.session.clone(), action.id.clone());
    Reader::new(app, caller, session, Some(id), after).answer().await
}

impl Reader {
    fn new(app: &App, caller: Caller, session: Id, only: Option<Id>, after: u64) -> Self {
        let key = LogKey { tenant: caller.principal.tenant.clone(), session: session.clone() };
        // Before the log is read: what is recorded meanwhile comes this way.
        let subscription = app.feed.subscribe(key);
        Self {
            head: subscription.head(),
            ticks: subscription.ticks(),
            subscription,
            looked: false,
            app: app.clone(),
            caller,
            session,
            only,
            after,
            ready: VecDeque::new(),
            said: BTreeMap::new(),
            seen: HashMap::new(),
            over: false,
            _counted: app.telemetry.metrics.stream(),
        }
    }

    async fn answer(mut self) -> Result<Response, Problem> {
        if self.after > 0 {
            self.gap()?;
        }
        self.read().await?;
        if self.over && self.ready.is_empty() {
            return Ok(axum::http::StatusCode::NO_CONTENT.into_response());
        }
        let first = stream::iter([Ok::<_, Infallible>(Event::default().retry(RETRY))]);
        let events = stream::unfold(self, |mut reader| async move {
            let event = reader.next().await?;
            Some((Ok::<_, Infallible>(event), reader))
        });
        let body = futures_util::StreamExt::chain(first, events);
        let mut response = Sse::new(body).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response();
        let headers = response.headers_mut();
        headers.insert("cache-control", axum::http::HeaderValue::from_static("no-store"));
        headers.insert("x-accel-buffering", axum::http::HeaderValue::from_static("no"));
        Ok(response)
    }

    /// Says so where a reader knows more than there is: the store was restored
    /// from a copy, and what it saw after that never happened.
    fn gap(&mut self) -> Result<(), Problem> {
        let service = &self.caller.service;
        let head = service.session_head(&self.caller.principal, &self.session)?;
        if self.after <= head {
            return Ok(());
        }
        let snapshot = self.snapshot()?;
        let data = json!({ "after": self.after, "head": head, "snapshot": snapshot });
        self.ready.push_back(Sent::of(&Wire {
            seq: Some(head),
            kind: Kind::Gap,
            name: "gap",
            session: self.session.clone(),
            at_ms: None,
            action: self.only.clone(),
            task: None,
            data: Some(data),
        }));
        self.after = head;
        Ok(())
    }

    /// What there is now, in place of events that are not here.
    fn snapshot(&self) -> Result<Value, Problem> {
        let (service, principal) = (&self.caller.service, &self.caller.principal);
        let filter = ActionFilter { session: Some(self.session.clone()), limit: BATCH, ..ActionFilter::default() };
        let actions = service.actions(principal, filter)?.items;
        let outlines: Vec<Value> = actions
            .iter()
            .map(|action| json!({ "id": action.id, "task": action.task, "state": action.state }))
            .collect();
        let filter = TaskFilter { session: Some(self.session.clone()), limit: BATCH, ..TaskFilter::default() };
        let tasks = service.tasks(principal, &filter)?.items;
        let tasks: Vec<Value> = tasks.iter().map(|task| json!({ "id": task.id, "state": task.state })).collect();
        Ok(json!({ "actions": outlines, "tasks": tasks }))
    }

    /// The next event. `None`: nothing will come any more.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(sent) = self.ready.pop_front() {
                return Some(event(&sent));
            }
            if self.over {
                return None;
            }
            // Whoever was put out hears nothing more.
            if !auth::still(&self.app, &self.caller) {
                return None;
            }
            // What is recorded from here on is noticed below.
            self.head.mark_unchanged();
            self.ticks.mark_unchanged();
            // Without its log a stream is none: the reader comes back, and goes on where it was.
            self.read().await.ok()?;
            self.listen().await;
            if !self.ready.is_empty() || self.over {
                continue;
            }
            tokio::select! {
                biased;
                () = self.app.ending.cancelled() => return None,
                _ = self.head.changed() => {}
                // What is said meanwhile is merged.
                _ = self.ticks.changed() => tokio::time::sleep(MERGE).await,
            }
        }
    }

    /// Takes in what was recorded since.
    async fn read(&mut self) -> Result<(), Problem> {
        let all = match self.subscription.after(self.after) {
            Some(newest) => newest,
            None => {
                let service = &self.caller.service;
                let page = service.session_events(&self.caller.principal, &self.session, self.after, BATCH)?;
                page.into_iter().map(Item::new).collect()
            }
        };
        let mut ends = !self.looked;
        for item in &all {
            self.after = item.logged.seq;
            ends |= matches!(item.logged.event.what, What::Ended { .. } | What::Session { .. });
            if self.wanted(&item.logged)? {
                self.take(item).await?;
            }
        }
        if ends && (all.len() as u64) < u64::from(BATCH) {
            let over = self.is_over()?;
            // What ended it is an event too: who has not read it yet is not done.
            let head = self.caller.service.session_head(&self.caller.principal, &self.session)?;
            self.looked = head <= self.after;
            self.over = over && self.looked;
        }
        Ok(())
    }

    /// Whether an event is for this reader.
    fn wanted(&mut self, logged: &Logged) -> Result<bool, Problem> {
        if self.only.is_some() && self.only != logged.event.action {
            return Ok(false);
        }
        let (service, principal) = (&self.caller.service, &self.caller.principal);
        let Some(action) = &logged.event.action else { return service.may_see(principal, logged) };
        if let Some(seen) = self.seen.get(action) {
            return Ok(*seen);
        }
        let seen = service.may_see(principal, logged)?;
        if self.seen.len() >= MOST_SEEN {
            self.seen.clear();
        }
        self.seen.insert(action.clone(), seen);
        Ok(seen)
    }

    async fn take(&mut self, item: &Item) -> Result<(), Problem> {
        let action = item.logged.event.action.as_ref();
        if let (What::Ended { .. }, Some(action)) = (&item.logged.event.what, action) {
            // Whoever saw it begin sees how it went on until its end.
            self.written(action).await?;
            self.said.remove(action);
        }
        let end = || match action {
            Some(action) => Ok(self.caller.service.action(&self.caller.principal, action)?.observation),
            None => Ok(None),
        };
        let sent = item.sent(self.caller.sight(), end)?;
        self.ready.extend(sent.iter().cloned());
        Ok(())
    }

    /// Whether nothing will happen any more in what is read.
    fn is_over(&self) -> Result<bool, Problem> {
        let (service, principal) = (&self.caller.service, &self.caller.principal);
        if let Some(action) = &self.only {
            return Ok(service.action(principal, action)?.action.state.ended());
        }
        match service.session(principal, &self.session) {
            Ok(session) if session.closed => {
                let filter = ActionFilter {
                    session: Some(self.session.clone()),
                    states: OPEN.to_vec(),
                    limit: 1,
                    ..ActionFilter::default()
                };
                Ok(service.actions(principal, filter)?.items.is_empty())
            }
            // One that nobody opened is closed by nobody.
            Ok(_) | Err(Problem { code: Code::SessionUnknown, .. }) => Ok(false),
            Err(problem) => Err(problem),
        }
    }

    /// Takes in what running actions say.
    async fn listen(&mut self) {
        for action in self.subscription.live().into_keys() {
            if self.only.as_ref().is_none_or(|only| *only == action) {
                // What can't be read now is read when there is more, or by its offset.
                let _ = self.hear(&action).await;
            }
        }
    }

    /// Takes in what one of them says: its newest line, and what it wrote.
    async fn hear(&mut self, action: &Id) -> Result<(), Problem> {
        let Some(now) = self.subscription.live().remove(action) else { return Ok(()) };
        if self.seen.get(action) == Some(&false) {
            return Ok(());
        }
        let objects = self.caller.sees_objects();
        let said = self.said.entry(action.clone()).or_default();
        if said.saying.line != now.line || said.saying.progress != now.progress {
            let (done, total) = now.progress.map_or((None, None), |(done, total)| (Some(done), total));
            let data = json!({ "line": now.line, "done": done, "total": total });
            let wire = beside(&self.session, action, Kind::Progress, "progress", objects.then_some(data));
            self.ready.push_back(Sent::of(&wire));
        }
        let more = now.bytes != said.saying.bytes;
        said.saying = now;
        if more { self.written(action).await } else { Ok(()) }
    }

    /// Takes in what a running action wrote since, as much of it as one event
    /// carries.
    async fn written(&mut self, action: &Id) -> Result<(), Problem> {
        if !self.caller.sees_objects() {
            return Ok(());
        }
        let Some(said) = self.said.get_mut(action) else { return Ok(()) };
        let (service, principal) = (&self.caller.service, &self.caller.principal);
        for (name, stream, offset) in [
            ("stdout", OutputStream::Stdout, &mut said.offsets.0),
            ("stderr", OutputStream::Stderr, &mut said.offsets.1),
        ] {
            let chunk = service.output(principal, action, stream, *offset, MAX_TEXT).await?;
            // Between a run and its record, what it wrote can't be read: it comes
            // with its end.
            if chunk.total <= *offset || chunk.bytes.is_empty() {
                continue;
            }
            let text = String::from_utf8_lossy(&chunk.bytes);
            let data = json!({ "stream": name, "offset": chunk.offset, "text": text, "total": chunk.total });
            self.ready.push_back(Sent::of(&beside(&self.session, action, Kind::Text, "output", Some(data))));
            // A reader that is behind a flood sees where it is now; the rest
            // it reads by its offset.
            *offset = chunk.total;
        }
        Ok(())
    }
}

/// An event that is in no log.
fn beside(session: &Id, action: &Id, kind: Kind, name: &'static str, data: Option<Value>) -> Wire {
    Wire {
        seq: None,
        kind,
        name,
        session: session.clone(),
        at_ms: None,
        action: Some(action.clone()),
        task: None,
        data,
    }
}

/// An event in the form of the stream.
fn event(sent: &Sent) -> Event {
    let event = Event::default().event(sent.kind.as_str()).data(&sent.text);
    match sent.seq {
        Some(seq) => event.id(seq.to_string()),
        None => event,
    }
}
