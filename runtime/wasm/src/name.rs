//! Names that strangers chose, made fit to be shown.

use sha2::{Digest, Sha256};

/// The longest name that is shown whole.
const NAME_MAX: usize = 128;
/// How much of a longer one is shown.
const NAME_SHOWN: usize = 96;
/// Hex digits of its hash that tell it from others.
const HASH_SHOWN: usize = 12;

/// The name itself, or for a long one its beginning and a hash of the whole.
pub(crate) fn bounded(name: &str) -> String {
    if name.len() <= NAME_MAX {
        return name.to_owned();
    }
    let hash = crate::hex(&Sha256::digest(name.as_bytes()));
    format!("{}…{}", &name[..name.floor_char_boundary(NAME_SHOWN)], &hash[..HASH_SHOWN])
}

#[cfg(test)]
mod tests {
    use super::bounded;

    #[test]
    fn long_names_differ_and_stay_short() {
        let one = bounded(&"ä".repeat(200));
        let two = bounded(&("ä".repeat(199) + "b"));
        assert!(one.len() < 130 && two.len() < 130);
        assert_ne!(one, two);
        assert_eq!(bounded("wasi:cli/run@0.2.0"), "wasi:cli/run@0.2.0");
    }
}
