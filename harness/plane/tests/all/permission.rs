//! More than a tool's contract gives: asked for by itself, given in part, and
//! worth exactly what was given.

use std::sync::Arc;

use env_contracts::{Code, OutcomeKind, Scope};
use glovebox_events::{Action, ApprovalState, AskedFor};
use glovebox_plane::{Answering, Asking, PermissionRequest, Reply, Settled, Submitted, Unwatched};
use glovebox_runtime::Stop;

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, approval, done, id, offered, person, waiting};

const MORE: &str = "[limits]\nmemory = \"128MiB\"\nwall = \"20s\"\n";

fn scope(text: &str) -> Scope {
    Scope::from_toml(text).unwrap()
}

fn house() -> House {
    let house = House::of(&Setup::of(&[TOOL]));
    house.runs_well();
    house
}

fn permission(house: &House, text: &str, asking: Asking) -> Result<Submitted, env_contracts::Problem> {
    let like = house.asked("fake.tool", "{}");
    let request = PermissionRequest {
        principal: like.principal,
        context: like.context,
        capability: like.request.capability,
        scope: scope(text),
        reason: Some("it is a large file".into()),
        asking,
    };
    house.block_on(house.service.request_permission(request, Arc::new(Unwatched), &Stop::default()))
}

fn asked(house: &House) -> Action {
    waiting(permission(house, MORE, Asking::Leave).unwrap())
}

fn give(house: &House, action: &Action, text: Option<&str>) -> Result<Settled, env_contracts::Problem> {
    let answer = Answering::Offer { id: id("session"), narrowed: text.map(scope) };
    house.reply(&person("u"), None, Reply { approval: approval(action).clone(), seen: None, answer, words: None })
}

/// Whether a request with this scope runs without a question.
fn runs(house: &House, text: &str) -> bool {
    let mut submission = house.asked("fake.tool", "{}");
    submission.request.scope = Some(scope(text));
    let went = house.send(submission).unwrap();
    house.audit(&["s1"]);
    match went {
        Submitted::Done(seen) => {
            assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
            true
        }
        Submitted::Waiting(action) => {
            assert_eq!(action.approval.unwrap().asked_for, AskedFor::Delta);
            false
        }
    }
}

#[test]
fn what_goes_beyond_a_tools_contract_is_asked_and_never_granted_by_a_rule_alone() {
    let house = House::of(&Setup::of(&[TOOL]).rules("permit (principal, action, resource);"));
    house.runs_well();
    let mut submission = house.asked("fake.tool", "{}");
    submission.request.scope = Some(scope(MORE));
    let went = house.send(submission).unwrap();
    let refused = matches!(&went, Submitted::Done(seen) if seen.outcome.code == Some(Code::PolicyDenied));
    assert!(refused || matches!(went, Submitted::Waiting(_)), "{went:?}");
    assert!(house.ground.runs().is_empty());
}

#[test]
fn a_permission_runs_nothing_and_later_requests_inside_it_run() {
    let house = house();
    let action = asked(&house);
    let card = house.service.approval(&person("u"), approval(&action)).unwrap();
    assert_eq!(card.model_purpose.as_deref(), Some("it is a large file"));
    assert_eq!(card.scope, Some(scope(MORE)), "what is asked for stands on it");
    let settled = give(&house, &action, None).unwrap();
    assert_eq!(settled.approval.state, ApprovalState::Consumed, "it was given, not withdrawn");
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(seen.data["grant"], settled.grant.as_ref().unwrap().id.as_str());
    assert!(house.ground.runs().is_empty(), "a permission ran something");
    assert!(runs(&house, MORE));
    assert!(runs(&house, "[limits]\nmemory = \"100MiB\"\nwall = \"20s\"\n"));
    assert!(!runs(&house, "[limits]\nmemory = \"200MiB\"\nwall = \"20s\"\n"), "beyond what was given");
    let again = give(&house, &action, None).unwrap();
    assert!(again.repeated);
}

#[test]
fn of_a_permission_only_what_was_named_is_given() {
    let house = house();
    let action = asked(&house);
    give(&house, &action, Some("[limits]\nmemory = \"96MiB\"\n")).unwrap();
    assert!(runs(&house, "[limits]\nmemory = \"96MiB\"\nwall = \"10s\"\n"));
    assert!(!runs(&house, MORE), "more memory than was given");
    assert!(!runs(&house, "[limits]\nmemory = \"96MiB\"\nwall = \"20s\"\n"), "what was not named was given");
}

#[test]
fn nobody_gives_more_than_was_asked_or_nothing_at_all() {
    let house = house();
    let action = asked(&house);
    assert_eq!(give(&house, &action, Some("[limits]\nmemory = \"1MiB\"\n")).unwrap_err().code, Code::Usage);
    assert_eq!(give(&house, &action, Some("")).unwrap_err().code, Code::Usage);
    assert!(house.pending().contains(approval(&action)), "a mistaken answer closed it");
    give(&house, &action, Some("[limits]\nmemory = \"500MiB\"\nwall = \"50s\"\n")).unwrap();
    assert!(runs(&house, MORE));
    assert!(!runs(&house, "[limits]\nmemory = \"500MiB\"\nwall = \"50s\"\n"), "the answer widened the question");
}

#[test]
fn a_permission_that_is_declined_gives_nothing_and_says_by_whom() {
    let house = house();
    let action = asked(&house);
    house.reply(&person("u"), None, offered(approval(&action), "decline", Some("too much"))).unwrap();
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.kind, OutcomeKind::Declined);
    assert!(seen.text.contains("too much"), "{}", seen.text);
    assert!(!runs(&house, MORE));
}

#[test]
fn permissions_nobody_could_give_are_refused_at_once() {
    let house = house();
    let seen = done(permission(&house, MORE, Asking::Never).unwrap());
    assert_eq!(seen.outcome.kind, OutcomeKind::Unattended);
    let has = permission(&house, "[limits]\nmemory = \"32MiB\"\n", Asking::Leave).unwrap_err();
    assert_eq!(has.code, Code::Usage, "it has that already");
    let above = done(permission(&house, "[limits]\nmemory = \"64GiB\"\n", Asking::Leave).unwrap());
    assert_eq!(above.outcome.kind, OutcomeKind::ContractUnsatisfied, "the ceiling is above every approval");
}

#[test]
fn a_permission_is_no_right_to_what_is_asked_about_anyway() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let write = |text: Option<&str>| {
        let mut submission = house.asked("fake.write", r#"{"count":1}"#);
        submission.principal = agent("u", "coder");
        submission.request.scope = text.map(scope);
        submission
    };
    let like = write(None);
    let request = PermissionRequest {
        principal: like.principal,
        context: like.context,
        capability: like.request.capability,
        scope: scope("[limits]\nmemory = \"128MiB\"\n"),
        reason: None,
        asking: Asking::Leave,
    };
    let went = house.block_on(house.service.request_permission(request, Arc::new(Unwatched), &Stop::default()));
    give(&house, &waiting(went.unwrap()), None).unwrap();
    waiting(house.send(write(None)).unwrap());
    waiting(house.send(write(Some("[limits]\nmemory = \"128MiB\"\n"))).unwrap());
    assert!(house.ground.runs().is_empty());
}
