//! Paths as text: any bytes, and still one line that people can read.

/// A path as text. What is no UTF-8, control characters and the sign itself are
/// `%XX`; everything else stands as it is. Two paths never have the same text.
pub(crate) fn text(path: &[u8]) -> String {
    let mut out = String::with_capacity(path.len());
    let escape = |out: &mut String, bytes: &[u8]| {
        for byte in bytes {
            out.push('%');
            for digit in [byte >> 4, byte & 15] {
                out.push(char::from_digit(digit.into(), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    };
    for chunk in path.utf8_chunks() {
        for sign in chunk.valid().chars() {
            if sign == '%' || sign.is_control() {
                escape(&mut out, sign.encode_utf8(&mut [0; 4]).as_bytes());
            } else {
                out.push(sign);
            }
        }
        escape(&mut out, chunk.invalid());
    }
    out
}

/// The path that a text stands for. `None`: it is not how [`text`] writes one.
pub(crate) fn bytes(written: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(written.len());
    let mut rest = written.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            out.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        let digit = |byte: &u8| char::from(*byte).to_digit(16);
        out.push(u8::try_from(digit(high)? << 4 | digit(low)?).ok()?);
        rest = after;
    }
    // One text for each path: what can be written in two ways is two names.
    (text(&out) == written).then_some(out)
}

/// Whether a path leads to something below a folder, and nowhere else.
pub(crate) fn is_below(path: &[u8]) -> bool {
    !path.is_empty()
        && !path.contains(&0)
        && path.split(|byte| *byte == b'/').all(|name| !matches!(name, b"" | b"." | b".."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_people_can_read_stays() {
        for (path, written) in [
            (&b"docs/a b.txt"[..], "docs/a b.txt"),
            ("möwe/日本".as_bytes(), "möwe/日本"),
            (b"100%", "100%25"),
            (b"new\nline", "new%0Aline"),
            (b"\xFF\xFEx", "%FF%FEx"),
        ] {
            assert_eq!(text(path), written);
            assert_eq!(bytes(written).unwrap(), path);
        }
        for not in ["%", "%4", "%zz", "%41", "%0a", "a\nb"] {
            assert_eq!(bytes(not), None, "{not:?}");
        }
    }

    #[test]
    fn a_path_leads_below_or_is_none() {
        for (path, below) in
            [("a", true), ("a/b", true), ("..a", true), ("", false), ("/a", false), ("a/", false), ("a//b", false)]
                .into_iter()
                .chain([("..", false), ("a/../b", false), ("./a", false), ("a\0b", false)])
        {
            assert_eq!(is_below(path.as_bytes()), below, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn every_path_has_one_text(path in proptest::collection::vec(any::<u8>(), 0..40)) {
            let written = text(&path);
            prop_assert!(!written.chars().any(char::is_control));
            prop_assert_eq!(bytes(&written), Some(path));
        }
    }
}
