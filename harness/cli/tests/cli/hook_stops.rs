//! The hook where something goes wrong, and how it comes into an agent's settings.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::hook::{Told, bash, heard, told};
use crate::support::{House, Ran};

/// In an agent's eyes any other exit code, and silence, is no objection.
#[test]
fn whatever_goes_wrong_stops_the_call() {
    let house = House::new();
    let call = house.call("Bash", &bash("true"));
    let read = house.call("Read", &json!({ "file_path": "a.txt" }));
    let twice = call.replacen("\"tool_name\"", "\"tool_name\":\"Read\",\"tool_name\"", 1);
    let deep = call.replace("{\"deep\":[1]}", &format!("{}1{}", "[".repeat(5000), "]".repeat(5000)));
    assert_ne!(deep, call);
    let long = house.call("Write", &json!({ "file_path": "b", "content": "x".repeat(9 << 20) }));
    for (name, input) in [
        ("nothing", String::new()),
        ("no JSON", "Bash true".to_owned()),
        ("half of it", call[..call.len() - 1].to_owned()),
        ("twice", format!("{call}{call}")),
        ("a key twice", twice),
        ("nested", deep),
        ("huge", long),
        ("no tool", call.replace("tool_name", "tool")),
        ("no input", call.replace("tool_input", "input")),
        ("another event", call.replace("PreToolUse", "PostToolUse")),
        ("a command that is none", house.call("Bash", &json!({ "command": ["true"] }))),
        ("no command", house.call("Bash", &json!({}))),
        ("no path", house.call("Read", &json!({ "path": "a.txt" }))),
    ] {
        blocks(name, &heard(house.hook(), input.into_bytes()));
    }
    let mut binary = call.clone().into_bytes();
    binary[5] = 0xff;
    blocks("no text", &heard(house.hook(), binary));

    let with = |change: &dyn Fn(&mut Command)| {
        let mut hook = house.hook();
        change(&mut hook);
        heard(hook, read.clone().into_bytes())
    };
    let file = house.file("file", "");
    for (name, ran) in [
        (
            "no folder",
            with(&|hook| {
                hook.args(["--workspace", "/nowhere"]);
            }),
        ),
        (
            "nobody who hears it",
            with(&|hook| {
                hook.stdout(std::process::Stdio::null());
            }),
        ),
        (
            "too long a wait",
            with(&|hook| {
                hook.args(["--wait", "51s"]);
            }),
        ),
        (
            "an unknown flag",
            with(&|hook| {
                hook.arg("--no-such-flag");
            }),
        ),
        (
            "an agent that is none",
            with(&|hook| {
                hook.args(["--agent", "A B"]);
            }),
        ),
        (
            "no state",
            with(&|hook| {
                hook.env("GLOVEBOX_STATE", format!("{file}/state"));
            }),
        ),
        (
            "no policy",
            with(&|hook| {
                hook.env("GLOVEBOX_POLICY", "/nowhere");
            }),
        ),
        (
            "nobody hears it",
            with(&|hook| {
                hook.stdout(fs_err::File::create("/dev/full").unwrap().into_parts().0);
            }),
        ),
    ] {
        blocks(name, &ran);
    }
    // It was none of that which stopped the others.
    assert_eq!(told(&with(&|_| ())), Told::Allow);
    house.policy_adds("permit (principal, action, resource) when { context.no_such_thing };");
    blocks("a broken policy", &with(&|_| ()));
    house.file("config/glovebox/config.toml", "no = [");
    blocks("a broken configuration", &with(&|_| ()));
}

fn blocks(name: &str, ran: &Ran) {
    assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{name}: {ran:?}");
    assert!(!ran.stderr.trim().is_empty(), "{name}: nothing was said");
}

/// However the part that decides ends, by a panic that aborts or by the kernel:
/// the agent hears a no. It reads a call that never comes to its end, so it is
/// there to be ended.
#[test]
fn a_crash_a_signal_and_a_hang_stop_the_call() {
    let house = House::new();
    let start = |wait: &str| {
        let mut child = house.hook().args(["--wait", wait]).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"{\"session_id\":").unwrap();
        let inner = loop {
            if let Some(inner) = child_of(&child) {
                break inner;
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        (child, stdin, inner)
    };
    let ended = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Ran { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    };
    for signal in ["ABRT", "ILL", "KILL", "TERM"] {
        let (child, _stdin, inner) = start("50s");
        send(signal, inner);
        blocks(signal, &ended(child));
    }
    for signal in ["TERM", "INT", "HUP"] {
        let (child, _stdin, inner) = start("50s");
        send(signal, child.id());
        blocks(signal, &ended(child));
        // It does not go on without us.
        while Path::new(&format!("/proc/{inner}")).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
    // Nobody ends it, and it ends by itself.
    let (child, _stdin, inner) = start("0s");
    send("STOP", inner);
    blocks("a hang", &ended(child));
}

/// The inner process, once it is no longer a copy of the outer one.
fn child_of(outer: &Child) -> Option<u32> {
    let children =
        fs_err::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    children.into_iter().find(|pid: &u32| {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(1)).and_then(|pid| pid.parse().ok());
        let inside =
            || fs_err::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("--inside"));
        parent == Some(outer.id()) && inside()
    })
}

#[expect(clippy::disallowed_methods, reason = "a signal, as a shell sends it")]
fn send(signal: &str, pid: u32) {
    let sent = Command::new("kill").args([&format!("-{signal}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success());
}

#[test]
fn it_is_installed_beside_what_is_there() {
    let house = House::new();
    let printed = house.run(&["hook", "install", "--agent", "claude-code", "--print"]).ok().json();
    let ours = &printed["hooks"]["PreToolUse"][0];
    assert_eq!((&ours["matcher"], &ours["hooks"][0]["onFailure"]), (&json!("*"), &json!("block")), "{printed}");
    assert_eq!(ours["hooks"][0]["timeout"], 60);
    let settings = house.workspace().join(".claude/settings.json");
    let read = || serde_json::from_str::<Value>(&fs_err::read_to_string(&settings).unwrap()).unwrap();
    let install = || house.run(&["hook", "install", "--agent", "claude-code", "--project"]).ok();
    install();
    assert_eq!(read(), printed);
    let other = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "true" }] });
    let before = json!({ "model": "m", "hooks": { "Stop": [], "PreToolUse": [other.clone()] } });
    fs_err::write(&settings, before.to_string()).unwrap();
    install();
    install();
    let want = json!({ "model": "m", "hooks": { "Stop": [], "PreToolUse": [other, ours.clone()] } });
    assert_eq!(read(), want);
    for broken in ["{", "[]", "{\"hooks\":[]}"] {
        fs_err::write(&settings, broken).unwrap();
        house.refuses(&["hook", "install", "--agent", "claude-code", "--project"], 2, "usage", &["settings.json"]);
        assert_eq!(fs_err::read_to_string(&settings).unwrap(), broken);
    }
}

/// The fenced blocks of a language in docs/mcp.md.
fn blocks_of(language: &str) -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/mcp.md");
    let page = fs_err::read_to_string(page).unwrap();
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

#[test]
fn what_the_page_shows_can_be_pasted() {
    let house = House::new();
    let folder = house.path("config/glovebox/policy");
    house.run(&["policy", "init", &folder]).ok();
    let put = |name: &str, text: &str| fs_err::write(Path::new(&folder).join(name), text).unwrap();
    put("team.cedar", &blocks_of("cedar").concat());
    let (tests, settings): (Vec<_>, Vec<_>) = blocks_of("toml").into_iter().partition(|text| text.contains("[[test]]"));
    put("tests/team.toml", &tests.concat());
    house.run(&["policy", "check"]).ok();
    let tested = house.run(&["policy", "test"]).ok().stdout;
    assert!(tests.concat().matches("[[test]]").count() >= 4 && tested.contains(", 0 do not"), "{tested}");
    for text in settings {
        text.parse::<toml::Table>().unwrap();
    }
    let settings = blocks_of("json");
    let parsed: Vec<Value> = settings.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
    let printed = house.run(&["hook", "install", "--agent", "claude-code", "--print"]).ok().json();
    assert!(parsed.contains(&printed), "{printed}");
}
