//! How a goal is reached: one plan for each, written as if every result were there already.

use super::{
    goal::Goal,
    phrases::{Language, Phrase},
    reading::{Part, Reading},
    run::{Next, Planned, Run},
    words::Word,
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

/// How much is shown of what a project says about itself.
const README_LINES: u64 = 10;

impl Run<'_> {
    /// The answer, or what must happen before there is one.
    pub(super) fn reach(&self, goal: &Goal, reading: &Reading) -> Planned<String> {
        if reading.is_question()
            && let Some(order) = self.order(goal, reading)
        {
            return Err(self.ends(Phrase::Question, &[&order]));
        }
        if goal.acts() && !matches!(goal, Goal::Run { .. } | Goal::Test { .. }) {
            self.order(goal, reading).into_iter().for_each(|order| self.announce(order));
        }
        match goal {
            Goal::Show { files, part } => self.show_all(files, *part),
            Goal::Define { name, show } => self.define(name, *show),
            Goal::FindFiles { scope, name } => self.find_files(scope, name.as_deref()),
            Goal::Rank(rank) => self.rank(rank),
            Goal::Search { texts, scope, want, whole_word } => self.search(texts, scope, *want, *whole_word),
            Goal::List { directory } => self.list(directory.as_deref()),
            Goal::Layout => self.layout(),
            Goal::About => {
                Ok(format!("{}\n\n{}", self.show("README", Part::First(README_LINES))?, self.layout()?))
            }
            Goal::Run { command } => self.unless_idle(reading, &format!("`{command}`"))?.run(command),
            Goal::Test { filter, code } => {
                let tests = self.say(Phrase::TheTests, &[]);
                self.unless_idle(reading, &tests)?.test(filter.as_deref(), *code)
            }
            Goal::CountLines(scope) => self.count_lines(scope),
            Goal::CountFiles(scope) => self.count_files(scope),
            Goal::Compare { one, two } => self.compare(one, two),
            Goal::Status => self.status(),
            Goal::Branches => self.branches(),
            Goal::Log(commits) => self.log(commits),
            Goal::CountCommits { path } => self.count_commits(path.as_deref()),
            Goal::Diff { path } => self.diff(path.as_deref()),
            Goal::ChangesSince(since) => self.changes_since(since),
            Goal::Blame { file, line: Some(line) } => self.blame(file, *line),
            Goal::Blame { file, line: None } => self.authors(Some(file)),
            Goal::Authors => self.authors(None),
            Goal::Create { path, content } => self.unless_forbidden(reading, path)?.create(path, content),
            Goal::Replace { file, old, new } => self.unless_forbidden(reading, file)?.replace(file, old, new),
            Goal::Rename { from, to } => self.unless_forbidden(reading, from)?.rename(from, to),
            Goal::Delete { file } => self.unless_forbidden(reading, file)?.delete(file),
            Goal::Copy { from, to } => self.unless_forbidden(reading, to)?.copy(from, to),
            Goal::Append { file, text } => self.unless_forbidden(reading, file)?.append(file, text),
            Goal::MakeDirectory { path } => self.unless_forbidden(reading, path)?.make_directory(path),
            Goal::DeleteDirectory { name } => self.unless_forbidden(reading, name)?.delete_directory(name),
            Goal::SetValue { file, key, value } => {
                let shown = file.as_deref().unwrap_or(key);
                self.unless_forbidden(reading, shown)?.set_value(file.as_deref(), key, value)
            }
            Goal::Greet => Ok(self.with_abilities(Phrase::Hello)),
            Goal::LeaveAlone { .. } => Ok(self.say(Phrase::LeftAlone, &[])),
            Goal::RunNothing => Ok(self.say(Phrase::NothingRun, &[])),
            Goal::Unaccounted { word, example: (english, chinese) } => {
                let example = if self.language == Language::English { english } else { chinese };
                Err(self.ends(Phrase::Unaccounted, &[word, example]))
            }
            Goal::Say(phrase @ (Phrase::Unclear | Phrase::NeedsModel)) => {
                Err(Next::Decline(self.with_abilities(*phrase)))
            }
            Goal::Say(phrase) => Err(self.ends(*phrase, &[])),
        }
    }

    fn with_abilities(&self, phrase: Phrase) -> String {
        format!("{}\n{}", self.say(phrase, &[]), self.say(Phrase::Abilities, &[]))
    }

    /// What is said comes before what is asked for: *do not change anything* wins over an order to. *Do not run anything*
    /// may mean the same, or commands only.
    fn unless_forbidden(&self, reading: &Reading, name: &str) -> Planned<&Self> {
        match reading {
            Reading { changes_nothing: true, .. } => Err(self.ends(Phrase::ChangesNothing, &[name])),
            Reading { runs_nothing: true, .. } => Err(self.ends(Phrase::Contradiction, &[name])),
            _ => Ok(self),
        }
    }

    /// Nobody can say what a command changes.
    fn unless_idle(&self, reading: &Reading, what: &str) -> Planned<&Self> {
        if reading.changes_nothing { Err(self.ends(Phrase::NotRun, &[what])) } else { Ok(self) }
    }

    /// How to say clearly that something is to be done which does more than look.
    fn order(&self, goal: &Goal, reading: &Reading) -> Option<String> {
        let tests = self.say(Phrase::TheTests, &[]);
        Some(match goal {
            Goal::Delete { file } => self.say(Phrase::OrderDelete, &[file]),
            Goal::Rename { from, to } => self.say(Phrase::OrderRename, &[from, to]),
            Goal::Replace { file, old, new } => self.say(Phrase::OrderReplace, &[old, new, file]),
            Goal::Create { path, .. } => self.say(Phrase::OrderCreate, &[path]),
            Goal::Copy { from, to } => self.say(Phrase::OrderCopy, &[from, to]),
            Goal::Append { file, text } => self.say(Phrase::OrderAppend, &[text, file]),
            Goal::MakeDirectory { path } => self.say(Phrase::OrderMakeDirectory, &[path]),
            Goal::DeleteDirectory { name } => self.say(Phrase::OrderDeleteDirectory, &[name]),
            Goal::SetValue { key, value, .. } => self.say(Phrase::OrderSet, &[key, value]),
            Goal::Run { command } => self.say(Phrase::OrderRun, &[&format!("`{command}`")]),
            // `do the tests pass?` is best answered by running them.
            Goal::Test { .. } if !reading.has(Word::Outcome) => self.say(Phrase::OrderRun, &[&tests]),
            _ => return None,
        })
    }

    /// What a command printed that ended well, or as it may.
    fn command(&self, line: &str, fine: &[i64]) -> Planned<(i64, &str)> {
        let output = self.call("shell_command", &serde_json::json!({"command": line}))?;
        match super::results::command(output) {
            Some((code, printed)) if fine.contains(&code) => Ok((code, printed)),
            Some((_, printed)) => Err(self.failed(printed)),
            None => Err(self.failed(output)),
        }
    }
}

/// A word that the shell takes as it is.
fn quote(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:+,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Rows below a heading.
fn below(heading: String, rows: impl IntoIterator<Item = String>) -> String {
    rows.into_iter().fold(heading, |text, row| text + "\n" + &row)
}

/// A text to be found to the letter, as a regular expression.
fn literal(text: &str) -> String {
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
    use super::*;

    #[test]
    fn words_stay_words_in_a_shell_and_texts_in_a_pattern() {
        assert_eq!(quote("src/a.rs"), "src/a.rs");
        assert_eq!(quote("it's; rm -rf $HOME"), r"'it'\''s; rm -rf $HOME'");
        assert_eq!(quote(""), "''");
        assert_eq!(literal("a.b(c)"), r"a\.b\(c\)");
    }
}
