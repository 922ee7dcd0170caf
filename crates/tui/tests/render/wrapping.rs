//! Words, widths and indents.

use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
use ratatui::{
    style::{Style, Stylize},
    text::Span,
};
use windlass_tui::render::wrap::{HangingIndent, cut_spans, wrap_spans};

use crate::{checked, text};

fn wrapped(line: &str, width: u16) -> String {
    text(&checked(wrap_spans(&[Span::raw(line)], width, &HangingIndent::default()), width))
}

#[test]
fn lines_break_at_words_and_only_long_words_are_broken() {
    assert_eq!(wrapped("the quick brown fox", 10), "the quick\nbrown fox\n");
    assert_eq!(wrapped("a incomprehensibilities b", 10), "a\nincomprehe\nnsibilitie\ns b\n");
    assert_eq!(wrapped("exactly ten", 7), "exactly\nten\n");
    assert_eq!(wrapped("", 10), "\n");
}

#[test]
fn widths_are_those_of_the_screen() {
    assert_eq!(wrapped("一二三四五六", 5), "一二\n三四\n五六\n");
    assert_eq!(wrapped("完了。次", 6), "完了。\n次\n");
    assert_eq!(wrapped("完了。次", 5), "完\n了。\n次\n");
    assert_eq!(
        wrapped("👩\u{200d}💻👩\u{200d}💻👩\u{200d}💻", 4),
        "👩\u{200d}💻👩\u{200d}💻\n👩\u{200d}💻\n"
    );
    assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}e\u{301}\ne\u{301}\n");
    assert_eq!(wrapped("a\tb\tc", 20), "a       b       c\n");
}

#[test]
fn further_lines_are_indented_and_styles_are_kept() {
    let indent = HangingIndent::from_marker(Span::raw("• "));
    let spans = [Span::raw("one "), "two three".bold()];
    let lines = wrap_spans(&spans, 9, &indent);
    assert_eq!(text(&lines), "• one two\n  three\n");
    assert_eq!(lines[1].spans[1], Span::styled("three", Style::new().bold()));
}

#[test]
fn a_first_line_may_have_more_room_than_the_others() {
    let indent = HangingIndent { first: Vec::new(), ..HangingIndent::from_columns(6) };
    let wrapped = |line: &'static str| text(&checked(wrap_spans(&[Span::raw(line)], 10, &indent), 10));
    assert_eq!(wrapped("label: one two"), "label: one\n      two\n");
    assert_eq!(wrapped("ab incomprehensible"), "ab incompr\n      ehen\n      sibl\n      e\n");
}

#[test]
fn a_cut_line_says_that_it_is_cut() {
    assert_eq!(cut_spans(&[Span::raw("abcdef")], 6).to_string(), "abcdef");
    assert_eq!(cut_spans(&[Span::raw("abcdefg")], 6).to_string(), "abcde…");
    assert_eq!(cut_spans(&[Span::raw("一二三四")], 6).to_string(), "一二…");
    assert_eq!(cut_spans(&[Span::raw("abc"), Span::raw("一二")], 5).to_string(), "abc…");
}

proptest! {
    #[test]
    fn no_text_is_lost_and_no_line_is_too_wide(line in "[ a-zé文👍\t]{0,80}", width in 2_u16..30) {
        let lines = checked(wrap_spans(&[Span::raw(line.clone())], width, &HangingIndent::default()), width);
        let letters = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
        prop_assert_eq!(letters(&text(&lines)), letters(&line));
    }

    #[test]
    fn any_text_fits_any_width(line in any::<String>(), width in 0_u16..12, indent in 0_usize..6) {
        let (line, spans) = (line.clone(), [Span::raw(line)]);
        checked(wrap_spans(&spans, width, &HangingIndent::from_columns(indent)), width);
        let hanging = HangingIndent { first: Vec::new(), ..HangingIndent::from_columns(indent) };
        checked(wrap_spans(&spans, width, &hanging), width);
        let cut = cut_spans(&[Span::raw(line)], width);
        prop_assert!(cut.width() <= usize::from(width.max(2)));
    }
}
