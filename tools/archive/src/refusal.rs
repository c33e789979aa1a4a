//! Why an entry is not extracted.

/// A reason, as programs and people read it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Refusal {
    /// One of a few words.
    pub reason: Reason,
    /// The same for people.
    pub message: String,
}

impl Refusal {
    pub(crate) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }
}

/// The words for reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// The name can't be a path below the outputs.
    Name,
    /// A symbolic or hard link.
    Link,
    /// A device, a pipe, a socket, or a type that is not known.
    Special,
    /// Another entry has this name.
    Duplicate,
    /// Another entry's name is the same to some file systems, or one is a file
    /// where the other has a folder.
    Collision,
    /// It is encrypted.
    Encrypted,
    /// It is packed in a way that is not read.
    Method,
    /// The archive says two different things of it.
    Contradiction,
    /// Its bytes are another entry's too.
    Overlap,
    /// It is too large.
    Size,
    /// It unpacks to far more than it is.
    Ratio,
    /// Its content is not what the archive says.
    Corrupt,
}
