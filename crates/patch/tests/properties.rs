//! Properties of every patch and every text.

use proptest::{collection::vec, prelude::*, sample::subsequence};
use windlass_patch::{
    ApplyError, ChunkLine, FileOperation, MatchPass, PatchChunk, ReplaceCount, Text, apply, edit, parse,
    recognise, unified,
};

/// Text that is nearly a patch.
fn patchlike() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        Just("*** Begin Patch".to_owned()),
        Just("*** End Patch".to_owned()),
        Just("*** End of File".to_owned()),
        "\\*\\*\\* (Add|Delete|Update) File: [a-c./\\\\]{0,5}",
        "\\*\\*\\* Move to: [a-c ]{0,3}",
        "@@( [a-c]{0,2})?",
        "[-+ ][a-c \t]{0,4}",
        "<<'?EOF'?",
        Just("EOF".to_owned()),
        Just("```".to_owned()),
        "\\PC{0,6}",
    ];
    (vec(pieces, 0..20), prop_oneof![Just("\n"), Just("\r\n"), Just("\r")])
        .prop_map(|(pieces, ending)| pieces.join(ending))
}

/// A file: lines of few kinds, so that they repeat, with endings of every kind.
fn file() -> impl Strategy<Value = Vec<(String, &'static str)>> {
    vec(("[ab]{0,2}[ \t]{0,1}", prop_oneof![4 => Just("\n"), 1 => Just("\r\n"), 1 => Just("\r")]), 0..30)
}

/// Decisions for the lines: 0 to 5 keep a line, 6 removes it, 7 replaces it, 8 inserts a line
/// before it.
fn decisions() -> impl Strategy<Value = Vec<u8>> {
    vec(0u8..9, 30)
}

proptest! {
    #[test]
    fn parsing_never_panics(text in patchlike()) {
        drop(parse(&text));
        drop(parse(&format!("*** Begin Patch\n{text}\n*** End Patch")));
        let argv = ["bash".to_owned(), "-lc".to_owned(), format!("apply_patch <<'EOF'\n{text}\nEOF")];
        let body = recognise(&argv).and_then(Result::ok).map(|invocation| invocation.patch);
        prop_assert!(body.is_none_or(|body| text.starts_with(body.trim_end_matches(['\r', '\n']))));
        prop_assert!(recognise(&[text]).is_none_or(|found| found.is_err()));
    }

    #[test]
    fn parsing_raw_bytes_never_panics(bytes in vec(any::<u8>(), 0..200)) {
        drop(parse(&String::from_utf8_lossy(&bytes)));
    }

    #[test]
    fn applying_anything_to_anything_never_panics(text in patchlike(), bytes in vec(any::<u8>(), 0..60)) {
        let patch = format!("*** Begin Patch\n*** Update File: f\n{text}\n*** End Patch");
        let (Ok(file), Ok(patch)) = (Text::decode(&bytes), parse(&patch)) else { return Ok(()) };
        for operation in &patch.operations {
            if let FileOperation::Update { chunks, .. } = operation {
                drop(apply(&file, chunks));
            }
        }
    }

    #[test]
    fn text_comes_back_byte_for_byte(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(text) = Text::decode(&bytes) {
            prop_assert_eq!(text.encode(text.content()), Ok(bytes.clone()));
            let whole: String = text.lines().iter().map(|line| format!("{}{}", line.text, line.ending)).collect();
            prop_assert_eq!(whole, text.content());
        }
    }

    #[test]
    fn no_chunk_changes_no_byte(bytes in vec(any::<u8>(), 0..80)) {
        if let Ok(text) = Text::decode(&bytes) {
            prop_assert_eq!(apply(&text, &[]).map(|applied| applied.bytes), Ok(bytes.clone()));
        }
    }

    /// One chunk over the whole file matches only at one position, so the result is known line by
    /// line.
    #[test]
    fn a_patch_made_from_an_edit_gives_the_edited_text(file in file(), decisions in decisions()) {
        let content: String = file.iter().map(|(text, ending)| format!("{text}{ending}")).collect();
        let first = Text::decode(content.as_bytes()).map_or("\n", |text| text.ending());
        let mut lines = Vec::new();
        let mut expected = String::new();
        for ((text, ending), decision) in file.iter().zip(&decisions) {
            if *decision == 8 || *decision == 7 {
                lines.push(ChunkLine::Insert("new"));
                expected.push_str(&format!("new{first}"));
            }
            if *decision == 6 || *decision == 7 {
                lines.push(ChunkLine::Remove(text));
            } else {
                lines.push(ChunkLine::Keep(text));
                expected.push_str(&format!("{text}{ending}"));
            }
        }
        // "a\r" before "\n" would read as one ending; such files are left to other tests.
        prop_assume!(Text::decode(content.as_bytes()).is_ok_and(|text| text.lines().len() == file.len()));
        prop_assume!(!lines.is_empty());
        let text = Text::decode(content.as_bytes()).expect("text");
        let applied = apply(&text, &[PatchChunk { lines, ..PatchChunk::default() }]).expect("it is the file itself");
        prop_assert_eq!(String::from_utf8_lossy(&applied.bytes), expected);
        prop_assert_eq!(applied.matches[0].pass, MatchPass::Exact);
    }

    /// The same through text: written as a patch, parsed and applied.
    #[test]
    fn a_written_patch_of_unique_lines_applies(kept in subsequence((0..40).collect::<Vec<_>>(), 5..40)) {
        let content: String = (0..40).map(|n| format!("line {n}\r\n")).collect();
        let body: String = (0..40)
            .map(|n| format!("@@\n{}line {n}\n", if kept.contains(&n) { ' ' } else { '-' }))
            .collect();
        let patch = format!("*** Begin Patch\n*** Update File: f\n{body}*** End Patch");
        let patch = parse(&patch).expect("a patch");
        let FileOperation::Update { chunks, .. } = &patch.operations[0] else { panic!("an update") };
        let applied = apply(&Text::decode(content.as_bytes()).expect("text"), chunks).expect("it applies");
        let expected: String = kept.iter().map(|n| format!("line {n}\r\n")).collect();
        prop_assert_eq!(String::from_utf8_lossy(&applied.bytes), expected);
    }

    #[test]
    fn untouched_lines_survive_a_forgiving_match(file in file(), at in 0usize..30) {
        prop_assume!(at < file.len() && !file[at].0.trim().is_empty());
        let content: String = file.iter().map(|(text, ending)| format!("{text}{ending}")).collect();
        let text = Text::decode(content.as_bytes()).expect("text");
        let padded = format!("   {}   ", file[at].0.trim());
        let chunk = PatchChunk { lines: vec![ChunkLine::Keep(&padded)], ..PatchChunk::default() };
        let applied = apply(&text, &[chunk]).expect("the line is there");
        prop_assert_eq!(String::from_utf8_lossy(&applied.bytes), content);
    }

    #[test]
    fn a_miss_can_always_be_described(file in "[a-c \t\r\n“é]{0,60}", wanted in vec("[a-d \té]{0,8}", 1..6)) {
        let text = Text::decode(file.as_bytes()).expect("text");
        let lines = wanted.iter().map(|line| ChunkLine::Remove(line)).collect();
        if let Err(ApplyError::Miss(miss)) = apply(&text, &[PatchChunk { lines, ..PatchChunk::default() }]) {
            prop_assert!(miss.describe("f").starts_with("Failed to find expected lines in f:\n"));
        }
    }

    #[test]
    fn an_edit_replaces_what_it_names(before in "[a-c\n]{0,10}", old in "[x-z]{1,3}", after in "[a-c\n]{0,10}") {
        let content = format!("{before}{old}{after}");
        let text = Text::decode(content.as_bytes()).expect("text");
        let applied = edit(&text, &old, "new", ReplaceCount::Exactly(1)).expect("it is there once");
        prop_assert_eq!(String::from_utf8_lossy(&applied.bytes), format!("{before}new{after}"));
    }

    #[test]
    fn a_diff_of_a_text_with_itself_is_empty(text in "\\PC{0,40}") {
        prop_assert_eq!(unified(&text, &text, 3), "");
    }

    #[test]
    fn a_diff_of_two_texts_makes_the_one_of_the_other(
        file in file(), decisions in decisions(), ends in any::<[bool; 2]>(), context in 0usize..4,
    ) {
        // A diff does not state line endings; those of the file are used.
        let line = |(text, _): &(String, &str)| format!("{text}\n");
        let cut = |mut text: String, is_whole: bool| {
            if !is_whole {
                text.pop();
            }
            text
        };
        let old = cut(file.iter().map(line).collect(), ends[0]);
        let changed = file.iter().zip(&decisions).flat_map(|(each, decision)| match decision {
            0..=5 => vec![line(each)],
            6 => vec![],
            7 => vec!["replaced\n".to_owned()],
            _ => vec!["before\n".to_owned(), line(each)],
        });
        let new = cut(changed.collect(), ends[1]);
        prop_assume!(old != new && !old.is_empty());
        let text = format!("--- a/f\n+++ b/f\n{}", unified(&old, &new, context));
        let patch = parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let FileOperation::Update { chunks, .. } = &patch.operations[0] else { panic!("an update: {text}") };
        let applied = apply(&Text::decode(old.as_bytes()).expect("text"), chunks);
        let applied = applied.unwrap_or_else(|error| panic!("{error}\n{text}"));
        prop_assert_eq!(String::from_utf8_lossy(&applied.bytes), new, "{}", text);
    }

    #[test]
    fn reading_what_is_nearly_a_diff_never_panics(
        lines in vec(prop_oneof![
            Just("diff --git a/x b/x"), Just("--- a/x"), Just("+++ b/x"), Just("@@ -1,2 +1,2 @@"), Just("@@ -0,0 +1 @@"),
            Just("@@ -9999999999999999999,1 +1 @@"), Just("@@"), Just(" a"), Just("-a"), Just("+b"), Just("\\ No newline"),
            Just("rename from x"), Just("rename to \"\\303\\244\""), Just("new file mode 100644"), Just("--- \"\\9\""),
            Just("--- /dev/null"), Just("+++ /dev/null"), Just("deleted file mode 100644"), Just(""),
        ], 0..14),
    ) {
        drop(parse(&lines.join("\n")));
    }
}
