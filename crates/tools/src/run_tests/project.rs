//! Which runner a project's files ask for. Names of files tell most; what is in them is read only where it decides.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
};

use serde::Deserialize;
use windlass_contract::{
    Cx, ToolError,
    files::{FileError, FileKind, Ignored, Listing},
};

use super::runner::Runner;
use crate::file_error;

/// How much of a file is read, how many names, and how far up a project may begin.
const READ_BYTES: usize = 256 * 1024;
const NAMES: usize = 2000;
const LEVELS: usize = 12;

/// How a project's tests are run.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) runner: Runner,
    /// The program, and what must stand right behind it.
    pub(super) program: Vec<String>,
    /// Where the project begins.
    pub(super) directory: PathBuf,
    /// What of it is wanted.
    pub(super) target: Option<PathBuf>,
    /// The file that told.
    pub(super) marker: String,
    /// What else would fit, with the files that tell.
    pub(super) others: Vec<String>,
    /// Where Python's tests are, if they are no package.
    pub(super) tests: Option<String>,
    /// Where CMake has built.
    pub(super) build: String,
}

/// Looks in a directory and those above it for the first that says how its tests are run.
pub(super) async fn find(path: &Path, wanted: Option<Runner>, cx: &Cx) -> Result<Found, ToolError> {
    let path = &plain(path);
    let (mut looked, mut weak) = (false, None);
    for directory in path.ancestors().take(LEVELS) {
        let directory = match directory.as_os_str().is_empty() {
            // What is above `..` is not the workspace.
            true if path.starts_with("..") => break,
            true => Path::new("."),
            false => directory,
        };
        let names = match names(directory, cx).await {
            Ok(names) => names,
            // A file's project is where the file is.
            Err(FileError::NotADirectory { .. }) => continue,
            Err(_) if looked => break,
            Err(error) => {
                return Err(file_error::failed(&format!("cannot look at `{}`", directory.display()), error));
            }
        };
        looked = true;
        let is_root = names.contains_key(".git");
        let candidates = Survey { directory, names, cx }.candidates().await;
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

/// The first that fits, or the one that is wanted; what else there is goes with it.
fn chosen(
    mut candidates: Vec<Found>,
    wanted: Option<Runner>,
    path: &Path,
    directory: &Path,
) -> Option<Found> {
    let at =
        candidates.iter().position(|candidate| wanted.is_none_or(|wanted| candidate.runner == wanted))?;
    let first = candidates.remove(at);
    let others =
        candidates.iter().map(|other| format!("{} ({})", other.runner.name(), other.marker)).collect();
    let target = path.strip_prefix(directory).unwrap_or(path);
    let target = (!target.as_os_str().is_empty()).then(|| target.to_owned());
    Some(Found { others, target, directory: directory.to_owned(), ..first })
}

/// The same path without `.`, so that a project has one name.
fn plain(path: &Path) -> PathBuf {
    path.components().filter(|part| *part != Component::CurDir).collect()
}

/// What is in a directory.
pub(super) async fn names(directory: &Path, cx: &Cx) -> Result<BTreeMap<String, FileKind>, FileError> {
    let listing = Listing { path: directory.to_owned(), depth: 1, ignored: Ignored::Shown, limit: NAMES };
    let listed = cx.host.files().list(&listing, &cx.cancel).await?;
    Ok(listed.entries.into_iter().map(|entry| (entry.path.display().to_string(), entry.kind)).collect())
}

/// A directory that is looked at.
struct Survey<'a> {
    directory: &'a Path,
    names: BTreeMap<String, FileKind>,
    cx: &'a Cx,
}

impl Survey<'_> {
    /// All that would fit, what fits best first.
    async fn candidates(&self) -> Vec<Found> {
        let mut found = Vec::new();
        if self.has("Cargo.toml") {
            let configured = self.inside(".config").await.contains_key("nextest.toml");
            let (runner, marker) = if configured {
                (Runner::Nextest, ".config/nextest.toml")
            } else {
                (Runner::Cargo, "Cargo.toml")
            };
            found.push(candidate(runner, &["cargo"], marker));
        }
        if self.has("go.mod") {
            found.push(candidate(Runner::Go, &["go"], "go.mod"));
        }
        found.extend(self.python().await);
        found.extend(self.node().await);
        if self.has("pom.xml") {
            found.push(candidate(Runner::Maven, &[self.own("mvnw", "mvn")], "pom.xml"));
        }
        for marker in ["build.gradle", "build.gradle.kts"] {
            if self.has(marker) {
                found.push(candidate(Runner::Gradle, &[self.own("gradlew", "gradle")], marker));
            }
        }
        if self.has("CMakeLists.txt") || self.has("CTestTestfile.cmake") {
            found.extend(self.cmake().await);
        }
        for marker in ["Makefile", "makefile", "GNUmakefile"] {
            let is_target =
                |line: &str| line.strip_prefix("test").is_some_and(|rest| rest.trim_start().starts_with(':'));
            if self.read(marker).await.lines().any(is_target) {
                found.push(candidate(Runner::Make, &["make"], marker));
            }
        }
        found
    }

    async fn python(&self) -> Option<Found> {
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
            return Some(candidate(Runner::Pytest, &[&python], &marker));
        }
        let is_test = |name: &String| name.starts_with("test") && name.strip_suffix(".py").is_some();
        let place = tests.filter(|_| inside.keys().any(is_test));
        let marker = match place {
            Some(place) => format!("{place}/"),
            None => self.names.keys().find(|name| is_test(name))?.clone(),
        };
        let is_package = inside.contains_key("__init__.py");
        let tests = place.filter(|_| !is_package).map(str::to_owned);
        Some(Found { tests, ..candidate(Runner::Unittest, &[&python], &marker) })
    }

    /// The file that says that tests are written for pytest.
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

    /// The project's own Python, if it has one.
    async fn interpreter(&self) -> String {
        for directory in [".venv", "venv"] {
            if self.has(directory) && self.inside(&format!("{directory}/bin")).await.contains_key("python") {
                return format!("./{directory}/bin/python");
            }
        }
        "python3".to_owned()
    }

    async fn node(&self) -> Option<Found> {
        let package: Package = serde_json::from_str(&self.read("package.json").await).ok()?;
        let script = package.scripts.get("test").cloned().unwrap_or_default();
        let known = [(Runner::Vitest, "vitest"), (Runner::Jest, "jest"), (Runner::Mocha, "mocha")];
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
                return Some(candidate(Runner::Node, &["node"], "package.json"));
            }
            None if plain => return None,
            None => return Some(candidate(Runner::Npm, &["npm"], "package.json")),
        };
        if self.inside("node_modules/.bin").await.contains_key(name) {
            return Some(candidate(runner, &[&format!("./node_modules/.bin/{name}")], "package.json"));
        }
        Some(candidate(runner, &["npx", "--no-install", name], "package.json"))
    }

    async fn cmake(&self) -> Option<Found> {
        if self.has("CTestTestfile.cmake") {
            return Some(Found {
                build: ".".to_owned(),
                ..candidate(Runner::Ctest, &["ctest"], "CTestTestfile.cmake")
            });
        }
        for build in ["build", "out", "_build", "cmake-build-debug", "cmake-build-release"] {
            if self.has(build) && self.inside(build).await.contains_key("CTestTestfile.cmake") {
                let marker = format!("{build}/CTestTestfile.cmake");
                return Some(Found {
                    build: build.to_owned(),
                    ..candidate(Runner::Ctest, &["ctest"], &marker)
                });
            }
        }
        None
    }

    fn has(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// The program that the project brings along, or the one of the system.
    fn own<'a>(&self, own: &'a str, other: &'a str) -> &'a str {
        match (self.has(own), own) {
            (true, "mvnw") => "./mvnw",
            (true, _) => "./gradlew",
            (false, _) => other,
        }
    }

    /// What is in a directory below; nothing, if it cannot be told.
    async fn inside(&self, directory: &str) -> BTreeMap<String, FileKind> {
        names(&self.directory.join(directory), self.cx).await.unwrap_or_default()
    }

    /// The beginning of a file as text; nothing, if it cannot be read.
    async fn read(&self, name: &str) -> String {
        if !self.has(name) {
            return String::new();
        }
        let Ok(file) = self.cx.host.files().open(&self.directory.join(name)).await else {
            return String::new();
        };
        let bytes = file.read_at(0, READ_BYTES).await.unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// What is read of a `package.json`.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Package {
    scripts: BTreeMap<String, String>,
    dependencies: BTreeMap<String, serde_json::Value>,
    dev_dependencies: BTreeMap<String, serde_json::Value>,
}

fn candidate(runner: Runner, program: &[&str], marker: &str) -> Found {
    Found {
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
