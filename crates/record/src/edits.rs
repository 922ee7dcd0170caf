//! What tools have changed in files, kept so that it can be undone: contents ([`contents`]), and a log that only grows.
//!
//! The edits of a session are in `HOME/edits/ID`, those of calls outside of any in `HOME/edits/outside`. Undoing an edit
//! is an edit as well, with [`UNDO`] and the other's call as its call. A change to files counts from the moment its line is in
//! the log and flushed: recovery takes back what has none.

use std::{
    fs::{self, File},
    io::{self, BufReader},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_contract::{
    Archive, Attributes, CallId, Changed, ContentPair, EditRecord, KeptPair, Sight, ThreadId, Version,
};

use crate::{
    SessionError,
    error::cannot,
    line::{Lines, Next},
    place,
};

mod contents;
mod durable;
mod sequence;

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
    /// Which files.
    pub files: Vec<EditedFile>,
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
    /// The name of its content in the store.
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
        Self { content, mode: *mode, owner: *owner, modified: *modified, attributes: attributes.clone() }
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
        Self { root, directory, contents, notes, session: None }
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
        let Kept { content: _, mode, owner, modified, attributes } = kept;
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
        // Held until the line is written, so that numbers and lines have one order.
        let mut counter = SequenceCounter::lock(&self.root)?;
        let path = self.log_path();
        let mut log = AppendLog::open(&path)?;
        let length = log.length()?;
        let time = Timestamp::now();
        let edit = Edit {
            time,
            call: (*call).clone(),
            sequence: Some(counter.advance(time)?),
            transaction: Some((*transaction).to_owned()),
            files,
            undone: false,
            turn: 0,
        };
        log.append(&serde_json::to_vec(&edit)?)?;
        log.flush(&path, length)
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

/// Goes through the whole lines of a file; there are none, if there is no such file.
fn each_line(path: &Path, mut see: impl FnMut(&[u8])) -> Result<(), SessionError> {
    let file = match fs::File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        file => file.map_err(cannot("open", path))?,
    };
    let mut lines = Lines::new(BufReader::new(file));
    while let Next::Whole(line) = lines.next().map_err(cannot("read", path))? {
        see(line);
    }
    Ok(())
}

/// For each edit, whether it is undone: by a later one that names it and is not undone itself.
fn undone(edits: &[Edit]) -> Vec<bool> {
    let mut undone = vec![false; edits.len()];
    // The latest first, so that whoever undoes is judged before whom it has undone.
    let mut taken = vec![false; edits.len()];
    for at in (0..edits.len()).rev() {
        let Some(call) = edits[at].call.as_str().strip_prefix(UNDO) else { continue };
        let other = (0..at).rev().find(|other| !taken[*other] && edits[*other].call.as_str() == call);
        if let Some(other) = other {
            taken[other] = true;
            undone[other] = !undone[at];
        }
    }
    undone
}

#[cfg(test)]
mod tests;
