//! Unified diffs, read strictly: what is not understood is refused by name,
//! with the line where it stands.

use crate::names;

/// The most files in one patch: each is held in memory until all hunks fit.
const MOST_FILES: usize = 100;

/// The most hunks in one patch. People write dozens; programs that write more
/// should write files.
const MOST_HUNKS: usize = 2000;

/// The largest line number: more lines than any file that is patched has bytes,
/// and far from where sums would run over.
const MOST_LINE: usize = 100_000_000;

/// What a patch says of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// Which one.
    pub path: String,
    /// What becomes of it.
    pub action: Action,
    /// The changes, in the order of their lines.
    pub hunks: Vec<Hunk>,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is new.
    Create,
    /// It is there and changes.
    Modify,
    /// It goes.
    Delete,
}

/// One change of consecutive lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hunk {
    /// Its header, as it stands in the patch.
    pub header: String,
    /// The number of its first line in the old file; of the line before it
    /// where it has none.
    pub start: usize,
    /// What is expected and what comes instead.
    pub lines: Vec<Line>,
}

/// One line of a hunk, with its end, which the last line of a file may lack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// It is there and stays.
    Context(String),
    /// It is there and goes.
    Removed(String),
    /// It comes.
    Added(String),
}

impl Line {
    /// The text, wherever it belongs.
    pub fn text_mut(&mut self) -> &mut String {
        match self {
            Self::Context(text) | Self::Removed(text) | Self::Added(text) => text,
        }
    }
}

/// Why a patch can't be read.
#[derive(Debug, PartialEq, Eq)]
pub struct Fault {
    /// The line of the patch, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// Reads a patch. `strip` is how many leading folders are taken off names;
/// where it is absent, the `a/` and `b/` of git are.
pub fn parse(text: &str, strip: Option<usize>) -> Result<Vec<FilePatch>, Fault> {
    let mut parser = Parser { lines: text.split_inclusive('\n').collect(), at: 0, strip, header: Header::default() };
    let mut files = Vec::new();
    let mut hunks = 0;
    while let Some(file) = parser.file()? {
        hunks += file.hunks.len();
        if files.len() == MOST_FILES || hunks > MOST_HUNKS {
            return Err(parser.fault(format!("the patch has more than {MOST_FILES} files or {MOST_HUNKS} hunks")));
        }
        if files.iter().any(|known: &FilePatch| known.path == file.path) {
            return Err(parser.fault(format!("`{}` comes twice: put all of its hunks below one header", file.path)));
        }
        files.push(file);
    }
    if files.is_empty() {
        return Err(Fault { line: 1, why: "there is no `--- ` and `+++ ` line: this is no unified diff".to_owned() });
    }
    Ok(files)
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    at: usize,
    strip: Option<usize>,
    /// What git says before the names.
    header: Header,
}

#[derive(Default)]
struct Header {
    /// The names of `diff --git`, where it was met and not used up.
    git: Option<String>,
    action: Option<Action>,
}

impl Parser<'_> {
    fn fault(&self, why: impl Into<String>) -> Fault {
        Fault { line: self.at + 1, why: why.into() }
    }

    /// The line that comes next, without its end.
    fn peek(&self, ahead: usize) -> Option<&str> {
        self.lines.get(self.at + ahead).map(|line| line.trim_end_matches(['\n', '\r']))
    }

    /// The next file, behind whatever text is before it.
    fn file(&mut self) -> Result<Option<FilePatch>, Fault> {
        loop {
            let Some(line) = self.peek(0).map(str::to_owned) else { return self.headers_only() };
            if let Some(names) = line.strip_prefix("diff --git ") {
                if let Some(file) = self.headers_only()? {
                    return Ok(Some(file));
                }
                self.header = Header { git: Some(names.to_owned()), action: None };
            } else if line.starts_with("--- ") && self.peek(1).is_some_and(|next| next.starts_with("+++ ")) {
                return self.names(&line).map(Some);
            } else if line.starts_with("@@ ") {
                return Err(self.fault("a hunk without `--- ` and `+++ ` lines before it: which file is it about?"));
            } else {
                self.extended(&line)?;
            }
            self.at += 1;
        }
    }

    /// A line between `diff --git` and the hunks. Outside of one it is prose.
    fn extended(&mut self, line: &str) -> Result<(), Fault> {
        const REFUSED: [(&str, &str); 8] = [
            ("rename ", "renames are not done: use two files, one deleted and one new"),
            ("copy ", "copies are not done: make a new file"),
            ("similarity index ", "renames and copies are not done"),
            ("dissimilarity index ", "complete rewrites of this form are not done"),
            ("old mode ", "modes are not changed"),
            ("new mode ", "modes are not changed"),
            ("GIT binary patch", "binary patches are not done: use fs.write with base64"),
            ("Binary files ", "the patch does not hold the content of binary files: use fs.write with base64"),
        ];
        // That one is written by plain diff too.
        if self.header.git.is_none() && !line.starts_with("Binary files ") {
            return Ok(());
        }
        if let Some((_, why)) = REFUSED.iter().find(|(start, _)| line.starts_with(start)) {
            return Err(self.fault(*why));
        }
        for (start, action) in [("new file mode ", Action::Create), ("deleted file mode ", Action::Delete)] {
            if let Some(mode) = line.strip_prefix(start) {
                let plain = mode == "100644" || (mode == "100755" && action == Action::Delete);
                if !plain {
                    return Err(self.fault(format!("mode {mode} is not done: files are plain (100644)")));
                }
                self.header.action = Some(action);
            }
        }
        Ok(())
    }

    /// A file of which git says nothing but that it is there, or gone: an
    /// empty one.
    fn headers_only(&mut self) -> Result<Option<FilePatch>, Fault> {
        let Header { git, action } = std::mem::take(&mut self.header);
        let (Some(names), Some(action)) = (git, action) else { return Ok(None) };
        let path = names::of_git(&names, self.strip).map_err(|why| self.fault(why))?;
        Ok(Some(FilePatch { path, action, hunks: Vec::new() }))
    }

    /// The lines with the names, and the hunks below them.
    fn names(&mut self, old: &str) -> Result<FilePatch, Fault> {
        let new = self.peek(1).unwrap_or_default().to_owned();
        let said = std::mem::take(&mut self.header).action;
        let (path, action) = names::of_header(&old[4..], &new[4..], self.strip).map_err(|why| self.fault(why))?;
        if said.is_some_and(|said| said != action) {
            return Err(self.fault("the names say something else than the line about the file's mode"));
        }
        self.at += 2;
        let mut hunks: Vec<Hunk> = Vec::new();
        while self.peek(0).is_some_and(|line| line.starts_with("@@ ")) {
            let hunk = self.hunk()?;
            if hunks.last().is_some_and(|last| hunk.start < last.start) {
                return Err(self.fault("hunks must be in the order of their lines"));
            }
            hunks.push(hunk);
        }
        if hunks.is_empty() {
            return Err(self.fault(format!("`{path}` has no hunk: expected a line `@@ -1,3 +1,4 @@`")));
        }
        Ok(FilePatch { path, action, hunks })
    }

    fn hunk(&mut self) -> Result<Hunk, Fault> {
        let header = self.peek(0).unwrap_or_default().to_owned();
        let (start, old, new) =
            ranges(&header).ok_or_else(|| self.fault("expected a hunk's header such as `@@ -1,3 +1,4 @@`"))?;
        let begins = self.at;
        self.at += 1;
        let mut lines: Vec<Line> = Vec::new();
        let (mut had_old, mut had_new) = (0, 0);
        loop {
            let line = self.lines.get(self.at).copied().unwrap_or_default();
            if line.starts_with('\\') {
                // The mark belongs to the line before it.
                if let Some(text) = lines.last_mut().map(Line::text_mut) {
                    text.truncate(text.trim_end_matches(['\n', '\r']).len());
                }
                self.at += 1;
                continue;
            }
            if had_old == old && had_new == new {
                break;
            }
            let (sign, text) = match line.chars().next() {
                Some(sign @ (' ' | '-' | '+')) => (sign, &line[1..]),
                // Some programs strip the space of an empty line of context.
                Some('\n' | '\r') => (' ', line),
                _ => return Err(counts(begins, &lines, (old, new))),
            };
            had_old += usize::from(sign != '+');
            had_new += usize::from(sign != '-');
            if had_old > old || had_new > new {
                return Err(counts(begins, &lines, (old, new)));
            }
            let text = text.to_owned();
            // The patch's own last line may lack its end without meaning it.
            let text = if text.ends_with('\n') { text } else { text + "\n" };
            lines.push(match sign {
                '-' => Line::Removed(text),
                '+' => Line::Added(text),
                _ => Line::Context(text),
            });
            self.at += 1;
        }
        if lines.iter().all(|line| matches!(line, Line::Context(_))) {
            return Err(Fault { line: begins + 1, why: "the hunk changes nothing".to_owned() });
        }
        Ok(Hunk { header, start, lines })
    }
}

/// The usual fault of patches that were written by hand.
fn counts(begins: usize, lines: &[Line], said: (usize, usize)) -> Fault {
    let old = lines.iter().filter(|line| !matches!(line, Line::Added(_))).count();
    let new = lines.iter().filter(|line| !matches!(line, Line::Removed(_))).count();
    let why = format!(
        "the hunk's header counts {} old and {} new lines, but {old} and {new} fit before a line that does not; \
         correct the counts, and begin each line with a space, `-` or `+`",
        said.0, said.1
    );
    Fault { line: begins + 1, why }
}

/// The start of the old lines, and how many lines there are on each side.
fn ranges(header: &str) -> Option<(usize, usize, usize)> {
    let (ranges, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let number = |text: &str| text.parse().ok().filter(|number| *number <= MOST_LINE);
    let range = |text: &str| -> Option<(usize, usize)> {
        let (start, length) = text.split_once(',').unwrap_or((text, "1"));
        Some((number(start)?, number(length)?))
    };
    let ((start, old), (_, new)) = (range(old)?, range(new)?);
    // Only a range without lines begins before the first one.
    (start > 0 || old == 0).then_some((start, old, new))
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
