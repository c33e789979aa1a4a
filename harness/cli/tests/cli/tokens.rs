//! Who may call at a door: credentials, by the command line.

use std::path::Path;

use glovebox_identity::{Credentials, Role};

use crate::support::{House, Ran};

/// A user that no machine has.
const NOOR: &str = "4000000011";

/// Long before any of these expires.
const NOW_MS: u64 = 1_800_000_000_000;

impl House {
    fn credentials(&self) -> Credentials {
        Credentials::load(Path::new(&self.path("config/glovebox/credentials.toml"))).unwrap()
    }
}

#[test]
fn a_token_is_printed_once_alone_and_kept_nowhere() {
    let house = House::new();
    let ran =
        house.run(&["token", "add", "ci", "--role", "agent", "--agent", "builder@1.2.0", "--stage", "build"]).ok();
    let token = ran.stdout.trim_end();
    assert!(token.starts_with("gbx_") && ran.stdout.lines().count() == 1 && !ran.stderr.contains(token), "{ran:?}");
    let json = house.json(&["token", "add", "eye", "--role", "observer", "--user", "noor", "--tenant", "acme"]);
    let other = json["token"].as_str().unwrap().to_owned();
    assert_eq!(json["credential"]["role"], "observer");

    // Both open what they were made for.
    let credentials = house.credentials();
    let ci = credentials.by_token(token, NOW_MS).unwrap().clone();
    assert_eq!((ci.role, ci.agent.unwrap().as_str(), ci.stage.unwrap().as_str()), (Role::Agent, "builder", "build"));
    assert_eq!(ci.user.as_str(), format!("uid-{}", rustix::process::geteuid().as_raw()));
    let eye = credentials.by_token(&other, NOW_MS).unwrap();
    assert_eq!((eye.user.as_str(), eye.tenant.as_str()), ("noor", "acme"));

    // And nothing that is printed later, or written, shows them.
    let file = fs_err::read_to_string(house.path("config/glovebox/credentials.toml")).unwrap();
    let listed = house.run(&["token", "list"]).ok().stdout;
    let all = format!("{file}{listed}{}", house.run(&["token", "list", "--json"]).ok().stdout);
    assert!(!all.contains(&token[4..]) && !all.contains(&other[4..]), "{all}");
    assert!(listed.contains("agent builder@1.2.0 at stage build for uid-"), "{listed}");
    assert!(listed.contains("observer for noor of acme, by token"), "{listed}");

    house.run(&["token", "remove", "ci"]).ok();
    assert_eq!(house.json(&["token", "remove", "eye"])["removed"], "eye");
    let credentials = house.credentials();
    assert!(credentials.list().is_empty() && credentials.by_token(token, NOW_MS).is_none());
}

#[test]
fn a_credential_can_end_and_can_be_a_users_of_the_machine() {
    let house = House::new();
    let json = house.json(&["token", "add", "ci", "--role", "agent", "--agent", "builder", "--expires", "30d"]);
    let at = |key: &str| json["credential"][key].as_u64().unwrap();
    assert_eq!(at("expires_ms") - at("created_ms"), 30 * 24 * 3600 * 1000, "{json}");

    let ran = house.run(&["token", "add", "mira", "--role", "approver", "--user", "mira", "--peer-uid", NOOR]).ok();
    assert!(!ran.stdout.contains("gbx_"), "{ran:?}");
    assert!(ran.stdout.contains("approver for mira of local, as user 4000000011 of this machine"), "{ran:?}");
    assert_eq!(house.credentials().by_peer(NOOR.parse().unwrap(), NOW_MS).unwrap().name.as_str(), "mira");
    // A user is called as everywhere else where nobody says otherwise.
    house.run(&["token", "add", "odo", "--role", "observer", "--peer-uid", "4000000012"]).ok();
    assert_eq!(house.credentials().by_peer(4_000_000_012, NOW_MS).unwrap().user.as_str(), "uid-4000000012");

    let line = |what: &str| {
        let lines = house.run(&["doctor", "--json"]).json()["lines"].as_array().unwrap().clone();
        lines.iter().find(|line| line["what"] == what).unwrap()["found"].as_str().unwrap().to_owned()
    };
    assert!(line("credentials").starts_with("1 by token, 2 as users of this machine"), "{}", line("credentials"));
    assert!(line("assurance").starts_with("separate-user: 1 answer as users"), "{}", line("assurance"));
}

#[test]
fn what_can_not_be_is_refused_with_the_way_out() {
    let house = House::new();
    house.run(&["token", "add", "mira", "--role", "approver", "--peer-uid", NOOR]).ok();
    let add = |more: &[&str], code: &str, words: &[&str]| {
        house.refuses(&[&["token", "add"], more].concat(), 2, code, words);
    };
    add(&["ci", "--role", "agent"], "usage", &["with the role `agent` names its agent"]);
    add(&["ci", "--role", "approver", "--agent", "builder"], "usage", &["is no agent's"]);
    add(&["ci", "--role", "observer", "--stage", "build"], "usage", &["has no stage without an agent"]);
    add(&["ci", "--role", "observer", "--expires", "0s"], "usage", &["ends after it begins"]);
    add(&["Mira", "--role", "observer"], "credential-conflict", &["`mira` already", "token remove NAME"]);
    add(&["noor", "--role", "observer", "--peer-uid", NOOR], "credential-conflict", &["user 4000000011 has"]);
    house.refuses(&["token", "remove", "eve"], 2, "credential-unknown", &["`eve`", "token list"]);
    let ran = house.run(&["token", "add", "ci", "--role", "root"]);
    assert!(ran.code == 2 && ran.stderr.contains("there are agent, observer, approver, operator, worker"), "{ran:?}");

    // A list that others could have written lets nobody in.
    let file = house.path("config/glovebox/credentials.toml");
    fs_err::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o646)).unwrap();
    house.refuses(&["token", "list"], 2, "credentials-invalid", &["can be read or written by others", "chmod 600"]);
}

/// Wherever the list lies, no tool sees it: who could write it could let
/// anybody in.
#[test]
fn no_tool_gets_the_list_of_credentials() {
    let house = House::new();
    let list = house.workspace().join("callers.toml");
    fs_err::write(&list, "a").unwrap();
    let run = |list: &Path| {
        let mut command = house.command();
        Ran::of(command.env("GLOVEBOX_CREDENTIALS", list).args(["run", "text.count", "--arg", "path=callers.toml"]))
    };
    run(Path::new(&house.path("elsewhere.toml"))).ok();
    let ran = run(&list);
    assert_ne!(ran.code, 0, "{ran:?}");
}
