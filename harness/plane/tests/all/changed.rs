//! What is approved is what runs: edits are new plans, and what changed since
//! is asked again.

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{ApprovalState, AskedFor};
use glovebox_plane::{Reply, Submitted};

use crate::fake::{WRITE, returned};
use crate::house::{CLASSES, Ground, House, Setup, approval, digest, done, offered, person, put_policy, waiting};

#[test]
fn edited_arguments_are_a_new_plan_with_an_approval_of_its_own() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.on_run(|bound, _| {
        assert_eq!(bound.plan.arguments, r#"{"count":2}"#);
        returned("{}")
    });
    let first = house.waits("fake.write", r#"{"count":1}"#);
    let settled = house.edit(&first, r#"{"count":2}"#).unwrap();
    let second = settled.action;
    assert_eq!((second.revision, settled.approval.state), (2, ApprovalState::Edited));
    assert_ne!((digest(&first), &first.intent), (digest(&second), &second.intent));
    assert_ne!(approval(&first), approval(&second));
    // The first approval, and the first digest, are worth nothing now.
    assert_eq!(house.answer(approval(&first), "once", None).unwrap_err().code, Code::ApprovalClosed);
    let seen = Some(digest(&first).as_str().to_owned());
    let stale = Reply { seen, ..offered(approval(&second), "once", None) };
    assert_eq!(house.reply(&person("u"), None, stale).unwrap_err().code, Code::Drift);
    assert!(matches!(house.resume(&first), Submitted::Waiting(_)), "an edit approves nothing");
    let seen = Some(digest(&second).short().to_owned());
    house.reply(&person("u"), None, Reply { seen, ..offered(approval(&second), "once", None) }).unwrap();
    assert_eq!(done(house.resume(&first)).outcome.code, None);
    assert_eq!(house.ground.ran(&first.id), 1);
    house.audit(&["s1"]);
}

#[test]
fn policy_decides_about_edited_arguments_too_and_the_editor_runs_nothing() {
    let rules = "permit (principal, action, resource) when { context has approval };\n\
         permit (principal, action, resource) when { context.args has count && context.args.count == 7 };\n\
         forbid (principal, action, resource) when { context.args has count && context.args.count == 3 };";
    let house = House::of(&Setup::of(&[WRITE]).rules(rules));
    house.runs_well();
    let denied = house.waits("fake.write", r#"{"count":1}"#);
    house.edit(&denied, r#"{"count":3}"#).unwrap();
    assert_eq!(done(house.resume(&denied)).outcome.kind, OutcomeKind::PolicyDenied);
    let invalid = house.waits("fake.write", r#"{"count":1}"#);
    // A slip of whoever edits costs the requester nothing.
    assert_eq!(house.edit(&invalid, r#"{"count":"many"}"#).unwrap_err().code, Code::SchemaRejected);
    house.approve(&invalid);
    assert_eq!(done(house.resume(&invalid)).outcome.code, None);
    let allowed = house.waits("fake.write", r#"{"count":1}"#);
    house.edit(&allowed, r#"{"count":7}"#).unwrap();
    assert_eq!(house.ground.runs().len(), 1, "whoever edited it ran it");
    assert_eq!(done(house.resume(&allowed)).outcome.code, None);
    house.audit(&["s1"]);
}

/// Approves, changes something, and says what the next question names.
fn drifts(house: &House, args: &str, change: impl FnOnce() -> Option<House>) -> Vec<String> {
    house.on_run(|_, _| panic!("it ran although something had changed"));
    let action = house.waits("fake.write", args);
    house.approve(&action);
    let other = change();
    let house = other.as_ref().unwrap_or(house);
    let again = waiting(house.resume(&action));
    let asked = again.approval.clone().unwrap();
    assert_ne!(asked.id, *approval(&action));
    assert_eq!(asked.asked_for, AskedFor::Drift);
    assert!(house.kinds(&action.id).contains(&"drifted"));
    assert_eq!(house.ground.ran(&action.id), 0);
    // The new question is one about what is there now, and it can be answered.
    house.runs_well();
    house.approve(&again);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(house.ground.ran(&action.id), 1);
    house.audit(&["s1"]);
    house.nothing_left();
    asked.changed
}

#[test]
fn a_script_that_was_rewritten_while_its_approval_was_pending_does_not_run() {
    let house = House::of(&Setup::of(&[WRITE]));
    let script = house.path("workspace/t.sh");
    fs_err::write(&script, "echo harmless").unwrap();
    let changed = drifts(&house, r#"{"path":"t.sh"}"#, || {
        fs_err::write(&script, "touch marker").unwrap();
        None
    });
    assert!(changed[0].contains("/workspace/t.sh"), "{changed:?}");
}

#[test]
fn what_runs_is_what_was_hashed_even_if_it_changes_during_the_run() {
    let house = House::of(&Setup::of(&[WRITE]));
    let script = house.path("workspace/t.sh");
    fs_err::write(&script, "approved").unwrap();
    let action = house.waits("fake.write", r#"{"path":"t.sh"}"#);
    house.approve(&action);
    house.on_run(move |bound, _| {
        fs_err::write(&script, "other").unwrap();
        let mut text = String::new();
        let mut sealed = std::fs::File::from(bound.files.sealed[0].content.try_clone().unwrap());
        std::io::Read::read_to_string(&mut sealed, &mut text).unwrap();
        assert_eq!(text, "approved");
        returned("{}")
    });
    assert_eq!(done(house.resume(&action)).outcome.code, None);
}

#[test]
fn a_workspace_that_was_replaced_is_asked_about_again() {
    let house = House::of(&Setup::of(&[WRITE]));
    let changed = drifts(&house, "{}", || {
        fs_err::rename(house.path("workspace"), house.path("before")).unwrap();
        fs_err::create_dir(house.path("workspace")).unwrap();
        None
    });
    assert!(changed[0].contains("workspace"), "{changed:?}");
}

#[test]
fn a_tool_that_was_replaced_is_asked_about_again() {
    let setup = Setup::of(&[WRITE]);
    let house = House::of(&setup);
    let ground = house.ground.clone();
    let changed = drifts(&house, "{}", || {
        Some(House::open(&ground, &Setup { component: b"another component", ..setup.clone() }))
    });
    assert!(changed[0].contains("component"), "{changed:?}");
}

/// A house where an action was approved under one policy, and another policy.
fn approved_then(rules: &str, approvers: &str) -> (House, glovebox_events::Action) {
    let ask = "permit (principal, action, resource) when { context has approval };";
    let house = House::open(&Ground::new(), &Setup::of(&[WRITE]).rules(ask));
    let action = house.waits("fake.write", "{}");
    house.approve(&action);
    put_policy(&house.ground, rules, approvers);
    (house, action)
}

#[test]
fn policy_is_asked_again_right_before_the_run() {
    let (house, action) = approved_then("forbid (principal, action, resource);", CLASSES);
    assert_eq!(done(house.resume(&action)).outcome.kind, OutcomeKind::PolicyDenied);
    assert_eq!(house.ground.ran(&action.id), 0);
    house.audit(&["s1"]);
}

#[test]
fn who_may_no_longer_approve_has_not_approved() {
    let ask = "permit (principal, action, resource) when { context has approval };";
    let only_logins = "[classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";
    let (house, action) = approved_then(ask, only_logins);
    let again = waiting(house.resume(&action));
    let asked = again.approval.unwrap();
    assert_ne!(asked.id, *approval(&action));
    assert!(asked.changed[0].contains("policy"), "{:?}", asked.changed);
    assert_eq!(house.ground.ran(&action.id), 0);
    house.audit(&["s1"]);
}

#[test]
fn a_bad_policy_is_not_taken_and_the_one_before_decides() {
    let (house, action) = approved_then("permit (principal, action", CLASSES);
    house.runs_well();
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None);
    assert!(seen.notices.iter().any(|notice| notice.kind == "policy-kept"), "{:?}", seen.notices);
}

#[test]
fn an_approval_of_one_action_is_worth_nothing_for_an_equal_one() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let (one, two) = (house.waits("fake.write", "{}"), house.waits("fake.write", "{}"));
    assert_eq!(one.intent, two.intent);
    let card = house.service.approval(&person("u"), approval(&one)).unwrap();
    assert_eq!((card.same, card.card.as_str()), (2, one.intent.as_ref().unwrap().short()), "they share a card");
    house.approve(&one);
    assert!(matches!(house.resume(&two), Submitted::Waiting(_)), "once released two");
    assert_eq!(done(house.resume(&one)).outcome.code, None);
    assert!(house.pending().contains(approval(&two)));
    house.audit(&["s1"]);
}
