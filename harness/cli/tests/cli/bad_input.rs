//! Whatever comes in: a coded error with a way out, the right exit code, no
//! panic, nothing left behind.

use crate::support::{House, Ran, builtin, files, guest, manifest};

#[test]
fn files_that_are_no_tool() {
    let house = House::new();
    let count = builtin("text.count");
    let refusing = manifest("text-count")
        .replace("kind = \"tool\"\nname = \"text.count\"", "kind = \"command\"")
        .replace("name = \"text.count\"", "name = \"my.count\"");
    house.file("refusing.toml", refusing);
    house.file("unknown-key.toml", manifest("text-count").replace("title =", "tittle ="));
    let sparse = house.file("huge.wasm", "\0asm");
    fs_err::OpenOptions::new().write(true).open(&sparse).unwrap().set_len(200 << 20).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, house.path("fifo.wasm"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs_err::create_dir(house.path("folder.wasm")).unwrap();

    let add = |file: &str, manifest: Option<&str>, code: &str, words: &[&str]| {
        let (file, manifest) = (house.path(file), manifest.map(|name| house.path(name)));
        let mut args = vec!["tool", "add", &file];
        if let Some(manifest) = &manifest {
            args.extend(["--manifest", manifest]);
        }
        house.refuses(&args, 2, code, words);
    };
    house.file("text.wasm", "hello");
    add("text.wasm", None, "component-invalid", &["text.wasm", "no WebAssembly"]);
    house.file("empty.wasm", "");
    add("empty.wasm", None, "component-invalid", &["empty"]);
    house.file("cut.wasm", &count[..count.len() / 2]);
    add("cut.wasm", None, "component-invalid", &["cut short"]);
    let mut broken = guest("fails.wat");
    *broken.last_mut().unwrap() ^= 0xff;
    broken.truncate(broken.len() - 1);
    house.file("broken.wasm", broken);
    add("broken.wasm", None, "component-invalid", &[]);
    add("huge.wasm", None, "component-too-large", &["209715200", "67108864"]);
    house.file("sockets.wasm", guest("imports-sockets.wat"));
    add(
        "sockets.wasm",
        Some("refusing.toml"),
        "component-imports",
        &["wasi:sockets/tcp-create-socket", "imports = \"stub\""],
    );
    house.file("nothing.wasm", guest("nothing.wat"));
    add("nothing.wasm", None, "component-exports", &["nothing that can be called"]);
    house.file("long.wasm", guest("long-export.wat"));
    add("long.wasm", None, "component-exports", &["a-long-long", "…"]);
    add("missing.wasm", None, "file-unreadable", &["missing.wasm"]);
    add("fifo.wasm", None, "file-unreadable", &["not a regular file"]);
    add("folder.wasm", None, "file-unreadable", &["not a regular file"]);

    house.file("count.wasm", &count);
    add("count.wasm", None, "manifest-invalid", &["tool.toml"]);
    add("count.wasm", Some("unknown-key.toml"), "manifest-invalid", &["tittle", "line 4"]);
    add("count.wasm", Some("refusing.toml"), "component-exports", &["entry is a command"]);
    assert_eq!(files(&house.state().join("tools")), Vec::<String>::new());
}

#[test]
fn names_that_are_taken() {
    let house = House::new();
    let file = house.file("count.wasm", builtin("text.count"));
    let own = house.file("own.toml", manifest("text-count"));
    house.refuses(&["tool", "add", &file, "--manifest", &own], 2, "tool-reserved", &["text.count"]);

    let command = house.file("fails.wasm", guest("fails.wat"));
    house.run(&["tool", "add", &command, "--name", "my.tool"]).ok();
    let again = house.run(&["tool", "add", &command, "--name", "my.tool"]).ok();
    assert!(again.stderr.contains("already registered"), "{}", again.stderr);
    let other = house.file("other.wasm", guest("tables.wat"));
    house.refuses(&["tool", "add", &other, "--name", "my.tool"], 2, "tool-conflict", &["my.tool@0.1.0", "--version"]);
    // Also after it was removed, and then the same bytes are welcome again.
    house.run(&["tool", "remove", "my.tool@0.1.0"]).ok();
    house.refuses(&["run", "my.tool"], 2, "tool-unknown", &["it was removed", "0.1.0"]);
    house.refuses(&["tool", "add", &other, "--name", "my.tool"], 2, "tool-conflict", &["my.tool@0.1.0"]);
    house.run(&["tool", "add", &command, "--name", "my.tool"]).ok();

    house.refuses(&["tool", "remove", "my.tool@9.0.0"], 2, "tool-unknown", &["0.1.0"]);
    house.refuses(&["tool", "remove", "text.count@1.0.0"], 2, "tool-reserved", &["can't be removed"]);
    house.refuses(&["tool", "remove", "my.tool"], 2, "usage", &["name the version too, as `my.tool@0.1.0`"]);
    house.refuses(&["tool", "remove", "other"], 2, "usage", &["NAME@VERSION"]);
    house.refuses(&["tool", "show", "my.tol"], 2, "tool-unknown", &["did you mean `my.tool`"]);
    house.refuses(&["tool", "add", &command, "--name", "Not A Name"], 2, "usage", &["Not A Name"]);
    house.refuses(&["tool", "add", &command, "--name", "x", "--version", "one"], 2, "usage", &["major.minor.patch"]);
}

#[test]
fn arguments_that_are_not_what_the_tool_takes() {
    let house = House::new();
    let big = format!("{{\"path\": \"{}\"}}", "x".repeat(50 << 20));
    let cases: &[(&str, Vec<u8>, &str, &[&str])] = &[
        ("wrong type", br#"{"path": 5}"#.to_vec(), "schema-rejected", &["/path", "string", "5"]),
        ("missing", b"{}".to_vec(), "schema-rejected", &["path"]),
        ("unknown key", br#"{"pth": "a.txt"}"#.to_vec(), "schema-rejected", &["pth"]),
        ("a repeated key", br#"{"path": "a.txt", "path": "b.txt"}"#.to_vec(), "arguments-invalid", &["path"]),
        (
            "10 000 levels",
            [b"{\"path\": ".to_vec(), b"[".repeat(10_000), b"]".repeat(10_000), b"}".to_vec()].concat(),
            "arguments-invalid",
            &["deep"],
        ),
        ("50 MB", big.into_bytes(), "arguments-invalid", &["bytes"]),
        ("not JSON", b"path=a.txt".to_vec(), "arguments-invalid", &[]),
        ("nothing", Vec::new(), "arguments-invalid", &[]),
        ("no object", b"[]".to_vec(), "schema-rejected", &["object"]),
    ];
    for (what, bytes, code, words) in cases {
        let ran = house.run_with(&["run", "text.count", "--args", "-", "--json"], bytes.clone());
        let outcome = ran.json()["outcome"].clone();
        assert_eq!((ran.code, outcome["code"].as_str()), (20, Some(*code)), "{what}: {outcome}");
        assert_eq!(outcome["kind"], "schema-rejected", "{what}");
        let message = outcome["message"].as_str().unwrap();
        assert!(message.len() < 2000, "{what}: {} bytes", message.len());
        for word in *words {
            assert!(message.contains(word), "{what}: `{word}` is missing: {message}");
        }
        house.is_tidy();
    }
    // What is no text can't be kept: there is no action to speak of.
    let ran = house.run_with(&["run", "text.count", "--args", "-", "--json"], vec![b'"', 0xff, b'"']);
    assert_eq!((ran.code, &ran.json()["problem"]["code"]), (20, &"arguments-invalid".into()), "{}", ran.stdout);
    // From a file as well.
    let file = house.file("args.json", "{\"path\": \"x\", \"path\": \"y\"}");
    assert_eq!(house.run(&["run", "text.count", "--args", &format!("@{file}")]).code, 20);
}

#[test]
fn requests_that_can_not_be() {
    let house = House::new();
    house.file("outside.txt", "secret");
    let contract = |name: &str, text: &str| house.file(name, text);
    let unknown = contract("unknown.toml", "[limits]\nwal = \"5s\"\n");
    let size = contract("size.toml", "[limits]\nmemory = \"5\"\n");
    let tiny = contract("tiny.toml", "[limits]\nmemory = \"1B\"\n");
    let run = ["run", "text.count", "--arg", "path=a.txt"];
    let with = |more: &[&'static str]| -> Vec<&'static str> { [&run[..], more].concat() };

    house.refuses(&["run", "text.cuont"], 2, "tool-unknown", &["did you mean `text.count`"]);
    house.refuses(&["run", "text.count@7.0.0"], 2, "tool-unknown", &["1.0.0"]);
    house.refuses(&["run", "../x"], 2, "usage", &["../x", "`glovebox run --help`"]);
    house.refuses(&with(&["--workspace", ".:wirte"]), 2, "workspace-unavailable", &["only `:read` and `:write`"]);
    house.refuses(&with(&["--arg", "path=b.txt"]), 2, "usage", &["`path` is given twice"]);
    house.refuses(&with(&["--input", "x=a.txt", "--input", "x=a.txt"]), 2, "usage", &["`x` is given twice"]);
    house.refuses(&with(&["--workspace", "/nowhere"]), 2, "workspace-unavailable", &["/nowhere"]);
    house.refuses(&with(&["--workspace", "a.txt"]), 2, "workspace-unavailable", &["not a folder"]);
    house.refuses(&with(&["--input", "x"]), 2, "usage", &["--input"]);
    house.refuses(&with(&["--input", "x=/nowhere"]), 2, "file-unreadable", &["/nowhere"]);
    house.refuses(&["run", "text.count", "--args", "@/nowhere"], 2, "file-unreadable", &["/nowhere"]);
    house.refuses(&["run", "text.count", "--arg", "path"], 2, "usage", &["--arg"]);
    for (file, words) in
        [(&unknown, &["wal", "line 2"][..]), (&size, &["`5` is not a size", "line 2"]), (&tiny, &["limits.memory"])]
    {
        house.refuses(&[&run[..], &["--contract", file]].concat(), 21, "contract-invalid", words);
    }

    let network = contract("network.toml", "[network]\negress = [{ host = \"example.com\", ports = [443] }]\n");
    let generous = contract("generous.toml", "[limits]\nwall = \"1h\"\n");
    let observed: &[(&[&str], i32, &str, &str)] = &[
        (&["--arg", "path=../outside.txt"], 21, "path-outside-mounts", "/path"),
        (&["--arg", "path=/etc/passwd"], 21, "path-outside-mounts", "/path"),
        (&["--arg", "path=a.txt", "--contract", &network], 21, "contract-unsatisfied", "network.egress[example.com]"),
        (&["--arg", "path=a.txt", "--contract", &generous], 21, "contract-unsatisfied", "limits.wall"),
        (&["--arg", "path=a.txt", "--input", "x=a.txt"], 21, "contract-unsatisfied", "input `x`"),
        (&["--arg", "path=a.txt", "--input", "x=artifact/none/1"], 2, "artifact-unknown", "artifact/none/1"),
        (&["--arg", "path=missing.txt"], 1, "tool-failed", "missing.txt"),
    ];
    for (args, exit, code, word) in observed {
        let ran = house.run(&[&["run", "text.count", "--json"], *args].concat());
        let outcome = ran.json()["outcome"].clone();
        assert_eq!((ran.code, outcome["code"].as_str()), (*exit, Some(*code)), "{args:?}: {outcome}");
        assert!(outcome["message"].as_str().unwrap().contains(word), "{args:?}: {outcome}");
        assert!(outcome["help"].is_string() && !ran.stdout.contains("secret"), "{args:?}: {outcome}");
        house.is_tidy();
    }
}

#[test]
fn contracts_that_nobody_can_meet() {
    let house = House::new();
    let head = "schema = \"glovebox/contract/v1\"\n";
    let check = |text: &str| {
        let file = house.file("contract.toml", format!("{head}{text}"));
        (house.run(&["contract", "check", &file, "--json"]), file)
    };
    for (text, satisfiable) in [
        ("[limits]\nwall = \"5s\"\n", true),
        ("[network]\negress = [{ host = \"example.com\", ports = [443] }]\n", false),
        ("[limits]\nmemory = \"100TiB\"\n", false),
        ("[[filesystem]]\nguest = \"/workspace\"\nsource = \"workspace\"\naccess = \"write\"\n", false),
        ("[platform]\nos = \"linux\"\n", true),
        ("[platform]\nos = \"linux\"\n[isolation]\nwalls = 2\n", false),
    ] {
        let (ran, _) = check(text);
        assert_eq!(ran.code, if satisfiable { 0 } else { 21 }, "{text}: {}", ran.stdout);
        assert_eq!(ran.json()["satisfiable"], satisfiable, "{text}");
    }
    let (_, file) = check("[network]\negress = [{ host = \"example.com\", ports = [443] }]\n");
    let readable = house.run(&["contract", "check", &file]);
    for word in ["network.egress[example.com]", "refused", "what would do", "enforced", "the ceiling's"] {
        assert!(readable.stdout.contains(word), "{word}: {}", readable.stdout);
    }
    for (text, word) in [
        ("[limits]\nwal = \"5s\"\n", "line 3"),
        ("[limits]\nwall = 5\n", "line 3"),
        ("[limits]\nwall = \"0s\"\n", "limits.wall"),
        ("[", "line 2"),
    ] {
        let (_, file) = check(text);
        house.refuses(&["contract", "check", &file], 21, "contract-invalid", &[word]);
    }
    house.refuses(&["contract", "check", "/nowhere"], 2, "file-unreadable", &["/nowhere"]);
    let tool = house.file("tool.toml", manifest("text-count"));
    house.run(&["contract", "check", &tool]).ok();
    let tool = house.file("tool.toml", manifest("text-count").replace("wall = ", "wal = "));
    let ran = house.run(&["contract", "check", &tool]);
    assert!(ran.code != 0 && ran.stderr.contains("wal"), "{}", ran.stderr);
}

#[test]
fn configuration_that_is_not_understood() {
    let house = House::new();
    house.file("config/glovebox/config.toml", "[admission]\nwiat = \"5s\"\n");
    house.refuses(
        &["config", "show"],
        2,
        "config-invalid",
        &["admission.wiat", "config.toml", "did you mean `admission.wait`"],
    );
    let ran = house.run(&["doctor", "--json"]);
    let lines = ran.json()["lines"].clone();
    let line = |what: &str| lines.as_array().unwrap().iter().find(|line| line["what"] == what).unwrap().clone();
    assert_eq!((ran.code, &line("configuration")["status"]), (42, &"failed".into()), "{lines:#}");
    assert!(line("configuration")["help"].as_str().unwrap().contains("admission.wait"), "{lines:#}");
    assert_eq!((&line("system")["status"], &line("self-tests")["status"]), (&"ok".into(), &"skipped".into()));
    house.file("config/glovebox/config.toml", "");
    let ran = Ran::of(house.command().env("GLOVEBOX_ADMISSION_WAIT", "soon").args(["config", "show"]));
    assert!(ran.code == 2 && ran.stderr.contains("$GLOVEBOX_ADMISSION_WAIT"), "{}", ran.stderr);
    for (name, value, words) in [
        ("GLOVEBOX_CIELING", "x", &["GLOVEBOX_CIELING", "did you mean `GLOVEBOX_CEILING`"][..]),
        ("GLOVEBOX_ADMISSION_QUEUE", "many", &["`many` is not a whole number"]),
        // Nor is it as if it were empty: a ceiling may lie beside it.
        ("GLOVEBOX_CONFIG", "/nowhere/config.toml", &["$GLOVEBOX_CONFIG", "/nowhere/config.toml", "unset"]),
    ] {
        for args in [&["config", "show"][..], &["run", "text.count", "--arg", "path=a.txt"]] {
            let ran = Ran::of(house.command().env(name, value).args(args));
            let named = words.iter().all(|word| ran.stderr.contains(word));
            assert!(ran.code == 2 && ran.stderr.contains("error [config-invalid]") && named, "{}", ran.stderr);
        }
    }
    house.file("config/glovebox/ceiling.toml", "schema = \"glovebox/ceiling/v1\"\n[install]\nx = 1\n");
    let words = ["ceiling.toml", "line 3", "glovebox config show --ceiling"];
    house.refuses(&["run", "text.count", "--arg", "path=a.txt"], 2, "ceiling-invalid", &words);
}

#[test]
fn usage() {
    let house = House::new();
    for args in [&["frobnicate"][..], &["run"], &["run", "text.count", "--arg", "a=1", "--args", "{}"], &[]] {
        let ran = house.run(args);
        assert_eq!((ran.code, ran.stdout.as_str()), (2, ""), "{args:?}: {}", ran.stderr);
    }
    // Whoever reads JSON gets JSON, also where nothing was done.
    for (args, code) in [
        (&["run", "text.cuont", "--json"][..], "tool-unknown"),
        (&["tool", "show", "nothing", "--json"], "tool-unknown"),
        (&["contract", "check", "/nowhere", "--json"], "file-unreadable"),
        (&["run", "--json"], "usage"),
    ] {
        let ran = house.run(args);
        let problem: env_contracts::Problem = serde_json::from_value(ran.json()["problem"].clone()).unwrap();
        assert_eq!((ran.code, problem.code.as_str()), (2, code), "{}", ran.stdout);
        assert!(ran.json().as_object().unwrap().len() == 1 && ran.stderr.contains(&problem.message), "{}", ran.stderr);
    }
    house.refuses(&["explain", "tool-unknwon"], 2, "code-unknown", &["did you mean `tool-unknown`"]);
    assert_eq!(files(&house.state()).iter().filter(|path| path.starts_with("tools")).count(), 0);
}

#[test]
fn what_is_no_regular_file_is_refused_and_not_waited_for() {
    let house = House::new();
    let fifo = house.path("fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let tool = ["run", "text.count"];
    let no = "not a regular file";
    house.refuses(&[&tool[..], &["--args", &format!("@{fifo}")]].concat(), 2, "file-unreadable", &[no]);
    house.refuses(&[&tool[..], &["--input", &format!("text={fifo}")]].concat(), 2, "file-unreadable", &[no]);
    house.refuses(&[&tool[..], &["--contract", &fifo]].concat(), 2, "file-unreadable", &[no]);
    house.refuses(&["action", "submit", &fifo], 2, "file-unreadable", &[no]);
    let operators = [("CONFIG", "config-invalid"), ("CEILING", "config-invalid"), ("PROFILES", "profiles-invalid")];
    for (variable, code) in operators {
        let mut command = house.command();
        command.env(format!("GLOVEBOX_{variable}"), &fifo).args(tool);
        let ran = Ran::of(&mut command);
        assert!(ran.stderr.contains(code) && ran.stderr.contains(no), "{variable}: {}", ran.stderr);
    }
    let policy = house.path("policy");
    fs_err::create_dir(&policy).unwrap();
    fs_err::rename(&fifo, house.path("policy/rules.cedar")).unwrap();
    let mut command = house.command();
    command.env("GLOVEBOX_POLICY", &policy).args(tool);
    let ran = Ran::of(&mut command);
    assert!(ran.stderr.contains("policy-invalid") && ran.stderr.contains("is not a file"), "{}", ran.stderr);
    // What is said on standard input stays what it is.
    fs_err::write(house.workspace().join("a.txt"), "a").unwrap();
    house.run_with(&[&tool[..], &["--args", "-"]].concat(), br#"{"path": "a.txt"}"#.to_vec()).ok();
}
