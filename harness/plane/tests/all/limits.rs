//! How much is asked, how long it waits, and who gets to know of it.

use std::time::Duration;

use env_contracts::{Code, Name, OutcomeKind, Principal, Problem, Profiles};
use glovebox_plane::{Answering, AskLimits, Asking, Recovered, Reply, Submitted};

use crate::fake::WRITE;
use crate::house::{House, Setup, approval, done, id, offered, person};

fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    house
}

#[test]
fn what_was_declined_is_not_asked_again_in_the_same_task_and_the_words_come_back() {
    let house = house();
    let action = house.waits("fake.write", r#"{"count":1}"#);
    house.answer(approval(&action), "decline", Some("never touch this")).unwrap();
    let seen = done(house.send(house.asked("fake.write", r#"{ "count" : 1 }"#)).unwrap());
    assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (OutcomeKind::Declined, Some("before")));
    assert!(seen.text.contains("never touch this"), "{}", seen.text);
    assert!(house.pending().is_empty(), "a person was asked again");
    house.waits("fake.write", r#"{"count":2}"#);
    let mut elsewhere = house.asked("fake.write", r#"{"count":1}"#);
    elsewhere.context.task = id("t2");
    assert!(matches!(house.send(elsewhere).unwrap(), Submitted::Waiting(_)), "another task may ask");
    house.audit(&["s1"]);
}

#[test]
fn a_session_that_asks_too_often_is_told_so_and_nobody_is_asked() {
    let mut setup = Setup::of(&[WRITE]);
    setup.settings.asks = AskLimits { most: 2, per: Duration::from_secs(3600) };
    let house = House::of(&setup);
    let ask = |session: &str, count: u32| {
        let mut submission = house.asked("fake.write", &format!(r#"{{"count":{count}}}"#));
        submission.context.session = id(session);
        house.send(submission).unwrap()
    };
    assert!(matches!(ask("s1", 1), Submitted::Waiting(_)));
    assert!(matches!(ask("s1", 2), Submitted::Waiting(_)));
    let seen = done(ask("s1", 3));
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::AskLimited, Some(Code::AskLimited)));
    assert_eq!(house.pending().len(), 2);
    assert!(matches!(ask("s2", 3), Submitted::Waiting(_)), "another session has its own");
    house.ground.clock.forward(Duration::from_millis(3_600_001));
    assert!(matches!(ask("s1", 4), Submitted::Waiting(_)), "an hour later it may again");
    house.audit(&["s1", "s2"]);
}

#[test]
fn a_tool_is_called_no_more_often_than_its_manifest_says() {
    let tool = WRITE.replace("entry =", "rate = { calls = 2, per = \"1m\" }\nentry =");
    let house = House::of(&Setup::of(&[tool.as_str()]).rules("permit (principal, action, resource);"));
    house.runs_well();
    let call = || done(house.send(house.asked("fake.write", "{}")).unwrap()).outcome;
    assert_eq!((call().code, call().code), (None, None));
    let third = call();
    assert_eq!((third.to_string().as_str(), third.retryable), ("busy(rate)", true));
    assert_eq!(house.ground.runs().len(), 2);
    house.ground.clock.forward(Duration::from_millis(60_001));
    assert_eq!(call().code, None);
    house.audit(&["s1"]);
}

#[test]
fn of_two_rates_the_tighter_counts() {
    for (own, profile) in
        [("calls = 1, per = \"1m\"", "calls = 3, per = \"2m\""), ("calls = 9, per = \"1m\"", "calls = 1, per = \"1m\"")]
    {
        let tool = WRITE.replace("entry =", &format!("rate = {{ {own} }}\nentry ="));
        let mut setup = Setup::of(&[tool.as_str()]).rules("permit (principal, action, resource);");
        setup.profiles = Profiles::from_toml(&format!(
            "schema = \"glovebox/profiles/v1\"\n[default]\ndiscover = [\"*\"]\nexecute = [\"*\"]\nrate = {{ {profile} }}\n"
        ))
        .unwrap();
        let house = House::of(&setup);
        house.runs_well();
        let call = || done(house.send(house.asked("fake.write", "{}")).unwrap()).outcome;
        assert_eq!(call().code, None);
        assert_eq!(call().code, Some(Code::RateLimited), "{own} and {profile}");
    }
}

#[test]
fn without_a_limit_in_time_a_question_waits_for_ever() {
    let mut setup = Setup::of(&[WRITE]);
    setup.settings.ttl = None;
    let house = House::of(&setup);
    let action = house.waits("fake.write", "{}");
    house.ground.clock.forward(Duration::from_secs(10 * 365 * 24 * 3600));
    assert_eq!(house.block_on(house.service.recover()).unwrap(), Recovered::default());
    assert!(matches!(house.resume(&action), Submitted::Waiting(_)));
    house.runs_well();
    house.approve(&action);
    assert_eq!(done(house.resume(&action)).outcome.code, None);
}

#[test]
fn an_approval_that_nobody_comes_back_for_ends_too_and_to_the_millisecond() {
    let house = house();
    let (used, unused) = (house.waits("fake.write", "{}"), house.waits("fake.write", "{}"));
    let expires = used.approval.as_ref().unwrap().expires_ms.unwrap();
    house.approve(&used);
    house.approve(&unused);
    house.ground.clock.set(expires - 1);
    assert_eq!(done(house.resume(&used)).outcome.code, None);
    house.ground.clock.set(expires);
    let seen = done(house.resume(&unused));
    assert_eq!(seen.outcome.kind, OutcomeKind::Expired);
    assert_eq!(house.ground.ran(&unused.id), 0);
    house.audit(&["s1"]);
}

#[test]
fn an_answer_that_comes_too_late_by_a_millisecond_ends_the_question() {
    let house = house();
    let action = house.waits("fake.write", "{}");
    house.ground.clock.set(action.approval.as_ref().unwrap().expires_ms.unwrap());
    let late = house.answer(approval(&action), "once", None).unwrap_err();
    assert_eq!((late.code, late.retryable), (Code::Expired, false), "{late:?}");
    assert!(house.pending().is_empty());
    assert_eq!(done(house.resume(&action)).outcome.kind, OutcomeKind::Expired);
    house.audit(&["s1"]);
}

#[test]
fn a_clock_that_jumps_changes_no_order_and_revives_nothing() {
    let house = house();
    let start = house.ground.clock.ms();
    let (late, early) = (house.waits("fake.write", r#"{"count":1}"#), house.waits("fake.write", r#"{"count":2}"#));
    house.ground.clock.set(start - 1_000_000_000);
    let settled = house.approve(&early);
    assert!(settled.approval.answer.unwrap().at_ms >= start, "an answer came before its question");
    assert_eq!(done(house.resume(&early)).outcome.code, None);
    house.ground.clock.set(start + 1_000_000_000);
    assert_eq!(house.block_on(house.service.recover()).unwrap().expired, 1);
    house.ground.clock.set(start);
    let stale = house.answer(approval(&late), "once", None).unwrap_err();
    assert_eq!((stale.code, stale.retryable), (Code::Expired, false), "it would be tried for ever");
    assert_eq!(done(house.resume(&late)).outcome.kind, OutcomeKind::Expired);
    house.audit(&["s1"]);
}

#[test]
fn too_many_words_are_refused_and_the_question_stays() {
    let house = house();
    let action = house.waits("fake.write", "{}");
    let words = "x".repeat(10 << 20);
    assert_eq!(house.answer(approval(&action), "decline", Some(&words)).unwrap_err().code, Code::Usage);
    let arguments = format!(r#"{{"text":"{words}"}}"#);
    assert_eq!(house.edit(&action, &arguments).unwrap_err().code, Code::Usage);
    let nothing = Answering::Edit { arguments: None, scope: None };
    let reply = Reply { approval: approval(&action).clone(), seen: None, answer: nothing, words: None };
    assert_eq!(house.reply(&person("u"), None, reply).unwrap_err().code, Code::Usage);
    assert!(house.pending().contains(approval(&action)));
    house.answer(approval(&action), "decline", Some(&"x".repeat(4000))).unwrap();
}

#[test]
fn the_first_answer_counts_the_same_again_changes_nothing_and_another_is_refused() {
    let house = house();
    let action = house.waits("fake.write", "{}");
    assert!(!house.answer(approval(&action), "once", Some("fine")).unwrap().repeated);
    let again = house.answer(approval(&action), "once", Some("fine")).unwrap();
    assert!(again.repeated && again.grant.is_none());
    for (offer, words) in [("decline", None), ("session", None), ("once", Some("other words"))] {
        let refused = house.answer(approval(&action), offer, words).unwrap_err();
        assert_eq!(refused.code, Code::ApprovalClosed, "{offer}");
        assert!(refused.message.contains("`u`"), "{}", refused.message);
    }
    let other = house.reply(&person("v"), None, offered(approval(&action), "once", Some("fine")));
    assert_eq!(other.unwrap_err().code, Code::ApprovalClosed);
    done(house.resume(&action));
    assert!(house.answer(approval(&action), "once", Some("fine")).unwrap().repeated, "also once it was used");
    assert_eq!(house.ground.ran(&action.id), 1);
    house.audit(&["s1"]);
}

/// Everything that can be asked about an id, by somebody.
fn asked_about(house: &House, by: &Principal, text: &str) -> Vec<Problem> {
    let (id, service) = (id(text), &house.service);
    vec![
        service.action(by, &id).unwrap_err(),
        service.events(by, &id, 0).unwrap_err(),
        service.approval(by, &id).unwrap_err(),
        house.resume_as(by, &id, Asking::Leave).unwrap_err(),
        house.reply(by, None, offered(&id, "once", None)).unwrap_err(),
        house.block_on(service.cancel(by, &id, "cancelled")).unwrap_err(),
        house.block_on(service.erase(by, &id)).unwrap_err(),
        house.block_on(service.revoke(by, &id)).unwrap_err(),
    ]
}

#[test]
fn ids_of_another_tenant_are_answered_like_ids_that_nobody_has() {
    let house = house();
    let action = house.waits("fake.write", "{}");
    let waits = house.waits("fake.write", r#"{"count":2}"#);
    let grant = house.answer(approval(&action), "session", None).unwrap().grant.unwrap();
    let tenant: Name = "other".parse().unwrap();
    let stranger = Principal { tenant, ..person("u") };
    let never = asked_about(&house, &stranger, "never-was");
    for real in [&action.id, approval(&action), &waits.id, approval(&waits), &grant.id] {
        let answers = asked_about(&house, &stranger, real.as_str());
        for (real_answer, unknown) in answers.into_iter().zip(&never) {
            let message = real_answer.message.replace(real.as_str(), "never-was");
            assert_eq!(Problem { message, ..real_answer }, *unknown);
        }
    }
    assert!(house.service.grants(&stranger, true).unwrap().is_empty());
    let listed = house.service.approvals(&stranger, Vec::new(), None, 0).unwrap();
    assert!(listed.items.is_empty());
    assert_eq!(house.now(&waits.id), waits, "a stranger changed something");
}
