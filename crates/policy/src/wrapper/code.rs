//! Texts in other languages that can run commands: scripts of editors, debuggers, databases and
//! interpreters, as arguments or as input.

use super::base_name;
use crate::shell::{ShellScript, ShellWord};

/// A program that runs commands from texts in its own language.
struct CodeRunner {
    names: &'static [&'static str],
    /// A text runs commands only if it contains one of these.
    marks: &'static [&'static str],
}

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
            "emacs",
            "tar",
            "expect",
            "tclsh",
            "osascript",
            "deno",
            "bun",
            "vim",
            "vi",
            "nvim",
            "ex",
            "view",
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
            "!",
        ],
    },
    CodeRunner { names: &["awk", "gawk", "mawk", "nawk"], marks: &["system", "getline", "|"] },
    CodeRunner {
        names: &["ed", "red", "dc", "less", "more", "mysql", "mariadb", "psql"],
        marks: &["!", "system"],
    },
    CodeRunner { names: &["gdb", "lldb"], marks: &["shell", "!", "pipe", "system", "python", "script"] },
    CodeRunner {
        names: &["sqlite3", "sqlite"],
        marks: &[".shell", ".system", ".once", ".output", ".import", "|"],
    },
    CodeRunner { names: &["m4", "gnuplot", "octave"], marks: &["syscmd", "esyscmd", "system", "!", "`"] },
    // The text of a makefile: a target, or a call of its function.
    CodeRunner { names: &["make", "gmake"], marks: &[":", "$(", "="] },
    CodeRunner { names: &["mapfile", "readarray", "complete", "compgen", "bind"], marks: &[" "] },
];

/// Returns the arguments of a command that may run commands.
pub(super) fn in_words(name: &str, words: &[ShellWord]) -> Vec<String> {
    let texts = words.iter().skip(1).map(|word| word.text.as_str());
    texts.filter(|text| runs_commands(name, text)).map(str::to_owned).collect()
}

/// Returns the texts that a command reads and that may run commands.
pub(super) fn in_input(script: &ShellScript, at: usize) -> Vec<String> {
    let Some(simple) = script.commands.get(at) else { return Vec::new() };
    let name = simple.program().map(base_name).unwrap_or_default();
    let texts = super::input::given(script, at);
    texts.into_iter().filter(|text| runs_commands(name, text)).collect()
}

fn runs_commands(name: &str, text: &str) -> bool {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if name == "sed" || name == "gsed" {
        return sed_runs_commands(text);
    }
    let runner =
        CODE_RUNNERS.iter().find(|runner| runner.names.contains(&name) || runner.names.contains(&bare));
    let text = text.to_lowercase();
    runner.is_some_and(|runner| runner.marks.iter().any(|mark| text.contains(mark)))
}

/// Returns true if a script of sed may have the command `e`, or `s` with the flag `e`: a letter `e`
/// at the end of a word that consists of flags or of an address.
fn sed_runs_commands(script: &str) -> bool {
    script.match_indices('e').any(|(at, _)| {
        let (before, after) =
            (script.get(..at).unwrap_or_default(), script.get(at + 1..).unwrap_or_default());
        let before = before.trim_end_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
        let after = after.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
        !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
            && (after.is_empty() || after.starts_with(|c: char| c.is_whitespace() || ";}w#".contains(c)))
    })
}
