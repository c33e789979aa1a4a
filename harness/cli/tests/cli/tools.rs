//! Registering tools and looking at them.

use crate::support::{House, Ran, builtin, builtins, files, guest, hostile, manifest, talker};

#[test]
fn a_command_becomes_a_tool_with_a_manifest_that_is_shown() {
    let house = House::new();
    let file = house.file("My Talker.wasm", talker(1));
    let added = house.run(&["tool", "add", &file]).ok();
    for word in ["it has no manifest", "adapted from a preview 1 module", "registered my-talker@0.1.0"] {
        assert!(added.stderr.contains(word), "`{word}` is missing: {}", added.stderr);
    }
    assert!(added.stdout.contains("name = \"my-talker\""), "{}", added.stdout);
    let seen = house.run(&["run", "my-talker", "--json"]).ok().json();
    assert_eq!(seen["data"], "x".repeat(4096));
    // What is shown is what is registered.
    let text = fs_err::read_to_string(house.state().join("tools/my-talker/0.1.0/tool.toml")).unwrap();
    assert_eq!(added.stdout, text);
}

#[test]
fn a_command_without_a_manifest_gets_inputs_and_a_place_for_scratch() {
    let house = House::new();
    let file = house.file("hostile.wasm", hostile());
    house.run(&["tool", "add", &file, "--name", "my.tool"]).ok();
    house.file("workspace/data.csv", "a,b\n");
    house.file("workspace/stricter.toml", "[limits]\nwall = \"10s\"\n");
    let with = ["--input", "table=data.csv", "--contract", "stricter.toml", "--json"];
    let seen = |told: &str, more: &[&str]| -> serde_json::Value {
        let seen = house.run(&[&["run", "my.tool", "--args", told], more].concat()).ok().json();
        serde_json::from_str(seen["data"].as_str().unwrap()).unwrap()
    };
    let read = seen(r#"{"do": "read", "path": "/inputs/table"}"#, &with);
    assert_eq!(read["text"], "a,b\n");
    let written = seen(r#"{"do": "write-file", "path": "/tmp/x", "bytes": 4096}"#, &["--json"]);
    assert_eq!((&written["written"], &written["refused"]), (&4096.into(), &serde_json::Value::Null), "{written}");
}

#[test]
fn a_tool_writes_where_manifest_command_line_and_ceiling_say_so() {
    let house = House::new();
    let file = house.file("hostile.wasm", hostile());
    let generated = house.run(&["tool", "add", &file, "--name", "my.reader"]).ok().stdout;
    let writing = generated.replacen("access = \"read\"", "access = \"write\"", 1).replace("my.reader", "my.writer");
    let manifest = house.file("writer.toml", writing);
    house.run(&["tool", "add", &file, "--manifest", &manifest]).ok();
    let written = |tool: &str, workspace: &str| {
        let told = r#"{"do": "write-file", "path": "/workspace/new.txt", "bytes": 3}"#;
        house.run(&["run", tool, "--args", told, "--workspace", workspace]);
        fs_err::remove_file(house.workspace().join("new.txt")).is_ok()
    };
    assert!(!written("my.writer", ".:write"), "the shipped ceiling has no writing");
    house.may_write();
    assert!(!written("my.writer", ".") && !written("my.writer", ".:read"), "the command line has no writing");
    assert!(!written("my.reader", ".:write"), "the manifest has no writing");
    assert!(written("my.writer", ".:write"));
}

#[test]
fn shipped_tools_change_the_workspace_and_nothing_that_is_hidden() {
    let house = House::new();
    let file = house.workspace().join("a.txt");
    let text = || fs_err::read_to_string(&file).unwrap();
    let before = text();
    let replace = ["run", "fs.write", "--arg", "path=a.txt", "--arg", "mode=replace", "--arg", "text=one"];
    let writing = [&replace[..], &["--workspace", ".:write", "--json"]].concat();
    assert_ne!(house.run(&writing).code, 0);
    assert_eq!(text(), before, "the shipped ceiling has no writing");
    house.may_write();
    assert_ne!(house.run(&[&replace[..], &["--json"]].concat()).code, 0);
    assert_eq!(text(), before, "the command line has no writing");
    // A path that is read is sealed; this one is written, and what is there is what was written.
    assert_eq!(house.run(&writing).ok().json()["data"]["size"], 3);
    assert_eq!(text(), "one");
    let patch = "patch=--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n\\ No newline\n+two\n";
    house.run(&["run", "fs.patch", "--arg", patch, "--workspace", ".:write"]).ok();
    assert_eq!(text(), "two\n");
    house.file("workspace/.env", "SECRET=1\n");
    for (path, mode) in [(".env", "replace"), (".env", "create"), ("../b.txt", "create")] {
        let (path, mode) = (format!("path={path}"), format!("mode={mode}"));
        let args = ["run", "fs.write", "--arg", &path, "--arg", &mode, "--arg", "text=x", "--workspace", ".:write"];
        assert_ne!(house.run(&args).code, 0, "{path}");
    }
    assert_eq!(fs_err::read_to_string(house.workspace().join(".env")).unwrap(), "SECRET=1\n");
    let files = files(&house.workspace());
    assert!(!files.iter().any(|file| file.contains(".glovebox-")), "{files:?}");
}

#[test]
fn words_for_a_command_stay_words() {
    let house = House::new();
    let file = house.file("hostile.wasm", hostile());
    house.run(&["tool", "add", &file, "--name", "my.tool"]).ok();
    for (flags, expected) in [
        (&["--arg", "args=5", "--arg", "args=true"][..], serde_json::json!(["tool", "5", "true"])),
        (&["--arg", "args=[\"a\", \"b\"]"], serde_json::json!(["tool", "a", "b"])),
    ] {
        let args = [&["run", "my.tool", "--arg", "do=surroundings", "--json"], flags].concat();
        let seen = house.run(&args).ok().json();
        let told: serde_json::Value = serde_json::from_str(seen["data"].as_str().unwrap()).unwrap();
        assert_eq!(told["arguments"], expected, "{flags:?}");
    }
}

#[test]
fn imports_that_nothing_grants_are_stubs_that_can_be_seen() {
    let house = House::new();
    let file = house.file("unknown.wasm", guest("imports-unknown.wat"));
    let added = house.run(&["tool", "add", &file]).ok();
    assert!(
        added.stdout.contains("imports = \"stub\"") && added.stdout.contains("example:unknown/thing"),
        "{}",
        added.stdout
    );
    let shown = house.run(&["tool", "show", "unknown"]).ok();
    assert!(shown.stdout.contains("wasm.imports") && shown.stdout.contains("stub"), "{}", shown.stdout);
}

#[test]
fn a_manifest_is_found_beside_the_component() {
    let house = House::new();
    let file = house.file("pkg/count.wasm", builtin("text.count"));
    house.file(
        "pkg/tool.toml",
        manifest("text-count").replace("\nname = \"text.count\"\nversion", "\nname = \"my.count\"\nversion"),
    );
    house.run(&["tool", "add", &file]).ok();
    let seen = house.run(&["run", "my.count", "--arg", "path=a.txt", "--json"]).ok().json();
    assert_eq!(seen["data"]["lines"], 2);
    let listed = house.run(&["tool", "list", "--json"]).ok().json();
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().map(|tool| tool["capability"].as_str().unwrap()).collect();
    assert!(names.is_sorted() && names.contains(&"my.count@1.0.0") && names.contains(&"text.count@1.0.0"), "{names:?}");
}

#[test]
fn a_component_that_says_it_is_another_tool_is_refused() {
    let house = House::new();
    let file = house.file("count.wasm", builtin("text.count"));
    let other = manifest("text-count").replace("name = \"text.count\"", "name = \"my.count\"");
    let other = house.file("other.toml", other);
    house.refuses(
        &["tool", "add", &file, "--manifest", &other],
        2,
        "tool-check-failed",
        &["`name`", "text.count", "my.count"],
    );
    let wider = manifest("text-count").replace("\nname = \"text.count\"\nversion", "\nname = \"my.count\"\nversion");
    let wider =
        house.file("wider.toml", wider.replacen("additionalProperties = false", "additionalProperties = true", 1));
    house.refuses(&["tool", "add", &file, "--manifest", &wider], 2, "tool-check-failed", &["`input`"]);
    assert_eq!(files(&house.state().join("tools")), Vec::<String>::new());
}

#[test]
fn a_registered_tool_that_was_changed_on_disk_does_not_run() {
    let house = House::new();
    let file = house.file("talker.wasm", talker(1));
    house.run(&["tool", "add", &file]).ok();
    let place = house.state().join("tools/talker/0.1.0/tool.toml");
    let text = fs_err::read_to_string(&place).unwrap();
    fs_err::write(&place, text.replace("access = \"read\"", "access = \"overlay\"")).unwrap();
    house.refuses(&["run", "talker"], 50, "state-unavailable", &["talker@0.1.0", "changed"]);
}

#[test]
fn the_shipped_tools_pass_their_own_check() {
    let house = House::new();
    // Some of them write, which the shipped ceiling does not allow.
    for name in ["fs.patch", "fs.write"] {
        let ran = house.run(&["tool", "check", name]);
        assert!(ran.code == 2 && ran.stdout.contains("the ceiling has"), "{}", ran.stdout);
    }
    house.may_write();
    let listed = house.run(&["tool", "list", "--json"]).ok().json();
    let names = listed["tools"].as_array().unwrap().iter().map(|tool| tool["capability"].as_str().unwrap());
    let names: Vec<&str> = names.collect();
    assert_eq!(names.len(), builtins(), "{names:?}");
    let images = crate::containers::are_here();
    for name in names {
        if !images && name.ends_with(".run") {
            continue;
        }
        let ran = house.run(&["tool", "check", name, "--json"]);
        let report = ran.json();
        assert_eq!((ran.code, &report["passed"]), (0, &true.into()), "{report:#}");
        assert!(report["checks"].as_array().unwrap().iter().filter(|check| check["kind"] == "example").count() >= 3);
    }
    house.is_tidy();
}

#[test]
fn a_check_that_fails_says_which_and_why() {
    let house = House::new();
    let file = house.file("pkg/count.wasm", builtin("text.count"));
    let before = files(&house.state());
    let wrong = manifest("text-count").replacen("expect = { lines = ", "expect = { lines = 9", 1);
    house.file("pkg/tool.toml", wrong);
    let ran = house.run(&["tool", "check", &file]);
    assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
    assert!(
        ran.stderr.contains("error [tool-check-failed]") && ran.stdout.contains("at `/lines`: expected 9"),
        "{}{}",
        ran.stdout,
        ran.stderr
    );
    house.file("pkg/tool.toml", manifest("text-count").replace("error = \"not-found\"", "error = \"denied\""));
    let ran = house.run(&["tool", "check", &file]);
    assert!(ran.code == 2 && ran.stdout.contains("expected error `denied`"), "{}", ran.stdout);
    house.file("pkg/tool.toml", manifest("text-count").replace("memory = \"32MiB\"", "memory = \"100TiB\""));
    let ran = house.run(&["tool", "check", &file]);
    assert!(ran.code == 2 && ran.stdout.contains("the ceiling has"), "{}", ran.stdout);
    // Looking at a file leaves the state as it was.
    assert_eq!(files(&house.state()), before);
}

#[test]
fn a_tool_is_shown_for_people_and_for_programs() {
    let house = House::new();
    let shown = house.run(&["tool", "show", "text.count"]).ok().stdout;
    for word in [
        "text.count@1.0.0",
        "Arguments",
        "path",
        "required",
        "Result",
        "not-found",
        "filesystem[/workspace]",
        "derived: none",
        "sha256 ",
    ] {
        assert!(shown.contains(word), "`{word}` is missing: {shown}");
    }
    let json = house.run(&["tool", "show", "text.count", "--json"]).ok().json();
    assert_eq!((&json["builtin"], &json["effects"]["derived"]), (&true.into(), &"none".into()));
    assert_eq!(json["manifest"]["name"], "text.count");
}

#[test]
fn a_mark_for_command_lines_that_no_rule_would_see_is_refused() {
    let house = House::new();
    let file = house.file("talker.wasm", talker(1));
    for (number, (schema, right)) in [
        (r#"{ type = "string", x-glovebox-argv = true }"#, true),
        (r#"{ type = "array", items = { type = "string" }, x-glovebox-argv = true }"#, true),
        (r#"{ type = "integer", x-glovebox-argv = true }"#, false),
        (r#"{ type = "string", x-glovebox-argv = "yes" }"#, false),
        (r#"{ type = "object", properties = { line = { type = "string", x-glovebox-argv = true } } }"#, false),
    ]
    .into_iter()
    .enumerate()
    {
        let manifest = house.file("marked.toml", talking(&format!("my.tool-{number}"), schema));
        let args = ["tool", "add", file.as_str(), "--manifest", manifest.as_str()];
        if right {
            house.run(&args).ok();
        } else {
            house.refuses(&args, 2, "manifest-invalid", &["x-glovebox-argv", "line"]);
        }
    }
}

/// A manifest for the component that talks, with one argument.
fn talking(name: &str, line: &str) -> String {
    format!(
        "schema = \"glovebox/tool/v1\"\nname = \"{name}\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n\
         [entry]\nkind = \"command\"\nresult = \"text\"\n[effects]\nside_effects = \"none\"\nidempotent = true\n\
         [input]\ntype = \"object\"\nproperties = {{ line = {line} }}\n\
         [contract]\nschema = \"glovebox/contract/v1\"\n"
    )
}

/// What a manifest claims counts once an operator accepted it, for these bytes.
#[test]
fn what_an_operator_accepted_counts_for_policy_and_is_shown() {
    let house = House::new();
    let file = house.file("talker.wasm", talker(1));
    let manifest = house.file("mine.toml", talking("my.tool", "{ type = \"string\" }"));
    house.run(&["tool", "add", &file, "--manifest", &manifest]).ok();
    let rules = "permit (principal, action, resource) when { resource.accepted && resource.idempotent };";
    house.file("config/glovebox/policy/rules.cedar", rules);
    house.file("config/glovebox/policy/approvers.toml", "");
    let run = || house.run(&["run", "my.tool", "--agent", "coder", "--json"]).code;
    assert_eq!(run(), 22);
    let accept = ["tool", "accept", "my.tool@1.0.0"];
    let mut command = house.command();
    assert_eq!(Ran::of(command.args(accept).env("GLOVEBOX_AGENT", "coder")).code, 36);
    house.refuses(&["tool", "accept", "text.count@1.0.0"], 2, "tool-reserved", &["text.count"]);
    let said = house.run(&accept).ok().stdout;
    assert!(said.contains("idempotent"), "{said}");
    assert_eq!(house.json(&["tool", "show", "my.tool"])["accepted"], true);
    assert_eq!(run(), 0);
    house.run(&["tool", "accept", "my.tool@1.0.0", "--revoke"]).ok();
    assert_eq!(run(), 22);
    assert_eq!(house.json(&["tool", "show", "my.tool"])["accepted"], false);
    // A record for other bytes is none for these.
    house.run(&accept).ok();
    let record = house.state().join("tools/@accepted/my.tool@1.0.0.json");
    let mut other: serde_json::Value = serde_json::from_slice(&fs_err::read(&record).unwrap()).unwrap();
    other["artifact"] = "0".repeat(64).into();
    fs_err::write(&record, other.to_string()).unwrap();
    assert_eq!(run(), 22);
}
