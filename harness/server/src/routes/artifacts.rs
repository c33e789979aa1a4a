//! Artifacts, also parts of them.

use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use env_contracts::{Artifact, Code, Id, Problem};
use futures_util::stream;
use glovebox_artifacts::{ArtifactReader, ArtifactUri};

use super::Paged;
use crate::auth::Caller;
use crate::extract::{In, Json, Names};
use crate::problem::{Answered, usage};
use crate::state::App;
use crate::table::Answer::{Json as Gives, Ranges as Sends};
use crate::table::{Route, SEES, schema};

pub(super) const ROUTES: &[Route] = &[
    Route::get("listArtifacts", "/v1/actions/{action}/artifacts", SEES, "What an action made.", Gives(schema::<Paged<Artifact>>), || get(list)),
    Route::get("getArtifact", "/v1/artifacts/{action}/{number}", SEES, "An artifact's bytes; `range` gives a part of them. They come from a guest: they are sent as a file to keep, never as a page.", Sends, || get(one)).headers(&[("range", schema::<String>, "`bytes=FIRST-LAST`: a part of it.")]),
];

async fn list(caller: Caller, In(id): In<Id>) -> Answered<Json<Paged<Artifact>>> {
    let view = caller.service.action(&caller.principal, &id)?;
    Ok(Json(Paged::whole(view.observation.map(|observation| observation.artifacts).unwrap_or_default())))
}

async fn one(
    State(_): State<App>,
    caller: Caller,
    Names([action, number]): Names<2>,
    headers: HeaderMap,
) -> Answered<Response> {
    let (record, reader) = open(&caller, &action, &number).await?;
    let etag = format!("\"{}\"", record.sha256);
    let mut response = if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        // A part of something else is worse than all of it.
        let same = headers.get(header::IF_RANGE).is_none_or(|known| known.as_bytes() == etag.as_bytes());
        match headers.get(header::RANGE).filter(|_| same).map(|range| part(range, record.size)) {
            None | Some(Part::All) => whole(reader, record.size),
            Some(Part::Bytes(first, last)) => some(&caller, record.uri.clone(), first, last, record.size),
            Some(Part::Beyond) => {
                let all = format!("bytes */{}", record.size);
                (StatusCode::RANGE_NOT_SATISFIABLE, [(header::CONTENT_RANGE, all)]).into_response()
            }
        }
    };
    let headers = response.headers_mut();
    let text = |text: &str| HeaderValue::from_str(text).ok();
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox; default-src 'none'"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.extend(text(&etag).map(|etag| (header::ETAG, etag)));
    let kind = header::HeaderName::from_static("x-artifact-media-type");
    headers.extend(text(&record.media_type).map(|value| (kind, value)));
    Ok(response)
}

/// An artifact of an action that its reader may see.
pub(crate) async fn open(
    caller: &Caller,
    action: &str,
    number: &str,
) -> Result<(glovebox_artifacts::ArtifactRecord, ArtifactReader), Problem> {
    let uri: ArtifactUri =
        format!("artifact/{action}/{number}").parse().map_err(|_| usage("there is no artifact of such a name"))?;
    let unknown = || Problem::new(Code::ArtifactUnknown, format!("there is no artifact `{uri}`"));
    let id: Id = action.parse().map_err(|_| unknown())?;
    caller.service.action(&caller.principal, &id).map_err(|problem| match problem.code {
        Code::ActionUnknown => unknown(),
        _ => problem,
    })?;
    let reader = caller.service.artifacts().get(&uri).await.map_err(|error| Problem::of(&error))?;
    Ok((reader.record().clone(), reader))
}

/// How much of a part is read in one go, in bytes.
const PIECE: usize = 256 << 10;

/// Which part is asked for.
enum Part {
    All,
    Bytes(u64, u64),
    Beyond,
}

/// One range of bytes; several, and what is none, give all.
fn part(range: &HeaderValue, size: u64) -> Part {
    let one = range.to_str().ok().and_then(|text| text.strip_prefix("bytes=")?.split_once('-'));
    let Some((first, last)) = one else { return Part::All };
    let last_byte = size.saturating_sub(1);
    match (first.trim().parse::<u64>(), last.trim().parse::<u64>()) {
        _ if last.contains(',') => Part::All,
        (Ok(first), _) if first >= size => Part::Beyond,
        (Ok(first), Ok(last)) if first <= last => Part::Bytes(first, last.min(last_byte)),
        (Ok(first), Err(_)) if last.trim().is_empty() => Part::Bytes(first, last_byte),
        (Err(_), Ok(0)) if first.trim().is_empty() => Part::Beyond,
        (Err(_), Ok(tail)) if first.trim().is_empty() && size > 0 => Part::Bytes(size.saturating_sub(tail), last_byte),
        _ => Part::All,
    }
}

pub(crate) fn whole(reader: ArtifactReader, size: u64) -> Response {
    let chunks = stream::unfold(Some(reader), |reader| async move {
        let mut reader = reader?;
        match reader.next_chunk().await {
            Ok(chunk) => chunk.map(|chunk| (Ok(chunk), Some(reader))),
            // Damaged content ends the answer before its end.
            Err(error) => Some((Err(std::io::Error::other(error)), None)),
        }
    });
    ([(header::CONTENT_LENGTH, size)], Bytes::from_stream(chunks)).into_response()
}

fn some(caller: &Caller, uri: ArtifactUri, first: u64, last: u64, size: u64) -> Response {
    let store = caller.service.artifacts().clone();
    let chunks = stream::unfold(Some(first), move |at| {
        let (store, uri) = (store.clone(), uri.clone());
        async move {
            let at = at.filter(|at| *at <= last)?;
            let most = usize::try_from(last - at + 1).unwrap_or(PIECE).min(PIECE);
            match store.range(&uri, at, most).await {
                Ok(bytes) if bytes.is_empty() => None,
                Ok(bytes) => {
                    let next = at + bytes.len() as u64;
                    Some((Ok(bytes), Some(next)))
                }
                Err(error) => Some((Err(std::io::Error::other(error)), None)),
            }
        }
    });
    let headers = [
        (header::CONTENT_RANGE, format!("bytes {first}-{last}/{size}")),
        (header::CONTENT_LENGTH, (last - first + 1).to_string()),
    ];
    (StatusCode::PARTIAL_CONTENT, headers, Bytes::from_stream(chunks)).into_response()
}
