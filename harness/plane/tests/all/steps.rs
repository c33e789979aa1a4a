//! Events of one action, for the tests of the state machine.

use env_contracts::{Assurance, DerivedEffects, Digest, Outcome, OutcomeKind, Problem, Verdict};
use glovebox_events::{
    Action, Answer, Answered, Approval, ApprovalState, Approver, AskedFor, Asks, Control, DecidedAt, End, Event,
    GrantScope, LogKey, Offer, Right, StopAsked, What,
};
use glovebox_plane::machine::{Illegal, step};

use crate::house::{agent, id, name};

/// Approvals that these tests open expire at this moment.
pub(crate) const EXPIRES_MS: u64 = 100;

pub(crate) fn log() -> LogKey {
    LogKey { tenant: name("local"), session: id("s1") }
}

pub(crate) fn event(at_ms: u64, what: What) -> Event {
    Event { at_ms, action: Some(id("a1")), what }
}

pub(crate) fn named(text: &str) -> Digest {
    Digest::of(text.as_bytes())
}

pub(crate) fn requested(asks: Asks) -> What {
    What::Requested {
        task: id("t1"),
        principal: agent("u", "coder"),
        capability: "fake.tool@1.0.0".parse().unwrap(),
        asks,
        submission: named("submission"),
        parents: Vec::new(),
        key: None,
        turn: None,
        goal: None,
        held: false,
    }
}

pub(crate) fn planned(revision: u32) -> What {
    let plan = named(&format!("plan {revision}"));
    What::Planned { revision, plan, effects: DerivedEffects::External, backend: "scripted".to_owned() }
}

pub(crate) fn decided(verdict: Verdict) -> What {
    What::Decided { at: DecidedAt::Bound, verdict, rules: Vec::new(), policy: named("policy") }
}

pub(crate) fn bound(digest: &str) -> What {
    What::Bound { intent: named("intent"), digest: named(digest), facts: named("facts") }
}

fn offers() -> Vec<Offer> {
    let offer = |name: &str, answer, scope, control| Offer {
        id: id(name),
        answer,
        scope,
        control,
        matcher: None,
        lasts_ms: None,
    };
    vec![
        offer("once", Answered::Approve, GrantScope::Once, Control::Continue),
        offer("decline", Answered::Decline, GrantScope::Once, Control::Continue),
    ]
}

pub(crate) fn opened(approval: &str, revision: u32, digest: &str) -> What {
    What::ApprovalOpened {
        approval: Box::new(Approval {
            id: id(approval),
            revision,
            digest: named(digest),
            intent: named("intent"),
            asked_for: AskedFor::Policy,
            changed: Vec::new(),
            rules: Vec::new(),
            reasons: Vec::new(),
            classes: vec![name("owner")],
            offers: offers(),
            preview: false,
            reviews: Vec::new(),
            opened_ms: 0,
            expires_ms: Some(EXPIRES_MS),
            nobody_reachable: false,
            state: ApprovalState::Pending,
            answer: None,
        }),
    }
}

pub(crate) fn answer(approval: &str, answer: Answered, seen: &str) -> Answer {
    let offer = match answer {
        Answered::Approve => "once",
        Answered::Decline => "decline",
        Answered::Edit => "edit",
    };
    Answer {
        approval: id(approval),
        offer: id(offer),
        answer,
        scope: GrantScope::Once,
        control: Control::Continue,
        seen: named(seen),
        words: None,
        edit: (answer == Answered::Edit).then(|| named("edit")),
        by: Approver { name: name("u"), assurance: Assurance::SameUser, channel: name("test") },
        signature: None,
        at_ms: 0,
    }
}

pub(crate) fn answered(approval: &str, how: Answered, seen: &str) -> What {
    What::ApprovalAnswered { answer: Box::new(answer(approval, how, seen)) }
}

pub(crate) fn claimed(right: Right, digest: &str) -> What {
    What::Claimed { right, digest: named(digest), holder: id("h1") }
}

pub(crate) fn by_approval(approval: &str) -> Right {
    Right::Approval { approval: id(approval) }
}

pub(crate) fn stop() -> What {
    What::StopAsked { stop: StopAsked { by: name("u"), at_ms: 0, why: name("cancelled"), grace_ms: None } }
}

pub(crate) fn succeeded() -> What {
    What::Ended { end: End::of(&Outcome::succeeded(None), named("observation"), 0) }
}

pub(crate) fn failed(kind: OutcomeKind) -> What {
    let outcome = Outcome::failed(kind, Problem::new(env_contracts::Code::BackendError, "no"));
    What::Ended { end: End::of(&outcome, named("observation"), 0) }
}

/// An action after these events, all of which must follow.
pub(crate) fn after(events: &[What]) -> Option<Action> {
    events.iter().fold(None, |action, what| {
        let stepped = step(action, &log(), &event(1, what.clone()));
        Some(stepped.unwrap_or_else(|illegal| panic!("{illegal}")))
    })
}

pub(crate) fn follows(action: Option<Action>, what: What) -> Result<Action, Illegal> {
    step(action, &log(), &event(1, what))
}
