//! Commands whose exit code 1 is an answer, not a failure: `grep` found nothing, two files differ, a test does not hold.

use windlass_contract::effects::CommandLine;

use crate::{
    What,
    shell::{Joined, Redirect, RedirectKind, Script, Simple, Word},
    wrapper::{self, Inner, base_name},
};

/// Programs that say no, or that things differ, with 1, and that something went wrong with more.
const ANSWER: &[&str] =
    &["grep", "egrep", "fgrep", "zgrep", "rg", "diff", "cmp", "test", "[", "pgrep", "which"];

/// Whether exit code 1 of a command would be an answer, for all that its text says. Where several commands could be the one
/// that ended so, all of them must be such.
pub fn one_is_an_answer(command: &CommandLine) -> bool {
    let words: Vec<_> = command.argv.iter().map(|word| Word::literal(word)).collect();
    match wrapper::open(&words).pop() {
        Some(Inner::Script { text, dialect, plain: true }) => of_script(&Script::parse(&text, dialect)),
        _ => of_simple(&Simple::of(words)),
    }
}

fn of_script(script: &Script) -> bool {
    // A value may be anything, and the program is the same. What else is unclear may be what ended it.
    let is_plain = script.unclear.iter().all(|unclear| unclear.what == What::Expansion);
    let ends = (0..script.commands.len())
        .filter(|at| script.commands.get(at + 1).is_none_or(|next| next.joined != Joined::Piped));
    is_plain && !script.commands.is_empty() && ends.map(|at| &script.commands[at]).all(of_simple)
}

fn of_simple(simple: &Simple) -> bool {
    let mut words = simple.words.iter().map(|word| word.text.as_str());
    let Some(program) = words.next().map(base_name) else { return false };
    // A shell that cannot open a file ends with 1, too.
    let opens = |redirect: &Redirect| {
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
        one_is_an_answer(&CommandLine { argv: ["bash", "-c", script].map(str::to_owned).to_vec(), cwd: None })
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
            one_is_an_answer(&CommandLine {
                argv: argv.iter().map(|&word| word.to_owned()).collect(),
                cwd: None,
            })
        };
        assert!(bare(&["grep", "x", "y"]) && !bare(&["make"]) && !bare(&[]));
    }
}
