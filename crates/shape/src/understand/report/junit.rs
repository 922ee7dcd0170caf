//! Parses JUnit XML, which some runners write to files. Entities that a document declares are not
//! expanded, so a document cannot grow.

use std::borrow::Cow;

use quick_xml::{
    Reader,
    escape::resolve_predefined_entity,
    events::{BytesStart, Event},
};
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
    let mut reader = lenient(document);
    let mut case: Option<JunitCase> = None;
    while let Ok(event) = reader.read_event() {
        match (event, &mut case) {
            // A declaration can change the meaning of what follows.
            (Event::Eof | Event::DocType(_), _) => break,
            (Event::Start(tag), case) => match (tag.name().as_ref(), case) {
                ("testcase", case) => *case = Some(JunitCase::from_tag(&tag)),
                ("failure" | "error", Some(case)) => {
                    case.failed = Some(attribute(&tag, "message").unwrap_or_default());
                    case.details = String::new();
                    case.in_details = true;
                }
                ("skipped", Some(case)) => case.skipped = true,
                _ => {}
            },
            (Event::End(tag), open) => match (tag.name().as_ref(), &open) {
                ("failure" | "error", Some(_)) => open.iter_mut().for_each(|case| case.in_details = false),
                ("testcase", Some(_)) => open.take().into_iter().for_each(|case| case.end(tally)),
                _ => {}
            },
            (event, Some(case)) if case.in_details => case.push_details(&text_in(&event)),
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
    fn from_tag(tag: &BytesStart<'_>) -> Self {
        let get = |name| attribute(tag, name).unwrap_or_default();
        let (class, name) = (get("classname"), get("name"));
        let name = name.trim_end_matches("()");
        let name = if class.is_empty() || name.is_empty() { class + name } else { format!("{class}.{name}") };
        let place =
            Place { file: attribute(tag, "file"), line: get("line").parse().ok(), ..Place::default() };
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

/// Reads a document that may be cut or have mistakes, up to the first one that matters.
fn lenient(document: &str) -> Reader<&[u8]> {
    let mut reader = Reader::from_str(document);
    let config = reader.config_mut();
    config.allow_dangling_amp = true;
    config.allow_unmatched_ends = true;
    config.check_end_names = false;
    config.expand_empty_elements = true;
    reader
}

/// Returns the value of an attribute.
fn attribute(tag: &BytesStart<'_>, wanted: &str) -> Option<String> {
    let found = tag.attributes().with_checks(false).flatten().find(|found| found.key.as_ref() == wanted)?;
    let mut reader = lenient(&found.value);
    let events = std::iter::from_fn(|| reader.read_event().ok().filter(|event| *event != Event::Eof));
    Some(events.map(|event| text_in(&event).into_owned()).collect())
}

/// Returns the text of an event. Unknown entities stay as they are.
fn text_in<'a>(event: &'a Event<'_>) -> Cow<'a, str> {
    match event {
        Event::Text(text) => Cow::Borrowed(text),
        Event::CData(text) => Cow::Borrowed(text),
        Event::GeneralRef(name) => match (name.resolve_char_ref(), resolve_predefined_entity(name)) {
            (Ok(Some(character)), _) => Cow::Owned(character.into()),
            (_, Some(text)) => Cow::Borrowed(text),
            (_, None) => Cow::Owned(format!("&{};", &**name)),
        },
        _ => Cow::Borrowed(""),
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
