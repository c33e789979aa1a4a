//! The tests of this crate, in one program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod approvers;
mod checkpoints;
mod credentials;
mod files;
mod golden;
mod statements;
mod witness;

use std::path::PathBuf;

use env_contracts::{Code, Diagnose as _, Name};
use glovebox_identity::{Approvers, IdentityError};

/// A passphrase that is taken.
const PASSPHRASE: &str = "four words that rhyme";

/// When approvers are added here.
const NOW_MS: u64 = 1_800_000_000_000;

/// A folder with a list that holds one approver, `mira`.
fn one_approver() -> (tempfile::TempDir, PathBuf, Approvers) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("approvers.toml");
    let mut approvers = Approvers::load(&path).unwrap();
    approvers.add(&name("mira"), PASSPHRASE, NOW_MS).unwrap();
    (folder, path, approvers)
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// The error's code and whole message.
fn problem<T>(result: Result<T, IdentityError>) -> (Code, String) {
    let error = result.map(drop).unwrap_err();
    let problem = env_contracts::Problem::of(&error);
    assert_eq!(problem.code, error.code());
    (problem.code, problem.message)
}
