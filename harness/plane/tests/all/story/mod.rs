//! One story from its script: an agent, a person, a small change system. It is
//! played in one process, and again with every step in a process of its own that
//! is killed after it; both leave the same log.

mod system;

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use env_contracts::{Code, DerivedEffects, Digest, Observation, Verdict, Verified};
use glovebox_events::{Action, ActionState, Budget, Reviewed, TaskState, Told, What};
use glovebox_plane::{
    Asking, Made, NewQuestion, NewTask, OpenTurn, PlanProposal, PlanStep, QuestionOption, QuestionReply, QuestionText,
    ResultProposal, Saying, Submission, Submitted, TaskContext, Telling, TurnStart, Unwatched,
};
use glovebox_runtime::Stop;
use glovebox_store::{EventFilter, EventsOf, QuestionFilter};

use crate::house::{Ground, House, agent, approval, done, id, name, offered, person, waiting};
use system::{DEPLOYED, setup, system};

/// Tells the program that it plays one step and dies, where, and which.
const FOLDER: &str = "GLOVEBOX_TEST_STORY_FOLDER";
const STEP: &str = "GLOVEBOX_TEST_STORY_STEP";

const TEST: &str = "story::a_story_is_the_same_whether_its_processes_live_or_die";

/// What the log of the story has to be, without ids and digests.
const LOG: &str = include_str!("log.txt");

/// What `trace` tells of it.
const TRACE: &str = include_str!("trace.txt");

/// Something that happens, and how.
type Step = (&'static str, fn(&House));

/// The script: what happens, in this order.
const SCRIPT: &[Step] = &[
    ("a person opens the task", open_task),
    ("the loop opens a turn", |house| drop(turn(house, 0))),
    ("the agent reads the dependency files", reads),
    ("it records what it thinks", thinks),
    ("it writes a patch in its workspace", patches),
    ("the next turn", |house| drop(turn(house, 1))),
    ("it asks which compatibility window to keep", asks),
    ("a person answers", answers),
    ("a person steers", steers),
    ("the turn in which it is told", is_told),
    ("it submits its plan", submits_plan),
    ("a person accepts the plan", |house| approve(house, "plan.submit")),
    ("it takes the answer", |house| accepted(house, "plan.submit")),
    ("it creates a change record", drafts),
    ("it asks to release", asks_to_release),
    ("the script is changed while that waits", changes_script),
    ("a person approves what is no more", |house| approve(house, "production.deploy")),
    ("what would run is not what was approved", drifts),
    ("a person approves what would run", |house| approve(house, "production.deploy")),
    ("it releases, and that is verified", releases),
    ("it submits the result", submits_result),
    ("a person accepts the result", |house| approve(house, "result.submit")),
    ("it takes the answer", |house| accepted(house, "result.submit")),
    ("the task is done", finish),
];

fn coder() -> env_contracts::Principal {
    agent("u", "coder")
}

fn context(turn: Option<u64>) -> TaskContext {
    TaskContext { session: id("s1"), task: id("t1"), turn, purpose: None, stage: None }
}

fn open_task(house: &House) {
    let new = NewTask {
        id: Some(id("t1")),
        session: id("s1"),
        goal: "move to the new parser".to_owned(),
        purpose: Some("upgrade".to_owned()),
        stage: None,
        budget: Budget { actions: Some(20), ..Budget::default() },
    };
    house.block_on(house.service.open_task(&person("u"), new)).unwrap();
}

fn turn(house: &House, expected_turn: u64) -> TurnStart {
    let open = OpenTurn { task: id("t1"), expected_turn, goal_version: 1, key: None };
    house.block_on(house.service.open_turn(&coder(), open)).unwrap()
}

/// The turn that is open.
fn now(house: &House) -> Option<u64> {
    house.store.task(&name("local"), &id("t1")).unwrap().record.unwrap().open_turn().map(|turn| turn.number)
}

fn send(house: &House, tool: &str, args: &str) -> Submitted {
    let submission = Submission { context: context(now(house)), ..house.asked(tool, args) };
    house.send(submission).unwrap()
}

fn allowed(house: &House, tool: &str, args: &str) -> Observation {
    let seen = done(send(house, tool, args));
    assert_eq!(seen.outcome.code, None, "{tool}: {:?}", seen.outcome);
    assert!(!house.was_asked(&seen.action_id), "{tool} is allowed");
    seen
}

fn reads(house: &House) {
    let seen = allowed(house, "deps.read", r#"{"path":"deps.txt"}"#);
    assert_eq!(seen.data["deps"], "parser 1.0\n");
}

fn tell(house: &House, what: Told, content: &str, parents: Vec<env_contracts::Id>) -> env_contracts::Id {
    let telling = Telling { turn: now(house), parents, what, content: Some(content.to_owned()) };
    house.block_on(house.service.tell(&coder(), &id("t1"), telling)).unwrap().id
}

fn thinks(house: &House) {
    let read = house.only("deps.read").id;
    let thought = tell(house, Told::Text, "only the parser has to move", vec![read]);
    let call = Told::ModelCall {
        model: "m-4".to_owned(),
        input_tokens: 1200,
        output_tokens: 80,
        cost_micros: 900,
        context: Some(Digest::of(b"what was in the context")),
    };
    tell(house, call, "planning", vec![thought]);
}

fn patches(house: &House) {
    let seen = allowed(house, "patch.write", r#"{"path":"deps.txt"}"#);
    let decided = house.of_action(&seen.action_id).into_iter().find_map(|logged| match logged.event.what {
        What::Decided { verdict, rules, .. } => Some((verdict, rules)),
        _ => None,
    });
    // The rule that shows what changes in a layer of its own.
    assert_eq!(decided, Some((Verdict::Allow, vec!["isolated-workspace".to_owned()])));
}

fn asks(house: &House) {
    let option = |name: &str, label: &str, effect: &str| QuestionOption {
        id: id(name),
        label: label.to_owned(),
        effect: effect.to_owned(),
    };
    let text = QuestionText {
        question: "How long do old clients have to work?".to_owned(),
        options: vec![
            option("one-year", "A year", "the first version goes in spring"),
            option("two-years", "Two years", "the first version stays until 2028"),
        ],
        recommended: id("two-years"),
        affects: vec!["the public interface".to_owned()],
    };
    let read = house.only("deps.read").id;
    let asked = NewQuestion {
        task: id("t1"),
        turn: now(house),
        topic: name("window"),
        text,
        induced_by: Some(read),
        lasts_ms: None,
    };
    house.block_on(house.service.ask(&coder(), asked)).unwrap();
}

fn answers(house: &House) {
    let open = house.store.questions(&name("local"), &QuestionFilter::default()).unwrap().items.remove(0);
    let reply = QuestionReply { option: Some(id("two-years")), text: Some("and tell them".to_owned()) };
    house.block_on(house.service.answer_question(&person("u"), &open.id, reply, &name("test"))).unwrap();
}

fn steers(house: &House) {
    house.block_on(house.service.say(&person("u"), &id("t1"), Saying::Steer("keep the tests as they are"))).unwrap();
}

fn is_told(house: &House) {
    let start = turn(house, 2);
    let answer = &start.answers[0];
    assert_eq!((answer.option.clone(), answer.text.as_deref()), (Some(id("two-years")), Some("and tell them")));
    assert_eq!(start.steers[0].text.as_deref(), Some("keep the tests as they are"));
    assert_eq!(start.budget.left.actions, Some(18));
}

fn submits_plan(house: &House) {
    let step = |title: &str, capability: &str, effects| PlanStep {
        title: title.to_owned(),
        capability: Some(capability.parse().unwrap()),
        scope: None,
        effects,
    };
    let proposal = PlanProposal {
        summary: "draft the change, then release it".to_owned(),
        steps: vec![
            step("draft it", "change.create", DerivedEffects::External),
            step("release it", "production.deploy", DerivedEffects::External),
        ],
    };
    let (coder, watch, stop) = (coder(), Arc::new(Unwatched), Stop::default());
    let asked = house.service.submit_plan(&coder, context(now(house)), proposal, Asking::Leave, watch, &stop);
    waiting(house.block_on(asked).unwrap());
}

/// The newest action of a capability.
fn newest(house: &House, capability: &str) -> Action {
    house.all_of(capability).remove(0)
}

fn approve(house: &House, capability: &str) {
    let action = newest(house, capability);
    let settled = if capability == "production.deploy" {
        // Whoever runs programs as the user is not enough for this.
        let refused = house.answer(approval(&action), "once", None).unwrap_err();
        assert_eq!(refused.code, Code::NotEligible);
        let mira = system::mira(&house.ground);
        house.reply(&person("u"), Some(&mira), offered(approval(&action), "once", None))
    } else {
        house.answer(approval(&action), "once", Some("fine"))
    };
    settled.unwrap();
    assert_eq!(house.ground.ran(&action.id), 0, "approving runs nothing");
}

fn accepted(house: &House, capability: &str) {
    let seen = house.seen(&newest(house, capability).id);
    assert_eq!((seen.data["accepted"].as_bool(), seen.data["words"].as_str()), (Some(true), Some("fine")));
}

fn drafts(house: &House) {
    let seen = allowed(house, "change.create", r#"{"title":"the new parser"}"#);
    assert_eq!(seen.data["change"], "CR-1");
}

fn asks_to_release(house: &House) {
    let action = waiting(send(house, "production.deploy", r#"{"change":"CR-1","script":"deploy.sh"}"#));
    let card = house.card_of(&action);
    // That the plan was accepted and the draft was allowed counts for nothing here.
    assert!(card.reasons.iter().any(|reason| reason.contains("can't be undone")), "{:?}", card.reasons);
    let preview = house.only("change.preview");
    assert_eq!((preview.state, preview.parents), (ActionState::Succeeded, vec![action.id.clone()]));
    assert_eq!(house.arguments(&action.id)["version"], "draft-1");
}

fn changes_script(house: &House) {
    fs_err::write(house.path("workspace/deploy.sh"), "release --everything\n").unwrap();
}

fn drifts(house: &House) {
    let before = newest(house, "production.deploy");
    let after = waiting(house.resume(&before));
    assert_eq!(house.ground.ran(&after.id), 0, "what was approved is no more, and what would run was not");
    assert_ne!(approval(&after), approval(&before));
    let changed = &after.approval.as_ref().unwrap().changed;
    assert!(changed.iter().any(|what| what.contains("deploy.sh")), "{changed:?}");
}

fn releases(house: &House) {
    let action = newest(house, "production.deploy");
    let seen = done(house.resume(&action));
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(seen.verification.as_ref().map(|found| found.verdict), Some(Verified::Held));
    assert_eq!(house.ground.ran(&action.id), 1);
    assert_eq!(fs_err::read_to_string(house.path(DEPLOYED)).unwrap(), "CR-1 by release --everything\n");
    // The same again is told, and nothing is released twice.
    assert_eq!(done(house.resume(&action)), seen);
    assert_eq!(house.ground.ran(&action.id), 1);
}

fn submits_result(house: &House) {
    let condition = "the new parser is live";
    let made = Digest::of(b"what was released");
    let verified = Told::Verified {
        holds: true,
        revision: Some(made.to_string()),
        condition: Some(Digest::of(condition.as_bytes())),
        goal: 1,
    };
    let entry = tell(house, verified, "it answers", vec![house.only("production.deploy").id]);
    let proposal =
        ResultProposal { artifact: Made::Content(made), condition: condition.to_owned(), evidence: vec![entry] };
    let (coder, watch, stop) = (coder(), Arc::new(Unwatched), Stop::default());
    let asked = house.service.submit_result(&coder, context(now(house)), proposal, Asking::Leave, watch, &stop);
    waiting(house.block_on(asked).unwrap());
}

fn finish(house: &House) {
    let ended = house.block_on(house.service.end_task(&person("u"), &id("t1"), TaskState::Done, None)).unwrap();
    assert_eq!(ended.state, TaskState::Done);
}

/// The folder before anything happens.
fn ground() -> Arc<Ground> {
    let ground = Ground::new();
    fs_err::write(ground.path("workspace/deps.txt"), "parser 1.0\n").unwrap();
    fs_err::write(ground.path("workspace/deploy.sh"), "release CR-1\n").unwrap();
    system::register(&ground);
    ground
}

fn house(ground: &Arc<Ground>) -> House {
    let house = House::open(ground, &setup(ground));
    let folder = ground.path("");
    house.on_run(move |bound, _| system(&folder, bound));
    house
}

/// The log without what differs from run to run.
fn log(house: &House) -> String {
    let filter = EventFilter { of: EventsOf::Session(id("s1")), after: 0, limit: 0 };
    let events = house.store.events(&name("local"), &filter).unwrap();
    let mut out = String::new();
    for logged in events {
        let of = logged.event.action.map(|id| house.now(&id).capability.name.to_string());
        let more = match &logged.event.what {
            What::Decided { verdict, rules, .. } => format!("{verdict} {}", rules.join(" ")),
            What::Ended { end } => format!("{:?}", end.kind).to_lowercase(),
            What::ApprovalAnswered { answer } => format!("{} by {}", answer.offer, answer.by.name),
            What::Drifted { changed, .. } => changed.join("; "),
            What::Reviewed { review } => format!("{}", review.verdict == Reviewed::Approved),
            _ => String::new(),
        };
        let line = format!("{} {} {more}", of.unwrap_or_else(|| "-".to_owned()), logged.event.what.name());
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// The trace, indented by what happened because of what.
fn trace(house: &House) -> String {
    let trace = house.service.trace(&person("u"), &id("t1")).unwrap();
    let mut depths = std::collections::BTreeMap::new();
    let mut out = String::new();
    for node in &trace.nodes {
        let depth = node.parents.iter().filter_map(|parent| depths.get(parent)).max().map_or(0, |depth| depth + 1);
        depths.insert(node.id.clone(), depth);
        let text = node.text.as_deref().unwrap_or_default();
        out.push_str(format!("{}{} {} {text}", "  ".repeat(depth), node.what, node.by).trim_end());
        out.push('\n');
    }
    out
}

/// Compares with what stands in the source; where that is to be renewed, says
/// what it would be.
fn same(what: &str, is: &str, expected: &str) {
    if is != expected {
        let path = std::env::temp_dir().join(format!("glovebox-story-{what}.txt"));
        fs_err::write(&path, is).unwrap();
        panic!("the {what} of the story is another; what it is now stands in {}\n{is}", path.display());
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the processes that die are this program again")]
fn a_story_is_the_same_whether_its_processes_live_or_die() {
    if let (Ok(folder), Ok(step)) = (std::env::var(FOLDER), std::env::var(STEP)) {
        let ground = Ground::at(Path::new(&folder));
        let step: usize = step.parse().unwrap();
        (SCRIPT[step].1)(&house(&ground));
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).unwrap();
    }
    let one = ground();
    let alive = house(&one);
    for (what, step) in SCRIPT {
        eprintln!("{what}");
        step(&alive);
    }
    same("log", &log(&alive), LOG);
    same("trace", &trace(&alive), TRACE);
    alive.audit(&["s1"]);

    let two = ground();
    for (number, (what, _)) in SCRIPT.iter().enumerate() {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", TEST]).env(FOLDER, two.path("")).env(STEP, number.to_string());
        let output = child.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.signal(), Some(9), "`{what}`, in a process of its own: {said}");
    }
    let after = house(&two);
    assert_eq!(log(&after), LOG);
    assert_eq!(trace(&after), TRACE);
    after.audit(&["s1"]);
    assert_eq!(after.block_on(after.service.recover()).unwrap(), glovebox_plane::Recovered::default());
}
