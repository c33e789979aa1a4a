//! Pages that must keep up with the code.

use super::Faults;

/// The changelog.
pub(super) const CHANGELOG: &str = "CHANGELOG.md";
/// The table of error codes.
pub(super) const CODES: &str = "env-contracts/src/error/codes.rs";
/// The page about them.
pub(super) const ERRORS: &str = "docs/errors.md";

/// The first section is `## [Unreleased]` or a version.
pub(super) fn changelog_faults(text: &str) -> Faults {
    let heading = text.lines().find_map(|line| line.strip_prefix("## "));
    let name = heading.map(|heading| heading.trim().trim_start_matches('['));
    if name.is_some_and(|name| name.starts_with("Unreleased") || name.starts_with(|first: char| first.is_ascii_digit()))
    {
        return Vec::new();
    }
    vec![format!("{CHANGELOG}: needs a first section `## [Unreleased]` or `## [1.2.3]`")]
}

/// Every code is on the page, as code.
pub(super) fn code_faults(table: &str, page: &str) -> Faults {
    let codes = codes(table);
    if codes.is_empty() {
        return vec![format!("{CODES}: no codes found; did the table's form change?")];
    }
    let on_page = |code: &str| page.contains(&format!("`{code}`"));
    let missing: Vec<_> = codes.into_iter().filter(|code| !on_page(code)).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    vec![format!("{ERRORS}: lacks {}: run `cargo xtask gen`", missing.join(", "))]
}

/// The codes of lines such as `Busy = "busy", exit 40, …`.
fn codes(table: &str) -> Vec<&str> {
    table
        .lines()
        .filter_map(|line| {
            let (code, rest) = line.split_once(" = \"")?.1.split_once('"')?;
            rest.starts_with(", exit ").then_some(code)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_opens_with_a_section() {
        for (text, expected) in [
            ("# Changelog\n\n## [Unreleased]\n", 0),
            ("# Changelog\n\n## Unreleased\n", 0),
            ("# Changelog\n\n## [0.1.0] - 2026-01-01\n", 0),
            ("# Changelog\n\n## Ideas\n", 1),
            ("", 1),
        ] {
            assert_eq!(changelog_faults(text).len(), expected, "{text}");
        }
    }

    #[test]
    fn a_code_that_is_not_on_the_page_is_found() {
        let table = "    /// Text.\n    A = \"a-code\", exit 1, http 200, retry false, \"x\";\n    \
                     B = \"b-code\", exit 2, http 200, retry false, \"a = \\\"b\\\"\";\n";
        assert_eq!(codes(table), ["a-code", "b-code"]);
        assert_eq!(code_faults(table, "## `a-code`\n## `b-code`\n"), Vec::<String>::new());
        assert_eq!(code_faults(table, "## `a-code`\nb-code\n").len(), 1);
        assert_eq!(code_faults("", "").len(), 1);
    }
}
