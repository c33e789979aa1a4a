//! Loading, loading again, and what is refused.

use env_contracts::{Code, Diagnose as _, Manifest, Verdict};
use glovebox_policy::{Live, Policy as _, PolicyError, PolicySet};
use serde_json::json;

use crate::support::{Folder, World, taking};

const ALLOW: &str = "permit (principal, action in Action::\"run\", resource) when { true };\n";

/// The one problem of a folder, as text.
fn problem(folder: &Folder, tools: &[Manifest]) -> String {
    let error = folder.load(tools).unwrap_err();
    assert_eq!(error.code(), Code::PolicyInvalid);
    assert_eq!(error.problems().len(), 1, "{error}");
    error.problems()[0].to_string()
}

/// A file that is nested too deep would end the process, not only itself.
#[test]
fn what_is_nested_too_deep_is_refused_before_it_is_read() {
    let rule = |condition: &str| format!("permit (principal, action, resource) when {{ {condition} }};\n");
    let (many, deep) = (20_000, 60);
    for (condition, words) in [
        (format!("{}true{}", "(".repeat(many), ")".repeat(many)), "nested more than"),
        (format!("{}1{} == [1]", "[".repeat(many), "]".repeat(many)), "nested more than"),
        (format!("true{}", " && true".repeat(many)), "operators"),
        (format!("0{} == 1", " + 1".repeat(many)), "operators"),
        (format!("context{} == 1", ".a".repeat(many)), "operators"),
        (format!("{}true{}", "if true then ".repeat(many), " else true".repeat(many)), "operators"),
    ] {
        let told = problem(&Folder::new(&rule(&condition)), &[]);
        assert!(told.starts_with("rules.cedar:1") && told.contains(words), "{told}");
    }
    // What is let through is read, on a small stack as well.
    let nested = format!("{}true{}", "(".repeat(deep), ")".repeat(deep));
    let chained = format!("true{}", " && true".repeat(1000));
    for condition in [nested, chained] {
        Folder::new(&rule(&condition)).load(&[]).unwrap();
    }
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let tools = [taking(json!({ "path": { "type": "string" }, "any": {} }))];
    for (rules, place, text) in [
        ("permit (principal, action, resource)\nwhen { true", "rules.cedar", "unexpected end of input"),
        ("\n\npermit (principal action, resource);", "rules.cedar:3", "unexpected token"),
        (
            "// first\npermit (principal, action, resource) when {\n  context.nonsense == 1 };",
            "rules.cedar:3",
            "nonsense",
        ),
        ("\npermit (principal, action, resource) when { context.effects == 1 };", "rules.cedar:2", "String"),
        ("\npermit (principal, action, resource) when { context.args.path == \"x\" };", "rules.cedar:2", "path"),
        (
            "\npermit (principal, action == Action::\"test.tool@1.0.0\", resource) when { context.args.any == 1 };",
            "rules.cedar:2",
            "any",
        ),
        ("\npermit (principal, action == Action::\"no.tool@1.0.0\", resource);", "rules.cedar:2", "no.tool"),
        ("permit (principal == ?principal, action, resource);", "rules.cedar:1", "template"),
        ("\n@reson(\"x\")\npermit (principal, action, resource);", "rules.cedar:2", "`@reson` means nothing"),
        ("@preview(\"no\")\npermit (principal, action, resource);", "rules.cedar:1", "takes no value"),
        ("@delta(\"x\")\nforbid (principal, action, resource);", "rules.cedar:1", "stands at a permit"),
        ("@delta(\" \")\npermit (principal, action, resource);", "rules.cedar:1", "lists clauses"),
        (
            "@id(\"a\")\npermit (principal, action, resource);\n@id(\"a\")\npermit (principal, action, resource);",
            "rules.cedar:3",
            "taken by rules.cedar:1",
        ),
    ] {
        let problem = problem(&Folder::new(rules), &tools);
        assert!(problem.starts_with(place) && problem.contains(text), "{rules}\n→ {problem}");
    }
}

#[test]
fn approvers_and_tests_are_refused_with_their_line_too() {
    for (file, text, place, message) in [
        ("approvers.toml", "[classes.a]\nsubjects = [\"*\"]\nassurance = \"high\"", "approvers.toml:3", "high"),
        ("approvers.toml", "[classes.a]\nsubjects = []\nassurance = \"passkey\"", "approvers.toml", "no subjects"),
        ("approvers.toml", "[classes.a]\nsubjects = [\"*\"]", "approvers.toml", "no `assurance`"),
        (
            "approvers.toml",
            "[classes.a]\nsubjects = [\"*\"]\nreviewer = { capability = \"a.b@1.0.0\", limit = \"9s\" }",
            "approvers.toml",
            "not both",
        ),
        (
            "approvers.toml",
            "[classes.a]\nassurance = \"passkey\"\nreviewer = { capability = \"a.b@1.0.0\", limit = \"9s\" }",
            "approvers.toml",
            "a reviewer is no person",
        ),
        (
            "approvers.toml",
            "[classes.a]\nreviewer = { capability = \"a.b@1.0.0\", limit = \"1h\" }",
            "approvers.toml",
            "`limit` is more than nothing and at most",
        ),
        ("approvers.toml", "[classes.a]\nreviewer = { capability = \"a.b\", limit = \"9s\" }", "approvers.toml:2", ""),
        (
            "approvers.toml",
            "[classes.a]\nsubjects = [\"a b\"]\nassurance = \"passkey\"",
            "approvers.toml",
            "not a user's name",
        ),
        (
            "approvers.toml",
            "[classes.a]\nsubjects = [\"a\"]\nassurance = \"passkey\"\nseperate = true",
            "approvers.toml",
            "seperate",
        ),
        ("tests/a.toml", "\n[[test]]\nname = \"x\"\nexpect = \"maybe\"", "tests/a.toml", "maybe"),
        ("tests/a.toml", "\n[[test]]\nname = \"x\"\nexpct = \"allow\"", "tests/a.toml", "expct"),
        (
            "tests/a.toml",
            "\n\n[[test]]\nname = \"x\"\nexpect = \"deny\"",
            "tests/a.toml:3",
            "expected DENY, found ALLOW by rules#1",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\nexpect = \"allow\"\nrule = \"y\"",
            "tests/a.toml:1",
            "expected that `y` decides",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\nexpect = \"allow\"\ndiff = true",
            "tests/a.toml:1",
            "expected diff = true",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\nexpect = \"allow\"\npreview = true",
            "tests/a.toml:1",
            "preview = true",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\nexpect = \"allow\"\napprovers = [\"owner\"]",
            "tests/a.toml:1",
            "owner may approve, found nobody",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\ntool = \"no.tool\"\nexpect = \"allow\"",
            "tests/a.toml:1",
            "no tool `no.tool`",
        ),
        (
            "tests/a.toml",
            "[[test]]\nname = \"x\"\nexpect = \"allow\"\napproved = { class = \"none\" }",
            "tests/a.toml:1",
            "no class `none`",
        ),
        ("other.toml", "", "other.toml", "nothing reads this file"),
        ("more/rules.cedar", "", "more", "nothing reads this folder"),
    ] {
        let folder = Folder::new(ALLOW);
        folder.put(file, text);
        let problem = problem(&folder, &[taking(json!({}))]);
        assert!(problem.starts_with(place) && problem.contains(message), "{text}\n→ {problem}");
    }
}

#[test]
fn an_empty_or_missing_folder_is_refused() {
    let empty = tempfile::tempdir().unwrap();
    let error = PolicySet::load(Some(empty.path()), [], None).unwrap_err();
    assert!(error.to_string().contains("no `*.cedar` file"), "{error}");
    let error = PolicySet::load(Some(&empty.path().join("none")), [], None).unwrap_err();
    assert!(matches!(error, PolicyError::Unreadable(_)) && error.to_string().contains("none"), "{error}");
    let bytes = Folder::new(ALLOW);
    fs_err::write(bytes.0.path().join("bytes.cedar"), [0xff]).unwrap();
    let error = bytes.load(&[]).unwrap_err();
    assert!(matches!(error, PolicyError::Unreadable(_)) && error.to_string().contains("bytes.cedar"), "{error}");
    let folder = Folder::new(ALLOW);
    folder.put("inside.cedar/x", "");
    assert!(folder.load(&[]).unwrap_err().to_string().contains("inside.cedar is not a file"));
}

#[test]
fn the_paths_of_a_policy_are_all_that_it_was_read_from() {
    let folder = Folder::new(ALLOW);
    folder.put("tests/a.toml", "");
    folder.put("README.md", "not read");
    let paths = folder.load(&[]).unwrap();
    let names = ["", "approvers.toml", "rules.cedar", "tests/a.toml", "tests"];
    let expected: Vec<_> = names.iter().map(|name| folder.0.path().join(name)).collect();
    assert_eq!(paths.paths().len(), expected.len());
    assert!(expected.iter().all(|path| paths.paths().contains(path)), "{:?}", paths.paths());
    assert!(PolicySet::shipped().unwrap().paths().is_empty());
}

#[test]
fn the_revision_is_of_rules_and_approvers() {
    let folder = Folder::new(ALLOW);
    let first = folder.load(&[]).unwrap().revision();
    folder.put("tests/a.toml", "# a test is no rule\n");
    assert_eq!(folder.load(&[]).unwrap().revision(), first);
    folder.put("approvers.toml", "[classes.a]\nsubjects = [\"*\"]\nassurance = \"passkey\"\n");
    let second = folder.load(&[]).unwrap().revision();
    folder.put("rules.cedar", &format!("{ALLOW}// more\n"));
    let third = folder.load(&[]).unwrap().revision();
    assert!(first != second && second != third);
}

#[test]
fn a_bad_reload_keeps_the_old_policy_and_says_so() {
    let (folder, tools) = (Folder::new(ALLOW), [taking(json!({}))]);
    let live = Live::load(Some(folder.0.path().into()), &tools, None).unwrap();
    let first = live.revision();
    let world = World::new(tools[0].clone());
    folder.put("rules.cedar", "forbid (principal, action, resource) when { context.nonsense };");
    assert!(live.reload(&tools).is_err());
    assert_eq!((live.revision(), live.decide(&world.facts()).verdict), (first.clone(), Verdict::Allow));
    let problem = live.problem().unwrap();
    assert_eq!(problem.code, Code::PolicyInvalid);
    assert!(problem.message.contains("nonsense") && problem.help.contains(first.short()), "{problem:?}");
    // A test that does not hold is as bad.
    folder.put("rules.cedar", "forbid (principal, action, resource);");
    folder.put("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"allow\"\n");
    assert!(live.reload(&tools).is_err());
    assert_eq!(live.decide(&world.facts()).verdict, Verdict::Allow);
    folder.put("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"deny\"\n");
    let second = live.reload(&tools).unwrap();
    assert!(second != first && live.revision() == second && live.problem().is_none());
    assert_eq!(live.decide(&world.facts()).verdict, Verdict::Deny);
}

/// What is in force is made anew only of something else: that takes a while.
#[test]
fn a_reload_of_the_same_keeps_the_policy_and_of_anything_else_makes_another() {
    let (folder, tools) = (Folder::new(ALLOW), [taking(json!({}))]);
    let live = Live::load(Some(folder.0.path().into()), &tools, None).unwrap();
    let kept = |tools: &[Manifest]| {
        let before = live.current();
        live.reload(tools).is_ok() && std::sync::Arc::ptr_eq(&before, &live.current())
    };
    assert!(kept(&tools));
    for (file, text) in [
        ("rules.cedar", format!("{ALLOW}// more\n")),
        ("more.cedar", ALLOW.to_owned()),
        ("approvers.toml", "[classes.a]\nsubjects = [\"*\"]\nassurance = \"passkey\"\n".to_owned()),
        ("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"allow\"\n".to_owned()),
    ] {
        folder.put(file, &text);
        assert!(!kept(&tools) && kept(&tools), "{file}");
    }
    let more = [tools[0].clone(), taking(json!({ "a": { "type": "string" } }))];
    assert!(!kept(&more) && kept(&more));
    // What was bad and is as before again is no problem any more.
    folder.put("more.cedar", "permit (");
    assert!(live.reload(&more).is_err() && live.problem().is_some());
    folder.put("more.cedar", ALLOW);
    assert!(kept(&more) && live.problem().is_none());
}

/// A stamp stands for checks that passed with exactly this.
#[test]
fn a_stamp_is_left_only_by_what_passed_and_only_for_it() {
    let folder = Folder::new(ALLOW);
    let stamps = tempfile::tempdir().unwrap();
    let place = stamps.path().join("policy");
    let load = |tools: &[Manifest]| PolicySet::load(Some(folder.0.path()), tools, Some(&place)).is_ok();
    let count = || fs_err::read_dir(&place).map_or(0, Iterator::count);
    let (one, two) = (taking(json!({})), taking(json!({ "a": { "type": "string" } })));
    folder.put("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"deny\"\n");
    assert!(!load(std::slice::from_ref(&one)) && count() == 0);
    folder.put("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"allow\"\n");
    assert!(load(std::slice::from_ref(&one)) && count() == 1);
    assert!(load(std::slice::from_ref(&one)) && count() == 1);
    assert!(load(&[one.clone(), two]) && count() == 2);
    // Changed again: the stamp of what was there before does not count.
    folder.put("tests/a.toml", "[[test]]\nname = \"x\"\nexpect = \"deny\"\n");
    assert!(!load(&[one]) && count() == 2);
}
