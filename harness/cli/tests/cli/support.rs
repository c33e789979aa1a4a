//! The one helper: a person's folders, and the program run in them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use serde_json::Value;

/// The folders of one person: state, configuration, a workspace with a file.
pub(crate) struct House {
    dir: tempfile::TempDir,
}

/// What the program did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl House {
    /// Fresh folders. Built-in tools are compiled already: that takes a
    /// second, and is tested where it is meant.
    pub(crate) fn new() -> Self {
        static WARM: OnceLock<House> = OnceLock::new();
        let warm = WARM.get_or_init(|| {
            let house = Self::cold();
            for args in [["fs.read", "--arg", "path=a.txt"], ["text.count", "--arg", "path=a.txt"]] {
                let ran = house.run(&[&["run"], &args[..]].concat());
                assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
            }
            house
        });
        let house = Self::cold();
        let to = house.state().join("compiled");
        make_private(&house.state());
        make_private(&to);
        for entry in fs_err::read_dir(warm.state().join("compiled")).unwrap() {
            let from = entry.unwrap().path();
            fs_err::copy(&from, to.join(from.file_name().unwrap())).unwrap();
        }
        house
    }

    /// Fresh folders with nothing compiled.
    pub(crate) fn cold() -> Self {
        let house = Self { dir: tempfile::tempdir().unwrap() };
        fs_err::create_dir(house.workspace()).unwrap();
        house.file("workspace/a.txt", "one two\nthree\n");
        house
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.dir.path().join("workspace")
    }

    /// A path in these folders, as an argument.
    pub(crate) fn path(&self, name: &str) -> String {
        self.dir.path().join(name).display().to_string()
    }

    /// Writes a file, and gives its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        fs_err::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        fs_err::write(&path, content).unwrap();
        path
    }

    /// The program in the workspace, knowing nothing of the surroundings that
    /// the tests run in.
    pub(crate) fn command(&self) -> Command {
        self.command_of(env!("CARGO_BIN_EXE_glovebox"))
    }

    /// Another one there.
    #[expect(clippy::disallowed_methods, reason = "a test helper starts the program")]
    pub(crate) fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.workspace()).env_clear().stdin(Stdio::null());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", self.dir.path()).env("XDG_CONFIG_HOME", self.dir.path().join("config"));
        command.env("GLOVEBOX_STATE", self.state());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        Ran::of(self.command().args(args))
    }

    /// With something on standard input.
    pub(crate) fn run_with(&self, args: &[&str], input: Vec<u8>) -> Ran {
        use std::io::Write as _;
        let mut command = self.command();
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The program may rightly stop reading before the end.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        Ran::from(output)
    }

    /// A refusal: this exit code, this error code with a way out on standard
    /// error, these words in it; nothing on standard output, nothing left.
    pub(crate) fn refuses(&self, args: &[&str], exit: i32, code: &str, words: &[&str]) {
        let ran = self.run(args);
        let said = format!("{args:?} answered {}\n{}{}", ran.code, ran.stdout, ran.stderr);
        assert_eq!(ran.code, exit, "{said}");
        assert!(ran.stderr.contains(&format!("error [{code}]: ")) && ran.stderr.contains("hint: "), "{said}");
        for word in words {
            assert!(ran.stderr.contains(word), "`{word}` is missing: {said}");
        }
        assert_eq!(ran.stdout, "", "{said}");
        self.is_tidy();
    }

    /// The operator lets tools change workspaces: the shipped ceiling with one word in another place.
    pub(crate) fn may_write(&self) {
        let ceiling = self.run(&["config", "show", "--ceiling=shipped"]).ok().stdout;
        self.file("config/glovebox/ceiling.toml", ceiling.replace("access = \"overlay\"", "access = \"write\""));
    }

    /// Nothing half-done lies in the state folder.
    pub(crate) fn is_tidy(&self) {
        let left: Vec<String> = files(&self.state()).into_iter().filter(|path| is_leftover(path)).collect();
        assert_eq!(left, Vec::<String>::new());
        if let Ok(runs) = fs_err::read_dir(self.state().join("run")) {
            let runs: Vec<_> = runs.map(|run| run.unwrap().path()).collect();
            assert_eq!(runs, Vec::<PathBuf>::new());
        }
    }
}

impl Ran {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    pub(crate) fn from(output: std::process::Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let ran =
            Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) };
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
        ran
    }

    /// Standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}{}", self.stdout, self.stderr))
    }

    /// It succeeded.
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.stdout, self.stderr);
        self
    }
}

/// Everything below a folder, relative to it.
pub(crate) fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(dir) = todo.pop() {
        for entry in fs_err::read_dir(&dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            found.push(path.strip_prefix(folder).unwrap().display().to_string());
            if path.is_dir() {
                todo.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_leftover(path: &str) -> bool {
    // The lock of a list of logins stays beside it, as those of approvers do.
    // A server that runs writes down how far its webhooks are.
    if path == "logins.toml.lock" || path.starts_with("webhooks/.tmp") {
        return false;
    }
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') || name.ends_with(".new") || name.ends_with(".lock") || path.contains("/incoming/")
}

fn make_private(folder: &Path) {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).unwrap();
}

/// A guest written as text.
pub(crate) fn guest(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/wat").join(name);
    wat::parse_file(path).unwrap()
}

/// The command that does what it is told.
pub(crate) fn hostile() -> Vec<u8> {
    fs_err::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/dist/hostile.wasm")).unwrap()
}

/// The component whose functions have types of their own.
pub(crate) fn typed() -> Vec<u8> {
    fs_err::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/guests/dist/typed.wasm")).unwrap()
}

/// The component of a built-in tool.
pub(crate) fn builtin(name: &str) -> Vec<u8> {
    fs_err::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/dist").join(format!("{name}.wasm"))).unwrap()
}

/// How many built-in tools there are: those that are components, and those in
/// images.
pub(crate) fn builtins() -> usize {
    let tools = files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools"));
    let ours =
        |file: &&String| (file.contains("dist/") && file.ends_with(".wasm")) || file.ends_with("-run/image.json");
    tools.iter().filter(ours).count()
}

/// The manifest of a built-in tool, by its folder.
pub(crate) fn manifest(folder: &str) -> String {
    fs_err::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools").join(folder).join("tool.toml"))
        .unwrap()
}

/// A preview 1 module that writes `blocks` blocks of 4096 `x` to its standard
/// output.
pub(crate) fn talker(blocks: u32) -> Vec<u8> {
    let text = format!(
        r#"(module
          (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
          (memory (export "memory") 1)
          (func (export "_start") (local $i i32)
            (i32.store (i32.const 0) (i32.const 1024))
            (i32.store (i32.const 4) (i32.const 4096))
            (memory.fill (i32.const 1024) (i32.const 120) (i32.const 4096))
            (loop $again
              (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $i) (i32.const {blocks}))))))"#
    );
    wat::parse_str(text).unwrap()
}
