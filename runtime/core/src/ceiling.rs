//! The operator's ceiling.

use env_contracts::Ceiling;

/// The ceiling that holds until the operator writes another, as TOML.
pub const DEFAULT_CEILING: &str = include_str!("ceiling.toml");

/// The default ceiling.
pub fn default_ceiling() -> Ceiling {
    Ceiling::from_toml(DEFAULT_CEILING).unwrap_or_else(|error| unreachable!("the shipped ceiling is valid: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_ceiling_is_what_the_documentation_says() {
        let bounds = default_ceiling().install;
        assert!(bounds.network.egress.is_empty() && bounds.secrets.is_empty());
        assert_eq!(bounds.limits.memory.unwrap().to_string(), "512MiB");
        assert_eq!(bounds.limits.wall.unwrap().to_string(), "1m");
    }
}
