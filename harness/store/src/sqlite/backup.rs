//! A copy of the file while it is in use.

use std::path::Path;

use env_contracts::{Code, Problem};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::fault::{Fault, corrupt};
use super::{Sqlite, open};
use crate::random;

/// Pages copied at a time (4 MiB), between two looks at whether to go on.
const PAGES: i32 = 1024;

impl Sqlite {
    /// Writes a copy of everything that is committed now, in one file that can
    /// stand in the store's place. It has its name only when it is whole and
    /// was read back.
    pub fn backup(&self, to: &Path) -> Result<(), Problem> {
        if to.try_exists().is_ok_and(|exists| exists) {
            return Err(Problem::new(Code::Usage, format!("`{}` exists already", to.display()))
                .with_help("name a file that does not exist; nothing is overwritten"));
        }
        let draft = open::with_suffix(to, &format!("-new-{}", random::id()?));
        let io = |error: std::io::Error| open::unavailable(to, &error.to_string());
        let copied = || {
            fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(io)?;
            copy(&self.path, &draft)?;
            fs_err::File::open(&draft).and_then(|file| file.sync_all()).map_err(io)?;
            // Unlike a renamed one, a link replaces nothing.
            fs_err::hard_link(&draft, to).map_err(io)
        };
        let copied = copied().map_err(|fault| fault.problem(to));
        // It is a second name of the copy, or what is left of a failed one.
        let _ = fs_err::remove_file(&draft);
        copied
    }
}

fn copy(from: &Path, to: &Path) -> Result<(), Fault> {
    let source = open::reader(from)?;
    // One moment of the store, however long the copy takes; without it, each
    // commit would make the copy begin again.
    source.execute_batch("BEGIN")?;
    open::database_id(&source)?;
    let mut copy = Connection::open_with_flags(to, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = Backup::new(&source, &mut copy)?;
    while backup.step(PAGES)? != StepResult::Done {}
    drop(backup);
    // In one file, without a log beside it.
    copy.query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))?;
    let verdict: String = copy.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    if verdict != "ok" || open::database_id(&copy)? != open::database_id(&source)? {
        return Err(Fault::Problem(corrupt(format!("the copy of `{}` is damaged: {verdict}", from.display()))));
    }
    Ok(())
}
