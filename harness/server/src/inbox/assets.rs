//! Styles and scripts. They are named by their content, so that a browser
//! keeps each for ever and never has an old one.

use std::sync::LazyLock;

use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use env_contracts::{Code, Digest, Problem};

use crate::extract::Names;
use crate::problem::Answered;

/// A file that pages use.
pub(super) struct Asset {
    /// Where it is.
    pub(super) path: String,
    kind: &'static str,
    text: &'static str,
}

impl Asset {
    fn new(stem: &str, extension: &str, kind: &'static str, text: &'static str) -> Self {
        let digest = Digest::of(text.as_bytes());
        Self { path: format!("/assets/{stem}-{}.{extension}", digest.short()), kind, text }
    }
}

pub(super) static STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("pages", "css", "text/css; charset=utf-8", include_str!("../../assets/pages.css")));
pub(super) static INBOX: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("inbox", "js", "text/javascript; charset=utf-8", include_str!("../../assets/inbox.js"))
});
pub(super) static SESSION: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("session", "js", "text/javascript; charset=utf-8", include_str!("../../assets/session.js"))
});
pub(super) static ICON: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg")));

pub(super) async fn asset(Names([name]): Names<1>) -> Answered<Response> {
    let wanted = format!("/assets/{name}");
    let all = [&*STYLE, &*INBOX, &*SESSION, &*ICON];
    let Some(asset) = all.into_iter().find(|asset| asset.path == wanted) else {
        return Err(Problem::new(Code::RouteUnknown, format!("there is no file `{wanted}`")).into());
    };
    let headers = [
        (header::CONTENT_TYPE, asset.kind),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, asset.text).into_response())
}
