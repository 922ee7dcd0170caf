//! Reads the JUnit files that runners write, for runners whose output lacks failure messages or
//! test counts.

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

use super::{project::names, runner::TestRunner};

/// Limits: levels of subprojects, directories searched, files read, bytes per file, and bytes in
/// total. Tests come before their output in a file, so a cut loses little.
const MAX_LEVELS: usize = 2;
const MAX_DIRECTORIES: usize = 200;
const MAX_FILES: usize = 500;
const MAX_FILE_BYTES: usize = 2 * 1024 * 1024;
const MAX_TOTAL_BYTES: usize = 16 * 1024 * 1024;

/// The JUnit files of a project before its tests run.
pub(super) struct JunitReports<'a> {
    runner: TestRunner,
    directory: &'a Path,
    before: BTreeMap<PathBuf, Stamp>,
}

impl<'a> JunitReports<'a> {
    /// Records the files that exist before the run.
    pub(super) async fn snapshot(runner: TestRunner, directory: &'a Path, cx: &Cx) -> Self {
        let mut before = BTreeMap::new();
        for path in files(runner, directory, cx).await {
            if let Ok(file) = cx.host.files().open(&path).await {
                before.insert(path, file.stamp());
            }
        }
        Self { runner, directory, before }
    }

    /// Reads the files written since.
    pub(super) async fn read(&self, exit: Option<Exit>, cx: &Cx) -> Option<TestReport> {
        // Gradle removes outdated reports and keeps valid ones.
        let all = self.runner == TestRunner::Gradle && exit == Some(Exit::Code(0));
        let (mut documents, mut left) = (Vec::new(), MAX_TOTAL_BYTES);
        for path in files(self.runner, self.directory, cx).await {
            let Ok(file) = cx.host.files().open(&path).await else { continue };
            if !all && self.before.get(&path) == Some(&file.stamp()) {
                continue;
            }
            let bytes = file.read_at(0, MAX_FILE_BYTES.min(left)).await.unwrap_or_default();
            left -= bytes.len();
            documents.push(String::from_utf8_lossy(&bytes).into_owned());
        }
        windlass_shape::junit(self.runner.name(), &documents)
    }
}

/// Returns the current report files.
async fn files(runner: TestRunner, directory: &Path, cx: &Cx) -> Vec<PathBuf> {
    let (build, kinds) = match runner {
        TestRunner::Maven => ("target", &["surefire-reports"][..]),
        // One directory per test task.
        TestRunner::Gradle => ("build/test-results", &[][..]),
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
    found.truncate(MAX_FILES);
    found
}

/// Returns the project and the directories below it that may be subprojects.
async fn parts(directory: &Path, cx: &Cx) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    let mut level = 0..1;
    for _ in 0..MAX_LEVELS {
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
        found.truncate(MAX_DIRECTORIES);
        level = level.end..found.len();
    }
    found
}
