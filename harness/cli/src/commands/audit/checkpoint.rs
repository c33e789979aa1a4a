//! A checkpoint with its signature, as it is kept in a file.

use std::io::Read as _;
use std::path::Path;

use env_contracts::{Code, Problem};
use glovebox_identity::{CheckpointKey, PublicKey, Signature};
use glovebox_store::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::commands::files;

/// The longest file that is read, in bytes: room for a million sessions.
const MAX_FILE: u64 = 256 << 20;

/// The file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed<'a> {
    schema: SignedSchema,
    /// The bytes that were signed, as they are: nothing of them is understood
    /// before the signature was checked.
    #[serde(borrow)]
    checkpoint: &'a RawValue,
    signature: String,
}

/// The version tag of the file.
#[derive(Serialize, Deserialize)]
enum SignedSchema {
    #[serde(rename = "glovebox/signed-checkpoint/v1")]
    V1,
}

/// The text of the file.
pub(super) fn signed(checkpoint: &Checkpoint, key: &CheckpointKey) -> String {
    let bytes = checkpoint.to_bytes();
    let signature = key.sign(&bytes).to_string();
    let raw = String::from_utf8(bytes).map_err(|error| error.to_string());
    let raw = raw.and_then(|text| RawValue::from_string(text).map_err(|error| error.to_string()));
    let raw = raw.unwrap_or_else(|error| unreachable!("a checkpoint is JSON: {error}"));
    let file = Signed { schema: SignedSchema::V1, checkpoint: &raw, signature };
    let mut text = serde_json::to_string(&file).unwrap_or_else(|error| unreachable!("our own types: {error}"));
    text.push('\n');
    text
}

/// The checkpoint of a file, if the key of this public half signed it.
///
/// # Errors
/// `file-unreadable`, `usage` for what is no key, `signature-invalid`.
pub(super) fn read(path: &Path, key: &str) -> Result<Checkpoint, Problem> {
    let key: PublicKey = key.parse().map_err(|error| Problem::new(Code::Usage, format!("--key: {error}")))?;
    let unreadable = |why: String| Problem::new(Code::FileUnreadable, format!("`{}`: {why}", path.display()));
    let mut text = String::new();
    let file = files::open(path)?;
    file.take(MAX_FILE).read_to_string(&mut text).map_err(|error| unreadable(error.to_string()))?;
    checked(&text, &key)
        .map_err(|problem| Problem { message: format!("`{}`: {}", path.display(), problem.message), ..problem })
}

fn checked(text: &str, key: &PublicKey) -> Result<Checkpoint, Problem> {
    let no_file = |error: serde_json::Error| {
        Problem::new(Code::FileUnreadable, format!("this is no signed checkpoint: {error}"))
            .with_help("name a file that `glovebox audit checkpoint` wrote, whole")
    };
    let Signed { schema: SignedSchema::V1, checkpoint, signature } = serde_json::from_str(text).map_err(no_file)?;
    let signature: Signature =
        signature.parse().map_err(|error: String| Problem::new(Code::SignatureInvalid, error))?;
    let bytes = checkpoint.get().as_bytes();
    key.verify_checkpoint(bytes, &signature).map_err(|error| {
        Problem::of(&error).with_help("take the public half of the key that signed it, and the file as it was written")
    })?;
    Checkpoint::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_signed_is_what_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| CheckpointKey::create(&folder.path().join(name)).unwrap();
        let (key, other) = (make("one"), make("two"));
        let checkpoint: Checkpoint =
            serde_json::from_str(include_str!("../../../../store/golden/checkpoint.v1.json")).unwrap();
        let text = signed(&checkpoint, &key);
        assert_eq!(checked(&text, &key.public()).unwrap(), checkpoint);
        let wrong = |text: &str, key: &CheckpointKey| checked(text, &key.public()).unwrap_err().code;
        assert_eq!(wrong(&text, &other), Code::SignatureInvalid);
        // An event fewer, or a space more, is something else.
        let seq = format!("\"seq\":{}", checkpoint.logs[0].seq);
        assert_eq!(wrong(&text.replacen(&seq, "\"seq\":0", 1), &key), Code::SignatureInvalid);
        assert_eq!(wrong(&text.replacen(&seq, &format!(" {seq}"), 1), &key), Code::SignatureInvalid);
        assert_eq!(wrong(&text[..text.len() - 2], &key), Code::FileUnreadable);
    }

    #[test]
    fn a_file_of_the_first_version_is_still_read() {
        let golden = include_str!("../../../golden/signed-checkpoint.v1.json");
        let key = include_str!("../../../golden/signed-checkpoint.v1.key").trim();
        let checkpoint = checked(golden, &key.parse().unwrap()).unwrap();
        assert_eq!(checkpoint.logs.len(), 1);
    }
}
