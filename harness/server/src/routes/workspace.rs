//! Folders of this host that requests name: by a name that the operator gave
//! them, and never by a path.

use std::path::PathBuf;

use env_contracts::{Access, Code, Name, Problem};

use crate::state::App;

/// The folder of a name, with the most that may be done with it.
pub(crate) fn named(app: &App, name: &Name) -> Result<(PathBuf, Access), Problem> {
    let workspaces = &app.settings.workspaces;
    match workspaces.get(name) {
        Some(workspace) => Ok((workspace.folder.clone(), workspace.access)),
        None => {
            let known: Vec<&str> = workspaces.keys().map(Name::as_str).collect();
            let help = if known.is_empty() {
                "this server has none: it is started with `--workspace NAME=DIR`".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            Err(Problem::new(Code::WorkspaceUnavailable, format!("there is no workspace `{name}`")).with_help(help))
        }
    }
}
