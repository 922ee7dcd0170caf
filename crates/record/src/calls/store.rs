//! Opens the database, migrates it to the newest version, and moves it away if it is damaged.

use std::{
    fs::{self, OpenOptions},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, config::DbConfig};

use super::{
    CallIndexError,
    error::SqliteResultExt,
    flags,
    schema::{VERSIONS, newest},
};
use crate::{ChainHead, LineHash};

/// The `application_id` of our databases: `WNDL`.
const APPLICATION: i64 = 0x574e_444c;
/// Time between two attempts at operations for which SQLite does not wait by itself.
const RETRY_INTERVAL: Duration = Duration::from_millis(20);

pub(super) fn open(path: &Path, max_wait: Duration) -> Result<Connection, CallIndexError> {
    create(path)?;
    let until = Instant::now() + max_wait;
    loop {
        let db = Connection::open_with_flags(path, flags()).at_path(path)?;
        db.busy_timeout(max_wait).at_path(path)?;
        match prepare(db, path) {
            // If two processes create it at the same time, SQLite returns `SQLITE_BUSY` to one of
            // them at once.
            Err(CallIndexError::Locked { .. }) if Instant::now() < until => thread::sleep(RETRY_INTERVAL),
            done => return done,
        }
    }
}

/// Creates an empty file with mode 0600; SQLite would create one that other users can read.
fn create(path: &Path) -> Result<(), CallIndexError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(CallIndexError::Unusable { path: path.to_owned(), problem: error.to_string() }),
    }
}

/// Checks that a database is ours and not of a newer version, and migrates it to the newest
/// version.
pub(super) fn prepare(mut db: Connection, path: &Path) -> Result<Connection, CallIndexError> {
    let found = version(&db).at_path(path)?;
    if found > newest() {
        return Err(CallIndexError::Newer { path: path.to_owned(), found, known: newest() });
    }
    let application: i64 = pragma(&db, "application_id").at_path(path)?;
    if found > 0 && application != APPLICATION {
        return Err(CallIndexError::Damaged { path: path.to_owned() });
    }
    if found < newest() {
        migrate(&mut db).at_path(path)?;
    }
    // With this a commit does not wait for the disk. After a crash of the machine the last commits
    // may be lost; they are read again.
    db.pragma_update(None, "synchronous", "NORMAL").at_path(path)?;
    // No checkpoint at the end of a session, which would wait for the disk: the write-ahead log is
    // enough.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).at_path(path)?;
    Ok(db)
}

fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    // Both only have an effect before the first table, and cannot be set inside a transaction.
    db.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    db.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    let all = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Another process may have done it meanwhile.
    let done = usize::try_from(version(&all)?).unwrap_or(0);
    for step in VERSIONS.iter().skip(done) {
        all.execute_batch(step)?;
    }
    all.pragma_update(None, "application_id", APPLICATION)?;
    all.pragma_update(None, "user_version", newest().max(version(&all)?))?;
    all.commit()
}

fn version(db: &Connection) -> rusqlite::Result<i64> {
    pragma(db, "user_version")
}

pub(super) fn pragma(db: &Connection, name: &str) -> rusqlite::Result<i64> {
    db.pragma_query_value(None, name, |row| row.get(0))
}

/// Renames a damaged database and its write-ahead log. Returns the new name.
pub(super) fn put_aside(path: &Path) -> Result<PathBuf, CallIndexError> {
    let named = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = named(path, &format!(".damaged-{}", Timestamp::now().as_millisecond()));
    for suffix in ["", "-wal", "-shm"] {
        match fs::rename(named(path, suffix), named(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CallIndexError::Unusable { path: path.to_owned(), problem: error.to_string() });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

pub(super) fn head(db: &Connection, thread: &str) -> rusqlite::Result<Option<ChainHead>> {
    let sql = "SELECT head_lines, head_bytes, head_link FROM files WHERE thread = ?1 AND head_lines > 0";
    db.prepare(sql)?.query_row([thread], |row| head_at(row, 0)).optional()
}

/// Reads a head from three columns.
pub(super) fn head_at(row: &Row<'_>, first: usize) -> rusqlite::Result<ChainHead> {
    let link: String = row.get(first + 2)?;
    let link = LineHash::parse(&link).unwrap_or_else(LineHash::start);
    Ok(ChainHead { lines: number(row.get(first)?), bytes: number(row.get(first + 1)?), link })
}

/// Converts a number from SQLite, whose integers are signed. Ours are never negative.
pub(super) fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// Converts a number for SQLite.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
