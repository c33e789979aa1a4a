//! Printing without end.

use std::io::{self, Write};

use serde_json::{Value, json};

use crate::Told;

/// How much is printed where nothing else was said.
const FLOOD: u64 = 1 << 30;

/// Prints `bytes` to the standard output; 1 GiB by default.
pub(crate) fn stdout(told: &Told) -> Value {
    flood(&mut io::stdout().lock(), told);
    // Not to the standard output: its content is what is being tested.
    eprintln!("{}", json!({ "printed": told.number("bytes", FLOOD) }));
    std::process::exit(0)
}

/// Prints `bytes` to the standard error; 1 GiB by default.
pub(crate) fn stderr(told: &Told) -> Value {
    let printed = flood(&mut io::stderr().lock(), told);
    json!({ "printed": printed })
}

/// Numbered lines of 64 bytes, so that a test can tell which part was kept.
fn flood(stream: &mut impl Write, told: &Told) -> u64 {
    let bytes = told.number("bytes", FLOOD);
    let (mut printed, mut line) = (0_u64, 0_u64);
    while printed < bytes {
        let mut block = Vec::with_capacity(64 << 10);
        while block.len() < 64 << 10 {
            writeln!(block, "{line:063}").expect("memory");
            line += 1;
        }
        block.truncate(usize::try_from(bytes - printed).unwrap_or(usize::MAX).min(block.len()));
        stream.write_all(&block).expect("a stream that takes it");
        printed += block.len() as u64;
    }
    stream.flush().expect("a stream that takes it");
    printed
}

/// Prints exactly `bytes`, a list of numbers, and nothing else.
pub(crate) fn bytes(told: &Told) -> ! {
    let bytes: Vec<u8> = told.numbers("bytes").filter_map(|byte| u8::try_from(byte).ok()).collect();
    io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush()).expect("a stream that takes it");
    std::process::exit(0)
}

/// A text of `bytes` bytes, as one JSON document.
pub(crate) fn large_result(told: &Told) -> Value {
    Value::from("x".repeat(usize::try_from(told.number("bytes", 64 << 20)).unwrap_or(usize::MAX)))
}
