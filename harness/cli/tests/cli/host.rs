//! A host that has no room or no rights.

use crate::support::{House, Ran};

/// The name by which a missing need is skipped, as `cargo xtask test` says it.
const NEED: &str = "private-mounts";

/// Runs the program with a small or read-only file system at its state
/// folder, in a mount namespace of its own. `None`: this host has none.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn mounted(house: &House, options: &str, args: &str) -> Option<Ran> {
    let named = std::env::var("GLOVEBOX_TEST_SKIP").unwrap_or_default().split(',').any(|need| need == NEED);
    if named || !can_mount() {
        eprintln!("skipped: {NEED} are not available here (`cargo xtask test` says why)");
        return None;
    }
    fs_err::create_dir_all(house.state()).unwrap();
    let state = house.state().display().to_string();
    let script = format!(
        "mount -t tmpfs -o {options} tmpfs '{state}' && '{}' {args}; code=$?; find '{state}' -type f -size +0 1>&2; exit $code",
        env!("CARGO_BIN_EXE_glovebox")
    );
    let mut shell = unshare(&["sh", "-c", &script]);
    shell
        .current_dir(house.workspace())
        .env("GLOVEBOX_STATE", house.state())
        .env("XDG_CONFIG_HOME", house.path("config"));
    Some(Ran::of(&mut shell))
}

#[expect(clippy::disallowed_methods, reason = "a test helper")]
fn unshare(args: &[&str]) -> std::process::Command {
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount"]).args(args);
    command
}

fn can_mount() -> bool {
    unshare(&["true"]).output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_full_disk() {
    let house = House::cold();
    let Some(ran) = mounted(&house, "size=64k,mode=700", "run text.count --arg path=a.txt --json") else { return };
    let seen = ran.json();
    assert_eq!((ran.code, &seen["outcome"]["code"]), (51, &"disk-full".into()), "{seen}");
    assert!(seen["outcome"]["help"].as_str().unwrap().contains("gc"), "{seen}");
    assert_eq!(ran.stderr.lines().filter(|line| line.starts_with('/')).collect::<Vec<_>>(), Vec::<&str>::new());
}

#[test]
fn a_read_only_state_folder() {
    let house = House::cold();
    for args in ["run text.count --arg path=a.txt", "artifacts list", "gc", "contract check /dev/null"] {
        let Some(ran) = mounted(&house, "ro,size=1m", args) else { return };
        if args.starts_with("contract") {
            assert_eq!(ran.code, 21, "{}", ran.stderr);
            continue;
        }
        assert_eq!(ran.code, 50, "{args}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stderr.contains("error [state-unavailable]") && ran.stderr.contains("--state"), "{}", ran.stderr);
    }
}

#[test]
fn the_doctor_finds_a_healthy_host_and_names_what_is_wrong() {
    let house = House::new();
    let ran = house.run(&["doctor", "--json"]);
    let report = ran.json();
    assert_eq!((ran.code, &report["healthy"]), (0, &true.into()), "{report:#}");
    for wall in [
        "a tool runs",
        "paths that leave",
        "links that leave",
        "hidden files, read",
        "hidden files, found",
        "limits.wall",
        "limits.memory",
    ] {
        let line = report["lines"]
            .as_array()
            .unwrap()
            .iter()
            .find(|line| line["what"] == wall)
            .unwrap_or_else(|| panic!("{wall}"));
        assert_eq!(line["status"], "ok", "{line}");
    }
    house.is_tidy();

    house.file("config/glovebox/ceiling.toml", "nonsense");
    let ran = house.run(&["doctor"]);
    assert_eq!(ran.code, 42);
    assert!(ran.stdout.contains("failed") && ran.stdout.contains("ceiling.toml"), "{}", ran.stdout);
    assert!(ran.stdout.contains("skipped   self-tests") && !ran.stdout.contains("shipped one holds"), "{}", ran.stdout);
}
