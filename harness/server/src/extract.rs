//! What handlers are given: bodies, queries and ids, read strictly and refused
//! with our codes.

use std::str::FromStr;

use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use env_contracts::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Failure, usage};
use crate::shapes;
use crate::table::Route;

/// A JSON body that is as the document says. Other media types are refused: a
/// form of a foreign page can't send this one without asking first.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let (_, value) = received(request, state).await?;
        Ok(Self(value))
    }
}

/// A JSON body, and its bytes.
pub(crate) async fn received<T: DeserializeOwned, S: Send + Sync>(
    request: Request,
    state: &S,
) -> Result<(Bytes, T), Failure> {
    let route = request.extensions().get::<&'static Route>().copied();
    let bytes = json_bytes(request, state).await?;
    // Without a body, everything is as if it had been left out.
    let bytes = if bytes.is_empty() { Bytes::from_static(b"{}") } else { bytes };
    // Before its schema, because what the type says of a fault is easier to read.
    let value = serde_json::from_slice(&bytes).map_err(|error| usage(format!("body: {error}")))?;
    if let Some(route) = route {
        shapes::check(route, &bytes)?;
    }
    Ok((bytes, value))
}

async fn json_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Failure> {
    let (json, named) = (is_json(request.headers()), request.headers().contains_key(header::CONTENT_TYPE));
    let bytes = Bytes::from_request(request, state).await?;
    if !json && (named || !bytes.is_empty()) {
        return Err(not_json().into());
    }
    Ok(bytes)
}

/// Whether a request says that its body is JSON.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// The error of a body of another media type.
pub(crate) fn not_json() -> Problem {
    Problem::new(Code::MediaTypeUnsupported, "the body is not `application/json`")
        .with_help("send JSON, with `content-type: application/json`")
}

/// What stands behind the question mark.
pub(crate) struct Args<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Args<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Query(args) = Query::from_request_parts(parts, state).await?;
        Ok(Self(args))
    }
}

/// An id in the path.
pub(crate) struct In<T>(pub(crate) T);

impl<T: FromStr<Err = String> + Send, S: Send + Sync> FromRequestParts<S> for In<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let (name, text) = in_path(parts, state).await?.into_iter().next().unwrap_or_default();
        text.parse().map(Self).map_err(|error| Failure(usage(format!("{name}: {error}"))))
    }
}

/// What stands in the places of a path, as it came.
pub(crate) struct Names<const N: usize>(pub(crate) [String; N]);

impl<S: Send + Sync, const N: usize> FromRequestParts<S> for Names<N> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let all: Vec<String> = in_path(parts, state).await?.into_iter().map(|(_, text)| text).collect();
        all.try_into().map(Self).map_err(|_| Failure(usage("the path has other places")))
    }
}

/// The places of a path by their names.
async fn in_path<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<Vec<(String, String)>, Failure> {
    let Path(all) = Path::from_request_parts(parts, state)
        .await
        .map_err(|rejection: PathRejection| Failure(usage(rejection.body_text())))?;
    Ok(all)
}

/// A JSON answer. Never kept by anybody on the way.
pub(crate) struct Json<T>(pub(crate) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        match serde_json::to_vec(&self.0) {
            Ok(text) => {
                let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "no-store")];
                (headers, text).into_response()
            }
            Err(error) => Failure(Problem::new(Code::BackendError, error.to_string())).into_response(),
        }
    }
}
