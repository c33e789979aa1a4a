//! The table of what becomes of what is pending, played: one process leaves
//! something, something changes, and another process comes to it.

use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Code, DerivedEffects, Id, OutcomeKind};
use glovebox_events::{ActionState, QuestionState, Reach, TaskState};
use glovebox_plane::machine::{Change, Pending, Then, after, table};
use glovebox_plane::{Asking, Interrupting, OpenTurn, Saying, Submitted, Target, Unwatched};
use glovebox_runtime::Stop;
use glovebox_runtime::job::{End, Timer};
use glovebox_store::{ActionFilter, DueOf};

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE, returned};
use crate::house::{CLASSES, Ground, House, Setup, approval, done, id, name, person, put_policy, waiting};
use crate::loops::{about, coder};
use crate::turns::ASK;

/// Only whoever logs in may answer.
const LOGINS: &str = "[classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";
const ALLOW: &str = "permit (principal, action, resource);";

#[test]
fn the_page_says_what_the_table_says() {
    let page = fs_err::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/resume.md")).unwrap();
    assert!(page.contains(&format!("\n\n{}\n", table().trim_end())), "docs/resume.md is to contain:\n{}", table());
}

/// A process that leaves something, and one that comes to it.
struct World {
    left: Option<House>,
    comes: House,
}

impl World {
    fn new(rules: &str) -> Self {
        let ground = Ground::new();
        fs_err::write(ground.path("workspace/t.sh"), "before").unwrap();
        let setup = Setup { approvers: CLASSES.to_owned(), ..Setup::of(&[WRITE, TOOL]).rules(rules) };
        let (left, comes) = (House::open(&ground, &setup), House::open(&ground, &setup));
        comes.runs_well();
        comes.open_task();
        comes.turn();
        Self { left: Some(left), comes }
    }

    fn request(&self, house: &House) -> glovebox_plane::Submission {
        house.in_turn("fake.write", r#"{"path":"t.sh"}"#, 1)
    }

    /// The process that dies after so many commits.
    fn dying(&self, commits: u32) -> House {
        let rules = fs_err::read_to_string(self.comes.path("policy/rules.cedar")).unwrap();
        House::open_over(&self.comes.ground, &Setup::of(&[WRITE, TOOL]).rules(&rules), |store| {
            Between::over(store, move |moment| !matches!(moment, Moment::After(number) if number >= commits))
        })
    }

    /// What changes meanwhile.
    fn changes(&mut self, change: Change) {
        let house = &self.comes;
        match change {
            Change::Restart => self.left = None,
            Change::Time => {
                house.ground.clock.forward(Duration::from_secs(48 * 3600));
                house.block_on(house.service.recover()).unwrap();
            }
            Change::Turn => {
                let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 1, key: None };
                house.block_on(house.service.open_turn(&coder(), open)).unwrap();
            }
            Change::Goal => drop(house.say(Saying::Goal("something else"))),
            Change::End => {
                house.block_on(house.service.end_task(&coder(), &id("t1"), TaskState::Done, None)).unwrap();
            }
            Change::Interrupt => {
                let asked = Interrupting { target: Target::Turn(id("t1")), grace: None, reason: None };
                house.block_on(house.service.interrupt(&person("u"), asked)).unwrap();
            }
            Change::Subject => fs_err::write(house.path("workspace/t.sh"), "after").unwrap(),
            Change::Policy => put_policy(&house.ground, ASK, LOGINS),
        }
    }

    /// What became of an action.
    fn became(&self, action: &Id) -> Then {
        let house = &self.comes;
        let before = house.now(action);
        let asked = before.approval.as_ref().map(|approval| approval.id.clone());
        if before.state == ActionState::WaitingApproval
            && let Err(refused) = house.answer(approval(&before), "once", None)
        {
            assert!(!refused.retryable);
        }
        house.block_on(house.service.recover()).unwrap();
        assert_eq!(house.ground.ran(action), 0, "it ran although nobody came back for it");
        let mut resumed = house.resume_as(&coder(), action, Asking::Leave);
        if resumed.as_ref().is_err_and(|refused| refused.code == Code::GoalChanged) {
            // Not before the loop is in a turn for the new goal.
            assert_eq!(house.now(action).state, ActionState::Authorized);
            let open = OpenTurn { task: id("t1"), expected_turn: 1, goal_version: 2, key: None };
            house.block_on(house.service.open_turn(&coder(), open)).unwrap();
            resumed = house.resume_as(&coder(), action, Asking::Leave);
        }
        match resumed.unwrap() {
            Submitted::Waiting(now) if asked.is_some() => {
                assert_ne!(now.approval.map(|approval| approval.id), asked);
                Then::AskPerson
            }
            Submitted::Waiting(_) => Then::Continue,
            Submitted::Done(seen) if seen.outcome.code.is_none() => {
                let again = house.kinds(action).contains(&"reaffirmed");
                if again { Then::AskRequester } else { Then::Continue }
            }
            Submitted::Done(seen) if seen.outcome.kind == OutcomeKind::Unknown => Then::Unknown,
            Submitted::Done(_) => Then::Cancel,
        }
    }
}

fn an_action(change: Change, approved: bool) -> Then {
    let mut world = World::new(ASK);
    let left = world.left.as_ref().unwrap();
    let action = waiting(left.send(world.request(left)).unwrap());
    if approved {
        left.approve(&action);
    }
    world.changes(change);
    let then = world.became(&action.id);
    world.comes.audit(&["s1"]);
    then
}

fn a_proposal(change: Change) -> Then {
    let mut world = World::new(ASK);
    let dying = world.dying(1);
    let mut submission = world.request(&dying);
    submission.request.idempotency_key = Some(name("key"));
    drop(dying.send(submission));
    drop(dying);
    let filter = ActionFilter { states: vec![ActionState::Requested], ..ActionFilter::default() };
    let action = world.comes.store.actions(&name("local"), &filter).unwrap().items.remove(0);
    world.changes(change);
    let then = world.became(&action.id);
    world.comes.audit(&["s1"]);
    then
}

fn a_question(change: Change) -> Then {
    let mut world = World::new(ASK);
    let asked = world.left.as_ref().unwrap().ask(about("window", Some(1))).unwrap().question.id;
    world.changes(change);
    if world.comes.question(&asked).state != QuestionState::Pending {
        assert!(world.comes.answer_question(&person("u"), &asked, crate::loops::picks("one")).is_err());
        return Then::Cancel;
    }
    world.comes.answer_question(&person("u"), &asked, crate::loops::picks("one")).unwrap();
    assert_eq!(world.comes.turn().answers.len(), 1);
    world.comes.audit(&["s1"]);
    Then::Continue
}

fn a_grant(change: Change) -> Then {
    let mut world = World::new(ASK);
    let left = world.left.as_ref().unwrap();
    left.runs_well();
    let first = waiting(left.send(world.request(left)).unwrap());
    let grant = left.answer(approval(&first), "turn", None).unwrap().grant.unwrap();
    done(left.resume(&first));
    world.changes(change);
    let house = &world.comes;
    let known = house.store.grant(&name("local"), &grant.id).unwrap().unwrap();
    let live = known.live(house.ground.clock.ms());
    if let Ok(went) = house.send(world.request(house)) {
        let used = matches!(went, Submitted::Done(_));
        // What it covers is not the same any more.
        assert!(used == live || matches!(change, Change::Subject | Change::Policy), "{change:?}: {went:?}");
    }
    house.audit(&["s1"]);
    if live { Then::Continue } else { Then::Cancel }
}

/// Changes while it runs, in another process than the one that carries it.
fn a_run(change: Change, external: bool) -> Then {
    let tool = if external { "fake.write" } else { "fake.tool" };
    let mut world = World::new(ALLOW);
    if change == Change::Restart {
        // It was claimed, or seen to run, and then its process was gone.
        let dying = world.dying(1);
        dying.on_run(|_, ports| {
            while !ports.stop.is_requested() {
                std::thread::sleep(Duration::from_millis(5));
            }
            End::Interrupted
        });
        let stop = Stop::default();
        let service = dying.service.clone();
        let submission = dying.in_turn(tool, "{}", 1);
        let carried =
            dying.ground.tokio.spawn(async move { service.submit(submission, Arc::new(Unwatched), &stop).await });
        let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
        let action = loop {
            if let Some(action) = world.comes.store.actions(&name("local"), &filter).unwrap().items.pop() {
                break action;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        carried.abort();
        let _ = dying.block_on(carried);
        drop(dying);
        let seen = loop {
            world.comes.block_on(world.comes.service.recover()).unwrap();
            if let Submitted::Done(seen) = world.comes.resume_as(&coder(), &action.id, Asking::Leave).unwrap() {
                break seen;
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        return ended(&seen);
    }
    if change == Change::Time {
        world.comes.on_run(|_, _| End::TimedOut(Timer::Wall));
        return ended(&done(world.comes.send(world.comes.in_turn(tool, "{}", 1)).unwrap()));
    }
    let left = world.left.take().unwrap();
    let go_on = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = go_on.clone();
    left.on_run(move |_, ports| {
        while !flag.load(std::sync::atomic::Ordering::SeqCst) && !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(5));
        }
        if ports.stop.is_requested() { End::Interrupted } else { returned(r#"{"ok":1}"#) }
    });
    let stop = Stop::default();
    let service = left.service.clone();
    let submission = left.in_turn(tool, "{}", 1);
    let carried = left.ground.tokio.spawn(async move { service.submit(submission, Arc::new(Unwatched), &stop).await });
    let filter = ActionFilter { states: vec![ActionState::Running], ..ActionFilter::default() };
    while world.comes.store.actions(&name("local"), &filter).unwrap().items.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    world.changes(change);
    go_on.store(true, std::sync::atomic::Ordering::SeqCst);
    let seen = done(left.block_on(carried).unwrap().unwrap());
    left.audit(&["s1"]);
    ended(&seen)
}

fn ended(seen: &env_contracts::Observation) -> Then {
    match seen.outcome.kind {
        OutcomeKind::Unknown => Then::Unknown,
        _ if seen.outcome.code.is_none() => Then::Continue,
        _ => Then::Cancel,
    }
}

fn an_interrupt(change: Change) -> Then {
    let mut world = World::new(ASK);
    let dying = world.dying(1);
    let asked = Interrupting { target: Target::Turn(id("t1")), grace: None, reason: None };
    dying.block_on(dying.service.interrupt(&person("u"), asked)).unwrap_err();
    drop(dying);
    let received = world.comes.task().interrupt.unwrap();
    assert_eq!((received.reach, received.stopped_ms), (Reach::Turn, None));
    // No turn opens before it has stopped, and a later one stands for it.
    if !matches!(change, Change::Turn | Change::Interrupt) {
        world.changes(change);
    }
    world.comes.block_on(world.comes.service.recover()).unwrap();
    let now = world.comes.task().interrupt.unwrap();
    world.comes.audit(&["s1"]);
    if now.id == received.id && now.stopped_ms.is_some() { Then::Continue } else { Then::Cancel }
}

#[test]
fn every_row_of_the_table_is_what_happens() {
    let mut wrong = Vec::new();
    for pending in Pending::ALL {
        for change in Change::ALL {
            let then = match pending {
                Pending::Proposal => a_proposal(change),
                Pending::Approval => an_action(change, false),
                Pending::Approved => an_action(change, true),
                Pending::Question => a_question(change),
                Pending::Run => a_run(change, false),
                Pending::ExternalRun => a_run(change, true),
                Pending::TurnGrant => a_grant(change),
                Pending::Interrupt => an_interrupt(change),
            };
            if then != after(pending, change) {
                wrong.push(format!("{pending:?} × {change:?}: {then:?}, and not {:?}", after(pending, change)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What has to end by its time is found by whoever looks, once.
#[test]
fn what_is_due_is_found_in_the_order_of_its_time() {
    let world = World::new(ASK);
    let house = &world.comes;
    let question = house.ask(about("window", Some(1))).unwrap().question;
    let action = waiting(house.send(world.request(house)).unwrap());
    assert_eq!(house.now(&action.id).effects, Some(DerivedEffects::External));
    house.ground.clock.forward(Duration::from_secs(48 * 3600));
    let due = house.store.expiring(house.ground.clock.ms(), 10).unwrap();
    let (first, second) = (&due[0].what, &due[1].what);
    assert_eq!(first, &DueOf::Question(question.id));
    assert_eq!(second, &DueOf::Approval { action: action.id.clone(), approval: approval(&action).clone() });
    assert_eq!(house.block_on(house.service.recover()).unwrap().expired, 2);
    house.audit(&["s1"]);
}
