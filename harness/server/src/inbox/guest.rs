//! Bytes of guests in a browser: never from the origin of our pages.
//!
//! A page leads to a handle: random, used once, good for a moment. The bytes
//! behind it are served under another name of this host, to which no cookie of
//! ours goes, and under a policy that takes their origin and all scripts away.
//! Where there is no other name, they are a file to keep.

use std::sync::{Mutex, PoisonError};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Redirect, Response};
use env_contracts::text::escaped_line;
use env_contracts::{Artifact, ByteSize, Code, Id, Problem};
use maud::{Markup, html};

use super::layout::Refused;
use super::visitor::{OnPage, Visitor};
use crate::auth::{Caller, Connection};
use crate::extract::Names;
use crate::routes::artifacts as files;
use crate::state::App;

/// How long a handle can be used: a browser follows at once.
const LASTS_MS: u64 = 30_000;

/// How many handles can be open at one time.
const MOST: usize = 64;

/// What a browser shows by itself. Everything else is text or a file to keep.
const SHOWN: [&str; 6] = ["text/html", "image/svg+xml", "image/png", "image/jpeg", "image/gif", "image/webp"];

/// What the bytes may do: be looked at.
const HEADERS: [(HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'none'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

/// An artifact that somebody is about to look at.
struct Open {
    handle: Id,
    /// The host under which it is served, and no other.
    host: String,
    until_ms: u64,
    caller: Caller,
    action: String,
    number: String,
}

/// Those that are open.
#[derive(Default)]
pub(crate) struct Handles(Mutex<Vec<Open>>);

impl Handles {
    fn put(&self, open: Open, now_ms: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|open| open.until_ms > now_ms);
        if all.len() >= MOST {
            all.remove(0);
        }
        all.push(open);
    }

    /// Takes it: it is used up, also by a wrong host.
    fn take(&self, handle: &str, host: &str, now_ms: u64) -> Option<Open> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().position(|open| open.handle.as_str() == handle)?;
        let open = all.remove(at);
        (open.until_ms > now_ms && open.host.eq_ignore_ascii_case(host)).then_some(open)
    }
}

/// Another name of the host at which a page is, where there is one.
fn elsewhere(host: &str) -> Option<String> {
    let (name, port) = host.rsplit_once(':').filter(|(_, port)| port.bytes().all(|b| b.is_ascii_digit()))?;
    let other = match name.to_ascii_lowercase().as_str() {
        "localhost" => "127.0.0.1",
        "127.0.0.1" | "[::1]" => "localhost",
        _ => return None,
    };
    Some(format!("{other}:{port}"))
}

fn host(headers: &HeaderMap) -> &str {
    headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default()
}

pub(super) async fn view(
    State(app): State<App>,
    OnPage(Names([action, number])): OnPage<Names<2>>,
    visitor: Visitor,
    request: Request,
) -> Result<Response, Refused> {
    let Some(host) = elsewhere(host(request.headers())) else {
        return Ok(Redirect::to(&format!("/v1/artifacts/{action}/{number}")).into_response());
    };
    // Whether it is there is said here, on a page of ours.
    files::open(&visitor.caller, &action, &number).await?;
    let secure = request.extensions().get::<Connection>().is_some_and(|connection| connection.reached.secure);
    let scheme = if secure { "https" } else { "http" };
    let (handle, now) = (app.ids.random(), app.now_ms());
    let url = format!("{scheme}://{host}/guest/{handle}");
    let until_ms = now.saturating_add(LASTS_MS);
    app.handles.put(Open { handle, host, until_ms, caller: visitor.caller, action, number }, now);
    Ok(Redirect::to(&url).into_response())
}

pub(super) async fn bytes(
    State(app): State<App>,
    OnPage(Names([handle])): OnPage<Names<1>>,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let open = app.handles.take(&handle, host(&headers), app.now_ms());
    let open = open.ok_or_else(|| {
        Problem::new(Code::ArtifactUnknown, "this address was used, or its time is over")
            .with_help("open the artifact again from its session's page")
    })?;
    let (record, reader) = files::open(&open.caller, &open.action, &open.number).await?;
    let mut response = files::whole(reader, record.size);
    let headers = response.headers_mut();
    let kind = record.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let shown = SHOWN.iter().find(|shown| **shown == kind);
    let kind = match shown {
        Some(&"text/html") => "text/html; charset=utf-8",
        Some(shown) => shown,
        None if kind.starts_with("text/") || kind.ends_with("json") => "text/plain; charset=utf-8",
        None => {
            headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
            "application/octet-stream"
        }
    };
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.extend(HEADERS.map(|(name, value)| (name, HeaderValue::from_static(value))));
    Ok(response)
}

/// Artifacts, with where to look at them.
pub(super) fn artifacts(all: &[Artifact]) -> Markup {
    html! {
        @if !all.is_empty() {
            ul .artifacts {
                @for artifact in all {
                    @let path = artifact.uri.strip_prefix("artifact/").unwrap_or(&artifact.uri);
                    li {
                        strong { (escaped_line(&artifact.name)) } " "
                        span .faint { (escaped_line(&artifact.media_type)) ", " (ByteSize(artifact.size).to_string()) } " "
                        a href=(format!("/view/{path}")) target="_blank" rel="noopener noreferrer" { "Look at it" } " "
                        a href=(format!("/v1/artifacts/{path}")) download { "Keep it" }
                        @if let Some(description) = &artifact.description { br; span .faint { (escaped_line(description)) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guest_bytes_have_another_origin_or_none() {
        assert_eq!(elsewhere("127.0.0.1:8400").as_deref(), Some("localhost:8400"));
        assert_eq!(elsewhere("LOCALHOST:8400").as_deref(), Some("127.0.0.1:8400"));
        assert_eq!(elsewhere("[::1]:8400").as_deref(), Some("localhost:8400"));
        for none in ["box.example:443", "box.example", "localhost", "127.0.0.1:x", ""] {
            assert_eq!(elsewhere(none), None, "{none}");
        }
    }
}
