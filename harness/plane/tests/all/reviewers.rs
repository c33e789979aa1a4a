//! Reviewers that are no persons: a bounded view, a limit, and no yes but a
//! clear one in time; never where a person is demanded.

use std::sync::{Arc, Mutex};

use env_contracts::{ApprovalNeed, Code, Observation, OutcomeKind};
use glovebox_events::{Action, Approval, ApprovalState, Reviewed};
use glovebox_plane::{Asking, PlanProposal, Submitted, Unwatched};
use glovebox_runtime::{Ports, Stop};
use serde_json::{Value, json};

use crate::fake::WRITE;
use crate::followups::{either, played, what};
use crate::house::{House, Setup, agent, approval, done, name, offered, person, waiting};
use crate::people::mira;

/// It changes nothing, so it runs without asking.
const ROBOT: &str = r#"
name = "fake.robot"
entry = { kind = "tool" }
input = { type = "object" }
[contract]
schema = "glovebox/contract/v1"
limits = { wall = "10s", memory = "64MiB", output = "1MiB" }
"#;

pub(crate) const ROBOT_CLASS: &str =
    "[classes.robot]\nreviewer = { capability = \"fake.robot@1.0.0\", limit = \"9s\" }\n";
pub(crate) const OWNER: &str = "[classes.owner]\nsubjects = [\"*\"]\nassurance = \"same-user\"\n";

/// Everything is allowed with any approval; what changes nothing without.
pub(crate) const RULES: &str = "permit (principal, action, resource) when { context has approval };\n\
                     permit (principal, action, resource) when { context.effects == \"none\" && !resource.decision };\n";

pub(crate) const YES: &str = r#"{"verdict":"approve","reasons":["it is small"]}"#;
pub(crate) const NO: &str = r#"{"verdict":"deny","reasons":["it deletes","it is late"]}"#;

pub(crate) fn setup(approvers: &str) -> Setup {
    let mut setup = Setup::of(&[WRITE, ROBOT]).rules(RULES);
    setup.approvers = approvers.to_owned();
    setup
}

/// With a reviewer alone, or with people besides.
pub(crate) fn alone() -> Setup {
    setup(ROBOT_CLASS)
}

pub(crate) fn both() -> Setup {
    setup(&format!("{OWNER}{ROBOT_CLASS}"))
}

pub(crate) fn says(house: &House, verdict: &'static str) {
    house.on_run(move |bound, _| played(if what(bound) == "fake.robot" { verdict } else { r#"{"ok":1}"# }));
}

pub(crate) fn house(setup: &Setup, verdict: &'static str) -> House {
    let house = House::of(setup);
    says(&house, verdict);
    house
}

pub(crate) fn sent(house: &House, asking: Asking) -> Result<Observation, Box<Action>> {
    let mut submission = house.asked("fake.write", r#"{"count":1}"#);
    submission.asking = asking;
    let went = either(house.send(submission).unwrap());
    house.audit(&["s1"]);
    went
}

pub(crate) fn last(house: &House, id: &env_contracts::Id) -> Approval {
    house.now(id).approval.unwrap()
}

#[test]
fn a_yes_lets_one_action_run_and_is_recorded_as_the_reviewers() {
    for asking in [Asking::Leave, Asking::Never] {
        let house = house(&alone(), YES);
        let seen = sent(&house, asking).unwrap();
        assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
        let asked = last(&house, &seen.action_id);
        assert_eq!(asked.state, ApprovalState::Consumed);
        let answer = asked.answer.unwrap();
        assert_eq!((answer.by.name.as_str(), answer.by.channel.as_str()), ("robot", "reviewer"));
        assert_eq!(answer.by.assurance, env_contracts::Assurance::SameUser);
        let review = &asked.reviews[0];
        assert_eq!((review.verdict, review.reasons.clone()), (Reviewed::Approved, vec!["it is small".to_owned()]));
        let looked = house.only("fake.robot");
        assert_eq!(review.action.as_ref(), Some(&looked.id));
        assert_eq!(looked.parents, std::slice::from_ref(&seen.action_id));
        assert!(looked.principal.agent.is_none(), "it is no business of the agent's");
        assert!(!house.was_asked(&looked.id));
        assert_eq!(house.ground.ran(&seen.action_id), 1);
        // The next one is asked about anew.
        sent(&house, asking).unwrap();
        assert_eq!(house.all_of("fake.robot").len(), 2);
    }
}

#[test]
fn it_sees_what_it_needs_and_no_more_than_fits() {
    let house = House::of(&alone());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let views = seen.clone();
    house.on_run(move |bound, _| {
        if what(bound) != "fake.robot" {
            return played(r#"{"ok":1}"#);
        }
        views.lock().unwrap().push(serde_json::from_str::<Value>(&bound.plan.arguments).unwrap());
        played(YES)
    });
    let mut submission = house.asked("fake.write", r#"{"count":1}"#);
    submission.request.scope = Some(env_contracts::Scope::from_toml("[limits]\nmemory = \"128MiB\"\n").unwrap());
    let action = done(house.send(submission).unwrap());
    let view = seen.lock().unwrap()[0].clone();
    let asked = last(&house, &action.action_id);
    assert_eq!(view["capability"], "fake.write@1.0.0");
    assert_eq!((&view["arguments"], &view["cut"]), (&json!(r#"{"count":1}"#), &json!(false)));
    assert_eq!(view["effects"], "external");
    assert_eq!(view["delta"][0]["clause"], "limits.memory");
    assert_eq!((&view["plan"], &view["approval"]), (&json!(asked.digest), &json!(asked.id)));
    assert!(view["contract"].as_array().unwrap().iter().any(|clause| clause["clause"] == "limits.memory"));
    assert!(!view["reasons"].as_array().unwrap().is_empty());
    let text = format!(r#"{{"text":"{}ä"}}"#, "x".repeat(20_000));
    done(house.send(house.asked("fake.write", &text)).unwrap());
    let view = seen.lock().unwrap()[1].clone();
    assert_eq!((view["arguments"].as_str().unwrap().len(), &view["cut"]), (16 << 10, &json!(true)));
}

#[test]
fn whatever_is_not_a_clear_yes_approves_nothing_and_each_has_its_own_end() {
    let denies = alone();
    // A rule lets it run; its role does not.
    let mut asks =
        alone().rules(&format!("{RULES}permit (principal, action == Action::\"fake.robot@1.0.0\", resource);"));
    asks.manifests[1] = ROBOT.replace(
        "[contract]\n",
        "[contract]\nfilesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"write\" }]\n",
    );
    let mut missing = alone();
    missing.manifests.pop();
    let forbidden =
        alone().rules(&format!("{RULES}forbid (principal, action == Action::\"fake.robot@1.0.0\", resource);"));
    for (case, setup, verdict, which) in [
        ("denies", &denies, NO, "reviewer-denied"),
        ("fails", &denies, "!broken", "reviewer-failed"),
        ("fails with a yes", &denies, r#"!broken{"verdict":"approve"}"#, "reviewer-failed"),
        ("mumbles", &denies, r#"{"verdict":"yes"}"#, "reviewer-failed"),
        ("nothing", &denies, "{}", "reviewer-failed"),
        ("could do something", &asks, YES, "reviewer-failed"),
        ("not there", &missing, YES, "reviewer-failed"),
        ("not allowed", &forbidden, YES, "reviewer-failed"),
    ] {
        for asking in [Asking::Leave, Asking::Never] {
            let house = house(setup, verdict);
            let seen = sent(&house, asking).unwrap();
            assert_eq!(
                (seen.outcome.kind, seen.outcome.which.as_deref()),
                (OutcomeKind::Declined, Some(which)),
                "{case}"
            );
            assert_eq!(house.ground.ran(&seen.action_id), 0, "{case}");
            assert!(house.pending().is_empty(), "{case}");
            assert_eq!(last(&house, &seen.action_id).reviews.len(), 1, "{case}");
        }
    }
    let seen = sent(&house(&denies, NO), Asking::Leave).unwrap();
    assert!(seen.outcome.message.unwrap().contains("it deletes; it is late"));
}

/// It goes on until somebody stops it.
fn forever(ports: &mut Ports) {
    while !ports.stop.is_requested() {
        std::thread::yield_now();
    }
}

#[test]
fn one_that_does_not_answer_in_time_has_denied() {
    let mut setup = alone();
    setup.approvers = setup.approvers.replace("9s", "20ms");
    let house = House::of(&setup);
    house.on_run(|bound, ports| {
        if what(bound) == "fake.robot" {
            forever(ports);
        }
        // Too late is too late, whatever it says.
        played(YES)
    });
    let seen = sent(&house, Asking::Leave).unwrap();
    assert_eq!(seen.outcome.which.as_deref(), Some("reviewer-timed-out"));
    assert_eq!(last(&house, &seen.action_id).reviews[0].verdict, Reviewed::TimedOut);
    assert_eq!(house.ground.ran(&seen.action_id), 0);
    house.nothing_left();
}

#[test]
fn where_people_may_answer_too_they_see_the_review_and_can_override_this_one_action() {
    for verdict in [NO, "!broken"] {
        let house = house(&both(), verdict);
        let action = sent(&house, Asking::Leave).unwrap_err();
        let card = house.card_of(&action);
        assert_eq!(card.reviews.len(), 1);
        assert_eq!(card.state, ApprovalState::Pending);
        let more = card.offers.iter().any(|offer| offer.id.as_str() == "session");
        assert_eq!(more, verdict != NO, "over a no, one action is let past");
        if verdict == NO {
            assert_eq!(card.reviews[0].reasons, ["it deletes", "it is late"]);
            assert_eq!(house.answer(approval(&action), "session", None).unwrap_err().code, Code::Usage);
        }
        house.approve(&action);
        let seen = done(house.resume(&action));
        assert_eq!(seen.outcome.code, None);
        let noticed = seen.notices.iter().any(|notice| notice.kind == "review-overridden");
        assert_eq!(noticed, verdict == NO);
        assert_eq!(house.all_of("fake.robot").len(), 1, "it was asked twice about one thing");
        assert_eq!(last(&house, &action.id).answer.unwrap().by.name.as_str(), "u");
        house.audit(&["s1"]);
    }
}

#[test]
fn where_no_person_can_be_asked_a_no_is_the_end_and_people_are_not_kept_waiting() {
    let house = house(&both(), NO);
    let seen = sent(&house, Asking::Never).unwrap();
    assert_eq!(seen.outcome.which.as_deref(), Some("reviewer-denied"));
    assert_eq!(last(&house, &seen.action_id).classes, [name("robot")]);
    assert!(house.pending().is_empty());
}

#[test]
fn it_is_never_eligible_where_a_person_is_demanded() {
    let login = "permit (principal, action, resource) when { context.effects == \"none\" };\n\
                 permit (principal, action, resource) when { context has approval && ";
    for condition in [
        "context.approval.source == \"person\"",
        "context.approval.at_least.contains(\"console-login\")",
        "context.approval.classes.contains(\"person\")",
    ] {
        let person = "[classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";
        let mut demands = setup(&format!("{person}{ROBOT_CLASS}")).rules(&format!("{login}{condition} }};"));
        let house = house(&demands, YES);
        let action = sent(&house, Asking::Leave).unwrap_err();
        assert_eq!(action.approval.unwrap().classes, [name("person")], "{condition}");
        assert!(house.all_of("fake.robot").is_empty(), "{condition}");
        assert_eq!(sent(&house, Asking::Never).unwrap().outcome.kind, OutcomeKind::Unattended, "{condition}");
        demands.approvers = ROBOT_CLASS.to_owned();
        let robot = House::of(&demands);
        says(&robot, YES);
        assert_eq!(sent(&robot, Asking::Leave).unwrap().outcome.kind, OutcomeKind::PolicyDenied, "{condition}");
    }
    // The requester wants a person, whatever rules say.
    let house = house(&both(), YES);
    let mut submission = house.asked("fake.write", "{}");
    submission.request.approval = ApprovalNeed::Always;
    let Submitted::Waiting(action) = house.send(submission).unwrap() else { panic!("no person was asked") };
    assert_eq!(action.approval.unwrap().classes, [name("owner")]);
    assert!(house.all_of("fake.robot").is_empty());
}

#[test]
fn rules_can_tell_a_reviewer_from_a_person() {
    let rules = "permit (principal, action, resource) when { context.effects == \"none\" };\n\
                 permit (principal, action, resource) when { context has approval && context.approval.source == \"reviewer\" };";
    let house = house(&both().rules(rules), YES);
    let seen = sent(&house, Asking::Leave).unwrap();
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(last(&house, &seen.action_id).classes, [name("robot")]);
}

#[test]
fn a_reviewer_that_says_no_is_not_outvoted_by_another() {
    let two = format!(
        "{ROBOT_CLASS}{}",
        ROBOT_CLASS.replace("classes.robot", "classes.second").replace("fake.robot", "fake.second")
    );
    let mut setup = setup(&two);
    setup.manifests.push(ROBOT.replace("fake.robot", "fake.second"));
    let says = |first: &'static str, second: &'static str| {
        let house = House::of(&setup);
        house.on_run(move |bound, _| {
            played(match what(bound) {
                "fake.robot" => first,
                "fake.second" => second,
                _ => r#"{"ok":1}"#,
            })
        });
        let seen = sent(&house, Asking::Leave).unwrap();
        (seen.outcome.which, house.all_of("fake.second").len())
    };
    assert_eq!(says(NO, YES), (Some("reviewer-denied".to_owned()), 0));
    assert_eq!(says("!broken", YES), (None, 1));
    assert_eq!(says("!broken", NO), (Some("reviewer-denied".to_owned()), 1));
}

#[test]
fn a_reviewer_accepts_plans_as_it_approves_actions() {
    for (verdict, accepted) in [(YES, Some(true)), (NO, None)] {
        let house = house(&alone(), verdict);
        let context = house.asked("fake.write", "{}").context;
        let proposal: PlanProposal = crate::plans::proposal("a patch");
        let (watch, stop) = (Arc::new(Unwatched), Stop::default());
        let coder = agent("u", "coder");
        let went = house.service.submit_plan(&coder, context, proposal, Asking::Never, watch, &stop);
        let seen = done(house.block_on(went).unwrap());
        assert_eq!(seen.data.get("accepted").and_then(Value::as_bool), accepted, "{:?}", seen.outcome);
        if accepted.is_some() {
            assert_eq!(seen.data["by"], "robot");
        }
    }
}

#[test]
fn a_person_with_a_key_overrides_too_and_the_log_tells_both() {
    let house = house(&both(), NO);
    let action = waiting(house.send(house.asked("fake.write", "{}")).unwrap());
    house.reply(&person("u"), Some(mira()), offered(approval(&action), "once", Some("I know"))).unwrap();
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    let kinds = house.kinds(&action.id);
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(at("reviewed") < at("approval-answered"));
}

#[test]
fn a_reviewer_gives_no_permission() {
    let ask = |setup: &Setup, asking| {
        let house = house(setup, YES);
        let like = house.asked("fake.write", "{}");
        let request = glovebox_plane::PermissionRequest {
            principal: like.principal,
            context: like.context,
            capability: like.request.capability,
            scope: env_contracts::Scope::from_toml("[limits]\nmemory = \"128MiB\"\n").unwrap(),
            reason: None,
            asking,
        };
        let stop = Stop::default();
        let went = house.service.request_permission(request, Arc::new(Unwatched), &stop);
        let went = either(house.block_on(went).unwrap());
        assert!(house.all_of("fake.robot").is_empty());
        went
    };
    let waits = ask(&both(), Asking::Leave).unwrap_err();
    assert_eq!(waits.approval.unwrap().classes, [name("owner")]);
    assert_eq!(ask(&both(), Asking::Never).unwrap().outcome.kind, OutcomeKind::Unattended);
    assert_eq!(ask(&alone(), Asking::Leave).unwrap().outcome.kind, OutcomeKind::Unattended);
}
