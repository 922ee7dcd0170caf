//! Tests of the text that remains on the screen.

use proptest::prelude::*;

use super::*;

fn assert_all(cases: &[(&str, &str)]) {
    for (written, seen) in cases {
        assert_eq!(Terminal::reduce(written), *seen, "{written:?}");
    }
}

#[test]
fn colours_titles_and_links_are_gone() {
    assert_all(&[
        ("\u{1b}[1;31merror\u{1b}[0m: x\n", "error: x\n"),
        ("\u{1b}]0;title\u{7}text", "text"),
        ("\u{1b}]8;;https://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ end", "link end"),
        ("\u{1b}[38:2:1:2:3mx\u{1b}(B\u{1b}[m", "x"),
        ("\u{1b}Pq data \u{1b}\\x\u{9b}1my", "xy"),
    ]);
}

#[test]
fn redraws_leave_their_last_state() {
    assert_all(&[
        (" 10%\r 50%\r100%\ndone\n", "100%\ndone\n"),
        ("downloading\r\u{1b}[Kok\n", "ok\n"),
        ("abc\u{8}\u{8}X\n", "aXc\n"),
        ("one\ntwo\n\u{1b}[2A\u{1b}[2KONE\n\u{1b}[2KTWO\n", "ONE\nTWO\n"),
        ("old\n\u{1b}[2J\u{1b}[Hnew\n", "new\n"),
        ("before\n\u{1b}[?1049hfull screen\u{1b}[?1049lafter\n", "before\nafter\n"),
        ("a\r\nb\u{1b}[m\r\n", "a\nb\n"),
    ]);
}

#[test]
fn what_cannot_be_seen_is_spelled_out() {
    assert_all(&[
        ("a\u{0}b\u{1}", "a␀b␁"),
        ("x = \u{202e}1\u{2066}", "x = \\u{202e}1\\u{2066}"),
        ("hi\u{e0041}\u{200b}", "hi\\u{e0041}\\u{200b}"),
        ("ding\u{7}\u{7f}", "ding␡"),
    ]);
}

#[test]
fn plain_text_is_not_touched() {
    for text in ["", "a\tb\n\nc", "Grüße — “quotes” 🦀 ✓\n", "a\r\nb\r\n", "trailing  \n", "日本語\n"]
    {
        assert!(matches!(Terminal::reduce(text), Cow::Borrowed(same) if same == text), "{text:?}");
    }
}

#[test]
fn bombs_cost_nothing() {
    let bombs = [
        "\u{1b}[999999999C",
        "\u{1b}[65535;65535H",
        "\u{1b}[65535@",
        "\u{1b}[65535B",
        "\u{1b}[99999999999999999999A",
    ];
    let mut terminal = Terminal::default();
    let mut length = 0;
    for bomb in bombs {
        for _ in 0..1000 {
            length += terminal.push(bomb).len() + terminal.push("x").len();
        }
    }
    length += terminal.push(&format!("\u{1b}]{}", "x".repeat(1_000_000))).len();
    length += terminal.finish().len();
    assert!(length < 8_000_000, "{length}");
}

#[test]
fn a_row_without_end_is_kept_whole() {
    let text = "\u{1b}[m".to_owned() + &"0123456789".repeat(10_000);
    assert_eq!(Terminal::reduce(&text), "0123456789".repeat(10_000));
}

proptest! {
    #[test]
    fn any_cutting_gives_the_same(text in "[a-c\\r\\n\\u{8}\\u{1b}\\[\\]0-9;ABCDHJKmhPX@?é]{0,200}", cut in 1usize..20) {
        let mut terminal = Terminal::default();
        let mut seen = String::new();
        let characters: Vec<char> = text.chars().collect();
        for piece in characters.chunks(cut) {
            seen.push_str(&terminal.push(&piece.iter().collect::<String>()));
        }
        seen.push_str(&terminal.finish());
        let mut whole = Terminal::default();
        let mut expected = whole.push(&text);
        expected.push_str(&whole.finish());
        prop_assert_eq!(&seen, &expected);
        prop_assert!(is_plain(&seen));
    }

    #[test]
    fn visible_text_comes_through_as_it_is(text in "[a-zäß ✓\\t\\n]{0,300}") {
        let mut terminal = Terminal::default();
        let mut seen = terminal.push(&text);
        seen.push_str(&terminal.finish());
        prop_assert_eq!(seen, text);
    }
}

#[test]
fn live_text_is_plain_and_a_redraw_begins_a_new_line() {
    let mut plain = PlainTextStream::default();
    let pieces = ["q8Zk\u{1b}[3", "1mPv0\u{1b}[0m\r", "\n10%\r20", "%\u{7}\tdone\r\n"];
    let text: String = pieces.iter().map(|piece| plain.push(piece)).collect();
    assert_eq!(text, "q8ZkPv0\n10%\n20%\tdone\n");
}

#[test]
fn text_of_two_bytes_a_character_is_shown_as_text() {
    let bytes: Vec<_> =
        "\x1b[1mone\x1b[m of these\r\n\r\ntwo\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(Terminal::reduce(str::from_utf8(&bytes).unwrap()), "one of these\n\ntwo\n");
}
