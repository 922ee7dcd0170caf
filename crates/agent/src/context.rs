//! What a model is told before the user says anything.

use std::path::Path;

use windlass_contract::{Item, Role};
use windlass_runtime::Policy;

/// Standing instructions, unless the user has others. Short on purpose: small models pay for every word.
pub(crate) const INSTRUCTIONS: &str = "\
You are Windlass, an agent that works on the user's machine by calling tools.

- Look before you act: read what is there instead of guessing, and check your work by running it.
- Do what was asked and nothing more. Leave unrelated files and changes alone.
- Tools tell the truth: if a call failed, was refused or timed out, say so; never claim what you did not see.
- If a call is refused, do not try to get around it. Find an allowed way or tell the user what is missing.
- Calls that do not depend on each other may be made together.
- When you are done, answer in plain text: what you did, what you found, what is left.";

/// The first items of a conversation.
pub(crate) fn opening(around: &Surroundings<'_>, developer: Option<&str>) -> Vec<Item> {
    let developer = developer.map(|text| Item::message(Role::Developer, text));
    developer.into_iter().chain([around.item()]).collect()
}

/// Where the model works and under which rules.
pub(crate) struct Surroundings<'a> {
    pub(crate) policy: &'a Policy,
    pub(crate) shell: &'a Path,
    /// Whether anyone can be asked.
    pub(crate) attended: bool,
}

impl Surroundings<'_> {
    /// What is said of them; again, when a resumed conversation goes on in others.
    pub(crate) fn item(&self) -> Item {
        let Self { policy, shell, attended } = self;
        let shell = shell.file_name().map_or_else(|| shell.to_string_lossy(), |name| name.to_string_lossy());
        // A model that waits for a yes, or asks for one with every call, would do so in vain.
        let alone = if *attended {
            ""
        } else {
            "  <approvals>nobody can be asked: what would need approval is refused</approvals>\n"
        };
        let text = format!(
            "<environment_context>\n  <cwd>{}</cwd>\n  <approval_policy>{}</approval_policy>\n{alone}  \
             <sandbox_mode>{}</sandbox_mode>\n  <shell>{shell}</shell>\n</environment_context>",
            policy.cwd.display(),
            policy.approval.name(),
            policy.sandbox.name(),
        );
        Item::message(Role::User, text)
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::{Body, Content};

    use super::*;

    #[test]
    fn a_model_that_nobody_watches_is_told_that_nobody_can_be_asked() {
        let told = |attended| {
            let around = Surroundings { policy: &Policy::default(), shell: Path::new("/bin/sh"), attended };
            match around.item().body {
                Body::Message { content, .. } => Content::join(&content).contains("nobody can be asked"),
                _ => panic!("a message"),
            }
        };
        assert_eq!((told(true), told(false)), (false, true));
    }
}
