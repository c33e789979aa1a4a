//! Hunks applied to the text of one file.

use std::ops::Range;

use crate::parse::{Hunk, Line};

/// How much comparing is done for one hunk, in lines: beyond it the nearest
/// place is not looked for. A file of 8 MiB has some 200 000 lines.
const MOST_COMPARED: usize = 20_000_000;

/// A text with some hunks applied.
#[derive(Debug, Default)]
pub struct Applied {
    /// The text.
    pub text: String,
    /// What was applied, in the order of the hunks.
    pub hunks: Vec<Place>,
    /// What could not be.
    pub rejected: Vec<Reject>,
    /// Lines that came and went.
    pub added: usize,
    /// Lines that went.
    pub removed: usize,
}

/// Where a hunk was applied.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Place {
    /// Which of the file's hunks, from 1.
    pub hunk: usize,
    /// Its first line in the old file.
    pub line: usize,
    /// How far that is from where its header says.
    pub offset: i64,
    /// How many lines of context at either end were not looked at.
    pub fuzz: usize,
}

/// A hunk that could not be applied.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Reject {
    /// Which of the file's hunks, from 1.
    pub hunk: usize,
    /// Its header.
    pub header: String,
    /// Why not.
    pub reason: String,
    /// Where most of its lines stand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nearest: Option<Nearest>,
}

/// The place where most lines of a hunk stand.
#[derive(Debug, PartialEq, Eq, serde::Serialize)]
pub struct Nearest {
    /// Its first line in the file.
    pub line: usize,
    /// How many of the hunk's old lines stand there.
    pub matching: usize,
    /// How many it has.
    pub of: usize,
    /// The first line that differs.
    pub differs_at: usize,
    /// What the hunk has there.
    pub expected: String,
    /// What the file has there; nothing where it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// Applies hunks. A hunk that does not fit is rejected and leaves its place as
/// it was.
pub fn apply(text: &str, hunks: &[Hunk], fuzz: usize) -> Applied {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let ends = Ends::of(&lines);
    let mut applied = Applied::default();
    // Up to where the old text is dealt with, and how far hunks were off.
    let (mut done, mut drift) = (0, 0);
    for (index, hunk) in hunks.iter().enumerate() {
        let (hunk, number) = (ends.fit(hunk), index + 1);
        match find(&lines, done, &hunk, drift, fuzz) {
            Ok(found) => {
                for line in &lines[done..found.at] {
                    applied.text.push_str(line);
                }
                let mut at = found.at;
                for line in &hunk.lines[found.used] {
                    match line {
                        // As the file has it.
                        Line::Context(_) => {
                            applied.text.push_str(lines[at]);
                            at += 1;
                        }
                        Line::Removed(_) => {
                            at += 1;
                            applied.removed += 1;
                        }
                        Line::Added(text) => {
                            applied.text.push_str(text);
                            applied.added += 1;
                        }
                    }
                }
                done = at;
                drift = found.offset;
                applied.hunks.push(Place { hunk: number, line: found.line, offset: found.offset, fuzz: found.fuzz });
            }
            Err(reason) => {
                let nearest = nearest(&lines, done, &hunk);
                applied.rejected.push(Reject { hunk: number, header: hunk.header.clone(), reason, nearest });
            }
        }
    }
    for line in &lines[done..] {
        applied.text.push_str(line);
    }
    applied
}

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// All with a carriage return and a line feed.
    Both,
    /// None with a carriage return.
    Feed,
    /// Both occur, or there are no lines.
    Mixed,
}

impl Ends {
    fn of(lines: &[&str]) -> Self {
        let ended = || lines.iter().filter(|line| line.ends_with('\n'));
        let returns = ended().filter(|line| line.ends_with("\r\n")).count();
        match (returns, ended().count()) {
            (_, 0) => Self::Mixed,
            (0, _) => Self::Feed,
            (returns, all) if returns == all => Self::Both,
            _ => Self::Mixed,
        }
    }

    /// The hunk with the file's line ends, where all of the hunk's are of the
    /// other kind: that is how patches change on their way.
    fn fit(self, hunk: &Hunk) -> Hunk {
        let mut hunk = hunk.clone();
        let mut texts = hunk.lines.iter_mut().map(Line::text_mut);
        match self {
            Self::Both if !texts.any(|text| text.ends_with("\r\n")) => {
                for text in hunk.lines.iter_mut().map(Line::text_mut) {
                    if text.ends_with('\n') {
                        text.insert(text.len() - 1, '\r');
                    }
                }
            }
            Self::Feed if texts.all(|text| text.ends_with("\r\n") || !text.ends_with('\n')) => {
                for text in hunk.lines.iter_mut().map(Line::text_mut) {
                    if text.ends_with("\r\n") {
                        text.remove(text.len() - 2);
                    }
                }
            }
            _ => {}
        }
        hunk
    }
}

struct Found {
    /// The first line that is looked at, from 0.
    at: usize,
    /// The lines of the hunk that are looked at.
    used: Range<usize>,
    line: usize,
    offset: i64,
    fuzz: usize,
}

/// Finds the place of a hunk: where it is expected, or the only other one.
fn find(lines: &[&str], from: usize, hunk: &Hunk, drift: i64, most_fuzz: usize) -> Result<Found, String> {
    let old = old_lines(&hunk.lines);
    let said = if old.is_empty() { hunk.start } else { hunk.start - 1 };
    let expected = usize::try_from(said as i64 + drift).unwrap_or(0);
    if old.is_empty() {
        // Nothing to be compared: it goes where it says or nowhere.
        if expected < from || expected > lines.len() {
            return Err(format!("it adds lines after line {expected}, and the file has {}", lines.len()));
        }
        let used = 0..hunk.lines.len();
        return Ok(Found { at: expected, used, line: expected + 1, offset: drift, fuzz: 0 });
    }
    let (leading, trailing) = context(&hunk.lines);
    for fuzz in 0..=most_fuzz {
        let (before, after) = (fuzz.min(leading), fuzz.min(trailing));
        if fuzz > 0 && before < fuzz && after < fuzz {
            break;
        }
        let used = before..hunk.lines.len() - after;
        let wanted = old_lines(&hunk.lines[used.clone()]);
        if wanted.is_empty() {
            break;
        }
        let fits = |at: usize| lines.get(at..at + wanted.len()).is_some_and(|there| there == wanted);
        let found = |at: usize| {
            let start = at - before.min(at);
            let offset = start as i64 - said as i64;
            Found { at, used: used.clone(), line: start + 1, offset, fuzz }
        };
        if expected + before >= from && fits(expected + before) {
            return Ok(found(expected + before));
        }
        let last = (lines.len() + 1).saturating_sub(wanted.len());
        let mut others = (from..last).filter(|at| fits(*at));
        match (others.next(), others.next()) {
            (Some(one), None) => return Ok(found(one)),
            // The nearest may be the wrong one, and nobody would see it.
            (Some(one), Some(other)) => {
                return Err(format!(
                    "it is not where its header says, and fits in several places, such as lines {} and {}; \
                     correct its line number, or give it more context",
                    one + 1,
                    other + 1
                ));
            }
            (None, _) => {}
        }
    }
    let new = new_lines(&hunk.lines);
    let there = |at: usize| lines.get(at..at + new.len()).is_some_and(|there| there == new);
    if !new.is_empty() && (there(expected) || (from..lines.len()).any(there)) {
        return Err("its new lines are there: it seems to be applied already".to_owned());
    }
    Err("its old lines are not in the file".to_owned())
}

/// Where most of the old lines stand.
fn nearest(lines: &[&str], from: usize, hunk: &Hunk) -> Option<Nearest> {
    let old = old_lines(&hunk.lines);
    if old.is_empty() || lines.len().saturating_mul(old.len()) > MOST_COMPARED {
        return None;
    }
    let matching = |at: usize| old.iter().zip(&lines[at..]).filter(|(old, there)| *old == *there).count();
    let best = (from..lines.len()).map(|at| (matching(at), at)).max_by_key(|(count, at)| (*count, usize::MAX - at));
    let (count, at) = best.filter(|(count, _)| *count > 0)?;
    let differs = old.iter().enumerate().find(|(index, old)| lines.get(at + index) != Some(*old));
    let (index, expected) = differs.map_or((0, old[0]), |(index, old)| (index, *old));
    Some(Nearest {
        line: at + 1,
        matching: count,
        of: old.len(),
        differs_at: at + index + 1,
        expected: excerpt(expected),
        found: lines.get(at + index).map(|line| excerpt(line)),
    })
}

/// The beginning of a line, for messages.
fn excerpt(line: &str) -> String {
    const MOST_CHARS: usize = 120;
    line.chars().take(MOST_CHARS).collect()
}

fn old_lines(lines: &[Line]) -> Vec<&str> {
    let old = lines.iter().filter_map(|line| match line {
        Line::Context(text) | Line::Removed(text) => Some(text.as_str()),
        Line::Added(_) => None,
    });
    old.collect()
}

fn new_lines(lines: &[Line]) -> Vec<&str> {
    let new = lines.iter().filter_map(|line| match line {
        Line::Context(text) | Line::Added(text) => Some(text.as_str()),
        Line::Removed(_) => None,
    });
    new.collect()
}

/// How many lines of context a hunk begins and ends with.
fn context(lines: &[Line]) -> (usize, usize) {
    let is_context = |line: &&Line| matches!(line, Line::Context(_));
    (lines.iter().take_while(is_context).count(), lines.iter().rev().take_while(is_context).count())
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
