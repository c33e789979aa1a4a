//! What a person allowed for more than once: what it covers, and what not.

use std::sync::Arc;

use env_contracts::Code;
use glovebox_events::{Action, Grant, Right};
use glovebox_plane::{Asking, Submission, Submitted, Unwatched};
use glovebox_runtime::Stop;

use crate::between::{Between, Moment};
use crate::fake::WRITE;
use crate::house::{House, Setup, agent, approval, done, id, person, waiting};
use crate::people::mira;

const DELETE: &str = "name = \"fake.delete\"\neffects = { classes = [\"delete\"] }\n";

/// A house in which this was answered, and the grant that it made.
fn granted(offer: &str) -> (House, Action, Grant) {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    let action = house.waits("fake.write", r#"{"count":1}"#);
    let grant = house.answer(approval(&action), offer, None).unwrap().grant.unwrap();
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    (house, action, grant)
}

/// Whether a request runs without a question.
fn covered(house: &House, args: &str, change: impl FnOnce(&mut Submission)) -> bool {
    let mut submission = house.asked("fake.write", args);
    change(&mut submission);
    let went = house.send(submission).unwrap();
    house.audit(&["s1", "s2"]);
    match went {
        Submitted::Done(observation) => {
            assert_eq!(observation.outcome.code, None, "{:?}", observation.outcome);
            let right = house.now(&observation.action_id).right.unwrap();
            assert!(matches!(right, Right::Grant { .. }), "{right:?}");
            true
        }
        Submitted::Waiting(_) => false,
    }
}

#[test]
fn a_session_grant_covers_this_tool_on_this_workspace_for_this_agent_in_this_session() {
    let (house, _, grant) = granted("session");
    assert!(covered(&house, r#"{"count":2}"#, |_| {}));
    assert!(covered(&house, "{}", |submission| submission.context.task = id("t2")));
    assert!(!covered(&house, "{}", |submission| submission.context.session = id("s2")));
    assert!(!covered(&house, "{}", |submission| submission.principal = agent("u", "other")));
    assert!(!covered(&house, "{}", |submission| submission.principal = agent("v", "coder")));
    assert!(!covered(&house, "{}", |submission| submission.principal.chain = vec!["root".parse().unwrap()]));
    fs_err::create_dir(house.path("second")).unwrap();
    let second = house.path("second");
    assert!(!covered(&house, "{}", |submission| submission.workspace = Some(second)), "another workspace");
    let more = env_contracts::Scope::from_toml("[limits]\nmemory = \"128MiB\"\n").unwrap();
    assert!(!covered(&house, "{}", |submission| submission.request.scope = Some(more)), "more than was shown");
    house.ground.clock.set(grant.expires_ms - 1);
    assert!(covered(&house, "{}", |_| {}));
    house.ground.clock.set(grant.expires_ms);
    assert!(!covered(&house, "{}", |_| {}), "it is over, to the millisecond");
}

#[test]
fn a_task_grant_covers_the_same_thing_again_in_the_same_task() {
    let (house, ..) = granted("task");
    assert!(covered(&house, r#"{ "count" : 1 }"#, |_| {}));
    assert!(!covered(&house, r#"{"count":2}"#, |_| {}));
    assert!(!covered(&house, r#"{"count":1}"#, |submission| submission.context.task = id("t2")));
}

#[test]
fn a_rule_holds_in_every_session_of_the_same_agent_until_it_ends_or_is_taken_back() {
    let (house, _, grant) = granted("rule");
    let elsewhere = |submission: &mut Submission| submission.context.session = id("s2");
    assert!(covered(&house, "{}", elsewhere));
    fs_err::create_dir(house.path("second")).unwrap();
    let second = house.path("second");
    assert!(!covered(&house, "{}", |submission| submission.workspace = Some(second)), "another workspace");
    for stranger in [person("v"), agent("u", "coder")] {
        let refused = house.block_on(house.service.revoke(&stranger, &grant.id)).unwrap_err();
        assert_eq!(refused.code, Code::GrantUnknown, "{stranger:?}");
    }
    house.block_on(house.service.revoke(&person("u"), &grant.id)).unwrap();
    assert!(!covered(&house, "{}", elsewhere), "it was taken back");
    assert!(house.service.grants(&person("u"), false).unwrap().is_empty());
}

#[test]
fn what_a_grant_would_cover_and_how_long_is_shown_before_it_is_given() {
    let house = House::of(&Setup::of(&[WRITE]));
    let action = house.waits("fake.write", "{}");
    let card = house.service.approval(&person("u"), approval(&action)).unwrap();
    let rule = card.offers.iter().find(|offer| offer.id == id("rule")).unwrap();
    for part in ["fake.write@1.0.0", "this workspace", "any arguments"] {
        assert!(rule.does.contains(part), "{}", rule.does);
    }
    assert_eq!(rule.lasts_ms, Some(30 * 24 * 3_600_000));
}

#[test]
fn nothing_is_taken_that_was_not_offered() {
    let tool = WRITE.replace("name = \"fake.write\"\n", DELETE);
    let house = House::of(&Setup::of(&[tool.as_str()]));
    house.runs_well();
    let action = waiting(house.send(house.asked("fake.delete", "{}")).unwrap());
    let offers: Vec<_> = action.approval.as_ref().unwrap().offers.iter().map(|offer| offer.id.to_string()).collect();
    assert_eq!(offers, ["once", "decline", "decline-and-stop"], "what can't be undone is approved each time");
    let session = crate::house::offered(approval(&action), "session", None);
    assert_eq!(house.reply(&person("u"), Some(mira()), session).unwrap_err().code, Code::Usage);
    assert_eq!(house.answer(approval(&action), "once", None).unwrap_err().code, Code::NotEligible);
    house.reply(&person("u"), Some(mira()), crate::house::offered(approval(&action), "once", None)).unwrap();
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    house.audit(&["s1"]);
}

#[test]
fn policy_outranks_a_grant_and_a_grant_helps_where_nobody_can_be_asked() {
    let (house, ..) = granted("session");
    let never = |submission: &mut Submission| submission.asking = Asking::Never;
    assert!(covered(&house, "{}", never));
    let setup = Setup::of(&[WRITE]).rules("forbid (principal, action, resource);");
    let strict = House::open(&house.ground, &setup);
    let seen = done(strict.send(strict.asked("fake.write", "{}")).unwrap());
    assert_eq!(seen.outcome.code, Some(Code::PolicyDenied));
}

/// It is taken back after everything was looked at, right before the claim.
#[test]
fn a_grant_that_is_taken_back_at_the_last_moment_lets_nothing_past() {
    let (house, _, grant) = granted("session");
    let service = house.service.clone();
    let late = House::open_over(&house.ground, &Setup::of(&[WRITE]), |store| {
        Between::over(store, move |moment| {
            if moment == Moment::Before(1) {
                tokio::task::block_in_place(|| {
                    let handle = tokio::runtime::Handle::current();
                    handle.block_on(service.revoke(&person("u"), &grant.id)).unwrap();
                });
            }
            true
        })
    });
    late.on_run(|_, _| panic!("it ran by a grant that is no more"));
    let (submission, service) = (late.asked("fake.write", "{}"), late.service.clone());
    let submit =
        late.ground.tokio.spawn(async move { service.submit(submission, Arc::new(Unwatched), &Stop::default()).await });
    waiting(late.block_on(submit).unwrap().unwrap());
    late.audit(&["s1"]);
}
