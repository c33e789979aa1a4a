//! Questions, what was said, and who may see it.

use env_contracts::{Digest, Id};
use glovebox_events::{AskedOf, LogKey, Owner, Question, QuestionEvent, QuestionState, TaskEvent, What};
use glovebox_store::{
    Commit, Condition, Conflict, Content, Due, DueOf, EventFilter, EventsOf, QuestionFilter, Record, SessionFilter,
    Store, TaskFilter, TaskSeen, Thing,
};

use super::conditions::{conflict, only_if};
use super::made::*;
use super::opened::*;
use super::tasks::misuse;

pub(crate) async fn questions_are_found_by_who_has_to_answer_them(store: &dyn Store) {
    let (one, two) = (task(&log("s"), "one"), task(&log("t"), "two"));
    store.commit(open_task(&one)).await.unwrap();
    store.commit(open_task(&two)).await.unwrap();
    let mut asked = vec![
        question(&one, "q-1", "colour"),
        Question { to: AskedOf::Root, root: of("top"), ..question(&two, "q-2", "colour") },
        Question { expires_ms: None, ..question(&one, "q-3", "size") },
    ];
    for question in &asked {
        store.commit(open_question(question)).await.unwrap();
    }
    assert_eq!(store.question(&house(), &of("q-2")).unwrap(), Some(asked[1].clone()));
    assert_eq!(store.question(&house(), &of("q-4")).unwrap(), None);
    assert_eq!(store.task(&house(), &of("one")).unwrap().used.asks, 2);

    let list = |filter: &QuestionFilter| store.questions(&house(), filter).unwrap();
    let check = |filter: QuestionFilter, expected: &[&str]| {
        let found: Vec<Id> = list(&filter).items.into_iter().map(|question| question.id).collect();
        assert_eq!(found.iter().map(Id::as_str).collect::<Vec<_>>(), expected, "{filter:?}");
    };
    let pending = || QuestionFilter { states: vec![QuestionState::Pending], ..Default::default() };
    let untold = || QuestionFilter { untold: true, ..Default::default() };
    check(QuestionFilter::default(), &["q-1", "q-2", "q-3"]);
    check(QuestionFilter { task: Some(of("one")), ..pending() }, &["q-1", "q-3"]);
    check(QuestionFilter { root: Some(of("top")), ..pending() }, &["q-2"]);
    check(QuestionFilter { root: Some(of("s")), ..pending() }, &["q-1", "q-3"]);
    check(QuestionFilter { to: Some(AskedOf::Person), ..pending() }, &["q-1", "q-3"]);
    check(QuestionFilter { to: Some(AskedOf::Root), ..pending() }, &["q-2"]);
    check(untold(), &[]);
    let first = list(&QuestionFilter { limit: 2, ..Default::default() });
    assert_eq!(first.next, Some(of("q-2")));
    check(QuestionFilter { after: first.next, limit: 2, ..Default::default() }, &["q-3"]);
    check(QuestionFilter { after: Some(of("no-such")), ..Default::default() }, &[]);

    // What ends at a moment is found at that moment, approvals among it.
    let mut held = action(&log("s"), "a");
    store.commit(request(&held)).await.unwrap();
    store.commit(ask(&mut held, approval("p", b"i", 500))).await.unwrap();
    let approval = Due { tenant: house(), what: DueOf::Approval { action: of("a"), approval: of("p") } };
    let question = |id| Due { tenant: house(), what: DueOf::Question(of(id)) };
    assert_eq!(store.expiring(60_999, 10).unwrap(), std::slice::from_ref(&approval));
    assert_eq!(store.expiring(61_000, 2).unwrap(), [approval.clone(), question("q-1")]);
    assert_eq!(store.expiring(99_000, 10).unwrap(), [approval.clone(), question("q-1"), question("q-2")]);

    // An answer ends it, and then it is to be told.
    store.commit(answer_question(&mut asked[0], "green")).await.unwrap();
    check(pending(), &["q-2", "q-3"]);
    check(QuestionFilter { states: vec![QuestionState::Answered], ..Default::default() }, &["q-1"]);
    check(QuestionFilter { task: Some(of("one")), ..untold() }, &["q-1"]);
    check(QuestionFilter { task: Some(of("two")), ..untold() }, &[]);
    assert_eq!(store.expiring(99_000, 10).unwrap(), [approval, question("q-2")]);
    store.commit(tell(&mut asked[0], 3)).await.unwrap();
    check(untold(), &[]);
    // Passed on, it is a person's.
    (asked[1].version, asked[1].to) = (2, AskedOf::Person);
    store.commit(question_commit(&asked[1], QuestionEvent::PassedOn { by: of("lead") })).await.unwrap();
    check(QuestionFilter { to: Some(AskedOf::Person), ..pending() }, &["q-2", "q-3"]);
    let again = Conflict::Version { of: Thing::Question(of("q-2")), version: 2 };
    assert_eq!(conflict(store.commit(question_commit(&asked[1], QuestionEvent::Expired)).await), again);
}

pub(crate) async fn one_question_of_a_topic_at_a_time(store: &dyn Store) {
    let opened = task(&log("s"), "one");
    store.commit(open_task(&opened)).await.unwrap();
    let free = |task: &str, topic: &str, goal| Condition::TopicFree { task: of(task), topic: of(topic), goal };
    let mut first = question(&opened, "q-1", "colour");
    let mut commit = open_question(&first);
    commit.conditions.push(free("one", "colour", 1));
    store.commit(commit).await.unwrap();
    let taken = Conflict::Topic { question: of("q-1") };
    assert_eq!(conflict(store.commit(only_if(free("one", "colour", 1))).await), taken);
    for free in [free("one", "size", 1), free("two", "colour", 1), free("one", "colour", 2)] {
        store.commit(only_if(free)).await.unwrap();
    }
    // Once answered it needs no second; once it went away it does.
    store.commit(answer_question(&mut first, "green")).await.unwrap();
    assert_eq!(conflict(store.commit(only_if(free("one", "colour", 1))).await), taken);
    (first.version, first.state) = (3, QuestionState::Withdrawn);
    store.commit(question_commit(&first, QuestionEvent::Withdrawn { why: of("obsolete") })).await.unwrap();
    store.commit(only_if(free("one", "colour", 1))).await.unwrap();
}

pub(crate) async fn the_words_of_a_task_are_erased(store: &dyn Store) {
    let (mut gone, kept) = (task(&log("s"), "gone"), task(&log("s"), "kept"));
    store.commit(open_task(&gone)).await.unwrap();
    store.commit(open_task(&kept)).await.unwrap();
    store.commit(steer(&mut gone, "faster")).await.unwrap();
    store.commit(open_question(&question(&gone, "q", "colour"))).await.unwrap();
    let content = |task: &str, words: &str| {
        store.payload(&house(), &Owner::Task(of(task)), &Digest::of(words.as_bytes())).unwrap()
    };
    let bytes = |words: &str| Some(Content::Bytes(words.as_bytes().to_vec()));
    for words in ["the goal of gone", "faster", "which of the two?"] {
        assert_eq!(content("gone", words), bytes(words));
    }
    assert_eq!(content("kept", "faster"), None, "it was said to the other");
    assert_eq!(content("gone", "never"), None);
    // An action is no task, though it has the same name.
    let digest = Digest::of(b"faster");
    assert_eq!(store.payload(&house(), &Owner::Action(of("gone")), &digest).unwrap(), None);

    let owner = Owner::Task(of("gone"));
    assert_eq!(store.erase(&house(), &owner, &of("bob"), 9000).await.unwrap(), Some(5));
    for words in ["the goal of gone", "faster", "which of the two?"] {
        assert_eq!(content("gone", words), Some(Content::Erased));
    }
    assert_eq!(content("kept", "the goal of kept"), bytes("the goal of kept"));
    let filter = EventFilter { of: EventsOf::Task(of("gone")), after: 4, limit: 0 };
    let events = store.events(&house(), &filter).unwrap();
    let erased = What::Task { task: of("gone"), event: TaskEvent::Erased { by: of("bob") } };
    assert_eq!(events.iter().map(|logged| &logged.event.what).collect::<Vec<_>>(), [&erased]);
    assert_eq!(store.erase(&house(), &Owner::Task(of("no-such")), &of("bob"), 9000).await.unwrap(), None);
    // Who says it again has said it anew.
    store.commit(steer(&mut gone, "faster")).await.unwrap();
    assert_eq!(content("gone", "faster"), bytes("faster"));

    // A question can be asked in a task that nobody opened.
    let alone = task(&log("t"), "alone");
    store.commit(open_question(&question(&alone, "q-2", "colour"))).await.unwrap();
    assert_eq!(store.erase(&house(), &Owner::Task(of("alone")), &of("bob"), 9000).await.unwrap(), Some(2));
    assert_eq!(content("alone", "which of the two?"), Some(Content::Erased));
}

pub(crate) async fn tasks_of_other_tenants_do_not_exist(store: &dyn Store) {
    let mut ours = task(&log("s"), "task-1");
    let opened = session(&log("s"), None);
    let asked = question(&ours, "q", "colour");
    store.commit(open_session(&opened)).await.unwrap();
    store.commit(open_task(&ours)).await.unwrap();
    store.commit(open_question(&asked)).await.unwrap();
    store.commit(interrupt(&mut ours, "i")).await.unwrap();

    let stranger = of("stranger");
    assert_eq!(store.session(&stranger, &opened.id).unwrap(), None);
    assert_eq!(store.task(&stranger, &ours.id).unwrap(), TaskSeen::default());
    assert_eq!(store.question(&stranger, &asked.id).unwrap(), None);
    let below = SessionFilter { root: Some(of("s")), ..Default::default() };
    for filter in [SessionFilter::default(), below] {
        assert_eq!(store.sessions(&stranger, &filter).unwrap().items, []);
    }
    assert_eq!(store.tasks(&stranger, &TaskFilter::default()).unwrap().items, []);
    assert_eq!(store.questions(&stranger, &QuestionFilter::default()).unwrap().items, []);
    let events = EventFilter { of: EventsOf::Task(ours.id.clone()), after: 0, limit: 0 };
    assert_eq!(store.events(&stranger, &events).unwrap(), []);
    let owner = Owner::Task(ours.id.clone());
    assert_eq!(store.payload(&stranger, &owner, &ours.goal.text).unwrap(), None);
    assert_eq!(store.erase(&stranger, &owner, &of("eve"), 1).await.unwrap(), None);
    assert!(matches!(store.payload(&house(), &owner, &ours.goal.text).unwrap(), Some(Content::Bytes(_))));

    // The same ids in both tenants are different things, for conditions too.
    let key = LogKey { tenant: stranger.clone(), session: of("s") };
    let theirs = task(&key, "task-1");
    let mut nowhere = open_task(&theirs);
    nowhere.conditions.push(Condition::TaskAt { task: of("task-1"), goal: None, turn: None, interrupt: None });
    nowhere.conditions.push(Condition::TopicFree { task: of("task-1"), topic: of("colour"), goal: 1 });
    store.commit(nowhere).await.unwrap();
    let top = session(&key, None);
    store.commit(open_session(&top)).await.unwrap();
    store.commit(open_question(&question(&theirs, "q", "colour"))).await.unwrap();
    // Theirs is below the session of that name, ours is not.
    let below = LogKey { tenant: stranger.clone(), session: of("x") };
    store.commit(open_session(&session(&below, Some(&top)))).await.unwrap();
    store.commit(open_session(&session(&log("x"), None))).await.unwrap();
    let filter = SessionFilter { root: Some(of("s")), ..Default::default() };
    assert_eq!(store.sessions(&house(), &filter).unwrap().items, [opened]);
    assert_eq!(store.sessions(&stranger, &filter).unwrap().items.len(), 2);
    assert_eq!(store.task(&stranger, &of("task-1")).unwrap().record, Some(theirs));
    assert_eq!(store.task(&house(), &of("task-1")).unwrap().record, Some(ours.clone()));
    // A record of somebody else in one's own log.
    let mut foreign = Commit::new(key);
    foreign.records.push(Record::Task(Box::new(ours)));
    assert!(misuse(store.commit(foreign).await).contains("belongs to another log"));
}
