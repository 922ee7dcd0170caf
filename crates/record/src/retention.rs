//! Limits on the files below the home directory: long outputs, contents from before edits, and,
//! only if configured, session files.
//!
//! Nothing of a running session is removed. Its file is locked, and that lock is taken before
//! anything of a session is removed.

use std::{
    collections::{HashMap, HashSet},
    fs::{self, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

pub use crate::stored_files::{StoredKind, StoredUnit};
use crate::{
    SessionEntry, SessionError, SessionHolder, ThreadFolder, error::cannot, stored_files::list_stored,
};

/// Minimum time between two automatic enforcements of the limits.
const MIN_INTERVAL: Duration = Duration::from_mins(10);

/// The file that is locked while limits are enforced. Its modification time is that of the last
/// enforcement.
const LOCK_NAME: &str = "retention.lock";

/// The edits of calls outside of sessions. They share a directory that also holds the newest edits,
/// so the limit on size does not remove it. The limit on age does, once it is no longer used.
const OUTSIDE: &str = "outside";

/// Limits on one kind of files. An absent limit is no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeepLimit {
    /// Maximum size of all sessions together. Above it the oldest are removed first.
    pub max_bytes: Option<u64>,
    /// Maximum time since the last change.
    pub max_age: Option<Duration>,
}

/// Limits on all stored files. By default there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Long outputs of commands.
    pub outputs: KeepLimit,
    /// Contents of files from before tools changed them.
    pub edits: KeepLimit,
    /// Session files, and files of calls outside of sessions. The outputs and edits of a session
    /// are removed with its file.
    pub sessions: KeepLimit,
}

impl RetentionLimits {
    /// Returns true if it is time to enforce limits. Costs one system call.
    pub fn is_due(home: &Path) -> bool {
        let changed = fs::symlink_metadata(home.join(LOCK_NAME)).and_then(|found| found.modified());
        let since = changed.ok().and_then(|changed| SystemTime::now().duration_since(changed).ok());
        since.is_none_or(|since| since >= MIN_INTERVAL)
    }

    /// Enforces the limits while `go_on` returns true, unless that was done a short time ago or
    /// another process does it. Returns the removed units.
    pub fn enforce_if_due(
        &self,
        home: &Path,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Vec<StoredUnit>, SessionError> {
        if *self == Self::default() || !home.is_dir() || !Self::is_due(home) {
            return Ok(Vec::new());
        }
        match self.enforce(home, go_on) {
            Err(SessionError::Busy { .. }) => Ok(Vec::new()),
            removed => removed,
        }
    }

    /// Enforces the limits now. Fails with [`SessionError::Busy`] if another process does it.
    pub fn enforce(&self, home: &Path, go_on: &dyn Fn() -> bool) -> Result<Vec<StoredUnit>, SessionError> {
        let path = home.join(LOCK_NAME);
        let lock = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        let lock = lock.map_err(cannot("open", &path))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(SessionError::Busy { path, holder: None }),
            Err(TryLockError::Error(source)) => return Err(cannot("lock", &path)(source)),
        }
        lock.set_modified(SystemTime::now()).map_err(cannot("change", &path))?;
        remove_leftovers(home)?;
        let mut removed = Vec::new();
        for unit in self.surplus(home)? {
            if !go_on() {
                break;
            }
            if let Some(_held) = SessionHold::try_new(home, &unit)?
                && unit.remove()?
            {
                removed.push(unit);
            }
        }
        Ok(removed)
    }

    /// Lists the units that [`enforce`](Self::enforce) would remove.
    pub fn preview(&self, home: &Path) -> Result<Vec<StoredUnit>, SessionError> {
        let mut surplus = Vec::new();
        for unit in self.surplus(home)? {
            if SessionHold::try_new(home, &unit)?.is_some() {
                surplus.push(unit);
            }
        }
        Ok(surplus)
    }

    /// Lists the units beyond the limits, including those of running sessions.
    fn surplus(&self, home: &Path) -> Result<Vec<StoredUnit>, SessionError> {
        let now = SystemTime::now();
        let (outputs, edits) =
            (list_stored(home, StoredKind::Outputs)?, list_stored(home, StoredKind::Edits)?);
        let mut sessions = Vec::new();
        if self.sessions != KeepLimit::default() {
            sessions = list_stored(home, StoredKind::Sessions)?;
            sessions.extend(list_stored(home, StoredKind::Calls)?);
        }
        let sessions = self.sessions.surplus(sessions, now);
        let gone: HashSet<_> = sessions.iter().map(|unit| unit.session.clone()).collect();
        let beside = |limit: KeepLimit, units: Vec<StoredUnit>| {
            let (with_session, others): (Vec<_>, Vec<_>) =
                units.into_iter().partition(|unit| gone.contains(&unit.session));
            with_session.into_iter().chain(limit.surplus(others, now))
        };
        // The session file comes last: until then its lock protects the rest.
        Ok(beside(self.outputs, outputs).chain(beside(self.edits, edits)).chain(sessions).collect())
    }
}

impl KeepLimit {
    /// Returns the units that are too old, and the oldest of the rest until the others fit.
    fn surplus(&self, mut units: Vec<StoredUnit>, now: SystemTime) -> Vec<StoredUnit> {
        units.sort_by_key(|unit| std::cmp::Reverse(unit.changed));
        let mut kept_bytes = 0_u64;
        units.retain(|unit| {
            let age = now.duration_since(unit.changed).unwrap_or_default();
            kept_bytes = kept_bytes.saturating_add(unit.bytes);
            let is_too_much =
                unit.session != OUTSIDE && self.max_bytes.is_some_and(|limit| kept_bytes > limit);
            is_too_much || self.max_age.is_some_and(|limit| age > limit)
        });
        units.reverse();
        units
    }
}

/// Returns true if a process is writing the session file.
pub fn is_session_running(path: &Path) -> Result<bool, SessionError> {
    match File::open(path).map_err(cannot("open", path))?.try_lock() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(source)) => Err(cannot("lock", path)(source)),
    }
}

/// Removes a session with its outputs and edits. Fails with [`SessionError::Busy`] while it runs.
pub fn remove_session(home: &Path, session: &SessionEntry) -> Result<Vec<StoredUnit>, SessionError> {
    let mut units = Vec::new();
    // The session file comes last: until then its lock protects the rest.
    for kind in [StoredKind::Outputs, StoredKind::Edits, StoredKind::Sessions] {
        let all = list_stored(home, kind)?;
        units.extend(all.into_iter().filter(|unit| unit.session == session.id.as_str()));
    }
    let Some(file) = units.last().filter(|unit| unit.kind == StoredKind::Sessions) else {
        let (id, path) = (session.id.to_string(), session.path.clone());
        return Err(SessionError::NotFound { id, path });
    };
    let Some(_held) = SessionHold::try_new(home, file)? else {
        let holder = SessionHolder::of(&session.path);
        return Err(SessionError::Busy { path: session.path.clone(), holder });
    };
    for unit in &units {
        unit.remove()?;
    }
    Ok(units)
}

/// The lock of a session file, held while something of the session is removed.
struct SessionHold {
    _file: Option<File>,
}

impl SessionHold {
    /// Locks the session that a unit belongs to. Returns none if the session is running. Without a
    /// session file it cannot be resumed, and needs no lock.
    fn try_new(home: &Path, unit: &StoredUnit) -> Result<Option<Self>, SessionError> {
        let folder =
            if unit.kind == StoredKind::Calls { ThreadFolder::Calls } else { ThreadFolder::Sessions };
        let Ok(path) = folder.path_of(home, &unit.session) else { return Ok(Some(Self { _file: None })) };
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(Self { _file: None })),
            file => file.map_err(cannot("open", &path))?,
        };
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: Some(file) })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(source)) => Err(cannot("lock", &path)(source)),
        }
    }
}

/// Removes directories whose removal was interrupted.
fn remove_leftovers(home: &Path) -> Result<(), SessionError> {
    for leftover in crate::stored_files::leftovers(home)? {
        fs::remove_dir_all(&leftover).map_err(cannot("remove", &leftover))?;
    }
    Ok(())
}

/// The size of the stored files, by kind and by session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Each kind with its number of files or directories and its bytes.
    pub kinds: Vec<KindUsage>,
    /// Sessions and their bytes of all kinds together, largest first.
    pub sessions: Vec<(String, u64)>,
}

/// The size of one kind of stored files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindUsage {
    /// Its name.
    pub name: &'static str,
    /// The number of files. For edits, the number of sessions.
    pub count: u64,
    /// Their size.
    pub bytes: u64,
}

impl DiskUsage {
    /// Measures the files in a home directory.
    pub fn measure(home: &Path) -> Result<Self, SessionError> {
        let mut usage = Self::default();
        let mut by_session: HashMap<String, u64> = HashMap::new();
        for kind in [StoredKind::Sessions, StoredKind::Calls, StoredKind::Outputs, StoredKind::Edits] {
            let units = list_stored(home, kind)?;
            let bytes = units.iter().map(|unit| unit.bytes).sum();
            usage.kinds.push(KindUsage { name: kind.name(), count: units.len() as u64, bytes });
            for unit in units {
                *by_session.entry(unit.session).or_default() += unit.bytes;
            }
        }
        let others = [
            ("snapshots", vec![home.join("snapshots")]),
            ("cache", vec![home.join("cache")]),
            ("index", index_files(home)),
        ];
        for (name, paths) in others {
            let (count, bytes) = paths.iter().try_fold((0, 0), |(count, bytes), path| {
                let tree = crate::stored_files::measure(path)?;
                Ok::<_, SessionError>((count + tree.files, bytes + tree.bytes))
            })?;
            usage.kinds.push(KindUsage { name, count, bytes });
        }
        usage.sessions = by_session.into_iter().collect();
        usage.sessions.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
        Ok(usage)
    }

    /// Returns the size of all kinds together.
    pub fn total_bytes(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.bytes).sum()
    }
}

fn index_files(home: &Path) -> Vec<PathBuf> {
    ["", "-wal", "-shm"].iter().map(|suffix| home.join(format!("calls.sqlite{suffix}"))).collect()
}

#[cfg(test)]
mod tests;
