//! The cost of a change scan in workspaces of three sizes, compared with `find` on the same files.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails where it must")]
#![expect(clippy::disallowed_methods, reason = "the files are the benchmark's own")]

use std::{fs, process::Command, time::Instant};

use windlass_files::{DirHandle, WorkspaceScan};

fn main() {
    for (directories, rounds) in [(50, 200), (500, 40), (5000, 10)] {
        let place = tempfile::tempdir().unwrap();
        for directory in 0..directories {
            let directory = place.path().join(format!("d{}/e{directory}", directory % 10));
            fs::create_dir_all(&directory).unwrap();
            for file in 0..20 {
                fs::write(directory.join(format!("file-{file}.rs")), "x").unwrap();
            }
        }
        let root = DirHandle::open(&place.path().canonicalize().unwrap()).unwrap();
        let mut before = WorkspaceScan::new(&root).unwrap();
        let mut best = f64::MAX;
        for _ in 0..rounds {
            let begun = Instant::now();
            let after = WorkspaceScan::new(&root).unwrap();
            assert!(before.changes_to(&after).is_empty());
            best = best.min(begun.elapsed().as_secs_f64());
            before = after;
        }
        let mut update = f64::MAX;
        for _ in 0..rounds {
            let begun = Instant::now();
            let after = before.update(&root).unwrap();
            assert!(before.has_same_entries(&after));
            update = update.min(begun.elapsed().as_secs_f64());
        }
        let begun = Instant::now();
        let found = Command::new("find").arg(place.path()).args(["-ctime", "+1"]).status().unwrap();
        let find = begun.elapsed().as_secs_f64();
        assert!(found.success());
        println!(
            "{:>7} entries: scan and comparison {:.2} ms, update {:.2} ms (find: {:.2} ms)",
            before.entries(),
            best * 1e3,
            update * 1e3,
            find * 1e3
        );
    }
}
