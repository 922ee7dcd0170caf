//! Tests of reading files, with files in memory.

use windlass_contract::{erase, tool::ErrorKind};

use super::*;
use crate::fakes::{FixedFiles, ToolHarness};

async fn call(bytes: impl Into<Vec<u8>>, options: &str) -> Result<Output, ToolError> {
    let desk = ToolHarness::with_files(FixedFiles::with("/w/f", bytes));
    let tool = erase(ReadFile { shows_images: true });
    desk.call(tool, &format!(r#"{{"file_path":"/w/f"{options}}}"#)).await
}

async fn read(bytes: impl Into<Vec<u8>>, options: &str) -> String {
    match call(bytes, options).await {
        Ok(output) => Content::join(&output.content),
        Err(error) => format!("error: {}", error.message),
    }
}

#[tokio::test]
async fn lines_come_with_their_numbers_and_without_their_ends() {
    assert_eq!(read("a\nb\r\n\nd", "").await, "L1: a\nL2: b\nL3: \nL4: d");
    assert_eq!(read("a\nb\nc\n", r#","offset":2,"limit":1"#).await, "L2: b");
    assert_eq!(read("a\nb\nc\n", r#","offset":3"#).await, "L3: c");
}

#[tokio::test]
async fn what_makes_no_sense_is_told_in_known_words() {
    for (options, problem) in [
        (r#","offset":0"#, "offset must be a 1-indexed line number"),
        (r#","limit":0"#, "limit must be greater than zero"),
        (r#","offset":3"#, "offset exceeds file length"),
        (
            r#","mode":"indentation","indentation":{"anchor_line":0}"#,
            "anchor_line must be a 1-indexed line number",
        ),
        (r#","mode":"indentation","indentation":{"anchor_line":3}"#, "anchor_line exceeds file length"),
        (r#","mode":"indentation","indentation":{"max_lines":0}"#, "max_lines must be greater than zero"),
    ] {
        assert_eq!(read("a\nb\n", options).await, format!("error: {problem}"));
    }
    assert_eq!(read("", "").await, "error: offset exceeds file length");
}

#[tokio::test]
async fn what_the_machine_says_comes_behind_known_words() {
    let desk = ToolHarness::with_files(FixedFiles::default());
    let error = desk.call(erase(ReadFile { shows_images: true }), r#"{"file_path":"x"}"#).await.unwrap_err();
    assert_eq!(error.message, "failed to read file: `x` does not exist");
    assert_eq!(error.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn long_lines_are_cut_at_a_character_and_never_kept_whole() {
    let long = format!("{}\nnext\n", "é".repeat(3_000_000));
    assert_eq!(read(long, "").await, format!("L1: {}\nL2: next", "é".repeat(250)));
}

#[tokio::test]
async fn a_slice_far_inside_is_found_across_chunks() {
    let many: String = (1..=300_000).map(|number| format!("line {number}\n")).collect();
    assert_eq!(
        read(many, r#","offset":299999,"limit":5"#).await,
        "L299999: line 299999\nL300000: line 300000"
    );
}

#[tokio::test]
async fn other_encodings_are_decoded_and_named() {
    let wide =
        |unit: fn(u16) -> [u8; 2]| "\u{feff}äh\r\nzwei\n".encode_utf16().flat_map(unit).collect::<Vec<u8>>();
    assert_eq!(read(wide(u16::to_le_bytes), "").await, "L1: äh\nL2: zwei\n(decoded from UTF-16LE)");
    assert_eq!(read(wide(u16::to_be_bytes), r#","offset":2"#).await, "L2: zwei\n(decoded from UTF-16BE)");
    assert_eq!(read("\u{feff}a\nb", "").await, "L1: a\nL2: b");
    let latin = b"Stra\xDFe nach M\xFCnchen\n".to_vec();
    assert_eq!(read(latin.clone(), "").await, "L1: Straße nach München\n(decoded from windows-1252)");
    let late = [&b"plain\n".repeat(20_000)[..], &latin].concat();
    assert_eq!(
        read(late, r#","offset":20001"#).await,
        "L20001: Straße nach München\n(decoded from windows-1252)"
    );
}

#[tokio::test]
async fn binaries_are_named_with_a_way_to_look_inside() {
    assert_eq!(
        read(b"%PDF-1.7\n1 0 obj\n".to_vec(), "").await,
        "error: `/w/f` is a PDF document of 17 bytes, not text; to look inside, try `pdftotext /w/f -`"
    );
    let zip = [b"PK\x03\x04".as_slice(), &[0; 2000]].concat();
    assert!(read(zip, "").await.contains("try `unzip -l /w/f`"));
    let unknown = read([1, 2, 0, 3].to_vec(), "").await;
    assert!(unknown.starts_with("error: `/w/f` is a binary file of 4 bytes"), "{unknown}");
    assert_eq!(read("BMW is a make of car", "").await, "L1: BMW is a make of car");
}

#[tokio::test]
async fn an_image_is_shown_or_described() {
    let mut png = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(3, 2).write_to(&mut png, image::ImageFormat::Png).unwrap();
    let png = png.into_inner();
    let output = call(png.clone(), "").await.unwrap();
    let [Content::Text(text), Content::Image(url)] = &output.content[..] else { panic!("{output:?}") };
    assert_eq!(text, "`/w/f` is a PNG image of 3x2 pixels");
    assert!(url.starts_with("data:image/png;base64,"));
    let desk = ToolHarness::with_files(FixedFiles::with("/w/f", png));
    let blind = desk.call(erase(ReadFile { shows_images: false }), r#"{"file_path":"/w/f"}"#).await.unwrap();
    assert_eq!(blind, "`/w/f` is a PNG image of 3x2 pixels (you cannot be shown images)".into());
}

#[tokio::test]
async fn a_block_is_numbered_like_the_file() {
    let code = "top\n".repeat(50) + "def f():\n    if x:\n        y()\n    z()\nend\n";
    assert_eq!(
        read(code, r#","mode":"indentation","indentation":{"anchor_line":53,"max_levels":1}"#).await,
        "L52:     if x:\nL53:         y()\nL54:     z()"
    );
}

#[tokio::test]
async fn a_page_that_begins_inside_a_private_key_does_not_show_it() {
    let key = "MIIEowIBAAKCAQEA3Tz2mr7SZiAMfQyuvBjM9Oi9Qp8nXyVQ0bVb5gX1kT7uYh2s\n".repeat(9);
    let file = format!("a\n-----BEGIN RSA PRIVATE KEY-----\n{key}-----END RSA PRIVATE KEY-----\nb\n");
    let hidden: String = (9..=11).map(|line| format!("L{line}: [REDACTED:private-key]\n")).collect();
    let end = "L12: -----END RSA PRIVATE KEY-----\nL13: b";
    assert_eq!(read(file.as_str(), r#","offset":9"#).await, format!("{hidden}{end}"));
    assert_eq!(read(file.as_str(), r#","offset":13"#).await, "L13: b");
}
