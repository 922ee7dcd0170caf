//! Plans that reach a goal. Each is written as if all results were already there.

use super::{
    goal::PlanGoal,
    parsed_request::{LineSelection, ParsedRequest},
    phrases::{AnswerLanguage, AnswerPhrase},
    run::{NextAction, PlanResult, PlanRun},
    words::WordClass,
};

mod change;
mod command;
mod count;
mod find;
mod git;
mod layout;
mod search;
mod show;
mod value;

/// Maximum number of lines of the README that are shown.
const README_LINES: u64 = 10;

impl PlanRun<'_> {
    /// Returns the answer, or the action that must come first.
    pub(super) fn reach(&self, goal: &PlanGoal, request: &ParsedRequest) -> PlanResult<String> {
        if request.is_question()
            && let Some(order) = self.order(goal, request)
        {
            return Err(self.decline(AnswerPhrase::Question, &[&order]));
        }
        if goal.acts() && !matches!(goal, PlanGoal::Run { .. } | PlanGoal::Test { .. }) {
            self.order(goal, request).into_iter().for_each(|order| self.announce(order));
        }
        match goal {
            PlanGoal::Show { files, part } => self.show_all(files, *part),
            PlanGoal::Define { name, show } => self.define(name, *show),
            PlanGoal::FindFiles { scope, name } => self.find_files(scope, name.as_deref()),
            PlanGoal::Rank(rank) => self.rank(rank),
            PlanGoal::Search { texts, scope, want, whole_word } => {
                self.search(texts, scope, *want, *whole_word)
            }
            PlanGoal::List { directory } => self.list(directory.as_deref()),
            PlanGoal::Layout => self.layout(),
            PlanGoal::About => Ok(format!(
                "{}\n\n{}",
                self.show("README", LineSelection::First(README_LINES))?,
                self.layout()?
            )),
            PlanGoal::Run { command } => {
                self.unless_read_only(request, &format!("`{command}`"))?.run(command)
            }
            PlanGoal::Test { filter, code } => {
                let tests = self.say(AnswerPhrase::TheTests, &[]);
                self.unless_read_only(request, &tests)?.test(filter.as_deref(), *code)
            }
            PlanGoal::CountLines(scope) => self.count_lines(scope),
            PlanGoal::CountFiles(scope) => self.count_files(scope),
            PlanGoal::Compare { one, two } => self.compare(one, two),
            PlanGoal::Status => self.status(),
            PlanGoal::Branches => self.branches(),
            PlanGoal::Log(commits) => self.log(commits),
            PlanGoal::CountCommits { path } => self.count_commits(path.as_deref()),
            PlanGoal::Diff { path } => self.diff(path.as_deref()),
            PlanGoal::ChangesSince(since) => self.changes_since(since),
            PlanGoal::Blame { file, line: Some(line) } => self.blame(file, *line),
            PlanGoal::Blame { file, line: None } => self.authors(Some(file)),
            PlanGoal::Authors => self.authors(None),
            PlanGoal::Create { path, content } => self.unless_forbidden(request, path)?.create(path, content),
            PlanGoal::Replace { file, old, new } => {
                self.unless_forbidden(request, file)?.replace(file, old, new)
            }
            PlanGoal::Rename { from, to } => self.unless_forbidden(request, from)?.rename(from, to),
            PlanGoal::Delete { file } => self.unless_forbidden(request, file)?.delete(file),
            PlanGoal::Copy { from, to } => self.unless_forbidden(request, to)?.copy(from, to),
            PlanGoal::Append { file, text } => self.unless_forbidden(request, file)?.append(file, text),
            PlanGoal::MakeDirectory { path } => self.unless_forbidden(request, path)?.make_directory(path),
            PlanGoal::DeleteDirectory { name } => {
                self.unless_forbidden(request, name)?.delete_directory(name)
            }
            PlanGoal::SetValue { file, key, value } => {
                let shown = file.as_deref().unwrap_or(key);
                self.unless_forbidden(request, shown)?.set_value(file.as_deref(), key, value)
            }
            PlanGoal::Greet => Ok(self.with_abilities(AnswerPhrase::Hello)),
            PlanGoal::LeaveAlone { .. } => Ok(self.say(AnswerPhrase::LeftAlone, &[])),
            PlanGoal::RunNothing => Ok(self.say(AnswerPhrase::NothingRun, &[])),
            PlanGoal::Unaccounted { word, example: (english, chinese) } => {
                let example = if self.language == AnswerLanguage::English { english } else { chinese };
                Err(self.decline(AnswerPhrase::Unaccounted, &[word, example]))
            }
            PlanGoal::Say(phrase @ (AnswerPhrase::Unclear | AnswerPhrase::NeedsModel)) => {
                Err(NextAction::Decline(self.with_abilities(*phrase)))
            }
            PlanGoal::Say(phrase) => Err(self.decline(*phrase, &[])),
        }
    }

    fn with_abilities(&self, phrase: AnswerPhrase) -> String {
        format!("{}\n{}", self.say(phrase, &[]), self.say(AnswerPhrase::Abilities, &[]))
    }

    /// Declines if the request forbids changes: *do not change anything* wins over an order. *Do
    /// not run anything* may mean all changes or only commands, so it is declined too.
    fn unless_forbidden(&self, request: &ParsedRequest, name: &str) -> PlanResult<&Self> {
        match request {
            ParsedRequest { changes_nothing: true, .. } => {
                Err(self.decline(AnswerPhrase::ChangesNothing, &[name]))
            }
            ParsedRequest { runs_nothing: true, .. } => {
                Err(self.decline(AnswerPhrase::Contradiction, &[name]))
            }
            _ => Ok(self),
        }
    }

    /// Declines if the request forbids changes, as the effects of a command are unknown.
    fn unless_read_only(&self, request: &ParsedRequest, what: &str) -> PlanResult<&Self> {
        if request.changes_nothing { Err(self.decline(AnswerPhrase::NotRun, &[what])) } else { Ok(self) }
    }

    /// Returns an unambiguous order for a goal that does more than read.
    fn order(&self, goal: &PlanGoal, request: &ParsedRequest) -> Option<String> {
        let tests = self.say(AnswerPhrase::TheTests, &[]);
        Some(match goal {
            PlanGoal::Delete { file } => self.say(AnswerPhrase::OrderDelete, &[file]),
            PlanGoal::Rename { from, to } => self.say(AnswerPhrase::OrderRename, &[from, to]),
            PlanGoal::Replace { file, old, new } => self.say(AnswerPhrase::OrderReplace, &[old, new, file]),
            PlanGoal::Create { path, .. } => self.say(AnswerPhrase::OrderCreate, &[path]),
            PlanGoal::Copy { from, to } => self.say(AnswerPhrase::OrderCopy, &[from, to]),
            PlanGoal::Append { file, text } => self.say(AnswerPhrase::OrderAppend, &[text, file]),
            PlanGoal::MakeDirectory { path } => self.say(AnswerPhrase::OrderMakeDirectory, &[path]),
            PlanGoal::DeleteDirectory { name } => self.say(AnswerPhrase::OrderDeleteDirectory, &[name]),
            PlanGoal::SetValue { key, value, .. } => self.say(AnswerPhrase::OrderSet, &[key, value]),
            PlanGoal::Run { command } => self.say(AnswerPhrase::OrderRun, &[&format!("`{command}`")]),
            // `do the tests pass?` is best answered by running them.
            PlanGoal::Test { .. } if !request.has(WordClass::Outcome) => {
                self.say(AnswerPhrase::OrderRun, &[&tests])
            }
            _ => return None,
        })
    }

    /// Runs a command. Returns its output if the exit code is one of `fine`.
    fn command(&self, line: &str, fine: &[i64]) -> PlanResult<(i64, &str)> {
        let output = self.call("shell_command", &serde_json::json!({"command": line}))?;
        match super::results::command(output) {
            Some((code, printed)) if fine.contains(&code) => Ok((code, printed)),
            Some((_, printed)) => Err(self.failed(printed)),
            None => Err(self.failed(output)),
        }
    }
}

/// Appends rows to a heading.
fn with_rows(heading: String, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(heading, |text, row| text + "\n" + &row)
}

/// Escapes a text for a regular expression.
fn escape_regex(text: &str) -> String {
    text.chars().fold(String::new(), |mut pattern, c| {
        if r"\.+*?()|[]{}^$#&-~".contains(c) {
            pattern.push('\\');
        }
        pattern.push(c);
        pattern
    })
}

#[cfg(test)]
mod tests {
    use windlass_contract::wording::shell_quote;

    use super::*;

    #[test]
    fn words_stay_words_in_a_shell_and_texts_in_a_pattern() {
        assert_eq!(shell_quote("src/a.rs"), "src/a.rs");
        assert_eq!(shell_quote("it's; rm -rf $HOME"), r"'it'\''s; rm -rf $HOME'");
        assert_eq!(shell_quote(""), "''");
        assert_eq!(escape_regex("a.b(c)"), r"a\.b\(c\)");
    }
}
