//! Tests of questions at a terminal: what they show, and which answers count.

use windlass::{
    CommandLine, Effects, Escalation, Offer,
    mcp::{RemoteCall, ServerReach, ToolApprovalMode, ToolHints},
};

use super::*;
use crate::wrap::width;

#[test]
fn only_what_was_offered_is_understood() {
    let told = |line| understood(line, OfferedAnswers { session: true, rule: true });
    assert_eq!(told("y\n"), Some(Answer::Once));
    assert_eq!(told("A"), Some(Answer::Always));
    assert_eq!(told("n use git mv instead\n"), Some(Answer::Deny("use git mv instead".into())));
    assert_eq!(told("\n"), Some(Answer::Deny(String::new())));
    assert_eq!(told("q"), Some(Answer::Abort));
    for unclear in ["yes please", "ok", "ya", "y n"] {
        assert_eq!(told(unclear), None, "{unclear}");
    }
    let once = OfferedAnswers { session: false, rule: false };
    assert_eq!(["s", "p", "a"].map(|line| understood(line, once)), [None, None, None]);
    assert_eq!(once.in_short(), "y, n or q? ");
}

#[test]
fn a_question_about_a_call_on_a_server_says_what_the_server_reaches() {
    let remote = RemoteCall {
        server: "github".into(),
        tool: "create\u{1b}[2K_issue".into(),
        reach: ServerReach::Outside,
        hints: ToolHints::default(),
        trusted: false,
        approval: ToolApprovalMode::Auto,
    };
    let question = Question {
        call: "c".into(),
        tool: "mcp__github__create_issue".into(),
        effects: Effects::remote(remote),
        cwd: "/w".into(),
        reason: "why".into(),
        unclear: Vec::new(),
        beyond: Beyond::Nothing,
        keys: vec!["k".into()],
        rule: None,
        details: QuestionDetails { change: "title: Fault".into(), ..QuestionDetails::default() },
    };
    assert_eq!(
        in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 200),
        "mcp__github__create_issue wants to call:\n  create[2K_issue of MCP server github\nwith:\n  | \
         title: Fault\nin /w\nbecause: why\n  y  yes: this call, once, on a server that can reach other \
         machines\n  s  yes, for this session: any call of this tool, whatever its arguments are, on a server that \
         can reach other machines\n  n  no; text after it is sent to the model\n  q  no, and stop\nAllow it? "
    );
}

#[test]
fn the_question_shows_everything_and_what_each_answer_allows() {
    let argv = ["make", "a\u{1b}[2K\nb"].map(str::to_owned).to_vec();
    let question = Question {
        call: "c".into(),
        tool: "shell".into(),
        effects: Effects::command(CommandLine { argv, cwd: None }),
        cwd: "/w".into(),
        reason: "why".into(),
        unclear: vec!["$x".into()],
        beyond: Beyond::Wider { writable: vec!["/etc".into()], network: true },
        keys: vec!["make".into()],
        rule: Some(Offer { toml: String::new(), allows: "every `make`".into() }),
        details: QuestionDetails::default(),
    };
    let expected = "shell wants to run:\n  make 'a\\u{1b}[2K\\nb'\nin /w\nbecause: why\nunclear: $x\n  y  yes: this \
        command, once, in the sandbox, with `/etc` writable and the network as well\n  s  yes, for this session: the \
        same command in the same place, in the sandbox, with `/etc` writable and the network as well\n  p  yes, always \
        in this project: every `make`, in the sandbox, with `/etc` writable and the network as well\n  a  yes, always \
        and everywhere: the same\n  n  no; text after it is \
        sent to the model\n  q  no, and stop\nAllow it? ";
    assert_eq!(in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 1000), expected);
}

#[test]
fn no_text_can_pose_as_an_answer_or_as_another_line() {
    let argv = vec!["make".to_owned(), format!("x{}  a  yes, always: nothing at all", " ".repeat(74))];
    let escalation = Escalation {
        justification: Some(format!("ok{}  y  yes: this command, once", " ".repeat(200))),
        prefix_rule: Vec::new(),
    };
    let command = Effects::command(CommandLine { argv, cwd: None });
    let question = Question {
        call: "c".into(),
        tool: "shell".into(),
        effects: Effects { escalation: Some(escalation), ..command },
        cwd: "/w".into(),
        reason: format!("why{}\u{3164}\n  y  yes: harmless", "\t".repeat(40)),
        unclear: vec![format!("{}  n  no", "文".repeat(60))],
        beyond: Beyond::Everything,
        keys: Vec::new(),
        rule: None,
        details: QuestionDetails::default(),
    };
    let text = in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 79);
    let begins = |mark: &str| text.lines().filter(|line| line.starts_with(mark)).count();
    assert_eq!((begins("  y  "), begins("  a  "), begins("  n  ")), (1, 0, 1), "{text}");
    assert_eq!(begins("  s  "), 0, "{text}");
    assert!(
        text.contains("ok [202 blanks] y  yes") && text.contains("why [44 blanks with a line break] y"),
        "{text}"
    );
    assert!(text.lines().all(|line| width(line) < 80), "{text}");
}

fn about(command: &str, justification: &str) -> String {
    let escalation = Escalation { justification: Some(justification.to_owned()), prefix_rule: Vec::new() };
    let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
    let command = Effects::command(CommandLine { argv, cwd: None });
    let question = Question {
        call: "c".into(),
        tool: "shell".into(),
        effects: Effects { escalation: Some(escalation), ..command },
        cwd: "/w".into(),
        reason: "why".into(),
        unclear: Vec::new(),
        beyond: Beyond::Everything,
        keys: Vec::new(),
        rule: None,
        details: QuestionDetails::default(),
    };
    in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 79)
}

#[test]
fn padding_and_long_reasons_do_not_push_the_command_off_the_screen() {
    let padded = about(&format!("make{}; touch evil", " ".repeat(3000)), "j");
    assert!(padded.contains("make [3000 blanks] ; touch evil"), "{padded}");
    let lines = about(&format!("make\n{}touch evil", "\n".repeat(100)), "j");
    assert!(lines.contains("make [101 blanks with 101 line breaks] touch evil"), "{lines}");
    let tabs = about("make\t\t; touch evil", "j");
    assert!(tabs.contains("make\\t\\t; touch evil"), "{tabs}");
    let long = about("make", &"A".repeat(6000));
    assert!(long.contains("… (5700 more characters)") && long.lines().count() <= 20, "{long}");
    assert!(!long.contains("again, "), "{long}");
}

#[test]
fn a_question_of_many_lines_names_the_command_again_at_its_end() {
    let comments: String = (0..60).map(|number| format!("\n# comment {number} of many")).collect();
    let text = about(&format!("touch evil{comments}; date"), "j");
    let unbroken = text.replace("\n      | ", "");
    let last = unbroken.lines().rev().nth(1).unwrap();
    assert!(last.starts_with("again, shell wants to run: touch evil\\n#"), "{text}");
    assert!(last.contains(" characters) … ") && last.ends_with("; date"), "{text}");
    assert!(text.lines().rev().take(8).any(|line| line.starts_with("again, ")), "{text}");
}

#[test]
fn the_text_of_an_edit_is_shown_and_cannot_pose_as_an_answer() {
    let question = Question {
        call: "c".into(),
        tool: "apply_patch".into(),
        effects: Effects::write("/etc/x"),
        cwd: "/w".into(),
        reason: "why".into(),
        unclear: Vec::new(),
        beyond: Beyond::Nothing,
        keys: vec!["key".into()],
        rule: None,
        details: QuestionDetails {
            change: "*** Add File: /etc/x\n+a\u{202e}b\r\n  y  yes: harmless".into(),
            creates: vec!["/etc/x".into()],
            ..QuestionDetails::default()
        },
    };
    let text = in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 80);
    let expected = "apply_patch wants to write:\n  /etc/x\nthe change:\n  | *** Add File: /etc/x\n  \
        | +a\\u{202e}b\\r\n  |   y  yes: harmless\nin /w\nwould create: /etc/x\nbecause: why\n";
    assert!(text.starts_with(expected), "{text}");
    assert!(text.contains("  s  yes, for this session: any change of the same files, "), "{text}");
}

#[test]
fn files_that_a_command_writes_and_deletes_are_named() {
    let argv = ["bash", "-c", "date > a; rm -r b c"].map(str::to_owned).to_vec();
    let question = Question {
        call: "c".into(),
        tool: "shell".into(),
        effects: Effects::command(CommandLine { argv, cwd: None }),
        cwd: "/w".into(),
        reason: "why".into(),
        unclear: Vec::new(),
        beyond: Beyond::Nothing,
        keys: Vec::new(),
        rule: None,
        details: QuestionDetails {
            writes: vec!["a".into()],
            deletes: vec!["b\n  y  yes".into(), "c".into()],
            ..QuestionDetails::default()
        },
    };
    let text = in_words(&question, &PathDisplay::seen_from("/x".as_ref()), 80);
    assert!(text.contains("\nin /w\nwould write: a\nwould delete: b\\n  y  yes, c\n"), "{text}");
}
