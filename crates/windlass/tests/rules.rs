//! The offline rules at work: requests as people type them, on a real project, with the real tools.
//!
//! `rules/seen.jsonl` is what the rules are made for, and grows. `rules/unseen.jsonl` was written
//! before the rules, which were never changed for it. `rules/declined.jsonl` has what must be asked
//! about or declined.

#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, Mutex},
};

use serde::Deserialize;
use serde_json::Value;
use windlass::{
    Agent, ApprovalPolicy, Clean, Content, Event, EventSink, Policy, SandboxMode, Stop, ToolCall, Toolset,
};

#[path = "rules/project.rs"]
mod project;

/// A request, and what must come of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// What was asked before, in the same conversation.
    #[serde(default)]
    before: Vec<String>,
    ask: String,
    /// Calls that must be made, in this order; others may come between. Texts must hold what is
    /// given here.
    #[serde(default)]
    calls: Vec<(String, BTreeMap<String, Value>)>,
    /// What the answer must say.
    says: Vec<String>,
    /// And what it must not.
    #[serde(default)]
    not: Vec<String>,
    /// Whether it counts as done although nothing was.
    #[serde(default)]
    done: bool,
    /// Whether it was done and came to a bad end, as tests that fail do.
    #[serde(default)]
    failed: bool,
    /// What files must hold afterwards; nothing, if they must be gone.
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
}

/// Tools that cannot change anything.
const READERS: [&str; 3] = ["list_dir", "grep_files", "read_file"];

/// Keeps the calls.
#[derive(Default)]
struct Calls(Mutex<Vec<ToolCall>>);

impl EventSink for Calls {
    fn emit(&self, event: &Clean<Event>) {
        if let Event::CallStarted { call, .. } = &**event {
            self.0.lock().unwrap().push(call.clone().into_inner());
        }
    }
}

/// What became of a request.
struct Turn {
    calls: Vec<(String, Value)>,
    answer: String,
    declined: bool,
}

/// Runs a request in a project of its own.
async fn run(ask: &str, place: &Path) -> Turn {
    run_after(&[], ask, place).await
}

/// Runs a request after others.
async fn run_after(before: &[String], ask: &str, place: &Path) -> Turn {
    let calls = Arc::new(Calls::default());
    let policy = Policy {
        cwd: place.to_owned(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::WorkspaceWrite,
        ..Policy::default()
    };
    let mut agent = Agent::builder()
        .model(windlass::select::rules())
        .builtin(Toolset::default())
        .policy(policy)
        .environment(std::env::vars().filter(|(name, _)| !name.starts_with("CARGO_")).collect())
        .events(Arc::clone(&calls) as _)
        .build()
        .unwrap();
    for ask in before {
        agent.ask(ask).await.unwrap();
    }
    calls.0.lock().unwrap().clear();
    let report = agent.run(vec![Content::Text(ask.to_owned())], &Stop::default()).await;
    let calls = std::mem::take(&mut *calls.0.lock().unwrap());
    let calls = calls.iter().map(|call| {
        let input = call.input.as_str();
        (call.name.to_string(), serde_json::from_str(input).unwrap())
    });
    Turn { calls: calls.collect(), answer: report.end.unwrap(), declined: report.declined }
}

impl Row {
    /// What is wrong with what came of it.
    fn problems(&self, turn: &Turn, place: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        let mut left = turn.calls.iter();
        for (tool, arguments) in &self.calls {
            if !left.any(|(name, input)| {
                name == tool && arguments.iter().all(|(key, value)| fits(value, &input[key]))
            }) {
                problems.push(format!("no call of {tool} {arguments:?}"));
            }
        }
        let says = self.says.iter().filter(|text| !turn.answer.contains(*text));
        problems.extend(says.map(|text| format!("the answer does not say `{text}`")));
        let not = self.not.iter().filter(|text| turn.answer.contains(*text));
        problems.extend(not.map(|text| format!("the answer says `{text}`")));
        for (path, content) in &self.files {
            let found = fs::read_to_string(place.join(path)).ok();
            if found != *content {
                problems.push(format!("`{path}` is {found:?}"));
            }
        }
        problems
    }
}

/// Whether an argument is what a row wants: texts hold it, everything else is the same.
fn fits(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(wanted), Value::String(found)) => found.contains(wanted),
        (wanted, found) => wanted == found,
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Runs all rows of a table; the share that came out right, in percent, and what was wrong with the
/// others.
async fn score(table: &str, check: impl Fn(&Row, &Turn) -> Vec<String>) -> (usize, String) {
    let template = tempfile::tempdir().unwrap();
    project::make(template.path());
    let rows: Vec<Row> = table.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (mut right, mut wrong) = (0, String::new());
    for row in &rows {
        let place = tempfile::tempdir().unwrap();
        copy(template.path(), place.path());
        let place = place.path().canonicalize().unwrap();
        let turn = run_after(&row.before, &row.ask, &place).await;
        let mut problems = row.problems(&turn, &place);
        problems.extend(check(row, &turn));
        if problems.is_empty() {
            right += 1;
        } else {
            wrong += &format!(
                "\n{:?} {}\n  {}\n  calls: {:?}\n  answer: {}\n",
                row.before,
                row.ask,
                problems.join("\n  "),
                turn.calls,
                turn.answer
            );
        }
    }
    (right * 100 / rows.len(), format!("{right} of {}{wrong}", rows.len()))
}

fn is_done(row: &Row, turn: &Turn) -> Vec<String> {
    (turn.declined != row.failed).then(|| format!("declined: {}", turn.declined)).into_iter().collect()
}

#[tokio::test]
async fn requests_the_rules_were_made_for_are_understood() {
    let (percent, report) = score(include_str!("rules/seen.jsonl"), is_done).await;
    assert_eq!(percent, 100, "{report}");
}

/// Whoever makes rules must not look at what fails here; that is why it says only how many.
#[tokio::test]
async fn requests_the_rules_were_not_made_for_are_mostly_understood() {
    let (percent, report) = score(include_str!("rules/unseen.jsonl"), is_done).await;
    let report =
        if std::env::var_os("SHOW_UNSEEN").is_some() { &report } else { report.lines().next().unwrap() };
    assert!(percent >= 93, "{report}");
}

#[tokio::test]
async fn what_needs_judgement_or_an_answer_is_not_guessed() {
    let changes = |row: &Row, turn: &Turn| {
        let calls = turn.calls.iter().filter(|(name, _)| !READERS.contains(&name.as_str()));
        let calls = calls.map(|(name, input)| format!("it called {name} {input}"));
        let wrong = (turn.declined == row.done).then(|| format!("declined: {}", turn.declined));
        calls.chain(wrong).collect()
    };
    let (percent, report) = score(include_str!("rules/declined.jsonl"), changes).await;
    assert_eq!(percent, 100, "{report}");
}

#[tokio::test]
async fn a_file_named_from_the_root_on_is_not_written_over() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    let [kept, moved] = ["kept.txt", "moved.txt"].map(|name| place.join(name));
    fs::write(&kept, "old\n").unwrap();
    fs::write(&moved, "moved\n").unwrap();
    for ask in [
        format!("create {} with the content \"new\"", kept.display()),
        format!("rename moved.txt to {}", kept.display()),
    ] {
        let answer = run(&ask, &place).await.answer;
        assert!(answer.contains("exists already"), "{ask}: {answer}");
    }
    let found = [kept, moved].map(|path| fs::read_to_string(path).unwrap());
    assert_eq!(found, ["old\n", "moved\n"]);
}

/// A listing lacks what is ignored, and the file of that name elsewhere is not the one that is
/// meant.
#[tokio::test]
async fn an_ignored_file_is_not_taken_for_another_of_its_name() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    // Ignore files count only in a repository.
    for directory in [".git", "docs"] {
        fs::create_dir(place.join(directory)).unwrap();
    }
    for (path, content) in [(".gitignore", "/.env\n"), (".env", "A=1\n"), ("docs/.env", "B=2\n")] {
        fs::write(place.join(path), content).unwrap();
    }
    let answer = run("replace \"1\" with \"3\" in .env", &place).await.answer;
    assert_eq!(fs::read_to_string(place.join(".env")).unwrap(), "A=3\n", "{answer}");
    let answer = run("delete .env", &place).await.answer;
    assert!(!place.join(".env").exists() && place.join("docs/.env").exists(), "{answer}");
}

#[tokio::test]
async fn a_workspace_of_packages_has_one_readme_and_many_sources() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path().canonicalize().unwrap();
    // The newest file is shown first, and of those of one moment the first by name.
    for package in ["two", "one"] {
        fs::create_dir_all(place.join(package).join("src")).unwrap();
        fs::write(place.join(package).join("src/lib.rs"), format!("// TODO: {package}\n")).unwrap();
        fs::write(place.join(package).join("README.md"), "a part\n").unwrap();
        fs::write(place.join(package).join("TODO.md"), "TODO: not a source\n").unwrap();
    }
    fs::write(place.join("README.md"), "the whole\n").unwrap();
    for (ask, answer) in [
        (
            "find the TODOs in src and show the code around each",
            "2 lines in 2 files:\n\none/src/lib.rs:\n>    1  // TODO: one\n\ntwo/src/lib.rs:\n>    1  // TODO: two\n(ignored files were not looked at)",
        ),
        ("how many rust files are in src", "2 files in src, *.rs\n(ignored files were not looked at)"),
        ("show the README", "README.md, line 1:\n    1  the whole"),
        ("README 里写了什么", "README.md，第 1 行：\n    1  the whole"),
    ] {
        assert_eq!(run(ask, &place).await.answer, answer, "{ask}");
    }
}

/// Makes these files in an empty repository: ignore files count only there.
fn repository(files: &[(&str, &str)]) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join(".git")).unwrap();
    for (path, content) in files {
        let path = place.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    place
}

#[tokio::test]
async fn what_is_hidden_or_ignored_is_never_said_not_to_be_there() {
    let repository = repository(&[
        (".gitignore", "*.log\n.env\n"),
        (".env.example", "SECRET_KEY=x\n"),
        (".env", "SECRET_KEY=y\n"),
        ("logs/app.log", "ERROR one\nERROR two\n"),
        ("src/a.py", "pass\n"),
    ]);
    let place = repository.path().canonicalize().unwrap();
    for (ask, declined, says) in [
        ("search for SECRET_KEY", false, ".env.example:1: SECRET_KEY=x\n(ignored files were not looked at)"),
        (
            "search for \"two\"",
            false,
            "nowhere to be found.\n(capital and small letters count as the same)\n(ignored files were not looked at)",
        ),
        ("find *.log", false, "No file fits.\n(ignored files were not looked at)"),
        ("search for \"ERROR\" in logs", true, "There are no files in logs but those that ignore files"),
        ("how many files are in logs?", true, "There are no files in logs but those that ignore files"),
        ("logs 目录里有几个文件", true, "logs 中只有被"),
        ("search for \"ERROR\" in logs/app.log", false, "2 lines in 1 file:"),
        ("how many lines are in logs/app.log?", false, "logs/app.log: 2 lines"),
        ("ls logs", false, "logs: 1 item\n  app.log"),
        ("is there a .env file?", false, "\n.env\n"),
        ("find the largest file", false, "(not looked into: .git, target, "),
    ] {
        let ended = run(ask, &place).await;
        assert!(ended.answer.contains(says), "{ask}: {}", ended.answer);
        assert_eq!(ended.declined, declined, "{ask}: {}", ended.answer);
    }
}

#[tokio::test]
async fn a_link_is_neither_deleted_nor_renamed_with_the_file_it_leads_to() {
    let repository = repository(&[("AGENTS.md", "a\n")]);
    let place = repository.path().canonicalize().unwrap();
    std::os::unix::fs::symlink("AGENTS.md", place.join("CLAUDE.md")).unwrap();
    for ask in ["delete CLAUDE.md", "rename CLAUDE.md to OTHER.md", "删除 CLAUDE.md"] {
        let ended = run(ask, &place).await;
        assert!(ended.declined, "{ask}: {}", ended.answer);
        assert!(ended.answer.contains("is a symbolic link"), "{ask}: {}", ended.answer);
        assert_eq!(fs::read_to_string(place.join("AGENTS.md")).unwrap(), "a\n");
        assert!(place.join("CLAUDE.md").is_symlink() && !place.join("OTHER.md").exists());
    }
}

#[tokio::test]
async fn limits_and_liberties_of_an_answer_are_said() {
    let long = "w".repeat(703);
    let many = "x\n".repeat(2001);
    let repository =
        repository(&[("many.txt", &many), ("para.md", &long), ("a.ts", "let port = 1; // import\n")]);
    let place = repository.path().canonicalize().unwrap();
    for (ask, declined, says) in [
        ("search for \"x\" in many.txt", false, "at least 2000 lines"),
        ("show para.md", false, "(lines are shown up to 500 bytes)"),
        ("how many lines of TypeScript are there?", true, "do not understand"),
        ("有多少行 JSON?", true, "没有理解"),
        ("how many times does \"Let\" occur in a.ts", false, "nowhere to be found"),
        ("how many times does \"let\" occur in a.ts", false, "(capital and small letters count as the same)"),
        ("search for the word por", true, "I found no `por`"),
        ("compare a.ts with ./a.ts", true, "Both names stand for a.ts"),
    ] {
        let ended = run(ask, &place).await;
        assert!(ended.answer.contains(says), "{ask}: {}", ended.answer);
        assert_eq!(ended.declined, declined, "{ask}: {}", ended.answer);
    }
}

#[tokio::test]
async fn a_directory_is_deleted_only_by_its_path_and_only_whole() {
    let files = [
        (".gitignore", "*.log\n/target\n"),
        ("data.bak/a.txt", "a\n"),
        ("crates/x/build/a.txt", "a\n"),
        ("logs/a.txt", "a\n"),
        ("logs/deep/b.log", "b\n"),
        ("target/debug/c.txt", "c\n"),
    ];
    let repository = repository(&files);
    let place = repository.path().canonicalize().unwrap();
    for (ask, said) in [
        ("delete the directory data", "Did you mean data.bak? Say it with its path; I changed nothing."),
        (
            "delete the directory build",
            "Did you mean crates/x/build? Say it with its path; I changed nothing.",
        ),
        ("delete the directory logs", "logs has what ignore files leave out (deep/b.log); I left it alone."),
        ("delete the directory target", "I left target alone."),
        ("删除目录 logs", "logs 里有被忽略规则排除的内容（deep/b.log），我没有动它。"),
    ] {
        let answer = run(ask, &place).await.answer;
        assert!(answer.ends_with(said), "{ask}: {answer}");
    }
    let lost = files.iter().filter(|(path, _)| !place.join(path).exists());
    assert_eq!(lost.collect::<Vec<_>>(), [] as [&(&str, &str); 0]);
    let answer = run("delete the directory crates/x/build", &place).await.answer;
    assert!(!place.join("crates/x/build").exists() && place.join("crates/x").exists(), "{answer}");
}

#[tokio::test]
async fn lines_are_counted_to_the_end_however_many_files_there_are() {
    let repository = repository(&[]);
    let place = repository.path().canonicalize().unwrap();
    for at in 0..2500 {
        fs::write(place.join(format!("{at}.txt")), "a\nb\n").unwrap();
    }
    let answer = run("how many lines are there?", &place).await.answer;
    assert_eq!(answer, "5000 lines in 2500 files\n(ignored files were not looked at)");
    let answer = run("一共有多少行", &place).await.answer;
    assert_eq!(answer, "2500 个文件，共 5000 行\n（没有查看被忽略的文件）");
}

/// A command in the sandbox may have places of its own, and names it must not make.
#[tokio::test]
async fn what_is_told_as_made_is_there() {
    let repository = repository(&[("a.txt", "a\n")]);
    let place = repository.path().canonicalize().unwrap();
    let elsewhere = std::env::temp_dir().join(format!("{}.txt", place.file_name().unwrap().display()));
    let own = |name: &str| (name.to_owned(), place.join(name));
    for (name, path) in [(elsewhere.display().to_string(), elsewhere), own(".vscode"), own("new")] {
        for ask in [format!("copy a.txt to \"{name}\""), format!("make a directory called \"{name}\"")] {
            let turn = run(&ask, &place).await;
            assert_eq!(turn.declined, !path.exists(), "{ask}: {}", turn.answer);
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
    }
}

#[tokio::test]
async fn text_is_appended_to_whatever_a_file_ends_with() {
    let long = "x".repeat(3000);
    for before in ["", "a\n", "a", "a\n\n", "\n", &long] {
        let repository = repository(&[("a.txt", before)]);
        let place = repository.path().canonicalize().unwrap();
        let answer = run("append \"new\" to a.txt", &place).await.answer;
        let line_end = if before.is_empty() || before.ends_with('\n') { "" } else { "\n" };
        let found = fs::read_to_string(place.join("a.txt")).unwrap();
        assert_eq!(found, format!("{before}{line_end}new\n"), "{answer}");
    }
}
