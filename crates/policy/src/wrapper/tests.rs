//! Checks which commands are found inside others.

use super::*;
use crate::shell::ShellScript;

/// Returns the inner commands as text; plain ones are marked.
fn opened(source: &str) -> Vec<String> {
    let script = ShellScript::parse(source, ShellDialect::Bash);
    let words = &script.commands[0].words;
    let show = |inner| match inner {
        InnerCommand::Words { range, plain } => {
            format!("{}{}", joined(&words[range]), if plain { "!" } else { "" })
        }
        InnerCommand::Script { text, plain, .. } => format!("'{text}'{}", if plain { "!" } else { "" }),
        InnerCommand::Text(text) => format!("<{text}>"),
        InnerCommand::Line => "line".to_owned(),
    };
    open(words).into_iter().map(show).collect()
}

#[test]
fn every_wrapper_is_found() {
    assert!(WRAPPERS.is_sorted_by_key(|wrapper| wrapper.name));
}

#[test]
fn the_command_inside_is_found() {
    for (source, inner) in [
        ("sudo -u root -- rm x", "rm x"),
        ("sudo -nu root A=1 rm x", "rm x"),
        ("env -i A=1 B=2 rm x", "rm x"),
        ("nice -n 5 rm x", "rm x"),
        ("xargs -0 -n 1 rm x", "rm x"),
        ("xargs -I{} rm {}", "rm {}"),
        ("find . -name y -exec rm x \\;", "rm x"),
        ("fd -e rs -x rm x", "rm x"),
        ("busybox rm x", "rm x"),
        ("stdbuf -oL rm x", "rm x"),
        ("exec -a y rm x", "rm x"),
        ("/usr/bin/sudo rm x", "rm x"),
        ("timeout -k 5 10 rm x", "rm x"),
        ("timeout 10s rm x", "rm x!"),
        ("time rm x", "rm x!"),
        ("chroot /y rm x", "rm x"),
        ("sudo -uroot rm x", "rm x"),
        ("watch -d rm x", "'rm x'"),
        ("sshpass -p y rm x", "rm x"),
        ("sshpass -py rm x", "rm x"),
        ("ssh-agent rm x", "rm x"),
        ("ssh-agent -t 60 rm x", "rm x"),
        ("setpriv --reuid 5 rm x", "rm x"),
        ("doas -u y rm x", "rm x"),
        ("unshare -rn rm x", "rm x"),
        ("xvfb-run -s y rm x", "rm x"),
        ("gosu y rm x", "rm x"),
        ("env - rm x", "rm x"),
        ("env - A=1 rm x", "rm x"),
        ("/lib64/ld-linux-x86-64.so.2 rm x", "rm x"),
        ("ld.so --library-path y rm x", "rm x"),
        ("make --eval 'a: ; rm x' a", "<a: ; rm x>"),
    ] {
        assert_eq!(opened(source), [inner], "{source}");
    }
}

#[test]
fn scripts_inside_are_found() {
    for (source, inner) in [
        ("bash -c 'rm x'", "'rm x'!"),
        ("bash -lc 'rm x'", "'rm x'!"),
        ("bash -euo pipefail -c 'rm x'", "'rm x'!"),
        ("/bin/sh -c 'rm x'", "'rm x'!"),
        ("./bash -c 'rm x'", "'rm x'"),
        ("bash -xc 'rm x'", "'rm x'"),
        ("bash -c 'rm x' y", "'rm x'"),
        ("bash --norc -c 'rm x'", "'rm x'"),
        ("fish -c 'rm x'", "'rm x'"),
        ("bash --rcfile y -c 'rm x'", "'rm x'"),
        ("bash -O extglob -c 'rm x'", "'rm x'"),
        ("bash +e -c 'rm x'", "'rm x'"),
        ("eval rm x", "'rm x'"),
        ("trap 'rm x' EXIT", "'rm x'"),
        ("su root -c 'rm x'", "'rm x'"),
        ("git submodule foreach rm x", "'rm x'"),
        ("watch -n 5 'rm x'", "'rm x'"),
        ("ssh -p 22 host rm x", "'rm x'"),
        ("env -iS'rm x'", "'rm x'"),
        ("env --split-string='rm x'", "'rm x'"),
        ("su -c'rm x' root", "'rm x'"),
        ("git -C y submodule foreach 'rm x'", "'rm x'"),
        ("git rebase --exec='rm x' y", "'rm x'"),
        ("git -c core.pager='rm x' log", "'rm x'"),
        ("git -c alias.y='!rm x' y", "'rm x'"),
        ("git -c alias.y='push x' y", "'git push x'"),
        ("/proc/self/exe -c 'rm x'", "'rm x'"),
        ("bash -c - 'rm x'", "'rm x'"),
    ] {
        assert_eq!(opened(source), [inner], "{source}");
    }
}

#[test]
fn commands_from_other_words_are_found() {
    for (source, inner) in [
        ("alias y='rm x'", &["'rm x'", "line"][..]),
        ("hash -p /bin/rm y", &["line"]),
        ("xargs env", &["env", "line"]),
        ("xargs -n1 nice env", &["nice env", "line"]),
        ("xargs env rm x", &["env rm x"]),
        ("sed '1e rm x' f", &["<1e rm x>", "line"]),
        ("sed -e p f", &[]),
        ("awk -v c=x '{ system(c) }'", &["<{ system(c) }>", "line"]),
        ("perl -ne1 'rm x|'", &["<rm x|>", "line"]),
        ("perl -ne 'print if /a|b/'", &[]),
    ] {
        assert_eq!(opened(source), inner, "{source}");
    }
}

#[test]
fn what_is_not_a_wrapper_is_not_opened() {
    for source in [
        "mytool rm x",
        "bash script.sh",
        "bash -i",
        "bash",
        "sudo",
        "env A=1",
        "find . -name rm",
        "command -v rm",
    ] {
        assert!(opened(source).is_empty(), "{source}");
    }
}
