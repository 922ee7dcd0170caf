//! Verdicts on calls that failed: the reason and a suggestion. Facts from the system are certain.

use windlass_contract::{
    Content, Verdict,
    host::{Exit, Proof},
    insight::{Detail, ExitClass, Insight, TestReport},
    outcome::{Facts, Status},
};

use super::CallEvidence;
use crate::understand::shortened;

/// Returns the verdict on a call whose status is not success.
pub(super) fn verdict(case: &CallEvidence<'_>) -> Verdict {
    let mut verdict = Verdict::failure(reason(case));
    if let Some(tests) = case.insight.and_then(Insight::tests).filter(|tests| tests.failed > 0) {
        verdict.reasons.push(failed_tests(tests));
    }
    verdict.reasons.extend(stopped(case));
    verdict.suggestions.extend(suggestion(case));
    verdict
}

/// Returns the number of failed tests and the total as text.
pub(super) fn failed_tests(tests: &TestReport) -> String {
    format!("{} of {} tests failed", tests.failed, tests.passed.saturating_add(tests.failed))
}

fn reason(case: &CallEvidence<'_>) -> String {
    match case.facts.exit() {
        Some(Exit::Code(code)) => format!("the command ended with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("the command was ended by signal {signal}"),
        Some(Exit::TimedOut) => "the command's time was up".to_owned(),
        Some(Exit::Cancelled) => "the command was cancelled".to_owned(),
        None => without_a_command(case),
    }
}

/// Returns the reason for a failed call without a command: the tool's own words, unless the call
/// was stopped from outside.
fn without_a_command(case: &CallEvidence<'_>) -> String {
    let (plain, words) = match case.status {
        Status::NotFound if case.receipt.unknown_tool => return "there is no such tool".to_owned(),
        Status::Rejected if case.receipt.refusal.is_some() => return "it was refused".to_owned(),
        Status::Rejected => return "it was stopped".to_owned(),
        Status::NotFound => ("what it needs does not exist", message(case)),
        Status::PermissionDenied if case.receipt.denials.is_empty() => {
            ("it was not permitted", message(case))
        }
        Status::PermissionDenied => return "the sandbox stopped it".to_owned(),
        Status::Timeout => ("its time was up", message(case)),
        Status::Error | Status::Success => ("it failed without saying why", message(case)),
    };
    words.unwrap_or_else(|| plain.to_owned())
}

/// Returns the first line of the tool's message.
fn message(case: &CallEvidence<'_>) -> Option<String> {
    let text = Content::join(case.content);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(shortened(line))
}

fn suggestion(case: &CallEvidence<'_>) -> Option<String> {
    let Detail::Command(command) = &case.insight?.detail else { return None };
    let what = match command.class {
        ExitClass::NotFound => "a program was not found: check its name, or whether it is installed",
        ExitClass::NotExecutable => "a file may not be run: check its mode and kind",
        ExitClass::TimedOut if waited(case) => "it waited for input: give it its answers in the call",
        ExitClass::TimedOut => "allow more time, or do less at once",
        ExitClass::KilledForMemory => "it needed more memory than it may have: do less at once",
        ExitClass::Denied | ExitClass::Failed | ExitClass::Signalled => return way_around(case),
        ExitClass::Ok | ExitClass::Cancelled => return None,
    };
    Some(what.to_owned())
}

fn waited(case: &CallEvidence<'_>) -> bool {
    matches!(case.facts, Facts::Command(command) if command.waits_for_input)
}

/// Suggests to do without what the sandbox blocked, unless the result begins with the way to allow
/// it.
fn way_around(case: &CallEvidence<'_>) -> Option<String> {
    let denials = &case.receipt.denials;
    let has_advice = denials.iter().any(|denial| denial.advice().is_some());
    let first = denials.first().filter(|_| !has_advice)?;
    Some(format!("do without what the sandbox blocks ({})", first.what))
}

/// Returns what the sandbox blocked, if that may be why a command failed.
fn stopped(case: &CallEvidence<'_>) -> Option<String> {
    let Detail::Command(command) = &case.insight?.detail else { return None };
    if !matches!(command.class, ExitClass::Denied | ExitClass::Failed | ExitClass::Signalled) {
        return None;
    }
    let denial = case.receipt.denials.first()?;
    let sure = if denial.proof == Proof::Suspected { "may have stopped" } else { "stopped" };
    Some(format!("the sandbox {sure} it ({})", denial.what))
}
