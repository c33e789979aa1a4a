//! Things to put in.

use std::str::FromStr;

use env_contracts::{Assurance, Digest, Id, Name, Outcome, Principal, Problem};
use glovebox_events::{
    Action, ActionState, Answer, Answered, Approval, ApprovalState, Approver, AskedFor, Asks, Control, End, Event,
    Grant, GrantScope, LogKey, Matcher, Owner, Payload, PayloadRole, Right, What,
};
use glovebox_store::{Commit, Condition, Record, Thing};

/// A name, an id or anything else that is read from text.
pub(crate) fn of<T: FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

/// The log of this session of tenant `house`.
pub(crate) fn log(session: &str) -> LogKey {
    LogKey { tenant: house(), session: of(session) }
}

pub(crate) fn house() -> Name {
    of("house")
}

pub(crate) fn principal(tenant: &Name) -> Principal {
    Principal { tenant: tenant.clone(), user: of("ann"), agent: None, agent_version: None, chain: vec![] }
}

/// An action that was asked for.
pub(crate) fn action(log: &LogKey, id: &str) -> Action {
    Action {
        id: of(id),
        session: log.session.clone(),
        task: of("task-1"),
        turn: None,
        goal: None,
        principal: principal(&log.tenant),
        capability: of("text.count@1.0.0"),
        asks: Asks::Run,
        revision: 1,
        state: ActionState::Requested,
        version: 1,
        submission: Digest::of(submission(id).as_bytes()),
        edit: None,
        decided: None,
        parents: vec![],
        key: None,
        held: false,
        plan: None,
        effects: None,
        intent: None,
        digest: None,
        approval: None,
        preview: None,
        right: None,
        holder: None,
        stop: None,
        end: None,
        requested_ms: 1000,
        changed_ms: 1000,
    }
}

/// What an action was asked with.
pub(crate) fn submission(id: &str) -> String {
    format!("{{\"the words of\":\"{id}\"}}")
}

/// What happened to an action at this moment.
pub(crate) fn event(action: &Action, at_ms: u64, what: What) -> Event {
    Event { at_ms, action: Some(action.id.clone()), what }
}

/// That it was asked for, with its submission.
pub(crate) fn request(action: &Action) -> Commit {
    let log = LogKey { tenant: action.principal.tenant.clone(), session: action.session.clone() };
    let mut commit = Commit::new(log);
    commit.conditions.push(at(Thing::Action(action.id.clone()), 0));
    commit.events.push(event(
        action,
        1000,
        What::Requested {
            task: action.task.clone(),
            principal: action.principal.clone(),
            capability: action.capability.clone(),
            asks: Asks::Run,
            submission: action.submission.clone(),
            parents: vec![],
            key: None,
            turn: action.turn,
            goal: action.goal,
            held: false,
        },
    ));
    let words = submission(action.id.as_str()).into_bytes();
    commit.payloads.push(Payload::new(Owner::Action(action.id.clone()), PayloadRole::Submission, words));
    commit.records.push(Record::Action(Box::new(action.clone())));
    commit
}

/// The next version of an action, with what made it so, on condition that
/// nobody else was faster.
pub(crate) fn next(action: &mut Action, at_ms: u64, what: What) -> Commit {
    let mut commit = Commit::new(LogKey { tenant: action.principal.tenant.clone(), session: action.session.clone() });
    commit.conditions.push(at(Thing::Action(action.id.clone()), action.version));
    action.version += 1;
    action.changed_ms = at_ms;
    commit.events.push(event(action, at_ms, what));
    commit.records.push(Record::Action(Box::new(action.clone())));
    commit
}

/// Its run begins.
pub(crate) fn claim(action: &mut Action, at_ms: u64) -> Commit {
    action.state = ActionState::Running;
    action.holder = Some(of("holder-1"));
    let what = What::Claimed { right: Right::Policy, digest: Digest::of(b"plan"), holder: of("holder-1") };
    next(action, at_ms, what)
}

/// It ended well.
pub(crate) fn end(action: &mut Action, at_ms: u64) -> Commit {
    let mut end = End::of(&Outcome::succeeded(None), Digest::of(b"{}"), at_ms);
    (end.run_us, end.artifact_bytes) = (7500, 70);
    (end.output_bytes, end.egress_bytes, end.cost_micros, end.waiting_us) = (11, 12, 13, 14);
    action.state = end.state();
    action.end = Some(end.clone());
    let mut commit = next(action, at_ms, What::Ended { end });
    commit.payloads.push(Payload::new(Owner::Action(action.id.clone()), PayloadRole::Observation, b"{}".to_vec()));
    commit
}

/// A question about an action.
pub(crate) fn approval(id: &str, intent: &[u8], opened_ms: u64) -> Approval {
    Approval {
        id: of(id),
        revision: 1,
        digest: Digest::of(b"plan"),
        intent: Digest::of(intent),
        asked_for: AskedFor::Policy,
        changed: vec![],
        rules: vec!["writes-ask".into()],
        reasons: vec!["it writes".into()],
        classes: vec![of("operators")],
        offers: vec![],
        preview: false,
        reviews: vec![],
        opened_ms,
        expires_ms: Some(opened_ms + 60_000),
        nobody_reachable: false,
        state: ApprovalState::Pending,
        answer: None,
    }
}

/// A person is asked.
pub(crate) fn ask(action: &mut Action, approval: Approval) -> Commit {
    action.state = ActionState::WaitingApproval;
    action.approval = Some(approval.clone());
    let at_ms = approval.opened_ms;
    next(action, at_ms, What::ApprovalOpened { approval: Box::new(approval) })
}

/// A person answers.
pub(crate) fn answer(action: &mut Action, answered: Answered, at_ms: u64) -> Commit {
    let approval = action.approval.as_mut().unwrap();
    let answer = Answer {
        approval: approval.id.clone(),
        offer: of("once"),
        answer: answered,
        scope: GrantScope::Once,
        control: Control::Continue,
        seen: approval.digest.clone(),
        words: None,
        edit: None,
        by: approver(),
        signature: None,
        at_ms,
    };
    approval.answer = Some(answer.clone());
    (approval.state, action.state) = match answered {
        Answered::Approve => (ApprovalState::Approved, ActionState::Authorized),
        Answered::Decline => (ApprovalState::Declined, ActionState::Failed),
        Answered::Edit => (ApprovalState::Edited, ActionState::Validated),
    };
    next(action, at_ms, What::ApprovalAnswered { answer: Box::new(answer) })
}

fn approver() -> Approver {
    Approver { name: of("bob"), assurance: Assurance::ConsoleLogin, channel: of("cli") }
}

/// A grant until 5000, made at 1000.
pub(crate) fn grant(tenant: &Name, id: &str, session: Option<&str>) -> Grant {
    Grant {
        id: of(id),
        principal: principal(tenant),
        session: session.map(of),
        task: None,
        turn: None,
        scope: if session.is_some() { GrantScope::Session } else { GrantScope::Rule },
        matcher: Matcher::Intent { intent: Digest::of(b"intent") },
        approval: of("approval-1"),
        action: of("action-1"),
        by: approver(),
        classes: vec![],
        made_ms: 1000,
        expires_ms: 5000,
        revoked: None,
    }
}

/// That this is at this version.
pub(crate) fn at(of: Thing, version: u64) -> Condition {
    Condition::Version { of, version }
}

/// An id with this number.
pub(crate) fn numbered(word: &str, number: usize) -> Id {
    of(&format!("{word}-{number:05}"))
}

/// A problem that nobody expected, in words.
pub(crate) fn words(problem: &Problem) -> String {
    format!("{}: {} ({})", problem.code, problem.message, problem.help)
}
