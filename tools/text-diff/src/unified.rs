//! Unified diffs of lines.

use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;

use similar::{Algorithm, DiffOp, capture_diff_slices_deadline, group_diff_ops};

/// Which differences of white space are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Whitespace {
    /// All of them are differences.
    #[default]
    Exact,
    /// How much there is between words and at the end of a line, as with `diff -b`.
    Amount,
    /// Any, as with `diff -w`.
    All,
}

/// How to compare.
#[derive(Debug, Default)]
pub struct How {
    /// How many equal lines stand around a change.
    pub context: usize,
    /// What counts as equal.
    pub ignore: Whitespace,
    /// The most bytes of diff.
    pub most: usize,
    /// When to stop looking for the smallest diff.
    pub deadline: Option<Instant>,
}

/// A diff, and what it is about.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Diff {
    /// As many whole hunks as fit, without names.
    pub text: String,
    /// All hunks.
    pub hunks: usize,
    /// Those that are not in the text.
    pub omitted: usize,
    /// Lines of the new text that are not in the old one.
    pub added: usize,
    /// Lines of the old text that are not in the new one.
    pub removed: usize,
}

/// Compares two texts line by line.
pub fn diff(old: &str, new: &str, how: &How) -> Diff {
    // Lines end with a line feed and nothing else, as for patch programs.
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let keys =
        |lines: &[&'_ str]| -> Vec<String> { lines.iter().map(|line| key(line, how.ignore).into_owned()).collect() };
    let ops = match how.ignore {
        Whitespace::Exact => capture_diff_slices_deadline(Algorithm::Myers, &old, &new, how.deadline),
        _ => capture_diff_slices_deadline(Algorithm::Myers, &keys(&old), &keys(&new), how.deadline),
    };
    let mut result = Diff::default();
    for op in &ops {
        if !matches!(op, DiffOp::Equal { .. }) {
            result.removed += op.old_range().len();
            result.added += op.new_range().len();
        }
    }
    for group in group_diff_ops(ops, how.context) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
        result.hunks += 1;
        if result.omitted > 0 {
            // Nothing after a gap: what is there can be applied from its start.
            result.omitted += 1;
            continue;
        }
        let before = result.text.len();
        let old_range = first.old_range().start..last.old_range().end;
        let new_range = first.new_range().start..last.new_range().end;
        result.text.push_str(&format!("@@ -{} +{} @@\n", range(old_range), range(new_range)));
        for op in &group {
            match op {
                // As they are in the new text: white space may differ.
                DiffOp::Equal { .. } => lines(' ', &new[op.new_range()], &mut result.text),
                _ => {
                    lines('-', &old[op.old_range()], &mut result.text);
                    lines('+', &new[op.new_range()], &mut result.text);
                }
            }
            if result.text.len() > how.most {
                break;
            }
        }
        if result.text.len() > how.most {
            result.text.truncate(before);
            result.omitted += 1;
        }
    }
    result
}

fn lines(sign: char, lines: &[&str], text: &mut String) {
    for line in lines {
        text.push(sign);
        text.push_str(line);
        if !line.ends_with('\n') {
            text.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// A range of a hunk's header: an empty one is named by the line before it.
fn range(range: Range<usize>) -> String {
    match range.len() {
        0 => format!("{},0", range.start),
        1 => format!("{}", range.start + 1),
        length => format!("{},{length}", range.start + 1),
    }
}

/// What of a line is compared.
fn key(line: &str, ignore: Whitespace) -> Cow<'_, str> {
    let is_white = |c: char| matches!(c, ' ' | '\t' | '\r' | '\n');
    match ignore {
        Whitespace::Exact => line.into(),
        Whitespace::All => line.chars().filter(|c| !is_white(*c)).collect(),
        Whitespace::Amount => {
            let line = line.trim_end_matches(is_white);
            let mut short = String::with_capacity(line.len());
            for c in line.chars() {
                match is_white(c) {
                    false => short.push(c),
                    true if short.ends_with(' ') => {}
                    true => short.push(' '),
                }
            }
            short.into()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn how(context: usize, ignore: Whitespace) -> How {
        How { context, ignore, most: 1 << 20, deadline: None }
    }

    #[test]
    fn diffs() {
        let table = [
            ("", "", 3, ""),
            ("a\n", "a\n", 3, ""),
            ("", "a\n", 3, "@@ -0,0 +1 @@\n+a\n"),
            ("a\nb\n", "", 3, "@@ -1,2 +0,0 @@\n-a\n-b\n"),
            ("a\nb\nc\n", "a\nB\nc\n", 1, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"),
            ("a\nb\nc\n", "a\nB\nc\n", 0, "@@ -2 +2 @@\n-b\n+B\n"),
            ("a\nc\n", "a\nb\nc\n", 0, "@@ -1,0 +2 @@\n+b\n"),
            ("a", "a\n", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
            ("a\r\n", "a\n", 3, "@@ -1 +1 @@\n-a\r\n+a\n"),
            // A carriage return alone ends no line.
            ("a\rb\n", "a\rc\n", 3, "@@ -1 +1 @@\n-a\rb\n+a\rc\n"),
        ];
        for (old, new, context, expected) in table {
            assert_eq!(diff(old, new, &how(context, Whitespace::Exact)).text, expected, "{old:?} → {new:?}");
        }
    }

    #[test]
    fn whitespace() {
        let table = [
            ("a  b\n", "a b \n", Whitespace::Amount, 0),
            ("a b\n", "ab\n", Whitespace::Amount, 1),
            (" a\n", "a\n", Whitespace::Amount, 1),
            (" a b\r\n", "ab\n", Whitespace::All, 0),
            ("a b\n", "ac\n", Whitespace::All, 1),
        ];
        for (old, new, ignore, hunks) in table {
            assert_eq!(diff(old, new, &how(3, ignore)).hunks, hunks, "{old:?} → {new:?} {ignore:?}");
        }
        // Around a change stands what is there now.
        let text = diff("a  b\nx\n", "a b\ny\n", &how(3, Whitespace::Amount)).text;
        assert_eq!(text, "@@ -1,2 +1,2 @@\n a b\n-x\n+y\n");
    }

    #[test]
    fn whole_hunks_up_to_the_limit() {
        let old = "a\n1\n2\n3\nb\n1\n2\n3\nc\n";
        let new = "A\n1\n2\n3\nB\n1\n2\n3\nC\n";
        let all = diff(old, new, &how(1, Whitespace::Exact));
        assert_eq!((all.hunks, all.omitted, all.added, all.removed), (3, 0, 3, 3));
        let some = diff(old, new, &How { most: all.text.len() - 1, ..how(1, Whitespace::Exact) });
        assert_eq!((some.hunks, some.omitted, some.added, some.removed), (3, 1, 3, 3));
        assert!(all.text.starts_with(&some.text) && some.text.ends_with(" 1\n"), "{}", some.text);
    }
}
