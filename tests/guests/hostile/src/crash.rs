//! Ending badly.

use serde_json::Value;

use crate::Told;

/// Calls itself until the stack is full.
pub(crate) fn overflow(told: &Told) -> Value {
    fn deeper(depth: u64) -> u64 {
        if depth == u64::MAX {
            return 0;
        }
        // Kept alive, so that no frame can be left out.
        let frame = std::hint::black_box([depth; 64]);
        let below = deeper(depth + 1);
        below.wrapping_add(std::hint::black_box(frame)[0])
    }
    Value::from(deeper(told.number("from", 0)))
}

/// Panics: a message on the standard error, then a trap.
pub(crate) fn panic(told: &Told) -> ! {
    panic!("{}", told.text("text", "told to"))
}

/// Ends with `code`; 3 by default.
pub(crate) fn exit(told: &Told) -> ! {
    let code = told.number("code", 3);
    if told.flag("plain") {
        // The older call of WASI knows success and failure only.
        std::process::exit(i32::try_from(code).unwrap_or(1));
    }
    crate::host::exit(u8::try_from(code).unwrap_or(u8::MAX))
}
