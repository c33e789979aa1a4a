//! Errors as this door answers them: problem+json with our codes.

use axum::extract::rejection::{BytesRejection, FormRejection, QueryRejection};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use env_contracts::{Code, Diagnose as _, Problem};
use schemars::JsonSchema;
use serde::Serialize;

/// The media type of RFC 9457.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// When a client may try again, in seconds: what is busy now is rarely free
/// at once.
const RETRY_AFTER: &str = "1";

/// An error of a handler.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Problem);

/// What a handler answers.
pub(crate) type Answered<T> = Result<T, Failure>;

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

/// An error on the wire (RFC 9457), with what makes it ours.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ProblemBody<'a> {
    /// A name for this kind of error: `urn:glovebox:problem:CODE`.
    r#type: String,
    /// What the code means.
    title: &'a str,
    /// The HTTP status.
    status: u16,
    /// What went wrong, naming the object at fault.
    detail: &'a str,
    /// The stable name of this kind of error.
    code: Code,
    /// What the reader can do now.
    help: &'a str,
    /// Whether the same request can succeed later without being changed.
    retryable: bool,
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let problem = self.0;
        let status = problem.code.http_status();
        // What an Observation says with 200 is an error where there is none.
        let status = if status < 400 { 409 } else { status };
        let body = ProblemBody {
            r#type: format!("urn:glovebox:problem:{}", problem.code),
            title: problem.code.meaning().trim(),
            status,
            detail: &problem.message,
            code: problem.code,
            help: &problem.help,
            retryable: problem.retryable(),
        };
        let text = serde_json::to_vec(&body).unwrap_or_default();
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, text).into_response();
        response.extensions_mut().insert(problem.code);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"glovebox\""));
        }
        response
    }
}

/// What was sent can't be understood.
pub(crate) fn usage(message: impl Into<String>) -> Problem {
    Problem::new(Code::Usage, message).with_help("`/openapi.json` describes every request")
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self(usage(rejection.body_text()))
    }
}

impl From<FormRejection> for Failure {
    fn from(rejection: FormRejection) -> Self {
        Self(usage(rejection.body_text()))
    }
}

impl From<BytesRejection> for Failure {
    fn from(rejection: BytesRejection) -> Self {
        Self(usage(rejection.body_text()))
    }
}
