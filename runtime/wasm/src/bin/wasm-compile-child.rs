//! Nothing but the compile child, for this crate's tests and benches. The
//! product's binary does the same when it is started as `glovebox __compile`.

use std::process::ExitCode;

fn main() -> ExitCode {
    glovebox_wasm::compile_child_main()
}
