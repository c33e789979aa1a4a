//! Guessing media types. A guess helps people and models; nothing may trust
//! it, least of all by rendering HTML or SVG.

/// How many bytes are looked at to tell text from binary, as `grep` and `git`
/// do: enough for any magic number and for a stray NUL to show.
pub(crate) const SNIFFED: usize = 8192;

/// For what is neither known by its name nor text.
const UNKNOWN: &str = "application/octet-stream";

/// Extensions of text formats: believed only where the content is text.
const TEXT: &[(&str, &str)] = &[
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("diff", "text/x-diff"),
    ("htm", "text/html"),
    ("html", "text/html"),
    ("js", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("md", "text/markdown"),
    ("patch", "text/x-diff"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("tsv", "text/tab-separated-values"),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
];

/// Extensions of binary formats, with how such a file starts.
const BINARY: &[(&str, &[u8], &str)] = &[
    ("gif", b"GIF8", "image/gif"),
    ("gz", b"\x1f\x8b", "application/gzip"),
    ("jpeg", b"\xff\xd8\xff", "image/jpeg"),
    ("jpg", b"\xff\xd8\xff", "image/jpeg"),
    ("pdf", b"%PDF-", "application/pdf"),
    ("png", b"\x89PNG\r\n\x1a\n", "image/png"),
    ("wasm", b"\0asm", "application/wasm"),
    ("webp", b"RIFF", "image/webp"),
    ("zip", b"PK", "application/zip"),
];

/// Guesses from a name and the first [`SNIFFED`] bytes. A name that its
/// content belies counts for nothing.
pub(crate) fn guess(name: &str, head: &[u8]) -> &'static str {
    let extension = name.rsplit_once('.').map_or_else(String::new, |(_, extension)| extension.to_ascii_lowercase());
    if let Some((.., media_type)) =
        BINARY.iter().find(|(known, magic, _)| extension == *known && head.starts_with(magic))
    {
        return media_type;
    }
    if !is_text(head) {
        return UNKNOWN;
    }
    TEXT.iter().find(|(known, _)| extension == *known).map_or("text/plain", |(_, media_type)| media_type)
}

/// Whether a claimed media type is one in form: `type/subtype` of tokens, with
/// nothing after it, short enough for a header.
pub(crate) fn is_media_type(text: &str) -> bool {
    let token = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    text.len() <= 127 && text.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

/// UTF-8 without control characters that no text has.
fn is_text(head: &[u8]) -> bool {
    let whole = match str::from_utf8(head) {
        Ok(_) => true,
        // The sniffed part may end within a character.
        Err(error) => error.error_len().is_none() && head.len() == SNIFFED,
    };
    whole && !head.iter().any(|byte| matches!(byte, 0..=8 | 14..=26 | 28..=31 | 127))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses() {
        let mut cut = vec![b'a'; SNIFFED - 1];
        cut.push(0xc3);
        let table: &[(&str, &[u8], &str)] = &[
            ("a.txt", b"hello", "text/plain"),
            ("a", b"", "text/plain"),
            ("a.JSON", b"{}", "application/json"),
            ("a.json", b"\0\x01", "application/octet-stream"),
            ("page.html", b"<script>", "text/html"),
            ("a.svg", b"<svg/>", "image/svg+xml"),
            ("a.png", b"\x89PNG\r\n\x1a\n....", "image/png"),
            ("a.png", b"<html>", "text/plain"),
            ("a.png", b"\xff\xfe", "application/octet-stream"),
            ("dir.md/a", b"x", "text/plain"),
            ("log", b"\x1b[31mred\x1b[0m\n", "text/plain"),
            ("log", b"\xc3", "application/octet-stream"),
            ("log", &cut, "text/plain"),
        ];
        for (name, head, wanted) in table {
            assert_eq!(guess(name, head), *wanted, "{name} {:?}", &head[..head.len().min(16)]);
        }
    }

    #[test]
    fn claims() {
        for good in ["text/plain", "application/vnd.api+json"] {
            assert!(is_media_type(good), "{good}");
        }
        for bad in [
            "",
            "text",
            "/plain",
            "text/",
            "text/plain; charset=x",
            "text/plain\r\nX: y",
            "a/b/c",
            "te xt/plain",
            &format!("a/{}", "b".repeat(126)),
        ] {
            assert!(!is_media_type(bad), "{bad}");
        }
    }
}
