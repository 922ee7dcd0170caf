//! Texts that try to break the screen, and very long ones.

use std::time::{Duration, Instant};

use ratatui::text::Line;
use windlass::{
    ApprovalPolicy, Beyond, CallId, CommandLine, Effects, Escalation, Input, Network, Offer, Outcome, Plan,
    PlanStatus, PlanStep, Question, ToolCall, Verdict,
};
use windlass_tui::render::{
    Theme,
    ansi::render_output,
    approval::render_approval,
    diff::{render_diff, render_unified_diff},
    markdown::render_markdown,
    plan::render_plan,
    status::{SessionStatus, render_status},
    tool_call::{CallExpansion, CallProgress, ToolCallView, render_call_details, render_tool_call},
    wrap::HangingIndent,
};

use crate::checked;

const HOSTILE: [&str; 8] = [
    "\x1b[2J\x1b]0;title\x07\x1bP1;2q\x1b\\ \u{9b}31m text\x08\x08 \r over",
    "user\u{202e}gnp.exe \u{2066}a\u{2069} \u{200b}\u{feff}\u{e0041}",
    "文文文文👩\u{200d}💻👍🏽 e\u{301}\u{301}\u{301} \u{0}\u{7f}\u{85}\u{2028}",
    "| a | b | c | d | e | f |\n|-|-|-|-|-|-|\n| \x1b[1m | 文 |\u{202e}|||\n\n> > > - 1. x\n\n```\x1b\n\t\x07\n",
    "--- a/\x1b\n+++ b/\u{202e}\n@@ -1,2 +1,2 @@\n-\x1b[31mold\n+\x1b[32mnew\n \tend\n@@ -0,0 +99999999999999999999 @@\n",
    "@@ -18446744073709551615,3 +18446744073709551615,3 @@\n a\n-b\n+c\n",
    "\t\t\t\t\t\t\t\t",
    "",
];

/// Renders one text with every component.
fn render_all(text: &str, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let (call, effects, outcome) = (call(text), effects(text), outcome(text));
    let cwd = std::path::Path::new(text);
    let view = |progress| ToolCallView { call: &call, effects: &effects, cwd, progress };
    let ended = view(CallProgress::Ended(&outcome));
    let expansion = CallExpansion { output: text, max_output_lines: 100, diff: text };
    let steps = vec![PlanStep { step: text.into(), status: PlanStatus::InProgress }];
    let plan = Plan { explanation: Some(text.into()), plan: steps };
    let mut lines = render_markdown(text, width, theme);
    lines.extend(render_unified_diff(text, width, theme));
    lines.extend(render_diff(text, &text.replace('e', "文"), width, theme));
    lines.extend(render_output(text, width, theme, &HangingIndent::default()));
    lines.push(render_tool_call(&view(CallProgress::Running(Duration::MAX)), width, theme));
    lines.extend(render_call_details(&ended, &expansion, width, theme));
    lines.extend(render_plan(&plan, width, theme));
    lines.push(render_status(&status(text), width, theme));
    lines.extend(render_approval(&question(text), width, theme).into_lines());
    lines
}

fn call(text: &str) -> ToolCall {
    let input = Input::Json(format!("{{\"a\": {text:?}}}"));
    ToolCall { id: CallId::from("c"), name: text.into(), input }
}

fn effects(text: &str) -> Effects {
    let argv = vec!["bash".into(), "-lc".into(), text.into()];
    let escalation = Escalation { justification: Some(text.into()), prefix_rule: Vec::new() };
    let command = CommandLine { argv, cwd: None };
    Effects { reads: vec![text.into()], escalation: Some(escalation), ..Effects::command(command) }
}

fn outcome(text: &str) -> Outcome {
    let mut outcome = Outcome::plain(Verdict::failure(text), text);
    outcome.receipt.decision = text.into();
    outcome.receipt.undo_limits = vec![text.into()];
    outcome
}

fn status(text: &str) -> SessionStatus {
    SessionStatus {
        model: text.into(),
        provider: Some(text.into()),
        directory: text.into(),
        branch: Some(text.into()),
        sandbox: text.into(),
        mechanism: Some(text.into()),
        plan_mode: true,
        network: Network::None,
        approval: ApprovalPolicy::Never,
        context_percent: Some(255),
        tokens: u64::MAX,
        processes: usize::MAX,
    }
}

fn question(text: &str) -> Question {
    Question {
        call: "c".into(),
        tool: text.into(),
        effects: effects(text),
        cwd: text.into(),
        reason: format!("`{text}`"),
        unclear: vec![format!("it holds `{text}`"); 7],
        beyond: Beyond::Wider { writable: vec![text.into()], network: true },
        keys: vec![text.into()],
        rule: Some(Offer { toml: text.into(), allows: text.into() }),
        details: windlass::QuestionDetails {
            change: format!("+{text}"),
            creates: vec![text.into()],
            cause: text.split(' ').map(str::to_owned).collect(),
            writes: vec![text.into()],
            deletes: vec![text.into(); 20],
        },
    }
}

#[test]
fn nothing_controls_the_screen_at_any_width() {
    for text in HOSTILE {
        for width in [0, 1, 2, 3, 7, 20, 60, u16::MAX] {
            checked(render_all(text, width, &Theme::dark()), width);
            checked(render_all(text, width, &Theme::no_colour()), width);
        }
    }
}

#[test]
fn time_grows_with_the_length_of_a_line_and_not_with_its_square() {
    let begin = Instant::now();
    checked(render_all(&"a".repeat(1024 * 1024), 80, &Theme::dark()), 80);
    for unit in
        ["word ", "文", "$x ", "> ", "`", "[", "*a ", "\x1b[31m", "e\u{301}", "\u{301}", " ", "| ", "\n"]
    {
        checked(render_all(&unit.repeat(64 * 1024 / unit.len()), 80, &Theme::dark()), 80);
    }
    // Ten times of what it takes; the square of the length would be hours.
    assert!(begin.elapsed() < Duration::from_mins(2), "{:?}", begin.elapsed());
}

#[test]
fn a_model_cannot_write_an_answer_or_a_second_line_of_the_panel() {
    let mut question = question("ls\n  y  yes, once: harmless");
    question.reason = "why\n  a  yes, always".into();
    let lines = render_approval(&question, 80, &Theme::dark()).into_lines();
    let begins = |mark: &str| lines.iter().filter(|line| line.to_string().starts_with(mark)).count();
    assert_eq!((begins("  y  "), begins("  a  "), begins("  n  ")), (1, 1, 1));
}

#[test]
fn the_panel_warns_of_what_a_reader_cannot_see() {
    let shown = |command: &str| {
        let argv = vec!["bash".into(), "-lc".into(), command.into()];
        let effects = Effects::command(CommandLine { argv, cwd: None });
        let question = Question { effects, ..question("x") };
        crate::text(&checked(render_approval(&question, 200, &Theme::dark()).into_lines(), 200))
    };
    let poses = shown("rm -r /h\u{43e}me/x\u{202e}y");
    assert!(poses.contains("  │ rm -r /h\\u{43e}me/x\\u{202e}y\n"), "{poses}");
    assert!(poses.contains("beware: some characters are invisible or look like others"), "{poses}");
    assert!(poses.contains("look at: \\u{43e}\n") && poses.contains("look at: \\u{202e}\n"), "{poses}");
    let padded = shown(&format!("make{}; touch evil{}\ndate", " ".repeat(3000), "\n".repeat(100)));
    assert!(padded.contains("  │ make [3000 blanks] ; touch evil [101 blanks with 101 line breaks] date\n"));
    assert!(padded.contains("beware: long runs of blanks are not shown but counted"), "{padded}");
    assert!(shown("make\t; true").contains("  │ make\\t; true\n"));
    let plain = shown("ls größe 文件 'a  b'");
    assert!(!plain.contains("beware") && plain.contains("wants to run with `bash -lc`:\n"), "{plain}");
}

#[test]
fn output_of_many_lines_is_rendered_at_once() {
    let output = "   Compiling some-crate v0.1.0 (/work/some-crate) with a few more words\n".repeat(100_000);
    let (theme, indent) = (Theme::dark(), HangingIndent::default());
    let begin = Instant::now();
    assert_eq!(render_output(&output, 80, &theme, &indent).count(), 100_000);
    let all = begin.elapsed();
    println!("100000 lines in {all:?}: {:.0} lines/s", 100_000.0 / all.as_secs_f64());
    let wide = "\x1b[32mok\x1b[0m 文字 and a long line that does not fit into the width of the screen, so it wraps\n"
        .repeat(10_000);
    let begin = Instant::now();
    assert_eq!(render_output(&wide, 80, &theme, &indent).count(), 20_000);
    println!("wrapped: {:.0} lines/s", 10_000.0 / begin.elapsed().as_secs_f64());
    // Measured without optimization: 1.1 s and 0.9 s.
    assert!(all + begin.elapsed() < Duration::from_secs(20), "{all:?}, {:?}", begin.elapsed());
}
