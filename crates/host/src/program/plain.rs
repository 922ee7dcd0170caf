//! Lines for a shell that are nothing but words: the shell would only become the program they name, after reading files and
//! settings of its own. Starting that program at once takes half the time, and what runs is what was read.
//!
//! Only what is beyond doubt counts. Whatever else a line may be, the shell reads it.

/// What a shell does itself, or takes for grammar, instead of looking for a program: bash's and dash's.
#[rustfmt::skip]
const OWN: &[&str] = &[
    ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "chdir", "command", "compgen", "complete",
    "compopt", "continue", "coproc", "declare", "dirs", "disown", "do", "done", "echo", "elif", "else", "enable", "esac", "eval",
    "exec", "exit", "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash", "help", "history", "if", "in",
    "jobs", "kill", "let", "local", "logout", "mapfile", "popd", "printf", "pushd", "pwd", "read", "readarray", "readonly",
    "return", "select", "set", "shift", "shopt", "source", "suspend", "test", "then", "time", "times", "trap", "true", "type",
    "typeset", "ulimit", "umask", "unalias", "unset", "until", "wait", "while",
];

/// Variables that make a shell do more than read its line.
const TELLING: &[&str] = &["BASH_ENV", "BASHOPTS", "SHELLOPTS", "POSIXLY_CORRECT"];

/// The words of such a line; none if a shell has to read it.
pub(super) fn words(argv: &[String]) -> Option<Vec<String>> {
    let [shell, flag, line] = argv else { return None };
    let name = shell.rsplit('/').next().unwrap_or_default();
    if !matches!(name, "bash" | "sh" | "dash") || flag != "-c" {
        return None;
    }
    let words = split(line.trim_matches([' ', '\t', '\n']))?;
    let program = words.first().filter(|program| !program.is_empty() && !program.contains('='))?;
    (!OWN.contains(&program.as_str())).then_some(words)
}

/// Whether a variable makes a shell do more.
pub(super) fn tells_shells(name: &str) -> bool {
    TELLING.contains(&name) || name.starts_with("BASH_FUNC_")
}

fn split(line: &str) -> Option<Vec<String>> {
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
            // The rest is a remark.
            '#' if !goes_on && !rest.contains('\n') => break,
            '\'' => rest[1..].split_once('\'')?,
            // Between double quotes these mean something.
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

    fn of(line: &str) -> Option<Vec<String>> {
        words(&["/bin/bash", "-c", line].map(str::to_owned))
    }

    #[test]
    fn words_and_nothing_else_need_no_shell() {
        assert_eq!(of("git status").unwrap(), ["git", "status"]);
        assert_eq!(
            of(" rg  -n 'a b' --glob='*.rs' \"x y\"z ''\n").unwrap(),
            ["rg", "-n", "a b", "--glob=*.rs", "x yz", ""]
        );
        assert_eq!(of("ls a # 'it").unwrap(), ["ls", "a"]);
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
            assert_eq!(of(line), None, "{line}");
        }
        for argv in [
            &["bash", "-lc", "ls"][..],
            &["zsh", "-c", "ls"],
            &["bash", "-c", "ls", "x"],
            &["ls", "-c", "ls"],
        ] {
            assert_eq!(words(&argv.iter().map(ToString::to_string).collect::<Vec<_>>()), None);
        }
    }

    #[test]
    fn what_a_shell_does_itself_is_left_to_it() {
        let listed = Command::new("bash").args(["-c", "compgen -b -k"]).output().unwrap();
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.lines().count() > 50);
        for name in listed.lines() {
            assert_eq!(of(name), None, "{name}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]
        #[test]
        fn a_shell_finds_the_same_words(line in "[a-c]{1,2}([ \t]|'[^'\\x00]{0,3}'|\"[^\"\\x00]{0,3}\"|[a-c./:,@%+=~*?# {}\\[\\]!$&;-]){0,6}") {
            if let Some(words) = of(&line) {
                let printed = Command::new("bash").args(["-c", &format!("printf '%s\\0' {line}")]).output().unwrap();
                let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
                prop_assert_eq!(String::from_utf8(printed.stdout).unwrap(), expected);
            }
        }
    }
}
