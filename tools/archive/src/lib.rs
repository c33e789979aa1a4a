//! Archives that nobody vouches for: what is in them, what of it can be
//! extracted, and its content within limits.
//!
//! Zip, tar and gzipped tar, told apart by their content. Modes, owners and
//! times are not looked at: what comes out is plain bytes under plain names.
//! What an archive says twice must be the same both times; where programs
//! disagree about what an archive holds, it is refused.
//!
//! ```
//! use glovebox_archive::{Archive, Format};
//!
//! // No entries, and what ends a zip.
//! let bytes = b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
//! let archive = Archive::new(std::io::Cursor::new(bytes), bytes.len() as u64).unwrap();
//! assert_eq!((archive.format(), archive.entries().len()), (Format::Zip, 0));
//! ```

mod content;
mod names;
mod refusal;
mod tape;
mod zip;

pub use content::{MOST_FILE, MOST_RATIO, MOST_TOTAL};
pub use refusal::{Reason, Refusal};

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use glovebox_guest::{Failure, open};

/// The most entries of an archive: what is known of each is held in memory.
pub const MOST_ENTRIES: usize = 10_000;

/// What an archive is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A zip.
    Zip,
    /// A tar.
    Tar,
    /// A tar in gzip.
    #[serde(rename = "tar.gz")]
    TarGz,
}

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link.
    Link,
    /// Another name of a file.
    HardLink,
    /// Anything else.
    Special,
}

/// One entry of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name for people: what can't be shown is escaped.
    pub name: String,
    /// The path that the name means, where it can be one.
    pub path: Option<String>,
    /// What it is.
    pub kind: Kind,
    /// How long its content is, as the archive says.
    pub size: u64,
    /// Where a link leads, where the archive says so.
    pub target: Option<String>,
    /// Why it is not extracted.
    pub refused: Option<Refusal>,
}

impl Entry {
    fn new(name: &[u8], kind: Kind, size: u64) -> Self {
        let (path, mut refused) = match names::path(name) {
            Ok(path) => (Some(path), None),
            Err(refusal) => (None, Some(refusal)),
        };
        let refuse = |reason, why: &str| Some(Refusal::new(reason, why));
        refused = refused.or_else(|| match kind {
            Kind::Link => refuse(Reason::Link, "symbolic links are not made"),
            Kind::HardLink => refuse(Reason::Link, "hard links are not made"),
            Kind::Special => refuse(Reason::Special, "it is neither a file nor a folder"),
            Kind::File if path.as_deref() == Some("") => refuse(Reason::Name, "the name is a folder's"),
            Kind::File if size > MOST_FILE => {
                refuse(Reason::Size, &format!("it has {size} bytes; at most {MOST_FILE} are extracted"))
            }
            Kind::Folder if size > 0 => refuse(Reason::Contradiction, "it is a folder with content"),
            Kind::File | Kind::Folder => None,
        });
        Self { name: names::shown(name), path, kind, size, target: None, refused }
    }

    fn refuse(&mut self, reason: Reason, why: impl Into<String>) {
        if self.refused.is_none() {
            self.refused = Some(Refusal::new(reason, why));
        }
    }
}

/// Why an archive as a whole is not read, in words.
#[derive(Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is no archive of a kind that is read.
    Unknown(String),
    /// It is one, and broken or built to deceive.
    Damaged(String),
    /// There is more in it than is read.
    Large(String),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Unknown(why) => Self::invalid(why),
            Fault::Damaged(why) => Self::conflict(format!("the archive is damaged or built to deceive: {why}")),
            Fault::Large(why) => Self::conflict(format!("the archive is too large: {why}")),
        }
    }
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Self::Damaged("it ends too early".to_owned()),
            io::ErrorKind::FileTooLarge => Self::Large(error.to_string()),
            _ => Self::Damaged(error.to_string()),
        }
    }
}

/// An archive, and what is in it.
#[derive(Debug)]
pub struct Archive<R> {
    file: R,
    size: u64,
    format: Format,
    entries: Vec<Entry>,
    /// Where the content lies, of a zip's entries.
    places: Vec<zip::Place>,
}

impl Archive<File> {
    /// Opens an archive that a caller named.
    ///
    /// # Errors
    /// A [`Failure`] that says what it is instead.
    pub fn open(path: &str) -> Result<Self, Failure> {
        let (file, size) = open(path)?;
        Ok(Self::new(file, size)?)
    }
}

impl<R: Read + Seek> Archive<R> {
    /// Reads what is in an archive of `size` bytes.
    ///
    /// # Errors
    /// A [`Fault`] where the whole of it can't be believed.
    pub fn new(mut file: R, size: u64) -> Result<Self, Fault> {
        let format = format(&mut file)?;
        let (mut entries, places) = match format {
            Format::Zip => zip::index(&mut file, size)?,
            Format::Tar | Format::TarGz => (tape::index(&mut file, size, format)?, Vec::new()),
        };
        names::refuse_collisions(&mut entries);
        Ok(Self { file, size, format, entries, places })
    }

    /// What it is.
    pub fn format(&self) -> Format {
        self.format
    }

    /// What is in it, in its order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Reads the content of the entries that are `wanted`, and refuses those
    /// whose content is not what the archive says.
    ///
    /// # Errors
    /// A [`Fault`] where they have more bytes than are extracted together.
    pub fn verify(&mut self, wanted: &[usize]) -> Result<(), Fault> {
        let files = wanted.iter().filter(|index| self.is_file(**index));
        let total: u64 = files.map(|index| self.entries[*index].size).sum();
        if total > MOST_TOTAL {
            return Err(Fault::Large(format!(
                "the files have {total} bytes together; at most {MOST_TOTAL} are extracted at once: choose some with `only`"
            )));
        }
        for index in wanted {
            // Those of a tar were all there when it was read.
            let place = self.places.get(*index).filter(|_| self.is_file(*index));
            if let Some(Err(refusal)) = place.map(|place| content::verify(&mut self.file, place)) {
                self.entries[*index].refused = Some(refusal);
            }
        }
        Ok(())
    }

    /// Hands out the content of the files among the `wanted`, those that are
    /// not refused, in the order of the archive.
    ///
    /// # Errors
    /// Whatever `put` answers, or a [`Fault`] as a failure.
    pub fn extract(
        &mut self,
        wanted: &[usize],
        mut put: impl FnMut(&Entry, &mut dyn Read) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let files: Vec<usize> = wanted.iter().copied().filter(|index| self.is_file(*index)).collect();
        if self.format == Format::Zip {
            for index in files {
                let mut content = content::reader(&mut self.file, &self.places[index]).map_err(Fault::from)?;
                put(&self.entries[index], &mut content)?;
            }
            return Ok(());
        }
        let entries = &self.entries;
        tape::walk(&mut self.file, self.size, self.format, &mut |index, content| match entries.get(index) {
            Some(entry) if files.binary_search(&index).is_ok() => put(entry, content),
            _ => Ok(()),
        })
    }

    fn is_file(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|entry| entry.kind == Kind::File && entry.refused.is_none())
    }
}

/// What a file is, from its first bytes.
fn format(file: &mut (impl Read + Seek)) -> Result<Format, Fault> {
    let mut head = Vec::new();
    file.by_ref().take(tape::BLOCK as u64).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
        Ok(Format::Zip)
    } else if head.starts_with(b"\x1f\x8b") {
        Ok(Format::TarGz)
    } else if tape::begins(&head) {
        Ok(Format::Tar)
    } else {
        Err(Fault::Unknown("it is no zip, tar or tar.gz: no other archives are read".to_owned()))
    }
}

#[cfg(test)]
#[path = "tape_tests.rs"]
mod tape_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
#[path = "zip_tests.rs"]
mod zip_tests;
