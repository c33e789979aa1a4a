//! Which entries ignore files exclude.

use std::fs::File;
use std::io::{self, Read as _};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The largest ignore file that is read. Real ones have a few kilobytes.
const LARGEST: u64 = 256 << 10;

/// The ignore files of one folder.
#[derive(Default)]
pub(crate) struct Rules {
    /// `.ignore`: for searching tools. It wins over every `.gitignore`.
    tools: Option<Gitignore>,
    /// `.gitignore`, inside a repository or not.
    git: Option<Gitignore>,
}

/// The names of the files that [`Rules::add`] takes.
pub(crate) const NAMES: [&str; 2] = [".ignore", ".gitignore"];

impl Rules {
    /// Reads the ignore file `name` of `folder`, a regular file.
    pub(crate) fn add(&mut self, folder: &str, name: &str) -> io::Result<()> {
        let mut text = Vec::new();
        File::open(format!("{folder}/{name}"))?.take(LARGEST + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LARGEST {
            return Err(io::Error::other("larger than an ignore file may be: not applied"));
        }
        let mut builder = GitignoreBuilder::new(folder);
        for line in String::from_utf8_lossy(&text).lines() {
            // As in git, a line that is no pattern excludes nothing.
            let _ = builder.add_line(None, line);
        }
        let rules = builder.build().map_err(io::Error::other)?;
        *(if name == NAMES[0] { &mut self.tools } else { &mut self.git }) = Some(rules);
        Ok(())
    }
}

/// Whether an entry is left out. `chain` holds the rules of the folders above
/// it, outermost first: the innermost rule that says anything decides.
pub(crate) fn excluded<'a>(
    chain: impl DoubleEndedIterator<Item = &'a Rules> + Clone,
    path: &str,
    is_dir: bool,
    hidden: bool,
) -> bool {
    let decided = |of: fn(&Rules) -> Option<&Gitignore>| {
        chain.clone().rev().filter_map(of).find_map(|rules| match rules.matched(path, is_dir) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        })
    };
    decided(|rules| rules.tools.as_ref()).or_else(|| decided(|rules| rules.git.as_ref())).unwrap_or(hidden)
}
