//! Commands whose exit code 1 is an answer, not a failure: `grep` found nothing, two files differ,
//! a test does not hold.

use windlass_contract::effects::CommandLine;

use crate::{
    UnclearKind,
    shell::{CommandSeparator, RedirectKind, ShellRedirect, ShellScript, ShellWord, SimpleCommand},
    wrapper::{self, InnerCommand, base_name},
};

/// Programs that exit with 1 for "no" or "different", and with more than 1 for an error.
const ANSWER: &[&str] =
    &["grep", "egrep", "fgrep", "zgrep", "rg", "diff", "cmp", "test", "[", "pgrep", "which"];

/// Returns true if exit code 1 of a command means "no" rather than a failure, judged by its text.
/// If several commands could be the one that set the exit code, all of them must be such programs.
pub fn exit_one_means_no(command: &CommandLine) -> bool {
    let words: Vec<_> = command.argv.iter().map(|word| ShellWord::literal(word)).collect();
    match wrapper::open(&words).pop() {
        Some(InnerCommand::Script { text, dialect, plain: true }) => {
            script_answers(&ShellScript::parse(&text, dialect))
        }
        _ => command_answers(&SimpleCommand::from_words(words)),
    }
}

fn script_answers(script: &ShellScript) -> bool {
    // An expansion changes an argument, not the program. Anything else that is unclear may have set
    // the exit code.
    let is_plain = script.unclear.iter().all(|unclear| unclear.what == UnclearKind::Expansion);
    let ends = (0..script.commands.len())
        .filter(|at| script.commands.get(at + 1).is_none_or(|next| next.joined != CommandSeparator::Piped));
    is_plain && !script.commands.is_empty() && ends.map(|at| &script.commands[at]).all(command_answers)
}

fn command_answers(simple: &SimpleCommand) -> bool {
    let mut words = simple.words.iter().map(|word| word.text.as_str());
    let Some(program) = words.next().map(base_name) else { return false };
    // A shell that cannot open a file exits with 1, too.
    let opens = |redirect: &ShellRedirect| {
        !matches!(redirect.kind, RedirectKind::Descriptor | RedirectKind::Text)
            && redirect.target.text != "/dev/null"
    };
    if simple.redirects.iter().any(opens) {
        return false;
    }
    let has = |options: &[&str]| simple.words.iter().any(|word| options.contains(&word.text.as_str()));
    match program {
        "git" => match words.find(|word| !word.starts_with('-')) {
            Some("grep") => true,
            Some("diff") => has(&["--exit-code", "--quiet", "--no-index"]),
            _ => false,
        },
        "command" => has(&["-v", "-V"]),
        _ => ANSWER.contains(&program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_answer(script: &str) -> bool {
        exit_one_means_no(&CommandLine {
            argv: ["bash", "-c", script].map(str::to_owned).to_vec(),
            cwd: None,
        })
    }

    #[test]
    fn a_no_is_told_from_a_failure() {
        for answer in [
            "grep x y",
            "cat y | grep -c x",
            "/usr/bin/diff a b",
            "test -f x",
            "[ -n \"$HOME\" ]",
            "cmp a b && diff c d",
            "git diff --quiet",
            "git grep x",
            "command -v cargo",
            "rg x src | rg y",
            "grep x y 2>&1 >/dev/null",
        ] {
            assert!(is_answer(answer), "{answer}");
        }
        for failure in [
            "make",
            "grep x y | sort",
            "make && grep x y",
            "grep x y; make",
            "git diff",
            "$(grep x)",
            "grep x y > no/such/place",
            "grep x < missing",
            "if grep x y; then make; fi",
            "",
        ] {
            assert!(!is_answer(failure), "{failure}");
        }
        let bare = |argv: &[&str]| {
            exit_one_means_no(&CommandLine {
                argv: argv.iter().map(|&word| word.to_owned()).collect(),
                cwd: None,
            })
        };
        assert!(bare(&["grep", "x", "y"]) && !bare(&["make"]) && !bare(&[]));
    }
}
