//! Whether what was erased is in no file any more.

use std::time::Duration;

use env_contracts::Problem;
use rusqlite::{Connection, OpenFlags};

use super::Sqlite;
use super::fault::Fault;

/// How long readers of other processes are waited for: theirs take
/// milliseconds, and who reads for longer is named instead.
const WAIT: Duration = Duration::from_secs(1);

impl Sqlite {
    /// Empties the write-ahead log into the file, where what was erased is
    /// overwritten. `false`: a process that reads, or one that writes without
    /// a pause, kept it from being emptied, and what was erased may still be in it.
    ///
    /// # Errors
    /// Those of the file.
    pub fn scrubbed(&self) -> Result<bool, Problem> {
        let emptied = || {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let sql = Connection::open_with_flags(&self.path, flags)?;
            sql.busy_timeout(WAIT)?;
            // What is copied now is overwritten there, as by the writer.
            sql.pragma_update(None, "secure_delete", true)?;
            Ok(sql.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0))? == 0)
        };
        emptied().map_err(|fault: Fault| fault.problem(&self.path))
    }
}
