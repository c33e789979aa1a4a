//! Sessions, tasks and turns: the step boundary, and what it voids.

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{ActionState, ApprovalState, QuestionState, Told};
use glovebox_plane::{Asking, NewSession, OpenTurn, Saying, Telling, Unwatched};
use glovebox_runtime::Stop;
use glovebox_store::{EventFilter, EventsOf};

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, approval, done, id, name, person, waiting};
use crate::loops::{called, coder, new_task};

/// Whoever is asked can say yes, for more than once too.
pub(crate) const ASK: &str = "permit (principal, action, resource) when { context has approval };\n\
     permit (principal, action, resource) when { context.effects == \"none\" };";

fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ASK));
    house.runs_well();
    house
}

#[test]
fn sessions_and_tasks_are_opened_once_seen_by_their_own_and_closed_for_good() {
    let house = house();
    let task = house.open_task();
    assert_eq!(house.open_task(), task, "the same again is the same");
    let mut other = new_task("t1", "s1", task.budget);
    other.goal = "something else".into();
    let taken = house.block_on(house.service.open_task(&coder(), other)).unwrap_err();
    assert_eq!(taken.code, Code::TaskConflict);
    let session = house.open_session(&coder(), "s1", None);
    assert_eq!(session.id, id("s1"));
    let theirs =
        house.block_on(house.service.open_session(&person("v"), NewSession { id: Some(id("s1")), parent: None }));
    assert_eq!(theirs.unwrap_err().code, Code::SessionConflict);
    for foreign in [person("v"), agent("u", "other")] {
        assert_eq!(house.service.session(&foreign, &id("s1")).unwrap_err().code, Code::SessionUnknown);
        let open = OpenTurn { task: id("t1"), expected_turn: 0, goal_version: 1, key: None };
        assert_eq!(house.block_on(house.service.open_turn(&foreign, open)).unwrap_err().code, Code::TaskUnknown);
        let mut theirs = house.asked("fake.tool", "{}");
        theirs.principal = foreign;
        assert_eq!(house.send(theirs).unwrap_err().code, Code::SessionUnknown);
    }
    assert!(house.service.session(&person("u"), &id("s1")).is_ok(), "a person sees what is done in their name");
    house.block_on(house.service.close_session(&coder(), &id("s1"))).unwrap();
    assert_eq!(house.send(house.asked("fake.tool", "{}")).unwrap_err().code, Code::SessionConflict);
    assert_eq!(house.try_turn(0, 1).unwrap_err().code, Code::SessionConflict);
    let late = house.block_on(house.service.open_task(&coder(), new_task("t2", "s1", task.budget)));
    assert_eq!(late.unwrap_err().code, Code::SessionConflict);
    house.audit(&["s1"]);
}

#[test]
fn a_turn_opens_from_the_one_before_for_the_goal_of_now_and_from_nowhere_else() {
    let house = house();
    house.open_task();
    assert_eq!(house.try_turn(1, 1).unwrap_err().code, Code::TurnConflict, "there is no turn 1");
    assert_eq!(house.turn().turn, 1);
    assert_eq!(house.try_turn(0, 1).unwrap_err().code, Code::TurnConflict, "it is stale");
    assert_eq!(house.try_turn(1, 2).unwrap_err().code, Code::GoalChanged, "there is no goal 2");
    house.say(Saying::Goal("something else"));
    assert_eq!(house.try_turn(1, 1).unwrap_err().code, Code::GoalChanged, "it is the goal of before");
    let start = house.try_turn(1, 2).unwrap();
    assert_eq!((start.turn, start.goal.version, start.goal.text.as_deref()), (2, 2, Some("something else")));
    assert_eq!(house.task().turn.unwrap().number, 2);
    house.audit(&["s1"]);
}

#[test]
fn a_turn_whose_answer_was_lost_is_had_again_by_its_key_and_opens_no_second() {
    let house = house();
    house.open_task();
    house.say(Saying::Steer("look at the tests first"));
    let open = |key: &str, expected_turn| {
        let open = OpenTurn { task: id("t1"), expected_turn, goal_version: 1, key: Some(name(key)) };
        house.block_on(house.service.open_turn(&coder(), open))
    };
    let first = open("k1", 0).unwrap();
    assert!(!first.repeated && first.steers.len() == 1);
    let again = open("k1", 0).unwrap();
    assert_eq!(again, glovebox_plane::TurnStart { repeated: true, ..first });
    assert_eq!(open("k2", 0).unwrap_err().code, Code::TurnConflict, "another call is another turn");
    assert_eq!(open("k2", 1).unwrap().turn, 2);
    assert_eq!(open("k1", 0).unwrap_err().code, Code::TurnConflict, "that turn is over");
    house.audit(&["s1"]);
}

#[test]
fn the_next_turn_ends_what_waits_in_the_one_before_and_takes_its_cards_away() {
    let house = house();
    house.open_task();
    house.turn();
    let waits = waiting(house.send(house.in_turn("fake.write", r#"{"count":1}"#, 1)).unwrap());
    let outside = house.waits("fake.write", r#"{"count":2}"#);
    house.turn();
    assert_eq!(house.now(&waits.id).state, ActionState::Cancelled);
    assert!(!house.pending().contains(approval(&waits)), "its card is still there");
    assert!(house.pending().contains(approval(&outside)), "what belongs to the task alone goes on");
    let seen = done(house.resume(&waits));
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Interrupted, Some(Code::TurnConflict)));
    assert_eq!(seen.outcome.which.as_deref(), Some("turn-closed"));
    let late = house.answer(approval(&waits), "once", None).unwrap_err();
    assert_eq!((late.code, late.retryable), (Code::ApprovalClosed, false));
    assert!(house.ground.runs().is_empty());
    house.audit(&["s1"]);
}

#[test]
fn whoever_waits_in_a_turn_is_woken_with_an_outcome_of_its_own() {
    let house = house();
    house.open_task();
    house.turn();
    let mut submission = house.in_turn("fake.write", "{}", 1);
    submission.asking = Asking::Wait;
    let stop = Stop::default();
    let submit = house.service.submit(submission, std::sync::Arc::new(Unwatched), &stop);
    let next = async {
        let mut changes = house.store.changes().unwrap();
        while house.pending().is_empty() {
            changes.changed().await.unwrap();
        }
        let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 1, key: None };
        Box::pin(house.service.open_turn(&coder(), open)).await.unwrap()
    };
    let (submitted, _) = house.block_on(async { tokio::join!(submit, next) });
    assert_eq!(done(submitted.unwrap()).outcome.to_string(), "interrupted(turn-closed)");
    house.audit(&["s1"]);
}

#[test]
fn nothing_is_asked_or_begun_in_a_turn_that_is_over() {
    let house = house();
    house.open_task();
    assert_eq!(house.send(house.in_turn("fake.tool", "{}", 1)).unwrap_err().code, Code::TurnConflict);
    house.turn();
    done(house.send(house.in_turn("fake.tool", "{}", 1)).unwrap());
    house.block_on(house.service.close_turn(&coder(), &id("t1"), 1)).unwrap();
    for tool in ["fake.tool", "fake.write"] {
        assert_eq!(house.send(house.in_turn(tool, "{}", 1)).unwrap_err().code, Code::TurnConflict, "{tool}");
    }
    assert_eq!(house.ground.runs().len(), 1);
    // Twice is once; another turn is none of its.
    house.block_on(house.service.close_turn(&coder(), &id("t1"), 1)).unwrap();
    let other = house.block_on(house.service.close_turn(&coder(), &id("t1"), 2)).unwrap_err();
    assert_eq!(other.code, Code::TurnConflict);
    assert_eq!(house.turn().turn, 2);
    house.audit(&["s1"]);
}

#[test]
fn a_grant_for_the_turn_ends_with_it_and_the_loop_is_told() {
    let house = house();
    house.open_task();
    house.turn();
    let first = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    let grant = house.answer(approval(&first), "turn", None).unwrap().grant.unwrap();
    assert_eq!((grant.turn, grant.task), (Some(1), Some(id("t1"))));
    done(house.resume(&first));
    done(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    // Outside of the turn it gives nothing.
    waiting(house.send(house.asked("fake.write", "{}")).unwrap());
    let start = house.turn();
    let revoked: Vec<_> = start.permissions.revoked.iter().map(|grant| &grant.id).collect();
    assert_eq!((revoked, start.permissions.granted.len()), (vec![&grant.id], 0));
    waiting(house.send(house.in_turn("fake.write", "{}", 2)).unwrap());
    assert_eq!(house.ground.runs().len(), 2);
    // A grant for the task goes on, and is told of once.
    let second = waiting(house.send(house.in_turn("fake.write", r#"{"count":2}"#, 2)).unwrap());
    house.ground.clock.set(house.ground.clock.ms() + 1);
    let grant = house.answer(approval(&second), "task", None).unwrap().grant.unwrap();
    house.ground.clock.set(house.ground.clock.ms() + 1);
    let start = house.turn();
    let granted: Vec<_> = start.permissions.granted.iter().map(|grant| &grant.id).collect();
    assert_eq!((granted, start.permissions.revoked.len()), (vec![&grant.id], 0));
    house.ground.clock.set(house.ground.clock.ms() + 1);
    assert_eq!(house.turn().permissions, glovebox_plane::PermissionDiff::default());
    done(house.send(house.in_turn("fake.write", r#"{"count":2}"#, 4)).unwrap());
    house.audit(&["s1"]);
}

#[test]
fn what_a_person_approved_outlives_its_turn() {
    let house = house();
    house.open_task();
    house.turn();
    let action = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    house.approve(&action);
    house.turn();
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    assert_eq!(house.ground.ran(&action.id), 1);
    house.audit(&["s1"]);
}

/// The process that opened the next turn died before it ended what waited.
#[test]
fn an_approval_of_a_turn_that_is_over_gives_nothing_even_where_nobody_took_it_away() {
    let house = house();
    house.open_task();
    house.turn();
    let action = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    let dying = House::open_over(&house.ground, &Setup::of(&[WRITE, TOOL]).rules(ASK), |store| {
        crate::between::Between::over(store, |moment| moment != crate::between::Moment::After(1))
    });
    let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 1, key: None };
    dying.block_on(dying.service.open_turn(&coder(), open)).unwrap_err();
    assert!(house.pending().contains(approval(&action)), "this test proves nothing");
    let late = house.answer(approval(&action), "once", None).unwrap_err();
    assert_eq!((late.code, late.retryable), (Code::TurnConflict, false));
    assert_eq!(house.now(&action.id).state, ActionState::Cancelled);
    assert_eq!(done(house.resume(&action)).outcome.to_string(), "interrupted(turn-closed)");
    assert!(house.ground.runs().is_empty() && house.pending().is_empty());
    house.audit(&["s1"]);
}

#[test]
fn everything_a_loop_records_is_in_one_log_with_its_causes_and_in_its_turn() {
    let house = house();
    house.open_task();
    house.turn();
    let tell = |what: Told, parents: &[env_contracts::Id], turn| {
        let telling = Telling { turn, parents: parents.to_vec(), what, content: Some("words".into()) };
        house.block_on(house.service.tell(&coder(), &id("t1"), telling))
    };
    let context = Some(env_contracts::Digest::of(b"what was in it"));
    let call = Told::ModelCall { model: "m".into(), input_tokens: 10, output_tokens: 5, cost_micros: 7, context };
    let thought = tell(call.clone(), &[], Some(1)).unwrap();
    let plan = tell(Told::Plan, std::slice::from_ref(&thought.id), Some(1)).unwrap();
    let mut submission = house.in_turn("fake.tool", "{}", 1);
    submission.request.parents = vec![plan.id.clone()];
    let seen = done(house.send(submission).unwrap());
    for what in [Told::Text, Told::Progress, Told::Todo] {
        tell(what, std::slice::from_ref(&seen.action_id), Some(1)).unwrap();
    }
    let found = Told::Verified { holds: true, revision: Some("r1".into()), condition: None, goal: 1 };
    tell(found, std::slice::from_ref(&seen.action_id), None).unwrap();
    assert_eq!(tell(Told::Text, &[], Some(2)).unwrap_err().code, Code::TurnConflict);
    let ahead = Told::Verified { holds: true, revision: None, condition: None, goal: 2 };
    assert_eq!(tell(ahead, &[], None).unwrap_err().code, Code::GoalChanged);
    assert_eq!(tell(Told::Feedback, &[], None).unwrap_err().code, Code::NotEligible, "nobody praises themselves");
    tell(call, &[], Some(1)).unwrap();
    assert_eq!((house.task().spent.calls, house.task().spent.cost_micros), (2, 14));
    let over = glovebox_events::TaskState::Done;
    house.block_on(house.service.end_task(&coder(), &id("t1"), over, Some("it works"))).unwrap();
    assert_eq!(tell(Told::Text, &[], None).unwrap_err().code, Code::TaskClosed);
    tell(Told::Outcome, &[], None).unwrap();
    let praise = Telling { turn: None, parents: Vec::new(), what: Told::Feedback, content: Some("good".into()) };
    house.block_on(house.service.tell(&person("u"), &id("t1"), praise)).unwrap();
    let filter = EventFilter { of: EventsOf::Task(id("t1")), after: 0, limit: 0 };
    let events = house.store.events(&name("local"), &filter).unwrap();
    let kinds: Vec<_> = events.iter().map(|logged| logged.event.what.name()).collect();
    let told = ["model-call", "plan", "text", "progress", "todo", "verified", "outcome", "feedback", "requested"];
    assert!(told.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    house.audit(&["s1"]);
}

#[test]
fn a_task_that_ended_ends_what_waits_in_it_and_takes_nothing_new() {
    let house = house();
    house.open_task();
    house.turn();
    let (waits, approved) = (house.waits("fake.write", "{}"), house.waits("fake.write", r#"{"count":1}"#));
    house.approve(&approved);
    let granted = house.waits("fake.write", r#"{"count":2}"#);
    let grant = house.answer(approval(&granted), "task", None).unwrap().grant.unwrap();
    done(house.resume(&granted));
    let state = glovebox_events::TaskState::Failed;
    house.block_on(house.service.end_task(&coder(), &id("t1"), state, None)).unwrap();
    let open = glovebox_events::TaskState::Open;
    let twice = house.block_on(house.service.end_task(&coder(), &id("t1"), open, None)).unwrap_err();
    assert_eq!(twice.code, Code::Usage);
    for action in [&waits, &approved] {
        assert_eq!(done(house.resume(action)).outcome.to_string(), "interrupted(task-ended)");
    }
    assert!(house.store.grant(&name("local"), &grant.id).unwrap().unwrap().revoked.is_some());
    assert_eq!(house.send(house.asked("fake.tool", "{}")).unwrap_err().code, Code::TaskClosed);
    assert_eq!(house.try_turn(1, 1).unwrap_err().code, Code::TaskClosed);
    assert_eq!(house.task().turn.unwrap().closed, Some(name("ended")));
    assert_eq!(house.now(&waits.id).approval.unwrap().state, ApprovalState::Withdrawn);
    house.audit(&["s1"]);
}

#[test]
fn the_stage_of_now_is_what_policy_sees_at_the_claim() {
    let rules = "permit (principal, action, resource) when { context has approval };\n\
         forbid (principal, action, resource) when { context.task has stage && context.task.stage == \"frozen\" };";
    let house = House::of(&Setup::of(&[WRITE]).rules(rules));
    house.on_run(|_, _| panic!("it ran although everything is frozen"));
    house.open_task();
    let action = house.waits("fake.write", "{}");
    house.approve(&action);
    house.say(Saying::Stage(Some("frozen")));
    assert_eq!(done(house.resume(&action)).outcome.kind, OutcomeKind::PolicyDenied);
    house.audit(&["s1"]);
}

#[test]
fn a_tree_of_sessions_has_an_end_and_the_parent_sees_the_child() {
    let house = house();
    house.open_session(&coder(), "s1", None);
    house.open_session(&called("helper", &["coder"]), "s2", Some("s1"));
    assert_eq!(house.service.session(&coder(), &id("s2")).unwrap().root, id("s1"));
    let above = house.service.session(&called("helper", &["coder"]), &id("s1"));
    assert_eq!(above.unwrap_err().code, Code::SessionUnknown, "a child does not look over its parent's shoulder");
    let open = |number: usize| {
        let new = NewSession { id: Some(id(&format!("s{number}"))), parent: Some(id(&format!("s{}", number - 1))) };
        house.block_on(house.service.open_session(&called("helper", &["coder"]), new))
    };
    let deep = (3..12).map(open).find_map(Result::err).unwrap();
    assert_eq!(deep.code, Code::Usage);
    house.block_on(house.service.close_session(&coder(), &id("s1"))).unwrap();
    let late = NewSession { id: None, parent: Some(id("s1")) };
    let late = house.block_on(house.service.open_session(&coder(), late)).unwrap_err();
    assert_eq!(late.code, Code::SessionConflict);
    house.audit(&["s1", "s2"]);
}

/// What a loop is told is under way is what is: nothing that ends with this very
/// turn, nothing whose process is gone, and all that runs.
#[test]
fn a_turn_is_told_of_what_really_goes_on() {
    let house = house();
    house.open_task();
    house.turn();
    let waits = waiting(house.send(house.in_turn("fake.write", "{}", 1)).unwrap());
    let approved = waiting(house.send(house.in_turn("fake.write", r#"{"count":1}"#, 1)).unwrap());
    house.approve(&approved);
    let start = house.try_turn(1, 1).unwrap();
    let open: Vec<_> = start.open.iter().map(|open| (open.id.clone(), open.state)).collect();
    assert_eq!(open, [(approved.id.clone(), ActionState::Authorized)]);
    assert_eq!(house.now(&waits.id).state, ActionState::Cancelled);
    // The same key from another turn is no repetition.
    let open = |expected_turn| {
        let open = OpenTurn { task: id("t1"), expected_turn, goal_version: 1, key: Some(name("k")) };
        house.block_on(house.service.open_turn(&coder(), open))
    };
    open(2).unwrap();
    assert!(open(2).unwrap().repeated);
    assert_eq!(open(3).unwrap_err().code, Code::KeyConflict);
    house.audit(&["s1"]);
}

#[test]
fn a_closed_session_has_nothing_left_that_waits_or_holds() {
    let house = house();
    house.open_task();
    let (approved, granted, waits) = (
        house.waits("fake.write", r#"{"count":1}"#),
        house.waits("fake.write", r#"{"count":2}"#),
        house.waits("fake.write", r#"{"count":3}"#),
    );
    house.approve(&approved);
    house.answer(approval(&granted), "session", None).unwrap();
    let asked = house.ask(crate::loops::about("window", None)).unwrap().question.id;
    house.block_on(house.service.close_session(&person("u"), &id("s1"))).unwrap();
    assert!(house.pending().is_empty() && house.open_questions().is_empty());
    assert!(house.service.grants(&person("u"), false).unwrap().is_empty());
    assert_eq!(house.question(&asked).state, QuestionState::Withdrawn);
    for action in [&granted, &approved, &waits] {
        let seen = done(house.resume(action));
        assert_eq!(
            (seen.outcome.code, seen.outcome.which.as_deref()),
            (Some(Code::SessionConflict), Some("session-closed"))
        );
    }
    let said = house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Steer("x")));
    assert_eq!(said.unwrap_err().code, Code::SessionConflict);
    assert!(house.ground.runs().is_empty());
    house.audit(&["s1"]);
}

#[test]
fn what_says_nothing_is_not_recorded() {
    let house = house();
    house.open_task();
    for content in [None, Some(String::new()), Some("  ".to_owned())] {
        let telling = Telling { turn: None, parents: Vec::new(), what: Told::Text, content };
        let refused = house.block_on(house.service.tell(&coder(), &id("t1"), telling)).unwrap_err();
        assert_eq!(refused.code, Code::Usage);
    }
}
