//! Messages that the program writes in the name of the user. They are no requests of a person.

/// The start of the message about the environment.
pub const ENVIRONMENT_START: &str = "<environment_context>";

/// The start of the message about a turn that ended early.
pub const ABORTED_START: &str = "<turn_aborted>\n";

/// The start of the message with the contents of `AGENTS.md`.
pub const DOCUMENTS_START: &str = "# AGENTS.md instructions for ";

/// The start of the message that lists skills.
pub const SKILL_LIST_START: &str = "<skills_instructions>\n";

/// The start of the message with a skill that the user has named.
pub const SKILL_START: &str = "<skill>\n";

/// The start of the message about agents of an earlier run.
pub const AGENTS_START: &str = "<agents>\n";

/// The start of the message with a summary, which takes the place of the earlier conversation.
pub const SUMMARY_START: &str = "<conversation_summary>\n";

/// Returns true for a message that the program wrote.
pub fn is_of_program(text: &str) -> bool {
    let starts = [ENVIRONMENT_START, ABORTED_START, DOCUMENTS_START, SKILL_LIST_START, SKILL_START];
    [AGENTS_START, SUMMARY_START].iter().chain(&starts).any(|start| text.starts_with(start))
}
