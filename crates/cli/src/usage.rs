//! Errors of the command line: clap's messages, with suggestions only for names that are nearly
//! right.

use std::{ffi::OsStr, process::ExitCode};

use clap::{
    builder::StyledStr,
    error::{ContextKind, ContextValue},
};

use windlass::shell_quote;

use crate::{args, exit::ProgramExit, finish, note, output, screen::visible_lines, spelling::nearness};

/// Prints help, the version or an error. Only an error is wrong usage.
pub(crate) fn report(mut error: clap::Error) -> ExitCode {
    suggest(&mut error, &args::command());
    if !error.use_stderr() {
        let printed = error.print();
        return finish(output::check().and_then(|()| output::written(printed)));
    }
    match marked(&error) {
        Some(text) => note(text.trim_end()),
        // If it cannot be printed, the exit code still reports the error.
        None => drop(error.print()),
    }
    if has_prompt_in_pieces(&error) {
        note("\ntip: a prompt of several words is one argument; put it in quotes");
    }
    ProgramExit::Usage.into()
}

/// Returns the text of an error without colours if it repeats arguments with characters that are
/// not shown as themselves.
fn marked(error: &clap::Error) -> Option<String> {
    let text = error.render().to_string();
    let marked = visible_lines(&text);
    (marked != text).then_some(marked)
}

/// Recognises `windlass exec fix the bug`.
fn has_prompt_in_pieces(error: &clap::Error) -> bool {
    let word =
        [ContextKind::InvalidSubcommand, ContextKind::InvalidArg].iter().find_map(|kind| error.get(*kind));
    let is_word = matches!(word, Some(ContextValue::String(word)) if !word.starts_with('-'));
    is_word && std::env::args_os().skip(1).any(|arg| arg == "exec" || arg == "e")
}

/// Drops suggestions that are not close. If none is left for a command, names the commands that
/// have that word.
fn suggest(error: &mut clap::Error, root: &clap::Command) {
    if let (Some(ContextValue::String(typed)), Some(ContextValue::String(known))) =
        (error.get(ContextKind::InvalidArg), error.get(ContextKind::SuggestedArg))
        && !is_near(typed, known)
    {
        error.remove(ContextKind::SuggestedArg);
    }
    if let (Some(ContextValue::String(typed)), Some(ContextValue::String(known))) =
        (error.get(ContextKind::InvalidValue), error.get(ContextKind::SuggestedValue))
        && !is_near(typed, known)
        && !known.starts_with(typed.as_str())
    {
        error.remove(ContextKind::SuggestedValue);
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return;
    };
    let mut names = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(names)) => names,
        Some(ContextValue::String(name)) => vec![name],
        _ => Vec::new(),
    };
    let is_hidden = |name: &str| root.find_subcommand(name).is_some_and(clap::Command::is_hide_set);
    names.retain(|name| is_near(&typed, name) && !is_hidden(name));
    names.sort_by_key(|name| nearness(&typed, name));
    if names.is_empty() {
        names = paths_to(&typed, root);
    }
    if !names.is_empty() {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    } else if root.get_arguments().any(|arg| arg.get_long() == Some(&typed)) {
        let tip = StyledStr::from(format!("there is an option '--{typed}'"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    } else if is_first_word(error) {
        let tip = StyledStr::from(prompt_tip(&typed));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    }
}

/// Returns true if the unknown command stands where a prompt may stand, too.
fn is_first_word(error: &clap::Error) -> bool {
    let usage = error.get(ContextKind::Usage);
    matches!(usage, Some(ContextValue::StyledStr(usage)) if usage.to_string().contains("windlass [OPTIONS] [PROMPT]"))
}

/// Returns how a text that is no command becomes a prompt.
fn prompt_tip(typed: &str) -> String {
    let quoted = shell_quote(typed);
    if typed.trim().contains(char::is_whitespace) {
        return format!("a session needs a terminal; without one, use `windlass exec {quoted}`");
    }
    format!("a prompt of one word needs `windlass chat {quoted}`")
}

fn is_near(typed: &str, known: &str) -> bool {
    nearness(typed.trim_start_matches('-'), known.trim_start_matches('-')).is_some()
}

/// Returns nested commands that have exactly this name: `exec resume` for `resume`.
fn paths_to(name: &str, root: &clap::Command) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), root)];
    while let Some((path, command)) = open.pop() {
        for inner in command.get_subcommands() {
            let path = format!("{path} {}", inner.get_name()).trim_start().to_owned();
            if OsStr::new(inner.get_name()) == name && inner.get_name() != "help" {
                found.push(path.clone());
            }
            open.push((path, inner));
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::CliArgs;

    fn tips(arguments: &[&str]) -> String {
        let mut error = CliArgs::parse_words(arguments.iter().copied()).unwrap_err();
        suggest(&mut error, &args::command());
        let text = error.to_string();
        text.lines().filter_map(|line| line.trim().strip_prefix("tip: ")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn only_near_commands_are_suggested() {
        for (typed, expected) in [
            ("exce", "a similar subcommand exists: 'exec'"),
            ("sesions", "a similar subcommand exists: 'sessions'"),
            ("histroy", "a similar subcommand exists: 'history'"),
            ("probe", "a similar subcommand exists: 'models probe'"),
            ("frobnicate", "a prompt of one word needs `windlass chat frobnicate`"),
            ("fix", "a prompt of one word needs `windlass chat fix`"),
            ("fix it", "a session needs a terminal; without one, use `windlass exec 'fix it'`"),
            ("logni", "a similar subcommand exists: 'login'"),
            ("sesion", "a similar subcommand exists: 'sessions'"),
            ("sandbox-mode", "a prompt of one word needs `windlass chat sandbox-mode`"),
            ("e2", "a prompt of one word needs `windlass chat e2`"),
        ] {
            assert_eq!(tips(&["windlass", typed]), expected, "{typed}");
        }
        assert_eq!(tips(&["windlass", "policy", "frobnicate"]), "");
    }

    #[test]
    fn an_error_that_repeats_an_argument_cannot_control_the_screen() {
        let error = |argument: &str| CliArgs::parse_words(["windlass", argument]).unwrap_err();
        let text = marked(&error("--\u{1b}]0;x\u{7}\u{202e}")).unwrap();
        assert!(text.contains("--\\u{1b}]0;x\\u{7}\\u{202e}") && !text.contains('\u{1b}'), "{text}");
        assert_eq!(marked(&error("--frobnicate")), None);
    }

    #[test]
    fn only_near_values_are_suggested() {
        for (typed, expected) in [
            ("workspce-write", "a similar value exists: 'workspace-write'"),
            ("danger", "a similar value exists: 'danger-full-access'"),
            ("only", ""),
            ("rear-end", ""),
        ] {
            assert_eq!(tips(&["windlass", "exec", "-s", typed]), expected, "{typed}");
        }
    }

    #[test]
    fn only_near_options_are_suggested() {
        assert!(tips(&["windlass", "history", "--jsno"]).contains("'--json'"));
        assert!(!tips(&["windlass", "exec", "--sand", "x"]).contains("--add-dir"));
    }
}
