//! The judgement of a command before it runs. Plain data; the caller combines it with the approval
//! policy and earlier answers.

use std::fmt;

use serde::Serialize;
use windlass_contract::effects::OutwardEffect;

use crate::{CommandDanger, CommandRule, RuleDecision, UnclearText, wrapper::base_name};

/// The judgement of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Judgement {
    /// The strictest class of its parts, and of the unclear texts.
    pub class: Class,
    /// The reason for the class, in one line.
    pub why: String,
    /// Every program that the command would run, as far as the text shows.
    pub parts: Vec<Part>,
    /// Texts whose meaning is not certain. If there are any, the command may do more than the parts
    /// show.
    pub unclear: Vec<UnclearText>,
    /// Files that its redirections read or write.
    pub files: Vec<FileUse>,
    /// Effects beyond this machine, as far as the text shows.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outward: Vec<OutwardEffect>,
    /// The command is known to change nothing, so that it may run beside others.
    pub changes_nothing: bool,
    /// A rule lets it run outside the sandbox.
    pub escape_sandbox: bool,
    /// The argument vector, with the file of the program, if the command may leave the sandbox. It
    /// runs without a shell.
    #[serde(skip)]
    pub direct_argv: Option<Vec<String>>,
    /// A rule of an earlier version let all of the command leave the sandbox, with any words after
    /// it. A person is asked again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks_to_leave_again: bool,
}

/// The class of a command, mildest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Known to be harmless, or allowed by a rule: no question.
    Safe,
    /// Anything else: the approval policy decides whether to ask.
    Ordinary,
    /// Destroys, publishes or gives away data, or a rule demands a question: always asked about.
    Dangerous,
    /// Refused, by a rule or because no agent should ever do it.
    Forbidden,
}

/// One program that would be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// Its words: if nothing is unclear, exactly those it would get. A wildcard is shown as
    /// written.
    pub argv: Vec<String>,
    /// The wrappers around it, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub via: Vec<String>,
    /// The class of this program.
    pub class: Class,
    /// The reason for the class.
    pub reason: Reason,
    /// Further facts: variables, redirections, wildcards.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<String>,
}

/// The reason for the class of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum Reason {
    /// It is on the list of harmless commands.
    Known,
    /// It only runs the part after it, which decides the class.
    Wrapper,
    /// A rule decides.
    Rule(CommandRule),
    /// It is dangerous.
    Danger(CommandDanger),
    /// It is not known to be harmless.
    NotKnown {
        /// The obstacle.
        why: String,
    },
}

/// A file that a redirection reads or writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileUse {
    /// Its path, as written.
    pub path: String,
    /// The kind of access.
    pub access: FileAccess,
    /// The path is certain.
    pub clear: bool,
}

/// The access of a redirection to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// The file is read.
    Read,
    /// The file is created or overwritten.
    Write,
    /// The file is created or appended to.
    Append,
}

/// Programs that delete the files they are given.
const DELETING_PROGRAMS: &[&str] = &["rm", "rmdir", "unlink", "shred"];

impl Judgement {
    /// Returns the program that makes the command dangerous, if one does.
    pub fn cause(&self) -> Option<&Part> {
        strictest(&self.parts).filter(|part| part.class >= Class::Dangerous && part.class == self.class)
    }

    /// Returns the files that redirections write, as written, each once.
    pub fn written_files(&self) -> Vec<String> {
        let written = self.files.iter().filter(|file| file.access != FileAccess::Read);
        each_once(written.map(|file| &file.path))
    }

    /// Returns the files that programs such as `rm` delete, as written, each once.
    pub fn deleted_files(&self) -> Vec<String> {
        each_once(self.parts.iter().flat_map(|part| deleted_by(&part.argv)))
    }
}

/// Returns the part that decides the class of a command: the first of the strictest ones. A program
/// that only runs another one explains nothing by itself.
pub(crate) fn strictest(parts: &[Part]) -> Option<&Part> {
    parts.iter().rev().max_by_key(|part| (part.class, part.reason != Reason::Wrapper))
}

fn deleted_by(argv: &[String]) -> Vec<&String> {
    let Some((program, words)) = argv.split_first() else { return Vec::new() };
    if !DELETING_PROGRAMS.contains(&base_name(program)) {
        return Vec::new();
    }
    let options_end = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let is_file = |(at, word): &(usize, &String)| {
        if *at < options_end { !word.starts_with('-') } else { *at > options_end }
    };
    words.iter().enumerate().filter(is_file).map(|(_, word)| word).collect()
}

fn each_once<'a>(texts: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text.clone());
        }
    }
    seen
}

impl Class {
    /// Returns the name used in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::Ordinary => "ordinary",
            Self::Dangerous => "dangerous",
            Self::Forbidden => "forbidden",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Known => f.write_str("on the list of harmless commands"),
            Self::Wrapper => f.write_str("as what it runs"),
            Self::Rule(rule) if rule.leaves_with_any_words() => write!(
                f,
                "the rule `{}` (`{}`, line {}) let any words follow outside the sandbox, so it is asked about again",
                rule.shown(),
                rule.file,
                rule.line
            ),
            Self::Rule(rule) => {
                let says = match rule.decision {
                    RuleDecision::Allow => "allowed",
                    RuleDecision::Ask => "to be asked about",
                    RuleDecision::Forbid => "forbidden",
                };
                write!(f, "{says} by the rule `{}` (`{}`, line {})", rule.shown(), rule.file, rule.line)?;
                rule.justification.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
            }
            Self::Danger(danger) => {
                f.write_str(&danger.what)?;
                danger.instead.as_ref().map_or(Ok(()), |way| write!(f, "; safer: {way}"))
            }
            Self::NotKnown { why } => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use windlass_contract::effects::CommandLine;

    use super::*;
    use crate::{Rules, judge};

    fn judged(line: &str) -> Judgement {
        let argv = ["bash", "-c", line].map(str::to_owned).to_vec();
        judge(&CommandLine { argv, cwd: None }, &Rules::default())
    }

    #[test]
    fn the_dangerous_program_of_a_command_is_its_cause() {
        let cause = |line| judged(line).cause().map(|part| part.argv.join(" "));
        assert_eq!(cause("echo > out/a.txt && rm -rf build").as_deref(), Some("rm -rf build"));
        assert_eq!(cause("ls; sudo rm -rf build").as_deref(), Some("rm -rf build"));
        assert_eq!(cause("make && make install"), None);
    }

    #[test]
    fn written_and_deleted_files_are_known_from_the_text() {
        let judged =
            judged("echo a > out/a.txt 2>/dev/null; date >> log; rm -rf build -- -x build; cat < in");
        assert_eq!(judged.written_files(), ["out/a.txt", "log"]);
        assert_eq!(judged.deleted_files(), ["build", "-x"]);
    }
}
