//! Logging a browser in and out.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse as _, Redirect, Response};
use env_contracts::{Code, Name, Problem};
use maud::html;
use serde::Deserialize;

use super::layout::{Page, Refused, document, said, status_of};
use super::visitor::{Sent, fields, read};
use crate::auth::{COOKIE, Connection, Identity, LOGIN_MS, cookie};
use crate::state::App;

/// What a token begins with; anything else is a code.
const TOKEN: &str = "gbx_";

pub(super) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    // A browser does not send its cookie along a link from elsewhere, so that
    // who is logged in lands here too.
    let logged_in = cookie(&headers).is_some_and(|cookie| {
        app.logins.known.now().is_ok_and(|known| known.by_token(&cookie, app.now_ms()).is_some())
    });
    if logged_in { Redirect::to("/").into_response() } else { form(None).into_response() }
}

fn form(problem: Option<&Problem>) -> Page {
    let body = html! {
        main #main .login {
            h1 .brand { "Glovebox" }
            p { "Where people see what agents ask for, and decide." }
            @if let Some(problem) = problem { (said(problem)) }
            form method="post" action="/login" {
                label for="secret" { "Login code or token" }
                input #secret name="secret" type="password" autocomplete="off" autocapitalize="characters"
                    spellcheck="false" required autofocus aria-describedby="secret-help";
                p #secret-help .faint {
                    code { "glovebox inbox" } " prints a code. It works once, for ten minutes."
                }
                button .primary { "Log in" }
            }
            p .faint { "Logged in already? " a href="/" { "Open the inbox" } "." }
        }
    };
    let status = problem.map_or(StatusCode::OK, status_of);
    Page { status, html: document("Log in", None, None, body) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    secret: Option<String>,
}

pub(super) async fn log_in(State(app): State<App>, request: Request) -> Result<Response, Refused> {
    let secure = request.extensions().get::<Connection>().is_some_and(|connection| connection.reached.secure);
    let Login { secret } = read(fields(request, &app).await?)?;
    match token(&app, secret.unwrap_or_default().trim()) {
        Ok(token) => {
            let lasts = LOGIN_MS / 1000;
            let secure = if secure { "; Secure" } else { "" };
            let cookie = format!("{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/; Max-Age={lasts}{secure}");
            Ok((AppendHeaders([(header::SET_COOKIE, cookie)]), Redirect::to("/")).into_response())
        }
        Err(problem) => Ok(form(Some(&problem)).into_response()),
    }
}

/// A credential for this browser alone.
fn token(app: &App, secret: &str) -> Result<String, Problem> {
    let who = if secret.starts_with(TOKEN) {
        let known = app.known.now()?;
        match known.by_token(secret, app.now_ms()) {
            Some(credential) => Identity::of(credential),
            None => {
                app.limits.guess()?;
                return Err(wrong());
            }
        }
    } else {
        // A code is short: each try counts before it is looked at.
        app.limits.guess()?;
        app.logins.redeem(secret, app.now_ms()).ok_or_else(wrong)?
    };
    let name: Name = format!("login-{}", app.ids.random())
        .parse()
        .map_err(|error: String| Problem::new(Code::BackendError, error))?;
    Ok(app.logins.log_in(&who, name, app.now_ms())?.reveal().to_owned())
}

fn wrong() -> Problem {
    Problem::new(Code::TokenUnknown, "this code or token is not known here, was used or expired")
        .with_help("`glovebox inbox` prints a new code")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Nothing {}

pub(super) async fn log_out(
    State(app): State<App>,
    Sent(visitor, Nothing {}): Sent<Nothing>,
) -> Result<Response, Refused> {
    app.logins.log_out(&visitor.caller.credential.name)?;
    let gone = format!("{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0");
    Ok((AppendHeaders([(header::SET_COOKIE, gone)]), Redirect::to("/login")).into_response())
}
