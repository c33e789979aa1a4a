//! The operator's agent profiles.

use std::path::Path;

use env_contracts::{Code, Principal, Problem, Profiles};
use glovebox_runtime::read_plain;

use crate::commands::files::MAX_TEXT;
use crate::config::{Config, Origin, trusted};

/// The profiles that bind who asks: a person is bound by none, whatever is
/// wrong with the file.
///
/// # Errors
/// Those of [`load`].
pub(crate) fn of(config: &Config, principal: &Principal) -> Result<Profiles, Problem> {
    Ok(match principal.agent {
        Some(_) => load(config)?.unwrap_or_default(),
        None => Profiles::default(),
    })
}

/// The profiles in force; `None`: there are none, and agents are not bound.
///
/// # Errors
/// `profiles-invalid` with the file and the line.
pub(crate) fn load(config: &Config) -> Result<Option<Profiles>, Problem> {
    let (path, origin) = config.entry("profiles");
    let invalid = |why: String| Problem::new(Code::ProfilesInvalid, why);
    trusted(Path::new(path))
        .map_err(|why| invalid(why).with_help("give it to yourself, and take the others' write permission away"))?;
    let text = match read_plain(Path::new(path), MAX_TEXT) {
        Ok(text) => text,
        // Only the default place may be empty.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && *origin == Origin::Default => return Ok(None),
        Err(error) => {
            return Err(invalid(format!("`profiles` from {origin}: {error}")).with_help("name a file that can be read"));
        }
    };
    Profiles::from_toml(&text).map(Some).map_err(|error| invalid(format!("`{path}`: {error}")))
}
