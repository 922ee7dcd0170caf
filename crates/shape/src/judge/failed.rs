//! Calls that did not end as they should: why, and what to do about it. What the system said is certain.

use windlass_contract::{Detail, Exit, ExitClass, Insight, Proof, Status, TestReport, Verdict};

use super::Case;

/// The verdict on a call whose status is not success.
pub(super) fn verdict(case: &Case<'_>) -> Verdict {
    let mut verdict = Verdict::failure(reason(case));
    if let Some(tests) = case.insight.and_then(Insight::tests).filter(|tests| tests.failed > 0) {
        verdict.reasons.push(failed_tests(tests));
    }
    verdict.suggestions.extend(suggestion(case));
    verdict
}

/// How many tests failed, of how many.
pub(super) fn failed_tests(tests: &TestReport) -> String {
    format!("{} of {} tests failed", tests.failed, tests.passed.saturating_add(tests.failed))
}

fn reason(case: &Case<'_>) -> String {
    match case.facts.exit() {
        Some(Exit::Code(code)) => format!("the command ended with exit code {code}"),
        Some(Exit::Signal(signal)) => format!("the command was ended by signal {signal}"),
        Some(Exit::TimedOut) => "the command's time was up".to_owned(),
        Some(Exit::Cancelled) => "the command was cancelled".to_owned(),
        None => without_a_command(case).to_owned(),
    }
}

fn without_a_command(case: &Case<'_>) -> &'static str {
    match case.status {
        Status::NotFound if case.receipt.unknown_tool => "there is no such tool",
        Status::NotFound => "what it needs does not exist",
        Status::Rejected if case.receipt.refusal.is_some() => "it was refused",
        Status::Rejected => "it was stopped",
        Status::PermissionDenied => "the sandbox stopped it",
        Status::Timeout => "its time was up",
        Status::Error | Status::Success => "the tool could not do it",
    }
}

fn suggestion(case: &Case<'_>) -> Option<String> {
    let Detail::Command(command) = &case.insight?.detail else { return None };
    let what = match command.class {
        ExitClass::NotFound => "a program was not found: check its name, or whether it is installed",
        ExitClass::NotExecutable => "a file may not be run: check its mode and kind",
        ExitClass::TimedOut => "allow more time, or do less at once",
        ExitClass::KilledForMemory => "it needed more memory than it may have: do less at once",
        ExitClass::Denied | ExitClass::Failed | ExitClass::Signalled => return stopped(case),
        ExitClass::Ok | ExitClass::Cancelled => return None,
    };
    Some(what.to_owned())
}

fn stopped(case: &Case<'_>) -> Option<String> {
    let denial = case.receipt.denials.first()?;
    let sure = if denial.proof == Proof::Observed { "stopped" } else { "may have stopped" };
    Some(format!("the sandbox {sure} it ({})", denial.what))
}
