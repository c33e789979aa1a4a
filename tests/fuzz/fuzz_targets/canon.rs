//! Any bytes, parsed as arguments. What is accepted must be a fixpoint, and
//! serde_json must read the same value from it.
#![no_main]

use env_contracts::canon::{Canonical, ParseLimits};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let limits = ParseLimits::default();
    let canonical = match Canonical::parse(bytes, limits) {
        Ok(canonical) => canonical,
        Err(error) => {
            let message = error.to_string();
            assert!(message.chars().all(|char| !char.is_control()), "{message:?}");
            return;
        }
    };
    let text = canonical.as_str();
    let again = Canonical::parse(text.as_bytes(), limits).expect("canonical text is acceptable");
    assert_eq!(again.as_str(), text);

    let received: Value = serde_json::from_slice(bytes).expect("serde_json accepts what we accept");
    assert_eq!(&received, canonical.value());
    // `==` takes 0.0 for -0.0; their canonical texts differ.
    assert_eq!(Canonical::from_value(&received).expect("it was accepted").as_str(), text);
});
