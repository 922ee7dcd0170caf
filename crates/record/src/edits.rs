//! The log of changes to files by tools and commands, and the contents ([`contents`]) to undo them.
//!
//! The edits of a session are in `HOME/edits/ID`, those of calls outside of any in
//! `HOME/edits/outside`. Undoing an edit is itself an edit, whose call is [`UNDO`] and the call of
//! the other edit.
//!
//! A change to files is committed when its line is in the log and flushed. Recovery rolls back a
//! change without a line.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_contract::{
    CallId,
    edit::{Archive, Attributes, Changed, ContentPair, EditRecord, KeptPair, Version},
    files::Sight,
    id::ThreadId,
};

use crate::{
    SessionError,
    error::cannot,
    journal::READ_BYTES,
    session_line::{LineRead, LineReader, kind_of},
    session_paths,
};

mod commands;
mod contents;
pub(crate) mod durable;
mod sequence;

pub use commands::{CommandNote, KeptKind, UnkeptFile};
use contents::ContentArchive;
use durable::{AppendLog, flush_directory};
use sequence::SequenceCounter;

/// Prefix of the call of an undo.
pub const UNDO: &str = "undo:";

/// The edits of a session, or of calls outside of any.
#[derive(Debug, Clone)]
pub struct Edits {
    /// The directory with the edits of all sessions.
    root: PathBuf,
    directory: PathBuf,
    contents: ContentArchive,
    notes: PathBuf,
    /// The path of the session file.
    session: Option<PathBuf>,
    /// The sequence number of the edit that new edits undo.
    undoes: Option<i64>,
}

/// Files that were changed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The time of the change.
    pub time: Timestamp,
    /// The call that made it.
    pub call: CallId,
    /// Its position among all edits of the user, independent of the clock. Absent in lines of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// The unique name of its transaction. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// The sequence number of the edit that this one undoes. Absent in lines of earlier versions,
    /// where only the call names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<i64>,
    /// The changed files.
    pub files: Vec<EditedFile>,
    /// The command that made it. Absent if a tool changed the files itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandNote>,
    /// Set if it was undone, and the undo was not undone itself.
    #[serde(skip)]
    pub undone: bool,
    /// The turn of the session, from 1; 0 without one.
    #[serde(skip)]
    pub turn: usize,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedFile {
    /// The absolute path.
    pub path: PathBuf,
    /// The version before; absent if the file was created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<KeptVersion>,
    /// The version after; absent if the file was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<KeptVersion>,
    /// Directories that were created for it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

/// A version of a file whose content is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptVersion {
    /// The type of the entry. Tools change files only.
    #[serde(default, skip_serializing_if = "commands::is_default")]
    pub kind: KeptKind,
    /// The name of its content in the archive, or the target of a link.
    pub content: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its user and group. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// Its modification time in seconds and nanoseconds. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<(i64, i64)>,
    /// Its other attributes.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
}

impl Edit {
    /// Returns true if it is the undo of another edit.
    pub fn is_undo(&self) -> bool {
        self.call.as_str().starts_with(UNDO)
    }

    /// Returns a number that grows from edit to edit, over all logs of the user.
    pub fn order(&self) -> i64 {
        self.sequence.unwrap_or_else(|| self.time.as_microsecond())
    }
}

impl KeptVersion {
    fn new(version: &Version, content: String) -> Self {
        let Version { bytes: _, mode, owner, modified, attributes } = version;
        Self {
            kind: KeptKind::File,
            content,
            mode: *mode,
            owner: *owner,
            modified: *modified,
            attributes: attributes.clone(),
        }
    }
}

impl Edits {
    /// Returns the edits of a session, which may have none.
    pub fn of_session(home: &Path, id: &ThreadId) -> Result<Self, SessionError> {
        let session = session_paths::path_of(home, id.as_str())?;
        let name = session.file_stem().unwrap_or_default().to_owned();
        Ok(Self { session: Some(session), ..Self::in_directory(home, Path::new(&name)) })
    }

    /// Returns the edits of calls outside of any session.
    pub fn outside(home: &Path) -> Self {
        Self::in_directory(home, Path::new("outside"))
    }

    /// Returns the edits of all sessions that have any, and those outside of sessions. This
    /// includes sessions whose own file is lost or damaged.
    pub fn all(home: &Path) -> Result<Vec<Self>, SessionError> {
        let edits = home.join("edits");
        let entries = match fs::read_dir(&edits) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(cannot("read", &edits))?,
        };
        let mut all = vec![Self::outside(home)];
        for entry in entries {
            let name = entry.map_err(cannot("read", &edits))?.file_name();
            all.extend(name.to_str().and_then(|id| Self::of_session(home, &id.into()).ok()));
        }
        Ok(all)
    }

    fn in_directory(home: &Path, name: &Path) -> Self {
        let root = home.join("edits");
        let directory = root.join(name);
        let contents = ContentArchive::new(directory.join("contents"));
        let notes = root.join("open");
        Self { root, directory, contents, notes, session: None, undoes: None }
    }

    /// Waits until no other process undoes edits, and keeps others from it while the returned file
    /// is open.
    pub fn lock_undo(home: &Path) -> io::Result<File> {
        let directory = home.join("edits");
        durable::create_private_directory(&directory)?;
        let path = directory.join("undo.lock");
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        durable::lock(&file)?;
        Ok(file)
    }

    /// Returns the same log, in which every new edit is marked as undoing this one.
    #[must_use]
    pub fn undoing(&self, edit: &Edit) -> Self {
        Self { undoes: edit.sequence, ..self.clone() }
    }

    /// Returns the id of the session; none for calls outside of any.
    pub fn session(&self) -> Option<&str> {
        let name = self.session.as_ref().and(self.directory.file_name());
        name.and_then(|name| name.to_str())
    }

    /// Counts the lines of the log that cannot be parsed. Their edits are not in
    /// [`list`](Self::list).
    pub fn damaged_lines(&self) -> Result<usize, SessionError> {
        let mut damaged = 0;
        let is_whole = each_line(&self.log_path(), |line| {
            // An append after a torn line begins with a line break.
            let is_blank = line.trim_ascii().is_empty();
            damaged += usize::from(!is_blank && serde_json::from_slice::<Edit>(line).is_err());
        })?;
        Ok(damaged + usize::from(!is_whole))
    }

    /// Lists every edit, oldest first.
    pub fn list(&self) -> Result<Vec<Edit>, SessionError> {
        let mut edits: Vec<Edit> = Vec::new();
        // The append of a torn line never succeeded. Later lines still count.
        each_line(&self.log_path(), |line| edits.extend(serde_json::from_slice::<Edit>(line)))?;
        if edits.is_empty() {
            // Most sessions change nothing, and finding turns means reading the whole session file.
            return Ok(edits);
        }
        let turns = self.turns()?;
        let undone = undone(&edits);
        for (edit, undone) in edits.iter_mut().zip(undone) {
            edit.undone = undone;
            edit.turn = turns.partition_point(|begun| *begun <= edit.time);
        }
        Ok(edits)
    }

    /// Returns a version of a file with its content.
    pub fn version(&self, kept: &KeptVersion) -> Result<Version, SessionError> {
        let failed = cannot("use", self.contents.directory());
        let bytes = self.contents.load(&kept.content).map_err(failed)?;
        let KeptVersion { kind: _, content: _, mode, owner, modified, attributes } = kept;
        let attributes = attributes.clone();
        Ok(Version { bytes: Arc::from(bytes), mode: *mode, owner: *owner, modified: *modified, attributes })
    }

    /// Returns the path of the log of files that the model was shown.
    fn seen_path(&self) -> PathBuf {
        self.directory.join("seen.jsonl")
    }

    /// Returns the start times of the turns of the session.
    fn turns(&self) -> Result<Vec<Timestamp>, SessionError> {
        #[derive(Deserialize)]
        struct TurnStart<'a> {
            timestamp: Timestamp,
            #[serde(rename = "type")]
            kind: &'a str,
        }
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let mut turns = Vec::new();
        each_line(session, |line| {
            if kind_of(line).is_some_and(|kind| kind != b"turn_context") {
                return;
            }
            let begun = serde_json::from_slice::<TurnStart<'_>>(line).ok();
            turns.extend(begun.filter(|begun| begun.kind == "turn_context").map(|begun| begun.timestamp));
        })?;
        Ok(turns)
    }
}

impl Archive for Edits {
    fn keep(&self, contents: &[ContentPair]) -> io::Result<Vec<KeptPair>> {
        self.contents.keep(contents)
    }

    fn log(&self, edit: &EditRecord<'_>) -> io::Result<()> {
        let EditRecord { transaction, call, files, kept } = edit;
        let files = files.iter().zip(*kept).map(|(file, kept)| edited_file(file, kept)).collect();
        let transaction = Some((*transaction).to_owned());
        self.append_edit(Edit { transaction, ..Edit::new((*call).clone(), files) })
    }

    fn is_logged(&self, log: &Path, transaction: &str) -> io::Result<bool> {
        #[derive(Deserialize)]
        struct TransactionLine {
            transaction: Option<String>,
        }
        let mut is_logged = false;
        each_line(log, |line| {
            let logged =
                serde_json::from_slice::<TransactionLine>(line).ok().and_then(|line| line.transaction);
            is_logged |= logged.as_deref() == Some(transaction);
        })
        .map_err(io::Error::other)?;
        if is_logged {
            File::open(log)?.sync_all()?;
            log.parent().map_or(Ok(()), flush_directory)?;
        }
        Ok(is_logged)
    }

    fn log_path(&self) -> PathBuf {
        self.directory.join("log.jsonl")
    }

    /// Only a session can be resumed and needs this.
    fn see(&self, sight: &Sight) -> io::Result<()> {
        if self.session.is_none() {
            return Ok(());
        }
        AppendLog::open(&self.seen_path())?.append(&serde_json::to_vec(sight)?)
    }

    fn seen(&self) -> io::Result<Vec<Sight>> {
        let mut seen_path = Vec::new();
        each_line(&self.seen_path(), |line| seen_path.extend(serde_json::from_slice::<Sight>(line)))
            .map_err(io::Error::other)?;
        Ok(seen_path)
    }

    fn notes(&self) -> &Path {
        &self.notes
    }
}

fn edited_file(file: &Changed, kept_names: &KeptPair) -> EditedFile {
    let Changed { path, before, after, folders, .. } = file;
    let kept = |version: &Option<Version>, name: &Option<String>| {
        version.as_ref().zip(name.clone()).map(|(version, name)| KeptVersion::new(version, name))
    };
    EditedFile {
        path: path.clone(),
        before: kept(before, &kept_names.before),
        after: kept(after, &kept_names.after),
        folders: folders.clone(),
    }
}

/// Calls `visit` for every complete line of a file; a missing file has none. Returns false if the
/// last line is torn.
fn each_line(path: &Path, mut visit: impl FnMut(&[u8])) -> Result<bool, SessionError> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        file => file.map_err(cannot("open", path))?,
    };
    let mut lines = LineReader::new(BufReader::with_capacity(READ_BYTES, file));
    loop {
        match lines.next().map_err(cannot("read", path))? {
            LineRead::Whole(line) => visit(line),
            LineRead::Torn => return Ok(false),
            LineRead::End => return Ok(true),
        }
    }
}

/// Returns for each edit whether it is undone: by a later edit that names it and is not undone
/// itself.
fn undone(edits: &[Edit]) -> Vec<bool> {
    let mut undone = vec![false; edits.len()];
    // Latest first: an undo must be judged before the edit that it undid.
    let mut taken = vec![false; edits.len()];
    for at in (0..edits.len()).rev() {
        let Some(call) = edits[at].call.as_str().strip_prefix(UNDO) else { continue };
        let is_target = |other: &Edit| match edits[at].undoes {
            Some(number) => other.sequence == Some(number),
            None => other.call.as_str() == call,
        };
        let other = (0..at).rev().find(|other| !taken[*other] && is_target(&edits[*other]));
        if let Some(other) = other {
            taken[other] = true;
            undone[other] = !undone[at];
        }
    }
    undone
}

#[cfg(test)]
mod tests;
