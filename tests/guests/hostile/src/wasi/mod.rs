//! What the guest asks of WASI, where the other targets ask another host.

mod calls;
mod surroundings;

use serde_json::{Value, json};

pub(crate) use calls::{clock, exit, pollables, random, streams, trap, wait};
pub(crate) use surroundings::dump;

use crate::Told;

/// Folders and files, as the host is asked for them.
pub(crate) mod filesystem {
    pub(crate) use wasip2::filesystem::preopens::get_directories;
    pub(crate) use wasip2::filesystem::types::{
        Descriptor, DescriptorFlags, ErrorCode, NewTimestamp, OpenFlags, PathFlags,
    };

    /// A time of a file.
    pub(crate) fn timestamp(seconds: u64, nanoseconds: u32) -> NewTimestamp {
        NewTimestamp::Timestamp(wasip2::clocks::wall_clock::Datetime { seconds, nanoseconds })
    }
}

/// What only this target can try.
pub(crate) fn more(what: &str, told: &Told) -> Value {
    match what {
        "clock" => clock(told),
        "memory" => grow(told),
        other => json!({ "unknown": other }),
    }
}

/// The size of a page of linear memory.
const PAGE: usize = 64 << 10;

/// Grows the memory by `pages` at a time until that is refused or `bytes` are
/// reached, and writes to every page if `touch`.
fn grow(told: &Told) -> Value {
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
