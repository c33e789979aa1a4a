//! Searches one file, line by line, in bounded memory.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use glovebox_guest::{Json, json};
use regex::bytes::Regex;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// A file with a NUL byte in its first bytes is binary.
const HEAD: usize = 8 << 10;

/// How much of a line is searched. A longer one is no text for people, and
/// must not fill the memory.
const LINE_BYTES: usize = 1 << 20;

/// How much of a line is returned.
const SHOWN_BYTES: usize = 400;

/// How much of that lies before the match in a line that is cut.
const SHOWN_BEFORE: usize = 100;

/// The most text that one call returns: six times as much, which escaping in
/// JSON can make of it, still fits into the contract's output limit.
const RESULT_BYTES: usize = 128 << 10;

/// A search over any number of files.
pub(crate) struct Search {
    /// What was found, as it is returned.
    pub(crate) matches: Vec<Json>,
    /// Whether more would match than is returned.
    pub(crate) truncated: bool,
    regex: Regex,
    most: usize,
    context: usize,
    bytes: usize,
}

/// What became of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was searched.
    Searched,
    /// It is no text. Matches before the first NUL byte are kept.
    Binary,
}

impl Search {
    /// Looks for `regex` until there are `most` matches, and keeps `context`
    /// lines around each.
    pub(crate) fn new(regex: Regex, most: usize, context: usize) -> Self {
        Self { matches: Vec::new(), truncated: false, regex, most, context, bytes: 0 }
    }

    /// Searches the file at `path`; matches are reported with the path `shown`.
    pub(crate) fn file(&mut self, path: &str, shown: &str) -> io::Result<Outcome> {
        self.read(File::open(path)?, shown)
    }

    fn read(&mut self, file: impl Read, shown: &str) -> io::Result<Outcome> {
        let mut reader = BufReader::with_capacity(CHUNK, file);
        let head = reader.fill_buf()?;
        if head[..head.len().min(HEAD)].contains(&0) {
            return Ok(Outcome::Binary);
        }
        let mut before: VecDeque<String> = VecDeque::new();
        let mut line = Line::default();
        // The first match that still wants lines after it.
        let mut open = self.matches.len();
        for number in 1.. {
            if !line.read(&mut reader)? {
                break;
            }
            if line.bytes.contains(&0) {
                return Ok(Outcome::Binary);
            }
            self.add_after(&line, number, &mut open);
            if self.truncated {
                if open == self.matches.len() {
                    break;
                }
            } else if let Some(found) = self.regex.find(&line.bytes).filter(|found| line.ends_after(found.end())) {
                self.add(&line, number, found.start(), shown, &before);
            }
            if self.context > 0 {
                before.truncate(self.context - 1);
                before.push_front(line.window(None).text);
            }
        }
        Ok(Outcome::Searched)
    }

    /// Adds the line to the matches that it follows closely.
    fn add_after(&mut self, line: &Line, number: u64, open: &mut usize) {
        for at in *open..self.matches.len() {
            let distance = number - self.matches[at]["line"].as_u64().unwrap_or(number);
            if distance > self.context as u64 {
                *open = at + 1;
            } else if let Some(after) = self.matches[at]["after"].as_array_mut() {
                let text = line.window(None).text;
                self.bytes += text.len();
                after.push(text.into());
            }
        }
    }

    fn add(&mut self, line: &Line, number: u64, at: usize, shown: &str, before: &VecDeque<String>) {
        let window = line.window(Some(at));
        // The lines that will follow are counted in advance, as if they were as long as may be.
        let size = shown.len() + window.text.len() + before.iter().map(String::len).sum::<usize>();
        if self.matches.len() == self.most || self.bytes + size + self.context * SHOWN_BYTES > RESULT_BYTES {
            self.truncated = true;
            return;
        }
        self.bytes += size;
        let column = String::from_utf8_lossy(&line.bytes[..at]).chars().count() + 1;
        let mut found = json!({ "path": shown, "line": number, "column": column, "text": window.text });
        if window.before > 0 {
            found["omitted_before"] = window.before.into();
        }
        if window.after > 0 {
            found["omitted_after"] = window.after.into();
        }
        if self.context > 0 {
            found["before"] = before.iter().rev().cloned().collect();
            found["after"] = Json::Array(Vec::new());
        }
        self.matches.push(found);
    }
}

/// A line without its end.
#[derive(Default)]
struct Line {
    bytes: Vec<u8>,
    /// How many more bytes it has than are kept.
    dropped: u64,
}

/// What is shown of a line.
struct Window {
    text: String,
    /// Bytes left out before and after.
    before: u64,
    after: u64,
}

impl Line {
    /// Reads the next line. Whether there was one.
    fn read(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        self.bytes.clear();
        self.dropped = 0;
        let mut any = false;
        loop {
            let chunk = reader.fill_buf()?;
            if chunk.is_empty() {
                return Ok(any);
            }
            any = true;
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let piece = &chunk[..newline.unwrap_or(chunk.len())];
            let room = (LINE_BYTES - self.bytes.len()).min(piece.len());
            self.bytes.extend_from_slice(&piece[..room]);
            self.dropped += (piece.len() - room) as u64;
            let consumed = piece.len() + usize::from(newline.is_some());
            reader.consume(consumed);
            if newline.is_some() {
                // So that `$` means the end of the line in files from Windows too.
                if self.dropped == 0 && self.bytes.last() == Some(&b'\r') {
                    self.bytes.pop();
                }
                return Ok(true);
            }
        }
    }

    /// Whether a match up to `end` holds for the whole line: where the line
    /// was cut is not its end, whatever `$` says.
    fn ends_after(&self, end: usize) -> bool {
        self.dropped == 0 || end < self.bytes.len()
    }

    /// What to show: all of a short line, of a long one the part around `at`.
    fn window(&self, at: Option<usize>) -> Window {
        let len = self.bytes.len();
        let (mut start, mut end) = (0, len);
        if len > SHOWN_BYTES {
            let at = at.unwrap_or(0);
            start = if at < SHOWN_BYTES - SHOWN_BEFORE { 0 } else { at - SHOWN_BEFORE };
            start = boundary(&self.bytes, start);
            end = boundary(&self.bytes, (start + SHOWN_BYTES).min(len));
        }
        Window {
            text: String::from_utf8_lossy(&self.bytes[start..end]).into_owned(),
            before: start as u64,
            after: (len - end) as u64 + self.dropped,
        }
    }
}

/// The start of the character in which `at` lies.
fn boundary(bytes: &[u8], at: usize) -> usize {
    let inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| !inside(at)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(text: &[u8], pattern: &str, most: usize, context: usize) -> Search {
        let mut search = Search::new(Regex::new(pattern).unwrap(), most, context);
        search.read(text, "f").unwrap();
        search
    }

    #[test]
    fn finds_lines() {
        let found =
            |line: u64, column: u64, text: &str| json!({ "path": "f", "line": line, "column": column, "text": text });
        let table = [
            (&b"one\ntwo\n"[..], "o$", vec![found(2, 3, "two")]),
            (b"one\r\ntwo", "^(one|two)$", vec![found(1, 1, "one"), found(2, 1, "two")]),
            ("é x".as_bytes(), "x", vec![found(1, 3, "é x")]),
            (b"\xff x", "x", vec![found(1, 3, "\u{fffd} x")]),
            (b"", "^", vec![]),
            (b"\n", "^$", vec![found(1, 1, "")]),
            (b"a\nb", r"a\nb", vec![]),
        ];
        for (text, pattern, expected) in table {
            let search = search(text, pattern, 9, 0);
            assert_eq!(search.matches, expected, "{pattern} in {text:?}");
            assert!(!search.truncated);
        }
    }

    #[test]
    fn context_goes_around_and_does_not_end_with_the_last_match() {
        let search = search(b"1\n2\nx3\n4\nx5\n6\n7\nx8\n9\n", "x", 2, 2);
        assert!(search.truncated);
        let around = |at: usize| (search.matches[at]["before"].clone(), search.matches[at]["after"].clone());
        assert_eq!(around(0), (json!(["1", "2"]), json!(["4", "x5"])));
        assert_eq!(around(1), (json!(["x3", "4"]), json!(["6", "7"])));
        assert_eq!(search.matches.len(), 2);
    }

    #[test]
    fn truncated_means_that_there_is_more() {
        assert!(!search(b"x\nx\n", "x", 2, 0).truncated);
        assert!(search(b"x\nx\nx\n", "x", 2, 0).truncated);
        let long = format!("{}\n", "x".repeat(390)).repeat(1_000);
        let search = search(long.as_bytes(), "x", 1_000, 10);
        assert!(search.truncated);
        assert!(Json::from(search.matches).to_string().len() < 2 * RESULT_BYTES);
    }

    #[test]
    fn long_lines_are_cut_around_the_match() {
        let text = format!("{}x{}", "é".repeat(1_000), "y".repeat(2 << 20));
        let search = search(text.as_bytes(), "x", 9, 0);
        let found = &search.matches[0];
        assert_eq!(found["column"], 1_001);
        assert_eq!(found["omitted_before"], 1_900);
        assert_eq!(found["omitted_after"], text.len() - 1_900 - SHOWN_BYTES);
        assert!(found["text"].as_str().unwrap().starts_with("éé"));
        // What lies beyond the searched part is not found, and does not fill the memory.
        assert_eq!(self::search(text.as_bytes(), "y$", 9, 0).matches.len(), 0);
    }

    #[test]
    fn binary_files_are_no_text() {
        let mut search = Search::new(Regex::new("b").unwrap(), 9, 0);
        assert_eq!(search.read(&b"b\0b\n"[..], "f").unwrap(), Outcome::Binary);
        assert!(search.matches.is_empty());
        let late = [b"b\n", &b"a\n".repeat(HEAD)[..], b"\0\nb\n"].concat();
        assert_eq!(search.read(&late[..], "f").unwrap(), Outcome::Binary);
        assert_eq!(search.matches.len(), 1);
    }
}
