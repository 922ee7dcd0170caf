//! Plain lines for the parts of a session: the one place where `render` connects to the screen.

use std::time::Duration;

use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use unicode_width::UnicodeWidthChar;
use windlass::{Beyond, CommandLine, Effects, Outcome, Plan, PlanStatus, Question, ToolCall, shortened};

/// Maximum number of characters of a call's gist.
const MAX_GIST_CHARS: usize = 200;

/// Number of output lines shown below a finished call.
const OUTPUT_LINES: usize = 4;

const FAINT: Style = Style::new().add_modifier(Modifier::DIM);

/// Returns one faint line.
pub(crate) fn faint(text: String) -> Line<'static> {
    Line::styled(text, FAINT)
}

/// Replaces characters that a terminal does not show as themselves.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\t' => shown.push_str("    "),
            '\r' => {}
            '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                shown.extend(c.escape_unicode());
            }
            c if c.is_control() => shown.extend(c.escape_unicode()),
            c => shown.push(c),
        }
    }
    shown
}

/// Wraps a text after spaces where possible. The first line begins with `first`, the others with
/// blanks of its width.
pub(crate) fn wrapped(first: &str, text: &str, width: u16, style: Style) -> Vec<Line<'static>> {
    let indent = " ".repeat(first.chars().filter_map(UnicodeWidthChar::width).sum());
    let room = usize::from(width).saturating_sub(indent.len()).max(1);
    let pieces = text.split('\n').flat_map(|line| pieces(&visible(line), room)).enumerate();
    pieces
        .map(|(number, piece)| {
            let prefix = if number == 0 { first.to_owned() } else { indent.clone() };
            Line::from(vec![Span::raw(prefix), Span::styled(piece, style)])
        })
        .collect()
}

fn pieces(line: &str, room: usize) -> Vec<String> {
    let (mut done, mut last, mut used) = (Vec::new(), String::new(), 0);
    for c in line.chars() {
        let width = c.width().unwrap_or(0);
        if used + width > room && !last.is_empty() {
            let space = last.rfind(' ').map(|at| at + 1).filter(|at| last.len() - at < room / 2);
            let rest = last.split_off(space.unwrap_or(last.len()));
            used = rest.chars().filter_map(UnicodeWidthChar::width).sum();
            done.push(std::mem::replace(&mut last, rest));
        }
        last.push(c);
        used += width;
    }
    done.push(last);
    done
}

/// Describes what a call works on, in one line.
pub(crate) fn gist(call: &ToolCall, effects: &Effects) -> String {
    let paths = |paths: &[std::path::PathBuf]| {
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    };
    let text = match &effects.command {
        Some(command) => command_text(command),
        None if !effects.writes.is_empty() => paths(&effects.writes),
        None if !effects.reads.is_empty() => paths(&effects.reads),
        None => call.input.as_str().to_owned(),
    };
    visible(&shortened(&text.replace('\n', " "), MAX_GIST_CHARS))
}

/// Returns a command without the shell that runs it.
pub(crate) fn command_text(command: &CommandLine) -> String {
    match &command.argv[..] {
        [shell, flag, script] if flag.starts_with('-') && flag.ends_with('c') && shell.ends_with("sh") => {
            script.clone()
        }
        _ => command.display(),
    }
}

/// Returns the line of a running call, with the last line of its output.
pub(crate) fn running_call(
    name: &str,
    gist: &str,
    elapsed: Duration,
    output: Option<&str>,
) -> Vec<Line<'static>> {
    let mut lines = vec![Line::from(vec![
        Span::styled("• ", Color::Cyan),
        Span::styled(name.to_owned(), Modifier::BOLD),
        Span::raw(format!(" {gist} ")),
        Span::styled(format!("{} s", elapsed.as_secs()), FAINT),
    ])];
    lines.extend(output.map(|output| faint(format!("  └ {}", visible(output)))));
    lines
}

/// Returns the lines of a call that has ended.
pub(crate) fn ended_call(name: &str, gist: &str, outcome: &Outcome, width: u16) -> Vec<Line<'static>> {
    let (glyph, colour) = if outcome.verdict.success { ("✓ ", Color::Green) } else { ("✗ ", Color::Red) };
    let end = if outcome.verdict.success { String::new() } else { format!("{} ", outcome.status.name()) };
    let head = format!("{name} {gist} ({end}{:.1} s)", outcome.receipt.duration.as_secs_f32());
    let mut lines = wrapped(glyph, &head, width, Style::new());
    lines.iter_mut().take(1).for_each(|line| line.spans[0].style = colour.into());
    let text = outcome.text();
    let all: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    for line in all.iter().take(OUTPUT_LINES) {
        lines.extend(wrapped("  │ ", line, width, FAINT).into_iter().take(1));
    }
    if all.len() > OUTPUT_LINES {
        lines.push(faint(format!("  … {} more lines (Ctrl-T shows them)", all.len() - OUTPUT_LINES)));
    }
    lines
}

/// Returns everything that is known about a call that has ended.
pub(crate) fn expanded_call(call: &ToolCall, outcome: &Outcome, width: u16) -> Vec<Line<'static>> {
    let mut lines = wrapped("▾ ", &format!("{} {}", call.name, call.input.as_str()), width, Style::new());
    lines.extend(wrapped("  ", &outcome.text(), width, FAINT));
    lines.extend(wrapped("  ", &outcome.verdict.line(), width, Style::new()));
    if !outcome.receipt.decision.is_empty() {
        lines.extend(wrapped("  allowed by: ", &outcome.receipt.decision, width, Style::new()));
    }
    if let Some(held) = &outcome.receipt.held {
        lines.extend(wrapped("  held by: ", &format!("{:?}", held.rung), width, Style::new()));
    }
    lines
}

/// Returns the plan as a checklist.
pub(crate) fn plan(plan: &Plan, width: u16) -> Vec<Line<'static>> {
    let step = |step: &windlass::PlanStep| {
        let (mark, style) = match step.status {
            PlanStatus::Pending => ("  ☐ ", Style::new()),
            PlanStatus::InProgress => ("  ▸ ", Style::new().add_modifier(Modifier::BOLD)),
            PlanStatus::Completed => ("  ☑ ", FAINT),
        };
        wrapped(mark, &step.step, width, style)
    };
    plan.plan.iter().flat_map(step).collect()
}

/// Returns a unified diff in colours.
pub(crate) fn diff(diff: &str, width: u16) -> Vec<Line<'static>> {
    let line = |line: &str| {
        let style = match line.as_bytes().first() {
            Some(b'+') => Color::Green.into(),
            Some(b'-') => Color::Red.into(),
            Some(b'@') => Color::Cyan.into(),
            _ => FAINT,
        };
        wrapped("  ", line, width, style)
    };
    diff.lines().flat_map(line).collect()
}

/// Returns a question with everything that it would allow.
pub(crate) fn question(question: &Question, width: u16) -> Vec<Line<'static>> {
    let Question { tool, effects, cwd, reason, unclear, .. } = question;
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let title = Style::new().fg(Color::Yellow).add_modifier(Modifier::BOLD);
    let (verb, things) = match (&effects.command, &effects.typed) {
        (Some(command), _) => ("run", vec![command_text(command)]),
        (None, Some(typed)) => ("type, to a program that runs", vec![typed.display()]),
        (None, None) if effects.writes.is_empty() => ("use", vec!["the network".to_owned()]),
        (None, None) => {
            ("write", effects.writes.iter().map(|path| cwd.join(path).display().to_string()).collect())
        }
    };
    let mut lines = wrapped("? ", &format!("{tool} wants to {verb}:"), width, title);
    lines.extend(things.iter().flat_map(|thing| wrapped("    ", thing, width, bold)));
    lines.extend(wrapped("  in ", &cwd.display().to_string(), width, Style::new()));
    lines.extend(wrapped("  because: ", reason, width, Style::new()));
    let justification = effects.escalation.as_ref().and_then(|asked| asked.justification.as_deref());
    lines.extend(justification.iter().flat_map(|text| wrapped("  the model says: ", text, width, FAINT)));
    let warn = Style::new().fg(Color::Yellow);
    lines.extend(unclear.iter().flat_map(|part| wrapped("  unclear: ", part, width, warn)));
    let choices = choices(question);
    lines.extend(choices.iter().flat_map(|(key, text)| wrapped(&format!("  {key}  "), text, width, bold)));
    lines
}

fn choices(question: &Question) -> Vec<(char, String)> {
    let held = match &question.beyond {
        Beyond::Nothing => "as the sandbox mode says".to_owned(),
        Beyond::Wider { writable, network } => {
            let places = writable.iter().map(|path| format!("`{}` writable", path.display()));
            let more: Vec<_> = places.chain(network.then(|| "the network".to_owned())).collect();
            format!("in the sandbox, with {} as well", more.join(" and "))
        }
        Beyond::Everything => "WITHOUT the sandbox".to_owned(),
    };
    let mut choices = vec![('y', format!("yes, once, {held}"))];
    if !question.keys.is_empty() {
        choices.push(('s', format!("yes, the same again in this session, {held}")));
    }
    if let Some(rule) = &question.rule {
        choices.push(('p', format!("yes, always in this project: {}, {held}", rule.allows)));
        choices.push(('a', format!("yes, always: {}, {held}", rule.allows)));
    }
    choices.push(('n', "no, with a note to the model".to_owned()));
    choices.push(('q', "no, and stop the turn".to_owned()));
    choices
}
