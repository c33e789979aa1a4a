//! A command for WASI preview 1, kept as a core module: what a host must adapt.
//!
//! Prints its arguments, one a line, then its standard input; writes the same
//! to `/outputs/x` where that folder exists. Ends with the length of the
//! standard input, modulo 4.

use std::io::{Read as _, Write as _};

fn main() {
    let mut text: Vec<u8> = std::env::args().flat_map(|argument| (argument + "\n").into_bytes()).collect();
    let mut stdin = Vec::new();
    std::io::stdin().read_to_end(&mut stdin).expect("a standard input");
    text.extend(&stdin);
    std::io::stdout().write_all(&text).expect("a standard output");
    match std::fs::write("/outputs/x", &text) {
        Ok(()) => eprintln!("wrote /outputs/x"),
        Err(error) => eprintln!("did not write /outputs/x: {error}"),
    }
    std::process::exit((stdin.len() % 4) as i32)
}
