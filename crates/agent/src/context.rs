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
pub(crate) fn opening(policy: &Policy, shell: &Path, developer: Option<&str>) -> Vec<Item> {
    let developer = developer.map(|text| Item::message(Role::Developer, text));
    developer.into_iter().chain([surroundings(policy, shell)]).collect()
}

/// Where the model works and under which rules; said again when a resumed conversation goes on under others.
pub(crate) fn surroundings(policy: &Policy, shell: &Path) -> Item {
    let shell = shell.file_name().map_or_else(|| shell.to_string_lossy(), |name| name.to_string_lossy());
    let text = format!(
        "<environment_context>\n  <cwd>{}</cwd>\n  <approval_policy>{}</approval_policy>\n  \
         <sandbox_mode>{}</sandbox_mode>\n  <shell>{shell}</shell>\n</environment_context>",
        policy.cwd.display(),
        policy.approval.name(),
        policy.sandbox.name(),
    );
    Item::message(Role::User, text)
}
