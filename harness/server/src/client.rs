//! Asking a server of the same user, through its socket.

use std::path::Path;

use env_contracts::{Code, Problem};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::Request;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::UnixStream;

/// The longest answer that is read, in bytes.
const LONGEST: usize = 16 << 20;

/// Sends a request to the server at a socket. `body` is JSON.
///
/// # Errors
/// `backend-unavailable` where nobody listens there; the problem that the
/// server answers.
pub async fn ask(socket: &Path, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Problem> {
    let gone = |why: String| {
        Problem::new(Code::BackendUnavailable, format!("no server answers at `{}`: {why}", socket.display()))
            .with_help("start one: `glovebox serve`")
    };
    let stream = UnixStream::connect(socket).await.map_err(|error| gone(error.to_string()))?;
    let broken = |error: hyper::Error| gone(error.to_string());
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    tokio::spawn(connection);
    let bytes = body.map(|body| serde_json::to_vec(body).unwrap_or_default()).unwrap_or_default();
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost")
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from(bytes)))
        .map_err(|error| Problem::new(Code::Usage, error.to_string()))?;
    let response = sender.send_request(request).await.map_err(broken)?;
    let status = response.status();
    let collected = Limited::new(response.into_body(), LONGEST).collect().await;
    let answer = collected.map_err(|error| gone(error.to_string()))?.to_bytes();
    let answer: Value = serde_json::from_slice(&answer).map_err(|error| gone(error.to_string()))?;
    if status.is_success() {
        return Ok(answer);
    }
    let text = |field: &str| answer[field].as_str().unwrap_or_default().to_owned();
    let code: Code = serde_json::from_value(answer["code"].clone()).unwrap_or(Code::BackendError);
    Err(Problem::new(code, text("detail")).with_help(text("help")))
}
