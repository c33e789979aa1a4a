//! `kill -9` at every boundary between an effect and its record. This program
//! starts itself again, does one thing, and dies where it is told to; then the
//! next process has to make sense of what is left.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use env_contracts::{Observation, OutcomeKind};
use glovebox_events::{Action, ActionState};
use glovebox_plane::{Asking, Submitted};
use glovebox_store::{ActionFilter, Store};

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE, returned};
use crate::house::{Ground, House, Setup, approval, id, name, offered, person};

/// Tells the program that it is the one that dies, where, and doing what.
const FOLDER: &str = "GLOVEBOX_TEST_CRASH_FOLDER";
const DOING: &str = "GLOVEBOX_TEST_CRASH_DOING";
const AT: &str = "GLOVEBOX_TEST_CRASH_AT";

const ALLOW: &str = "permit (principal, action, resource);";

/// What is done; what the process dies at; how it is in the end, and how often
/// the action ran by then.
const MATRIX: &[(&str, &str, &str, usize)] = &[
    ("ask", "before-1", "completed", 1),
    ("ask", "after-1", "completed", 1),
    ("approve", "before-1", "completed", 1),
    ("approve", "after-1", "completed", 1),
    ("approve-session", "before-1", "completed", 1),
    ("approve-session", "after-1", "completed", 1),
    ("decline", "before-1", "declined", 0),
    ("decline", "after-1", "declined", 0),
    // Its client is gone: the door that starts anew goes on with it.
    ("held", "before-1", "completed", 1),
    ("held", "after-1", "completed", 1),
    ("edit", "before-1", "completed", 1),
    ("edit", "after-1", "completed", 1),
    ("edit", "before-2", "completed", 1),
    ("edit", "after-2", "completed", 1),
    ("cancel", "before-1", "interrupted(approval)", 0),
    ("cancel", "after-1", "interrupted(approval)", 0),
    ("expire", "before-1", "expired", 0),
    ("expire", "after-1", "expired", 0),
    // Nothing was claimed: whoever asked can go on.
    ("resume", "before-1", "completed", 1),
    // It was claimed: whether it took effect is not known, so it is not done again.
    ("resume", "after-1", "unknown(worker-lost)", 0),
    ("resume", "in-run", "unknown(worker-lost)", 1),
    ("resume", "before-2", "unknown(worker-lost)", 1),
    ("resume", "after-2", "completed", 1),
    ("allowed", "before-1", "completed", 1),
    ("allowed", "after-1", "unknown(worker-lost)", 0),
    ("allowed", "in-run", "unknown(worker-lost)", 1),
    ("allowed", "before-2", "unknown(worker-lost)", 1),
    ("allowed", "after-2", "completed", 1),
    ("keyed", "before-1", "completed", 1),
    ("keyed", "after-1", "completed", 1),
    ("keyed", "before-2", "completed", 1),
    ("keyed", "after-2", "unknown(worker-lost)", 0),
    ("keyed", "in-run", "unknown(worker-lost)", 1),
    ("keyed", "before-3", "unknown(worker-lost)", 1),
    ("keyed", "after-3", "completed", 1),
    // An id of the requester's is taken before anything else.
    ("named", "before-1", "completed", 1),
    ("named", "after-1", "completed", 1),
    ("named", "before-2", "completed", 1),
    ("named", "after-2", "unknown(worker-lost)", 0),
    ("named", "in-run", "unknown(worker-lost)", 1),
    ("named", "before-3", "unknown(worker-lost)", 1),
    ("named", "after-3", "completed", 1),
    // It can change nothing, and until it took a while nothing of it was
    // recorded: the first left no trace, and it is another that ran.
    ("harmless", "in-run", "completed", 1),
    ("harmless", "recorded", "interrupted(worker-lost)", 1),
    ("halt", "before-1", "completed", 1),
    ("halt", "after-1", "policy-denied", 0),
    ("halt", "before-2", "policy-denied", 0),
    ("halt", "after-2", "interrupted(approval)", 0),
];

fn setup(doing: &str) -> Setup {
    let setup = Setup::of(&[WRITE, TOOL]);
    if matches!(doing, "allowed" | "keyed" | "named") { setup.rules(ALLOW) } else { setup }
}

fn request(house: &House, doing: &str) -> glovebox_plane::Submission {
    let tool = if doing == "harmless" { "fake.tool" } else { "fake.write" };
    let mut submission = house.asked(tool, r#"{"count":1}"#);
    match doing {
        "keyed" => submission.request.idempotency_key = Some(name("key")),
        "named" => submission.request.action_id = Some(id("act")),
        "held" => submission.held = true,
        _ => {}
    }
    submission
}

/// The action, whatever its id is.
fn the_action(store: &dyn Store) -> Option<Action> {
    let filter = ActionFilter { session: Some(id("s1")), ..ActionFilter::default() };
    store.actions(&name("local"), &filter).unwrap().items.into_iter().next()
}

/// What leads to what is done.
fn prepare(house: &House, doing: &str) {
    if matches!(doing, "ask" | "allowed" | "keyed" | "named" | "harmless") {
        return;
    }
    let Ok(Submitted::Waiting(action)) = house.send(request(house, doing)) else { panic!("nobody is asked") };
    if doing == "resume" {
        house.approve(&action);
    }
}

/// What is done, at which the process dies.
fn perform(house: &House, doing: &str) {
    let action = the_action(&*house.store);
    let waits = || approval(action.as_ref().unwrap()).clone();
    match doing {
        "ask" | "allowed" | "keyed" | "named" | "harmless" => drop(house.send(request(house, doing)).unwrap()),
        "resume" => drop(house.resume(&action.unwrap())),
        "approve" | "held" => drop(house.answer(&waits(), "once", Some("yes")).unwrap()),
        "approve-session" => drop(house.answer(&waits(), "session", None).unwrap()),
        "decline" => drop(house.answer(&waits(), "decline", Some("no")).unwrap()),
        "edit" => drop(house.edit(&action.unwrap(), r#"{"count":2}"#).unwrap()),
        "cancel" => {
            let id = &action.unwrap().id;
            drop(house.block_on(house.service.cancel(&person("u"), id, "cancelled")).unwrap());
        }
        "expire" => {
            house.ground.clock.forward(Duration::from_secs(48 * 3600));
            house.block_on(house.service.recover()).unwrap();
        }
        "halt" => drop(house.block_on(house.service.stop_all(&person("u"), None)).unwrap()),
        other => panic!("{other}?"),
    }
}

/// What whoever asked and whoever answers do afterwards, until it ends.
fn drive(house: &House, doing: &str) -> Observation {
    for _ in 0..8 {
        house.block_on(house.service.recover()).unwrap();
        let Some(action) = the_action(&*house.store) else {
            let _ = house.send(request(house, doing));
            continue;
        };
        if action.pending().is_some() && house.store.halted().unwrap().is_none() {
            match doing {
                "decline" | "cancel" | "expire" => perform(house, doing),
                "edit" if action.revision == 1 => perform(house, doing),
                _ => drop(house.approve(&action)),
            }
        }
        let went_on = match doing {
            // By its key, where it has one: that is what a client repeats.
            "keyed" => house.send(request(house, doing)).unwrap(),
            "held" => {
                let mut held = house.service.held(10).unwrap();
                let (requester, held) = held.pop().unwrap();
                house.resume_as(&requester, &held, Asking::Wait).unwrap()
            }
            _ => house.resume(&action),
        };
        if let Submitted::Done(observation) = went_on {
            return observation;
        }
    }
    panic!("it does not end: {:?}", the_action(&*house.store));
}

fn kill() -> ! {
    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

/// The process that dies.
fn die(folder: &Path, doing: &str, at: &str) {
    let ground = Ground::at(folder);
    let place = at.to_owned();
    let house = House::open_over(&ground, &setup(doing), move |store| {
        Between::over(store, move |moment| {
            let here = match moment {
                Moment::Before(number) => format!("before-{number}"),
                Moment::After(number) => format!("after-{number}"),
                Moment::Read => return true,
            };
            if here == place { kill() } else { true }
        })
    });
    let (place, store) = (at.to_owned(), Arc::clone(&house.store));
    house.on_run(move |_, _| {
        if place == "recorded" {
            // Until others can see that it runs.
            while the_action(&*store).is_none_or(|action| action.state != ActionState::Running) {
                std::thread::sleep(Duration::from_millis(5));
            }
            kill();
        }
        if place == "in-run" {
            kill();
        }
        returned(r#"{"ok":1}"#)
    });
    perform(&house, doing);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the process that dies is this program again")]
fn a_process_that_is_killed_at_any_boundary_leaves_nothing_lost_and_nothing_doubled() {
    if let (Ok(folder), Ok(doing), Ok(at)) = (std::env::var(FOLDER), std::env::var(DOING), std::env::var(AT)) {
        return die(folder.as_ref(), &doing, &at);
    }
    let test = "crash::a_process_that_is_killed_at_any_boundary_leaves_nothing_lost_and_nothing_doubled";
    let mut wrong = Vec::new();
    for &(doing, at, outcome, runs) in MATRIX {
        let ground = Ground::new();
        let house = House::open(&ground, &setup(doing));
        prepare(&house, doing);
        drop(house);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", test]).env(FOLDER, ground.path("")).env(DOING, doing).env(AT, at);
        let output = child.output().unwrap();
        if output.status.signal() != Some(9) {
            wrong.push(format!("{doing} {at}: it was to die and did not: {output:?}"));
            continue;
        }
        let house = House::open(&ground, &setup(doing));
        house.runs_well();
        let seen = drive(&house, doing);
        let action = the_action(&*house.store).unwrap();
        let ran = ground.ran(&action.id);
        if (seen.outcome.to_string().as_str(), ran) != (outcome, runs) {
            wrong.push(format!("{doing} {at}: {} after {ran} runs, not {outcome} after {runs}", seen.outcome));
        }
        if seen.outcome.kind == OutcomeKind::Unknown
            && !seen.outcome.help.as_ref().unwrap().contains("before it is done again")
        {
            wrong.push(format!("{doing} {at}: no next step: {:?}", seen.outcome));
        }
        // Nothing wakes up again, and every id has an answer.
        assert_eq!(house.block_on(house.service.recover()).unwrap(), glovebox_plane::Recovered::default());
        let again = house.resume_as(&action.principal, &action.id, Asking::Leave).unwrap();
        assert!(matches!(again, Submitted::Done(same) if same == seen), "{doing} {at}");
        if let Some(asked) = &action.approval {
            let late = house.reply(&person("u"), None, offered(&asked.id, "task", None)).unwrap_err();
            assert!(!late.retryable, "{doing} {at}: {late:?}");
        }
        assert_eq!(ground.ran(&action.id), ran, "{doing} {at}: it ran again");
        if doing != "harmless" {
            house.audit(&["s1"]);
        }
        if doing == "approve-session" {
            let next = house.send(house.asked("fake.write", r#"{"count":5}"#)).unwrap();
            assert_eq!(matches!(next, Submitted::Done(_)), at == "after-1", "{at}: {next:?}");
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
