//! What is listed, in which order, page by page.

use env_contracts::{Digest, Id};
use glovebox_events::{ActionState, Answered, ApprovalState, AskedFor, Revoked, What};
use glovebox_store::{ActionFilter, ApprovalFilter, ApprovalTally, Due, DueOf, GrantFilter, Record, Store};

use super::made::*;

fn ids(actions: &[glovebox_events::Action]) -> Vec<&str> {
    actions.iter().map(|action| action.id.as_str()).collect()
}

pub(crate) async fn actions_are_listed_newest_first(store: &dyn Store) {
    for (n, id) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
        let mut action = action(&log(if n % 2 == 0 { "even" } else { "odd" }), id);
        action.task = of(if n < 2 { "early" } else { "late" });
        action.principal.user = of(if n == 3 { "dan" } else { "ann" });
        store.commit(request(&action)).await.unwrap();
        if n > 2 {
            store.commit(claim(&mut action, 2000)).await.unwrap();
        }
    }
    let all = ActionFilter::default;
    let list = |filter: ActionFilter| store.actions(&house(), &filter).unwrap();
    let check = |filter, expected: &[&str]| assert_eq!(ids(&list(filter).items), expected);
    check(all(), &["e", "d", "c", "b", "a"]);
    check(ActionFilter { session: Some(of("even")), ..all() }, &["e", "c", "a"]);
    check(ActionFilter { session: Some(of("no-such")), ..all() }, &[]);
    check(ActionFilter { task: Some(of("early")), ..all() }, &["b", "a"]);
    check(ActionFilter { user: Some(of("dan")), ..all() }, &["d"]);
    check(ActionFilter { states: vec![ActionState::Running], ..all() }, &["e", "d"]);
    let both = vec![ActionState::Running, ActionState::Requested];
    check(ActionFilter { states: vec![ActionState::Succeeded], ..all() }, &[]);
    check(ActionFilter { states: vec![ActionState::Running, ActionState::Failed], ..all() }, &["e", "d"]);
    check(ActionFilter { states: both, task: Some(of("late")), ..all() }, &["e", "d", "c"]);
    check(ActionFilter { after: Some(of("no-such")), ..all() }, &[]);
    let first = list(ActionFilter { limit: 2, ..all() });
    assert_eq!((ids(&first.items), first.next.clone()), (vec!["e", "d"], Some(of("d"))));
    let second = list(ActionFilter { limit: 3, after: first.next, ..all() });
    assert_eq!((ids(&second.items), second.next), (vec!["c", "b", "a"], None), "no empty page at the end");
}

pub(crate) async fn ten_thousand_pending_approvals_are_paged(store: &dyn Store) {
    const MANY: usize = 10_000;
    const ACTIONS: usize = 100;
    // Each action's commits open a hundred: only the last stands in the action,
    // all of them stand in the table.
    for n in 0..ACTIONS {
        let mut action = action(&log("s"), numbered("a", n).as_str());
        let mut commit = request(&action);
        for m in 0..MANY / ACTIONS {
            let number = n * (MANY / ACTIONS) + m;
            let mut next = ask(&mut action, approval(numbered("q", number).as_str(), b"i", 2000 + number as u64));
            commit.events.append(&mut next.events);
        }
        commit.records = vec![Record::Action(Box::new(action))];
        store.commit(commit).await.unwrap();
    }
    let mut filter = ApprovalFilter { states: vec![ApprovalState::Pending], limit: 300, ..Default::default() };
    let (mut seen, mut pages) = (0, 0);
    loop {
        let page = store.approvals(&house(), &filter).unwrap();
        for (_, approval) in &page.items {
            assert_eq!(approval.id, numbered("q", seen), "oldest first, none twice, none left out");
            seen += 1;
        }
        pages += 1;
        filter.after = page.next;
        if filter.after.is_none() {
            break;
        }
    }
    assert_eq!((seen, pages), (MANY, 34));
    filter.limit = 0;
    assert_eq!(store.approvals(&house(), &filter).unwrap().items.len(), glovebox_store::MAX_PAGE as usize);
}

pub(crate) async fn approvals_are_found_after_newer_ones(store: &dyn Store) {
    let mut action = action(&log("s"), "a");
    store.commit(request(&action)).await.unwrap();
    store.commit(ask(&mut action, approval("q-1", b"first", 2000))).await.unwrap();
    store.commit(answer(&mut action, Answered::Approve, 2001)).await.unwrap();
    // What was approved is not what would run now: both in one commit.
    let mut second = approval("q-2", b"second", 2002);
    second.asked_for = AskedFor::Drift;
    let mut commit = ask(&mut action, second);
    let drifted = What::Drifted { approval: of("q-1"), changed: vec!["the component".into()] };
    commit.events.insert(0, event(&action, 2002, drifted));
    store.commit(commit).await.unwrap();

    for approval in ["q-1", "q-2"] {
        assert_eq!(store.by_approval(&house(), &of(approval)).unwrap(), Some(action.clone()));
    }
    assert_eq!(store.by_approval(&house(), &of("q-3")).unwrap(), None);
    let states = |filter: &ApprovalFilter| -> Vec<(Id, ApprovalState)> {
        let page = store.approvals(&house(), filter).unwrap();
        page.items.into_iter().map(|(_, approval)| (approval.id, approval.state)).collect()
    };
    let all = ApprovalFilter::default;
    assert_eq!(states(&all()), [(of("q-1"), ApprovalState::Drifted), (of("q-2"), ApprovalState::Pending)]);
    assert!(store.approvals(&house(), &all()).unwrap().items[0].1.answer.is_some(), "its answer stays with it");
    let intent = ApprovalFilter { intent: Some(Digest::of(b"second")), ..all() };
    assert_eq!(states(&intent), [(of("q-2"), ApprovalState::Pending)]);
    assert_eq!(states(&ApprovalFilter { session: Some(of("t")), ..all() }), []);

    let declined = |intent: &[u8]| store.declined(&house(), &of("task-1"), &Digest::of(intent)).unwrap();
    let tally = |intent: &[u8]| store.tally(&house(), &of("task-1"), &Digest::of(intent)).unwrap();
    assert_eq!((declined(b"second"), tally(b"second")), (None, ApprovalTally::default()));
    store.commit(answer(&mut action, Answered::Decline, 2003)).await.unwrap();
    assert_eq!(declined(b"second"), Some(action.clone()));
    assert_eq!(tally(b"second"), ApprovalTally { approved: 0, declined: 1 });
    assert_eq!(declined(b"first"), None);
}

pub(crate) async fn what_expires_is_found_in_order(store: &dyn Store) {
    let mut actions = Vec::new();
    for (id, opened) in [("a", 3000), ("b", 1000), ("c", 2000)] {
        let mut action = action(&log("s"), id);
        store.commit(request(&action)).await.unwrap();
        store.commit(ask(&mut action, approval(&format!("q-{id}"), b"i", opened))).await.unwrap();
        actions.push(action);
    }
    let due = |action: &str| Due {
        tenant: house(),
        what: DueOf::Approval { action: of(action), approval: of(&format!("q-{action}")) },
    };
    assert_eq!(store.expiring(60_999, 10).unwrap(), []);
    assert_eq!(store.expiring(61_000, 10).unwrap(), [due("b")], "at the moment itself");
    assert_eq!(store.expiring(99_000, 2).unwrap(), [due("b"), due("c")]);
    // An approval that nobody used ends too; one that was declined has ended.
    store.commit(answer(&mut actions[1], Answered::Approve, 5000)).await.unwrap();
    store.commit(answer(&mut actions[2], Answered::Decline, 5000)).await.unwrap();
    assert_eq!(store.expiring(99_000, 10).unwrap(), [due("b"), due("a")]);

    // Grants, too, are listed by what still holds.
    let mut commit = glovebox_store::Commit::new(log("s"));
    let mut revoked = grant(&house(), "g-3", None);
    revoked.revoked = Some(Revoked { at_ms: 1, by: of("ann") });
    for grant in [grant(&house(), "g-1", None), grant(&house(), "g-2", Some("s")), revoked] {
        commit.records.push(Record::Grant(Box::new(grant)));
    }
    store.commit(commit).await.unwrap();
    let check = |filter: GrantFilter, expected: &[&str]| {
        let found = store.grants(&house(), &filter).unwrap();
        assert_eq!(found.iter().map(|grant| grant.id.as_str()).collect::<Vec<_>>(), expected);
    };
    check(GrantFilter::default(), &["g-1", "g-2", "g-3"]);
    check(GrantFilter { live_at: Some(4999), ..Default::default() }, &["g-1", "g-2"]);
    check(GrantFilter { live_at: Some(5000), ..Default::default() }, &[]);
    check(GrantFilter { session: Some(of("t")), ..Default::default() }, &["g-1", "g-3"]);
    check(GrantFilter { user: Some(of("dan")), ..Default::default() }, &[]);
}
