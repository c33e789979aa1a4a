//! Agents that were called: their questions go to the root, their approvals
//! show the chain and are never lent out.

use env_contracts::{Code, Principal};
use glovebox_events::{AskedOf, QuestionState};
use glovebox_plane::{AnswerSource, NewQuestion, OpenTurn, QuestionView, TurnStart};

use crate::fake::{TOOL, WRITE};
use crate::house::{House, Setup, agent, approval, done, id, name, offered, person, waiting};
use crate::loops::{about, called, coder, new_task, picks, text};
use crate::turns::ASK;

fn helper() -> Principal {
    called("helper", &["coder"])
}

fn deep() -> Principal {
    called("deep", &["coder", "helper"])
}

/// The loop `coder` in `s1`, which called `helper` in `s2`, which called `deep`
/// in `s3`.
fn house() -> House {
    let house = House::of(&Setup::of(&[WRITE, TOOL]).rules(ASK));
    house.runs_well();
    house.open_session(&coder(), "s1", None);
    house.open_session(&helper(), "s2", Some("s1"));
    house.open_session(&deep(), "s3", Some("s2"));
    for (who, task, session) in [(coder(), "t1", "s1"), (helper(), "t2", "s2"), (deep(), "t3", "s3")] {
        let new = new_task(task, session, glovebox_events::Budget::default());
        house.block_on(house.service.open_task(&who, new)).unwrap();
    }
    house
}

fn asks(house: &House, who: &Principal, task: &str) -> QuestionView {
    let asking = NewQuestion { task: id(task), lasts_ms: None, ..about("window", None) };
    house.block_on(house.service.ask(who, asking)).unwrap()
}

fn turn_of(house: &House, who: &Principal, task: &str) -> TurnStart {
    let expected_turn = house.task_named(task).turn.map_or(0, |turn| turn.number);
    let open = OpenTurn { task: id(task), expected_turn, goal_version: 1, key: None };
    house.block_on(house.service.open_turn(who, open)).unwrap()
}

#[test]
fn the_question_of_a_child_goes_to_its_root_which_answers_it() {
    let house = house();
    let asked = asks(&house, &deep(), "t3").question;
    assert_eq!((asked.to, &asked.root), (AskedOf::Root, &id("s1")));
    let start = turn_of(&house, &coder(), "t1");
    let child = &start.asked[0];
    assert_eq!((&child.id, &child.session, child.text.as_ref()), (&asked.id, &id("s3"), Some(&text())));
    assert_eq!(child.chain, [name("coder"), name("helper"), name("deep")]);
    assert!(turn_of(&house, &helper(), "t2").asked.is_empty(), "the one between is not asked");
    for foreign in [deep(), helper(), agent("u", "other"), called("coder", &["helper"])] {
        let refused = house.answer_question(&foreign, &asked.id, picks("one")).unwrap_err();
        assert!(matches!(refused.code, Code::NotEligible | Code::QuestionUnknown), "{foreign:?}: {refused:?}");
    }
    house.answer_question(&coder(), &asked.id, picks("one")).unwrap();
    let told = turn_of(&house, &deep(), "t3").answers.remove(0);
    assert_eq!((told.state, told.by, told.source), (QuestionState::Answered, Some(name("coder")), AnswerSource::Agent));
    assert!(turn_of(&house, &coder(), "t1").asked.is_empty());
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn the_root_passes_a_question_on_and_then_a_person_alone_answers() {
    let house = house();
    let asked = asks(&house, &helper(), "t2").question.id;
    let pass = |who: &Principal| house.block_on(house.service.pass_on(who, &asked));
    assert_eq!(pass(&helper()).unwrap_err().code, Code::NotEligible);
    assert_eq!(pass(&coder()).unwrap().question.to, AskedOf::Person);
    assert!(turn_of(&house, &coder(), "t1").asked.is_empty());
    assert_eq!(house.answer_question(&coder(), &asked, picks("one")).unwrap_err().code, Code::NotEligible);
    house.answer_question(&person("u"), &asked, picks("two")).unwrap();
    let told = turn_of(&house, &helper(), "t2").answers.remove(0);
    assert_eq!((told.by, told.source), (Some(name("u")), AnswerSource::Person));
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn the_root_lets_one_question_stand_for_others_and_all_get_its_answer() {
    let house = house();
    let one = asks(&house, &helper(), "t2").question.id;
    let two = asks(&house, &deep(), "t3").question.id;
    let own = asks(&house, &coder(), "t1").question.id;
    let merge = |who: &Principal, question: &env_contracts::Id, into: &env_contracts::Id| {
        house.block_on(house.service.merge(who, question, into)).map_err(|problem| problem.code)
    };
    assert_eq!(merge(&deep(), &two, &one).unwrap_err(), Code::QuestionUnknown);
    assert_eq!(merge(&coder(), &two, &two).unwrap_err(), Code::Usage);
    merge(&coder(), &two, &one).unwrap();
    assert_eq!(merge(&coder(), &two, &own).unwrap_err(), Code::QuestionClosed);
    assert_eq!(merge(&coder(), &one, &two).unwrap_err(), Code::Usage, "it would have no answer");
    // What others are merged into is merged again.
    merge(&coder(), &one, &own).unwrap();
    assert!(turn_of(&house, &deep(), "t3").answers.is_empty(), "nobody answered yet");
    assert_eq!(house.answer_question(&person("u"), &two, picks("one")).unwrap_err().code, Code::QuestionClosed);
    house.answer_question(&person("u"), &own, picks("two")).unwrap();
    for (who, task, question) in [(helper(), "t2", &one), (deep(), "t3", &two), (coder(), "t1", &own)] {
        let told = turn_of(&house, &who, task).answers.remove(0);
        assert_eq!((&told.question, told.state), (question, QuestionState::Answered), "{task}");
        assert_eq!(told.option, Some(id("two")), "{task}");
        assert!(turn_of(&house, &who, task).answers.is_empty(), "{task} was told twice");
    }
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn questions_with_other_options_or_of_another_tree_are_not_the_same() {
    let house = house();
    let one = asks(&house, &helper(), "t2").question.id;
    let mut asking = NewQuestion { task: id("t3"), ..about("window", None) };
    asking.text.options[0].id = id("none");
    let other = house.block_on(house.service.ask(&deep(), asking)).unwrap().question.id;
    let refused = house.block_on(house.service.merge(&coder(), &one, &other)).unwrap_err();
    assert_eq!(refused.code, Code::Usage);
    house.open_session(&coder(), "beside", None);
    let new = new_task("t4", "beside", glovebox_events::Budget::default());
    house.block_on(house.service.open_task(&coder(), new)).unwrap();
    let beside = asks(&house, &coder(), "t4").question.id;
    assert_eq!(house.block_on(house.service.merge(&coder(), &one, &beside)).unwrap_err().code, Code::Usage);
    house.audit(&["s1", "s2", "s3", "beside"]);
}

#[test]
fn only_who_asked_takes_a_question_back() {
    let house = house();
    let asked = asks(&house, &helper(), "t2").question.id;
    let back = |who: &Principal| house.block_on(house.service.withdraw_question(who, &asked));
    assert_eq!(back(&coder()).unwrap_err().code, Code::NotEligible);
    back(&helper()).unwrap();
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn where_a_person_opened_the_session_the_first_agent_in_it_is_its_root() {
    let house = House::of(&Setup::of(&[TOOL]).rules(ASK));
    house.open_session(&person("u"), "s1", None);
    house.open_session(&helper(), "s2", Some("s1"));
    house.open_session(&deep(), "s3", Some("s2"));
    for (who, task, session) in [(helper(), "t2", "s2"), (deep(), "t3", "s3")] {
        let new = new_task(task, session, glovebox_events::Budget::default());
        house.block_on(house.service.open_task(&who, new)).unwrap();
    }
    let asked = asks(&house, &deep(), "t3").question.id;
    assert_eq!(house.answer_question(&helper(), &asked, picks("one")).unwrap_err().code, Code::NotEligible);
    house.answer_question(&coder(), &asked, picks("one")).unwrap();
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn the_approval_of_a_child_shows_the_chain_and_no_agent_of_it_answers() {
    let house = house();
    let mut submission = house.asked("fake.write", "{}");
    (submission.principal, submission.context.session, submission.context.task) = (deep(), id("s3"), id("t3"));
    let waits = waiting(house.send(submission).unwrap());
    let inbox = house.service.approvals(&person("u"), vec![glovebox_events::ApprovalState::Pending], None, 0).unwrap();
    let card = inbox.items.iter().find(|card| card.approval == *approval(&waits)).unwrap();
    assert_eq!(card.requester.chain, [name("coder"), name("helper")]);
    assert_eq!(card.requester.agent, Some(name("deep")));
    for who in [coder(), helper(), deep()] {
        let refused = house.reply(&who, None, offered(approval(&waits), "once", None)).unwrap_err();
        assert_eq!(refused.code, Code::NotEligible, "{who:?}");
    }
    house.approve(&waits);
    assert_eq!(done(house.resume(&waits)).outcome.code, None);
    house.audit(&["s1", "s2", "s3"]);
}

#[test]
fn what_was_granted_to_a_parent_is_not_lent_to_its_child_nor_the_other_way() {
    for (to, others) in [(coder(), [helper(), deep()]), (helper(), [coder(), deep()])] {
        let house = House::of(&Setup::of(&[WRITE]).rules(ASK));
        house.runs_well();
        let request = |who: &Principal| {
            let mut submission = house.asked("fake.write", "{}");
            submission.principal = who.clone();
            house.send(submission).unwrap()
        };
        let first = waiting(request(&to));
        house.answer(approval(&first), "rule", None).unwrap();
        done(house.resume(&first));
        done(request(&to));
        for other in &others {
            waiting(request(other));
        }
        assert_eq!(house.ground.runs().len(), 2);
        house.audit(&["s1"]);
    }
}
