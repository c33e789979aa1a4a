//! Who looks at a page, and the forms that they send.

use axum::extract::{Form, FromRequest, FromRequestParts, Request};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use env_contracts::{Code, Digest, Problem};
use maud::{Markup, html};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::layout::Refused;
use crate::auth::{Caller, cookie};
use crate::problem::Failure;
use crate::state::App;

/// The field of a form that holds its token.
const TOKEN: &str = "form_token";

/// Somebody who looks at a page.
pub(super) struct Visitor {
    pub(super) caller: Caller,
    /// What every form of theirs has to hold. Only a page of ours can know it.
    token: String,
}

impl Visitor {
    /// The field of a form that shows that it is ours.
    pub(super) fn token_field(&self) -> Markup {
        html! { input type="hidden" name=(TOKEN) value=(self.token); }
    }
}

/// The token of a login's forms: made from its cookie, so that nothing has to
/// be kept, and saying nothing about it.
fn token_of(headers: &HeaderMap) -> String {
    let cookie = cookie(headers).unwrap_or_default();
    Digest::of(format!("glovebox/form/v1\0{cookie}").as_bytes()).to_string()
}

impl FromRequestParts<App> for Visitor {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        let token = token_of(&parts.headers);
        let caller = Caller::from_request_parts(parts, app).await.map_err(|failure| Refused::from(failure.0))?;
        Ok(Self { caller, token })
    }
}

/// Something of a request for a page: where it can't be read, a page says so.
pub(super) struct OnPage<T>(pub(super) T);

impl<T: FromRequestParts<App, Rejection = Failure>> FromRequestParts<App> for OnPage<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Refused> {
        T::from_request_parts(parts, app).await.map(Self).map_err(|failure| Refused::from(failure.0))
    }
}

/// A form that somebody sent. Empty fields are as if they had been left out.
pub(super) struct Sent<T>(pub(super) Visitor, pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Sent<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, app: &App) -> Result<Self, Refused> {
        let (mut parts, body) = request.into_parts();
        let visitor = Visitor::from_request_parts(&mut parts, app).await?;
        let mut fields = fields(Request::from_parts(parts, body), app).await?;
        let given = fields.remove(TOKEN);
        // Who came without a cookie was sent by no page.
        if visitor.caller.by_cookie && !same(given.as_ref(), &visitor.token) {
            let problem = Problem::new(Code::OriginRefused, "the form is not one of this login");
            return Err(problem.with_help("load the page again, and send its form").into());
        }
        Ok(Self(visitor, read(fields)?))
    }
}

/// Compared by digest: how long that takes says nothing about the token.
fn same(given: Option<&Value>, token: &str) -> bool {
    given.and_then(Value::as_str).is_some_and(|given| Digest::of(given.as_bytes()) == Digest::of(token.as_bytes()))
}

/// The fields of a form that were filled in.
pub(super) async fn fields(request: Request, app: &App) -> Result<Map<String, Value>, Refused> {
    let form = Form::<Vec<(String, String)>>::from_request(request, app).await;
    let Form(pairs) = form.map_err(|rejection| Problem::new(Code::Usage, rejection.body_text()))?;
    // Browsers send lines of a text with the ends of lines of another age.
    let filled = pairs.into_iter().map(|(name, text)| (name, text.replace("\r\n", "\n")));
    Ok(filled.filter(|(_, text)| !text.trim().is_empty()).map(|(name, text)| (name, Value::String(text))).collect())
}

/// Reads them.
pub(super) fn read<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, Refused> {
    serde_json::from_value(Value::Object(fields))
        .map_err(|error| Problem::new(Code::Usage, format!("form: {error}")).into())
}
