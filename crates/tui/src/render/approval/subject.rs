//! The thing that a question is about.

use windlass::{Question, mcp::RemoteCall, shortened, split_shell};

use crate::render::{
    tool_call::relative_path,
    visible::{count_blanks, visible_command},
};

/// Maximum number of blanks in a row of a command; longer runs are counted instead of shown. Lines
/// of a command may be indented.
const MAX_BLANKS: usize = 24;

/// Maximum number of blanks in a row of a change. Code may be indented deeply.
const MAX_BLANKS_IN_CHANGE: usize = 60;

/// The shells that run most commands. Another one is named, because it may read a script otherwise
/// or be another program.
const USUAL_SHELLS: [&str; 12] = [
    "/bin/bash -c",
    "/bin/bash -lc",
    "/bin/sh -c",
    "/bin/sh -lc",
    "/bin/zsh -c",
    "/bin/zsh -lc",
    "/usr/bin/bash -c",
    "/usr/bin/bash -lc",
    "/usr/bin/sh -c",
    "/usr/bin/sh -lc",
    "/usr/bin/zsh -c",
    "/usr/bin/zsh -lc",
];

/// Maximum number of characters of a question that waits.
const MAX_GIST_CHARS: usize = 200;

/// The thing that a question is about: the whole command, or the files to be written.
pub(super) struct ApprovalSubject {
    pub(super) verb: String,
    /// The text, not escaped, in which long runs of blanks are counted.
    pub(super) text: String,
    /// The content of the change, in the same form; empty if there is none.
    pub(super) change: String,
    pub(super) has_counted_blanks: bool,
}

impl ApprovalSubject {
    pub(super) fn from_question(question: &Question) -> Self {
        let effects = &question.effects;
        let (verb, whole) = match (&effects.command, &effects.typed) {
            (Some(command), _) => {
                let terminal = if effects.terminal { " in a terminal that can be typed to" } else { "" };
                match split_shell(command) {
                    Some((shell, script)) if USUAL_SHELLS.contains(&shell.as_str()) => {
                        (format!("run{terminal}"), script.to_owned())
                    }
                    Some((shell, script)) => (format!("run with `{shell}`{terminal}"), script.to_owned()),
                    None => (format!("run{terminal}"), command.display()),
                }
            }
            (None, Some(typed)) => ("type into a program that runs".to_owned(), typed.display()),
            (None, None) if effects.remote.is_some() => {
                ("call".to_owned(), effects.remote.as_ref().map(RemoteCall::title).unwrap_or_default())
            }
            (None, None) if effects.writes.is_empty() => ("use".to_owned(), "the network".to_owned()),
            (None, None) => {
                let paths = effects.writes.iter().map(|path| relative_path(path, &question.cwd));
                ("write".to_owned(), paths.collect::<Vec<_>>().join("\n"))
            }
        };
        let text = count_blanks(&whole, MAX_BLANKS);
        let lines = question.details.change.split('\n');
        let change =
            lines.map(|line| count_blanks(line, MAX_BLANKS_IN_CHANGE)).collect::<Vec<_>>().join("\n");
        let has_counted_blanks = text != whole || change != question.details.change;
        Self { verb, text, change, has_counted_blanks }
    }
}

/// Returns a question on one line, escaped.
pub fn question_gist(question: &Question) -> String {
    let text = ApprovalSubject::from_question(question).text;
    let gist =
        format!("{} {}", question.tool.as_str(), text.split_whitespace().collect::<Vec<_>>().join(" "));
    visible_command(&shortened(&gist, MAX_GIST_CHARS)).into_owned()
}
