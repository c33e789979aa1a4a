//! `docs/openapi.json` and `docs/http.md`: the HTTP door, as its own table of
//! routes describes it.

use std::fmt::Write as _;

use serde_json::Value;

use super::{MADE, cell};

/// What a client has to know before it reads the table.
const INTRODUCTION: &str = "\
# HTTP

`glovebox serve` answers at `127.0.0.1:7410` (`serve.listen`) and at `serve.sock` in the state folder. Every request and
answer is described in [openapi.json](openapi.json), which a server also gives at `/openapi.json`.

```console
$ glovebox serve --workspace docs=./docs &
$ TOKEN=$(glovebox token add ci --role agent --agent ci)
$ curl -s http://127.0.0.1:7410/v1/actions -H \"authorization: Bearer $TOKEN\" -H 'content-type: application/json' \\
    -d '{\"capability\": \"text.count\", \"arguments\": {\"path\": \"README.md\"}, \"workspace\": \"docs\"}'
```

## Who calls

- `authorization: Bearer TOKEN`, with a token of `glovebox token add`. A token has one role and one tenant; it is never
  part of an address.
- At the socket, the kernel says who connects: whoever runs the server is its operator, others are whom
  `glovebox token add --peer-uid` made of them.
- Browsers log in at `/login` with a code that `glovebox inbox` prints, and then have a cookie.

A request has to name a `host` that the server knows (the loopback, and `serve.hosts`), and must not come from a page of
another origin. What belongs to another tenant looks as if it were not there. More requests than `serve.rate` each second
are answered with 429. A body has at most 4 MiB (413), whoever has no credential yet sends 64 KiB; it comes within a minute,
and without a pause of ten seconds (408).

## Asking for an action

`POST /v1/actions` waits for the end of the action, or until a person has to decide, for at most `wait` seconds. 200: it
ended; its Observation says how. 202: it waits or runs; `location` names it. The server goes on with it whether or not
anybody waits: come back with `GET /v1/actions/ID`, its events, or `POST /v1/actions/ID/resume`, which waits again.

With an `idempotency-key` (in the header or the body), the same request again is the same action, also after a restart. Files
are named by workspace: a name that the operator gave a folder, never a path of the host.

## Pages of lists

A list has `items`, and `next` where there is more: pass it as `after`. A page has 100 entries, or `limit` of them, at most
1000.

## Streams

`text/event-stream`. The `id` of an event is its number in the log of its session, dense from 1; `after=NUMBER`, or the header
`last-event-id` that browsers send by themselves, goes on behind it. `event` is one of `text`, `progress`, `tool`, `state`,
`approval`, `artifact`, `error`, `usage`, `gap`; `data` is JSON. What an entry of the log says beside itself (`artifact`, `error`,
`usage`) comes before it, without an `id`: who breaks off between them gets all of them again. `progress` and `text` have none
either; they are merged, and may be left out, which nothing else is. A comment every 15 seconds shows that a quiet stream
lives. `gap` says that the log is shorter than the reader knew, with a snapshot of what there is. 204: all is over, nothing
will come any more.

## Errors

`application/problem+json` (RFC 9457): `type`, `title`, `status`, `detail`, and of ours `code`, `help`, `retryable`. The codes
are those of the [command line](errors.md).

";

/// The document, as it is committed.
pub(super) fn openapi() -> String {
    let mut text = serde_json::to_string_pretty(&glovebox_server::openapi()).unwrap_or_default();
    text.push('\n');
    text
}

/// The page: how to call, and who may call what.
pub(super) fn page() -> String {
    let document = glovebox_server::openapi();
    let mut page = format!("{MADE}\n\n{INTRODUCTION}");
    let operations = operations(&document);
    let mut roles: Vec<&str> = Vec::new();
    for role in operations.iter().flat_map(|(.., operation)| of(operation)) {
        if !roles.contains(&role) {
            roles.push(role);
        }
    }
    let _ = writeln!(page, "## Who may ask for what\n\n| request | {} | what it does |", roles.join(" | "));
    let _ = writeln!(page, "|---|{}---|", "---|".repeat(roles.len()));
    for (path, method, operation) in &operations {
        let who: Vec<&str> = of(operation).collect();
        // Without a role, it is for everybody, and takes no credential.
        let may = roles.iter().map(|role| if who.is_empty() || who.contains(role) { "yes" } else { "–" });
        let may: Vec<&str> = may.collect();
        let does = cell(operation["summary"].as_str().unwrap_or_default());
        let open = if who.is_empty() { " Needs no credential." } else { "" };
        let _ = writeln!(page, "| `{} {path}` | {} | {does}{open} |", method.to_uppercase(), may.join(" | "));
    }
    page
}

/// Path, method and description of everything that can be asked.
fn operations(document: &Value) -> Vec<(&str, &str, &Value)> {
    let mut all = Vec::new();
    for (path, methods) in document["paths"].as_object().into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            all.push((path.as_str(), method.as_str(), operation));
        }
    }
    all
}

/// The roles that may.
fn of(operation: &Value) -> impl Iterator<Item = &str> {
    operation["x-roles"].as_array().into_iter().flatten().filter_map(Value::as_str)
}
