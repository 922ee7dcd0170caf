//! Identifies binary files by their first bytes, and suggests a command to inspect them.

use windlass_contract::{files::OpenFile, wording::shell_quote};
use windlass_patch::{NotText, Text};

use super::decode::whole_characters;

/// Offset, signature, description, and inspection command of a file type; `{}` is the path.
#[rustfmt::skip]
const MARKS: &[(usize, &[u8], &str, &str)] = &[
    (0,   b"%PDF-",                "a PDF document",       "`pdftotext {} -`"),
    (0,   b"PK\x03\x04",           "a ZIP archive (or a document kept as one, such as .docx, .xlsx, .jar)", "`unzip -l {}`"),
    (0,   b"PK\x05\x06",           "an empty ZIP archive", "`unzip -l {}`"),
    (0,   b"\x1F\x8B",             "gzip-compressed",      "`zcat {} | head`, or `tar -tzf {}`"),
    (0,   b"BZh",                  "bzip2-compressed",     "`bzcat {} | head`, or `tar -tjf {}`"),
    (0,   b"\xFD7zXZ\0",           "xz-compressed",        "`xzcat {} | head`, or `tar -tJf {}`"),
    (0,   b"\x28\xB5\x2F\xFD",     "zstd-compressed",      "`zstdcat {} | head`"),
    (0,   b"7z\xBC\xAF\x27\x1C",   "a 7z archive",         "`7z l {}`"),
    (0,   b"Rar!\x1A\x07",         "a RAR archive",        "`unrar l {}`"),
    (257, b"ustar",                "a tar archive",        "`tar -tf {}`"),
    (0,   b"!<arch>\n",            "an ar archive or static library", "`ar t {}`"),
    (0,   b"SQLite format 3\0",    "an SQLite database",   "`sqlite3 -readonly {} .schema`"),
    (0,   b"\x7FELF",              "a Linux program or library", "`file {}`, `readelf -h {}` or `strings {}`"),
    (0,   b"MZ",                   "a Windows program or library", "`file {}` or `strings {}`"),
    (0,   b"\xCF\xFA\xED\xFE",     "a macOS program or library", "`file {}` or `strings {}`"),
    (0,   b"\xCA\xFE\xBA\xBE",     "a Java class or a macOS program", "`javap -c {}` or `file {}`"),
    (0,   b"\0asm",                "a WebAssembly module", "`wasm-objdump -x {}`"),
    (0,   b"\xD0\xCF\x11\xE0",     "an old Office document", "`strings {}`"),
    (0,   b"II*\0",                "a TIFF image",         "`file {}`; convert it to PNG to see it"),
    (0,   b"MM\0*",                "a TIFF image",         "`file {}`; convert it to PNG to see it"),
    (0,   b"BM",                   "a BMP image",          "`file {}`; convert it to PNG to see it"),
    (0,   b"OggS",                 "Ogg audio or video",   "`ffprobe {}`"),
    (0,   b"ID3",                  "MP3 audio",            "`ffprobe {}`"),
    (0,   b"fLaC",                 "FLAC audio",           "`ffprobe {}`"),
    (0,   b"RIFF",                 "audio or video",       "`ffprobe {}`"),
    (4,   b"ftyp",                 "an MP4 video or a HEIC image", "`ffprobe {}`"),
    (0,   b"\x1A\x45\xDF\xA3",     "a Matroska or WebM video", "`ffprobe {}`"),
    (0,   b"wOFF",                 "a font",               "`file {}`"),
    (0,   b"wOF2",                 "a font",               "`file {}`"),
    (0,   b"PAR1",                 "a Parquet table",      "`python3 -c 'import pyarrow.parquet as p; print(p.read_schema(\"{}\"))'`"),
    (0,   b"\xFF\xFE\0\0",         "UTF-32 text",          "`iconv -f UTF-32 -t UTF-8 {}`"),
    (0,   b"\0\0\xFE\xFF",         "UTF-32 text",          "`iconv -f UTF-32 -t UTF-8 {}`"),
];

/// Returns the message for a binary file, or `None` for text.
pub(super) fn refusal(head: &[u8], file: &dyn OpenFile) -> Option<String> {
    let path = file.path().display().to_string();
    let mark = MARKS.iter().find(|(at, mark, ..)| head.get(*at..).is_some_and(|rest| rest.starts_with(mark)));
    // PDF and ar files contain text as well. All other signatures are so short that a text may
    // begin with one by accident.
    let sure = head.starts_with(b"%PDF-") || head.starts_with(b"!<arch>\n");
    if !sure && !is_binary(head) {
        return None;
    }
    let (what, how) = mark.map_or(("a binary file", "`file {}` or `xxd {} | head`"), |mark| (mark.2, mark.3));
    let (size, how) = (size(file.size_bytes()), how.replace("{}", &shell_quote(&path)));
    Some(format!("`{path}` is {what} of {size}, not text; to look inside, try {how}"))
}

fn is_binary(head: &[u8]) -> bool {
    matches!(Text::decode(whole_characters(head)), Err(NotText::Binary))
}

/// Formats a size for people.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes < 1000 {
        return format!("{bytes} bytes");
    }
    let mut tenths = u128::from(bytes) / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit + 1 < UNITS.len() {
        tenths /= 1000;
        unit += 1;
    }
    format!("{}.{} {}", tenths / 10, tenths % 10, UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_said_as_people_do() {
        let cases = [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (12_345_678, "12.3 MB")];
        assert_eq!(cases.map(|(bytes, _)| size(bytes)), cases.map(|(_, text)| text.to_owned()));
        assert_eq!(size(u64::MAX), "18446744.0 TB");
    }
}
