//! Formats an edit for a person or a program.

use std::{
    io::{self, IsTerminal},
    path::Path,
    time::Duration,
};

use serde_json::{Value, json};
use windlass::{
    patch::{Side, diff},
    record::{CommandNote, Edit, EditedFile, Edits, KeptKind, KeptVersion, UNDO},
};

use super::{conflicts::EditConflicts, names::CallNames};
use crate::{
    calls::{self, one_line},
    paths::PathDisplay,
    screen::visible,
    setup::ProgramSetup,
};

/// Maximum size of the diff of one edit.
const MAX_DIFF_BYTES: usize = 64 * 1024;

/// Maximum size of a file that is compared for a diff.
const MAX_DIFF_FILE_BYTES: usize = 1024 * 1024;

/// Maximum number of files in a line of the list.
const MAX_LISTED_FILES: usize = 20;

/// Maximum number of entries that are not kept and are named.
const MAX_UNKEPT_NAMES: usize = 10;

pub(super) struct EditView<'a> {
    pub(super) edit: &'a Edit,
    pub(super) edits: &'a Edits,
    pub(super) names: &'a CallNames,
    pub(super) setup: &'a ProgramSetup,
}

impl EditView<'_> {
    fn path(&self, path: &Path) -> String {
        if io::stdout().is_terminal() {
            return PathDisplay::seen_from(&self.setup.cwd).show(path);
        }
        visible(&path.display().to_string())
    }

    /// Returns the tool or the command line.
    fn origin(&self) -> String {
        let tool = self.names.call(self.edits, self.edit).map(|call| call.tool.to_string());
        match &self.edit.command {
            Some(note) => format!("$ {}", one_line(&note.line)),
            None => visible(&tool.unwrap_or_default()),
        }
    }

    /// Returns the state of the edit, and its changes with the command that made them.
    fn changes(&self) -> (&'static str, String) {
        let Self { edit, .. } = self;
        let mut files: Vec<_> = edit
            .files
            .iter()
            .take(MAX_LISTED_FILES)
            .map(|file| format!("{} {}", letter(file), self.path(&file.path)))
            .collect();
        if edit.files.len() > MAX_LISTED_FILES {
            files.push(format!("and {} more", edit.files.len() - MAX_LISTED_FILES));
        }
        let state = match (edit.undone, edit.command.as_ref().is_some_and(CommandNote::is_partial)) {
            (true, _) => " (undone)",
            (false, true) if edit.files.is_empty() => " (not kept)",
            (false, true) => " (kept in part)",
            (false, false) => "",
        };
        let command = edit.command.as_ref().map(|_| format!("  {}", self.origin())).unwrap_or_default();
        (state, format!("{}{command}", files.join(", ")))
    }

    /// Formats the edit in one line.
    pub(super) fn line(&self) -> String {
        let (state, changes) = self.changes();
        let name = visible(&self.names.display_name(self.edits, self.edit));
        format!("{name}  {:.0}{state}  {changes}\n", self.edit.time)
    }

    /// Formats the edit for a table.
    pub(super) fn row(&self) -> [String; 3] {
        let (state, changes) = self.changes();
        let name = visible(&self.names.display_name(self.edits, self.edit));
        [name, calls::when(self.edit.time), format!("{changes}{state}")]
    }

    /// Formats the session, the call, the files and a diff of the undo.
    pub(super) fn whole(&self) -> String {
        let Self { edit, .. } = self;
        let session = self.edits.session().map_or("no session".to_owned(), |id| format!("session {id}"));
        let name = visible(&self.names.display_name(self.edits, edit));
        let mut text = format!("call {name} of {session}, {:.0}: {}\n", edit.time, self.origin());
        for file in &edit.files {
            text.push_str(&format!("  {} {}\n", letter(file), self.path(&file.path)));
        }
        self.unkept().iter().for_each(|line| text.push_str(&format!("{line}\n")));
        if edit.command.is_some() {
            text.push_str("  ignored files and `.git` are not recorded\n");
        }
        if let Some(note) = &edit.command
            && let Some(begun) = note.begun
        {
            let took = Duration::try_from(edit.time.duration_since(begun)).unwrap_or_default();
            if took.as_secs() > 0 {
                let took = calls::brief(took);
                text.push_str(&format!(
                    "  it ran for {took}; all changes made here in that time are attributed to it\n"
                ));
            }
        }
        let is_redo = edit.call.as_str().starts_with(UNDO);
        text.push_str(if is_redo { "redoing it changes:\n" } else { "undoing it changes:\n" });
        text.push_str(&self.diff());
        text
    }

    /// Returns what cannot be undone, one line each.
    pub(super) fn unkept(&self) -> Vec<String> {
        let Some(note) = &self.edit.command else { return Vec::new() };
        let mut lines: Vec<_> = note
            .unkept
            .iter()
            .take(MAX_UNKEPT_NAMES)
            .map(|file| format!("cannot be undone: {} ({})", visible(&file.path), visible(&file.reason)))
            .collect();
        if note.unkept_count > lines.len() {
            lines.push(format!("cannot be undone: {} more", note.unkept_count - lines.len()));
        }
        lines.extend(note.gap.iter().map(|gap| format!("recorded only in part: {}", visible(gap))));
        lines
    }

    /// Returns the changes of the undo, up to a limit.
    fn diff(&self) -> String {
        let mut text = String::new();
        for file in &self.edit.files {
            if text.len() > MAX_DIFF_BYTES {
                text.push_str("(the rest of the diff is left out)\n");
                break;
            }
            text.push_str(&file_diff(self.edits, file));
        }
        let is_long = text.len() > 2 * MAX_DIFF_BYTES;
        let mut left = 2 * MAX_DIFF_BYTES;
        let shown = text.lines().take_while(|line| {
            let fits = line.len() < left;
            left = left.saturating_sub(line.len() + 1);
            fits
        });
        let mut shown: String = shown.map(|line| format!("{}\n", visible(line))).collect();
        if is_long {
            shown.push_str("(the rest of the diff is left out)\n");
        }
        shown
    }

    pub(super) fn as_json(&self) -> Value {
        let Self { edit, .. } = self;
        let files: Vec<_> = edit
            .files
            .iter()
            .map(|file| {
                let kind = file.before.as_ref().or(file.after.as_ref()).map(|kept| kept.kind);
                json!({"path": file.path, "change": letter(file), "kind": kind})
            })
            .collect();
        let note = edit.command.as_ref();
        json!({
            "call": self.names.display_name(self.edits, edit),
            "id": edit.call,
            "session": self.edits.session(),
            "time": edit.time.to_string(),
            "tool": self.names.call(self.edits, edit).map(|call| call.tool.clone()),
            "command": note.map(|note| &note.line),
            "turn": edit.turn,
            "undone": edit.undone,
            "files": files,
            "not_kept": note.map_or(0, |note| note.unkept_count),
            "not_kept_files": note.map(|note| &note.unkept),
            "gap": note.and_then(|note| note.gap.as_ref()),
        })
    }

    pub(super) fn as_json_with_diff(&self, conflicts: &EditConflicts) -> Value {
        let mut shown = self.as_json();
        shown["diff"] = self.diff().into();
        let here: Vec<_> =
            conflicts.paths().filter(|path| self.edit.files.iter().any(|file| file.path == **path)).collect();
        shown["conflicts"] = json!(here);
        shown
    }
}

/// Returns the diff of a change to one file.
pub(crate) fn change_diff(edits: &Edits, file: &EditedFile) -> String {
    // The diff of its undo, reversed.
    let reversed = EditedFile { before: file.after.clone(), after: file.before.clone(), ..file.clone() };
    file_diff(edits, &reversed)
}

fn letter(file: &EditedFile) -> &'static str {
    match (&file.before, &file.after) {
        (None, _) => "A",
        (Some(_), None) => "D",
        (Some(_), Some(_)) => "M",
    }
}

/// Returns the diff of the undo for one file.
fn file_diff(edits: &Edits, file: &EditedFile) -> String {
    let name = file.path.to_string_lossy();
    let is_file = |kept: &Option<KeptVersion>| kept.as_ref().is_none_or(|kept| kept.kind == KeptKind::File);
    if !is_file(&file.before) || !is_file(&file.after) {
        return format!(
            "{name}: {} -> {}\n",
            described(file.after.as_ref()),
            described(file.before.as_ref())
        );
    }
    let load = |kept: &Option<KeptVersion>| match kept {
        None => Ok(None),
        Some(kept) => edits.version(kept).map(|version| Some((version.bytes, version.mode))),
    };
    let (Ok(after), Ok(before)) = (load(&file.after), load(&file.before)) else {
        return format!("{name}: the kept content is damaged\n");
    };
    let is_large =
        [&after, &before].into_iter().flatten().any(|(bytes, _)| bytes.len() > MAX_DIFF_FILE_BYTES);
    if is_large {
        return format!("{name}: too large for a diff\n");
    }
    let name = name.trim_start_matches('/');
    let side = |version: &'_ Option<(std::sync::Arc<[u8]>, u32)>| {
        version.clone().map(|(bytes, mode)| (bytes, mode & 0o111 != 0))
    };
    let (after, before) = (side(&after), side(&before));
    let as_side =
        |(bytes, executable): &'_ (std::sync::Arc<[u8]>, bool)| (std::sync::Arc::clone(bytes), *executable);
    let (after, before) = (after.as_ref().map(as_side), before.as_ref().map(as_side));
    let shown = diff(
        after.as_ref().map(|(bytes, executable)| Side { path: name, bytes, executable: *executable }),
        before.as_ref().map(|(bytes, executable)| Side { path: name, bytes, executable: *executable }),
    );
    if shown.is_empty() {
        return format!("{name}: mode {} -> {}\n", mode(file.after.as_ref()), mode(file.before.as_ref()));
    }
    shown
}

fn mode(kept: Option<&KeptVersion>) -> String {
    kept.map_or("none".to_owned(), |kept| format!("{:o}", kept.mode))
}

fn described(kept: Option<&KeptVersion>) -> String {
    match kept {
        None => "nothing".to_owned(),
        Some(kept) => match kept.kind {
            KeptKind::File => "a file".to_owned(),
            KeptKind::Symlink => format!("a link to {}", kept.content),
            KeptKind::Directory => format!("a directory, mode {:o}", kept.mode),
        },
    }
}
