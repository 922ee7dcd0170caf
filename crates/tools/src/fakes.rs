//! A host that answers from a script, and a harness to call tools.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    AnyTool, BoxFuture, CallId, Cx, Event, Host, Input, Output, ToolError,
    edit::{Action, Attributes, Change, Changed, CommitError, Version},
    files::{
        Entry, FileError, FileKind, Files, Found, Listed, Listing, OpenFile, Search, Seen, Since, Stamp,
    },
    grant::{Held, Mechanism},
    host::{
        Command, Exit, FinishedCommand, HostError, Keyboard, Listener, OutputListener, Printed, Session,
        Whole,
    },
    report::ProcessReport,
};
use windlass_fakes::{EventRecorder, context, run_parsed};

use fixed_files::FilesOnlyHost;
pub(crate) use fixed_files::FixedFiles;

mod fixed_files;

/// Calls tools, and records the commands and events.
pub(crate) struct ToolHarness {
    pub(crate) cx: Cx,
    machine: Arc<ScriptedHost>,
    watcher: Arc<EventRecorder>,
}

impl ToolHarness {
    /// Creates a host that prints these pieces and ends with this answer.
    pub(crate) fn new(pieces: &[&[u8]], answer: Result<FinishedCommand, HostError>) -> Self {
        let pieces = pieces.iter().map(|piece| piece.to_vec()).collect();
        let (answer, asked, files) = (Mutex::new(Some(answer)), Mutex::default(), MemoryFiles::default());
        let machine = Arc::new(ScriptedHost { pieces, answer, asked, files, writes: Mutex::default() });
        let watcher = Arc::new(EventRecorder::default());
        let cx = context(machine.clone(), watcher.clone());
        Self { cx, machine, watcher }
    }

    /// Creates a host that runs nothing and has these writable files.
    pub(crate) fn with_drawer(files: &[(&str, &str)]) -> Self {
        Self::idle().holding(files)
    }

    /// Adds writable files to the host.
    pub(crate) fn holding(self, files: &[(&str, &str)]) -> Self {
        let mut held = self.machine.files.files.lock().unwrap();
        held.extend(files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec())));
        drop(held);
        self
    }

    /// Makes the command write these files.
    pub(crate) fn writing(self, files: &[(&str, &str)]) -> Self {
        let written = files.iter().map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()));
        self.machine.writes.lock().unwrap().extend(written);
        self
    }

    /// Returns the content of a file.
    pub(crate) fn file(&self, path: &str) -> Option<String> {
        let files = self.machine.files.files.lock().unwrap();
        files.get(Path::new(path)).map(|bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// Changes a file as another program would.
    pub(crate) fn overwrite(&self, path: &str, text: &str) {
        self.machine.files.files.lock().unwrap().insert(path.into(), text.as_bytes().to_vec());
    }

    /// Creates a host for tools that run nothing.
    pub(crate) fn idle() -> Self {
        Self::new(&[], Err(HostError::EmptyCommand))
    }

    /// Creates a host for tools that use files.
    pub(crate) fn with_files(shelf: impl Into<Arc<FixedFiles>>) -> Self {
        let mut desk = Self::idle();
        desk.cx.host = Arc::new(FilesOnlyHost(shelf.into()));
        desk
    }

    pub(crate) async fn call(&self, tool: Arc<dyn AnyTool>, input: &str) -> Result<Output, ToolError> {
        run_parsed(&tool.prepare(&Input::Json(input.to_owned()))?, &self.cx).await
    }

    pub(crate) fn asked(&self) -> Vec<Command> {
        self.machine.asked.lock().unwrap().clone()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.watcher.events()
    }
}

/// Returns a finished command with this output, after 1.5 seconds.
pub(crate) fn finished(exit: Exit, output: &[u8]) -> FinishedCommand {
    let mut finished = windlass_fakes::finished(exit, output);
    finished.report.duration = std::time::Duration::from_millis(1500);
    finished
}

struct ScriptedHost {
    pieces: Vec<Vec<u8>>,
    answer: Mutex<Option<Result<FinishedCommand, HostError>>>,
    asked: Mutex<Vec<Command>>,
    files: MemoryFiles,
    writes: Mutex<Vec<(PathBuf, Vec<u8>)>>,
}

/// Writable files in memory.
#[derive(Default)]
struct MemoryFiles {
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    shown: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
}

impl Files for MemoryFiles {
    fn open<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Result<Box<dyn OpenFile>, FileError>> {
        let path = path.strip_prefix(".").unwrap_or(path);
        let found = self.files.lock().unwrap().get(path).cloned();
        let file =
            found.map(|bytes| Box::new(MemoryFile { path: path.to_owned(), bytes }) as Box<dyn OpenFile>);
        Box::pin(async move { file.ok_or_else(|| FileError::NotFound { path: path.to_owned() }) })
    }

    /// Lists one level, derived from the file names.
    fn list<'a>(
        &'a self,
        listing: &'a Listing,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Listed, FileError>> {
        let path = listing.path.strip_prefix(".").unwrap_or(&listing.path).to_owned();
        let files = self.files.lock().unwrap();
        let mut entries = BTreeMap::new();
        for rest in files.keys().filter_map(|file| file.strip_prefix(&path).ok()) {
            let Some(first) = rest.components().next() else { continue };
            let kind = if rest.components().count() > 1 { FileKind::Directory } else { FileKind::File };
            entries.insert(PathBuf::from(first.as_os_str()), kind);
        }
        let is_file = files.contains_key(&path);
        let entries: Vec<_> = entries.into_iter().map(|(path, kind)| Entry { path, kind }).collect();
        Box::pin(async move {
            match (is_file, entries.is_empty()) {
                (true, _) => Err(FileError::NotADirectory { path }),
                (false, true) => Err(FileError::NotFound { path }),
                (false, false) => Ok(Listed { path, entries, more: false }),
            }
        })
    }

    fn search<'a>(
        &'a self,
        _search: &'a Search,
        _cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Result<Found, FileError>> {
        Box::pin(async { Err(FileError::Cancelled) })
    }

    fn commit<'a>(
        &'a self,
        _call: &'a CallId,
        changes: Vec<Change>,
    ) -> BoxFuture<'a, Result<Vec<Changed>, CommitError>> {
        let mut files = self.files.lock().unwrap();
        let mut made = Vec::new();
        let version = |bytes: Vec<u8>| Version {
            bytes: bytes.into(),
            mode: 0o644,
            owner: None,
            modified: None,
            attributes: Attributes::new(),
        };
        for Change { path, action, .. } in changes {
            let before = files.remove(&path).map(version);
            let (path, after) = match action {
                Action::Write(bytes) => (path, Some(bytes)),
                Action::Restore { before, .. } => (path, Some(before.bytes.to_vec())),
                Action::Delete { .. } => (path, None),
                Action::Move { to, bytes } => (to, Some(bytes)),
            };
            files.extend(after.clone().map(|bytes| (path.clone(), bytes)));
            let stamp = after.as_deref().map(stamp);
            let (after, folders) = (after.map(version), Vec::new());
            made.push(Changed { path, before, after, stamp, folders, other_names: 0 });
        }
        Box::pin(async move { Ok(made) })
    }

    fn show(&self, seen: Seen<'_>) {
        let bytes = seen.bytes.unwrap_or_default().to_vec();
        self.shown.lock().unwrap().insert(seen.path.to_owned(), bytes);
    }

    fn since(&self, now: Seen<'_>) -> Since {
        match self.shown.lock().unwrap().get(now.path) {
            None => Since::NeverShown,
            Some(shown) if Some(&**shown) == now.bytes => Since::Same,
            Some(shown) => Since::Changed { was: Some(shown.clone()) },
        }
    }
}

fn stamp(bytes: &[u8]) -> Stamp {
    Stamp { device: 0, inode: 0, size_bytes: bytes.len() as u64, changed: (0, 0) }
}

#[derive(Debug)]
struct MemoryFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl OpenFile for MemoryFile {
    fn path(&self) -> &Path {
        &self.path
    }

    fn real_path(&self) -> &Path {
        &self.path
    }

    fn stamp(&self) -> Stamp {
        stamp(&self.bytes)
    }

    fn read_at(&self, offset: u64, limit_bytes: usize) -> BoxFuture<'_, Result<Vec<u8>, FileError>> {
        let from = usize::try_from(offset).unwrap().min(self.bytes.len());
        let to = from.saturating_add(limit_bytes).min(self.bytes.len());
        Box::pin(async move { Ok(self.bytes[from..to].to_vec()) })
    }
}

impl Host for ScriptedHost {
    fn run<'a>(
        &'a self,
        command: &'a Command,
        _cancel: &'a CancellationToken,
        output: OutputListener<'a>,
    ) -> BoxFuture<'a, Result<FinishedCommand, HostError>> {
        self.asked.lock().unwrap().push(command.clone());
        self.files.files.lock().unwrap().extend(self.writes.lock().unwrap().drain(..));
        for piece in &self.pieces {
            output(piece);
        }
        Box::pin(async { self.answer.lock().unwrap().take().expect("only one command is scripted") })
    }

    fn files(&self) -> &dyn Files {
        &self.files
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::Unconfined)
    }
}

/// A host whose sessions a test controls.
#[derive(Default)]
pub(crate) struct ScriptedSessions {
    pub(crate) opened: Mutex<Vec<(Command, Keyboard, Arc<ScriptedSession>)>>,
    /// Initial output and state of the next session.
    pub(crate) next: Mutex<(&'static str, FakeSessionState)>,
}

/// State of a scripted session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum FakeSessionState {
    #[default]
    Works,
    Waits,
    Over(Exit),
}

impl ScriptedSessions {
    pub(crate) fn desk(self: &Arc<Self>) -> Cx {
        context(self.clone(), Arc::new(EventRecorder::default()))
    }

    pub(crate) fn last(&self) -> Arc<ScriptedSession> {
        Arc::clone(&self.opened.lock().unwrap().last().unwrap().2)
    }
}

impl Host for ScriptedSessions {
    fn open<'a>(
        &'a self,
        command: &'a Command,
        input: Keyboard,
        output: Listener,
    ) -> BoxFuture<'a, Result<Arc<dyn Session>, HostError>> {
        let puppet =
            Arc::new(ScriptedSession { state: watch::Sender::default(), output, typed: Mutex::default() });
        self.opened.lock().unwrap().push((command.clone(), input, Arc::clone(&puppet)));
        let (text, pose) = *self.next.lock().unwrap();
        puppet.act(text, pose);
        Box::pin(async { Ok(puppet as Arc<dyn Session>) })
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::Unconfined)
    }
}

/// A session that prints and ends when a test says so.
pub(crate) struct ScriptedSession {
    state: watch::Sender<(Vec<u8>, u64, FakeSessionState)>,
    output: Listener,
    pub(crate) typed: Mutex<String>,
}

impl ScriptedSession {
    pub(crate) fn act(&self, text: &str, pose: FakeSessionState) {
        (self.output)(text.as_bytes());
        self.state.send_modify(|(bytes, count, now)| {
            bytes.extend_from_slice(text.as_bytes());
            *count += text.len() as u64;
            *now = pose;
        });
    }
}

impl Session for ScriptedSession {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, std::io::Result<usize>> {
        self.typed.lock().unwrap().push_str(std::str::from_utf8(bytes).unwrap());
        Box::pin(async { Ok(bytes.len()) })
    }

    fn take(&self, shown_bytes: usize) -> BoxFuture<'_, Printed> {
        let mut bytes = Vec::new();
        self.state.send_modify(|(printed, ..)| bytes = std::mem::take(printed));
        let whole = Whole::File { path: "/outputs/1.txt".into(), bytes: bytes.len() as u64, complete: true };
        let whole = (bytes.len() > shown_bytes).then_some(whole);
        Box::pin(async { Printed { bytes, gap: None, whole } })
    }

    fn progress(&self, beyond: u64) -> BoxFuture<'_, u64> {
        let mut state = self.state.subscribe();
        Box::pin(async move {
            let news = |(_, count, pose): &(Vec<u8>, u64, FakeSessionState)| {
                *count > beyond || matches!(pose, FakeSessionState::Over(_))
            };
            state.wait_for(news).await.unwrap().1
        })
    }

    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { self.state.borrow().2 == FakeSessionState::Waits })
    }

    fn ended(&self) -> Option<ProcessReport> {
        match self.state.borrow().2 {
            FakeSessionState::Over(exit) => Some(ProcessReport::new(exit)),
            FakeSessionState::Works | FakeSessionState::Waits => None,
        }
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.act("", FakeSessionState::Over(Exit::Cancelled));
        Box::pin(async {})
    }

    fn held(&self) -> Held {
        Held::by(Mechanism::Namespaces)
    }
}
