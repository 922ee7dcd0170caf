//! Makes the directories that a change needs, and removes them on a rollback.
//!
//! A directory is made under a draft name, logged with its inode number, and only then renamed. So
//! recovery can tell it from a directory that someone else has made, which is never removed.

use std::{
    collections::HashSet,
    ffi::OsString,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, Mode, RenameFlags, fstat, mkdirat, renameat, renameat_with, unlinkat},
    io::Errno,
};

use super::{
    FailPoints,
    file_swap::{PREFIX, look},
    plan::PlannedFile,
};
use crate::handle::{open_directory, open_directory_at};

/// The directories that a change makes below an existing one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderTree {
    /// The outermost directory.
    pub(super) root: PathBuf,
    /// Unique part of its draft name.
    pub(super) unique: String,
    /// The directories inside, relative to the outermost, parents first.
    pub(super) inside: Vec<PathBuf>,
}

/// A directory that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MadeFolder {
    pub(super) real: PathBuf,
    /// The inode number. The device number is not kept: it may differ after the next boot.
    pub(super) inode: u64,
}

impl FolderTree {
    /// Plans the directories for all files of a change, and records in each file which are made for
    /// it.
    pub(super) fn plan(files: &mut [PlannedFile], unique: &str) -> Vec<Self> {
        let mut known = HashSet::new();
        let mut trees: Vec<Self> = Vec::new();
        for planned in files {
            let above: Vec<_> =
                planned.real.ancestors().skip(1).take(planned.missing).map(Path::to_owned).collect();
            let Some(root) = above.last().cloned() else { continue };
            let made: Vec<_> =
                above.into_iter().rev().filter(|folder| known.insert(folder.clone())).collect();
            if made.first() == Some(&root) {
                let unique = format!("{unique}-{}", trees.len());
                trees.push(Self { root: root.clone(), unique, inside: Vec::new() });
            }
            if let Some(tree) = trees.iter_mut().find(|tree| tree.root == root) {
                let inside = made.iter().filter_map(|folder| folder.strip_prefix(&root).ok());
                tree.inside
                    .extend(inside.filter(|folder| !folder.as_os_str().is_empty()).map(Path::to_owned));
            }
            planned.made = made;
        }
        trees
    }

    fn draft(&self) -> OsString {
        format!("{PREFIX}{}.dir", self.unique).into()
    }

    /// Makes all of them under the draft name.
    pub(super) fn make(&self, parent: &OwnedFd, fail_points: &FailPoints) -> io::Result<Vec<MadeFolder>> {
        let permissions = Mode::from_raw_mode(0o777);
        fail_points.hit()?;
        mkdirat(parent, self.draft(), permissions)?;
        let root = open_directory_at(parent, &self.draft())?;
        let mut made = vec![identify(&root, self.root.clone())?];
        for folder in &self.inside {
            fail_points.hit()?;
            let (above, name) =
                (folder.parent().unwrap_or(Path::new("")), folder.file_name().unwrap_or_default());
            let above = descend(&root, above)?;
            mkdirat(above.as_ref().unwrap_or(&root), name, permissions)?;
            let inside = open_directory_at(above.as_ref().unwrap_or(&root), name)?;
            made.push(identify(&inside, self.root.join(folder))?);
        }
        Ok(made)
    }

    /// Renames the draft to its real name. Fails if that name is taken by now.
    pub(super) fn rename_into_place(&self, parent: &OwnedFd, fail_points: &FailPoints) -> io::Result<()> {
        let (draft, name) = (self.draft(), self.root.file_name().unwrap_or_default());
        fail_points.hit()?;
        match renameat_with(parent, &draft, parent, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if look(parent, name)?.is_none() => {
                Ok(renameat(parent, &draft, parent, name)?)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::AlreadyExists.into()),
            result => Ok(result?),
        }
    }

    /// Removes a draft that was not renamed.
    pub(super) fn remove_draft(&self, fail_points: &FailPoints) {
        let draft = self.root.with_file_name(self.draft());
        let inside = self.inside.iter().map(|folder| draft.join(folder));
        remove_folders(&[draft.clone()].into_iter().chain(inside).collect::<Vec<_>>(), fail_points);
    }
}

/// Opens a directory inside another, component by component, without following links. Returns
/// `None` for an empty path.
pub(super) fn descend(from: &OwnedFd, relative: &Path) -> io::Result<Option<OwnedFd>> {
    let mut opened: Option<OwnedFd> = None;
    for name in relative {
        opened = Some(open_directory_at(opened.as_ref().unwrap_or(from), name)?);
    }
    Ok(opened)
}

fn identify(folder: &OwnedFd, real: PathBuf) -> io::Result<MadeFolder> {
    Ok(MadeFolder { real, inode: fstat(folder)?.st_ino })
}

/// Removes directories that were made for a change, the innermost first. A directory that is not
/// empty, or that someone else has made, stays.
pub(super) fn remove_made(made: &[MadeFolder], fail_points: &FailPoints) {
    for MadeFolder { real, inode } in made.iter().rev() {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { continue };
        let found = open_directory(parent).and_then(|parent| look(&parent, name)).ok().flatten();
        if found.is_some_and(|found| found.st_ino == *inode) {
            remove_folders(std::slice::from_ref(real), fail_points);
        }
    }
}

/// Removes directories, the last first. A directory that is not empty stays.
pub(super) fn remove_folders(folders: &[PathBuf], fail_points: &FailPoints) {
    for folder in folders.iter().rev() {
        let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { continue };
        let Ok(directory) = open_directory(parent) else { continue };
        if fail_points.hit().is_ok() {
            // Not empty or absent: both are fine.
            let _stays = unlinkat(&directory, name, AtFlags::REMOVEDIR);
        }
    }
}
