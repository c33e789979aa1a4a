//! Effects are derived from what a contract allows, not claimed.

use env_contracts::{Contract, DerivedEffects};

/// What a contract lets an action do to the world: see [`DerivedEffects::of`].
pub fn derived_effects(contract: &Contract) -> DerivedEffects {
    DerivedEffects::of(contract)
}
