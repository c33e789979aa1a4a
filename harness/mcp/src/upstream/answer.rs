//! From what a server answers to how the action ended. All of it is a
//! stranger's word, and says so.

use std::os::fd::{AsFd, BorrowedFd};

use data_encoding::BASE64;
use env_contracts::text::escaped_line;
use glovebox_runtime::job::{DescribedArtifact, End, Frame, FrameSink, Limit, ToolFailure};
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock, ResourceContents};
use rustix::fs::{Mode, OFlags};
use serde_json::Value;

/// The longest message of a failure, in bytes; the whole is in the output.
const MESSAGE_MAX: usize = 4096;

/// The longest media type that is kept, in bytes.
const MEDIA_TYPE_MAX: usize = 128;

/// The longest text that is a result by itself, in bytes: what is longer is a
/// file, as it is for other tools.
const TEXT_MAX: usize = 256 << 10;

/// Where the files of an answer go, and how much of them there may be.
pub(super) struct Files<'a> {
    /// The outputs folder; none: the contract has none.
    pub(super) dir: Option<BorrowedFd<'a>>,
    /// Bytes that may still be written.
    pub(super) storage: u64,
    /// Files that may still be made.
    pub(super) inodes: u64,
    /// Who answered, for what is said of each file.
    pub(super) source: &'a str,
}

/// How a call ended.
pub(super) fn end(answer: CallToolResponse, mut files: Files<'_>, frames: &mut dyn FrameSink) -> End {
    let result = match answer {
        CallToolResponse::Complete(result) => result,
        CallToolResponse::InputRequired(_) => {
            return failure(
                "input-required",
                "the server wants to be told more before it goes on, and nobody here tells a server elsewhere anything but the arguments",
            );
        }
        CallToolResponse::Task(_) => {
            return failure("unsupported", "the server went on with a task of its own, which nobody asked it for");
        }
        _ => return failure("unsupported", "the server answered with what is no result of a call"),
    };
    match contents(result, &mut files, frames) {
        Ok(end) | Err(end) => end,
    }
}

fn contents(result: CallToolResult, files: &mut Files<'_>, frames: &mut dyn FrameSink) -> Result<End, End> {
    let mut text = String::new();
    let mut artifacts = Vec::new();
    for (index, block) in result.content.into_iter().enumerate() {
        match block {
            ContentBlock::Text(block) => line(&mut text, &block.text),
            ContentBlock::Image(block) => {
                let bytes = decoded(&block.data)?;
                artifacts.push(files.store(format!("image-{}", index + 1), Some(block.mime_type), &bytes, None)?);
            }
            ContentBlock::Audio(block) => {
                let bytes = decoded(&block.data)?;
                artifacts.push(files.store(format!("audio-{}", index + 1), Some(block.mime_type), &bytes, None)?);
            }
            ContentBlock::Resource(block) => {
                let (uri, media_type, bytes) = match block.resource {
                    ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                        (uri, mime_type, text.into_bytes())
                    }
                    ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                        (uri, mime_type, decoded(&blob)?)
                    }
                    _ => {
                        return Err(failure(
                            "unsupported",
                            "the server answered with a kind of resource that is not known",
                        ));
                    }
                };
                artifacts.push(files.store(format!("resource-{}", index + 1), media_type, &bytes, Some(&uri))?);
            }
            // Where it leads is the server's say, and nobody follows it.
            ContentBlock::ResourceLink(link) => {
                line(&mut text, &format!("[{} is at {}, and was not fetched]", link.name, link.uri));
            }
            _ => return Err(failure("unsupported", "the server answered with a kind of content that is not known")),
        }
    }
    let failed = result.is_error == Some(true);
    let whole = match &result.structured_content {
        Some(data) => data.to_string(),
        None if text.len() > TEXT_MAX && !failed => {
            artifacts.push(files.store("answer".into(), Some("text/plain".into()), text.as_bytes(), None)?);
            text.clear();
            Value::Null.to_string()
        }
        None => Value::String(text.clone()).to_string(),
    };
    // What is data already is not said twice.
    let said = result
        .structured_content
        .as_ref()
        .is_some_and(|data| serde_json::from_str::<Value>(&text).is_ok_and(|text| text == *data));
    if !text.is_empty() && !said {
        frames.frame(Frame::Stdout(text.as_bytes()));
    }
    if failed {
        let mut message = text;
        message.truncate(message.floor_char_boundary(MESSAGE_MAX));
        if message.trim().is_empty() {
            message = "the server says that it failed, and not why".to_owned();
        }
        let details = result.structured_content.map(|data| data.to_string());
        return Ok(End::Failed(ToolFailure { kind: "upstream".into(), message, retryable: false, details }));
    }
    Ok(End::Returned { content: whole, artifacts })
}

/// A failure in words of ours.
pub(super) fn failure(kind: &str, message: &str) -> End {
    End::Failed(ToolFailure { kind: kind.to_owned(), message: message.to_owned(), retryable: false, details: None })
}

fn line(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

fn decoded(data: &str) -> Result<Vec<u8>, End> {
    BASE64
        .decode(data.as_bytes())
        .map_err(|_| failure("bad-answer", "the server answered with a file that is no base64"))
}

impl Files<'_> {
    /// Makes a file of what the server sent. Its name is ours.
    fn store(
        &mut self,
        path: String,
        media_type: Option<String>,
        bytes: &[u8],
        uri: Option<&str>,
    ) -> Result<DescribedArtifact, End> {
        let dir = self.dir.ok_or_else(|| {
            failure("unsupported", "the server answered with a file, and the contract leaves no place for one")
        })?;
        let size = bytes.len() as u64;
        self.storage = self.storage.checked_sub(size).ok_or(End::LimitHit(Limit::Storage))?;
        self.inodes = self.inodes.checked_sub(1).ok_or(End::LimitHit(Limit::Inodes))?;
        write(dir, &path, bytes)
            .map_err(|error| End::HostFailed(format!("cannot keep a file of the answer: {error}")))?;
        let media_type = media_type.filter(|media_type| media_type.len() <= MEDIA_TYPE_MAX);
        let what = uri.map_or_else(String::new, |uri| format!(", as {}", escaped_line(uri)));
        Ok(DescribedArtifact { path, media_type, description: Some(format!("from {}{what}", self.source)) })
    }
}

fn write(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir.as_fd(), name, flags, Mode::from_raw_mode(0o600))?;
    std::fs::File::from(file).write_all(bytes)
}
