//! Patches, texts that are nearly patches, and the errors for others.

use super::*;

fn patch(body: &str) -> String {
    format!("*** Begin Patch\n{body}\n*** End Patch")
}

fn update<'a>(path: &'a str, chunks: Vec<PatchChunk<'a>>) -> ParsedPatch<'a> {
    ParsedPatch { operations: vec![FileOperation::Update { path: path.into(), move_to: None, chunks }] }
}

fn chunk<'a>(lines: &[ChunkLine<'a>]) -> PatchChunk<'a> {
    PatchChunk { lines: lines.to_vec(), ..PatchChunk::default() }
}

fn refused(text: &str) -> String {
    parse(text).expect_err("it must be refused").for_terminal()
}

#[test]
fn every_kind_of_operation_is_read() {
    let text = patch(
        "*** Add File: a/new.txt\n+one\n+\n*** Delete File: old.txt\n*** Update File: x\n*** Move to: y\n@@ fn f\n \
         kept\n-gone\n+come\n*** End of File",
    );
    let chunk = PatchChunk {
        contexts: vec!["fn f"],
        lines: vec![ChunkLine::Keep("kept"), ChunkLine::Remove("gone"), ChunkLine::Insert("come")],
        at_end: true,
        ..PatchChunk::default()
    };
    let expected = vec![
        FileOperation::Add { path: "a/new.txt".into(), content: "one\n\n".into(), must_be_new: false },
        FileOperation::Delete { path: "old.txt".into(), removes: None },
        FileOperation::Update { path: "x".into(), move_to: Some("y".into()), chunks: vec![chunk] },
    ];
    assert_eq!(parse(&text), Ok(ParsedPatch { operations: expected }));
}

#[test]
fn no_operation_is_a_patch_that_does_nothing() {
    assert_eq!(parse("*** Begin Patch\n*** End Patch"), Ok(ParsedPatch { operations: vec![] }));
}

#[test]
fn an_added_file_may_be_empty() {
    let expected = FileOperation::Add { path: "empty".into(), content: String::new(), must_be_new: false };
    assert_eq!(parse(&patch("*** Add File: empty")), Ok(ParsedPatch { operations: vec![expected] }));
}

#[test]
fn blanks_around_markers_and_headers_do_not_matter() {
    let text = "\n  *** Begin Patch \n   *** Update File: x  \n@@ \n-a\n+b\n *** End Patch\n\n";
    assert_eq!(parse(text), Ok(update("x", vec![chunk(&[ChunkLine::Remove("a"), ChunkLine::Insert("b")])])));
}

#[test]
fn the_first_chunk_needs_no_marker_and_later_ones_do() {
    let text = patch("*** Update File: x\n a\n+b\n@@\n-c");
    let chunks =
        vec![chunk(&[ChunkLine::Keep("a"), ChunkLine::Insert("b")]), chunk(&[ChunkLine::Remove("c")])];
    assert_eq!(parse(&text), Ok(update("x", chunks)));
    assert_eq!(
        refused(&patch("*** Update File: x\n a\n+b\n*c")),
        "Invalid patch hunk on line 5: Expected update hunk to start with a @@ context marker, got: '*c'"
    );
}

#[test]
fn an_empty_line_in_a_chunk_is_an_empty_context_line() {
    let text = patch("*** Update File: x\n\n@@\n a\n\n+b");
    let lines = [ChunkLine::Keep("a"), ChunkLine::Keep(""), ChunkLine::Insert("b")];
    assert_eq!(parse(&text), Ok(update("x", vec![chunk(&lines)])));
}

#[test]
fn several_context_lines_are_gone_past_in_turn() {
    let text = patch("*** Update File: x\n@@ class A\n@@ def f\n-a");
    let chunk = PatchChunk { contexts: vec!["class A", "def f"], ..chunk(&[ChunkLine::Remove("a")]) };
    assert_eq!(parse(&text), Ok(update("x", vec![chunk])));
}

#[test]
fn here_documents_and_fences_around_a_patch_are_taken_off() {
    let plain = patch("*** Delete File: x");
    let expected = parse(&plain);
    assert!(expected.is_ok());
    for (before, after) in [("<<EOF", "EOF"), ("<<'EOF'", "EOF"), ("<<\"EOF\"", "EOF"), ("```diff", "```")] {
        assert_eq!(parse(&format!("{before}\n{plain}\n{after}\n")), expected, "{before}");
    }
    assert_eq!(parse(&format!("<<OTHER\n{plain}\nOTHER")), Err(ParseError::NoBegin));
    assert_eq!(parse(&format!("<<'EOF'\n{plain}\n")), Err(ParseError::NoBegin));
    assert_eq!(parse("<<EOF\n*** Begin Patch\nEOF"), Err(ParseError::NoBegin));
}

#[test]
fn windows_line_endings_are_no_part_of_the_lines() {
    let text = patch("*** Update File: x\n@@\n-a\n+b").replace('\n', "\r\n");
    assert_eq!(parse(&text), Ok(update("x", vec![chunk(&[ChunkLine::Remove("a"), ChunkLine::Insert("b")])])));
}

#[test]
fn a_rename_needs_no_chunk_and_an_update_does() {
    let operation = FileOperation::Update { path: "x".into(), move_to: Some("y".into()), chunks: vec![] };
    assert_eq!(
        parse(&patch("*** Update File: x\n*** Move to: y")),
        Ok(ParsedPatch { operations: vec![operation] })
    );
    assert_eq!(
        refused(&patch("*** Update File: x")),
        "Invalid patch hunk on line 2: Update file hunk for path 'x' is empty"
    );
}

#[test]
fn a_move_to_the_same_place_is_no_move() {
    let text = patch("*** Update File: x\n*** Move to: ./x\n@@\n-a");
    assert_eq!(parse(&text), Ok(update("x", vec![chunk(&[ChunkLine::Remove("a")])])));
}

#[test]
fn two_operations_on_one_path_are_refused() {
    for body in [
        "*** Add File: x\n+a\n*** Delete File: x",
        "*** Delete File: a/../x\n*** Add File: ./x",
        "*** Update File: a\n*** Move to: x\n*** Add File: x",
        "*** Delete File: /t//x\n*** Delete File: /t/x",
    ] {
        let error = parse(&patch(body)).expect_err(body);
        assert!(error.to_string().starts_with("multiple operations target "), "{error}");
    }
    assert!(parse(&patch("*** Delete File: x\n*** Delete File: ../x\n*** Delete File: ../../x")).is_ok());
}

#[test]
fn what_is_wrong_is_said_in_the_words_models_know() {
    let begin = "Invalid patch: The first line of the patch must be '*** Begin Patch'";
    assert_eq!(refused(""), begin);
    assert_eq!(refused("bad"), begin);
    assert_eq!(
        refused("*** Begin Patch\nbad"),
        "Invalid patch: The last line of the patch must be '*** End Patch'"
    );
    assert_eq!(
        refused("*** Begin Patch"),
        "Invalid patch: The last line of the patch must be '*** End Patch'"
    );
    assert_eq!(
        refused(&patch("*** Frobnicate File: foo")),
        "Invalid patch hunk on line 2: '*** Frobnicate File: foo' is not a valid hunk header. Valid hunk headers: \
         '*** Add File: {path}', '*** Delete File: {path}', '*** Update File: {path}'"
    );
    assert_eq!(
        refused(&patch("*** Update File: x\n@@\n*** End of File")),
        "Invalid patch hunk on line 4: Update hunk does not contain any lines"
    );
    assert_eq!(
        refused(&patch("*** Update File: x\n@@")),
        "Invalid patch hunk on line 4: Update hunk does not contain any lines"
    );
    assert_eq!(
        refused(&patch("*** Update File: x\n@@\nbad")),
        "Invalid patch hunk on line 4: Unexpected line found in update hunk: 'bad'. Every line should start with ' ' \
         (context line), '+' (added line), or '-' (removed line)"
    );
    assert_eq!(
        parse(&patch("*** Add File:")).map_err(|error| error.to_string()[..25].to_owned()),
        Err("invalid hunk at line 2, '".to_owned())
    );
}

#[test]
fn a_path_of_another_system_is_refused_with_a_hint() {
    assert_eq!(
        refused(&patch("*** Delete File: src\\main.rs")),
        "Invalid patch hunk on line 2: the path 'src\\main.rs' has backslashes: write it with '/'"
    );
    assert!(refused(&patch("*** Delete File: C:\\x")).contains("backslashes"));
    assert!(refused(&patch("*** Delete File: a\0b")).contains("NUL"));
}

#[test]
fn a_patch_beyond_the_limit_is_refused_unread() {
    let error =
        parse(&patch(&format!("*** Add File: x\n+{}", "a".repeat(MAX_PATCH_BYTES)))).expect_err("too large");
    assert!(matches!(error, ParseError::TooLarge { .. }));
    assert!(error.to_string().contains("Split it"), "{error}");
}

#[test]
fn a_long_line_is_not_quoted_whole() {
    assert!(refused(&patch(&"y".repeat(100_000))).len() < 1000);
}
