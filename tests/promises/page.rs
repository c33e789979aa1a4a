//! The page that the table is written to, and its committed form.

use std::fmt::Write as _;
use std::path::Path;

use crate::guests::checkout;

/// The committed page.
const PAGE: &str = "docs/promises.md";

const HEAD: &str = "\
# Promises

What an action can rely on, and which backend keeps it. Every row is a test of `tests/promises`: it sends requests to
guests that try to break the promise, and looks at what came back and at the host afterwards. *kept* names how such
an action ends; *refused* means that the backend can't keep the promise and says so before anything runs, naming the
clause; *n/a* that the promise has no meaning there, and why. `container` runs images through a Docker engine with the
engine's own runtime, `container+runsc` the same with `platform.runtime = \"runsc\"`. `cargo xtask gen` writes this page;
where there is no engine, or none with that runtime, those columns stay as they are.

";

/// A page.
pub(crate) struct Page(String);

impl Page {
    /// The committed one; empty where there is none.
    pub(crate) fn committed() -> Self {
        Self(fs_err::read_to_string(checkout(PAGE)).unwrap_or_default())
    }

    /// The text of a page with these columns and rows.
    pub(crate) fn written<'a>(columns: &[&str], rows: impl Iterator<Item = (&'a str, &'a str, Vec<String>)>) -> String {
        let mut text = HEAD.to_owned();
        let _ = writeln!(text, "| about | promise | {} |", columns.join(" | "));
        let _ = writeln!(text, "|---|---|{}", "---|".repeat(columns.len()));
        for (about, says, cells) in rows {
            let _ = writeln!(text, "| {about} | {says} | {} |", cells.join(" | "));
        }
        text
    }

    /// Writes a text as the page into a folder.
    pub(crate) fn write(folder: &Path, text: &str) {
        fs_err::write(folder.join(Path::new(PAGE).file_name().unwrap()), text).unwrap();
    }

    /// What a cell of it shows.
    pub(crate) fn cell(&self, says: &str, column: &str) -> Option<String> {
        let cells = |line: &str| line.trim_matches(['|', ' ']).split(" | ").map(str::to_owned).collect::<Vec<_>>();
        let head = self.0.lines().find(|line| line.starts_with("| about | promise |"))?;
        let at = cells(head).iter().position(|name| name == column)?;
        let row = self.0.lines().map(cells).find(|row| row.get(1).is_some_and(|own| own == says))?;
        row.get(at).cloned()
    }

    /// Whether it has this text; where not, that is said.
    pub(crate) fn is(&self, text: &str) -> bool {
        if self.0 == text {
            return true;
        }
        let differs = |(old, new): &(&str, &str)| old != new;
        let first = self.0.lines().zip(text.lines()).find(differs);
        let (old, new) = first.unwrap_or(("fewer or more lines", "fewer or more lines"));
        eprintln!("{PAGE} is not this table: run `cargo xtask gen`, look at the difference and commit it");
        eprintln!("first difference:\n- {old}\n+ {new}");
        false
    }
}
