//! Changes by commands in the edit log: directories and links besides files, and entries that could
//! not be kept.

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_contract::{
    edit::Archive,
    snapshot::{
        CommandEdit, CommandLog, ContentStore, EntryChange, EntryContent, EntryVersion, UnkeptEntry,
        UnkeptReason,
    },
};

use super::{
    AppendLog, Edit, EditedFile, Edits, KeptVersion, SequenceCounter, UNDO,
    durable::{MAX_FLUSHED_AT_ONCE, create_private_directory, flush_all, flush_directory},
};
use crate::{
    SessionError,
    error::cannot,
    hex::{from_hex, to_hex},
};

/// Maximum number of entries that could not be kept and are listed.
const MAX_UNKEPT_NAMES: usize = 100;

/// Maximum length of a command line in the log, in characters.
const MAX_LINE_CHARS: usize = 2000;

/// The type of an entry.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptKind {
    /// A regular file; `content` is the name of its content.
    #[default]
    File,
    /// A symbolic link; `content` is its target.
    Symlink,
    /// A directory; `content` is empty.
    Directory,
}

/// A command whose changes are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandNote {
    /// The command line.
    pub line: String,
    /// The start of the command. Absent in lines of earlier versions, and for an undo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Timestamp>,
    /// The number of entries that changed and cannot be restored.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unkept_count: usize,
    /// The first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<UnkeptFile>,
    /// The reason why there may be more changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<String>,
}

/// An entry that changed and cannot be restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnkeptFile {
    /// The path, with replacement characters where it is not UTF-8.
    pub path: String,
    /// The reason, in a few words.
    pub reason: String,
}

impl CommandNote {
    /// Returns true if only some of the changes are kept.
    pub fn is_partial(&self) -> bool {
        self.unkept_count > 0 || self.gap.is_some()
    }
}

impl CommandLog for Edits {
    fn log_command(&self, edit: &CommandEdit<'_>, store: &dyn ContentStore) -> io::Result<()> {
        let CommandEdit { call, line, begun, changes, unkept, gap } = edit;
        let contents = self.contents.directory();
        create_private_directory(contents)?;
        let mut exported = Vec::new();
        let mut unkept: Vec<_> = unkept.to_vec();
        let mut files = Vec::new();
        for change in *changes {
            match self.export(change, store, &mut exported) {
                Ok(file) => files.push(file),
                // The content was removed from the store. The rest can still be undone.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let path = change.path.clone();
                    unkept.push(UnkeptEntry { path, reason: UnkeptReason::Unreadable });
                }
                Err(error) => return Err(error),
            }
        }
        flush_contents(contents, &exported)?;
        let named = unkept.iter().take(MAX_UNKEPT_NAMES).map(|entry| UnkeptFile {
            path: entry.path.to_string_lossy().into_owned(),
            reason: entry.reason.as_str().to_owned(),
        });
        let note = CommandNote {
            line: line.chars().take(MAX_LINE_CHARS).collect(),
            begun: Timestamp::try_from(*begun).ok(),
            unkept_count: unkept.len(),
            unkept: named.collect(),
            gap: gap.map(str::to_owned),
        };
        self.append_edit(Edit { command: Some(note), ..Edit::new((*call).clone(), files) })
    }
}

impl Edits {
    /// Records that these files of an edit by a command were restored.
    pub fn log_undo(&self, edit: &Edit, files: &[EditedFile]) -> Result<(), SessionError> {
        let files = files.iter().map(|file| EditedFile {
            path: file.path.clone(),
            before: file.after.clone(),
            after: file.before.clone(),
            folders: Vec::new(),
        });
        let line = edit.command.as_ref().map(|note| note.line.clone()).unwrap_or_default();
        let note = CommandNote { line, ..CommandNote::default() };
        let call = format!("{UNDO}{}", edit.call).into();
        let undone = Edit { command: Some(note), ..Edit::new(call, files.collect()) };
        self.append_edit(undone).map_err(cannot("write", &self.log_path()))
    }

    /// Loads a content by its digest.
    pub fn content(&self, digest: &[u8; 32]) -> io::Result<Vec<u8>> {
        self.contents.load(&to_hex(digest))
    }

    pub(super) fn append_edit(&self, edit: Edit) -> io::Result<()> {
        // Locked until the line is written, so that sequence numbers and lines have the same order.
        let mut counter = SequenceCounter::lock(&self.root)?;
        let path = self.log_path();
        let mut log = AppendLog::open(&path)?;
        let length = log.length()?;
        let edit = Edit { sequence: Some(counter.advance(edit.time)?), undoes: self.undoes, ..edit };
        log.append(&serde_json::to_vec(&edit)?)?;
        log.flush(&path, length)
    }

    fn export(
        &self,
        change: &EntryChange,
        store: &dyn ContentStore,
        exported: &mut Vec<PathBuf>,
    ) -> io::Result<EditedFile> {
        let mut kept = |version: &Option<EntryVersion>| {
            version.as_ref().map(|version| self.export_version(version, store, exported)).transpose()
        };
        let (before, after) = (kept(&change.before)?, kept(&change.after)?);
        Ok(EditedFile { path: change.path.clone(), before, after, folders: Vec::new() })
    }

    fn export_version(
        &self,
        version: &EntryVersion,
        store: &dyn ContentStore,
        exported: &mut Vec<PathBuf>,
    ) -> io::Result<KeptVersion> {
        let (kind, content) = match &version.content {
            EntryContent::File(digest) => {
                let name = to_hex(digest);
                let to = self.contents.directory().join(&name);
                store.export_content(digest, &to)?;
                exported.push(to);
                (KeptKind::File, name)
            }
            EntryContent::Symlink(target) => (KeptKind::Symlink, target.to_string_lossy().into_owned()),
            EntryContent::Directory => (KeptKind::Directory, String::new()),
        };
        let EntryVersion { mode, owner, modified, .. } = *version;
        let (owner, modified) = (Some(owner), Some(modified));
        Ok(KeptVersion { kind, content, mode, owner, modified, attributes: super::Attributes::new() })
    }
}

impl EditedFile {
    /// Returns the change in the form that `files` restores; none for a content kept as a delta,
    /// which those of commands never are.
    pub fn as_entry_change(&self) -> Option<EntryChange> {
        let version = |kept: &Option<KeptVersion>| match kept {
            None => Some(None),
            Some(kept) => kept.as_entry_version().map(Some),
        };
        let (before, after) = (version(&self.before)?, version(&self.after)?);
        Some(EntryChange { path: self.path.clone(), before, after })
    }
}

impl KeptVersion {
    fn as_entry_version(&self) -> Option<EntryVersion> {
        let content = match self.kind {
            KeptKind::File => EntryContent::File(from_hex(&self.content)?),
            KeptKind::Symlink => EntryContent::Symlink(PathBuf::from(&self.content)),
            KeptKind::Directory => EntryContent::Directory,
        };
        let (owner, modified) = (self.owner?, self.modified?);
        Some(EntryVersion { content, mode: self.mode, owner, modified })
    }
}

impl Edit {
    /// Creates an edit with the current time.
    pub(super) fn new(call: windlass_contract::CallId, files: Vec<EditedFile>) -> Self {
        Self {
            time: Timestamp::now(),
            call,
            sequence: None,
            transaction: None,
            undoes: None,
            files,
            command: None,
            undone: false,
            turn: 0,
        }
    }
}

/// Flushes contents that were linked or copied: few of them one by one, many with `syncfs`.
fn flush_contents(directory: &Path, exported: &[PathBuf]) -> io::Result<()> {
    if exported.is_empty() {
        return Ok(());
    }
    #[cfg(target_os = "linux")]
    if exported.len() > MAX_FLUSHED_AT_ONCE {
        return Ok(rustix::fs::syncfs(File::open(directory)?)?);
    }
    for some in exported.chunks(MAX_FLUSHED_AT_ONCE) {
        let files: io::Result<Vec<_>> = some.iter().map(File::open).collect();
        flush_all(&files?)?;
    }
    flush_directory(directory)
}

/// Returns true if a field can be left out of the line.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
