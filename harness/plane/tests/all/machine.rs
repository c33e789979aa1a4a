//! Which event may follow which, all of them; and what no sequence of events
//! can bring about.

use env_contracts::{OutcomeKind, Verdict};
use glovebox_events::{Action, ActionState, Answered, ApprovalState, Asks, Event, Grant, Halt, Logged, Right, What};
use glovebox_plane::machine::{replay, step};
use proptest::prelude::*;

use crate::house::{agent, id, name};
use crate::steps::*;

/// An action in every state that it can be in, by name.
fn states() -> Vec<(&'static str, Vec<What>)> {
    let grow = |from: &[What], more: Vec<What>| [from, &more].concat();
    let requested = vec![requested(Asks::Run)];
    let planned = grow(&requested, vec![planned(1)]);
    let allowed = grow(&planned, vec![decided(Verdict::Allow), bound("d1"), decided(Verdict::Allow)]);
    let asked = grow(&planned, vec![decided(Verdict::Ask), bound("d1"), decided(Verdict::Ask)]);
    let waiting = grow(&asked, vec![opened("p1", 1, "d1")]);
    let approved = grow(&waiting, vec![answered("p1", Answered::Approve, "d1")]);
    let decided = grow(&approved, vec![decided(Verdict::Allow)]);
    let running = grow(&decided, vec![claimed(by_approval("p1"), "d1")]);
    let edited = grow(&waiting, vec![answered("p1", Answered::Edit, "d1")]);
    vec![
        ("none", Vec::new()),
        ("requested", requested),
        ("planned", planned),
        ("allowed", allowed),
        ("asked", asked),
        ("waiting", waiting.clone()),
        ("declined", grow(&waiting, vec![answered("p1", Answered::Decline, "d1")])),
        ("edited", edited),
        ("approved", approved),
        ("decided", decided),
        ("running", running.clone()),
        ("succeeded", grow(&running, vec![succeeded()])),
        ("failed", grow(&running, vec![failed(OutcomeKind::Completed)])),
        ("cancelled", grow(&running, vec![failed(OutcomeKind::Interrupted)])),
    ]
}

/// Every event, fitting as well as it can; and those that do not fit at all.
fn events() -> Vec<(&'static str, What)> {
    let halt = Halt { by: name("u"), at_ms: 0, reason: None };
    vec![
        ("requested", requested(Asks::Run)),
        ("planned", planned(1)),
        ("planned-2", planned(2)),
        ("decided", decided(Verdict::Allow)),
        ("bound", bound("d1")),
        ("opened", opened("p1", 1, "d1")),
        ("opened-other", opened("p1", 1, "d2")),
        ("approved", answered("p1", Answered::Approve, "d1")),
        ("approved-other", answered("p1", Answered::Approve, "d2")),
        ("approved-another", answered("p2", Answered::Approve, "d1")),
        ("declined", answered("p1", Answered::Decline, "d1")),
        ("edited", answered("p1", Answered::Edit, "d1")),
        ("expired", What::ApprovalExpired { approval: id("p1") }),
        ("withdrawn", What::ApprovalWithdrawn { approval: id("p1"), why: name("cancelled") }),
        ("drifted", What::Drifted { approval: id("p1"), changed: Vec::new() }),
        ("claimed-by-rule", claimed(Right::Policy, "d1")),
        ("claimed-by-grant", claimed(Right::Grant { grant: id("g1") }, "d1")),
        ("claimed-by-approval", claimed(by_approval("p1"), "d1")),
        ("claimed-by-another", claimed(by_approval("p2"), "d1")),
        ("claimed-other", claimed(by_approval("p1"), "d2")),
        ("claimed-other-by-rule", claimed(Right::Policy, "d2")),
        ("stop", stop()),
        ("lost", What::HolderLost { holder: id("h1") }),
        ("lost-other", What::HolderLost { holder: id("h2") }),
        ("succeeded", succeeded()),
        ("failed", failed(OutcomeKind::BackendError)),
        ("grant", What::GrantMade { grant: Box::new(grant()) }),
        ("revoked", What::GrantRevoked { grant: id("g1"), by: name("u") }),
        ("halted", What::Halted { halt }),
        ("released", What::Released { by: name("u") }),
        ("policy", What::PolicyLoaded { policy: named("policy") }),
        ("policy-refused", What::PolicyRefused { kept: named("policy"), problem: String::new() }),
        ("erased", What::Erased { by: name("u") }),
    ]
}

fn grant() -> Grant {
    Grant {
        id: id("g1"),
        principal: agent("u", "coder"),
        session: None,
        task: None,
        turn: None,
        scope: glovebox_events::GrantScope::Rule,
        matcher: glovebox_events::Matcher::Intent { intent: named("intent") },
        approval: id("p1"),
        action: id("a1"),
        by: answer("p1", Answered::Approve, "d1").by,
        classes: Vec::new(),
        made_ms: 0,
        expires_ms: 1,
        revoked: None,
    }
}

/// What may follow in each state; nothing else may.
const LEGAL: &[(&str, &str)] = &[
    ("none", "requested"),
    ("requested", "planned stop failed erased"),
    ("planned", "decided bound stop failed erased"),
    ("allowed", "decided bound claimed-by-rule claimed-by-grant stop failed erased"),
    ("asked", "decided bound opened stop failed erased"),
    ("waiting", "approved declined edited expired withdrawn stop erased"),
    // What was declined only ends, or is planned nowhere else.
    ("declined", "decided bound opened stop failed erased"),
    ("edited", "planned-2 stop failed erased"),
    ("approved", "decided expired withdrawn drifted stop erased"),
    ("decided", "decided expired withdrawn drifted claimed-by-approval stop erased"),
    ("running", "stop lost succeeded failed erased"),
    ("succeeded", "erased"),
    ("failed", "erased"),
    ("cancelled", "erased"),
];

#[test]
fn every_state_takes_the_events_of_the_table_and_no_other() {
    let mut wrong = Vec::new();
    for ((state, sequence), (same, legal)) in states().into_iter().zip(LEGAL) {
        assert_eq!(state, *same);
        let legal: Vec<&str> = legal.split(' ').collect();
        for (event, what) in events() {
            let taken = follows(after(&sequence), what);
            if taken.is_ok() != legal.contains(&event) {
                wrong.push(format!("{event} in {state}: {taken:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_action_of_another_tenant_or_another_id_is_no_part_of_this_log() {
    let mut other = log();
    other.tenant = name("elsewhere");
    assert!(step(None, &other, &event(1, requested(Asks::Run))).is_err());
    let mut strange = event(1, planned(1));
    strange.action = Some(id("a2"));
    assert!(step(after(&[requested(Asks::Run)]), &log(), &strange).is_err());
}

#[test]
fn an_answer_counts_until_the_millisecond_before_its_time_is_over() {
    let waiting = || after(&states().into_iter().find(|(name, _)| *name == "waiting").unwrap().1);
    let at = |ms| step(waiting(), &log(), &event(ms, answered("p1", Answered::Approve, "d1"))).is_ok();
    assert!(at(EXPIRES_MS - 1));
    assert!(!at(EXPIRES_MS));
    assert!(at(0), "a clock that went back takes nothing away");
}

#[test]
fn an_action_that_is_to_stop_is_never_claimed() {
    let mut sequence = states().into_iter().find(|(name, _)| *name == "decided").unwrap().1;
    sequence.push(stop());
    let illegal = follows(after(&sequence), claimed(by_approval("p1"), "d1")).unwrap_err();
    assert_eq!(illegal.why, "it is to stop");
}

#[test]
fn a_permission_is_given_with_the_answer_and_never_runs() {
    let sequence = [
        requested(Asks::Permission),
        planned(1),
        decided(Verdict::Ask),
        bound("d1"),
        opened("p1", 1, "d1"),
        answered("p1", Answered::Approve, "d1"),
    ];
    let action = after(&sequence).unwrap();
    assert_eq!(action.approval.as_ref().unwrap().state, ApprovalState::Consumed);
    for right in [Right::Policy, by_approval("p1"), Right::Grant { grant: id("g1") }] {
        let mut allowed = sequence.to_vec();
        allowed.push(decided(Verdict::Allow));
        assert_eq!(follows(after(&allowed), claimed(right, "d1")).unwrap_err().why, "nothing was asked to run");
    }
    assert_eq!(follows(Some(action), succeeded()).unwrap().state, ActionState::Succeeded);
}

/// An event, which mostly fits what the action is now.
fn made(choice: u8, fits: bool, number: u8, action: Option<&Action>) -> What {
    let digest = |n: u8| format!("d{n}");
    let (mut digest_of, mut approval) = (digest(number % 3), format!("p{}", number % 3));
    let mut revision = u32::from(number % 3) + 1;
    if let Some(action) = action.filter(|_| fits) {
        revision = action.revision + u32::from(action.state == ActionState::Requested && action.plan.is_some());
        if let Some(now) = (0..3).map(digest).find(|name| action.digest == Some(named(name))) {
            digest_of = now;
        }
        if choice != 4
            && let Some(now) = &action.approval
        {
            approval = now.id.to_string();
        }
    }
    match choice {
        0 => requested(Asks::Run),
        1 => planned(revision),
        2 => decided([Verdict::Allow, Verdict::Ask, Verdict::Ask, Verdict::Deny][usize::from(number % 4)]),
        3 => bound(&digest_of),
        4 => opened(&approval, revision, &digest_of),
        5 | 6 => answered(&approval, Answered::Approve, &digest_of),
        7 => answered(&approval, Answered::Edit, &digest_of),
        8 => answered(&approval, Answered::Decline, &digest_of),
        9 => What::ApprovalExpired { approval: id(&approval) },
        10 => What::ApprovalWithdrawn { approval: id(&approval), why: name("cancelled") },
        11 => What::Drifted { approval: id(&approval), changed: Vec::new() },
        12 => claimed(Right::Policy, &digest_of),
        13 | 14 => claimed(by_approval(&approval), &digest_of),
        15 => claimed(Right::Grant { grant: id("g1") }, &digest_of),
        16 => stop(),
        17 => What::HolderLost { holder: id(["h1", "h2"][usize::from(number % 2)]) },
        18 => succeeded(),
        19 => failed([OutcomeKind::Interrupted, OutcomeKind::Declined][usize::from(number % 2)]),
        _ => What::Erased { by: name("u") },
    }
}

/// What must hold of a claim, said once more and in other words.
fn rightful(before: &Action, what: &What) {
    let What::Claimed { right, digest, .. } = what else { return };
    assert_eq!(before.decided, Some(Verdict::Allow), "claimed without policy's leave");
    assert_eq!(before.digest.as_ref(), Some(digest), "claimed another plan");
    assert!(before.stop.is_none());
    if let Right::Approval { approval } = right {
        let known = before.approval.as_ref().unwrap();
        let answer = known.answer.as_ref().unwrap();
        assert!(known.id == *approval && known.state == ApprovalState::Approved && known.revision == before.revision);
        assert!(answer.answer == Answered::Approve && answer.seen == *digest, "approved was {answer:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_of_events_runs_without_a_right_or_twice(
        moves in proptest::collection::vec((0u8..21, proptest::bool::weighted(0.85), any::<u8>(), 0u64..120), 1..120),
    ) {
        let mut action: Option<Action> = None;
        let (mut taken, mut claims, mut ends) = (Vec::<Event>::new(), 0, 0);
        for (choice, fits, number, at_ms) in moves {
            let choice = if action.is_none() { 0 } else { choice };
            let event = event(at_ms, made(choice, fits, number, action.as_ref()));
            let Ok(next) = step(action.clone(), &log(), &event) else { continue };
            if let Some(before) = &action {
                rightful(before, &event.what);
                let counts = !matches!(event.what, What::Erased { .. });
                prop_assert_eq!(next.version, before.version + u64::from(counts));
                prop_assert!(next.changed_ms >= before.changed_ms);
                if before.state.ended() {
                    prop_assert!(matches!(event.what, What::Erased { .. }), "{:?} after the end", event.what);
                }
            }
            claims += u32::from(matches!(event.what, What::Claimed { .. }));
            ends += u32::from(matches!(event.what, What::Ended { .. }));
            prop_assert!(claims <= 1 && ends <= 1, "{:?}", taken);
            prop_assert!(next.state != ActionState::Succeeded || claims == 1, "it succeeded without a run");
            taken.push(event);
            action = Some(next);
        }
        let logged = taken.into_iter().zip(1..).map(|(event, seq)| Logged { log: log(), seq, event, hash: named("") });
        let live = replay(&logged.collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(live.actions.into_values().next(), action);
    }
}
