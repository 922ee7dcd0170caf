//! `git push` with a `+`, or with nothing before a `:`. The table sees options, and these are none.

use super::{Call, Danger};
use crate::shell::Word;

/// git's own options whose value is the next word.
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

/// What a push would take away.
pub(super) fn find(call: &Call<'_>) -> Option<Danger> {
    let arguments = if call.program == "git" { pushed(call.arguments)? } else { return None };
    let push = Call { arguments, ..*call };
    // A lone `:` pushes what both sides have.
    let mut refs = push.operands().filter(|refs| refs.len() > 1);
    refs.any(|refs| refs.starts_with(['+', ':'])).then(|| {
        Danger::ask("`git push` of this overwrites or deletes what is on the server")
            .instead("push to a new branch")
    })
}

/// The arguments of `push`, if that is the subcommand.
fn pushed(words: &[Word]) -> Option<&[Word]> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "push" => return Some(words.as_slice()),
            option if VALUED.contains(&option) => drop(words.next()),
            option if option.starts_with('-') => {}
            // It may become options, or nothing.
            _ if word.unclear.is_some() => {}
            _ => return None,
        }
    }
    None
}
