//! Turns a tool's `tool.toml` into the JSON that its `describe()` answers. For
//! build scripts.
//!
//! Not a check of the manifest: it knows nothing but the syntax, and
//! `glovebox tool check` holds what is built against what is registered.
//!
//! ```
//! assert_eq!(glovebox_manifest::json("name = \"text.count\"").unwrap(), r#"{"name":"text.count"}"#);
//! ```

use std::path::PathBuf;
use std::{env, fs};

/// A manifest's TOML as JSON.
///
/// # Errors
/// If it is no TOML, with the line.
pub fn json(text: &str) -> Result<String, toml::de::Error> {
    toml::from_str::<serde_json::Value>(text).map(|manifest| manifest.to_string())
}

/// Writes `$OUT_DIR/manifest.json` from `tool.toml` beside the package's
/// manifest: what a `build.rs` calls.
///
/// # Panics
/// When run outside a build script, or when `tool.toml` is missing or no TOML:
/// the build stops with the reason.
pub fn embed() {
    println!("cargo::rerun-if-changed=tool.toml");
    let source = fs::read_to_string("tool.toml").expect("tool.toml beside Cargo.toml");
    let manifest = json(&source).expect("tool.toml is TOML");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("run by a build script"));
    fs::write(out.join("manifest.json"), manifest).expect("$OUT_DIR is writable");
}
