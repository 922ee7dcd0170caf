//! The reference on the command line.

use crate::support::User;

const COMMANDS: [&[&str]; 91] = [
    &[],
    &["chat"],
    &["resume"],
    &["fork"],
    &["rewind"],
    &["exec"],
    &["exec", "resume"],
    &["call"],
    &["apply-patch"],
    &["undo"],
    &["redo"],
    &["tools"],
    &["tools", "list"],
    &["tools", "show"],
    &["tools", "search"],
    &["tools", "select"],
    &["tools", "bench"],
    &["tools", "cost"],
    &["tools", "manifest"],
    &["models"],
    &["models", "list"],
    &["models", "probe"],
    &["sandbox"],
    &["init"],
    &["login"],
    &["logout"],
    &["doctor"],
    &["config"],
    &["config", "show"],
    &["config", "get"],
    &["config", "set"],
    &["config", "unset"],
    &["config", "edit"],
    &["config", "schema"],
    &["config", "path"],
    &["mcp"],
    &["mcp", "list"],
    &["mcp", "get"],
    &["mcp", "test"],
    &["mcp", "login"],
    &["mcp", "logout"],
    &["mcp", "prompts"],
    &["mcp", "serve"],
    &["mcp", "gateway"],
    &["mcp", "pins"],
    &["mcp", "pins", "approve"],
    &["mcp", "pins", "forget"],
    &["mcp", "add"],
    &["mcp", "remove"],
    &["context"],
    &["compact"],
    &["hooks"],
    &["hooks", "list"],
    &["hooks", "test"],
    &["instructions"],
    &["skills"],
    &["skills", "list"],
    &["skills", "show"],
    &["prompts"],
    &["prompts", "list"],
    &["prompts", "show"],
    &["trust"],
    &["policy"],
    &["policy", "explain"],
    &["policy", "classify"],
    &["policy", "test"],
    &["policy", "suggest"],
    &["policy", "rules"],
    &["policy", "allow"],
    &["policy", "deny"],
    &["policy", "revoke"],
    &["stats"],
    &["history"],
    &["show"],
    &["sessions"],
    &["sessions", "list"],
    &["sessions", "show"],
    &["sessions", "tree"],
    &["sessions", "search"],
    &["sessions", "rename"],
    &["sessions", "delete"],
    &["sessions", "export"],
    &["sessions", "du"],
    &["sessions", "gc"],
    &["feedback"],
    &["audit"],
    &["audit", "verify"],
    &["audit", "export"],
    &["redact"],
    &["completions"],
    &["man"],
];

#[test]
fn the_reference_is_what_it_was_when_it_was_last_read() {
    let user = User::new();
    let pages = COMMANDS.iter().map(|command| {
        let ended = user.run(&[command, &["--help"][..]].concat());
        ended.assert_code(0);
        assert_eq!(ended.stderr, "");
        format!("$ windlass {}\n{}\n", [command, &["--help"][..]].concat().join(" "), ended.stdout)
    });
    insta::assert_snapshot!("reference", pages.collect::<String>());
}

#[test]
fn every_page_fits_and_has_an_example() {
    let user = User::new();
    for command in COMMANDS {
        let page = user.run(&[command, &["--help"][..]].concat()).stdout;
        let (_, examples) = page.split_once("\nExample").unwrap_or_else(|| panic!("no example: {command:?}"));
        let own = [&["windlass"], command].concat().join(" ");
        assert!(examples.contains(&own), "{command:?}: {examples}");
        assert!(page.lines().all(|line| line.chars().count() <= 100), "{command:?}: {page}");
    }
}

#[test]
fn every_command_is_in_the_reference() {
    let user = User::new();
    for command in COMMANDS {
        let page = user.run(&[command, &["--help"][..]].concat()).stdout;
        let listed = page.split_once("\nCommands:\n").map_or("", |(_, rest)| rest);
        let listed = listed.lines().take_while(|line| !line.is_empty());
        for name in listed.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
            let path = [command, &[name][..]].concat();
            assert!(COMMANDS.contains(&&path[..]), "{path:?} is not in the reference");
        }
    }
}

#[test]
fn the_readme_installs_with_the_versions_that_were_tested() {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let installs: Vec<_> = readme.lines().filter(|line| line.contains("cargo install")).collect();
    assert!(!installs.is_empty() && installs.iter().all(|line| line.contains("--locked")), "{installs:?}");
}

#[test]
fn the_version_is_an_answer_and_a_mistake_is_not() {
    let user = User::new();
    let version = user.run(&["--version"]);
    version.assert_code(0);
    assert_eq!(version.stdout, format!("windlass {}\n", env!("CARGO_PKG_VERSION")));
    let cases = [
        (&[][..], "Usage: windlass"),
        (&["exce"], "'exec'"),
        (&["exec", "fix", "the", "bug"], "a prompt of several words is one argument; put it in quotes"),
        (&["exec", "--modle", "x"], "--model"),
        (&["exec", "--sandbox", "none", "hi"], "danger-full-access"),
        (&["exec", "--time-limit", "soon", "hi"], "--time-limit"),
        (&["exec", "--json", "--script", "a", "--provider", "b", "hi"], "--provider"),
        (&["exec", "--yolo", "--sandbox", "read-only", "hi"], "--sandbox"),
    ];
    for (args, said) in cases {
        let ended = user.run(args);
        ended.assert_code(2);
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{args:?}: {ended:#?}");
    }
}
