//! Our PID 1, carried in this program.

use std::path::{Path, PathBuf};

use env_contracts::{Code, Digest, Problem};
use glovebox_runtime::io_problem;
use sha2::{Digest as _, Sha256};

/// The program for this processor: static, so that it runs in any image.
#[cfg(target_arch = "x86_64")]
const PROGRAM: &[u8] = include_bytes!("../../supervisor/dist/x86_64");
#[cfg(target_arch = "aarch64")]
const PROGRAM: &[u8] = include_bytes!("../../supervisor/dist/aarch64");

/// Puts the program into a folder of ours, under the name of its content, and
/// tells where it is. What lies there already has to be that content.
///
/// # Errors
/// `state-unavailable`, `disk-full`.
pub(crate) fn place(folder: &Path) -> Result<PathBuf, Problem> {
    let digest = Digest::from_bytes(Sha256::digest(PROGRAM).into());
    let path = folder.join(format!("supervisor-{}", digest.short()));
    let failed = |error: std::io::Error| {
        io_problem(&format!("cannot place `{}`", path.display()), Code::StateUnavailable, &error)
    };
    if fs_err::read(&path).is_ok_and(|there| there == PROGRAM) {
        return Ok(path);
    }
    glovebox_runtime::private_dir(folder).map_err(failed)?;
    // Whole or not at all: another process may be starting it right now.
    let new = folder.join(format!("supervisor-{}.new", uuid::Uuid::new_v4().simple()));
    let write = || -> std::io::Result<()> {
        use fs_err::os::unix::fs::OpenOptionsExt as _;
        use std::io::Write as _;
        let mut options = fs_err::OpenOptions::new();
        options.write(true).create_new(true).mode(0o555);
        let mut file = options.open(&new)?;
        file.write_all(PROGRAM)?;
        // Whatever the umask is, everybody in a container has to run it.
        file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o555))?;
        file.sync_all()?;
        fs_err::rename(&new, &path)
    };
    write().map_err(|error| {
        let _ = fs_err::remove_file(&new);
        failed(error)
    })?;
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_small_whole_and_put_right() {
        assert!(PROGRAM.len() <= 3 << 19, "{} bytes: budget 1.5 MiB", PROGRAM.len());
        assert!(PROGRAM.starts_with(b"\x7fELF"));
        let folder = tempfile::tempdir().unwrap();
        let path = place(folder.path()).unwrap();
        fs_err::remove_file(&path).unwrap();
        fs_err::write(&path, "another").unwrap();
        assert_eq!(place(folder.path()).unwrap(), path);
        assert_eq!(fs_err::read(&path).unwrap(), PROGRAM);
        assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1);
    }
}
