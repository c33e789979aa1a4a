//! A decision on a loop's plan: durable, for one plan and one goal, and no right
//! to any of its steps.

use std::sync::Arc;

use env_contracts::{Code, DerivedEffects, OutcomeKind, Problem, Scope};
use glovebox_events::{Action, ActionState, Asks, Budget, What};
use glovebox_plane::{Asking, NewTask, OpenTurn, PlanProposal, PlanStep, Saying, Submitted, Unwatched};
use glovebox_runtime::Stop;
use serde_json::json;

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, approval, done, id, person, waiting};

pub(crate) fn proposal(summary: &str) -> PlanProposal {
    let step = |title: &str, effects| PlanStep { title: title.to_owned(), capability: None, scope: None, effects };
    PlanProposal {
        summary: summary.to_owned(),
        steps: vec![
            step("read the files", DerivedEffects::None),
            PlanStep {
                capability: Some("fake.write".parse().unwrap()),
                scope: Some(Scope::from_toml("[limits]\nmemory = \"32MiB\"\n").unwrap()),
                ..step("write the patch", DerivedEffects::External)
            },
        ],
    }
}

/// A task of the agent's, with its first turn.
pub(crate) fn task(house: &House) {
    let coder = agent("u", "coder");
    let new = NewTask {
        id: Some(id("t1")),
        session: id("s1"),
        goal: "keep the old files readable".to_owned(),
        purpose: None,
        stage: None,
        budget: Budget::default(),
    };
    house.block_on(house.service.open_task(&coder, new)).unwrap();
    turn(house, 0, 1).unwrap();
}

fn turn(house: &House, expected_turn: u64, goal_version: u32) -> Result<(), Problem> {
    let open = OpenTurn { task: id("t1"), expected_turn, goal_version, key: None };
    house.block_on(house.service.open_turn(&agent("u", "coder"), open)).map(drop)
}

fn new_goal(house: &House) {
    house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Goal("drop the old files"))).unwrap();
}

fn submit(house: &House, summary: &str, asking: Asking) -> Result<Submitted, Problem> {
    let context = house.asked("fake.write", "{}").context;
    let (watch, stop) = (Arc::new(Unwatched), Stop::default());
    let coder = agent("u", "coder");
    house.block_on(house.service.submit_plan(&coder, context, proposal(summary), asking, watch, &stop))
}

fn submitted(house: &House, summary: &str) -> Action {
    waiting(submit(house, summary, Asking::Leave).unwrap())
}

fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE, TOOL]));
    house.runs_well();
    house
}

#[test]
fn a_plan_waits_for_a_decision_and_tells_who_made_it_and_with_what_words() {
    let house = house();
    let action = submitted(&house, "a patch");
    assert_eq!((action.asks, action.capability.to_string()), (Asks::Plan, "plan.submit@1.0.0".to_owned()));
    let card = house.card_of(&action);
    let shown = card.proposal.unwrap();
    assert_eq!((&shown["summary"], &shown["goal"]), (&json!("a patch"), &json!(1)));
    assert_eq!(shown["steps"][1]["title"], "write the patch");
    assert_eq!(shown["steps"][1]["effects"], "external");
    assert_eq!(shown["steps"][1]["capability"], "fake.write");
    assert_eq!(shown["steps"][1]["scope"]["limits"]["memory"], "32MiB");
    assert_eq!(
        card.offers.iter().map(|offer| offer.id.as_str()).collect::<Vec<_>>(),
        ["once", "decline", "decline-and-stop"]
    );
    house.answer(approval(&action), "once", Some("go on")).unwrap();
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(seen.data, json!({ "accepted": true, "by": "u", "words": "go on" }));
    assert!(house.ground.runs().is_empty(), "a plan ran");
    house.audit(&["s1"]);
}

#[test]
fn a_declined_plan_says_so_and_is_not_asked_about_again_in_the_task() {
    let house = house();
    let action = submitted(&house, "a patch");
    house.answer(approval(&action), "decline", Some("smaller steps")).unwrap();
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.kind, OutcomeKind::Declined);
    assert_eq!(seen.data, json!({ "accepted": false, "by": "u", "words": "smaller steps" }));
    let again = done(submit(&house, "a patch", Asking::Leave).unwrap());
    assert_eq!((again.outcome.kind, again.outcome.which.as_deref()), (OutcomeKind::Declined, Some("before")));
    submitted(&house, "another patch");
    house.audit(&["s1"]);
}

#[test]
fn a_plan_is_taken_as_it_is_or_not_at_all() {
    let house = house();
    let action = submitted(&house, "a patch");
    let error = house.edit(&action, "{}").unwrap_err();
    assert_eq!(error.code, Code::Usage, "{error:?}");
    assert_eq!(house.now(&action.id).state, ActionState::WaitingApproval);
}

#[test]
fn an_accepted_plan_gives_no_right_to_any_of_its_steps() {
    let house = house();
    let action = submitted(&house, "a patch");
    house.approve(&action);
    let mut step = house.asked("fake.write", "{}");
    step.request.parents = vec![action.id.clone()];
    step.request.scope = Some(Scope::from_toml("[limits]\nmemory = \"32MiB\"\n").unwrap());
    let step = waiting(house.send(step).unwrap());
    assert_eq!(house.pending().len(), 1);
    assert!(house.ground.runs().is_empty());
    house.approve(&step);
    assert_eq!(done(house.resume(&step)).outcome.code, None);
}

#[test]
fn where_nobody_can_be_asked_a_plan_is_unattended_and_a_rule_decides_as_on_everything_else() {
    let house = house();
    assert_eq!(done(submit(&house, "a patch", Asking::Never).unwrap()).outcome.kind, OutcomeKind::Unattended);
    for (rules, kind) in [
        ("permit (principal, action, resource);", OutcomeKind::Completed),
        ("permit (principal, action, resource) when { !resource.decision };", OutcomeKind::PolicyDenied),
        ("permit (principal, action == Action::\"plan.submit@1.0.0\", resource);", OutcomeKind::Completed),
    ] {
        let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(rules));
        let seen = done(submit(&house, "a patch", Asking::Never).unwrap());
        assert_eq!(seen.outcome.kind, kind, "{rules}");
        if kind == OutcomeKind::Completed {
            assert_eq!(seen.data, json!({ "accepted": true, "by": "policy", "words": null }));
        }
    }
}

#[test]
fn another_goal_voids_a_plan_that_waits_and_one_that_was_accepted() {
    let house = house();
    task(&house);
    let accepted = submitted(&house, "the first");
    house.approve(&accepted);
    let coder = agent("u", "coder");
    let plan = || house.service.accepted_plan(&coder, &id("t1")).unwrap().map(|view| view.action.id);
    assert_eq!(plan(), Some(accepted.id.clone()));
    let pending = submitted(&house, "the second");
    new_goal(&house);
    assert_eq!(plan(), None, "it was accepted for another goal");
    let seen = done(house.resume(&pending));
    assert_eq!(seen.outcome.code, Some(Code::GoalChanged));
    assert_eq!(house.answer(approval(&pending), "once", None).unwrap_err().code, Code::ApprovalClosed);
    let anew = submitted(&house, "the second");
    assert_ne!(anew.digest, pending.digest, "the goal is part of what is decided on");
    house.approve(&anew);
    assert_eq!(plan(), Some(anew.id));
    house.audit(&["s1"]);
}

#[test]
fn a_yes_that_comes_after_the_goal_changed_accepts_nothing() {
    // The goal changes between the question and the answer, and the process
    // that changed it dies before it takes the card away.
    let house = house();
    task(&house);
    let action = submitted(&house, "a patch");
    half_a_goal(&house);
    let error = house.answer(approval(&action), "once", None).unwrap_err();
    assert_eq!(error.code, Code::GoalChanged, "{error:?}");
    let accepted = house.service.accepted_plan(&agent("u", "coder"), &id("t1")).unwrap();
    assert!(accepted.is_none());
    let events = house.of_action(&action.id);
    assert!(!events.iter().any(|logged| matches!(logged.event.what, What::ApprovalAnswered { .. })));
}

/// Changes the goal, and fails before anything else is written.
fn half_a_goal(house: &House) {
    let setup = Setup::of(&[WRITE, TOOL]);
    let half = House::open_over(&house.ground, &setup, |store| {
        Between::over(store, |moment| !matches!(moment, Moment::Before(2..)))
    });
    let said = half.block_on(half.service.say(&person("u"), &id("t1"), Saying::Goal("drop the old files")));
    assert!(said.is_err(), "the card was taken away");
}

#[test]
fn a_decision_outlives_the_process_and_is_answered_in_another() {
    let house = house();
    let action = submitted(&house, "a patch");
    let other = House::open(&house.ground, &Setup::of(&[WRITE, TOOL]));
    other.approve(&action);
    assert_eq!(done(house.resume(&action)).data["accepted"], true);
}

#[test]
fn a_decision_is_no_tool() {
    let house = House::of(&Setup::of(&[WRITE]).rules("permit (principal, action, resource);"));
    let args = r#"{"goal":1,"summary":"s","steps":[{"title":"t","effects":"none"}]}"#;
    let seen = done(house.send(house.asked("plan.submit", args)).unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Unsupported, Some(Code::Usage)));
    assert!(house.ground.runs().is_empty());
    let listed = house.service.registry().list().unwrap();
    assert!(listed.tools.iter().all(|tool| tool.capability.name.as_str() != "plan.submit"));
    let added = house.service.registry().add(
        &format!("{}{}", crate::fake::HEAD, WRITE.replace("kind = \"tool\"", "kind = \"decision\"")),
        b"c",
        glovebox_runtime::Instant { unix_millis: 1 },
    );
    assert!(added.is_err());
}
