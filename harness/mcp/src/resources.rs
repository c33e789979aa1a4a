//! What actions made, as resources: `artifact:ACTION/N` is the N-th artifact of
//! an action, `artifact:ACTION/data` its whole result.

use env_contracts::{Code, Id, Principal, Problem};
use glovebox_artifacts::ArtifactUri;
use glovebox_plane::ActionService;
use rmcp::ErrorData;
use rmcp::model::{MetaObject, ReadResourceResult, ResourceContents};
use serde_json::{Value, json};

use crate::answer::{TRUST, unknown};

/// The most bytes of a resource that are read: a client holds all of it, in
/// base64, in one message.
const MAX_READ: u64 = 4 << 20;

/// The scheme of our resources. A path would be taken for one of the client's
/// own files.
const SCHEME: &str = "artifact:";

/// What an artifact is called as a resource.
pub(crate) fn uri_of(artifact: &str) -> String {
    format!("{SCHEME}{}", artifact.strip_prefix("artifact/").unwrap_or(artifact))
}

/// What the whole result of an action is called.
pub(crate) fn data_uri(action: &Id) -> String {
    format!("{SCHEME}{action}/data")
}

/// The template of all of them.
pub(crate) const TEMPLATE: &str = "artifact:{action}/{number}";

/// Reads one, for who may see the action that made it.
///
/// # Errors
/// `-32602` alike for what does not exist and for what is another's, and for
/// what is too large.
pub(crate) async fn read(
    service: &ActionService,
    principal: &Principal,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let nowhere = || {
        let message = format!("there is no resource `{}`", uri.escape_debug());
        let mut error = unknown(&Problem::new(Code::ArtifactUnknown, message));
        // Where clients look for it.
        if let Some(Value::Object(data)) = &mut error.data {
            data.insert("uri".to_owned(), uri.into());
        }
        error
    };
    let path = uri.strip_prefix(SCHEME).ok_or_else(nowhere)?;
    let (action, which) = path.split_once('/').ok_or_else(nowhere)?;
    let action: Id = action.parse().map_err(|_| nowhere())?;
    let view = service.action(principal, &action).map_err(|_| nowhere())?;
    let (bytes, media_type) = if which == "data" {
        let seen = view.observation.ok_or_else(nowhere)?;
        (seen.data.to_string().into_bytes(), "application/json".to_owned())
    } else {
        let artifact: ArtifactUri = format!("artifact/{path}").parse().map_err(|_| nowhere())?;
        let reader = service.artifacts().get(&artifact).await.map_err(|error| failed(&Problem::of(&error), nowhere))?;
        let (size, media_type) = (reader.record().size, reader.record().media_type.clone());
        if size > MAX_READ {
            return Err(too_large(uri, size, &artifact));
        }
        let bytes = reader.into_bytes(MAX_READ).await.map_err(|error| failed(&Problem::of(&error), nowhere))?;
        (bytes, media_type)
    };
    let mut meta = MetaObject::new();
    meta.insert(TRUST.to_owned(), json!("untrusted"));
    let (uri, mime_type, meta) = (uri.to_owned(), Some(media_type), Some(meta));
    let contents = match String::from_utf8(bytes) {
        Ok(text) => ResourceContents::TextResourceContents { uri, mime_type, text, meta },
        Err(error) => {
            let blob = data_encoding::BASE64.encode(error.as_bytes());
            ResourceContents::BlobResourceContents { uri, mime_type, blob, meta }
        }
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn failed(problem: &Problem, nowhere: impl Fn() -> ErrorData) -> ErrorData {
    match problem.code {
        Code::ArtifactUnknown => nowhere(),
        _ => ErrorData::internal_error(problem.message.clone(), Some(json!(problem))),
    }
}

fn too_large(uri: &str, size: u64, artifact: &ArtifactUri) -> ErrorData {
    let message = format!("`{uri}` has {size} bytes; at most {MAX_READ} are read here");
    let help = format!("hand it to a tool by its name, or `glovebox artifacts get {artifact} --out FILE`");
    ErrorData::invalid_params(message, Some(json!({ "code": "limit-hit", "help": help })))
}
