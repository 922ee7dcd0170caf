//! A text that arrives in pieces looks the same as the whole, and what is final stays.

use proptest::{
    collection::vec,
    prelude::{Strategy, prop_assert_eq, proptest},
    sample::select,
};
use ratatui::text::Line;
use windlass_tui::render::{
    Theme,
    markdown::{StreamingMarkdown, render_markdown},
};

use crate::text;

/// Lines that begin, continue and end all kinds of blocks.
const LINES: [&str; 30] = [
    "# Title",
    "words and *more* words",
    "",
    "",
    "- item",
    "  continued",
    "1. first",
    "2. second",
    "    indented code",
    "```rust",
    "```",
    "~~~",
    "fn main() {}",
    "> quoted",
    "| a | b |",
    "|---|---|",
    "| 1 | 2 |",
    "---",
    "===",
    "[x]: http://example.org",
    "see [x] and <b>html</b>",
    "- [ ] task",
    "\ttab",
    "文字 👍",
    "- ```sh",
    "  ```",
    "   ```rust",
    "  fn inner() {}",
    "1. ```",
    "    - deep",
];

fn texts() -> impl Strategy<Value = String> {
    vec((select(LINES.to_vec()), select(vec!["\n", "\n", "\r\n", "\n\n", ""])), 0..24)
        .prop_map(|lines| lines.iter().map(|(line, end)| format!("{line}{end}")).collect())
}

fn pieces(text: &str, lengths: &[usize]) -> Vec<String> {
    let mut rest: Vec<char> = text.chars().collect();
    let mut pieces = Vec::new();
    for length in lengths.iter().cycle() {
        if rest.is_empty() {
            break;
        }
        let after = rest.split_off((*length).min(rest.len()));
        pieces.push(rest.into_iter().collect());
        rest = after;
    }
    pieces
}

proptest! {
    #[test]
    fn pieces_look_like_the_whole(text in texts(), lengths in vec(1_usize..9, 1..6)) {
        let theme = Theme::dark();
        let mut stream = StreamingMarkdown::new(40, theme);
        let (mut done, mut seen): (Vec<Line<'_>>, String) = Default::default();
        for piece in pieces(&text, &lengths) {
            done.extend(stream.push(&piece));
            seen.push_str(&piece);
            let shown = [done.clone(), stream.tail()].concat();
            prop_assert_eq!(shown, render_markdown(&seen, 40, &theme));
        }
        prop_assert_eq!([done, stream.finish()].concat(), render_markdown(&text, 40, &theme));
    }
}

#[test]
fn blocks_in_an_item_follow_its_text() {
    let show = |markdown: &str| text(&render_markdown(markdown, 40, &Theme::no_colour()));
    assert_eq!(
        show("1. run:\n   ```sh\n   make\n   ```\n2. then\n"),
        "1. run:\n   [sh]\n     make\n2. then\n"
    );
    assert_eq!(show("- see:\n  > quote\n- next\n"), "• see:\n  │ quote\n• next\n");
    assert_eq!(show("- see:\n  # head\n  | a |\n  |---|\n"), "• see:\n  # head\n\n  a\n  ─\n");
}

#[test]
fn code_becomes_final_line_by_line_and_paragraphs_when_they_end() {
    let mut stream = StreamingMarkdown::new(40, Theme::no_colour());
    assert_eq!(text(&stream.push("Some *text*\nand mo")), "");
    assert_eq!(text(&stream.tail()), "Some text and mo\n");
    assert_eq!(text(&stream.push("re\n```rust\nlet a")), "Some text and more\n\n[rust]\n");
    assert_eq!(text(&stream.push(" = 1;\nlet b")), "  let a = 1;\n");
    assert_eq!(text(&stream.tail()), "  let b\n");
    assert_eq!(text(&stream.push("\n```\n- one\n\n- two\n")), "  let b\n");
    assert_eq!(text(&stream.push("\nafter\n")), "\n• one\n\n• two\n");
    assert_eq!(text(&stream.finish()), "\nafter\n");
}
