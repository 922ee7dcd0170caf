//! Reading text files of a project or of the user, with limits.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    io::Read,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use ring::digest::{SHA256, digest};
use windlass_files::{DirHandle, EntryKind};

/// Maximum number of entries of a directory.
const MAX_ENTRIES: usize = 1000;

/// A directory with instruction files.
#[derive(Debug)]
pub(crate) struct TextTree {
    root: PathBuf,
    /// A project: its files are opened beneath this directory.
    project: Option<DirHandle>,
}

/// The start of a file.
#[derive(Debug)]
pub(crate) struct FileStart {
    pub(crate) bytes: Vec<u8>,
    /// The size of the whole file.
    pub(crate) size: u64,
}

impl TextTree {
    /// Opens the root of a project, a path without links.
    pub(crate) fn project(root: &Path) -> io::Result<Self> {
        Ok(Self { root: root.to_owned(), project: Some(DirHandle::open(root)?) })
    }

    /// Names a directory of the user, whose links are followed.
    pub(crate) fn own(root: &Path) -> Self {
        Self { root: root.to_owned(), project: None }
    }

    pub(crate) fn path(&self, relative: &Path) -> PathBuf {
        self.root.join(relative)
    }

    /// Reads a whole file. More than `max_bytes` is an error.
    pub(crate) fn read(&self, relative: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let FileStart { bytes, size } = self.read_start(relative, max_bytes.saturating_add(1))?;
        if bytes.len() as u64 > max_bytes {
            let message = format!("it has {size} bytes; at most {max_bytes} are read");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
        }
        Ok(bytes)
    }

    /// Reads the first `max_bytes` of a file.
    pub(crate) fn read_start(&self, relative: &Path, max_bytes: u64) -> io::Result<FileStart> {
        let Some(handle) = &self.project else { return read_own(&self.root.join(relative), max_bytes) };
        let real = self.real_path(relative)?;
        if real != relative && !has_markdown_ending(&real) {
            return Err(io::Error::other("it is a link to a file that is not Markdown"));
        }
        let directory = handle.open_dir(real.parent().unwrap_or(Path::new("")))?;
        let name = real.file_name().unwrap_or_default();
        if directory.stat_entry(name)?.kind != EntryKind::File {
            return Err(io::Error::other("it is not a file"));
        }
        let (bytes, size) = directory.read_start(name, max_bytes)?;
        Ok(FileStart { bytes, size })
    }

    /// Lists the names in a directory, sorted. A directory that does not exist is empty.
    pub(crate) fn list(&self, relative: &Path) -> io::Result<Vec<OsString>> {
        let listed = match &self.project {
            None => list_own(&self.root.join(relative)),
            Some(handle) => {
                self.real_path(relative).and_then(|real| handle.open_dir(&real)?.list(MAX_ENTRIES))
            }
        };
        let mut names = match listed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed?,
        };
        names.sort();
        Ok(names)
    }

    /// Opens a directory of a project, for a walk that follows no links.
    pub(crate) fn open_dir(&self, relative: &Path) -> io::Result<Option<DirHandle>> {
        let Some(handle) = &self.project else { return Ok(None) };
        handle.open_dir(&self.real_path(relative)?).map(Some)
    }

    /// Resolves the links of a path. The result is beneath the root, or an error. It is opened
    /// without following links, so that a link that appears meanwhile is an error, too.
    fn real_path(&self, relative: &Path) -> io::Result<PathBuf> {
        let real = fs::canonicalize(self.root.join(relative))?;
        let leads_out = |_| io::Error::other("it is a link that leads out of the project");
        real.strip_prefix(&self.root).map(Path::to_owned).map_err(leads_out)
    }
}

/// Returns true for the name of a Markdown file.
pub(crate) fn has_markdown_ending(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("md"))
}

/// Returns the digest of a file's content.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a regular file without waiting for the writer of a pipe.
fn read_own(path: &Path, max_bytes: u64) -> io::Result<FileStart> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(max_bytes).read_to_end(&mut bytes)?;
    Ok(FileStart { bytes, size: metadata.len() })
}

fn list_own(path: &Path) -> io::Result<Vec<OsString>> {
    let names: Vec<_> = fs::read_dir(path)?
        .take(MAX_ENTRIES + 1)
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<io::Result<_>>()?;
    if names.len() > MAX_ENTRIES {
        return Err(io::Error::other(format!("it has more than {MAX_ENTRIES} entries")));
    }
    Ok(names)
}

/// Returns the stem of a Markdown file's name.
pub(crate) fn markdown_stem(name: &OsStr) -> Option<&OsStr> {
    let path = Path::new(name);
    path.file_stem().filter(|_| has_markdown_ending(path))
}
