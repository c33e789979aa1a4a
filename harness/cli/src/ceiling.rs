//! The operator's ceiling, where it is configured.

use std::path::Path;

use env_contracts::{Ceiling, Code, Problem};
use glovebox_runtime::{DEFAULT_CEILING, read_plain};

use crate::commands::files::MAX_TEXT;
use crate::config::{Config, Origin, trusted};

/// The operator's ceiling.
///
/// # Errors
/// `ceiling-invalid` with the file and the line, `config-invalid` if it can't
/// be read.
pub(crate) fn read(config: &Config) -> Result<Ceiling, Problem> {
    let text = text(config)?;
    Ceiling::from_toml(text.as_deref().unwrap_or(DEFAULT_CEILING))
        .map_err(|error| Problem::new(Code::CeilingInvalid, format!("`{}`: {error}", config.entry("ceiling").0)))
}

/// The text of the operator's ceiling; `None`: there is none, and the shipped
/// one holds.
///
/// # Errors
/// `config-invalid` if it can't be read.
pub(crate) fn text(config: &Config) -> Result<Option<String>, Problem> {
    let (path, origin) = config.entry("ceiling");
    trusted(Path::new(path)).map_err(|why| {
        Problem::new(Code::ConfigInvalid, why)
            .with_help("give it to yourself, and take the others' write permission away")
    })?;
    match read_plain(Path::new(path), MAX_TEXT) {
        Ok(text) => Ok(Some(text)),
        // Only the default place may be empty.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && *origin == Origin::Default => Ok(None),
        Err(error) => Err(Problem::new(Code::ConfigInvalid, format!("`ceiling` from {origin}: {error}")).with_help(
            "name a file that can be read; `glovebox config show --ceiling=shipped` prints one to start from",
        )),
    }
}
