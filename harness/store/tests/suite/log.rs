//! The log, and what is beside it.

use env_contracts::{Digest, Id};
use glovebox_events::{ActionState, Logged, Owner, PayloadRole, What};
use glovebox_store::{Content, EventFilter, EventsOf, Page, Store, TaskSeen, TaskUse, Thing};

use super::made::*;

fn theirs(action: &Id) -> Owner {
    Owner::Action(action.clone())
}

fn session(store: &dyn Store, session: &str, after: u64, limit: u32) -> Vec<Logged> {
    store.events(&house(), &EventFilter { of: EventsOf::Session(of(session)), after, limit }).unwrap()
}

pub(crate) async fn events_have_dense_numbers_and_chained_hashes(store: &dyn Store) {
    let mut one = action(&log("s"), "one");
    let mut two = action(&log("t"), "two");
    assert_eq!(store.commit(request(&one)).await.unwrap(), [1]);
    assert_eq!(store.commit(request(&two)).await.unwrap(), [1], "each session counts for itself");
    let mut both = claim(&mut one, 2000);
    both.events.extend(end(&mut one, 2001).events);
    both.records = vec![glovebox_store::Record::Action(Box::new(one.clone()))];
    assert_eq!(store.commit(both).await.unwrap(), [2, 3]);
    store.commit(claim(&mut two, 2002)).await.unwrap();

    let events = session(store, "s", 0, 0);
    assert_eq!(events.iter().map(|event| event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(
        events.iter().map(|event| event.event.what.name()).collect::<Vec<_>>(),
        ["requested", "claimed", "ended"]
    );
    assert_eq!(session(store, "s", 1, 1), events[1..2]);
    let of_action = EventFilter { of: EventsOf::Action(of("one")), after: 0, limit: 0 };
    assert_eq!(store.events(&house(), &of_action).unwrap(), events);
    assert_eq!(session(store, "no-such", 0, 0), []);

    // Each hash holds the one before: computed here in the documented way.
    let mut previous = String::new();
    for logged in &events {
        let mut hasher = env_contracts::digest::Hasher::new("glovebox/event/v1");
        hasher
            .part("previous", previous.as_bytes())
            .part("tenant", b"house")
            .part("session", b"s")
            .part("seq", &logged.seq.to_be_bytes())
            .part("at", &logged.event.at_ms.to_be_bytes())
            .part("action", b"one")
            .part("body", &serde_json::to_vec(&logged.event.what).unwrap());
        assert_eq!(hasher.finish(), logged.hash, "event {}", logged.seq);
        previous = logged.hash.to_string();
    }
}

pub(crate) async fn a_commit_is_found_again(store: &dyn Store) {
    let mut action = action(&log("s"), "a");
    store.commit(request(&action)).await.unwrap();
    assert_eq!(store.action(&house(), &action.id).unwrap().unwrap(), action);
    let words = Content::Bytes(submission("a").into_bytes());
    assert_eq!(store.payload(&house(), &theirs(&action.id), &action.submission).unwrap().unwrap(), words);
    assert_eq!(store.payload(&house(), &theirs(&action.id), &Digest::of(b"never")).unwrap(), None);
    assert_eq!(store.running(10).unwrap(), []);
    store.commit(claim(&mut action, 2000)).await.unwrap();
    assert_eq!(store.running(10).unwrap(), [action.clone()]);
    store.commit(end(&mut action, 2001)).await.unwrap();
    assert_eq!(store.running(10).unwrap(), []);
    let stored = store.action(&house(), &action.id).unwrap().unwrap();
    assert_eq!((stored.version, stored.state), (3, ActionState::Succeeded));
}

pub(crate) async fn a_task_adds_up(store: &dyn Store) {
    let used = |task: &str| {
        let seen = store.task(&house(), &of(task)).unwrap();
        assert_eq!(seen.record, None, "nobody opened it");
        seen.used
    };
    assert_eq!(used("task-1"), TaskUse::default());
    for n in 0..3 {
        let mut action = action(&log("s"), numbered("a", n).as_str());
        store.commit(request(&action)).await.unwrap();
        store.commit(claim(&mut action, 2000)).await.unwrap();
        assert_eq!(used("task-1").actions, n as u64 + 1, "it counts from its beginning");
        store.commit(end(&mut action, 2001)).await.unwrap();
    }
    assert_eq!(
        used("task-1"),
        TaskUse {
            actions: 3,
            run_us: 22_500,
            artifact_bytes: 210,
            output_bytes: 33,
            egress_bytes: 36,
            cost_micros: 39,
            waiting_us: 42,
            asks: 0,
        }
    );
    let mut asked = action(&log("s"), "asked");
    store.commit(request(&asked)).await.unwrap();
    for approval in [approval("q-1", b"i", 3000), approval("q-2", b"i", 3001)] {
        store.commit(ask(&mut asked, approval)).await.unwrap();
    }
    assert_eq!(used("task-1").asks, 2, "each question to a person counts");
    assert_eq!(used("task-2"), TaskUse::default());
}

pub(crate) async fn contents_are_erased_and_the_log_says_so(store: &dyn Store) {
    let kept = action(&log("s"), "kept");
    let gone = action(&log("s"), "gone");
    for action in [&kept, &gone] {
        let mut commit = request(action);
        commit.payloads.push(glovebox_events::Payload::new(theirs(&action.id), PayloadRole::Plan, b"a plan".to_vec()));
        store.commit(commit).await.unwrap();
    }
    let content = |action: &Id, digest: &Digest| store.payload(&house(), &theirs(action), digest).unwrap();
    assert_eq!(store.erase(&house(), &theirs(&gone.id), &of("bob"), 9000).await.unwrap(), Some(3));
    assert_eq!(content(&gone.id, &gone.submission), Some(Content::Erased));
    assert_eq!(content(&gone.id, &Digest::of(b"a plan")), Some(Content::Erased));
    assert_eq!(content(&kept.id, &Digest::of(b"a plan")), Some(Content::Bytes(b"a plan".to_vec())));
    let events = session(store, "s", 2, 0);
    assert_eq!(events[0].event.what, What::Erased { by: of("bob") });
    assert_eq!(events[0].event.action, Some(gone.id.clone()));
    assert_eq!(store.action(&house(), &gone.id).unwrap(), Some(gone), "what it was stays");
    assert_eq!(store.erase(&house(), &theirs(&of("no-such")), &of("bob"), 9000).await.unwrap(), None);
}

pub(crate) async fn other_tenants_see_nothing(store: &dyn Store) {
    let mut action = action(&log("s"), "a");
    store.commit(request(&action)).await.unwrap();
    store.commit(ask(&mut action, approval("q", b"intent", 2000))).await.unwrap();
    let mut declined = answer(&mut action, glovebox_events::Answered::Decline, 3000);
    declined.records.push(glovebox_store::Record::Grant(Box::new(grant(&house(), "g", None))));
    store.commit(declined).await.unwrap();

    // The same question to the owner and to a stranger; and to the stranger
    // about what does not exist.
    let stranger = of("stranger");
    assert!(store.action(&house(), &action.id).unwrap().is_some());
    assert_eq!(store.action(&stranger, &action.id).unwrap(), None);
    assert!(store.by_approval(&house(), &of("q")).unwrap().is_some());
    assert_eq!(store.by_approval(&stranger, &of("q")).unwrap(), None);
    assert!(store.grant(&house(), &of("g")).unwrap().is_some());
    assert_eq!(store.grant(&stranger, &of("g")).unwrap(), None);
    assert_eq!(store.grants(&stranger, &Default::default()).unwrap(), []);
    assert_eq!(store.payload(&stranger, &theirs(&action.id), &action.submission).unwrap(), None);
    assert_eq!(store.actions(&stranger, &Default::default()).unwrap(), Page { items: vec![], next: None });
    assert_eq!(store.approvals(&stranger, &Default::default()).unwrap(), Page { items: vec![], next: None });
    let intent = Digest::of(b"intent");
    assert!(store.declined(&house(), &action.task, &intent).unwrap().is_some());
    assert_eq!(store.declined(&stranger, &action.task, &intent).unwrap(), None);
    assert_eq!(store.tally(&stranger, &action.task, &intent).unwrap(), Default::default());
    assert_eq!(store.task(&stranger, &action.task).unwrap(), TaskSeen::default());
    for of in [EventsOf::Session(of("s")), EventsOf::Action(action.id.clone())] {
        assert_eq!(store.events(&stranger, &EventFilter { of, after: 0, limit: 0 }).unwrap(), []);
    }
    assert_eq!(store.erase(&stranger, &theirs(&action.id), &of("eve"), 1).await.unwrap(), None);
    // A cursor of somebody else leads nowhere.
    let after = glovebox_store::ActionFilter { after: Some(action.id.clone()), ..Default::default() };
    assert_eq!(store.actions(&stranger, &after).unwrap().items, []);

    // The same ids in both tenants are different things.
    let other = super::made::action(&glovebox_events::LogKey { tenant: stranger.clone(), session: of("s") }, "a");
    store.commit(request(&other)).await.unwrap();
    assert_eq!(store.action(&stranger, &other.id).unwrap(), Some(other.clone()));
    assert_eq!(store.action(&house(), &action.id).unwrap(), Some(action));
    let mut version = request(&other);
    version.conditions = vec![at(Thing::Action(other.id.clone()), 1)];
    assert_eq!(store.commit(version).await.unwrap(), [2]);
}

pub(crate) async fn listeners_hear_of_commits(store: &dyn Store) {
    let mut heard = store.changes().unwrap();
    heard.borrow_and_update();
    store.commit(request(&action(&log("s"), "a"))).await.unwrap();
    assert!(heard.has_changed().unwrap(), "one's own commit is heard at once");
    heard.borrow_and_update();
    let mut again = store.changes().unwrap();
    again.borrow_and_update();
    store.commit(request(&action(&log("s"), "b"))).await.unwrap();
    heard.changed().await.unwrap();
    again.changed().await.unwrap();
}
