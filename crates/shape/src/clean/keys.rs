//! Finds private keys in blocks of several lines, complete or truncated.

mod block;
mod frame;

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

pub(super) use self::block::{KeyBlock, KeyBlockPart};

use super::{bytes::ByteSet, labels, line::ScannedLine};

/// PEM markers at the begin and end of a block.
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END";
/// Markers of other SSH implementations.
const SSH_BEGIN: &[u8] = b"---- BEGIN ";
const SSH_END: &[u8] = b"---- END ";
/// Text in the title of a private key.
const PRIVATE: &[u8; 11] = b"PRIVATE KEY";
/// Searchers for the markers, used on every line of a block.
static ENDINGS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [END, SSH_END].map(Finder::new));
static BEGINNING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEGIN));
/// Header before a block in PuTTY files, followed by the number of lines.
const PUTTY: &[u8] = b"Private-Lines: ";
/// Markers that may begin a block.
pub(super) const TITLES: [&[u8]; 3] = [BEGIN, SSH_BEGIN, PUTTY];

/// Markers that end a block. If the title is missing, as in the output of `tail`, the block is the
/// lines above.
pub(super) const ENDS: [&[u8]; 2] = [b"-----END ", SSH_END];
/// Prefixes of the first line of a key whose title is missing. They are OpenSSH; RSA, bare and
/// wrapped, after a length; elliptic curves of three sizes; wrapped Ed25519 and curve keys. For
/// OpenPGP: RSA of 1024 to 4096 bits, with and without a passphrase, each with its two usual
/// lengths, and curves.
pub(super) const HEADS: &str = "b3BlbnNzaC1rZXktdjEA IBAAK IBADANBgkqhkiG9w0BAQE MHcCAQEEI MIGkAgEBBD MIHcAgEBBE MC4CAQAwBQYDK2VwBCIEI MIGHAgEAMBMGByqGSM49 \
    lQHXB lQHYB lQIFB lQIGB lQOXB lQOYB lQPFB lQPGB lQVXB lQVYB lQWFB lQWGB lQcXB lQcYB lQdFB lQdGB lFgE lIYE lHcE lKUE";
/// Base64 texts in the middle of an RSA private key, at each of the three alignments. They encode
/// the public exponent and the start of another number, which certificates and public keys do not
/// have. Other lines of a key look like any base64. In bare 4096-bit keys a line ends within the
/// text, so half of it begins the next line.
pub(super) const MIDDLES: [&[u8]; 4] = [b"AgMBAAECgg", b"IDAQABAoI", b"CAwEAAQKC", BROKEN.1];
const BROKEN: (&[u8], &[u8]) = (b"CAwEA", b"AQKCAg");
/// Prefix of a title in base64.
pub(super) const ENCODED: &[u8] = b"LS0tLS1CRUdJTi";
/// Prefix of a long ASN.1 sequence, and the distance from it to the text after its length.
const LONG: &[u8] = b"MII";
const LENGTH: usize = 6;

/// Maximum number of lines above an end marker that may belong to its key. A 16384-bit key has
/// fewer.
const MAX_LINES_ABOVE: usize = 256;
/// Maximum length of a line of a key, including its prefix.
const MAX_LINE_BYTES: usize = 200;
/// Number of base64 characters in each line of a key but the last.
const WIDTH: std::ops::RangeInclusive<usize> = 60..=80;
/// Maximum length of a remembered frame.
const MAX_FRAME_BYTES: usize = 512;
/// Maximum length of the colour sequences before a key.
const MAX_COLOUR_BYTES: usize = 64;

/// Detects the lines of a text that belong to private keys, for readers that show only some lines.
#[derive(Debug, Default)]
pub struct KeyLines {
    block: Option<KeyBlock>,
}

impl KeyLines {
    /// Maximum number of lines of a key, more than any key in use has. A reader that starts in the
    /// middle of a text must look back this far.
    pub const MAX_LINES: usize = 600;

    /// Processes the next line, without its end. Returns true if it belongs to the body of a
    /// private key.
    pub fn take(&mut self, line: &[u8]) -> bool {
        if let Some(block) = &mut self.block {
            match block.part(line) {
                KeyBlockPart::Body => {
                    block.take(line);
                    return true;
                }
                KeyBlockPart::Between => {
                    block.pass();
                    return false;
                }
                KeyBlockPart::EndsAt(_) => {
                    self.block = None;
                    return true;
                }
                KeyBlockPart::Foreign => block.leave(),
                KeyBlockPart::Over => self.block = None,
            }
        }
        if let Some(at) = TITLES.iter().find_map(|title| memchr::memmem::find(line, title))
            && let Some(length) = title_end(&line[at..])
        {
            self.block = KeyBlock::titled(&line[..at], &line[at + length..]);
        }
        false
    }

    /// Returns true if a line alone could belong to a private key.
    pub fn may_hold(line: &[u8]) -> bool {
        is_body(line.trim_ascii(), 1)
    }
}

/// Returns the end of the private-key title that starts here.
pub(super) fn title_end(text: &[u8]) -> Option<usize> {
    if text.starts_with(PUTTY) {
        let digits = text[PUTTY.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        return (digits > 0).then_some(PUTTY.len() + digits);
    }
    names_private([BEGIN, SSH_BEGIN], text)
}

/// Returns true if the end marker of a private key starts here.
pub(super) fn is_end(text: &[u8]) -> bool {
    names_private(ENDS, text).is_some()
}

/// Returns the offset of any end marker in a line.
fn find_end(line: &[u8]) -> Option<usize> {
    ENDINGS.iter().find_map(|ending| ending.find(line))
}

/// Returns the end of a marker with one of these prefixes that names a private key.
fn names_private([usual, ssh]: [&[u8]; 2], text: &[u8]) -> Option<usize> {
    let (title, dashes) = match text.strip_prefix(usual) {
        Some(title) => (title, &usual[..5]),
        None => (text.strip_prefix(ssh)?, &ssh[..4]),
    };
    let near = &title[..title.len().min(60)];
    let length = memchr::memchr_iter(b'-', near).find(|at| near[*at..].starts_with(dashes))?;
    let is_private = title[..length].windows(PRIVATE.len()).any(|part| part == PRIVATE);
    is_private.then_some(text.len() - title.len() + length + dashes.len())
}

/// Properties of a whole line that concern private keys.
#[derive(Debug)]
pub(super) struct KeyLineShape {
    is_body: bool,
    /// Number of base64 characters, or 0 if the line has anything else.
    letters: usize,
}

impl KeyLineShape {
    pub(super) fn new(line: &[u8]) -> Self {
        let is_body = KeyBlock::new().part(line) == KeyBlockPart::Body;
        Self { is_body, letters: body_length(frame::bare(line).trim_ascii()) }
    }
}

/// Returns true if base64 continues in the next lines: it ends with its line, which is as wide as a
/// line of a key. A caller that begins a block here requires that this line belongs to it.
pub(super) fn is_wrapped(line: &ScannedLine<'_>, range: &Range<usize>) -> bool {
    let is_end = line[range.end..].trim_ascii_end().is_empty();
    let is_body = || {
        range.start <= MAX_FRAME_BYTES
            && KeyBlock::framed(&line[..range.start]).part(line) == KeyBlockPart::Body
    };
    is_end && WIDTH.contains(&range.len()) && is_body()
}

/// Returns the start of a key in its line, if the match at `at` makes this the first line of a key.
pub(super) fn first_start(line: &ScannedLine<'_>, at: &Range<usize>) -> Option<usize> {
    let start = match &line[at.clone()] {
        [b'I', b'B', ..] => at.start.checked_sub(LENGTH).filter(|start| line[*start..].starts_with(LONG))?,
        found => HEADS.split(' ').any(|head| head.as_bytes() == found).then_some(at.start)?,
    };
    let before = frame::bare(&line[start.saturating_sub(MAX_COLOUR_BYTES)..start]);
    let starts_here = matches!(&*before, b"+" | b"-") || !before.last().is_some_and(|byte| is_base64(*byte));
    let most = line.len().min(start + WIDTH.end() + 1);
    let is_whole = WIDTH.contains(&line[start..most].iter().take_while(|byte| is_base64(**byte)).count());
    // OpenPGP prefixes are too short to identify a line of another width.
    let is_key = || is_whole || !line[start..].starts_with(b"l") && line.shape().is_body;
    // A caller that begins a block here requires that this line belongs to it.
    let is_body = || match start {
        0..=MAX_FRAME_BYTES => KeyBlock::framed(&line[..start]).part(line) == KeyBlockPart::Body,
        _ => line.shape().is_body,
    };
    (starts_here && is_key() && is_body()).then_some(start)
}

/// Returns true if the match at `at` is in the middle of a private key. A caller that begins a
/// block here requires that this line belongs to it, or it would be found again and again.
pub(super) fn is_middle(line: &ScannedLine<'_>, at: &Range<usize>) -> bool {
    let KeyLineShape { is_body, letters } = line.shape();
    let found = &line[at.clone()];
    let is_within = found == BROKEN.1 && line[..at.start].last().is_some_and(|byte| is_base64(*byte));
    MIDDLES.contains(&found) && !is_within && *is_body && WIDTH.contains(letters)
}

/// Returns true if the line above has the first half of the match, when only its second half was
/// found.
pub(super) fn goes_on(text: &[u8], line: usize, found: &Range<usize>) -> bool {
    let above = &text[..line.saturating_sub(1)];
    let start = memchr::memrchr(b'\n', above).map_or(0, |newline| newline + 1);
    let above = &above[start.max(above.len().saturating_sub(MAX_LINE_BYTES))..];
    let end = above.iter().rposition(|byte| is_base64(*byte)).map_or(0, |last| last + 1);
    text[found.clone()] != *BROKEN.1 || above[..end].ends_with(BROKEN.0)
}

/// Returns the start of the lines before `end` that cannot be judged yet. They may belong to a key
/// whose end follows, or hold an end or middle that the lines above belong to.
pub(super) fn open_from(text: &[u8], end: usize) -> usize {
    let (mut start, mut from) = (body_above(text, end), end);
    let looks_back =
        |lines: &[u8]| ENDS.iter().chain(&MIDDLES).any(|mark| memchr::memmem::find(lines, mark).is_some());
    while start < from && looks_back(&text[start..from]) {
        (start, from) = (body_above(text, start), start);
    }
    start
}

/// Returns true if all lines look like lines of a key other than its last.
pub(super) fn are_wide(lines: &[u8]) -> bool {
    let is_wide = |line: &[u8]| WIDTH.contains(&body_length(frame::bare(line).trim_ascii()));
    lines.split_inclusive(|byte| *byte == b'\n').all(is_wide)
}

/// Returns the start of the lines before `end` that belong to one key, if a key ends here. The last
/// of them may be shorter, and a checksum may follow it.
pub(super) fn body_above(text: &[u8], end: usize) -> usize {
    let (mut start, mut width, mut short) = (end, None, 0);
    for _ in 0..MAX_LINES_ABOVE {
        let Some(before) = start.checked_sub(1) else { break };
        let from = memchr::memrchr(b'\n', &text[..before]).map_or(0, |newline| newline + 1);
        if before - from > MAX_LINE_BYTES {
            break;
        }
        let length = body_length(frame::bare(&text[from..before]).trim_ascii());
        if WIDTH.contains(&length)
            && width.is_none_or(|width| width == length || width < length && short == 0)
        {
            // Only the last line may be shorter.
            short += usize::from(width.is_some());
            width = Some(length);
        } else if length > 0 && width.is_none() && short < 2 {
            short += 1;
        } else {
            break;
        }
        start = from;
    }
    start
}

/// Returns the number of base64 characters of a line. Around them it may have only a number,
/// comment markers, quotes or a file name. A short run counts only if it ends a key or is a
/// checksum.
fn body_length(line: &[u8]) -> usize {
    let (before, body) = body_in(line);
    let is_named = || before.trim_ascii_end().last().is_some_and(|byte| b":-".contains(byte));
    if before.iter().any(u8::is_ascii_alphabetic) && !is_named() {
        return 0;
    }
    let checksum = body.strip_prefix(b"=").filter(|sum| sum.len() == 4);
    let letters = checksum.unwrap_or(body);
    let padding = letters.iter().rev().take_while(|byte| **byte == b'=').count();
    let is_whole = padding <= 2 && !letters[..letters.len() - padding].contains(&b'=');
    let is_long = body.len() >= 16 || (padding > 0 && body.len() >= 4) || checksum.is_some();
    if is_whole && is_long { body.len() } else { 0 }
}

/// Splits a line into its last run of base64, without trailing quotes and commas, and the text
/// before it.
fn body_in(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().rposition(|byte| !b"\"',; ".contains(byte)).map_or(0, |last| last + 1);
    let start = line[..end].iter().rposition(|byte| !is_base64(*byte)).map_or(0, |last| last + 1);
    (&line[..start], &line[start..end])
}

/// Returns the length of the key body before the end of a line, in a string with escaped line ends.
pub(super) fn body_before(line: &[u8]) -> usize {
    let is_body = |byte: &&u8| is_base64(**byte) || **byte == b'\\';
    let length = line.iter().rev().take_while(is_body).count();
    if length >= 16 { length } else { 0 }
}

/// Returns the text between a title and the next one. Without this limit a line of titles would be
/// read to its end for each.
pub(super) fn until_title(rest: &[u8]) -> &[u8] {
    static NEXT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(TITLES).ok());
    let next = NEXT.as_ref().and_then(|next| next.find(rest));
    &rest[..next.map_or(rest.len(), |next| next.start())]
}

/// Returns the length of the body on the title's line: escaped `\n` in strings, or only base64.
pub(super) fn body_in_line(rest: &[u8]) -> usize {
    // The body is already redacted.
    if rest.starts_with(labels::MARK) {
        return 0;
    }
    let Some(end) = memchr::memmem::find(rest, END) else {
        let is_body = |byte: &u8| is_base64(*byte) || b"\\ \t\r".contains(byte);
        let length = rest.iter().take_while(|byte| is_body(byte)).count();
        return if rest[..length].iter().filter(|byte| is_base64(**byte)).count() >= 16 { length } else { 0 };
    };
    // `{body}` contains no line of a key.
    if has_line(&rest[..end]) { end } else { 0 }
}

/// Returns true if a text has a run of base64 as long as a line of a key.
fn has_line(text: &[u8]) -> bool {
    text.split(|byte| !is_base64(*byte)).any(|run| run.len() >= 16)
}

/// Returns true if nothing follows the title on its line, so that the body is in the next lines.
pub(super) fn is_blank(rest: &[u8]) -> bool {
    frame::bare(rest).iter().all(|byte| b"\r \t\\nr\"'+;,".contains(byte))
}

/// Returns true if base64 is most of the line. The rest may be line numbers, quotes and comment
/// markers.
fn is_body(text: &[u8], lines: usize) -> bool {
    let (mut longest, mut rest) = (0, text);
    while !rest.is_empty() {
        let run = BASE64.run(rest);
        longest = longest.max(run);
        rest = rest.get(run + 1..).unwrap_or_default();
    }
    let is_last = lines > 0
        && longest == text.len()
        && longest >= 4
        && text.iter().any(|byte| !byte.is_ascii_lowercase());
    longest >= 16 && longest * 2 > text.len() || is_last
}

static BASE64: ByteSet = ByteSet::new(b"+/=").and_alphanumeric();

fn is_base64(byte: u8) -> bool {
    BASE64.has(byte)
}

#[cfg(test)]
mod tests;
