//! Secrets that are known by themselves, but by more than one of the patterns of `rules.txt` can say: parts that decode, marks
//! in their middle, and what stands beside them.

use std::ops::Range;

use base64::Engine;

use super::{
    bytes::ByteSet,
    found::{Found, Next},
    line::Line,
    option::unquoted,
    place::{MAX_AUTHORITY, STANDARD, URL_SAFE, beyond, skip},
    scan, value,
};

/// So much of the header of a web token is decoded.
const MAX_HEADER: usize = 2048;

/// The block of a private key in base64, as in files for Kubernetes; what begins here may go on in the next lines.
pub(super) fn encoded_key(line: &[u8], start: &Range<usize>) -> Option<Found> {
    static PART: ByteSet = ByteSet::new(b"+/=").and_alphanumeric();
    // The title is in the first 64 characters.
    let title = STANDARD.decode(&line[start.start..line.len().min(start.start + 64)]).unwrap_or_default();
    memchr::memmem::find(&title, b"PRIVATE KEY")?;
    let range = start.start..start.start + PART.run(&line[start.start..]);
    Some(Found { range, label: "private-key", why: "a private key in base64" })
}

/// `"d": "…"` in a line that is a JSON web key: the part that is not public.
pub(super) fn jwk(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let near = &line[word.start.saturating_sub(MAX_AUTHORITY)..line.len().min(word.end + MAX_AUTHORITY)];
    let range = unquoted(line, skip(line, word.end, b" "));
    if value::is_random(&line[range.clone()], 40) && memchr::memmem::find(near, b"\"kty\"").is_some() {
        found.push(Found { range, label: "private-key", why: "private part of a web key" });
    }
    Next::at(word.end)
}

/// A JSON web token: its header must decode.
pub(super) fn jwt(line: &Line<'_>, start: Range<usize>, found: &mut Vec<Found>) -> Next {
    static PART: ByteSet = ByteSet::new(b"-_").and_alphanumeric();
    // One inside another word would be decoded again and again.
    if !scan::starts_word(line, start.start) {
        return Next::at(start.end);
    }
    let part = |at: usize| at + PART.run(&line[at.min(line.len())..]);
    let header = part(start.start);
    let decoded =
        URL_SAFE.decode(&line[start.start..header.min(start.start + MAX_HEADER)]).unwrap_or_default();
    let is_header = decoded.starts_with(b"{\"")
        && [&b"\"alg\""[..], b"\"typ\"", b"\"enc\"", b"\"kid\"", b"\"k\""]
            .iter()
            .any(|key| memchr::memmem::find(&decoded, key).is_some());
    if !is_header {
        return beyond(&start, &(start.start..header.min(start.start + MAX_HEADER)));
    }
    let mut end = header;
    let mut parts = 1;
    while line.get(end) == Some(&b'.') && parts < 5 {
        let next = part(end + 1);
        if next == end + 1 && parts > 2 {
            break;
        }
        end = next;
        parts += 1;
    }
    let is_grafana = memchr::memmem::find(&decoded, b"\"k\"").is_some();
    if parts >= 3 || is_grafana {
        found.push(Found { range: start.start..end, label: "jwt", why: "a web token whose header decodes" });
        return Next::at(end);
    }
    Next::at(start.end)
}

/// `123456789:AA…`, the token of a Telegram bot.
pub(super) fn telegram(line: &Line<'_>, mark: Range<usize>, found: &mut Vec<Found>) -> Next {
    let digits = line[..mark.start].iter().rev().take(12).take_while(|byte| byte.is_ascii_digit()).count();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_".contains(byte);
    let length = line[mark.end..].iter().take(40).take_while(is_part).count();
    if (7..=11).contains(&digits) && (32..=36).contains(&length) && line[mark.start..].starts_with(b":AA") {
        let end = mark.end + length;
        found.push(Found {
            range: mark.start - digits..end,
            label: "telegram-token",
            why: "token of a Telegram bot",
        });
        return Next::at(end);
    }
    Next::at(mark.end)
}

/// `xxx8Q~…`, a client secret of Azure.
pub(super) fn azure(line: &Line<'_>, mark: Range<usize>, found: &mut Vec<Found>) -> Next {
    let left =
        line[..mark.start].iter().rev().take(5).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let right = line[mark.end..].iter().take(41).take_while(is_part).count();
    if left == 4 && (31..=37).contains(&right) && line[mark.start..].starts_with(b"Q~") {
        let end = mark.end + right;
        found.push(Found {
            range: mark.start - left..end,
            label: "azure-client-secret",
            why: "client secret of Azure",
        });
        return Next::at(end);
    }
    Next::at(mark.end)
}

/// The token of a bot, in a line that names Discord.
pub(super) fn discord(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    static PART: ByteSet = ByteSet::new(b"-_").and_alphanumeric();
    let limit = line.len().min(word.end + 200);
    let mut at = word.start.saturating_sub(200);
    while at < limit {
        let length = PART.run(&line[at..limit]);
        if (23..=28).contains(&length) && line.get(at + length) == Some(&b'.') {
            let middle = at + length + 1;
            let second = PART.run(&line[middle..line.len().min(middle + 8)]);
            let last = middle + second + 1;
            let third = PART.run(line.get(last..line.len().min(last + 48)).unwrap_or_default());
            if (5..=7).contains(&second) && line.get(last - 1) == Some(&b'.') && third >= 25 {
                found.push(Found {
                    range: at..last + third,
                    label: "discord-token",
                    why: "token of a Discord bot",
                });
                return Next::at(last + third);
            }
        }
        at += length + 1;
    }
    Next::at(word.end)
}

/// The secret that stands behind an AWS key id on its line, as in exported tables.
pub(super) fn beside_aws_key(line: &[u8], at: usize, found: &mut Vec<Found>) {
    let start = skip(line, at, b" ,:;|\t\"'");
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let length = line[start..].iter().take(41).take_while(is_part).count();
    let range = start..start + length;
    if start > at && length == 40 && value::is_random(&line[range.clone()], 40) {
        found.push(Found { range, label: "aws-secret-key", why: "what follows an AWS access key id" });
    }
}
