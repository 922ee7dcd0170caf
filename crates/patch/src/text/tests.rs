//! Bytes in, the same bytes out.

use super::*;

fn round_trip(bytes: &[u8]) -> (String, &'static str) {
    let text = Text::decode(bytes).expect("text");
    assert_eq!(text.encode(text.content()).expect("writable"), bytes);
    (text.content().to_owned(), text.encoding().name())
}

#[test]
fn unicode_is_told_by_its_mark_or_its_validity() {
    assert_eq!(round_trip(b""), (String::new(), "UTF-8"));
    assert_eq!(round_trip("añ猫".as_bytes()), ("añ猫".into(), "UTF-8"));
    assert_eq!(round_trip(b"\xEF\xBB\xBFa"), ("a".into(), "UTF-8 with BOM"));
    assert_eq!(round_trip(b"\xFF\xFEa\0=\xD8\x00\xDE"), ("a😀".into(), "UTF-16LE"));
    assert_eq!(round_trip(b"\xFE\xFF\0a"), ("a".into(), "UTF-16BE"));
}

#[test]
fn legacy_encodings_are_guessed() {
    let western = b"Les \xE9l\xE8ves ont pr\xE9par\xE9 la f\xEAte; co\xFBt total: 12 \x80.\n";
    assert_eq!(
        round_trip(western),
        ("Les élèves ont préparé la fête; coût total: 12 €.\n".into(), "windows-1252")
    );
    let (japanese, ..) =
        encoding_rs::SHIFT_JIS.encode("// これは日本語のコメントです。文字コードを保つこと。\n");
    assert_eq!(round_trip(&japanese).1, "Shift_JIS");
    let (chinese, ..) = encoding_rs::GBK.encode("// 这是一个中文注释，编码应该保持不变，请不要修改它。\n");
    assert_eq!(round_trip(&chinese).1, "GBK");
    let (russian, ..) =
        encoding_rs::WINDOWS_1251.encode("// Это комментарий на русском языке, его нужно сохранить.\n");
    assert_eq!(round_trip(&russian).1, "windows-1251");
}

#[test]
fn any_other_bytes_come_back_as_they_were() {
    let bytes: Vec<u8> = (32..=255).filter(|byte| *byte != 127).collect();
    round_trip(&bytes);
    round_trip(b"ok \xC3\xA9 then broken \xC3 and on");
}

#[test]
fn binaries_are_refused() {
    assert_eq!(Text::decode(b"\x7FELF\x02\x01\x01\0\0"), Err(NotText::Binary));
    assert_eq!(Text::decode(b"\x89PNG\r\n\x1a\n\x01\x02"), Err(NotText::Binary));
    assert_eq!(Text::decode(b"\xFF\xFE\0\0a\0\0\0"), Err(NotText::Binary));
    assert_eq!(Text::decode(b"\xFF\xFEa\0b"), Err(NotText::Broken { encoding: "UTF-16LE", at: 4 }));
    assert_eq!(Text::decode(b"\xFF\xFE\x00\xD8a\0"), Err(NotText::Broken { encoding: "UTF-16LE", at: 2 }));
    assert_eq!(
        Text::decode(b"\xEF\xBB\xBFa\xFF"),
        Err(NotText::Broken { encoding: "UTF-8 with BOM", at: 4 })
    );
}

#[test]
fn lines_have_the_endings_they_have() {
    let line = |start, text, ending| FileLine { start, text, ending };
    assert_eq!(split_lines(""), []);
    assert_eq!(split_lines("a"), [line(0, "a", "")]);
    assert_eq!(
        split_lines("a\n\r\nb\rc\r\r\nd"),
        [
            line(0, "a", "\n"),
            line(2, "", "\r\n"),
            line(4, "b", "\r"),
            line(6, "c", "\r"),
            line(8, "", "\r\n"),
            line(10, "d", "")
        ]
    );
    assert_eq!(split_lines("a\r"), [line(0, "a", "\r")]);
    let endings = ["a", "a\nb\r\n", "a\r\nb\n", "a\rb", "stray\r one\n"].map(first_ending);
    assert_eq!(endings, ["\n", "\n", "\r\n", "\r", "\n"]);
}

#[test]
fn a_character_the_encoding_lacks_is_named() {
    let text = Text::decode(b"caf\xE9 cr\xE8me br\xFBl\xE9e\n").expect("text");
    let error = text.encode("é猫").expect_err("no cat in it");
    assert_eq!(error.to_string(), "the file is written in windows-1252, which has no `猫` (U+732B)");
}
