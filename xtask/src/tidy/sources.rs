//! What every crate has: the workspace's lints, and docs that open with an
//! example that runs.

use super::Faults;

/// `[lints] workspace = true`, without which a crate sets its own rules.
pub(super) fn manifest_faults(folder: &str, manifest: &str) -> Faults {
    let lints = manifest
        .parse::<toml::Table>()
        .ok()
        .and_then(|table| table.get("lints").and_then(|lints| lints.get("workspace")).and_then(toml::Value::as_bool));
    if lints == Some(true) {
        return Vec::new();
    }
    vec![format!("{folder}/Cargo.toml: add `[lints]` with `workspace = true`")]
}

/// A crate opens with `//!`; a library's docs hold an example that runs.
pub(super) fn docs_faults(path: &str, text: &str, is_lib: bool) -> Faults {
    if !text.starts_with("//!") {
        return vec![format!("{path}: must open with `//!` docs: what it is and what it is not")];
    }
    if is_lib && !has_doctest(text) {
        return vec![format!("{path}: the crate's docs have no example that runs: add a ``` block of Rust")];
    }
    Vec::new()
}

/// Whether the crate's docs contain a code block that rustdoc runs.
fn has_doctest(text: &str) -> bool {
    let mut inside = false;
    let docs = text.lines().map_while(|line| line.strip_prefix("//!"));
    for fence in docs.filter_map(|line| line.trim().strip_prefix("```")) {
        if !inside && matches!(fence, "" | "rust") {
            return true;
        }
        inside = !inside;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert_eq!(manifest_faults("a", "[lints]\nworkspace = true\n"), Vec::<String>::new());
        assert_eq!(manifest_faults("a", "[lints]\nworkspace = false\n").len(), 1);
        assert_eq!(manifest_faults("a", "[package]\nname = \"a\"\n").len(), 1);
        assert_eq!(manifest_faults("a", "# [lints]\n# workspace = true\n").len(), 1);
    }

    #[test]
    fn a_crate_without_docs_or_example_is_found() {
        for (text, is_lib, expected) in [
            ("//! What.\n//!\n//! ```\n//! let a = 1;\n//! ```\n", true, 0),
            ("//! What.\n//! ```text\n//! x\n//! ```\n//! ```\n//! f();\n//! ```\n", true, 0),
            ("//! What.\n", true, 1),
            ("//! What.\n//! ```text\n//! not run\n//! ```\n", true, 1),
            ("//! What.\n//! ```ignore\n//! not run\n//! ```\n", true, 1),
            // An example of something else further down is not the crate's.
            ("//! What.\npub mod a;\n//! ```\n//! f();\n//! ```\n", true, 1),
            ("//! What.\n", false, 0),
            ("fn main() {}\n", false, 1),
        ] {
            assert_eq!(docs_faults("a", text, is_lib).len(), expected, "{text}");
        }
    }
}
