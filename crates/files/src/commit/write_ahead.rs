//! The write-ahead log of a change: what the next start reads if this process dies in the middle of it.
//!
//! It lies in a directory of Windlass and is locked while its writer lives. Without the word `ready` no file was touched
//! yet; with `done`, all were; in between, everything is put back.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the log is in a directory of Windlass itself, which no command can reach"
)]

use std::{
    ffi::{OsStr, OsString},
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::fs::{AtFlags, unlinkat};

use super::{Steps, Trace};
use crate::handle::to_name_in;

const BEGIN: &str = "windlass change 1";
const EXTENSION: &str = "change";

/// The log of a change that is being made.
#[derive(Debug)]
pub(super) struct WriteAheadLog {
    file: File,
    path: PathBuf,
}

impl WriteAheadLog {
    /// Writes which directories and files are about to be made and changed.
    pub(super) fn begin(
        directory: &Path,
        unique: &str,
        folders: &[PathBuf],
        traces: &[Trace],
        steps: &Steps,
    ) -> io::Result<Self> {
        steps.take()?;
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        // Written and locked under another name first: a log that can be found is whole, and is locked as long as we live.
        let draft = directory.join(format!("{unique}.draft"));
        let path = directory.join(format!("{unique}.{EXTENSION}"));
        let mut file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&draft)?;
        let mut fields: Vec<&[u8]> = vec![BEGIN.as_bytes()];
        for folder in folders {
            fields.extend([b"folder".as_slice(), folder.as_os_str().as_bytes()]);
        }
        for trace in traces {
            fields.extend([b"file".as_slice(), trace.real.as_os_str().as_bytes()]);
            fields.extend([trace.staged.as_bytes(), trace.saved.as_bytes()]);
        }
        let written = file
            .try_lock()
            .map_err(io::Error::from)
            .and_then(|()| write(&mut file, &fields))
            .and_then(|()| fs::rename(&draft, &path));
        if let Err(error) = written {
            drop(fs::remove_file(&draft));
            return Err(error);
        }
        Ok(Self { file, path })
    }

    /// Writes that files change from now on, and which contents are the new ones.
    pub(super) fn ready(&mut self, traces: &[Trace], steps: &Steps) -> io::Result<()> {
        steps.take()?;
        let inodes = traces.iter().map(|trace| trace.inode.as_deref().unwrap_or_default().as_bytes());
        let fields: Vec<&[u8]> = [b"ready".as_slice()].into_iter().chain(inodes).collect();
        write(&mut self.file, &fields)
    }

    /// Makes the log outlive the machine.
    pub(super) fn sync(&self, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        self.file.sync_data()?;
        self.path.parent().map_or(Ok(()), |directory| File::open(directory)?.sync_data())
    }

    /// Writes that the change is made. This is the moment it counts.
    pub(super) fn done(&mut self, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        write(&mut self.file, &[b"done"])
    }

    /// There is nothing left to do.
    pub(super) fn remove(&self, steps: &Steps) -> io::Result<()> {
        steps.take()?;
        fs::remove_file(&self.path)
    }
}

fn write(file: &mut File, fields: &[&[u8]]) -> io::Result<()> {
    let bytes: Vec<u8> = fields.iter().flat_map(|field| field.iter().copied().chain([0])).collect();
    file.write_all(&bytes)
}

/// What became of a change that a process had left unfinished.
#[derive(Debug)]
pub enum Recovery {
    /// These files are again what they were before the change.
    PutBack(Vec<PathBuf>),
    /// The change had been made; only our own traces were left.
    Finished,
    /// A file could not be put back; it is tried again next time.
    Failed {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// Finishes or takes back what processes that are gone have left unfinished. The directory is the archive's.
pub fn recover(directory: &Path) -> io::Result<Vec<Recovery>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut recovered = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new(EXTENSION)) {
            continue;
        }
        let Ok(file) = File::open(&path) else { continue };
        // Locked: whoever wrote it is alive and sees to it.
        if file.try_lock().is_err() {
            continue;
        }
        recovered.extend(Left::read(&path)?.map(|left| left.recover(&path)));
    }
    Ok(recovered)
}

/// A change that was left unfinished.
#[derive(Debug, Default)]
struct Left {
    folders: Vec<PathBuf>,
    traces: Vec<Trace>,
    done: bool,
}

impl Left {
    /// Reads a log; `None` if it has gone meanwhile.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        let mut left = Self::default();
        // A field without its end was being written when the end came.
        let mut fields =
            bytes.split_inclusive(|byte| *byte == 0).filter_map(|field| field.strip_suffix(&[0]));
        let text = |field: &[u8]| OsString::from_vec(field.to_vec());
        fields.next();
        while let Some(tag) = fields.next() {
            match tag {
                b"folder" => left.folders.extend(fields.next().map(|path| PathBuf::from(text(path)))),
                b"file" => {
                    let (real, staged, saved) = (fields.next(), fields.next(), fields.next());
                    if let (Some(real), Some(staged), Some(saved)) = (real, staged, saved) {
                        let (staged, saved) = (text(staged), text(saved));
                        left.traces.push(Trace { real: text(real).into(), staged, saved, inode: None });
                    }
                }
                b"ready" => {
                    for trace in &mut left.traces {
                        let inode = fields.next().map(|inode| String::from_utf8_lossy(inode).into_owned());
                        trace.inode = inode.filter(|inode| !inode.is_empty());
                    }
                }
                b"done" => left.done = true,
                _ => break,
            }
        }
        Ok(Some(left))
    }

    fn recover(self, log: &Path) -> Recovery {
        let steps = Steps::default();
        for trace in self.traces.iter().rev() {
            let directory = match trace.real.parent().map(to_name_in) {
                Some(Ok(directory)) => directory,
                // The whole directory has gone, and what was in it.
                None => continue,
                Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => continue,
                Some(Err(source)) => return Recovery::Failed { path: trace.real.clone(), source },
            };
            let end =
                if self.done { trace.clear(&directory, &steps) } else { trace.put_back(&directory, &steps) };
            if let Err(source) = end {
                return Recovery::Failed { path: trace.real.clone(), source };
            }
        }
        if !self.done {
            remove_folders(&self.folders, &steps);
        }
        drop(fs::remove_file(log));
        if self.done {
            Recovery::Finished
        } else {
            Recovery::PutBack(self.traces.into_iter().map(|trace| trace.real).collect())
        }
    }
}

/// Removes directories that were made for a change, the innermost first. One that holds something by now stays.
pub(super) fn remove_folders(folders: &[PathBuf], steps: &Steps) {
    for folder in folders.iter().rev() {
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { continue };
        let Ok(directory) = to_name_in(parent) else { continue };
        if steps.take().is_ok() {
            // Not empty or not there: both are fine.
            let _stays = unlinkat(&directory, name, AtFlags::REMOVEDIR);
        }
    }
}
