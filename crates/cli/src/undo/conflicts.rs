//! Files that differ from the result of the newest of some edits.

use std::{
    collections::BTreeMap,
    fs::Metadata,
    io,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use windlass::{
    FileError, Version, counted,
    host::{EntryStanding, inspect_changes},
    patch::{Side, diff},
    record::{Edit, EditedFile, KeptKind, KeptVersion},
};

use super::{UndoRun, session};
use crate::{
    problem::CliProblem,
    screen::{visible, visible_lines, visible_path},
};

/// Maximum size of a file that is compared for a diff.
const MAX_DIFF_FILE_BYTES: u64 = 1024 * 1024;

/// Files that have changed since, with the differences.
pub(super) struct EditConflicts(BTreeMap<PathBuf, String>);

impl EditConflicts {
    /// Compares every file with the result of the newest of these edits.
    pub(super) async fn find(undo: &UndoRun<'_>, chosen: &[&Edit]) -> Result<Self, CliProblem> {
        let mut seen: BTreeMap<&Path, (&Edit, &EditedFile)> = BTreeMap::new();
        for edit in chosen {
            for file in &edit.files {
                seen.entry(&file.path).or_insert((edit, file));
            }
        }
        let (of_commands, of_tools): (Vec<_>, Vec<_>) =
            seen.into_values().partition(|(edit, _)| edit.command.is_some());
        let of_commands: Vec<_> = of_commands.into_iter().map(|(_, file)| file).collect();
        let mut changed = changed_between(undo, chosen)?;
        for file in entries_in_conflict(&of_commands)? {
            changed.insert(file.path.clone(), difference(undo, file).await?);
        }
        for (_, file) in of_tools {
            let difference = in_file(undo, file).await?;
            changed.extend(difference.map(|text| (file.path.clone(), text)));
        }
        Ok(Self(changed))
    }

    /// Returns the files that are left alone.
    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.keys().map(PathBuf::as_path)
    }

    /// Explains why nothing was undone.
    pub(super) fn message(&self) -> String {
        let differences: String = self.0.values().map(String::as_str).collect();
        format!(
            "not undone, because files have changed since; `--keep-changed` skips them and undoes the rest. Changed files:\n{}",
            differences.trim_end()
        )
    }
}

/// Finds files that something else changed between two of these edits, such as a person, or a
/// command that was killed before its changes were recorded. Undoing the older edit would lose that
/// change.
fn changed_between(undo: &UndoRun<'_>, chosen: &[&Edit]) -> Result<BTreeMap<PathBuf, String>, CliProblem> {
    let mut found = BTreeMap::new();
    let mut newer: BTreeMap<&Path, Option<&KeptVersion>> = BTreeMap::new();
    for file in chosen.iter().flat_map(|edit| &edit.files) {
        let next = newer.insert(&file.path, file.before.as_ref());
        let Some(next) = next.filter(|next| !is_same_version(*next, file.after.as_ref())) else { continue };
        let load = |kept: Option<&KeptVersion>| -> Result<Option<Version>, CliProblem> {
            let kept = kept.filter(|kept| kept.kind == KeptKind::File);
            kept.map(|kept| undo.edits.version(kept)).transpose().map_err(|error| session(&error))
        };
        let (left, next) = (load(file.after.as_ref())?, load(next)?);
        let bytes = |version: &Option<Version>| version.as_ref().map(|version| Arc::clone(&version.bytes));
        if left.is_some() && bytes(&left) == bytes(&next) {
            continue;
        }
        let path = visible_path(&file.path);
        let is_small = |version: &Option<Version>| {
            version.as_ref().is_none_or(|version| version.bytes.len() as u64 <= MAX_DIFF_FILE_BYTES)
        };
        let shown = if is_small(&left) && is_small(&next) {
            let name = path.trim_start_matches('/');
            let shown = diff(
                left.as_ref().map(|version| as_side(name, version)),
                next.as_ref().map(|version| as_side(name, version)),
            );
            visible_lines(&shown)
        } else {
            String::new()
        };
        let text = format!("{path}: was also changed between these changes, which was not recorded\n{shown}");
        found.insert(file.path.clone(), text);
    }
    Ok(found)
}

fn as_side<'a>(path: &'a str, version: &'a Version) -> Side<'a> {
    Side { path, bytes: &version.bytes, executable: version.mode & 0o111 != 0 }
}

/// Returns true if two versions are the same by the names of their contents.
fn is_same_version(one: Option<&KeptVersion>, other: Option<&KeptVersion>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.kind == other.kind && one.content == other.content,
        // A directory that a command made may be removed with its last entry, and made again.
        (Some(only), None) | (None, Some(only)) => only.kind == KeptKind::Directory,
    }
}

/// Finds the entries that commands changed and that have changed again since. All at once, since a
/// command may have replaced the directory of another entry.
fn entries_in_conflict<'a>(files: &[&'a EditedFile]) -> Result<Vec<&'a EditedFile>, CliProblem> {
    let damaged = |file: &EditedFile| {
        CliProblem::failed(format!("`{}`: the edit log is damaged", visible_path(&file.path)))
    };
    let reversed = files
        .iter()
        .map(|file| file.as_entry_change().map(|change| change.reversed()).ok_or_else(|| damaged(file)));
    let reversed = reversed.collect::<Result<Vec<_>, _>>()?;
    let standings = inspect_changes(&reversed)
        .map_err(|error| CliProblem::failed(format!("cannot read the files of a command: {error}")))?;
    let conflicts = files.iter().zip(standings).filter(|(_, standing)| *standing == EntryStanding::Conflict);
    Ok(conflicts.map(|(file, _)| *file).collect())
}

/// Compares a file that a tool changed; returns `None` if it is as the tool left it.
async fn in_file(undo: &UndoRun<'_>, file: &EditedFile) -> Result<Option<String>, CliProblem> {
    let left = file.after.as_ref().map(|kept| undo.edits.version(kept)).transpose();
    let left = left.map_err(|error| session(&error))?;
    let is_conflict = match now(&file.path)? {
        None => left.is_some(),
        Some(found) if displaced(&file.path).is_some() || !found.is_file() => true,
        Some(found) => {
            let modes: Vec<_> =
                [&file.before, &file.after].into_iter().flatten().map(|kept| kept.mode).collect();
            // A mode that the edit did not change is kept as it is now.
            let is_altered = modes.first() != modes.last();
            let is_other_mode = is_altered && !modes.contains(&(found.permissions().mode() & 0o7777));
            is_other_mode || Some(content(undo, &file.path).await?) != left.map(|left| left.bytes.to_vec())
        }
    };
    // A link in the path of a deleted file leads to another place.
    let is_conflict = is_conflict || displaced(&file.path).is_some();
    Ok(if is_conflict { Some(difference(undo, file).await?) } else { None })
}

/// Describes the difference from the result of an edit, for a person.
async fn difference(undo: &UndoRun<'_>, file: &EditedFile) -> Result<String, CliProblem> {
    let path = visible_path(&file.path);
    if let Some(link) = displaced(&file.path).filter(|link| *link != file.path) {
        let link = visible_path(link);
        return Ok(format!("{path}: `{link}` is a link now; to undo this, remove the link first\n"));
    }
    let now = now(&file.path)?;
    let kind_then = file.after.as_ref().map(|kept| kept.kind);
    let is_file_then = kind_then.is_none_or(|kind| kind == KeptKind::File);
    let is_small = |found: &Metadata| found.is_file() && found.len() <= MAX_DIFF_FILE_BYTES;
    let mode = |found: &Metadata| found.permissions().mode() & 0o7777;
    if is_file_then && now.as_ref().is_none_or(is_small) {
        let left = file.after.as_ref().map(|kept| undo.edits.version(kept)).transpose();
        let left = left.map_err(|error| session(&error))?;
        let bytes = match &now {
            Some(_) => Some(content(undo, &file.path).await?),
            None => None,
        };
        let name = path.trim_start_matches('/');
        let side = |bytes, mode: u32| Side { path: name, bytes, executable: mode & 0o111 != 0 };
        let then = left.as_ref().map(|left| side(&left.bytes, left.mode));
        let shown =
            diff(then, bytes.as_deref().zip(now.as_ref()).map(|(bytes, found)| side(bytes, mode(found))));
        // The diff only shows whether a file is executable.
        if left.as_ref().map(|left| &*left.bytes) != bytes.as_deref() {
            return Ok(visible_lines(&shown));
        }
    }
    let then = match (kind_then, &file.after) {
        (Some(KeptKind::Symlink), Some(kept)) => format!("a link to {}", visible(&kept.content)),
        (Some(KeptKind::Directory), Some(kept)) => format!("a directory with mode {:o}", kept.mode),
        (_, Some(kept)) => format!("a file with mode {:o}", kept.mode),
        (_, None) => "nothing".to_owned(),
    };
    let now = now.map_or("nothing".to_owned(), |found| match found.file_type() {
        kind if kind.is_symlink() => {
            let target = file.path.read_link().map(|target| visible_path(&target)).unwrap_or_default();
            format!("a link to {target}")
        }
        kind if kind.is_dir() => format!("a directory with mode {:o}", mode(&found)),
        kind if kind.is_fifo() || kind.is_socket() => "a FIFO or socket".to_owned(),
        _ => format!("a file of {} with mode {:o}", counted(found.len(), "byte"), mode(&found)),
    });
    Ok(format!("{path}: was {then}, is now {now}\n"))
}

/// Returns the current metadata of a path.
fn now(path: &Path) -> Result<Option<Metadata>, CliProblem> {
    use io::ErrorKind::{NotADirectory, NotFound};
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        found => found.map(Some).map_err(|error| CliProblem::file("cannot read", path, &error)),
    }
}

async fn content(undo: &UndoRun<'_>, path: &Path) -> Result<Vec<u8>, CliProblem> {
    let failed = |error: FileError| CliProblem::failed(error.to_string());
    let file = undo.files.open(path).await.map_err(failed)?;
    let size = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
    file.read_at(0, size).await.map_err(failed)
}

/// Returns the link in the path of a file, or in its place. Edits are recorded by their real paths,
/// so any link is new. A tool may have created it to write the old content where it was never
/// allowed to write.
fn displaced(path: &Path) -> Option<&Path> {
    let is_link = |part: &&Path| part.symlink_metadata().is_ok_and(|found| found.is_symlink());
    path.ancestors().find(is_link)
}
