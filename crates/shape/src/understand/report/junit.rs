//! Parses JUnit XML, which some runners write to files: elements, attributes, text, and the
//! predefined entities. Entities that a document declares are not expanded, so a document cannot
//! grow.

use windlass_contract::insight::{Place, TestFailure, TestReport};

use super::{TestTally, seconds};

/// Maximum length of a name or a message until it is redacted. It is cut much shorter after that.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// Parses the tests of these documents, or returns `None` if they have none. Names and messages are
/// not cut to their final length here. Redaction must come first, or half a secret could remain.
pub fn junit(runner: &'static str, documents: &[String]) -> Option<TestReport> {
    let mut tally = TestTally::new(runner);
    for document in documents {
        read(document, &mut tally);
    }
    let report = tally.raw();
    (report.passed + report.failed + report.skipped > 0).then_some(report)
}

fn read(document: &str, tally: &mut TestTally) {
    let mut case: Option<JunitCase> = None;
    for token in XmlTokens(document) {
        match (token, &mut case) {
            (XmlToken::Open { name: "testcase", attributes, closed }, _) => {
                let opened = JunitCase::from_attributes(attributes);
                if closed { opened.end(tally) } else { case = Some(opened) }
            }
            (XmlToken::Open { name: "failure" | "error", attributes, closed }, Some(case)) => {
                case.failed = Some(attribute(attributes, "message").unwrap_or_default());
                case.details = String::new();
                case.in_details = !closed;
            }
            (XmlToken::Open { name: "skipped", .. }, Some(case)) => case.skipped = true,
            (XmlToken::Text(text), Some(case)) if case.in_details => case.push_details(&decoded(text)),
            (XmlToken::Verbatim(text), Some(case)) if case.in_details => case.push_details(text),
            (XmlToken::Close("failure" | "error"), Some(case)) => case.in_details = false,
            (XmlToken::Close("testcase"), _) => {
                if let Some(case) = case.take() {
                    case.end(tally);
                }
            }
            _ => {}
        }
    }
}

/// A test case that is being parsed.
struct JunitCase {
    name: String,
    time: String,
    place: Place,
    /// Short failure message, if it failed.
    failed: Option<String>,
    /// Long failure message.
    details: String,
    in_details: bool,
    skipped: bool,
}

impl JunitCase {
    fn from_attributes(attributes: &str) -> Self {
        let get = |name| attribute(attributes, name).unwrap_or_default();
        let (class, name) = (get("classname"), get("name"));
        let name = name.trim_end_matches("()");
        let name = if class.is_empty() || name.is_empty() { class + name } else { format!("{class}.{name}") };
        let place =
            Place { file: attribute(attributes, "file"), line: get("line").parse().ok(), ..Place::default() };
        let (failed, details) = (None, String::new());
        Self {
            name: bounded(name),
            time: get("time"),
            place,
            failed,
            details,
            in_details: false,
            skipped: false,
        }
    }

    fn push_details(&mut self, text: &str) {
        let room = MAX_TEXT_BYTES.saturating_sub(self.details.len());
        self.details.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn end(self, tally: &mut TestTally) {
        let Self { name, time, place, failed, details, skipped, .. } = self;
        // Some runners print thousands separators: `1,234.5`.
        if let Some(time) = seconds(&time.replace(',', "")) {
            tally.add_time(&name, time);
            tally.add_duration(Some(time));
        }
        match failed {
            Some(short) => {
                tally.failed += 1;
                let message = bounded(if details.trim().is_empty() { short } else { details });
                tally.add_failure(TestFailure { name, place, message });
            }
            None if skipped => tally.skipped += 1,
            None => tally.passed += 1,
        }
    }
}

fn bounded(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
    text
}

/// A token of an XML document.
enum XmlToken<'a> {
    Open { name: &'a str, attributes: &'a str, closed: bool },
    Close(&'a str),
    Text(&'a str),
    Verbatim(&'a str),
}

/// The tokens of a document, up to the first syntax error.
struct XmlTokens<'a>(&'a str);

impl<'a> Iterator for XmlTokens<'a> {
    type Item = XmlToken<'a>;

    fn next(&mut self) -> Option<XmlToken<'a>> {
        loop {
            let rest = self.0;
            if let Some(rest) = rest.strip_prefix("<![CDATA[") {
                let (text, after) = rest.split_once("]]>").unwrap_or((rest, ""));
                self.0 = after;
                return Some(XmlToken::Verbatim(text));
            } else if let Some(rest) = rest.strip_prefix("<!--") {
                self.0 = rest.split_once("-->")?.1;
            } else if let Some(rest) = rest.strip_prefix("<?") {
                self.0 = rest.split_once("?>")?.1;
            } else if rest.starts_with("<!") {
                // A declaration can change the meaning of what follows.
                return None;
            } else if let Some(rest) = rest.strip_prefix('<') {
                let end = end_of_tag(rest)?;
                self.0 = &rest[end + 1..];
                return Some(tag(&rest[..end]));
            } else if rest.is_empty() {
                return None;
            } else {
                let end = rest.find('<').unwrap_or(rest.len());
                self.0 = &rest[end..];
                return Some(XmlToken::Text(&rest[..end]));
            }
        }
    }
}

/// Returns the index of the bracket that ends a tag. Brackets in attribute values do not count.
fn end_of_tag(rest: &str) -> Option<usize> {
    let mut quote = None;
    rest.bytes().position(|byte| {
        match quote {
            Some(open) if open == byte => quote = None,
            Some(_) => {}
            None if matches!(byte, b'"' | b'\'') => quote = Some(byte),
            None => return byte == b'>',
        }
        false
    })
}

fn tag(inner: &str) -> XmlToken<'_> {
    if let Some(name) = inner.strip_prefix('/') {
        return XmlToken::Close(name.trim());
    }
    let (inner, closed) = inner.strip_suffix('/').map_or((inner, false), |inner| (inner, true));
    let (name, attributes) = inner.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((inner, ""));
    XmlToken::Open { name, attributes, closed }
}

/// Returns the value of an attribute.
fn attribute(mut rest: &str, wanted: &str) -> Option<String> {
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(decoded(value));
        }
        rest = after;
    }
}

/// Decodes the entities of a text. Unknown entities stay as they are.
fn decoded(text: &str) -> String {
    let mut rest = text;
    let mut whole = String::with_capacity(text.len());
    while let Some(at) = rest.find('&') {
        whole.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        let (c, end) = end.and_then(|end| Some((entity(&rest[1..end])?, end))).unwrap_or(('&', 0));
        whole.push(c);
        rest = &rest[end + 1..];
    }
    whole.push_str(rest);
    whole
}

fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::understand::tests_in;

    const GRADLE: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuite name="shop.TillTest" tests="4" skipped="1" failures="2" errors="0" time="0.1">
  <properties/>
  <!-- <testcase name="not one"/> -->
  <testcase name="breaks()" classname="shop.TillTest" time="0.05">
    <failure message="java.lang.IllegalStateException: drawer&#10;is open" type="java.lang.IllegalStateException">java.lang.IllegalStateException: drawer
is open
	at org.junit.Assert.add_failure(Assert.java:89)
	at shop.TillTest.breaks(TillTest.java:6)
	at java.base/java.lang.Thread.run(Thread.java:840)
</failure>
  </testcase>
  <testcase name="rounds" classname="shop.TillTest" time="0.0">
    <error message='a &lt;b> &amp; "c" &unknown; expected:&lt;3&gt;'/>
  </testcase>
  <testcase name="adds" classname="shop.TillTest" time="1,000.5"/>
  <testcase name="later" classname="shop.TillTest" time="0.0"><skipped/></testcase>
  <system-out><![CDATA[<testcase name="printed"/>]]></system-out>
</testsuite>"#;

    #[test]
    fn a_report_tells_why_and_where_tests_failed() {
        let report = tests_in("", junit("gradle", &[GRADLE.to_owned()])).unwrap();
        let failure = |name: &str, place, message: &str| TestFailure {
            name: name.into(),
            place,
            message: message.into(),
        };
        let at = Place { file: Some("TillTest.java".into()), line: Some(6), column: None };
        assert_eq!((report.passed, report.failed, report.skipped), (1, 2, 1));
        assert_eq!(
            report.failures,
            [
                failure("shop.TillTest.breaks", at, "java.lang.IllegalStateException: drawer\nis open"),
                failure("shop.TillTest.rounds", Place::default(), r#"a <b> & "c" &unknown; expected:<3>"#),
            ]
        );
        assert_eq!(report.slowest[0].duration, Duration::from_millis(1_000_500));
        assert_eq!(report.rerun, ["--tests", "shop.TillTest.breaks", "--tests", "shop.TillTest.rounds"]);
    }

    #[test]
    fn what_was_printed_counts_where_the_files_tell_of_fewer_tests() {
        let printed = "shop.A > b FAILED\n    java.lang.Error at A.java:5\n\n7 tests completed, 1 failed\n";
        let report = tests_in(printed, junit("gradle", &[GRADLE.to_owned()])).unwrap();
        assert_eq!((report.passed, report.failed), (6, 1));
    }

    #[test]
    fn a_document_that_declares_entities_tells_nothing_and_half_a_document_what_it_has() {
        let bomb = r#"<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "&b;&b;">]><testcase name="&a;"/>"#;
        assert_eq!(junit("gradle", &[bomb.to_owned()]), None);
        let half = &GRADLE[..GRADLE.find("<testcase name=\"adds\"").unwrap() + 20];
        assert_eq!(junit("gradle", &[half.to_owned()]).unwrap().failed, 2);
        assert_eq!(junit("gradle", &["<a".to_owned(), String::new()]), None);
    }

    #[test]
    fn a_message_is_cut_after_it_was_cleaned_and_not_before() {
        let long = format!(r#"<testcase name="a"><failure>{}key</failure></testcase>"#, "x".repeat(400));
        let raw = junit("maven", &[long]).unwrap();
        assert!(raw.failures[0].message.ends_with("key"));
        assert!(tests_in("", Some(raw)).unwrap().failures[0].message.len() < 310);
    }

    proptest! {
        #[test]
        fn no_document_is_too_much(text in r#"([<>&;'"/=a \n!\[\]?-]|<testcase name="|<failure>|<!\[CDATA\[|&#|é){0,60}"#) {
            junit("gradle", &[text]);
        }
    }
}
