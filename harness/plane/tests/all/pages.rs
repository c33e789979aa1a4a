//! Lists and logs page by page, as far as the one who reads may see them.

use std::collections::BTreeSet;

use env_contracts::{Code, Id, Principal};
use glovebox_events::{ApprovalState, Budget};
use glovebox_store::{ActionFilter, Page, QuestionFilter, SessionFilter, TaskFilter};

use crate::fake::WRITE;
use crate::house::{House, Setup, agent, id, name, person};
use crate::loops::{about, called, coder, new_task};

fn other() -> Principal {
    agent("u", "other")
}

/// Two agents of one user and one of another that work beside each other.
fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE]));
    house.runs_well();
    for round in 0..4 {
        for (who, word) in [(coder(), "c"), (other(), "o"), (agent("v", "coder"), "v")] {
            let session = format!("{word}{round}");
            house.open_session(&who, &session, None);
            let task = format!("t-{session}");
            house.block_on(house.service.open_task(&who, new_task(&task, &session, Budget::default()))).unwrap();
            let asking = glovebox_plane::NewQuestion { task: id(&task), ..about("window", None) };
            house.block_on(house.service.ask(&who, asking)).unwrap();
            let mut submission = house.asked("fake.write", &format!(r#"{{"count":{round}}}"#));
            (submission.principal, submission.context.session) = (who, id("shared"));
            submission.context.task = id("shared");
            house.send(submission).unwrap();
        }
    }
    house
}

/// Every page of a list: all but the last are full.
fn pages<T>(mut page: impl FnMut(Option<Id>) -> Page<T>) -> Vec<T> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let next = page(after);
        assert!(next.next.is_none() || next.items.len() == 3, "a page of {} has a next", next.items.len());
        all.extend(next.items);
        match next.next {
            Some(cursor) => after = Some(cursor),
            None => return all,
        }
    }
}

#[test]
fn pages_are_full_whoever_reads() {
    let house = house();
    let service = &house.service;
    let over = service.overseeing();
    for (service, who, mine) in [
        (service, coder(), 4),
        (service, other(), 4),
        (service, agent("v", "coder"), 4),
        (service, agent("u", "third"), 0),
        (service, person("u"), 8),
        (service, person("v"), 4),
        (service, person("op"), 0),
        (&over, person("op"), 12),
        (&over, coder(), 4),
    ] {
        let limit = 3;
        let actions =
            pages(|after| service.actions(&who, ActionFilter { after, limit, ..ActionFilter::default() }).unwrap());
        let sessions =
            pages(|after| service.sessions(&who, SessionFilter { after, limit, ..SessionFilter::default() }).unwrap());
        let tasks = pages(|after| service.tasks(&who, &TaskFilter { after, limit, ..TaskFilter::default() }).unwrap());
        let questions = pages(|after| {
            service.questions(&who, &QuestionFilter { after, limit, ..QuestionFilter::default() }).unwrap()
        });
        let counts = [actions.len(), sessions.len(), tasks.len(), questions.len()];
        assert_eq!(counts, [mine; 4], "{who:?}");
        let approvals =
            pages(|after| service.approvals(&who, vec![ApprovalState::Pending], after, limit).unwrap()).len();
        // Whoever may decide sees what there is to decide on.
        assert_eq!(approvals, if who.agent.is_some() { mine } else { 12 }, "{who:?}");
        let several = actions.iter().map(|action| &action.id).collect::<BTreeSet<_>>();
        assert_eq!(several.len(), mine);
    }
    // What an agent called, and what its user opened for it, is its own.
    house.open_session(&person("u"), "by-hand", None);
    house.open_session(&called("third", &["coder"]), "below", Some("c0"));
    let names = |who: &Principal| -> Vec<String> {
        let page = service.sessions(who, SessionFilter { limit: 2, ..SessionFilter::default() }).unwrap();
        page.items.into_iter().map(|session| session.id.to_string()).collect()
    };
    assert_eq!(names(&coder()), ["below", "by-hand"]);
    assert_eq!(names(&other()), ["by-hand", "o3"]);
}

#[test]
fn an_agent_sees_no_card_of_an_agent_of_the_same_name() {
    let house = house();
    let theirs = house.service.approvals(&agent("v", "coder"), vec![], None, 1).unwrap().items.remove(0);
    assert!(house.service.approval(&agent("v", "coder"), &theirs.approval).is_ok());
    let foreign = house.service.approval(&coder(), &theirs.approval);
    assert_eq!(foreign.unwrap_err().code, Code::ApprovalUnknown);
}

#[test]
fn the_log_of_a_session_holds_what_its_reader_may_see() {
    let house = house();
    let service = &house.service;
    let all = house.log(&["shared"]);
    let all: Vec<_> = all.into_iter().filter(|event| event.log.session == id("shared")).collect();
    for who in [coder(), other(), person("u"), agent("v", "coder")] {
        let mut read = Vec::new();
        loop {
            let after = read.last().map_or(0, |last: &glovebox_events::Logged| last.seq);
            let page = service.session_events(&who, &id("shared"), after, 5).unwrap();
            let last = page.len() < 5;
            read.extend(page);
            if last {
                break;
            }
        }
        let own: Vec<_> = all.iter().filter(|event| service.may_see(&who, event).unwrap()).cloned().collect();
        assert_eq!(read, own, "{who:?}");
        let of = |action: &Id| house.now(action).principal;
        let theirs = |event: &glovebox_events::Logged| {
            let of = of(event.event.action.as_ref().unwrap());
            of.user == who.user && (who.agent.is_none() || of.agent == who.agent)
        };
        assert!(!read.is_empty() && read.iter().all(theirs), "{who:?}");
        assert_eq!(read.len(), all.iter().filter(|event| theirs(event)).count());
    }
    assert_eq!(service.overseeing().session_events(&person("op"), &id("shared"), 0, 0).unwrap(), all);
    for (who, session) in [(person("op"), "shared"), (coder(), "nowhere"), (coder(), "o0"), (coder(), "v0")] {
        let unknown = service.session_events(&who, &id(session), 0, 0).unwrap_err();
        assert_eq!(unknown.code, Code::SessionUnknown, "{session}");
        assert_eq!(unknown.message, format!("there is no session `{session}`"), "foreign and unknown are alike");
    }
    let nowhere = service.overseeing().session_events(&person("op"), &id("nowhere"), 0, 0);
    assert_eq!(nowhere.unwrap_err().code, Code::SessionUnknown);
}

#[test]
fn what_is_recorded_comes_in_one_order_for_whoever_hands_it_on() {
    let house = house();
    let service = &house.service;
    let (mut after, mut read) = (0, Vec::new());
    loop {
        let page = service.recorded(after, 7).unwrap();
        let Some(last) = page.last() else { break };
        after = last.rank;
        read.extend(page);
    }
    assert_eq!(after, service.last_recorded().unwrap());
    assert!(read.windows(2).all(|two| two[0].rank < two[1].rank));
    let shared: Vec<_> =
        read.iter().map(|event| &event.logged).filter(|event| event.log.session == id("shared")).collect();
    assert!(shared.iter().map(|event| event.seq).eq(1..=shared.len() as u64), "the order of each log is kept");
    // Something happens, and whoever listens is told.
    let mut changes = service.changes().unwrap();
    changes.borrow_and_update();
    let mut submission = house.asked("fake.write", "{}");
    submission.principal.tenant = name("elsewhere");
    house.send(submission).unwrap();
    house.block_on(changes.changed()).unwrap();
    let new = service.recorded(after, 0).unwrap();
    assert!(!new.is_empty() && new.iter().all(|event| event.logged.log.tenant == name("elsewhere")));
}
