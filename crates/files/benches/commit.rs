//! The cost of changing one line of a 5 MB file, compared with the simplest safe way: write beside
//! it, flush, rename.
//!
//! Both take turns, so that they run under the same load. Run it with `cargo bench -p
//! windlass-files --bench commit`.
#![expect(clippy::print_stdout, reason = "a measurement, run by hand")]
#![expect(clippy::disallowed_methods, reason = "the files are the benchmark's own")]

use std::{
    fs::{self, File},
    hint::black_box,
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use windlass_contract::{
    edit::{Action, Archive, Change, ContentPair, EditRecord, Expected, KeptPair},
    files::{Files, Sight},
};
use windlass_files::{ConfinedFiles, ReadTracker};

const ROUNDS: usize = 40;

/// Keeps nothing, but has a directory for notes.
#[derive(Debug)]
struct NullArchive(PathBuf);

impl Archive for NullArchive {
    fn keep(&self, contents: &[ContentPair]) -> io::Result<Vec<KeptPair>> {
        Ok(black_box(contents).iter().map(|_| KeptPair::default()).collect())
    }

    fn log(&self, edit: &EditRecord<'_>) -> io::Result<()> {
        black_box(edit);
        Ok(())
    }

    fn is_logged(&self, _log: &Path, _transaction: &str) -> io::Result<bool> {
        Ok(true)
    }

    fn log_path(&self) -> PathBuf {
        self.0.join("log")
    }

    fn see(&self, _sight: &Sight) -> io::Result<()> {
        Ok(())
    }

    fn seen(&self) -> io::Result<Vec<Sight>> {
        Ok(Vec::new())
    }

    fn notes(&self) -> &Path {
        &self.0
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let work = directory.path().canonicalize()?;
    let lines = |marked: usize| -> Vec<u8> {
        let line = |at| if at == marked { "x".repeat(49) } else { format!("{at:049}") };
        (0..100_000).flat_map(|at| (line(at) + "\n").into_bytes()).collect()
    };
    let (one, other): (Arc<[u8]>, Arc<[u8]>) = (lines(1).into(), lines(2).into());
    fs::write(work.join("plain"), &one)?;
    fs::write(work.join("ours"), &one)?;
    let archive: Arc<dyn Archive> = Arc::new(NullArchive(work.join("notes")));
    let tracker = Arc::new(ReadTracker::new(Some(Arc::clone(&archive))));
    let files = ConfinedFiles::new(work.clone(), None, Some(archive), tracker);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (mut plain, mut ours) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let (old, new) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let begun = Instant::now();
        let mut file = File::create(work.join("beside"))?;
        file.write_all(new)?;
        file.sync_data()?;
        fs::rename(work.join("beside"), work.join("plain"))?;
        plain.push(begun.elapsed());
        let change = Change {
            path: "ours".into(),
            expected: Expected::Content(Arc::clone(old)),
            action: Action::Write(new.to_vec()),
        };
        let begun = Instant::now();
        runtime.block_on(files.commit(&"bench".into(), vec![change]))?;
        ours.push(begun.elapsed());
    }
    println!("write, flush and rename: {:?}", median(plain));
    println!("Files::commit:           {:?}", median(ours));
    Ok(())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}
