//! `windlass sessions search`: finds sessions by the text of prompts and answers.

use std::ops::ControlFlow;

use serde_json::json;
use windlass::{
    Role,
    clean::Secrets,
    record::{self, SessionEntry},
};

use super::failed;
use crate::{
    args::SearchOptions,
    calls::{one_line, when},
    exit::ProgramExit,
    ids,
    output::print,
    problem::CliProblem,
    setup::ProgramSetup,
    table::{LastColumn, TextTable},
    wrap,
};

/// Part of the terminal's width that may be shown before a match. Most of it are other columns.
const BEFORE_DIVISOR: usize = 8;

/// A session with the first line that matches.
struct SessionMatch {
    entry: SessionEntry,
    role: Role,
    line: String,
}

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, args: &SearchOptions) -> Result<ProgramExit, CliProblem> {
    let words = SearchWords::new(&args.words)?;
    let names = ids::names(setup)?;
    let entries = record::list(&setup.home).map_err(|error| failed(&error))?;
    let all: Vec<_> = entries.iter().map(|entry| entry.id.to_string()).collect();
    let found = found(entries, &words, args.limit, &setup.secrets())?;
    if args.json {
        let lines = found.iter().map(|found| {
            let SessionMatch { entry, role, line } = found;
            let line = json!({
                "id": entry.id,
                "name": names.get(&entry.id),
                "started": entry.started.to_string(),
                "cwd": entry.cwd,
                "role": role,
                "line": line,
            });
            format!("{line}\n")
        });
        print(&lines.collect::<String>())?;
    } else if found.is_empty() {
        crate::note("no session has these words in a prompt or an answer");
    } else {
        let excerpt = |line: &str| match wrap::stdout_columns() {
            Some(columns) => words.excerpt(line, columns / BEFORE_DIVISOR),
            None => line.to_owned(),
        };
        let rows = found.iter().map(|found| {
            let id = ids::shown(found.entry.id.as_str(), all.iter().map(String::as_str));
            let role = if found.role == Role::User { "you" } else { "model" };
            let name = names.get(&found.entry.id).map(one_line).unwrap_or_default();
            [id, when(found.entry.started), name, role.to_owned(), excerpt(&one_line(&found.line))]
        });
        let titles = ["SESSION", "TIME", "NAME", "BY", "LINE"];
        let expendable = &["NAME", "TIME"];
        print(&TextTable { titles, expendable, last: LastColumn::Cut, rows: rows.collect() }.text())?;
    }
    Ok(if found.is_empty() { ProgramExit::Failed } else { ProgramExit::Done })
}

fn found(
    entries: Vec<SessionEntry>,
    words: &SearchWords,
    limit: usize,
    secrets: &Secrets,
) -> Result<Vec<SessionMatch>, CliProblem> {
    let mut found = Vec::new();
    for entry in entries {
        if found.len() >= limit {
            break;
        }
        let mut hit = None;
        let see = |role: Role, text: String| {
            // Search only the text that would be shown: otherwise a secret could be guessed letter
            // by letter.
            match words.matching_line(&secrets.clean(&text)) {
                Some(line) => {
                    hit = Some((role, line));
                    ControlFlow::Break(())
                }
                None => ControlFlow::Continue(()),
            }
        };
        record::for_each_message(&entry.path, &|line| words.may_match(line), see)
            .map_err(|error| failed(&error))?;
        found.extend(hit.map(|(role, line)| SessionMatch { entry, role, line }));
    }
    Ok(found)
}

/// The words of a search, in lower case.
struct SearchWords(Vec<String>);

impl SearchWords {
    fn new(words: &[String]) -> Result<Self, CliProblem> {
        let words: Vec<_> =
            words.iter().flat_map(|words| words.split_whitespace()).map(str::to_lowercase).collect();
        if words.is_empty() {
            return Err(CliProblem::usage("nothing to search for; give one or more words"));
        }
        Ok(Self(words))
    }

    /// Returns false only if a line of a session file cannot match, without parsing it.
    fn may_match(&self, line: &[u8]) -> bool {
        self.0.iter().all(|word| {
            // JSON writes these in another way.
            let is_escaped = |character: char| character.is_control() || "\"\\/".contains(character);
            let is_cased =
                |character: char| !character.is_ascii() && character.is_alphabetic() && is_in_case(character);
            word.chars().any(|character| is_escaped(character) || is_cased(character))
                || contains(line, word.as_bytes())
        })
    }

    /// Returns the line of a message to show, if the message has all words.
    fn matching_line(&self, text: &str) -> Option<String> {
        let lower = text.to_lowercase();
        if !self.0.iter().all(|word| lower.contains(word)) {
            return None;
        }
        let count = |line: &&str| {
            let line = line.to_lowercase();
            self.0.iter().filter(|word| line.contains(word.as_str())).count()
        };
        // The first of those with the most words.
        text.lines().rev().max_by_key(count).map(str::to_owned)
    }

    /// Returns a line from at most so many columns before the first match.
    fn excerpt(&self, line: &str, max_before: usize) -> String {
        let lower: String = line.chars().map(lower).collect();
        let first = self.0.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
        let count = lower.get(..first).map_or(0, |before| before.chars().count());
        let end = line.char_indices().nth(count).map_or(line.len(), |(at, _)| at);
        let mut room = max_before;
        let fits = |(at, character): &(usize, char)| {
            let columns = wrap::width(&line[*at..*at + character.len_utf8()]);
            room.checked_sub(columns).map(|left| room = left).is_some()
        };
        let before = line[..end].char_indices().rev().take_while(fits);
        let start = before.last().map_or(end, |(at, _)| at);
        if start == 0 {
            return line.to_owned();
        }
        let word = line[start..end].find(' ').map_or(start, |blank| start + blank + 1);
        format!("…{}", &line[word..])
    }
}

/// Returns the lower case of a character, if that is one character.
fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => character,
    }
}

/// Returns true if a character has another case.
fn is_in_case(character: char) -> bool {
    character.to_uppercase().ne(character.to_lowercase())
}

/// Returns true if a line contains a word, in either case of ASCII letters.
fn contains(line: &[u8], word: &[u8]) -> bool {
    let Some(first) = word.first() else { return true };
    let either = [first.to_ascii_lowercase(), first.to_ascii_uppercase()];
    line.windows(word.len()).any(|part| either.contains(&part[0]) && part.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> SearchWords {
        SearchWords::new(&[text.to_owned()]).unwrap()
    }

    #[test]
    fn all_words_must_be_in_a_message_and_its_best_line_is_shown() {
        let text = "Parser first.\nThe PARSER fails on tabs.\nTabs.";
        assert_eq!(words("tabs parser").matching_line(text).as_deref(), Some("The PARSER fails on tabs."));
        assert_eq!(words("parser spaces").matching_line(text), None);
        assert_eq!(words("ÜBER").matching_line("über alles").as_deref(), Some("über alles"));
        assert!(SearchWords::new(&[" ".to_owned()]).is_err());
    }

    #[test]
    fn a_line_is_only_left_out_if_it_cannot_match() {
        let line = |text: &str| json!({"text": text}).to_string().into_bytes();
        for (text, word) in
            [("say \"hi\"", "\"hi\""), ("ÜBER", "über"), ("a/b", "a/b"), ("汉字", "汉"), ("Tab", "tab")]
        {
            assert!(words(word).may_match(&line(text)), "{text} {word}");
        }
        assert!(!words("汉").may_match(&line("字")) && !words("tab").may_match(&line("ta b")));
    }

    #[test]
    fn an_excerpt_shows_the_match() {
        let line = format!("{} needle and more", "word ".repeat(20).trim_end());
        let excerpt = words("NEEDLE").excerpt(&line, 15);
        assert!(excerpt.starts_with("…word word") && excerpt.ends_with("needle and more"), "{excerpt}");
        assert!(excerpt.find("needle").unwrap() < 20, "{excerpt}");
        assert_eq!(words("x").excerpt("x first", 15), "x first");
    }
}
