//! The supported test runners and their commands, with a machine-readable reporter where one
//! exists.

use std::path::Path;

use schemars::JsonSchema;
use serde::Deserialize;

use super::project::TestProject;

/// Runs tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(super) enum TestRunner {
    Cargo,
    Nextest,
    Pytest,
    Unittest,
    Go,
    Jest,
    Vitest,
    Mocha,
    Node,
    Npm,
    Maven,
    Gradle,
    Ctest,
    Make,
}

/// The selected tests.
pub(super) struct TestSelection<'a> {
    /// A file or directory, relative to the project.
    pub(super) target: Option<&'a Path>,
    /// Part of their names.
    pub(super) filter: Option<&'a str>,
    /// Arguments that select only failed tests.
    pub(super) rerun: Option<&'a [String]>,
}

impl TestRunner {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cargo => "cargo",
            Self::Nextest => "nextest",
            Self::Pytest => "pytest",
            Self::Unittest => "unittest",
            Self::Go => "go",
            Self::Jest => "jest",
            Self::Vitest => "vitest",
            Self::Mocha => "mocha",
            Self::Node => "node",
            Self::Npm => "npm",
            Self::Maven => "maven",
            Self::Gradle => "gradle",
            Self::Ctest => "ctest",
            Self::Make => "make",
        }
    }

    /// Returns true if a project declares this runner. Names of test files and general targets are
    /// only hints; then the parent directories are checked too.
    pub(super) fn is_declared(self) -> bool {
        !matches!(self, Self::Unittest | Self::Make)
    }

    /// Returns the command, with the program of the project.
    pub(super) fn command(self, found: &TestProject, wish: &TestSelection<'_>) -> Vec<String> {
        let mut argv: Vec<String> = found.program.iter().map(ToString::to_string).collect();
        argv.extend(self.fixed().iter().map(ToString::to_string));
        if self == Self::Ctest {
            argv.extend(["--test-dir".to_owned(), found.build.clone()]);
        }
        // Prefix it, so that it cannot be taken for an option.
        let target = wish.target.map(|target| match target.display().to_string() {
            option if option.starts_with('-') => format!("./{option}"),
            target => target,
        });
        match (self, wish.rerun) {
            // The names of the failed tests are sufficient.
            (Self::Pytest, Some(rerun)) => argv.extend(rerun.iter().cloned()),
            (_, Some(rerun)) => {
                argv.extend(self.target(target, found));
                argv.extend(rerun.iter().cloned());
                return self.everywhere(argv, wish);
            }
            (_, None) => {
                argv.extend(self.target(target, found));
                argv.extend(wish.filter.iter().flat_map(|filter| self.filtered(filter)));
            }
        }
        self.everywhere(argv, wish)
    }

    /// Returns the fixed arguments after the program.
    fn fixed(self) -> &'static [&'static str] {
        match self {
            Self::Cargo => &["test", "--no-fail-fast"],
            Self::Nextest => &["nextest", "run", "--no-fail-fast"],
            Self::Pytest => &["-m", "pytest", "-q", "--tb=short", "-rfE", "--durations=5"],
            Self::Unittest => &["-m", "unittest", "discover", "-v"],
            Self::Go => &["test", "-json"],
            Self::Jest => &["--json"],
            Self::Vitest => &["run", "--reporter=json"],
            Self::Mocha => &["--reporter", "json-stream"],
            Self::Node => &["--test", "--test-reporter=tap"],
            Self::Npm | Self::Make => &["test"],
            Self::Maven => &["-B", "test"],
            Self::Gradle => &["test", "--console=plain", "--continue"],
            Self::Ctest => &["--output-on-failure"],
        }
    }

    /// Returns the arguments that select a file or directory. Some runners select only by test name
    /// and ignore it.
    fn target(self, target: Option<String>, found: &TestProject) -> Vec<String> {
        let Some(target) = target else {
            // Tests that are not a package are found only from their directory.
            let tests = found.tests.iter().flat_map(|tests| ["-s".to_owned(), tests.clone()]);
            return if self == Self::Unittest { tests.collect() } else { Vec::new() };
        };
        let (directory, file) = target.rsplit_once('/').unwrap_or((".", &target));
        let stem = file.rsplit_once('.').map(|(stem, _)| stem);
        match self {
            Self::Cargo | Self::Nextest => {
                let name = stem.filter(|_| directory == "tests");
                name.iter().flat_map(|name| ["--test".to_owned(), (*name).to_owned()]).collect()
            }
            Self::Unittest if stem.is_some() => ["-s", directory, "-p", file].map(str::to_owned).to_vec(),
            Self::Unittest => vec!["-s".to_owned(), target],
            Self::Pytest | Self::Jest | Self::Vitest | Self::Mocha | Self::Node => vec![target],
            Self::Maven => stem.map(|stem| format!("-Dtest={stem}")).into_iter().collect(),
            Self::Go | Self::Npm | Self::Gradle | Self::Ctest | Self::Make => Vec::new(),
        }
    }

    /// Returns the arguments that select tests by name.
    fn filtered(self, filter: &str) -> Vec<String> {
        let named = |option: &str| vec![option.to_owned(), filter.to_owned()];
        match self {
            Self::Cargo | Self::Nextest => vec![filter.to_owned()],
            Self::Pytest | Self::Unittest => named("-k"),
            Self::Go => named("-run"),
            Self::Jest | Self::Vitest => named("-t"),
            Self::Mocha => named("--grep"),
            Self::Node => named("--test-name-pattern"),
            Self::Npm => named("--"),
            Self::Maven => vec![format!("-Dtest={filter}")],
            Self::Gradle => named("--tests"),
            Self::Ctest => named("-R"),
            Self::Make => Vec::new(),
        }
    }

    /// Appends all packages for Go, which wants them last.
    fn everywhere(self, mut argv: Vec<String>, wish: &TestSelection<'_>) -> Vec<String> {
        if self == Self::Go {
            let directory = wish.target.map(|target| {
                let of_file = target.extension().and(target.parent());
                let directory = of_file.unwrap_or(target).display().to_string();
                if directory.is_empty() { ".".to_owned() } else { format!("./{directory}/...") }
            });
            argv.push(directory.unwrap_or_else(|| "./...".to_owned()));
        }
        argv
    }
}
