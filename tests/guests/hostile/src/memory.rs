//! Using memory up.

use serde_json::{Value, json};

use crate::Told;

/// The size of a page of linear memory.
const PAGE: usize = 64 << 10;

/// Grows the memory by `pages` at a time until that is refused or `bytes` are
/// reached, and writes to every page if `touch`.
pub(crate) fn grow(told: &Told) -> Value {
    let step = told.number("pages", 16) as usize;
    let most = told.number("bytes", u64::MAX);
    let (mut grown, mut refused) = (0_u64, false);
    while grown < most {
        let before = core::arch::wasm32::memory_grow(0, step);
        if before == usize::MAX {
            refused = true;
            break;
        }
        grown += (step * PAGE) as u64;
        if told.flag("touch") {
            for page in before..before + step {
                // SAFETY: the page was added by the call above; nothing else knows it.
                unsafe { ((page * PAGE) as *mut u8).write_volatile(1) };
            }
        }
    }
    json!({ "grown": grown, "pages": core::arch::wasm32::memory_size(0), "refused": refused })
}

/// Allocates and fills `bytes` the usual way: out of memory is a trap.
pub(crate) fn allocate(told: &Told) -> Value {
    let mut blocks = Vec::new();
    let mut left = told.number("bytes", u64::MAX);
    while left > 0 {
        let size = left.min(1 << 20);
        blocks.push(vec![1_u8; size as usize]);
        left -= size;
    }
    json!({ "allocated": std::hint::black_box(blocks).iter().map(Vec::len).sum::<usize>() })
}
