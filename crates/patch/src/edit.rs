//! Replaces a piece of text: first by exact match, then by whole lines with the same lenient passes
//! as a patch.

use memchr::{memchr_iter, memmem::find_iter};

use crate::{
    AppliedChange, ChunkLine, FileEnd, MatchPass, MatchPosition, MissReport, PatchChunk, Text,
    UnencodableChar,
    apply::{PlacedChunk, render},
    seek::{LineSeeker, SeekError},
    text::split_lines,
};

/// The number of times that the old text must occur.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplaceCount {
    /// Exactly this number; every occurrence is replaced.
    Exactly(usize),
    /// At least once; every occurrence is replaced.
    All,
}

/// The error of a replacement.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    #[error("the text to replace is empty: say which text is to be replaced")]
    Nothing,
    #[error("the old and the new text are the same: nothing would change")]
    Same,
    #[error("{}", .0.describe("the file"))]
    Miss(Box<MissReport>),
    #[error("{}", miscounted(*.expected, *.found, .lines))]
    Miscounted { expected: usize, found: usize, lines: Vec<usize> },
    #[error(transparent)]
    Unencodable(#[from] UnencodableChar),
    #[error("finding this text takes too long: use lines that occur once")]
    TooMuchWork,
}

/// Maximum number of lines that are listed.
const MAX_LISTED: usize = 20;

/// Replaces `old` with `new`. New lines get the line ending of the file, whatever the endings in
/// `old` and `new`.
pub fn edit(text: &Text<'_>, old: &str, new: &str, count: ReplaceCount) -> Result<AppliedChange, EditError> {
    if old.is_empty() {
        return Err(EditError::Nothing);
    }
    if old == new {
        return Err(EditError::Same);
    }
    let has_endings = text.content().contains(['\n', '\r']);
    let with_endings = |piece: &str| {
        if has_endings { piece.replace("\r\n", "\n").replace('\n', text.ending()) } else { piece.to_owned() }
    };
    let converted = with_endings(old);
    for old in [old, &converted] {
        let found: Vec<usize> = find_iter(text.content().as_bytes(), old.as_bytes()).collect();
        if !found.is_empty() {
            return replace_bytes(text, &found, old.len(), &with_endings(new), count);
        }
    }
    replace_lines(text, old, new, count)
}

/// Replaces the same number of bytes at each position.
fn replace_bytes(
    text: &Text<'_>,
    found: &[usize],
    length: usize,
    new: &str,
    count: ReplaceCount,
) -> Result<AppliedChange, EditError> {
    let content = text.content();
    let lines = line_numbers(content, found);
    check_count(count, &lines)?;
    let mut out = String::with_capacity(content.len() + found.len() * new.len());
    let mut at = 0;
    for place in found {
        out.push_str(&content[at..*place]);
        out.push_str(new);
        at = place + length;
    }
    out.push_str(&content[at..]);
    let position = |line| MatchPosition { line, pass: MatchPass::Exact, others: Vec::new(), appended: false };
    Ok(AppliedChange {
        bytes: text.encoding().into_bytes(out)?,
        matches: lines.into_iter().map(position).collect(),
    })
}

/// Replaces whole lines that match except for whitespace and typography.
fn replace_lines(
    text: &Text<'_>,
    old: &str,
    new: &str,
    count: ReplaceCount,
) -> Result<AppliedChange, EditError> {
    let lines = text.lines();
    let seeker = LineSeeker::new(lines.iter().map(|line| line.text).collect());
    let chunk = PatchChunk { lines: chunk_lines(old, new), ..PatchChunk::default() };
    let old: Vec<&str> = chunk.old_lines().collect();
    let mut places = Vec::new();
    let mut from = 0;
    // Blank lines alone would match everywhere; they must match exactly.
    while old.iter().any(|line| !line.trim().is_empty()) {
        match seeker.seek(&old, from) {
            Ok(found)
                if places.first().is_none_or(|first: &PlacedChunk<'_>| first.position.pass == found.pass) =>
            {
                let position = MatchPosition {
                    line: found.at + 1,
                    pass: found.pass,
                    others: Vec::new(),
                    appended: false,
                };
                places.push(PlacedChunk { at: found.at, lines: chunk.lines.clone(), position });
                from = found.at + old.len();
            }
            Ok(_) | Err(SeekError::Absent) => break,
            Err(SeekError::Exhausted) => return Err(EditError::TooMuchWork),
        }
    }
    if places.is_empty() {
        return Err(EditError::Miss(Box::new(MissReport::from_lines(&seeker, 0, &chunk, 0))));
    }
    check_count(count, &places.iter().map(|place| place.position.line).collect::<Vec<_>>())?;
    let bytes = render(text, &lines, &places, FileEnd::AsIs)?;
    Ok(AppliedChange { bytes, matches: places.into_iter().map(|place| place.position).collect() })
}

/// Keeps the lines that both texts begin and end with, so that those of the file are not replaced.
fn chunk_lines<'a>(old: &'a str, new: &'a str) -> Vec<ChunkLine<'a>> {
    let texts = |text| split_lines(text).into_iter().map(|line| line.text).collect::<Vec<&str>>();
    let (old, new) = (texts(old), texts(new));
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_end, new_end) = (old.len() - end, new.len() - end);
    let kept = |lines: &[&'a str]| lines.iter().map(|line| ChunkLine::Keep(line)).collect::<Vec<_>>();
    let mut lines = kept(&old[..start]);
    lines.extend(old[start..old_end].iter().map(|line| ChunkLine::Remove(line)));
    lines.extend(new[start..new_end].iter().map(|line| ChunkLine::Insert(line)));
    lines.extend(kept(&old[old_end..]));
    lines
}

fn check_count(count: ReplaceCount, lines: &[usize]) -> Result<(), EditError> {
    match count {
        ReplaceCount::Exactly(expected) if expected != lines.len() => {
            let listed = lines[..lines.len().min(MAX_LISTED)].to_vec();
            Err(EditError::Miscounted { expected, found: lines.len(), lines: listed })
        }
        ReplaceCount::Exactly(_) | ReplaceCount::All => Ok(()),
    }
}

fn miscounted(expected: usize, found: usize, lines: &[usize]) -> String {
    let list = lines.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let more = if found > lines.len() { ", …" } else { "" };
    let (times, noun) =
        if found == 1 { ("once".to_owned(), "line") } else { (format!("{found} times"), "lines") };
    format!(
        "the text to replace is there {times} ({noun} {list}{more}), not {expected}: add lines around it until it is \
         the one meant, or replace them all"
    )
}

/// Returns the line numbers, from 1, of byte offsets in ascending order.
fn line_numbers(content: &str, places: &[usize]) -> Vec<usize> {
    let mut from = 0;
    let mut line = 1;
    let mut numbers = Vec::with_capacity(places.len());
    for place in places {
        let passed = &content.as_bytes()[from..*place];
        let is_alone = |at: &usize| content.as_bytes().get(from + at + 1) != Some(&b'\n');
        line += memchr_iter(b'\n', passed).count() + memchr_iter(b'\r', passed).filter(is_alone).count();
        from = *place;
        numbers.push(line);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MissReason;

    const ONE: ReplaceCount = ReplaceCount::Exactly(1);

    fn edited(file: &str, old: &str, new: &str, count: ReplaceCount) -> Result<String, EditError> {
        let text = Text::decode(file.as_bytes()).expect("text");
        edit(&text, old, new, count).map(|applied| String::from_utf8(applied.bytes).expect("UTF-8"))
    }

    fn passes(file: &str, old: &str, new: &str) -> Vec<(usize, MatchPass)> {
        let text = Text::decode(file.as_bytes()).expect("text");
        let applied = edit(&text, old, new, ReplaceCount::All).expect("it applies");
        applied.matches.iter().map(|position| (position.line, position.pass)).collect()
    }

    #[test]
    fn a_text_is_replaced_where_it_stands() {
        assert_eq!(edited("a b c", "b", "x", ONE).as_deref(), Ok("a x c"));
        assert_eq!(edited("a\nb\nc", "a\nb", "x", ONE).as_deref(), Ok("x\nc"));
        assert_eq!(edited("a\nb\n", "b\n", "", ONE).as_deref(), Ok("a\n"));
    }

    #[test]
    fn every_place_is_replaced_when_so_asked() {
        assert_eq!(edited("a a a", "a", "bb", ReplaceCount::All).as_deref(), Ok("bb bb bb"));
        assert_eq!(edited("a a a", "a", "b", ReplaceCount::Exactly(3)).as_deref(), Ok("b b b"));
        assert_eq!(edited("aaa", "aa", "b", ONE).as_deref(), Ok("ba"));
    }

    #[test]
    fn another_count_than_expected_changes_nothing_and_names_the_lines() {
        let error = edited("a\nb\na\r\nb\ra", "a", "x", ONE).expect_err("three of them");
        assert_eq!(error, EditError::Miscounted { expected: 1, found: 3, lines: vec![1, 3, 5] });
        assert!(
            error.to_string().starts_with("the text to replace is there 3 times (lines 1, 3, 5), not 1:")
        );
        let error = edited("b\na", "a", "x", ReplaceCount::Exactly(2)).expect_err("one of them");
        assert!(
            error.to_string().starts_with("the text to replace is there once (line 2), not 2:"),
            "{error}"
        );
        let error = edited(&"a\n".repeat(50), "a", "x", ONE).expect_err("fifty of them");
        assert!(error.to_string().contains("19, 20, …)"), "{error}");
    }

    #[test]
    fn line_endings_are_the_files() {
        assert_eq!(edited("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", ONE).as_deref(), Ok("x\r\ny\r\nz\r\nc\r\n"));
        assert_eq!(edited("a\nb\n", "a\r\nb", "x\r\ny", ONE).as_deref(), Ok("x\ny\n"));
        assert_eq!(edited("a\r\nb\nc\n", "a\nb\nc", "a\nx\nc", ONE).as_deref(), Ok("a\r\nx\r\nc\n"));
    }

    #[test]
    fn lines_match_forgivingly_and_keep_what_is_not_replaced() {
        assert_eq!(
            edited("\tif x {\n\t\ty();\n\t}\n", "if x {\n  y();\n}", "if x {\n\t\tz();\n}", ONE).as_deref(),
            Ok("\tif x {\n\t\tz();\n\t}\n")
        );
        assert_eq!(
            passes("a  \nb\na  \nb", "a\nb", "c"),
            [(1, MatchPass::TrailingBlanks), (3, MatchPass::TrailingBlanks)]
        );
        assert_eq!(passes("“hi”\n", "\"hi\"", "x"), [(1, MatchPass::Typography)]);
    }

    #[test]
    fn blank_lines_match_only_as_they_stand() {
        assert!(matches!(edited("a\n  \nb\n", "\n\n", "x", ONE), Err(EditError::Miss(_))));
    }

    #[test]
    fn nothing_to_do_is_said() {
        assert_eq!(edited("a", "", "b", ONE), Err(EditError::Nothing));
        assert_eq!(edited("a", "a", "a", ONE), Err(EditError::Same));
    }

    #[test]
    fn a_miss_shows_the_nearest_lines() {
        let Err(EditError::Miss(miss)) =
            edited("fn a() {\n\tone();\n}\n", "fn a() {\n    two();\n}", "x", ONE)
        else {
            panic!("a miss")
        };
        let difference = "      1  fn a() {\n-        ····two();\n+     2  →one();\n      3  }\n";
        assert_eq!(miss.nearest.expect("near").difference, difference);
        let Err(EditError::Miss(miss)) = edited("", "a", "x", ONE) else { panic!("a miss") };
        assert_eq!(miss.reason, Some(MissReason::EmptyFile));
    }
}
