//! Actions as the plane records them, with payloads of usual sizes.

use std::str::FromStr;

use env_contracts::{DerivedEffects, Digest, Id, Outcome, Principal, Verdict};
use glovebox_events::{
    Action, ActionState, Asks, Budget, DecidedAt, End, Event, Goal, LogKey, Owner, Payload, PayloadRole, Remark, Right,
    Spent, Task, TaskState, What,
};
use glovebox_store::{Commit, Condition, Record, Thing};

/// Actions of a session, so that there are several logs.
const IN_SESSION: usize = 100;

fn of<T: FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Everything of one action, as it is recorded when it has no effects: asked
/// for, decided, run and ended in one commit.
pub(crate) fn in_one(n: usize) -> Vec<Commit> {
    let [mut first, second] = halves(n);
    first.events.extend(second.events);
    first.payloads.extend(second.payloads);
    first.records = second.records;
    vec![first]
}

/// The same with a claim that is durable before the run.
pub(crate) fn claim_first(n: usize) -> Vec<Commit> {
    halves(n).into()
}

fn halves(n: usize) -> [Commit; 2] {
    // As long as the ids that the plane makes, and in the order of time.
    let id: Id = of(&format!("{n:012x}-7000-8000-0123456789ab"));
    let log = LogKey { tenant: of("local"), session: of(&format!("session-{}", n / IN_SESSION)) };
    let principal = Principal {
        tenant: log.tenant.clone(),
        user: of("ann"),
        agent: Some(of("coder")),
        agent_version: None,
        chain: vec![],
    };
    let payload = |role, size: usize| Payload::new(Owner::Action(id.clone()), role, format!("{n:<size$}").into_bytes());
    let (submission, plan) = (payload(PayloadRole::Submission, 900), payload(PayloadRole::Plan, 2500));
    let (facts, observation) = (payload(PayloadRole::Facts, 300), payload(PayloadRole::Observation, 2000));
    let (intent, digest) = (Digest::of(b"intent"), Digest::of(id.as_str().as_bytes()));
    let mut end = End::of(&Outcome::succeeded(None), observation.sha256.clone(), 5);
    (end.run_us, end.artifact_bytes) = (300, 0);
    let event = |what| Event { at_ms: 1_780_000_000_000 + n as u64, action: Some(id.clone()), what };
    let decided = |at| What::Decided {
        at,
        verdict: Verdict::Allow,
        rules: vec!["tools-without-effects".into()],
        policy: Digest::of(b"policy"),
    };
    let capability = of("text.count@1.0.0");
    let task = of(&format!("task-{}", n / IN_SESSION));

    let mut action = Action {
        id: id.clone(),
        session: log.session.clone(),
        task,
        turn: None,
        goal: None,
        principal,
        capability,
        asks: Asks::Run,
        revision: 1,
        state: ActionState::Running,
        version: 6,
        submission: submission.sha256.clone(),
        edit: None,
        parents: vec![],
        key: None,
        held: false,
        plan: Some(plan.sha256.clone()),
        effects: Some(DerivedEffects::None),
        decided: Some(Verdict::Allow),
        intent: Some(intent.clone()),
        digest: Some(digest.clone()),
        approval: None,
        preview: None,
        right: Some(Right::Policy),
        holder: Some(of("0123456789abcdef0123456789abcdef")),
        stop: None,
        end: None,
        requested_ms: 1_780_000_000_000,
        changed_ms: 1_780_000_000_000,
    };
    let mut first = Commit::new(log.clone());
    first.conditions = vec![Condition::NotHalted, Condition::Version { of: Thing::Action(id.clone()), version: 0 }];
    first.events = vec![
        event(What::Requested {
            task: action.task.clone(),
            principal: action.principal.clone(),
            capability: action.capability.clone(),
            asks: Asks::Run,
            submission: submission.sha256.clone(),
            parents: vec![],
            key: None,
            turn: None,
            goal: None,
            held: false,
        }),
        event(What::Planned {
            revision: 1,
            plan: plan.sha256.clone(),
            effects: DerivedEffects::None,
            backend: "wasm".into(),
        }),
        event(decided(DecidedAt::Plan)),
        event(What::Bound { intent, digest: digest.clone(), facts: facts.sha256.clone() }),
        event(decided(DecidedAt::Bound)),
        event(What::Claimed { right: Right::Policy, digest, holder: of("0123456789abcdef0123456789abcdef") }),
    ];
    first.payloads = vec![submission, plan, facts];
    first.records = vec![Record::Action(Box::new(action.clone()))];

    let mut second = Commit::new(log);
    second.conditions = vec![Condition::Version { of: Thing::Action(id.clone()), version: 6 }];
    (action.version, action.state, action.end) = (7, end.state(), Some(end.clone()));
    second.events = vec![event(What::Ended { end })];
    second.payloads = vec![observation];
    second.records = vec![Record::Action(Box::new(action))];
    [first, second]
}

/// A task with a goal and some remarks, as a loop keeps one.
pub(crate) fn opened(id: &str) -> Commit {
    let log = LogKey { tenant: of("local"), session: of("session-0") };
    let principal =
        Principal { tenant: log.tenant.clone(), user: of("ann"), agent: None, agent_version: None, chain: vec![] };
    let remark = |n| Remark { id: of(&format!("remark-{n}")), text: Digest::of(b"remark"), by: of("ann"), at_ms: 1 };
    let task = Task {
        id: of(id),
        session: log.session.clone(),
        principal,
        state: TaskState::Open,
        version: 1,
        goal: Goal { version: 1, text: Digest::of(b"goal"), by: of("ann"), at_ms: 1 },
        purpose: None,
        stage: None,
        constraints: (0..5).map(remark).collect(),
        steers: vec![],
        replan: vec![],
        turn: None,
        budget: Budget::default(),
        spent: Spent::default(),
        interrupt: None,
        end: None,
        opened_ms: 1,
        changed_ms: 1,
    };
    let mut commit = Commit::new(log);
    commit.records.push(Record::Task(Box::new(task)));
    commit
}
