//! Small steps of several processes in any order, with crashes between them:
//! whatever the order, nothing runs without a right, nothing runs twice, every
//! action ends once, and the log adds up to what is stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::Duration;

use env_contracts::{Code, Id, Observation};
use glovebox_events::{Action, Task};
use glovebox_plane::{
    Answering, Asking, Interrupting, NewQuestion, OpenTurn, PolicySource as _, Reply, Saying, Signed, Submission,
    Submitted, Target, Unwatched,
};
use glovebox_runtime::Stop;
use glovebox_store::{ActionFilter, QuestionFilter};
use proptest::prelude::*;

use crate::between::{Between, Moment};
use crate::fake::{TOOL, WRITE};
use crate::house::{CLASSES, Ground, House, Setup, approval, id, name, offered, person, put_policy};
use crate::loops::{about, called, coder, new_task, picks};

const ASK: &str = "permit (principal, action, resource) when { context has approval };\n\
     permit (principal, action, resource) when { context.effects == \"none\" };";
const ALLOW: &str = "permit (principal, action, resource);";
const DENY: &str = "forbid (principal, action, resource) when { context.effects != \"none\" };\n\
     permit (principal, action, resource);";

/// One thing that somebody does.
#[derive(Debug, Clone)]
enum Move {
    Submit {
        count: u8,
        key: Option<u8>,
        turn: bool,
    },
    /// Below, by an agent that was called.
    Child(u8),
    Harmless,
    Turn,
    Steer,
    Goal,
    Ask(u8),
    /// Somebody answers a question: a person, or an agent.
    Tell {
        of: u8,
        agent: bool,
    },
    Interrupt {
        target: u8,
        soft: bool,
    },
    Resume(u8),
    Answer {
        of: u8,
        offer: &'static str,
    },
    Edit {
        of: u8,
        count: u8,
    },
    Cancel(u8),
    Recover,
    Later(u64),
    Rewrite(u8),
    Policy(&'static str),
    RevokeAll,
    StopAll,
    Release,
    /// Two at once.
    Both(Box<(Move, Move)>),
    /// The process ends, and another begins.
    Restart,
    /// The process dies at the commit after so many: before it, or after it and
    /// before it knows.
    DieAt {
        commits: i32,
        after: bool,
    },
}

/// A process, and the moment at which it dies.
struct Process {
    house: House,
    left: Arc<AtomicI32>,
    after: Arc<AtomicBool>,
    dead: Arc<AtomicBool>,
}

impl Process {
    fn start(ground: &Arc<Ground>, setup: &Setup) -> Self {
        let left = Arc::new(AtomicI32::new(i32::MAX));
        let (after, dead) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (hook_left, hook_after, hook_dead) = (left.clone(), after.clone(), dead.clone());
        let house = House::open_over(ground, setup, move |store| {
            Between::over(store, move |moment| {
                let last = match moment {
                    Moment::Before(_) => {
                        hook_left.fetch_sub(1, Ordering::SeqCst) <= 0 && !hook_after.load(Ordering::SeqCst)
                    }
                    Moment::After(_) => hook_left.load(Ordering::SeqCst) < 0,
                    Moment::Read => false,
                };
                if last {
                    hook_dead.store(true, Ordering::SeqCst);
                }
                !hook_dead.load(Ordering::SeqCst)
            })
        });
        house.runs_well();
        Self { house, left, after, dead }
    }

    fn is_dead(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    fn actions(&self) -> Vec<Action> {
        let of = |session: &str| {
            let filter = ActionFilter { session: Some(id(session)), ..ActionFilter::default() };
            self.house.store.actions(&name("local"), &filter).map(|page| page.items).unwrap_or_default()
        };
        [of("s1"), of("s2")].concat()
    }

    fn action(&self, number: u8) -> Option<Action> {
        let actions = self.actions();
        actions.get(usize::from(number) % actions.len().max(1)).cloned()
    }

    /// The turn that the task is in, or was.
    fn task(&self) -> Option<Task> {
        self.house.store.task(&name("local"), &id("t1")).ok()?.record
    }

    fn request(&self, count: u8, key: Option<u8>) -> Submission {
        let mut submission = self.house.asked("fake.write", &format!(r#"{{"count":{count},"path":"t.sh"}}"#));
        submission.request.idempotency_key = key.map(|key| name(&format!("k{key}")));
        submission
    }

    async fn reply(&self, approval: &Id, answer: Answering) {
        let reply = Reply { approval: approval.clone(), seen: None, answer, words: None };
        let by = Signed { principal: &person("u"), key: None, channel: name("test") };
        // Whatever is refused is refused: what was recorded is looked at in the end.
        let _ = self.house.service.answer(by, reply).await;
    }

    async fn carry(&self, step: &Move) {
        let service = &self.house.service;
        let (watch, stop) = (Arc::new(Unwatched), Stop::default());
        match step {
            Move::Submit { count, key, turn } => {
                let mut submission = self.request(*count, *key);
                let now = self.task().and_then(|task| task.turn).filter(|_| *turn);
                submission.context.turn = now.map(|turn| turn.number);
                drop(service.submit(submission, watch, &stop).await);
            }
            Move::Child(count) => {
                let mut submission = self.request(*count, None);
                submission.principal = called("helper", &["coder"]);
                (submission.context.session, submission.context.task) = (id("s2"), id("t2"));
                drop(service.submit(submission, watch, &stop).await);
            }
            Move::Turn => {
                let Some(task) = self.task() else { return };
                let expected_turn = task.turn.as_ref().map_or(0, |turn| turn.number);
                let open = OpenTurn { task: id("t1"), expected_turn, goal_version: task.goal.version, key: None };
                drop(Box::pin(service.open_turn(&coder(), open)).await);
            }
            Move::Steer => drop(service.say(&person("u"), &id("t1"), Saying::Steer("this way")).await),
            Move::Goal => drop(service.say(&person("u"), &id("t1"), Saying::Goal("something else")).await),
            Move::Ask(topic) => {
                let child = *topic > 1;
                let who = if child { called("helper", &["coder"]) } else { coder() };
                let task = id(if child { "t2" } else { "t1" });
                let asking = NewQuestion { task, ..about(&format!("topic-{topic}"), None) };
                drop(Box::pin(service.ask(&who, asking)).await);
            }
            Move::Tell { of, agent } => {
                let filter = QuestionFilter::default();
                let page = self.house.store.questions(&name("local"), &filter).map(|page| page.items);
                let questions = page.unwrap_or_default();
                let Some(question) = questions.get(usize::from(*of) % questions.len().max(1)) else { return };
                let who = if *agent { coder() } else { person("u") };
                drop(service.answer_question(&who, &question.id, picks("one"), &name("test")).await);
            }
            Move::Interrupt { target, soft } => {
                let target = match target % 6 {
                    0 => Target::Turn(id("t1")),
                    1 => Target::Task(id("t2")),
                    2 => Target::Session(id("s2")),
                    3 => Target::Session(id("s1")),
                    4 => Target::Tree(id("s1")),
                    _ => match self.action(*target) {
                        Some(action) => Target::Action(action.id),
                        None => return,
                    },
                };
                let grace = soft.then_some(Duration::from_secs(1));
                let asked = Interrupting { target, grace, reason: None };
                drop(service.interrupt(&person("u"), asked).await);
            }
            Move::Harmless => drop(service.submit(self.house.asked("fake.tool", "{}"), watch, &stop).await),
            Move::Resume(number) => {
                let Some(action) = self.action(*number) else { return };
                let asking = Asking::Leave;
                drop(service.resume(&action.principal, &action.id, asking, watch, &stop).await);
            }
            Move::Answer { of, offer } => {
                let Some(asked) = self.action(*of).and_then(|action| action.approval) else { return };
                self.reply(&asked.id, offered(&asked.id, offer, None).answer).await;
            }
            Move::Edit { of, count } => {
                let Some(asked) = self.action(*of).and_then(|action| action.approval) else { return };
                let arguments = Some(format!(r#"{{"count":{count},"path":"t.sh"}}"#));
                self.reply(&asked.id, Answering::Edit { arguments, scope: None }).await;
            }
            Move::Cancel(number) => {
                let Some(action) = self.action(*number) else { return };
                drop(service.cancel(&person("u"), &action.id, "cancelled").await);
            }
            Move::Recover => drop(Box::pin(service.recover()).await),
            Move::Later(hours) => self.house.ground.clock.forward(Duration::from_secs(hours * 3600)),
            Move::Rewrite(content) => fs_err::write(self.house.path("workspace/t.sh"), [*content]).unwrap(),
            Move::Policy(rules) => {
                put_policy(&self.house.ground, rules, CLASSES);
                assert!(self.house.policy.refresh().is_none());
            }
            Move::RevokeAll => {
                for grant in service.grants(&person("u"), false).unwrap_or_default() {
                    drop(service.revoke(&person("u"), &grant.id).await);
                }
            }
            Move::StopAll => drop(service.stop_all(&person("u"), None).await),
            Move::Release => drop(service.release(&person("u")).await),
            Move::DieAt { commits, after } => {
                self.after.store(*after, Ordering::SeqCst);
                self.left.store(*commits, Ordering::SeqCst);
            }
            Move::Both(_) | Move::Restart => unreachable!("the world does that"),
        }
    }
}

fn moves() -> impl Strategy<Value = Move> {
    let one = prop_oneof![
        5 => (0u8..3, proptest::option::weighted(0.3, 0u8..2), any::<bool>())
            .prop_map(|(count, key, turn)| Move::Submit { count, key, turn }),
        1 => (0u8..3).prop_map(Move::Child),
        2 => Just(Move::Turn),
        1 => Just(Move::Steer),
        1 => Just(Move::Goal),
        2 => (0u8..4).prop_map(Move::Ask),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(of, agent)| Move::Tell { of, agent }),
        1 => (any::<u8>(), any::<bool>()).prop_map(|(target, soft)| Move::Interrupt { target, soft }),
        1 => Just(Move::Harmless),
        6 => any::<u8>().prop_map(Move::Resume),
        6 => (any::<u8>(), prop_oneof![
            4 => Just("once"), 1 => Just("session"), 1 => Just("task"), 1 => Just("turn"), 1 => Just("decline"), 1 => Just("decline-and-stop")
        ]).prop_map(|(of, offer)| Move::Answer { of, offer }),
        1 => (any::<u8>(), 0u8..4).prop_map(|(of, count)| Move::Edit { of, count }),
        1 => any::<u8>().prop_map(Move::Cancel),
        1 => Just(Move::Recover),
        1 => (1u64..30).prop_map(Move::Later),
        1 => any::<u8>().prop_map(Move::Rewrite),
        1 => prop_oneof![3 => Just(ASK), 1 => Just(ALLOW), 1 => Just(DENY)].prop_map(Move::Policy),
        1 => Just(Move::RevokeAll),
        1 => Just(Move::StopAll),
        5 => Just(Move::Release),
        2 => (0i32..3, any::<bool>()).prop_map(|(commits, after)| Move::DieAt { commits, after }),
    ]
    .boxed();
    prop_oneof![
        8 => one.clone(),
        3 => (one.clone(), one).prop_map(|both| Move::Both(Box::new(both))),
        1 => Just(Move::Restart),
    ]
}

/// Whose log is looked at.
const SESSIONS: [&str; 2] = ["s1", "s2"];

/// Two processes over one folder.
struct World {
    ground: Arc<Ground>,
    setup: Setup,
    processes: [Process; 2],
}

impl Process {
    /// The loop goes on, for the goal of now.
    fn next_turn(&self, action: &Action) {
        let task = self.house.task_named(action.task.as_str());
        let open = OpenTurn {
            task: task.id.clone(),
            expected_turn: task.turn.as_ref().map_or(0, |turn| turn.number),
            goal_version: task.goal.version,
            key: None,
        };
        self.house.block_on(self.house.service.open_turn(&task.principal, open)).unwrap();
    }
}

impl World {
    fn new() -> Self {
        let ground = Ground::new();
        let setup = Setup::of(&[WRITE, TOOL]).rules(ASK);
        let processes = [Process::start(&ground, &setup), Process::start(&ground, &setup)];
        fs_err::write(ground.path("workspace/t.sh"), "0").unwrap();
        let house = &processes[0].house;
        house.open_task();
        house.open_session(&called("helper", &["coder"]), "s2", Some("s1"));
        let child = new_task("t2", "s2", glovebox_events::Budget::default());
        house.block_on(house.service.open_task(&called("helper", &["coder"]), child)).unwrap();
        Self { ground, setup, processes }
    }

    fn carry(&mut self, who: usize, step: &Move) {
        match step {
            Move::Restart => self.restart(who),
            Move::Both(both) => {
                let [a, b] = [&self.processes[who], &self.processes[1 - who]];
                self.ground.tokio.block_on(async { tokio::join!(a.carry(&both.0), b.carry(&both.1)) });
            }
            one => self.ground.tokio.block_on(self.processes[who].carry(one)),
        }
        for who in 0..2 {
            if self.processes[who].is_dead() {
                self.restart(who);
            }
        }
    }

    fn restart(&mut self, who: usize) {
        let text = fs_err::read_to_string(self.ground.path("policy/rules.cedar")).unwrap();
        let next = Process::start(&self.ground, &self.setup.clone().rules(&text));
        self.processes[who] = next;
    }

    /// What is left comes to an end: everybody who asked comes back, and all
    /// processes but a new one are gone.
    fn end(mut self) {
        self.restart(0);
        self.restart(1);
        let [last, _] = &self.processes;
        last.house.audit(&SESSIONS);
        let before = self.ground.runs();
        self.ground.tokio.block_on(last.house.service.recover()).unwrap();
        for action in last.actions() {
            let stuck = action.state == glovebox_events::ActionState::Running;
            assert!(!stuck, "{action:?} runs in a process that is gone");
        }
        assert_eq!(before, self.ground.runs(), "recovering ran something");
        self.ground.tokio.block_on(last.carry(&Move::Policy(ASK)));
        self.ground.tokio.block_on(last.carry(&Move::Release));
        for action in last.actions() {
            let mut seen: Option<Observation> = None;
            for _ in 0..4 {
                match last.house.resume_as(&action.principal, &action.id, Asking::Leave) {
                    Ok(Submitted::Done(observation)) => seen = Some(observation),
                    // What its task left behind can't be answered any more, and
                    // ends with the try.
                    Ok(Submitted::Waiting(waiting)) => drop(last.house.answer(approval(&waiting), "once", None)),
                    Err(refused) => {
                        assert_eq!(refused.code, Code::GoalChanged, "{refused:?}");
                        last.next_turn(&action);
                    }
                }
            }
            assert!(seen.is_some(), "it does not end: {:?}", last.house.now(&action.id));
        }
        assert!(last.house.pending().is_empty());
        self.ground.clock.forward(Duration::from_secs(48 * 3600));
        self.ground.tokio.block_on(last.house.service.recover()).unwrap();
        self.ground.tokio.block_on(last.carry(&Move::Turn));
        self.ground.tokio.block_on(last.carry(&Move::Turn));
        let questions = last.house.store.questions(&name("local"), &QuestionFilter::default()).unwrap();
        for question in questions.items.iter().filter(|question| question.task == id("t1")) {
            assert!(question.told.is_some(), "nobody was told of {question:?}");
        }
        for task in ["t1", "t2"].map(|task| last.house.task_named(task)) {
            assert!(task.stopping().is_none() && task.steers.is_empty(), "{task:?}");
        }
        last.house.audit(&SESSIONS);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn whatever_the_order_nothing_runs_without_a_right_or_twice(
        steps in proptest::collection::vec((0usize..2, moves()), 10..40),
    ) {
        let mut world = World::new();
        for (who, step) in &steps {
            world.carry(*who, step);
        }
        world.end();
    }
}
