//! Copies of protected files: a new worktree or clone brings along what the repository already had.

use std::path::Path;

use windlass_files::{DirHandle, EntryKind, ScanNode};

use super::{GitProgram, RootCheck};

/// The largest file and the depth that are compared.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_DEPTH: usize = 4;

impl<G: GitProgram> RootCheck<'_, G> {
    /// Tells whether a new protected name says the same as one of that name that was there before.
    pub(super) fn is_copy(&self, path: &Path) -> bool {
        let (Some(node), Ok((directory, name))) = (self.after.find(path), self.parent(path)) else {
            return false;
        };
        let protected = self.protected.read_only.iter().chain(&self.protected.unmounted);
        let own = self.absolute(path);
        let others = protected.filter(|known| known.file_name() == Some(&*name) && **known != own);
        others.into_iter().any(|known| {
            let before = known.strip_prefix(&self.root.path).ok().and_then(|known| self.before.find(known));
            before.is_some_and(|before| self.has_same_content((known, before), (&directory, node), MAX_DEPTH))
        })
    }

    /// Compares an entry as it was with one of the same name in another directory.
    fn has_same_content(
        &self,
        (known, before): (&Path, &ScanNode),
        (directory, node): (&DirHandle, &ScanNode),
        depth: usize,
    ) -> bool {
        match (before.stat.kind, node.stat.kind) {
            // A second name would let the file be changed by it later.
            (EntryKind::File, EntryKind::File) if node.stat.nlink == 1 => {
                let bytes = directory.read_file(&node.name, MAX_BYTES).ok();
                bytes.is_some() && bytes == self.known_bytes(known)
            }
            (EntryKind::Directory, EntryKind::Directory) if depth > 0 => {
                let Ok(inside) = directory.open_dir(Path::new(&node.name)) else { return false };
                let mut pairs = before.children.iter().zip(node.children.iter());
                before.children.len() == node.children.len()
                    && pairs.all(|(old, new)| {
                        old.name == new.name
                            && self.has_same_content((&known.join(&old.name), old), (&inside, new), depth - 1)
                    })
            }
            _ => false,
        }
    }

    /// Returns the content of a protected file before the command.
    fn known_bytes(&self, path: &Path) -> Option<Vec<u8>> {
        if let Some(saved) = self.saved.get(path) {
            return Some(saved.bytes.clone());
        }
        let (above, name) = path.parent().zip(path.file_name())?;
        DirHandle::open(above).ok().filter(|_| self.mounts_hold)?.read_file(name, MAX_BYTES).ok()
    }
}
