//! Tests of this module.

use super::*;

/// Commands as lists of words; unclear ones marked.
fn words(source: &str) -> Vec<Vec<String>> {
    let script = ShellScript::parse(source, ShellDialect::Bash);
    assert!(script.is_clear(), "{source:?}: {:?}", script.unclear);
    let text = |simple: &SimpleCommand| simple.words.iter().map(|word| word.text.clone()).collect();
    script.commands.iter().map(text).collect()
}

fn unclear(source: &str) -> Vec<UnclearKind> {
    ShellScript::parse(source, ShellDialect::Bash).unclear.iter().map(|unclear| unclear.what).collect()
}

#[test]
fn operators_separate_commands() {
    let expected = [vec!["ls"], vec!["pwd"], vec!["echo", "hi there"], vec!["wc", "-l"], vec!["id"]];
    assert_eq!(words("ls && pwd; echo 'hi there' | wc -l\nid"), expected);
    assert_eq!(words("ls |\n wc"), [["ls"], ["wc"]]);
}

#[test]
fn a_script_ends_with_or_without_a_new_line() {
    for source in
        ["ls | wc", "ls 'a", "[ a = b ]", "for f in a; do ls; done | sort", "ls >", "cat <<E\nx\nE", "ls # c"]
    {
        let (open, ended) = (source.to_owned(), format!("{source}\n"));
        let [open, ended] = [open, ended].map(|source| {
            let script = ShellScript::parse(&source, ShellDialect::Bash);
            let words: Vec<_> = script.commands.into_iter().map(|simple| simple.words).collect();
            (words, script.unclear.into_iter().map(|unclear| unclear.what).collect::<Vec<_>>())
        });
        assert_eq!(open, ended, "{source}");
    }
    assert!(unclear("ls a\\").contains(&UnclearKind::Syntax));
}

#[test]
fn quotes_and_backslashes_are_taken_away() {
    assert_eq!(words(r#"echo "/usr"'/'"local"/bin"#), [["echo", "/usr/local/bin"]]);
    assert_eq!(words(r#"r''m "a\$b\x" c\ d"#), [["rm", r"a$b\x", "c d"]]);
    assert_eq!(words("git commit -m \"line1\nline2\""), [["git", "commit", "-m", "line1\nline2"]]);
    assert_eq!(words("echo '' x"), [["echo", "", "x"]]);
}

#[test]
fn words_after_a_redirection_belong_to_the_command_before_it() {
    let script = ShellScript::parse("a && b >f c 2>&1 d", ShellDialect::Bash);
    assert!(script.is_clear());
    assert_eq!(words("a && b >f c 2>&1 d"), [vec!["a"], vec!["b", "c", "d"]]);
    let kinds: Vec<_> = script.commands[1].redirects.iter().map(|redirect| redirect.kind).collect();
    assert_eq!(kinds, [RedirectKind::Write, RedirectKind::Descriptor]);
    assert!(script.commands[0].redirects.is_empty());
}

#[test]
fn redirections_say_what_they_do_to_which_file() {
    let cases = [
        ("cat < f", RedirectKind::Read, "f"),
        ("ls >| 'a b'", RedirectKind::Write, "a b"),
        ("ls >& f", RedirectKind::Write, "f"),
        ("ls &>> f", RedirectKind::Append, "f"),
        ("ls >&-", RedirectKind::Descriptor, ""),
        ("> f", RedirectKind::Write, "f"),
        ("cat <<< text", RedirectKind::Text, "text"),
    ];
    for (source, kind, target) in cases {
        let script = ShellScript::parse(source, ShellDialect::Bash);
        assert!(script.is_clear(), "{source}: {:?}", script.unclear);
        let redirect = &script.commands[0].redirects[0];
        assert_eq!((redirect.kind, redirect.target.text.as_str()), (kind, target), "{source}");
    }
}

#[test]
fn braces_become_several_words() {
    assert_eq!(words("ls {a,b{1..3}}.txt"), [["ls", "a.txt", "b1.txt", "b2.txt", "b3.txt"]]);
    assert_eq!(words("git show HEAD@{1} {} ^{tree}"), [["git", "show", "HEAD@{1}", "{}", "^{tree}"]]);
    let posix = ShellScript::parse("ls {a,b}", ShellDialect::Posix);
    assert_eq!(posix.unclear[0].what, UnclearKind::Brace);
}

#[test]
fn what_is_not_literal_is_unclear() {
    let cases = [
        ("echo $x", UnclearKind::Expansion),
        ("echo \"$x\"", UnclearKind::Expansion),
        ("echo ${x@P}", UnclearKind::Expansion),
        ("echo $(id)", UnclearKind::Substitution),
        ("echo `id`", UnclearKind::Substitution),
        ("diff <(id) x", UnclearKind::Substitution),
        ("echo $((1))", UnclearKind::Arithmetic),
        ("[[ a -eq b ]]", UnclearKind::Arithmetic),
        ("$'\\x72m' x", UnclearKind::Quoting),
        ("echo $\"x\"", UnclearKind::Quoting),
        ("cat ~root/x", UnclearKind::Tilde),
        ("cat a=~/x", UnclearKind::Tilde),
        ("=rm x", UnclearKind::Equals),
        ("f() { id; }", UnclearKind::Function),
        ("cat <<'E'\nx\nE", UnclearKind::HereDocument),
        ("(ls)", UnclearKind::ControlFlow),
        ("{ ls; }", UnclearKind::ControlFlow),
        ("if true; then ls; fi", UnclearKind::ControlFlow),
        ("ls & id", UnclearKind::Background),
        ("l\\\ns", UnclearKind::Continuation),
        ("ls \"a\\\nb\"", UnclearKind::Continuation),
        ("l\\\ns $(id)", UnclearKind::Syntax),
        ("ls \"a\\\nb${x}\"", UnclearKind::Continuation),
        ("ls ;; id", UnclearKind::Syntax),
        ("ls )", UnclearKind::Syntax),
        ("ls |", UnclearKind::Syntax),
        ("ls -la\0rm x", UnclearKind::Hidden),
        ("ls\rrm", UnclearKind::Hidden),
        ("ls\u{b}x", UnclearKind::Hidden),
        ("ls \u{202e}x", UnclearKind::Hidden),
        ("ls \u{2010}la", UnclearKind::Lookalike),
        ("ls *(e:id:)", UnclearKind::Syntax),
        ("a[0]=1 ls", UnclearKind::Array),
    ];
    for (source, what) in cases {
        assert!(unclear(source).contains(&what), "{source:?}: {:?}", unclear(source));
    }
}

#[test]
fn commands_inside_what_is_unclear_are_still_found() {
    let cases = [
        "echo ${x:-$(rm y)}",
        "if true; then rm y; fi",
        "f() { rm y; }",
        "echo \"$(echo `rm y`)\"",
        "for i in a b; do rm y; done",
        "case x in a) rm y;; esac",
        "cat <<E\n$(rm y)\nE",
        "x=$(rm y)",
        "! (rm y)",
    ];
    for source in cases {
        let script = ShellScript::parse(source, ShellDialect::Bash);
        let found = script.commands.iter().any(|simple| {
            simple.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>() == ["rm", "y"]
        });
        assert!(found, "{source}: {:?}", script.commands);
    }
}

#[test]
fn a_comment_hides_nothing_but_itself() {
    assert_eq!(words("cat f # comment; rm -rf /"), [["cat", "f"]]);
    assert_eq!(words("ls # a \\\ntouch x"), [vec!["ls"], vec!["touch", "x"]]);
    assert_eq!(words("ls a#b"), [["ls", "a#b"]]);
}

#[test]
fn a_line_that_goes_on_is_one_command() {
    assert_eq!(words("ls \\\n  -la"), [["ls", "-la"]]);
    assert_eq!(words("ls;\\\nrm x"), [vec!["ls"], vec!["rm", "x"]]);
    let script = ShellScript::parse("l\\\ns \"a\\\nb\" 'c\\\nd' e\\\\\\\nf # g\\\nh", ShellDialect::Bash);
    let words: Vec<Vec<_>> = script
        .commands
        .iter()
        .map(|simple| simple.words.iter().map(|word| word.text.as_str()).collect())
        .collect();
    assert_eq!(words, [vec!["ls", "ab", "c\\\nd", "e\\f"], vec!["h"]]);
}

#[test]
fn characters_beyond_ascii_are_letters() {
    assert_eq!(words("cat über.md 日本 '– …'"), [["cat", "über.md", "日本", "– …"]]);
    // The third would abort the process if the grammar's scanner saw it.
    for source in ["echo {😀}", "echo {1..😀}", "{\u{10ffff}", "ls {é..z}"] {
        ShellScript::parse(source, ShellDialect::Bash);
    }
    // White space to some programs, a letter to a shell.
    assert_eq!(unclear("ls\u{a0}x"), [UnclearKind::Lookalike, UnclearKind::Hidden]);
}

#[test]
fn hostile_input_is_read_in_bounded_time() {
    let deep = "$(".repeat(5000);
    let braces = "{a,".repeat(20_000);
    let long = "a".repeat(2 * 1024 * 1024);
    let quotes = "\"$(\"".repeat(10_000);
    let chain = "ls && ".repeat(20_000);
    for source in [deep, braces, long, quotes, chain, "(".repeat(100_000), "<<A ".repeat(20_000)] {
        assert!(!ShellScript::parse(&source, ShellDialect::Bash).is_clear());
    }
}
