//! Bodies of requests: bounded in length and in time, and whole before a
//! handler sees them.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use env_contracts::{Code, Problem};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame, Incoming, SizeHint};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::problem::usage;

/// The longest body, in bytes: a call with all the arguments that any tool
/// takes.
pub(crate) const MAX_BODY: usize = 4 << 20;

/// The longest of somebody who is not known yet, in bytes: a login's.
pub(crate) const MAX_OF_STRANGERS: usize = 64 << 10;

/// How long a client may send nothing, as for the head.
const PAUSE: Duration = Duration::from_secs(10);

/// How long a body may take: the longest one over a slow line.
const WHOLE: Duration = Duration::from_secs(60);

/// How long one may go on that is under way when the server stops.
const LAST: Duration = Duration::from_secs(1);

/// How much is read of a body that nobody wants, and for how long. A client
/// that is still sending hears the answer only if somebody listens.
const LEFT: usize = 8 << 20;
const LISTENING: Duration = Duration::from_secs(2);

/// The request with all of its body in memory, where that has no more than
/// `most` bytes.
///
/// # Errors
/// `body-too-large`, at once where the client says its length; `body-too-slow`;
/// `usage` for one that breaks off.
pub(crate) async fn whole(request: Request, most: usize, ending: &CancellationToken) -> Result<Request, Problem> {
    let (parts, mut body) = request.into_parts();
    if body.is_end_stream() {
        return Ok(Request::from_parts(parts, body));
    }
    let too_large = || Problem::new(Code::BodyTooLarge, format!("a body has no more than {most} bytes here"));
    if body.size_hint().lower() > most as u64 {
        return Err(too_large());
    }
    let mut bytes = BytesMut::new();
    let mut until = Instant::now() + WHOLE;
    let mut stopping = false;
    loop {
        let frame = tokio::select! {
            frame = tokio::time::timeout_at(until.min(Instant::now() + PAUSE), body.frame()) => frame,
            () = ending.cancelled(), if !stopping => {
                stopping = true;
                until = until.min(Instant::now() + LAST);
                continue;
            }
        };
        let Some(frame) = frame.map_err(|_| slow(bytes.len()))? else { break };
        let frame = frame.map_err(|error| usage(format!("the body broke off: {error}")))?;
        let Ok(data) = frame.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_large());
        }
        bytes.extend_from_slice(&data);
    }
    Ok(Request::from_parts(parts, Body::from(bytes.freeze())))
}

fn slow(came: usize) -> Problem {
    Problem::new(Code::BodyTooSlow, format!("after {came} bytes of it, the rest of the body did not come in time"))
}

/// A body as it comes. What is left of it when it is answered is read and
/// forgotten: closing on a client that still sends would take the answer from
/// it.
pub(crate) struct Coming {
    body: Option<Incoming>,
    /// Whether the client sends nothing before it is told to.
    waits: bool,
}

impl Coming {
    /// The body of a request.
    pub(crate) fn of(request: hyper::Request<Incoming>) -> hyper::Request<Self> {
        let waits = request.headers().contains_key(hyper::header::EXPECT);
        request.map(|body| Self { body: Some(body), waits })
    }
}

impl hyper::body::Body for Coming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.waits = false;
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::new, hyper::body::Body::size_hint)
    }
}

impl Drop for Coming {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !self.waits && !body.is_end_stream()) {
            tokio::spawn(tokio::time::timeout(LISTENING, forget(body)));
        }
    }
}

async fn forget(mut body: Incoming) {
    let mut left = LEFT;
    while let Some(Ok(frame)) = body.frame().await {
        left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        if left == 0 {
            return;
        }
    }
}
