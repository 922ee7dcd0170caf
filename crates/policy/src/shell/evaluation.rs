//! Constructs that evaluate the value of a variable or a word as an expression. A subscript in such
//! a value may contain `$(…)`, and bash runs it, also if it was quoted before.

/// Builtins that evaluate subscripts in their words, or run a word.
const EVALUATING_BUILTINS: &[&str] = &[
    "bind",
    "compgen",
    "complete",
    "declare",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "typeset",
    "unset",
    "wait",
];

/// Builtins that evaluate subscripts only with `-v` or `-R`.
const TESTING_BUILTINS: &[&str] = &["[", "[[", "printf", "test"];

/// Words that cannot be the name of a program, because the shell itself reads them. If one is found
/// in that position, the grammar read the script in another way than the shell.
const RESERVED_WORDS: &[&str] = &[
    "!", "case", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if", "select", "then",
    "until", "while", "{", "}",
];

/// Records whether a script has quoted code, and something that may run it.
#[derive(Debug, Default)]
pub(super) struct QuotedCodeTracker {
    /// A word contains quoted code.
    pub(super) is_present: bool,
    /// Something evaluates the values of variables or words.
    pub(super) is_evaluated: bool,
}

impl QuotedCodeTracker {
    pub(super) fn may_run(&self) -> bool {
        self.is_present && self.is_evaluated
    }
}

/// Returns true if the source of a word contains `$` or a backquote that is, or may be, quoted.
pub(super) fn is_quoted_code(source: &str) -> bool {
    source.contains(['$', '`']) && source.contains(['\'', '\\'])
}

/// Returns true if an expansion in the source of a word evaluates a value: `${x@P}`, `${a[x]}`,
/// `${a:x}`.
pub(super) fn expands_values(source: &str) -> bool {
    source.match_indices("${").any(|(at, _)| {
        let rest = source.get(at + 2..).unwrap_or_default();
        let operator = rest.trim_start_matches(|c: char| c.is_alphanumeric() || "_#!".contains(c));
        let by_offset =
            operator.strip_prefix(':').is_some_and(|rest| !rest.starts_with(['-', '=', '+', '?']));
        by_offset || operator.starts_with(['[', '@', '*'])
    })
}

/// Returns true if a command evaluates its words, by their source.
pub(super) fn evaluates_words<'a>(mut words: impl Iterator<Item = &'a str> + Clone) -> bool {
    let Some(name) = words.find(|word| !matches!(*word, "builtin" | "command")) else { return false };
    EVALUATING_BUILTINS.contains(&name)
        || TESTING_BUILTINS.contains(&name) && words.any(|word| word.starts_with("-v") || word == "-R")
}

/// Returns true if the words of a command, by their source, are not a simple command.
pub(super) fn is_misread<'a>(words: impl Iterator<Item = &'a str> + Clone) -> bool {
    let mut program = words.clone().skip_while(|word| matches!(*word, "time" | "coproc" | "-p"));
    program.next().is_some_and(|word| RESERVED_WORDS.contains(&word)) || { words }.any(|word| word == "{")
}

/// Returns true if a shell reads arithmetic: the parenthesis that the second one opens is closed
/// right before the last. Otherwise it is a subshell in a subshell, such as `((a) | (b))`.
pub(super) fn is_arithmetic(source: &str) -> bool {
    let source = source.strip_prefix('$').unwrap_or(source);
    let Some(within) = source.strip_prefix("((").and_then(|source| source.strip_suffix("))")) else {
        return source.starts_with('[');
    };
    let mut depth = 0_usize;
    for byte in within.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return false,
            b')' => depth -= 1,
            _ => {}
        }
    }
    depth == 0
}
