//! From request to Observation.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::AsFd as _;

use env_contracts::{Ceiling, Code, Content, DerivedEffects, Digest, OutcomeKind, SideEffects, Span};
use glovebox_runtime::job::{End, Frame, JobUsage, Limit, Timer, ToolFailure};
use serde_json::json;

use crate::fake::{COMMAND, TOOL, printed, returned};
use crate::house::House;

#[test]
fn a_tool_gets_the_canonical_arguments_and_its_result_comes_back() {
    let house = House::new(TOOL);
    fs_err::write(house.path("workspace/a.txt"), "text").unwrap();
    house.on_run(|bound, _| {
        assert_eq!(bound.plan.arguments, r#"{"count":2,"path":"a.txt"}"#);
        returned(r#"{"ok": true}"#)
    });
    let seen = house.run("fake.tool", " { \"path\" : \"a.txt\", \"count\" : 2 } ");
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    assert_eq!(seen.data, json!({ "ok": true }));
    assert_eq!(seen.text, r#"{"ok":true}"#);
    assert_eq!((seen.effects.derived, seen.effects.side_effects), (DerivedEffects::None, SideEffects::None));
    assert_eq!(seen.evidence[0].sha256, Digest::of(b"text"));
    let sealed =
        seen.enforcement.iter().find(|clause| clause.clause.as_str() == "filesystem[/workspace/a.txt]").unwrap();
    assert_eq!(sealed.content, Some(Content::Sealed));
    assert!(seen.intent.is_some() && seen.plan.is_some());
}

#[test]
fn equal_requests_have_equal_intents_and_different_plans() {
    let house = House::new(TOOL);
    house.on_run(|_, _| returned(r#"{"ok":1}"#));
    let (a, b) = (house.run("fake.tool", r#"{"count":2}"#), house.run("fake.tool", r#"{ "count":2 }"#));
    assert_eq!(a.intent, b.intent);
    assert_ne!(a.plan, b.plan);
    assert_ne!(house.run("fake.tool", r#"{"count":3}"#).intent, a.intent);
}

/// Nothing here may reach the backend: its script panics.
#[test]
fn what_can_not_be_planned_is_refused_with_its_place() {
    let house = House::new(TOOL);
    for (args, code, named) in [
        (r#"{"count": 0}"#, Code::SchemaRejected, "/count"),
        (r#"{"count": "x"}"#, Code::SchemaRejected, "/count"),
        (r#"{"pth": "a"}"#, Code::SchemaRejected, "path"),
        (r#"{"count": 1, "count": 2}"#, Code::ArgumentsInvalid, "count"),
        ("not json", Code::ArgumentsInvalid, "1"),
        ("[]", Code::SchemaRejected, "object"),
    ] {
        let seen = house.run("fake.tool", args);
        assert_eq!(seen.outcome.kind, OutcomeKind::SchemaRejected, "{args}");
        assert_eq!(seen.outcome.code, Some(code), "{args}");
        assert!(seen.outcome.message.as_ref().unwrap().contains(named), "{args}: {:?}", seen.outcome.message);
        let help = seen.outcome.help.as_ref().unwrap();
        assert_eq!(help.contains("`glovebox tool show fake.tool`"), code == Code::SchemaRejected, "{args}: {help}");
        assert!(seen.plan.is_none());
    }
    for (scope, kind, which) in [
        ("[limits]\nwall = \"1h\"", OutcomeKind::ContractUnsatisfied, "limits.wall"),
        (
            "[network]\negress = [{ host = \"a.com\", ports = [443] }]",
            OutcomeKind::ContractUnsatisfied,
            "network.egress[a.com]",
        ),
        (
            "filesystem = [{ guest = \"/workspace\", source = \"workspace\", access = \"write\" }]",
            OutcomeKind::ContractUnsatisfied,
            "filesystem[/workspace]",
        ),
        (
            "filesystem = [{ guest = \"/etc\", source = \"host:/etc\", access = \"read\" }]",
            OutcomeKind::ContractUnsatisfied,
            "filesystem[/etc]",
        ),
    ] {
        let seen = house.scoped("fake.tool", scope);
        assert_eq!((seen.outcome.kind, seen.outcome.which.as_deref()), (kind, Some(which)), "{:?}", seen.outcome);
    }
    let seen = house.run("fake.tool", r#"{"path": "../outside"}"#);
    assert_eq!(seen.outcome.code, Some(Code::PathOutsideMounts));
    let unknown = house.submit("fake.tol", "{}", |_| {}).unwrap_err();
    assert_eq!(unknown.code, Code::ToolUnknown);
    assert!(unknown.help.contains("fake.tool"), "{}", unknown.help);
}

#[test]
fn tools_that_want_too_much_are_refused_by_clause() {
    let contract = |more: &str| TOOL.replace("limits = {", &format!("{more}\nlimits = {{"));
    for (manifest, which) in [
        (TOOL.replace("64MiB", "64GiB"), "limits.memory"),
        (TOOL.replace("wall = \"10s\"", "wall = \"10h\""), "limits.wall"),
        (TOOL.replace("access = \"read\"", "access = \"write\""), "filesystem[/workspace]"),
        (
            contract("network = { egress = [{ host = \"a.com\", ports = [443], max = \"1MiB\", connections = 1 }] }"),
            "network.egress[a.com]",
        ),
        (contract("state = { persistence = \"environment\" }"), "state.persistence"),
        (contract("isolation = { sharing = \"agent\" }"), "isolation.sharing"),
    ] {
        let house = House::new(&manifest);
        let seen = house.run("fake.tool", "{}");
        assert_eq!(seen.outcome.kind, OutcomeKind::ContractUnsatisfied, "{manifest}: {:?}", seen.outcome);
        assert_eq!(seen.outcome.which.as_deref(), Some(which), "{:?}", seen.outcome);
        assert!(!seen.outcome.help.as_ref().unwrap().is_empty());
    }
}

#[test]
fn a_clause_the_backend_can_not_enforce_is_refused_or_dropped_where_it_may_be() {
    let mut ceiling: Ceiling = glovebox_runtime::default_ceiling();
    ceiling.install.state.persistence = env_contracts::Persistence::Environment;
    let wants = TOOL.replace("limits = {", "state = { persistence = \"environment\" }\nlimits = {");
    let seen = House::with(&wants, ceiling.clone()).run("fake.tool", "{}");
    assert_eq!(seen.outcome.which.as_deref(), Some("state.persistence"), "{:?}", seen.outcome);
    assert!(seen.outcome.message.unwrap().contains("nothing is kept"));

    let may_drop = wants.replace("state = {", "degrade = { \"state.persistence\" = \"allow\" }\nstate = {");
    let house = House::with(&may_drop, ceiling);
    house.on_run(|bound, _| {
        assert_eq!(bound.plan.contract.state.persistence, env_contracts::Persistence::None);
        returned(r#"{"ok":1}"#)
    });
    let seen = house.run("fake.tool", "{}");
    assert_eq!(seen.outcome.code, None, "{:?}", seen.outcome);
    let dropped = seen.enforcement.iter().find(|clause| clause.clause.as_str() == "state.persistence").unwrap();
    assert!(dropped.enforced_by.starts_with("dropped"), "{dropped:?}");
}

#[test]
fn a_timeout_can_only_shorten() {
    let house = House::new(TOOL);
    house.on_run(|bound, _| returned(&format!(r#"{{"ok":"{}"}}"#, bound.plan.contract.limits.wall.unwrap())));
    for (asked, got) in [(Span::secs(3), "3s"), (Span::secs(3000), "10s")] {
        let seen = house.submit("fake.tool", "{}", |submission| submission.request.timeout = Some(asked)).unwrap();
        assert_eq!(seen.data["ok"], got);
    }
}

#[test]
fn ends_have_names_of_their_own() {
    let house = House::new(TOOL);
    let failure = |kind: &str| {
        End::Failed(ToolFailure {
            kind: kind.into(),
            message: "no".into(),
            retryable: false,
            details: Some(r#"{"a":1}"#.into()),
        })
    };
    for (end, shown, code) in [
        (End::TimedOut(Timer::Wall), "timed-out(wall)", Code::TimedOut),
        (End::TimedOut(Timer::Idle), "timed-out(idle)", Code::TimedOut),
        (End::LimitHit(Limit::Memory), "limit-hit(memory)", Code::LimitHit),
        (End::Trapped("unreachable".into()), "completed(trap)", Code::ToolTrapped),
        (End::Interrupted, "interrupted(run)", Code::Interrupted),
        (End::HostFailed("x".into()), "backend-error", Code::BackendError),
        (failure("not-found"), "completed(not-found)", Code::ToolFailed),
        (returned(r#"{"no":1}"#), "completed(result)", Code::ToolBadResult),
        (returned("not json"), "completed(result)", Code::ToolBadResult),
    ] {
        house.on_run(move |_, ports| {
            ports.frames.frame(Frame::Stdout(b"said before"));
            end.clone()
        });
        let seen = house.run("fake.tool", "{}");
        assert_eq!(seen.outcome.to_string(), shown);
        assert_eq!(seen.outcome.code, Some(code), "{shown}");
        assert_eq!(seen.output.stdout.text.as_deref(), Some("said before"), "{shown}: partial output is lost");
        assert!(seen.text.contains(code.as_str()), "{}", seen.text);
    }
    house.on_run(move |_, _| failure("not-found"));
    let seen = house.run("fake.tool", "{}");
    assert!(seen.outcome.help.unwrap().contains("correct the arguments"));
    assert_eq!(seen.data, json!({ "a": 1 }));
}

#[test]
fn what_a_request_expects_is_held_against_the_result() {
    let house = House::new(TOOL);
    house.on_run(|_, _| returned(r#"{"ok":1}"#));
    let expect = |schema: serde_json::Value| {
        house.submit("fake.tool", "{}", |submission| submission.request.expect = Some(schema)).unwrap()
    };
    assert_eq!(expect(json!({ "required": ["ok"] })).outcome.code, None);
    assert_eq!(expect(json!({ "required": ["more"] })).outcome.code, Some(Code::ToolBadResult));
    assert_eq!(expect(json!({ "$ref": "https://example.com/x" })).outcome.code, Some(Code::SchemaRejected));
}

#[test]
fn outputs_become_artifacts_that_later_actions_can_take() {
    let house = House::new(TOOL);
    house.on_run(|bound, _| {
        let outputs = bound.files.mounts.iter().find(|mount| mount.guest == "/outputs").unwrap();
        let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(outputs.dir.as_fd(), "r.txt", flags, rustix::fs::Mode::RUSR).unwrap();
        File::from(file).write_all(b"result").unwrap();
        rustix::fs::symlinkat("/etc/passwd", outputs.dir.as_fd(), "link").unwrap();
        returned(r#"{"ok":1}"#)
    });
    let seen = house.run("fake.tool", "{}");
    assert_eq!(seen.artifacts.len(), 1);
    let artifact = &seen.artifacts[0];
    assert_eq!((artifact.name.as_str(), artifact.size, artifact.sha256.clone()), ("r.txt", 6, Digest::of(b"result")));
    assert!(artifact.uri.starts_with(&format!("artifact/{}/", seen.action_id)));
    assert!(seen.notices.iter().any(|notice| notice.message.contains("link")), "{:?}", seen.notices);

    // The tool's contract mounts no input: bringing one is refused.
    let uri = artifact.uri.clone();
    let brought = house.submit("fake.tool", "{}", |submission| {
        submission.request.inputs.insert("x".parse().unwrap(), uri.clone());
    });
    assert_eq!(brought.unwrap().outcome.kind, OutcomeKind::ContractUnsatisfied);
}

#[test]
fn a_command_prints_its_result() {
    let house = House::new(COMMAND);
    house.on_run(|bound, ports| {
        let entry = format!("{:?}", bound.registered.entry);
        assert!(entry.contains("\"x y\""), "{entry}");
        printed(ports, "{\"n\": 1}\n", 0)
    });
    assert_eq!(house.run("fake.command", r#"{"path":"x y"}"#).data, json!({ "n": 1 }));
    house.on_run(|_, ports| printed(ports, "oops", 3));
    let seen = house.run("fake.command", "{}");
    assert_eq!((seen.outcome.to_string().as_str(), seen.outcome.exit), ("completed(3)", Some(3)));
    house.on_run(|_, ports| printed(ports, "oops", 0));
    assert_eq!(house.run("fake.command", "{}").outcome.code, Some(Code::ToolBadResult));
}

#[test]
fn a_flood_keeps_its_beginning_its_end_and_a_whole_artifact() {
    let house = House::new(&COMMAND.replace("result = \"json\"", "result = \"text\""));
    house.on_run(|_, ports| {
        let frames = &mut ports.frames;
        frames.frame(Frame::Stdout(b"first line\n"));
        for _ in 0..5 << 10 {
            frames.frame(Frame::Stdout(&[b'x'; 1024]));
        }
        frames.frame(Frame::Stdout(b"\nthe error"));
        End::Exited { code: 0 }
    });
    let seen = house.run("fake.command", "{}");
    let stdout = &seen.output.stdout;
    let text = stdout.text.as_ref().unwrap();
    assert!(text.starts_with("first line\n") && text.ends_with("\nthe error"));
    assert_eq!(stdout.total, 11 + (5 << 20) + 10);
    assert_eq!(stdout.total, stdout.omitted + text.len() as u64);
    let whole = seen.artifacts.iter().find(|artifact| Some(&artifact.uri) == stdout.artifact.as_ref()).unwrap();
    assert_eq!(whole.size, stdout.total);
}

#[test]
fn usage_is_reported_and_a_run_sees_the_sealed_bytes() {
    let house = House::new(TOOL);
    fs_err::write(house.path("workspace/a.txt"), "sealed").unwrap();
    let path = house.path("workspace/a.txt");
    house.on_run(move |bound, _| {
        fs_err::write(&path, "changed").unwrap();
        let mut text = String::new();
        File::from(bound.files.sealed[0].content.try_clone().unwrap()).read_to_string(&mut text).unwrap();
        returned(&json!({ "ok": text }).to_string())
    });
    let seen = house.run("fake.tool", r#"{"path":"a.txt"}"#);
    assert_eq!(seen.data["ok"], "sealed");
    assert_eq!(seen.usage.memory_peak, JobUsage::default().memory_peak);
}
