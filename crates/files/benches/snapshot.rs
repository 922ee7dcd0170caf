//! The cost of a snapshot in workspaces of three sizes: the first, one without a change, one with a
//! change, and from a listing that an earlier process saved.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails where it must")]
#![expect(clippy::disallowed_methods, reason = "the files are the benchmark's own")]

use std::{fs, sync::Arc, thread, time::Duration, time::Instant};

use windlass_contract::snapshot::ContentStore;
use windlass_files::{DirHandle, SnapshotLimits, SnapshotRoot, WorkspaceSnapshot};
use windlass_record::SnapshotStore;

fn main() {
    for (directories, rounds) in [(50, 200), (500, 40), (5000, 10)] {
        let place = tempfile::tempdir().unwrap();
        let (work, home) = (place.path().join("work"), place.path().join("home"));
        for directory in 0..directories {
            let directory = work.join(format!("d{}/e{directory}", directory % 10));
            fs::create_dir_all(&directory).unwrap();
            for file in 0..20 {
                let text = format!("{} {file}\n", directory.display()).repeat(40);
                fs::write(directory.join(format!("file-{file}.rs")), text).unwrap();
            }
        }
        let path = work.canonicalize().unwrap();
        let store = SnapshotStore::open(&home, &path).unwrap();
        let (handle, limits) = (DirHandle::open(&path).unwrap(), SnapshotLimits::default());
        let root = SnapshotRoot { handle, path, left_out: Vec::new(), limits, stop: Arc::default() };
        thread::sleep(Duration::from_millis(50));
        let begun = Instant::now();
        let first = WorkspaceSnapshot::fill(&root, &store).unwrap();
        let fill = begun.elapsed();
        let none = best(rounds, || {
            let again = first.update(&root, &store).unwrap();
            assert!(first.changes_to(&again, &root.path).is_empty());
        });
        let changed = root.path.join("d0/e0/file-0.rs");
        let mut before = first.clone();
        let mut round = 0;
        let one = best(rounds.min(20), || {
            round += 1;
            fs::write(&changed, round.to_string()).unwrap();
            let after = before.update_after_command(&root, &store).unwrap().by_same_rules;
            assert_eq!(before.changes_to(&after, &root.path).kept.len(), 1);
            before = after;
        });
        store.save_listing(&first.to_bytes()).unwrap();
        let load =
            best(rounds, || drop(WorkspaceSnapshot::from_bytes(&store.load_listing().unwrap()).unwrap()));
        let save = best(rounds, || store.save_listing(&first.to_bytes()).unwrap());
        println!(
            "{:>7} entries: first {:.0} ms, no change {none:.2} ms, one change {one:.2} ms, load {load:.2} ms, save {save:.2} ms",
            first.entries(),
            fill.as_secs_f64() * 1e3,
        );
    }
}

/// Returns the best time of some rounds, in milliseconds.
fn best(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..rounds {
        let begun = Instant::now();
        work();
        best = best.min(begun.elapsed().as_secs_f64() * 1e3);
    }
    best
}
