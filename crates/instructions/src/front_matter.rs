//! The YAML between two lines `---` at the start of a Markdown file.
//!
//! Only the form that descriptions need is read: a mapping whose values are texts or lists of
//! texts. Other values are skipped. Anchors and aliases are errors, so that a few bytes cannot
//! become many.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser, ScanError, Span, StrInput};

/// Maximum size.
const MAX_BYTES: usize = 16 * 1024;

/// Maximum number of parser events, of which each value and each bracket is one.
const MAX_EVENTS: usize = 2000;

/// Maximum depth of nesting.
const MAX_DEPTH: usize = 8;

/// The values, by their keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct FrontMatter(BTreeMap<String, FrontMatterValue>);

/// A value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrontMatterValue {
    Text(String),
    List(Vec<String>),
    /// A mapping, or a list of something else.
    Nested,
}

/// The reason why front matter cannot be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrontMatterError {
    #[error("the front matter that begins in line 1 has no end: a line `---`")]
    NoEnd,
    #[error("the front matter has more than {MAX_BYTES} bytes")]
    TooLong,
    #[error("line {line}: {reason}")]
    Yaml { line: usize, reason: String },
}

impl FrontMatter {
    /// Splits a file into its front matter and the text after it. A file without front matter has
    /// an empty one.
    pub(crate) fn split(text: &str) -> Result<(Self, &str), FrontMatterError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some(rest) = text.strip_prefix("---").and_then(after_line_end) else {
            return Ok((Self::default(), text));
        };
        let (yaml, body) = split_at_end(rest).ok_or(FrontMatterError::NoEnd)?;
        if yaml.len() > MAX_BYTES {
            return Err(FrontMatterError::TooLong);
        }
        Ok((Self(FrontMatterReader::new(yaml).mapping()?), body))
    }

    /// Returns a text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        match self.0.get(key) {
            Some(FrontMatterValue::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// Returns a list, which may be written as a text with blanks or commas between its members.
    pub(crate) fn list(&self, key: &str) -> Vec<String> {
        match self.0.get(key) {
            Some(FrontMatterValue::List(members)) => members.clone(),
            Some(FrontMatterValue::Text(text)) => split_list(text),
            Some(FrontMatterValue::Nested) | None => Vec::new(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Splits a list such as `Read, Bash(git log:*)`: at blanks and commas outside of parentheses.
fn split_list(text: &str) -> Vec<String> {
    let (mut members, mut member, mut depth) = (Vec::new(), String::new(), 0_usize);
    for c in text.chars() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (c == ',' || c.is_whitespace()) {
            members.push(std::mem::take(&mut member));
        } else {
            member.push(c);
        }
    }
    members.push(member);
    members.retain(|member| !member.is_empty());
    members
}

fn after_line_end(text: &str) -> Option<&str> {
    let text = text.trim_start_matches([' ', '\t']);
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n'))
}

/// Splits at the first line that is `---`.
fn split_at_end(text: &str) -> Option<(&str, &str)> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&text[..start], &text[start + line.len()..]));
        }
        start += line.len();
    }
    None
}

/// Reads the events of the parser, as many as allowed.
struct FrontMatterReader<'a> {
    parser: Parser<'a, StrInput<'a>>,
    events: usize,
    line: usize,
}

impl<'a> FrontMatterReader<'a> {
    fn new(yaml: &'a str) -> Self {
        Self { parser: Parser::new_from_str(yaml), events: 0, line: 1 }
    }

    fn mapping(&mut self) -> Result<BTreeMap<String, FrontMatterValue>, FrontMatterError> {
        let mut values = BTreeMap::new();
        loop {
            match self.next()? {
                Event::MappingStart(..) => break,
                Event::StreamEnd => return Ok(values),
                Event::StreamStart | Event::DocumentStart(_) | Event::DocumentEnd | Event::Nothing => {}
                Event::Scalar(text, ..) if text.is_empty() || *text == *"~" => {}
                _ => return Err(self.fault("must be lines `key: value`")),
            }
        }
        loop {
            let key = match self.next()? {
                Event::MappingEnd => return Ok(values),
                Event::Scalar(key, ..) => key.into_owned(),
                _ => return Err(self.fault("a key must be a word")),
            };
            let value = self.value()?;
            if values.insert(key, value).is_some() {
                return Err(self.fault("this key was there before"));
            }
        }
    }

    fn value(&mut self) -> Result<FrontMatterValue, FrontMatterError> {
        match self.next()? {
            Event::Scalar(text, ..) => Ok(FrontMatterValue::Text(text.into_owned())),
            Event::SequenceStart(..) => self.members(),
            Event::MappingStart(..) => self.skip(1).map(|()| FrontMatterValue::Nested),
            _ => Err(self.fault("a value is missing")),
        }
    }

    fn members(&mut self) -> Result<FrontMatterValue, FrontMatterError> {
        let mut members = Vec::new();
        loop {
            match self.next()? {
                Event::SequenceEnd => return Ok(FrontMatterValue::List(members)),
                Event::Scalar(text, ..) => members.push(text.into_owned()),
                _ => return self.skip(2).map(|()| FrontMatterValue::Nested),
            }
        }
    }

    /// Skips to the end of what was opened.
    fn skip(&mut self, mut depth: usize) -> Result<(), FrontMatterError> {
        while depth > 0 {
            match self.next()? {
                Event::MappingStart(..) | Event::SequenceStart(..) if depth == MAX_DEPTH => {
                    return Err(self.fault("too deeply nested"));
                }
                Event::MappingStart(..) | Event::SequenceStart(..) => depth += 1,
                Event::MappingEnd | Event::SequenceEnd => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }

    fn next(&mut self) -> Result<Event<'a>, FrontMatterError> {
        self.events += 1;
        if self.events > MAX_EVENTS {
            return Err(self.fault("the front matter has too many values"));
        }
        let next: Option<Result<(Event<'a>, Span), ScanError>> = self.parser.next_event();
        let (event, span) = match next {
            Some(Ok(next)) => next,
            Some(Err(error)) => {
                self.line = error.marker().line();
                let hint = "; put a value with `: ` or `#` in quotes";
                return Err(self.fault(&format!("it is not YAML: {}{hint}", error.info())));
            }
            None => return Err(self.fault("the front matter ends too early")),
        };
        self.line = span.start.line();
        match event {
            Event::Alias(_) => Err(self.fault("aliases (`*name`) are not read")),
            Event::Scalar(_, _, anchor, _)
            | Event::SequenceStart(anchor, _)
            | Event::MappingStart(anchor, _)
                if anchor > 0 =>
            {
                Err(self.fault("anchors (`&name`) are not read"))
            }
            event => Ok(event),
        }
    }

    /// Returns an error at the current line of the file, whose first line is `---`.
    fn fault(&self, reason: &str) -> FrontMatterError {
        FrontMatterError::Yaml { line: self.line + 1, reason: reason.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn error(yaml: &str) -> String {
        FrontMatter::split(&format!("---\n{yaml}\n---\nbody")).unwrap_err().to_string()
    }

    #[test]
    fn texts_and_lists_are_read_and_the_rest_is_skipped() {
        let text = "---\nname: a\ndescription: >-\n  two\n  lines\nallowed-tools: [Read, 'Bash(git *)']\n\
                    metadata:\n  deep: {x: [1, {y: 2}]}\nnumber: 1.0\n---\n\nBody: x\n---\nmore\n";
        let (front, body) = FrontMatter::split(text).unwrap();
        assert_eq!((front.text("name"), front.text("description")), (Some("a"), Some("two lines")));
        assert_eq!(front.list("allowed-tools"), ["Read", "Bash(git *)"]);
        assert_eq!((front.text("metadata"), front.text("number")), (None, Some("1.0")));
        assert_eq!(body, "\nBody: x\n---\nmore\n");
    }

    #[test]
    fn a_list_may_be_a_text() {
        assert_eq!(split_list("Read, Bash(git log:*)  Edit,"), ["Read", "Bash(git log:*)", "Edit"]);
        assert_eq!(split_list("  "), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_front_matter_is_all_body() {
        for text in ["", "# Title\n---\n", "--- x\n", "----\na: b\n---\n"] {
            let (front, body) = FrontMatter::split(text).unwrap();
            assert!(front.is_empty() && body == text, "{text}");
        }
        let (front, body) = FrontMatter::split("\u{feff}---\r\nname: a\r\n---\r\nbody").unwrap();
        assert_eq!((front.text("name"), body), (Some("a"), "body"));
        assert!(FrontMatter::split("---\n---\nbody").unwrap().0.is_empty());
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(FrontMatter::split("---\nname: a\n"), Err(FrontMatterError::NoEnd));
        for (yaml, said) in [
            ("name: a\ndescription: use when: always", "line 3: it is not YAML"),
            ("- a\n- b", "line 2: must be lines `key: value`"),
            ("just text", "line 2: must be lines"),
            ("name: a\nname: b", "line 3: this key was there before"),
            ("[a]: b", "a key must be a word"),
            ("a: &x b\nc: *x", "line 2: anchors"),
            ("a: b\nc: *x", "line 3"),
        ] {
            assert!(error(yaml).contains(said), "{yaml}: {}", error(yaml));
        }
    }

    #[test]
    fn a_bomb_is_an_error() {
        let bomb = "a: &a [x,x,x]\nb: &b [*a,*a,*a]\nc: &c [*b,*b,*b]";
        assert!(error(bomb).contains("anchors"));
        assert!(error(&format!("a: {{b: {}{}}}", "[".repeat(9), "]".repeat(9))).contains("deeply"));
        assert!(error(&format!("a: {}{}", "[".repeat(7000), "]".repeat(7000))).contains("line 2"));
        assert!(error(&format!("a: [{}]", "b,".repeat(5000))).contains("too many values"));
        assert!(error(&format!("a: {}", "b".repeat(MAX_BYTES))).contains("more than 16384 bytes"));
    }

    proptest! {
        #[test]
        fn any_text_ends_in_values_or_an_error(text in "[ -~\n\t&*\\[\\]{}:#'\"|>-]{0,200}") {
            let file = format!("---\n{text}\n---\nbody");
            let _any = FrontMatter::split(&file);
        }
    }
}
