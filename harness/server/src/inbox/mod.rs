//! The inbox: pages where people see what waits and decide it.
//!
//! Pages are made here, whole, and work as they are: each decision is a form.
//! A script of ours only adds to them: it folds what is long, shows what
//! changed and counts down. Whatever comes from a guest, a model or a stranger
//! is text in them, never markup, and its bytes never come from their origin.

mod answer;
mod assets;
mod card;
mod decide;
mod guest;
mod layout;
mod login;
mod pages;
mod question;
mod reach;
mod session;
mod stream;
mod timeline;
mod value;
mod visitor;

use axum::routing::{get, post};

pub(crate) use guest::Handles;
pub(crate) use layout::refusal;

use crate::table::Answer::{Bytes, Events, Text};
use crate::table::{ANYBODY, DECIDES, OPERATES, Route, SEES, WATCHES};

const HTML: crate::table::Answer = Text("text/html");

/// The pages.
pub(crate) const ROUTES: &[Route] = &[
    Route::get("inbox", "/", WATCHES, "What waits for people.", HTML, || get(pages::inbox)).page(),
    Route::get("inboxEvents", "/inbox/events", WATCHES, "Says when something changed in the inbox.", Events, || {
        get(stream::events)
    })
    .page(),
    Route::get("inboxApproval", "/inbox/approvals/{approval}", WATCHES, "One approval.", HTML, || get(pages::approval))
        .page(),
    Route::post("decide", "/inbox/approvals/{approval}", DECIDES, "Answers an approval.", HTML, || {
        post(decide::approval)
    })
    .page(),
    Route::get("inboxQuestion", "/inbox/questions/{question}", WATCHES, "One question.", HTML, || get(pages::question))
        .page(),
    Route::post("reply", "/inbox/questions/{question}", DECIDES, "Answers a question.", HTML, || {
        post(decide::question)
    })
    .page(),
    Route::get("sessionsPage", "/sessions", WATCHES, "The sessions.", HTML, || get(session::list)).page(),
    Route::get("sessionPage", "/sessions/{session}", WATCHES, "What happens in a session.", HTML, || get(session::one))
        .page(),
    Route::post("steerPage", "/sessions/{session}/steer", OPERATES, "Steers a session.", HTML, || post(decide::steer))
        .page(),
    Route::post("interruptPage", "/sessions/{session}/interrupt", OPERATES, "Interrupts a session.", HTML, || {
        post(decide::interrupt)
    })
    .page(),
    Route::get(
        "viewArtifact",
        "/view/{action}/{number}",
        SEES,
        "Shows an artifact, from another origin.",
        HTML,
        || get(guest::view),
    )
    .page(),
    Route::get("guestBytes", "/guest/{handle}", ANYBODY, "Bytes of a guest, once.", Bytes, || get(guest::bytes)).page(),
    Route::get("loginPage", "/login", ANYBODY, "Where browsers log in.", HTML, || get(login::page)).page(),
    Route::post("logIn", "/login", ANYBODY, "Logs a browser in.", HTML, || post(login::log_in)).page(),
    Route::post("logOut", "/logout", WATCHES, "Logs a browser out.", HTML, || post(login::log_out)).page(),
    Route::get("asset", "/assets/{name}", ANYBODY, "Styles and scripts of the pages.", Bytes, || get(assets::asset))
        .page(),
];
