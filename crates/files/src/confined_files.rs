//! Files, held to a grant in this process: what a confined command could not reach, this does not reach either.
//!
//! Every path goes through [`Resolver`]; every blocking call through [`blocking`].

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
    resolve::{Opened, Resolver, said},
    search,
};

/// The least that is read at once.
const LEAST_READ_BYTES: usize = 4096;

/// The files of one grant.
#[derive(Debug)]
pub struct ConfinedFiles {
    resolver: Arc<Resolver>,
    archive: Option<Arc<dyn Archive>>,
    tracker: Arc<ReadTracker>,
    observer: Option<Arc<dyn CommitObserver>>,
}

/// Is told about each change of files, on the thread that makes it. Implemented by `host`.
pub trait CommitObserver: Send + Sync + fmt::Debug {
    /// Files are about to change.
    fn before_commit(&self);

    /// Files were changed, or the change failed.
    fn after_commit(&self);
}

impl ConfinedFiles {
    /// Files relative to `cwd`, held to these rules. Without rules, everything the user may do is allowed.
    pub fn new(
        cwd: PathBuf,
        rules: Option<Arc<dyn FileRules>>,
        archive: Option<Arc<dyn Archive>>,
        tracker: Arc<ReadTracker>,
    ) -> Self {
        Self { resolver: Arc::new(Resolver::new(cwd, rules)), archive, tracker, observer: None }
    }

    /// The same files, with someone who is told about each change.
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
            let Opened { name, real, file, metadata } = opened;
            let stamp = stamp(&metadata);
            Ok(Box::new(Reader { name, real, stamp, file: Arc::new(file) }) as Box<dyn OpenFile>)
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
        // What has begun on its thread goes on to its end there, whoever stops waiting.
        let observer = self.observer.clone();
        let work = move || {
            if let Some(observer) = &observer {
                observer.before_commit();
            }
            let result = commit::commit(&resolver, archive.as_deref(), &call, changes);
            if let Some(observer) = &observer {
                observer.after_commit();
            }
            result
        };
        Box::pin(async move {
            tokio::task::spawn_blocking(work).await.unwrap_or(Err(FileError::Cancelled.into()))
        })
    }

    // One line in a file of ours at most: less than it would take to hand it to another thread.
    fn show(&self, seen: Seen<'_>) {
        self.tracker.show(seen);
    }

    fn since(&self, now: Seen<'_>) -> Since {
        self.tracker.since(now)
    }
}

/// A file that is open to read.
#[derive(Debug)]
struct Reader {
    name: PathBuf,
    real: PathBuf,
    stamp: Stamp,
    file: Arc<File>,
}

impl OpenFile for Reader {
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
            blocking(read, &CancellationToken::new()).await?.map_err(|error| said(&self.name, error))
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
    // The size is only a guess: files grow, and those of the kernel have none.
    let rest = usize::try_from(size_bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut bytes = vec![0; limit_bytes.min(rest.saturating_add(1).max(LEAST_READ_BYTES))];
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

/// The one place where work waits for a disk. It is told when nobody waits for it any more.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce(&CancellationToken) -> Result<T, FileError> + Send + 'static,
    cancel: &CancellationToken,
) -> Result<T, FileError> {
    let stop = cancel.child_token();
    let _guard = stop.clone().drop_guard();
    let job = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        // Fails only if the work panicked or the program is about to end.
        done = job => done.unwrap_or(Err(FileError::Cancelled)),
        () = cancel.cancelled() => Err(FileError::Cancelled),
    }
}
