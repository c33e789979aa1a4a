//! Folders that are their user's alone.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Makes a folder, and those above it that are missing, for this user alone
/// whatever the umask is. One that is there stays as it is.
///
/// # Errors
/// The kernel's, with the path.
pub fn private_dir(path: &Path) -> io::Result<()> {
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", path.display())))
}
