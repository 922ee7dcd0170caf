//! Diffs in the format of git.

use proptest::prelude::*;

use super::*;

fn side<'a>(path: &'a str, text: &'a str) -> Side<'a> {
    Side { path, bytes: text.as_bytes(), executable: false }
}

#[test]
fn a_change_has_its_surroundings() {
    let old = (1..=12).map(|n| format!("{n}\n")).collect::<String>();
    let new = old.replace("6\n", "six\n");
    assert_eq!(
        diff(Some(side("f", &old)), Some(side("f", &new))),
        "diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+six\n 7\n 8\n 9\n"
    );
    assert_eq!(unified(&old, &new, 1), "@@ -5,3 +5,3 @@\n 5\n-6\n+six\n 7\n");
    assert_eq!(unified(&old, &new, 0), "@@ -6 +6 @@\n-6\n+six\n");
}

#[test]
fn changes_near_each_other_share_a_hunk() {
    let old = (1..=20).map(|n| format!("{n}\n")).collect::<String>();
    let near = old.replace("\n5\n", "\nfive\n").replace("\n12\n", "\ntwelve\n");
    assert_eq!(unified(&old, &near, 3).matches("@@ -").count(), 1);
    let far = old.replace("\n5\n", "\nfive\n").replace("\n13\n", "\nthirteen\n");
    assert_eq!(unified(&old, &far, 3).matches("@@ -").count(), 2);
}

#[test]
fn new_deleted_renamed_and_executable_files_say_so() {
    assert_eq!(
        diff(None, Some(side("n", "a\n"))),
        "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+a\n"
    );
    assert_eq!(
        diff(Some(side("o", "a\nb\n")), None),
        "diff --git a/o b/o\ndeleted file mode 100644\n--- a/o\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    );
    assert_eq!(
        diff(Some(side("o", "a\n")), Some(side("n", "a\n"))),
        "diff --git a/o b/n\nsimilarity index 100%\nrename from o\nrename to n\n"
    );
    let script = Side { executable: true, ..side("o", "a\n") };
    assert_eq!(
        diff(Some(side("o", "a\n")), Some(script)),
        "diff --git a/o b/o\nold mode 100644\nnew mode 100755\n"
    );
    assert_eq!(diff(None, Some(side("e", ""))), "diff --git a/e b/e\nnew file mode 100644\n");
    assert_eq!(diff(Some(script), Some(script)), "");
    assert_eq!(diff(None, None), "");
}

#[test]
fn a_missing_final_newline_is_told() {
    assert_eq!(
        unified("a\nb", "a\nc", 3),
        "@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    );
}

#[test]
fn binaries_only_differ() {
    let binary = Side { bytes: b"\0\x01", ..side("f", "") };
    assert_eq!(
        diff(Some(side("f", "a\n")), Some(binary)),
        "diff --git a/f b/f\nBinary files a/f and b/f differ\n"
    );
}

#[test]
fn other_encodings_and_strange_names_can_be_read() {
    let old = Side { bytes: b"caf\xE9 cr\xE8me br\xFBl\xE9e\n", ..side("f", "") };
    assert!(diff(Some(old), Some(side("f", "x\n"))).contains("-café crème brûlée\n"));
    assert_eq!(unified("\u{FEFF}a\n", "a\n", 0), "@@ -1 +1 @@\n-\u{FEFF}a\n+a\n");
    assert!(diff(None, Some(side("a\"\nb", ""))).starts_with("diff --git \"a/a\\\"\\nb\" \"b/a\\\"\\nb\"\n"));
}

#[test]
fn files_with_little_in_common_are_quick() {
    let old = (0..100_000).map(|n| format!("{}\n", n % 7)).collect::<String>();
    let new = (0..100_000).map(|n| format!("{}\n", n % 5)).collect::<String>();
    assert!(unified(&old, &new, 3).len() > 100_000);
}

/// Applies hunks to a text, by their line numbers alone.
fn patched(old: &str, hunks: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut out = String::new();
    let mut at = 0;
    let mut rows = hunks.split_inclusive('\n').peekable();
    while let Some(row) = rows.next() {
        let no_newline = rows.next_if(|next| next.starts_with('\\')).is_some();
        let text = if no_newline { row[1..].trim_end_matches('\n') } else { &row[1..] };
        match &row[..1] {
            "@" => {
                let numbers = row.split(['-', ' ', ',']).filter_map(|part| part.parse::<usize>().ok());
                let start = numbers.take(1).sum::<usize>();
                let start = if row.contains(",0 +") { start } else { start - 1 };
                out.extend(old[at..start].iter().copied());
                at = start;
            }
            "+" => out.push_str(text),
            sign => {
                assert_eq!(old[at], text);
                out.push_str(if sign == " " { text } else { "" });
                at += 1;
            }
        }
    }
    out.extend(old[at..].iter().copied());
    out
}

proptest! {
    #[test]
    fn the_hunks_lead_from_the_one_to_the_other(
        old in "([abc]?\n){0,20}[ab]?", new in "([abc]?\n){0,20}[ab]?", context in 0usize..4,
    ) {
        prop_assert_eq!(patched(&old, &unified(&old, &new, context)), new);
    }
}
