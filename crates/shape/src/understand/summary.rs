//! Renders insights as text: one line for a person, and a short test report for a model.

use std::time::Duration;

use windlass_contract::insight::{
    CommandInsight, Diagnostic, Diagnostics, Place, Severity, TestFailure, TestReport,
};

/// Maximum number of test names in a line, and of failures in a report.
const MAX_NAMES: usize = 3;
const MAX_FAILURES: usize = 20;

/// Returns one line about a command.
pub(super) fn line(command: &CommandInsight) -> String {
    let CommandInsight { class, first_error, diagnostics, tests } = command;
    let diagnosed = !diagnostics.is_empty();
    if let Some(tests) = tests {
        let broken = if diagnostics.errors > 0 {
            format!(", {}", counted(diagnostics.errors, "error"))
        } else {
            String::new()
        };
        return format!("{}{broken}", describe_tests(tests));
    }
    if diagnosed {
        let counts = [(diagnostics.errors, "error"), (diagnostics.warnings, "warning")];
        let counts: Vec<_> = counts
            .iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, word)| counted(*number, word))
            .collect();
        let first = diagnostics.first.first().map(|first| format!("; first: {}", describe_diagnostic(first)));
        return format!("{}{}", counts.join(", "), first.unwrap_or_default());
    }
    let how = class.name().replace('_', " ");
    match first_error {
        Some(error) => format!("{how}: {error}"),
        None => how,
    }
}

/// Returns a line such as `2 of 5 tests failed: a, b`.
fn describe_tests(tests: &TestReport) -> String {
    let run = tests.passed + tests.failed;
    let skipped = if tests.skipped > 0 { format!(", {} skipped", tests.skipped) } else { String::new() };
    if tests.failed == 0 {
        return format!("{} passed{skipped}", counted(tests.passed, "test"));
    }
    let names: Vec<_> = tests.failures.iter().take(MAX_NAMES).map(|failure| &*failure.name).collect();
    let more = if tests.failures.len() > names.len() { ", …" } else { "" };
    let names = if names.is_empty() { String::new() } else { format!(": {}{more}", names.join(", ")) };
    format!("{} of {} failed{skipped}{names}", tests.failed, counted(run, "test"))
}

/// Returns the first compiler error or test failure as one line.
pub(super) fn first_error(diagnostics: &Diagnostics, tests: Option<&TestReport>) -> Option<String> {
    let error =
        diagnostics.first.first().filter(|first| first.severity == Severity::Error).map(describe_diagnostic);
    error.or_else(|| {
        let TestFailure { name, place, message } = tests?.failures.first()?;
        let detail = message.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
        Some(format!("{}{name}{detail}", prefix(place)))
    })
}

fn describe_diagnostic(diagnostic: &Diagnostic) -> String {
    let code = diagnostic.code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
    format!("{}{}{code}", prefix(&diagnostic.place), diagnostic.message)
}

/// Returns a short test report: the totals, each failure with its place and message, then the next
/// step.
pub(crate) fn report(tests: &TestReport) -> String {
    let mut text = format!(
        "{}: {} passed, {} failed, {} skipped",
        tests.runner, tests.passed, tests.failed, tests.skipped
    );
    text.extend(tests.duration.map(|time| format!(" in {}", seconds(time))));
    text.push('\n');
    for TestFailure { name, place, message } in tests.failures.iter().take(MAX_FAILURES) {
        let at = shown(place);
        let at = if at.is_empty() { at } else { format!(" ({at})") };
        text.push_str(&format!("\nFAILED {name}{at}\n"));
        message.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
    }
    let omitted = tests.failed.saturating_sub(tests.failures.len().min(MAX_FAILURES) as u64);
    if omitted > 0 {
        text.push_str(&format!("\n… and {omitted} more failed\n"));
    }
    if !tests.rerun.is_empty() {
        text.push_str("\nTo run only what failed again, set `only_failed`.\n");
    }
    if !tests.slowest.is_empty() {
        let slowest: Vec<_> =
            tests.slowest.iter().map(|slow| format!("{} {}", slow.name, seconds(slow.duration))).collect();
        text.push_str(&format!("\nslowest: {}\n", slowest.join(", ")));
    }
    text
}

fn counted(number: u64, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}

fn seconds(time: Duration) -> String {
    format!("{:.2} s", time.as_secs_f64())
}

fn prefix(place: &Place) -> String {
    let shown = shown(place);
    if shown.is_empty() { shown } else { format!("{shown}: ") }
}

/// Renders `file:line:column` as far as it is known.
fn shown(place: &Place) -> String {
    let numbers = place.line.into_iter().chain(place.column).map(|number| format!(":{number}"));
    place.file.iter().cloned().chain(numbers).collect()
}
