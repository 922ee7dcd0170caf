//! Diffs in the formats of `git diff` and `diff -u`.

use super::*;
use crate::{Text, apply, parse};

fn one(text: &str) -> FileOperation<'_> {
    let mut patch = parse(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(patch.operations.len(), 1, "{text}");
    patch.operations.remove(0)
}

fn refused(text: &str) -> String {
    parse(text).expect_err(text).for_terminal()
}

/// Returns the file after applying a diff.
fn changed(file: &str, diff: &str) -> Result<String, String> {
    let FileOperation::Update { chunks, .. } = one(diff) else { panic!("not an update: {diff}") };
    let applied =
        apply(&Text::decode(file.as_bytes()).unwrap(), &chunks).map_err(|error| error.to_string())?;
    Ok(String::from_utf8(applied.bytes).unwrap())
}

const CHANGE: &str = "@@ -2,3 +2,3 @@ fn f\n b\n-c\n+C\n d\n";

#[test]
fn names_are_taken_without_the_prefixes_of_git() {
    for (header, expected) in [
        ("diff --git a/src/x.rs b/src/x.rs\nindex 1..2 100644\n--- a/src/x.rs\n+++ b/src/x.rs\n", "src/x.rs"),
        ("diff --git i/x w/x\n--- i/x\n+++ w/x\n", "x"),
        ("diff --git x x\n--- x\n+++ x\n", "x"),
        ("--- x.orig\t2026-01-01 00:00:00\n+++ x\t2026-01-02 00:00:00\n", "x"),
        ("--- a/x\n+++ b/x\n", "x"),
        ("--- a/x\n+++ a/x\n", "a/x"),
        ("diff --git a/my file.txt b/my file.txt\n--- a/my file.txt\n+++ b/my file.txt\n", "my file.txt"),
        ("--- \"a/\\346\\226\\207.txt\"\n+++ \"b/\\346\\226\\207.txt\"\n", "文.txt"),
        ("commit 1\nAuthor: x\n\n    --- not a header\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n", "x"),
    ] {
        assert_eq!(one(&format!("{header}{CHANGE}")).path(), expected, "{header}");
    }
}

#[test]
fn new_deleted_and_renamed_files_are_told_apart() {
    let new = "diff --git a/n b/n\nnew file mode 100644\nindex 0..1\n--- /dev/null\n+++ b/n\n@@ -0,0 +1,2 @@\n+a\n+b\n";
    let added =
        |content: &str| FileOperation::Add { path: "n".into(), content: content.into(), must_be_new: true };
    assert_eq!(one(new), added("a\nb\n"));
    assert_eq!(one(&format!("{new}\\ No newline at end of file\n")), added("a\nb"));
    assert_eq!(one("diff --git a/n b/n\nnew file mode 100644\nindex 0..e69de29\n"), added(""));
    let gone = "diff --git a/n b/n\ndeleted file mode 100644\n--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n";
    assert!(matches!(one(gone), FileOperation::Delete { removes: Some(chunks), .. } if chunks.len() == 1));
    let moved = "diff --git a/n b/m\nsimilarity index 100%\nrename from n\nrename to m\n";
    let rename = FileOperation::Update { path: "n".into(), move_to: Some("m".into()), chunks: vec![] };
    assert_eq!(one(moved), rename);
    let both = format!(
        "diff --git a/n b/m\nsimilarity index 90%\nrename from n\nrename to m\n--- a/n\n+++ b/m\n{CHANGE}"
    );
    assert_eq!((one(&both).path(), one(&both).move_to()), ("n", Some("m")));
}

#[test]
fn a_hunk_goes_where_its_line_number_says() {
    let twice = "x\na\nx\na\nx\n";
    let diff = |line: usize| format!("--- a/f\n+++ b/f\n@@ -{line} +{line} @@\n-a\n+b\n");
    assert_eq!(changed(twice, &diff(2)).unwrap(), "x\nb\nx\na\nx\n");
    assert_eq!(changed(twice, &diff(4)).unwrap(), "x\na\nx\nb\nx\n");
    let insert = "--- a/f\n+++ b/f\n@@ -2,0 +3 @@\n+new\n";
    assert_eq!(changed("1\n2\n3\n", insert).unwrap(), "1\n2\nnew\n3\n");
    assert_eq!(
        changed("0\n0\na\nb\nc\nd\n", &format!("--- a/f\n+++ b/f\n{CHANGE}")).unwrap(),
        "0\n0\na\nb\nC\nd\n"
    );
}

#[test]
fn lines_that_are_not_there_to_the_letter_are_refused() {
    let diff = format!("--- a/f\n+++ b/f\n{CHANGE}");
    assert!(changed("a\n b\nc\nd\n", &diff).is_err());
    assert!(changed("", &diff).is_err());
    assert!(changed("1\n", "--- a/f\n+++ b/f\n@@ -9,0 +10 @@\n+x\n").is_err());
}

#[test]
fn the_newline_at_the_end_is_as_the_diff_says() {
    let mark = "\\ No newline at end of file\n";
    let head = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n";
    assert_eq!(changed("a", &format!("{head}-a\n{mark}+b\n{mark}")).unwrap(), "b");
    assert_eq!(changed("a", &format!("{head}-a\n{mark}+a\n")).unwrap(), "a\n");
    assert_eq!(changed("a\n", &format!("{head}-a\n+a\n{mark}")).unwrap(), "a");
    let context = format!("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+b\n c\n{mark}");
    assert_eq!(changed("a\nc", &context).unwrap(), "b\nc");
}

#[test]
fn the_line_endings_of_a_file_stay() {
    let diff = "--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+c\r\n";
    assert_eq!(changed("a\r\nb\r\n", diff).unwrap(), "a\r\nc\r\n");
}

#[test]
fn what_cannot_be_applied_is_named() {
    let git = "diff --git a/x b/x\n";
    for (diff, part) in [
        (format!("{git}old mode 100644\nnew mode 100755\n"), "line 3: a change of mode (to 100755)"),
        (
            format!("{git}new file mode 120000\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n"),
            "a symbolic link",
        ),
        (format!("{git}new file mode 100755\n--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+y\n"), "mode 100755"),
        (format!("{git}index 1..2\nBinary files a/x and b/x differ\n"), "a diff of a binary file"),
        (format!("{git}index 1..2\nGIT binary patch\nliteral 1\n"), "a diff of a binary file"),
        (format!("{git}similarity index 100%\ncopy from x\ncopy to y\n"), "a copy of a file"),
        ("diff --cc x\n@@@ -1,1 -1,1 +1,1 @@@\n--- a/x\n+++ b/x\n".to_owned(), "a combined diff"),
        ("@@ -1 +1 @@\n-a\n+b\n".to_owned(), "without the name of its file"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n".to_owned(), "ends within a hunk"),
        ("--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\nb\n".to_owned(), "has not the lines"),
        ("--- a/x\n+++ b/x\n@@ -a +1 @@\n-a\n+b\n".to_owned(), "cannot be read"),
        (format!("{git}index 1..2\n"), "nothing is said"),
        ("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+a\n".to_owned(), "only line endings"),
        (format!("--- a/x\n+++ b/x\n{CHANGE}--- a/x\n+++ b/x\n{CHANGE}"), "multiple operations target x"),
    ] {
        let said = refused(&diff);
        assert!(said.contains(part), "{diff}\n{said}");
    }
}
