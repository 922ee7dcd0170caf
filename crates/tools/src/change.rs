//! Shared by the tools that change files: reads files, commits all changes together, and words
//! errors and notes for the model.

use std::{io, path::Path, sync::Arc, time::Duration};

use windlass_contract::{
    Cx, Event, Meta, ToolError,
    edit::{Change, Changed, CommitError},
    event::FileEdit,
    files::{FileError, Seen},
    meta::Category,
    verdict::{Criteria, Gives},
};

use crate::file_error;

pub(crate) mod diff;
mod original_file;

pub(crate) use original_file::OriginalFile;

/// Maximum size of a file that is read to be changed. No larger one could be written.
const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// Reads a file, or returns `None` if it does not exist.
pub(crate) async fn read(cx: &Cx, path: &Path) -> Result<Option<OriginalFile>, FileError> {
    let file = match cx.host.files().open(path).await {
        Err(FileError::NotFound { .. }) => return Ok(None),
        file => file?,
    };
    if file.size_bytes() > MAX_FILE_BYTES {
        let source =
            io::Error::new(io::ErrorKind::FileTooLarge, "too large to be changed; use a command instead");
        return Err(FileError::Io { path: path.to_owned(), source });
    }
    let size = usize::try_from(file.size_bytes()).unwrap_or(usize::MAX);
    let bytes: Arc<[u8]> = file.read_at(0, size).await?.into();
    let since =
        cx.host.files().since(Seen { path: file.real_path(), stamp: file.stamp(), bytes: Some(&bytes) });
    Ok(Some(OriginalFile { bytes, since, file }))
}

/// Changes files, all or none, and emits an event. Returns notes for the model.
pub(crate) async fn commit(
    cx: &Cx,
    changes: Vec<Change>,
    files: Vec<FileEdit>,
) -> Result<Vec<String>, ToolError> {
    if cx.cancel.is_cancelled() {
        return Err(ToolError::cancelled());
    }
    let id = cx.id.clone();
    cx.events.emit(Event::EditStarted { id: id.clone(), files: files.clone() });
    let end = cx.host.files().commit(&cx.id, changes).await;
    let success = end.is_ok();
    let (made, end) = match end {
        Ok(made) => (made, Ok(())),
        Err(error) => (Vec::new(), Err(tool_error(error))),
    };
    for Changed { path, after, stamp, .. } in &made {
        if let (Some(after), Some(stamp)) = (after, stamp) {
            // The model knows the content of a file that it wrote.
            cx.host.files().show(Seen { path, stamp: *stamp, bytes: Some(&after.bytes) });
        }
    }
    let notes = made.iter().filter_map(other_names).collect();
    cx.events.emit(Event::EditEnded { id, files, success, changed: made });
    end.map(|()| notes)
}

fn other_names(changed: &Changed) -> Option<String> {
    let (path, count) = (changed.path.display(), changed.other_names);
    (count > 0).then(|| {
        format!("Note: {path} had {count} other name(s) (hard links) elsewhere; they keep the old content")
    })
}

/// Words an error of the host for the model.
fn tool_error(error: CommitError) -> ToolError {
    match error {
        CommitError::File(error) => unreachable_file(error),
        CommitError::Failed { ref source, .. } => {
            ToolError::new(file_error::system_kind(source), error.to_string()).with_source(error)
        }
        error => ToolError::failed(error.to_string()).with_source(error),
    }
}

/// Words the error of an unreachable file for the model.
pub(crate) fn unreachable_file(error: FileError) -> ToolError {
    file_error::with_message(error.to_string(), error)
}

/// Returns the metadata that the tools that change files share, without examples.
pub(crate) fn meta() -> Meta {
    Meta {
        category: Category::Files,
        constraints: vec![
            "all of a call is done or nothing".to_owned(),
            "text files only; encoding, line endings and mode stay".to_owned(),
            "a file that changed since you read it is not overwritten".to_owned(),
        ],
        side_effects: vec!["changes the files it names; `windlass undo` takes it back".to_owned()],
        returns: "which files were changed".to_owned(),
        criteria: Criteria::new(Gives::Text, Duration::from_secs(5)),
        ..Meta::default()
    }
}
