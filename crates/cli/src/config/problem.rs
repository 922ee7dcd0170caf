//! Problems of a configuration: their positions, and how to fix them.

use std::{error::Error, fmt, ops::Range};

use windlass::clean::is_secret_name;

/// All problems of a configuration, found in one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfigError {
    problems: Vec<ConfigProblem>,
}

impl ConfigError {
    /// Sorts problems of the file by line; the others keep their order.
    pub(super) fn new(mut problems: Vec<ConfigProblem>) -> Self {
        problems.sort_by_key(|problem| problem.excerpt.as_ref().map_or(usize::MAX, |excerpt| excerpt.line));
        Self { problems }
    }

    /// Returns true if the other error reports all of these problems, at any line.
    pub(super) fn is_part_of(&self, other: Option<&Self>) -> bool {
        let has = |problem: &ConfigProblem| {
            other.is_some_and(|other| other.problems.iter().any(|each| each.message == problem.message))
        };
        self.problems.iter().all(has)
    }
}

impl Error for ConfigError {}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, problem) in self.problems.iter().enumerate() {
            let line_break = if at == 0 { "" } else { "\n" };
            write!(f, "{line_break}{problem}")?;
        }
        Ok(())
    }
}

impl From<ConfigProblem> for ConfigError {
    fn from(problem: ConfigProblem) -> Self {
        Self { problems: vec![problem] }
    }
}

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ConfigProblem {
    /// The file, variable or option it is in; empty for an argument of the command.
    pub(super) source: String,
    /// The position in the file.
    pub(super) excerpt: Option<LineExcerpt>,
    /// The fault and how to fix it.
    pub(super) message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { source, excerpt, message } = self;
        let Some(LineExcerpt { line, column, text, indent, marks }) = excerpt else {
            return if source.is_empty() { f.write_str(message) } else { write!(f, "{source}: {message}") };
        };
        let (before, marks) = (" ".repeat(*indent), "^".repeat(*marks));
        write!(f, "{source}:{line}:{column}: {message}\n    {text}\n    {before}{marks}")
    }
}

/// A line of a file with something marked in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LineExcerpt {
    /// The number of the line, from 1.
    pub(super) line: usize,
    /// The column at which the mark begins, from 1.
    column: usize,
    /// The line, or the part of a very long one around the mark.
    text: String,
    /// The offset of the mark in that text, from 0.
    indent: usize,
    /// The length of the mark.
    marks: usize,
}

impl LineExcerpt {
    /// Maximum width of a line that is shown.
    const MAX_LINE_WIDTH: usize = 160;

    /// Marks a span of a file, as far as it is on its first line.
    pub(super) fn new(file: &str, span: &Range<usize>) -> Self {
        let start = file.floor_char_boundary(span.start);
        let line_start = file[..start].rfind('\n').map_or(0, |at| at + 1);
        let line = file[line_start..].lines().next().unwrap_or_default();
        let end = file.floor_char_boundary(span.end).min(line_start + line.len()).max(start);
        let before = file[line_start..start].chars().count();
        let skipped = before.saturating_sub(Self::MAX_LINE_WIDTH / 2);
        // After a misspelt key name, or without quotes, a secret must not end up in a log.
        let is_number = |value: &str| value.trim().chars().all(|c| c.is_ascii_digit());
        let is_secret = |(name, value): &(&str, &str)| {
            (is_secret_name(line) || is_secret_name(name.trim())) && !is_number(value)
        };
        let secret = line.split_once('=').filter(is_secret);
        let value = secret.map_or(line.len(), |(name, _)| name.len() + 1);
        let hidden = line[value..].chars().map(|c| if c.is_alphanumeric() { '*' } else { c });
        let line = line[..value].chars().chain(hidden);
        // One cell per character, so that the mark is below the marked text.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        Self {
            line: file[..start].matches('\n').count() + 1,
            column: before + 1,
            text: line.skip(skipped).take(Self::MAX_LINE_WIDTH).map(plain).collect(),
            indent: before - skipped,
            marks: file[start..end].chars().count().clamp(1, Self::MAX_LINE_WIDTH / 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_may_hold_a_key_is_shown_without_it() {
        let file = "api_key = \"sk-live 12\"\n";
        assert_eq!(LineExcerpt::new(file, &(0..7)).text, "api_key = \"**-**** **\"");
        assert_eq!(LineExcerpt::new("model = \"x1\"", &(0..5)).text, "model = \"x1\"");
    }

    #[test]
    fn the_mark_stands_below_what_it_marks() {
        let text = "a = 1\n\tü = \"x\"\n";
        let at = text.find("\"x\"").unwrap();
        let excerpt = Some(LineExcerpt::new(text, &(at..at + 3)));
        let problem = ConfigProblem { source: "c.toml".to_owned(), excerpt, message: "no".to_owned() };
        assert_eq!(problem.to_string(), "c.toml:2:6: no\n     ü = \"x\"\n         ^^^");
    }

    #[test]
    fn no_span_is_too_odd_to_be_shown() {
        let text = "ü = 1\r\nb";
        for (start, end) in (0..12).flat_map(|start| (0..12).map(move |end| (start, end))) {
            let excerpt = LineExcerpt::new(text, &(start..end));
            assert!(excerpt.column >= 1 && excerpt.marks >= 1, "{excerpt:?}");
        }
        let empty = LineExcerpt { line: 1, column: 1, text: String::new(), indent: 0, marks: 1 };
        assert_eq!(LineExcerpt::new("", &(0..0)), empty);
    }

    #[test]
    fn of_a_very_long_line_only_the_part_around_the_mark_is_shown() {
        let text = format!("{}x{}", " ".repeat(100_000), " ".repeat(100_000));
        let excerpt = LineExcerpt::new(&text, &(100_000..200_001));
        assert_eq!((excerpt.column, excerpt.indent, excerpt.marks), (100_001, 80, 80));
        assert_eq!(excerpt.text.trim_end(), format!("{}x", " ".repeat(80)));
    }
}
