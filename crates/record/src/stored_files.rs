//! The files that are kept below the home directory, by kind.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{SessionError, SessionHolder, ThreadFolder, error::cannot, session_paths};

/// Prefix of the name of a directory that is being removed.
const REMOVED: &str = ".removed-";

/// Directory with the write-ahead notes of unfinished changes to files. They belong to recovery.
const OPEN_NOTES: &str = "open";

/// A kind of stored files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredKind {
    /// Session files.
    Sessions,
    /// Files of calls outside of sessions.
    Calls,
    /// Long outputs of commands.
    Outputs,
    /// Contents of files from before tools changed them.
    Edits,
}

impl StoredKind {
    /// Returns the name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Calls => "calls",
            Self::Outputs => "outputs",
            Self::Edits => "edits",
        }
    }
}

/// A file, or the directory with the edits of a session, that is kept and removed as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUnit {
    /// Its kind.
    pub kind: StoredKind,
    /// The session it belongs to, or the name of its directory if there is no such session.
    pub session: String,
    /// Its path.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The time of its last change.
    pub changed: SystemTime,
}

impl StoredUnit {
    /// Removes it. Returns false if it was already gone.
    pub(crate) fn remove(&self) -> Result<bool, SessionError> {
        let removed = match self.kind {
            StoredKind::Edits => self.remove_directory(),
            StoredKind::Outputs => fs::remove_file(&self.path).inspect(|()| {
                if let Some(session) = self.path.parent() {
                    // The directory goes with its last file. While others are left, this fails.
                    let _left = fs::remove_dir(session);
                }
            }),
            StoredKind::Sessions | StoredKind::Calls => {
                SessionHolder::withdraw(&self.path);
                fs::remove_file(&self.path).and_then(|()| remove_set_aside(&self.path))
            }
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(cannot("remove", &self.path)),
        }
    }

    /// Removes a directory atomically: it is renamed first.
    fn remove_directory(&self) -> io::Result<()> {
        let aside = self.path.with_file_name(format!("{REMOVED}{}", self.session));
        fs::rename(&self.path, &aside)?;
        fs::remove_dir_all(&aside)
    }
}

/// Removes damaged records that were moved out of a session file.
fn remove_set_aside(session: &Path) -> io::Result<()> {
    let (Some(day), name) = (session.parent(), format!("{}.damaged", name_of(session))) else {
        return Ok(());
    };
    for entry in fs::read_dir(day)? {
        let path = entry?.path();
        if name_of(&path).starts_with(&name) {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Lists every unit of a kind.
pub(crate) fn list_stored(home: &Path, kind: StoredKind) -> Result<Vec<StoredUnit>, SessionError> {
    match kind {
        StoredKind::Sessions => session_files(home, kind, ThreadFolder::Sessions),
        StoredKind::Calls => session_files(home, kind, ThreadFolder::Calls),
        StoredKind::Outputs => {
            let mut units = Vec::new();
            for session in entries(&home.join(kind.name()))? {
                for file in entries(&session)? {
                    units.extend(unit(kind, name_of(&session), file)?);
                }
            }
            Ok(units)
        }
        StoredKind::Edits => {
            let sessions = entries(&home.join(kind.name()))?.into_iter();
            // Files beside the directories, such as the sequence counter, belong to all sessions.
            let sessions =
                sessions.filter(|path| path.is_dir() && name_of(path) != OPEN_NOTES && !is_leftover(path));
            let units = sessions.map(|path| {
                let TreeSize { bytes, changed, .. } = measure(&path)?;
                let changed = changed.unwrap_or(SystemTime::UNIX_EPOCH);
                Ok(StoredUnit { kind, session: name_of(&path), path, bytes, changed })
            });
            units.collect()
        }
    }
}

/// Lists directories whose removal was interrupted.
pub(crate) fn leftovers(home: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let all = entries(&home.join(StoredKind::Edits.name()))?;
    Ok(all.into_iter().filter(|path| is_leftover(path) && path.is_dir()).collect())
}

fn is_leftover(path: &Path) -> bool {
    name_of(path).starts_with(REMOVED)
}

fn session_files(
    home: &Path,
    kind: StoredKind,
    folder: ThreadFolder,
) -> Result<Vec<StoredUnit>, SessionError> {
    let mut units = Vec::new();
    for candidate in session_paths::newest_first(home, folder)? {
        units.extend(unit(kind, candidate.id.to_string(), candidate.path)?);
    }
    Ok(units)
}

/// Returns a regular file as a unit, or none if it is gone or something else.
fn unit(kind: StoredKind, session: String, path: PathBuf) -> Result<Option<StoredUnit>, SessionError> {
    let found = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(cannot("look at", &path))?,
    };
    let changed = found.modified().map_err(cannot("look at", &path))?;
    let unit = StoredUnit { kind, session, path, bytes: found.len(), changed };
    Ok(Some(unit).filter(|_| found.is_file()))
}

/// The size of everything in a directory.
#[derive(Debug, Default)]
pub(crate) struct TreeSize {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// The latest change of a file or directory in it.
    changed: Option<SystemTime>,
}

/// Measures a file or a directory without following links.
pub(crate) fn measure(path: &Path) -> Result<TreeSize, SessionError> {
    let (mut size, mut paths) = (TreeSize::default(), vec![path.to_owned()]);
    while let Some(path) = paths.pop() {
        // Another process may have removed it.
        let Ok(found) = fs::symlink_metadata(&path) else { continue };
        size.changed = size.changed.max(found.modified().ok());
        if found.is_dir() {
            paths.extend(entries(&path)?);
        } else {
            (size.files, size.bytes) = (size.files + 1, size.bytes + found.len());
        }
    }
    Ok(size)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Lists the entries of a directory. A symbolic link has none.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, SessionError> {
    if fs::symlink_metadata(directory).is_ok_and(|found| found.is_symlink()) {
        return Ok(Vec::new());
    }
    session_paths::list_directories(&[directory.to_owned()])
}
