//! What runners write into files about the tests they ran, where what they print leaves out why a test failed, or that any ran.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use windlass_contract::{
    Cx,
    files::{FileKind, Stamp},
    host::Exit,
    insight::TestReport,
};

use super::{project::names, runner::Runner};

/// How far below the project its parts may be, how many directories are looked at for them, how many files are read, and how
/// much of each: tests come before what they printed.
const LEVELS: usize = 2;
const DIRECTORIES: usize = 200;
const FILES: usize = 500;
const FILE_BYTES: usize = 2 * 1024 * 1024;
const ALL_BYTES: usize = 16 * 1024 * 1024;

/// The reports of a project, as they were before its tests are run.
pub(super) struct Reports<'a> {
    runner: Runner,
    directory: &'a Path,
    before: BTreeMap<PathBuf, Stamp>,
}

impl<'a> Reports<'a> {
    /// Looks at what there is from earlier.
    pub(super) async fn of(runner: Runner, directory: &'a Path, cx: &Cx) -> Self {
        let mut before = BTreeMap::new();
        for path in files(runner, directory, cx).await {
            if let Ok(file) = cx.host.files().open(&path).await {
                before.insert(path, file.stamp());
            }
        }
        Self { runner, directory, before }
    }

    /// What is in those that were written since.
    pub(super) async fn read(&self, exit: Option<Exit>, cx: &Cx) -> Option<TestReport> {
        // Gradle clears away what no longer holds, and leaves alone what still does.
        let all = self.runner == Runner::Gradle && exit == Some(Exit::Code(0));
        let (mut documents, mut left) = (Vec::new(), ALL_BYTES);
        for path in files(self.runner, self.directory, cx).await {
            let Ok(file) = cx.host.files().open(&path).await else { continue };
            if !all && self.before.get(&path) == Some(&file.stamp()) {
                continue;
            }
            let bytes = file.read_at(0, FILE_BYTES.min(left)).await.unwrap_or_default();
            left -= bytes.len();
            documents.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        windlass_shape::junit(self.runner.name(), &documents)
    }
}

/// The files that hold reports now.
async fn files(runner: Runner, directory: &Path, cx: &Cx) -> Vec<PathBuf> {
    let (build, kinds) = match runner {
        Runner::Maven => ("target", &["surefire-reports"][..]),
        // One directory for each task that runs tests.
        Runner::Gradle => ("build/test-results", &[][..]),
        _ => return Vec::new(),
    };
    let mut found = Vec::new();
    for part in parts(directory, cx).await {
        let build = part.join(build);
        let below = names(&build, cx).await.unwrap_or_default();
        let below = below.into_keys().filter(|name| kinds.is_empty() || kinds.contains(&&**name));
        for reports in below.map(|name| build.join(name)) {
            let inside = names(&reports, cx).await.unwrap_or_default().into_iter();
            let is_report = |(name, kind): &(String, FileKind)| {
                *kind == FileKind::File && name.starts_with("TEST-") && name.strip_suffix(".xml").is_some()
            };
            found.extend(inside.filter(is_report).map(|(name, _)| reports.join(name)));
        }
    }
    found.truncate(FILES);
    found
}

/// The project and the directories below it that may be parts of it.
async fn parts(directory: &Path, cx: &Cx) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut level = 0..1;
    for _ in 0..LEVELS {
        for at in level.clone() {
            let below = names(&found[at], cx).await.unwrap_or_default().into_iter();
            let is_part = |(name, kind): &(String, FileKind)| {
                *kind == FileKind::Directory
                    && !name.starts_with('.')
                    && !matches!(&**name, "build" | "target" | "src" | "node_modules" | "gradle")
            };
            let below: Vec<_> = below.filter(is_part).map(|(name, _)| found[at].join(name)).collect();
            found.extend(below);
        }
        found.truncate(DIRECTORIES);
        level = level.end..found.len();
    }
    found
}
