//! Copies of protected files: a new worktree or clone brings along what the repository already had.

use std::path::Path;

use windlass_files::{DirHandle, EntryKind, ScanNode};

use super::{GitProgram, RootCheck};

/// The largest file, the most entries of a directory, and the depth that are compared.
const MAX_BYTES: u64 = 1024 * 1024;
const MAX_ENTRIES: usize = 64;
const MAX_DEPTH: usize = 4;

impl<G: GitProgram> RootCheck<'_, G> {
    /// Tells whether a new protected name says the same as one of that name which was there before and could not change.
    pub(super) fn is_copy(&self, path: &Path) -> bool {
        let Some(node) = self.after.find(path) else { return false };
        let Ok((above, name)) = self.parent(path) else { return false };
        let known = self.protected.read_only.iter().filter(|known| known.file_name() == Some(&*name));
        known.filter_map(|known| DirHandle::open(known.parent()?).ok()).any(|other| {
            is_same_entry(&other, &above, node, MAX_DEPTH)
        })
    }
}

/// Compares an entry of one directory with the scanned entry of the same name in another.
fn is_same_entry(known: &DirHandle, new: &DirHandle, node: &ScanNode, depth: usize) -> bool {
    match node.stat.kind {
        // A second name would let the file be changed by it later.
        EntryKind::File if node.stat.nlink == 1 => {
            let read = |directory: &DirHandle| directory.read_file(&node.name, MAX_BYTES).ok();
            read(known).is_some_and(|bytes| read(new).as_ref() == Some(&bytes))
        }
        EntryKind::Directory if depth > 0 => {
            let below = Path::new(&node.name);
            let (Ok(known), Ok(new)) = (known.open_dir(below), new.open_dir(below)) else { return false };
            let (Ok(mut names), Ok(mut others)) = (known.list(MAX_ENTRIES), new.list(MAX_ENTRIES)) else {
                return false;
            };
            names.sort();
            others.sort();
            names == others
                && node.children.len() == names.len()
                && node.children.iter().all(|child| is_same_entry(&known, &new, child, depth - 1))
        }
        _ => false,
    }
}
