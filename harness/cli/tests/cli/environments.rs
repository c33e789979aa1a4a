//! Environments as people meet them, with components and with images.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::containers::{MINIMAL, are_here};
use crate::support::{House, hostile};

/// What both tools here ask for.
const CONTRACT: &str = "[contract]\nschema = \"glovebox/contract/v1\"\n\
    filesystem = [{ guest = \"/cache\", source = \"scratch\", access = \"write\" }]\n\
    limits = { wall = \"30s\", memory = \"64MiB\", storage = \"1MiB\" }\n\
    state = { persistence = \"environment\", snapshot = \"after\" }\nisolation = { sharing = \"task\" }\n";

/// The house of an operator who lets tasks keep folders.
fn keeping() -> House {
    let house = House::cold();
    let ceiling = house.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
    let ceiling = ceiling.replace("sharing = \"action\"", "sharing = \"task\"");
    let state = "[install.state]\npersistence = \"environment\"\nsnapshot = \"after\"\n";
    house.file("config/glovebox/ceiling.toml", format!("{ceiling}\n{state}"));
    house.file("config/glovebox/policy/rules.cedar", "permit (principal, action, resource);");
    let classes = "[classes.person]\nsubjects = [\"*\"]\nassurance = \"console-login\"\n";
    house.file("config/glovebox/policy/approvers.toml", classes);
    house
}

fn head(name: &str) -> String {
    format!(
        "schema = \"glovebox/tool/v1\"\nname = \"{name}\"\nversion = \"1.0.0\"\ntitle = \"t\"\ndescription = \"d\"\n"
    )
}

/// A tool that is a component, or an image with a shell, in which a `script` of
/// one of two kinds is run.
struct Tool {
    image: bool,
}

impl Tool {
    fn add(&self, house: &House) {
        if self.image {
            let entry = "[entry]\nkind = \"command\"\nargv = [\"sh\", \"-c\", \"{script}\"]\nresult = \"text\"\n\
                 [input]\ntype = \"object\"\n[input.properties.script]\ntype = \"string\"\n";
            let manifest = house.file("shell.toml", format!("{}{entry}{CONTRACT}", head("my.keeps")));
            house.run(&["tool", "add", "--image", MINIMAL, "--manifest", &manifest]).ok();
        } else {
            let entry = "[entry]\nkind = \"command\"\nresult = \"json\"\n[input]\ntype = \"object\"\n";
            let manifest = house.file("component.toml", format!("{}{entry}{CONTRACT}", head("my.keeps")));
            let file = house.file("hostile.wasm", hostile());
            house.run(&["tool", "add", &file, "--manifest", &manifest]).ok();
        }
    }

    /// Arguments that leave a file, or that hang after it.
    fn leaves(&self, file: &str, hangs: bool) -> String {
        let then = if hangs { "; sleep 60" } else { "" };
        match (self.image, hangs) {
            (true, _) => format!(r#"{{"script":"printf 12345678 > /cache/{file}{then}"}}"#),
            (false, false) => format!(r#"{{"do":"write-file","path":"/cache/{file}","bytes":8}}"#),
            (false, true) => r#"{"do":"sleep","seconds":60}"#.to_owned(),
        }
    }

    /// What lies there.
    fn finds(&self, house: &House, task: &str) -> Vec<String> {
        let arguments = if self.image { r#"{"script":"ls /cache"}"# } else { r#"{"do":"list","path":"/cache"}"# };
        let seen = run(house, task, arguments);
        if self.image {
            let text = seen["data"].as_str().or(seen["text"].as_str()).unwrap();
            return text.split_whitespace().map(str::to_owned).collect();
        }
        let names = seen["data"]["names"].as_array().unwrap_or_else(|| panic!("{seen:#}"));
        names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }
}

fn run(house: &House, task: &str, arguments: &str) -> Value {
    house.run(&["run", "my.keeps", "--args", arguments, "--task", task, "--json"]).ok().json()
}

fn environments(house: &House) -> Vec<Value> {
    let all = house.run(&["environment", "list", "--json"]).ok().json();
    all["environments"].as_array().unwrap().clone()
}

fn each(test: impl Fn(Tool)) {
    test(Tool { image: false });
    if are_here() {
        test(Tool { image: true });
    }
}

#[test]
fn a_task_keeps_a_folder_goes_back_in_it_and_ends_it() {
    each(|tool| {
        let house = keeping();
        tool.add(&house);
        let first = run(&house, "t1", &tool.leaves("a", false));
        let snapshot = first["environment"]["snapshot"].as_str().unwrap_or_else(|| panic!("{first:#}")).to_owned();
        run(&house, "t1", &tool.leaves("b", false));
        assert_eq!(tool.finds(&house, "t1"), ["a", "b"]);
        assert_eq!(tool.finds(&house, "t2"), [""; 0], "another task has its own");

        let all = environments(&house);
        let mine = all.iter().find(|known| known["by"] == "t1").unwrap();
        assert_eq!((all.len(), &mine["state"], &mine["actions"]), (2, &"ready".into(), &3.into()), "{mine:#}");
        let id = mine["id"].as_str().unwrap();
        assert_eq!(first["environment"]["id"], id);
        let shown = house.run(&["environment", "show", id]).ok().stdout;
        assert!(shown.contains("my.keeps@1.0.0") && shown.contains(&snapshot), "{shown}");

        let taken = house.run(&["environment", "snapshot", id, "--json"]).ok().json();
        let taken = taken["snapshot"].as_str().unwrap();
        let differs = house.run(&["environment", "diff", &snapshot[..12], taken]).ok().stdout;
        assert_eq!(differs, "added  cache/b\n");
        house.run(&["environment", "restore", &snapshot[..12]]).ok();
        assert_eq!(tool.finds(&house, "t1"), ["a"]);

        house.run(&["environment", "end", id]).ok();
        assert_eq!(tool.finds(&house, "t1"), [""; 0], "it began anew");
        house.refuses(&["environment", "show", id], 2, "environment-unknown", &[]);
        let zeros = "0".repeat(64);
        house.refuses(&["environment", "restore", &zeros], 2, "snapshot-unknown", &[]);
        house.is_tidy();
    });
}

/// The configuration says how long they are kept, and `gc` takes them away.
#[test]
fn gc_ends_what_is_over_and_drops_old_snapshots() {
    let tool = Tool { image: false };
    let house = keeping();
    tool.add(&house);
    run(&house, "t1", &tool.leaves("a", false));
    let gc = |more: &[(&str, &str)]| {
        let mut command = house.command();
        command.args(["gc", "--json"]).envs(more.iter().copied());
        crate::support::Ran::of(&mut command).ok().json()["environments"].clone()
    };
    assert_eq!(gc(&[])["ended"], serde_json::json!([]));
    for limit in ["GLOVEBOX_ENVIRONMENTS_IDLE", "GLOVEBOX_ENVIRONMENTS_AGE"] {
        assert_eq!(gc(&[(limit, "1ms")])["ended"].as_array().unwrap().len(), 1, "{limit}");
        run(&house, "t1", &tool.leaves("a", false));
    }
    gc(&[("GLOVEBOX_ENVIRONMENTS_IDLE", "1ms")]);
    assert_eq!(gc(&[("GLOVEBOX_ARTIFACTS_MAX_AGE", "1ms")])["snapshots"], 1, "three times the same content");
    let none = house.run(&["environment", "snapshots", "--json"]).ok().json();
    assert_eq!(none["snapshots"], serde_json::json!([]));
    house.is_tidy();
}

/// A process that dies in the middle leaves its environment to the next, which
/// hears of it, and finds no half of a container's changes.
#[test]
fn what_a_killed_process_was_in_goes_on() {
    each(|tool| {
        let house = keeping();
        tool.add(&house);
        run(&house, "t1", &tool.leaves("a", false));
        let mut command = house.command();
        let arguments = tool.leaves("b", true);
        command.args(["run", "my.keeps", "--args", &arguments, "--task", "t1"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let began = Instant::now();
        while environments(&house)[0]["running"] == Value::Null {
            assert!(began.elapsed() < Duration::from_secs(60), "it did not start");
            std::thread::sleep(Duration::from_millis(20));
        }
        let busy = &environments(&house)[0];
        assert_eq!(busy["state"], "busy", "{busy:#}");
        let id = busy["id"].as_str().unwrap();
        house.refuses_while_busy(&["environment", "end", id]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(tool.finds(&house, "t1"), ["a"]);
        let now = &environments(&house)[0];
        assert_eq!((&now["id"], &now["running"]), (&busy["id"], &Value::Null), "{now:#}");
        house.run(&["gc"]).ok();
    });
}

impl House {
    fn refuses_while_busy(&self, args: &[&str]) {
        let ran = self.run(args);
        assert!(ran.code != 0 && ran.stderr.contains("error [busy]"), "{}{}", ran.stdout, ran.stderr);
    }
}
