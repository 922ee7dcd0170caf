//! `git push` with a `+`, or with nothing before a `:`. The table sees options, and these are none.

use super::{Call, Danger, table::MAX_BEFORE};

/// What a push would take away.
pub(super) fn find(call: &Call<'_>) -> Option<Danger> {
    let mut operands = call.operands();
    if call.program != "git" || !operands.by_ref().take(MAX_BEFORE + 1).any(|word| word == "push") {
        return None;
    }
    // A lone `:` pushes what both sides have.
    let mut refs = operands.filter(|refs| refs.len() > 1);
    refs.any(|refs| refs.starts_with(['+', ':'])).then(|| {
        Danger::ask("`git push` of this overwrites or deletes what is on the server")
            .instead("push to a new branch")
    })
}
