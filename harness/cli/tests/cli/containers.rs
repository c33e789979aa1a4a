//! Commands and tools in container images, as people meet them.

use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::support::{House, Ran};

/// The images that `cargo xtask images build` makes.
pub(crate) const MINIMAL: &str = "glovebox/minimal:1";
pub(crate) const PYTHON: &str = "glovebox/python:1";

/// Whether there is an engine with our images; where not, that is said.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub(crate) fn are_here() -> bool {
    let named = std::env::var("GLOVEBOX_TEST_SKIP").unwrap_or_default();
    let named = named.split(',').any(|need| matches!(need, "docker" | "images"));
    if named {
        eprintln!("skipped: no container engine with our images here (`cargo xtask test` says why)");
    }
    !named
}

#[expect(clippy::disallowed_methods, reason = "a test helper")]
pub(crate) fn docker(args: &[&str]) -> String {
    let output = std::process::Command::new("docker").args(args).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// The containers of a house that are there.
pub(crate) fn containers(house: &House) -> Vec<String> {
    let id = fs_err::read_to_string(house.state().join("containers/installation")).unwrap();
    let label = format!("label=dev.glovebox.installation={id}");
    docker(&["ps", "--all", "--quiet", "--filter", &label]).lines().map(str::to_owned).collect()
}

#[test]
fn a_command_in_an_image_says_what_it_says() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let given = house.file("given", "given");
    let exec = ["exec", "--image", MINIMAL];
    let ran = house.run(&[&exec[..], &["--", "sh", "-c", "echo out; echo err >&2; exit 7"]].concat());
    assert_eq!((ran.code, &*ran.stdout, &*ran.stderr), (7, "out\n", "err\n"));
    let input = format!("a={given}");
    let more =
        ["--input", &input, "--env", "X=y z", "-i", "--limits", "wall=20s,memory=64MiB", "--limits", "pids=9", "--"];
    let script = "cat; cat /inputs/a; echo \"$X\"; echo kept > /outputs/o; id -u";
    let ran = house.run_with(&[&exec[..], &more[..], &["sh", "-c", script]].concat(), b"in\n".to_vec());
    assert_eq!((ran.code, &*ran.stdout), (0, "in\ngiveny z\n65532\n"), "{}", ran.stderr);
    let uri = ran.stderr.split_whitespace().find(|word| word.starts_with("artifact/")).unwrap();
    assert_eq!(house.run(&["artifacts", "get", uri]).ok().stdout, "kept\n");
    let seen = house.run(&[&exec[..], &["--json", "--", "true"]].concat()).ok().json();
    assert_eq!(
        (&seen["capability"], &seen["provenance"]["backend"]),
        (&"image.exec@1.0.0".into(), &"container".into())
    );
    assert_eq!(containers(&house), Vec::<String>::new());
    house.is_tidy();
}

/// What nobody reads, or what can't be written, ends it.
#[test]
fn a_command_ends_with_its_reader() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let endless = [
        "exec",
        "--image",
        MINIMAL,
        "--limits",
        "wall=60s",
        "--",
        "sh",
        "-c",
        "while :; do echo line; sleep 0.1; done",
    ];
    let began = Instant::now();
    let mut child = house.command().args(endless).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut one = [0; 5];
    std::io::Read::read_exact(&mut child.stdout.take().unwrap(), &mut one).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(141));
    assert!(began.elapsed() < Duration::from_secs(45), "it went on without its reader");
    let full = fs_err::File::options().write(true).open("/dev/full").unwrap().into_file();
    let ran = Ran::of(house.command().args(["exec", "--image", MINIMAL, "--", "echo", "lost"]).stdout(full));
    assert!(ran.code != 0 && ran.stderr.contains("error [disk-full]"), "{}{}", ran.code, ran.stderr);
    assert_eq!(containers(&house), Vec::<String>::new());
    house.is_tidy();
}

#[test]
fn a_folder_is_shown_or_what_changes_in_it_is_brought_back() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let exec = ["exec", "--image", MINIMAL, "--workspace"];
    let ran = house.run(&[&exec[..], &[".:read", "--", "cat", "a.txt"]].concat()).ok();
    assert!(!ran.stdout.is_empty());
    house.refuses(&[&exec[..], &[".", "--", "true"]].concat(), 21, "contract-unsatisfied", &["the ceiling has"]);
    house.may_write();
    house.run(&[&exec[..], &[".", "--", "sh", "-c", "echo new > made; rm a.txt"]].concat()).ok();
    assert_eq!(fs_err::read_to_string(house.workspace().join("made")).unwrap(), "new\n");
    assert!(!house.workspace().join("a.txt").exists());
}

#[test]
fn what_can_not_be_run_in_an_image_is_refused_with_a_way_out() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let exec = ["exec", "--image", MINIMAL];
    house.refuses(&["exec", "--image", "no/such:1", "--", "true"], 2, "image-unknown", &["no/such:1"]);
    house.refuses(&["exec", "--", "true"], 2, "usage", &["--image"]);
    house.refuses(&[&exec[..], &["--", "no-such-program"]].concat(), 2, "image-command", &["no-such-program"]);
    house.refuses(&[&exec[..], &["--runtime", "nope", "--", "true"]].concat(), 21, "contract-unsatisfied", &["`nope`"]);
    house.refuses(&[&exec[..], &["--limits", "wall=soon", "--", "true"]].concat(), 2, "usage", &["--limits"]);
    house.refuses(&[&exec[..], &["--ask", "leave", "--", "true"]].concat(), 26, "unsupported", &["--ask"]);
    house.refuses(&[&exec[..], &["--limits", "wall=300ms", "--", "sleep", "5"]].concat(), 31, "timed-out", &[]);
    house.refuses(&[&exec[..], &["--limits", "memory=16GiB", "--", "true"]].concat(), 21, "contract-unsatisfied", &[]);
    let ran = Ran::of(house.command().args(exec).args(["--", "true"]).env("GLOVEBOX_AGENT", "coder"));
    assert!(ran.code == 36 && ran.stderr.contains("not-eligible"), "{}", ran.stderr);
}

#[test]
fn an_image_is_a_tool_under_its_digest() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let ran = house.run(&["tool", "add", "--image", MINIMAL, "--name", "my.shell", "--stdin", "argument"]).ok();
    assert!(ran.stdout.contains("image = \"") && ran.stderr.contains("registered my.shell@0.1.0"), "{}", ran.stderr);
    let run = ["run", "my.shell", "--arg", "args=-c", "--arg", "args=cat; ls", "--arg", "stdin=hello ", "--raw"];
    assert_eq!(house.run(&run).ok().stdout.split_whitespace().next(), Some("hello"));
    // The same name with another image is another tool.
    let ran = house.run(&["tool", "add", "--image", PYTHON, "--name", "my.shell"]);
    assert!(ran.code == 2 && ran.stderr.contains("tool-conflict"), "{}", ran.stderr);
    let manifest = house.file(
        "tool.toml",
        "schema = \"glovebox/tool/v1\"\nname = \"my.sum\"\nversion = \"1.0.0\"\ntitle = \"Sum\"\ndescription = \"Adds.\"\n\
         [entry]\nkind = \"command\"\nargv = [\"python3\", \"-c\", \"import json,sys; print(json.dumps(dict(sum=sum(json.load(sys.stdin)['of']))))\"]\n\
         [input]\ntype = \"object\"\n[input.properties.of]\ntype = \"array\"\n\
         [[examples]]\nname = \"three\"\nargs = { of = [1, 2] }\nexpect = { sum = 3 }\n\
         [contract]\nschema = \"glovebox/contract/v1\"\n[contract.limits]\nwall = \"20s\"\nmemory = \"128MiB\"\n",
    );
    house.run(&["tool", "add", "--image", PYTHON, "--manifest", &manifest]).ok();
    let seen = house.run(&["run", "my.sum", "--args", "{\"of\": [1, 2, 3]}", "--json"]).ok().json();
    assert_eq!(seen["data"]["sum"], 6);
    let report = house.run(&["tool", "check", "my.sum", "--json"]).ok().json();
    assert_eq!(report["passed"], true, "{report:#}");
    house.refuses(&["tool", "add", "--image", "no/such:1"], 2, "image-unknown", &[]);
    let wrong = house.file("wrong.toml", manifest_with(&manifest, &"0".repeat(64)));
    house.refuses(&["tool", "add", "--image", PYTHON, "--manifest", &wrong], 2, "manifest-invalid", &["another image"]);
    house.is_tidy();
}

fn manifest_with(path: &str, image: &str) -> String {
    let text = fs_err::read_to_string(path).unwrap();
    format!("{text}[contract.platform]\nimage = \"{image}\"\n").replace("my.sum", "my.other")
}

/// Without an engine, components run as ever, and what needs one says so.
#[test]
fn without_an_engine_the_rest_works() {
    let house = House::new();
    let socket = house.path("no.sock");
    let with = |args: &[&str]| Ran::of(house.command().args(args).env("GLOVEBOX_CONTAINER_SOCKET", &socket));
    with(&["run", "text.count", "--arg", "path=a.txt"]).ok();
    let ran = with(&["exec", "--image", "any", "--", "true"]);
    assert!(
        ran.code == 42 && ran.stderr.contains("backend-unavailable") && ran.stderr.contains("no.sock"),
        "{}",
        ran.stderr
    );
    let ran = with(&["run", "shell.run", "--arg", "command=true"]);
    assert!(ran.code == 42 && ran.stdout.contains("no.sock"), "{}{}", ran.stdout, ran.stderr);
    let report = with(&["doctor", "--json"]).ok().json();
    let line = report["lines"].as_array().unwrap().iter().find(|line| line["what"] == "containers").unwrap();
    assert!(line["status"] == "not-here" && line["help"].as_str().unwrap().contains("docker.io"), "{line}");
    with(&["gc"]).ok();
    let ran =
        Ran::of(house.command().args(["exec", "--image", "any", "--", "true"]).env("DOCKER_HOST", "tcp://127.0.0.1:1"));
    assert!(ran.code == 2 && ran.stderr.contains("config-invalid"), "{}", ran.stderr);
    house.is_tidy();
}

/// System calls that reach into another process, or into the kernel: none is let
/// through, whatever it is called with.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_that_reach_elsewhere_are_refused() {
    if !are_here() {
        return;
    }
    let script = r#"
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
page = ctypes.create_string_buffer(4096)
calls = dict(ptrace_attach=(101, 16, 1, 0, 0), ptrace_seize=(101, 0x4206, 1, 0, 0), process_vm_readv=(310, 1, page, 1, page, 1, 0),
    process_vm_writev=(311, 1, page, 1, page, 1, 0), kcmp=(312, 1, 1, 0, 0, 0), unshare=(272, 0x10000000), setns=(308, 0, 0),
    mount=(165, page, page, page, 0, 0), bpf=(321, 0, page, 128), userfaultfd=(323, 0), perf_event_open=(298, page, 0, -1, -1, 0),
    io_uring_setup=(425, 8, page), keyctl=(250, 0, 0), add_key=(248, page, page, page, 1, -3), init_module=(175, page, 1, page),
    kexec_load=(246, 0, 0, page, 0), open_by_handle_at=(304, 0, page, 0), quotactl=(179, 0, page, 0, page), clone_new_user=(56, 0x10000011, 0, 0, 0, 0),
    prlimit_1=(302, 1, 7, page, 0), scheduler_1=(144, 1, 5, page), affinity_1=(203, 1, 4096, page), attr_1=(314, 1, page, 0),
    priority_1=(141, 0, 1, 19), priority_all=(141, 2, 0, 19), io_priority_1=(251, 1, 1, 24576),
    socket_vsock=(41, 40, 1, 0), socket_alg=(41, 38, 5, 0), personality=(135, 0x0040000), fsopen=(430, page, 0))
for name, (number, *arguments) in calls.items():
    got = libc.syscall(number, *arguments)
    if got != -1:
        print("let through", name, got)
pidfd = libc.syscall(434, 1, 0)
for fd in range(8):
    if pidfd >= 0 and libc.syscall(438, pidfd, fd, 0) != -1:
        print("got descriptor", fd)
for name in ("environ", "mem", "maps", "fd/0", "fd/1", "root/etc/passwd", "cwd"):
    try:
        open(f"/proc/1/{name}", "rb").read(1) if name != "cwd" else os.readlink("/proc/1/cwd")
        print("read", name)
    except OSError:
        pass
print("done", len(calls))
"#;
    let house = House::cold();
    let ran = house.run(&["exec", "--image", PYTHON, "--", "python3", "-c", script]).ok();
    assert_eq!(ran.stdout, "done 30\n", "{}", ran.stderr);
}

/// What a kill leaves is taken away by whoever comes next, and by `gc`; a
/// sibling that lives keeps what it has.
#[test]
fn what_a_kill_left_is_swept() {
    if !are_here() {
        return;
    }
    let house = House::cold();
    let exec = |script: &str| {
        let mut command = house.command();
        command.args(["exec", "--image", MINIMAL, "--", "sh", "-c", script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let (mut killed, mut sibling) = (exec("sleep 1000"), exec("sleep 6; echo done"));
    let began = Instant::now();
    while !house.state().join("containers/installation").exists() || containers(&house).len() < 2 {
        assert!(began.elapsed() < Duration::from_secs(60), "they did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let told = house.run(&["gc", "--dry-run", "--json"]).ok().json();
    assert_eq!(told["containers"]["gone"].as_array().unwrap().len(), 1, "{told:#}");
    house.run(&["gc"]).ok();
    let mut output = String::new();
    std::io::Read::read_to_string(&mut sibling.stdout.take().unwrap(), &mut output).unwrap();
    assert!(sibling.wait().unwrap().success() && output == "done\n", "{output}");
    assert_eq!(containers(&house), Vec::<String>::new());
    assert_eq!(fs_err::read_dir(house.state().join("containers/processes")).unwrap().count(), 0);
    house.is_tidy();
}

/// How many processes are killed; more where somebody looks closely.
const KILLS: u32 = 12;

/// Killed at any moment of its making, its work and its end, a process leaves
/// nothing that is not taken away, and harms nobody.
#[test]
fn kills_at_any_moment_leave_nothing() {
    if !are_here() {
        return;
    }
    let kills = std::env::var("GLOVEBOX_TEST_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(KILLS);
    let house = House::cold();
    house.may_write();
    let exec = |script: &str| {
        let mut command = house.command();
        command.args([
            "exec",
            "--image",
            MINIMAL,
            "--workspace",
            ".",
            "--limits",
            "wall=60s",
            "--",
            "sh",
            "-c",
            script,
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
    };
    let before = fs_err::read_to_string(house.workspace().join("a.txt")).unwrap();
    let sibling = exec("for i in $(seq 200); do echo $i; sleep 0.02; done");
    for round in 0..kills {
        // Some before anything happened, some in each of its steps, some at its
        // end.
        let mut killed = exec("echo half > made; head -c 300000 /dev/zero > /outputs/o; sleep 0.05");
        std::thread::sleep(Duration::from_millis(u64::from(round) * 37 % 700));
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    let output = sibling.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.iter().filter(|byte| **byte == b'\n').count() == 200);
    house.run(&["gc"]).ok();
    assert_eq!(containers(&house), Vec::<String>::new());
    assert_eq!(fs_err::read_dir(house.state().join("containers/processes")).unwrap().count(), 0);
    house.is_tidy();
    house.run(&["db", "check"]).ok();
    house.run(&["audit", "verify"]).ok();
    // Brought whole or not at all, and nothing beside it.
    assert_eq!(fs_err::read_to_string(house.workspace().join("a.txt")).unwrap(), before);
    let made = fs_err::read_to_string(house.workspace().join("made")).unwrap_or_else(|_| "half\n".into());
    assert_eq!(made, "half\n");
    let left = crate::support::files(&house.workspace()).into_iter().filter(|file| file.contains(".glovebox-"));
    assert_eq!(left.collect::<Vec<_>>(), Vec::<String>::new());
}
