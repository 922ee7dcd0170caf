//! The files that are kept below the home directory, by kind.

use std::{
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use crate::{Folder, SessionError, error::cannot, place};

/// A directory of this name is being removed.
const REMOVED: &str = ".removed-";

/// Notes of changes to files that are not finished. They belong to recovery.
const OPEN_NOTES: &str = "open";

/// A kind of files that are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StoredKind {
    /// Session files.
    Sessions,
    /// Files of calls outside of sessions.
    Calls,
    /// Long outputs of commands.
    Outputs,
    /// What files were before tools changed them.
    Edits,
}

impl StoredKind {
    /// The name of its directory.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sessions => "sessions",
            Self::Calls => "calls",
            Self::Outputs => "outputs",
            Self::Edits => "edits",
        }
    }
}

/// What is kept and removed as one: a file, or the directory with the edits of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredUnit {
    /// Its kind.
    pub kind: StoredKind,
    /// The session it belongs to, or the name of its directory if that is no session.
    pub session: String,
    /// Its path.
    pub path: PathBuf,
    /// Its bytes.
    pub bytes: u64,
    /// When it was last changed.
    pub changed: SystemTime,
}

impl StoredUnit {
    /// Removes it. Returns whether it was still there.
    pub(crate) fn remove(&self) -> Result<bool, SessionError> {
        let removed = match self.kind {
            StoredKind::Edits => self.remove_directory(),
            StoredKind::Outputs => fs::remove_file(&self.path).inspect(|()| {
                if let Some(session) = self.path.parent() {
                    // It goes with its last file.
                    let _left = fs::remove_dir(session);
                }
            }),
            StoredKind::Sessions | StoredKind::Calls => {
                fs::remove_file(&self.path).and_then(|()| remove_set_aside(&self.path))
            }
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            removed => removed.map(|()| true).map_err(cannot("remove", &self.path)),
        }
    }

    /// Removes a directory so that it is there as a whole or not at all.
    fn remove_directory(&self) -> io::Result<()> {
        let aside = self.path.with_file_name(format!("{REMOVED}{}", self.session));
        fs::rename(&self.path, &aside)?;
        fs::remove_dir_all(&aside)
    }
}

/// Removes damaged records that were set aside from a session file.
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

/// Every unit of a kind.
pub(crate) fn list_stored(home: &Path, kind: StoredKind) -> Result<Vec<StoredUnit>, SessionError> {
    match kind {
        StoredKind::Sessions => session_files(home, kind, Folder::Sessions),
        StoredKind::Calls => session_files(home, kind, Folder::Calls),
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
            // Files beside the directories, such as the counter of edits, belong to all sessions.
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

/// Directories that were not removed to the end.
pub(crate) fn leftovers(home: &Path) -> Result<Vec<PathBuf>, SessionError> {
    let all = entries(&home.join(StoredKind::Edits.name()))?;
    Ok(all.into_iter().filter(|path| is_leftover(path) && path.is_dir()).collect())
}

fn is_leftover(path: &Path) -> bool {
    name_of(path).starts_with(REMOVED)
}

fn session_files(home: &Path, kind: StoredKind, folder: Folder) -> Result<Vec<StoredUnit>, SessionError> {
    let mut units = Vec::new();
    for candidate in place::newest_first(home, folder)? {
        units.extend(unit(kind, candidate.id.to_string(), candidate.path)?);
    }
    Ok(units)
}

/// A regular file as a unit. None if it is something else, or is gone by now.
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
    /// The newest change of a file or directory in it.
    changed: Option<SystemTime>,
}

/// Measures a file or a directory without following links.
pub(crate) fn measure(path: &Path) -> Result<TreeSize, SessionError> {
    let (mut size, mut paths) = (TreeSize::default(), vec![path.to_owned()]);
    while let Some(path) = paths.pop() {
        // Others may remove files meanwhile.
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

/// Everything in a directory, if it is one.
fn entries(directory: &Path) -> Result<Vec<PathBuf>, SessionError> {
    if fs::symlink_metadata(directory).is_ok_and(|found| found.is_symlink()) {
        return Ok(Vec::new());
    }
    place::inside(&[directory.to_owned()])
}
