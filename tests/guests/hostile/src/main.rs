//! A command that misbehaves as it is told: the guest of the adversarial tests.
//!
//! The standard input is one JSON document, `{"do": BEHAVIOUR, …}`. Whatever
//! comes back to the guest is printed as one JSON document, so that a test can
//! tell "was refused, with this error" from "was never tried". The behaviours
//! and what a sandbox must make of them are listed in `../README.md`.

mod crash;
mod files;
mod flood;
mod handles;
mod memory;
mod paths;
mod time;

/// The host: what the same request is where it is WASI, and where it is Linux.
#[cfg_attr(target_os = "wasi", path = "wasi/mod.rs")]
#[cfg_attr(target_os = "linux", path = "linux/mod.rs")]
mod host;

use std::io::Read as _;

use serde_json::{Value, json};

/// What a behaviour was told.
pub(crate) struct Told(Value);

impl Told {
    /// A text, or the default.
    pub(crate) fn text<'a>(&'a self, key: &str, default: &'a str) -> &'a str {
        self.0[key].as_str().unwrap_or(default)
    }

    /// A number, or the default.
    pub(crate) fn number(&self, key: &str, default: u64) -> u64 {
        self.0[key].as_u64().unwrap_or(default)
    }

    /// A switch; off where nothing was said.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.0[key].as_bool().unwrap_or(false)
    }

    /// A list of texts.
    pub(crate) fn list(&self, key: &str) -> Vec<&str> {
        self.0[key].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// A list of numbers.
    pub(crate) fn numbers(&self, key: &str) -> impl Iterator<Item = u64> {
        self.0[key].as_array().into_iter().flatten().filter_map(Value::as_u64)
    }

    /// A list of objects, of each the texts under two keys.
    pub(crate) fn pairs(&self, key: &str, one: &str, other: &str) -> Vec<(&str, &str)> {
        let all = self.0[key].as_array().into_iter().flatten();
        all.filter_map(|pair| Some((pair[one].as_str()?, pair[other].as_str()?))).collect()
    }
}

fn main() {
    let mut stdin = Vec::new();
    std::io::stdin().read_to_end(&mut stdin).expect("a standard input");
    let told = Told(serde_json::from_slice(&stdin).unwrap_or_else(|_| json!({ "do": "nothing" })));
    let result = match told.text("do", "") {
        "loop" => time::spin(),
        "sleep" => time::sleep(&told),
        "print-then-hang" => time::print_then_hang(&told),
        "drip" => time::drip(&told),
        "allocate" => memory::allocate(&told),
        "open-files" => handles::open_files(&told),
        "streams" => host::streams(&told),
        "pollables" => host::pollables(&told),
        "random" => host::random(&told),
        "stdout" => flood::stdout(&told),
        "stderr" => flood::stderr(&told),
        "bytes" => flood::bytes(&told),
        "large-result" => flood::large_result(&told),
        "write-files" => files::write_all(&told),
        "write-file" => files::write(&told),
        "create-files" => files::create(&told),
        "set-size" => files::set_size(&told),
        "copy" => files::copy(&told),
        "open" => paths::open(&told),
        "read" => paths::read(&told),
        "escape" => paths::escape(&told),
        "list" => paths::list(&told),
        "symlink" => paths::symlink(&told),
        "link" => paths::link(&told),
        "rename" => paths::rename(&told),
        "remove" => paths::remove(&told),
        "make-folder" => paths::make_folder(&told),
        "set-times" => paths::set_times(&told),
        "surroundings" => host::dump(&stdin),
        "stack-overflow" => crash::overflow(&told),
        "unreachable" => host::trap(),
        "panic" => crash::panic(&told),
        "exit" => crash::exit(&told),
        "nothing" => json!({}),
        other => host::more(other, &told),
    };
    println!("{result}");
    // As most programs end that were refused something.
    if told.flag("fail") && result["refused"].is_string() {
        std::process::exit(1);
    }
}

/// How a refusal is printed.
pub(crate) fn refused(error: impl std::fmt::Debug) -> Value {
    json!({ "refused": format!("{error:?}") })
}
