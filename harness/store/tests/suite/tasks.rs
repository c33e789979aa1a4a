//! Sessions, tasks and questions, and what actions are tied to in them.

use env_contracts::Id;
use glovebox_events::{
    Budget, Event, Interrupt, PayloadRole, Question, Reach, Session, SessionEvent, Task, TaskEnd, TaskEvent, TaskState,
    What,
};
use glovebox_store::{
    ActionFilter, Commit, Condition, Conflict, EventFilter, EventsOf, Moved, Record, SessionFilter, Store, StoreError,
    TaskFilter, TaskSeen, Thing,
};

use super::conditions::{conflict, only_if};
use super::made::*;
use super::opened::*;

/// The commit makes no sense: what is wrong.
pub(crate) fn misuse(answer: Result<Vec<u64>, StoreError>) -> String {
    match answer {
        Err(StoreError::Problem(problem)) => problem.message,
        other => panic!("expected a problem, got {other:?}"),
    }
}

pub(crate) async fn sessions_form_trees(store: &dyn Store) {
    let mut top = session(&log("top"), None);
    let child = session(&log("child"), Some(&top));
    let grandchild = session(&log("grandchild"), Some(&child));
    let mut other = session(&log("other"), None);
    other.principal.user = of("dan");
    assert_eq!(store.session(&house(), &top.id).unwrap(), None);
    // Its log can be older than it is.
    store.commit(request(&action(&log("top"), "a"))).await.unwrap();
    assert_eq!(store.session(&house(), &top.id).unwrap(), None, "nobody opened it");
    for session in [&top, &child, &grandchild, &other] {
        store.commit(open_session(session)).await.unwrap();
    }
    assert_eq!(store.session(&house(), &child.id).unwrap(), Some(child.clone()));

    let list = |filter: &SessionFilter| store.sessions(&house(), filter).unwrap();
    let check = |filter: SessionFilter, expected: &[&str]| {
        let found: Vec<Id> = list(&filter).items.into_iter().map(|session: Session| session.id).collect();
        assert_eq!(found.iter().map(Id::as_str).collect::<Vec<_>>(), expected, "{filter:?}");
    };
    check(SessionFilter::default(), &["other", "grandchild", "child", "top"]);
    check(SessionFilter { user: Some(of("dan")), ..Default::default() }, &["other"]);
    check(SessionFilter { root: Some(of("top")), ..Default::default() }, &["grandchild", "child", "top"]);
    check(SessionFilter { root: Some(of("child")), ..Default::default() }, &["grandchild", "child"]);
    check(SessionFilter { root: Some(of("other")), user: Some(of("ann")), ..Default::default() }, &[]);
    check(SessionFilter { after: Some(of("no-such")), ..Default::default() }, &[]);
    let first = list(&SessionFilter { limit: 3, ..Default::default() });
    assert_eq!(first.next, Some(of("child")));
    check(SessionFilter { after: first.next, limit: 3, ..Default::default() }, &["top"]);

    // The one that is being stopped is found, until it has stopped.
    let interrupt = Interrupt {
        id: of("i"),
        reach: Reach::Tree,
        by: of("ann"),
        at_ms: 3000,
        grace_ms: 3000,
        reason: None,
        stopped_ms: None,
    };
    let mut stopping = child.clone();
    (stopping.version, stopping.interrupt) = (2, Some(interrupt.clone()));
    store.commit(session_commit(&stopping, SessionEvent::Interrupted { interrupt })).await.unwrap();
    assert_eq!(store.stopping_sessions(10).unwrap(), [stopping.clone()]);
    (stopping.version, stopping.interrupt.as_mut().unwrap().stopped_ms) = (3, Some(4000));
    store.commit(session_commit(&stopping, SessionEvent::Stopped { interrupt: of("i") })).await.unwrap();
    assert_eq!(store.stopping_sessions(10).unwrap(), []);

    // Only the next version, and only in its own log.
    let again = Conflict::Version { of: Thing::Session(of("top")), version: 1 };
    assert_eq!(conflict(store.commit(open_session(&top)).await), again);
    (top.version, top.closed) = (2, true);
    store.commit(session_commit(&top, SessionEvent::Closed { by: of("ann") })).await.unwrap();
    assert!(store.session(&house(), &of("top")).unwrap().unwrap().closed);
    let mut stray = session_commit(&other, SessionEvent::Closed { by: of("ann") });
    (stray.log, stray.conditions) = (log("top"), vec![]);
    assert!(misuse(store.commit(stray).await).contains("session `other` belongs to another log"));
    let mut unknown = Commit::new(log("unknown"));
    let what = What::Session { event: SessionEvent::Closed { by: of("ann") } };
    unknown.events.push(Event { at_ms: 1, action: None, what });
    assert!(misuse(store.commit(unknown).await).contains("session `unknown` was not opened"));
}

pub(crate) async fn tasks_are_listed_newest_first(store: &dyn Store) {
    let mut tasks: Vec<Task> =
        [("a", "s"), ("b", "t"), ("c", "s"), ("d", "s")].map(|(id, session)| task(&log(session), id)).into();
    for task in &tasks {
        store.commit(open_task(task)).await.unwrap();
    }
    let seen = store.task(&house(), &of("a")).unwrap();
    assert_eq!(seen, TaskSeen { record: Some(tasks[0].clone()), ..Default::default() });

    let list = |filter: &TaskFilter| store.tasks(&house(), filter).unwrap();
    let check = |filter: TaskFilter, expected: &[&str]| {
        let found: Vec<Id> = list(&filter).items.into_iter().map(|task| task.id).collect();
        assert_eq!(found.iter().map(Id::as_str).collect::<Vec<_>>(), expected, "{filter:?}");
    };
    check(TaskFilter::default(), &["d", "c", "b", "a"]);
    // What changes keeps its place; what is over is not open.
    store.commit(steer(&mut tasks[0], "faster")).await.unwrap();
    let end = TaskEnd { state: TaskState::Done, by: of("ann"), why: None, at_ms: 5000 };
    (tasks[2].version, tasks[2].state, tasks[2].end) = (2, end.state, Some(end.clone()));
    store.commit(task_commit(&tasks[2], TaskEvent::Ended { end })).await.unwrap();
    check(TaskFilter::default(), &["d", "c", "b", "a"]);
    check(TaskFilter { open: true, ..Default::default() }, &["d", "b", "a"]);
    check(TaskFilter { session: Some(of("s")), ..Default::default() }, &["d", "c", "a"]);
    check(TaskFilter { session: Some(of("s")), open: true, ..Default::default() }, &["d", "a"]);
    check(TaskFilter { session: Some(of("no-such")), ..Default::default() }, &[]);
    let first = list(&TaskFilter { limit: 2, ..Default::default() });
    assert_eq!(first.next, Some(of("c")));
    check(TaskFilter { after: first.next, limit: 2, ..Default::default() }, &["b", "a"]);

    // Those that were told to stop and have not.
    assert_eq!(store.stopping(10).unwrap(), []);
    for n in [1, 0] {
        store.commit(interrupt(&mut tasks[n], "i")).await.unwrap();
    }
    assert_eq!(store.stopping(10).unwrap(), tasks[..2]);
    assert_eq!(store.stopping(1).unwrap(), tasks[..1]);
    if let Some(interrupt) = &mut tasks[0].interrupt {
        interrupt.stopped_ms = Some(6000);
    }
    tasks[0].version += 1;
    store.commit(task_commit(&tasks[0], TaskEvent::Stopped { interrupt: of("i") })).await.unwrap();
    assert_eq!(store.stopping(10).unwrap(), tasks[1..2]);
}

pub(crate) async fn a_task_stays_in_its_session(store: &dyn Store) {
    let mut opened = task(&log("s"), "a");
    store.commit(open_task(&opened)).await.unwrap();
    // Neither its record nor its words nor its questions stand elsewhere.
    let elsewhere = task(&log("t"), "a");
    let mut moved = open_task(&elsewhere);
    moved.conditions.clear();
    assert!(misuse(store.commit(moved).await).contains("task `a` belongs to another session"));
    let asked = question(&elsewhere, "q", "colour");
    assert!(misuse(store.commit(open_question(&asked)).await).contains("belongs to another session"));
    let mut said = Commit::new(log("t"));
    said.payloads.push(text(&opened.id, PayloadRole::Remark, "psst"));
    assert!(misuse(store.commit(said).await).contains("belongs to another session"));
    let mut stray = steer(&mut opened, "faster");
    stray.log = log("t");
    assert!(misuse(store.commit(stray).await).contains("belongs to another log"));
    // What happens to what is not there did not happen.
    let mut unknown = steer(&mut task(&log("s"), "b"), "faster");
    (unknown.records, unknown.conditions) = (vec![], vec![]);
    assert!(misuse(store.commit(unknown).await).contains("task `b` was not opened"));
    let mut unasked = open_question(&question(&opened, "q", "colour"));
    unasked.records.clear();
    assert!(misuse(store.commit(unasked).await).contains("question `q` was not asked"));
    // A question stays with its task and its topic.
    let asked = question(&opened, "q", "colour");
    store.commit(open_question(&asked)).await.unwrap();
    let mut turned = Commit::new(log("s"));
    turned.records.push(Record::Question(Box::new(Question { topic: of("size"), ..asked })));
    assert!(misuse(store.commit(turned).await).contains("question `q` is already something else"));
}

pub(crate) async fn an_action_is_tied_to_where_its_task_is(store: &dyn Store) {
    let at = |goal, turn, interrupt: Option<&str>| {
        only_if(Condition::TaskAt { task: of("task-1"), goal, turn, interrupt: interrupt.map(of) })
    };
    macro_rules! check {
        ($goal:expr, $turn:expr, $interrupt:expr, $moved:expr) => {
            let answer = store.commit(at($goal, $turn, $interrupt)).await;
            match $moved {
                None => drop(answer.unwrap()),
                Some(moved) => assert_eq!(conflict(answer), Conflict::Task(moved)),
            }
        };
    }
    let fits: Option<Moved> = None;
    // Nobody opened it.
    check!(None, None, None, fits.clone());
    check!(Some(1), None, None, fits.clone());
    check!(Some(2), None, None, Some(Moved::Goal));
    check!(None, Some(1), None, Some(Moved::Turn));
    check!(None, None, Some("i"), Some(Moved::Interrupted));

    let mut opened = task(&log("s"), "task-1");
    store.commit(open_task(&opened)).await.unwrap();
    check!(None, None, None, fits.clone());
    check!(None, Some(1), None, Some(Moved::Turn));
    store.commit(open_turn(&mut opened)).await.unwrap();
    check!(Some(1), Some(1), None, fits.clone());
    check!(None, None, None, fits.clone());
    check!(None, Some(2), None, Some(Moved::Turn));
    // A turn that was closed is no longer there.
    opened.version += 1;
    opened.turn.as_mut().unwrap().closed = Some(of("next"));
    let closed = TaskEvent::TurnClosed { turn: 1, why: of("next") };
    store.commit(task_commit(&opened, closed)).await.unwrap();
    check!(None, Some(1), None, Some(Moved::Turn));
    check!(None, None, None, fits.clone());
    // Another goal, and then an interrupt: that comes first.
    opened.version += 1;
    opened.goal.version = 2;
    let changed = TaskEvent::GoalChanged { goal: opened.goal.clone() };
    store.commit(task_commit(&opened, changed)).await.unwrap();
    check!(None, None, None, Some(Moved::Goal));
    check!(Some(2), None, None, fits.clone());
    store.commit(interrupt(&mut opened, "i")).await.unwrap();
    check!(None, None, None, Some(Moved::Interrupted));
    check!(Some(2), None, Some("other"), Some(Moved::Interrupted));
    check!(Some(2), None, Some("i"), Some(Moved::Interrupted));
    // Nothing of it runs any more.
    (opened.version, opened.interrupt.as_mut().unwrap().stopped_ms) = (opened.version + 1, Some(4000));
    store.commit(task_commit(&opened, TaskEvent::Stopped { interrupt: of("i") })).await.unwrap();
    check!(Some(2), None, None, Some(Moved::Interrupted));
    check!(Some(2), None, Some("i"), fits);
    let end = TaskEnd { state: TaskState::Cancelled, by: of("ann"), why: None, at_ms: 5000 };
    (opened.version, opened.state, opened.end) = (opened.version + 1, end.state, Some(end.clone()));
    store.commit(task_commit(&opened, TaskEvent::Ended { end })).await.unwrap();
    check!(None, Some(9), None, Some(Moved::Ended));
}

pub(crate) async fn an_action_needs_what_is_left_of_a_budget(store: &dyn Store) {
    let mut opened = task(&log("s"), "task-1");
    let mut spent = action(&log("s"), "a");
    store.commit(open_task(&opened)).await.unwrap();
    store.commit(request(&spent)).await.unwrap();
    store.commit(claim(&mut spent, 2000)).await.unwrap();
    store.commit(end(&mut spent, 2001)).await.unwrap();
    let used = store.task(&house(), &of("task-1")).unwrap().used;
    assert_eq!((used.actions, used.run_us), (1, 7500));
    assert_eq!((used.output_bytes, used.egress_bytes, used.cost_micros, used.waiting_us), (11, 12, 13, 14));
    opened.spent.cost_micros = 4;
    type Bound = fn(u64) -> Budget;
    let bounds: [(&str, u64, Bound); 5] = [
        ("actions", 1, |most| Budget { actions: Some(most), ..Default::default() }),
        // Fractions of a millisecond are not counted.
        ("run_ms", 7, |most| Budget { run_ms: Some(most), ..Default::default() }),
        ("output_bytes", 11, |most| Budget { output_bytes: Some(most), ..Default::default() }),
        ("egress_bytes", 12, |most| Budget { egress_bytes: Some(most), ..Default::default() }),
        // What models cost counts too.
        ("cost_micros", 17, |most| Budget { cost_micros: Some(most), ..Default::default() }),
    ];
    for (part, used, budget) in bounds {
        for (most, fits) in [(used - 1, false), (used, false), (used + 1, true)] {
            (opened.version, opened.budget) = (opened.version + 1, budget(most));
            store.commit(task_commit(&opened, TaskEvent::StageSet { stage: None })).await.unwrap();
            let at = Condition::TaskAt { task: of("task-1"), goal: None, turn: None, interrupt: None };
            let answer = store.commit(only_if(at)).await;
            if fits {
                answer.unwrap();
            } else {
                assert_eq!(conflict(answer), Conflict::Task(Moved::Budget(part)), "{most}");
            }
        }
    }
}

pub(crate) async fn what_tools_say_they_used_adds_up_to_a_number(store: &dyn Store) {
    for id in ["a", "b"] {
        let mut action = action(&log("s"), id);
        store.commit(request(&action)).await.unwrap();
        let mut commit = end(&mut action, 2000);
        for event in &mut commit.events {
            if let What::Ended { end } = &mut event.what {
                (end.cost_micros, end.egress_bytes) = (u64::MAX, i64::MAX as u64);
            }
        }
        commit.records.clear();
        store.commit(commit).await.unwrap();
    }
    let used = store.task(&house(), &of("task-1")).unwrap().used;
    assert_eq!((used.cost_micros, used.egress_bytes), (i64::MAX as u64, i64::MAX as u64));
}

pub(crate) async fn the_story_of_a_task_is_told_in_order(store: &dyn Store) {
    let (mut ours, mut theirs) = (task(&log("s"), "task-1"), task(&log("s"), "task-2"));
    let (mut a, mut b) = (action(&log("s"), "a"), action(&log("s"), "b"));
    (a.turn, b.task) = (Some(1), of("task-2"));
    let mut asked = question(&ours, "q", "colour");
    store.commit(open_task(&ours)).await.unwrap();
    store.commit(open_task(&theirs)).await.unwrap();
    store.commit(open_turn(&mut ours)).await.unwrap();
    store.commit(request(&a)).await.unwrap();
    store.commit(request(&b)).await.unwrap();
    store.commit(open_question(&asked)).await.unwrap();
    store.commit(claim(&mut a, 2000)).await.unwrap();
    store.commit(steer(&mut theirs, "faster")).await.unwrap();
    store.commit(answer_question(&mut asked, "green")).await.unwrap();
    store.commit(end(&mut a, 2001)).await.unwrap();
    // The same name in another session: its actions are no part of the story.
    store.commit(request(&action(&log("t"), "c"))).await.unwrap();

    let story = |task: &str, after, limit| {
        let filter = EventFilter { of: EventsOf::Task(of(task)), after, limit };
        let events = store.events(&house(), &filter).unwrap();
        events.iter().map(|logged| (logged.seq, logged.event.what.name())).collect::<Vec<_>>()
    };
    let whole = [
        (1, "task-opened"),
        (3, "turn-opened"),
        (4, "requested"),
        (6, "question-opened"),
        (7, "claimed"),
        (9, "question-answered"),
        (10, "ended"),
    ];
    assert_eq!(story("task-1", 0, 0), whole);
    assert_eq!(story("task-1", 0, 2), whole[..2]);
    assert_eq!(story("task-1", 3, 3), whole[2..5]);
    assert_eq!(story("task-1", 5, 0), whole[3..]);
    assert_eq!(story("task-1", 10, 0), []);
    assert_eq!(story("task-1", 99, 0), []);
    assert_eq!(story("task-2", 0, 0), [(2, "task-opened"), (5, "requested"), (8, "steered")]);
    assert_eq!(story("no-such", 0, 0), []);

    // Its actions, turn by turn.
    let of_turn = |turn| ActionFilter { task: Some(of("task-1")), turn: Some(turn), ..Default::default() };
    assert_eq!(store.actions(&house(), &of_turn(1)).unwrap().items, [a]);
    assert_eq!(store.actions(&house(), &of_turn(2)).unwrap().items, []);
}
