//! Configuration: flags over environment over file over default. Every key
//! stands in one table, from which `config show` and the reference are made.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use env_contracts::{ByteSize, Code, Problem, Span};

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
    "admission.memory", "GLOVEBOX_ADMISSION_MEMORY", "", ByteSize, "The memory that all actions of this state folder together may use. Default: three quarters of the host's memory.";
    "admission.actions", "GLOVEBOX_ADMISSION_ACTIONS", "", u32, "How many actions of this state folder run at one time, over all processes. Default: eight for each processor.";
    "admission.queue", "GLOVEBOX_ADMISSION_QUEUE", "1024", u32, "How many actions may wait for room.";
    "admission.wait", "GLOVEBOX_ADMISSION_WAIT", "1m", Span, "How long an action waits for room before it is refused as busy.";
    "component.max_size", "GLOVEBOX_COMPONENT_MAX_SIZE", "64MiB", ByteSize, "The largest component that is accepted.";
    "compile.wall", "GLOVEBOX_COMPILE_WALL", "5m", Span, "How long compiling a component may take.";
    "compile.memory", "GLOVEBOX_COMPILE_MEMORY", "4GiB", ByteSize, "How much memory compiling a component may take.";
    "limits.sealed", "GLOVEBOX_LIMITS_SEALED", "1GiB", ByteSize, "How many bytes of inputs and path arguments one action may have copied.";
    "artifacts.max_age", "GLOVEBOX_ARTIFACTS_MAX_AGE", "30d", Span, "How long `gc` leaves artifacts alone, unless a contract keeps them longer.";
    "artifacts.max_size", "GLOVEBOX_ARTIFACTS_MAX_SIZE", "10GiB", ByteSize, "How much space artifacts may take before `gc` drops the oldest.";
    "cache.max_size", "GLOVEBOX_CACHE_MAX_SIZE", "2GiB", ByteSize, "How much space compiled components may take before `gc` drops the ones used longest ago.";
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
pub(crate) struct Config {
    values: BTreeMap<&'static str, (String, Origin)>,
}

impl Config {
    /// Reads everything. `flags` are (key, flag, value).
    ///
    /// # Errors
    /// `config-invalid` with the key or the line.
    pub(crate) fn load(flags: &[(&'static str, &'static str, String)]) -> Result<Self, Problem> {
        Self::layered(flags, |name| std::env::var(name).ok().filter(|value| !value.is_empty()), &file_path())
    }

    fn layered(
        flags: &[(&'static str, &'static str, String)],
        env: impl Fn(&str) -> Option<String>,
        path: &Path,
    ) -> Result<Self, Problem> {
        let mut file = read_file(path)?;
        let mut values = BTreeMap::new();
        for setting in SETTINGS {
            let from_file = file.remove(setting.key);
            let flag = flags.iter().find(|(key, ..)| *key == setting.key);
            let (value, origin) = if let Some((_, name, value)) = flag {
                (value.clone(), Origin::Flag(name))
            } else if let Some(value) = env(setting.env) {
                (value, Origin::Environment(setting.env))
            } else if let Some(value) = from_file {
                (value, Origin::File(path.to_owned()))
            } else {
                (default(setting), Origin::Default)
            };
            (setting.check)(&value).map_err(|error| invalid(format!("`{}` from {origin}: {error}", setting.key)))?;
            values.insert(setting.key, (value, origin));
        }
        if let Some(key) = file.keys().next() {
            return Err(invalid(format!("`{}`: no configuration key is called `{key}`", path.display())));
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

/// Where the configuration file is.
pub(crate) fn file_path() -> PathBuf {
    match std::env::var_os("GLOVEBOX_CONFIG") {
        Some(path) if !path.is_empty() => path.into(),
        _ => folder("XDG_CONFIG_HOME", ".config").join("config.toml"),
    }
}

/// Our folder below an XDG folder.
fn folder(variable: &str, otherwise: &str) -> PathBuf {
    let base = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    base.or_else(|| home().map(|home| home.join(otherwise)))
        .unwrap_or_else(|| PathBuf::from("/var/tmp"))
        .join("glovebox")
}

fn default(setting: &Setting) -> String {
    let memory =
        || ByteSize(rustix::system::sysinfo().totalram.saturating_mul(rustix::system::sysinfo().mem_unit.into()));
    let cpus = || std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX));
    let budgets = || glovebox_runtime::Budgets::for_host(memory(), cpus());
    match setting.key {
        "state" => folder("XDG_STATE_HOME", ".local/state").display().to_string(),
        "ceiling" => file_path().with_file_name("ceiling.toml").display().to_string(),
        "admission.memory" => budgets().memory.to_string(),
        "admission.actions" => budgets().actions.to_string(),
        _ => setting.default.to_owned(),
    }
}

/// The file's keys, dotted, with their values as text. A missing file has none.
fn read_file(path: &Path) -> Result<BTreeMap<String, String>, Problem> {
    let text = match fs_err::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
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
        Config::layered(
            flags,
            |name| env.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()),
            &path,
        )
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
        assert_eq!(config.get::<u32>("admission.queue"), 7);
        assert!(matches!(config.entry("admission.queue").1, Origin::File(_)));
        assert_eq!(config.entry("limits.sealed"), ("1GiB", &Origin::Default));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for (file, named) in [
            ("nonsense = 1\n", "nonsense"),
            ("[admission]\nwait = \"soon\"\n", "admission.wait"),
            ("[admission\n", "line 1"),
            ("[artifacts]\nmaxage = \"1d\"\n", "artifacts.maxage"),
        ] {
            let problem = load(&[], &[], file).map(drop).unwrap_err();
            assert_eq!(problem.code, Code::ConfigInvalid);
            assert!(problem.message.contains(named), "{file}: {problem}");
        }
        assert!(load(&[], &[("GLOVEBOX_ADMISSION_QUEUE", "-1")], "").is_err());
    }
}
