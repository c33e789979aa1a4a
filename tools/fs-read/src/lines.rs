//! A range of lines.

use std::io::{self, BufRead, BufReader, Read};

use glovebox_guest::{Json, json};

/// The most lines that one call returns.
pub const MOST_LINES: u64 = 10_000;

/// How many lines a call returns that does not say.
pub const DEFAULT_LINES: u64 = 2_000;

/// What is shown of a line: more is of no use to whoever reads lines.
const LINE_BYTES: usize = 2_000;

/// The most text that one call returns: six times as much, which escaping in
/// JSON can make of it, still fits into the contract's output limit.
const PAGE_BYTES: usize = 128 << 10;

/// Files up to this size are read to their end to count the lines.
const COUNT_UP_TO: u64 = 8 << 20;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// Adds up to `count` lines from line `first` on to `result`.
pub fn read(file: impl Read, size: u64, first: u64, count: u64, numbers: bool, result: &mut Json) -> io::Result<()> {
    let mut reader = BufReader::with_capacity(CHUNK, file);
    let mut page = Page { first, end: first.saturating_add(count), numbers, ..Page::default() };
    let mut line = Line { number: 1, ..Line::default() };
    let mut final_newline = false;
    let at_end = loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break true;
        }
        if line.number >= page.end {
            page.next.get_or_insert(line.number);
        }
        if page.next.is_some() && size > COUNT_UP_TO {
            break false;
        }
        let newline = chunk.iter().position(|byte| *byte == b'\n');
        let piece = &chunk[..newline.unwrap_or(chunk.len())];
        line.take(piece);
        let consumed = piece.len() + usize::from(newline.is_some());
        reader.consume(consumed);
        final_newline = newline.is_some();
        if final_newline {
            page.push(&line, true);
            line = Line { number: line.number + 1, start: line.start + line.len + 1, ..Line::default() };
        }
    };
    if at_end {
        let unfinished = line.len > 0;
        if unfinished {
            page.push(&line, false);
        }
        result["total_lines"] = (line.number - u64::from(!unfinished)).into();
        result["final_newline"] = final_newline.into();
    }
    page.write(result);
    Ok(())
}

/// The line that is being read.
#[derive(Default)]
struct Line {
    number: u64,
    /// Where it begins in the file.
    start: u64,
    len: u64,
    /// Its beginning.
    kept: Vec<u8>,
}

impl Line {
    fn take(&mut self, piece: &[u8]) {
        self.len += piece.len() as u64;
        let room = LINE_BYTES - self.kept.len();
        self.kept.extend_from_slice(&piece[..room.min(piece.len())]);
    }
}

/// What is returned.
#[derive(Default)]
struct Page {
    first: u64,
    end: u64,
    numbers: bool,
    text: String,
    lines: u64,
    cut: Vec<Json>,
    invalid: u64,
    /// The first line that did not fit.
    next: Option<u64>,
}

impl Page {
    fn push(&mut self, line: &Line, newline: bool) {
        if line.number < self.first || self.next.is_some() {
            return;
        }
        let before = self.text.len();
        if self.numbers {
            self.text.push_str(&format!("{:>6}\t", line.number));
        }
        let whole = line.len == line.kept.len() as u64;
        let shown = if whole { &line.kept[..] } else { whole_characters(&line.kept) };
        let mut invalid = 0;
        for chunk in shown.utf8_chunks() {
            self.text.push_str(chunk.valid());
            if !chunk.invalid().is_empty() {
                self.text.push(char::REPLACEMENT_CHARACTER);
                invalid += chunk.invalid().len() as u64;
            }
        }
        let omitted = line.len - shown.len() as u64;
        if !whole {
            self.text.push_str(&format!("… [{omitted} more bytes in this line]"));
        }
        if newline {
            self.text.push('\n');
        }
        if line.number >= self.end || self.text.len() > PAGE_BYTES {
            self.text.truncate(before);
            self.next = Some(line.number);
            return;
        }
        self.lines += 1;
        self.invalid += invalid;
        if !whole {
            let offset = line.start + shown.len() as u64;
            self.cut.push(json!({ "line": line.number, "byte_offset": offset, "omitted_bytes": omitted }));
        }
    }

    fn write(self, result: &mut Json) {
        result["start_line"] = self.first.into();
        result["lines"] = self.lines.into();
        result["text"] = self.text.into();
        if !self.cut.is_empty() {
            result["cut_lines"] = self.cut.into();
        }
        if self.invalid > 0 {
            result["invalid_utf8_bytes"] = self.invalid.into();
        }
        if let Some(next) = self.next {
            result["next"] = json!({ "start_line": next });
        }
    }
}

/// `bytes` without a character that only the cut has split.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let lead = bytes.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(0);
    match std::str::from_utf8(&bytes[lead..]) {
        Err(error) if error.error_len().is_none() => &bytes[..lead],
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &[u8], first: u64, count: u64, numbers: bool) -> Json {
        let mut result = json!({});
        read(text, text.len() as u64, first, count, numbers, &mut result).unwrap();
        result
    }

    #[test]
    fn ranges() {
        let table = [
            (
                &b""[..],
                1,
                9,
                json!({ "start_line": 1, "lines": 0, "text": "", "total_lines": 0, "final_newline": false }),
            ),
            (
                b"a\nb\n",
                1,
                9,
                json!({ "start_line": 1, "lines": 2, "text": "a\nb\n", "total_lines": 2, "final_newline": true }),
            ),
            (
                b"a\nb",
                1,
                9,
                json!({ "start_line": 1, "lines": 2, "text": "a\nb", "total_lines": 2, "final_newline": false }),
            ),
            (
                b"a\nb\nc",
                2,
                1,
                json!({ "start_line": 2, "lines": 1, "text": "b\n", "total_lines": 3, "final_newline": false, "next": { "start_line": 3 } }),
            ),
            (
                b"a\nb\n",
                2,
                1,
                json!({ "start_line": 2, "lines": 1, "text": "b\n", "total_lines": 2, "final_newline": true }),
            ),
            (
                b"a\n\n\r\n",
                2,
                9,
                json!({ "start_line": 2, "lines": 2, "text": "\n\r\n", "total_lines": 3, "final_newline": true }),
            ),
            (b"a\n", 7, 9, json!({ "start_line": 7, "lines": 0, "text": "", "total_lines": 1, "final_newline": true })),
            (
                b"a\xff\xfeb\n",
                1,
                9,
                json!({ "start_line": 1, "lines": 1, "text": "a\u{fffd}\u{fffd}b\n", "total_lines": 1, "final_newline": true, "invalid_utf8_bytes": 2 }),
            ),
        ];
        for (text, first, count, expected) in table {
            assert_eq!(page(text, first, count, false), expected, "{text:?} from {first}");
        }
        assert_eq!(page(b"a\nb", 2, 9, true)["text"], "     2\tb");
    }

    #[test]
    fn long_lines_are_cut_between_characters() {
        let text = format!("x\na{}\nend\n", "é".repeat(2_000));
        let page = page(text.as_bytes(), 1, 9, false);
        // 1 + 2 × 999 bytes fit; the next character would be the 2000th and 2001st byte.
        assert_eq!(page["cut_lines"], json!([{ "line": 2, "byte_offset": 2 + 1_999, "omitted_bytes": 4_001 - 1_999 }]));
        assert_eq!(page["lines"], 3);
        assert!(page["text"].as_str().unwrap().ends_with("é… [2002 more bytes in this line]\nend\n"));
        assert_eq!(page.get("invalid_utf8_bytes"), None);
    }

    #[test]
    fn pages_join_to_the_whole() {
        let text: String = (0..40_000).map(|n| format!("line {n}\n")).collect();
        let (mut joined, mut first) = (String::new(), 1);
        loop {
            let page = page(text.as_bytes(), first, MOST_LINES, false);
            assert_eq!(page["total_lines"], 40_000);
            joined.push_str(page["text"].as_str().unwrap());
            match page["next"]["start_line"].as_u64() {
                Some(next) => first = next,
                None => break,
            }
        }
        assert!(joined == text, "the pages differ from the text");
    }

    #[test]
    fn a_large_file_is_not_read_further_than_asked() {
        struct Endless(u64);
        impl Read for Endless {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0 += buffer.len() as u64;
                assert!(self.0 < 1 << 20, "reads on and on");
                buffer.fill(b'\n');
                Ok(buffer.len())
            }
        }
        let mut result = json!({});
        read(Endless(0), COUNT_UP_TO + 1, 1, 3, false, &mut result).unwrap();
        assert_eq!(result["next"]["start_line"], 4);
        assert_eq!(result.get("total_lines"), None);
    }
}
