//! The language a file is in: by its name, by what its name ends with, or by the program its first line names, as Linguist has them.

use memchr::{memchr, memmem, memrchr};

/// A line for each language: its name, a tab, and between spaces endings with their dot, names behind `=`, interpreters behind `!`.
/// Made by `cargo xtask languages`.
const KNOWN: &str = include_str!("../../data/languages.txt");

/// The language of a file of this name that holds this text, or begins with it.
pub(super) fn of(name: &str, text: &str) -> Option<&'static str> {
    match owner(&format!("={name}")).or_else(|| by_ending(name)).or_else(|| by_interpreter(text)) {
        // Both languages end the names of their headers alike.
        Some("C") if name.strip_suffix(".h").is_some() && is_cpp(text) => Some("C++"),
        language => language,
    }
}

/// The language that claims this.
fn owner(claim: &str) -> Option<&'static str> {
    if claim.contains(char::is_whitespace) {
        return None;
    }
    let at = memmem::find(KNOWN.as_bytes(), format!(" {claim} ").as_bytes())?;
    let begin = memrchr(b'\n', &KNOWN.as_bytes()[..at]).map_or(0, |end| end + 1);
    let end = memchr(b'\t', &KNOWN.as_bytes()[begin..])?;
    Some(&KNOWN[begin..begin + end])
}

/// By the longest ending that is known: `.d.ts` before `.ts`.
fn by_ending(name: &str) -> Option<&'static str> {
    let mut endings = name.match_indices('.').map(|(dot, _)| &name[dot..]);
    endings.find_map(|ending| owner(ending).or_else(|| owner(&ending.to_ascii_lowercase())))
}

/// `#!/usr/bin/env python3` and the like.
fn by_interpreter(text: &str) -> Option<&'static str> {
    let mut words = text.lines().next()?.strip_prefix("#!")?.split_whitespace();
    let program = words.next()?.rsplit('/').next()?;
    let program = if program == "env" { words.find(|word| !word.starts_with('-'))? } else { program };
    let program = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    owner(&format!("!{program}"))
}

/// Whether a header has what C has not.
fn is_cpp(text: &str) -> bool {
    let words = ["class ", "namespace ", "template <", "template<", "using namespace "];
    text.lines().any(|line| words.iter().any(|word| line.trim_start().starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_endings_and_first_lines_tell() {
        for (name, text, language) in [
            ("main.rs", "", Some("Rust")),
            ("MAIN.RS", "", Some("Rust")),
            ("a.d.ts", "", Some("TypeScript")),
            ("app.tsx", "", Some("TSX")),
            ("a.json", "", Some("JSON")),
            ("Dockerfile", "", Some("Dockerfile")),
            ("CMakeLists.txt", "", Some("CMake")),
            (".bashrc", "", Some("Shell")),
            ("till.h", "struct till;\n", Some("C")),
            ("till.h", "#pragma once\nnamespace shop {\n", Some("C++")),
            ("run", "#!/usr/bin/env -S python3.12 -u\nx", Some("Python")),
            ("run", "#!/bin/sh\n", Some("Shell")),
            ("run", "#!/usr/bin/perl -w\n", Some("Perl")),
            ("x .rs ", "", None),
            (". .rs", "", Some("Rust")),
            ("notes", "", None),
            ("", "#!", None),
        ] {
            assert_eq!(of(name, text), language, "{name}");
        }
    }

    #[test]
    fn every_language_with_an_outline_is_one_that_is_told() {
        for name in [
            "Rust",
            "Python",
            "JavaScript",
            "TypeScript",
            "TSX",
            "Go",
            "Java",
            "C",
            "C++",
            "C#",
            "Kotlin",
            "Ruby",
            "PHP",
            "Markdown",
        ] {
            assert!(KNOWN.lines().any(|line| line.starts_with(&format!("{name}\t "))), "{name}");
        }
    }
}
