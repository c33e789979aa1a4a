//! What a review is worth: nothing without its action behind it, nothing after
//! somebody else answered, and the policy of the claim decides.

use env_contracts::{Code, OutcomeKind};
use glovebox_events::{Action, ActionState, Approval, ApprovalState, Reviewed, What};
use glovebox_plane::Asking;
use rusqlite::{Connection, params};

use crate::followups::{either, played, what};
use crate::house::{House, approval, done, name, offered, person};
use crate::reviewers::{NO, OWNER, ROBOT_CLASS, RULES, YES, alone, both, house, last, says, sent, setup};

#[test]
fn nobody_else_is_a_reviewer_and_a_reviewer_is_nobody_else() {
    let house = house(&both(), NO);
    let action = sent(&house, Asking::Leave).unwrap_err();
    let by = person("u");
    let as_robot = glovebox_plane::Signed { principal: &by, key: None, channel: name("reviewer") };
    let reply = || offered(approval(&action), "once", None);
    let error = house.block_on(house.service.answer(as_robot, reply())).unwrap_err();
    assert_eq!(error.code, Code::NotEligible);
    // A user of the class's name is not the class.
    let robot = house.service.approval(&person("u"), approval(&action)).unwrap();
    assert!(robot.classes.contains(&name("robot")));
    let alone_house = self::house(
        &setup(&format!("[classes.owner]\nsubjects = [\"ann\"]\nassurance = \"same-user\"\n{ROBOT_CLASS}")),
        NO,
    );
    let action = sent(&alone_house, Asking::Leave).unwrap_err();
    let error = alone_house.reply(&person("robot"), None, offered(approval(&action), "once", None)).unwrap_err();
    assert_eq!(error.code, Code::NotEligible);
}

#[test]
fn the_policy_of_the_claim_decides_whether_a_reviewers_yes_still_counts() {
    // It says yes, and the class is gone before the action runs.
    let house = house(&alone(), YES);
    let ground = house.ground.clone();
    house.on_run(move |bound, _| {
        if what(bound) == "fake.robot" {
            crate::house::put_policy(&ground, RULES, OWNER);
        }
        played(YES)
    });
    let submission = house.asked("fake.write", "{}");
    let went = either(house.send(submission).unwrap());
    let ran = house.all_of("fake.write").iter().map(|action| house.ground.ran(&action.id)).sum::<usize>();
    assert_eq!(ran, 0, "{went:?}");
}

#[test]
fn a_yes_without_a_review_behind_it_runs_nothing() {
    let base = || {
        let house = house(&both(), NO);
        let action = sent(&house, Asking::Leave).unwrap_err();
        (house, action)
    };
    let forge = |house: &House, action: &Action, change: &dyn Fn(&mut Approval)| {
        let mut forged = house.now(&action.id);
        let asked = forged.approval.as_mut().unwrap();
        let mut given = crate::steps::answer("p", glovebox_events::Answered::Approve, "d");
        given.approval = asked.id.clone();
        given.seen = asked.digest.clone();
        given.at_ms = house.ground.clock.ms();
        (given.by.name, given.by.channel) = (name("robot"), name("reviewer"));
        given.by.assurance = env_contracts::Assurance::SameUser;
        (asked.state, asked.answer) = (ApprovalState::Approved, Some(given));
        forged.state = ActionState::Authorized;
        change(forged.approval.as_mut().unwrap());
        let body = serde_json::to_vec(&forged).unwrap();
        let database = Connection::open(house.path("state/store.db")).unwrap();
        let written = database.execute(
            "UPDATE actions SET body = ?, state = ?, version = ? WHERE id = ?",
            params![body, forged.state.as_str(), forged.version, forged.id.as_str()],
        );
        assert_eq!(written.unwrap(), 1);
    };
    let approved = |approval: &mut Approval| approval.reviews[0].verdict = Reviewed::Approved;
    // The review says no; it is said to have said yes.
    let (one, action) = base();
    forge(&one, &action, &approved);
    let seen = done(one.resume(&action));
    assert_eq!((seen.outcome.kind, seen.outcome.code), (OutcomeKind::Drift, Some(Code::SignatureInvalid)));
    // There is none at all.
    let (two, action) = base();
    forge(&two, &action, &|approval| approval.reviews.clear());
    assert_eq!(done(two.resume(&action)).outcome.code, Some(Code::SignatureInvalid));
    // It is of another plan, and that one said yes.
    let (three, action) = base();
    says(&three, YES);
    let other = sent(&three, Asking::Leave).unwrap();
    let yes = last(&three, &other.action_id).reviews[0].action.clone();
    forge(&three, &action, &move |approval| {
        approval.reviews[0].verdict = Reviewed::Approved;
        approval.reviews[0].action.clone_from(&yes);
    });
    assert_eq!(done(three.resume(&action)).outcome.code, Some(Code::SignatureInvalid));
    for (house, action) in [(&one, ()), (&two, ()), (&three, ())].map(|(house, ())| (house, house.all_of("fake.write")))
    {
        let forged = action.iter().filter(|action| action.end.as_ref().is_some_and(|end| end.code.is_some()));
        assert!(forged.map(|action| house.ground.ran(&action.id)).all(|ran| ran == 0));
    }
}

#[test]
fn who_answers_first_is_heard_also_while_it_is_reviewed() {
    let house = House::of(&both());
    let (service, tokio, store) = (house.service.clone(), house.ground.tokio.handle().clone(), house.store.clone());
    house.on_run(move |bound, _| {
        if what(bound) == "fake.robot" {
            let filter = glovebox_store::ApprovalFilter::default();
            let pending = store.approvals(&name("local"), &filter).unwrap().items.remove(0).1;
            let by = person("u");
            let signed = glovebox_plane::Signed { principal: &by, key: None, channel: name("test") };
            tokio.block_on(service.answer(signed, offered(&pending.id, "decline", None))).unwrap();
        }
        played(YES)
    });
    let seen = sent(&house, Asking::Leave).unwrap();
    assert_eq!((seen.outcome.kind, seen.outcome.which), (OutcomeKind::Declined, None));
    assert_eq!(house.ground.ran(&seen.action_id), 0);
    let answers = house.of_action(&seen.action_id);
    let answers = answers.iter().filter(|logged| matches!(logged.event.what, What::ApprovalAnswered { .. })).count();
    assert_eq!(answers, 1);
}

#[test]
fn a_review_goes_on_in_the_next_process_where_the_first_died() {
    let house = house(&alone(), YES);
    // The first process put the question, and died before it asked.
    let half = House::open_over(&house.ground, &alone(), |store| {
        crate::between::Between::over(store, |moment| !matches!(moment, crate::between::Moment::Before(2..)))
    });
    let mut submission = half.asked("fake.write", "{}");
    submission.request.action_id = None;
    let _ = half.send(submission);
    let action = house.only("fake.write");
    assert_eq!((action.state, action.approval.as_ref().unwrap().reviews.len()), (ActionState::WaitingApproval, 0));
    assert_eq!(done(house.resume(&action)).outcome.code, None);
    house.audit(&["s1"]);
}
