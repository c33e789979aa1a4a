//! How much of a workspace a door lets a request have.

use env_contracts::{Access, Contract, Mount, Scope, Source};

/// Takes from a scope what goes beyond the access to the workspace that a door
/// gives; without a scope, from the tool's own contract.
pub fn limit_workspace(scope: &mut Option<Scope>, contract: &Contract, access: Access) {
    let mounts = scope.as_ref().and_then(|scope| scope.filesystem.as_ref()).unwrap_or(&contract.filesystem);
    let narrowed: Vec<Mount> = mounts
        .iter()
        .map(|mount| match mount.source {
            Source::Workspace if mount.access > access => Mount { access, ..mount.clone() },
            _ => mount.clone(),
        })
        .collect();
    if narrowed != *mounts {
        scope.get_or_insert_default().filesystem = Some(narrowed);
    }
}
