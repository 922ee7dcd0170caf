//! The passes one by one, and the search compared with a naive one.

use proptest::prelude::*;

use super::*;

fn seek(lines: &[&str], pattern: &[&str], start: usize) -> Option<(usize, MatchPass)> {
    LineSeeker::new(lines.to_vec()).seek(pattern, start).ok().map(|found| (found.at, found.pass))
}

#[test]
fn passes_come_in_order() {
    assert_eq!(seek(&["foo", "bar", "baz"], &["bar", "baz"], 0), Some((1, MatchPass::Exact)));
    assert_eq!(seek(&["foo   ", "bar\t"], &["foo", "bar"], 0), Some((0, MatchPass::TrailingBlanks)));
    assert_eq!(seek(&["  foo", "bar"], &["foo", " bar"], 0), Some((0, MatchPass::Indentation)));
    assert_eq!(seek(&["‘a’ − b"], &["'a' - b"], 0), Some((0, MatchPass::Typography)));
    assert_eq!(seek(&["a"], &["b"], 0), None);
}

#[test]
fn what_is_longer_than_the_file_is_not_in_it() {
    assert_eq!(seek(&["a"], &["a", "a"], 0), None);
    assert_eq!(LineSeeker::new(vec!["a"]).seek_end(&["a", "a"], 0), Err(SeekError::Absent));
}

#[test]
fn the_search_begins_where_it_is_told_to() {
    assert_eq!(seek(&["a", "b", "a"], &["a"], 1), Some((2, MatchPass::Exact)));
    assert_eq!(seek(&["a", "b", "a"], &["a"], 3), None);
    assert_eq!(seek(&["a"], &[], 1), Some((1, MatchPass::Exact)));
}

#[test]
fn the_end_is_not_before_the_start() {
    let seeker = LineSeeker::new(vec!["a", "b", "a"]);
    assert_eq!(seeker.seek_end(&["a"], 0), Ok(SeekMatch { at: 2, pass: MatchPass::Exact }));
    assert_eq!(seeker.seek_end(&["a"], 3), Err(SeekError::Absent));
}

#[test]
fn work_is_bounded_over_all_searches() {
    let mut lines = vec!["a"; 1000];
    lines.push("b");
    let seeker = LineSeeker { budget: 100_000, ..LineSeeker::new(lines) };
    // All lines occur, but never in this order, so each search goes through the whole file.
    let results: Vec<_> = (0..100).map(|_| seeker.seek(&["a", "b", "a"], 0)).collect();
    assert_eq!(results[0], Err(SeekError::Absent));
    assert_eq!(results[99], Err(SeekError::Exhausted));
}

#[test]
fn hashes_tell_lines_apart() {
    let lines: Vec<String> = (0..20_000).map(|n| format!("{}{n}", " ".repeat(n % 9))).collect();
    let mut hashes: Vec<u64> = lines.iter().map(|line| hash(line.as_bytes())).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), lines.len());
    assert_ne!(hash(b"a"), hash(b"a\0"));
}

proptest! {
    #[test]
    fn it_finds_what_the_plainest_search_finds(
        file in prop::collection::vec("[ab]", 0..40),
        pattern in prop::collection::vec("[ab]", 1..6),
        start in 0usize..42,
    ) {
        let file: Vec<&str> = file.iter().map(String::as_str).collect();
        let pattern: Vec<&str> = pattern.iter().map(String::as_str).collect();
        let plain = (start..file.len()).find(|at| file[*at..].starts_with(&pattern));
        prop_assert_eq!(seek(&file, &pattern, start), plain.map(|at| (at, MatchPass::Exact)));
    }
}
