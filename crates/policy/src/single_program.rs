//! Commands that are exactly one program with literal words. Only these can be allowed outside the
//! sandbox for longer than once (`docs/decisions/0047-what-leaves-the-sandbox-is-one-program.md`).

use windlass_contract::effects::CommandLine;

use crate::{
    known::system_name,
    shell::{
        CommandSeparator, RedirectKind, ShellDialect, ShellRedirect, ShellScript, ShellWord, SimpleCommand,
    },
    wrapper::{self, base_name},
};

/// Returns the words of a command that is exactly one program, its name first. `None` if anything
/// else influences what runs: a wrapper, a variable, a file or a text as input, an output file, a
/// list or a pipe, a login or interactive shell, or a shell that the call chose.
pub fn single_program(command: &CommandLine) -> Option<Vec<String>> {
    let words = match &command.argv[..] {
        [shell, flag, line] if flag == "-c" && usual_dialect(shell).is_some() => {
            words_of_line(line, usual_dialect(shell)?)?
        }
        argv => argv.iter().map(|word| ShellWord::literal(word)).collect(),
    };
    let program = words.first().filter(|program| !program.text.is_empty())?;
    let runs_another = wrapper::is_wrapper(base_name(&program.text)) || !wrapper::open(&words).is_empty();
    (!runs_another).then(|| words.into_iter().map(|word| word.text).collect())
}

/// Returns the dialect of a shell that the tools use. A bare `zsh` is a choice of the call: the
/// tools name theirs by its path.
fn usual_dialect(shell: &str) -> Option<ShellDialect> {
    let is_of_system = system_name(&ShellWord::literal(shell)).is_some();
    wrapper::dialect(base_name(shell)).filter(|_| is_of_system && shell != "zsh")
}

fn words_of_line(line: &str, dialect: ShellDialect) -> Option<Vec<ShellWord>> {
    let mut script = ShellScript::parse(line, dialect);
    // `! x` is one command too, with an inverted exit code.
    let is_one = script.is_clear() && script.commands.len() == 1 && !line.trim_start().starts_with('!');
    let simple = script.commands.pop().filter(|simple| is_one && is_plain(simple))?;
    Some(simple.words)
}

fn is_plain(simple: &SimpleCommand) -> bool {
    let is_literal = |word: &ShellWord| word.unclear.is_none() && !word.glob && !word.home;
    simple.assignments.is_empty()
        && simple.here.is_none()
        && simple.inner.is_empty()
        && simple.joined == CommandSeparator::Apart
        && simple.words.iter().all(is_literal)
        && simple.redirects.iter().all(changes_nothing)
}

/// Returns true if a redirection can be left out: `/dev/null`, and one output to the other.
fn changes_nothing(redirect: &ShellRedirect) -> bool {
    let target = redirect.target.text.as_str();
    match redirect.kind {
        RedirectKind::Read | RedirectKind::Write | RedirectKind::Append => target == "/dev/null",
        RedirectKind::Descriptor => matches!(target, "1" | "2"),
        RedirectKind::Text => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_words(argv: &[&str]) -> Option<Vec<String>> {
        single_program(&CommandLine { argv: argv.iter().map(|word| (*word).to_owned()).collect(), cwd: None })
    }

    fn of_line(line: &str) -> Option<Vec<String>> {
        of_words(&["/bin/bash", "-c", line])
    }

    #[test]
    fn one_program_with_literal_words_is_found_with_and_without_a_shell() {
        for line in [
            "git fetch",
            " 'git'  \"fetch\" ",
            "git fetch 2>&1",
            "git fetch >/dev/null 2>&1 </dev/null",
            "git fetch # now",
        ] {
            assert_eq!(of_line(line).unwrap(), ["git", "fetch"], "{line}");
        }
        for argv in [
            &["git", "fetch"][..],
            &["sh", "-c", "git fetch"],
            &["bash", "-c", "git fetch"],
            &["/bin/zsh", "-c", "git fetch"],
        ] {
            assert_eq!(of_words(argv).unwrap(), ["git", "fetch"], "{argv:?}");
        }
        assert_eq!(of_line("bash x.sh").unwrap(), ["bash", "x.sh"]);
    }

    #[test]
    fn whatever_else_has_a_say_makes_it_something_else() {
        for line in [
            "",
            "timeout 5 git fetch",
            "time git fetch",
            "env git fetch",
            "sudo git fetch",
            "bash -c 'git fetch'",
            "find . -exec git fetch ;",
            "LC_ALL=C git fetch",
            "A=1",
            "git fetch; git fetch",
            "git fetch && true",
            "git fetch | cat",
            "echo x | git fetch",
            "git fetch &",
            "! git fetch",
            "(git fetch)",
            "git fetch < x",
            "git fetch <<< x",
            "git fetch <<E\nx\nE",
            "git fetch > out",
            "git fetch >> out",
            "git fetch 2> log",
            "git fetch 3<> x",
            "git fetch >&-",
            "git fetch <&3",
            "git fetch > /dev/tty",
            "git fetch $x",
            "git fetch $(x)",
            "git fetch *",
            "git fetch ~/x",
        ] {
            assert_eq!(of_line(line), None, "{line}");
        }
        for argv in [
            &["bash", "-lc", "git fetch"][..],
            &["bash", "-l", "-c", "git fetch"],
            &["bash", "-ic", "git fetch"],
            &["bash", "-ec", "git fetch"],
            &["bash", "-c", "git fetch", "x"],
            &["zsh", "-c", "git fetch"],
            &["./bash", "-c", "git fetch"],
            &["/w/bin/zsh", "-c", "git fetch"],
            &["fish", "-c", "git fetch"],
            &["timeout", "5", "git", "fetch"],
            &[""],
            &[],
        ] {
            assert_eq!(of_words(argv), None, "{argv:?}");
        }
    }
}
