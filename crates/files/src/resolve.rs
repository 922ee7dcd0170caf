//! From a path someone wrote to a handle: the one way to a file, to read or to write.
//!
//! A path is taken as it is written first (`..` is what the text says, as for whoever decides about it), then by its
//! real name. The real name is what walls are compared with, and it is opened in a way that follows no link at all: if
//! that works, the name that was checked is the name that was opened, whatever was moved or linked in between.

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

/// How often a path is looked up again that changes while it is looked up.
const TRIES: usize = 8;

/// What Linux takes as a path, its NUL included. Whoever writes more than this did not mean a path.
const PATH_LIMIT_BYTES: usize = 4096;

/// Finds files for one grant.
#[derive(Debug)]
pub(crate) struct Resolver {
    cwd: PathBuf,
    /// None: everything the user may, this may.
    rules: Option<Arc<dyn FileRules>>,
    view: OnceLock<View>,
}

/// Rules by the real names of what they hold.
#[derive(Debug)]
struct View {
    hidden: Vec<PathBuf>,
    /// Inside what is hidden.
    shown: Vec<PathBuf>,
    writable: Vec<PathBuf>,
}

/// A file or directory that is open to read.
#[derive(Debug)]
pub(crate) struct Opened {
    /// As it was asked for, absolute and without `.` and `..`.
    pub(crate) name: PathBuf,
    /// Without links.
    pub(crate) real: PathBuf,
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

/// Where a file may be written: a directory that cannot be exchanged any more, and what to make in it.
#[derive(Debug)]
pub(crate) struct Place {
    /// As it was asked for, absolute and without `.` and `..`.
    pub(crate) name: PathBuf,
    /// Without links.
    pub(crate) real: PathBuf,
    /// The innermost directory that exists; good for naming things in it, not for reading.
    pub(crate) directory: OwnedFd,
    /// Directories still to be made in it, from the outside in.
    pub(crate) missing: Vec<OsString>,
    /// The file's name in the innermost.
    pub(crate) file_name: OsString,
}

impl Resolver {
    /// Finds files relative to `cwd`, by these rules if there are any.
    pub(crate) fn new(cwd: PathBuf, rules: Option<Arc<dyn FileRules>>) -> Self {
        Self { cwd, rules, view: OnceLock::new() }
    }

    /// The absolute name of a path, without `.` and `..`.
    pub(crate) fn name(&self, path: &Path) -> Result<PathBuf, FileError> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.contains(&0) {
            return Err(FileError::Nul);
        }
        let name = normal(&self.cwd.join(path));
        let length_bytes = bytes.len().max(name.as_os_str().len());
        if length_bytes >= PATH_LIMIT_BYTES {
            return Err(FileError::TooLong { length_bytes });
        }
        Ok(name)
    }

    /// Opens a regular file to read.
    pub(crate) fn open_file(&self, path: &Path) -> Result<Opened, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::File => Ok(()),
            FileKind::Directory => Err(FileError::IsDirectory { path: name.to_owned() }),
            kind => Err(FileError::NotAFile { path: name.to_owned(), kind }),
        })
    }

    /// Opens a directory to read.
    pub(crate) fn open_directory(&self, path: &Path) -> Result<Opened, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::Directory => Ok(()),
            _ => Err(FileError::NotADirectory { path: name.to_owned() }),
        })
    }

    /// Opens a file or a directory to read.
    pub(crate) fn open_either(&self, path: &Path) -> Result<Opened, FileError> {
        self.open(path, |name, kind| match kind {
            FileKind::File | FileKind::Directory => Ok(()),
            kind => Err(FileError::NotAFile { path: name.to_owned(), kind }),
        })
    }

    fn open(
        &self,
        path: &Path,
        accept: impl Fn(&Path, FileKind) -> Result<(), FileError>,
    ) -> Result<Opened, FileError> {
        let name = self.name(path)?;
        for _ in 0..TRIES {
            let real = self.real(&name)?;
            // Looked at before it is opened: opening a pipe or a device may already do something.
            let Ok(found) = handle::lstat(&real) else { continue };
            accept(&name, kind_of(found.file_type()))?;
            let file = match handle::to_read(&real) {
                Ok(handle) => File::from(handle),
                Err(error) if was_exchanged(&error) => continue,
                Err(error) => return Err(said(&name, error)),
            };
            let metadata = file.metadata().map_err(|error| said(&name, error))?;
            accept(&name, kind_of(metadata.file_type()))?;
            if metadata.nlink() > 0 {
                return Ok(Opened { name, real, file, metadata });
            }
        }
        Err(FileError::Gone { path: name })
    }

    /// The real name of something that exists and may be read.
    fn real(&self, name: &Path) -> Result<PathBuf, FileError> {
        match handle::real_path(&self.seen_at(name)) {
            Ok(real) => self.check_read(name, &real).map(|()| real),
            Err(error) => {
                // Whether something is missing from what is hidden is hidden, too.
                let above = name.ancestors().skip(1).find_map(|above| handle::real_path(above).ok());
                above.map_or(Ok(()), |above| self.check_read(name, &above))?;
                Err(said(name, error))
            }
        }
    }

    /// Where a name leads for confined commands: they have a `/tmp` of their own. What is not in it is looked for in
    /// the system's, which may be read.
    fn seen_at(&self, name: &Path) -> PathBuf {
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

    /// Whether something may be read, by its real name.
    fn check_read(&self, name: &Path, real: &Path) -> Result<(), FileError> {
        match self.why_hidden(real) {
            None => Ok(()),
            Some(rule) => Err(denied(name, rule, Effects::read(name))),
        }
    }

    /// Why something may not be read, by its real name.
    fn why_hidden(&self, real: &Path) -> Option<&'static str> {
        let view = self.view()?;
        let in_any = |trees: &[PathBuf]| trees.iter().any(|tree| real.starts_with(tree));
        if in_any(&view.hidden) && !in_any(&view.shown) {
            return Some("it may hold credentials or belongs to another program; only the user can allow it");
        }
        // Our own environment, with the provider's key, is a file there. Commands see their own processes only.
        is_process(real).then_some("it belongs to a running process")
    }

    /// The working directory by its real name.
    pub(crate) fn real_cwd(&self) -> Option<PathBuf> {
        handle::real_path(&self.cwd).ok()
    }

    /// What may not be read below a real directory, but for processes.
    pub(crate) fn hidden_below(&self, real: &Path) -> Vec<PathBuf> {
        let hidden = self.view().map_or(&[][..], |view| &view.hidden);
        hidden.iter().filter(|hidden| hidden.starts_with(real)).cloned().collect()
    }

    /// Where a file may be written. A link is followed, and where it leads is what must be allowed.
    pub(crate) fn place(&self, path: &Path) -> Result<Place, FileError> {
        let name = self.name(path)?;
        for _ in 0..TRIES {
            let real = real_to_be(&name)?;
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
            match handle::to_name_in(existing) {
                Ok(directory) => {
                    let missing = missing.iter().map(OsString::from).collect();
                    let file_name = file_name.to_owned();
                    return Ok(Place { name, real, directory, missing, file_name });
                }
                Err(error) if was_exchanged(&error) => {}
                Err(error) => return Err(said(&name, error)),
            }
        }
        Err(FileError::Gone { path: name })
    }

    /// Whether something may be written, by its real name.
    fn check_write(&self, name: &Path, real: &Path) -> Result<(), FileError> {
        let (Some(rules), Some(view)) = (&self.rules, self.view()) else { return Ok(()) };
        self.check_read(name, real)?;
        let need = || Effects::write(name);
        if !view.writable.iter().any(|root| real.starts_with(root)) {
            return Err(denied(name, "outside what may be written", need()));
        }
        let roots: Vec<_> = view
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

    /// Looked at once for a grant, and only if there are rules.
    fn view(&self) -> Option<&View> {
        let rules = self.rules.as_ref()?;
        Some(self.view.get_or_init(|| {
            // What is to be written may not exist yet.
            let real = |path: &PathBuf| real_to_be(&normal(&self.cwd.join(path))).ok();
            let writable: Vec<_> = rules.writable().iter().filter_map(real).collect();
            let hidden = rules.hidden(&writable);
            View { shown: rules.shown(&hidden), hidden, writable }
        }))
    }
}

/// The real name something has, or would have if it were made.
fn real_to_be(name: &Path) -> Result<PathBuf, FileError> {
    if handle::lstat(name).is_ok() {
        // A link that leads nowhere ends here: what it would make is not what was asked for.
        return handle::real_path(name).map_err(|error| said(name, error));
    }
    let (Some(parent), Some(last)) = (name.parent(), name.file_name()) else {
        return Err(FileError::NotFound { path: name.to_owned() });
    };
    Ok(real_to_be(parent)?.join(last))
}

/// Whether a real name is that of a process: `/proc/123` and all below.
pub(super) fn is_process(real: &Path) -> bool {
    let process = real.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next());
    process.is_some_and(|name| name.as_bytes().iter().all(u8::is_ascii_digit))
}

/// What stands somewhere.
pub(crate) fn kind_of(found: std::fs::FileType) -> FileKind {
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

/// Whether a real name stopped being one after it was found: something was removed or became a link.
fn was_exchanged(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::NOENT | Errno::LOOP | Errno::NOTDIR))
}

fn denied(name: &Path, rule: &str, need: Effects) -> FileError {
    let what = name.display().to_string();
    let (layer, proof) = (Layer::Files, Proof::Observed);
    let rule = rule.to_owned();
    FileError::Denied(Box::new(Denial { layer, what, rule, need, proof, remedy: String::new() }))
}

/// What the system said, in our words.
pub(crate) fn said(name: &Path, error: io::Error) -> FileError {
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
