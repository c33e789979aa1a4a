//! The files of a policy: of a folder, or the shipped ones.

use std::path::{Path, PathBuf};

use env_contracts::Digest;
use env_contracts::digest::Hasher;

use crate::error::{PolicyError, PolicyProblem};
use crate::rules::File;

/// The largest file of a policy. Nobody reads a longer one, and it is parsed
/// before every command.
const MAX_FILE: u64 = 1 << 20;
/// The most files of a policy, for the same reason.
const MAX_FILES: usize = 256;

/// The file of the approver classes.
pub(crate) const APPROVERS: &str = "approvers.toml";
/// The folder of the tests.
const TESTS: &str = "tests";

/// The files of the shipped policy, by their names in a policy's folder: its
/// rules, the classes of approvers, its tests.
pub const SHIPPED: [(&str, &str); 3] = [
    ("default.cedar", include_str!("../default/default.cedar")),
    (APPROVERS, include_str!("../default/approvers.toml")),
    ("tests/risks.toml", include_str!("../default/tests/risks.toml")),
];

/// The files of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Sources {
    pub(crate) rules: Vec<File>,
    pub(crate) approvers: Option<File>,
    pub(crate) tests: Vec<File>,
    /// What they were read from, folders first.
    pub(crate) paths: Vec<PathBuf>,
}

impl Sources {
    /// The files of a folder, or the shipped ones.
    pub(crate) fn read(dir: Option<&Path>) -> Result<Self, PolicyError> {
        dir.map_or_else(|| Ok(Self::shipped()), Self::of_folder)
    }

    fn shipped() -> Self {
        let file = |(name, text): (&str, &str)| File { name: name.to_owned(), text: text.to_owned() };
        let [rules, approvers, tests] = SHIPPED;
        Self { rules: vec![file(rules)], approvers: Some(file(approvers)), tests: vec![file(tests)], paths: Vec::new() }
    }

    fn of_folder(dir: &Path) -> Result<Self, PolicyError> {
        let mut sources = Self { paths: vec![dir.to_owned()], ..Self::default() };
        let mut problems = Vec::new();
        for (name, path) in entries(dir)? {
            match (name.as_str(), path.extension().and_then(|ext| ext.to_str())) {
                (APPROVERS, _) => sources.approvers = Some(file(&name, &path)?),
                (TESTS, _) => {
                    for (inner, path) in entries(&path)? {
                        if path.extension().is_some_and(|ext| ext == "toml") {
                            sources.tests.push(file(&format!("{TESTS}/{inner}"), &path)?);
                            sources.paths.push(path);
                        }
                    }
                }
                (_, Some("cedar")) => sources.rules.push(file(&name, &path)?),
                // Whoever put them there believes that they are read.
                (_, Some("toml")) => problems.push(PolicyProblem::new(&name, None, "nothing reads this file")),
                _ if path.is_dir() && !name.starts_with('.') => {
                    problems.push(PolicyProblem::new(&name, None, "nothing reads this folder: rules stand beside it"));
                    continue;
                }
                _ => continue,
            }
            sources.paths.push(path);
        }
        if sources.rules.is_empty() {
            let message = "no `*.cedar` file: every action would be denied";
            problems.push(PolicyProblem::new(&dir.display().to_string(), None, message));
        }
        if problems.is_empty() { Ok(sources) } else { Err(PolicyError::Invalid(problems)) }
    }

    /// The digest of what decides: rules and approvers, not tests.
    pub(crate) fn revision(&self) -> Digest {
        let mut hasher = Hasher::new("glovebox/policy/v1");
        for file in self.rules.iter().chain(&self.approvers) {
            hasher.part(&file.name, file.text.as_bytes());
        }
        hasher.finish()
    }
}

/// What is in a folder, by name.
fn entries(dir: &Path) -> Result<Vec<(String, PathBuf)>, PolicyError> {
    let unreadable = |error: std::io::Error| PolicyError::Unreadable(error.to_string());
    let mut out = Vec::new();
    for entry in fs_err::read_dir(dir).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        out.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        if out.len() > MAX_FILES {
            return Err(PolicyError::Unreadable(format!("more than {MAX_FILES} files in {}", dir.display())));
        }
    }
    out.sort();
    Ok(out)
}

fn file(name: &str, path: &Path) -> Result<File, PolicyError> {
    use std::io::Read as _;
    let unreadable = |error: std::io::Error| PolicyError::Unreadable(error.to_string());
    // A pipe would keep us waiting for whoever writes to it.
    if !fs_err::metadata(path).map_err(unreadable)?.is_file() {
        return Err(PolicyError::Unreadable(format!("{} is not a file", path.display())));
    }
    let mut text = String::new();
    let open = fs_err::File::open(path).map_err(unreadable)?;
    open.take(MAX_FILE + 1)
        .read_to_string(&mut text)
        .map_err(|error| PolicyError::Unreadable(format!("{}: {error}", path.display())))?;
    if text.len() as u64 > MAX_FILE {
        return Err(PolicyError::Unreadable(format!("{} is larger than {} KiB", path.display(), MAX_FILE >> 10)));
    }
    Ok(File { name: name.to_owned(), text })
}
