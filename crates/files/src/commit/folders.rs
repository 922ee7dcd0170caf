//! Makes the directories that a change needs, and removes them again.
//!
//! A directory is made under a name of ours, noted with its inode number, and only then given its own name: so the log can
//! tell it from one that someone else has made, which is never removed.

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
    Steps,
    plan::Slot,
    trace::{PREFIX, look},
};
use crate::handle::{to_name_in, to_name_in_at};

/// The directories that a change makes below one that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FolderTree {
    /// The outermost.
    pub(super) root: PathBuf,
    /// Part of the name under which it is made; nobody else uses it.
    pub(super) unique: String,
    /// Those inside, relative to the outermost, from the outside in.
    pub(super) inside: Vec<PathBuf>,
}

/// A directory that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MadeFolder {
    pub(super) real: PathBuf,
    /// Without the number of its device, which may be another after the next boot.
    pub(super) inode: u64,
}

impl FolderTree {
    /// Plans the directories for all files of a change, and says in each file's slot which are made for it.
    pub(super) fn plan(slots: &mut [Slot], unique: &str) -> Vec<Self> {
        let mut known = HashSet::new();
        let mut trees: Vec<Self> = Vec::new();
        for slot in slots {
            let above: Vec<_> =
                slot.real.ancestors().skip(1).take(slot.missing).map(Path::to_owned).collect();
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
            slot.made = made;
        }
        trees
    }

    fn draft(&self) -> OsString {
        format!("{PREFIX}{}.dir", self.unique).into()
    }

    /// Makes all of them under a name of ours.
    pub(super) fn make(&self, parent: &OwnedFd, steps: &Steps) -> io::Result<Vec<MadeFolder>> {
        let permissions = Mode::from_raw_mode(0o777);
        steps.take()?;
        mkdirat(parent, self.draft(), permissions)?;
        let root = to_name_in_at(parent, &self.draft())?;
        let mut made = vec![identify(&root, self.root.clone())?];
        for folder in &self.inside {
            steps.take()?;
            let (above, name) =
                (folder.parent().unwrap_or(Path::new("")), folder.file_name().unwrap_or_default());
            let above = descend(&root, above)?;
            mkdirat(above.as_ref().unwrap_or(&root), name, permissions)?;
            let inside = to_name_in_at(above.as_ref().unwrap_or(&root), name)?;
            made.push(identify(&inside, self.root.join(folder))?);
        }
        Ok(made)
    }

    /// Gives them their name. Fails if something has it by now.
    pub(super) fn appear(&self, parent: &OwnedFd, steps: &Steps) -> io::Result<()> {
        let (draft, name) = (self.draft(), self.root.file_name().unwrap_or_default());
        steps.take()?;
        match renameat_with(parent, &draft, parent, name, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) if look(parent, name)?.is_none() => {
                Ok(renameat(parent, &draft, parent, name)?)
            }
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => Err(io::ErrorKind::AlreadyExists.into()),
            result => Ok(result?),
        }
    }

    /// Removes those that did not get their name.
    pub(super) fn remove_draft(&self, steps: &Steps) {
        let draft = self.root.with_file_name(self.draft());
        let inside = self.inside.iter().map(|folder| draft.join(folder));
        remove_folders(&[draft.clone()].into_iter().chain(inside).collect::<Vec<_>>(), steps);
    }
}

/// Opens a directory inside one, component by component, without following links. None for the directory itself.
pub(super) fn descend(from: &OwnedFd, relative: &Path) -> io::Result<Option<OwnedFd>> {
    let mut opened: Option<OwnedFd> = None;
    for name in relative {
        opened = Some(to_name_in_at(opened.as_ref().unwrap_or(from), name)?);
    }
    Ok(opened)
}

fn identify(folder: &OwnedFd, real: PathBuf) -> io::Result<MadeFolder> {
    Ok(MadeFolder { real, inode: fstat(folder)?.st_ino })
}

/// Removes directories that were made for a change, the innermost first. One that holds something by now stays, and so does
/// one that someone else has made.
pub(super) fn remove_made(made: &[MadeFolder], steps: &Steps) {
    for MadeFolder { real, inode } in made.iter().rev() {
        let (Some(parent), Some(name)) = (real.parent(), real.file_name()) else { continue };
        let found = to_name_in(parent).and_then(|parent| look(&parent, name)).ok().flatten();
        if found.is_some_and(|found| found.st_ino == *inode) {
            remove_folders(std::slice::from_ref(real), steps);
        }
    }
}

/// Removes directories, the last first. One that holds something stays.
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
