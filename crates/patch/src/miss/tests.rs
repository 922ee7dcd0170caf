//! Explanations of a miss.

use super::*;

fn nearest_of(file: &str, old: &str) -> Option<NearestLines> {
    let file: Vec<&str> = file.lines().collect();
    let old: Vec<&str> = old.lines().collect();
    nearest(&file, &old, 0)
}

#[test]
fn blanks_that_matter_are_visible() {
    assert_eq!(visible("  a b\tc  d \r"), "··a b→c··d·␍");
    assert_eq!(visible("a\u{A0}b\u{200B}c\u{7}"), "a⍽b<U+200B>c<U+0007>");
    assert_eq!(visible("   "), "···");
    assert!(visible(&"x".repeat(1000)).len() < 300);
}

#[test]
fn a_rare_line_weighs_more_than_a_common_one() {
    let file = "}\n}\n}\nfn rare() {\n  one\n}\n";
    let found = nearest_of(file, "fn rare() {\n  two\n}").expect("a block");
    assert_eq!((found.line, found.end), (4, 6));
}

#[test]
fn lines_the_file_has_in_between_are_shown() {
    let found = nearest_of("a\nb\nextra\nc\nd\n", "a\nb\nc").expect("a block");
    assert_eq!(found.difference, "      1  a\n      2  b\n+     3  extra\n      4  c\n");
}

#[test]
fn lines_of_the_file_beyond_what_was_looked_for_are_not_shown() {
    let found = nearest_of("a\nb\nfile\nmore\nand more\n", "a\nb\nmine").expect("a block");
    assert_eq!(found.difference, "      1  a\n      2  b\n-        mine\n+     3  file\n");
}

#[test]
fn a_line_of_which_only_the_likeness_is_there_is_found() {
    let found =
        nearest_of("alpha\nlet total = compute(items, 3);\nomega\n", "let total = compute(items, 4);");
    assert_eq!(found.map(|found| (found.line, found.end)), Some((2, 2)));
}

#[test]
fn nothing_alike_is_nothing_near() {
    assert_eq!(nearest_of("alpha\nbeta\n", "zzzzzzzz qqqq"), None);
}

#[test]
fn a_long_block_is_shown_in_part() {
    let old = (0..500).map(|n| format!("line {n}\n")).collect::<String>();
    let file = old.replace("line 7\n", "line seven\n");
    let found = nearest_of(&file, &old[..200]).expect("a block");
    assert!(found.difference.contains("line seven"));
    let lines: Vec<&str> = old.lines().collect();
    assert!(list_lines(&lines).ends_with("… and 440 more lines"));
    assert!(list_lines(&lines[..=MAX_SHOWN_LINES]).ends_with("… and 1 more line"));
}
