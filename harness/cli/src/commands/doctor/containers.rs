//! Whether images can be run here.

use env_contracts::{Code, Problem};

use super::Line;
use crate::config::Config;
use crate::places::Places;
use crate::{backends, house};

/// One line: nobody needs containers who runs components alone.
pub(super) fn look(config: &Config) -> Line {
    let found = || -> Result<String, Problem> {
        let containers = backends::containers(config, &Places::of(config))?;
        let socket = containers.engine().socket().path().display().to_string();
        let facts = house::tokio_runtime()?.block_on(containers.engine().facts())?.clone();
        let runtimes = facts.runtimes.join(", ");
        Ok(format!(
            "engine {} (API {}) at `{socket}`; runtimes: {runtimes}; default: {}",
            facts.version, facts.api, facts.default_runtime
        ))
    };
    match found() {
        Ok(found) => Line::ok("containers", found),
        Err(problem) if problem.code == Code::BackendUnavailable => {
            Line { help: Some(problem.help), ..Line::not_here("containers", problem.message) }
        }
        Err(problem) => Line::required("containers", Err(problem)),
    }
}
