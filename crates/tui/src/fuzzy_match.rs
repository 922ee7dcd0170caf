//! Fuzzy matching of the names of files: all characters of a request must occur in order.

use std::cmp::Reverse;

/// Points for a character that follows the one before it without a gap.
const NEXT_POINTS: usize = 8;

/// Points for a character at the beginning of a word.
const WORD_POINTS: usize = 6;

/// Points for a match in the name of the file and not in its directory.
const FILE_POINTS: usize = 40;

/// Maximum number of characters of a request that are looked at.
const MAX_WANTED_CHARS: usize = 64;

/// Maximum number of places in a name where a match is tried.
const MAX_PLACES: usize = 6;

/// Returns the best matches, at most so many. Case does not matter.
pub(crate) fn best_matches(names: &[String], wanted: &str, max_matches: usize) -> Vec<String> {
    let wanted: Vec<char> = wanted.chars().take(MAX_WANTED_CHARS).map(lower).collect();
    let mut found = Vec::new();
    for name in names {
        found.extend(points(name, &wanted).map(|points| (Reverse(points), name.len(), name)));
    }
    if found.len() > max_matches {
        found.select_nth_unstable(max_matches);
        found.truncate(max_matches);
    }
    found.sort();
    found.into_iter().map(|(_, _, name)| name.clone()).collect()
}

fn lower(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

/// Returns the points of a name, if it matches.
fn points(name: &str, wanted: &[char]) -> Option<usize> {
    if name.is_ascii() {
        return letters_points(name.as_bytes(), wanted);
    }
    letters_points(&name.chars().collect::<Vec<_>>(), wanted)
}

/// Returns the points of the letters of a name: bytes if it is ASCII, which is faster.
fn letters_points<L: Copy + Into<char>>(name: &[L], wanted: &[char]) -> Option<usize> {
    // Most names do not match at all.
    find_end(name, wanted)?;
    let file = name.iter().rposition(|letter| (*letter).into() == '/').map_or(0, |at| at + 1);
    match best_points(&name[file..], wanted) {
        Some(points) => Some(points + FILE_POINTS),
        None => best_points(name, wanted),
    }
}

/// Returns the end of the first match.
fn find_end<L: Copy + Into<char>>(letters: &[L], wanted: &[char]) -> Option<usize> {
    let mut end = 0;
    for next in wanted {
        end += letters[end..].iter().position(|letter| lower((*letter).into()) == *next)? + 1;
    }
    Some(end)
}

/// Returns the points of the best match. Several places are tried, because the best match need not
/// be the first one.
fn best_points<L: Copy + Into<char>>(letters: &[L], wanted: &[char]) -> Option<usize> {
    let Some(first) = wanted.first() else { return Some(0) };
    let begins = letters.iter().enumerate().filter(|(_, letter)| lower((**letter).into()) == *first);
    begins.take(MAX_PLACES).map_while(|(at, _)| points_from(letters, at, wanted)).max()
}

/// Returns the points of the match that begins at a place, if there is one.
fn points_from<L: Copy + Into<char>>(letters: &[L], begin: usize, wanted: &[char]) -> Option<usize> {
    let (mut points, mut last, mut at) = (1, None, begin);
    for next in wanted {
        at += letters[at..].iter().position(|letter| lower((*letter).into()) == *next)?;
        let is_next = at > 0 && last == Some(at - 1);
        points += if is_next { NEXT_POINTS } else { 1 };
        let before = at.checked_sub(1).and_then(|before| letters.get(before)).map(|letter| (*letter).into());
        points += if is_word_begin(before, letters[at].into()) { WORD_POINTS } else { 0 };
        last = Some(at);
        at += 1;
    }
    Some(points)
}

fn is_word_begin(before: Option<char>, c: char) -> bool {
    before.is_none_or(|before| !before.is_alphanumeric() || (before.is_lowercase() && c.is_uppercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best(names: &[&str], wanted: &str) -> Vec<String> {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        best_matches(&names, wanted, 8)
    }

    #[test]
    fn the_name_of_a_file_counts_more_than_its_directory() {
        let names = ["app/session.rs", "src/app.rs", "src/a/p/p.rs", "other.rs"];
        assert_eq!(best(&names, "app"), ["src/app.rs", "app/session.rs", "src/a/p/p.rs"]);
        assert_eq!(best(&names, "zzz"), Vec::<String>::new());
        assert_eq!(best(&names, "SSRS"), ["app/session.rs"]);
        assert_eq!(best(&names, "").len(), 4);
        assert_eq!(best(&["README.md", "src/lib.rs", "src/main.rs", "tests/m.rs"], "mn"), ["src/main.rs"]);
    }

    #[test]
    fn beginnings_of_words_and_runs_count_more_than_scattered_characters() {
        assert_eq!(
            best(&["src/prompt_images.rs", "src/pim.rs", "src/copied_items.rs"], "pim")[0],
            "src/pim.rs"
        );
        assert_eq!(best(&["spxi.rs", "src/prompt_images.rs"], "pi")[0], "src/prompt_images.rs");
        assert_eq!(best(&["a/xaxbc.rs", "b/abc.rs"], "abc")[0], "b/abc.rs");
        assert_eq!(best(&["src/appRunner.js", "src/apperror.js"], "ar")[0], "src/appRunner.js");
        assert_eq!(best(&["文档/报告.md", "文/x.md"], "文报"), ["文档/报告.md"]);
    }

    #[test]
    fn a_name_is_found_among_many() {
        let mut names: Vec<_> = (0..100_000).map(|at| format!("src/module_{at}/part_{at}.rs")).collect();
        names.push("docs/interactive.md".to_owned());
        assert_eq!(best_matches(&names, "dcintermd", 8), ["docs/interactive.md"]);
        assert_eq!(best_matches(&names, "part_77", 8)[0], "src/module_77/part_77.rs");
    }
}
