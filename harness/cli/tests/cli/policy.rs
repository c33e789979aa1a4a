//! The policy, as whoever operates an install meets it.

use crate::people::{ended, strs, write};
use crate::support::{House, files};

#[test]
fn the_shipped_policy_is_a_beginning() {
    let house = House::cold();
    let dir = house.path("policy");
    house.run(&["policy", "check"]).ok();
    house.run(&["policy", "init", &dir]).ok();
    assert!(files(dir.as_ref()).contains(&"default.cedar".to_owned()));
    let checked = house.json(&["policy", "check", &dir]);
    assert_eq!((&checked["problems"], &checked["warnings"]), (&serde_json::json!([]), &serde_json::json!([])));
    assert!(checked["rules"].as_u64() > Some(5) && checked["tests"].as_u64() > Some(5), "{checked:#}");
    let tested = house.run(&["policy", "test", &dir]).ok().stdout;
    assert!(tested.contains("tests hold, 0 do not"), "{tested}");
    // Nothing is overwritten.
    house.refuses(&["policy", "init", &dir], 2, "usage", &["is not empty", &dir]);
    house.refuses(&["policy", "check", &house.path("nowhere")], 2, "file-unreadable", &["is not a folder"]);
    let schema = house.run(&["policy", "schema"]).ok().stdout;
    assert!(schema.contains("entity Tenant") && schema.contains("fs.write"), "{schema}");
}

#[test]
fn what_is_wrong_is_named_with_its_place() {
    let house = House::cold();
    let dir = house.path("policy");
    house.run(&["policy", "init", &dir]).ok();
    let rules = fs_err::read_to_string(house.path("policy/default.cedar")).unwrap();
    let line = rules.lines().count() + 1;
    house.file(
        "policy/default.cedar",
        format!("{rules}permit (principal, action, resource) when {{ context.nonsense }};\n"),
    );
    let ran = house.run(&["policy", "check", &dir]);
    assert!(ran.code == 2 && ran.stdout.contains(&format!("default.cedar:{line}")), "{}{}", ran.stdout, ran.stderr);
    let json = house.run(&["policy", "check", &dir, "--json"]);
    assert_eq!((json.code, &json.json()["problems"][0]["line"]), (2, &line.into()));
    // In force, it lets nothing run.
    let mut command = house.command();
    let ran = crate::support::Ran::of(
        command.args(["run", "text.count", "--arg", "path=a.txt"]).env("GLOVEBOX_POLICY", &dir),
    );
    assert!(ran.code == 2 && ran.stderr.contains("error [policy-invalid]"), "{}{}", ran.stdout, ran.stderr);

    house.file("policy/default.cedar", rules.replace("@id(\"own-hands\")\npermit", "@id(\"own-hands\")\nforbid"));
    let ran = house.run(&["policy", "test", &dir]);
    assert!(ran.code == 2 && ran.stdout.contains("tests/risks.toml:"), "{}{}", ran.stdout, ran.stderr);
    assert!(house.run(&["policy", "test", &dir, "--json"]).json()["failed"][0]["line"].is_u64());
}

#[test]
fn a_folder_that_others_can_write_to_decides_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::cold();
    let dir = house.path("config/glovebox/policy");
    house.run(&["policy", "init", &dir]).ok();
    fs_err::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
    house.refuses(&["policy", "check"], 2, "policy-invalid", &["can be written by everybody"]);
    house.refuses(&["run", "text.count", "--arg", "path=a.txt"], 2, "policy-invalid", &["can be written by everybody"]);
}

/// What `explain` says becomes of a request: the exit code of `run`.
fn foretold(house: &House, args: &[&str]) -> i32 {
    let args = [&["policy", "explain"], &args[1..]].concat();
    let ran = house.run(&args);
    if ran.code != 0 {
        return ran.code;
    }
    let said = ran.json();
    if let Some(code) = said["ends"]["code"].as_str() {
        let code = env_contracts::Code::ALL.iter().find(|known| known.as_str() == code).unwrap();
        return code.exit_code().into();
    }
    match (said["decision"]["verdict"].as_str(), said["grant"].is_string()) {
        (Some("allow"), _) | (Some("ask"), true) => 0,
        (Some("ask"), false) => 38,
        (Some("deny"), _) => 22,
        other => panic!("{other:?}: {said:#}"),
    }
}

#[test]
fn what_is_explained_is_what_a_run_gets() {
    let house = House::that_may_write();
    house.has_a_tool_that_deletes();
    let deny = "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = [\"*\"]\nexecute = [\"*\"]\n\
                [[agent]]\nname = \"narrow\"\ndiscover = [\"*\"]\nexecute = [\"text.count\"]\n";
    house.file("config/glovebox/profiles.toml", deny);
    let read = ["run", "text.count", "--json", "--arg"];
    let with =
        |more: &[&'static str]| -> Vec<String> { read.iter().chain(more).map(|arg| (*arg).to_owned()).collect() };
    let network = house.file("network.toml", "[network]\negress = [{ host = \"example.com\", ports = [443] }]\n");
    let beyond = house.file("beyond.toml", "[limits]\nmemory = \"300MiB\"\n");
    let declined = house.asks_to_write("declined.txt");
    house.run(&["approvals", "decline", &declined.approval]).ok();
    let granted = crate::people::Asked::of(&house.writes("granted.txt", &["--session", "granted"]));
    house.run(&["approvals", "approve", &granted.approval, "--offer", "session"]).ok();

    let own = |path: &'static str| {
        write(path, &[]).into_iter().filter(|arg| arg != "--agent" && arg != "coder").collect::<Vec<_>>()
    };
    let delete = |more: &[&str]| {
        ["run", "x.delete", "--json"].iter().chain(more).map(|arg| (*arg).to_owned()).collect::<Vec<_>>()
    };
    let cases: &[(&str, Vec<String>, i32)] = &[
        ("a user reads", with(&["path=a.txt"]), 0),
        ("an agent reads", with(&["path=a.txt", "--agent", "coder"]), 0),
        ("a user writes", own("user.txt"), 0),
        ("an agent writes", write("agent.txt", &[]), 38),
        ("an agent writes where nobody is", write("never.txt", &["--ask", "never"]), 25),
        ("the same was declined", write("declined.txt", &[]), 23),
        ("a grant covers it", write("covered.txt", &["--session", "granted"]), 0),
        ("another session than the grant's", write("covered2.txt", &["--session", "elsewhere"]), 38),
        ("a user deletes", delete(&[]), 38),
        ("an agent deletes where nobody is", delete(&["--agent", "coder", "--ask", "never"]), 25),
        ("out of the workspace", with(&["path=../x"]), 21),
        ("arguments of another shape", with(&["nonsense=1"]), 20),
        ("beyond the ceiling", with(&["path=a.txt", "--contract", "NETWORK"]), 21),
        ("beyond the tool's contract", with(&["path=a.txt", "--contract", "BEYOND"]), 38),
        ("no such tool", with(&[]).into_iter().map(|arg| arg.replace("text.count", "text.cuont")).take(3).collect(), 2),
        ("a profile lets it be found, not run", delete(&["--agent", "narrow"]), 22),
    ];
    for (what, args, exit) in cases {
        let args: Vec<String> = args
            .iter()
            .map(|arg| match arg.as_str() {
                "NETWORK" => network.clone(),
                "BEYOND" => beyond.clone(),
                _ => arg.clone(),
            })
            .collect();
        let actions = || house.json(&["action", "list", "--limit", "1000"])["actions"].as_array().unwrap().len();
        let before = (actions(), house.pending().len(), files(&house.workspace()));
        let said = foretold(&house, &strs(&args));
        assert_eq!(said, *exit, "{what}: explain");
        assert_eq!(
            (actions(), house.pending().len(), files(&house.workspace())),
            before,
            "{what}: explain did something"
        );
        house.is_tidy();
        let ran = house.run(&strs(&args));
        assert_eq!(ran.code, *exit, "{what}: run\n{}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn an_explanation_names_rules_and_what_would_be_permitted() {
    let house = House::that_may_write();
    let args = write("n.txt", &[]);
    let args: Vec<&str> = strs(&args).into_iter().filter(|arg| *arg != "--json").collect();
    let said = house.run(&[&["policy", "explain"], &args[1..]].concat()).ok().stdout;
    for word in ["ASK", "with-approval (default.cedar:", "owner or person", "ALLOW by isolated-workspace"] {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
    // A rule of the operator's own, and what it would allow instead.
    let dir = house.path("config/glovebox/policy");
    house.run(&["policy", "init", &dir]).ok();
    // The shipped tests say otherwise.
    fs_err::remove_file(house.path("config/glovebox/policy/tests/risks.toml")).unwrap();
    house.file(
        "config/glovebox/policy/own.cedar",
        "@id(\"no-writing\")\n@reason(\"nothing is written here\")\n@model(\"read instead\")\n\
         forbid (principal, action, resource) when { context.writes.contains(\"workspace\") };\n",
    );
    let said = house.run(&[&["policy", "explain"], &args[1..]].concat()).ok().stdout;
    for word in ["DENY", "no-writing (own.cedar:1)", "nothing is written here", "the same "] {
        assert!(said.contains(word), "`{word}` is missing: {said}");
    }
    let (exit, code, message) = ended(&house.writes("n.txt", &[]));
    assert_eq!((exit, code.as_str()), (22, "policy-denied"));
    assert!(message.contains("read instead"), "{message}");
}
