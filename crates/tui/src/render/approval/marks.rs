//! Finds the dangerous and unclear parts of a command that the policy names in its reasons.

use ratatui::{style::Style, text::Span};
use windlass::{Question, shortened};

use super::subject::ApprovalSubject;
use crate::render::{
    Theme,
    visible::{count_blanks, escapes, visible_command},
};

/// Maximum number of parts that are marked.
const MAX_PARTS: usize = 8;

/// Maximum number of characters of the dangerous part that are searched.
const MAX_CAUSE_CHARS: usize = 400;

/// Maximum number of blanks in a row of a reason; longer runs are counted instead of shown.
const MAX_BLANKS: usize = 8;

/// The parts of a command that a person should look at. The policy writes them between backquotes.
pub(super) struct DoubtfulParts {
    parts: Vec<String>,
}

impl DoubtfulParts {
    /// Collects the dangerous part of a command, the parts that a reason quotes and that occur in
    /// its text, and the characters of the subject that are not shown as themselves.
    pub(super) fn from_question(question: &Question, subject: &ApprovalSubject) -> Self {
        let text = &subject.text;
        let lines: Vec<_> = text.split('\n').map(visible_command).collect();
        let cause = find_words(text, &question.details.cause).unwrap_or_default();
        let cause = cause.split('\n').map(str::trim).filter(|line| !line.is_empty());
        let mut parts: Vec<String> =
            cause.take(MAX_PARTS).map(|line| visible_command(line).into_owned()).collect();
        for reason in question.unclear.iter().chain([&question.reason]) {
            let quoted = reason.split('`').skip(1).step_by(2);
            for part in quoted.flat_map(|part| part.split("\\n")).map(str::trim) {
                let part = visible_command(part).into_owned();
                let is_new = !part.is_empty() && !parts.contains(&part);
                if is_new
                    && parts.len() < MAX_PARTS
                    && lines.iter().any(|line| find_part(line, &part, 0).is_some())
                {
                    parts.push(part);
                }
            }
        }
        let escapes = [escapes(text), escapes(&subject.change)].concat();
        let escapes = escapes.into_iter().filter(|escape| !parts.contains(escape));
        let escapes: Vec<_> = escapes.take(MAX_PARTS).collect();
        parts.extend(escapes);
        Self { parts }
    }

    /// Returns the parts, escaped.
    pub(super) fn found(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(String::as_str)
    }

    /// Returns a line of the subject, escaped already, with its doubtful parts marked.
    pub(super) fn mark(&self, line: &str, style: Style, theme: &Theme) -> Vec<Span<'static>> {
        // The next place of each part is kept: searching all parts again at each place would take
        // time that grows with the square of the line.
        let first = |part: &String| find_part(line, part, 0);
        let mut next: Vec<_> = self.parts.iter().map(|part| (part.as_str(), first(part))).collect();
        let (mut spans, mut done) = (Vec::new(), 0);
        while let Some((begin, end)) = first_place(&next) {
            spans.push(Span::styled(line[done..begin].to_owned(), style));
            spans.push(Span::styled(line[begin..end].to_owned(), theme.danger));
            done = end;
            for (part, place) in next.iter_mut().filter(|(_, place)| place.is_some_and(|at| at < end)) {
                *place = find_part(line, part, end);
            }
        }
        spans.push(Span::styled(line[done..].to_owned(), style));
        spans
    }
}

/// Returns the first place of a text where a program is started with these words. Quotes and
/// backslashes do not count, because the words are those that the program gets.
fn find_words<'a>(text: &'a str, words: &[String]) -> Option<&'a str> {
    let is_quote = |c: &char| matches!(c, '\'' | '"' | '\\');
    let joined = words.join(" ");
    let wanted: Vec<_> = joined.chars().filter(|c| !is_quote(c)).take(MAX_CAUSE_CHARS).collect();
    let first: String = wanted.iter().take_while(|c| !c.is_whitespace()).collect();
    if first.is_empty() {
        return None;
    }
    let length_at = |begin: usize| {
        let mut chars = text[begin..].char_indices().filter(|(_, c)| !is_quote(c)).peekable();
        let mut end = 0;
        for wanted in &wanted {
            let (at, c) = chars.next()?;
            if wanted.is_whitespace() && c.is_whitespace() {
                while chars.next_if(|(_, c)| c.is_whitespace()).is_some() {}
            } else if c != *wanted {
                return None;
            }
            end = at + c.len_utf8();
        }
        // The quote that ends the last word belongs to it.
        let quotes = text[begin + end..].chars().take_while(|c| matches!(c, '\'' | '"')).count();
        Some(end + quotes)
    };
    let mut begins = text.match_indices(&first).map(|(at, _)| at);
    begins.find_map(|begin| {
        let part = &text[begin..begin + length_at(begin)?];
        is_whole(text, begin, part).then_some(part)
    })
}

/// Returns the next place of a part that is not only a piece of a longer word: `sh` is not in
/// `install.sh`.
fn find_part(line: &str, part: &str, begin: usize) -> Option<usize> {
    line[begin..].match_indices(part).map(|(at, _)| begin + at).find(|at| is_whole(line, *at, part))
}

/// Returns true if a part at a place of a line does not begin or end in a word.
fn is_whole(line: &str, at: usize, part: &str) -> bool {
    let belongs = |c: char| c.is_alphanumeric() || "_-./".contains(c);
    let is_cut = |inside: Option<char>, outside: Option<char>| {
        inside.is_some_and(char::is_alphanumeric) && outside.is_some_and(belongs)
    };
    let before = line[..at].chars().next_back();
    let after = line[at + part.len()..].chars().next();
    !is_cut(part.chars().next(), before) && !is_cut(part.chars().next_back(), after)
}

/// Returns the first place of any part, the longest if several begin there.
fn first_place(next: &[(&str, Option<usize>)]) -> Option<(usize, usize)> {
    let places = next.iter().filter_map(|(part, place)| place.map(|at| (at, at + part.len())));
    places.min_by_key(|(begin, end)| (*begin, usize::MAX - *end))
}

/// Returns a text up to so many characters, and how many follow. Long runs of blanks are counted.
pub(super) fn excerpt(text: &str, max_chars: usize) -> String {
    // Of a very long text, only the beginning is looked at.
    let end = text.char_indices().nth(max_chars * MAX_BLANKS).map_or(text.len(), |(at, _)| at);
    let shown = count_blanks(&text[..end], MAX_BLANKS).replace('\t', " ");
    match (shown.chars().count() + text[end..].chars().count()).saturating_sub(max_chars) {
        0 => shown,
        more => format!("{} ({more} characters more)", shortened(&shown, max_chars)),
    }
}
