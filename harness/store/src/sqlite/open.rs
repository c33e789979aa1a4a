//! Opening the file: what it must be, and how it is made.

use std::path::{Path, PathBuf};
use std::time::Duration;

use env_contracts::{Code, Id, Problem};
use fs_err::os::unix::fs::OpenOptionsExt as _;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior};

use super::fault::{Fault, corrupt};
use crate::random;

/// Marks the file as ours: "GLVB".
const APPLICATION: i32 = 0x474c_5642;

/// From an empty file to the first version, from there to the second, and so
/// on. What stands here never changes.
const MIGRATIONS: &[&str] = &[include_str!("schema.v1.sql"), include_str!("schema.v2.sql")];

/// The version of the file that this program reads and writes. An older one is
/// brought up to it as it is opened.
pub const VERSION: i32 = 2;

/// From here on it knows sessions, tasks, turns and questions.
pub(super) const WITH_TASKS: i32 = 2;

/// How long a write waits for other processes. Theirs take milliseconds, and
/// many seconds where a sync waits behind all else that the disk has to write;
/// one that was stopped in the middle would hold everybody up.
const BUSY: Duration = Duration::from_secs(30);

/// How long between two tries.
const BUSY_STEP: Duration = Duration::from_millis(1);

/// Pages of the write-ahead log after which it is copied into the file (16
/// MiB). Copying takes milliseconds; with this it happens rarely enough that
/// 99 of 100 commits never meet it.
const CHECKPOINT_PAGES: i32 = 4096;

/// What the writer keeps of the file in memory, in KiB.
const WRITER_CACHE: i32 = 16 * 1024;

/// What each reader keeps of it.
const READER_CACHE: i32 = 2 * 1024;

/// Statements kept prepared by each connection: there are about so many.
const STATEMENTS: usize = 64;

/// The file that a store is in.
pub(super) fn file(folder: &Path) -> PathBuf {
    folder.join("store.db")
}

/// The connection that writes.
pub(super) fn writer(path: &Path, make: bool) -> Result<Connection, Fault> {
    if !exists(path)? {
        if !make {
            return Err(unavailable(path, "there is no such file"));
        }
        create(path)?;
    }
    look(path)?;
    let mut sql = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // A backup that was put in its place is not.
    write_ahead(&sql, path)?;
    // Durable once a commit is answered: the log is synced before that.
    sql.pragma_update(None, "synchronous", "FULL")?;
    // What a savepoint can roll back is kept in memory, not in a file for each.
    sql.pragma_update(None, "temp_store", "MEMORY")?;
    sql.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    sql.pragma_update(None, "cache_size", -WRITER_CACHE)?;
    // What is erased is overwritten in the file.
    sql.pragma_update(None, "secure_delete", true)?;
    migrate(&mut sql, MIGRATIONS)?;
    Ok(sql)
}

/// A connection that only reads.
pub(super) fn reader(path: &Path) -> Result<Connection, Fault> {
    let sql = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    sql.pragma_update(None, "cache_size", -READER_CACHE)?;
    Ok(sql)
}

fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, Fault> {
    let mut sql = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    wait_for_others(&mut sql)?;
    sql.set_prepared_statement_cache_capacity(STATEMENTS);
    // Else a statement is compiled anew whenever its bounds change.
    sql.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    Ok(sql)
}

/// Other processes are waited for, within bounds.
pub(super) fn wait_for_others(sql: &mut Connection) -> rusqlite::Result<()> {
    sql.busy_handler(Some(wait))
}

fn wait(times: i32) -> bool {
    let waited = BUSY_STEP.saturating_mul(times.unsigned_abs());
    if waited < BUSY {
        std::thread::sleep(BUSY_STEP);
    }
    waited < BUSY
}

/// Whether there is a file to open. One that lost its beginning is not
/// replaced.
fn exists(path: &Path) -> Result<bool, Fault> {
    let stat = |path: &Path| path.try_exists().map_err(|error| unavailable(path, &error.to_string()));
    if stat(path)? {
        return Ok(true);
    }
    let log = with_suffix(path, "-wal");
    if stat(&log)? {
        return Err(Fault::Problem(corrupt(format!(
            "`{}` is missing, and what was last written to it is still in `{}`",
            path.display(),
            log.display()
        ))));
    }
    Ok(false)
}

/// Looks without changing anything: is it ours, and do we know its version?
pub(super) fn look(path: &Path) -> Result<(), Fault> {
    if fs_err::metadata(path).map_err(|error| unavailable(path, &error.to_string()))?.len() == 0 {
        // SQLite would take it for a new one.
        return Err(Fault::Problem(corrupt(format!("`{}` is empty", path.display()))));
    }
    let sql = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let application: i32 = sql.pragma_query_value(None, "application_id", |row| row.get(0))?;
    if application != APPLICATION {
        return Err(Fault::Problem(corrupt(format!("`{}` is a database of another program", path.display()))));
    }
    let version = version(&sql)?;
    if version < 1 {
        // It gets one before it gets its name: somebody took it away.
        let message = format!("`{}` says that it has version {version}, and there is none below 1", path.display());
        return Err(Fault::Problem(corrupt(message)));
    }
    if version > VERSION {
        return Err(Fault::Problem(Problem::new(
            Code::StoreNewer,
            format!("`{}` has version {version}, and this program knows it up to {VERSION}", path.display()),
        )));
    }
    Ok(())
}

/// The version of the file.
pub(super) fn version(sql: &Connection) -> Result<i32, Fault> {
    Ok(sql.pragma_query_value(None, "user_version", |row| row.get(0))?)
}

/// Makes the file under another name and gives it its own when it is whole:
/// two processes can do so at once, and a crash leaves nothing half.
fn create(path: &Path) -> Result<(), Fault> {
    let id = random::id().map_err(Fault::Problem)?;
    let draft = with_suffix(path, &format!("-new-{id}"));
    let io = |error: std::io::Error| unavailable(path, &error.to_string());
    fs_err::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft).map_err(io)?;
    let made = fill(&draft, id.as_str());
    let placed = made.and_then(|()| match fs_err::hard_link(&draft, path) {
        // Another process was faster, and its file is as good.
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(io),
    });
    fs_err::remove_file(&draft).map_err(io)?;
    placed?;
    let folder = path.parent().unwrap_or(path);
    fs_err::File::open(folder).and_then(|folder| folder.sync_all()).map_err(io)
}

fn fill(draft: &Path, id: &str) -> Result<(), Fault> {
    let mut sql = connect(draft, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    sql.pragma_update(None, "synchronous", "FULL")?;
    sql.pragma_update(None, "application_id", APPLICATION)?;
    migrate(&mut sql, MIGRATIONS)?;
    sql.execute("INSERT INTO facts (name, value) VALUES ('id', ?)", [id.as_bytes()])?;
    write_ahead(&sql, draft)?;
    sql.close().map_err(|(_, error)| Fault::Sql(error))
}

/// Readers and the writer don't wait for each other.
fn write_ahead(sql: &Connection, path: &Path) -> Result<(), Fault> {
    let mode: String = sql.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(unavailable(path, "its file system can't share memory between processes, which SQLite needs"))
}

/// Brings an older file up to date, all steps or none.
fn migrate(sql: &mut Connection, migrations: &[&str]) -> Result<(), Fault> {
    let wanted = i32::try_from(migrations.len()).unwrap_or(i32::MAX);
    if version(sql)? >= wanted {
        return Ok(());
    }
    let transaction = sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it while we waited.
    let from = usize::try_from(version(&transaction)?).unwrap_or(0);
    for step in migrations.iter().skip(from) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "user_version", wanted)?;
    Ok(transaction.commit()?)
}

/// An empty store in memory, of the version that this one has.
pub(super) fn expected(sql: &Connection) -> Result<Connection, Fault> {
    let steps = usize::try_from(version(sql)?).unwrap_or_default().min(MIGRATIONS.len());
    let mut empty = Connection::open_in_memory()?;
    migrate(&mut empty, &MIGRATIONS[..steps])?;
    Ok(empty)
}

/// The id that the file got when it was made.
pub(super) fn database_id(sql: &Connection) -> Result<Id, Fault> {
    let id: Option<Vec<u8>> =
        sql.query_row("SELECT value FROM facts WHERE name = 'id'", [], |row| row.get(0)).optional()?;
    id.and_then(|id| str::from_utf8(&id).ok()?.parse().ok()).ok_or_else(|| Fault::Damaged("it has lost its id".into()))
}

/// The path with this behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// The folder or the file can't be used.
pub(super) fn unavailable(path: &Path, why: &str) -> Fault {
    Fault::Problem(Problem::new(Code::StateUnavailable, format!("`{}`: {why}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(sql: &Connection, pragma: &str) -> i64 {
        sql.pragma_query_value(None, pragma, |row| row.get(0)).unwrap()
    }

    #[test]
    fn what_is_answered_is_synced_and_what_is_erased_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let sql = writer(&file(folder.path()), true).unwrap();
        assert_eq!(setting(&sql, "synchronous"), 2, "FULL: the log is synced at each commit");
        assert_eq!(setting(&sql, "secure_delete"), 1);
        assert_eq!(setting(&sql, "user_version"), i64::from(VERSION));
        let mode: String = sql.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
        let reader = reader(&file(folder.path())).unwrap();
        assert!(reader.execute("DELETE FROM facts", []).is_err(), "readers can't write");
    }

    #[test]
    fn an_older_file_is_brought_up_to_date_once() {
        let folder = tempfile::tempdir().unwrap();
        let mut sql = writer(&file(folder.path()), true).unwrap();
        let next = "CREATE TABLE more (x); INSERT INTO more SELECT count(*) FROM facts";
        let steps = [MIGRATIONS, &[next]].concat();
        for _ in 0..2 {
            migrate(&mut sql, &steps).unwrap();
            assert_eq!(version(&sql).unwrap(), VERSION + 1);
        }
        assert_eq!(sql.query_row("SELECT x FROM more", [], |row| row.get::<_, i64>(0)).unwrap(), 1);

        // A step that fails leaves the file as it was.
        let steps = [&steps[..], &["CREATE TABLE further (x); CREATE TABLE more (x)"]].concat();
        assert!(migrate(&mut sql, &steps).is_err());
        assert_eq!(version(&sql).unwrap(), VERSION + 1);
        assert!(sql.prepare("SELECT * FROM further").is_err());
    }

    #[test]
    fn the_version_is_the_number_of_steps() {
        assert_eq!(usize::try_from(VERSION).unwrap(), MIGRATIONS.len());
    }
}
