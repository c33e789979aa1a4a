//! Turns a tool's `tool.toml` into the JSON that its `describe()` answers. For
//! build scripts; it checks nothing but the syntax.
//!
//! ```no_run
//! // build.rs
//! glovebox_manifest::embed();
//! ```

use std::path::PathBuf;
use std::{env, fs};

/// Writes `$OUT_DIR/manifest.json` from `tool.toml` beside the package's manifest.
///
/// # Panics
/// When run outside a build script, or when `tool.toml` is missing or no TOML:
/// the build stops with the reason.
pub fn embed() {
    println!("cargo::rerun-if-changed=tool.toml");
    let source = fs::read_to_string("tool.toml").expect("tool.toml beside Cargo.toml");
    let manifest: serde_json::Value = toml::from_str(&source).expect("tool.toml is TOML");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("run by a build script"));
    fs::write(out.join("manifest.json"), manifest.to_string()).expect("$OUT_DIR is writable");
}
