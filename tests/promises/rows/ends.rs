//! How actions end: told apart, and whose fault it is.

use std::time::Duration;

use env_contracts::Code;
use glovebox_plane::Watch;
use glovebox_runtime::Stop;
use glovebox_runtime::job::Frame;
use serde_json::{Value, json};

use super::{NO_TOOL, NO_WEBASSEMBLY, Row, row};
use crate::guests::Guest;
use crate::house::{House, TOKIO};

/// Long enough for a busy machine, much shorter than `limits.wall`.
const SOON: Duration = Duration::from_secs(20);

pub(super) const ROWS: &[Row] = &[
    row("a command's exit code comes back", exit_codes),
    row("a guest that crashes is named as such, and its words are kept", crashes),
    row("a tool's own error keeps its kind, and its words stay within bounds", tool_errors).of_components(NO_TOOL),
    row("a result that is no JSON, too deep or not what was promised is the tool's fault", bad_results),
    row("a result too large is no result", large_results),
    row("a component that exports nothing to call is refused", nothing_to_call).of_components(NO_WEBASSEMBLY),
    row("a program that the image does not have is no end of a tool", no_program)
        .of_images("a component is one program"),
    row("who is interrupted keeps what was said", interrupted),
    row("an action that nobody waits for any more ends", dropped),
    row("a broken reader of output ends one action only", broken_reader),
];

fn exit_codes(house: &House) {
    house.command(&json!({ "do": "exit", "code": 7 })).run().ends("completed(7)").coded(Code::ToolFailed);
    house.command(&json!({ "do": "exit", "code": 255 })).run().ends("completed(255)");
    // The older call of WASI knows success and failure only.
    let plain = if house.has_components() { "completed(1)" } else { "completed(9)" };
    house.command(&json!({ "do": "exit", "plain": true, "code": 9 })).run().ends(plain);
    if house.has_components() {
        house.act(&Guest::Wat("fails"), &json!({})).run().ends("completed(1)");
    }
    house.command(&json!({ "do": "exit", "code": 0 })).text().run().succeeds().ends("completed(0)");
}

fn crashes(house: &House) {
    let seen = house.command(&json!({ "do": "unreachable" })).run().ends("completed(trap)");
    let why = if house.has_components() { "unreachable" } else { "signal 4" };
    seen.coded(Code::ToolTrapped).says(&[why]);
    let seen = house.command(&json!({ "do": "panic", "text": "told to" })).run().ends("completed(trap)");
    assert!(seen.err().contains("told to"), "{seen:?}");
    if !house.has_components() {
        return;
    }
    let seen = house.tool(&json!({ "do": "panic" })).run().ends("completed(trap)");
    assert!(seen.err().contains("told to"), "{seen:?}");
    house.tool(&json!({ "do": "exit" })).run().ends("completed(trap)").says(&["instead of returning"]);
}

fn tool_errors(house: &House) {
    for kind in ["invalid-args", "not-found", "denied", "unavailable", "timeout", "conflict", "internal"] {
        let told = json!({ "do": "error", "kind": kind, "message": "no", "details": "{\"a\":1}" });
        let seen = house.tool(&told).run().coded(Code::ToolFailed);
        assert_eq!((seen.outcome.which.as_deref(), seen.data()), (Some(kind), &json!({ "a": 1 })));
    }
    let told = json!({ "do": "error", "message": "ä", "message_bytes": 1 << 20, "details": "no json" });
    let seen = house.tool(&told).run().coded(Code::ToolFailed);
    assert!(seen.outcome.message.as_ref().unwrap().len() <= 16 << 10, "{seen:?}");
    assert_eq!(seen.data(), &Value::Null);
}

fn bad_results(house: &House) {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for printed in ["{\"a\":", "", "\u{feff}{}", &deep] {
        let act = house.command(&json!({ "do": "bytes", "bytes": printed.as_bytes() }));
        act.run().ends("completed(result)").coded(Code::ToolBadResult);
    }
    let expect = json!({ "required": ["more"] });
    let expecting = |act: crate::act::Act<'_>| {
        let expect = expect.clone();
        let act = act.asking(move |submission| submission.request.expect = Some(expect));
        act.run().ends("completed(result)").coded(Code::ToolBadResult);
    };
    expecting(house.command(&json!({ "do": "nothing" })));
    if house.has_components() {
        for told in
            [json!({ "do": "invalid-json" }), json!({ "do": "deep-result" }), json!({ "do": "result", "content": "" })]
        {
            house.tool(&told).run().ends("completed(result)").coded(Code::ToolBadResult);
        }
        expecting(house.tool(&json!({ "do": "echo" })));
    }
    // A command whose result is JSON has to print some.
    let seen = house.command(&json!({ "do": "stdout", "bytes": 128 })).run().ends("completed(result)");
    assert_eq!(seen.output.stdout.total, 128);
}

fn large_results(house: &House) {
    let told = |bytes: u32| json!({ "do": "large-result", "bytes": bytes });
    let act = |bytes: u32| house.command(&told(bytes)).limit("memory = \"512MiB\"");
    act(5 << 20).run().ends("completed(result)").coded(Code::ToolBadResult);
    let seen = act(1 << 20).run().succeeds();
    assert_eq!(seen.data().as_str().map(str::len), Some(1 << 20));
    if !house.has_components() {
        return;
    }
    let act = |bytes: u32| house.tool(&told(bytes)).limit("memory = \"512MiB\"");
    act(40 << 20).run().ends("limit-hit(host-call)");
    act(9 << 20).run().ends("limit-hit(host-call)");
    act(5 << 20).run().ends("completed(result)").coded(Code::ToolBadResult);
    let seen = act(1 << 20).run().succeeds();
    assert_eq!(seen.data().as_str().map(str::len), Some(1 << 20));
    assert!(seen.text.len() < 32 << 10, "the text for a model stays short");
}

fn nothing_to_call(house: &House) {
    for guest in ["nothing", "long-export"] {
        let seen = house.act(&Guest::Wat(guest), &json!({})).run().ends("contract-unsatisfied");
        let seen = seen.coded(Code::ComponentExports);
        assert!(seen.outcome.message.as_ref().unwrap().len() < 1_000, "{seen:?}");
    }
}

fn no_program(house: &House) {
    for name in ["no-such-program", "/no/such/program", "/etc", "/open/file"] {
        let act = house.command(&json!({})).entry(&format!("kind = \"command\", argv = [\"{name}\"]"));
        let seen = act.run().coded(Code::ImageCommand).says(&[name]);
        assert_eq!(seen.output.stdout.total, 0, "{seen:?}");
    }
}

/// Stops the action as soon as it has said something.
struct StopAtWord(Stop);

impl Watch for StopAtWord {
    fn frame(&self, _: &Frame<'_>) {
        self.0.request();
    }
}

fn interrupted(house: &House) {
    for how in ["loop", "sleep"] {
        let stop = Stop::default();
        let told = json!({ "do": "print-then-hang", "how": how, "text": "half" });
        let act = house.command(&told).watched(StopAtWord(stop.clone())).stopped_by(&stop);
        let seen = act.run().ends("interrupted(run)").coded(Code::Interrupted);
        assert_eq!(seen.out(), "half\n", "{seen:?}");
    }
    let stop = Stop::default();
    stop.request();
    let seen = house.command(&json!({ "do": "loop" })).stopped_by(&stop).run().coded(Code::Interrupted);
    assert_eq!((seen.output.stdout.total, seen.times.run_us), (0, 0), "{seen:?}");
}

/// Tells that the guest speaks.
struct Tell(tokio::sync::mpsc::UnboundedSender<()>);

impl Watch for Tell {
    fn frame(&self, _: &Frame<'_>) {
        let _ = self.0.send(());
    }
}

fn dropped(house: &House) {
    for how in ["loop", "sleep"] {
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let act = house.command(&json!({ "do": "print-then-hang", "how": how })).watched(Tell(tell));
        let mut action = Box::pin(act.future());
        TOKIO.block_on(async {
            tokio::select! {
                seen = &mut action => panic!("it ended: {seen:?}"),
                word = told.recv() => assert!(word.is_some()),
            }
        });
        drop(action);
        // The run gives its watch back when it has ended.
        let ended = async { while told.recv().await.is_some() {} };
        let soon = async { tokio::time::timeout(SOON, ended).await };
        assert!(TOKIO.block_on(soon).is_ok(), "{how}: it runs on");
    }
    house.still_works();
}

struct Broken;

impl Watch for Broken {
    fn frame(&self, _: &Frame<'_>) {
        panic!("the reader is broken, as this test wants it");
    }
}

fn broken_reader(house: &House) {
    let seen = house.command(&json!({ "do": "print-then-hang" })).watched(Broken).run().ends("backend-error");
    seen.says(&["the reader is broken"]);
}
