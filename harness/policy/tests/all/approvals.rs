//! Who may approve, and how far an approval reaches.

use env_contracts::{Assurance, Name, Principal, Verdict};
use glovebox_policy::{Facts, Given, GivenScope, Policy as _, PolicySet, Source};
use serde_json::json;

use crate::support::{Folder, World, taking};

const CLASSES: &str = r#"
[classes.owner]
subjects = ["*"]
assurance = "same-user"
[classes.person]
subjects = ["*"]
assurance = "console-login"
[classes.second]
subjects = ["*"]
assurance = "console-login"
separate = true
[classes.release]
subjects = ["rob", "coder"]
assurance = "passkey"
"#;

fn set(condition: &str) -> PolicySet {
    let folder =
        Folder::new(&format!("permit (principal, action in Action::\"run\", resource) when {{ {condition} }};"));
    folder.put("approvers.toml", CLASSES);
    folder.load(&[taking(json!({}))]).unwrap()
}

fn names(names: &[Name]) -> Vec<&str> {
    names.iter().map(Name::as_str).collect()
}

fn requester(value: serde_json::Value) -> Principal {
    serde_json::from_value(value).unwrap()
}

#[test]
fn classes_are_met_by_subject_assurance_and_distance() {
    let set = set("true");
    let asks = requester(json!({ "tenant": "acme", "user": "ann", "agent": "coder", "chain": ["planner"] }));
    let of = |approver: &str, assurance| set.classes_of(approver, assurance, &asks);
    assert_eq!(names(&of("ann", Assurance::SameUser)), ["owner"]);
    assert_eq!(names(&of("ann", Assurance::Passkey)), ["owner", "person"]);
    assert_eq!(names(&of("bob", Assurance::ConsoleLogin)), ["owner", "person", "second"]);
    assert_eq!(names(&of("rob", Assurance::Passkey)), ["owner", "person", "release", "second"]);
    assert_eq!(names(&of("rob", Assurance::SeparateUser)), ["owner", "person", "second"]);
    // Neither the agent, though a class names it, nor those above it.
    for agent in ["coder", "planner"] {
        assert_eq!(of(agent, Assurance::Passkey), [], "{agent}");
    }
    // For another's question it is a subject like any other.
    let other = requester(json!({ "tenant": "acme", "user": "ann", "agent": "writer" }));
    assert!(names(&set.classes_of("coder", Assurance::Passkey, &other)).contains(&"release"));
}

#[test]
fn the_classes_that_may_be_asked_are_those_for_which_it_is_permitted() {
    let world = World::new(taking(json!({})));
    for (condition, classes) in [
        ("context has approval", &["owner", "person", "release", "second"][..]),
        (
            "context has approval && context.approval.at_least.contains(\"console-login\")",
            &["person", "release", "second"],
        ),
        ("context has approval && context.approval.assurance >= 3", &["release"]),
        ("context has approval && context.approval.classes.contains(\"second\")", &["second"]),
        ("context has approval && context.approval.classes.contains(\"nobody\")", &[]),
        ("context has approval && context.approval.source == \"grant\"", &[]),
    ] {
        let decision = world.decide(&set(condition));
        assert_eq!(names(&decision.classes), classes, "{condition}");
        let verdict = if classes.is_empty() { Verdict::Deny } else { Verdict::Ask };
        assert_eq!(decision.verdict, verdict, "{condition}");
    }
}

/// Nobody is asked who could not answer.
#[test]
fn a_class_in_which_only_the_agent_is_is_no_class_to_ask() {
    let folder = Folder::new("permit (principal, action in Action::\"run\", resource) when { context has approval };");
    folder.put("approvers.toml", "[classes.self]\nsubjects = [\"coder\"]\nassurance = \"same-user\"\n");
    assert_eq!(World::new(taking(json!({}))).decide(&folder.load(&[]).unwrap()).verdict, Verdict::Deny);
}

#[test]
fn an_approval_counts_in_the_classes_of_its_approver_only() {
    let world = World::new(taking(json!({})));
    let set = set("context has approval && context.approval.classes.contains(\"second\")");
    let second: Name = "second".parse().unwrap();
    let decide = |approver, assurance, classes: &[Name]| {
        let given = Given { approver, assurance, classes, source: Source::Person, scope: GivenScope::Once };
        set.decide(&Facts { approval: Some(given), ..world.facts() }).verdict
    };
    let claimed = std::slice::from_ref(&second);
    assert_eq!(decide("bob", Assurance::ConsoleLogin, claimed), Verdict::Allow);
    // Not enough assurance; the requester's own user; the agent; no class given.
    assert_eq!(decide("bob", Assurance::SameUser, claimed), Verdict::Ask);
    assert_eq!(decide("ann", Assurance::Passkey, claimed), Verdict::Ask);
    assert_eq!(decide("coder", Assurance::Passkey, claimed), Verdict::Ask);
    assert_eq!(decide("bob", Assurance::Passkey, &[]), Verdict::Ask);
}

#[test]
fn rules_tell_grants_from_answers_and_see_how_far_they_reach() {
    let world = World::new(taking(json!({})));
    let person: Name = "person".parse().unwrap();
    let decide = |condition: &str, source, scope| {
        let classes = std::slice::from_ref(&person);
        let given = Given { approver: "ann", assurance: Assurance::ConsoleLogin, classes, source, scope };
        set(condition).decide(&Facts { approval: Some(given), ..world.facts() }).verdict
    };
    let person = "context has approval && context.approval.source == \"person\"";
    assert_eq!(decide(person, Source::Person, GivenScope::Once), Verdict::Allow);
    assert_eq!(decide(person, Source::Grant, GivenScope::Task), Verdict::Ask);
    let narrow = "context has approval && context.approval.scope != \"rule\"";
    assert_eq!(decide(narrow, Source::Grant, GivenScope::Session), Verdict::Allow);
    assert_eq!(decide(narrow, Source::Grant, GivenScope::Rule), Verdict::Ask);
}

const ROBOT: &str = "[classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n\
     [classes.robot]\nreviewer = { capability = \"test.robot@1.0.0\", limit = \"9s\" }\n";

/// The policy, with what it makes of the reviewer's yes as a test beside it.
fn reviewed(condition: &str, verdict: &str) -> PolicySet {
    let folder =
        Folder::new(&format!("permit (principal, action in Action::\"run\", resource) when {{ {condition} }};"));
    folder.put("approvers.toml", ROBOT);
    let test = format!("[[test]]\nname = \"a\"\napproved = {{ class = \"robot\" }}\nexpect = \"{verdict}\"\n");
    folder.put("tests/a.toml", &test);
    folder.load(&[taking(json!({}))]).unwrap()
}

#[test]
fn a_reviewer_is_eligible_only_where_no_person_is_demanded() {
    let world = World::new(taking(json!({})));
    for (condition, classes) in [
        ("context has approval", &["person", "robot"][..]),
        ("context has approval && context.approval.source == \"person\"", &["person"]),
        ("context has approval && context.approval.at_least.contains(\"console-login\")", &["person"]),
        ("context has approval && context.approval.source == \"reviewer\"", &["robot"]),
    ] {
        let enough = if classes.contains(&"robot") { "allow" } else { "ask" };
        let set = reviewed(condition, enough);
        assert_eq!(names(&world.decide(&set).classes), classes, "{condition}");
        let robot: Name = "robot".parse().unwrap();
        let given = Given {
            approver: "robot",
            assurance: Assurance::SameUser,
            classes: std::slice::from_ref(&robot),
            source: Source::Reviewer,
            scope: GivenScope::Once,
        };
        let verdict = set.decide(&Facts { approval: Some(given), ..world.facts() }).verdict;
        assert_eq!(verdict == Verdict::Allow, classes.contains(&"robot"), "{condition}");
        // Where the requester wants a person, it never is.
        let wanted = Facts { always_ask: true, ..world.facts() };
        assert!(!set.decide(&wanted).classes.contains(&robot), "{condition}");
        let verdict = set.decide(&Facts { approval: Some(given), always_ask: true, ..world.facts() }).verdict;
        assert_ne!(verdict, Verdict::Allow, "{condition}");
    }
}

#[test]
fn nobody_stands_for_a_reviewer_and_it_stands_for_nobody() {
    let world = World::new(taking(json!({})));
    let set = reviewed("context has approval", "allow");
    let reviewers = set.reviewers();
    assert_eq!(reviewers.len(), 1);
    assert_eq!(
        (reviewers[0].class.as_str(), reviewers[0].capability.to_string()),
        ("robot", "test.robot@1.0.0".into())
    );
    assert_eq!(set.classes_of("robot", Assurance::Passkey, &world.principal).len(), 1, "a user of that name");
    let both: [Name; 2] = ["robot".parse().unwrap(), "person".parse().unwrap()];
    let decide = |approver, source, classes: &[Name], assurance| {
        let given = Given { approver, assurance, classes, source, scope: GivenScope::Once };
        set.decide(&Facts { approval: Some(given), ..world.facts() }).verdict
    };
    let (low, high) = (Assurance::SameUser, Assurance::Passkey);
    assert_eq!(decide("robot", Source::Reviewer, &both[..1], low), Verdict::Allow);
    assert_eq!(decide("robot", Source::Reviewer, &both[1..], high), Verdict::Ask);
    assert_eq!(decide("ann", Source::Reviewer, &both, high), Verdict::Ask);
    assert_eq!(decide("robot", Source::Person, &both[..1], high), Verdict::Ask);
}
