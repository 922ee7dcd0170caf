//! `run_tests`: detects how a project's tests are run, runs them, and reports the results.
//!
//! Only the project's files determine the command. So a call inspects the project first, and the
//! resulting command passes the gate like any other.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    AnyTool, BoxFuture, Content, Cx, Effects, Input, Meta, Output, ParsedCall, Ready, ToolError, ToolName,
    ToolSpec,
    effects::CommandLine,
    meta::{Example, Format, ParameterAlias},
    report::ToolReport,
    spec::SpecKind,
    tool::LookFirst,
};
use windlass_schema::{Schema, SchemaError};
use windlass_shape::{Terminal, tests_in};

use crate::command;
use junit_files::JunitReports;
use runner::{TestRunner, TestSelection};

mod junit_files;
mod project;
mod runner;

const NAME: &str = "run_tests";

/// Default time limit; tests take longer than most commands.
const DEFAULT_TIME_MS: u64 = 300_000;

/// Run the project's tests; returns totals, every failure with its message and place, and the
/// slowest tests.
///
/// The runner is found by the project's files (Cargo.toml, pyproject.toml, go.mod, package.json,
/// pom.xml, build.gradle, CMakeLists.txt, Makefile). Use it rather than a shell. Do not use it for
/// anything but tests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct RunTestsArgs {
    /// The directory or test file. Default: the workspace.
    path: Option<PathBuf>,
    /// Only tests whose name fits, in the runner's own way; with `only_failed`, those whose name
    /// has it.
    filter: Option<String>,
    /// `cargo`, `nextest`, `pytest`, `unittest`, `go`, `jest`, `vitest`, `mocha`, `node`, `npm`,
    /// `maven`, `gradle`, `ctest` or `make`, if the one that is found is not meant.
    runner: Option<TestRunner>,
    /// Only what failed when they were last run. Default: false.
    only_failed: Option<bool>,
    /// Default: 300000.
    timeout_ms: Option<u64>,
}

/// Makes the tool.
pub(crate) fn run_tests() -> Arc<dyn AnyTool> {
    Arc::new(RunTests::default())
}

/// Runs tests, and remembers the last failures of each project.
#[derive(Default)]
struct RunTests {
    failed: Mutex<HashMap<(PathBuf, TestRunner), Vec<String>>>,
}

impl AnyTool for RunTests {
    fn name(&self) -> ToolName {
        NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let (parameters, description) = Schema::of::<RunTestsArgs>()?;
        Ok(ToolSpec { name: self.name(), description, kind: SpecKind::Function { parameters } })
    }

    fn meta(&self) -> Meta {
        let examples = vec![
            Example { request: "run the tests", input: "{}" },
            Example { request: "run the tests of one file", input: r#"{"path":"tests/test_till.py"}"# },
            Example { request: "are the failures mended", input: r#"{"only_failed":true}"# },
        ];
        let constraints = vec!["the runner must be installed".to_owned()];
        let returns = "how many tests passed, failed and were skipped; why and where each failed".to_owned();
        let requests = [
            "do all tests pass",
            "run the unit tests",
            "test this project",
            "which tests fail",
            "check that nothing is broken by running the test suite",
            "run the failing tests again",
            "run test_login only",
            "运行测试",
            "跑测试",
            "哪些测试失败了",
            "执行单元测试",
            "重新运行失败的测试",
            "测试这个项目",
        ]
        .map(str::to_owned)
        .into();
        let mut parameter_aliases = ParameterAlias::of("timeout_ms", &["timeout"]);
        parameter_aliases
            .extend(ParameterAlias::of("path", &["file_path", "directory", "dir", "working_dir"]));
        parameter_aliases.extend(ParameterAlias::of("filter", &["test_name", "pattern"]));
        Meta { examples, requests, constraints, returns, parameter_aliases, ..command::meta(Format::Tests) }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<ParsedCall, ToolError> {
        let args: RunTestsArgs = input.parse(&self.name())?;
        if let Some(filter) = args.filter.as_ref().filter(|filter| filter.starts_with('-')) {
            return Err(ToolError::bad_input(format!(
                "`filter` is a part of a test's name, not an option: `{filter}`"
            )));
        }
        Ok(ParsedCall::LooksFirst(Box::new(TestProjectLook { tool: self, args })))
    }
}

/// A call whose command is not determined yet.
struct TestProjectLook {
    tool: Arc<RunTests>,
    args: RunTestsArgs,
}

impl LookFirst for TestProjectLook {
    fn effects(&self) -> Effects {
        let read = Effects::read(self.args.path.clone().unwrap_or_else(|| ".".into()));
        Effects { time_limit_ms: command::time_limit(self.args.timeout_ms), ..read }
    }

    fn adjustments(&self) -> Vec<String> {
        command::time_adjustments(self.args.timeout_ms)
    }

    fn look<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Box<dyn Ready>, ToolError>> {
        Box::pin(async { Ok(Box::new(self.planned(cx).await?) as Box<dyn Ready>) })
    }
}

impl TestProjectLook {
    async fn planned(&self, cx: &Cx) -> Result<PlannedTestRun, ToolError> {
        let RunTestsArgs { path, filter, runner, only_failed, timeout_ms } = &self.args;
        let path = path.as_deref().unwrap_or(Path::new("."));
        let found = project::find(path, *runner, cx).await?;
        let key = (found.directory.clone(), found.runner);
        let rerun = match only_failed {
            Some(true) => Some(self.tool.rerun(&key, filter.as_deref().unwrap_or_default())?),
            Some(false) | None => None,
        };
        let wish = TestSelection {
            target: found.target.as_deref(),
            filter: filter.as_deref(),
            rerun: rerun.as_deref(),
        };
        let argv = found.runner.command(&found, &wish);
        let others = if found.others.is_empty() {
            String::new()
        } else {
            format!("; there is also {}: set `runner` for another", found.others.join(", "))
        };
        let explanation = format!("chosen by {}{others}", found.marker);
        let directory = found.directory;
        Ok(PlannedTestRun {
            tool: Arc::clone(&self.tool),
            runner: found.runner,
            command: CommandLine { argv, cwd: (directory != Path::new(".")).then(|| directory.clone()) },
            directory,
            explanation,
            time_limit_ms: command::time_limit(*timeout_ms).unwrap_or(DEFAULT_TIME_MS),
        })
    }
}

impl RunTests {
    /// Returns the arguments that select only failed tests whose name contains the filter.
    fn rerun(&self, key: &(PathBuf, TestRunner), filter: &str) -> Result<Vec<String>, ToolError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(failed) = failed.get(key) else {
            return Err(ToolError::bad_input(
                "the tests have not been run yet: leave out `only_failed` first",
            ));
        };
        let mut wanted = failed.iter().filter(|name| name.contains(filter)).map(String::as_str).peekable();
        if wanted.peek().is_none() && !failed.is_empty() {
            return Err(ToolError::bad_input(format!(
                "none of the tests that failed has `{filter}` in its name: {}",
                failed.join(", ")
            )));
        }
        let arguments = windlass_shape::rerun(key.1.name(), wanted);
        if arguments.is_empty() {
            return Err(ToolError::bad_input(
                "nothing failed when the tests were last run, or this runner cannot run a part of them: leave out `only_failed`",
            ));
        }
        Ok(arguments)
    }
}

/// A call whose command is determined.
struct PlannedTestRun {
    tool: Arc<RunTests>,
    runner: TestRunner,
    directory: PathBuf,
    command: CommandLine,
    /// Explains how the runner was detected.
    explanation: String,
    time_limit_ms: u64,
}

impl Ready for PlannedTestRun {
    fn effects(&self) -> Effects {
        Effects::command(self.command.clone())
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async {
            let CommandLine { argv, cwd } = &self.command;
            let reports = JunitReports::snapshot(self.runner, &self.directory, cx).await;
            let output =
                command::run(argv, cwd.as_deref(), Some(self.time_limit_ms), cx).await.map_err(|error| {
                    let message = format!("{} ({} {})", error.message, self.runner.name(), self.explanation);
                    ToolError { message, ..error }
                })?;
            let printed = Content::join(&output.content);
            let written = reports.read(output.facts.exit(), cx).await;
            if let Some(report) = tests_in(&Terminal::reduce(&printed), written.clone()) {
                // A runner may start another one, whose test names mean nothing to it.
                let ours = report.runner == self.runner.name();
                let names = report.failures.into_iter().filter(|_| ours).map(|failure| failure.name);
                let mut failed = self.tool.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.insert((self.directory.clone(), self.runner), names.collect());
            }
            let explanation = format!("$ {}\n({})", self.command.display(), self.explanation);
            let content = vec![Content::Text(explanation), Content::Text(printed)];
            let data = written.map(|written| ToolReport::Tests(Box::new(written)));
            Ok(Output { content, data, ..output })
        })
    }
}

#[cfg(test)]
mod tests;
