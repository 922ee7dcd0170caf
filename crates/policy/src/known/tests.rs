//! Tests of this module.

use std::path::Path;

use super::*;
use crate::shell::{ShellDialect, ShellScript};

fn verdict(source: &str) -> Result<(), String> {
    let script = ShellScript::parse(source, ShellDialect::Bash);
    assert!(script.is_clear(), "{source}: {:?}", script.unclear);
    check(&script.commands[0].words, &WorkingDirectories::starting(None))
}

#[test]
fn everyday_commands_are_known() {
    for source in [
        "ls -la",
        "cat a b",
        "head -20 f",
        "head -n -5 f",
        "tail -n +5 f",
        "wc -l *.rs",
        "cut -d: -f1,3 f",
        "sort -t, -k2n f",
        "grep -rn foo src",
        "grep -A3 -e foo f",
        "rg -n 'a|b' src",
        "rg --files",
        "find . -name '*.rs' -type f",
        "nl -ba f",
        "find . ! -name x \\( -type f -o -type d \\) -print0",
        "sed -n '1,5p' f",
        "sed -n '$p' f",
        "sed 's/a/b/g' f",
        "date +%s",
        "date -u",
        "stat -c %s f",
        "du -sh .",
        "df -h",
        "ps aux",
        "ps -ef",
        "uname -a",
        "test -f x",
        "[ -d x ]",
        "[ 1 -eq 2 ]",
        "printf '%s %d\\n' a 5",
        "echo -n x",
        "jq .a.b f",
        "command -v cargo",
        "which -a ls",
        "node --version",
        "ls --help",
        "git status -sb",
        "git log --oneline -5",
        "git log -n 3 --stat -- src",
        "git diff HEAD~1 --name-only",
        "git branch -a",
        "git branch --list 'x/*'",
        "git tag -l",
        "git remote -v",
        "git stash list",
        "git reflog -5",
        "git config --get user.name",
        "git rev-parse --abbrev-ref HEAD",
        "/bin/ls",
        "/usr/bin/wc -l f",
        "uniq -c f",
        "xxd -l 16 f",
        "diff -u a b",
        "md5sum f",
        "seq 5 -1 1",
        "cd src",
        "cd",
        "git show HEAD:src/main.rs",
        "cat -- -x",
    ] {
        assert_eq!(verdict(source), Ok(()), "{source}");
    }
}

#[test]
fn an_option_that_is_not_listed_is_not_known() {
    for source in [
        "sort -o out f",
        "sort -oout f",
        "sort --output=out f",
        "sort --outp=out f",
        "sort --compress-program=x f",
        "sort f -o f",
        "uniq in out",
        "uniq -c *",
        "base64 -o f",
        "date -s x",
        "date 01010000",
        "date -f x",
        "rg --pre x y",
        "rg -uuz x",
        "rg -z x",
        "find . -delete",
        "find . -exec rm {} +",
        "find . -fprint x",
        "find -files0-from x",
        "sed -i s/a/b/ f",
        "sed -ni p f",
        "sed -n '1e id' f",
        "sed s/a/b/w f",
        "xxd -r a b",
        "xxd a b",
        "xxd -ps a b",
        "tree -o x",
        "file -C -m x",
        "tail -f x",
        "wc --files0-from=x",
        "git -c a=b status",
        "git -C x status",
        "git -p log",
        "git --git-dir=x log",
        "git log --output=x",
        "git diff --ext-diff",
        "git log --textconv",
        "git branch x",
        "git branch -D x",
        "git tag v1",
        "git branch --list -D main",
        "git remote add a b",
        "git remote update",
        "git stash",
        "git stash drop",
        "git config a.b c",
        "git config --list",
        "git grep -O x",
        "git reflog expire",
        "git log --format=%G?",
        "git for-each-ref --format='%(signature)'",
        "git branch --format '%(signature:grade)'",
        "git branch --sort=signature",
        "git tag --sort -signature:key -l",
        "rustup --version",
        "git show-ref --verif x",
        "[ 'a[$(id)]' -eq 0 ]",
        "printf -v x y",
        "printf %n x",
        "printf %d 'a[$(id)]'",
        "hostname x",
        "ps e",
        "ps eww",
        "ps -o environ",
        "command ls",
        "command -p ls",
        "jq env f",
        "jq '$ENV.x' f",
        "jq -f x f",
        "cd -",
        "cd ~/.ssh",
        "strings @x",
        "./ls",
        "../bin/ls",
        "bin/ls",
        "/usr/local/bin/ls",
        "~/bin/ls",
        "/bin/r[m] x",
        "sort *",
        "find * -name x",
        "git diff *",
        "head -n --x f",
        "cut -d -f1 f",
        "nproc x",
        "cargo --version",
        "diff -l a b",
    ] {
        assert!(verdict(source).is_err(), "{source}");
    }
}

#[test]
fn secrets_are_not_read() {
    for source in [
        "cat ~/.ssh/id_rsa",
        "head .env",
        "grep -r . ~",
        "grep -r x ..",
        "rg x /",
        "rg x ~/.aws",
        "cat ~/.s*/*",
        "ls ~/.ssh",
        "base64 server.pem",
        "git show HEAD:.env",
        "git log -p -- .env",
        "diff .env .env.old",
        "cat /proc/self/environ",
        "rg --glob=.env x",
        "grep --include=.env -r x .",
        "find . -name id_rsa",
        "find ~/.ssh",
        "echo ~/.ssh/*",
        "wc ~/.netrc",
        "rg 'BEGIN.*PRIVATE KEY'",
        "grep -rn AKIA .",
        "jq . credentials.json",
        "sed -n p .env",
        "cat /dev/sda",
        "stat ~/.ssh/*",
    ] {
        assert!(verdict(source).is_err(), "{source}");
    }
}

#[test]
fn git_is_known_only_where_it_is_started() {
    let script = ShellScript::parse("git status", ShellDialect::Bash);
    let mut places = WorkingDirectories::starting(Some(Path::new("/p")));
    assert_eq!(check(&script.commands[0].words, &places), Ok(()));
    assert!(places.enter("sub"));
    assert!(check(&script.commands[0].words, &places).is_err());
}
