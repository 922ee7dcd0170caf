//! Private keys in blocks of several lines, whole or cut off.

mod block;
mod frame;

use std::{ops::Range, sync::LazyLock};

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

pub(super) use self::block::{Block, Part};

use super::{bytes::ByteSet, labels, line::Line};

/// What a block begins and ends with.
const BEGIN: &[u8] = b"-----BEGIN ";
const END: &[u8] = b"-----END";
/// The same as other implementations of SSH write it.
const SSH_BEGIN: &[u8] = b"---- BEGIN ";
const SSH_END: &[u8] = b"---- END ";
/// What its title says.
const PRIVATE: &[u8; 11] = b"PRIVATE KEY";
/// Both, ready to be searched for in every line of a block.
static ENDINGS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [END, SSH_END].map(Finder::new));
static BEGINNING: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEGIN));
/// What is in front of a block in files of PuTTY, with the number of lines behind it.
const PUTTY: &[u8] = b"Private-Lines: ";
/// What to search for.
pub(super) const TITLES: [&[u8]; 3] = [BEGIN, SSH_BEGIN, PUTTY];

/// What ends a block. Where its title is not there, as in the output of `tail`, its lines are those above.
pub(super) const ENDS: [&[u8]; 2] = [b"-----END ", SSH_END];
/// How the lines of a key begin, where its title is not there: OpenSSH; RSA bare and wrapped, behind a length;
/// elliptic curves of three sizes; wrapped keys of Ed25519 and of curves; OpenPGP: RSA of 1024 to 4096 bits, open and
/// with a passphrase, each with the two lengths it usually has, and curves.
pub(super) const HEADS: &str = "b3BlbnNzaC1rZXktdjEA IBAAK IBADANBgkqhkiG9w0BAQE MHcCAQEEI MIGkAgEBBD MIHcAgEBBE MC4CAQAwBQYDK2VwBCIEI MIGHAgEAMBMGByqGSM49 \
    lQHXB lQHYB lQIFB lQIGB lQOXB lQOYB lQPFB lQPGB lQVXB lQVYB lQWFB lQWGB lQcXB lQcYB lQdFB lQdGB lFgE lIYE lHcE lKUE";
/// What is in the middle of a private key of RSA, at each of the three places it can have in base64: the public exponent, and
/// that another number follows it. In a certificate and in a public key none does. Other lines of a key are like any base64.
/// In bare keys of 4096 bits a line ends within it, so that half of it is at the beginning of the next one.
pub(super) const MIDDLES: [&[u8]; 4] = [b"AgMBAAECgg", b"IDAQABAoI", b"CAwEAAQKC", BROKEN.1];
const BROKEN: (&[u8], &[u8]) = (b"CAwEA", b"AQKCAg");
/// What a title begins with in base64.
pub(super) const ENCODED: &[u8] = b"LS0tLS1CRUdJTi";
/// What the first of a sequence of numbers begins with, and how far it is from what follows its length.
const LONG: &[u8] = b"MII";
const LENGTH: usize = 6;

/// So many lines above an end may be of its key: more than one of 16384 bits has.
const ABOVE: usize = 256;
/// The longest line of a key, with what may be in front of it.
const WIDEST: usize = 200;
/// How many letters the lines of a key have, but for the last.
const WIDTH: std::ops::RangeInclusive<usize> = 60..=80;
/// The longest frame that is remembered.
const FRAME: usize = 512;
/// So far in front of a key the sequences may begin that colour it.
const COLOURS: usize = 64;

/// Tells which lines of a text are of private keys, where not all of its lines are shown.
#[derive(Debug, Default)]
pub struct KeyLines {
    block: Option<Block>,
}

impl KeyLines {
    /// As many lines as the longest key of use has, and more: whoever begins in the middle of a text looks so far back.
    pub const MOST: usize = 600;

    /// Takes the next line, without its end, and says whether it is of the body of a private key.
    pub fn take(&mut self, line: &[u8]) -> bool {
        if let Some(block) = &mut self.block {
            match block.part(line) {
                Part::Body => {
                    block.take(line);
                    return true;
                }
                Part::Between => {
                    block.pass();
                    return false;
                }
                Part::EndsAt(_) => {
                    self.block = None;
                    return true;
                }
                Part::Foreign => block.leave(),
                Part::Over => self.block = None,
            }
        }
        if let Some(at) = TITLES.iter().find_map(|title| memchr::memmem::find(line, title))
            && let Some(length) = title_end(&line[at..])
        {
            self.block = Block::titled(&line[..at], &line[at + length..]);
        }
        false
    }

    /// Whether a line could be of a private key, for all that is known without the lines before it.
    pub fn may_hold(line: &[u8]) -> bool {
        is_body(line.trim_ascii(), 1)
    }
}

/// Where the title of a private key ends, if one starts here.
pub(super) fn title_end(text: &[u8]) -> Option<usize> {
    if text.starts_with(PUTTY) {
        let digits = text[PUTTY.len()..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        return (digits > 0).then_some(PUTTY.len() + digits);
    }
    names_private([BEGIN, SSH_BEGIN], text)
}

/// Whether the end of a private key starts here.
pub(super) fn is_end(text: &[u8]) -> bool {
    names_private(ENDS, text).is_some()
}

/// Where the end of a block is in a line, of whatever that is.
fn find_end(line: &[u8]) -> Option<usize> {
    ENDINGS.iter().find_map(|ending| ending.find(line))
}

/// Where a line with one of these beginnings ends that says it is of a private key.
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

/// What a line as a whole says about private keys.
#[derive(Debug)]
pub(super) struct Shape {
    is_body: bool,
    /// How many letters of base64 it has, if it has nothing else.
    letters: usize,
}

impl Shape {
    pub(super) fn of(line: &[u8]) -> Self {
        let is_body = Block::new().part(line) == Part::Body;
        Self { is_body, letters: body_length(frame::bare(line).trim_ascii()) }
    }
}

/// Whether something in base64 goes on in the next lines: it ends with its line, which is as wide as others of its kind. Whoever
/// begins a block here relies on this line being of it.
pub(super) fn is_wrapped(line: &Line<'_>, range: &Range<usize>) -> bool {
    let is_end = line[range.end..].trim_ascii_end().is_empty();
    let is_body = || range.start <= FRAME && Block::framed(&line[..range.start]).part(line) == Part::Body;
    is_end && WIDTH.contains(&range.len()) && is_body()
}

/// Where the key starts in its line, if what was found at a place makes that the first line of one.
pub(super) fn first_start(line: &Line<'_>, at: &Range<usize>) -> Option<usize> {
    let start = match &line[at.clone()] {
        [b'I', b'B', ..] => at.start.checked_sub(LENGTH).filter(|start| line[*start..].starts_with(LONG))?,
        found => HEADS.split(' ').any(|head| head.as_bytes() == found).then_some(at.start)?,
    };
    let before = frame::bare(&line[start.saturating_sub(COLOURS)..start]);
    let starts_here = matches!(&*before, b"+" | b"-") || !before.last().is_some_and(|byte| is_base64(*byte));
    let most = line.len().min(start + WIDTH.end() + 1);
    let is_whole = WIDTH.contains(&line[start..most].iter().take_while(|byte| is_base64(**byte)).count());
    // The heads of OpenPGP are too short to tell anything about a line of another width.
    let is_key = || is_whole || !line[start..].starts_with(b"l") && line.shape().is_body;
    // Whoever begins a block here relies on this line being of it.
    let is_body = || match start {
        0..=FRAME => Block::framed(&line[..start]).part(line) == Part::Body,
        _ => line.shape().is_body,
    };
    (starts_here && is_key() && is_body()).then_some(start)
}

/// Whether what was found at a place makes its line one of the middle of a private key. Whoever begins a block here relies on
/// this line being of it: without that, it would be found again and again.
pub(super) fn is_middle(line: &Line<'_>, at: &Range<usize>) -> bool {
    let Shape { is_body, letters } = line.shape();
    let found = &line[at.clone()];
    let is_within = found == BROKEN.1 && line[..at.start].last().is_some_and(|byte| is_base64(*byte));
    MIDDLES.contains(&found) && !is_within && *is_body && WIDTH.contains(letters)
}

/// Whether the line above has the first half of what was found here, if only the second half of it was.
pub(super) fn goes_on(text: &[u8], line: usize, found: &Range<usize>) -> bool {
    let above = &text[..line.saturating_sub(1)];
    let start = memchr::memrchr(b'\n', above).map_or(0, |newline| newline + 1);
    let above = &above[start.max(above.len().saturating_sub(WIDEST))..];
    let end = above.iter().rposition(|byte| is_base64(*byte)).map_or(0, |last| last + 1);
    text[found.clone()] != *BROKEN.1 || above[..end].ends_with(BROKEN.0)
}

/// Where the lines start that end here and cannot be judged yet: they may be of a key whose end comes later, or have an end
/// or a middle in them that the lines above belong to.
pub(super) fn open_from(text: &[u8], end: usize) -> usize {
    let (mut start, mut from) = (body_above(text, end), end);
    let looks_back =
        |lines: &[u8]| ENDS.iter().chain(&MIDDLES).any(|mark| memchr::memmem::find(lines, mark).is_some());
    while start < from && looks_back(&text[start..from]) {
        (start, from) = (body_above(text, start), start);
    }
    start
}

/// Whether all of these lines are like those of a key but its last.
pub(super) fn are_wide(lines: &[u8]) -> bool {
    let is_wide = |line: &[u8]| WIDTH.contains(&body_length(frame::bare(line).trim_ascii()));
    lines.split_inclusive(|byte| *byte == b'\n').all(is_wide)
}

/// Where the lines start that end here and are of one key, if a key ends here. The last of them may be shorter than the
/// others, and a checksum may follow it.
pub(super) fn body_above(text: &[u8], end: usize) -> usize {
    let (mut start, mut width, mut short) = (end, None, 0);
    for _ in 0..ABOVE {
        let Some(before) = start.checked_sub(1) else { break };
        let from = memchr::memrchr(b'\n', &text[..before]).map_or(0, |newline| newline + 1);
        if before - from > WIDEST {
            break;
        }
        let length = body_length(frame::bare(&text[from..before]).trim_ascii());
        if WIDTH.contains(&length)
            && width.is_none_or(|width| width == length || width < length && short == 0)
        {
            // Only the last one may be shorter.
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

/// How many letters of base64 a line has, if there is nothing else in it but a number, marks of comments and quotes, or
/// in front of them the name of a file. Few letters count only if they are the last ones, or a checksum.
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

/// The last run of base64 in a line but for quotes and commas behind it, and what is before it.
fn body_in(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().rposition(|byte| !b"\"',; ".contains(byte)).map_or(0, |last| last + 1);
    let start = line[..end].iter().rposition(|byte| !is_base64(*byte)).map_or(0, |last| last + 1);
    (&line[..start], &line[start..end])
}

/// How far back in its line the body of a key goes that ends here, in a string with its ends of lines spelled out.
pub(super) fn body_before(line: &[u8]) -> usize {
    let is_body = |byte: &&u8| is_base64(**byte) || **byte == b'\\';
    let length = line.iter().rev().take_while(is_body).count();
    if length >= 16 { length } else { 0 }
}

/// What is behind a title in its line, up to the next one: in a line of nothing but titles each would be read to its end.
pub(super) fn until_title(rest: &[u8]) -> &[u8] {
    static NEXT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| AhoCorasick::new(TITLES).ok());
    let next = NEXT.as_ref().and_then(|next| next.find(rest));
    &rest[..next.map_or(rest.len(), |next| next.start())]
}

/// How far the body goes on in the line of the title: `\n` in strings, or nothing but base64.
pub(super) fn body_in_line(rest: &[u8]) -> usize {
    // It was cleaned before.
    if rest.starts_with(labels::MARK) {
        return 0;
    }
    let Some(end) = memchr::memmem::find(rest, END) else {
        let is_body = |byte: &u8| is_base64(*byte) || b"\\ \t\r".contains(byte);
        let length = rest.iter().take_while(|byte| is_body(byte)).count();
        return if rest[..length].iter().filter(|byte| is_base64(**byte)).count() >= 16 { length } else { 0 };
    };
    // `{body}` has no line of a key in it.
    if has_line(&rest[..end]) { end } else { 0 }
}

/// Whether a run of base64 is in a text that is long enough for a line of a key.
fn has_line(text: &[u8]) -> bool {
    text.split(|byte| !is_base64(*byte)).any(|run| run.len() >= 16)
}

/// Whether there is nothing behind the title of a key in its line, so that its body is in the next ones.
pub(super) fn is_blank(rest: &[u8]) -> bool {
    frame::bare(rest).iter().all(|byte| b"\r \t\\nr\"'+;,".contains(byte))
}

/// A run of base64 that is most of the line: what is around it are line numbers, quotes and marks of comments.
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
