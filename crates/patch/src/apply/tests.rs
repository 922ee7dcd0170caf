//! Positions of chunks, and bytes that must not change.

use super::*;
use crate::{FileOperation, MissReason, MissTarget, NearestLines, parse};

fn applied_bytes(file: &[u8], body: &str) -> Result<AppliedChange, ApplyError> {
    let patch = format!("*** Begin Patch\n*** Update File: f\n{body}\n*** End Patch");
    let patch = parse(&patch).expect("a patch");
    let FileOperation::Update { chunks, .. } = &patch.operations[0] else { panic!("an update") };
    apply(&Text::decode(file).expect("text"), chunks)
}

fn applied(file: &str, body: &str) -> String {
    let applied = applied_bytes(file.as_bytes(), body).expect("it applies");
    String::from_utf8(applied.bytes).expect("UTF-8")
}

fn missed(file: &str, body: &str) -> MissReport {
    match applied_bytes(file.as_bytes(), body) {
        Err(ApplyError::Miss(miss)) => *miss,
        other => panic!("not a miss: {other:?}"),
    }
}

fn position(file: &str, body: &str) -> Vec<(usize, MatchPass)> {
    let applied = applied_bytes(file.as_bytes(), body).expect("it applies");
    applied.matches.iter().map(|position| (position.line, position.pass)).collect()
}

#[test]
fn lines_are_replaced_where_they_are() {
    assert_eq!(applied("a\nb\nc\n", "@@\n a\n-b\n+B\n c"), "a\nB\nc\n");
    assert_eq!(applied("a\nb\nc\nd\n", "@@\n-a\n+A\n@@\n-d\n+D"), "A\nb\nc\nD\n");
}

#[test]
fn context_leads_to_the_right_one_of_several() {
    let file = "def a():\n    x\ndef b():\n    x\n";
    assert_eq!(applied(file, "@@ def b():\n-    x\n+    y"), "def a():\n    x\ndef b():\n    y\n");
    let file = "class A\n  def f\n    x\nclass B\n  def f\n    x\n";
    assert_eq!(
        applied(file, "@@ class B\n@@   def f\n-    x\n+    y"),
        "class A\n  def f\n    x\nclass B\n  def f\n    y\n"
    );
}

#[test]
fn a_context_line_may_be_repeated_as_the_first_line() {
    assert_eq!(applied("a\nx\nb\nx\n", "@@ b\n b\n-x\n+y"), "a\nx\nb\ny\n");
}

#[test]
fn line_numbers_of_a_unified_diff_are_no_context() {
    assert_eq!(applied("a\nb\n", "@@ -1,2 +1,2 @@ fn x()\n a\n-b\n+c"), "a\nc\n");
    assert_eq!(missed("a\nb\n", "@@ -1,2 +1,2\n-b").looked_for, MissTarget::Context("-1,2 +1,2".into()));
}

#[test]
fn additions_without_surroundings_go_to_the_end() {
    assert_eq!(applied("a\n", "@@\n+b\n+c"), "a\nb\nc\n");
    assert_eq!(applied("a\n\n", "@@\n+b"), "a\nb\n\n");
    assert_eq!(applied("", "@@\n+b"), "b\n");
    assert_eq!(applied("a\nb\nc\n", "@@\n+after\n@@\n a\n-b\n+B"), "a\nB\nc\nafter\n");
    assert_eq!(applied("a\nb\n", "@@ a\n+c\n@@\n+d"), "a\nb\nc\nd\n");
    let applied = applied_bytes(b"a\nb\n", "@@ a\n+c").expect("it applies");
    assert_eq!(
        applied.matches,
        [MatchPosition { line: 3, pass: MatchPass::Exact, others: vec![], appended: true }]
    );
}

#[test]
fn an_addition_survives_a_chunk_that_covers_its_place() {
    assert_eq!(applied("a\n\n", "@@\n+new\n@@\n a\n-"), "a\nnew\n");
}

#[test]
fn a_missing_final_newline_stays_missing_unless_the_last_line_is_replaced() {
    assert_eq!(applied("a\nb\nc", "@@\n-a\n+A"), "A\nb\nc");
    assert_eq!(applied("a\nb\nc", "@@\n-b\n c"), "a\nc");
    assert_eq!(applied("a\nb", "@@\n-b\n+B"), "a\nB\n");
    assert_eq!(applied("a\nb", "@@\n-b"), "a\n");
    assert_eq!(applied("a\nb", "@@\n+c"), "a\nb\nc\n");
    assert_eq!(applied("no newline", "@@\n-no newline\n+first\n+second"), "first\nsecond\n");
}

#[test]
fn every_line_keeps_its_ending_and_new_ones_take_the_first() {
    assert_eq!(applied("a\r\nb\r\nc\r\n", "@@\n a\n-b\n+B\n+C"), "a\r\nB\r\nC\r\nc\r\n");
    assert_eq!(applied("a\r\nb\nc\rd\n", "@@\n b\n+x\n c"), "a\r\nb\nx\r\nc\rd\n");
    assert_eq!(applied("a\rb\rc", "@@\n-b\n+B"), "a\rB\rc");
    assert_eq!(applied("a\r\nb", "@@\n+c"), "a\r\nb\r\nc\r\n");
}

#[test]
fn context_lines_keep_the_files_own_text() {
    assert_eq!(applied("\tif x:  \n\t\ty\n", "@@\n if x:\n-y\n+z"), "\tif x:  \nz\n");
    assert_eq!(applied("a – b\nc\n", "@@\n a - b\n-c\n+d"), "a – b\nd\n");
}

#[test]
fn the_pass_that_matched_is_told() {
    assert_eq!(position("x\na\n", "@@\n-a"), [(2, MatchPass::Exact)]);
    assert_eq!(position("a  \n", "@@\n-a"), [(1, MatchPass::TrailingBlanks)]);
    assert_eq!(position("\ta\n", "@@\n-  a"), [(1, MatchPass::Indentation)]);
    assert_eq!(position("“a”\u{A0}—\n", "@@\n-\"a\" -"), [(1, MatchPass::Typography)]);
}

#[test]
fn a_match_says_what_was_not_quite_right() {
    let said =
        |file: &str, body| applied_bytes(file.as_bytes(), body).expect("it applies").matches[0].to_string();
    assert_eq!(said("a\n", "@@\n-a"), "line 1");
    assert_eq!(said("x\n\ta\n", "@@\n-a"), "line 2 (ignoring indentation)");
    assert_eq!(said("a\n", "@@\n+b"), "line 2 (the end of the file, as no lines were given around it)");
}

#[test]
fn lone_carriage_returns_end_lines_in_patches_as_in_files() {
    assert_eq!(applied("x\ra\nb\n", "@@\n x\ra\n-b\n+c"), "x\ra\nc\n");
    assert_eq!(applied("x\ra\nb\n", "@@\n-x\ra\n+y\rz"), "y\rz\nb\n");
}

#[test]
fn a_better_pass_further_down_wins_over_a_worse_one_above() {
    assert_eq!(applied(" a\na\n", "@@\n-a\n+b"), " a\nb\n");
}

#[test]
fn of_several_places_the_first_is_taken_and_the_others_are_told() {
    let applied = applied_bytes(b"a\nb\na\nb\na\n", "@@\n-a\n+x").expect("it applies");
    assert_eq!(applied.bytes, b"x\nb\na\nb\na\n");
    assert_eq!(applied.matches[0].others, [3, 5]);
    assert_eq!(applied.matches[0].to_string(), "line 1, the first of several places: also line 3, 5");
}

#[test]
fn the_end_of_file_marker_means_the_end() {
    assert_eq!(applied("a\nb\na\n", "@@\n-a\n+c\n*** End of File"), "a\nb\nc\n");
    assert_eq!(missed("a\nb\n", "@@\n-a\n+c\n*** End of File").reason, Some(MissReason::NotAtEnd(1)));
    assert_eq!(missed("a\nb\n", "@@\n-a\n-b\n@@\n-b\n*** End of File").reason, Some(MissReason::Earlier(2)));
}

#[test]
fn a_blank_last_line_that_the_file_lacks_is_left_out() {
    assert_eq!(applied("a\nb\n", "@@\n a\n-b\n+c\n "), "a\nc\n");
    assert_eq!(applied("a\nb\n", "@@\n-b\n-\n+c\n+"), "a\nc\n");
    assert_eq!(applied("a\nb\n", "@@\n b\n \n+c"), "a\nb\n\nc\n");
}

#[test]
fn chunks_out_of_order_are_told_apart_from_missing_ones() {
    let miss = missed("a\nb\nc\n", "@@\n-c\n@@\n-a");
    assert_eq!((miss.chunk, miss.reason, miss.nearest), (1, Some(MissReason::Earlier(1)), None));
}

#[test]
fn a_miss_shows_the_nearest_lines_and_what_differs() {
    let miss =
        missed("fn a() {\n\tlet x = 1;\n\tfoo(x);\n}\n", "@@\n fn a() {\n-    let x = 2;\n     foo(x);\n }");
    let difference = "      1  fn a() {\n-        ····let x = 2;\n+     2  →let x = 1;\n-        ····foo(x);\n+     3  →foo(x);\n      4  }\n";
    assert_eq!(miss.nearest, Some(NearestLines { line: 1, end: 4, difference: difference.into() }));
    let story = miss.describe("src/a.rs");
    assert!(
        story.starts_with("Failed to find expected lines in src/a.rs:\nfn a() {\n    let x = 2;\n"),
        "{story}"
    );
}

#[test]
fn a_missing_context_is_told_with_the_nearest_line() {
    let miss = missed("def greet(name):\n    pass\n", "@@ def greet(nam):\n-    pass");
    let difference = "-        def greet(nam):\n+     1  def greet(name):\n";
    assert_eq!(miss.nearest, Some(NearestLines { line: 1, end: 1, difference: difference.into() }));
    assert!(
        miss.describe("f").starts_with("Failed to find context 'def greet(nam):' in f\n\nNearest is line 1.")
    );
}

#[test]
fn an_empty_file_is_told() {
    assert_eq!(missed("", "@@\n-a").reason, Some(MissReason::EmptyFile));
}

#[test]
fn encodings_and_byte_order_marks_stay() {
    let utf16: Vec<u8> = "\u{FEFF}ä\r\nb\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let expected: Vec<u8> = "\u{FEFF}ä\r\nö\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(applied_bytes(&utf16, "@@\n ä\n-b\n+ö").expect("it applies").bytes, expected);
    assert_eq!(
        applied_bytes(b"\xEF\xBB\xBFa\nb\n", "@@\n-a\n+x").expect("it applies").bytes,
        b"\xEF\xBB\xBFx\nb\n"
    );
    let latin = b"# na\xEFve caf\xE9 d\xE9j\xE0 vu\nprix = 1\n";
    assert_eq!(
        applied_bytes(latin, "@@\n # naïve café déjà vu\n-prix = 1\n+prix = 'é'").expect("it applies").bytes,
        b"# na\xEFve caf\xE9 d\xE9j\xE0 vu\nprix = '\xE9'\n"
    );
    assert!(matches!(
        applied_bytes(latin, "@@\n-prix = 1\n+prix = '猫'"),
        Err(ApplyError::Unencodable(UnencodableChar { character: '猫', .. }))
    ));
}

#[test]
fn equal_lines_everywhere_are_no_trouble() {
    let file = "x\n".repeat(50_000);
    let body = format!("@@\n{}-y", " x\n".repeat(20_000));
    assert!(matches!(applied_bytes(file.as_bytes(), &body), Err(ApplyError::Miss(_))));
    let body = "@@\n x\n+y\n".repeat(5_000);
    assert_eq!(applied(&file, &body).len(), 110_000);
}
