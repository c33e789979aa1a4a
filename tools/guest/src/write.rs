//! Writing files that others may be reading.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};

use sha2::{Digest as _, Sha256};

use crate::Failure;
use crate::path::resolve;

/// How many names for a new file are tried beside the old one. Only calls that
/// were ended by force leave such files behind.
const MOST_TRIES: u32 = 100;

/// What a caller's path of a file to be written leads to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Nothing: it may be made.
    Free,
    /// A regular file of that size.
    File(u64),
}

/// Looks at what lies at a path that is to be written.
///
/// # Errors
/// A [`Failure`] where no file can be written: a folder, a link, a device.
pub fn place(path: &str) -> Result<Place, Failure> {
    if path.is_empty() || path.ends_with('/') {
        return Err(Failure::invalid(format!("`{path}` names no file")));
    }
    match fs::symlink_metadata(resolve(path)) {
        Ok(facts) if facts.is_file() => Ok(Place::File(facts.len())),
        // A rename would replace the link, and what it leads to would stay.
        Ok(facts) if facts.is_symlink() => {
            Err(Failure::invalid(format!("`{path}` is a symbolic link; name the file that it leads to")))
        }
        Ok(facts) if facts.is_dir() => Err(Failure::invalid(format!("`{path}` is a folder; name a file"))),
        Ok(_) => Err(Failure::invalid(format!("`{path}` is not a regular file"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && error.raw_os_error().is_some() => Ok(Place::Free),
        Err(error) => Err(Failure::writing(path, &error)),
    }
}

/// New content of a file, written beside it and not yet in its place. Gone
/// with this, unless it is [put there](Self::commit).
#[derive(Debug)]
pub struct Staged {
    path: String,
    beside: Option<String>,
}

impl Staged {
    /// Writes the content beside the file.
    ///
    /// # Errors
    /// A [`Failure`] about the file that was to be written.
    pub fn new(path: &str, content: &[u8]) -> Result<Self, Failure> {
        let failed = |error| Failure::writing(path, &error);
        let (beside, mut file) = beside(&resolve(path)).map_err(failed)?;
        let staged = Self { path: path.to_owned(), beside: Some(beside) };
        file.write_all(content).and_then(|()| file.sync_all()).map_err(failed)?;
        Ok(staged)
    }

    /// Puts it into its place in one step, over what is there.
    ///
    /// # Errors
    /// A [`Failure`] about the file, which then is what it was.
    pub fn commit(mut self) -> Result<(), Failure> {
        if let Some(beside) = &self.beside {
            fs::rename(beside, resolve(&self.path)).map_err(|error| Failure::writing(&self.path, &error))?;
            self.beside = None;
        }
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Some(beside) = &self.beside {
            // What can't be removed now is left; nothing reads it.
            let _ = fs::remove_file(beside);
        }
    }
}

/// A new file in the folder of an absolute path: only there a rename is one step.
fn beside(absolute: &str) -> io::Result<(String, File)> {
    let folder = absolute.rsplit_once('/').map_or("", |(folder, _)| folder);
    for number in 0..MOST_TRIES {
        let name = format!("{folder}/.glovebox-{number}.tmp");
        match OpenOptions::new().write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!(
        "{MOST_TRIES} files of the name `.glovebox-*.tmp` are left in its folder; remove them"
    )))
}

/// Makes the folders on the way to a file.
///
/// # Errors
/// A [`Failure`] about the file.
pub fn make_parents(path: &str) -> Result<(), Failure> {
    let absolute = resolve(path);
    let folder = absolute.rsplit_once('/').map_or("", |(folder, _)| folder);
    // Asked first: to make a folder that is mounted is no usable path to WASI.
    if fs::metadata(folder).is_ok_and(|facts| facts.is_dir()) {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| Failure::writing(path, &error))
}

/// The sha256 of bytes in lower-case hex.
pub fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).into())
}

/// A sha256 in lower-case hex.
pub fn hex(digest: [u8; 32]) -> String {
    use std::fmt::Write as _;
    digest.iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn staged_content_is_there_at_once_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("glovebox-guest-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = format!("{}/a", folder.display());
        let names = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
        assert_eq!(place(&path).unwrap(), Place::Free);
        drop(Staged::new(&path, b"never").unwrap());
        assert!(names().is_empty(), "what was staged is left behind: {:?}", names());
        fs::write(&path, "old").unwrap();
        let staged = Staged::new(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old");
        // Two at once don't meet.
        let other = Staged::new(&path, b"other").unwrap();
        staged.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        drop(other);
        assert_eq!(names(), ["a"]);
        assert_eq!(place(&path).unwrap(), Place::File(3));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn what_is_no_file_is_not_written() {
        let folder = std::env::temp_dir().join(format!("glovebox-guest-places-{}", std::process::id()));
        fs::create_dir_all(folder.join("folder")).unwrap();
        let at = |name: &str| place(&format!("{}/{name}", folder.display())).map_err(|failure| failure.message);
        assert!(at("folder").unwrap_err().contains("is a folder"));
        assert!(at("folder/").unwrap_err().contains("names no file"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("nowhere", folder.join("link")).unwrap();
            assert!(at("link").unwrap_err().contains("symbolic link"));
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
