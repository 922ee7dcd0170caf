//! Files that are not as the newest of some edits has left them.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use windlass::{
    FileError,
    host::{EntryStanding, inspect_changes},
    patch::{Side, diff},
    record::{Edit, EditedFile},
};

use super::{Undoing, session};
use crate::{problem::Problem, screen::visible};

/// Files that someone changed since, with what has changed.
pub(super) struct Conflicts {
    changed: BTreeMap<PathBuf, String>,
    /// A link on the way to a file that was none when the file was changed.
    links: Vec<(PathBuf, PathBuf)>,
}

impl Conflicts {
    /// Compares every file with what the newest of these edits has made of it.
    pub(super) async fn find(undo: &Undoing<'_>, chosen: &[&Edit]) -> Result<Self, Problem> {
        let mut seen: BTreeMap<&Path, (&Edit, &EditedFile)> = BTreeMap::new();
        for edit in chosen {
            for file in &edit.files {
                seen.entry(&file.path).or_insert((edit, file));
            }
        }
        let mut conflicts = Self { changed: BTreeMap::new(), links: Vec::new() };
        for (path, (edit, file)) in seen {
            if let Some(link) = displaced(path, edit.command.is_some()) {
                conflicts.links.push((path.to_owned(), link.to_owned()));
                continue;
            }
            let conflict = if edit.command.is_some() {
                in_entry(file).map_err(|error| Problem::failed(format!("`{}`: {error}", path.display())))?
            } else {
                in_file(undo, file).await?
            };
            conflicts.changed.extend(conflict.map(|text| (path.to_owned(), text)));
        }
        Ok(conflicts)
    }

    /// The files that are left alone.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.changed.keys().map(PathBuf::as_path).chain(self.links.iter().map(|(path, _)| path.as_path()))
    }

    /// Tells whether the rest may be undone without them.
    pub(super) fn can_be_kept(&self) -> bool {
        self.links.is_empty()
    }

    /// Why nothing was undone.
    pub(super) fn message(&self) -> String {
        if let Some((path, link)) = self.links.first() {
            return format!(
                "not undone: `{}` is not what it was, because `{}` is a link now; remove the link first",
                visible(&path.display().to_string()),
                visible(&link.display().to_string())
            );
        }
        let diffs: String = self.changed.values().map(String::as_str).collect();
        format!(
            "not undone, because files have changed since; `--keep-changed` leaves them and undoes the rest. What has changed:\n{diffs}"
        )
    }
}

/// Compares an entry that a command changed.
fn in_entry(file: &EditedFile) -> std::io::Result<Option<String>> {
    let Some(change) = file.as_entry_change() else {
        return Ok(Some(format!("{}: the edit log is damaged\n", file.path.display())));
    };
    let is_conflict = inspect_changes(&[change.reversed()])?.contains(&EntryStanding::Conflict);
    Ok(is_conflict.then(|| format!("{}\n", visible(&file.path.display().to_string()))))
}

/// Compares a file that a tool changed.
async fn in_file(undo: &Undoing<'_>, file: &EditedFile) -> Result<Option<String>, Problem> {
    let left = file.after.as_ref().map(|kept| undo.edits.version(kept)).transpose();
    let left = left.map_err(|error| session(&error))?.map(|version| version.bytes);
    let now = now(undo, &file.path).await?;
    if left.as_deref() == now.as_deref() {
        return Ok(None);
    }
    let name = file.path.to_string_lossy();
    let side = |bytes| Side { path: name.trim_start_matches('/'), bytes, executable: false };
    Ok(Some(diff(left.as_deref().map(side), now.as_deref().map(side))))
}

async fn now(undo: &Undoing<'_>, path: &Path) -> Result<Option<Vec<u8>>, Problem> {
    let failed = |error: FileError| Problem::failed(error.to_string());
    let file = match undo.files.open(path).await {
        Err(FileError::NotFound { .. }) => return Ok(None),
        file => file.map_err(failed)?,
    };
    let size = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
    file.read_at(0, size).await.map(Some).map_err(failed)
}

/// The link on the way to a file that was none when the file was changed. Edits are written down by their real names, so
/// any link is new; a tool may have left it there to send the old content where it was never allowed to write. A command may
/// have made a link of the file itself.
fn displaced(path: &Path, may_be_link: bool) -> Option<&Path> {
    let is_link = |part: &&Path| part.symlink_metadata().is_ok_and(|found| found.is_symlink());
    path.ancestors().skip(usize::from(may_be_link)).find(is_link)
}
