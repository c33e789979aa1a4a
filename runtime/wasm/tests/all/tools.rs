//! The tool interface.

use glovebox_runtime::job::{End, Limit};
use serde_json::{Value, json};

use crate::harness::{Act, Came, built, executor, hostile_tool, load};

fn call(args: Value) -> Came {
    Act::tool("hostile", &args.to_string()).run(hostile_tool())
}

#[test]
fn a_tool_counts_a_real_file() {
    let count = load(&built("tools/dist/text.count.wasm"));
    assert!(count.is_tool() && !count.is_command());
    let folder = tempfile::tempdir().unwrap();
    fs_err::write(folder.path().join("a.txt"), "one two\nthree\n").unwrap();
    let came = Act::tool("text.count", r#"{"path":"a.txt"}"#).mount("/workspace", folder.path(), false).run(&count);
    let End::Returned { content, .. } = &came.end else { panic!("{came:?}") };
    let content: Value = serde_json::from_str(content).unwrap();
    assert_eq!(content, json!({ "lines": 2, "words": 3, "bytes": 14, "characters": 14 }));
    assert_eq!(came.report.usage.bytes_read, 14);
    assert!(came.report.usage.memory_peak > 64 << 10 && !came.report.usage.cpu.is_zero());
}

#[test]
fn arguments_and_context_arrive_unchanged_in_a_fresh_instance() {
    for _ in 0..2 {
        let End::Returned { content, artifacts } = call(json!({ "do": "echo", "x": "ä\u{1F9E4}" })).end else {
            panic!()
        };
        let content: Value = serde_json::from_str(&content).unwrap();
        assert_eq!(content["name"], "hostile");
        assert_eq!(content["args"], json!({ "do": "echo", "x": "ä\u{1F9E4}" }).to_string());
        assert_eq!(content["context"]["request_id"], "act-1");
        assert_eq!(content["context"]["deadline_ms"], 20_000);
        assert_eq!(content["calls"], 1, "an instance was used twice");
        assert!(artifacts.is_empty());
    }
}

#[test]
fn errors_keep_their_kind_and_their_bounds() {
    for kind in ["invalid-args", "not-found", "denied", "unavailable", "timeout", "conflict", "internal"] {
        let End::Failed(failure) =
            call(json!({ "do": "error", "kind": kind, "message": "no", "retryable": true, "details": "{}" })).end
        else {
            panic!("{kind}")
        };
        assert_eq!((failure.kind.as_str(), failure.message.as_str(), failure.retryable), (kind, "no", true));
        assert_eq!(failure.details.as_deref(), Some("{}"));
    }
    let End::Failed(failure) = call(json!({ "do": "error", "message": "ä", "message_bytes": 1 << 20 })).end else {
        panic!()
    };
    assert!(failure.message.len() <= 16 << 10 && failure.message.starts_with("äx"));
}

#[test]
fn results_are_bounded() {
    for (bytes, whole) in [(1 << 20, true), (9 << 20, false), (40 << 20, false)] {
        let came = Act::tool("hostile", &json!({ "do": "large-result", "bytes": bytes }).to_string())
            .limit(|limits| limits.memory = 512 << 20)
            .run(hostile_tool());
        match came.end {
            End::Returned { content, .. } => assert!(whole && content.len() == bytes + 2),
            End::LimitHit(limit) => assert!(!whole && limit == Limit::HostCall),
            other => panic!("{bytes}: {other:?}"),
        }
    }
}

#[test]
fn described_artifacts_come_along() {
    let folder = tempfile::tempdir().unwrap();
    let args = json!({
        "do": "artifacts",
        "write": [{ "path": "/outputs/a.txt", "text": "hello" }],
        "describe": [{ "path": "a.txt", "media_type": "text/plain", "description": "a greeting" }],
    });
    let came = Act::tool("hostile", &args.to_string()).mount("/outputs", folder.path(), true).run(hostile_tool());
    let End::Returned { artifacts, .. } = &came.end else { panic!("{came:?}") };
    assert_eq!(artifacts[0].media_type.as_deref(), Some("text/plain"));
    assert_eq!(fs_err::read_to_string(folder.path().join("a.txt")).unwrap(), "hello");
    assert_eq!(came.report.usage.bytes_written, 5);
}

#[test]
fn what_a_tool_says_is_bounded_in_number_and_length() {
    let came = call(json!({ "do": "progress", "count": 3, "total": 3, "message": "step" }));
    assert_eq!(came.heard.progress.len(), 3);
    assert_eq!(came.heard.progress[2], (2, Some(3), "step".into()));

    let came = call(json!({ "do": "log", "level": "warn", "count": 5_000, "message": "m", "bytes": 10_000 }));
    let (last, lines) = came.heard.log.split_last().unwrap();
    assert!(lines.len() >= 200 && lines.len() < 1_000, "{} lines", lines.len());
    assert!(lines.iter().all(|(level, text)| level == "warn" && text.len() == 4 << 10));
    assert!(last.1.contains(&format!("{} log lines", 5_000 - lines.len())), "{last:?}");
}

#[test]
fn printing_is_output_and_no_result() {
    let came = call(json!({ "do": "print", "message": "hello" }));
    assert!(matches!(came.end, End::Returned { .. }));
    assert_eq!((came.heard.stdout.as_slice(), came.heard.stderr.as_slice()), (&b"hello\n"[..], &b"hello\n"[..]));
}

#[test]
fn a_tool_that_stops_has_no_result() {
    let came = call(json!({ "do": "panic" }));
    assert!(matches!(&came.end, End::Trapped(text) if text.contains("unreachable")), "{came:?}");
    assert!(String::from_utf8_lossy(&came.heard.stderr).contains("told to"));
    let came = call(json!({ "do": "exit" }));
    assert!(matches!(&came.end, End::Trapped(text) if text.contains("instead of returning")), "{came:?}");
}

#[test]
fn a_tool_describes_itself_in_an_empty_sandbox() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let limits = Act::tool("x", "").job.limits;
    let report = runtime.block_on(executor().describe(hostile_tool(), &limits));
    let End::Returned { content, .. } = report.end else { panic!("{report:?}") };
    assert!(content.contains("hostile"));
}

#[test]
fn the_entry_has_to_be_there() {
    let came = Act::command("{}").run(hostile_tool());
    let End::Refused(problem) = came.end else { panic!() };
    assert_eq!(problem.code, env_contracts::Code::ComponentExports);
}

#[test]
fn log_lines_are_output_and_count_as_such() {
    let what = json!({ "do": "log", "level": "warn", "count": 100, "message": "m", "bytes": 1_000 });
    let came = Act::tool("hostile", &what.to_string()).limit(|limits| limits.output = 10_000).run(hostile_tool());
    assert_eq!(came.end, End::LimitHit(Limit::Output), "{came:?}");
    let said: usize = came.heard.log.iter().map(|(_, text)| text.len()).sum();
    assert!(said > 8_000 && said <= 10_000, "{said}");
}
