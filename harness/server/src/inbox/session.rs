//! Sessions: what is done in one, as it happens.

use axum::extract::State;
use env_contracts::text::{escaped, escaped_line};
use env_contracts::{Code, Id, Problem};
use glovebox_events::{Action, ActionState, Session, TaskState};
use glovebox_identity::Role;
use glovebox_plane::{Attention, OutputStream};
use glovebox_store::{ActionFilter, SessionFilter, TaskFilter};
use maud::{Markup, html};
use serde::Deserialize;

use super::assets::SESSION;
use super::card::requester;
use super::guest::artifacts;
use super::layout::{Paged, lasted, moment, page};
use super::timeline;
use super::visitor::{OnPage, Visitor};
use crate::extract::{Args, In};
use crate::state::App;

/// How many sessions, tasks or actions one page shows.
const MOST: u32 = 50;

/// How much of an output is shown, in bytes: its end.
const TAIL: usize = 4 << 10;

/// Which page of a list.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Paging {
    after: Option<Id>,
}

pub(super) async fn list(OnPage(Args(paging)): OnPage<Args<Paging>>, visitor: Visitor) -> Paged {
    let filter = SessionFilter { after: paging.after, limit: MOST, ..SessionFilter::default() };
    let all = visitor.caller.service.sessions(&visitor.caller.principal, filter)?;
    let body = html! {
        main #main {
            h1 { "Sessions" }
            @if all.items.is_empty() { p .empty { "Nobody opened a session yet." } }
            ul .list {
                @for session in &all.items {
                    li {
                        a href=(format!("/sessions/{}", session.id)) { (session.id.as_str()) }
                        span { (requester(&session.principal)) }
                        span .faint { @if session.closed { "closed" } @else { "open" } " · since " (moment(session.opened_ms)) }
                        @if let Some(parent) = &session.parent { span .faint { "called from " a href=(format!("/sessions/{parent}")) { (parent.as_str()) } } }
                    }
                }
            }
            @if let Some(next) = &all.next { p { a href=(format!("/sessions?after={next}")) { "Older ones" } } }
        }
    };
    Ok(page(&visitor, "Sessions", &SESSION, body))
}

/// From which event on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    after: Option<u64>,
}

pub(super) async fn one(
    State(app): State<App>,
    OnPage(In(id)): OnPage<In<Id>>,
    OnPage(Args(from)): OnPage<Args<From>>,
    visitor: Visitor,
) -> Paged {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let head = service.session_head(principal, &id)?;
    // One that nobody opened is there for whoever asked for something in it.
    let session = match service.session(principal, &id) {
        Ok(session) => Some(session),
        Err(problem) if problem.code == Code::SessionUnknown => None,
        Err(problem) => return Err(problem.into()),
    };
    let sees = visitor.caller.sees_objects();
    let filter = ActionFilter { session: Some(id.clone()), limit: MOST, ..ActionFilter::default() };
    let actions = service.actions(principal, filter)?.items;
    let attention = sees.then(|| service.attention(principal, &id)).transpose()?;
    let running = running(&visitor, &actions).await?;
    let made = if sees { made(&visitor, &actions)? } else { Vec::new() };
    let events = timeline::events(&visitor, &id, from.after, head)?;
    let body = html! {
        main #main data-session=(id.as_str()) data-now=(app.now_ms()) {
            p { a href="/sessions" { "‹ Sessions" } }
            div .title { h1 { "Session " code { (id.as_str()) } } p #state .faint role="status" {} }
            div #panels {
                (about(session.as_ref(), attention.as_ref(), &actions))
                (tasks(&visitor, &id)?)
                @if !running.is_empty() { section #running { h2 { "Runs now" } @for panel in &running { (panel) } } }
                @if !made.is_empty() { section { h2 { "Made" } (artifacts(&made)) } }
            }
            @if visitor.caller.credential.role == Role::Operator && session.as_ref().is_none_or(|session| !session.closed) { (steering(&visitor, &id)) }
            section {
                h2 { "What happened" }
                (events)
            }
        }
    };
    Ok(page(&visitor, "Session", &SESSION, body))
}

fn about(session: Option<&Session>, attention: Option<&Attention>, actions: &[Action]) -> Markup {
    let waiting = actions.iter().filter(|action| action.pending().is_some()).count();
    html! {
        section .about {
            @if let Some(session) = session {
                p .from { (requester(&session.principal)) ", since " (moment(session.opened_ms))
                    @if session.closed { ". " strong { "Closed." } }
                    @if session.stopping().is_some() { ". " strong { "It is being stopped." } } }
            }
            @if waiting > 0 { p { a href="/" { (waiting) @if waiting == 1 { " action waits" } @else { " actions wait" } " for a person" } } }
            @if let Some(attention) = attention {
                dl .times {
                    div { dt { "Ran" } dd { (lasted(attention.run_ms)) } }
                    div { dt { "Waited for people" } dd { (lasted(attention.waited_ms)) } }
                    div { dt { "Approvals asked" } dd { (attention.approvals) } }
                    div { dt { "Questions asked" } dd { (attention.questions) } }
                }
            }
        }
    }
}

fn tasks(visitor: &Visitor, session: &Id) -> Result<Markup, Problem> {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let filter = TaskFilter { session: Some(session.clone()), limit: MOST, ..TaskFilter::default() };
    let tasks = service.tasks(principal, &filter)?.items;
    let mut rows = Vec::new();
    for task in tasks {
        let goal = if visitor.caller.sees_objects() { service.task(principal, &task.id)?.goal.text } else { None };
        rows.push((task, goal));
    }
    Ok(html! {
        @if !rows.is_empty() {
            section {
                h2 { "Tasks" }
                ul .list {
                    @for (task, goal) in &rows {
                        @let state = match task.state {
                            TaskState::Open => "open",
                            TaskState::Done => "done",
                            TaskState::Failed => "given up",
                            TaskState::Cancelled => "cancelled",
                        };
                        li {
                            code { (task.id.as_str()) }
                            @if let Some(goal) = goal { span { (escaped(goal)) } }
                            span .faint { (state) " · since " (moment(task.opened_ms)) }
                        }
                    }
                }
            }
        }
    })
}

/// What runs, with the end of what it wrote.
async fn running(visitor: &Visitor, actions: &[Action]) -> Result<Vec<Markup>, Problem> {
    let mut panels = Vec::new();
    for action in actions.iter().filter(|action| action.state == ActionState::Running) {
        let output = if visitor.caller.sees_objects() { Some(tail(visitor, &action.id).await?) } else { None };
        panels.push(html! {
            div .run id=(format!("run-{}", action.id)) {
                p { @if output.is_some() { code { (action.capability.to_string()) } " " } span .faint { "since " (moment(action.changed_ms)) } }
                @if let Some(output) = &output {
                    @if output.is_empty() { p .faint { "It wrote nothing yet." } } @else { pre .value .tail { (escaped(output)) } }
                }
            }
        });
    }
    Ok(panels)
}

/// The end of what an action wrote, both streams.
async fn tail(visitor: &Visitor, action: &Id) -> Result<String, Problem> {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let mut text = String::new();
    for stream in [OutputStream::Stdout, OutputStream::Stderr] {
        let total = service.output(principal, action, stream, 0, 0).await?.total;
        let from = total.saturating_sub(TAIL as u64);
        let chunk = service.output(principal, action, stream, from, TAIL).await?;
        text.push_str(&String::from_utf8_lossy(&chunk.bytes));
    }
    Ok(text)
}

/// What its newest actions made.
fn made(visitor: &Visitor, actions: &[Action]) -> Result<Vec<env_contracts::Artifact>, Problem> {
    let (service, principal) = (&visitor.caller.service, &visitor.caller.principal);
    let mut all = Vec::new();
    for action in actions.iter().filter(|action| action.state.ended()) {
        let view = service.action(principal, &action.id)?;
        all.extend(view.observation.into_iter().flat_map(|observation| observation.artifacts));
    }
    Ok(all)
}

/// Directing and stopping, for operators.
fn steering(visitor: &Visitor, id: &Id) -> Markup {
    html! {
        section .steering {
            h2 { "Direct it" }
            form .inline method="post" action=(format!("/sessions/{id}/steer")) {
                (visitor.token_field())
                label for="steer" { "Tell the loop, at its next step" }
                div .pair { input #steer name="text" maxlength="4000" required; button { "Steer" } }
            }
            form .inline method="post" action=(format!("/sessions/{id}/interrupt")) {
                (visitor.token_field())
                label for="reason" { "Stop what is done in it: nothing begins from then on, and what runs has five seconds to end" }
                div .pair { input #reason name="reason" maxlength="4000" placeholder=(escaped_line("why (the loop is told)")); button .grave { "Interrupt" } }
            }
        }
    }
}
