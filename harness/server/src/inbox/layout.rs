//! What all pages have in common, their headers first.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use env_contracts::text::escaped;
use env_contracts::{Moment, Problem};
use maud::{DOCTYPE, Markup, html};

use super::assets::{Asset, ICON, STYLE};
use super::visitor::Visitor;

/// What a browser is told about every page of ours. Nothing runs in it but our
/// scripts, nothing of it can be framed, nothing leaves for elsewhere.
///
/// `same-origin` and not `no-referrer`: with the latter a browser hides the
/// origin of our own forms, and so they could not be told from foreign ones.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
         form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// A page.
pub(super) struct Page {
    pub(super) status: StatusCode,
    pub(super) html: Markup,
}

impl IntoResponse for Page {
    fn into_response(self) -> Response {
        let kind = HeaderValue::from_static("text/html; charset=utf-8");
        let mut response = (self.status, self.html.into_string()).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, kind);
        headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
        response
    }
}

/// A page that could not be made.
#[derive(Debug)]
pub(super) struct Refused(Problem);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        refusal(&self.0)
    }
}

/// What handlers of pages answer.
pub(super) type Paged = Result<Page, Refused>;

/// The status of a problem, where something was asked that came to nothing.
pub(super) fn status_of(problem: &Problem) -> StatusCode {
    let status = problem.code.http_status();
    StatusCode::from_u16(if status < 400 { 409 } else { status }).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

/// A problem, for somebody who looks at a page.
pub(crate) fn refusal(problem: &Problem) -> Response {
    let body = html! {
        main #main .narrow {
            h1 { "That did not work" }
            (said(problem))
            p { a href="/" { "Back to the inbox" } " · " a href="/login" { "Log in" } }
        }
    };
    let mut response =
        Page { status: status_of(problem), html: document("Not possible", None, None, body) }.into_response();
    response.extensions_mut().insert(problem.code);
    response
}

/// A problem with its code and the way out.
pub(super) fn said(problem: &Problem) -> Markup {
    html! {
        div .problem role="alert" {
            p { strong { (escaped(&problem.message)) } }
            @if !problem.help.is_empty() { p { (escaped(&problem.help)) } }
            p .faint { "code " code { (problem.code.as_str()) } }
        }
    }
}

/// A page for somebody who is logged in.
pub(super) fn page(visitor: &Visitor, title: &str, script: &Asset, body: Markup) -> Page {
    let html = document(title, Some(visitor), Some(script), body);
    Page { status: StatusCode::OK, html }
}

/// A whole document.
pub(super) fn document(title: &str, visitor: Option<&Visitor>, script: Option<&Asset>, body: Markup) -> Markup {
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · Glovebox" }
                link rel="icon" href=(ICON.path);
                link rel="stylesheet" href=(STYLE.path);
                @if let Some(script) = script { script src=(script.path) defer {} }
            }
            body {
                a .skip href="#main" { "Skip to the content" }
                @if let Some(visitor) = visitor { (header(visitor)) }
                (body)
            }
        }
    }
}

fn header(visitor: &Visitor) -> Markup {
    let caller = &visitor.caller;
    html! {
        header .top {
            a .brand href="/" { "Glovebox" }
            nav aria-label="Pages" {
                a href="/" { "Inbox" }
                a href="/sessions" { "Sessions" }
            }
            form .who method="post" action="/logout" {
                (visitor.token_field())
                span { (caller.principal.user.as_str()) " " span .faint { "· " (caller.credential.role.as_str()) } }
                button .quiet { "Log out" }
            }
        }
    }
}

/// How long something lasts, as people say it: two units at most.
pub(super) fn lasted(ms: u64) -> String {
    /// Each unit with how many of the next one it has.
    const UNITS: [(&str, u64, u64); 4] =
        [("d", 86_400_000, 24), ("h", 3_600_000, 60), ("min", 60_000, 60), ("s", 1000, 0)];
    let Some(at) = UNITS.iter().position(|(_, unit, _)| ms >= *unit) else { return format!("{ms} ms") };
    let (name, unit, parts) = UNITS[at];
    let whole = ms / unit;
    match UNITS.get(at + 1) {
        Some((part, size, _)) if !(ms / size).is_multiple_of(parts) => {
            format!("{whole} {name} {} {part}", ms / size % parts)
        }
        None if ms % unit >= 100 => format!("{whole}.{} {name}", ms % unit / 100),
        _ => format!("{whole} {name}"),
    }
}

/// A moment: absolute, in UTC; scripts add how far off it is.
pub(super) fn moment(ms: u64) -> Markup {
    let text = Moment::at(ms / 1000).to_string();
    let shown = text.replace('T', " ").replace('Z', " UTC");
    html! { time datetime=(text) { (shown) } }
}

#[cfg(test)]
mod tests {
    use super::lasted;

    #[test]
    fn spans_are_said_as_people_say_them() {
        let said =
            [0, 999, 1000, 1250, 59_999, 60_000, 61_500, 3_600_000, 5_430_000, 86_400_000, 90_000_000].map(lasted);
        let wanted =
            ["0 ms", "999 ms", "1 s", "1.2 s", "59.9 s", "1 min", "1 min 1 s", "1 h", "1 h 30 min", "1 d", "1 d 1 h"];
        assert_eq!(said, wanted);
    }
}
