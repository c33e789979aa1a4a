//! Zips that honest programs don't write, and some that they do.

use crate::testing::{Ending, Item, archive, extracted, zip, zip_with};
use crate::{Fault, Format, Kind, MOST_ENTRIES, MOST_FILE, MOST_TOTAL};

fn files(bytes: Vec<u8>) -> Vec<String> {
    let (files, refused) = extracted(bytes).unwrap();
    assert_eq!(refused, []);
    files.into_iter().map(|(name, content)| format!("{name}={}", String::from_utf8(content).unwrap())).collect()
}

fn fault(bytes: Vec<u8>) -> String {
    match archive(bytes) {
        Err(Fault::Damaged(why) | Fault::Large(why)) => why,
        other => panic!("{other:?}"),
    }
}

/// An extra field.
fn extra(id: u16, value: &[u8]) -> Vec<u8> {
    [&id.to_le_bytes()[..], &(value.len() as u16).to_le_bytes(), value].concat()
}

#[test]
fn plain_ones() {
    let folder = Item { mode: 0o040_755, ..Item::stored("d/", b"") };
    let items = [folder, Item::stored("d/a", b"one"), Item::deflated("b", &b"two".repeat(2))];
    assert_eq!(files(zip(&items)), ["d/a=one", "b=twotwo"]);
    assert_eq!(archive(zip(&items)).unwrap().format(), Format::Zip);
    assert_eq!(files(zip(&[])), [""; 0]);
    // A mode that would be dangerous is not looked at.
    assert_eq!(files(zip(&[Item { mode: 0o104_777, ..Item::stored("a", b"x") }])), ["a=x"]);
    // Comments, and what else may lie between content and directory.
    let comment = Ending { comment: b"PK\x05\x06 is how it ends".to_vec(), ..Ending::default() };
    assert_eq!(files(zip_with(&[Item::stored("a", b"x")], &comment)), ["a=x"]);
    // Sizes that follow the content.
    let stream = Item { flags: 8, local_size: 0, ..Item::deflated("a", b"xyz") };
    assert_eq!(files(zip(&[stream])), ["a=xyz"]);
    // A record of 64 bits, needed or not.
    let large = Ending { large: Some([0; 3]), ..Ending::default() };
    assert_eq!(files(zip_with(&[Item::stored("a", b"x")], &large)), ["a=x"]);
    let only = Ending { entries: Some(u16::MAX), size: Some(u32::MAX), offset: Some(u32::MAX), ..large };
    assert_eq!(files(zip_with(&[Item::stored("a", b"x")], &only)), ["a=x"]);
    let sizes = [3u64.to_le_bytes(), 3u64.to_le_bytes()].concat();
    let wide = Item {
        size: u32::MAX,
        local_size: u32::MAX,
        packed_size: u32::MAX,
        extra: extra(1, &sizes),
        local_extra: extra(1, &sizes),
        ..Item::stored("a", b"xyz")
    };
    assert_eq!(files(zip(&[wide])), ["a=xyz"]);
}

#[test]
fn entries_that_are_refused() {
    let a = || Item::stored("a", b"x");
    let bomb = vec![0; 2 << 20];
    let table: Vec<(&str, Vec<Item>)> = vec![
        ("name", vec![Item::stored("../a", b"x")]),
        ("name", vec![Item::stored("/a", b"x")]),
        ("name", vec![Item::stored("..\\a", b"x")]),
        ("name", vec![Item::stored("C:a", b"x")]),
        ("name", vec![Item::stored("a\0.txt", b"x")]),
        ("name", vec![Item::stored("a\u{202e}b", b"x")]),
        ("name", vec![Item { name: vec![0xff], local_name: vec![0xff], ..a() }]),
        ("link", vec![Item { mode: 0o120_777, ..Item::stored("a", b"/etc/passwd") }]),
        ("special", vec![Item { mode: 0o010_644, ..a() }]),
        ("special", vec![Item { mode: 0o020_644, ..a() }]),
        ("special", vec![Item { mode: 0o140_644, ..a() }]),
        ("duplicate", vec![a(), a()]),
        ("collision", vec![a(), Item::stored("A", b"y")]),
        ("collision", vec![Item::stored("é", b"x"), Item::stored("e\u{301}", b"y")]),
        ("collision", vec![Item::stored("D/a", b"x"), Item::stored("d/b", b"y")]),
        ("collision", vec![a(), Item::stored("a/b", b"y")]),
        ("encrypted", vec![Item { flags: 1, ..a() }]),
        ("encrypted", vec![Item { flags: 1 << 6 | 1, ..a() }]),
        ("encrypted", vec![Item { flags: 1 << 13, ..a() }]),
        ("method", vec![Item { method: 12, ..a() }]),
        ("method", vec![Item { method: 99, ..a() }]),
        ("contradiction", vec![Item { local_name: b"b".to_vec(), ..a() }]),
        ("contradiction", vec![Item { local_size: 2, ..a() }]),
        ("contradiction", vec![Item { size: 2, local_size: 2, ..a() }]),
        ("contradiction", vec![Item { at: Some(1), ..a() }]),
        ("contradiction", vec![Item { at: Some(u32::MAX - 1), ..a() }]),
        ("contradiction", vec![Item { packed_size: 9999, ..Item::deflated("a", b"x") }]),
        ("contradiction", vec![Item { extra: extra(0x7075, b"\x01\0\0\0\0b"), ..a() }]),
        ("contradiction", vec![Item { local_extra: extra(0x7075, b"\x01\0\0\0\0b"), ..a() }]),
        ("contradiction", vec![Item { extra: vec![1, 2, 3], ..a() }]),
        ("contradiction", vec![Item { mode: 0o040_755, ..Item::stored("a", b"") }]),
        ("contradiction", vec![Item::stored("a/", b"x")]),
        ("ratio", vec![Item::deflated("a", &bomb)]),
        ("size", vec![Item { size: 2, local_size: 2, ..Item::deflated("a", b"xyz") }]),
        ("corrupt", vec![Item { size: 4, local_size: 4, ..Item::deflated("a", b"xyz") }]),
        ("corrupt", vec![Item { crc: 1, ..a() }]),
        ("corrupt", vec![Item { packed: vec![0xff; 9], packed_size: 9, ..Item::deflated("a", b"x") }]),
    ];
    for (reason, items) in table {
        let shown: Vec<_> = items.iter().map(|item| String::from_utf8_lossy(&item.name).into_owned()).collect();
        // What is beside them comes out all the same.
        let bytes = zip(&[&items[..], &[Item::stored("good", b"x")]].concat());
        let (files, refused) = extracted(bytes).unwrap();
        let reasons: Vec<&str> = refused.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(reasons, vec![reason; items.len()], "{shown:?}");
        assert_eq!(files, [("good".to_owned(), b"x".to_vec())], "{shown:?}");
    }
}

#[test]
fn more_behind_packed_content() {
    let mut item = Item::deflated("a", b"xyz");
    item.packed.extend(b"hidden");
    item.packed_size += 6;
    let (files, refused) = extracted(zip(&[item])).unwrap();
    assert_eq!((files.len(), refused), (0, vec![("a".to_owned(), "corrupt".to_owned())]));
}

#[test]
fn two_steps_to_another_folder() {
    let link = Item { mode: 0o120_777, ..Item::stored("d", b"/etc") };
    let (files, refused) = extracted(zip(&[link, Item::stored("d/passwd", b"x")])).unwrap();
    assert_eq!(files, []);
    let reasons: Vec<_> = refused.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
    assert_eq!(reasons, [("d", "link"), ("d/passwd", "collision")]);
}

#[test]
fn entries_that_share_bytes() {
    // The second one's header and content lie in the first one's content.
    let inner = zip(&[Item::stored("b", b"x")]);
    let outer = Item::stored("a", &inner[..32]);
    let inside = Item { at: Some(31), ..Item::stored("b", b"x") };
    let bytes = zip(&[outer, inside]);
    let (files, refused) = extracted(bytes).unwrap();
    assert_eq!(files, []);
    assert_eq!(refused.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>(), ["overlap", "overlap"]);
    // Both are the same bytes.
    let twice = [Item::stored("a", b"x"), Item { at: Some(0), ..Item::stored("a", b"x") }];
    let (_, refused) = extracted(zip(&twice)).unwrap();
    assert_eq!(refused.iter().map(|(_, reason)| reason.as_str()).collect::<Vec<_>>(), ["overlap", "overlap"]);
}

#[test]
fn archives_that_are_refused() {
    let one = || zip(&[Item::stored("a", b"x")]);
    let with = |ending: Ending| zip_with(&[Item::stored("a", b"x")], &ending);
    let cut = |from: usize| one()[..one().len() - from].to_vec();
    let in_comment = Ending { comment: zip(&[Item::stored("b", b"y")]), ..Ending::default() };
    let table = [
        ("no end record", cut(1)),
        ("no end record", cut(22)),
        ("no end record", cut(40)),
        ("no end record", [one(), b"x".to_vec()].concat()),
        ("two end records", with(in_comment)),
        ("right before the end", with(Ending { offset: Some(0), ..Ending::default() })),
        ("right before the end", with(Ending { size: Some(1), ..Ending::default() })),
        // Something before it: offsets that are right for a part only.
        ("right before the end", [b"PK\x03\x04".to_vec(), one()].concat()),
        ("cut off", with(Ending { entries: Some(2), ..Ending::default() })),
        ("more in it", with(Ending { entries: Some(0), ..Ending::default() })),
        ("64 bits is missing", with(Ending { entries: Some(u16::MAX), ..Ending::default() })),
        ("64 bits is missing", with(Ending { offset: Some(u32::MAX), ..Ending::default() })),
        ("contradicts", with(Ending { large: Some([1, 0, 0]), ..Ending::default() })),
        ("contradicts", with(Ending { large: Some([0, 1, 0]), ..Ending::default() })),
        ("contradicts", with(Ending { large: Some([0, 0, 1]), ..Ending::default() })),
        (
            "entries; at most",
            with(Ending { large: Some([i64::MAX - 1, 0, 0]), entries: Some(u16::MAX), ..Ending::default() }),
        ),
        ("right before the end", with(Ending { large: Some([0, 0, -1]), offset: Some(u32::MAX), ..Ending::default() })),
        ("in several files", {
            let mut bytes = one();
            let at = bytes.len() - 18;
            bytes[at] = 1;
            bytes
        }),
    ];
    for (why, bytes) in table {
        let got = fault(bytes);
        assert!(got.contains(why), "{why}: {got}");
    }
    assert!(matches!(archive(b"PK\x07\x08".to_vec()), Err(Fault::Unknown(_))));
}

#[test]
fn limits() {
    // So many that the directory alone would fill the memory, at the price of a line.
    let many: Vec<Item> = (0..=MOST_ENTRIES).map(|index| Item::stored(&index.to_string(), b"")).collect();
    assert!(fault(zip(&many)).contains("at most"));
    let long = |name: &str, size: u64| {
        let size = size as u32;
        Item { size, local_size: size, packed_size: size / 2, ..Item::deflated(name, b"x") }
    };
    let (_, refused) = extracted(zip(&[long("a", MOST_FILE + 1)])).unwrap();
    assert_eq!(refused.len(), 1);
    // Each is small enough; together they are not. Their bytes are not even there.
    let place = |name: &str| Item { at: None, packed: vec![0; 700_000], packed_size: 700_000, ..long(name, MOST_FILE) };
    let mut archive = archive(zip(&[place("a"), place("b")])).unwrap();
    assert!(archive.entries().iter().all(|entry| entry.refused.is_none()), "{:?}", archive.entries());
    let Err(Fault::Large(why)) = archive.verify(&[0, 1]) else { panic!("no limit") };
    assert!(why.contains(&MOST_TOTAL.to_string()), "{why}");
}

#[test]
fn nothing_that_is_cut_off_or_flipped_panics_or_lies() {
    let whole = zip(&[Item::stored("d/a", b"one"), Item::deflated("b", &b"two".repeat(9))]);
    let expected = extracted(whole.clone()).unwrap().0;
    for length in 0..whole.len() {
        assert!(archive(whole[..length].to_vec()).is_err(), "{length} bytes of it are an archive");
    }
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            let Ok((files, _)) = extracted(bytes) else { continue };
            // Names have no checksum; content has.
            for (_, content) in files {
                assert!(expected.iter().any(|(_, known)| *known == content), "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn kinds() {
    let folder = Item { mode: 0o040_755, ..Item::stored("d/", b"") };
    let windows = Item { mode: 0, ..Item::stored("w/", b"") };
    let archive = archive(zip(&[folder, windows, Item { mode: 0, ..Item::stored("f", b"") }])).unwrap();
    let kinds: Vec<Kind> = archive.entries().iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [Kind::Folder, Kind::Folder, Kind::File]);
}
