//! Resolves a path to an open file without following links: the way by which tools open files.
//!
//! A path is normalized lexically first (`..` removes the component before it, as in the policy),
//! then its links are resolved. The rules are compared with this real path, which is then opened
//! without following any link (`RESOLVE_NO_SYMLINKS`). If the open succeeds, the path that was
//! checked is the path that was opened, whatever was renamed in between.

use std::{
    ffi::OsString,
    fs::{File, Metadata},
    io,
    os::{
        fd::OwnedFd,
        unix::{
            ffi::OsStrExt,
            fs::{FileTypeExt, MetadataExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use rustix::io::Errno;
use windlass_contract::{
    Denial, Effects,
    effects::normal,
    files::{FileError, FileKind},
    host::{Layer, Proof},
};

use crate::{FileRules, handle};

/// Maximum number of attempts to resolve a path that changes during the lookup.
const MAX_TRIES: usize = 8;

/// Maximum length of a path in Linux (`PATH_MAX`), with its NUL.
const MAX_PATH_BYTES: usize = 4096;

/// Resolves the links of an absolute path as far as it exists. The result may be stale: it serves
/// to compare paths, not to open them.
pub fn resolve_links(path: &Path) -> PathBuf {
    let resolved =
        |existing: &Path| Some(handle::real_path(existing).ok()?.join(path.strip_prefix(existing).ok()?));
    path.ancestors().find_map(resolved).unwrap_or_else(|| path.to_owned())
}

/// Resolves paths for one grant.
#[derive(Debug)]
pub(crate) struct PathResolver {
    cwd: PathBuf,
    /// `None`: everything that the user may do is allowed.
    rules: Option<Arc<dyn FileRules>>,
    real_rules: OnceLock<RealPathRules>,
}

/// Rules with all links resolved.
#[derive(Debug)]
struct RealPathRules {
    hidden: Vec<PathBuf>,
    /// Paths inside hidden ones that may be read.
    shown: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// A file or directory that is open for reading.
#[derive(Debug)]
pub(crate) struct OpenedEntry {
    /// The requested path, absolute and without `.` and `..`.
    pub(crate) name: PathBuf,
    /// The path without links.
    pub(crate) real: PathBuf,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

/// A path that may be written: an open directory, and the names to create in it.
#[derive(Debug)]
pub(crate) struct WriteTarget {
    /// The requested path, absolute and without `.` and `..`.
    pub(crate) name: PathBuf,
    /// The path without links.
    pub(crate) real: PathBuf,
    /// The innermost directory that exists, open for `*at` calls and not for reading.
    pub(crate) directory: OwnedFd,
    /// Directories still to be made in it, parents first.
    pub(crate) missing: Vec<OsString>,
    /// The name of the file in the innermost directory.
    pub(crate) file_name: OsString,
}

impl PathResolver {
    /// Creates a resolver for paths relative to `cwd`, with optional rules.
    pub(crate) fn new(cwd: PathBuf, rules: Option<Arc<dyn FileRules>>) -> Self {
        Self { cwd, rules, real_rules: OnceLock::new() }
    }

    /// Returns a path as absolute, without `.` and `..`.
    pub(crate) fn absolute_name(&self, path: &Path) -> Result<PathBuf, FileError> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(FileError::Nul);
        }
        let name = normal(&self.cwd.join(path));
        let length_bytes = bytes.len().max(name.as_os_str().len());
        if length_bytes >= MAX_PATH_BYTES {
            return Err(FileError::TooLong { length_bytes });
        }
        Ok(name)
    }

    /// Opens a regular file for reading.
    pub(crate) fn open_file(&self, path: &Path) -> Result<OpenedEntry, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(FileError::IsDirectory { path: name.to_owned() }),
            kind => Err(FileError::NotAFile { path: name.to_owned(), kind }),
        })
    }

    /// Opens a directory for reading.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<OpenedEntry, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::Directory => Ok(()),
            _ => Err(FileError::NotADirectory { path: name.to_owned() }),
        })
    }

    /// Opens a file or a directory for reading.
    pub(crate) fn open_either(&self, path: &Path) -> Result<OpenedEntry, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::File | FileKind::Directory => Ok(()),
            kind => Err(FileError::NotAFile { path: name.to_owned(), kind }),
        })
    }

    fn open(
        &self,
        path: &Path,
        accept: impl Fn(&Path, FileKind) -> Result<(), FileError>,
    ) -> Result<OpenedEntry, FileError> {
        let name = self.absolute_name(path)?;
        for _ in 0..MAX_TRIES {
            let real = self.real_path(&name)?;
            // Check the type before opening: opening a pipe or a device may have an effect.
            let Ok(found) = handle::lstat(&real) else { continue };
            accept(&name, file_kind(found.file_type()))?;
            let file = match handle::open_read(&real) {
                Ok(handle) => File::from(handle),
                Err(error) if was_replaced(&error) => continue,
                Err(error) => return Err(file_error(&name, error)),
            };
            let metadata = file.metadata().map_err(|error| file_error(&name, error))?;
            accept(&name, file_kind(metadata.file_type()))?;
            if metadata.nlink() > 0 {
                return Ok(OpenedEntry { name, real, file, metadata });
            }
        }
        Err(FileError::Gone { path: name })
    }

    /// Returns the real path of an entry that exists and may be read.
    fn real_path(&self, name: &Path) -> Result<PathBuf, FileError> {
        match handle::real_path(&self.path_for_commands(name)) {
            Ok(real) => self.check_read(name, &real).map(|()| real),
            Err(error) => {
                // An error must not reveal whether an entry exists in a hidden directory.
                let above = name.ancestors().skip(1).find_map(|above| handle::real_path(above).ok());
                above.map_or(Ok(()), |above| self.check_read(name, &above))?;
                Err(file_error(name, error))
            }
        }
    }

    /// Returns the path that confined commands see under a name: they have a private `/tmp`. An
    /// entry that is not in it is looked up in the system's `/tmp`, which may be read.
    fn path_for_commands(&self, name: &Path) -> PathBuf {
        let private = self.rules.as_ref().and_then(|rules| {
            let rest = name.strip_prefix("/tmp").ok()?;
            let mut works = rules.writable().iter().chain([&self.cwd]);
            if works.any(|tree| name.starts_with(tree)) {
                return None;
            }
            let private = rules.private_tmp()?.join(rest);
            handle::lstat(&private).is_ok().then_some(private)
        });
        private.unwrap_or_else(|| name.to_owned())
    }

    /// Fails if a real path may not be read.
    fn check_read(&self, name: &Path, real: &Path) -> Result<(), FileError> {
        match self.hidden_reason(real) {
            None => Ok(()),
            Some(rule) => Err(denied(name, rule, Effects::read(name))),
        }
    }

    /// Returns the reason why a real path may not be read.
    fn hidden_reason(&self, real: &Path) -> Option<&'static str> {
        let real_rules = self.real_rules()?;
        let in_any = |trees: &[PathBuf]| trees.iter().any(|tree| real.starts_with(tree));
        if in_any(&real_rules.hidden) && !in_any(&real_rules.shown) {
            return Some("it may hold credentials or belongs to another program; only the user can allow it");
        }
        // Our own environment, with the provider's key, is a file there. Commands see only their
        // own processes.
        is_process(real).then_some("it belongs to a running process")
    }

    /// Returns the real path of the working directory.
    pub(crate) fn real_cwd(&self) -> Option<PathBuf> {
        handle::real_path(&self.cwd).ok()
    }

    /// Returns the hidden paths below a real directory, without those of processes.
    pub(crate) fn hidden_below(&self, real: &Path) -> Vec<PathBuf> {
        let hidden = self.real_rules().map_or(&[][..], |real_rules| &real_rules.hidden);
        hidden.iter().filter(|hidden| hidden.starts_with(real)).cloned().collect()
    }

    /// Resolves a path for writing. A link is followed, and its target must be allowed.
    pub(crate) fn write_target(&self, path: &Path) -> Result<WriteTarget, FileError> {
        let name = self.absolute_name(path)?;
        for _ in 0..MAX_TRIES {
            let real = future_real_path(&name)?;
            self.check_write(&name, &real)?;
            let (Some(file_name), Some(parent)) = (real.file_name(), real.parent()) else {
                return Err(FileError::IsDirectory { path: name });
            };
            let existing = parent.ancestors().find(|above| handle::lstat(above).is_ok());
            let existing = existing.unwrap_or(Path::new("/"));
            let missing = parent.strip_prefix(existing).unwrap_or(Path::new(""));
            if handle::lstat(existing).is_ok_and(|found| found.is_file()) {
                return Err(FileError::NotADirectory { path: existing.to_owned() });
            }
            match handle::open_directory(existing) {
                Ok(directory) => {
                    let missing = missing.iter().map(OsString::from).collect();
                    let file_name = file_name.to_owned();
                    return Ok(WriteTarget { name, real, directory, missing, file_name });
                }
                Err(error) if was_replaced(&error) => {}
                Err(error) => return Err(file_error(&name, error)),
            }
        }
        Err(FileError::Gone { path: name })
    }

    /// Fails if a real path may not be written.
    fn check_write(&self, name: &Path, real: &Path) -> Result<(), FileError> {
        let (Some(rules), Some(real_rules)) = (&self.rules, self.real_rules()) else { return Ok(()) };
        self.check_read(name, real)?;
        let need = || Effects::write(name);
        if !real_rules.writable.iter().any(|root| real.starts_with(root)) {
            return Err(denied(name, "outside what may be written", need()));
        }
        let roots: Vec<_> = real_rules
            .writable
            .iter()
            .filter(|root| handle::lstat(root).is_ok_and(|found| found.is_dir()))
            .cloned()
            .collect();
        match rules.is_protected(real, &roots) {
            Ok(false) => Ok(()),
            Ok(true) => Err(denied(name, "a protected name: other programs run what it says", need())),
            Err(reason) => Err(denied(name, &reason, need())),
        }
    }

    /// Returns the rules with all links resolved, once per grant; `None` without rules.
    fn real_rules(&self) -> Option<&RealPathRules> {
        let rules = self.rules.as_ref()?;
        Some(self.real_rules.get_or_init(|| {
            // A writable path may not exist yet.
            let real = |path: &PathBuf| future_real_path(&normal(&self.cwd.join(path))).ok();
            let writable: Vec<_> = rules.writable().iter().filter_map(real).collect();
            let hidden = rules.hidden(&writable);
            RealPathRules { shown: rules.shown(&hidden), hidden, writable }
        }))
    }
}

/// Returns the real path of an entry, or the one it would have if it were created.
fn future_real_path(name: &Path) -> Result<PathBuf, FileError> {
    if handle::lstat(name).is_ok() {
        // A dangling link is an error: a write would create another file than the one requested.
        return handle::real_path(name).map_err(|error| file_error(name, error));
    }
    let (Some(parent), Some(last)) = (name.parent(), name.file_name()) else {
        return Err(FileError::NotFound { path: name.to_owned() });
    };
    Ok(future_real_path(parent)?.join(last))
}

/// Returns true if a real path belongs to a process: `/proc/123` and all below.
pub(super) fn is_process(real: &Path) -> bool {
    let process = real.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next());
    process.is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit))
}

/// Converts the file type of the standard library.
pub(crate) fn file_kind(found: std::fs::FileType) -> FileKind {
    if found.is_file() {
        FileKind::File
    } else if found.is_dir() {
        FileKind::Directory
    } else if found.is_symlink() {
        FileKind::Link
    } else if found.is_fifo() {
        FileKind::Fifo
    } else if found.is_socket() {
        FileKind::Socket
    } else if found.is_block_device() || found.is_char_device() {
        FileKind::Device
    } else {
        FileKind::Other
    }
}

/// Returns true if a component was removed or became a link after the path was resolved.
fn was_replaced(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR))
}

fn denied(name: &Path, rule: &str, need: Effects) -> FileError {
    let what = name.display().to_string();
    let (layer, proof) = (Layer::Files, Proof::Observed);
    let rule = rule.to_owned();
    FileError::Denied(Box::new(Denial { layer, what, rule, need, proof, remedy: String::new() }))
}

/// Converts a system error into a [`FileError`].
pub(crate) fn file_error(name: &Path, error: io::Error) -> FileError {
    let path = name.to_owned();
    match Errno::from_io_error(&error) {
        Some(Errno::NOENT | Errno::NOTDIR) => FileError::NotFound { path },
        Some(Errno::ACCESS | Errno::PERM) => FileError::NoPermission { path },
        Some(Errno::ISDIR) => FileError::IsDirectory { path },
        Some(Errno::LOOP) => FileError::Loop { path },
        Some(Errno::NAMETOOLONG) => FileError::TooLong { length_bytes: path.as_os_str().len() },
        _ => FileError::Io { path, source: error },
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests do what commands do")]
mod tests;
