//! The promise table: what an action can rely on, held against each backend.
//!
//! One row is a promise, one column a backend. A row sends requests through
//! the `ActionService`, as every door does, to guests that try to break the
//! promise, and looks at what came back and at the host afterwards. A promise
//! that a backend can't keep must be refused by it, by clause and before
//! anything runs; the table then says so, as it says of a promise that a
//! backend has no meaning for. `docs/promises.md` is this table; a full run
//! fails where the two differ, and `cargo xtask gen` writes it. What this
//! machine can't try is named and left as it was written down.
//!
//! What it is not: a test of planning, doors or stores for themselves; those
//! stand with their crates.
//!
//! It has no test harness: backends start this program anew as a helper.
//! Words on the command line choose rows by a part of their text, and
//! `--column container` one column.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a test program reports to whoever started it")]

mod act;
mod allowing;
mod columns;
mod engine;
mod guests;
mod house;
mod page;
mod rows;
mod seen;
mod table;
#[path = "../../runtime/container/tests/all/tar.rs"]
mod tar;

use std::process::ExitCode;

use table::{Selection, Table};

fn main() -> ExitCode {
    if let Some(code) = glovebox_wasm::maybe_enter_cell() {
        return code;
    }
    let words: Vec<String> = std::env::args().skip(1).collect();
    let selection = Selection::of(&words);
    if selection.list {
        for row in rows::all() {
            println!("{}: test", row.says);
        }
        return ExitCode::SUCCESS;
    }
    let table = Table::run(&selection);
    println!("{}", table.markdown());
    let kept = table.verdict();
    let well = match selection.write_to {
        Some(folder) => table.write(&folder),
        None if table.is_whole() && kept => table.compare(),
        None => kept,
    };
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
