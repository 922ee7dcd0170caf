//! The cost of a search through 100 000 files, compared with the program `rg` if it is installed.
//!
//! Run with `cargo bench -p windlass-files --bench search`. Both take turns, so that they run under
//! the same load. Prints medians and best times; nothing is asserted.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement, run by hand")]
#![expect(clippy::disallowed_methods, reason = "the files are the benchmark's own")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;
use windlass_contract::files::{Files, Search};
use windlass_files::{ConfinedFiles, FileRules, ReadTracker};

const DIRECTORIES: usize = 1000;
const FILES: usize = 100;
const ROUNDS: usize = 15;

fn main() {
    let place = tempfile::tempdir_in("/var/tmp").unwrap();
    fill(place.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rules: Arc<dyn FileRules> = Arc::new(HiddenHome(PathBuf::from("/root")));
    for pattern in ["needle_[0-9]+", "no such thing"] {
        let ours = || {
            let tracker = Arc::new(ReadTracker::new(None));
            let files = ConfinedFiles::new(place.path().to_owned(), Some(Arc::clone(&rules)), None, tracker);
            let search =
                Search { pattern: pattern.into(), path: ".".into(), limit: 2000, ..Search::default() };
            runtime.block_on(files.search(&search, &CancellationToken::new())).unwrap().files.len()
        };
        let (mut times, mut sorted, mut unsorted) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            sorted.extend(rg(&["--sortr=modified"], pattern, place.path()));
            unsorted.extend(rg(&[], pattern, place.path()));
            let begun = Instant::now();
            let found = ours();
            times.push(begun.elapsed());
            assert!(found == if pattern.starts_with("needle") { 1000 } else { 0 });
        }
        println!("`{pattern}`, {} files", DIRECTORIES * FILES);
        show("Files::search", &mut times);
        show("rg --files-with-matches --sortr=modified", &mut sorted);
        show("rg --files-with-matches", &mut unsorted);
    }
}

/// Rules that hide one directory and allow no writes.
#[derive(Debug)]
struct HiddenHome(PathBuf);

impl FileRules for HiddenHome {
    fn writable(&self) -> &[PathBuf] {
        &[]
    }

    fn hidden(&self, _roots: &[PathBuf]) -> Vec<PathBuf> {
        vec![self.0.clone()]
    }

    fn shown(&self, _hidden: &[PathBuf]) -> Vec<PathBuf> {
        Vec::new()
    }

    fn private_tmp(&self) -> Option<PathBuf> {
        None
    }

    fn is_protected(&self, _real: &Path, _roots: &[PathBuf]) -> Result<bool, String> {
        Ok(true)
    }
}

/// Measures the program `rg`, if it is installed.
fn rg(options: &[&str], pattern: &str, place: &Path) -> Option<Duration> {
    let begun = Instant::now();
    let mut rg = Command::new("rg");
    rg.args(["--files-with-matches", "--no-messages"]).args(options);
    rg.args(["--regexp", pattern, "--"])
        .arg(place)
        .stdout(Stdio::null())
        .status()
        .ok()
        .map(|_| begun.elapsed())
}

fn show(name: &str, times: &mut [Duration]) {
    times.sort();
    match &*times {
        [] => println!("  {name}: not installed"),
        [best, ..] => println!("  {name}: median {:?}, best {best:?}", times[times.len() / 2]),
    }
}

/// Writes files of about a kilobyte, one in a hundred with a match.
fn fill(place: &Path) {
    fs::create_dir(place.join(".git")).unwrap();
    fs::write(place.join(".gitignore"), "*.log\n").unwrap();
    for directory in 0..DIRECTORIES {
        let path = place.join(format!("group-{}/part-{directory}", directory % 32));
        fs::create_dir_all(&path).unwrap();
        for file in 0..FILES {
            let mut text = format!("// file {file} of {directory}\n");
            for line in 0..24 {
                text.push_str(&format!("let value_{line} = compute({directory}, {file} + {line});\n"));
            }
            if file == 7 {
                text.push_str(&format!("fn needle_{directory}() {{}}\n"));
            }
            fs::write(path.join(format!("file-{file}.rs")), text).unwrap();
        }
    }
}
