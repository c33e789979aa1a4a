//! Lists of what one user has, or one of their agents.

use env_contracts::{Id, Name, Principal};
use glovebox_store::{
    ActionFilter, ApprovalFilter, EventFilter, EventsOf, QuestionFilter, SessionFilter, Store, TaskFilter,
};

use super::made::*;
use super::opened::*;

/// Five that ask, all by names of their own: who sees which is below.
fn askers() -> [(&'static str, Principal); 5] {
    let ann = principal(&house());
    let agent = |name: &str, chain: &[&str]| Principal {
        agent: Some(of(name)),
        chain: chain.iter().map(|agent| of(agent)).collect(),
        ..ann.clone()
    };
    [
        ("by-hand", ann.clone()),
        ("coder", agent("coder", &[])),
        ("below", agent("helper", &["coder"])),
        ("other", agent("other", &["cod"])),
        ("dans", Principal { user: of("dan"), ..agent("coder", &[]) }),
    ]
}

pub(crate) async fn lists_hold_what_one_user_and_agent_has(store: &dyn Store) {
    for (word, principal) in askers() {
        let mut session = session(&log(word), None);
        session.principal = principal.clone();
        store.commit(open_session(&session)).await.unwrap();
        let mut task = task(&log(word), word);
        task.principal = principal.clone();
        store.commit(open_task(&task)).await.unwrap();
        store.commit(open_question(&question(&task, word, "topic"))).await.unwrap();
        let mut action = action(&log(word), word);
        action.principal = principal;
        store.commit(request(&action)).await.unwrap();
        store.commit(ask(&mut action, approval(word, b"i", 2000))).await.unwrap();
    }
    let check = |user: Option<&str>, agent: Option<&str>, own: &[&str], family: &[&str]| {
        let (user, agent): (Option<Name>, Option<Name>) = (user.map(of), agent.map(of));
        let (tenant, u, a) = (house(), user.clone(), agent.clone());
        let actions = ActionFilter { user: u.clone(), agent: a.clone(), ..Default::default() };
        let actions = store.actions(&tenant, &actions).unwrap().items.into_iter().map(|of| of.id).rev();
        let approvals = ApprovalFilter { user: u.clone(), agent: a.clone(), ..Default::default() };
        let approvals = store.approvals(&tenant, &approvals).unwrap().items.into_iter().map(|(_, of)| of.id);
        let sessions = SessionFilter { user: u.clone(), agent: a.clone(), ..Default::default() };
        let sessions = store.sessions(&tenant, &sessions).unwrap().items.into_iter().map(|of| of.id).rev();
        let tasks = TaskFilter { user: u.clone(), agent: a.clone(), ..Default::default() };
        let tasks = store.tasks(&tenant, &tasks).unwrap().items.into_iter().map(|of| of.id).rev();
        let questions = QuestionFilter { user: u, agent: a, ..Default::default() };
        let questions = store.questions(&tenant, &questions).unwrap().items.into_iter().map(|of| of.id);
        let ids = |ids: &[&str]| ids.iter().map(|id| of(id)).collect::<Vec<Id>>();
        for (what, found) in [("actions", actions.collect::<Vec<_>>()), ("approvals", approvals.collect())] {
            assert_eq!(found, ids(own), "{what} of {user:?} {agent:?}");
        }
        for (what, found) in
            [("sessions", sessions.collect::<Vec<_>>()), ("tasks", tasks.collect()), ("questions", questions.collect())]
        {
            assert_eq!(found, ids(family), "{what} of {user:?} {agent:?}");
        }
    };
    let all = ["by-hand", "coder", "below", "other", "dans"];
    check(None, None, &all, &all);
    check(Some("ann"), None, &all[..4], &all[..4]);
    check(Some("dan"), None, &["dans"], &["dans"]);
    check(Some("ann"), Some("coder"), &["coder"], &["by-hand", "coder", "below"]);
    check(Some("ann"), Some("helper"), &["below"], &["by-hand", "below"]);
    check(Some("dan"), Some("helper"), &[], &[]);
    check(None, Some("coder"), &["coder", "dans"], &["by-hand", "coder", "below", "dans"]);
    check(Some("bob"), Some("coder"), &[], &[]);
}

pub(crate) async fn events_of_all_logs_have_one_order(store: &dyn Store) {
    assert_eq!((store.last_recorded().unwrap(), store.recorded(0, 0).unwrap()), (0, vec![]));
    let mut elsewhere = log("s");
    elsewhere.tenant = of("elsewhere");
    let (mut one, two, three) = (action(&log("s"), "one"), action(&log("t"), "two"), action(&elsewhere, "three"));
    for commit in [request(&one), request(&two), request(&three), claim(&mut one, 2000)] {
        store.commit(commit).await.unwrap();
    }
    // What was refused has no place.
    assert!(store.commit(request(&two)).await.is_err());
    store.commit(end(&mut one, 2001)).await.unwrap();
    let all = store.recorded(0, 0).unwrap();
    let names: Vec<_> = all
        .iter()
        .map(|event| (event.rank, event.logged.event.action.clone().unwrap(), event.logged.event.what.name()))
        .collect();
    let expected =
        [("one", "requested"), ("two", "requested"), ("three", "requested"), ("one", "claimed"), ("one", "ended")];
    let expected: Vec<_> = (1..).zip(expected).map(|(rank, (action, what))| (rank, of(action), what)).collect();
    assert_eq!(names, expected);
    assert_eq!(all[2].logged.log.tenant, of::<Name>("elsewhere"));
    let of_one = EventFilter { of: EventsOf::Session(of("s")), after: 0, limit: 0 };
    let logged = [&all[0], &all[3], &all[4]].map(|event| event.logged.clone());
    assert_eq!(store.events(&house(), &of_one).unwrap(), logged);
    assert_eq!(store.recorded(1, 2).unwrap(), all[1..3]);
    assert_eq!(store.recorded(5, 0).unwrap(), []);
    assert_eq!(store.last_recorded().unwrap(), 5);
}
