//! An overlay on writable roots: its upper directories hold the changes of commands until a person
//! approves them.
//!
//! The directory of a layer is inside its root, because only there its files can be renamed into
//! place, whatever is mounted elsewhere. A whiteout in the upper directory hides it from commands.
//! When all processes have exited, [`OverlayLayer::changes`] compares both sides by handle, and
//! [`OverlayLayer::apply`] applies the changes, all of them or none. A journal in the home of
//! Windlass lets the next start roll back if this process dies ([`recover_layers`]).

use std::{
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    fs::{Mode, OFlags, mkdirat, openat},
    io::Errno,
};

use crate::{DirHandle, EntryStat};

mod apply;
mod changes;
mod inode;
mod journal;
mod lower_check;
mod rollback;
#[cfg(test)]
#[cfg(target_os = "linux")]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
mod undo_copies;
mod upper_scan;

pub use apply::{AppliedLayer, LayerApplyError};
pub use changes::{LayerChange, LayerChangeKind, LayerChanges, LayerConflict, LayerRefusal};
pub use journal::{LayerRecovery, recover_layers};

use inode::{LayerEntry, make_whiteout, remove_tree, set_mode, set_mtime};
use journal::{LayerJournal, RootRecord};
use lower_check::LowerCheck;

/// The upper directory of a layer; the sandbox mounts it by this name.
pub(crate) const UPPER: &str = "upper";
pub(crate) const WORK: &str = "work";
/// Prefix of the name of a layer directory; a random number follows.
const NAME_PREFIX: &str = ".windlass-layer-";

/// Returns true if a name in a root is that of a layer directory.
pub(crate) fn is_layer_name(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(NAME_PREFIX.as_bytes())
}

/// The directory for entries that were replaced or deleted when the layer is applied.
const UNDO: &str = "undo";
/// The directory for entries that a command was not allowed to make.
const REFUSED: &str = "refused";
/// A file that is written to read the clock of the file system.
const MARK: &str = "mark";

/// Interval between two reads of the clock of the file system.
const CLOCK_POLL_INTERVAL: Duration = Duration::from_millis(1);
const MAX_CLOCK_POLLS: usize = 30;

/// The reason why a layer cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The root holds an entry that a layer would interpret differently, or could not change.
    #[error("`{path}` {reason}")]
    Refused {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        reason: String,
    },
    /// The system refused.
    #[error("cannot {step} `{path}`")]
    Io {
        /// The operation that failed.
        step: &'static str,
        /// The directory.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
}

/// A root for a layer.
#[derive(Debug)]
pub struct LayerRoot {
    /// Its path, without links.
    pub path: PathBuf,
    /// The directory.
    pub handle: DirHandle,
}

/// An overlay layer on one or several roots.
#[derive(Debug)]
pub struct OverlayLayer {
    roots: Vec<RootLayer>,
    journal: LayerJournal,
}

/// The part of a layer that is on one root.
#[derive(Debug)]
pub(crate) struct RootLayer {
    path: PathBuf,
    root: DirHandle,
    /// The name of the directory in the root.
    name: OsString,
    directory: DirHandle,
    /// The start of the layer, by the clock of the file system. An entry of the lower layer with a
    /// later change time was changed by someone else.
    begun_ns: i64,
    /// The root as it was before.
    before: EntryStat,
}

impl OverlayLayer {
    /// Makes a layer. `notes` is the directory for its journal, which no command can reach.
    /// `is_mapped` returns true if a user and a group exist in the user namespace of the commands.
    pub fn new(
        roots: Vec<LayerRoot>,
        notes: &Path,
        is_mapped: &dyn Fn(u32, u32) -> bool,
    ) -> Result<Self, LayerError> {
        let name = OsString::from(format!("{NAME_PREFIX}{:016x}", fastrand::u64(..)));
        let records = roots.iter().map(|root| RootRecord::new(root, &name)).collect::<io::Result<Vec<_>>>();
        let first = roots.first().map(|root| root.path.clone()).unwrap_or_default();
        let failed = |source| LayerError::Io { step: "note a layer on", path: first.clone(), source };
        let journal =
            records.and_then(|records| LayerJournal::begin(notes, &name, &records)).map_err(failed)?;
        let mut layer = Self { roots: Vec::new(), journal };
        for root in roots {
            match RootLayer::new(root, &name, is_mapped) {
                Ok(root) => layer.roots.push(root),
                Err(error) => {
                    // A directory that stays is removed at the next start.
                    let _left = layer.discard();
                    return Err(error);
                }
            }
        }
        Ok(layer)
    }

    /// Returns the name of the layer directory, which is the same in each root.
    pub fn name(&self) -> &OsStr {
        self.roots.first().map_or(OsStr::new(""), |root| &root.name)
    }

    /// Makes new work directories for the kernel. Call it before each mount: the kernel marks the
    /// work directory of an earlier mount as in use.
    pub fn renew(&self) -> io::Result<()> {
        self.roots.iter().try_for_each(|root| {
            remove_tree(&root.directory, OsStr::new(WORK))?;
            make_directory(&root.directory, WORK).map(drop)
        })
    }

    /// Discards everything that commands wrote.
    pub fn discard(self) -> io::Result<()> {
        for root in &self.roots {
            root.remove(root.before.mtime_ns)?;
        }
        self.journal.remove()
    }
}

impl RootLayer {
    fn new(
        LayerRoot { path, handle }: LayerRoot,
        name: &OsStr,
        is_mapped: &dyn Fn(u32, u32) -> bool,
    ) -> Result<Self, LayerError> {
        let failed = |step, source| LayerError::Io { step, path: path.clone(), source };
        let before = handle.stat().map_err(|error| failed("look at", error))?;
        let latest_ns = LowerCheck { root: &path, is_mapped, latest_ns: 0 }.run(&handle)?;
        let made = mkdirat(&handle, name, Mode::RWXU).map_err(io::Error::from);
        let made = made.and_then(|()| handle.open_dir(Path::new(name)));
        let directory = made.map_err(|error| failed("make a layer in", error))?;
        let mut layer = Self { path, root: handle, name: name.to_owned(), directory, begun_ns: 0, before };
        match layer.make_directories(latest_ns) {
            Ok(()) => Ok(layer),
            Err(error) => {
                let _left = layer.remove(layer.before.mtime_ns);
                Err(error)
            }
        }
    }

    fn make_directories(&mut self, latest_ns: i64) -> Result<(), LayerError> {
        let path = self.path.clone();
        let failed = |source| LayerError::Io { step: "make a layer in", path: path.clone(), source };
        let upper = make_directory(&self.directory, UPPER).map_err(failed)?;
        if !inode::has_user_attributes(&upper).map_err(failed)? {
            let reason = "is on a file system without attributes of the user, which a layer needs".to_owned();
            return Err(LayerError::Refused { path, reason });
        }
        self.copy_root_metadata(&upper).map_err(failed)?;
        for name in [UNDO, REFUSED, WORK] {
            make_directory(&self.directory, name).map_err(failed)?;
        }
        // Hide the temporary directory from `git status`.
        self.directory.replace_file(OsStr::new(".gitignore"), b"*\n", 0o600).map_err(failed)?;
        let latest_ns = latest_ns.max(self.root.stat().map_err(failed)?.ctime_ns);
        self.begun_ns = self.clock_after(latest_ns).map_err(failed)?;
        Ok(())
    }

    /// Waits until the clock of the file system, which has a granularity of some milliseconds, is
    /// later than `latest_ns`, and returns it. Gives up after a short time if `latest_ns` is in the
    /// future.
    fn clock_after(&self, latest_ns: i64) -> io::Result<i64> {
        let mut now_ns = self.clock()?;
        for _ in 0..MAX_CLOCK_POLLS {
            if now_ns > latest_ns {
                break;
            }
            std::thread::sleep(CLOCK_POLL_INTERVAL);
            now_ns = self.clock()?;
        }
        Ok(now_ns)
    }

    fn clock(&self) -> io::Result<i64> {
        self.directory.replace_file(OsStr::new(MARK), b"", 0o600)?;
        Ok(self.directory.stat_entry(OsStr::new(MARK))?.ctime_ns)
    }

    /// Gives the upper directory the owner, mode and time of the root, which commands see.
    fn copy_root_metadata(&self, upper: &DirHandle) -> io::Result<()> {
        make_whiteout(upper, &self.name)?;
        let group = LayerEntry::find(&self.root, OsStr::new("."))?.map_or(0, |entry| entry.stat.gid);
        let (user, group) = (rustix::fs::Uid::from_raw(self.before.uid), rustix::fs::Gid::from_raw(group));
        match rustix::fs::fchown(upper, Some(user), Some(group)) {
            // The owner is not mapped then, which was refused before.
            Ok(()) | Err(Errno::PERM) => {}
            Err(error) => return Err(error.into()),
        }
        let upper_name = OsStr::new(UPPER);
        set_mode(&self.directory, upper_name, self.before.permissions)?;
        set_mtime(&self.directory, upper_name, self.before.mtime_ns)
    }

    fn upper(&self) -> io::Result<DirHandle> {
        self.directory.open_dir(Path::new(UPPER))
    }

    /// Removes the directory of the layer, and sets the modification time of the root.
    fn remove(&self, mtime_ns: i64) -> io::Result<()> {
        remove_tree(&self.root, &self.name)?;
        set_mtime(&self.root, OsStr::new(""), mtime_ns)
    }
}

fn make_directory(directory: &DirHandle, name: &str) -> io::Result<DirHandle> {
    mkdirat(directory, name, Mode::RWXU)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(DirHandle::from(openat(directory, name, flags, Mode::empty())?))
}
