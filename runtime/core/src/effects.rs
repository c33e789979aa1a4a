//! Effects are derived from what a contract allows, not claimed.

use env_contracts::{Access, Contract, Delegation, DerivedEffects, Source};

/// What a contract lets an action do to the world: *none* only without
/// writable folders but its own, network, secrets and delegated identity;
/// *workspace* with overlays only; else *external*.
pub fn derived_effects(contract: &Contract) -> DerivedEffects {
    let outside = !contract.network.egress.is_empty()
        || !contract.network.ingress.is_empty()
        || !contract.secrets.is_empty()
        || contract.identity.delegation != Delegation::None;
    let own = |source: &Source| matches!(source, Source::Scratch | Source::Outputs);
    let changes = |access| contract.filesystem.iter().any(move |mount| mount.access == access && !own(&mount.source));
    if outside || changes(Access::Write) {
        DerivedEffects::External
    } else if changes(Access::Overlay) {
        DerivedEffects::Workspace
    } else {
        DerivedEffects::None
    }
}
