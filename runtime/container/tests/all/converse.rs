//! Conversations: at the pace of the slower, within the limits, and gone with
//! whoever holds them.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use env_contracts::{Code, Contract, Limits};
use glovebox_container::{Conversation, Life, Program};
use glovebox_runtime::job::{End, Frame, FrameSink, Limit, Timer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use crate::ends::on_ground;
use crate::ground::{Ground, LIMITS, engine_is_here, until};

/// Longer than any test waits: whoever ends then was ended.
const LONG: &str = "wall = \"10m\"";

/// What a program says on standard error.
#[derive(Clone, Default)]
struct Err(Arc<Mutex<Vec<u8>>>);

impl FrameSink for Err {
    fn frame(&mut self, frame: Frame<'_>) {
        let Frame::Stderr(bytes) = frame else { panic!("it was asked for standard error: {frame:?}") };
        self.0.lock().unwrap().extend_from_slice(bytes);
    }
}

/// What every test has by itself, with these lines in place of theirs.
fn limits(more: &str) -> Limits {
    let name = |line: &str| line.split('=').next().unwrap_or_default().trim().to_owned();
    let own = LIMITS.lines().filter(|line| !more.lines().any(|other| name(other) == name(line)));
    let text = own.chain(more.lines()).collect::<Vec<_>>().join("\n");
    Contract::from_toml(&format!("schema = \"glovebox/contract/v1\"\n{text}")).unwrap().limits
}

fn program(ground: &Ground, script: &str, more: &str) -> Program {
    Program {
        action: None,
        image: ground.image.image.clone(),
        runtime: None,
        limits: limits(more),
        argv: ["sh", "-c", script].map(str::to_owned).to_vec(),
        env: vec![("MORE".to_owned(), "is given".to_owned())],
    }
}

fn talk(ground: &Ground, script: &str, more: &str) -> Conversation {
    ground.containers.converse(program(ground, script, more), Box::new(Err::default()))
}

/// All that it says until it stops.
async fn rest(said: &mut (impl tokio::io::AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    said.read_to_end(&mut bytes).await.unwrap();
    bytes
}

/// Its end by itself, with what it said until then.
async fn ended(talk: Conversation) -> (Vec<u8>, End) {
    let Conversation { mut said, told, life } = talk;
    let bytes = rest(&mut said).await;
    drop(told);
    (bytes, life.over().await.end)
}

on_ground!(what_is_said_is_answered_while_it_runs, ground, {
    let err = Err::default();
    let script = "echo begun >&2; while read line; do echo \"$line $MORE\"; done; id -u; exit 7";
    let talk = ground.containers.converse(program(&ground, script, ""), Box::new(err.clone()));
    let Conversation { said, mut told, life } = talk;
    let mut said = BufReader::new(said);
    for word in ["one", "two"] {
        told.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        let mut line = String::new();
        said.read_line(&mut line).await.unwrap();
        assert_eq!(line, format!("{word} is given\n"));
    }
    assert_eq!((life.last_words(), ground.containers().await.len()), ("begun".to_owned(), 1));
    told.shutdown().await.unwrap();
    assert_eq!(rest(&mut said).await, b"65532\n");
    let report = life.over().await;
    assert_eq!(report.end, End::Exited { code: 7 }, "{report:?}");
    assert!(report.usage.memory_peak > 0 && report.notices.is_empty(), "{report:?}");
    assert_eq!(*err.0.lock().unwrap(), b"begun\n");
});

on_ground!(much_passes_both_ways_at_once, ground, {
    const MUCH: usize = 24 << 20;
    let Conversation { mut said, mut told, life } = talk(&ground, "cat", "output = \"64MiB\"");
    let telling = tokio::spawn(async move {
        let piece: Vec<u8> = (0..=255).cycle().take(1 << 20).collect();
        for _ in 0..MUCH / piece.len() {
            told.write_all(&piece).await.unwrap();
        }
    });
    let bytes = rest(&mut said).await;
    telling.await.unwrap();
    assert!(bytes.len() == MUCH && bytes.iter().enumerate().all(|(at, byte)| at % 256 == usize::from(*byte)));
    assert_eq!(life.over().await.end, End::Exited { code: 0 });
});

// Nothing is kept for who does not take it: the program waits.
on_ground!(who_takes_nothing_is_waited_for, ground, {
    let script = "head -c 50000000 /dev/zero; echo all of it >&2";
    let Conversation { mut said, told, life } = talk(&ground, script, "output = \"64MiB\"\nidle = \"2s\"");
    let mut first = [0];
    said.read_exact(&mut first).await.unwrap();
    // Longer than its silence may last: it is not its own.
    tokio::time::sleep(Duration::from_millis(4500)).await;
    assert_eq!(life.last_words(), "");
    let (rest, last) = (rest(&mut said).await, life.last_words());
    drop(told);
    assert_eq!((rest.len(), &*last, life.over().await.end), (50_000_000 - 1, "all of it", End::Exited { code: 0 }));
});

on_ground!(a_flood_ends_at_its_limit, ground, {
    let (bytes, end) = ended(talk(&ground, "yes", "")).await;
    assert_eq!((bytes.len(), end), (1 << 20, End::LimitHit(Limit::Output)));
    // What it says beside counts with it.
    let (bytes, end) = ended(talk(&ground, "yes >&2", "")).await;
    assert_eq!((bytes.len(), end), (0, End::LimitHit(Limit::Output)));
    // And who takes nothing of it holds no clock up.
    let Conversation { said, told, life } = talk(&ground, "yes", "wall = \"1s\"\noutput = \"1GiB\"");
    let end = life.over().await.end;
    assert_eq!(end, End::TimedOut(Timer::Wall));
    drop((said, told));
});

on_ground!(who_hangs_is_ended_and_who_is_told_something_does_not_hang, ground, {
    let began = Instant::now();
    let (_, end) = ended(talk(&ground, "trap '' TERM; sleep 1000", "wall = \"1s\"")).await;
    assert_eq!(end, End::TimedOut(Timer::Wall));
    let (_, end) = ended(talk(&ground, "sleep 1000", "idle = \"700ms\"")).await;
    assert_eq!(end, End::TimedOut(Timer::Idle));
    let Conversation { mut said, mut told, life } = talk(&ground, "cat > /dev/null; echo heard", "idle = \"900ms\"");
    for _ in 0..5 {
        tokio::time::sleep(Duration::from_millis(400)).await;
        told.write_all(b"still here\n").await.unwrap();
    }
    drop(told);
    assert_eq!(rest(&mut said).await, b"heard\n");
    assert_eq!(life.over().await.end, End::Exited { code: 0 });
    assert!(began.elapsed() < Duration::from_secs(40));
});

// What it does not read lies in its own memory, and there is an end to it.
on_ground!(who_does_not_listen_is_told_no_more_than_fits, ground, {
    let Conversation { mut said, mut told, life } = talk(&ground, "echo on; sleep 1000", "wall = \"8s\"");
    said.read_exact(&mut [0; 3]).await.unwrap();
    let mut count = 0_u64;
    while told.write_all(&[b'x'; 1 << 20]).await.is_ok() {
        count += 1 << 20;
    }
    // Half of 96 MiB, with what is on its way.
    assert!((47 << 20..=50 << 20).contains(&count), "{count}");
    // It lives on: nothing was killed for what it was told.
    assert_eq!(life.over().await.end, End::TimedOut(Timer::Wall));
});

on_ground!(who_dies_is_heard_to_the_end, ground, {
    let (bytes, end) = ended(talk(&ground, "echo last; kill -SEGV $$", "")).await;
    assert_eq!((&bytes[..], end), (&b"last\n"[..], End::Trapped("ended by signal 11".into())));
    // Its container is killed under it.
    let Conversation { mut said, told, life } = talk(&ground, "echo first; sleep 1000", "");
    let mut first = [0; 6];
    said.read_exact(&mut first).await.unwrap();
    for id in ground.containers().await {
        ground.docker.kill_container(&id, None).await.unwrap();
    }
    assert_eq!(rest(&mut said).await, b"");
    let end = life.over().await.end;
    assert!(matches!(end, End::Lost(_)), "{end:?}");
    drop(told);
});

on_ground!(what_can_not_be_begun_says_why, ground, {
    let mut missing = program(&ground, "", "");
    missing.argv = vec!["no-such-program".to_owned()];
    let mut nothing = program(&ground, "", "");
    nothing.argv.clear();
    let mut nowhere = program(&ground, "", "");
    nowhere.image = env_contracts::Digest::of(b"no such image");
    let wanted = [Code::ImageCommand, Code::ImageCommand, Code::ImageUnknown];
    for (program, code) in [missing, nothing, nowhere].into_iter().zip(wanted) {
        let (bytes, end) = ended(ground.containers.converse(program, Box::new(Err::default()))).await;
        let End::Refused(problem) = end else { panic!("{end:?}") };
        assert!(bytes.is_empty() && problem.code == code, "{problem}");
    }
});

on_ground!(ending_it_ends_it, ground, {
    // By itself, when it hears that nobody speaks any more.
    let Conversation { mut said, told, life } = talk(&ground, "echo on; cat", "");
    said.read_exact(&mut [0; 3]).await.unwrap();
    drop((said, told));
    assert_eq!(life.end().await.end, End::Exited { code: 0 });
    // And otherwise all the same.
    let Conversation { said, told, life } = talk(&ground, "trap '' TERM; echo on; sleep 1000", "");
    let mut said = BufReader::new(said);
    said.read_line(&mut String::new()).await.unwrap();
    drop((said, told));
    assert_eq!(life.end().await.end, End::Interrupted);
});

on_ground!(whoever_lets_go_of_it_leaves_nothing, ground, {
    let Conversation { mut said, told, life } = talk(&ground, "trap '' TERM; echo on; sleep 1000", LONG);
    said.read_exact(&mut [0; 3]).await.unwrap();
    assert_eq!(ground.containers().await.len(), 1);
    drop(life);
    until("its end", async || ground.containers().await.is_empty()).await;
    drop((said, told));
    // While it is being made, too; and draining waits for all of that.
    let made: Vec<Life> = (0..3).map(|_| talk(&ground, "sleep 1000", LONG).life).collect();
    tokio::time::sleep(Duration::from_millis(150)).await;
    drop(made);
    tokio::time::timeout(Duration::from_secs(30), ground.containers.drain()).await.unwrap();
    assert!(ground.containers().await.is_empty());
});
