//! Paths of session files, and the search for them.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use uuid::Uuid;
use windlass_contract::{
    id::ThreadId,
    journal::{ParentKind, ParentSession},
};

use crate::{SessionError, error::cannot, replay};

/// The directory below the home directory that holds a kind of thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadFolder {
    /// Sessions, which can be resumed.
    Sessions,
    /// Calls outside of any session.
    Calls,
}

impl ThreadFolder {
    /// Returns the name of the directory.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Calls => "calls",
        }
    }

    /// Returns the path of a thread's file, which need not exist.
    pub(crate) fn path_of(self, home: &Path, id: &str) -> Result<PathBuf, SessionError> {
        let (uuid, started) = parse(id).ok_or_else(|| SessionError::BadId { id: id.to_owned() })?;
        let day = started.strftime("%Y/%m/%d").to_string();
        // Format the id again: `id` may be upper case or in braces, and must never be trusted as a
        // path.
        Ok(home.join(self.name()).join(day).join(format!("{uuid}.jsonl")))
    }
}

/// A session on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionEntry {
    /// The id of its thread.
    pub id: ThreadId,
    /// The path of its file.
    pub path: PathBuf,
    /// The working directory it was started in.
    pub cwd: PathBuf,
    /// The time it was started.
    pub started: Timestamp,
    /// The session that it comes from, if any.
    pub parent: Option<ParentSession>,
}

impl SessionEntry {
    /// Returns true for the session of an agent that another agent started.
    pub fn is_of_sub_agent(&self) -> bool {
        self.parent.as_ref().is_some_and(|parent| parent.kind == ParentKind::Agent)
    }
}

/// Lists every session below `home`, newest first. A file without a complete first line is left
/// out: nothing happened in it.
pub fn list(home: &Path) -> Result<Vec<SessionEntry>, SessionError> {
    list_in(home, ThreadFolder::Sessions)
}

/// Lists every thread of either kind, newest first.
pub fn list_in(home: &Path, folder: ThreadFolder) -> Result<Vec<SessionEntry>, SessionError> {
    newest_first(home, folder)?.into_iter().filter_map(|file| file.entry().transpose()).collect()
}

/// Describes the session of a file. None if the file has no complete first line, or is no session
/// file.
pub fn read_entry(path: &Path) -> Result<Option<SessionEntry>, SessionError> {
    SessionCandidate::from_path(path.to_owned()).map_or(Ok(None), SessionCandidate::entry)
}

/// Returns the file of the newest session for which `wanted` returns true.
pub(crate) fn newest(
    home: &Path,
    wanted: impl Fn(&SessionEntry) -> bool,
) -> Result<Option<PathBuf>, SessionError> {
    for file in newest_first(home, ThreadFolder::Sessions)? {
        if let Some(entry) = file.entry()?.filter(&wanted) {
            return Ok(Some(entry.path));
        }
    }
    Ok(None)
}

/// Makes a new id. It contains the time, so ids sort by age.
pub fn new_thread_id() -> ThreadId {
    Uuid::now_v7().to_string().into()
}

/// Returns the path of a session file, which need not exist.
pub(crate) fn path_of(home: &Path, id: &str) -> Result<PathBuf, SessionError> {
    ThreadFolder::Sessions.path_of(home, id)
}

/// Finds the file of an existing thread, of either kind.
pub fn find(home: &Path, id: &ThreadId) -> Result<(ThreadFolder, PathBuf), SessionError> {
    let at = |folder: ThreadFolder| Ok::<_, SessionError>((folder, folder.path_of(home, id.as_str())?));
    let (session, call) = (at(ThreadFolder::Sessions)?, at(ThreadFolder::Calls)?);
    let found = [session.clone(), call].into_iter().find(|(_, path)| path.exists());
    found.ok_or_else(|| SessionError::NotFound { id: id.to_string(), path: session.1 })
}

/// Returns the directory for the long outputs of a thread's commands, which need not exist.
pub fn outputs_directory(home: &Path, id: &ThreadId) -> Result<PathBuf, SessionError> {
    let (uuid, _) = parse(id.as_str()).ok_or_else(|| SessionError::BadId { id: id.to_string() })?;
    Ok(home.join("outputs").join(uuid.to_string()))
}

/// Opens a path if it is a regular file. Opening a named pipe would block.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<File, SessionError> {
    match fs::metadata(path) {
        Ok(about) if !about.is_file() => Err(SessionError::NoFile { path: path.to_owned() }),
        _ => options.open(path).map_err(cannot("open", path)),
    }
}

/// Opens a regular file for reading.
pub(crate) fn open_to_read(path: &Path) -> Result<File, SessionError> {
    open(path, OpenOptions::new().read(true))
}

fn parse(id: &str) -> Option<(Uuid, Timestamp)> {
    let uuid = Uuid::try_parse(id).ok().filter(|uuid| uuid.get_version_num() == 7)?;
    let (seconds, nanoseconds) = uuid.get_timestamp()?.to_unix();
    let started = Timestamp::new(i64::try_from(seconds).ok()?, i32::try_from(nanoseconds).ok()?).ok()?;
    Some((uuid, started))
}

/// A file with the name of a session file.
pub(crate) struct SessionCandidate {
    pub(crate) id: Uuid,
    started: Timestamp,
    pub(crate) path: PathBuf,
}

impl SessionCandidate {
    fn from_path(path: PathBuf) -> Option<Self> {
        let (id, started) = parse(path.file_name()?.to_str()?.strip_suffix(".jsonl")?)?;
        Some(Self { id, started, path })
    }

    pub(crate) fn entry(self) -> Result<Option<SessionEntry>, SessionError> {
        let file = match open_to_read(&self.path) {
            Err(SessionError::NoFile { .. }) => return Ok(None),
            file => file?,
        };
        match replay::meta(&self.path, BufReader::new(file)) {
            Ok(meta) => {
                let id = self.id.to_string().into();
                let (path, started) = (self.path, self.started);
                Ok(Some(SessionEntry { id, path, cwd: meta.cwd, started, parent: meta.parent }))
            }
            Err(SessionError::NoMeta { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

pub(crate) fn newest_first(home: &Path, folder: ThreadFolder) -> Result<Vec<SessionCandidate>, SessionError> {
    let mut level = vec![home.join(folder.name())];
    // Year, month, day.
    for _ in 0..3 {
        level = list_directories(&level)?;
    }
    let mut found: Vec<_> =
        list_directories(&level)?.into_iter().filter_map(SessionCandidate::from_path).collect();
    found.sort_by_key(|file| std::cmp::Reverse(file.id));
    Ok(found)
}

/// Lists the entries of these directories. A path that is missing or not a directory has none.
pub(crate) fn list_directories(directories: &[PathBuf]) -> Result<Vec<PathBuf>, SessionError> {
    let mut found = Vec::new();
    for directory in directories {
        let entries = match fs::read_dir(directory) {
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                continue;
            }
            entries => entries.map_err(cannot("list", directory))?,
        };
        for entry in entries {
            found.push(entry.map_err(cannot("list", directory))?.path());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_names_its_file_by_its_own_date() {
        // 2026-11-15T12:00:00Z.
        let id = Uuid::new_v7(uuid::Timestamp::from_unix(uuid::NoContext, 1_794_744_000, 0)).to_string();
        let expected = PathBuf::from(format!("/h/sessions/2026/11/15/{id}.jsonl"));
        assert_eq!(path_of(Path::new("/h"), &id).unwrap(), expected);
        assert_eq!(path_of(Path::new("/h"), &id.to_uppercase()).unwrap(), expected);
    }

    #[test]
    fn outputs_are_kept_by_thread() {
        let id = "0193b7c0-0000-7000-8000-000000000000".into();
        let expected = Path::new("/h/outputs/0193b7c0-0000-7000-8000-000000000000");
        assert_eq!(outputs_directory(Path::new("/h"), &id).unwrap(), expected);
        assert!(matches!(
            outputs_directory(Path::new("/h"), &"../x".into()),
            Err(SessionError::BadId { .. })
        ));
    }

    #[test]
    fn what_is_not_a_version_7_id_is_refused() {
        for id in ["", "../../etc/passwd", "67e55044-10b1-426f-9247-bb680e5fe0c8", "last"] {
            assert!(matches!(path_of(Path::new("/h"), id), Err(SessionError::BadId { .. })), "{id}");
        }
    }

    #[test]
    fn an_id_from_beyond_the_calendar_is_refused_without_a_panic() {
        let id = "ffffffff-ffff-7fff-bfff-ffffffffffff";
        assert!(matches!(path_of(Path::new("/h"), id), Err(SessionError::BadId { .. })));
    }

    #[test]
    fn ids_sort_by_age() {
        let ids: Vec<_> = (0..100).map(|_| new_thread_id()).collect();
        assert!(ids.is_sorted());
    }
}
