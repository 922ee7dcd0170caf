//! What tools have changed in files, kept so that it can be undone: contents ([`contents`]), and a log that only grows.
//!
//! The edits of a session are in `HOME/edits/ID`, those of calls outside of any in `HOME/edits/outside`. Undoing an edit
//! is an edit as well, with [`UNDO`] and the other's call as its call.

use std::{
    fs::{self, DirBuilder, OpenOptions},
    io::{self, BufReader, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use windlass_contract::{Archive, Attributes, CallId, Changed, Sight, ThreadId, Version};

use crate::{
    SessionError,
    error::cannot,
    line::{Lines, Next},
    place,
};

mod contents;

use contents::Contents;

/// What the call of an undo begins with.
pub const UNDO: &str = "undo:";

/// The edits of a session, or of none.
#[derive(Debug, Clone)]
pub struct Edits {
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
    /// What else it had.
    #[serde(default, skip_serializing_if = "Attributes::is_empty")]
    pub attributes: Attributes,
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

    fn at(home: &Path, name: &Path) -> Self {
        let edits = home.join("edits");
        let directory = edits.join(name);
        let contents = Contents::new(directory.join("contents"));
        Self { directory, contents, notes: edits.join("open"), session: None }
    }

    /// Every edit, the oldest first.
    pub fn list(&self) -> Result<Vec<Edit>, SessionError> {
        let mut edits: Vec<Edit> = Vec::new();
        // A line that was cut short was never answered for; a later one still counts.
        each_line(&self.log(), |line| edits.extend(serde_json::from_slice::<Edit>(line)))?;
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
        Ok(Version { bytes: Arc::from(bytes), mode: kept.mode, attributes: kept.attributes.clone() })
    }

    fn log(&self) -> PathBuf {
        self.directory.join("log.jsonl")
    }

    /// What the model was shown.
    fn sights(&self) -> PathBuf {
        self.directory.join("seen.jsonl")
    }

    /// Adds a line to a file that only grows.
    fn append(&self, path: &Path, value: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(value)?;
        line.push(b'\n');
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        OpenOptions::new().append(true).create(true).mode(0o600).open(path)?.write_all(&line)
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
    fn keep(&self, call: &CallId, files: &[Changed]) -> io::Result<()> {
        let mut edited = Vec::new();
        for Changed { path, before, after, folders, .. } in files {
            let bytes =
                |version: &Option<Version>| version.as_ref().map(|version| Arc::clone(&version.bytes));
            let names = self.contents.keep(bytes(before).as_ref(), bytes(after).as_ref())?;
            let kept = |version: &Option<Version>, name: Option<String>| {
                let (Version { mode, attributes, .. }, content) = version.as_ref().zip(name)?;
                Some(Kept { content, mode: *mode, attributes: attributes.clone() })
            };
            let (before, after) = (kept(before, names.0), kept(after, names.1));
            edited.push(EditedFile { path: path.clone(), before, after, folders: folders.clone() });
        }
        let edit = Edit { time: Timestamp::now(), call: call.clone(), files: edited, undone: false, turn: 0 };
        self.append(&self.log(), &edit)
    }

    /// Only a session has someone who goes on with it.
    fn see(&self, sight: &Sight) -> io::Result<()> {
        if self.session.is_none() {
            return Ok(());
        }
        self.append(&self.sights(), sight)
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
mod tests {
    use super::*;

    fn version(text: &str) -> Version {
        Version { bytes: text.as_bytes().into(), mode: 0o644, attributes: Attributes::new() }
    }

    fn changed(before: Option<&str>, after: Option<&str>) -> Changed {
        Changed {
            path: "/w/a".into(),
            before: before.map(version),
            after: after.map(version),
            stamp: None,
            folders: Vec::new(),
            other_names: 0,
        }
    }

    #[test]
    fn what_files_were_and_became_is_kept_by_content() {
        let home = tempfile::tempdir().unwrap();
        let edits = Edits::outside(home.path());
        assert_eq!(edits.list().unwrap(), []);
        edits.keep(&"one".into(), &[changed(None, Some("a"))]).unwrap();
        edits.keep(&"two".into(), &[changed(Some("a"), Some("b"))]).unwrap();
        let list = edits.list().unwrap();
        let calls: Vec<_> = list.iter().map(|edit| edit.call.as_str()).collect();
        assert_eq!(calls, ["one", "two"]);
        assert_eq!(edits.version(list[1].files[0].before.as_ref().unwrap()).unwrap(), version("a"));
        assert_eq!(fs::read_dir(edits.contents.directory()).unwrap().count(), 2);
    }

    #[test]
    fn content_that_was_damaged_is_not_given_back() {
        let home = tempfile::tempdir().unwrap();
        let edits = Edits::outside(home.path());
        edits.keep(&"one".into(), &[changed(Some("a"), None)]).unwrap();
        let kept = edits.list().unwrap()[0].files[0].before.clone().unwrap();
        fs::write(edits.contents.directory().join(&kept.content), "other").unwrap();
        assert!(edits.version(&kept).is_err());
    }

    #[test]
    fn an_undo_can_be_undone_and_ids_may_come_again() {
        let home = tempfile::tempdir().unwrap();
        let edits = Edits::outside(home.path());
        let state = |call: &str| {
            edits.keep(&call.into(), &[]).unwrap();
            edits.list().unwrap().iter().map(|edit| edit.undone).collect::<Vec<_>>()
        };
        assert_eq!(state("a"), [false]);
        assert_eq!(state("a"), [false, false]);
        assert_eq!(state("undo:a"), [false, true, false]);
        assert_eq!(state("undo:undo:a"), [false, false, true, false]);
        assert_eq!(state("undo:undo:undo:a"), [false, true, false, true, false]);
    }

    #[test]
    fn a_line_that_was_cut_short_does_not_hide_the_others() {
        let home = tempfile::tempdir().unwrap();
        let edits = Edits::outside(home.path());
        edits.keep(&"one".into(), &[]).unwrap();
        let mut log = OpenOptions::new().append(true).open(edits.log()).unwrap();
        log.write_all(b"{\"time\":\n").unwrap();
        edits.keep(&"two".into(), &[]).unwrap();
        assert_eq!(edits.list().unwrap().len(), 2);
    }
}
