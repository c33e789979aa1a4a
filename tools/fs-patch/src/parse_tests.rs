use super::*;

fn context(text: &str) -> Line {
    Line::Context(text.to_owned())
}

fn removed(text: &str) -> Line {
    Line::Removed(text.to_owned())
}

fn added(text: &str) -> Line {
    Line::Added(text.to_owned())
}

#[test]
fn several_files_with_prose_around_them() {
    let text = "\
From: somebody\n\nprose\n--\n\
diff --git a/d/x b/d/x\nindex 1..2 100644\n--- a/d/x\n+++ b/d/x\n@@ -1,2 +1,2 @@ fn main\n a\n-b\n+c\n@@ -9 +9,0 @@\n-z\n\
diff --git a/empty b/empty\nnew file mode 100644\nindex 0..0\n\
diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n\
diff --git a/none b/none\ndeleted file mode 100644\n";
    let files = parse(text, None).unwrap();
    let names: Vec<_> = files.iter().map(|file| (file.path.as_str(), file.action, file.hunks.len())).collect();
    let expected = [
        ("d/x", Action::Modify, 2),
        ("empty", Action::Create, 0),
        ("gone", Action::Delete, 1),
        ("none", Action::Delete, 0),
    ];
    assert_eq!(names, expected);
    assert_eq!(files[0].hunks[0].lines, [context("a\n"), removed("b\n"), added("c\n")]);
    assert_eq!(files[0].hunks[0].header, "@@ -1,2 +1,2 @@ fn main");
    assert_eq!((files[0].hunks[1].start, &files[0].hunks[1].lines[..]), (9, &[removed("z\n")][..]));
    assert_eq!(files[2].hunks[0].lines, [removed("x")]);
}

#[test]
fn line_ends() {
    let text = "--- x\r\n+++ x\r\n@@ -1,3 +1,2 @@\r\n a\r\n\r\n-b\r\n";
    let files = parse(text, None).unwrap();
    assert_eq!(files[0].hunks[0].lines, [context("a\r\n"), context("\r\n"), removed("b\r\n")]);
    // Each side has its own mark; the patch itself may end anywhere.
    let text = "--- x\n+++ x\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b";
    assert_eq!(parse(text, None).unwrap()[0].hunks[0].lines, [removed("a"), added("b\n")]);
    let text = "--- x\n+++ x\n@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file";
    assert_eq!(parse(text, None).unwrap()[0].hunks[0].lines, [removed("a\n"), added("a")]);
}

#[test]
fn a_removed_line_may_look_like_a_header() {
    let text = "--- x\n+++ x\n@@ -1,2 +1 @@\n--- x\n+++ x\n-y\n";
    assert_eq!(parse(text, None).unwrap()[0].hunks[0].lines, [removed("-- x\n"), added("++ x\n"), removed("y\n")]);
}

#[test]
fn refusals_name_the_line() {
    let git = "diff --git a/x b/x\n";
    let names = "--- a/x\n+++ b/x\n";
    let table = [
        (String::new(), 1, "no unified diff"),
        ("prose\n".to_owned(), 1, "no unified diff"),
        (format!("{git}similarity index 90%\nrename from x\nrename to y\n"), 2, "renames"),
        (format!("{git}rename from x\n"), 2, "renames are not done"),
        (format!("{git}copy from x\n"), 2, "copies"),
        (format!("{git}old mode 100644\nnew mode 100755\n"), 2, "modes are not changed"),
        (format!("{git}new file mode 120000\n{names}"), 2, "mode 120000"),
        (format!("{git}new file mode 100755\n"), 2, "mode 100755"),
        (format!("{git}GIT binary patch\nliteral 3\n"), 2, "binary patches"),
        (format!("{git}Binary files a/x and b/x differ\n"), 2, "binary files"),
        ("Binary files a/x and b/x differ\n".to_owned(), 1, "binary files"),
        (format!("{git}new file mode 100644\n{names}@@ -1 +1 @@\n-a\n+b\n"), 3, "something else"),
        ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), 1, "which file"),
        (names.to_owned(), 3, "has no hunk"),
        (format!("{names}@@ 1 @@\n"), 3, "expected a hunk's header"),
        (format!("{names}@@ -0 +1 @@\n-a\n+b\n"), 3, "expected a hunk's header"),
        (format!("{names}@@ -100000001 +1 @@\n-a\n+b\n"), 3, "expected a hunk's header"),
        (format!("{names}@@ -1,3 +1,3 @@\n a\n-b\n+c\n"), 3, "counts 3 old and 3 new lines, but 2 and 2"),
        (format!("{names}@@ -1,2 +1 @@\n a\n+b\n-c\n"), 3, "counts 2 old and 1 new"),
        (format!("{names}@@ -1,2 +1,2 @@\n a\nb\n"), 3, "begin each line"),
        (format!("{names}@@ -1 +1 @@\n a\n"), 3, "changes nothing"),
        (format!("{names}@@ -9 +9 @@\n-a\n+b\n@@ -1 +1 @@\n-a\n+b\n"), 9, "order"),
        (format!("{names}@@ -1 +1 @@\n-a\n+b\n{names}@@ -2 +2 @@\n-a\n+b\n"), 11, "comes twice"),
    ];
    for (text, line, why) in table {
        let fault = parse(&text, None).unwrap_err();
        assert!(fault.line == line && fault.why.contains(why), "{text}: {fault:?}");
    }
}

#[test]
fn limits() {
    let file = |index: usize| format!("--- x{index}\n+++ x{index}\n@@ -1 +1 @@\n-a\n+b\n");
    assert_eq!(parse(&(0..MOST_FILES).map(file).collect::<String>(), None).unwrap().len(), MOST_FILES);
    assert!(parse(&(0..=MOST_FILES).map(file).collect::<String>(), None).is_err());
    let hunks = "@@ -1 +1 @@\n-a\n+b\n".repeat(MOST_HUNKS + 1);
    assert!(parse(&format!("--- x\n+++ x\n{hunks}"), None).unwrap_err().why.contains("hunks"));
}
