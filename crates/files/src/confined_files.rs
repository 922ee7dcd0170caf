//! File access of one grant, checked in this process: a file that a sandboxed command could not
//! access is refused here too.
//!
//! Every path goes through [`PathResolver`]; every blocking call through [`blocking`].

use std::{
    fmt,
    fs::{File, Metadata},
    io,
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture, CallId,
    edit::{Archive, Change, Changed, CommitError},
    files::{FileError, Files, Found, Listed, Listing, OpenFile, Search, Seen, Since, Stamp},
};

use crate::{
    FileRules, ReadTracker, commit, list,
    resolve::{OpenedEntry, PathResolver, file_error},
    search,
};

/// Minimum number of bytes read at once.
const MIN_READ_BYTES: usize = 4096;

/// The files of one grant.
#[derive(Debug)]
pub struct ConfinedFiles {
    resolver: Arc<PathResolver>,
    archive: Option<Arc<dyn Archive>>,
    tracker: Arc<ReadTracker>,
    observer: Option<Arc<dyn CommitObserver>>,
}

/// Looks at the workspace before and after each commit, on the thread that makes it. Implemented by
/// `host`.
pub trait CommitObserver: Send + Sync + fmt::Debug {
    /// Runs a commit, which may fail, while no other commit runs.
    fn observe(&self, commit: &mut dyn FnMut());
}

impl ConfinedFiles {
    /// Creates file access relative to `cwd`, under these rules. Without rules, everything the user
    /// may do is allowed.
    pub fn new(
        cwd: PathBuf,
        rules: Option<Arc<dyn FileRules>>,
        archive: Option<Arc<dyn Archive>>,
        tracker: Arc<ReadTracker>,
    ) -> Self {
        Self { resolver: Arc::new(PathResolver::new(cwd, rules)), archive, tracker, observer: None }
    }

    /// Sets the observer of commits.
    #[must_use]
    pub fn with_observer(self, observer: Option<Arc<dyn CommitObserver>>) -> Self {
        Self { observer, ..self }
    }
}

impl Files for ConfinedFiles {
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>> {
        let (resolver, path) = (Arc::clone(&self.resolver), path.to_owned());
        Box::pin(async move {
            let opened = blocking(move |_| resolver.open_file(&path), &CancellationToken::new()).await?;
            let OpenedEntry { name, real, file, metadata } = opened;
            let stamp = stamp(&metadata);
            Ok(Box::new(OpenFileReader { name, real, stamp, file: Arc::new(file) }) as Box<dyn OpenFile>)
        })
    }

    fn list<'a>(
        &'a self,
        listing: &'a Listing,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>> {
        let (resolver, listing) = (Arc::clone(&self.resolver), listing.clone());
        Box::pin(blocking(move |stop| list::list(&resolver, &listing, stop), cancel))
    }

    fn search<'a>(
        &'a self,
        search: &'a Search,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>> {
        let (resolver, search) = (Arc::clone(&self.resolver), search.clone());
        Box::pin(blocking(move |stop| search::search(&resolver, &search, stop), cancel))
    }

    fn commit<'a>(
        &'a self,
        call: &'a CallId,
        changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>> {
        let (resolver, archive, call) = (Arc::clone(&self.resolver), self.archive.clone(), call.clone());
        // A commit that has begun runs to its end on its thread, even if the caller stops waiting.
        let observer = self.observer.clone();
        let work = move || {
            let mut changes = Some(changes);
            let mut result = Err(FileError::Cancelled.into());
            let mut commit = || {
                let changes = changes.take().unwrap_or_default();
                result = commit::commit(&resolver, archive.as_deref(), &call, changes);
            };
            match &observer {
                Some(observer) => observer.observe(&mut commit),
                None => commit(),
            }
            result
        };
        Box::pin(async move {
            tokio::task::spawn_blocking(work).await.unwrap_or(Err(FileError::Cancelled.into()))
        })
    }

    // Not on another thread: it writes at most one line to a file, which is cheaper than the
    // hand-over.
    fn show(&self, seen: Seen<'_>) {
        self.tracker.show(seen);
    }

    fn since(&self, now: Seen<'_>) -> Since {
        self.tracker.since(now)
    }
}

/// A file that is open for reading.
#[derive(Debug)]
struct OpenFileReader {
    name: PathBuf,
    real: PathBuf,
    stamp: Stamp,
    file: Arc<File>,
}

impl OpenFile for OpenFileReader {
    fn path(&self) -> &Path {
        &self.name
    }

    fn real_path(&self) -> &Path {
        &self.real
    }

    fn stamp(&self) -> Stamp {
        self.stamp
    }

    fn read_at(&self, offset: u64, limit_bytes: usize) -> BoxFuture<'_, Result<Vec<u8>, FileError>> {
        let (file, size_bytes) = (Arc::clone(&self.file), self.stamp.size_bytes);
        Box::pin(async move {
            let read = move |_: &_| Ok(read_at(&file, size_bytes, offset, limit_bytes));
            blocking(read, &CancellationToken::new()).await?.map_err(|error| file_error(&self.name, error))
        })
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    Stamp {
        device: metadata.dev(),
        inode: metadata.ino(),
        size_bytes: metadata.len(),
        changed: (metadata.ctime(), metadata.ctime_nsec()),
    }
}

fn read_at(file: &File, size_bytes: u64, offset: u64, limit_bytes: usize) -> io::Result<Vec<u8>> {
    // The size is only a hint: files grow, and files of the kernel have size 0.
    let rest = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; limit_bytes.min(rest.saturating_add(1).max(MIN_READ_BYTES))];
    let mut filled = 0;
    while filled < limit_bytes {
        if filled == bytes.len() {
            bytes.resize(limit_bytes.min(filled.saturating_mul(2)), 0);
        }
        match file.read_at(&mut bytes[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(read) => filled += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

/// Runs blocking work on its own thread; the only place that waits for a disk. The token is
/// cancelled when the caller stops waiting.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&CancellationToken) -> Result<T, FileError> + Send + 'static,
    cancel: &CancellationToken,
) -> Result<T, FileError> {
    let stop = cancel.child_token();
    let _guard = stop.clone().drop_guard();
    let job = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        // Fails only if the work panicked or the runtime is shutting down.
        done = job => done.unwrap_or(Err(FileError::Cancelled)),
        () = cancel.cancelled() => Err(FileError::Cancelled),
    }
}
