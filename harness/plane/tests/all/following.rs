//! Following what an action prints: while it runs, after it ended, and from
//! where it can't be followed.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use env_contracts::{Code, Id, Principal, Problem};
use glovebox_plane::{
    ActionService, Asking, MAX_OUTPUT_CHUNK, OutputChunk, OutputStream, Submission, Submitted, Unwatched,
};
use glovebox_runtime::Stop;
use glovebox_runtime::job::{End, Frame};
use tokio::task::JoinHandle;

use crate::fake::{WRITE, returned};
use crate::house::{Ground, House, Setup, agent, id, name, person};
use crate::loops::coder;

const ALLOW: &str = "permit (principal, action, resource);";

/// What is waited for at most: only a broken test takes so long.
const PATIENCE: Duration = Duration::from_secs(30);

use OutputStream::{Stderr, Stdout};

fn read(house: &House, who: &Principal, stream: OutputStream, offset: u64) -> Result<OutputChunk, Problem> {
    house.block_on(house.service.output(who, &id("act"), stream, offset, usize::MAX))
}

fn code(answer: Result<OutputChunk, Problem>) -> Code {
    answer.unwrap_err().code
}

/// A tool that prints what the test says, when it says so, and then ends.
struct Told {
    say: Sender<(OutputStream, Vec<u8>)>,
    said: Receiver<()>,
}

impl Told {
    fn prints(&self, stream: OutputStream, bytes: &[u8]) {
        self.say.send((stream, bytes.to_vec())).unwrap();
        self.said.recv_timeout(PATIENCE).unwrap();
    }
}

/// Lets the next run be told what to print.
fn told(house: &House) -> Told {
    let ((say, saying), (told, said)) = (channel(), channel());
    let saying: Mutex<Receiver<(OutputStream, Vec<u8>)>> = Mutex::new(saying);
    house.on_run(move |_, ports| {
        told.send(()).unwrap();
        while let Ok((stream, bytes)) = saying.lock().unwrap().recv_timeout(PATIENCE) {
            ports.frames.frame(match stream {
                Stdout => Frame::Stdout(&bytes),
                Stderr => Frame::Stderr(&bytes),
            });
            told.send(()).unwrap();
        }
        returned(r#"{"ok":1}"#)
    });
    Told { say, said }
}

fn send(house: &House, change: impl FnOnce(&mut Submission)) -> JoinHandle<Result<Submitted, Problem>> {
    let mut submission = house.asked("fake.write", "{}");
    submission.request.action_id = Some(id("act"));
    submission.asking = Asking::Wait;
    change(&mut submission);
    let service = house.service.clone();
    house.ground.tokio.spawn(async move { service.submit(submission, Arc::new(Unwatched), &Stop::default()).await })
}

/// A tool's manifest that lets so much be spilled.
fn spilling(most: &str) -> String {
    WRITE.replace("output = \"1MiB\"", &format!("output = \"{most}\""))
}

/// Reads all of a stream as it comes, until it ended: each piece with its
/// place.
async fn follow(
    service: ActionService,
    who: Principal,
    action: Id,
    heard: Sender<Vec<u8>>,
) -> Result<Vec<OutputChunk>, Problem> {
    let mut moved = service.output_moved(&who, &action)?;
    let (mut all, mut next) = (Vec::new(), 0);
    loop {
        let chunk = service.output(&who, &action, Stdout, next, 100_000).await?;
        next = chunk.offset + chunk.bytes.len() as u64;
        let (ended, more) = (chunk.ended, next < chunk.total);
        if !chunk.bytes.is_empty() || chunk.omitted > 0 {
            // Who is gone is told nothing.
            let _ = heard.send(chunk.bytes.clone());
            all.push(chunk);
        }
        match (ended, more) {
            (true, false) => return Ok(all),
            (_, true) => {}
            (false, false) => moved.moved().await,
        }
    }
}

#[test]
fn output_is_read_by_its_place_while_it_runs_and_after() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    assert_eq!(code(read(&house, &coder(), Stdout, 0)), Code::ActionUnknown, "nobody asked for it yet");
    let tool = told(&house);
    let run = send(&house, |_| {});
    tool.said.recv_timeout(PATIENCE).unwrap();
    let nothing = OutputChunk { offset: 0, bytes: vec![], total: 0, ended: false, omitted: 0 };
    assert_eq!(read(&house, &coder(), Stdout, 0).unwrap(), nothing);
    tool.prints(Stdout, b"hello ");
    tool.prints(Stderr, b"\xff\xfe");
    tool.prints(Stdout, b"world");
    let chunk =
        |offset, bytes: &[u8], total, ended| OutputChunk { offset, bytes: bytes.into(), total, ended, omitted: 0 };
    assert_eq!(read(&house, &coder(), Stdout, 0).unwrap(), chunk(0, b"hello world", 11, false));
    assert_eq!(read(&house, &coder(), Stdout, 6).unwrap(), chunk(6, b"world", 11, false));
    assert_eq!(read(&house, &coder(), Stdout, 11).unwrap(), chunk(11, b"", 11, false));
    assert_eq!(read(&house, &coder(), Stdout, 99).unwrap(), chunk(99, b"", 11, false));
    assert_eq!(read(&house, &coder(), Stderr, 1).unwrap(), chunk(1, b"\xfe", 2, false));
    let few = house.block_on(house.service.output(&coder(), &id("act"), Stdout, 2, 3)).unwrap();
    assert_eq!(few, chunk(2, b"llo", 11, false));
    let op = person("op");
    let over = house.service.overseeing();
    let strangers =
        [op.clone(), agent("u", "other"), agent("v", "coder"), Principal { tenant: name("elsewhere"), ..coder() }];
    let unseen = |service: &ActionService, who: &Principal| {
        assert_eq!(code(house.block_on(service.output(who, &id("act"), Stdout, 0, 9))), Code::ActionUnknown, "{who:?}");
        let moved = service.output_moved(who, &id("act"));
        assert_eq!(moved.err().map(|problem| problem.code), Some(Code::ActionUnknown), "{who:?}");
    };
    strangers.iter().for_each(|who| unseen(&house.service, who));
    strangers[1..].iter().for_each(|who| unseen(&over, who));
    assert_eq!(house.block_on(over.output(&op, &id("act"), Stdout, 6, 9)).unwrap().bytes, b"world");
    drop(tool);
    house.block_on(run).unwrap().unwrap();
    assert_eq!(read(&house, &coder(), Stdout, 0).unwrap(), chunk(0, b"hello world", 11, true));
    assert_eq!(read(&house, &coder(), Stdout, 6).unwrap(), chunk(6, b"world", 11, true));
    assert_eq!(read(&house, &coder(), Stdout, 11).unwrap(), chunk(11, b"", 11, true));
    assert_eq!(read(&house, &coder(), Stderr, 1).unwrap(), chunk(1, b"\xfe", 2, true), "no UTF-8, and yet the same");
    strangers.iter().for_each(|who| unseen(&house.service, who));
    house.block_on(house.service.erase(&person("u"), &id("act"))).unwrap();
    assert_eq!(code(read(&house, &coder(), Stdout, 0)), Code::Expired);
}

/// Who follows an action from before it runs hears of each piece before the
/// next is printed.
#[test]
fn who_follows_hears_at_once_from_before_it_runs() {
    let house = House::of(&Setup::of(&[WRITE]));
    let tool = told(&house);
    let run = send(&house, |_| {});
    while house.store.action(&name("local"), &id("act")).unwrap().is_none_or(|action| action.pending().is_none()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    let (heard, hears) = channel();
    let follower = house.ground.tokio.spawn(follow(house.service.clone(), coder(), id("act"), heard));
    house.approve(&house.now(&id("act")));
    tool.said.recv_timeout(PATIENCE).unwrap();
    for word in [&b"one "[..], b"two ", b"three"] {
        tool.prints(Stdout, word);
        assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), word);
    }
    drop(tool);
    house.block_on(run).unwrap().unwrap();
    let all: Vec<u8> = house.block_on(follower).unwrap().unwrap().into_iter().flat_map(|chunk| chunk.bytes).collect();
    assert_eq!(all, b"one two three");
}

#[test]
fn what_can_change_nothing_is_followed_before_it_is_written_down() {
    let house = House::of(&Setup::of(&[WRITE, crate::fake::TOOL]).rules(ALLOW));
    let (heard, hears) = channel();
    let (service, tokio) = (house.service.clone(), house.ground.tokio.handle().clone());
    let ids = Arc::new(Mutex::new(None));
    let (seen, hears) = (ids.clone(), Mutex::new(hears));
    house.on_run(move |bound, ports| {
        let action = bound.plan.action_id.clone();
        let known = service.action(&coder(), &action);
        assert!(known.is_err(), "it is not written down yet");
        *seen.lock().unwrap() = Some(tokio.spawn(follow(service.clone(), coder(), action, heard.clone())));
        ports.frames.frame(Frame::Stdout(b"quick"));
        assert_eq!(hears.lock().unwrap().recv_timeout(PATIENCE).unwrap(), b"quick");
        returned(r#"{"ok":1}"#)
    });
    let submission = house.asked("fake.tool", "{}");
    house.send(submission).unwrap();
    let follower = ids.lock().unwrap().take().unwrap();
    let all = house.block_on(follower).unwrap().unwrap();
    assert_eq!(all.len(), 1, "until it ended, and never unknown in between");
}

/// More than is kept: what comes is right and in its place, what is missing is
/// said, and it is the same while it runs and after.
#[test]
fn what_is_not_kept_is_said_and_never_glued() {
    const TOTAL: usize = 600_000;
    const SPILLED: usize = 300 << 10;
    let stream: Vec<u8> = (0..251_u8).cycle().take(TOTAL).collect();
    let house = House::of(&Setup::of(&[&spilling("300KiB")]).rules(ALLOW));
    let tool = told(&house);
    let run = send(&house, |_| {});
    tool.said.recv_timeout(PATIENCE).unwrap();
    for piece in stream.chunks(7001) {
        tool.prints(Stdout, piece);
    }
    let all = |house: &House| {
        let (mut there, mut next, mut omitted) = (vec![false; TOTAL], 0, 0);
        while next < TOTAL as u64 {
            let chunk = read(house, &coder(), Stdout, next).unwrap();
            assert!(chunk.bytes.len() <= MAX_OUTPUT_CHUNK && chunk.total == TOTAL as u64);
            assert_eq!(chunk.offset, next + chunk.omitted);
            let at = usize::try_from(chunk.offset).unwrap();
            assert!(stream[at..at + chunk.bytes.len()] == chunk.bytes, "from {next}");
            there[at..at + chunk.bytes.len()].fill(true);
            omitted += chunk.omitted;
            next = chunk.offset + chunk.bytes.len() as u64;
        }
        assert_eq!(there.iter().filter(|there| !**there).count() as u64, omitted);
        let first = there.iter().position(|there| !there).unwrap();
        (first, omitted)
    };
    // The end of a stream is kept besides: three quarters of 64 KiB.
    let missing = (TOTAL - SPILLED - (48 << 10)) as u64;
    assert_eq!(all(&house), (SPILLED, missing));
    assert!(!read(&house, &coder(), Stdout, 0).unwrap().ended);
    drop(tool);
    house.block_on(run).unwrap().unwrap();
    assert!(read(&house, &coder(), Stdout, 0).unwrap().ended);
    assert_eq!(all(&house), (SPILLED, missing), "from the artifact");

    // Retention takes the artifact: the Observation has the beginning and the
    // end.
    let seen = house.service.action(&coder(), &id("act")).unwrap().observation.unwrap();
    let uri = seen.output.stdout.artifact.unwrap().parse().unwrap();
    house.block_on(house.service.artifacts().remove(&uri)).unwrap();
    assert_eq!(all(&house), (16 << 10, (TOTAL - (64 << 10)) as u64));
}

#[test]
fn what_runs_elsewhere_is_read_once_it_ended() {
    let ground = Ground::new();
    let setup = Setup::of(&[WRITE]).rules(ALLOW);
    let (here, elsewhere) = (House::open(&ground, &setup), House::open(&ground, &setup));
    let tool = told(&here);
    let run = send(&here, |_| {});
    tool.said.recv_timeout(PATIENCE).unwrap();
    tool.prints(Stdout, b"news");
    let refused = read(&elsewhere, &coder(), Stdout, 0).unwrap_err();
    assert_eq!((refused.code, refused.retryable), (Code::OutputElsewhere, true));
    assert!(refused.help.contains("glovebox action show"), "{refused:?}");
    assert_eq!(code(read(&elsewhere, &person("op"), Stdout, 0)), Code::ActionUnknown, "it is not told where either");
    let (mut moved, ended) = (elsewhere.service.output_moved(&coder(), &id("act")).unwrap(), run);
    drop(tool);
    here.block_on(ended).unwrap().unwrap();
    elsewhere.block_on(moved.moved());
    let whole = read(&elsewhere, &coder(), Stdout, 0).unwrap();
    assert_eq!((whole.bytes.as_slice(), whole.ended), (&b"news"[..], true));
}

#[test]
fn a_run_that_panics_or_is_given_up_is_followed_to_its_end() {
    let house = House::of(&Setup::of(&[WRITE]).rules(ALLOW));
    house.on_run(|_, ports| -> End {
        ports.frames.frame(Frame::Stdout(b"last words"));
        panic!("on purpose")
    });
    house.block_on(send(&house, |_| {})).unwrap().unwrap();
    let end = read(&house, &coder(), Stdout, 0).unwrap();
    assert!(end.ended);

    // Whoever waits for it is gone, and nobody knows how it ends.
    let tool = told(&house);
    let run = send(&house, |submission| submission.request.action_id = Some(id("left")));
    tool.said.recv_timeout(PATIENCE).unwrap();
    tool.prints(Stdout, b"heard");
    let (heard, hears) = channel();
    let follower = house.ground.tokio.spawn(follow(house.service.clone(), coder(), id("left"), heard));
    assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), b"heard");
    run.abort();
    assert!(house.block_on(run).unwrap_err().is_cancelled());
    let left = house.block_on(house.service.output(&coder(), &id("left"), Stdout, 0, 9)).unwrap();
    assert_eq!((left.bytes.len(), left.ended), (0, false), "its run is listed no more");
    follower.abort();
}
