//! The tool on real files, each test in a folder of its own.

use super::*;

struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("glovebox-fs-patch-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }

    /// What a patch says, about files of this folder.
    fn patch(&self, patch: &str) -> Vec<FilePatch> {
        let here = |file: FilePatch| FilePatch { path: format!("{}/{}", self.0.display(), file.path), ..file };
        parse::parse(patch, None).unwrap().into_iter().map(here).collect()
    }

    /// The same applied in memory.
    fn outcomes(&self, patch: &str, fuzz: usize) -> Vec<Outcome> {
        self.patch(patch).into_iter().map(|file| Outcome::of(file, fuzz).unwrap()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

const THREE: &str = "\
--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n\
--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+n\n\
--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-g\n";

#[test]
fn changes_makes_and_deletes() {
    let folder = Folder::new("three");
    folder.write("x", "a\n");
    folder.write("gone", "g\n");
    let outcomes = folder.outcomes(THREE, 0);
    assert!(outcomes.iter().all(|outcome| outcome.rejects.is_empty()));
    // Until then nothing is.
    assert_eq!((folder.read("x").as_deref(), folder.read("d/new")), (Some("a\n"), None));
    write(&outcomes).unwrap();
    assert_eq!(folder.read("x").as_deref(), Some("b\n"));
    assert_eq!(folder.read("d/new").as_deref(), Some("n\n"));
    assert_eq!(folder.read("gone"), None);
    let report = outcomes[0].report();
    assert_eq!((&report["sha256_before"], &report["sha256"]), (&json!(sha256(b"a\n")), &json!(sha256(b"b\n"))));
    let actions: Vec<_> = outcomes.iter().map(|outcome| outcome.report()["action"].clone()).collect();
    assert_eq!(actions, ["modified", "created", "deleted"]);
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2, "a file beside the others is left behind");
}

#[test]
fn what_does_not_fit_is_rejected_file_by_file() {
    let folder = Folder::new("rejects");
    folder.write("d/new", "there\n");
    folder.write("gone", "g\nmore\n");
    let reasons: Vec<String> = folder
        .outcomes(THREE, 0)
        .iter()
        .map(|outcome| outcome.rejects[0]["reason"].as_str().unwrap_or_default().to_owned())
        .collect();
    for (reason, part) in reasons.iter().zip(["does not exist", "exists already", "leave something"]) {
        assert!(reason.contains(part), "{reason}");
    }
    fs::write(folder.0.join("x"), b"\xff\n").unwrap();
    assert_eq!(folder.outcomes(THREE, 0)[0].rejects[0]["reason"], "the file is not UTF-8 text");
}

#[test]
fn nothing_is_written_over_what_changed_meanwhile() {
    let folder = Folder::new("meanwhile");
    folder.write("x", "a\n");
    folder.write("gone", "g\n");
    for (name, text) in [("x", "other\n"), ("gone", "other\n"), ("d/new", "other\n")] {
        let outcomes = folder.outcomes(THREE, 0);
        let before = folder.read(name);
        folder.write(name, text);
        let failure = write(&outcomes).unwrap_err();
        assert_eq!((failure.kind, failure.retryable), (Kind::Conflict, true), "{name}");
        assert_eq!(folder.read(name).as_deref(), Some(text));
        match before {
            Some(before) => folder.write(name, &before),
            None => fs::remove_file(folder.0.join(name)).unwrap(),
        }
        assert_eq!(folder.read("x").as_deref(), Some("a\n"), "{name}");
        assert_eq!(folder.read("gone").as_deref(), Some("g\n"), "{name}");
    }
}

#[test]
fn one_hunk_that_does_not_fit_keeps_the_others_back() {
    let folder = Folder::new("together");
    let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+n\n";
    let call = |partial, dry_run| {
        let args = Args { patch: String::new(), strip: None, fuzz: 0, partial, dry_run };
        run(folder.patch(patch), &args)
    };
    let failure = call(false, false).unwrap_err();
    assert_eq!(failure.kind, Kind::Conflict);
    let details = failure.details.unwrap();
    assert_eq!((&details["count"], &details["rejected"][0]["reason"]), (&json!(1), &json!("the file does not exist")));
    assert_eq!(folder.read("d/new"), None);
    // What fits is reported, and written unless the run is dry.
    let dry = call(true, true).unwrap();
    assert_eq!((&dry["written"], &dry["rejected_count"]), (&json!(false), &json!(1)));
    assert_eq!(dry["files"].as_array().unwrap().len(), 1);
    assert_eq!(folder.read("d/new"), None);
    assert_eq!(call(true, false).unwrap()["written"], true);
    assert_eq!(folder.read("d/new").as_deref(), Some("n\n"));
}

#[test]
fn refused_before_any_file_is_looked_at() {
    let context = Context { request_id: String::new(), deadline_ms: 0, locale: None, idempotency_key: None };
    let patch = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n";
    for (args, message) in [
        (json!({ "patch": patch, "fuzz": 3 }), "from 0 to 2"),
        (json!({ "patch": patch, "strip": 9 }), "from 0 to 8"),
        (json!({ "patch": " ".repeat(MOST_PATCH + 1) }), "longer than"),
        (json!({ "patch": patch }), "line 3 of the patch"),
    ] {
        let failure = FsPatch::call(serde::Deserialize::deserialize(args).unwrap(), &context).unwrap_err();
        assert!(failure.kind == Kind::InvalidArgs && failure.message.contains(message), "{}", failure.message);
    }
}
