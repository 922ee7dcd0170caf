//! `read_output`: returns any part of a long output that was cut for the model.

use std::{
    fmt::Write as _,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use schemars::JsonSchema;
use serde::Deserialize;
use windlass_contract::{
    Cx, Effects, Meta, Output, Tool, ToolError,
    files::{FileError, OpenFile, Search, Wanted},
    meta::{Category, Example},
    tool::ErrorKind,
};

use windlass_shape::KeyLines;

use crate::{file_error, read_file::lines::FileLines};

/// Directory in which a session keeps long outputs. Set when the session begins.
pub type OutputPlace = Arc<OnceLock<PathBuf>>;

/// Number of lines if the call has no limit.
const DEFAULT_LINES: usize = 200;

/// Maximum number of lines, more than fit even if they are short.
const MAX_LINES: usize = 5000;

/// Maximum number of counted matches. With the 64 MiB limit of an output this bounds memory.
const MAX_HITS: usize = 200_000;

/// Replacement for a line of a private key, whose title may be on another page.
pub(crate) const HIDDEN_KEY: &str = "[REDACTED:private-key]";

/// Maximum length of an answer: less than any model of this family gets of an output, so that it is
/// not cut again.
const MAX_ANSWER_BYTES: usize = 8000;

/// Maximum length of a shown line.
const MAX_LINE_BYTES: usize = 2000;

/// Read more of an output that was cut.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadOutputArgs {
    /// The id told where it was cut.
    id: u32,
    /// First line. Default: 1.
    #[schemars(range(min = 1))]
    offset: Option<usize>,
    /// How many lines. Default: 200.
    #[schemars(range(min = 1))]
    limit: Option<usize>,
    /// Only lines that fit this regular expression.
    pattern: Option<String>,
}

pub(crate) struct ReadOutput {
    pub(crate) place: OutputPlace,
}

impl ReadOutput {
    fn path(&self, id: u32) -> Option<PathBuf> {
        self.place.get().map(|place| place.join(format!("{id}.txt")))
    }
}

impl Tool for ReadOutput {
    const NAME: &'static str = "read_output";
    type Args = ReadOutputArgs;

    fn effects(&self, args: &ReadOutputArgs) -> Effects {
        self.path(args.id).map_or_else(Effects::none, Effects::read)
    }

    async fn call(&self, args: &ReadOutputArgs, cx: &Cx) -> Result<Output, ToolError> {
        let offset = args.offset.unwrap_or(1);
        let limit = args.limit.unwrap_or(DEFAULT_LINES).min(MAX_LINES);
        if offset == 0 || limit == 0 {
            return Err(ToolError::bad_input("`offset` and `limit` begin at 1"));
        }
        let unknown = || {
            let id = args.id;
            let text = format!(
                "there is no output {id}; the note where an output was cut has its id, as `read_output id {id}`"
            );
            ToolError::new(ErrorKind::NotFound, text)
        };
        let path = self.path(args.id).ok_or_else(unknown)?;
        let file = cx.host.files().open(&path).await.map_err(|error| match error {
            FileError::NotFound { .. } => unknown(),
            error => file_error::failed("the output can no longer be read", error),
        })?;
        let failed = |error| file_error::failed("failed to read the output", error);
        match &args.pattern {
            None => some_lines(&*file, offset, limit, cx).await.map_err(failed)?.map(Output::from),
            Some(pattern) => {
                let search = Search {
                    pattern: pattern.clone(),
                    path,
                    hidden: true,
                    wanted: Wanted::Lines { before: 0, after: 0 },
                    limit: MAX_HITS,
                    ..Search::default()
                };
                let found = cx.host.files().search(&search, &cx.cancel).await.map_err(failed)?;
                let lines = found.files.into_iter().flat_map(|file| file.lines);
                let mut hits: Vec<_> = lines.map(|line| (line.number, line.text)).collect();
                hide_keys(&mut hits, &*file, cx).await.map_err(failed)?;
                let hits = PatternHits { lines: hits, has_more: found.more };
                Ok(hits.page(offset as u64, limit).into())
            }
        }
    }

    fn meta(&self) -> Meta {
        Meta {
            category: Category::Files,
            examples: vec![
                Example { request: "read on in the cut output 3", input: r#"{"id":3,"offset":200}"# },
                Example {
                    request: "find errors in the cut output 3",
                    input: r#"{"id":3,"pattern":"error|warning"}"#,
                },
            ],
            requests: [
                "show the rest of the output that was cut",
                "go on reading the long output",
                "what else did the command print",
                "search the long output for a word",
                "显示被截断的输出的其余部分",
                "继续读长输出",
                "在之前的完整输出里找错误",
            ]
            .map(str::to_owned)
            .into(),
            constraints: vec!["one answer holds at most 8,000 bytes".to_owned()],
            returns: "lines with their numbers, and where to go on".to_owned(),
            ..Meta::default()
        }
    }
}

/// Returns consecutive lines, as many as fit.
async fn some_lines(
    file: &dyn OpenFile,
    offset: usize,
    limit: usize,
    cx: &Cx,
) -> Result<Result<String, ToolError>, FileError> {
    let head = file.read_at(0, 64 * 1024).await?;
    let mut lines = FileLines::new(file, head, &cx.cancel);
    let mut keys = lines.go_to(offset).await?;
    let taken = lines.take(limit).await?;
    if taken.is_empty() {
        return Ok(Err(ToolError::failed("offset exceeds output length")));
    }
    let count = taken.len();
    let texts = taken
        .iter()
        .map(|line| if keys.take(line) { HIDDEN_KEY.into() } else { String::from_utf8_lossy(line) });
    let (mut text, shown) = numbered(texts.enumerate().map(|(at, line)| ((offset + at) as u64, line)));
    if shown < count || count == limit {
        // Writing to a string cannot fail.
        let _ = write!(text, "\n(go on with offset {})", offset + shown);
    }
    Ok(Ok(text))
}

/// Lines that match a pattern.
struct PatternHits {
    lines: Vec<(u64, String)>,
    /// True if there are more than were counted.
    has_more: bool,
}

impl PatternHits {
    /// Returns the matches from a line on, as many as fit, with their total.
    fn page(&self, offset: u64, limit: usize) -> String {
        let all = self.lines.len();
        let first = self.lines.partition_point(|(number, _)| *number < offset);
        let more = if self.has_more { "more than " } else { "" };
        let wanted = &self.lines[first..all.min(first.saturating_add(limit))];
        if wanted.is_empty() && all == 0 {
            return "no line fits".to_owned();
        }
        if wanted.is_empty() {
            return format!(
                "no line from {offset} on is among the {more}{all} that fit; use a narrower pattern"
            );
        }
        let (mut text, shown) = numbered(wanted.iter().map(|(number, line)| (*number, line)));
        if let Some((next, _)) = self.lines.get(first + shown) {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n({shown} of {more}{all} lines that fit; go on with offset {next})");
        } else if self.has_more {
            let _ = write!(text, "\n(the last {shown} of {all} lines; more fit; use a narrower pattern)");
        }
        text
    }
}

/// Hides lines that belong to a private key. This may need all lines before them.
async fn hide_keys(hits: &mut [(u64, String)], file: &dyn OpenFile, cx: &Cx) -> Result<(), FileError> {
    if !hits.iter().any(|(_, text)| KeyLines::may_hold(text.as_bytes())) {
        return Ok(());
    }
    let head = file.read_at(0, 64 * 1024).await?;
    let mut lines = FileLines::new(file, head, &cx.cancel);
    let (mut keys, mut number, mut rest) = (KeyLines::default(), 0, hits.iter_mut().peekable());
    while rest.peek().is_some() {
        let taken = lines.take(MAX_LINES).await?;
        if taken.is_empty() {
            break;
        }
        for line in taken {
            number += 1;
            let is_key = keys.take(&line);
            if let Some((_, text)) = rest.next_if(|(hit, _)| *hit == number)
                && is_key
            {
                HIDDEN_KEY.clone_into(text);
            }
        }
    }
    Ok(())
}

/// Numbers lines until the answer is full, at least one. Returns the text and the number of lines.
fn numbered(lines: impl Iterator<Item = (u64, impl AsRef<str>)>) -> (String, usize) {
    let mut lines = lines;
    let (mut text, mut shown) = (String::new(), 0);
    for (number, line) in lines.by_ref() {
        let line = cut(line.as_ref());
        let _ = write!(text, "{}L{number}: {line}", if shown > 0 { "\n" } else { "" });
        shown += 1;
        if text.len() + MAX_LINE_BYTES > MAX_ANSWER_BYTES {
            break;
        }
    }
    (text, shown)
}

/// Cuts a line, with a marker.
fn cut(text: &str) -> String {
    if text.len() < MAX_LINE_BYTES {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(MAX_LINE_BYTES - 1)])
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use windlass_contract::{
        AnyTool, erase,
        files::{Found, FoundFile, FoundLine},
    };

    use super::*;
    use crate::fakes::{FixedFiles, ToolHarness};

    fn tool(place: Option<&str>) -> Arc<dyn AnyTool> {
        let known = OutputPlace::default();
        if let Some(place) = place {
            known.set(place.into()).unwrap();
        }
        erase(ReadOutput { place: known })
    }

    async fn read(input: &str) -> Result<String, String> {
        let text: String = (1..=300).map(|n| format!("line {n}\n")).collect();
        let long = format!("{}\n", "x".repeat(9000));
        let desk = ToolHarness::with_drawer(&[("/o/1.txt", &text), ("/o/2.txt", &long.repeat(20))]);
        let output = desk.call(tool(Some("/o")), input).await.map_err(|error| error.message)?;
        Ok(windlass_contract::Content::join(&output.content))
    }

    #[tokio::test]
    async fn lines_have_their_numbers_and_the_place_to_go_on() {
        let text = read(r#"{"id":1,"offset":3,"limit":2}"#).await.unwrap();
        assert_eq!(text, "L3: line 3\nL4: line 4\n(go on with offset 5)");
        assert_eq!(read(r#"{"id":1,"offset":300}"#).await.unwrap(), "L300: line 300");
    }

    #[tokio::test]
    async fn an_answer_is_never_longer_than_a_model_is_given() {
        let text = read(r#"{"id":2,"limit":5000}"#).await.unwrap();
        assert!(text.len() <= MAX_ANSWER_BYTES + 100, "{}", text.len());
        assert!(text.ends_with("(go on with offset 4)"), "{}", &text[text.len() - 60..]);
    }

    /// An output whose search finds the lines with a text.
    async fn search(text: &str, needle: &str, input: &str) -> String {
        let lines = text.lines().zip(1..).filter(|(line, _)| line.contains(needle));
        let lines: Vec<_> =
            lines.map(|(line, number)| FoundLine { number, fits: true, text: line.to_owned() }).collect();
        let count = lines.len() as u64;
        let file = FoundFile { path: "/o/1.txt".into(), modified: SystemTime::UNIX_EPOCH, count, lines };
        let found = Found { files: vec![file], ..Found::default() };
        let desk = ToolHarness::with_files(FixedFiles { found, ..FixedFiles::with("/o/1.txt", text) });
        let output = desk.call(tool(Some("/o")), input).await.unwrap();
        windlass_contract::Content::join(&output.content)
    }

    #[tokio::test]
    async fn of_lines_that_fit_the_number_and_the_place_to_go_on_are_told() {
        let text: String = (1..=300).map(|n| format!("line {n}\n")).collect();
        let page = |input: &'static str| search(&text, "line 1", input);
        assert_eq!(
            page(r#"{"id":1,"pattern":"line 1","limit":2,"offset":100}"#).await,
            "L100: line 100\nL101: line 101\n(2 of 111 lines that fit; go on with offset 102)"
        );
        let last = page(r#"{"id":1,"pattern":"line 1","limit":2,"offset":198}"#).await;
        assert_eq!(last, "L198: line 198\nL199: line 199");
        assert_eq!(
            page(r#"{"id":1,"pattern":"line 1","offset":250}"#).await,
            "no line from 250 on is among the 111 that fit; use a narrower pattern"
        );
        assert_eq!(search(&text, "nothing", r#"{"id":1,"pattern":"nothing"}"#).await, "no line fits");
    }

    #[tokio::test]
    async fn lines_of_a_private_key_are_hidden_wherever_a_page_begins() {
        let body = format!("{}\n", "Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A".repeat(2)).repeat(30);
        let text = format!("a\n-----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY-----\nb\n");
        for input in [r#"{"id":1,"offset":4}"#, r#"{"id":1,"pattern":"Xc9"}"#, r#"{"id":1}"#] {
            let shown = search(&text, "Xc9", input).await;
            assert!(!shown.contains("Xc9") && shown.contains("L9: [REDACTED:private-key]"), "{shown}");
        }
    }

    #[tokio::test]
    async fn what_is_not_there_is_told() {
        let unknown =
            "there is no output 9; the note where an output was cut has its id, as `read_output id 9`";
        assert_eq!(read(r#"{"id":9}"#).await.unwrap_err(), unknown);
        assert_eq!(read(r#"{"id":1,"offset":301}"#).await.unwrap_err(), "offset exceeds output length");
        assert_eq!(read(r#"{"id":1,"limit":0}"#).await.unwrap_err(), "`offset` and `limit` begin at 1");
        let nowhere = ToolHarness::idle().call(tool(None), r#"{"id":9}"#).await.unwrap_err();
        assert_eq!(nowhere.message, unknown);
    }
}
