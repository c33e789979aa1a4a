//! Nothing but the processes that this crate starts, for its tests and benches.
//! The product's binary does the same.

use std::process::ExitCode;

fn main() -> ExitCode {
    glovebox_wasm::maybe_enter_cell().unwrap_or(ExitCode::FAILURE)
}
