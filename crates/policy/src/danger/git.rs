//! `git push` with a `+` before a ref, or with nothing before a `:`. The table only knows options,
//! and these are operands.

use super::{CommandDanger, SuspectCommand};
use crate::shell::ShellWord;

/// Options of git before its subcommand whose value is the next word.
const VALUED: &[&str] = &[
    "-C",
    "-c",
    "--attr-source",
    "--config-env",
    "--git-dir",
    "--namespace",
    "--super-prefix",
    "--work-tree",
];

/// Finds the danger of a push that overwrites or deletes remote refs.
pub(super) fn find(call: &SuspectCommand<'_>) -> Option<CommandDanger> {
    let arguments = if call.program == "git" { pushed(call.arguments)? } else { return None };
    let push = SuspectCommand { arguments, ..*call };
    // A lone `:` pushes the branches that both sides have.
    let mut refs = push.operands().filter(|refs| refs.len() > 1);
    refs.any(|refs| refs.starts_with(['+', ':'])).then(|| {
        CommandDanger::ask("`git push` of this overwrites or deletes what is on the server")
            .instead("push to a new branch")
    })
}

/// Returns the arguments of `push`, if that is the subcommand.
fn pushed(words: &[ShellWord]) -> Option<&[ShellWord]> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "push" => return Some(words.as_slice()),
            option if VALUED.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            // An unclear word may become options, or nothing.
            _ if word.unclear.is_some() => {}
            _ => return None,
        }
    }
    None
}
