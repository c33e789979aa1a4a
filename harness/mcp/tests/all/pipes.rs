//! The pipes themselves: lines as a client writes them.

use std::time::Duration;

use glovebox_events::{ActionState, What};
use glovebox_mcp::Door;
use glovebox_runtime::job::End;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

use crate::client::{ASK, Seat};
use crate::fake::{TOOL, returned};
use crate::house::{Setup, agent};

/// A client that writes its lines itself.
struct Raw {
    write: WriteHalf<DuplexStream>,
    read: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Raw {
    fn of(seat: &Seat) -> Self {
        Self::at(seat.door.of(seat.party()))
    }

    fn at(door: Door) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let served = tokio::spawn(async move { door.serve(read, write).await });
        let (read, write) = tokio::io::split(ours);
        Self { write, read: BufReader::new(read).lines(), served }
    }

    async fn say(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// A call of a tool with arguments as they are written here.
    async fn call(&mut self, id: u32, tool: &str, arguments: &str) {
        let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{meta},"name":"{tool}","arguments":{arguments}}}}}"#
        ))
        .await;
    }

    async fn hear(&mut self) -> Value {
        let line = self.read.next_line().await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn seat() -> Seat {
    Seat::of(&Setup::of(&[TOOL]).rules(ASK))
}

fn runs_until_stopped(seat: &Seat) {
    seat.house.on_run(|_, ports| {
        while !ports.stop.is_requested() {
            std::thread::sleep(Duration::from_millis(2));
        }
        End::Interrupted
    });
}

/// What is parsed is what was sent: a key that stands twice is refused, and not
/// the one that another parser happened to keep is taken.
#[test]
fn arguments_are_judged_as_they_were_written() {
    let seat = seat();
    seat.house.on_run(|bound, _| returned(&format!(r#"{{"ok":{}}}"#, json!(bound.plan.arguments))));
    seat.house.block_on(async {
        let mut client = Raw::of(&seat);
        client.call(1, "fake.tool", r#"{"count":1,"count":2}"#).await;
        let twice = client.hear().await;
        assert_eq!(twice["result"]["_meta"]["glovebox/outcome"]["code"], "arguments-invalid", "{twice}");
        client.call(2, "fake.tool", r#"{"count":9007199254740993}"#).await;
        let long = client.hear().await;
        assert_eq!(long["result"]["structuredContent"]["ok"], r#"{"count":9007199254740993}"#, "{long}");
        assert_eq!(long["result"]["resultType"], "complete");
        // Nor are two sets of arguments one.
        client.call(3, "fake.tool", r#"{"count":1},"arguments":{"count":2}"#).await;
        assert_eq!(client.hear().await["error"]["code"], -32600);
        client.call(4, "fake.tool", "[1]").await;
        assert_eq!(client.hear().await["error"]["code"], -32602);
        client.call(5, "fake.tool", "{}").await;
        assert!(client.hear().await["result"].is_object(), "the connection goes on");
    });
}

#[test]
fn without_a_token_there_is_no_progress_and_what_is_no_message_ends_nothing() {
    let seat = seat();
    seat.house.on_run(|_, ports| {
        for done in 0..50 {
            ports.frames.frame(glovebox_runtime::job::Frame::Progress { done, total: None, message: "m" });
        }
        returned(r#"{"ok":1}"#)
    });
    seat.house.block_on(async {
        let mut client = Raw::of(&seat);
        client.say("").await;
        client.say("not json").await;
        assert_eq!(client.hear().await["error"]["code"], -32700);
        client.call(1, "fake.tool", "{}").await;
        assert_eq!(client.hear().await["id"], 1, "something came before the answer");
        client.say(r#"{"jsonrpc":"2.0","method":"notifications/of_somebody_else"}"#).await;
        client.say(&format!(r#"{{"jsonrpc":"2.0","id":2,"method":"{}"}}"#, "x".repeat((16 << 20) + 5))).await;
        assert_eq!(client.hear().await["error"]["code"], -32600);
        client.call(3, "fake.tool", "{}").await;
        assert_eq!(client.hear().await["id"], 3);
    });
}

/// The call that was cancelled gets no answer; its action has exactly one end,
/// and what comes next is answered.
#[test]
fn a12_a_cancelled_call_stops_what_runs_and_leaves_one_end() {
    let seat = seat();
    runs_until_stopped(&seat);
    seat.house.block_on(async {
        let mut client = Raw::of(&seat);
        client.call(1, "fake.tool", "{}").await;
        seat.once(ActionState::Running).await;
        client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await;
        let ended = seat.once(ActionState::Cancelled).await;
        seat.house.runs_well();
        client.call(2, "fake.tool", "{}").await;
        assert_eq!(client.hear().await["id"], 2, "the cancelled call was answered");
        let events = seat.house.service.events(&agent("u", "coder"), &ended.id, 0).unwrap();
        let ends = events.iter().filter(|logged| matches!(logged.event.what, What::Ended { .. })).count();
        assert_eq!((ends, seat.house.ground.ran(&ended.id)), (1, 1));
    });
}

#[test]
fn when_the_client_is_gone_what_runs_is_stopped_and_nothing_is_left() {
    let seat = seat();
    runs_until_stopped(&seat);
    seat.house.block_on(async {
        let mut client = Raw::of(&seat);
        client.call(1, "fake.tool", "{}").await;
        let running = seat.once(ActionState::Running).await;
        let Raw { write, read, served } = client;
        drop((write, read));
        served.await.unwrap().unwrap();
        assert_eq!(seat.house.now(&running.id).state, ActionState::Cancelled);
        assert_eq!(fs_err::read_dir(seat.house.path("state/run")).map_or(0, Iterator::count), 0);
    });
}

/// Who asks is what the channel says. Where it says nothing, nothing is done,
/// whatever a message claims.
#[test]
fn a_request_that_nobody_vouches_for_is_refused() {
    let seat = seat();
    seat.house.block_on(async {
        let mut client = Raw::at(seat.door.clone());
        client.call(1, "fake.tool", "{}").await;
        assert_eq!(client.hear().await["error"]["code"], -32603);
        client.call(2, "glovebox.result", r#"{"action_id":"a"}"#).await;
        assert_eq!(client.hear().await["error"]["code"], -32603);
        assert!(seat.actions().is_empty());
    });
}
