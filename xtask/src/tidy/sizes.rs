//! Files that a person can hold in mind.

use super::Faults;

/// Lines above which a file deserves a thought: a screenful of outline, one
/// concept.
const WARN: usize = 400;
/// Lines above which a file must be split.
const MAX: usize = 500;
/// The same for tests, which are mostly tables.
const MAX_TESTS: usize = 600;

/// A file that may be longer, up to a number of lines, with the reason.
pub(super) struct Allowed {
    path: &'static str,
    lines: usize,
    reason: &'static str,
}

/// The exceptions. One that is no longer needed is a fault.
pub(super) const ALLOWED: &[Allowed] = &[];

/// The lengths of all files.
#[derive(Default)]
pub(super) struct Sizes {
    files: Vec<(String, usize)>,
}

impl Sizes {
    pub(super) fn add(&mut self, path: &str, lines: usize) {
        self.files.push((path.to_owned(), lines));
    }

    /// Warnings and faults.
    pub(super) fn judge(&self, allowed: &[Allowed]) -> (Vec<String>, Faults) {
        let (mut warnings, mut faults) = (Vec::new(), Vec::new());
        for (path, lines) in &self.files {
            let exception = allowed.iter().find(|entry| entry.path == path);
            let max = exception.map_or(max(path), |entry| entry.lines);
            if *lines > max {
                faults.push(format!("{path}: {lines} lines, more than {max}: split it by concept"));
            } else if *lines > WARN && !is_test(path) && exception.is_none() {
                warnings.push(format!("{path}: {lines} lines, more than {WARN}"));
            }
        }
        for entry in allowed {
            let needed = self.files.iter().any(|(path, lines)| path == entry.path && *lines > max(path));
            if !needed {
                faults.push(format!(
                    "xtask/src/tidy/sizes.rs: the exception for {} ({}) is not needed: remove it",
                    entry.path, entry.reason
                ));
            }
        }
        (warnings, faults)
    }
}

fn max(path: &str) -> usize {
    if is_test(path) { MAX_TESTS } else { MAX }
}

fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "benches")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of warnings and faults for one file.
    fn check(path: &str, lines: usize, allowed: &[Allowed]) -> (usize, usize) {
        let mut sizes = Sizes::default();
        sizes.add(path, lines);
        let (warnings, faults) = sizes.judge(allowed);
        (warnings.len(), faults.len())
    }

    #[test]
    fn long_files_are_found() {
        assert_eq!(check("a/src/b.rs", WARN, &[]), (0, 0));
        assert_eq!(check("a/src/b.rs", WARN + 1, &[]), (1, 0));
        assert_eq!(check("a/src/b.rs", MAX, &[]), (1, 0));
        assert_eq!(check("a/src/b.rs", MAX + 1, &[]), (0, 1));
        assert_eq!(check("a/tests/b.rs", MAX_TESTS, &[]), (0, 0));
        assert_eq!(check("a/src/b_tests.rs", MAX_TESTS, &[]), (0, 0));
        assert_eq!(check("a/src/contests.rs", MAX_TESTS, &[]), (0, 1));
        assert_eq!(check("a/tests/b.rs", MAX_TESTS + 1, &[]), (0, 1));
    }

    #[test]
    fn an_exception_holds_for_its_lines_and_no_longer_than_needed() {
        let table = || [Allowed { path: "a/src/b.rs", lines: 700, reason: "one table" }];
        assert_eq!(check("a/src/b.rs", 700, &table()), (0, 0));
        assert_eq!(check("a/src/b.rs", 701, &table()), (0, 1));
        assert_eq!(check("a/src/b.rs", 300, &table()), (0, 1));
        assert_eq!(check("a/src/c.rs", 300, &table()), (0, 1));
    }
}
