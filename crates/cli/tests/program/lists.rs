//! Lists and texts at a terminal: they fit, no word is broken, and pipes get everything.

use serde_json::{Value, json};
use unicode_width::UnicodeWidthStr;

use crate::support::{FULL_ACCESS, Running, User, lines};

/// Many words of one form, so that a broken one is recognised; and wide characters.
fn long_text() -> String {
    let words: Vec<_> = (0..40).map(|number| format!("w{number:03}x")).collect();
    format!("{} 把所有的文件都读一遍然后告诉我结果 🎉🎉 ❤️ {}", words[..20].join(" "), words[20..].join(" "))
}

/// A user with sessions, calls, edits, rules and a named session, all with long texts.
fn experienced_user() -> User {
    let user = User::new();
    let text = long_text();
    let shell =
        |command: String| json!({"calls": [{"name": "shell_command", "arguments": {"command": command}}]});
    let turns = json!([
        shell(format!("echo {text} > 汉字-w900x.txt")),
        shell(format!("echo {text} >&2; printf 'w100x\\tw101x\\t%.0s' 1 2 3 4 5 6 7 8; exit 3")),
        {"calls": [{"name": "no_such_tool_w901x_of_a_long_name", "arguments": {"text": text}}]},
        {"text": format!("It is done: {text}")},
    ]);
    let script = user.script(&turns);
    let prompt = format!("Please do this: {text}");
    user.run(&[&["exec", "--script", &script, &prompt], &FULL_ACCESS[..]].concat());
    let rules = user.home().join("rules");
    std::fs::create_dir_all(&rules).unwrap();
    let words: Vec<_> = text.split(' ').take(25).collect();
    let rule = format!("[[rule]]\nprefix = {}\ndecision = \"allow\"\n", json!(words));
    std::fs::write(rules.join("mine.toml"), rule).unwrap();
    user.run(&["sessions", "rename", &session(&user), "w950x w951x w952x w953x w954x w955x 会话"])
        .assert_code(0);
    user
}

fn session(user: &User) -> String {
    user.sessions()[0].file_stem().unwrap().to_str().unwrap().to_owned()
}

fn on_terminal(user: &User, columns: usize, line: &str) -> String {
    let line = format!("stty cols {columns} rows 50; $windlass {line}");
    Running::start(user.shell_on_a_terminal(&line)).end().stdout
}

/// A line as it is seen, without colours.
fn seen(line: &str) -> String {
    let mut parts = line.trim_end().split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |seen, part| seen + part.split_once('m').map_or("", |(_, rest)| rest))
}

/// The columns that a line takes, with tab stops.
fn columns_of(line: &str) -> usize {
    let parts = line.split('\t').map(UnicodeWidthStr::width);
    parts.reduce(|columns, part| (columns / 8 + 1) * 8 + part).unwrap_or(0)
}

/// Words of the form `w000x` that lost a part.
fn broken_words(line: &str) -> Vec<String> {
    // A text that was cut says so.
    let cut = line.split('…').map(|part| part.trim_end_matches(|c: char| c.is_ascii_alphanumeric()));
    let kept: String = if line.contains('…') { cut.collect() } else { line.to_owned() };
    let words = kept.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| word.len() < 6);
    let is_digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    let is_part = |word: &&str| {
        let bytes = word.as_bytes();
        let begins = bytes.first() == Some(&b'w') && is_digit(bytes.get(1));
        let ends = bytes.last() == Some(&b'x') && is_digit(bytes.iter().rev().nth(1));
        (begins || ends) && !(begins && ends && word.len() == 5) && *word != "0x"
    };
    words.filter(is_part).map(str::to_owned).collect()
}

#[test]
fn every_list_fits_the_terminal_and_breaks_no_word() {
    let user = experienced_user();
    let session = session(&user);
    let calls = lines(&user.run(&["history", "--json"]).stdout);
    assert_eq!(calls.len(), 3, "{calls:#?}");
    for columns in [50, 60, 80] {
        let shown = on_terminal(&user, columns, "history");
        assert_eq!(shown.matches("shell_command").count(), 2, "{columns}:\n{shown}");
    }
    let call = |at: usize| calls[at]["call"].as_str().unwrap().to_owned();
    let explained = format!("policy explain '{}'", long_text());
    let shown: Vec<_> = (0..3).map(|at| format!("show {}", call(at))).collect();
    let of_session: Vec<_> = ["sessions show", "audit verify", "history --session", "undo --list --session"]
        .iter()
        .map(|command| format!("{command} {session}"))
        .collect();
    let fixed = [
        "history",
        "history --all",
        "sessions list",
        "sessions search w003x w004x",
        "sessions du",
        "sessions gc --dry-run --sessions --older-than 0m",
        "stats",
        "stats --by session",
        "stats --by error",
        "tools list",
        "tools search 'read a file'",
        "tools select --explain 'find all files that mention w001x in src, but change nothing'",
        "tools cost",
        "tools show read_file",
        "tools manifest",
        "undo --list",
        "undo --preview",
        "policy rules",
        "policy suggest",
        "doctor",
        "config show",
        "config show --origin",
        "login --status",
        "show w123x_no_such_call",
        "sessions show w123x_no_such_session",
        &explained,
    ];
    let commands = fixed.into_iter().chain(shown.iter().chain(&of_session).map(String::as_str));
    for command in commands {
        for columns in [60, 80, 120] {
            let shown = on_terminal(&user, columns, command);
            assert!(!shown.is_empty(), "{command}");
            for line in shown.lines().map(seen) {
                assert!(columns_of(&line) <= columns, "{command} at {columns}:\n{line}\nin:\n{shown}");
                assert_eq!(broken_words(&line), [""; 0], "{command} at {columns}:\n{shown}");
            }
        }
    }
}

/// N10 of the faults: rows were too long at 60 and 80 columns, and had no time.
#[test]
fn history_shows_time_and_duration_at_every_width() {
    let user = experienced_user();
    for columns in [60, 80, 120] {
        let shown = on_terminal(&user, columns, "history");
        let head = seen(shown.lines().next().unwrap());
        for title in ["CALL", "TIME", "TOOL", "STATUS", "TOOK"] {
            assert!(head.contains(title), "{columns}: {shown}");
        }
        let failed = shown.lines().find(|line| line.contains("exit code 3")).unwrap();
        assert!(failed.contains(" ms") || failed.contains(" s"), "{columns}: {shown}");
        assert!(failed.contains(':') && failed.contains('Z'), "{columns}: {shown}");
        assert!(shown.contains("echo w000x w001x"), "{columns}: {shown}");
    }
}

#[test]
fn a_search_shows_the_match_at_every_width() {
    let user = experienced_user();
    for word in ["w003x", "w035x", "告诉我"] {
        for columns in [60, 80, 120] {
            let shown = on_terminal(&user, columns, &format!("sessions search {word}"));
            assert!(shown.contains(word), "{columns}: {shown}");
        }
    }
}

#[test]
fn pipes_get_every_cell_whole() {
    let user = experienced_user();
    let session = session(&user);
    let listed = user.run(&["sessions", "list"]).stdout;
    assert!(listed.contains(&session) && listed.contains("w955x 会话"), "{listed}");
    let history = user.run(&["history"]).stdout;
    assert!(history.contains("w039x > 汉字-w900x.txt"), "{history}");
    assert_eq!(history.lines().count(), 4, "{history}");
    assert!(user.run(&["policy", "rules"]).stdout.contains("把所有的文件都读一遍然后告诉我结果"));
}

#[test]
fn history_has_arguments_and_ends_in_words_in_pipes_too() {
    let user = User::new();
    let run = |command: &str| json!({"name": "shell_command", "arguments": {"command": command}});
    let calls = [run("echo one"), run("git push --force"), run("exit 7")];
    let script = user.script(&json!([{"calls": calls}, {"text": "ok"}]));
    user.run(&["exec", "--script", &script, "hi"]).assert_code(3);
    let piped = user.run(&["history"]).stdout;
    let shown = on_terminal(&user, 120, "history");
    for (end, input) in [("success", "echo one"), ("refused", "git push --force"), ("exit code 7", "exit 7")]
    {
        for text in [&piped, &shown] {
            let line = text.lines().find(|line| line.trim_end().ends_with(input)).unwrap();
            assert!(line.contains(&format!("  {end}  ")), "{line}");
        }
    }
    assert!(!piped.contains('{') && !piped.contains("rejected"), "{piped}");
    let written = &lines(&user.run(&["history", "--json"]).stdout)[0]["input"];
    assert!(written.as_str().unwrap().starts_with('{'), "{written}");
}

#[test]
fn rules_of_a_project_are_listed_with_its_path() {
    let user = User::new();
    user.run(&["policy", "allow", "--project", "make"]).assert_code(0);
    let listed = user.run(&["policy", "rules"]).stdout;
    let project = user.work().canonicalize().unwrap();
    assert!(listed.contains(&format!("answers.toml:4 for {} (answer)", project.display())), "{listed}");
    assert!(!listed.contains("%2F"), "{listed}");
    assert!(user.run(&["policy", "rules", "--json"]).stdout.contains("%2F"), "the file itself");
    assert!(!on_terminal(&user, 60, "policy rules").contains("%2F"));
}

#[test]
fn history_is_that_of_this_directory_unless_all_are_wanted() {
    let user = User::new();
    let script = user.script(&json!([{"text": "ok"}]));
    assert!(!script.is_empty());
    for directory in ["one", "other"] {
        std::fs::create_dir(user.work().join(directory)).unwrap();
        user.run(&["-C", directory, "call", "shell_command", r#"{"command":"true"}"#]).assert_code(0);
    }
    let count = |args: &[&str]| lines(&user.run(args).stdout).len();
    assert_eq!(count(&["history", "--json"]), 2, "those below count");
    assert_eq!(count(&["-C", "one", "history", "--json"]), 1);
    assert_eq!(count(&["-C", "one", "history", "--all", "--json"]), 2);
    std::fs::create_dir(user.work().join("empty")).unwrap();
    let none = user.run(&["-C", "empty", "history"]);
    assert!(none.stderr.contains("`--all` shows those of others"), "{none:?}");
}

#[test]
fn a_broken_pipe_is_quiet_for_every_list() {
    let user = experienced_user();
    let session = session(&user);
    let commands =
        ["history", "sessions list", "stats", "tools list", "undo --list", "policy rules", "sessions du"];
    let of_session = [format!("sessions show {session}"), format!("sessions export {session}")];
    for command in commands.into_iter().chain(of_session.iter().map(String::as_str)) {
        let ended = Running::start(user.shell(&format!("\"$windlass\" {command} | true"))).end();
        let stderr: Vec<_> = ended.stderr.lines().filter(|line| !line.starts_with("note:")).collect();
        assert_eq!(stderr, [""; 0], "{command}");
    }
}

#[test]
fn colours_follow_the_variables_for_every_list() {
    let user = experienced_user();
    let titled = ["history", "sessions list", "stats", "tools list", "policy rules", "sessions du"];
    for command in titled {
        for (variables, is_coloured) in [
            ("TERM=xterm", true),
            ("TERM=dumb", false),
            ("TERM=xterm NO_COLOR=1", false),
            ("TERM=xterm CLICOLOR=0", false),
        ] {
            let line = format!("stty cols 80; {variables} $windlass {command}");
            let shown = Running::start(user.shell_on_a_terminal(&line)).end().stdout;
            assert_eq!(shown.contains('\x1b'), is_coloured, "{variables} {command}: {shown}");
        }
        let piped = Running::start(user.shell(&format!("CLICOLOR_FORCE=1 \"$windlass\" {command}"))).end();
        assert!(piped.stdout.contains('\x1b'), "{command}: {piped:?}");
        assert!(!user.run(&command.split(' ').collect::<Vec<_>>()).stdout.contains('\x1b'), "{command}");
    }
}

#[test]
fn json_is_never_wrapped() {
    let user = experienced_user();
    let shown = on_terminal(&user, 60, "sessions list --json");
    let _line: Value = serde_json::from_str(shown.trim()).unwrap();
    for command in ["undo --list --json", "policy rules --json", "stats --json", "tools list --json"] {
        let shown = on_terminal(&user, 60, &format!("{command} 2>/dev/null"));
        assert!(serde_json::from_str::<Value>(&shown).is_ok(), "{command}: {shown}");
    }
}
