//! Tars that honest programs don't write, and some that they do.

use crate::testing::{archive, extracted, gzip, record, tape, tape_sized, tar, with_checksum};
use crate::{Fault, Format, MOST_ENTRIES, MOST_FILE};

fn good() -> Vec<u8> {
    tape("good", b'0', b"x")
}

fn fault(bytes: Vec<u8>) -> String {
    match archive(bytes) {
        Err(Fault::Damaged(why) | Fault::Large(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn plain_ones() {
    let long = format!("{}/{}", "d".repeat(120), "f".repeat(120));
    let entries = [
        tape("pax_global_header", b'g', &record("comment", "0123")),
        tape("./d/", b'5', b""),
        tape("./d/a", b'0', b"one"),
        tape("old", 0, &[b'x'; 513]),
        tape("old-folder/", 0, b""),
        tape("././@LongLink", b'L', format!("{long}\0").as_bytes()),
        tape("cut", b'0', b"two"),
        tape("x", b'x', &[record("path", "né"), record("mtime", "1.5"), record("size", "1")].concat()),
        tape("ascii", b'0', b"3"),
    ];
    let bytes = tar(&entries);
    for bytes in [bytes.clone(), gzip(&bytes)] {
        let (files, refused) = extracted(bytes).unwrap();
        assert_eq!(refused, []);
        let files: Vec<(&str, usize)> = files.iter().map(|(name, content)| (name.as_str(), content.len())).collect();
        assert_eq!(files, [("d/a", 3), ("old", 513), (long.as_str(), 3), ("né", 1)]);
    }
    assert_eq!(archive(tar(&[])).unwrap().format(), Format::Tar);
    let packed = archive(gzip(&bytes)).unwrap();
    assert_eq!((packed.format(), packed.entries().len()), (Format::TarGz, 6));
    // A file in several gzips is one.
    let (half, rest) = bytes.split_at(1024);
    assert_eq!(archive([gzip(half), gzip(rest)].concat()).unwrap().entries().len(), 6);
}

#[test]
fn entries_that_are_refused() {
    let sparse = {
        let mut header = [0; 512];
        header[..1].copy_from_slice(b"s");
        header[124..136].copy_from_slice(b"00000000001\0");
        header[156] = b'S';
        header[257..265].copy_from_slice(b"ustar  \0");
        header[482] = 1;
        // One more header, then the content.
        let mut bytes = with_checksum(header, b"");
        bytes.extend([0; 512]);
        bytes.extend(b"x");
        bytes.resize(4 * 512 - 512, 0);
        bytes
    };
    let pax = |records: &[Vec<u8>]| [tape("x", b'x', &records.concat()), tape("a", b'0', b"x")].concat();
    let table: Vec<(&str, usize, Vec<u8>)> = vec![
        ("name", 1, tape("../a", b'0', b"x")),
        ("name", 1, tape("/a", b'0', b"x")),
        ("name", 1, tape("a\\b", b'0', b"x")),
        ("name", 1, tape("C:\\a", b'0', b"x")),
        ("name", 1, tape("a\nb", b'0', b"x")),
        ("name", 1, tape_sized(b"\xff", b'0', b"x", 1)),
        ("name", 1, tape(".", b'0', b"x")),
        ("name", 1, pax(&[record("path", "../a")])),
        ("name", 1, pax(&[record("path", "a\0b")])),
        ("name", 1, [tape("L", b'L', b"../a\0"), tape("a", b'0', b"x")].concat()),
        ("name", 1, [tape("L", b'L', b"a\0b\0"), tape("a", b'0', b"x")].concat()),
        ("name", 1, pax(&[record("path", &"a/".repeat(40))])),
        ("name", 1, pax(&[record("path", &"a".repeat(2000))])),
        ("link", 1, tape("a", b'2', b"")),
        ("link", 1, tape("a", b'1', b"")),
        ("link", 1, [tape("K", b'K', b"/etc/passwd\0"), tape("a", b'2', b"")].concat()),
        ("special", 1, tape("a", b'3', b"")),
        ("special", 1, tape("a", b'4', b"")),
        ("special", 1, tape("a", b'6', b"")),
        ("special", 1, tape("a", b'V', b"")),
        ("special", 1, tape("a", b'Z', b"x")),
        ("duplicate", 2, [tape("a", b'0', b"x"), tape("./a", b'0', b"y")].concat()),
        ("collision", 2, [tape("a", b'0', b"x"), tape("A", b'0', b"y")].concat()),
        ("collision", 2, [tape("ſ", b'0', b"x"), tape("ſ/a", b'0', b"y")].concat()),
        ("method", 1, sparse),
        ("method", 1, pax(&[record("GNU.sparse.major", "1")])),
    ];
    for (reason, count, entries) in table {
        let shown = String::from_utf8_lossy(&entries[..40]).into_owned();
        let (files, refused) = extracted(tar(&[entries, good()])).unwrap();
        let reasons: Vec<&str> = refused.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(reasons, vec![reason; count], "{shown}");
        assert_eq!(files, [("good".to_owned(), b"x".to_vec())], "{shown}");
    }
}

#[test]
fn two_steps_to_another_folder() {
    for kind in [b'1', b'2'] {
        // To a folder, to a file that is written later, and to nothing.
        let entries = [tape("d", kind, b""), tape("d/passwd", b'0', b"x"), tape("f", kind, b""), tape("f", b'0', b"y")];
        let (files, refused) = extracted(tar(&entries)).unwrap();
        assert_eq!(files, []);
        let reasons: Vec<_> = refused.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
        assert_eq!(reasons, [("d", "link"), ("d/passwd", "collision"), ("f", "link"), ("f", "duplicate")]);
    }
    assert_eq!(archive(tar(&[tape("a", b'2', b"")])).unwrap().entries()[0].target.as_deref(), Some("target"));
}

#[test]
fn archives_that_are_refused() {
    let whole = tar(&[good()]);
    let pax = |records: &[Vec<u8>]| tar(&[tape("x", b'x', &records.concat()), tape("a", b'0', b"x")]);
    let global = |key: &str| tar(&[tape("g", b'g', &record(key, "1")), good()]);
    let extended = |size: u64| tar(&[tape_sized(b"x", b'x', b"", size), good()]);
    let mut broken = whole.clone();
    broken[0] ^= 1;
    let table = [
        ("too early", whole[..512].to_vec()),
        ("too early", whole[..600].to_vec()),
        // Not even one block of its end.
        ("too early", whole[..1024].to_vec()),
        ("behind its end", [whole.clone(), good()].concat()),
        ("behind its end", [good(), vec![0; 512], good()].concat()),
        ("another checksum", [good(), broken].concat()),
        ("an extended header has", extended(3 << 30)),
        ("an extended header has", tar(&[tape_sized(b"L", b'L', b"", 1 << 20), good()])),
        ("an extended header has", tar(&[tape_sized(b"g", b'g', b"", 1 << 20), good()])),
        ("not of its form", extended(1)),
        ("not of its form", tar(&[tape("x", b'x', b"99 path=a\n"), good()])),
        ("not of its form", tar(&[tape("x", b'x', b"0 path=a\n"), good()])),
        ("not of its form", tar(&[tape("x", b'x', b"9 path:a\n"), good()])),
        ("two sizes", pax(&[record("size", "2")])),
        ("no number", pax(&[record("size", "-1")])),
        ("something twice", pax(&[record("path", "a"), record("path", "b")])),
        ("global header", global("path")),
        ("global header", global("size")),
        ("global header", global("GNU.sparse.map")),
        ("extended twice", tar(&[tape("L", b'L', b"a\0"), tape("L", b'L', b"b\0"), good()])),
        ("extended twice", tar(&[tape("L", b'L', b"a\0"), tape("x", b'x', &record("path", "b")), good()])),
        ("extended twice", tar(&[tape("x", b'x', b""), tape("L", b'L', b"a\0"), good()])),
        ("is announced", tar(&[good(), tape("L", b'L', b"a\0")])),
        ("has a size", tar(&[tape("a", b'2', b"x")])),
        ("has a size", tar(&[tape("a", b'5', b"x")])),
    ];
    for (why, bytes) in table {
        let got = fault(bytes);
        assert!(got.contains(why), "{why}: {got}");
    }
    for no_archive in [&b""[..], b"x", &[b'x'; 1024], b"BZh91AY", b"\xfd7zXZ\0"] {
        assert!(matches!(archive(no_archive.to_vec()), Err(Fault::Unknown(_))));
    }
}

#[test]
fn limits() {
    let many = vec![tape("a", b'0', b""); MOST_ENTRIES + 1];
    assert!(fault(tar(&many)).contains("more than"));
    // A size that the archive does not have, and one that nobody wants.
    assert!(fault(tar(&[tape_sized(b"a", b'0', b"", 1 << 32)])).contains("too early"));
    let large = tape_sized(b"a", b'0', &vec![0; MOST_FILE as usize + 1], MOST_FILE + 1);
    let (files, refused) = extracted(tar(&[large, good()])).unwrap();
    assert_eq!((files.len(), refused), (1, vec![("a".to_owned(), "size".to_owned())]));
}

#[test]
fn gzips_that_are_bombs_or_broken() {
    let bomb = gzip(&tar(&[tape("a", b'0', &vec![0; 4 << 20])]));
    assert!(fault(bomb).contains("unpack to"));
    // So too where it is no tar at all behind its first block.
    let bomb = gzip(&[good(), vec![0; 4 << 20]].concat());
    assert!(fault(bomb).contains("unpack to"));
    let whole = gzip(&tar(&[good()]));
    for length in 2..whole.len() {
        assert!(archive(whole[..length].to_vec()).is_err(), "{length} bytes of it are an archive");
    }
    let mut wrong = whole.clone();
    let at = wrong.len() - 8;
    wrong[at] ^= 1;
    fault(wrong);
    fault([whole, b"more".to_vec()].concat());
    assert!(matches!(archive(gzip(b"no tar")), Err(Fault::Damaged(_))));
}

#[test]
fn nothing_that_is_cut_off_or_flipped_panics() {
    let whole = tar(&[tape("x", b'x', &record("path", "d/a")), tape("a", b'0', b"one"), tape("b", b'2', b"")]);
    for length in 0..whole.len() - 512 {
        assert!(archive(whole[..length].to_vec()).is_err(), "{length} bytes of it are an archive");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        // A header's bytes are in its sum; content has none in a tar.
        let _ = extracted(bytes);
    }
}
