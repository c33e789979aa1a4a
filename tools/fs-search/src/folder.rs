//! Lists folders.
//!
//! Not with the standard library: that ends at the first name which is not
//! UTF-8, and would lose all files after it.

use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{Descriptor, DescriptorFlags, DescriptorType, ErrorCode, OpenFlags, PathFlags};

/// A host that reports errors without end must not keep the search from ending.
const MOST_ERRORS: usize = 1_000;

/// What is known of an entry from its listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Folder,
    File,
    Symlink,
    Special,
}

/// What a folder holds.
pub(crate) struct Listing {
    /// Its entries, sorted by name.
    pub(crate) entries: Vec<(String, Kind)>,
    /// What was wrong with those that can't be told.
    pub(crate) errors: Vec<ErrorCode>,
}

/// The mounted folders.
pub(crate) struct Mounts(Vec<(Descriptor, String)>);

impl Mounts {
    pub(crate) fn new() -> Self {
        Self(get_directories())
    }

    /// Lists the folder at an absolute path, through a last symbolic link if `follow`.
    pub(crate) fn list(&self, path: &str, follow: bool) -> Result<Listing, ErrorCode> {
        let (mount, rest) = self.locate(path).ok_or(ErrorCode::NoEntry)?;
        let follow = if follow { PathFlags::SYMLINK_FOLLOW } else { PathFlags::empty() };
        let folder = mount.open_at(follow, rest, OpenFlags::DIRECTORY, DescriptorFlags::READ)?;
        let listing = folder.read_directory()?;
        let (mut entries, mut errors) = (Vec::new(), Vec::new());
        while errors.len() < MOST_ERRORS {
            match listing.read_directory_entry() {
                Ok(None) => break,
                Ok(Some(entry)) => entries.push((entry.name, kind(entry.type_))),
                Err(error) => errors.push(error),
            }
        }
        entries.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Listing { entries, errors })
    }

    /// The innermost mount that holds `path`, and the path below it.
    fn locate<'p>(&self, path: &'p str) -> Option<(&Descriptor, &'p str)> {
        let below = |name: &str| {
            let rest = path.strip_prefix(name.trim_end_matches('/'))?;
            (rest.is_empty() || rest.starts_with('/')).then(|| rest.trim_matches('/'))
        };
        let inside = self.0.iter().filter_map(|(mount, name)| Some((mount, below(name)?)));
        let (mount, rest) = inside.min_by_key(|(_, rest)| rest.len())?;
        Some((mount, if rest.is_empty() { "." } else { rest }))
    }
}

fn kind(listed: DescriptorType) -> Kind {
    match listed {
        DescriptorType::Directory => Kind::Folder,
        DescriptorType::RegularFile => Kind::File,
        DescriptorType::SymbolicLink => Kind::Symlink,
        _ => Kind::Special,
    }
}
