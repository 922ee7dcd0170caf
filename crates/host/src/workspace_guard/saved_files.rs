//! The content of protected files before a command, where no mount keeps them from change.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use windlass_files::{DirHandle, EntryKind, EntryStat};

use windlass_sandbox::ProtectedPaths;

/// Maximum size of a saved file, and maximum number of files saved per directory.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_ENTRIES: usize = 64;

/// Files with their content. A file that has not changed since it was read is not read again.
#[derive(Debug, Clone, Default)]
pub(super) struct SavedFiles(HashMap<PathBuf, SavedFile>);

/// One file.
#[derive(Debug, Clone)]
pub(super) struct SavedFile {
    pub(super) stat: EntryStat,
    pub(super) bytes: Vec<u8>,
    pub(super) permissions: u16,
}

impl SavedFiles {
    /// Reads the protected files: all of them, or those without a mount and those with several hard
    /// links.
    pub(super) fn read(protected: &ProtectedPaths, is_mounted: bool, earlier: Self) -> Self {
        let mut reader = SavedFileReader { earlier, saved: Self::default(), with_one_name: !is_mounted };
        for path in protected.read_only.iter().chain(&protected.git_configs) {
            reader.path(path);
        }
        reader.with_one_name = true;
        for path in &protected.unmounted {
            reader.path(path);
        }
        reader.saved
    }

    /// Returns the files below a directory.
    pub(super) fn below<'a>(
        &'a self,
        directory: &'a Path,
    ) -> impl Iterator<Item = (&'a PathBuf, &'a SavedFile)> {
        self.0.iter().filter(move |(path, _)| path.starts_with(directory))
    }

    pub(super) fn get(&self, path: &Path) -> Option<&SavedFile> {
        self.0.get(path)
    }
}

struct SavedFileReader {
    earlier: SavedFiles,
    saved: SavedFiles,
    /// Also saves files with a single hard link.
    with_one_name: bool,
}

impl SavedFileReader {
    fn path(&mut self, path: &Path) {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else { return };
        let Ok(directory) = DirHandle::open(above) else { return };
        let Ok(stat) = directory.stat_entry(name) else { return };
        match stat.kind {
            EntryKind::File => self.file(path, &directory, stat),
            EntryKind::Directory => {
                let Ok(inside) = directory.open_dir(Path::new(name)) else { return };
                for name in inside.list(MAX_ENTRIES).unwrap_or_default() {
                    let stat = inside.stat_entry(&name).ok().filter(|stat| stat.kind == EntryKind::File);
                    if let Some(stat) = stat {
                        self.file(&path.join(&name), &inside, stat);
                    }
                }
            }
            EntryKind::Symlink | EntryKind::Special => {}
        }
    }

    fn file(&mut self, path: &Path, directory: &DirHandle, stat: EntryStat) {
        if !self.with_one_name && stat.nlink == 1 {
            return;
        }
        let known = self.earlier.0.remove(path).filter(|known| known.stat == stat);
        let saved = known.or_else(|| {
            let bytes = directory.read_file(path.file_name()?, MAX_BYTES).ok()?;
            Some(SavedFile { stat, bytes, permissions: stat.permissions })
        });
        self.saved.0.extend(saved.map(|saved| (path.to_owned(), saved)));
    }
}
