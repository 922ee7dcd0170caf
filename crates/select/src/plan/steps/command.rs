//! Runs commands and tests.

use serde_json::json;

use crate::plan::{
    phrases::AnswerPhrase,
    results,
    run::{NextAction, PlanResult, PlanRun},
};

/// Number of lines shown around a failure.
const CONTEXT_LINES: u64 = 8;

impl PlanRun<'_> {
    /// Runs the command line of the user. It is taken literally, so it is the only one that is not
    /// quoted.
    pub(super) fn run(&self, command: &str) -> PlanResult<String> {
        let output = self.call("shell_command", &json!({"command": command}))?;
        let (code, printed) = results::command(output).ok_or_else(|| self.failed(output))?;
        let printed = printed.trim_end();
        let answer =
            if printed.is_empty() { self.say(AnswerPhrase::Silent, &[]) } else { printed.to_owned() };
        if code == 0 {
            return Ok(answer);
        }
        Err(NextAction::Decline(format!(
            "{answer}\n{}",
            self.say(AnswerPhrase::ExitCode, &[&code.to_string()])
        )))
    }

    pub(super) fn test(&self, filter: Option<&str>, code: bool) -> PlanResult<String> {
        let arguments = filter.map_or_else(|| json!({}), |filter| json!({"filter": filter}));
        let output = self.call("run_tests", &arguments)?;
        // If the tests did not start, the report is the output of the runner.
        if output.contains("Read-only file system") {
            return Err(self.failed(output));
        }
        let report = output.replace("\nTo run only what failed again, set `only_failed`.", "");
        let report = report.trim_end();
        if results::all_passed(report) {
            return Ok(report.to_owned());
        }
        let Some((path, line)) = results::first_failure(report).filter(|_| code) else {
            return Err(NextAction::Decline(report.to_owned()));
        };
        let from = line.saturating_sub(CONTEXT_LINES).max(1);
        let code = self.lines(self.relative_path(path), from, (line - from).saturating_add(CONTEXT_LINES))?;
        let heading = self.say(AnswerPhrase::FailingCode, &[self.relative_path(path)]);
        Err(NextAction::Decline(format!("{report}\n\n{heading}\n{code}")))
    }
}
