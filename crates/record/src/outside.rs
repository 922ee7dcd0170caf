//! Calls outside of any session, written down all the same.

use std::{
    fmt, future,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use windlass_contract::{
    BoxFuture, Journal,
    journal::{JournalError, Record, SessionMeta},
};

use crate::{Durability, Folder, SessionError, SessionFile};

/// Writes calls down that belong to no session: in a file like a session's, below `HOME/calls`, which is made with the first
/// record and cannot be resumed.
///
/// Unlike a session, such calls go on if they cannot be written down: nothing is ever rebuilt from them, and whoever runs one
/// by hand on a full disk or from a home directory that is read-only wants it to run. It is told once.
pub struct Outside {
    home: PathBuf,
    meta: SessionMeta,
    durability: Durability,
    trouble: Trouble,
    state: Mutex<State>,
}

/// Takes what went wrong, for a person.
pub type Trouble = Box<dyn Fn(String) + Send + Sync>;

enum State {
    NotBegun,
    Writing(SessionFile),
    Failed,
}

impl Outside {
    /// Nothing is made before there is something to write.
    pub fn new(home: PathBuf, meta: SessionMeta, trouble: Trouble) -> Self {
        let (durability, state) = (Durability::default(), Mutex::new(State::NotBegun));
        Self { home, meta, durability, trouble, state }
    }

    /// Sets when records are flushed to the disk.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    fn try_append(&self, state: &mut State, record: &Record<'_>) -> Result<(), SessionError> {
        if let State::NotBegun = state {
            let file = SessionFile::create_in(&self.home, Folder::Calls, &self.meta)?;
            *state = State::Writing(file.with_durability(self.durability));
        }
        match state {
            State::Writing(file) => Ok(file.append(record)?),
            State::NotBegun | State::Failed => Ok(()),
        }
    }
}

impl Journal for Outside {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.try_append(&mut state, record) {
            *state = State::Failed;
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            (self.trouble)(format!("this call is not on record: {error}{}", source.unwrap_or_default()));
        }
        Ok(())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State::Writing(file) = &*state else { return Box::pin(future::ready(Ok(()))) };
        let flushed = file.flush();
        Box::pin(async {
            // The next record meets the same error, and that is told.
            let _told_later = flushed.await;
            Ok(())
        })
    }
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("home", &self.home).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::{Arc, Mutex},
    };

    use windlass_contract::{Item, item::Role};

    use super::*;
    use crate::{list, list_in, new_thread_id, verify};

    fn outside(home: PathBuf) -> (Outside, Arc<Mutex<Vec<String>>>) {
        let meta = SessionMeta {
            id: new_thread_id(),
            cwd: "/w".into(),
            version: "0".into(),
            instructions: String::new(),
        };
        let told = Arc::new(Mutex::new(Vec::new()));
        let telling = Arc::clone(&told);
        (Outside::new(home, meta, Box::new(move |what| telling.lock().unwrap().push(what))), told)
    }

    #[test]
    fn a_file_is_made_with_the_first_record_and_is_no_session() {
        let home = tempfile::tempdir().unwrap();
        let (outside, told) = outside(home.path().to_owned());
        assert_eq!(list_in(home.path(), Folder::Calls).unwrap(), []);
        outside.append(&Record::Item(&Item::message(Role::User, "hi"))).unwrap();
        let files = list_in(home.path(), Folder::Calls).unwrap();
        assert_eq!(verify(&files[0].path, None).unwrap().head.lines, 2);
        assert_eq!(list(home.path()).unwrap(), []);
        assert!(told.lock().unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_written_down_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let (outside, told) = outside(file);
        for _ in 0..3 {
            outside.append(&Record::Item(&Item::message(Role::User, "hi"))).unwrap();
        }
        let told = told.lock().unwrap();
        assert_eq!(told.len(), 1);
        assert!(told[0].starts_with("this call is not on record: cannot create"), "{told:?}");
    }
}
