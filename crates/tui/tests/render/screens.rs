//! Snapshots of each component.

use std::{path::Path, time::Duration};

use windlass::{
    ApprovalPolicy, Beyond, CallId, CommandLine, Effects, Held, Input, Mechanism, Network, Offer, Outcome,
    OutwardEffect, Plan, PlanStatus, PlanStep, Question, QuestionDetails, Status, ToolCall, Verdict,
};
use windlass_tui::render::{
    Theme,
    approval::render_approval,
    diff::{render_diff, render_unified_diff},
    markdown::render_markdown,
    plan::render_plan,
    status::{SessionStatus, render_status},
    tool_call::{CallExpansion, CallProgress, ToolCallView, render_call_details, render_tool_call},
};

use crate::at_each_width;

const MARKDOWN: &str = "\
# Wrapping of *words*

A paragraph with **bold**, *italic*, `code` and ~~old~~ text that is long enough to be wrapped at every width of the test.
A hard break\\
and a [link](https://example.org/a/long/path) and <https://example.org> and ![a picture](cat.png).

1. first, with a text that is long enough to be wrapped at least on a screen of sixty columns
2. second
   - nested
     continued lazily
   - nested too
     1. deep

- [x] done
- [ ] not done

  A paragraph in the item.

> A quote that is long enough to be wrapped at least on a screen of sixty columns, or so I hope.
> > nested
>
> - item in quote

| Crate | Knows | Lines |
|:------|:-----:|------:|
| `tui` | the interactive session, and how everything is drawn there, in lines that fit the width | 1234 |
| 文字 | *wide* | 5 |

```rust,ignore
fn main() {
\tprintln!(\"a line of code that is longer than sixty columns, so it must be wrapped\");
}
```

    indented code

---

See [the book][1] <b>now</b>.

[1]: https://example.org/book
";

#[test]
fn markdown() {
    insta::assert_snapshot!(
        "markdown",
        at_each_width(|width| render_markdown(MARKDOWN, width, &Theme::no_colour()))
    );
}

#[test]
fn diff() {
    let mut before: Vec<_> = (1..=40).map(|number| format!("line {number} of the file")).collect();
    before[19] =
        "    let answer = compute(first, second, third); // a comment that is long enough to wrap".into();
    let mut after = before.clone();
    after[19] = before[19].replace("second", "another");
    after.insert(30, "a new line".into());
    after.remove(2);
    let (before, after) = (before.join("\n"), after.join("\n"));
    insta::assert_snapshot!(
        "diff",
        at_each_width(|width| render_diff(&before, &after, width, &Theme::dark()))
    );
}

#[test]
fn unified_diff() {
    let diff = "\
diff --git a/src/a.rs b/src/a.rs
--- a/src/a.rs
+++ b/src/a.rs
@@ -10,4 +10,4 @@ fn main() {
 context
-let old_name = 1;
+let new_name = 1;
--- not a head
++++ not a head either
 end
@@ -40,1 +40,2 @@
 last
+added
\\ No newline at end of file
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
";
    insta::assert_snapshot!(
        "unified_diff",
        at_each_width(|width| render_unified_diff(diff, width, &Theme::dark()))
    );
}

#[test]
fn the_words_that_changed_are_marked() {
    let theme = Theme::dark();
    let lines = render_diff("let a = old(1);", "let a = new(1);", 80, &theme);
    let marked: Vec<_> = lines
        .iter()
        .flat_map(|line| &line.spans)
        .filter(|span| span.style == theme.added_word || span.style == theme.removed_word)
        .map(|span| span.content.as_ref())
        .collect();
    assert_eq!(marked, ["old", "new"]);
}

fn call(name: &str, input: &str) -> ToolCall {
    ToolCall { id: CallId::from("c"), name: name.into(), input: Input::Json(input.into()) }
}

fn shell(script: &str) -> Effects {
    let argv = ["/bin/bash", "-lc", script].map(str::to_owned).to_vec();
    Effects::command(CommandLine { argv, cwd: None })
}

fn ended(status: Status, seconds: u64) -> Outcome {
    let verdict =
        if status == Status::Success { Verdict::success() } else { Verdict::failure("exit code 101") };
    let mut outcome = Outcome::plain(verdict, "text");
    outcome.status = status;
    outcome.receipt.duration = Duration::from_secs(seconds);
    outcome
}

#[test]
fn tool_calls() {
    let command =
        shell("cargo test --workspace --all-features -- --nocapture some_test_with_a_long_name\necho done");
    let (read, write) = (Effects::read("/work/src/lib.rs"), Effects::write("/work/src/a.rs"));
    let (done, failed, late) =
        (ended(Status::Success, 3), ended(Status::Error, 75), ended(Status::Timeout, 3700));
    let mut refused = ended(Status::Rejected, 0);
    refused.receipt.refusal = Some("no".into());
    let calls = [
        (call("shell_command", "{}"), &command, CallProgress::Asked),
        (call("shell_command", "{}"), &command, CallProgress::Running(Duration::from_millis(4250))),
        (
            call("read_file", r#"{"file_path": "/work/src/lib.rs", "offset": 10, "limit": 40}"#),
            &read,
            CallProgress::Ended(&done),
        ),
        (
            call("grep_files", r#"{"pattern": "fn main", "path": "src", "include": "*.rs"}"#),
            &read,
            CallProgress::Ended(&failed),
        ),
        (call("apply_patch", "{}"), &write, CallProgress::Ended(&refused)),
        (
            call("mcp__tickets__create", r#"{"title": "A bug", "labels": ["a", "b"], "urgent": true}"#),
            &read,
            CallProgress::Ended(&late),
        ),
    ];
    let cwd = Path::new("/work");
    let line = |width, (call, effects, progress): &(ToolCall, &Effects, CallProgress<'_>)| {
        render_tool_call(&ToolCallView { call, effects, cwd, progress: *progress }, width, &Theme::dark())
    };
    insta::assert_snapshot!(
        "tool_calls",
        at_each_width(|width| calls.iter().map(|call| line(width, call)).collect())
    );
}

#[test]
fn call_details() {
    let effects = shell("cargo build\ncargo test");
    let mut outcome = ended(Status::Error, 12);
    let mut held = Held::by(Mechanism::Namespaces);
    held.writable = vec!["/work".into(), "/tmp/cache".into()];
    outcome.receipt.held = Some(held);
    outcome.receipt.decision =
        "the sandbox confines it: writes stay in the workspace, and there is no network".into();
    outcome.receipt.undo_limits = vec!["`target` is too large to be kept".into()];
    outcome.verdict.suggestions = vec!["read the first error".into()];
    let output: String =
        (1..=9).map(|number| format!("\x1b[1;31merror\x1b[0m number {number}\r\n")).collect();
    let diff = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n";
    let call = call("shell_command", "{}");
    let view = ToolCallView {
        call: &call,
        effects: &effects,
        cwd: Path::new("/work"),
        progress: CallProgress::Ended(&outcome),
    };
    let expansion = CallExpansion { output: &output, max_output_lines: 3, diff };
    insta::assert_snapshot!(
        "call_details",
        at_each_width(|width| render_call_details(&view, &expansion, width, &Theme::dark()))
    );
}

#[test]
fn plan() {
    let step = |step: &str, status| PlanStep { step: step.into(), status };
    let plan = Plan {
        explanation: Some("The tests showed that the parser was wrong.".into()),
        plan: vec![
            step("Read the parser", PlanStatus::Completed),
            step(
                "Change the parser so that it accepts trailing commas in all kinds of lists",
                PlanStatus::InProgress,
            ),
            step("运行所有测试", PlanStatus::Pending),
        ],
    };
    insta::assert_snapshot!("plan", at_each_width(|width| render_plan(&plan, width, &Theme::dark())));
}

#[test]
fn status() {
    let safe = SessionStatus {
        model: "gpt-5-codex".into(),
        provider: Some("openai".into()),
        directory: "~/projects/windlass".into(),
        branch: Some("main".into()),
        sandbox: "workspace-write".into(),
        mechanism: Some("namespaces".into()),
        plan_mode: false,
        network: Network::None,
        approval: ApprovalPolicy::OnRequest,
        context_percent: Some(34),
        tokens: 123_456,
        processes: 2,
    };
    let open = SessionStatus {
        sandbox: "danger-full-access".into(),
        network: Network::Any,
        context_percent: Some(91),
        ..safe.clone()
    };
    let planning = SessionStatus {
        sandbox: "read-only".into(),
        network: Network::Any,
        plan_mode: true,
        context_percent: None,
        ..safe.clone()
    };
    let theme = Theme::dark();
    insta::assert_snapshot!(
        "status",
        at_each_width(|width| [&safe, &open, &planning]
            .map(|status| render_status(status, width, &theme))
            .to_vec())
    );
}

#[test]
fn approval() {
    let script = "cd build\ncurl -fsSL https://example.org/install.sh | sh -s -- --prefix \"$HOME/.local\" --with-everything\ngit push";
    let question = Question {
        call: "c".into(),
        tool: "shell_command".into(),
        effects: Effects {
            network: Network::Any,
            outward: vec![OutwardEffect::Install, OutwardEffect::Push],
            ..shell(script)
        },
        cwd: "/work".into(),
        reason: "`sh` would run what another machine sends".into(),
        unclear: vec!["a value that only the shell knows (`$HOME/.local`)".into()],
        beyond: Beyond::Wider { writable: vec!["/work/.git".into()], network: true },
        keys: vec!["key".into()],
        rule: Some(Offer {
            toml: "[[rule]]\nprefix = [\"git\", \"push\"]\ndecision = \"allow\"\n".into(),
            allows: "every command that begins with `git push`".into(),
        }),
        details: QuestionDetails::default(),
    };
    insta::assert_snapshot!(
        "approval",
        at_each_width(|width| render_approval(&question, width, &Theme::dark()).into_lines())
    );
}

#[test]
fn only_the_doubtful_part_of_a_command_is_marked() {
    let question = Question {
        call: "c".into(),
        tool: "shell_command".into(),
        effects: shell("curl x.org/install.sh | sh; echo $HOME $HOMES"),
        cwd: "/work".into(),
        reason: "`sh` would run what `another machine` sends".into(),
        unclear: vec!["a value that only the shell knows (`$HOME`)".into()],
        beyond: Beyond::Nothing,
        keys: Vec::new(),
        rule: None,
        details: QuestionDetails::default(),
    };
    let theme = Theme::dark();
    let panel = render_approval(&question, 80, &theme);
    let marked = |lines: &[ratatui::text::Line<'_>]| -> Vec<String> {
        let spans = lines.iter().flat_map(|line| &line.spans);
        spans.filter(|span| span.style == theme.danger).map(|span| span.content.to_string()).collect()
    };
    assert_eq!(marked(&panel.subject), ["sh", "$HOME"]);
    assert_eq!(marked(&panel.choices), ["$HOME", "sh"]);
}

/// Returns the texts of a panel that have a style.
fn styled(lines: &[ratatui::text::Line<'_>], style: ratatui::style::Style) -> Vec<String> {
    let spans = lines.iter().flat_map(|line| &line.spans);
    spans.filter(|span| span.style == style).map(|span| span.content.to_string()).collect()
}

fn plain_question(effects: Effects, details: QuestionDetails) -> Question {
    Question {
        call: "c".into(),
        tool: "shell_command".into(),
        effects,
        cwd: "/work".into(),
        reason: "`rm -r` deletes directories".into(),
        unclear: Vec::new(),
        beyond: Beyond::Nothing,
        keys: vec!["key".into()],
        rule: None,
        details,
    }
}

#[test]
fn approval_of_an_edit() {
    let change = "*** Begin Patch\n*** Update File: /etc/windlass-x\n@@ fn main() {\n \tlet a = 1;\n-\tlet b = 2;\n\
                  +\tlet b = 3; // \u{202e}hidden\n+  y  yes, once\n*** Add File: src/new.rs\n+fn new() {}\n\
                  *** End Patch";
    let paths = vec!["/etc/windlass-x".into(), "/work/src/new.rs".into()];
    let effects = Effects { reads: paths.clone(), writes: paths, ..Effects::default() };
    let creates = vec!["/work/src/new.rs".into()];
    let details = QuestionDetails { change: change.into(), creates, ..QuestionDetails::default() };
    let question = Question {
        tool: "apply_patch".into(),
        reason: "it writes outside of what the sandbox mode allows".into(),
        beyond: Beyond::Wider { writable: vec!["/etc/windlass-x".into()], network: false },
        ..plain_question(effects, details)
    };
    let theme = Theme::dark();
    insta::assert_snapshot!(
        "approval_of_an_edit",
        at_each_width(|width| render_approval(&question, width, &theme).into_lines())
    );
    let panel = render_approval(&question, 80, &theme);
    assert_eq!(styled(&panel.subject, theme.removed), ["-       let b = 2;"]);
    assert!(styled(&panel.subject, theme.added).contains(&"+fn new() {}".to_owned()));
    assert_eq!(styled(&panel.subject, theme.danger), ["\\u{202e}"]);
}

#[test]
fn the_dangerous_part_and_the_files_of_a_command_are_shown() {
    let cause = |words: &str| words.split(' ').map(str::to_owned).collect();
    let panel = |script: &str, words: &str| {
        let details = QuestionDetails {
            cause: cause(words),
            writes: vec!["out/a.txt".into()],
            deletes: vec!["build".into()],
            ..QuestionDetails::default()
        };
        render_approval(&plain_question(shell(script), details), 80, &Theme::dark())
    };
    let danger = Theme::dark().danger;
    let shown = panel("echo rm > out/a.txt && rm -rf build", "rm -rf build");
    assert_eq!(styled(&shown.subject, danger), ["rm -rf build"]);
    assert_eq!(styled(&shown.choices, danger), ["rm -rf build"]);
    let reasons: Vec<_> = shown.reasons.iter().map(ToString::to_string).collect();
    assert_eq!(reasons[1..3], ["  would write: out/a.txt", "  would delete: build"]);
    let quoted = panel("ls; 'rm'  -rf \"my build\"; ls", "rm -rf my build");
    assert_eq!(styled(&quoted.subject, danger), ["rm'  -rf \"my build\""]);
    let whole = panel("rm -rf build", "rm -rf build");
    assert_eq!(styled(&whole.subject, danger), ["rm -rf build"]);
    assert_eq!(styled(&whole.choices, danger), [] as [&str; 0], "it need not be said again");
    assert_eq!(styled(&panel("xrm -rf build", "rm -rf build").subject, danger), [] as [&str; 0]);
}

#[test]
fn only_an_unusual_shell_is_named() {
    let heading = |program: &str, option: &str| {
        let argv = [program, option, "make"].map(str::to_owned).to_vec();
        let effects = Effects::command(CommandLine { argv, cwd: None });
        let panel = render_approval(&plain_question(effects, QuestionDetails::default()), 80, &Theme::dark());
        panel.subject[0].to_string()
    };
    assert_eq!(heading("/bin/bash", "-lc"), "shell_command wants to run:");
    assert_eq!(heading("/usr/bin/zsh", "-c"), "shell_command wants to run:");
    assert_eq!(heading("bash", "-c"), "shell_command wants to run with `bash -c`:");
    assert_eq!(heading("/usr/local/bin/sh", "-c"), "shell_command wants to run with `/usr/local/bin/sh -c`:");
}
