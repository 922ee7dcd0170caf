//! Decodes the bytes of a file as text and encodes them again. Unchanged text gives the same bytes.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::WINDOWS_1252;

/// Maximum number of bytes that are checked to tell text from binary; the same as in git.
const MAX_SNIFFED_BYTES: usize = 8000;

/// Maximum number of bytes that are used to detect a legacy encoding, from the first byte that is
/// not UTF-8.
const MAX_GUESSED_BYTES: usize = 1 << 20;

/// The content of a file as text, with its encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text<'a> {
    content: Cow<'a, str>,
    encoding: Encoding,
}

impl<'a> Text<'a> {
    /// Decodes the bytes of a file. Only text that can be encoded to the same bytes is accepted.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, NotText> {
        if let Some(rest) = bytes.strip_prefix(b"\xEF\xBB\xBF") {
            let content = std::str::from_utf8(rest).map_err(|error| NotText::Broken {
                encoding: "UTF-8 with BOM",
                at: error.valid_up_to() + 3,
            })?;
            return Ok(Self { content: content.into(), encoding: Encoding::Utf8Bom });
        }
        // UTF-32 begins like UTF-16. It is not used for source code, and decoded as UTF-16 it would
        // be full of NULs.
        if bytes.starts_with(b"\xFF\xFE\0\0") || bytes.starts_with(b"\0\0\xFE\xFF") {
            return Err(NotText::Binary);
        }
        if let Some(rest) = bytes.strip_prefix(b"\xFF\xFE") {
            return utf16(rest, Encoding::Utf16Le, u16::from_le_bytes);
        }
        if let Some(rest) = bytes.strip_prefix(b"\xFE\xFF") {
            return utf16(rest, Encoding::Utf16Be, u16::from_be_bytes);
        }
        let head = &bytes[..bytes.len().min(MAX_SNIFFED_BYTES)];
        if head.contains(&0) {
            return Err(NotText::Binary);
        }
        match std::str::from_utf8(bytes) {
            Ok(content) => Ok(Self { content: content.into(), encoding: Encoding::Utf8 }),
            Err(_) if head.iter().any(|&byte| is_binary_control(byte)) => Err(NotText::Binary),
            Err(error) => Ok(legacy(bytes, error.valid_up_to())),
        }
    }

    pub fn content(&self) -> &str {
        &self.content
    }

    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Returns the lines, each with its ending: `\n`, `\r\n`, `\r`, or none for an unfinished last
    /// line.
    pub fn lines(&self) -> Vec<FileLine<'_>> {
        split_lines(&self.content)
    }

    /// Returns the ending for new lines: the first one in the file.
    pub fn ending(&self) -> &'static str {
        first_ending(&self.content)
    }

    /// Encodes `content` in the encoding of this file.
    pub fn encode(&self, content: &str) -> Result<Vec<u8>, UnencodableChar> {
        self.encoding.encode(content)
    }
}

/// A line of a file and its ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLine<'t> {
    /// The byte offset in the decoded text.
    pub start: usize,
    pub text: &'t str,
    pub ending: &'t str,
}

/// The character encoding of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Utf8Bom,
    Utf16Le,
    Utf16Be,
    /// One of the encodings of the WHATWG standard, guessed from the bytes.
    Legacy(&'static encoding_rs::Encoding),
}

impl Encoding {
    /// Returns the common name of the encoding.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "UTF-8",
            Self::Utf8Bom => "UTF-8 with BOM",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Legacy(encoding) => encoding.name(),
        }
    }

    /// Returns the bytes of a whole file, including a byte order mark.
    pub fn encode(self, content: &str) -> Result<Vec<u8>, UnencodableChar> {
        match self {
            Self::Utf8 => Ok(content.as_bytes().to_vec()),
            Self::Utf8Bom => Ok([b"\xEF\xBB\xBF", content.as_bytes()].concat()),
            Self::Utf16Le => Ok(b"\xFF\xFE"
                .iter()
                .copied()
                .chain(content.encode_utf16().flat_map(u16::to_le_bytes))
                .collect()),
            Self::Utf16Be => Ok(b"\xFE\xFF"
                .iter()
                .copied()
                .chain(content.encode_utf16().flat_map(u16::to_be_bytes))
                .collect()),
            Self::Legacy(encoding) => match encoding.encode(content) {
                (bytes, _, false) => Ok(bytes.into_owned()),
                (_, _, true) => {
                    Err(UnencodableChar { character: unmappable(encoding, content), encoding: self.name() })
                }
            },
        }
    }

    /// Does the same for an owned text, without a copy if possible.
    pub(crate) fn into_bytes(self, content: String) -> Result<Vec<u8>, UnencodableChar> {
        if self == Self::Utf8 { Ok(content.into_bytes()) } else { self.encode(&content) }
    }
}

/// The reason why a file is not text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotText {
    #[error("it is a binary file")]
    Binary,
    #[error("it begins as {encoding} but is broken at byte {at}")]
    Broken { encoding: &'static str, at: usize },
}

/// The error for a character that the encoding of the file does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the file is written in {encoding}, which has no `{character}` (U+{:04X})", u32::from(*.character))]
pub struct UnencodableChar {
    pub character: char,
    pub encoding: &'static str,
}

fn utf16<'a>(rest: &[u8], encoding: Encoding, unit: fn([u8; 2]) -> u16) -> Result<Text<'a>, NotText> {
    let broken = |at: usize| NotText::Broken { encoding: encoding.name(), at };
    let (pairs, odd) = rest.as_chunks::<2>();
    let mut content = String::with_capacity(pairs.len());
    let mut at = 2;
    for character in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let character = character.map_err(|_| broken(at))?;
        at += 2 * character.len_utf16();
        content.push(character);
    }
    if !odd.is_empty() {
        return Err(broken(at));
    }
    Ok(Text { content: content.into(), encoding })
}

/// Guesses the encoding, and accepts the guess only if it round-trips. Windows-1252 always does.
fn legacy(bytes: &[u8], strange_at: usize) -> Text<'static> {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(&bytes[strange_at..bytes.len().min(strange_at + MAX_GUESSED_BYTES)], true);
    let guess = detector.guess(None, Utf8Detection::Deny);
    let exact = |encoding: &'static encoding_rs::Encoding| {
        let content = encoding.decode_without_bom_handling_and_without_replacement(bytes)?.into_owned();
        (encoding.output_encoding() == encoding && *encoding.encode(&content).0 == *bytes).then_some(content)
    };
    let (encoding, content) = match exact(guess) {
        Some(content) => (guess, content),
        None => (WINDOWS_1252, WINDOWS_1252.decode_without_bom_handling(bytes).0.into_owned()),
    };
    Text { content: content.into(), encoding: Encoding::Legacy(encoding) }
}

/// Returns true for control characters that do not occur in text. Tabs, line and page breaks,
/// backspaces, escapes and the end mark of DOS do occur.
fn is_binary_control(byte: u8) -> bool {
    matches!(byte, 0..=6 | 14..=25 | 28..=31 | 127)
}

fn unmappable(encoding: &'static encoding_rs::Encoding, content: &str) -> char {
    let mut buffer = [0; 4];
    let strange = content.chars().filter(|character| !character.is_ascii());
    let mut missing = strange.filter(|character| encoding.encode(character.encode_utf8(&mut buffer)).2);
    missing.next().unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Returns the first line ending. A lone carriage return counts only if there is no `\n` in the
/// file.
pub(crate) fn first_ending(content: &str) -> &'static str {
    match content.split_once('\n') {
        Some((line, _)) if line.ends_with('\r') => "\r\n",
        None if content.contains('\r') => "\r",
        Some(_) | None => "\n",
    }
}

pub(crate) fn split_lines(content: &str) -> Vec<FileLine<'_>> {
    let mut lines = Vec::with_capacity(content.len() / 32);
    let has_returns = content.contains('\r');
    let mut start = 0;
    for piece in content.split_inclusive('\n') {
        let (mut rest, ending) = match piece.strip_suffix('\n') {
            Some(line) if line.ends_with('\r') => piece.split_at(line.len() - 1),
            Some(line) => piece.split_at(line.len()),
            None => (piece, ""),
        };
        let end = start + piece.len();
        while has_returns && let Some(at) = rest.find('\r') {
            lines.push(FileLine { start, text: &rest[..at], ending: &rest[at..=at] });
            rest = &rest[at + 1..];
            start += at + 1;
        }
        if !(rest.is_empty() && ending.is_empty()) {
            lines.push(FileLine { start, text: rest, ending });
        }
        start = end;
    }
    lines
}

#[cfg(test)]
mod tests;
