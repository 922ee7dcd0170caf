//! What tools have changed in files, kept so that it can be undone: contents ([`contents`]), and a log that only grows.
//!
//! The edits of a session are in `HOME/edits/ID`, those of calls outside of any in `HOME/edits/outside`. Undoing an edit
//! is an edit as well, with [`UNDO`] and the other's call as its call. A change to files counts from the moment its line is in
//! the log and flushed: recovery takes back what has none.

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
    line::{Lines, Next},
    place,
};

mod commands;
mod contents;
pub(crate) mod durable;
mod sequence;

pub use commands::{CommandNote, KeptKind, UnkeptFile};
use contents::Contents;
use durable::{AppendLog, flush_directory};
use sequence::SequenceCounter;

/// What the call of an undo begins with.
pub const UNDO: &str = "undo:";

/// The edits of a session, or of none.
#[derive(Debug, Clone)]
pub struct Edits {
    /// Where the edits of all sessions are.
    root: PathBuf,
    directory: PathBuf,
    contents: Contents,
    notes: PathBuf,
    /// The file of the session.
    session: Option<PathBuf>,
    /// The edit that what is logged takes back, by its number.
    undoes: Option<i64>,
}

/// Files that were changed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// When.
    pub time: Timestamp,
    /// By which call.
    pub call: CallId,
    /// Its place among all edits of the user, whatever the clock says. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<i64>,
    /// The name of its transaction, which no other edit has. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transaction: Option<String>,
    /// The number of the edit that this one takes back. Absent in lines of earlier versions, where only the call names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<i64>,
    /// Which files.
    pub files: Vec<EditedFile>,
    /// The command that made it. Absent if a tool changed the files itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandNote>,
    /// Whether it was undone, and that was not undone again.
    #[serde(skip)]
    pub undone: bool,
    /// In which turn of the session, from 1; 0 without one.
    #[serde(skip)]
    pub turn: usize,
}

/// A file that was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EditedFile {
    /// Absolute.
    pub path: PathBuf,
    /// What it was; absent if it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Kept>,
    /// What it became; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Kept>,
    /// Directories that were made for it, from the outside in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub folders: Vec<PathBuf>,
}

/// A file at some time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The type of the entry. Tools change files only.
    #[serde(default, skip_serializing_if = "commands::is_default")]
    pub kind: KeptKind,
    /// The name of its content in the store; the target of a link.
    pub content: String,
    /// Its permission bits.
    pub mode: u32,
    /// Its user and group. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<(u32, u32)>,
    /// When it was modified last: seconds and nanoseconds. Absent in lines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub modified: Option<(i64, i64)>,
    /// What else it had.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
}

impl Edit {
    /// Returns a number that grows from edit to edit, over all logs of the user.
    pub fn order(&self) -> i64 {
        self.sequence.unwrap_or_else(|| self.time.as_microsecond())
    }
}

impl Kept {
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
    /// The edits of a session, whether or not there are any.
    pub fn of_session(home: &Path, id: &ThreadId) -> Result<Self, SessionError> {
        let session = place::path_of(home, id.as_str())?;
        let name = session.file_stem().unwrap_or_default().to_owned();
        Ok(Self { session: Some(session), ..Self::at(home, Path::new(&name)) })
    }

    /// The edits of calls outside of any session.
    pub fn outside(home: &Path) -> Self {
        Self::at(home, Path::new("outside"))
    }

    /// The edits of all sessions that have any, and of calls outside of sessions. A session whose own file is lost or damaged
    /// is among them.
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

    fn at(home: &Path, name: &Path) -> Self {
        let root = home.join("edits");
        let directory = root.join(name);
        let contents = Contents::new(directory.join("contents"));
        let notes = root.join("open");
        Self { root, directory, contents, notes, session: None, undoes: None }
    }

    /// Waits until no other process takes edits back, and keeps others from it while the returned file is open.
    pub fn lock_undo(home: &Path) -> io::Result<File> {
        let directory = home.join("edits");
        durable::make_private(&directory)?;
        let path = directory.join("undo.lock");
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
        durable::lock(&file)?;
        Ok(file)
    }

    /// The same edits, where everything that is logged takes back this edit.
    #[must_use]
    pub fn undoing(&self, edit: &Edit) -> Self {
        Self { undoes: edit.sequence, ..self.clone() }
    }

    /// The id of the session; none for calls outside of any.
    pub fn session(&self) -> Option<&str> {
        let name = self.session.as_ref().and(self.directory.file_name());
        name.and_then(|name| name.to_str())
    }

    /// Counts the lines of the log that cannot be read. The edits they were of are not in the list.
    pub fn damaged_lines(&self) -> Result<usize, SessionError> {
        let mut damaged = 0;
        let is_whole = each_line(&self.log_path(), |line| {
            // An append after a line that was cut short begins with a line break.
            let is_blank = line.trim_ascii().is_empty();
            damaged += usize::from(!is_blank && serde_json::from_slice::<Edit>(line).is_err());
        })?;
        Ok(damaged + usize::from(!is_whole))
    }

    /// Every edit, the oldest first.
    pub fn list(&self) -> Result<Vec<Edit>, SessionError> {
        let mut edits: Vec<Edit> = Vec::new();
        // A line that was cut short was never answered for; a later one still counts.
        each_line(&self.log_path(), |line| edits.extend(serde_json::from_slice::<Edit>(line)))?;
        if edits.is_empty() {
            // Most sessions change nothing, and turns are found by reading all of one.
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

    /// What a file was.
    pub fn version(&self, kept: &Kept) -> Result<Version, SessionError> {
        let failed = cannot("use", self.contents.directory());
        let bytes = self.contents.load(&kept.content).map_err(failed)?;
        let Kept { kind: _, content: _, mode, owner, modified, attributes } = kept;
        let attributes = attributes.clone();
        Ok(Version { bytes: Arc::from(bytes), mode: *mode, owner: *owner, modified: *modified, attributes })
    }

    /// What the model was shown.
    fn sights(&self) -> PathBuf {
        self.directory.join("seen.jsonl")
    }

    /// When each turn of the session began.
    fn turns(&self) -> Result<Vec<Timestamp>, SessionError> {
        #[derive(Deserialize)]
        struct Begun<'a> {
            timestamp: Timestamp,
            #[serde(rename = "type")]
            kind: &'a str,
        }
        let Some(session) = &self.session else { return Ok(Vec::new()) };
        let mut turns = Vec::new();
        each_line(session, |line| {
            let begun = serde_json::from_slice::<Begun<'_>>(line).ok();
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
        struct Logged {
            transaction: Option<String>,
        }
        let mut is_logged = false;
        each_line(log, |line| {
            let logged = serde_json::from_slice::<Logged>(line).ok().and_then(|line| line.transaction);
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

    /// Only a session has someone who goes on with it.
    fn see(&self, sight: &Sight) -> io::Result<()> {
        if self.session.is_none() {
            return Ok(());
        }
        AppendLog::open(&self.sights())?.append(&serde_json::to_vec(sight)?)
    }

    fn seen(&self) -> io::Result<Vec<Sight>> {
        let mut sights = Vec::new();
        each_line(&self.sights(), |line| sights.extend(serde_json::from_slice::<Sight>(line)))
            .map_err(io::Error::other)?;
        Ok(sights)
    }

    fn notes(&self) -> &Path {
        &self.notes
    }
}

fn edited_file(file: &Changed, kept_names: &KeptPair) -> EditedFile {
    let Changed { path, before, after, folders, .. } = file;
    let kept = |version: &Option<Version>, name: &Option<String>| {
        version.as_ref().zip(name.clone()).map(|(version, name)| Kept::new(version, name))
    };
    EditedFile {
        path: path.clone(),
        before: kept(before, &kept_names.before),
        after: kept(after, &kept_names.after),
        folders: folders.clone(),
    }
}

/// Goes through the whole lines of a file; there are none, if there is no such file. Returns whether the last line is whole.
fn each_line(path: &Path, mut see: impl FnMut(&[u8])) -> Result<bool, SessionError> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        file => file.map_err(cannot("open", path))?,
    };
    let mut lines = Lines::new(BufReader::new(file));
    loop {
        match lines.next().map_err(cannot("read", path))? {
            Next::Whole(line) => see(line),
            Next::Torn => return Ok(false),
            Next::End => return Ok(true),
        }
    }
}

/// For each edit, whether it is undone: by a later one that names it and is not undone itself.
fn undone(edits: &[Edit]) -> Vec<bool> {
    let mut undone = vec![false; edits.len()];
    // The latest first, so that whoever undoes is judged before whom it has undone.
    let mut taken = vec![false; edits.len()];
    for at in (0..edits.len()).rev() {
        let Some(call) = edits[at].call.as_str().strip_prefix(UNDO) else { continue };
        let is_meant = |other: &Edit| match edits[at].undoes {
            Some(number) => other.sequence == Some(number),
            None => other.call.as_str() == call,
        };
        let other = (0..at).rev().find(|other| !taken[*other] && is_meant(&edits[*other]));
        if let Some(other) = other {
            taken[other] = true;
            undone[other] = !undone[at];
        }
    }
    undone
}

#[cfg(test)]
mod tests;
