//! What commits are tied to.

use env_contracts::Digest;
use glovebox_events::{Halt, Owner, Revoked, What};
use glovebox_store::{Commit, Condition, Conflict, Record, Store, StoreError, Thing};

use super::made::*;
use super::opened::*;

pub(crate) fn conflict(answer: Result<Vec<u64>, StoreError>) -> Conflict {
    match answer {
        Err(StoreError::Conflict(conflict)) => conflict,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

/// A commit of a session's log with nothing but a condition and an event.
pub(crate) fn only_if(condition: Condition) -> Commit {
    let mut commit = Commit::new(log("s"));
    commit.conditions.push(condition);
    commit.events.push(glovebox_events::Event { at_ms: 1, action: None, what: What::Released { by: of("ann") } });
    commit
}

pub(crate) async fn of_many_who_change_one_version_one_wins(store: &dyn Store) {
    let mut action = action(&log("s"), "a");
    store.commit(request(&action)).await.unwrap();
    for round in 0..5 {
        let commit = claim(&mut action, 2000 + round);
        let (mut won, mut lost) = (0, 0);
        let tries = (0..8).map(|_| store.commit(commit.clone())).collect::<Vec<_>>();
        for answer in join(tries).await {
            match answer {
                Ok(_) => won += 1,
                Err(StoreError::Conflict(conflict)) => {
                    let now = Conflict::Version { of: Thing::Action(action.id.clone()), version: action.version };
                    assert_eq!(conflict, now, "the conflict shows what it is now");
                    lost += 1;
                }
                Err(other) => panic!("{other:?}"),
            }
        }
        assert_eq!((won, lost), (1, 7));
    }
    // What does not exist has the version 0.
    let mut nothing = request(&action);
    nothing.conditions = vec![at(Thing::Action(of("no-such")), 1)];
    let missing = Conflict::Version { of: Thing::Action(of("no-such")), version: 0 };
    assert_eq!(conflict(store.commit(nothing).await), missing);
    let there = Conflict::Version { of: Thing::Action(action.id.clone()), version: action.version };
    assert_eq!(conflict(store.commit(request(&action)).await), there);
}

/// All at once: all are queued before the first is answered.
async fn join<T>(futures: Vec<glovebox_store::BoxFuture<'_, T>>) -> Vec<T> {
    let mut waiting: Vec<_> = futures.into_iter().map(Some).collect();
    let mut done: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, done) in waiting.iter_mut().zip(&mut done) {
            if let Some(pending) = future
                && let std::task::Poll::Ready(value) = pending.as_mut().poll(context)
            {
                *done = Some(value);
                *future = None;
            }
        }
        if waiting.iter().all(Option::is_none) { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

pub(crate) async fn a_conflict_touches_nobody_else(store: &dyn Store) {
    let actions: Vec<_> = (0..40).map(|n| action(&log("s"), numbered("a", n).as_str())).collect();
    let commits = actions.iter().enumerate().map(|(n, action)| {
        let mut commit = request(action);
        if n % 3 == 1 {
            // A condition that does not hold, looked at after others did.
            commit.conditions.push(Condition::GrantLive { grant: of("no-such"), now_ms: 0 });
        } else if n % 3 == 2 {
            // Written for the most part when it turns out to make no sense.
            let mut stranger = action.clone();
            stranger.id = of("not-recorded");
            commit.events.push(event(&stranger, 1, What::Erased { by: of("ann") }));
        }
        store.commit(commit)
    });
    let answers = join(commits.collect()).await;
    let good: Vec<_> = actions.iter().enumerate().filter(|(n, _)| n % 3 == 0).collect();
    for (n, (action, answer)) in actions.iter().zip(&answers).enumerate() {
        assert_eq!(answer.is_ok(), n % 3 == 0, "{n}: {answer:?}");
        let stored = store.action(&house(), &action.id).unwrap();
        assert_eq!(stored.is_some(), n % 3 == 0, "{n}");
    }
    let seqs: Vec<u64> = answers.into_iter().flatten().flatten().collect();
    assert_eq!(seqs, (1..=good.len() as u64).collect::<Vec<_>>(), "numbers have no gaps where others failed");
}

pub(crate) async fn a_commit_that_fails_half_way_leaves_nothing(store: &dyn Store) {
    let first = action(&log("s"), "a");
    store.commit(request(&first)).await.unwrap();
    let second = action(&log("s"), "b");
    let mut half = request(&second);
    half.events.push(event(&action(&log("s"), "not-recorded"), 1, What::Erased { by: of("ann") }));
    let StoreError::Problem(problem) = store.commit(half).await.unwrap_err() else { panic!("no conflict") };
    assert!(problem.message.contains("`not-recorded` does not exist"), "{}", words(&problem));
    assert_eq!(store.action(&house(), &second.id).unwrap(), None);
    assert_eq!(store.payload(&house(), &Owner::Action(second.id.clone()), &second.submission).unwrap(), None);
    assert_eq!(store.commit(request(&second)).await.unwrap(), [2]);
    // Of another session or tenant than the log.
    let mut stray = request(&action(&log("s"), "c"));
    stray.log = log("elsewhere");
    assert!(matches!(store.commit(stray).await, Err(StoreError::Problem(_))));
    let mut taken = request(&action(&log("elsewhere"), "b"));
    taken.conditions.clear();
    assert!(matches!(store.commit(taken).await, Err(StoreError::Problem(_))), "an id is one action's");
}

pub(crate) async fn the_operators_stop_stops_commits(store: &dyn Store) {
    assert_eq!(store.halted().unwrap(), None);
    let halt = Halt { by: of("ann"), at_ms: 5, reason: Some("enough".into()) };
    let mut commit = Commit::new(log("operator"));
    commit.events.push(glovebox_events::Event { at_ms: 5, action: None, what: What::Halted { halt: halt.clone() } });
    commit.records.push(Record::Halt(Some(halt.clone())));
    store.commit(commit).await.unwrap();
    assert_eq!(store.halted().unwrap(), Some(halt.clone()));
    assert_eq!(conflict(store.commit(only_if(Condition::NotHalted)).await), Conflict::Halted(halt));
    let mut release = Commit::new(log("operator"));
    release.records.push(Record::Halt(None));
    assert_eq!(store.commit(release).await.unwrap(), Vec::<u64>::new());
    assert_eq!(store.halted().unwrap(), None);
    store.commit(only_if(Condition::NotHalted)).await.unwrap();
}

pub(crate) async fn a_key_is_claimed_once(store: &dyn Store) {
    let (scope, request) = (Digest::of(b"scope"), Digest::of(b"request"));
    let key = |request: &Digest, action: &str| Condition::KeyFree {
        scope: scope.clone(),
        request: request.clone(),
        action: of(action),
    };
    assert_eq!(store.key(&scope).unwrap(), None);
    // A commit that fails for another reason claims nothing.
    let mut fails = only_if(key(&request, "a"));
    fails.conditions.push(Condition::GrantLive { grant: of("no-such"), now_ms: 0 });
    assert_eq!(conflict(store.commit(fails).await), Conflict::Grant);
    assert_eq!(store.key(&scope).unwrap(), None);
    store.commit(only_if(key(&request, "a"))).await.unwrap();
    let other = Digest::of(b"another request");
    for again in [key(&request, "b"), key(&other, "b")] {
        let taken = Conflict::Key { request: request.clone(), action: of("a") };
        assert_eq!(conflict(store.commit(only_if(again)).await), taken);
    }
    assert_eq!(store.key(&scope).unwrap(), Some((request, of("a"))));
}

pub(crate) async fn grants_end_and_are_taken_back(store: &dyn Store) {
    let live = |now_ms| only_if(Condition::GrantLive { grant: of("g"), now_ms });
    assert_eq!(conflict(store.commit(live(2000)).await), Conflict::Grant);
    let mut made = grant(&house(), "g", None);
    let put = |grant| {
        let mut commit = Commit::new(log("s"));
        commit.records.push(Record::Grant(Box::new(grant)));
        store.commit(commit)
    };
    put(made.clone()).await.unwrap();
    store.commit(live(2000)).await.unwrap();
    assert_eq!(conflict(store.commit(live(5000)).await), Conflict::Grant, "it has ended");
    made.revoked = Some(Revoked { at_ms: 3000, by: of("bob") });
    put(made.clone()).await.unwrap();
    assert_eq!(conflict(store.commit(live(2000)).await), Conflict::Grant, "it was taken back");
    assert_eq!(store.grant(&house(), &of("g")).unwrap(), Some(made));
}

pub(crate) async fn asks_and_calls_are_counted(store: &dyn Store) {
    let asks = |session: &str, since_ms, most| only_if(Condition::AsksBelow { session: of(session), since_ms, most });
    let calls = |capability: &str, since_ms, most| {
        only_if(Condition::CallsBelow { capability: of(capability), since_ms, most })
    };
    for n in 0..3 {
        let mut action = action(&log("s"), numbered("a", n).as_str());
        store.commit(request(&action)).await.unwrap();
        let opened = 2000 + 10 * n as u64;
        store.commit(ask(&mut action, approval(numbered("q", n).as_str(), b"i", opened))).await.unwrap();
        store.commit(claim(&mut action, opened + 5)).await.unwrap();
    }
    store.commit(asks("s", 0, 4)).await.unwrap();
    assert_eq!(conflict(store.commit(asks("s", 0, 3)).await), Conflict::Asks);
    store.commit(asks("s", 2001, 3)).await.unwrap();
    store.commit(asks("another", 0, 1)).await.unwrap();
    assert_eq!(conflict(store.commit(asks("another", 0, 0)).await), Conflict::Asks, "none at all");
    // Questions are asked of people too.
    let asking = task(&log("s"), "asking");
    store.commit(open_task(&asking)).await.unwrap();
    store.commit(open_question(&question(&asking, "window", "size"))).await.unwrap();
    store.commit(asks("s", 0, 5)).await.unwrap();
    assert_eq!(conflict(store.commit(asks("s", 0, 4)).await), Conflict::Asks);
    store.commit(asks("s", 2001, 3)).await.unwrap();
    store.commit(calls("text.count", 0, 4)).await.unwrap();
    let many = Conflict::Calls { capability: of("text.count") };
    assert_eq!(conflict(store.commit(calls("text.count", 0, 3)).await), many);
    store.commit(calls("text.count", 2006, 3)).await.unwrap();
    store.commit(calls("text.other", 0, 1)).await.unwrap();
}
