//! Why a policy can't be loaded, problem by problem.

use std::fmt;

use env_contracts::{Code, Diagnose};
use serde::Serialize;

/// One thing that is wrong with a policy.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyProblem {
    /// The file, as it is called below the policy's folder.
    pub file: String,
    /// The line, counted from 1. `None`: the file as a whole.
    pub line: Option<usize>,
    /// What is wrong.
    pub message: String,
}

impl PolicyProblem {
    pub(crate) fn new(file: &str, line: Option<usize>, message: impl Into<String>) -> Self {
        Self { file: file.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// Why a policy can't be loaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// A file or the folder can't be read.
    #[error("policy: {0}")]
    Unreadable(String),
    /// What was read can't be a policy.
    #[error("policy: {}", listed(.0))]
    Invalid(Vec<PolicyProblem>),
}

impl PolicyError {
    /// Every problem.
    pub fn problems(&self) -> &[PolicyProblem] {
        match self {
            Self::Unreadable(_) => &[],
            Self::Invalid(problems) => problems,
        }
    }
}

impl Diagnose for PolicyError {
    fn code(&self) -> Code {
        Code::PolicyInvalid
    }
}

/// How many problems stand in one message; `policy check` lists all.
const SHOWN: usize = 3;

fn listed(problems: &[PolicyProblem]) -> String {
    let mut text: Vec<String> = problems.iter().take(SHOWN).map(PolicyProblem::to_string).collect();
    if problems.len() > SHOWN {
        text.push(format!("and {} more", problems.len() - SHOWN));
    }
    text.join("; ")
}

/// The line of a byte offset, counted from 1.
pub(crate) fn line_at(text: &str, offset: usize) -> usize {
    1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
}
