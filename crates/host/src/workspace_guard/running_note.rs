//! Notes of commands that run, in a directory of Windlass. A process that is killed while a command
//! runs leaves its note, and the next session that uses the workspace checks what that command did.
//! So it is with a command that left something which could not be put right.

use std::{
    collections::BTreeSet,
    ffi::OsString,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::{
        ffi::{OsStrExt, OsStringExt},
        fs::{DirBuilderExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use windlass_sandbox::ProtectedPaths;

const HEADER: &[u8] = b"windlass running 1";
const END: &[u8] = b"end";
const UNRESOLVED: &[u8] = b"unresolved";

/// The largest note that is read.
const MAX_NOTE_BYTES: u64 = 64 * 1024 * 1024;

/// Maximum number of attempts to lock the note of a process that is gone: its children die a moment
/// after it.
const MAX_LOCK_TRIES: u32 = 20;
const LOCK_PAUSE: Duration = Duration::from_millis(10);

/// The note of a session, locked while the session lives. Empty while no command runs.
#[derive(Debug)]
pub(super) struct RunningNote {
    file: File,
    path: PathBuf,
    /// The note stays for later sessions.
    is_left: bool,
}

impl RunningNote {
    /// Makes an empty note.
    pub(super) fn create(directory: &Path) -> io::Result<Self> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = directory.join(format!("{}-{number}", std::process::id()));
        // A note of a dead process with the same PID belongs to its workspace and is kept.
        let now = nanoseconds(SystemTime::now()).to_string();
        let path = if path.try_exists()? { path.with_extension(now) } else { path };
        let file = OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        Ok(Self { file, path, is_left: false })
    }

    /// Writes that a command is about to run that may write these roots.
    pub(super) fn write(&mut self, roots: &[NotedRoot], protected: &ProtectedPaths) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(&encode(SystemTime::now(), roots, existing(protected)))
    }

    /// Writes that no command runs any more.
    pub(super) fn clear(&self) -> io::Result<()> {
        self.file.set_len(0)
    }

    /// Leaves the note for later sessions, with what could not be put right.
    pub(super) fn leave(&mut self, reason: &str) -> io::Result<()> {
        if std::mem::replace(&mut self.is_left, true) {
            return Ok(());
        }
        let end = self.file.metadata()?.len().saturating_sub(END.len() as u64 + 1);
        self.file.set_len(end)?;
        self.file.write_all(&unresolved_end(reason))
    }
}

impl Drop for RunningNote {
    fn drop(&mut self) {
        if self.is_left {
            return;
        }
        // Left behind it is empty, and the next session removes it.
        let _left = fs::remove_file(&self.path);
    }
}

fn nanoseconds(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos()
}

/// Writes a note: fields that end with a zero byte.
fn encode<'a>(started: SystemTime, roots: &[NotedRoot], known: impl Iterator<Item = &'a Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut push = |field: &[u8]| bytes.extend(field.iter().copied().chain([0]));
    push(HEADER);
    push(nanoseconds(started).to_string().as_bytes());
    for NotedRoot { path, dev, ino } in roots {
        push(b"root");
        push(path.as_os_str().as_bytes());
        push(format!("{dev}:{ino}").as_bytes());
    }
    for path in known {
        push(b"known");
        push(path.as_os_str().as_bytes());
    }
    push(END);
    bytes
}

/// The end of a note that says what could not be put right, instead of [`END`] alone.
fn unresolved_end(reason: &str) -> Vec<u8> {
    let fields = [UNRESOLVED, reason.as_bytes(), END].into_iter();
    fields.flat_map(|field| field.iter().copied().filter(|byte| *byte != 0).chain([0])).collect()
}

/// The protected paths that exist.
fn existing(protected: &ProtectedPaths) -> impl Iterator<Item = &Path> {
    let ProtectedPaths { read_only, pinned, git_configs, links, unmounted, .. } = protected;
    let paths = read_only.iter().chain(pinned).chain(git_configs).chain(unmounted);
    paths.chain(links.iter().map(|(link, _)| link)).map(PathBuf::as_path)
}

/// A directory that a command could write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotedRoot {
    /// Its path without links.
    pub(super) path: PathBuf,
    /// The file system and the inode, by which it is known after it was moved.
    pub(super) dev: u64,
    pub(super) ino: u64,
}

/// A command whose session was killed while it ran.
#[derive(Debug)]
pub(super) struct InterruptedCommand {
    /// Start time of the command, or of the first of several.
    pub(super) started: SystemTime,
    /// The directories it could write that were not checked yet.
    pub(super) roots: Vec<NotedRoot>,
    /// Protected paths that existed then.
    pub(super) known: BTreeSet<PathBuf>,
    /// The problem that its own session could not resolve.
    pub(super) unresolved: Option<String>,
    file: File,
    pub(super) path: PathBuf,
}

/// The content of a note.
#[derive(Debug)]
struct NoteContent {
    started: SystemTime,
    roots: Vec<NotedRoot>,
    known: BTreeSet<PathBuf>,
    unresolved: Option<String>,
}

impl InterruptedCommand {
    /// Finds the commands that were never checked.
    pub(super) fn find(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        entries.filter_map(|entry| Self::read(entry.path())).collect()
    }

    /// Reads the note of a process that is gone. An empty one is removed: nothing ran.
    fn read(path: PathBuf) -> Option<Self> {
        let file = File::open(&path).ok()?;
        lock_of_the_dead(&file, &path)?;
        let length = file.metadata().ok()?.len();
        if length == 0 {
            drop(fs::remove_file(&path));
            return None;
        }
        let bytes = fs::read(&path).ok().filter(|_| length <= MAX_NOTE_BYTES)?;
        let NoteContent { started, roots, known, unresolved } = parse(&bytes)?;
        Some(Self { started, roots, known, unresolved, file, path })
    }

    /// Keeps the note for the roots that are left.
    pub(super) fn settle(self) -> io::Result<()> {
        if self.roots.is_empty() {
            return fs::remove_file(&self.path);
        }
        let mut rest = encode(self.started, &self.roots, self.known.iter().map(PathBuf::as_path));
        if let Some(reason) = &self.unresolved {
            rest.truncate(rest.len().saturating_sub(END.len() + 1));
            rest.extend(unresolved_end(reason));
        }
        fs::write(&self.path, rest)?;
        self.file.unlock()
    }
}

/// Returns true if a session of another process runs a command that may write one of these
/// directories, or a directory around it.
pub(super) fn runs_elsewhere(notes: &Path, directories: &[PathBuf]) -> bool {
    let entries = fs::read_dir(notes).into_iter().flatten().flatten();
    let own = format!("{}-", std::process::id());
    let others = entries.filter(|entry| !entry.file_name().as_bytes().starts_with(own.as_bytes()));
    others.filter_map(|entry| living_roots(&entry.path())).flatten().any(|root| {
        directories.iter().any(|path| path.starts_with(&root.path) || root.path.starts_with(path))
    })
}

/// Returns the roots in the note of a living process, if it runs a command.
fn living_roots(path: &Path) -> Option<Vec<NotedRoot>> {
    let bytes = fs::read(path).ok().filter(|bytes| !bytes.is_empty())?;
    // Its process locked the note before it wrote anything into it.
    let is_living = File::open(path).ok()?.try_lock_shared().is_err();
    parse(&bytes).filter(|_| is_living).map(|note| note.roots)
}

/// Takes the lock of a note whose process is gone. None if a living process has it.
fn lock_of_the_dead(file: &File, path: &Path) -> Option<()> {
    let process = path.file_name()?.to_str()?.split('-').next()?;
    for _ in 0..MAX_LOCK_TRIES {
        if file.try_lock().is_ok() {
            return Some(());
        }
        if process == std::process::id().to_string() || Path::new("/proc").join(process).exists() {
            return None;
        }
        thread::sleep(LOCK_PAUSE);
    }
    None
}

/// Reads a note. One that was cut short belongs to a command that was never started.
fn parse(bytes: &[u8]) -> Option<NoteContent> {
    let mut fields = bytes.split_inclusive(|byte| *byte == 0).filter_map(|field| field.strip_suffix(&[0]));
    fields.next().filter(|header| *header == HEADER)?;
    let nanos: u64 = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
    let started = SystemTime::UNIX_EPOCH.checked_add(Duration::from_nanos(nanos))?;
    let (mut roots, mut known, mut unresolved) = (Vec::new(), BTreeSet::new(), None);
    loop {
        match fields.next()? {
            END => return Some(NoteContent { started, roots, known, unresolved }),
            UNRESOLVED => unresolved = Some(String::from_utf8_lossy(fields.next()?).into_owned()),
            b"root" => {
                let path = path(fields.next()?);
                let (dev, ino) = std::str::from_utf8(fields.next()?).ok()?.split_once(':')?;
                roots.push(NotedRoot { path, dev: dev.parse().ok()?, ino: ino.parse().ok()? });
            }
            _ => drop(known.insert(path(fields.next()?))),
        }
    }
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(field.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(directory: &Path) -> RunningNote {
        let mut note = RunningNote::create(directory).unwrap();
        let protected = ProtectedPaths {
            read_only: BTreeSet::from([PathBuf::from("/w/.envrc")]),
            absent: BTreeSet::from([PathBuf::from("/w/.bashrc")]),
            ..ProtectedPaths::default()
        };
        note.write(&["/w", "/v"].map(root), &protected).unwrap();
        note
    }

    fn root(path: &str) -> NotedRoot {
        NotedRoot { path: PathBuf::from(path), dev: 1, ino: 2 }
    }

    /// Leaves a note as a killed process would.
    fn kill(note: RunningNote) {
        note.file.unlock().unwrap();
        std::mem::forget(note);
    }

    #[test]
    fn the_note_of_a_killed_process_is_found_until_each_root_is_settled() {
        let directory = tempfile::tempdir().unwrap();
        kill(note(directory.path()));
        let find = || InterruptedCommand::find(directory.path()).pop();
        let mut found = find().unwrap();
        assert_eq!(found.known, BTreeSet::from([PathBuf::from("/w/.envrc")]));
        assert!(found.started <= SystemTime::now());
        found.roots.remove(0);
        found.settle().unwrap();
        let mut found = find().unwrap();
        assert_eq!(found.roots, [root("/v")]);
        found.roots.clear();
        found.settle().unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_could_not_be_put_right_is_left_for_later_sessions() {
        let directory = tempfile::tempdir().unwrap();
        let mut left = note(directory.path());
        left.leave("`/w/x`: it could NOT be moved").unwrap();
        left.leave("another").unwrap();
        drop(left);
        let found = InterruptedCommand::find(directory.path()).pop().unwrap();
        assert_eq!(found.unresolved.as_deref(), Some("`/w/x`: it could NOT be moved"));
        assert_eq!(found.roots, ["/w", "/v"].map(root));
    }

    #[test]
    fn a_living_session_and_one_without_a_command_are_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let living = note(directory.path());
        assert_eq!(InterruptedCommand::find(directory.path()).len(), 0);
        living.clear().unwrap();
        kill(living);
        assert_eq!(InterruptedCommand::find(directory.path()).len(), 0);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "an empty note is removed");
    }

    #[test]
    fn a_note_that_was_cut_short_is_none() {
        let whole = encode(SystemTime::now(), &[root("/w")], [Path::new("/k")].into_iter());
        assert!(parse(&whole).is_some());
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_none(), "{length}");
        }
    }
}
