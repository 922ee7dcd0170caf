//! Recognises shell lines that are one simple command of plain words, such as `git status`. A shell
//! would only `exec` that program, after 1.1 ms of starting itself
//! (`docs/decisions/0034-lines-without-a-shell.md`).
//!
//! Everything else is left to the shell.

/// Builtins and reserved words of bash and dash.
#[rustfmt::skip]
const SHELL_WORDS: &[&str] = &[
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir", "command", "compgen", "complete",
    "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else", "enable", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in",
    "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly",
    "return", "select", "set", "shift", "shopt", "source", "suspend", "test", "then", "time", "times", "trap", "true", "type",
    "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Variables that make a shell do more than run its line.
const SHELL_VARIABLES: &[&str] = &["BASH_ENV", "BASHOPTS", "SHELLOPTS", "POSIXLY_CORRECT"];

/// Returns the words of a simple command; `None` if a shell has to read the line.
pub(super) fn simple_words(argv: &[String]) -> Option<Vec<String>> {
    let [shell, flag, line] = argv else { return None };
    let name = shell.rsplit('/').next().unwrap_or_default();
    if !matches!(name, "bash" | "sh" | "dash") || flag != "-c" {
        return None;
    }
    let words = split_words(line.trim_matches([' ', '\t', '\n']))?;
    let program = words.first().filter(|program| !program.is_empty() && !program.contains('='))?;
    (!SHELL_WORDS.contains(&program.as_str())).then_some(words)
}

/// Returns whether a variable makes a shell do more than run its line.
pub(super) fn changes_shell(name: &str) -> bool {
    SHELL_VARIABLES.contains(&name) || name.starts_with("BASH_FUNC_")
}

/// Splits a line into words; `None` if it has anything but words.
fn split_words(line: &str) -> Option<Vec<String>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    let mut words: Vec<String> = Vec::new();
    let mut rest = line;
    let mut goes_on = false;
    while let Some(first) = rest.chars().next() {
        let (part, after) = match first {
            ' ' | '\t' => {
                (rest, goes_on) = (&rest[1..], false);
                continue;
            }
            // The rest is a comment.
            '#' if !goes_on && !rest.contains('\n') => break,
            '\'' => rest[1..].split_once('\'')?,
            // Expansions in double quotes are left to the shell.
            '"' => rest[1..].split_once('"').filter(|(inside, _)| !inside.contains(['$', '`', '\\', '!']))?,
            first if plain(first) => rest.split_at(rest.find(|c| !plain(c)).unwrap_or(rest.len())),
            _ => return None,
        };
        match words.last_mut().filter(|_| goes_on) {
            Some(word) => word.push_str(part),
            None => words.push(part.to_owned()),
        }
        (rest, goes_on) = (after, true);
    }
    Some(words)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use proptest::prelude::*;

    use super::*;

    fn words_of(line: &str) -> Option<Vec<String>> {
        simple_words(&["/bin/bash", "-c", line].map(str::to_owned))
    }

    #[test]
    fn a_line_of_plain_words_needs_no_shell() {
        assert_eq!(words_of("git status").unwrap(), ["git", "status"]);
        assert_eq!(
            words_of(" rg  -n 'a b' --glob='*.rs' \"x y\"z ''\n").unwrap(),
            ["rg", "-n", "a b", "--glob=*.rs", "x yz", ""]
        );
        assert_eq!(words_of("ls a # 'it").unwrap(), ["ls", "a"]);
        for line in [
            "",
            " ",
            "echo a",
            "'echo' a",
            "A=1 ls",
            "'A=1' ls",
            "ls *.rs",
            "ls ~",
            "ls a b;",
            "ls | wc",
            "! ls",
            "ls &",
            "ls > f",
            "ls $HOME",
            "ls \"$HOME\"",
            "ls `x`",
            "ls a\\ b",
            "ls\nls",
            "ls # c\nls",
            "ls a#",
            "# c",
            "ls {a,b}",
            "(ls)",
            "ls 'a",
            "ls \"a",
            "time ls",
            "''",
            "ls ü",
            "ls \"a!\"",
            "[ a = b ]",
        ] {
            assert_eq!(words_of(line), None, "{line}");
        }
        for argv in [
            &["bash", "-lc", "ls"][..],
            &["zsh", "-c", "ls"],
            &["bash", "-c", "ls", "x"],
            &["ls", "-c", "ls"],
        ] {
            assert_eq!(simple_words(&argv.iter().map(ToString::to_string).collect::<Vec<_>>()), None);
        }
    }

    #[test]
    fn builtins_and_reserved_words_are_left_to_the_shell() {
        let listed = Command::new("bash").args(["-c", "compgen -b -k"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().count() > 50);
        for name in listed.lines() {
            assert_eq!(words_of(name), None, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_shell_finds_the_same_words(line in "[a-c]{1,2}([ \t]|'[^'\\x00]{0,3}'|\"[^\"\\x00]{0,3}\"|[a-c./:,@%+=~*?# {}\\[\\]!$&;-]){0,6}") {
            if let Some(words) = words_of(&line) {
                let printed = Command::new("bash").args(["-c", &format!("printf '%s\\0' {line}")]).output().unwrap();
                let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
                prop_assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
            }
        }
    }
}
