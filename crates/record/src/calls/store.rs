//! The database itself: opened with care, brought to the newest version, put aside when it is broken.

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
    CallsError,
    error::Attempt,
    flags,
    schema::{VERSIONS, newest},
};
use crate::{Head, Link};

/// Says that a database is ours: `WNDL`.
const APPLICATION: i64 = 0x574e_444c;
/// How long to wait before something is tried again that SQLite does not wait for by itself.
const PAUSE: Duration = Duration::from_millis(20);

pub(super) fn open(path: &Path, patience: Duration) -> Result<Connection, CallsError> {
    create(path)?;
    let until = Instant::now() + patience;
    loop {
        let db = Connection::open_with_flags(path, flags()).at(path)?;
        db.busy_timeout(patience).at(path)?;
        match prepared(db, path) {
            // Two that make it at the same moment: SQLite tells one of them at once that it is locked.
            Err(CallsError::Locked { .. }) if Instant::now() < until => thread::sleep(PAUSE),
            done => return done,
        }
    }
}

/// Makes an empty file that nobody else can read; SQLite would make one that everybody can.
fn create(path: &Path) -> Result<(), CallsError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(CallsError::Unusable { path: path.to_owned(), problem: error.to_string() }),
    }
}

/// Checks that a database is ours and not from the future, and brings it to the newest version.
pub(super) fn prepared(mut db: Connection, path: &Path) -> Result<Connection, CallsError> {
    let found = version(&db).at(path)?;
    if found > newest() {
        return Err(CallsError::Newer { path: path.to_owned(), found, known: newest() });
    }
    let application: i64 = pragma(&db, "application_id").at(path)?;
    if found > 0 && application != APPLICATION {
        return Err(CallsError::Damaged { path: path.to_owned() });
    }
    if found < newest() {
        migrate(&mut db).at(path)?;
    }
    // A commit then waits for no disk. A crash of the machine may cost the last of them, which are read in again.
    db.pragma_update(None, "synchronous", "NORMAL").at(path)?;
    // Nor does the end of a session: what is in the write-ahead log is as good there.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).at(path)?;
    Ok(db)
}

fn migrate(db: &mut Connection) -> rusqlite::Result<()> {
    // Both only count before the first table, and cannot be set inside a transaction.
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

/// Gives a broken database, with its log, a name under which nothing looks for it.
pub(super) fn put_aside(path: &Path) -> Result<PathBuf, CallsError> {
    let named = |path: &Path, suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let aside = named(path, &format!(".damaged-{}", Timestamp::now().as_millisecond()));
    for suffix in ["", "-wal", "-shm"] {
        match fs::rename(named(path, suffix), named(&aside, suffix)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(CallsError::Unusable { path: path.to_owned(), problem: error.to_string() });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(aside)
}

pub(super) fn head(db: &Connection, thread: &str) -> rusqlite::Result<Option<Head>> {
    let sql = "SELECT head_lines, head_bytes, head_link FROM files WHERE thread = ?1 AND head_lines > 0";
    db.prepare(sql)?.query_row([thread], |row| head_at(row, 0)).optional()
}

/// A head from three columns.
pub(super) fn head_at(row: &Row<'_>, first: usize) -> rusqlite::Result<Head> {
    let link: String = row.get(first + 2)?;
    let link = Link::parse(&link).unwrap_or_else(Link::start);
    Ok(Head { lines: number(row.get(first)?), bytes: number(row.get(first + 1)?), link })
}

/// SQLite's numbers have a sign; none of ours has.
pub(super) fn number(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// And back.
pub(super) fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
