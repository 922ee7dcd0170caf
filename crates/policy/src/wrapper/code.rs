//! Texts in other languages that can run commands: scripts of editors, debuggers, databases and
//! interpreters, as arguments or as input.

use super::base_name;
use crate::shell::{ShellScript, ShellWord};

/// A program that runs commands from texts in its own language.
struct CodeRunner {
    names: &'static [&'static str],
    /// A text runs commands only if it contains one of these.
    marks: &'static [&'static str],
    /// The language has values, so that the command may come from arguments, variables or input.
    has_values: bool,
}

/// Programs that run their input, whatever it is.
const INPUT_RUNNERS: &[&str] = &["ed", "red", "gdb", "lldb", "m4", "parallel", "newgrp"];

/// Programs, and the words of their languages that run a command.
const CODE_RUNNERS: &[CodeRunner] = &[
    CodeRunner {
        names: &[
            "python",
            "perl",
            "ruby",
            "node",
            "php",
            "lua",
            "expect",
            "tclsh",
            "osascript",
            "deno",
            "bun",
            "R",
            "Rscript",
            "guile",
            "ghci",
            "irb",
        ],
        marks: &[
            "system",
            "exec",
            "spawn",
            "popen",
            "subprocess",
            "check_",
            "qx",
            "backtick",
            "shell",
            "command",
            "`",
            "-|",
            "|\"",
            "|'",
            "%x",
        ],
        has_values: true,
    },
    CodeRunner {
        names: &["emacs", "vim", "vi", "nvim", "ex", "view"],
        marks: &["!", "system", "exec", "shell", "command", "process"],
        has_values: false,
    },
    CodeRunner {
        names: &["awk", "gawk", "mawk", "nawk"],
        marks: &["system", "getline", "|"],
        has_values: true,
    },
    CodeRunner {
        names: &["ed", "red", "dc", "less", "more", "mysql", "mariadb", "psql"],
        marks: &["!", "system"],
        has_values: false,
    },
    CodeRunner {
        names: &["gdb", "lldb"],
        marks: &["shell", "!", "pipe", "system", "python", "script"],
        has_values: false,
    },
    CodeRunner {
        names: &["sqlite3", "sqlite"],
        marks: &[".shell", ".system", ".once", ".output", ".import", "|"],
        has_values: false,
    },
    CodeRunner {
        names: &["m4", "gnuplot", "octave"],
        marks: &["syscmd", "esyscmd", "system", "!", "`"],
        has_values: false,
    },
    // The text of a makefile: a target, or a call of its function.
    CodeRunner { names: &["make", "gmake"], marks: &[":", "$(", "="], has_values: false },
    CodeRunner {
        names: &["mapfile", "readarray", "complete", "compgen", "bind"],
        marks: &[" "],
        has_values: false,
    },
];

/// Returns the arguments of a command that may run commands.
pub(super) fn in_words(name: &str, words: &[ShellWord]) -> Vec<String> {
    let texts = words.iter().skip(1).map(|word| word.text.as_str());
    let texts = texts.filter(|text| runs_commands(name, text));
    // In sed the line does not go on; the command comes on the next one.
    texts.map(|text| if is_sed(name) { text.replace("\\\n", "\n") } else { text.to_owned() }).collect()
}

fn is_sed(name: &str) -> bool {
    matches!(name, "sed" | "gsed")
}

/// Returns the texts that a command reads and that may run commands.
pub(super) fn in_input(script: &ShellScript, at: usize) -> Vec<String> {
    let Some(simple) = script.commands.get(at) else { return Vec::new() };
    let name = simple.program().map(base_name).unwrap_or_default();
    let texts = super::input::given(script, at);
    texts.into_iter().filter(|text| runs_commands(name, text)).collect()
}

/// Returns true if a command has code that runs commands, and that may put them together from
/// values: arguments, variables, input.
pub(super) fn takes_line(name: &str, words: &[ShellWord]) -> bool {
    let has_values = is_sed(name) || runner(name).is_some_and(|runner| runner.has_values);
    // These give names to commands.
    let renames = name == "alias" && words.iter().any(|word| word.text.contains('='))
        || name == "hash" && words.iter().any(|word| word.text.starts_with("-p"));
    renames || has_values && words.iter().skip(1).any(|word| runs_commands(name, &word.text))
}

/// Returns true if a program runs its input, or has code that does.
pub(super) fn runs_input(name: &str, words: &[ShellWord]) -> bool {
    let mut texts = words.iter().skip(1).map(|word| word.text.as_str());
    match name {
        "sed" | "gsed" => texts.any(sed_runs_commands),
        // `print | "sort"` runs no input.
        "awk" | "gawk" | "mawk" | "nawk" => {
            texts.any(|text| text.contains("system") || text.contains("sh\""))
        }
        "make" | "gmake" => texts.any(|text| matches!(text, "-f-" | "-" | "/dev/stdin")),
        _ => INPUT_RUNNERS.contains(&name) && words.len() == 1,
    }
}

fn runner(name: &str) -> Option<&'static CodeRunner> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    CODE_RUNNERS.iter().find(|runner| runner.names.contains(&name) || runner.names.contains(&bare))
}

fn runs_commands(name: &str, text: &str) -> bool {
    if is_sed(name) {
        return sed_runs_commands(text);
    }
    // perl runs a file name with a pipe at its end.
    if name.starts_with("perl") && text.trim_end().ends_with('|') {
        return true;
    }
    // The separator of fields in awk is no code.
    let is_separator = name.ends_with("awk") && matches!(text.trim_start_matches("-F"), "|" | "\\|" | "[|]");
    let text = if is_separator { String::new() } else { text.to_lowercase() };
    runner(name).is_some_and(|runner| runner.marks.iter().any(|mark| text.contains(mark)))
}

/// Returns true if a script of sed may have the command `e`, or `s` with the flag `e`: a letter `e`
/// at the end of a word that consists of flags or of an address.
fn sed_runs_commands(text: &str) -> bool {
    // The letter of the option itself is not part of the script.
    let script = match text.strip_prefix("--") {
        Some(long) => long.split_once('=').map_or("", |(_, script)| script),
        None if text.starts_with('-') => text.split_once('e').map_or("", |(_, script)| script),
        None => text,
    };
    script.match_indices('e').any(|(at, _)| {
        let (before, after) =
            (script.get(..at).unwrap_or_default(), script.get(at + 1..).unwrap_or_default());
        let before = before.trim_end_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && (after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || ";}w#\\".contains(c)))
    })
}
