//! Random sequences of commands, edits by tools and changes by a person, taken back one by one:
//! what was kept comes back byte for byte, and what the person changed is never touched.
//!
//! `WINDLASS_UNDO_CASES=200` runs more sequences.
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fastrand::Rng;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    CallId, Effects, Host, Sandbox,
    edit::{Action, Archive, Change, Expected},
    grant::{Confinement, Limits},
    host::Command,
    snapshot::EntryChange,
};
use windlass_fakes::issue_grant;
use windlass_host::{Machine, SnapshotLimits, UndoRecorder, UndoRoot, restore_entries};
use windlass_record::{Edit, Edits, SnapshotStore, UNDO};

/// The names that everyone uses. Some are files, some directories, some both.
const NAMES: [&str; 10] = ["a", "b", "c", "d", "d/a", "d/b", "d/e", "d/e/f", "g", "g/h"];

/// Everything below a directory but mere times.
type Tree = BTreeMap<String, String>;

struct Place {
    directory: tempfile::TempDir,
    work: PathBuf,
    edits: Edits,
    machine: Machine,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        let (work, home) = (top.join("work"), top.join("home"));
        fs::create_dir(&work).unwrap();
        for (name, text) in [("a", "one\n"), ("b", "two\n")] {
            fs::write(work.join(name), text).unwrap();
        }
        fs::create_dir(work.join("d")).unwrap();
        fs::write(work.join("d/a"), "deep\n").unwrap();
        let edits = Edits::outside(&home);
        let machine = Self::machine(&work, &home, &edits);
        Self { directory, work, edits, machine }
    }

    fn machine(work: &Path, home: &Path, edits: &Edits) -> Machine {
        let store = Arc::new(SnapshotStore::open(home, work).unwrap());
        let (path, limits) = (work.to_owned(), SnapshotLimits::default());
        let root = UndoRoot { path, store, left_out: Vec::new(), limits };
        let recorder = UndoRecorder::new(vec![root], Arc::new(edits.clone()));
        let path = std::env::var("PATH").unwrap_or_default();
        Machine::new(BTreeMap::from([("PATH".to_owned(), path)]))
            .with_archive(Arc::new(edits.clone()))
            .with_undo_recorder(Arc::new(recorder))
    }

    /// Waits until everything is recorded, which it is when the machine is gone.
    fn settled(self) -> Self {
        let Self { directory, work, edits, machine } = self;
        drop(machine);
        let machine = Self::machine(&work, &work.with_file_name("home"), &edits);
        Self { directory, work, edits, machine }
    }

    fn host(&self, call: &str) -> Arc<dyn Host> {
        let effects = Effects::none();
        // A busy machine takes more than the usual 10 s for 5,000 files.
        let limits = Limits { default_time: Duration::from_mins(2), ..Limits::default() };
        let grant = issue_grant(self.work.clone(), &effects, limits, Confinement::Unconfined);
        self.machine.confine(&grant.for_call(&call.into())).unwrap()
    }

    async fn run(&self, call: &str, script: &str) {
        let argv = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let host = self.host(call);
        host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
        assert_eq!(host.undo_limits(), Vec::<String>::new());
    }

    /// A tool writes a file, if there is one or nothing.
    async fn write(&self, call: &str, name: &str, text: String) {
        let now = match fs::symlink_metadata(self.work.join(name)) {
            Ok(found) if found.is_file() => Expected::Content(fs::read(self.work.join(name)).unwrap().into()),
            Ok(_) => return,
            Err(_) => Expected::Absent,
        };
        let change = Change { path: name.into(), expected: now, action: Action::Write(text.into_bytes()) };
        // A name may lie below a file, or beyond a link.
        drop(self.host(call).files().commit(&call.into(), vec![change]).await);
    }

    fn tree(&self) -> Tree {
        let mut tree = Tree::new();
        let mut queue = vec![self.work.clone()];
        while let Some(directory) = queue.pop() {
            for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
                let found = entry.path().symlink_metadata().unwrap();
                let name = entry.path().strip_prefix(&self.work).unwrap().to_str().unwrap().to_owned();
                let mode = found.mode() & 0o7777;
                let shown = if found.is_symlink() {
                    format!("-> {}", fs::read_link(entry.path()).unwrap().display())
                } else if found.is_dir() {
                    queue.push(entry.path());
                    format!("directory {mode:o}")
                } else {
                    format!("{mode:o} {}", String::from_utf8_lossy(&fs::read(entry.path()).unwrap()))
                };
                tree.insert(name, shown);
            }
        }
        tree
    }

    /// Takes an edit back, as `windlass undo` does.
    async fn undo(&self, edit: &Edit) -> Result<(), String> {
        if edit.command.is_some() {
            let changes: Vec<_> =
                edit.files.iter().map(|file| file.as_entry_change().unwrap().reversed()).collect();
            restore_entries(&changes, &|digest| self.edits.content(digest), self.edits.notes())
                .map_err(|error| error.to_string())?;
            return self.edits.log_undo(edit, &edit.files).map_err(|error| error.to_string());
        }
        let mut changes = Vec::new();
        for file in &edit.files {
            let version = |kept| self.edits.version(kept).unwrap();
            let (before, after) = (file.before.as_ref().map(version), file.after.as_ref().map(version));
            let expected =
                after.as_ref().map_or(Expected::Absent, |after| Expected::Content(Arc::clone(&after.bytes)));
            let action = match before {
                Some(before) => Action::Restore { before, after },
                None => Action::Delete { folders: file.folders.clone() },
            };
            changes.push(Change { path: file.path.clone(), expected, action });
        }
        let call: CallId = format!("{UNDO}{}", edit.call).into();
        let undone = self.host(call.as_str()).files().commit(&call, changes).await;
        undone.map(drop).map_err(|error| error.to_string())
    }

    /// The paths of an edit, directories made for it included.
    fn paths(&self, edit: &Edit) -> BTreeSet<String> {
        let paths = edit.files.iter().flat_map(|file| file.folders.iter().chain([&file.path]));
        paths.map(|path| path.strip_prefix(&self.work).unwrap().to_str().unwrap().to_owned()).collect()
    }
}

fn name(random: &mut Rng) -> &'static str {
    NAMES[random.usize(..NAMES.len())]
}

/// One thing that a command does. It may fail.
fn operation(random: &mut Rng) -> String {
    let (one, other, number) = (name(random), name(random), random.u32(..1000));
    match random.u8(..14) {
        0 | 1 => format!("printf '{number}\\n' > {one}"),
        2 => format!("printf 'more {number}\\n' >> {one}"),
        3 => format!("true > {one}"),
        4 => format!("mv -T {one} {other}"),
        5 => format!("rm -f {one}"),
        6 => format!("rm -rf {one}"),
        7 => format!("chmod {} {one}", ["600", "755", "640", "700"][random.usize(..4)]),
        8 => format!("ln -sfn {other} {one}"),
        9 => format!("mkdir -p {one}"),
        10 => format!("rmdir {one}"),
        11 => format!("ln -f {one} {other}"),
        12 => format!("truncate -s {number} {one}"),
        _ => format!("printf x | dd of={one} bs=1 seek=5000 conv=notrunc"),
    }
}

fn script(random: &mut Rng) -> String {
    (0..random.usize(1..5)).map(|_| format!("{} 2>/dev/null; ", operation(random))).collect::<String>()
        + "true"
}

/// Acts as a person: with the same actions in the same places.
fn act_as_person(place: &Place, random: &mut Rng) {
    let script = script(random);
    let done = std::process::Command::new("/bin/sh").args(["-c", &script]).current_dir(&place.work).status();
    assert!(done.unwrap().success());
}

async fn play(seed: u64, with_person: bool) {
    let mut random = Rng::with_seed(seed);
    let place = Place::new();
    let start = place.tree();
    // The state before each call.
    let mut states: BTreeMap<String, Tree> = BTreeMap::new();
    for step in 0..random.usize(3..8) {
        if with_person && random.u8(..3) == 0 {
            act_as_person(&place, &mut random);
        }
        let call = format!("call-{step}");
        states.insert(call.clone(), place.tree());
        if random.u8(..4) == 0 {
            place.write(&call, name(&mut random), format!("tool {}\n", random.u32(..1000))).await;
        } else {
            place.run(&call, &script(&mut random)).await;
        }
    }
    if with_person {
        act_as_person(&place, &mut random);
    }
    let place = place.settled();
    let edits = place.edits.list().unwrap();
    let mut has_conflicts = false;
    for edit in edits.iter().rev() {
        let (before, paths) = (place.tree(), place.paths(edit));
        let undone = place.undo(edit).await;
        let now = place.tree();
        let Ok(()) = undone else {
            assert!(with_person, "seed {seed}: {} of {}", undone.unwrap_err(), edit.call);
            assert_eq!(now, before, "seed {seed}: nothing is changed where something cannot be");
            has_conflicts = true;
            continue;
        };
        for (path, shown) in &now {
            // A directory that the person removed is made again for a file in it.
            let is_made_for = paths.iter().any(|other| other.starts_with(&format!("{path}/")));
            if !paths.contains(path) && (before.contains_key(path) || !is_made_for) {
                assert_eq!(before.get(path), Some(shown), "seed {seed}: {path} is not of {}", edit.call);
            }
        }
        for path in before.keys().filter(|path| !paths.contains(*path)) {
            assert!(now.contains_key(path), "seed {seed}: {path} is gone by the undo of {}", edit.call);
        }
        let state = &states[edit.call.as_str()];
        for path in
            paths.iter().filter(|path| !state.get(*path).is_some_and(|shown| shown.starts_with("dir")))
        {
            // A mode that the person gave since stays; a directory with something else in it, too.
            let content = |shown: &String| shown.split_once(' ').map(|(_, content)| content.to_owned());
            let is_left =
                now.get(path).is_some_and(|shown| shown.starts_with("dir")) && !state.contains_key(path);
            let (now, then) = (now.get(path).and_then(content), state.get(path).and_then(content));
            assert!(is_left || now == then, "seed {seed}: {path} after the undo of {}", edit.call);
        }
        if !with_person {
            assert_eq!(&now, &states[edit.call.as_str()], "seed {seed}: after the undo of {}", edit.call);
        }
    }
    if !with_person {
        assert!(!has_conflicts);
        assert_eq!(place.tree(), start, "seed {seed}");
    }
    redo_all_at_once(&place, &edits, with_person, seed);
}

/// Redoes and undoes the changes of all commands in one step.
fn redo_all_at_once(place: &Place, edits: &[Edit], with_person: bool, seed: u64) {
    if with_person || edits.iter().any(|edit| edit.command.is_none()) {
        return;
    }
    let mut all: BTreeMap<PathBuf, EntryChange> = BTreeMap::new();
    for change in edits.iter().flat_map(|edit| &edit.files).map(|file| file.as_entry_change().unwrap()) {
        let after = change.after.clone();
        all.entry(change.path.clone()).or_insert(change).after = after;
    }
    let all: Vec<_> = all.into_values().collect();
    let start = place.tree();
    let read = |digest: &[u8; 32]| place.edits.content(digest);
    restore_entries(&all, &read, place.edits.notes()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let reversed: Vec<_> = all.iter().map(EntryChange::reversed).collect();
    restore_entries(&reversed, &read, place.edits.notes())
        .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    assert_eq!(place.tree(), start, "seed {seed}");
}

fn cases() -> u64 {
    std::env::var("WINDLASS_UNDO_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

#[tokio::test]
async fn commands_and_edits_are_taken_back_byte_for_byte() {
    for seed in 0..cases() {
        play(seed, false).await;
    }
}

#[tokio::test]
async fn what_a_person_changed_is_never_touched() {
    for seed in 0..cases() {
        play(1_000_000 + seed, true).await;
    }
}

#[tokio::test]
async fn five_thousand_files_are_one_edit_and_come_back() {
    let place = Place::new();
    let before = place.tree();
    let many = "mkdir many; cd many; i=0; while [ $i -lt 5000 ]; do echo $i > f$i; i=$((i+1)); done";
    place.run("many", many).await;
    place.run("gone", "rm -r many; chmod 700 d").await;
    let place = place.settled();
    let edits = place.edits.list().unwrap();
    let counts: Vec<_> = edits.iter().map(|edit| (edit.call.as_str(), edit.files.len())).collect();
    assert_eq!(counts, [("many", 5001), ("gone", 5002)]);
    place.undo(&edits[1]).await.unwrap();
    assert_eq!(place.tree().len(), before.len() + 5001);
    place.undo(&edits[0]).await.unwrap();
    assert_eq!(place.tree(), before);
    let mode = fs::metadata(place.work.join("d")).unwrap().permissions().mode();
    assert_eq!(format!("directory {:o}", mode & 0o7777), before["d"]);
}
