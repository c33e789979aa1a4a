//! What an action wrote, by byte offset: also while it runs.

use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use env_contracts::Id;
use glovebox_plane::{MAX_OUTPUT_CHUNK, OutputChunk, OutputStream};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::auth::Caller;
use crate::extract::{Args, Names};
use crate::problem::{Answered, usage};
use crate::table::{Answer, Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[Route::get(
    "getOutput",
    "/v1/actions/{action}/output/{stream}",
    SEES,
    "What an action wrote to `stdout` or `stderr`, from a byte offset on. The headers say where the bytes begin, how many there are until now, how many before them are nowhere, and whether more can come.",
    Answer::Bytes,
    || get(output),
)
.query(schema::<From>)];

/// Which part.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct From {
    /// The first byte, counted from 0.
    offset: Option<u64>,
    /// How many seconds to wait where there is nothing yet.
    #[schemars(range(min = 0, max = 50))]
    wait: Option<u32>,
}

async fn output(caller: Caller, Names([id, stream]): Names<2>, Args(from): Args<From>) -> Answered<Response> {
    let id: Id = id.parse().map_err(|error| usage(format!("action: {error}")))?;
    let stream = match stream.as_str() {
        "stdout" => OutputStream::Stdout,
        "stderr" => OutputStream::Stderr,
        _ => return Err(usage("stream: it is `stdout` or `stderr`").into()),
    };
    let offset = from.offset.unwrap_or_default();
    let wait = super::wait(from.wait.unwrap_or_default())?;
    let (service, principal) = (&caller.service, &caller.principal);
    let mut moved = service.output_moved(principal, &id)?;
    let more = async {
        loop {
            let chunk = service.output(principal, &id, stream, offset, MAX_OUTPUT_CHUNK).await;
            if chunk.as_ref().map_or(true, |chunk| chunk.ended || !chunk.bytes.is_empty()) {
                return chunk;
            }
            moved.moved().await;
        }
    };
    let chunk = match tokio::time::timeout(wait, more).await {
        Ok(chunk) => chunk?,
        Err(_) => service.output(principal, &id, stream, offset, MAX_OUTPUT_CHUNK).await?,
    };
    Ok(answer(chunk))
}

fn answer(chunk: OutputChunk) -> Response {
    let ended = if chunk.ended { "true" } else { "false" };
    let OutputChunk { offset, total, omitted, bytes, .. } = chunk;
    let headers = [
        // Bytes of a guest: never anything that a browser would carry out.
        ("content-type", HeaderValue::from_static("application/octet-stream")),
        ("x-content-type-options", HeaderValue::from_static("nosniff")),
        ("cache-control", HeaderValue::from_static("no-store")),
        ("x-output-offset", offset.into()),
        ("x-output-total", total.into()),
        ("x-output-omitted", omitted.into()),
        ("x-output-ended", HeaderValue::from_static(ended)),
    ];
    (headers, bytes).into_response()
}
