//! Configuration: flags over environment over file over default. Every key
//! stands in one table, from which `config show` and the reference are made.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use env_contracts::{ByteSize, Code, Problem, Span};
use glovebox_plane::arguments::nearest;
use glovebox_runtime::read_plain;
use glovebox_server::{LogForm, LogLevel};
use glovebox_wasm::Placement;

use crate::args::AskMode;
use crate::commands::files::MAX_TEXT;
use crate::values::{Agent, Positive, Ttl, Word, Words};

/// One key.
pub(crate) struct Setting {
    /// Its name in the file, dotted.
    pub(crate) key: &'static str,
    /// The environment variable.
    pub(crate) env: &'static str,
    /// What holds if nobody says otherwise; empty: worked out on this host.
    pub(crate) default: &'static str,
    /// What it does.
    pub(crate) doc: &'static str,
    check: fn(&str) -> Result<(), String>,
}

macro_rules! settings {
    ($($key:literal, $env:literal, $default:literal, $check:ty, $doc:literal;)+) => {
        /// Every key.
        pub(crate) const SETTINGS: &[Setting] = &[
            $(Setting { key: $key, env: $env, default: $default, doc: $doc, check: |text| text.parse::<$check>().map(drop).map_err(|error| error.to_string()) },)+
        ];
    };
}

settings! {
    "state", "GLOVEBOX_STATE", "", String, "The folder of artifacts, registered tools, caches and runs. Default: `glovebox` in $XDG_STATE_HOME, or in ~/.local/state.";
    "ceiling", "GLOVEBOX_CEILING", "", String, "The file with the operator's ceiling. Default: `ceiling.toml` beside the configuration file, and the shipped one if there is none.";
    "policy", "GLOVEBOX_POLICY", "", String, "The folder of the policy: `*.cedar`, `approvers.toml`, `tests/`. Default: `policy` beside the configuration file, and the shipped one if there is none.";
    "profiles", "GLOVEBOX_PROFILES", "", String, "The file with the operator's agent profiles: what each agent may find and call. Default: `profiles.toml` beside the configuration file; if there is none, every agent may find and call everything.";
    "approvers", "GLOVEBOX_APPROVERS", "", String, "The file of those who approve by passphrase. Default: `approvers.toml` beside the configuration file.";
    "credentials", "GLOVEBOX_CREDENTIALS", "", String, "The file of those who may call at a door, by token or as a user of this machine. Default: `credentials.toml` beside the configuration file.";
    "webhooks", "GLOVEBOX_WEBHOOKS", "", String, "The file of those who are told of what waits for people. Default: `webhooks.toml` beside the configuration file.";
    "agent", "GLOVEBOX_AGENT", "", Agent, "The agent that asks, NAME or NAME@VERSION, for a harness that runs this command for one. Empty: the user asks.";
    "session", "GLOVEBOX_SESSION", "", Word, "The session that actions belong to. Empty: the user has one.";
    "task", "GLOVEBOX_TASK", "", Word, "The task that actions belong to. Empty: the session has one.";
    "approvals.ask", "GLOVEBOX_APPROVALS_ASK", "auto", AskMode, "What happens where a person has to decide: `here` (the question is put on the terminal), `wait` (for an answer from elsewhere), `leave` (waiting; `action resume` goes on), `never` (it ends as unattended), or `auto`: `here` where there is a terminal, else `leave`.";
    "approvals.ttl", "GLOVEBOX_APPROVALS_TTL", "24h", Ttl, "How long a question waits for its answer, and an answer for whoever asked; `none`: for ever.";
    "approvals.grace", "GLOVEBOX_APPROVALS_GRACE", "10m", Span, "How long a question waits where nobody is known who may answer.";
    "approvals.most", "GLOVEBOX_APPROVALS_MOST", "60", Count, "How many questions one session may ask within an hour.";
    "environments.idle", "GLOVEBOX_ENVIRONMENTS_IDLE", "2h", Span, "How long an environment is kept in which no action runs. Looking at it is no use of it.";
    "environments.age", "GLOVEBOX_ENVIRONMENTS_AGE", "24h", Span, "How long an environment is kept at all. Nothing extends it.";
    "admission.memory", "GLOVEBOX_ADMISSION_MEMORY", "", ByteSize, "The memory that all actions of this state folder together may use. Default: three quarters of the host's memory.";
    "admission.actions", "GLOVEBOX_ADMISSION_ACTIONS", "", Count, "How many actions of this state folder run at one time, over all processes. Default: eight for each processor.";
    "admission.queue", "GLOVEBOX_ADMISSION_QUEUE", "1024", Count, "How many actions may wait for room.";
    "admission.wait", "GLOVEBOX_ADMISSION_WAIT", "1m", Span, "How long an action waits for room before it is refused as busy.";
    "wasm.placement", "GLOVEBOX_WASM_PLACEMENT", "cell", Placement, "Where components run: `cell`, each in a process of its own that the kernel shuts in, or `in-process`, behind the engine's wall alone, for tools of one trust domain.";
    "container.socket", "GLOVEBOX_CONTAINER_SOCKET", "", String, "The Unix socket of the container engine. Empty: the one that $DOCKER_HOST names, `docker.sock` in $XDG_RUNTIME_DIR if it is there, or `/var/run/docker.sock`.";
    "container.image", "GLOVEBOX_CONTAINER_IMAGE", "", String, "The image that `glovebox exec` takes where none is named: a tag or an id that the container engine has.";
    "container.warm", "GLOVEBOX_CONTAINER_WARM", "4", Count, "How many containers `glovebox serve` keeps standing for the next action, of the kinds that were needed last. 0: none.";
    "component.max_size", "GLOVEBOX_COMPONENT_MAX_SIZE", "64MiB", ByteSize, "The largest component that is accepted.";
    "compile.wall", "GLOVEBOX_COMPILE_WALL", "5m", Span, "How long compiling a component may take.";
    "compile.memory", "GLOVEBOX_COMPILE_MEMORY", "4GiB", ByteSize, "How much memory compiling a component may take.";
    "serve.listen", "GLOVEBOX_SERVE_LISTEN", "127.0.0.1:7410", SocketAddr, "The address and port of `glovebox serve`. Port 0: one that is free.";
    "serve.hosts", "GLOVEBOX_SERVE_HOSTS", "", Words, "Names, besides those of the loopback, by which `glovebox serve` is reached, for example behind a proxy; separated by commas.";
    "serve.rate", "GLOVEBOX_SERVE_RATE", "5000", Positive, "How many requests one credential may send each second.";
    "serve.connections", "GLOVEBOX_SERVE_CONNECTIONS", "2048", Positive, "How many connections are open at one time; others wait.";
    "serve.grace", "GLOVEBOX_SERVE_GRACE", "20s", Span, "How long what runs may go on when the server is told to stop.";
    "serve.tls_cert", "GLOVEBOX_SERVE_TLS_CERT", "", String, "A PEM file with the certificates that `glovebox serve` shows, its own first. Empty: it speaks no TLS.";
    "serve.tls_key", "GLOVEBOX_SERVE_TLS_KEY", "", String, "The PEM file with the private key of `serve.tls_cert`. Both are read again when they change.";
    "serve.log", "GLOVEBOX_SERVE_LOG", "text", LogForm, "How `glovebox serve` writes to standard error what happens: `text`, `json` or `off`.";
    "serve.log_level", "GLOVEBOX_SERVE_LOG_LEVEL", "warn", LogLevel, "What of it: `error`, `warn` (also what was refused to strangers), or `info` (also a line for each request).";
    "serve.otlp", "GLOVEBOX_SERVE_OTLP", "", String, "The HTTP address of an OpenTelemetry collector that gets a span of each request and action: `http://127.0.0.1:4318`. Empty: nobody does.";
    "limits.sealed", "GLOVEBOX_LIMITS_SEALED", "1GiB", ByteSize, "How many bytes of inputs and path arguments one action may have copied.";
    "artifacts.max_age", "GLOVEBOX_ARTIFACTS_MAX_AGE", "30d", Span, "How long `gc` leaves artifacts alone, unless a contract keeps them longer.";
    "artifacts.max_size", "GLOVEBOX_ARTIFACTS_MAX_SIZE", "10GiB", ByteSize, "How much space artifacts may take before `gc` drops the oldest.";
    "cache.max_size", "GLOVEBOX_CACHE_MAX_SIZE", "2GiB", ByteSize, "How much space compiled components may take before `gc` drops the ones used longest ago.";
}

/// The variable that names the configuration file.
const FILE_VARIABLE: &str = "GLOVEBOX_CONFIG";

/// What the variables of the program begin with.
const PREFIX: &str = "GLOVEBOX_";

/// Variables of that prefix that belong to the tests and to `cargo xtask`.
const OTHERS: &[&str] = &["GLOVEBOX_TEST_", "GLOVEBOX_WASI_CARGO"];

/// How many.
pub(crate) struct Count(pub(crate) u32);

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse().map(Self).map_err(|_| format!("`{text}` is not a whole number from 0 to {}", u32::MAX))
    }
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flag of the command line.
    Flag(&'static str),
    /// An environment variable.
    Environment(&'static str),
    /// The configuration file.
    File(PathBuf),
    /// Nobody said otherwise.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Environment(name) => write!(f, "${name}"),
            Self::File(path) => path.display().fmt(f),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The values in force.
#[derive(Clone)]
pub(crate) struct Config {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Config {
    /// Reads everything. `flags` are (key, flag, value).
    ///
    /// # Errors
    /// `config-invalid` with the key or the line.
    pub(crate) fn load(flags: &[(&'static str, &'static str, String)]) -> Result<Self, Problem> {
        Self::layered(flags, &environment()?, &file_path())
    }

    fn layered(
        flags: &[(&'static str, &'static str, String)],
        env: &BTreeMap<String, String>,
        path: &Path,
    ) -> Result<Self, Problem> {
        known_variables(env)?;
        let mut file = read_file(path, env.contains_key(FILE_VARIABLE))?;
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let from_file = file.remove(setting.key);
            let flag = flags.iter().find(|(key, ..)| *key == setting.key);
            let (value, origin) = if let Some((_, name, value)) = flag {
                (value.clone(), Origin::Flag(name))
            } else if let Some(value) = env.get(setting.env) {
                (value.clone(), Origin::Environment(setting.env))
            } else if let Some(value) = from_file {
                (value, Origin::File(path.to_owned()))
            } else {
                (default(setting), Origin::Default)
            };
            (setting.check)(&value).map_err(|error| {
                invalid(format!("`{}` from {origin}: {error}", setting.key))
                    .with_help(format!("correct it; `{}` means: {}", setting.key, setting.doc))
            })?;
            values.insert(setting.key, (value, origin));
        }
        if values.get("state").is_some_and(|(state, _)| state.is_empty()) {
            return Err(invalid(
                "there is no place for the state folder: neither $XDG_STATE_HOME nor $HOME is set".into(),
            )
            .with_help("name a folder with --state DIR or $GLOVEBOX_STATE"));
        }
        if let Some(key) = file.keys().next() {
            let keys: Vec<&str> = SETTINGS.iter().map(|setting| setting.key).collect();
            return Err(unknown(format!("`{}`: no configuration key is called `{key}`", path.display()), key, &keys));
        }
        Ok(Self { values })
    }

    /// A value and where it comes from.
    pub(crate) fn entry(&self, key: &str) -> (&str, &Origin) {
        match self.values.get(key) {
            Some((value, origin)) => (value, origin),
            None => unreachable!("`{key}` is no key of the table"),
        }
    }

    /// A value of its type; it was checked when it was read.
    pub(crate) fn get<T: FromStr>(&self, key: &str) -> T {
        self.entry(key).0.parse().unwrap_or_else(|_| unreachable!("`{key}` was checked when it was read"))
    }
}

/// Where the configuration file is; empty where there can be none.
pub(crate) fn file_path() -> PathBuf {
    match std::env::var_os(FILE_VARIABLE) {
        Some(path) if !path.is_empty() => path.into(),
        _ => folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml")).unwrap_or_default(),
    }
}

/// The variables that are ours; an empty one says nothing.
fn environment() -> Result<BTreeMap<String, String>, Problem> {
    let mut out = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if !value.is_empty() {
            let value = value.into_string().map_err(|_| invalid(format!("`${name}` is not UTF-8 text")))?;
            out.insert(name.to_owned(), value);
        }
    }
    Ok(out)
}

/// A mistyped variable must not be as good as none: one of them is the ceiling.
fn known_variables(env: &BTreeMap<String, String>) -> Result<(), Problem> {
    let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.env).collect();
    names.push(FILE_VARIABLE);
    let known = |name: &str| names.contains(&name) || OTHERS.iter().any(|other| name.starts_with(other));
    match env.keys().find(|name| !known(name)) {
        Some(name) => Err(unknown(format!("no environment variable of Glovebox is called `{name}`"), name, &names)),
        None => Ok(()),
    }
}

/// Our folder below an XDG folder. `None` where nobody says whose: a place that
/// everybody can write to would let others configure us.
fn folder(variable: &str, otherwise: &str) -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = absolute(variable).or_else(|| Some(absolute("HOME")?.join(otherwise)))?;
    Some(base.join("glovebox"))
}

/// Refuses a file or folder that others decide over: one that belongs to
/// neither us nor root, or that everybody can write to.
///
/// # Errors
/// Why it is not trusted; a missing one is.
pub(crate) fn trusted(path: &Path) -> Result<(), String> {
    use std::os::unix::fs::MetadataExt as _;
    let Ok(meta) = fs_err::metadata(path) else { return Ok(()) };
    let owner = meta.uid();
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        return Err(format!("`{}` belongs to user {owner}, who could decide what runs here", path.display()));
    }
    // In a folder of everybody's another could be put in its place, unless
    // only owners may take things out of it, as in /tmp.
    let folder = path.parent().and_then(|folder| fs_err::metadata(folder).ok());
    let open_folder = folder.is_some_and(|folder| folder.mode() & 0o1002 == 0o0002);
    if meta.mode() & 0o002 != 0 || open_folder {
        return Err(format!("`{}` can be written by everybody, who could decide what runs here", path.display()));
    }
    Ok(())
}

fn default(setting: &Setting) -> String {
    let memory =
        || ByteSize(rustix::system::sysinfo().totalram.saturating_mul(rustix::system::sysinfo().mem_unit.into()));
    let cpus = || std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let budgets = || glovebox_runtime::Budgets::for_host(memory(), cpus());
    let text = |path: Option<PathBuf>| path.map(|path| path.display().to_string()).unwrap_or_default();
    match setting.key {
        "state" => text(folder("XDG_STATE_HOME", ".local/state")),
        "ceiling" => text(file_path().parent().map(|folder| folder.join("ceiling.toml"))),
        "policy" => text(file_path().parent().map(|folder| folder.join("policy"))),
        "profiles" => text(file_path().parent().map(|folder| folder.join("profiles.toml"))),
        "approvers" => text(file_path().parent().map(|folder| folder.join("approvers.toml"))),
        "credentials" => text(file_path().parent().map(|folder| folder.join("credentials.toml"))),
        "webhooks" => text(file_path().parent().map(|folder| folder.join("webhooks.toml"))),
        // Whole MiB: an odd number of bytes can't be read at a glance.
        "admission.memory" => ByteSize(budgets().memory.0 >> 20 << 20).to_string(),
        "admission.actions" => budgets().actions.to_string(),
        _ => setting.default.to_owned(),
    }
}

/// The file's keys, dotted, with their values as text. A missing file has none,
/// unless somebody `named` it: then the ceiling beside it is missed as well.
fn read_file(path: &Path, named: bool) -> Result<BTreeMap<String, String>, Problem> {
    trusted(path)
        .map_err(|why| invalid(why).with_help("give it to yourself, and take the others' write permission away"))?;
    let text = match read_plain(path, MAX_TEXT) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && !named => return Ok(BTreeMap::new()),
        Err(error) if named => {
            return Err(invalid(format!("${FILE_VARIABLE}: {error}"))
                .with_help("name a file that can be read (it may be empty), or unset the variable"));
        }
        Err(error) => return Err(invalid(error.to_string())),
    };
    let table: toml::Table =
        toml::from_str(&text).map_err(|error| invalid(format!("`{}`: {error}", path.display())))?;
    let mut out = BTreeMap::new();
    flatten("", &toml::Value::Table(table), &mut out);
    Ok(out)
}

fn flatten(prefix: &str, value: &toml::Value, out: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                let key = if prefix.is_empty() { key.clone() } else { format!("{prefix}.{key}") };
                flatten(&key, value, out);
            }
        }
        toml::Value::String(text) => drop(out.insert(prefix.to_owned(), text.clone())),
        other => drop(out.insert(prefix.to_owned(), other.to_string())),
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Code::ConfigInvalid, message)
}

/// A name that is none of those there are.
fn unknown(message: String, name: &str, known: &[&str]) -> Problem {
    let near = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
    invalid(message).with_help(format!("{near}there are {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(
        flags: &[(&'static str, &'static str, String)],
        env: &[(&str, &str)],
        file: &str,
    ) -> Result<Config, Problem> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.toml");
        fs_err::write(&path, file).unwrap();
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Config::layered(flags, &env, &path)
    }

    #[test]
    fn flags_beat_the_environment_which_beats_the_file_which_beats_the_default() {
        let file = "[admission]\nqueue = 7\nwait = \"5s\"\n";
        let config = load(
            &[("state", "--state", "/flag".into())],
            &[("GLOVEBOX_STATE", "/env"), ("GLOVEBOX_ADMISSION_WAIT", "9s")],
            file,
        )
        .unwrap();
        assert_eq!(config.entry("state"), ("/flag", &Origin::Flag("--state")));
        assert_eq!(config.entry("admission.wait"), ("9s", &Origin::Environment("GLOVEBOX_ADMISSION_WAIT")));
        assert_eq!(config.get::<Count>("admission.queue").0, 7);
        assert!(matches!(config.entry("admission.queue").1, Origin::File(_)));
        assert_eq!(config.entry("limits.sealed"), ("1GiB", &Origin::Default));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (file, named, help) in [
            ("nonsense = 1\n", "nonsense", "there are state, ceiling, "),
            ("[admission]\nwait = \"soon\"\n", "admission.wait", "How long an action waits"),
            ("[admission]\nqueue = \"many\"\n", "`many` is not a whole number from 0 to", "How many"),
            ("[admission\n", "line 1", "doctor"),
            ("[artifacts]\nmaxage = \"1d\"\n", "artifacts.maxage", "did you mean `artifacts.max_age`?"),
        ] {
            let problem = load(&[], &[], file).map(drop).unwrap_err();
            assert_eq!(problem.code, Code::ConfigInvalid);
            assert!(problem.message.contains(named), "{file}: {problem}");
            assert!(problem.help.contains(help), "{file}: {}", problem.help);
        }
        for (name, value, named) in [
            ("GLOVEBOX_ADMISSION_QUEUE", "-1", "`-1` is not a whole number"),
            ("GLOVEBOX_CIELING", "/etc/glovebox/ceiling.toml", "GLOVEBOX_CIELING"),
        ] {
            let problem = load(&[], &[(name, value)], "").map(drop).unwrap_err();
            assert!(problem.code == Code::ConfigInvalid && problem.message.contains(named), "{problem}");
        }
        load(&[], &[("GLOVEBOX_TEST_SKIP", "x"), ("GLOVEBOX_WASI_CARGO", "x")], "").map(drop).unwrap();
    }
}
