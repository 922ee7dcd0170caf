//! `run_tests`: finds out how a project's tests are run, runs them, and reports what became of them.
//!
//! Which command that is, only the project's files can tell. So a call looks first, and what it turns into passes the
//! gate like any other command.

use std::{
    collections::HashMap,
    num::NonZeroU64,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    AnyTool, BoxFuture, CommandLine, Content, Cx, Effects, Example, Format, Input, Look, Meta, Output, Ready,
    Schema, SchemaError, SpecKind, ToolError, ToolName, ToolSpec,
};
use windlass_shape::{Terminal, tests_in};

use crate::command;
use runner::{Runner, Wish};

mod project;
mod runner;

const NAME: &str = "run_tests";

/// Tests take longer than most commands.
const DEFAULT_TIME_MS: u64 = 300_000;

/// Run the project's tests; returns totals, every failure with its message and place, and the slowest tests.
///
/// The runner is found by the project's files (Cargo.toml, pyproject.toml, go.mod, package.json, pom.xml, build.gradle,
/// CMakeLists.txt, Makefile). Use it rather than a shell. Do not use it for anything but tests.
#[derive(Debug, Default, Deserialize, JsonSchema)]
struct Args {
    /// The directory or test file. Default: the workspace.
    path: Option<PathBuf>,
    /// Only tests whose name fits, in the runner's own way.
    filter: Option<String>,
    /// `cargo`, `nextest`, `pytest`, `unittest`, `go`, `jest`, `vitest`, `mocha`, `node`, `npm`, `maven`, `gradle`, `ctest`
    /// or `make`, if the one that is found is not meant.
    runner: Option<Runner>,
    /// Only what failed when they were last run. Default: false.
    only_failed: Option<bool>,
    /// Default: 300000.
    #[serde(default, deserialize_with = "command::time_limit")]
    timeout_ms: Option<NonZeroU64>,
}

/// Makes the tool.
pub(crate) fn run_tests() -> Arc<dyn AnyTool> {
    Arc::new(RunTests::default())
}

/// Remembers for each project how to run again what failed last.
#[derive(Default)]
struct RunTests {
    failed: Mutex<HashMap<(PathBuf, Runner), Vec<String>>>,
}

impl AnyTool for RunTests {
    fn name(&self) -> ToolName {
        NAME.into()
    }

    fn spec(&self) -> Result<ToolSpec, SchemaError> {
        let (parameters, description) = Schema::of::<Args>()?;
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
        Meta { examples, constraints, returns, ..command::meta(Format::Tests) }
    }

    fn prepare(self: Arc<Self>, input: &Input) -> Result<Box<dyn Ready>, ToolError> {
        let args: Args = input.parse(&self.name())?;
        if let Some(filter) = args.filter.as_ref().filter(|filter| filter.starts_with('-')) {
            return Err(ToolError::bad_input(format!(
                "`filter` is a part of a test's name, not an option: `{filter}`"
            )));
        }
        Ok(Box::new(Asked { tool: self, args }))
    }
}

/// A call that does not know its command yet.
struct Asked {
    tool: Arc<RunTests>,
    args: Args,
}

impl Ready for Asked {
    fn effects(&self) -> Effects {
        Effects::read(self.args.path.clone().unwrap_or_else(|| ".".into()))
    }

    fn looks(&self) -> Option<&dyn Look> {
        Some(self)
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        // Whoever does not look gets what the look would have said.
        Box::pin(async { self.look(cx).await?.run(cx).await })
    }
}

impl Look for Asked {
    fn look<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Box<dyn Ready>, ToolError>> {
        Box::pin(async { Ok(Box::new(self.planned(cx).await?) as Box<dyn Ready>) })
    }
}

impl Asked {
    async fn planned(&self, cx: &Cx) -> Result<Planned, ToolError> {
        let Args { path, filter, runner, only_failed, timeout_ms } = &self.args;
        let path = path.as_deref().unwrap_or(Path::new("."));
        let found = project::find(path, *runner, cx).await?;
        let key = (found.directory.clone(), found.runner);
        let rerun = if only_failed.unwrap_or(false) { Some(self.tool.failures(&key)?) } else { None };
        let wish =
            Wish { target: found.target.as_deref(), filter: filter.as_deref(), rerun: rerun.as_deref() };
        let argv = found.runner.command(&found, &wish);
        let others = if found.others.is_empty() {
            String::new()
        } else {
            format!("; there is also {}: set `runner` for another", found.others.join(", "))
        };
        let told = format!("chosen by {}{others}", found.marker);
        let directory = found.directory;
        Ok(Planned {
            tool: Arc::clone(&self.tool),
            runner: found.runner,
            command: CommandLine { argv, cwd: (directory != Path::new(".")).then(|| directory.clone()) },
            directory,
            told,
            time_limit: timeout_ms.or(NonZeroU64::new(DEFAULT_TIME_MS)),
        })
    }
}

impl RunTests {
    /// What to add to a command to run only what failed.
    fn failures(&self, key: &(PathBuf, Runner)) -> Result<Vec<String>, ToolError> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        match failed.get(key) {
            Some(arguments) if !arguments.is_empty() => Ok(arguments.clone()),
            Some(_) => Err(ToolError::bad_input(
                "nothing failed when the tests were last run, or this runner cannot run a part of them: leave out `only_failed`",
            )),
            None => {
                Err(ToolError::bad_input("the tests have not been run yet: leave out `only_failed` first"))
            }
        }
    }
}

/// A call that knows its command.
struct Planned {
    tool: Arc<RunTests>,
    runner: Runner,
    directory: PathBuf,
    command: CommandLine,
    /// How the runner was found.
    told: String,
    time_limit: Option<NonZeroU64>,
}

impl Ready for Planned {
    fn effects(&self) -> Effects {
        Effects::command(self.command.clone())
    }

    fn run<'a>(&'a self, cx: &'a Cx) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async {
            let CommandLine { argv, cwd } = &self.command;
            let output = command::run(argv, cwd.as_deref(), self.time_limit, cx).await.map_err(|error| {
                let message = format!("{} ({} {})", error.message, self.runner.name(), self.told);
                ToolError { message, ..error }
            })?;
            let printed = Content::join(&output.content);
            if let Some(report) = tests_in(&Terminal::reduce(&printed)) {
                // A runner may start another, whose arguments would mean something else to it.
                let rerun = if report.runner == self.runner.name() { report.rerun } else { Vec::new() };
                let mut failed = self.tool.failed.lock().unwrap_or_else(PoisonError::into_inner);
                failed.insert((self.directory.clone(), self.runner), rerun);
            }
            let told = format!("$ {}\n({})", self.command.display(), self.told);
            Ok(Output { content: vec![Content::Text(told), Content::Text(printed)], ..output })
        })
    }
}

#[cfg(test)]
mod tests;
