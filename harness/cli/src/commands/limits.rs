//! Limits as they are written on a command line.

use std::collections::BTreeMap;

use env_contracts::{Code, Limits, Problem};

use super::arguments;

/// What something may use; the ceiling's, where nothing is said.
///
/// # Errors
/// `usage` for what is no limit.
pub(crate) fn of(written: &[String]) -> Result<Limits, Problem> {
    let mut all: BTreeMap<&str, &str> = BTreeMap::new();
    for limit in written {
        let (name, value) = arguments::pair("--limits", limit)?;
        all.insert(name, value);
    }
    // Numbers are numbers, everything else is text with a unit.
    let value = |text: &str| text.parse::<i64>().map_or_else(|_| toml::Value::from(text), toml::Value::from);
    let table: toml::Table = all
        .into_iter()
        .map(|(name, text)| (name.to_owned(), if name == "cpus" { text.into() } else { value(text) }))
        .collect();
    toml::Value::Table(table).try_into().map_err(|error: toml::de::Error| {
        Problem::new(Code::Usage, format!("--limits: {}", error.message()))
            .with_help("write `--limits wall=5m,memory=512MiB,pids=100`; the names are those of `limits` in a contract")
    })
}
