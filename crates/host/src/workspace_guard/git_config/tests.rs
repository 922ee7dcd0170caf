//! Settings against git's own reading of them.

use std::{io::Write, process};

use proptest::prelude::*;

use super::*;

fn setting(key: &str, value: Option<&str>) -> GitSetting {
    GitSetting { key: key.into(), value: value.map(Into::into) }
}

/// Git's own reading of a file.
fn list(config: &[u8]) -> Option<Vec<GitSetting>> {
    let mut git = process::Command::new("git");
    git.args(["config", "--file", "-", "--no-includes", "--list", "-z"]).stdin(process::Stdio::piped());
    let mut git = git.stdout(process::Stdio::piped()).stderr(process::Stdio::null()).spawn().unwrap();
    git.stdin.take().unwrap().write_all(config).unwrap();
    let output = git.wait_with_output().unwrap();
    output.status.success().then(|| GitSetting::parse_list(&output.stdout)).flatten()
}

#[test]
fn only_settings_on_the_list_are_allowed_and_no_address_that_runs_a_helper() {
    for (key, value, expected) in [
        ("branch.main.remote", "origin", true),
        ("branch.a.b.c.merge", "refs/heads/x", true),
        ("remote.origin.url", "ssh://[::1]/x", true),
        ("remote.origin.url", "../x", true),
        ("remote.origin.url", "ext::sh -c evil", false),
        ("remote.origin.url", "::x", false),
        ("remote.origin.url", "-oProxyCommand=x", false),
        ("remote.origin.url", "ssh://-x", false),
        ("submodule.s.url", "ext::x", false),
        ("branch.x.remote", "ext::x", false),
        ("branch.x.pushremote", "ext::x", false),
        ("submodule.s.update", "!evil", false),
        ("remote.origin.uploadpack", "evil", false),
        ("core.fsmonitor", "evil", false),
        ("core.hookspath", "evil", false),
        ("core.x.bare", "true", false),
        ("core.bare", "true", true),
        ("include.path", "x", false),
        ("includeif.gitdir:/.path", "x", false),
        ("alias.x", "!evil", false),
        ("branch.remote", "x", false),
        ("core", "x", false),
        ("remote.origin.url", "ext://x", false),
        ("remote.origin.url", "GIT+SSH://x/y", true),
        ("remote.origin.url", "host:path/x", true),
        ("core.repositoryformatversion", "2", false),
        ("core.bare", "perhaps", false),
        ("extensions.refstorage", "files:///x", false),
    ] {
        assert_eq!(setting(key, Some(value)).is_allowed(), expected, "{key} {value}");
    }
}

#[test]
fn settings_are_read_as_git_prints_them() {
    let text = b"[core]\n\tbare\n# a comment \\\n\tfsmonitor = \"evil\"\n[remote \"a.b\"]\n\turl = x\n";
    let expected = [
        setting("core.bare", None),
        setting("core.fsmonitor", Some("evil")),
        setting("remote.a.b.url", Some("x")),
    ];
    assert_eq!(list(text).unwrap(), expected);
    assert_eq!(list(b"[core\n"), None, "what git does not read is nothing");
    assert_eq!(GitSetting::parse_list(b"no end"), None);
}

#[test]
fn a_change_is_kept_or_dropped_key_by_key() {
    let before = [setting("core.fsmonitor", Some("mine")), setting("branch.a.remote", Some("o"))];
    let after = [setting("branch.b.remote", Some("o")), setting("alias.x", Some("!y"))];
    let edit = |key: &str, values: &[&str]| GitSettingEdit {
        key: key.into(),
        values: values.iter().map(|value| Some((*value).into())).collect(),
    };
    let expected = GitConfigChange {
        edits: vec![edit("branch.a.remote", &[]), edit("branch.b.remote", &["o"])],
        dropped: vec!["alias.x".to_owned(), "core.fsmonitor".to_owned()],
    };
    assert_eq!(GitConfigChange::between(&before, &after), expected);
    assert_eq!(GitConfigChange::between(&before, &before), GitConfigChange::default());
}

#[test]
fn a_remote_from_which_missing_objects_are_fetched_stays_as_it_is() {
    let before = [setting("remote.p.promisor", Some("true")), setting("remote.p.url", Some("https://a"))];
    let after = [
        setting("remote.p.promisor", Some("true")),
        setting("remote.p.url", Some("https://b")),
        setting("remote.q.promisor", Some("true")),
        setting("remote.q.url", Some("https://c")),
    ];
    let change = GitConfigChange::between(&before, &after);
    assert_eq!(change.dropped, ["remote.p.url", "remote.q.promisor"]);
    assert_eq!(change.edits.len(), 1);
}

#[test]
fn only_settings_that_git_reads_as_they_look_are_taken_for_harmless_without_git() {
    for plain in [
        "",
        "[core]\n\tbare = false\n\trepositoryformatversion = 0\n[remote \"o/x\"]\n\turl = ../x y\n\tfetch = +refs/heads/*:refs/x/*\n",
        "[user]\n\tname = A B\n",
    ] {
        assert!(is_plainly_harmless(plain.as_bytes()), "{plain}");
    }
    for other in [
        "[core]\n\tfsmonitor = x\n",
        "[core]\n\tbare = false # \\\n\tx = y\n",
        "[core]\n\tbare = \"a\n",
        "[core] bare = false\n",
        "[core]\n  bare = false\n",
        "[core]\n\tbare = a\\\n",
        "[core]\r\n\tbare = false\n",
        "[core.x]\n\tbare = false\n",
        "\tbare = false\n",
        "[remote \"a\\\"]\n\turl = x\n",
        "[include]\n\tpath = x\n",
        "\u{feff}[core]\n",
    ] {
        assert!(!is_plainly_harmless(other.as_bytes()), "{other}");
    }
}

/// A word of bytes without a zero, and without a newline where git takes none.
fn word(
    bytes: std::ops::RangeInclusive<u8>,
    length: std::ops::Range<usize>,
) -> impl Strategy<Value = Vec<u8>> {
    let special = prop::sample::select(b"\"\\#; \t\r.\x08[]=".to_vec());
    prop::collection::vec(prop_oneof![bytes, special], length)
}

/// Lines of settings files, plain and not.
const LINES: [&str; 22] = [
    "[core]",
    "[remote \"o\"]",
    "[remote \"a b/c\"]",
    "[branch \"x\"]",
    "[user]",
    "[alias]",
    "[core \"x\"]",
    "[remote \"a\\\"\"]",
    "[core] fsmonitor = x",
    "\tbare = false",
    "\turl = ../x y",
    "\turl = a\\",
    "\turl = \"a",
    "\turl = a # b \\",
    "\tfsmonitor = x",
    "\tmerge = refs/heads/x",
    "\tname = [alias]",
    "\tst = !x",
    "\tbare",
    "# text",
    "",
    "\r",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn git_reads_what_is_written_here(
        settings in prop::collection::vec(
            (
                "(core|branch|remote)",
                prop::option::of(word(11..=255, 1..8)),
                "[a-z]{1,6}",
                prop::option::of(word(1..=255, 0..12)),
            ),
            0..6,
        )
    ) {
        let settings: Vec<_> = settings.into_iter().map(|(section, subsection, name, value)| {
            let subsection = subsection.map(|name| [&b"."[..], &name].concat()).unwrap_or_default();
            let key = [section.as_bytes(), &subsection, b".", name.as_bytes()].concat();
            GitSetting { key, value }
        }).collect();
        prop_assert_eq!(list(&write(&settings)), Some(settings));
    }

    #[test]
    fn what_is_plainly_harmless_is_so_for_git(lines in prop::collection::vec(prop::sample::select(&LINES[..]), 0..6)) {
        let text = lines.join("\n");
        if is_plainly_harmless(text.as_bytes()) {
            let listed = list(text.as_bytes());
            prop_assert!(listed.is_some_and(|listed| listed.iter().all(GitSetting::is_harmless)), "{text}");
        }
    }
}
