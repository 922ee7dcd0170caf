//! The journal of calls that belong to no session.

use std::{
    fmt, future,
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use windlass_contract::{
    BoxFuture, Journal,
    journal::{JournalError, Record, SessionMeta},
};

use crate::{DurabilityMode, SessionError, SessionFile, ThreadFolder};

/// Records calls that belong to no session. The file has the format of a session file, is below
/// `HOME/calls`, and cannot be resumed. It is created with the first record.
///
/// Unlike in a session, a call still runs if it cannot be recorded. Nothing is rebuilt from these
/// files, and a call by hand must work on a full disk or with a read-only home directory. The first
/// failure is reported once.
pub struct StandaloneCalls {
    home: PathBuf,
    meta: SessionMeta,
    durability: DurabilityMode,
    on_warning: WarningHandler,
    state: Mutex<StandaloneJournal>,
}

/// Receives a warning for the user.
pub type WarningHandler = Box<dyn Fn(String) + Send + Sync>;

enum StandaloneJournal {
    NotCreated,
    Writing(SessionFile),
    Failed,
}

impl StandaloneCalls {
    /// Creates the journal. The file is created with the first record.
    pub fn new(home: PathBuf, meta: SessionMeta, on_warning: WarningHandler) -> Self {
        let (durability, state) = (DurabilityMode::default(), Mutex::new(StandaloneJournal::NotCreated));
        Self { home, meta, durability, on_warning, state }
    }

    /// Sets when records are flushed to the disk.
    #[must_use]
    pub fn with_durability(self, durability: DurabilityMode) -> Self {
        Self { durability, ..self }
    }

    fn try_append(&self, state: &mut StandaloneJournal, record: &Record<'_>) -> Result<(), SessionError> {
        if let StandaloneJournal::NotCreated = state {
            let file = SessionFile::create_in(&self.home, ThreadFolder::Calls, &self.meta)?;
            *state = StandaloneJournal::Writing(file.with_durability(self.durability));
        }
        match state {
            StandaloneJournal::Writing(file) => Ok(file.append(record)?),
            StandaloneJournal::NotCreated | StandaloneJournal::Failed => Ok(()),
        }
    }
}

impl Journal for StandaloneCalls {
    fn append(&self, record: &Record<'_>) -> Result<(), JournalError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.try_append(&mut state, record) {
            *state = StandaloneJournal::Failed;
            let source = std::error::Error::source(&error).map(|source| format!(": {source}"));
            (self.on_warning)(format!("this call is not on record: {error}{}", source.unwrap_or_default()));
        }
        Ok(())
    }

    fn flush(&self) -> BoxFuture<'static, Result<(), JournalError>> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let StandaloneJournal::Writing(file) = &*state else { return Box::pin(future::ready(Ok(()))) };
        let flushed = file.flush();
        Box::pin(async {
            // Drop the error: the next record fails with the same one, and that one is reported.
            let _reported_later = flushed.await;
            Ok(())
        })
    }
}

impl fmt::Debug for StandaloneCalls {
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
    use windlass_fakes::clean;

    use super::*;
    use crate::{list, list_in, new_thread_id, verify};

    fn outside(home: PathBuf) -> (StandaloneCalls, Arc<Mutex<Vec<String>>>) {
        let meta = SessionMeta {
            id: new_thread_id(),
            cwd: "/w".into(),
            version: "0".into(),
            instructions: String::new(),
            parent: None,
        };
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&warnings);
        (
            StandaloneCalls::new(home, meta, Box::new(move |warning| sink.lock().unwrap().push(warning))),
            warnings,
        )
    }

    #[test]
    fn a_file_is_made_with_the_first_record_and_is_no_session() {
        let home = tempfile::tempdir().unwrap();
        let (outside, warnings) = outside(home.path().to_owned());
        assert_eq!(list_in(home.path(), ThreadFolder::Calls).unwrap(), []);
        outside.append(&Record::Item(clean(&Item::message(Role::User, "hi")))).unwrap();
        let files = list_in(home.path(), ThreadFolder::Calls).unwrap();
        assert_eq!(verify(&files[0].path, None).unwrap().head.lines, 2);
        assert_eq!(list(home.path()).unwrap(), []);
        assert!(warnings.lock().unwrap().is_empty());
    }

    #[test]
    fn what_cannot_be_written_down_is_told_once() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, "").unwrap();
        let (outside, warnings) = outside(file);
        for _ in 0..3 {
            outside.append(&Record::Item(clean(&Item::message(Role::User, "hi")))).unwrap();
        }
        let warnings = warnings.lock().unwrap();
        assert_eq!(warnings.len(), 1);
        assert!(warnings[0].starts_with("this call is not on record: cannot create"), "{warnings:?}");
    }
}
