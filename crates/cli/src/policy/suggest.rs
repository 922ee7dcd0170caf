//! `windlass policy suggest`: suggests rules from approved commands.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
};

use serde::Deserialize;
use serde_json::json;
use windlass::{
    CommandLine, Effects, Offer, Reach, Rulebook,
    policy::{RuleMatch, RuleSuggestion, suggest},
    record::{self, ThreadFolder},
};

use super::{
    answers::{RuleWriter, user_directory},
    files,
};
use crate::{
    args::SuggestOptions,
    confirm::agrees,
    exit::ProgramExit,
    ids,
    output::print,
    problem::CliProblem,
    screen::{visible, visible_path},
    setup::ProgramSetup,
    wrap,
};

/// Maximum number of sessions, and of files of calls outside of any, that are read, newest first.
const MAX_SESSIONS: usize = 100;

/// Maximum size of a record that is read. A command is never longer.
const MAX_LINE_BYTES: u64 = 1024 * 1024;

/// Commands in session files.
#[derive(Default)]
struct RecordedCommands {
    approved: Vec<CommandLine>,
    all: Vec<CommandLine>,
}

pub(super) fn run(setup: &ProgramSetup, wanted: &SuggestOptions) -> Result<ProgramExit, CliProblem> {
    let recorded = recorded(setup, wanted.session.as_deref())?;
    let suggestions = new_ones(setup, suggest(&recorded.approved, &recorded.all))?;
    let shown = match &suggestions[..] {
        suggestions if wanted.json => format!("{:#}\n", json!(suggestions)),
        [] if recorded.approved.is_empty() => "no approvals are on record yet\n".to_owned(),
        [] => "no rule would have avoided a question\n".to_owned(),
        suggestions if wanted.write => suggestions.iter().map(described).collect(),
        suggestions => suggestions.iter().map(described).chain([hint()]).collect(),
    };
    if wanted.json {
        print(&shown)?;
    } else {
        print(&with_wrapped_comments(&shown))?;
    }
    if wanted.write && !suggestions.is_empty() {
        return write(setup, &suggestions, wanted.yes);
    }
    Ok(ProgramExit::Done)
}

/// Wraps the comments for a terminal. Rules stay as they are, because they may be copied.
fn with_wrapped_comments(text: &str) -> String {
    let Some(columns) = wrap::stdout_columns() else { return text.to_owned() };
    let wrapped = |line: &str| {
        if line.starts_with('#') || !line.contains(" = ") {
            wrap::wrap_text(line, columns)
        } else {
            line.to_owned()
        }
    };
    text.split_inclusive('\n').map(wrapped).collect()
}

/// Adds the suggestions to the user's rules, if the user agrees.
fn write(
    setup: &ProgramSetup,
    suggestions: &[RuleSuggestion],
    agreed: bool,
) -> Result<ProgramExit, CliProblem> {
    if !agreed && !agrees("Add them to your rules? [y/N] ", "pass `--yes` to add them")? {
        crate::note("nothing was written");
        return Ok(ProgramExit::Refused);
    }
    let answers = RuleWriter::new(&setup.home, &setup.cwd);
    for suggestion in suggestions {
        let offer = Offer { toml: suggestion.to_toml(), allows: suggestion.explanation.clone() };
        answers.keep(Reach::Everywhere, &offer).map_err(CliProblem::failed)?;
    }
    crate::note(&format!("added to the rules in {}", visible_path(&user_directory(&setup.home))));
    Ok(ProgramExit::Done)
}

/// Reads the commands of the chosen sessions, and of calls outside of any.
fn recorded(setup: &ProgramSetup, session: Option<&str>) -> Result<RecordedCommands, CliProblem> {
    let list =
        |folder| record::list_in(&setup.home, folder).map_err(|error| CliProblem::failed(error.to_string()));
    let (sessions, calls) = (list(ThreadFolder::Sessions)?, list(ThreadFolder::Calls)?);
    let chosen: Vec<_> = match session {
        Some(name) => {
            let session = ids::session(setup, name)?.id;
            sessions.iter().filter(|entry| entry.id == session).collect()
        }
        None => sessions.iter().take(MAX_SESSIONS).chain(calls.iter().take(MAX_SESSIONS)).collect(),
    };
    let mut recorded = RecordedCommands::default();
    for entry in chosen {
        let read = File::open(&entry.path).and_then(|file| recorded.read(BufReader::new(file)));
        read.map_err(|error| CliProblem::file("cannot read the session", &entry.path, &error))?;
    }
    Ok(recorded)
}

/// Returns the suggestions that the rules in force do not cover yet.
fn new_ones(
    setup: &ProgramSetup,
    suggestions: Vec<RuleSuggestion>,
) -> Result<Vec<RuleSuggestion>, CliProblem> {
    let rules = files::rules(setup)?;
    let covered = |suggestion: &RuleSuggestion| {
        rules.iter().any(|rule| match &rule.matches {
            RuleMatch::Prefix(prefix) => {
                prefix.len() <= suggestion.prefix.len()
                    && prefix.iter().zip(&suggestion.prefix).all(|(names, word)| names.contains(word))
            }
            RuleMatch::Argv(_) | RuleMatch::Effect(_) => false,
        })
    };
    Ok(suggestions.into_iter().filter(|suggestion| !covered(suggestion)).collect())
}

impl RecordedCommands {
    /// Reads the commands of a session file. A malformed record is not an approval.
    fn read(&mut self, mut file: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            if file.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            self.take(&line);
        }
    }

    fn take(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct RecordLine {
            #[serde(rename = "type")]
            kind: String,
            payload: IntentLine,
        }
        #[derive(Deserialize)]
        struct IntentLine {
            effects: Effects,
            decision: String,
        }
        let Ok(record) = serde_json::from_slice::<RecordLine>(line) else { return };
        let Some(command) = record.payload.effects.command.filter(|_| record.kind == "intent") else {
            return;
        };
        if record.payload.decision.starts_with("approved") {
            self.approved.push(command.clone());
        }
        self.all.push(command);
    }
}

fn described(suggestion: &RuleSuggestion) -> String {
    let list = |title: &str, lines: &[String]| {
        let lines: String = lines.iter().map(|line| format!("#   {}\n", visible(line))).collect();
        if lines.is_empty() { String::new() } else { format!("# {title}\n{lines}") }
    };
    format!(
        "{}{}# It allows {}.\n{}\n",
        list("It covers these approved commands:", &suggestion.covers),
        list("It would also have allowed:", &suggestion.also),
        visible(&suggestion.explanation),
        suggestion.to_toml()
    )
}

fn hint() -> String {
    "# Add them with `windlass policy suggest --write`, or put those you want into your rules.\n".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approvals_are_taken_from_a_session_file() {
        let intent = |decision: &str, line: &str| {
            json!({"timestamp": "t", "type": "intent", "payload": {
                "call": "c", "tool": "shell_command", "decision": decision,
                "effects": {"command": {"argv": ["/bin/bash", "-c", line]}},
            }})
        };
        let file = [
            json!({"type": "session_meta", "payload": {}}).to_string(),
            intent("approved once", "cargo test -p a").to_string(),
            "torn".to_owned(),
            intent("the sandbox mode is `danger-full-access`", "cargo test -p b").to_string(),
        ]
        .join("\n");
        let mut recorded = RecordedCommands::default();
        recorded.read(file.as_bytes()).unwrap();
        assert_eq!((recorded.approved.len(), recorded.all.len()), (1, 2));
        let suggestions = suggest(&recorded.approved, &recorded.all);
        assert_eq!(
            suggestions.iter().map(described).collect::<String>(),
            "# It covers these approved commands:\n#   cargo test -p a\n# It allows every command that begins with \
             `cargo test -p a`, whatever words follow.\n[[rule]]\nprefix = [\"cargo\", \"test\", \"-p\", \"a\"]\n\
             decision = \"allow\"\nmatch = [\"cargo test -p a\"]\n\n"
        );
    }
}
