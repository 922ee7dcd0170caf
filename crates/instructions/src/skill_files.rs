//! The Markdown files of a skill. A decision about a skill is bound to their contents, because the
//! model is asked to follow them. Programs of a skill are not among them: they run like any other
//! program of the project, under the policy and in the sandbox.

use std::{io, path::Path};

use windlass_files::{DirHandle, EntryKind};

use crate::{
    FileDigests,
    text_tree::{TextTree, has_markdown_ending, sha256},
};

/// Maximum number of entries of a directory.
const MAX_ENTRIES: usize = 1000;

/// Maximum number of Markdown files of a skill.
const MAX_FILES: usize = 200;

/// Maximum size of a file.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// Maximum size of all Markdown files.
const MAX_BYTES: usize = 4 * 1024 * 1024;

/// Maximum depth of directories.
const MAX_DEPTH: usize = 6;

/// Returns the digests of all Markdown files below a directory. Directories behind links are not
/// walked: the model reads files there like any other file of the project.
pub(crate) fn digests(tree: &TextTree, directory: &Path) -> io::Result<FileDigests> {
    let mut walk = MarkdownWalk { tree, directory, found: FileDigests::new(), bytes: 0 };
    if let Some(handle) = tree.open_dir(directory)? {
        walk.visit(&handle, Path::new(""), 0)?;
    }
    Ok(walk.found)
}

struct MarkdownWalk<'a> {
    tree: &'a TextTree,
    directory: &'a Path,
    found: FileDigests,
    bytes: usize,
}

impl MarkdownWalk<'_> {
    fn visit(&mut self, handle: &DirHandle, below: &Path, depth: usize) -> io::Result<()> {
        if depth > MAX_DEPTH {
            return Err(io::Error::other(format!("its directories are more than {MAX_DEPTH} deep")));
        }
        for name in handle.list(MAX_ENTRIES)? {
            let relative = below.join(&name);
            match handle.stat_entry(&name)?.kind {
                EntryKind::Directory => {
                    self.visit(&handle.open_dir(Path::new(&name))?, &relative, depth + 1)?;
                }
                EntryKind::File | EntryKind::Symlink if has_markdown_ending(&relative) => {
                    self.add(&relative)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn add(&mut self, relative: &Path) -> io::Result<()> {
        if relative.to_str().is_none() {
            let name = relative.display();
            return Err(io::Error::other(format!("the name of its file {name} is not UTF-8")));
        }
        let path = self.directory.join(relative);
        let bytes = self.tree.read(&path, MAX_FILE_BYTES).map_err(|error| {
            io::Error::new(error.kind(), format!("its file {}: {error}", relative.display()))
        })?;
        self.bytes += bytes.len();
        if self.bytes > MAX_BYTES || self.found.len() == MAX_FILES {
            let limits = format!("more than {MAX_FILES} files or {MAX_BYTES} bytes of Markdown");
            return Err(io::Error::other(limits));
        }
        self.found.insert(path, sha256(&bytes));
        Ok(())
    }
}
