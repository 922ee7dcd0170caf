//! The commands that begin with `/`. Help and completion come from the one table here.

/// A command of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    Help,
    Model,
    Approvals,
    Sandbox,
    Plan,
    Processes,
    Diff,
    Expand,
    Compact,
    Status,
    Copy,
    Clear,
    New,
    Resume,
    /// Takes the session back to before a message.
    Rewind,
    /// MCP servers.
    Servers,
    /// A command of the program, with these arguments first. The terminal is handed to it.
    Program(&'static [&'static str]),
    Quit,
}

/// One row of the table.
#[derive(Debug)]
pub(crate) struct CommandEntry {
    pub(crate) name: &'static str,
    pub(crate) command: SlashCommand,
    /// One line of the help, with the words that the command takes in capitals.
    pub(crate) help: &'static str,
}

const fn entry(name: &'static str, command: SlashCommand, help: &'static str) -> CommandEntry {
    CommandEntry { name, command, help }
}

/// The argument that stands for the id of this session.
pub(crate) const THIS_SESSION: &str = "{session}";

/// All commands, in groups with their titles. In the help, each is one line of 60 columns.
pub(crate) const COMMAND_GROUPS: &[(&str, &[CommandEntry])] = &[
    (
        "Work",
        &[
            entry("plan", SlashCommand::Plan, "plan mode on or off; REQUEST asks for one; show"),
            entry("diff", SlashCommand::Diff, "show what this session has changed"),
            entry(
                "undo",
                SlashCommand::Program(&["undo", "--session", THIS_SESSION]),
                "take changes back; OPTIONS of `windlass undo`",
            ),
            entry("rewind", SlashCommand::Rewind, "list messages; N goes back, with the files"),
            entry("expand", SlashCommand::Expand, "show the last call in full; N; reasoning"),
            entry("compact", SlashCommand::Compact, "make the context shorter; WHAT to keep"),
            entry(
                "context",
                SlashCommand::Program(&["context", THIS_SESSION]),
                "show what fills the context window",
            ),
            entry("ps", SlashCommand::Processes, "list commands that still run; kill N"),
            entry("copy", SlashCommand::Copy, "copy the last answer to the clipboard"),
            entry("clear", SlashCommand::Clear, "clear the screen, keep the conversation"),
        ],
    ),
    (
        "Settings",
        &[
            entry("model", SlashCommand::Model, "list models; NAME [PROVIDER] changes it"),
            entry("approvals", SlashCommand::Approvals, "list what is allowed; POLICY; revoke ID"),
            entry("sandbox", SlashCommand::Sandbox, "show how commands are confined; MODE"),
            entry(
                "policy",
                SlashCommand::Program(&["policy", "explain"]),
                "explain what would happen to a 'COMMAND'",
            ),
            entry("rules", SlashCommand::Program(&["policy", "rules"]), "list the rules for commands"),
            entry("tools", SlashCommand::Program(&["tools", "list"]), "list the tools"),
            entry("mcp", SlashCommand::Servers, "MCP servers; prompt SERVER/NAME; test NAME"),
        ],
    ),
    (
        "Sessions",
        &[
            entry("new", SlashCommand::New, "begin a new session with the same settings"),
            entry("resume", SlashCommand::Resume, "say how to go on with another session"),
            entry(
                "fork",
                SlashCommand::Program(&["fork", THIS_SESSION]),
                "copy this conversation into a session; --at N",
            ),
            entry("sessions", SlashCommand::Program(&["sessions", "list"]), "list sessions"),
            entry("history", SlashCommand::Program(&["history"]), "list earlier calls"),
            entry("stats", SlashCommand::Program(&["stats"]), "show how tools have worked"),
            entry("status", SlashCommand::Status, "show this session and its tokens"),
            entry(
                "export",
                SlashCommand::Program(&["audit", "export", THIS_SESSION, "--redacted", "--output"]),
                "write this session to FILE, without secrets",
            ),
            entry("help", SlashCommand::Help, "list commands and keys"),
            entry("quit", SlashCommand::Quit, "leave (Ctrl-D)"),
        ],
    ),
];

/// Returns all commands.
pub(crate) fn all() -> impl Iterator<Item = &'static CommandEntry> {
    COMMAND_GROUPS.iter().flat_map(|(_, entries)| *entries)
}

/// The keys, for the help.
pub(crate) const KEYS: &[(&str, &str)] = &[
    ("Enter", "send; to a working model: with its next request"),
    ("Tab", "while the model works: send after this turn"),
    ("Alt-Up", "take back the last message that waits"),
    ("Alt-Enter", "new line; also Shift-Enter, Ctrl-J"),
    ("Up, Down", "earlier messages"),
    ("Ctrl-R", "search earlier messages"),
    ("@", "complete the name of a file; images are sent"),
    ("!command", "run a command in the sandbox yourself"),
    ("Esc", "close the list; cancel the turn"),
    ("Ctrl-C", "cancel the turn or clear; twice: leave"),
    ("Ctrl-T", "show the last call in full"),
    ("Ctrl-G", "write the message in $VISUAL or $EDITOR"),
    ("Ctrl-L", "clear the screen"),
    ("Ctrl-Z", "suspend"),
];

/// Finds a command, and the text after its name.
pub(crate) fn parse(line: &str) -> Option<(SlashCommand, &str)> {
    let rest = line.strip_prefix('/')?;
    let (name, argument) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let found = all().find(|entry| entry.name == name)?;
    Some((found.command, argument.trim()))
}

/// Splits the text after a command into words. Quotes group; there are no escapes.
pub(crate) fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_their_whole_name() {
        assert_eq!(parse("/quit"), Some((SlashCommand::Quit, "")));
        let rules = SlashCommand::Program(&["policy", "explain"]);
        assert_eq!(parse("/policy  rm -r x "), Some((rules, "rm -r x")));
        assert_eq!(parse("/qui"), None);
        assert_eq!(parse("quit"), None);
    }

    #[test]
    fn quotes_group_words() {
        assert_eq!(words("a 'b c'  \"\" d\"e f\""), ["a", "b c", "", "de f"]);
    }
}
