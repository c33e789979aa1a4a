//! Names of entries: which of them can be paths below a folder, and which of
//! them are the same to some file system.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use crate::refusal::{Reason, Refusal};
use crate::{Entry, Kind};

/// The longest path, in bytes: what is longer becomes no artifact.
const MOST_PATH: usize = 1024;

/// The longest part of a path, in bytes, as file systems have it.
const MOST_PART: usize = 255;

/// The most folders on the way to a file: what lies deeper becomes no artifact.
const MOST_DEPTH: usize = 31;

/// The path that a name means, with one slash between its parts and none at
/// its end. Empty for the folder that everything is in.
pub(crate) fn path(name: &[u8]) -> Result<String, Refusal> {
    let refused = |why: &str| Err(Refusal::new(Reason::Name, format!("the name {why}")));
    let Ok(name) = std::str::from_utf8(name) else { return refused("is not UTF-8") };
    if name.is_empty() {
        return refused("is empty");
    }
    if name.chars().any(char::is_control) {
        return refused("holds control characters");
    }
    if name.chars().any(reorders) {
        return refused("holds invisible characters, which make it look like another one");
    }
    if name.starts_with('/') {
        return refused("is absolute");
    }
    if name.contains('\\') {
        return refused("holds a backslash, which is a separator elsewhere");
    }
    let drive = name.as_bytes().first().is_some_and(u8::is_ascii_alphabetic) && name.as_bytes().get(1) == Some(&b':');
    if drive {
        return refused("begins with a drive letter");
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.contains(&"..") {
        return refused("leads upwards with `..`");
    }
    let path = parts.join("/");
    if path.len() > MOST_PATH || parts.iter().any(|part| part.len() > MOST_PART) || parts.len() > MOST_DEPTH + 1 {
        return refused(&format!("is longer than {MOST_PATH} bytes, {MOST_PART} a part, or {MOST_DEPTH} folders"));
    }
    Ok(path)
}

/// Characters that nobody sees, and that reorder or hide what is around them.
fn reorders(c: char) -> bool {
    matches!(
        c,
        '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// A name for people: in one line and in its order.
pub(crate) fn shown(name: &[u8]) -> String {
    // A little more than can be extracted; a header has room for much more.
    let (name, more) = match name.get(..MOST_PATH + 1) {
        Some(start) => (start, "…"),
        None => (name, ""),
    };
    let mut text = String::new();
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                c if c.is_control() || reorders(c) => text.extend(c.escape_default()),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text + more
}

/// Refuses names that are one to some file systems: those that don't tell
/// case or composition apart. All of them are, since which one wins would
/// depend on who extracts. A link counts as a file: nothing is below it.
pub(crate) fn refuse_collisions(entries: &mut [Entry]) {
    /// What is known of one place.
    #[derive(Default)]
    struct Place<'a> {
        spellings: HashSet<&'a str>,
        files: usize,
        folder: bool,
    }
    let mut places: HashMap<String, Place<'_>> = HashMap::new();
    for entry in entries.iter() {
        let Some(path) = entry.path.as_deref().filter(|path| !path.is_empty()) else { continue };
        for (end, last) in ends(path) {
            let place = places.entry(key(&path[..end])).or_default();
            place.spellings.insert(&path[..end]);
            if last && entry.kind != Kind::Folder {
                place.files += 1;
            } else {
                place.folder = true;
            }
        }
    }
    // The entries whose way leads through a bad place, and why.
    let refusals: Vec<Option<Refusal>> = entries
        .iter()
        .map(|entry| {
            let path = entry.path.as_deref().filter(|path| !path.is_empty())?;
            ends(path).find_map(|(end, _)| {
                let place = places.get(&key(&path[..end]))?;
                let at = &path[..end];
                if place.spellings.len() > 1 {
                    let mut all: Vec<&str> = place.spellings.iter().copied().collect();
                    all.sort_unstable();
                    let all = all.join("`, `");
                    return Some(Refusal::new(
                        Reason::Collision,
                        format!("some file systems can't tell apart `{all}`"),
                    ));
                }
                if place.files > 0 && place.folder {
                    return Some(Refusal::new(Reason::Collision, format!("`{at}` is a folder and something else")));
                }
                (place.files > 1)
                    .then(|| Refusal::new(Reason::Duplicate, format!("{} entries have this name", place.files)))
            })
        })
        .collect();
    for (entry, refusal) in entries.iter_mut().zip(refusals) {
        if entry.refused.is_none() {
            entry.refused = refusal;
        }
    }
}

/// Where the folders on a path end, and the path itself.
fn ends(path: &str) -> impl Iterator<Item = (usize, bool)> {
    let folders = path.match_indices('/').map(|(at, _)| (at, false));
    folders.chain([(path.len(), true)])
}

/// Equal for names that some file system takes for one.
fn key(path: &str) -> String {
    // Once more after lower case, which can leave a composition open.
    path.nfd().collect::<String>().to_lowercase().nfd().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths() {
        let table: [(&[u8], Result<&str, &str>); 32] = [
            (b"a", Ok("a")),
            (b"a/b.txt", Ok("a/b.txt")),
            (b"./a//b/./c/", Ok("a/b/c")),
            (b"./", Ok("")),
            ("é/日本".as_bytes(), Ok("é/日本")),
            (b"...", Ok("...")),
            (b"a..b", Ok("a..b")),
            (b"-rf", Ok("-rf")),
            (b"a:b", Err("drive letter")),
            (b"", Err("empty")),
            (b"/etc/passwd", Err("absolute")),
            (b"//a", Err("absolute")),
            (b"..", Err("upwards")),
            (b"../a", Err("upwards")),
            (b"a/../b", Err("upwards")),
            (b"a/..", Err("upwards")),
            (b"a\\b", Err("backslash")),
            (b"..\\a", Err("backslash")),
            (b"C:/a", Err("drive letter")),
            (b"c:a", Err("drive letter")),
            (b"a\0b", Err("control")),
            (b"a\nb", Err("control")),
            (b"a\x1b[31m", Err("control")),
            ("a\u{85}b".as_bytes(), Err("control")),
            ("a\u{202e}txt.exe".as_bytes(), Err("invisible")),
            ("a\u{2066}b".as_bytes(), Err("invisible")),
            ("a\u{200b}b".as_bytes(), Err("invisible")),
            ("\u{feff}a".as_bytes(), Err("invisible")),
            (b"\xff", Err("not UTF-8")),
            (b"a\xc0\xafb", Err("not UTF-8")),
            (b"\xed\xa0\x80", Err("not UTF-8")),
            (&[b'a'; 256], Err("longer")),
        ];
        for (name, expected) in table {
            match (path(name), expected) {
                (Ok(path), Ok(expected)) => assert_eq!(path, expected),
                (Err(refusal), Err(part)) => {
                    assert!(refusal.reason == Reason::Name && refusal.message.contains(part), "{name:?}: {refusal:?}");
                }
                (got, _) => panic!("{name:?}: {got:?}"),
            }
        }
        assert!(path("a/".repeat(MOST_DEPTH + 1).as_bytes()).is_ok());
        assert!(path("a/".repeat(MOST_DEPTH + 2).as_bytes()).is_err());
        assert!(path(vec!["a".repeat(250); 5].join("/").as_bytes()).is_err());
    }

    #[test]
    fn names_for_people_are_harmless() {
        assert_eq!(shown(b"a\x1b[1m\xff\n"), "a\\u{1b}[1m\\xff\\n");
        assert_eq!(shown("é\u{202e}".as_bytes()), "é\\u{202e}");
        assert!(shown(&[b'a'; 9000]).len() < 1100);
    }
}
