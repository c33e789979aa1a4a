//! What kind of file it is, from its first bytes and its name.

use std::io::{self, Read, Seek, SeekFrom};

/// How much of a file is looked at.
const HEAD: u64 = 8 << 10;

/// How many of a hundred bytes may be control characters or no UTF-8 before a
/// file without NUL bytes is taken for binary. Latin-1 prose stays below.
const ODD_PERCENT: usize = 30;

/// What a file was taken for.
pub struct Kind {
    /// A guess.
    pub media_type: &'static str,
    /// Whether it is no text that could be shown.
    pub binary: bool,
}

/// Looks at the beginning of a file and goes back to it.
pub fn sniff(file: &mut (impl Read + Seek), path: &str) -> io::Result<Kind> {
    let mut head = Vec::new();
    file.take(HEAD).read_to_end(&mut head)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(kind(&head, path))
}

fn kind(head: &[u8], path: &str) -> Kind {
    let signature =
        SIGNATURES.iter().find(|(at, bytes, _)| head.get(*at..).is_some_and(|rest| rest.starts_with(bytes)));
    if let Some((_, _, media_type)) = signature {
        return Kind { media_type, binary: true };
    }
    let binary = head.contains(&0) || odd(head) * 100 > head.len() * ODD_PERCENT;
    let extension = path.rsplit_once('.').map_or("", |(_, extension)| extension).to_ascii_lowercase();
    let named = EXTENSIONS.iter().find(|(name, _)| *name == extension).map(|(_, media_type)| *media_type);
    let unknown = if binary { "application/octet-stream" } else { "text/plain" };
    // A name that promises text is not believed of a binary file.
    let media_type = named.filter(|_| !binary).unwrap_or(unknown);
    Kind { media_type, binary }
}

/// How many bytes are control characters that text does not use, or no UTF-8.
fn odd(head: &[u8]) -> usize {
    head.utf8_chunks()
        .map(|chunk| {
            let controls = chunk.valid().bytes().filter(|byte| matches!(byte, 0..=7 | 14..=26 | 28..=31 | 127));
            controls.count() + chunk.invalid().len()
        })
        .sum()
}

/// Where, which bytes, what it is. All of them are binary.
const SIGNATURES: &[(usize, &[u8], &str)] = &[
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (4, b"ftyp", "video/mp4"),
    (0, b"OggS", "audio/ogg"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
    (0, b"\x1f\x8b", "application/gzip"),
    (0, b"\x28\xb5\x2f\xfd", "application/zstd"),
    (0, b"BZh", "application/x-bzip2"),
    (0, b"\xfd7zXZ\0", "application/x-xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (257, b"ustar", "application/x-tar"),
    (0, b"\0asm", "application/wasm"),
    (0, b"\x7fELF", "application/x-elf"),
    (0, b"SQLite format 3\0", "application/vnd.sqlite3"),
    (0, b"\xff\xfe", "text/plain; charset=utf-16le"),
    (0, b"\xfe\xff", "text/plain; charset=utf-16be"),
];

/// What text files are by their names.
const EXTENSIONS: &[(&str, &str)] = &[
    ("md", "text/markdown"),
    ("markdown", "text/markdown"),
    ("html", "text/html"),
    ("htm", "text/html"),
    ("css", "text/css"),
    ("csv", "text/csv"),
    ("tsv", "text/tab-separated-values"),
    ("js", "text/javascript"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("xml", "application/xml"),
    ("svg", "image/svg+xml"),
    ("toml", "application/toml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("sql", "application/sql"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses() {
        let table: &[(&[u8], &str, &str, bool)] = &[
            (b"", "a", "text/plain", false),
            (b"text\n", "a.rs", "text/plain", false),
            (b"# title\n", "README.MD", "text/markdown", false),
            (b"a\0b", "a.md", "application/octet-stream", true),
            (b"\x89PNG\r\n\x1a\n\0\0", "a.txt", "image/png", true),
            (b"\xff\xfea\0", "a.txt", "text/plain; charset=utf-16le", true),
            (b"caf\xe9 cr\xe8me, s'il vous pla\xeet\n", "a.txt", "text/plain", false),
            (b"\x01\x02\x03\x04abcd", "a", "application/octet-stream", true),
            (b"\x1b[31mred\x1b[0m\t\x08\n", "a.log", "text/plain", false),
        ];
        for (head, path, media_type, binary) in table {
            let kind = kind(head, path);
            assert_eq!((kind.media_type, kind.binary), (*media_type, *binary), "{head:?}");
        }
    }
}
