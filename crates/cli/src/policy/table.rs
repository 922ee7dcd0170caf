//! `windlass policy test`: checks a table of commands with expected decisions.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::{LineJudge, files, word};
use crate::{
    exit::ProgramExit,
    output::print,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseTable {
    case: Vec<Spanned<DecisionCase>>,
}

/// A command and its expected decision: `safe`, `prompt` or `forbidden`.
#[derive(Deserialize)]
struct DecisionCase {
    #[serde(alias = "cmd")]
    command: String,
    decision: ExpectedDecision,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ExpectedDecision {
    Safe,
    Prompt,
    Forbidden,
}

impl ExpectedDecision {
    fn word(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Prompt => "prompt",
            Self::Forbidden => "forbidden",
        }
    }
}

pub(super) fn run(setup: &ProgramSetup, path: &Path) -> Result<ProgramExit, CliProblem> {
    let text = files::whole(path).map_err(|error| CliProblem::file("cannot read the table", path, &error))?;
    let lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let cases = if lines { from_lines(&text) } else { from_toml(&text) };
    let cases = cases.map_err(|(line, problem)| {
        CliProblem::usage(format!("`{}`, line {line}: {problem}", visible_path(path)))
    })?;
    let judge = LineJudge::new(setup)?;
    let failures: Vec<_> = cases.iter().filter_map(|(line, case)| failure(&judge, *line, case)).collect();
    let (failed, all) = (failures.len(), cases.len());
    print(&format!("{}{} of {all} as expected\n", failures.concat(), all - failed))?;
    Ok(if failed == 0 { ProgramExit::Done } else { ProgramExit::Failed })
}

fn failure(judge: &LineJudge, line: usize, case: &DecisionCase) -> Option<String> {
    let (ruling, judgement) = judge.line(&case.command);
    let (got, wanted) = (word(ruling), case.decision.word());
    (got != wanted).then(|| {
        let command = visible(&case.command);
        format!("line {line}: {got}, expected {wanted}: {command}\n  {}\n", visible(&judgement.why))
    })
}

/// Cases with their lines, or the malformed line.
type DecisionCases = Result<Vec<(usize, DecisionCase)>, (usize, String)>;

fn from_toml(text: &str) -> DecisionCases {
    let line_of = |at: usize| 1 + text.bytes().take(at).filter(|byte| *byte == b'\n').count();
    let table: CaseTable = toml::from_str(text)
        .map_err(|error| (line_of(error.span().map_or(0, |span| span.start)), error.message().to_owned()))?;
    Ok(table.case.into_iter().map(|case| (line_of(case.span().start), case.into_inner())).collect())
}

fn from_lines(text: &str) -> DecisionCases {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let case = |(at, line)| {
        let case = serde_json::from_str(line).map_err(|error| (at + 1, error.to_string()))?;
        Ok((at + 1, case))
    };
    lines.map(case).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(cases: &DecisionCases) -> Vec<String> {
        let judge = LineJudge::for_tests();
        let cases = cases.as_ref().unwrap_or_else(|(line, problem)| panic!("line {line}: {problem}"));
        cases.iter().filter_map(|(line, case)| failure(&judge, *line, case)).collect()
    }

    #[test]
    fn both_kinds_of_table_are_read_and_failures_named() {
        let toml = "[[case]]\ncommand = \"ls\"\ndecision = \"safe\"\n\n[[case]]\ncommand = \"make\"\ndecision = \"safe\"\n";
        let why = "line 5: prompt, expected safe: make\n  `make` is not known to be harmless: `make` is not on the list of \
                   harmless programs\n";
        assert_eq!(failures(&from_toml(toml)), [why]);
        let lines =
            "{\"cmd\": \"ls\", \"decision\": \"safe\"}\n\n{\"cmd\": \"make\", \"decision\": \"safe\"}\n";
        assert_eq!(failures(&from_lines(lines)), [why.replace("line 5", "line 3")]);
    }

    #[test]
    fn a_table_that_makes_no_sense_is_named_with_its_line() {
        let line = |cases: DecisionCases| cases.err().map(|(line, _)| line);
        assert_eq!(line(from_toml("[[case]]\ncommand = \"ls\"\ndecision = \"maybe\"\n")), Some(3));
        assert_eq!(line(from_lines("{\"cmd\": \"ls\", \"decision\": \"safe\"}\n{\n")), Some(2));
    }
}
