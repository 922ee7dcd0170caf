//! `ps`: shows processes, but must not show their environments, which hold secrets.
//!
//! An `e` without a dash shows environments. With a dash it means something else. But after a parse
//! error, `ps` (procps) reads its words again as if there were no dashes: `ps -axe` shows
//! environments, and so does `ps -uxe` if there is no user `xe`. So an `e` is accepted only where
//! no parse error is possible.

/// Letters without a value that do not show environments, with a dash or without.
const LETTERS: &str = "aAcdfFhHjlLmMNrsSTuvwxXy";

/// Letters with a value.
const VALUED: &str = "CgGnopstuU";

/// Long options, which are the same in both syntaxes.
const LONG: &[&str] = &[
    "cols",
    "columns",
    "deselect",
    "forest",
    "headers",
    "info",
    "lines",
    "no-headers",
    "pid",
    "ppid",
    "rows",
    "sort",
    "user",
    "version",
    "width",
];

/// Returns an error that says why a `ps` command is not harmless.
pub(super) fn check(words: &[&str]) -> Result<(), String> {
    let refused = |word: &str| Err(format!("`{word}` may show environments"));
    if let Some(word) = words.iter().find(|word| word.to_lowercase().contains("env")) {
        return refused(word);
    }
    let short: Vec<_> = words.iter().copied().filter(|word| !word.starts_with("--")).collect();
    if let Some(word) = words.iter().find(|word| word.starts_with("--") && !is_known_long(word)) {
        return refused(word);
    }
    if is_without_mistakes(&short) {
        return Ok(());
    }
    match short.into_iter().find(|word| !shows_none(word)) {
        Some(word) => refused(word),
        None => Ok(()),
    }
}

fn is_known_long(word: &str) -> bool {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.strip_prefix("--").is_some_and(|name| LONG.contains(&name))
}

/// Returns true for the usual forms, which cannot cause a parse error.
fn is_without_mistakes(words: &[&str]) -> bool {
    let columns =
        |format: &str| format.bytes().all(|byte| byte.is_ascii_lowercase() || b",%_=".contains(&byte));
    match words {
        ["-e" | "-ef" | "-eF" | "-eLf" | "-A" | "-Af"] | ["-ef" | "-eF", "-w" | "-ww"] => true,
        ["-eo" | "-o" | "-Ao", format] | ["-e" | "-A", "-o", format] => columns(format),
        ["-p", list, "-o", format] => is_numbers(list) && columns(format),
        _ => false,
    }
}

fn is_numbers(list: &str) -> bool {
    !list.is_empty() && list.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
}

/// Returns true if a word has no `e` in either syntax.
fn shows_none(word: &str) -> bool {
    let letters = word.strip_prefix('-').unwrap_or(word);
    letters.chars().all(|letter| {
        LETTERS.contains(letter) || VALUED.contains(letter) || letter.is_ascii_digit() || letter == ','
    })
}
