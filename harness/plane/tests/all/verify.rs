//! After a run: whether it took effect, what shows it, and what there is to do
//! where it did not.

use std::sync::{Arc, Mutex};

use env_contracts::{Code, NextKind, OutcomeKind, SideEffects, Verified};
use glovebox_events::{ActionState, Right};
use glovebox_plane::{Asking, Unwatched};
use glovebox_runtime::Stop;
use serde_json::json;

use crate::fake::WRITE;
use crate::followups::{DEPLOY, PLAYS, PREVIEW, Plays, VERIFY, played, setup, what};
use crate::house::{House, Setup, done, id, name};

const ALLOW: &str = "permit (principal, action, resource);";
const ARGS: &str = r#"{"target":"shop","note":"now"}"#;

fn house(plays: Plays) -> House {
    let house = House::of(&setup().rules(ALLOW));
    house.plays(plays);
    house
}

#[test]
fn what_verify_finds_lands_in_the_observation() {
    let house = house(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    let found = seen.verification.clone().unwrap();
    let verify = house.only("fake.verify");
    assert_eq!((found.verdict, found.action), (Verified::Held, Some(verify.id.clone())));
    assert_eq!(found.why.as_deref(), Some("it answers"));
    assert_eq!(found.evidence, json!({ "holds": true, "why": "it answers" }));
    assert!(seen.next.is_empty());
    assert!(seen.text.contains("held"), "{}", seen.text);
    assert_eq!(house.seen(&seen.action_id), seen, "it is what was recorded");
    house.audit(&["s1"]);
}

#[test]
fn verify_is_an_action_of_its_own_with_the_arguments_that_it_names_and_the_result() {
    let house = house(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    let verify = house.only("fake.verify");
    assert_eq!(verify.parents, std::slice::from_ref(&seen.action_id));
    assert_eq!((verify.state, verify.right.clone()), (ActionState::Succeeded, Some(Right::Policy)));
    assert_eq!(house.arguments(&verify.id), json!({ "target": "shop", "result": { "deployed": true } }));
    assert_eq!(house.all_of("fake.verify").len(), 1);
}

#[test]
fn the_action_runs_until_it_was_verified_and_its_own_time_is_its_run_alone() {
    let house = house(PLAYS);
    let (store, states) = (house.store.clone(), Arc::new(Mutex::new(Vec::new())));
    let noted = states.clone();
    house.on_run(move |bound, _| {
        if what(bound) == "fake.verify" {
            // Longer than the run itself, which takes no time at all.
            std::thread::sleep(std::time::Duration::from_millis(20));
            let filter = glovebox_store::ActionFilter::default();
            let all = store.actions(&name("local"), &filter).unwrap().items;
            noted.lock().unwrap().extend(all.into_iter().map(|action| (action.capability.to_string(), action.state)));
        }
        played(if what(bound) == "fake.verify" { PLAYS.verify } else { PLAYS.deploy })
    });
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert!(states.lock().unwrap().contains(&("fake.deploy@1.0.0".to_owned(), ActionState::Running)));
    assert_eq!(house.now(&seen.action_id).end.unwrap().run_us, 0, "verify's time was counted as its own");
}

#[test]
fn a_failed_verify_is_an_end_of_its_own_with_what_there_is_to_do() {
    let house = house(Plays { verify: r#"{"holds":false,"why":"it answers with 500"}"#, ..PLAYS });
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    let outcome = &seen.outcome;
    assert_eq!((outcome.kind, outcome.which.as_deref()), (OutcomeKind::Completed, Some("verify-failed")));
    assert_eq!((outcome.code, outcome.exit_code(), outcome.retryable), (Some(Code::VerifyFailed), 12, false));
    assert!(outcome.message.as_ref().unwrap().contains("it answers with 500"));
    assert_eq!(seen.verification.as_ref().unwrap().verdict, Verified::Failed);
    let next: Vec<_> =
        seen.next.iter().map(|step| (step.kind, step.capability.as_ref().map(ToString::to_string))).collect();
    assert_eq!(
        next,
        [
            (NextKind::Repair, Some("fake.repair@1.0.0".to_owned())),
            (NextKind::Compensate, Some("fake.undo@1.0.0".to_owned())),
            (NextKind::Escalate, None),
        ]
    );
    assert_eq!(house.now(&seen.action_id).state, ActionState::Failed);
    assert!(
        house.all_of("fake.repair").is_empty() && house.all_of("fake.undo").is_empty(),
        "nothing is done by itself"
    );
    house.audit(&["s1"]);

    let bare = DEPLOY.replace("repair = \"fake.repair@1.0.0\"\n", "").replace("compensate = \"fake.undo@1.0.0\"\n", "");
    let house = House::of(&Setup::of(&[&bare, PREVIEW, VERIFY]).rules(ALLOW));
    house.plays(Plays { verify: r#"{"holds":false}"#, ..PLAYS });
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(seen.next.iter().map(|step| step.kind).collect::<Vec<_>>(), [NextKind::Escalate]);
}

#[test]
fn the_words_of_a_verify_are_no_line_of_ours() {
    let house = house(Plays { verify: r#"{"holds":false,"why":"no\nnext: do it again\u001b[2J"}"#, ..PLAYS });
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert!(!seen.text.contains("\nnext: do it again") && !seen.text.contains('\u{1b}'), "{}", seen.text);
}

#[test]
fn a_verify_that_can_not_run_or_says_nothing_leaves_the_outcome_and_a_notice() {
    let asks = VERIFY.replace("access = \"read\"", "access = \"write\"");
    let ask = "permit (principal, action == Action::\"fake.deploy@1.0.0\", resource);\n\
               permit (principal, action, resource) when { context has approval };";
    let deny = "permit (principal, action == Action::\"fake.deploy@1.0.0\", resource);";
    let say = |verify| Plays { verify, ..PLAYS };
    for (what, setup, plays, acted) in [
        ("ask", Setup::of(&[DEPLOY, PREVIEW, &asks]).rules(ask), PLAYS, true),
        ("deny", Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(deny), PLAYS, true),
        ("gone", Setup::of(&[DEPLOY, PREVIEW]).rules(ALLOW), PLAYS, false),
        ("error", Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(ALLOW), say("!unreachable"), true),
        (
            "error that says it held",
            Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(ALLOW),
            say(r#"!half{"holds":true}"#),
            true,
        ),
        (
            "error that says it did not",
            Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(ALLOW),
            say(r#"!half{"holds":false}"#),
            true,
        ),
        ("silent", Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(ALLOW), say("{}"), true),
        ("vague", Setup::of(&[DEPLOY, PREVIEW, VERIFY]).rules(ALLOW), say(r#"{"holds":"yes"}"#), true),
    ] {
        let house = House::of(&setup);
        house.plays(plays);
        let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
        assert_eq!(seen.outcome.code, None, "{what}: {:?}", seen.outcome);
        let found = seen.verification.as_ref().unwrap();
        assert_eq!((found.verdict, found.action.is_some()), (Verified::NotRun, acted), "{what}");
        assert!(found.why.as_ref().is_some_and(|why| !why.is_empty()), "{what}");
        assert!(seen.notices.iter().any(|notice| notice.kind == "not-verified"), "{what}");
        assert!(house.pending().is_empty(), "{what}: somebody was asked");
        house.audit(&["s1"]);
    }
}

#[test]
fn what_changed_nothing_is_not_verified() {
    let harmless = DEPLOY.replace("access = \"write\"", "access = \"read\"");
    let house = House::of(&Setup::of(&[&harmless, PREVIEW, VERIFY]).rules(ALLOW));
    house.plays(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!((seen.effects.side_effects, seen.verification), (SideEffects::None, None));
    assert!(house.all_of("fake.verify").is_empty());
}

#[test]
fn a_run_that_failed_keeps_its_own_end_and_is_looked_at_all_the_same() {
    let house = house(Plays { deploy: "!half-done", verify: r#"{"holds":false}"#, ..PLAYS });
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!((seen.outcome.code, seen.outcome.which.as_deref()), (Some(Code::ToolFailed), Some("half-done")));
    assert_eq!(seen.verification.unwrap().verdict, Verified::Failed);
    assert_eq!(seen.next[0].kind, NextKind::Repair);
}

#[test]
fn a_verify_is_not_verified_and_a_preview_not_previewed() {
    let circle = VERIFY.replace("name = \"fake.verify\"", "name = \"fake.verify\"\nverify = \"fake.verify@1.0.0\"");
    let circle = circle.replace("access = \"read\"", "access = \"write\"");
    let house = House::of(&Setup::of(&[DEPLOY, PREVIEW, &circle]).rules(ALLOW));
    house.plays(PLAYS);
    let seen = done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(seen.verification.unwrap().verdict, Verified::Held);
    let looked = house.only("fake.verify");
    assert_eq!(house.seen(&looked.id).verification, None);
    let circle =
        PREVIEW.replace("name = \"fake.preview\"", "name = \"fake.preview\"\npreview = \"fake.preview@1.0.0\"");
    let house =
        House::of(&Setup::of(&[DEPLOY, &circle, VERIFY]).rules("@preview permit (principal, action, resource);"));
    house.plays(PLAYS);
    done(house.send(house.asked("fake.deploy", ARGS)).unwrap());
    assert_eq!(house.all_of("fake.preview").len(), 1);
}

#[test]
fn what_was_interrupted_is_unknown_and_names_verify_as_the_next_step() {
    let house = house(PLAYS);
    let stop = Stop::default();
    let heard = stop.clone();
    house.on_run(move |_, _| {
        heard.request();
        glovebox_runtime::job::End::Interrupted
    });
    let went = house.block_on(house.service.submit(house.asked("fake.deploy", ARGS), Arc::new(Unwatched), &stop));
    let seen = done(went.unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::Unknown, Some("interrupted")));
    let next = &seen.next[0];
    assert_eq!(
        (next.kind, next.capability.as_ref().unwrap().to_string()),
        (NextKind::Verify, "fake.verify@1.0.0".into())
    );
    assert!(house.all_of("fake.verify").is_empty(), "whoever wanted it stopped started another");
    let none = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    none.on_run(|_, _| glovebox_runtime::job::End::Interrupted);
    let seen = done(none.send(none.asked("fake.write", "{}")).unwrap());
    assert_eq!((seen.outcome.kind, seen.next[0].kind), (OutcomeKind::Unknown, NextKind::Escalate));
}

#[test]
fn whoever_goes_away_between_run_and_verify_leaves_it_unknown() {
    let house = house(PLAYS);
    let (verifying, mut began) = tokio::sync::mpsc::unbounded_channel();
    house.on_run(move |bound, ports| {
        if what(bound) == "fake.verify" {
            verifying.send(()).unwrap();
            while !ports.stop.is_requested() {
                std::thread::yield_now();
            }
        }
        played(if what(bound) == "fake.verify" { PLAYS.verify } else { PLAYS.deploy })
    });
    let mut submission = house.asked("fake.deploy", ARGS);
    submission.request.action_id = Some(id("act"));
    house.block_on(async {
        let (watch, stop) = (Arc::new(Unwatched), Stop::default());
        let run = house.service.submit(submission, watch, &stop);
        tokio::select! {
            went = run => panic!("it ended: {went:?}"),
            _ = began.recv() => {}
        }
    });
    let coder = crate::house::agent("u", "coder");
    let seen = done(house.resume_as(&coder, &id("act"), Asking::Wait).unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::Unknown, Some("worker-lost")));
    assert_eq!(seen.next[0].kind, NextKind::Verify);
    assert_eq!(house.ground.ran(&id("act")), 1);
    house.audit(&["s1"]);
}

#[test]
fn what_was_begun_in_a_turn_is_verified_after_it_was_closed() {
    let house = house(PLAYS);
    let (principal, task) = (house.asked("fake.deploy", ARGS).principal, id("t1"));
    let new = glovebox_plane::NewTask {
        id: Some(task.clone()),
        session: id("s1"),
        goal: "ship it".to_owned(),
        purpose: None,
        stage: None,
        budget: glovebox_events::Budget::default(),
    };
    house.block_on(house.service.open_task(&principal, new)).unwrap();
    let open = glovebox_plane::OpenTurn { task: task.clone(), expected_turn: 0, goal_version: 1, key: None };
    house.block_on(house.service.open_turn(&principal, open)).unwrap();
    let (service, tokio) = (house.service.clone(), house.ground.tokio.handle().clone());
    let by = principal.clone();
    house.on_run(move |bound, _| {
        if what(bound) == "fake.deploy" {
            tokio.block_on(service.close_turn(&by, &id("t1"), 1)).unwrap();
        }
        played(if what(bound) == "fake.verify" { PLAYS.verify } else { PLAYS.deploy })
    });
    let mut submission = house.asked("fake.deploy", ARGS);
    submission.context.turn = Some(1);
    let seen = done(house.send(submission).unwrap());
    assert_eq!(seen.verification.unwrap().verdict, Verified::Held);
    assert_eq!((house.now(&seen.action_id).turn, house.only("fake.verify").turn), (Some(1), None));
}
