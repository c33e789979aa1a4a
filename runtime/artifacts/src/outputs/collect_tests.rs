use std::ffi::OsStr;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::{CWD, Mode};
use tempfile::TempDir;

use super::*;
use crate::testing::{Fixture, THEN};

/// Collects what `make` puts into an output folder, and compares the names of
/// what is stored and the notices as people see them.
async fn check(limits: CollectLimits, make: impl FnOnce(&Path), stored: &[&str], notices: &[&str]) -> Fixture {
    let (fixture, outputs) = (Fixture::new(), TempDir::new().unwrap());
    make(outputs.path());
    let dir = fs_err::File::open(outputs.path()).unwrap();
    let meta = OutputsMeta { producer: "tool@1.0.0".into(), created_ms: THEN, ..OutputsMeta::default() };
    let action = fixture.store.action("a").unwrap();
    let collected = action.collect_outputs(dir.as_fd(), limits, &meta).await;

    assert!(collected.error.is_none(), "{:?}", collected.error);
    let names: Vec<&str> = collected.artifacts.iter().map(|record| record.name.as_str()).collect();
    assert_eq!(names, stored);
    let said: Vec<String> = collected.notices.iter().map(ToString::to_string).collect();
    assert_eq!(said, notices);
    assert_eq!(fixture.list().await.artifacts, collected.artifacts);
    for record in &collected.artifacts {
        assert_eq!((record.producer.as_str(), record.created_ms), ("tool@1.0.0", THEN));
        fixture.read(record).await.unwrap();
    }
    fixture
}

fn limits() -> CollectLimits {
    CollectLimits::default()
}

fn write(folder: &Path, name: &str, content: &str) {
    fs_err::write(folder.join(name), content).unwrap();
}

#[tokio::test]
async fn plain_files_in_the_order_of_their_paths() {
    let make = |outputs: &Path| {
        fs_err::create_dir_all(outputs.join("b/deep/er")).unwrap();
        fs_err::create_dir(outputs.join("empty")).unwrap();
        for name in ["z", "a", "b/y", "b/deep/er/x", "c"] {
            write(outputs, name, name);
        }
    };
    check(limits(), make, &["a", "b/deep/er/x", "b/y", "c", "z"], &[]).await;
    check(limits(), |_| (), &[], &[]).await;
}

#[tokio::test]
async fn links_and_special_files_are_named_and_left_out() {
    let make = |outputs: &Path| {
        write(outputs, "fine", "x");
        symlink("/etc/passwd", outputs.join("passwd")).unwrap();
        symlink("/", outputs.join("root")).unwrap();
        symlink("nowhere", outputs.join("dangling")).unwrap();
        rustix::fs::mkfifoat(CWD, outputs.join("fifo"), Mode::RUSR | Mode::WUSR).unwrap();
        drop(std::os::unix::net::UnixListener::bind(outputs.join("socket")).unwrap());
        write(outputs, "one", "x");
        fs_err::hard_link(outputs.join("one"), outputs.join("two")).unwrap();
    };
    let notices = [
        "symbolic links in the outputs were not followed: \"dangling\", \"passwd\", \"root\"",
        "outputs with further hard links were left out: \"one\", \"two\"",
        "FIFOs, sockets and devices in the outputs were left out: \"fifo\", \"socket\"",
    ];
    check(limits(), make, &["fine"], &notices).await;
}

#[tokio::test]
async fn names_are_data() {
    let names = ["$(touch pwned)", "-rf", "a\"b", "line\nbreak", "null\u{202e}txt", "spaced out", "..."];
    let make = |outputs: &Path| {
        for name in names {
            write(outputs, name, name);
        }
        fs_err::write(outputs.join(OsStr::from_bytes(b"z\xff")), "x").unwrap();
    };
    let stored = ["$(touch pwned)", "-rf", "...", "a\"b", "line\nbreak", "null\u{202e}txt", "spaced out", "z\u{fffd}"];
    let fixture = check(
        limits(),
        make,
        &stored,
        &["outputs whose name is not UTF-8 were stored under a similar name: \"z\u{fffd}\""],
    )
    .await;
    let plain = |file: &str| file.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte));
    assert!(fixture.files().iter().all(|file| plain(file)), "{:?}", fixture.files());

    let make = |outputs: &Path| symlink("x", outputs.join("a\n\u{202e}\x1b[2J\"")).unwrap();
    check(limits(), make, &[], &["symbolic links in the outputs were not followed: \"a\\n\\u{202e}\\u{1b}[2J\\\"\""])
        .await;
}

#[tokio::test]
async fn modes_are_not_kept() {
    let make = |outputs: &Path| {
        write(outputs, "tool", "#!/bin/sh\n");
        fs_err::set_permissions(outputs.join("tool"), PermissionsExt::from_mode(0o6777)).unwrap();
    };
    let fixture = check(limits(), make, &["tool"], &[]).await;
    let stored = &fixture.list().await.artifacts[0];
    assert_eq!(fs_err::metadata(fixture.blob(stored)).unwrap().permissions().mode() & 0o7111, 0);
}

#[tokio::test]
async fn every_limit_says_what_it_left_out() {
    let files = |names: &'static [(&str, usize)]| {
        move |outputs: &Path| {
            for (name, size) in names {
                fs_err::create_dir_all(outputs.join(name).parent().unwrap()).unwrap();
                write(outputs, name, &"x".repeat(*size));
            }
        }
    };
    let few = CollectLimits { max_files: 2, ..limits() };
    check(
        few,
        files(&[("a", 1), ("b", 1), ("c", 1), ("d", 1)]),
        &["a", "b"],
        &["outputs beyond the limit on their number were left out: \"c\", \"d\""],
    )
    .await;
    let small = CollectLimits { max_file_bytes: 2, ..limits() };
    check(
        small,
        files(&[("a", 1), ("b", 3), ("c", 2)]),
        &["a", "c"],
        &["outputs that are too large were left out: \"b\""],
    )
    .await;
    let light = CollectLimits { max_total_bytes: 4, ..limits() };
    check(
        light,
        files(&[("a", 2), ("b", 3), ("c", 2), ("d", 1), ("e", 0)]),
        &["a", "c", "e"],
        &["outputs beyond the limit on their total size were left out: \"b\", \"d\""],
    )
    .await;
    let short = CollectLimits { max_path_len: 5, ..limits() };
    check(
        short,
        files(&[("a/bcd", 1), ("a/bcde", 1), ("abcdef/g", 1)]),
        &["a/bcd"],
        &["outputs whose path is too long were left out: \"a/bcde\", \"abcdef\""],
    )
    .await;
    let flat = CollectLimits { max_depth: 1, ..limits() };
    check(
        flat,
        files(&[("a", 1), ("b/c", 1), ("b/d/e", 1)]),
        &["a", "b/c"],
        &["output folders that lie too deep were left out: \"b/d\""],
    )
    .await;
}

#[tokio::test]
async fn ten_thousand_files() {
    let make = |outputs: &Path| {
        for number in 0..10_000 {
            write(outputs, &format!("{number:05}"), "");
        }
    };
    let stored: Vec<String> = (0..20).map(|number| format!("{number:05}")).collect();
    let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
    let named: Vec<String> = (20..36).map(|number| format!("\"{number:05}\"")).collect();
    let notice = format!("outputs beyond the limit on their number were left out: {} and 9964 more", named.join(", "));
    check(CollectLimits { max_files: 20, ..limits() }, make, &stored, &[&notice]).await;
}

#[tokio::test]
async fn a_tree_deeper_than_any_path() {
    let make = |outputs: &Path| {
        let mut here = rustix::fs::openat(CWD, outputs, rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&here, "d", Mode::RWXU).unwrap();
            here = rustix::fs::openat(&here, "d", rustix::fs::OFlags::DIRECTORY, Mode::empty()).unwrap();
        }
    };
    let path = vec!["d"; 33].join("/");
    check(limits(), make, &[], &[&format!("output folders that lie too deep were left out: \"{path}\"")]).await;
}

#[tokio::test]
async fn claimed_media_types_count_if_they_are_any() {
    let (fixture, outputs) = (Fixture::new(), TempDir::new().unwrap());
    for name in ["claimed", "nonsense", "guessed.json"] {
        write(outputs.path(), name, "{}");
    }
    let claims = [("claimed", "application/x-thing"), ("nonsense", "text/html\r\nX-Evil: 1"), ("missing", "text/css")];
    let meta = OutputsMeta {
        media_types: claims.map(|(path, claim)| (path.into(), claim.into())).into(),
        ..OutputsMeta::default()
    };
    let dir = fs_err::File::open(outputs.path()).unwrap();
    let collected = fixture.store.action("a").unwrap().collect_outputs(dir.as_fd(), limits(), &meta).await;
    let types: Vec<&str> = collected.artifacts.iter().map(|record| record.media_type.as_str()).collect();
    assert_eq!(types, ["application/x-thing", "application/json", "text/plain"]);
}

/// A file that grows after its length was asked for ends at the limit, and
/// what is recorded is what was stored.
#[tokio::test]
async fn a_growing_file_is_cut_at_the_limit() {
    // The length of such a file is 0 when asked for, and more when read.
    let growing = || fs_err::File::open("/proc/version").unwrap().into_parts().0;
    let whole = std::io::read_to_string(growing()).unwrap();
    let whole_len = whole.len() as u64;

    let fixture = Fixture::new();
    let action = fixture.store.action("a").unwrap();
    for (file_limit, left, stored) in
        [(4, 100, 4), (100, 4, 4), (whole_len, whole_len, whole.len()), (1 << 20, 1 << 20, whole.len())]
    {
        let mut notices = Notices::default();
        let record = action
            .store_output(growing(), &"log".into(), file_limit, left, &OutputsMeta::default(), &mut notices)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(fixture.read(&record).await.unwrap(), &whole.as_bytes()[..stored]);
        let kinds: Vec<NoticeKind> = Vec::from(notices).iter().map(|notice: &Notice| notice.kind).collect();
        assert_eq!(kinds == [NoticeKind::Grew], stored < whole.len(), "{kinds:?}");
    }
}
