//! Files in memory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, CallId, Host,
    edit::{Change, Changed, CommitError},
    files::{FileError, Files, Found, Listed, Listing, OpenFile, Search, Seen, Since},
    grant::{Held, Mechanism},
};

use super::MemoryFile;

/// Files, with fixed answers to every listing and search.
#[derive(Default)]
pub(crate) struct FixedFiles {
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    pub(crate) listed: Listed,
    pub(crate) found: Found,
    pub(crate) searches: Mutex<Vec<Search>>,
    pub(crate) refusal: Option<fn() -> FileError>,
}

impl FixedFiles {
    /// Creates one file.
    pub(crate) fn with(path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { files: BTreeMap::from([(path.into(), bytes.into())]), ..Self::default() }
    }

    /// Creates files that refuse every request.
    pub(crate) fn refusing(refusal: fn() -> FileError) -> Self {
        Self { refusal: Some(refusal), ..Self::default() }
    }

    fn answer<T: Clone>(&self, answer: &T) -> Result<T, FileError> {
        self.refusal.map_or_else(|| Ok(answer.clone()), |refusal| Err(refusal()))
    }
}

impl Files for FixedFiles {
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>> {
        Box::pin(async move {
            let bytes = self.files.get(path).cloned();
            let bytes = bytes.ok_or_else(|| FileError::NotFound { path: path.to_owned() })?;
            let bytes = self.answer(&bytes)?;
            Ok(Box::new(MemoryFile { path: path.to_owned(), bytes }) as Box<dyn OpenFile>)
        })
    }

    fn list<'a>(
        &'a self,
        _listing: &'a Listing,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>> {
        Box::pin(async { self.answer(&self.listed) })
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>> {
        self.searches.lock().unwrap().push(search.clone());
        Box::pin(async { self.answer(&self.found) })
    }

    fn commit<'a>(
        &'a self,
        _call: &'a CallId,
        _changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>> {
        Box::pin(async { Err(FileError::NotGranted { path: "shelf".into() }.into()) })
    }

    fn show(&self, _seen: Seen<'_>) {}

    fn since(&self, _now: Seen<'_>) -> Since {
        Since::NeverShown
    }
}

/// A host that has files and runs nothing.
pub(super) struct FilesOnlyHost(pub(super) Arc<FixedFiles>);

impl Host for FilesOnlyHost {
    fn files(&self) -> &dyn Files {
        &*self.0
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::InProcess)
    }
}
