//! The log and the database, as whoever looks after them meets them.

use std::path::Path;

use crate::people::ended;
use crate::support::House;

impl House {
    /// A log with an action that ran, one that waits, and a grant.
    fn with_a_log() -> Self {
        let house = Self::that_may_write();
        let asked = house.asks_to_write("n.txt");
        house.run(&["approvals", "approve", &asked.approval, "--offer", "session", "--say", "as you like"]).ok();
        house.resumes(&asked.action).ok();
        house.writes("m.txt", &["--session", "other", "--purpose", "to see what happens"]);
        house
    }

    /// Puts a file in the place of the database.
    fn replace_store(&self, with: &Path) {
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            let _ = fs_err::remove_file(self.state().join(name));
        }
        fs_err::copy(with, self.state().join("store.db")).unwrap();
    }

    /// The database as one file.
    fn backup(&self, name: &str) -> String {
        let path = self.path(name);
        self.run(&["db", "backup", &path]).ok();
        path
    }

    fn faults(&self, more: &[&str]) -> String {
        let ran = self.run(&[&["audit", "verify"], more].concat());
        assert_eq!(ran.code, 58, "{}{}", ran.stdout, ran.stderr);
        let json = self.run(&[&["audit", "verify", "--json"], more].concat());
        assert_eq!((json.code, &json.json()["sound"]), (58, &false.into()));
        ran.stdout
    }
}

#[test]
fn a_log_that_nobody_touched_is_sound_and_adds_up() {
    let house = House::with_a_log();
    let report = house.json(&["audit", "verify"]);
    assert_eq!(report["sound"], true, "{report:#}");
    assert_eq!((&report["log"]["logs"], &report["state"]["actions"]), (&2.into(), &2.into()), "{report:#}");
    assert_eq!((&report["state"]["grants"], &report["state"]["faults"]), (&1.into(), &0.into()));
    let said = house.run(&["audit", "verify"]).ok().stdout;
    assert!(said.contains("sound") && said.contains("without a checkpoint"), "{said}");
    assert_eq!(house.json(&["db", "check"])["sound"], true);
}

#[test]
fn an_edit_in_the_log_is_found() {
    let house = House::with_a_log();
    let copy = house.backup("copy.db");
    let mut bytes = fs_err::read(&copy).unwrap();
    // The same length, so that the file stays a database.
    let (from, to) =
        (br#""kind":"decided","at":"plan","verdict":"ask""#, br#""kind":"decided","at":"plan","verdict":"den""#);
    let at = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[at..at + to.len()].copy_from_slice(to);
    fs_err::write(&copy, bytes).unwrap();
    house.replace_store(copy.as_ref());
    assert!(house.faults(&[]).contains("not what was recorded"));
}

#[test]
fn an_older_copy_in_its_place_is_found_with_a_checkpoint_kept_elsewhere() {
    let house = House::with_a_log();
    let older = house.backup("older.db");
    house.writes("later.txt", &[]).ok();
    let (key, file) = (house.path("keys/audit.key"), house.path("monday.json"));
    let public = house.run(&["audit", "key", &key]).ok().stdout.trim().to_owned();
    house.refuses(&["audit", "key", &key], 2, "key-invalid", &[&key]);
    fs_err::write(&file, house.run(&["audit", "checkpoint", "--key", &key]).ok().stdout).unwrap();
    let since = ["--checkpoint", &file, "--key", &public];
    let said = house.run(&[&["audit", "verify"], &since[..]].concat()).ok().stdout;
    assert!(said.contains("compared with the checkpoint of"), "{said}");
    // More since then is what logs are for.
    house.run(&["run", "text.count", "--arg", "path=a.txt"]).ok();
    house.run(&[&["audit", "verify"], &since[..]].concat()).ok();

    house.replace_store(older.as_ref());
    house.run(&["audit", "verify"]).ok();
    let said = house.faults(&since);
    assert!(said.contains("cut off: the checkpoint saw event"), "{said}");

    let other = house.run(&["audit", "key", &house.path("keys/other.key")]).ok().stdout.trim().to_owned();
    let verify = |file: &str, key: &str, exit, code: &str, words: &[&str]| {
        house.refuses(&["audit", "verify", "--checkpoint", file, "--key", key], exit, code, words);
    };
    verify(&file, &other, 29, "signature-invalid", &["monday.json", "was not signed by"]);
    verify(&file, "ed25519:00", 2, "usage", &["--key", "64"]);
    verify(&house.file("empty.json", "{}"), &public, 2, "file-unreadable", &["no signed checkpoint"]);
    verify(&house.path("nowhere"), &public, 2, "file-unreadable", &["nowhere"]);
    house.refuses(&["audit", "checkpoint", "--key", &house.path("nowhere")], 2, "key-invalid", &["no such file"]);
}

#[test]
fn the_log_can_be_read_elsewhere() {
    let house = House::with_a_log();
    let events = house.json(&["audit", "verify"])["log"]["events"].as_u64().unwrap();
    let lines = |args: &[&str]| -> Vec<serde_json::Value> {
        let text = house.run(&[&["audit", "export"], args].concat()).ok().stdout;
        assert!(!text.contains("as you like"), "what can be erased left");
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let all = lines(&[]);
    assert_eq!(all.len() as u64, events);
    assert_eq!((&all[0]["seq"], &all[0]["event"]["what"]["kind"]), (&1.into(), &"requested".into()));
    let other = lines(&["--session", "other"]);
    assert!(!other.is_empty() && other.iter().all(|logged| logged["log"]["session"] == "other"));
    assert!(lines(&["--session", "nobodys"]).is_empty());
    let cloud = lines(&["--format", "cloudevents"]);
    assert_eq!(cloud.len(), all.len());
    for (event, logged) in cloud.iter().zip(&all) {
        assert_eq!((&event["specversion"], &event["data"]), (&"1.0".into(), logged));
        assert!(["id", "source", "type", "time"].iter().all(|key| event[key].is_string()), "{event:#}");
    }
}

#[test]
fn what_is_erased_is_gone_and_the_log_still_holds() {
    let house = House::with_a_log();
    let ended_action = house.json(&["action", "list"])["actions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|action| action["state"] == "succeeded")
        .unwrap()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let waits = house.pending()[0]["action"].as_str().unwrap().to_owned();
    house.refuses(&["audit", "erase", &waits], 2, "usage", &["only what has ended"]);
    let said = house.run(&["audit", "erase", &ended_action]).ok().stdout;
    assert!(said.contains("its events stay"), "{said}");
    let report = house.json(&["audit", "verify"]);
    assert!(report["sound"] == true && report["log"]["erased"].as_u64() > Some(0), "{report:#}");
    assert!(house.json(&["action", "show", &ended_action])["observation"].is_null());
    let ran = house.resumes(&ended_action);
    assert_eq!((ran.code, &ran.json()["problem"]["code"]), (24, &"expired".into()), "{}", ran.stdout);
    let copy = fs_err::read(house.backup("copy.db")).unwrap();
    assert!(!copy.windows(11).any(|window| window == b"as you like"), "the words are still in the file");
    house.refuses(&["audit", "erase", "0000000000000000"], 2, "action-unknown", &[]);
}

#[test]
fn a_backup_can_stand_in_its_place_and_damage_is_listed() {
    let house = House::with_a_log();
    let copy = house.backup("copy.db");
    house.refuses(&["db", "backup", &copy], 2, "usage", &["exists already"]);
    let before = house.run(&["action", "list", "--json"]).ok().stdout;
    house.replace_store(copy.as_ref());
    assert_eq!(house.run(&["action", "list", "--json"]).ok().stdout, before);
    house.run(&["db", "check"]).ok();

    // A page of another time in the middle.
    let mut bytes = fs_err::read(&copy).unwrap();
    let page = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let middle = bytes.len() / page / 2 * page;
    bytes[middle..middle + page].fill(0x55);
    fs_err::write(&copy, &bytes).unwrap();
    house.replace_store(copy.as_ref());
    let ran = house.run(&["db", "check", "--json"]);
    assert_eq!(ran.code, 56, "{}{}", ran.stdout, ran.stderr);

    fs_err::write(&copy, "no database").unwrap();
    house.replace_store(copy.as_ref());
    house.refuses(&["db", "check"], 56, "store-corrupt", &["store.db"]);
    let ran = house.run(&["run", "text.count", "--arg", "path=a.txt"]);
    assert!(ran.code == 56 && ran.stderr.contains("db backup"), "{}{}", ran.stdout, ran.stderr);
    let doctor = house.run(&["doctor", "--json"]).json();
    let store = doctor["lines"].as_array().unwrap().iter().find(|line| line["what"] == "store").unwrap().clone();
    assert_eq!(store["status"], "failed", "{store:#}");
}

#[test]
fn where_nothing_was_recorded_nothing_is_made() {
    let house = House::cold();
    for args in [&["audit", "verify"][..], &["audit", "export"], &["db", "check"], &["db", "backup", "x.db"]] {
        house.refuses(args, 50, "state-unavailable", &["store.db"]);
    }
    assert!(!house.state().join("store.db").exists());
    let (exit, ..) = ended(&house.run(&["run", "text.count", "--arg", "path=a.txt", "--json"]));
    assert_eq!(exit, 0);
    house.run(&["audit", "verify"]).ok();
}
