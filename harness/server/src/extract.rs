//! What handlers are given: bodies, queries and ids, read strictly and refused
//! with our codes.

use std::str::FromStr;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use env_contracts::{Code, Problem};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::problem::{Failure, usage};

/// A JSON body. Other media types are refused: a form of a foreign page can't
/// send this one without asking first.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        let bytes = json_bytes(request, state).await?;
        // Without a body, everything is as if it had been left out.
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(bytes).map(Self).map_err(|error| Failure(usage(format!("body: {error}"))))
    }
}

/// The bytes of a JSON body.
pub(crate) async fn json_bytes<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Failure> {
    let kind = request.headers().get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default().to_owned());
    let bytes = Bytes::from_request(request, state).await?;
    let json =
        |kind: &String| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json");
    if kind.as_ref().is_some_and(|kind| !json(kind)) || (kind.is_none() && !bytes.is_empty()) {
        return Err(Failure(
            Problem::new(Code::MediaTypeUnsupported, "the body is not `application/json`")
                .with_help("send JSON, with `content-type: application/json`"),
        ));
    }
    Ok(bytes)
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
        let Path(all) = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|rejection| Failure(usage(rejection.body_text())))?;
        let (name, text) = all.into_iter().next().unwrap_or_default();
        text.parse().map(Self).map_err(|error| Failure(usage(format!("{name}: {error}"))))
    }
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
