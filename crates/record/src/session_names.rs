//! Names that the user gave to sessions.
//!
//! They are in a file of their own, `HOME/session-names.json`: a session file is a chain of hashes
//! and is never rewritten.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use windlass_contract::id::ThreadId;

use crate::{SessionError, error::cannot};

const FILE_NAME: &str = "session-names.json";

/// The names of sessions, by the ids of their threads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionNames(BTreeMap<String, String>);

impl SessionNames {
    /// Reads the names of a home directory. Without a file there are none. A damaged file is an
    /// error, because the next change would overwrite it.
    pub fn load(home: &Path) -> Result<Self, SessionError> {
        let path = path_of(home);
        match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(cannot("read", &path)(error)),
            Ok(text) => {
                let names =
                    serde_json::from_slice(&text).map_err(|error| cannot("read", &path)(error.into()));
                Ok(Self(names?))
            }
        }
    }

    /// Returns the name of a session.
    pub fn get(&self, id: &ThreadId) -> Option<&str> {
        self.0.get(id.as_str()).map(String::as_str)
    }

    /// Returns the session with a name. Upper and lower case are the same.
    pub fn find(&self, name: &str) -> Option<ThreadId> {
        let name = name.trim().to_lowercase();
        let found = self.0.iter().find(|(_, each)| each.to_lowercase() == name);
        found.map(|(id, _)| id.as_str().into())
    }

    /// Sets the name of a session, or removes it. Changes of other processes at the same time are
    /// kept.
    pub fn set(home: &Path, id: &ThreadId, name: Option<&str>) -> Result<(), SessionError> {
        let (path, lock_path) = (path_of(home), home.join(".session-names.lock"));
        let lock = File::create(&lock_path).map_err(cannot("open", &lock_path))?;
        lock.lock().map_err(cannot("lock", &lock_path))?;
        let Self(mut names) = Self::load(home)?;
        let before = names.clone();
        match name {
            Some(name) => names.insert(id.to_string(), name.to_owned()),
            None => names.remove(id.as_str()),
        };
        if names == before {
            return Ok(());
        }
        write(&path, &names).map_err(cannot("write", &path))
    }
}

/// Replaces the file as a whole.
fn write(path: &Path, names: &BTreeMap<String, String>) -> io::Result<()> {
    let staged = path.with_extension("json.new");
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&staged)?;
    file.write_all(format!("{}\n", serde_json::to_string_pretty(names)?).as_bytes())?;
    file.sync_all()?;
    fs::rename(&staged, path)
}

fn path_of(home: &Path) -> PathBuf {
    home.join(FILE_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_found_changed_and_removed() {
        let home = tempfile::tempdir().unwrap();
        let (one, other) = (ThreadId::from("a"), ThreadId::from("b"));
        SessionNames::set(home.path(), &one, Some("Parser")).unwrap();
        SessionNames::set(home.path(), &other, Some("Lexer")).unwrap();
        let names = SessionNames::load(home.path()).unwrap();
        assert_eq!((names.get(&one), names.find("LEXER ")), (Some("Parser"), Some(other.clone())));
        SessionNames::set(home.path(), &one, Some("Grammar")).unwrap();
        SessionNames::set(home.path(), &other, None).unwrap();
        let names = SessionNames::load(home.path()).unwrap();
        assert_eq!((names.find("parser"), names.get(&one), names.get(&other)), (None, Some("Grammar"), None));
        fs::write(path_of(home.path()), "{").unwrap();
        assert!(SessionNames::set(home.path(), &one, None).is_err());
        assert_eq!(fs::read_to_string(path_of(home.path())).unwrap(), "{");
    }
}
