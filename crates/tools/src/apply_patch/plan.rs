//! Plans a patch file by file: reads and computes everything before anything is written.

use std::{path::Path, sync::Arc};

use windlass_contract::{
    Cx, ToolError,
    edit::{Action, Change, Expected},
    event::{EditKind, FileEdit},
    files::FileError,
};
use windlass_patch::{ApplyError, FileOperation, MatchPosition, ParsedPatch, PatchChunk, Text, apply};

use super::{PatchCall, is_same, unverified};
use crate::change::{self, OriginalFile};

/// The edits of a patch.
pub(super) struct PatchPlan {
    pub(super) changes: Vec<Change>,
    pub(super) files: Vec<FileEdit>,
    /// Notes for the model on how its patch was interpreted.
    pub(super) notes: Vec<String>,
}

pub(super) async fn plan(
    patching: &PatchCall,
    parsed: &ParsedPatch<'_>,
    cx: &Cx,
) -> Result<PatchPlan, ToolError> {
    let mut plan = PatchPlan { changes: Vec::new(), files: Vec::new(), notes: Vec::new() };
    let mut refusals = Vec::new();
    for operation in &parsed.operations {
        let path = patching.place(operation.path());
        let written = operation.path();
        let move_path = operation.move_to().map(|to| patching.place(to)).filter(|to| !is_same(to, &path));
        let found = change::read(cx, &path).await;
        let (expected, action, kind) = match operation {
            FileOperation::Add { content, must_be_new, .. } => {
                let found = found.map_err(|error| problem("write file", written, error))?;
                if *must_be_new && found.is_some() {
                    let why =
                        format!("Failed to write file {written}: it already exists, and the diff creates it");
                    return Err(ToolError::failed(unverified(&why)));
                }
                refuse_binary(found.as_ref(), written)?;
                if let Some(found) = &found {
                    refusals.extend(found.refusal(cx, written));
                    plan.notes.extend((!found.is_known()).then(|| replaced(written)));
                }
                (expected(found.as_ref()), Action::Write(content.clone().into_bytes()), EditKind::Add)
            }
            FileOperation::Delete { removes, .. } => {
                let found = existing(found).map_err(|error| problem("delete file", written, error))?;
                if let Some(chunks) = removes
                    && !updated(&found.bytes, chunks, written)?.0.is_empty()
                {
                    let why =
                        format!("Failed to delete file {written}: it has more lines than the diff removes");
                    return Err(ToolError::failed(unverified(&why)));
                }
                refusals.extend(found.refusal(cx, written));
                (expected(Some(&found)), Action::Delete { folders: Vec::new() }, EditKind::Delete)
            }
            FileOperation::Update { chunks, .. } => {
                let found =
                    existing(found).map_err(|error| problem("read file to update", written, error))?;
                let (bytes, matches) = updated(&found.bytes, chunks, written)?;
                if matches.iter().all(is_sure) {
                    plan.notes.extend(found.news(written).map(|news| format!("Note: {news}")));
                } else {
                    refusals.extend(found.refusal(cx, written));
                }
                plan.notes.extend(matches.iter().filter_map(|found| note(found, written)));
                let action = match &move_path {
                    Some(to) => {
                        let replaced = change::read(cx, to).await.ok().flatten();
                        refusals
                            .extend(replaced.and_then(|found| found.refusal(cx, &to.display().to_string())));
                        Action::Move { to: to.clone(), bytes }
                    }
                    None => Action::Write(bytes),
                };
                (expected(Some(&found)), action, EditKind::Update)
            }
        };
        plan.files.push(FileEdit { path: path.clone(), kind, move_path });
        plan.changes.push(Change { path, expected, action });
    }
    if refusals.is_empty() { Ok(plan) } else { Err(ToolError::failed(unverified(&refusals.join("\n")))) }
}

/// Returns true if the lines of a chunk prove that the model knows the place, whatever else changed
/// in the file.
fn is_sure(found: &MatchPosition) -> bool {
    found.pass.ignoring().is_none() && found.others.is_empty()
}

fn replaced(path: &str) -> String {
    format!("Note: {path} already existed and is replaced; `windlass undo` restores it")
}

/// Returns the state that a file must have when the change is made.
fn expected(found: Option<&OriginalFile>) -> Expected {
    found.map_or(Expected::Absent, |found| Expected::Content(Arc::clone(&found.bytes)))
}

/// Returns an error if the file does not exist.
fn existing(found: Result<Option<OriginalFile>, FileError>) -> Result<OriginalFile, FileError> {
    found?.ok_or_else(|| FileError::NotFound { path: Path::new("").to_owned() })
}

/// Returns the new content of a file, and the matches of its chunks.
fn updated(
    found: &[u8],
    chunks: &[PatchChunk<'_>],
    path: &str,
) -> Result<(Vec<u8>, Vec<MatchPosition>), ToolError> {
    if chunks.is_empty() {
        // The file is only moved, so its content is not checked.
        return Ok((found.to_vec(), Vec::new()));
    }
    let failed = |problem: String| ToolError::failed(unverified(&problem));
    let text = Text::decode(found)
        .map_err(|error| failed(format!("Failed to read file to update {path}: {error}")))?;
    match apply(&text, chunks) {
        Ok(applied) => Ok((applied.bytes, applied.matches)),
        Err(ApplyError::Miss(miss)) => Err(failed(miss.describe(path))),
        Err(error) => Err(failed(format!("Failed to update {path}: {error}"))),
    }
}

fn refuse_binary(found: Option<&OriginalFile>, path: &str) -> Result<(), ToolError> {
    match found.map(|found| Text::decode(&found.bytes)) {
        Some(Err(error)) => Err(ToolError::failed(unverified(&format!(
            "Failed to write file {path}: {error}; delete it first if it is to be replaced"
        )))),
        _ => Ok(()),
    }
}

/// Returns a failure in the wording that models of this family know.
fn problem(step: &str, path: &str, error: FileError) -> ToolError {
    let reason = match &error {
        FileError::NotFound { .. } if step == "delete file" => String::new(),
        FileError::NotFound { .. } => ": No such file or directory (os error 2)".to_owned(),
        error => format!(": {error}"),
    };
    let ToolError { kind, source, .. } = change::unreachable_file(error);
    ToolError { kind, message: unverified(&format!("Failed to {step} {path}{reason}")), source }
}

/// Returns a note on a chunk that did not match exactly, or matched in more than one place.
fn note(found: &MatchPosition, path: &str) -> Option<String> {
    let line = found.line;
    let ignoring = found.pass.ignoring().map(|what| format!("matched ignoring {what}"));
    let list = || found.others.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let others = (!found.others.is_empty()).then(|| format!("also matches at line {}", list()));
    let told: Vec<_> = ignoring.into_iter().chain(others).collect();
    (!told.is_empty()).then(|| format!("Note: {path}, line {line}: {}", told.join("; ")))
}
