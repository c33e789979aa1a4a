//! The names in a patch: which file is meant, and that it can only be one
//! below the workspace.

use crate::parse::Action;

/// What stands for the side that is not there.
const NOTHING: &str = "/dev/null";

/// The longest path, in bytes, as everywhere.
const MOST_NAME: usize = 4096;

/// The file that the lines `--- ` and `+++ ` name, and what becomes of it.
pub fn of_header(old: &str, new: &str, strip: Option<usize>) -> Result<(String, Action), String> {
    let (old, new) = (read(old)?, read(new)?);
    match (old == NOTHING, new == NOTHING) {
        (true, true) => Err("both names are /dev/null".to_owned()),
        (true, false) => Ok((plain(&new, strip, "b/")?, Action::Create)),
        (false, true) => Ok((plain(&old, strip, "a/")?, Action::Delete)),
        (false, false) => {
            // Both or none: a folder may well be called `a`.
            let strip = strip.unwrap_or(usize::from(old.starts_with("a/") && new.starts_with("b/")));
            let (old, new) = (plain(&old, Some(strip), "")?, plain(&new, Some(strip), "")?);
            if old != new {
                return Err(format!(
                    "the names differ (`{old}`, `{new}`): renames are not done; both lines must name the file to change"
                ));
            }
            Ok((new, Action::Modify))
        }
    }
}

/// The file that `diff --git` names, where nothing else does.
pub fn of_git(names: &str, strip: Option<usize>) -> Result<String, String> {
    let unclear = || "the line `diff --git` does not name one file twice".to_owned();
    let middle = match names.strip_prefix('"') {
        Some(quoted) => quoted.find("\" ").ok_or_else(unclear)? + 2,
        // Two names of the same length, which differ in their first letter.
        None => names.len() / 2,
    };
    let (old, new) = names.split_at_checked(middle).ok_or_else(unclear)?;
    let (path, _) = of_header(old, new.strip_prefix(' ').ok_or_else(unclear)?, strip)?;
    Ok(path)
}

/// A name as it is meant: without the date behind a tab, and unquoted.
fn read(text: &str) -> Result<String, String> {
    if let Some(quoted) = text.strip_prefix('"') {
        return unquoted(quoted);
    }
    Ok(text.split('\t').next().unwrap_or_default().trim_end().to_owned())
}

/// A name as git quotes it: like a string of C.
fn unquoted(text: &str) -> Result<String, String> {
    let wrong = || "a quoted name is not quoted as git does".to_owned();
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    loop {
        match rest.next().ok_or_else(wrong)? {
            b'"' => break,
            b'\\' => match rest.next().ok_or_else(wrong)? {
                b'a' => bytes.push(7),
                b'b' => bytes.push(8),
                b't' => bytes.push(b'\t'),
                b'n' => bytes.push(b'\n'),
                b'v' => bytes.push(11),
                b'f' => bytes.push(12),
                b'r' => bytes.push(b'\r'),
                first @ b'0'..=b'3' => {
                    let mut digit = || rest.next().filter(|byte| matches!(byte, b'0'..=b'7')).ok_or_else(wrong);
                    bytes.push((first - b'0') << 6 | (digit()? - b'0') << 3 | (digit()? - b'0'));
                }
                same @ (b'"' | b'\\') => bytes.push(same),
                _ => return Err(wrong()),
            },
            byte => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| "a name is not UTF-8".to_owned())
}

/// A path below the workspace, spelled in the one way: two names of one file
/// would be two files to whoever reads the patch.
fn plain(name: &str, strip: Option<usize>, prefix: &str) -> Result<String, String> {
    let strip = strip.unwrap_or(usize::from(!prefix.is_empty() && name.starts_with(prefix)));
    let shown = name.escape_debug();
    let mut rest = name;
    for _ in 0..strip {
        let (_, below) = rest.split_once('/').ok_or_else(|| format!("`{shown}` has no {strip} folders to take off"))?;
        rest = below;
    }
    if rest.is_empty() || rest.len() > MOST_NAME {
        return Err(format!("`{shown}` is no file name of 1 to {MOST_NAME} bytes"));
    }
    if rest.starts_with('/') {
        return Err(format!("`{shown}` is absolute: files are named relative to the workspace"));
    }
    if rest.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return Err(format!("`{shown}`: a name has no empty part, no `.` and no `..`"));
    }
    if rest.chars().any(char::is_control) {
        return Err(format!("`{shown}` holds control characters"));
    }
    Ok(rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let table = [
            ("a/x", "b/x", None, Ok(("x", Action::Modify))),
            ("a/x\t2026-01-01", "b/x\t2026-01-02", None, Ok(("x", Action::Modify))),
            ("x", "x", None, Ok(("x", Action::Modify))),
            // A folder that is called like git's prefix.
            ("a/x", "a/x", None, Ok(("a/x", Action::Modify))),
            ("/dev/null", "b/d/x", None, Ok(("d/x", Action::Create))),
            ("a/x y", "/dev/null", None, Ok(("x y", Action::Delete))),
            ("old/d/x", "new/d/x", Some(1), Ok(("d/x", Action::Modify))),
            ("a/x", "b/x", Some(0), Err("names differ")),
            ("a/x", "b/y", None, Err("renames are not done")),
            (r#""a/\303\251""#, r#""b/\303\251""#, None, Ok(("é", Action::Modify))),
            (r#""a/\303""#, r#""b/\303""#, None, Err("not UTF-8")),
            (r#""a/x"#, r#""b/x"#, None, Err("not quoted")),
            (r#""a/x\ny""#, r#""b/x\ny""#, None, Err("control characters")),
            ("/etc/passwd", "/etc/passwd", None, Err("absolute")),
            ("a//etc/passwd", "b//etc/passwd", None, Err("absolute")),
            ("a/../x", "b/../x", None, Err("no `..`")),
            ("a/d/./x", "b/d/./x", None, Err("no `.`")),
            ("a/d//x", "b/d//x", None, Err("no empty part")),
            ("a/", "b/", None, Err("no file name")),
            ("a/x", "b/x", Some(2), Err("to take off")),
            ("/dev/null", "/dev/null", None, Err("both names")),
        ];
        for (old, new, strip, expected) in table {
            match (of_header(old, new, strip), expected) {
                (Ok((path, action)), Ok(expected)) => assert_eq!((path.as_str(), action), expected, "{old} {new}"),
                (Err(why), Err(part)) => assert!(why.contains(part), "{old} {new}: {why}"),
                (got, _) => panic!("{old} {new}: {got:?}"),
            }
        }
    }

    #[test]
    fn names_of_git() {
        assert_eq!(of_git("a/x y b/x y", None).unwrap(), "x y");
        assert_eq!(of_git(r#""a/\303\251" "b/\303\251""#, None).unwrap(), "é");
        for unclear in ["a/x b/yz", "a/xb/x", "\"a/x", ""] {
            assert!(of_git(unclear, None).is_err(), "{unclear}");
        }
    }
}
