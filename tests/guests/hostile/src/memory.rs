//! Using memory up.

use serde_json::{Value, json};

use crate::Told;

/// Allocates and fills `bytes` the usual way, and says before that it does: who
/// has not enough ends.
pub(crate) fn allocate(told: &Told) -> Value {
    eprintln!("allocating");
    let mut blocks = Vec::new();
    let mut left = told.number("bytes", u64::MAX);
    while left > 0 {
        let size = left.min(1 << 20);
        blocks.push(vec![1_u8; size as usize]);
        left -= size;
    }
    json!({ "allocated": std::hint::black_box(blocks).iter().map(Vec::len).sum::<usize>() })
}
