//! Who looks over all of a tenant, and what stays with each user all the same.

use std::sync::Arc;

use env_contracts::{Code, Id, Principal, Problem};
use glovebox_events::{ActionState, Budget, Grant, Question, TaskState};
use glovebox_plane::{ActionService, Asking, Interrupting, NewTask, OpenTurn, Saying, Target, Telling, Unwatched};
use glovebox_runtime::Stop;
use glovebox_store::{ActionFilter, QuestionFilter, SessionFilter, TaskFilter};

use crate::fake::WRITE;
use crate::house::{House, Setup, agent, approval, id, name, person};
use crate::loops::{about, called, coder, picks};

/// What a user's loop has: a session, a task, an action that waits, one that
/// ended, a question, and a grant.
struct Theirs {
    house: House,
    waits: Id,
    ended: Id,
    question: Question,
    grant: Grant,
}

fn theirs() -> Theirs {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    house.open_session(&coder(), "s1", None);
    house.open_task();
    let question = house.ask(about("window", None)).unwrap().question;
    let ended = house.waits("fake.write", r#"{"count":1}"#);
    let grant = house.answer(approval(&ended), "session", None).unwrap().grant.unwrap();
    house.resume(&ended);
    let mut submission = house.asked("fake.write", r#"{"count":1}"#);
    submission.principal.chain = vec![name("other")];
    submission.context.session = id("s2");
    submission.context.task = id("t2");
    let waits = crate::house::waiting(house.send(submission).unwrap()).id;
    Theirs { house, waits, ended: ended.id, question, grant }
}

type Outcomes = Vec<(&'static str, Result<(), Code>)>;

/// All that is looked at.
fn reads(theirs: &Theirs, service: &ActionService, who: &Principal) -> Outcomes {
    fn one<T>(answer: Result<T, Problem>) -> Result<(), Code> {
        answer.map(drop).map_err(|problem| problem.code)
    }
    fn listed<T>(items: &[T]) -> Result<(), Code> {
        // A list does not say what it leaves out.
        if items.is_empty() { Err(Code::Usage) } else { Ok(()) }
    }
    let log = theirs.house.log(&["s1"]);
    let log = log.iter().filter(|event| event.log.session == id("s1"));
    let seen: Vec<bool> = log.map(|event| service.may_see(who, event).unwrap()).collect();
    assert!(seen.iter().all(|one| *one == seen[0]), "{who:?}: {seen:?}");
    vec![
        ("action", one(service.action(who, &theirs.waits))),
        ("events", one(service.events(who, &theirs.waits, 0))),
        ("session", one(service.session(who, &id("s1")))),
        ("task", one(service.task(who, &id("t1")))),
        ("trace", one(service.trace(who, &id("t1")))),
        ("question_of", one(service.question_of(who, &theirs.question.id))),
        ("session_events", one(service.session_events(who, &id("s1"), 0, 0))),
        ("session_events of s2", one(service.session_events(who, &id("s2"), 0, 0))),
        ("actions", listed(&service.actions(who, ActionFilter::default()).unwrap().items)),
        ("sessions", listed(&service.sessions(who, SessionFilter::default()).unwrap().items)),
        ("tasks", listed(&service.tasks(who, &TaskFilter::default()).unwrap().items)),
        ("questions", listed(&service.questions(who, &QuestionFilter::default()).unwrap().items)),
        ("grants", listed(&service.grants(who, true).unwrap())),
        ("may_see", if seen[0] { Ok(()) } else { Err(Code::Usage) }),
    ]
}

fn none(outcomes: &Outcomes) -> bool {
    outcomes.iter().all(|(_, outcome)| outcome.is_err())
}

#[test]
fn who_looks_over_a_tenant_sees_what_every_user_has() {
    let theirs = theirs();
    let (plain, over) = (&theirs.house.service, theirs.house.service.overseeing());
    let all: Vec<_> = reads(&theirs, &over, &person("op")).into_iter().filter(|(_, seen)| seen.is_err()).collect();
    assert_eq!(all, [], "and yet it can't be seen");
    let foreign = reads(&theirs, plain, &person("op"));
    assert!(none(&foreign), "{foreign:?}");
    let of = |service: &ActionService| service.attention(&person("op"), &id("s1")).map(|seen| seen.approvals);
    assert_eq!(of(&over).unwrap(), 1);
    assert_eq!(of(plain).unwrap_err().code, Code::SessionUnknown);
}

#[test]
fn what_an_agent_sees_does_not_change() {
    let theirs = theirs();
    let (plain, over) = (&theirs.house.service, theirs.house.service.overseeing());
    let chained = Principal { chain: vec![name("coder")], ..person("op") };
    for foreign in [agent("op", "coder"), agent("op", "other"), chained] {
        let seen = reads(&theirs, &over, &foreign);
        assert!(none(&seen), "{foreign:?}: {seen:?}");
        for (what, refused) in acts(&theirs, &over, &foreign) {
            assert!(refused.is_err(), "{foreign:?} can {what}");
        }
    }
    for own in [coder(), agent("u", "other"), called("deep", &["coder"])] {
        let ids = |service: &ActionService| {
            let actions = service.actions(&own, ActionFilter::default()).unwrap().items;
            let events = service.session_events(&own, &id("s1"), 0, 0).map(|events| events.len());
            (actions.into_iter().map(|action| action.id).collect::<Vec<_>>(), events.map_err(|problem| problem.code))
        };
        assert_eq!(ids(plain), ids(&over), "{own:?}");
    }
}

#[test]
fn what_another_tenant_has_is_not_there() {
    let theirs = theirs();
    let over = theirs.house.service.overseeing();
    for user in ["u", "op"] {
        let stranger = Principal { tenant: name("elsewhere"), ..person(user) };
        let seen = reads(&theirs, &over, &stranger);
        assert!(none(&seen), "{seen:?}");
        for (what, refused) in acts(&theirs, &over, &stranger) {
            assert!(refused.is_err(), "{user} can {what}");
        }
        assert_eq!(over.attention(&stranger, &id("s1")).unwrap(), glovebox_plane::Attention::default());
    }
    let log = theirs.house.log(&["s1", "s2"]);
    assert!(log.iter().all(|event| event.event.what.name() != "stop-asked"), "nothing was stopped");
}

/// All that stops, steers, answers or takes back.
fn acts(theirs: &Theirs, service: &ActionService, who: &Principal) -> Outcomes {
    fn one<T>(answer: Result<T, Problem>) -> Result<(), Code> {
        answer.map(drop).map_err(|problem| problem.code)
    }
    let house = &theirs.house;
    let interrupting = |target| Interrupting { target, grace: None, reason: None };
    let (t1, s1, s2) = (&id("t1"), &id("s1"), &id("s2"));
    let channel = name("test");
    let reply = service.answer_question(who, &theirs.question.id, picks("one"), &channel);
    vec![
        ("say", one(house.block_on(service.say(who, t1, Saying::Constrain("no new dependency"))))),
        ("steer", one(house.block_on(service.steer(who, s1, None, "faster")))),
        ("steer where nobody opened a task", one(house.block_on(service.steer(who, s2, None, "faster")))),
        ("answer", one(house.block_on(reply))),
        ("revoke", one(house.block_on(service.revoke(who, &theirs.grant.id)))),
        ("cancel", one(house.block_on(service.cancel(who, &theirs.waits, "cancelled")))),
        (
            "interrupt an action",
            one(house.block_on(service.interrupt(who, interrupting(Target::Action(theirs.ended.clone()))))),
        ),
        ("interrupt a session", one(house.block_on(service.interrupt(who, interrupting(Target::Session(s2.clone())))))),
        ("interrupt a task", one(house.block_on(service.interrupt(who, interrupting(Target::Task(t1.clone())))))),
    ]
}

#[test]
fn who_looks_over_a_tenant_stops_steers_and_takes_back() {
    let theirs = theirs();
    let house = &theirs.house;
    for (what, foreign) in acts(&theirs, &house.service, &person("op")) {
        assert!(foreign.is_err(), "{what}");
    }
    let over = house.service.overseeing();
    for (what, done) in acts(&theirs, &over, &person("op")) {
        assert_eq!(done, Ok(()), "{what}");
    }
    let stopped = house.now(&theirs.waits);
    assert_eq!((stopped.state, stopped.stop.unwrap().by), (ActionState::Cancelled, name("op")));
    assert_eq!(house.task().state, TaskState::Cancelled);
    assert_eq!(house.task().constraints[0].by, name("op"));
    assert_eq!(house.question(&theirs.question.id).answer.unwrap().by, name("op"));
    // The task that was opened for the remark is the user's, and their agent
    // works in it.
    let opened = house.task_named("s2");
    assert_eq!((&opened.principal, &opened.steers[0].by), (&person("u"), &name("op")));
    house.audit(&["s1", "s2", "operator"]);
}

#[test]
fn what_is_done_in_a_users_name_stays_with_them() {
    let theirs = theirs();
    let house = &theirs.house;
    let (over, op) = (house.service.overseeing(), person("op"));
    let (t1, s1) = (id("t1"), id("s1"));
    house.answer(house.now(&theirs.waits).approval.map(|asked| asked.id).as_ref().unwrap(), "once", None).unwrap();
    let before = house.ground.runs().len();
    let stop = Stop::default();
    let resumed = over.resume(&op, &theirs.waits, Asking::Leave, Arc::new(Unwatched), &stop);
    assert_eq!(house.block_on(resumed).unwrap_err().code, Code::ActionUnknown);
    assert_eq!(house.ground.runs().len(), before, "nothing ran");
    assert_eq!(house.block_on(over.erase(&op, &theirs.ended)).unwrap_err().code, Code::ActionUnknown);
    let open = OpenTurn { task: t1.clone(), expected_turn: 0, goal_version: 1, key: None };
    assert_eq!(house.block_on(over.open_turn(&op, open)).unwrap_err().code, Code::TaskUnknown);
    let ended = over.end_task(&op, &t1, TaskState::Done, None);
    assert_eq!(house.block_on(ended).unwrap_err().code, Code::TaskUnknown);
    assert_eq!(house.block_on(over.close_session(&op, &s1)).unwrap_err().code, Code::SessionUnknown);
    assert_eq!(house.block_on(over.ask(&op, about("colour", None))).unwrap_err().code, Code::TaskUnknown);
    let telling =
        Telling { turn: None, parents: Vec::new(), what: glovebox_events::Told::Text, content: Some("so".into()) };
    assert_eq!(house.block_on(over.tell(&op, &t1, telling)).unwrap_err().code, Code::TaskUnknown);
    let new = NewTask { id: None, ..crate::loops::new_task("x", "s1", Budget::default()) };
    assert_eq!(house.block_on(over.open_task(&op, new)).unwrap_err().code, Code::SessionUnknown);
    let mut submission = house.asked("fake.write", "{}");
    submission.principal = op;
    let sent = house.block_on(over.submit(submission, Arc::new(Unwatched), &stop));
    assert_eq!(sent.unwrap_err().code, Code::SessionUnknown);
    // All of it is the user's to do.
    let user = person("u");
    let resumed = over.resume(&user, &theirs.waits, Asking::Leave, Arc::new(Unwatched), &stop);
    house.block_on(resumed).unwrap();
    assert_eq!(house.ground.ran(&theirs.waits), 1);
    house.block_on(over.close_session(&user, &s1)).unwrap();
}
