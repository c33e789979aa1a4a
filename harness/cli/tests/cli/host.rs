//! A host that has no room or no rights.

use crate::support::{House, Ran, builtin, manifest, talker};

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
    // Not even the log fits; the log fits, and what is compiled does not.
    for (size, what, left) in [("64k", "problem", &[][..]), ("400k", "outcome", &["store.db"])] {
        let options = format!("size={size},mode=700");
        let Some(ran) = mounted(&house, &options, "run text.count --arg path=a.txt --json") else { return };
        let seen = ran.json();
        assert_eq!((ran.code, &seen[what]["code"]), (51, &"disk-full".into()), "{seen}");
        assert!(seen[what]["help"].as_str().unwrap().contains("gc"), "{seen}");
        let there = ran.stderr.lines().filter(|line| line.starts_with('/'));
        let there: Vec<&str> = there.filter_map(|line| line.rsplit('/').next()).collect();
        assert_eq!(there, left);
    }
}

#[test]
fn a_read_only_state_folder() {
    let house = House::cold();
    for args in ["run text.count --arg path=a.txt", "artifacts list", "gc", "contract check a.txt"] {
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

/// Every key that bounds something has an effect; admission's and the cache's
/// are shown where they are meant.
#[test]
fn configured_bounds_are_kept() {
    let house = House::cold();
    let count = house.file("count.wasm", builtin("text.count"));
    let manifest = house.file("tool.toml", manifest("text-count").replace("\"text.count\"", "\"my.count\""));
    let add: &[&str] = &["tool", "add", &count, "--manifest", &manifest];
    let run: &[&str] = &["run", "text.count", "--arg", "path=a.txt"];
    for (variable, value, args, code) in [
        ("GLOVEBOX_COMPONENT_MAX_SIZE", "1KiB", add, "component-too-large"),
        ("GLOVEBOX_COMPILE_WALL", "1ms", run, "compile-failed"),
        ("GLOVEBOX_COMPILE_MEMORY", "48MiB", run, "compile-failed"),
        ("GLOVEBOX_LIMITS_SEALED", "3B", run, "limit-hit"),
        ("GLOVEBOX_CEILING", "none.toml", run, "config-invalid"),
    ] {
        let ran = Ran::of(house.command().args(args).env(variable, value));
        let said = format!("{variable}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.code != 0 && said.contains(&format!("[{code}]")), "{said}");
    }
    // Artifacts live as long as they are told to, and no longer.
    let file = house.file("talker.wasm", talker(64));
    house.run(&["tool", "add", &file, "--name", "talker"]).ok();
    house.run(&["run", "talker"]).ok();
    let kept =
        |house: &House| house.run(&["artifacts", "list", "--json"]).ok().json()["artifacts"].as_array().unwrap().len();
    house.run(&["gc"]).ok();
    assert_eq!(kept(&house), 1);
    let ran = Ran::of(house.command().arg("gc").env("GLOVEBOX_ARTIFACTS_MAX_AGE", "1us"));
    assert_eq!((ran.code, kept(&house)), (0, 0), "{}", ran.stderr);
}

#[test]
fn nobody_else_decides_what_runs_here() {
    use std::os::unix::fs::PermissionsExt as _;
    let open = |path: &std::path::Path| fs_err::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
    let house = House::cold();
    // Neither home nor a folder of one's own: nothing is taken from elsewhere.
    let ran = Ran::of(
        house
            .command()
            .args(["tool", "list"])
            .env_remove("HOME")
            .env_remove("XDG_STATE_HOME")
            .env_remove("XDG_CONFIG_HOME"),
    );
    assert_eq!(ran.code, 0, "with --state alone: {}", ran.stderr);
    // A ceiling or a state folder that everybody can write to.
    let ceiling = house.file("open.toml", "");
    open(std::path::Path::new(&ceiling));
    let ran =
        Ran::of(house.command().args(["run", "text.count", "--arg", "path=a.txt"]).env("GLOVEBOX_CEILING", &ceiling));
    assert!(ran.code == 2 && ran.stderr.contains("can be written by everybody"), "{}", ran.stderr);
    fs_err::create_dir_all(house.state()).unwrap();
    open(&house.state());
    house.refuses(
        &["run", "text.count", "--arg", "path=a.txt"],
        50,
        "state-unavailable",
        &["can be written by everybody"],
    );
}

/// Where components run, and what a contract or a ceiling makes of it.
#[test]
fn placements_and_walls() {
    let house = House::new();
    let run = |placement: &str, contract: &[&str]| {
        let mut command = house.command();
        command.args(["run", "text.count", "--arg", "path=a.txt", "--json"]).args(contract);
        Ran::of(command.env("GLOVEBOX_WASM_PLACEMENT", placement))
    };
    house.file("workspace/two.toml", "[isolation]\nwalls = 2\n");
    let two = ["--contract", "two.toml"];
    for (placement, backend) in [("cell", "wasm-cell"), ("in-process", "wasm-in-process")] {
        assert_eq!(run(placement, &[]).json()["provenance"]["backend"], backend);
    }
    assert_eq!(run("cell", &two).code, 0);
    let refused = run("in-process", &two);
    let outcome = &refused.json()["outcome"];
    assert_eq!((refused.code, &outcome["code"]), (21, &"contract-unsatisfied".into()), "{outcome}");
    assert!(outcome["message"].as_str().unwrap().contains("isolation.walls"), "{outcome}");
    assert!(outcome["help"].as_str().unwrap().contains("wasm.placement"), "{outcome}");
    assert_eq!(run("elsewhere", &[]).code, 2);

    // The operator insists on both, whatever the contract says.
    let shipped = house.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
    house.file("ceiling.toml", shipped.replace("sharing = \"action\"", "sharing = \"action\"\nwalls = 2"));
    let ceiling = house.path("ceiling.toml");
    for (placement, code) in [("cell", 0), ("in-process", 21)] {
        let mut command = house.command();
        command.args(["run", "text.count", "--arg", "path=a.txt"]).env("GLOVEBOX_CEILING", &ceiling);
        assert_eq!(Ran::of(command.env("GLOVEBOX_WASM_PLACEMENT", placement)).code, code, "{placement}");
    }
}

/// Every attempt to break out of a cell is tried, and each was refused.
#[test]
fn the_doctor_tries_the_second_wall() {
    let house = House::new();
    let report = house.run(&["doctor", "--json"]).ok().json();
    let lines: Vec<_> = report["lines"].as_array().unwrap().iter().collect();
    let tried = lines.iter().filter(|line| line["what"].as_str().unwrap().starts_with("cell: "));
    let refused = tried.clone().filter(|line| line["status"] == "ok");
    let wanted = glovebox_jail::Attempt::all().len();
    assert_eq!((tried.count(), refused.count()), (wanted, wanted), "{report}");

    let mut command = house.command();
    command.args(["doctor", "--json"]).env("GLOVEBOX_WASM_PLACEMENT", "in-process");
    let report = Ran::of(&mut command).ok().json();
    let wall = report["lines"].as_array().unwrap().iter().find(|line| line["what"] == "second wall").unwrap();
    assert_eq!(wall["status"], "not-here", "{report}");
}

/// Whoever starts it may have no home, ignore the ends of children, and allow
/// few descriptors.
#[test]
#[expect(clippy::disallowed_methods, reason = "a shell with its own ways")]
fn odd_surroundings() {
    for way in ["unset HOME", "trap '' CHLD", "ulimit -n 256", "ulimit -f 100000"] {
        let house = House::cold();
        let mut shell = std::process::Command::new("sh");
        let script = format!("{way}; exec '{}' run text.count --arg path=a.txt", env!("CARGO_BIN_EXE_glovebox"));
        shell.args(["-c", &script]).current_dir(house.workspace()).env("GLOVEBOX_STATE", house.state());
        let ran = Ran::of(shell.env_remove("XDG_CONFIG_HOME").env_remove("XDG_STATE_HOME"));
        assert_eq!(ran.code, 0, "{way}: {}{}", ran.stdout, ran.stderr);
    }
}

/// What a process makes is its user's alone, whatever its umask is.
#[test]
fn nothing_below_the_state_folder_is_others_to_see() {
    use std::os::unix::fs::PermissionsExt as _;
    let house = House::that_may_write();
    #[expect(clippy::disallowed_methods, reason = "a shell sets the umask")]
    let mut shell = std::process::Command::new("sh");
    let program = env!("CARGO_BIN_EXE_glovebox");
    let file = house.file("talker.wasm", talker(1));
    shell.args([
        "-c",
        &format!(
            "umask 0; '{program}' tool add '{file}' --name my.talker && '{program}' run my.talker && \
         '{program}' run fs.write --arg path=n.txt --arg text=x --arg mode=create --workspace .:write"
        ),
    ]);
    shell.current_dir(house.workspace()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    shell.env("HOME", house.path("")).env("XDG_CONFIG_HOME", house.path("config"));
    // A state folder that another program made for everybody.
    let state = house.path("open");
    fs_err::create_dir(&state).unwrap();
    fs_err::set_permissions(&state, std::fs::Permissions::from_mode(0o755)).unwrap();
    Ran::of(shell.env("GLOVEBOX_STATE", &state)).ok();
    let mut folders = vec![std::path::PathBuf::from(&state)];
    let mut open = Vec::new();
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs_err::read_dir(folder).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                seen += 1;
                folders.push(entry.path());
                if meta.permissions().mode() & 0o077 != 0 {
                    open.push(entry.path());
                }
            }
        }
    }
    assert!(seen >= 6 && open.is_empty(), "{seen} folders, of which others see {open:?}");
}

/// The kill switch has space of its own, also where nothing else has any.
#[test]
fn everything_can_be_stopped_on_a_full_disk() {
    let house = House::new();
    house.has_a_tool_that_deletes();
    let state = house.state();
    let script = "x.delete --agent coder --ask leave --json >/dev/null; test $? = 38 || exit 90; \
         test -s \"$GLOVEBOX_STATE/reserve\" || exit 91; \
         dd if=/dev/zero of=\"$GLOVEBOX_STATE/filler\" bs=64k 2>/dev/null; dd if=/dev/zero of=\"$GLOVEBOX_STATE/crumbs\" bs=1k 2>/dev/null";
    let copied = house.path("copied");
    fs_err::rename(&state, &copied).unwrap();
    let program = env!("CARGO_BIN_EXE_glovebox");
    let args = format!(
        "--version >/dev/null; cp -r '{copied}/.' \"$GLOVEBOX_STATE\"; '{program}' run {script}; \
         '{program}' run x.delete --agent coder --json >/dev/null; test $? = 51 || exit 92; \
         '{program}' stop --all --json"
    );
    let Some(ran) = mounted(&house, "size=160m,mode=700", &args) else { return };
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let said: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&said["halted"], &said["stopped"]["waiting"]), (&true.into(), &1.into()), "{said}");
}
