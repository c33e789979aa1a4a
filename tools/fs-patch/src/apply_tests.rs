use super::*;
use crate::parse::parse;

fn applied(text: &str, hunks: &str, fuzz: usize) -> Applied {
    let files = parse(&format!("--- x\n+++ x\n{hunks}"), None).unwrap();
    apply(text, &files[0].hunks, fuzz)
}

fn numbers(range: std::ops::RangeInclusive<u32>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

#[test]
fn fits() {
    let change = "@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n";
    let table = [
        (numbers(1..=5), change, 0, "1\n2\nthree\n4\n5\n".to_owned(), (2, 0, 0)),
        // It moved, and there is only one place.
        (format!("0\n0\n{}", numbers(1..=5)), change, 0, "0\n0\n1\n2\nthree\n4\n5\n".to_owned(), (4, 2, 0)),
        (numbers(2..=5), change, 0, "2\nthree\n4\n5\n".to_owned(), (1, -1, 0)),
        // Some of the context is another one, and stays so.
        ("1\nX\n3\n4\n5\n".to_owned(), change, 1, "1\nX\nthree\n4\n5\n".to_owned(), (2, 0, 1)),
        // Ends of files.
        ("a".to_owned(), "@@ -1 +1 @@\n-a\n\\ No newline\n+b\n", 0, "b\n".to_owned(), (1, 0, 0)),
        ("a\n".to_owned(), "@@ -1 +1 @@\n-a\n+b\n\\ No newline\n", 0, "b".to_owned(), (1, 0, 0)),
        (String::new(), "@@ -0,0 +1 @@\n+a\n", 0, "a\n".to_owned(), (1, 0, 0)),
        ("a\nb\n".to_owned(), "@@ -1,0 +2 @@\n+x\n", 0, "a\nx\nb\n".to_owned(), (2, 0, 0)),
        // Line ends of the file, whatever became of the patch on its way.
        ("1\r\n2\r\n".to_owned(), "@@ -1,2 +1,3 @@\n 1\n+x\n 2\n", 0, "1\r\nx\r\n2\r\n".to_owned(), (1, 0, 0)),
        ("1\r\n2\r\n".to_owned(), "@@ -2 +2 @@\n-2\r\n+x\r\n", 0, "1\r\nx\r\n".to_owned(), (2, 0, 0)),
        ("1\n2\n".to_owned(), "@@ -2 +2 @@\r\n-2\r\n+x\r\n", 0, "1\nx\n".to_owned(), (2, 0, 0)),
        // That is what this hunk is about.
        ("1\n2\n".to_owned(), "@@ -2 +2 @@\n-2\n+2\r\n", 0, "1\n2\r\n".to_owned(), (2, 0, 0)),
        ("1\r\n2\n".to_owned(), "@@ -1 +1 @@\n-1\r\n+x\r\n", 0, "x\r\n2\n".to_owned(), (1, 0, 0)),
    ];
    for (text, hunks, fuzz, expected, (line, offset, used)) in table {
        let applied = applied(&text, hunks, fuzz);
        assert_eq!(applied.rejected, [], "{text:?} {hunks:?}");
        assert_eq!(applied.text, expected, "{text:?} {hunks:?}");
        assert_eq!(applied.hunks, [Place { hunk: 1, line, offset, fuzz: used }], "{text:?} {hunks:?}");
    }
}

#[test]
fn several_hunks_go_with_the_first_one() {
    let hunks = "@@ -1,2 +1,3 @@\n+0\n 1\n 2\n@@ -9,2 +10 @@\n 9\n-10\n";
    let moved = applied(&format!("x\ny\n{}", numbers(1..=12)), hunks, 0);
    assert_eq!(moved.text, format!("x\ny\n0\n{}{}", numbers(1..=9), numbers(11..=12)));
    assert_eq!(moved.hunks.iter().map(|place| place.offset).collect::<Vec<_>>(), [2, 2]);
    assert_eq!((moved.added, moved.removed), (1, 1));
}

#[test]
fn rejects() {
    let table = [
        ("1\n2\n3\n", "@@ -2 +2 @@\n-X\n+Y\n", 2, "not in the file"),
        // Context counts as well, unless fuzz is given.
        ("1\nX\n3\n4\n5\n", "@@ -2,3 +2,3 @@\n 2\n-3\n+three\n 4\n", 0, "not in the file"),
        // Two lines differ, and one may.
        ("X\nY\n3\n4\n", "@@ -1,4 +1,4 @@\n 1\n 2\n-3\n+x\n 4\n", 1, "not in the file"),
        // A line to be removed is never guessed.
        ("1\nX\n3\n", "@@ -1,3 +1,2 @@\n 1\n-2\n 3\n", 2, "not in the file"),
        ("x\na\nx\na\nx\n", "@@ -1 +1 @@\n-a\n+b\n", 0, "lines 2 and 4"),
        ("1\nthree\n", "@@ -1,2 +1,2 @@\n 1\n-3\n+three\n", 0, "applied already"),
        ("1\n", "@@ -5,0 +6 @@\n+x\n", 0, "the file has 1"),
        // The last line has no end, and the patch says that it has.
        ("1\n2", "@@ -2 +2 @@\n-2\n+x\n", 0, "not in the file"),
    ];
    for (text, hunks, fuzz, reason) in table {
        let applied = applied(text, hunks, fuzz);
        assert_eq!(applied.text, text, "{text:?} {hunks:?}");
        assert_eq!(applied.rejected.len(), 1, "{text:?} {hunks:?}");
        assert!(applied.rejected[0].reason.contains(reason), "{:?}", applied.rejected[0]);
    }
}

#[test]
fn a_reject_says_what_is_nearest() {
    let applied = applied("0\n1\n2\nX\n4\n", "@@ -1,4 +1,4 @@\n 1\n 2\n-3\n+x\n 4\n", 0);
    let nearest = Nearest {
        line: 2,
        matching: 3,
        of: 4,
        differs_at: 4,
        expected: "3\n".to_owned(),
        found: Some("X\n".to_owned()),
    };
    assert_eq!(applied.rejected[0].nearest, Some(nearest));
}

#[test]
fn one_rejected_hunk_does_not_move_the_others() {
    let hunks = "@@ -1 +1 @@\n-1\n+one\n@@ -2 +2 @@\n-X\n+Y\n@@ -3 +3 @@\n-3\n+three\n";
    let applied = applied("1\n2\n3\n", hunks, 0);
    assert_eq!(applied.text, "one\n2\nthree\n");
    assert_eq!(applied.hunks.iter().map(|place| place.hunk).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(applied.rejected[0].hunk, 2);
}

#[test]
fn hunks_do_not_overlap() {
    // The second would change what the first one wrote.
    let hunks = "@@ -1,2 +1 @@\n 1\n-2\n@@ -2 +1 @@\n-2\n+x\n";
    let applied = applied("1\n2\n3\n", hunks, 0);
    assert_eq!((applied.text.as_str(), applied.rejected.len()), ("1\n3\n", 1));
}
