//! What a person puts in place: only what they name, and not for ever.

use env_contracts::{Code, OutcomeKind, Principal, Scope};
use glovebox_events::{Action, ActionState};
use glovebox_plane::{Answering, Recovered, Reply, Settled};

use crate::fake::{WRITE, returned};
use crate::house::{House, Setup, approval, done, name, offered, person, waiting};

fn contract(sections: &str) -> Scope {
    Scope::from_toml(&format!("schema = \"glovebox/contract/v1\"\n{sections}")).unwrap()
}

fn edits(house: &House, action: &Action, arguments: Option<&str>, scope: Option<&str>) -> Settled {
    let answer = Answering::Edit { arguments: arguments.map(str::to_owned), scope: scope.map(contract) };
    let reply = Reply { approval: approval(action).clone(), seen: None, answer, words: None };
    house.reply(&person("u"), None, reply).unwrap()
}

const HIDES: &str = "filesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"write\", hide = [\".env*\", \"*.pem\", \"*.key\", \".git/config\", \".npmrc\", \".netrc\", \".aws/\", \"private/\"] }]\n";

#[test]
fn what_an_edit_does_not_name_stays_as_it_was_asked_and_edited_before() {
    let house = House::of(&Setup::of(&[WRITE]));
    house.on_run(|bound, _| {
        let contract = &bound.plan.contract;
        assert!(contract.filesystem[0].hide.iter().flatten().any(|hidden| hidden == "private/"), "{contract:?}");
        assert_eq!(contract.limits.wall.unwrap().0.as_secs(), 4);
        assert_eq!(bound.plan.arguments, r#"{"count":2}"#);
        returned("{}")
    });
    let mut submission = house.asked("fake.write", r#"{"count":1}"#);
    submission.request.scope = Some(contract(HIDES));
    let first = waiting(house.send(submission).unwrap());
    let second = edits(&house, &first, Some(r#"{"count":2}"#), None).action;
    // The arguments that were put in place before stay as well.
    let third = edits(&house, &second, None, Some("[limits]\nwall = \"4s\"\n")).action;
    house.approve(&third);
    assert_eq!(done(house.resume(&first)).outcome.code, None);
    assert_eq!(house.ground.ran(&first.id), 1);
    house.audit(&["s1"]);
}

/// Whoever edited it runs nothing, and whoever asked may never come back.
#[test]
fn what_an_edit_made_allowed_waits_as_long_as_its_question_would_have() {
    let rules = "permit (principal, action, resource) when { context has approval };\n\
         permit (principal, action, resource) when { context.args has count && context.args.count == 7 };";
    let house = House::of(&Setup::of(&[WRITE]).rules(rules));
    house.runs_well();
    let edited = || {
        let action = house.waits("fake.write", r#"{"count":1}"#);
        edits(&house, &action, Some(r#"{"count":7}"#), None);
        assert_eq!(house.now(&action.id).state, ActionState::Requested);
        action
    };
    let (used, late, forgotten) = (edited(), edited(), edited());
    let expires = used.approval.as_ref().unwrap().expires_ms.unwrap();
    house.ground.clock.set(expires - 1);
    assert_eq!(house.block_on(house.service.recover()).unwrap(), Recovered::default());
    assert_eq!(done(house.resume(&used)).outcome.code, None);
    house.ground.clock.set(expires);
    assert_eq!(done(house.resume(&late)).outcome.kind, OutcomeKind::Expired);
    assert_eq!(house.block_on(house.service.recover()).unwrap(), Recovered { lost: 0, expired: 1 });
    assert_eq!(house.now(&forgotten.id).end.unwrap().kind, OutcomeKind::Expired);
    assert_eq!(house.ground.runs().len(), 1);
    house.audit(&["s1"]);
}

/// Who acts on behalf of an agent is no person, also where the door names no agent.
#[test]
fn whoever_hands_on_what_an_agent_wants_decides_nothing() {
    let house = House::of(&Setup::of(&[WRITE]));
    let action = house.waits("fake.write", "{}");
    let by = Principal { chain: vec![name("coder")], ..person("u") };
    let reply = offered(approval(&action), "once", None);
    assert_eq!(house.reply(&by, None, reply).unwrap_err().code, Code::NotEligible);
    assert_eq!(house.block_on(house.service.stop_all(&by, None)).unwrap_err().code, Code::NotEligible);
    house.block_on(house.service.stop_all(&person("u"), None)).unwrap();
    assert_eq!(house.block_on(house.service.release(&by)).unwrap_err().code, Code::NotEligible);
    assert_eq!(house.block_on(house.service.erase(&by, &action.id)).unwrap_err().code, Code::Usage);
    house.block_on(house.service.release(&person("u"))).unwrap();
}

#[test]
fn who_may_not_answer_is_told_who_may() {
    let rules = "permit (principal, action, resource) \
         when { context has approval && context.approval.at_least.contains(\"console-login\") };";
    let mut setup = Setup::of(&[WRITE]).rules(rules);
    for (known, words) in [
        (vec![name("mira")], "--as mira"),
        (vec![name("noor")], "`noor` may, as the user of this machine that they are, through `glovebox serve`"),
        (Vec::new(), "glovebox approver add NAME"),
    ] {
        setup.known = known;
        let house = House::of(&setup);
        let action = house.waits("fake.write", "{}");
        let problem = house.answer(approval(&action), "once", None).unwrap_err();
        assert_eq!(problem.code, Code::NotEligible);
        assert!(problem.help.contains(words), "{}", problem.help);
    }
}

#[test]
fn a_denial_tells_people_the_reason_and_agents_what_is_for_them() {
    let rules = "@reason(\"the books are closed\")\n@model(\"try next year\")\nforbid (principal, action, resource);";
    let house = House::of(&Setup::of(&[WRITE]).rules(rules));
    let said = |by: Principal| {
        let mut submission = house.asked("fake.write", "{}");
        submission.principal = by;
        done(house.send(submission).unwrap()).outcome
    };
    let (people, agents) = (said(person("u")), said(house.asked("fake.write", "{}").principal));
    assert!(people.message.unwrap().contains("the books are closed"));
    assert!(agents.message.unwrap().contains("try next year"));
    for help in [people.help.unwrap(), agents.help.unwrap()] {
        assert!(help.contains("no approval changes it") && !help.contains("contract"), "{help}");
    }
}
