//! Secrets in files of their own.

use std::path::Path;

use env_contracts::Code;
use zeroize::Zeroizing;

use crate::error::IdentityError;
use crate::guarded::Guarded;

/// What a file holds that is its owner's alone to read; `code` is what faults
/// of it are called.
///
/// # Errors
/// Of that code where it is missing, is no text, or others could read or have
/// written it; and the host's.
pub fn read_secret(path: &Path, code: Code) -> Result<Zeroizing<String>, IdentityError> {
    let file = Guarded::alone_with(path, code);
    file.read()?.ok_or_else(|| file.invalid("there is no such file"))
}
