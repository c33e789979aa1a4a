//! An approval of one thing never makes another run, whatever happens in which
//! order: a draft is no release.

use env_contracts::Id;
use glovebox_events::Action;
use glovebox_plane::{Answering, Asking, Interrupting, OpenTurn, Reply, Saying, Signed, Submission, Target, Unwatched};
use glovebox_runtime::Stop;
use glovebox_store::ActionFilter;
use proptest::prelude::*;

use crate::fake::WRITE;
use crate::house::{Ground, House, Setup, id, name, offered, person};
use crate::loops::coder;

const ASK: &str = "permit (principal, action, resource) when { context has approval };";

#[derive(Debug, Clone)]
enum Move {
    Draft(u8),
    Release(u8),
    /// A person says yes to a draft, in one of the ways that are offered.
    Approve {
        of: u8,
        offer: &'static str,
    },
    /// A person puts other arguments into a draft: those of a release.
    Edit {
        of: u8,
        count: u8,
    },
    Resume(u8),
    Turn,
    Goal,
    Interrupt,
    Recover,
    Restart,
}

fn moves() -> impl Strategy<Value = Move> {
    let offer = prop_oneof![Just("once"), Just("turn"), Just("task"), Just("session"), Just("rule")];
    prop_oneof![
        4 => (0u8..2).prop_map(Move::Draft),
        4 => (0u8..2).prop_map(Move::Release),
        6 => (any::<u8>(), offer).prop_map(|(of, offer)| Move::Approve { of, offer }),
        1 => (any::<u8>(), 0u8..2).prop_map(|(of, count)| Move::Edit { of, count }),
        8 => any::<u8>().prop_map(Move::Resume),
        1 => Just(Move::Turn),
        1 => Just(Move::Goal),
        1 => Just(Move::Interrupt),
        1 => Just(Move::Recover),
        1 => Just(Move::Restart),
    ]
}

fn setup() -> Setup {
    let named = |tool: &str| WRITE.replacen("fake.write", tool, 1);
    Setup::of(&[&named("draft.create"), &named("production.deploy")]).rules(ASK)
}

/// The actions of a capability, or of all.
fn actions(house: &House, of: Option<&str>) -> Vec<Action> {
    let all = house.store.actions(&name("local"), &ActionFilter::default()).unwrap().items;
    all.into_iter().filter(|action| of.is_none_or(|of| action.capability.name.to_string() == of)).collect()
}

fn one(actions: &[Action], number: u8) -> Option<&Action> {
    actions.get(usize::from(number) % actions.len().max(1))
}

fn request(house: &House, tool: &str, count: u8) -> Submission {
    let mut submission = house.asked(tool, &format!(r#"{{"count":{count}}}"#));
    submission.context.turn = house.task().open_turn().map(|turn| turn.number);
    submission
}

fn answer(house: &House, approval: &Id, answer: Answering) {
    let reply = Reply { approval: approval.clone(), seen: None, answer, words: None };
    let by = Signed { principal: &person("u"), key: None, channel: name("test") };
    drop(house.block_on(house.service.answer(by, reply)));
}

fn carry(house: &House, step: &Move) {
    let drafts = || actions(house, Some("draft.create"));
    match step {
        Move::Draft(count) => drop(house.send(request(house, "draft.create", *count))),
        Move::Release(count) => drop(house.send(request(house, "production.deploy", *count))),
        Move::Approve { of, offer } => {
            let drafts = drafts();
            let Some(asked) = one(&drafts, *of).and_then(|action| action.approval.as_ref()) else { return };
            answer(house, &asked.id, offered(&asked.id, offer, None).answer);
        }
        Move::Edit { of, count } => {
            let drafts = drafts();
            let Some(asked) = one(&drafts, *of).and_then(|action| action.approval.as_ref()) else { return };
            answer(
                house,
                &asked.id,
                Answering::Edit { arguments: Some(format!(r#"{{"count":{count}}}"#)), scope: None },
            );
        }
        Move::Resume(number) => {
            let actions = actions(house, None);
            let Some(action) = one(&actions, *number) else { return };
            let (watch, stop) = (std::sync::Arc::new(Unwatched), Stop::default());
            drop(house.block_on(house.service.resume(&coder(), &action.id, Asking::Leave, watch, &stop)));
        }
        Move::Turn => {
            let task = house.task();
            let expected_turn = task.turn.map_or(0, |turn| turn.number);
            let open = OpenTurn { task: id("t1"), expected_turn, goal_version: task.goal.version, key: None };
            drop(house.block_on(house.service.open_turn(&coder(), open)));
        }
        Move::Goal => drop(house.say(Saying::Goal("something else"))),
        Move::Interrupt => {
            let asked = Interrupting { target: Target::Turn(id("t1")), grace: None, reason: None };
            drop(house.block_on(house.service.interrupt(&person("u"), asked)));
        }
        Move::Recover => drop(house.block_on(house.service.recover())),
        Move::Restart => unreachable!("the test does that"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn an_approved_draft_never_releases(steps in proptest::collection::vec(moves(), 10..40)) {
        let (ground, setup) = (Ground::new(), setup());
        let mut house = House::open(&ground, &setup);
        house.runs_well();
        house.open_task();
        for step in &steps {
            if matches!(step, Move::Restart) {
                house = House::open(&ground, &setup);
            } else {
                carry(&house, step);
            }
        }
        for release in actions(&house, Some("production.deploy")) {
            prop_assert_eq!(ground.ran(&release.id), 0, "{:?} ran, and only drafts were approved", release);
            prop_assert!(release.right.is_none());
        }
        house.audit(&["s1"]);
    }
}

/// What the property rests on: drafts that are approved do run.
#[test]
fn an_approved_draft_drafts() {
    let house = House::of(&setup());
    house.runs_well();
    house.open_task();
    for step in
        [Move::Draft(0), Move::Release(0), Move::Approve { of: 0, offer: "rule" }, Move::Resume(0), Move::Resume(1)]
    {
        carry(&house, &step);
    }
    let draft = &actions(&house, Some("draft.create"))[0];
    assert_eq!((house.ground.ran(&draft.id), house.ground.runs().len()), (1, 1));
}
