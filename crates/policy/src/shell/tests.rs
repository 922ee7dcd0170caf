//! Tests of this module.

use super::*;

/// Commands as lists of words; unclear ones marked.
fn words(source: &str) -> Vec<Vec<String>> {
    let script = Script::parse(source, Dialect::Bash);
    assert!(script.is_clear(), "{source:?}: {:?}", script.unclear);
    let text = |simple: &Simple| simple.words.iter().map(|word| word.text.clone()).collect();
    script.commands.iter().map(text).collect()
}

fn unclear(source: &str) -> Vec<What> {
    Script::parse(source, Dialect::Bash).unclear.iter().map(|unclear| unclear.what).collect()
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
            let script = Script::parse(&source, Dialect::Bash);
            let words: Vec<_> = script.commands.into_iter().map(|simple| simple.words).collect();
            (words, script.unclear.into_iter().map(|unclear| unclear.what).collect::<Vec<_>>())
        });
        assert_eq!(open, ended, "{source}");
    }
    assert!(unclear("ls a\\").contains(&What::Syntax));
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
    let script = Script::parse("a && b >f c 2>&1 d", Dialect::Bash);
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
        let script = Script::parse(source, Dialect::Bash);
        assert!(script.is_clear(), "{source}: {:?}", script.unclear);
        let redirect = &script.commands[0].redirects[0];
        assert_eq!((redirect.kind, redirect.target.text.as_str()), (kind, target), "{source}");
    }
}

#[test]
fn braces_become_several_words() {
    assert_eq!(words("ls {a,b{1..3}}.txt"), [["ls", "a.txt", "b1.txt", "b2.txt", "b3.txt"]]);
    assert_eq!(words("git show HEAD@{1} {} ^{tree}"), [["git", "show", "HEAD@{1}", "{}", "^{tree}"]]);
    let posix = Script::parse("ls {a,b}", Dialect::Posix);
    assert_eq!(posix.unclear[0].what, What::Brace);
}

#[test]
fn what_is_not_literal_is_unclear() {
    let cases = [
        ("echo $x", What::Expansion),
        ("echo \"$x\"", What::Expansion),
        ("echo ${x@P}", What::Expansion),
        ("echo $(id)", What::Substitution),
        ("echo `id`", What::Substitution),
        ("diff <(id) x", What::Substitution),
        ("echo $((1))", What::Arithmetic),
        ("[[ a -eq b ]]", What::Arithmetic),
        ("$'\\x72m' x", What::Quoting),
        ("echo $\"x\"", What::Quoting),
        ("cat ~root/x", What::Tilde),
        ("cat a=~/x", What::Tilde),
        ("=rm x", What::Equals),
        ("f() { id; }", What::Function),
        ("cat <<'E'\nx\nE", What::HereDocument),
        ("(ls)", What::ControlFlow),
        ("{ ls; }", What::ControlFlow),
        ("if true; then ls; fi", What::ControlFlow),
        ("ls & id", What::Background),
        ("l\\\ns", What::Syntax),
        ("ls \"a\\\nb\"", What::Continuation),
        ("ls ;; id", What::Syntax),
        ("ls )", What::Syntax),
        ("ls |", What::Syntax),
        ("ls -la\0rm x", What::Hidden),
        ("ls\rrm", What::Hidden),
        ("ls\u{b}x", What::Hidden),
        ("ls \u{202e}x", What::Hidden),
        ("ls \u{2010}la", What::Lookalike),
        ("ls *(e:id:)", What::Syntax),
        ("a[0]=1 ls", What::Array),
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
        let script = Script::parse(source, Dialect::Bash);
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
}

#[test]
fn characters_beyond_ascii_are_letters() {
    assert_eq!(words("cat über.md 日本 '– …'"), [["cat", "über.md", "日本", "– …"]]);
    // The third would end the process if the grammar's scanner saw it.
    for source in ["echo {😀}", "echo {1..😀}", "{\u{10ffff}", "ls {é..z}"] {
        Script::parse(source, Dialect::Bash);
    }
    // White space for some, a letter for a shell.
    assert_eq!(unclear("ls\u{a0}x"), [What::Lookalike, What::Hidden]);
}

#[test]
fn hostile_input_is_read_in_bounded_time() {
    let deep = "$(".repeat(5000);
    let braces = "{a,".repeat(20_000);
    let long = "a".repeat(2 * 1024 * 1024);
    let quotes = "\"$(\"".repeat(10_000);
    let chain = "ls && ".repeat(20_000);
    for source in [deep, braces, long, quotes, chain, "(".repeat(100_000), "<<A ".repeat(20_000)] {
        assert!(!Script::parse(&source, Dialect::Bash).is_clear());
    }
}
