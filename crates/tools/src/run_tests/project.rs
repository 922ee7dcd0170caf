//! Detects the test runner of a project from its files. File names suffice mostly; contents are
//! read only if they decide.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;
use windlass_contract::{
    Cx, ToolError,
    files::{FileError, FileKind, Ignored, Listing},
};

use super::runner::TestRunner;
use crate::file_error;

/// Maximum bytes read of a file, number of names in a directory, and levels up to the project root.
const MAX_READ_BYTES: usize = 256 * 1024;
const MAX_NAMES: usize = 2000;
const MAX_LEVELS: usize = 12;

/// A project and its test runner.
#[derive(Debug)]
pub(super) struct TestProject {
    pub(super) runner: TestRunner,
    /// The program and its fixed first arguments.
    pub(super) program: Vec<String>,
    /// Root directory of the project.
    pub(super) directory: PathBuf,
    /// Requested part of the project.
    pub(super) target: Option<PathBuf>,
    /// The file that identified the runner.
    pub(super) marker: String,
    /// Other runners that fit, with the files that identify them.
    pub(super) others: Vec<String>,
    /// Directory of Python tests that are not a package.
    pub(super) tests: Option<String>,
    /// Build directory of CMake.
    pub(super) build: String,
}

/// Searches a directory and its parents for the first one that determines a runner.
pub(super) async fn find(path: &Path, wanted: Option<TestRunner>, cx: &Cx) -> Result<TestProject, ToolError> {
    let path = &plain(path);
    let (mut looked, mut weak) = (false, None);
    for directory in path.ancestors().take(MAX_LEVELS) {
        let directory = match directory.as_os_str().is_empty() {
            // The parents of `..` are not in the workspace.
            true if path.starts_with("..") => break,
            true => Path::new("."),
            false => directory,
        };
        let names = match names(directory, cx).await {
            Ok(names) => names,
            // The project of a file is that of its directory.
            Err(FileError::NotADirectory { .. }) => continue,
            Err(_) if looked => break,
            Err(error) => {
                return Err(file_error::failed(&format!("cannot look at `{}`", directory.display()), error));
            }
        };
        looked = true;
        let is_root = names.contains_key(".git");
        let candidates = ProjectDirectory { directory, names, cx }.candidates().await;
        match chosen(candidates, wanted, path, directory) {
            Some(found) if wanted.is_some() || found.runner.is_declared() => return Ok(found),
            found => weak = weak.or(found),
        }
        if is_root {
            break;
        }
    }
    if let Some(found) = weak {
        return Ok(found);
    }
    let what = wanted.map_or_else(
        || "nothing that says how its tests are run".to_owned(),
        |wanted| format!("nothing that asks for {}", wanted.name()),
    );
    Err(ToolError::failed(format!(
        "found {what} in `{}` or above; set `path` to the project, or run its tests in a shell",
        if path.as_os_str().is_empty() { Path::new(".") } else { path }.display()
    )))
}

/// Returns the first candidate or the requested one, with the others as alternatives.
fn chosen(
    mut candidates: Vec<TestProject>,
    wanted: Option<TestRunner>,
    path: &Path,
    directory: &Path,
) -> Option<TestProject> {
    let at =
        candidates.iter().position(|candidate| wanted.is_none_or(|wanted| candidate.runner == wanted))?;
    let first = candidates.remove(at);
    let others =
        candidates.iter().map(|other| format!("{} ({})", other.runner.name(), other.marker)).collect();
    let target = path.strip_prefix(directory).unwrap_or(path);
    let target = (!target.as_os_str().is_empty()).then(|| target.to_owned());
    Some(TestProject { others, target, directory: directory.to_owned(), ..first })
}

/// Removes `.` from a path, so that a project has one name.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// Returns the entries of a directory.
pub(super) async fn names(directory: &Path, cx: &Cx) -> Result<BTreeMap<String, FileKind>, FileError> {
    let listing = Listing { path: directory.to_owned(), depth: 1, ignored: Ignored::Shown, limit: MAX_NAMES };
    let listed = cx.host.files().list(&listing, &cx.cancel).await?;
    Ok(listed.entries.into_iter().map(|entry| (entry.path.display().to_string(), entry.kind)).collect())
}

/// A directory under inspection.
struct ProjectDirectory<'a> {
    directory: &'a Path,
    names: BTreeMap<String, FileKind>,
    cx: &'a Cx,
}

impl ProjectDirectory<'_> {
    /// Returns all candidates, best first.
    async fn candidates(&self) -> Vec<TestProject> {
        let mut found = Vec::new();
        if self.has("Cargo.toml") {
            let configured = self.inside(".config").await.contains_key("nextest.toml");
            let (runner, marker) = if configured {
                (TestRunner::Nextest, ".config/nextest.toml")
            } else {
                (TestRunner::Cargo, "Cargo.toml")
            };
            found.push(candidate(runner, &["cargo"], marker));
        }
        if self.has("go.mod") {
            found.push(candidate(TestRunner::Go, &["go"], "go.mod"));
        }
        found.extend(self.python().await);
        found.extend(self.node().await);
        if self.has("pom.xml") {
            found.push(candidate(TestRunner::Maven, &[self.own("mvnw", "mvn")], "pom.xml"));
        }
        for marker in ["build.gradle", "build.gradle.kts"] {
            if self.has(marker) {
                found.push(candidate(TestRunner::Gradle, &[self.own("gradlew", "gradle")], marker));
            }
        }
        if self.has("CMakeLists.txt") || self.has("CTestTestfile.cmake") {
            found.extend(self.cmake().await);
        }
        for marker in ["Makefile", "makefile", "GNUmakefile"] {
            let is_target =
                |line: &str| line.strip_prefix("test").is_some_and(|rest| rest.trim_start().starts_with(':'));
            if self.read(marker).await.lines().any(is_target) {
                found.push(candidate(TestRunner::Make, &["make"], marker));
            }
        }
        found
    }

    async fn python(&self) -> Option<TestProject> {
        let tests =
            ["tests", "test"].into_iter().find(|name| self.names.get(*name) == Some(&FileKind::Directory));
        let inside = match tests {
            Some(tests) => self.inside(tests).await,
            None => BTreeMap::new(),
        };
        let python = self.interpreter().await;
        let marker = self.asks_for_pytest().await;
        let marker = marker.or_else(|| inside.contains_key("conftest.py").then(|| "conftest.py".to_owned()));
        if let Some(marker) = marker {
            return Some(candidate(TestRunner::Pytest, &[&python], &marker));
        }
        let is_test = |name: &String| name.starts_with("test") && name.strip_suffix(".py").is_some();
        let place = tests.filter(|_| inside.keys().any(is_test));
        let marker = match place {
            Some(place) => format!("{place}/"),
            None => self.names.keys().find(|name| is_test(name))?.clone(),
        };
        let is_package = inside.contains_key("__init__.py");
        let tests = place.filter(|_| !is_package).map(str::to_owned);
        Some(TestProject { tests, ..candidate(TestRunner::Unittest, &[&python], &marker) })
    }

    /// Returns the file that shows that the tests use pytest.
    async fn asks_for_pytest(&self) -> Option<String> {
        for marker in ["pytest.ini", "conftest.py"] {
            if self.has(marker) {
                return Some(marker.to_owned());
            }
        }
        for marker in [
            "pyproject.toml",
            "setup.cfg",
            "tox.ini",
            "setup.py",
            "requirements.txt",
            "requirements-dev.txt",
            "requirements_dev.txt",
        ] {
            if self.has(marker) && self.read(marker).await.contains("pytest") {
                return Some(marker.to_owned());
            }
        }
        None
    }

    /// Returns the Python interpreter of the project, if it has one.
    async fn interpreter(&self) -> String {
        for directory in [".venv", "venv"] {
            if self.has(directory) && self.inside(&format!("{directory}/bin")).await.contains_key("python") {
                return format!("./{directory}/bin/python");
            }
        }
        "python3".to_owned()
    }

    async fn node(&self) -> Option<TestProject> {
        let package: PackageJson = serde_json::from_str(&self.read("package.json").await).ok()?;
        let script = package.scripts.get("test").cloned().unwrap_or_default();
        let known =
            [(TestRunner::Vitest, "vitest"), (TestRunner::Jest, "jest"), (TestRunner::Mocha, "mocha")];
        let named = known
            .iter()
            .find(|(_, name)| script.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == *name));
        let needed = || {
            known.iter().find(|(_, name)| {
                package.dependencies.contains_key(*name) || package.dev_dependencies.contains_key(*name)
            })
        };
        let plain = script.is_empty() || script.contains("no test specified");
        let (runner, name) = match named.or_else(|| needed().filter(|_| plain)) {
            Some(found) => *found,
            None if script.contains("node --test") => {
                return Some(candidate(TestRunner::Node, &["node"], "package.json"));
            }
            None if plain => return None,
            None => return Some(candidate(TestRunner::Npm, &["npm"], "package.json")),
        };
        if self.inside("node_modules/.bin").await.contains_key(name) {
            return Some(candidate(runner, &[&format!("./node_modules/.bin/{name}")], "package.json"));
        }
        Some(candidate(runner, &["npx", "--no-install", name], "package.json"))
    }

    async fn cmake(&self) -> Option<TestProject> {
        if self.has("CTestTestfile.cmake") {
            return Some(TestProject {
                build: ".".to_owned(),
                ..candidate(TestRunner::Ctest, &["ctest"], "CTestTestfile.cmake")
            });
        }
        for build in ["build", "out", "_build", "cmake-build-debug", "cmake-build-release"] {
            if self.has(build) && self.inside(build).await.contains_key("CTestTestfile.cmake") {
                let marker = format!("{build}/CTestTestfile.cmake");
                return Some(TestProject {
                    build: build.to_owned(),
                    ..candidate(TestRunner::Ctest, &["ctest"], &marker)
                });
            }
        }
        None
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Returns the program of the project if it exists, otherwise that of the system.
    fn own<'a>(&self, own: &'a str, other: &'a str) -> &'a str {
        match (self.has(own), own) {
            (true, "mvnw") => "./mvnw",
            (true, _) => "./gradlew",
            (false, _) => other,
        }
    }

    /// Returns the entries of a subdirectory, or none on error.
    async fn inside(&self, directory: &str) -> BTreeMap<String, FileKind> {
        names(&self.directory.join(directory), self.cx).await.unwrap_or_default()
    }

    /// Returns the beginning of a file as text, or nothing on error.
    async fn read(&self, name: &str) -> String {
        if !self.has(name) {
            return String::new();
        }
        let Ok(file) = self.cx.host.files().open(&self.directory.join(name)).await else {
            return String::new();
        };
        let bytes = file.read_at(0, MAX_READ_BYTES).await.unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The parsed fields of a `package.json`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PackageJson {
    scripts: BTreeMap<String, String>,
    dependencies: BTreeMap<String, serde_json::Value>,
    dev_dependencies: BTreeMap<String, serde_json::Value>,
}

fn candidate(runner: TestRunner, program: &[&str], marker: &str) -> TestProject {
    TestProject {
        runner,
        program: program.iter().map(ToString::to_string).collect(),
        directory: PathBuf::new(),
        target: None,
        marker: marker.to_owned(),
        others: Vec::new(),
        tests: None,
        build: String::new(),
    }
}
