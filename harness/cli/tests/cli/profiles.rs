//! What agents find, and what the registry says of a tool.

use crate::support::{House, hostile};

const PROFILES: &str = r#"
schema = "glovebox/profiles/v1"
[default]
discover = []
execute = []
[[agent]]
name = "reader"
version = ">=1.2.0"
discover = ["fs.*"]
execute = ["fs.read"]
"#;

fn found(house: &House, args: &[&str]) -> Vec<String> {
    let hits = house.run(&[&["tool", "search"], args, &["--json"]].concat()).ok().json();
    let one = |hit: &serde_json::Value| {
        let name = hit["capability"].as_str().unwrap().split('@').next().unwrap();
        format!("{name}{}", if hit["executable"] == true { "!" } else { "" })
    };
    hits["tools"].as_array().unwrap().iter().map(one).collect()
}

#[test]
fn an_agent_finds_what_its_profile_discloses() {
    let house = House::cold();
    // Nobody wrote any: everything, for everybody.
    assert_eq!(found(&house, &["fs.read", "--agent", "anybody"]), ["fs.read!", "fs.search!"]);
    house.file("config/glovebox/profiles.toml", PROFILES);
    // A person is no agent.
    assert_eq!(found(&house, &["fs.read"]), ["fs.read!", "fs.search!"]);
    let reader = found(&house, &["fs", "--agent", "reader@1.3.0"]);
    assert!(reader.contains(&"fs.read!".into()) && reader.contains(&"fs.write".into()), "{reader:?}");
    for agent in ["reader", "reader@1.1.0", "anybody"] {
        assert_eq!(found(&house, &["fs", "--agent", agent]), Vec::<String>::new());
    }
    let text = house.run(&["tool", "search", "fs.", "file", "--agent", "reader@2.0.0"]).ok().stdout;
    let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    assert!(!line("fs.read@").contains("not to be called"), "{text}");
    assert!(line("fs.write@").contains("not to be called"), "{text}");
    house.refuses(&["tool", "search", "x", "--agent", "a b"], 2, "usage", &["--agent", "`a b` is not a name"]);
    house.refuses(&["tool", "search", "x", "--agent", "a@1"], 2, "usage", &["`1` is not a version"]);
    assert_eq!(house.run(&["tool", "search"]).code, 2);
}

#[test]
fn profiles_that_are_not_understood_are_refused() {
    let house = House::cold();
    house.file("config/glovebox/profiles.toml", PROFILES.replace("discover = []", "discovers = []"));
    house.refuses(&["tool", "search", "x"], 2, "profiles-invalid", &["profiles.toml", "line 4", "`discovers`"]);
    let doctor = house.run(&["doctor", "--json"]);
    assert!(doctor.code != 0 && doctor.stdout.contains("`discovers`"), "{}", doctor.stdout);
    let named = |path: &str| {
        let mut command = house.command();
        crate::support::Ran::of(command.args(["tool", "search", "x"]).env("GLOVEBOX_PROFILES", path))
    };
    let missing = named("/nowhere/profiles.toml");
    assert_eq!(missing.code, 2);
    assert!(
        missing.stderr.contains("error [profiles-invalid]: `profiles` from $GLOVEBOX_PROFILES"),
        "{}",
        missing.stderr
    );
    let open = house.file("config/glovebox/profiles.toml", PROFILES);
    fs_err::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let refused = named(&open);
    assert!(refused.code == 2 && refused.stderr.contains("can be written by everybody"), "{}", refused.stderr);
}

#[test]
fn owner_rate_and_health_are_shown_where_there_are_any() {
    let house = House::cold();
    let plain = house.run(&["tool", "list"]).ok().stdout;
    assert!(!plain.contains("missing") && !plain.contains("  ok  "), "{plain}");
    let file = house.file("hostile.wasm", hostile());
    let generated = house.run(&["tool", "add", &file, "--name", "my.one"]).ok().stdout;
    let more = "owner = \"post-office\"\nrequires = [\"my.one@0.1.0\"]\nrate = { calls = 10, per = \"1m\" }\n";
    let text = generated.replace("my.one", "my.two").replacen("title =", &format!("{more}title ="), 1);
    let manifest = house.file("two.toml", text);
    house.run(&["tool", "add", &file, "--manifest", &manifest]).ok();
    let shown = house.run(&["tool", "show", "my.two"]).ok().stdout;
    for line in ["owner: post-office", "requires: my.one@0.1.0", "at most 10 calls in 1m for each tenant"] {
        assert!(shown.contains(line), "`{line}` is not in {shown}");
    }
    assert!(!shown.contains("can't be called"), "{shown}");
    assert_eq!(house.run(&["tool", "show", "my.two", "--json"]).ok().json()["health"]["state"], "ok");

    house.run(&["tool", "remove", "my.one@0.1.0"]).ok();
    let shown = house.run(&["tool", "show", "my.two"]).ok().stdout;
    assert!(shown.contains("can't be called: `my.one@0.1.0` is missing"), "{shown}");
    let listed = house.run(&["tool", "list"]).ok().stdout;
    let line = listed.lines().find(|line| line.starts_with("my.two@")).unwrap();
    assert!(line.contains("post-office") && line.contains("`my.one@0.1.0` is missing"), "{listed}");
    let json = house.run(&["tool", "list", "--json"]).ok().json();
    let two = json["tools"].as_array().unwrap().iter().find(|tool| tool["capability"] == "my.two@0.1.0").unwrap();
    assert_eq!((&two["owner"], &two["health"]["state"]), (&"post-office".into(), &"unmet-dependency".into()));
    fs_err::remove_file(house.state().join("tools/my.two/0.1.0/component.wasm")).unwrap();
    let shown = house.run(&["tool", "show", "my.two", "--json"]).ok().json();
    assert_eq!(shown["health"]["state"], "artifact-missing");
}

/// A harness says for which agent it runs commands: looking is bound like searching.
#[test]
fn an_agent_is_shown_and_listed_what_its_profile_discloses() {
    let house = House::cold();
    house.file("config/glovebox/profiles.toml", PROFILES);
    let as_agent = |agent: &str, args: &[&str]| {
        let mut command = house.command();
        crate::support::Ran::of(command.args(args).env("GLOVEBOX_AGENT", agent))
    };
    let listed = |agent: &str| {
        let listing = as_agent(agent, &["tool", "list", "--json"]).ok().json();
        let tools = listing["tools"].as_array().unwrap();
        let names = tools.iter().map(|tool| tool["capability"].as_str().unwrap().split('@').next().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert!(listed("reader@1.2.0").iter().all(|name| name.starts_with("fs.")) && !listed("reader@1.2.0").is_empty());
    assert_eq!(listed("stranger"), Vec::<String>::new());
    as_agent("reader@1.2.0", &["tool", "show", "fs.write"]).ok();
    let hidden = as_agent("reader@1.2.0", &["tool", "show", "text.count"]);
    let missing = as_agent("reader@1.2.0", &["tool", "show", "text.other"]);
    assert_eq!((hidden.code, missing.code), (2, 2));
    let told = |ran: &crate::support::Ran, name: &str| ran.stderr.replace(name, "NAME");
    assert_eq!(told(&hidden, "text.count"), told(&missing, "text.other"), "it would tell that there is one");
}

#[test]
fn what_is_for_people_is_refused_to_an_agent() {
    let house = House::that_may_write();
    house.asks_to_write("n.txt");
    house.has_an_approver();
    let key = house.path("audit.key");
    house.run(&["audit", "key", &key]).ok();
    let backup = house.path("copy.db");
    for args in [
        &["approver", "add", "eve", "--passphrase-stdin"][..],
        &["approver", "remove", "mira"],
        &["token", "add", "eve", "--role", "operator"],
        &["token", "remove", "eve"],
        &["audit", "export"],
        &["audit", "checkpoint", "--key", &key],
        &["db", "backup", &backup],
    ] {
        let mut command = house.command();
        let ran = crate::support::Ran::of(command.args(args).env("GLOVEBOX_AGENT", "coder"));
        assert!(ran.code == 36 && ran.stderr.contains("[not-eligible]"), "{args:?}: {}{}", ran.stdout, ran.stderr);
    }
    assert!(!std::path::Path::new(&backup).exists());
    assert_eq!(house.json(&["approver", "list"])["approvers"].as_array().unwrap().len(), 1);
}
