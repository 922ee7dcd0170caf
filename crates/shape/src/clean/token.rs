//! Finds secrets that need more than a pattern: encoded parts, cookie lists, and values beside a
//! key.

use std::{ops::Range, sync::LazyLock};

use base64::Engine;
use regex::bytes::Regex;

use super::{
    bytes::{ByteSet, compiled},
    found_secret::FoundSecret,
    name::NameKind,
    place::{MAX_NESTED_TOKEN, STANDARD, URL_SAFE},
    scan,
    value::{self, ValueQuoting},
};

/// Maximum length of a decoded JWT header.
const MAX_HEADER: usize = 2048;
/// Maximum length of a token or a cookie list.
const MAX_TOKEN: usize = 8 * 1024;

/// Returns a private key in base64, as in Kubernetes files. It may continue in the next lines.
pub(super) fn encoded_key(line: &[u8], start: usize) -> Option<FoundSecret> {
    static PART: ByteSet = ByteSet::new(b"+/=").and_alphanumeric();
    // The title is in the first 64 characters.
    let title = STANDARD.decode(&line[start..line.len().min(start + 64)]).unwrap_or_default();
    memchr::memmem::find(&title, b"PRIVATE KEY")?;
    let range = start..start + PART.run(&line[start..]);
    Some(FoundSecret { range, label: "private-key", why: "a private key in base64" })
}

/// Finds a JSON web token, whose header must decode. Returns the offset to resume at.
pub(super) fn jwt(line: &[u8], start: usize, found: &mut Vec<FoundSecret>) -> Option<usize> {
    static TOKEN: LazyLock<Regex> =
        LazyLock::new(|| compiled(r"^(?<header>[\w-]+)(?<rest>(?:\.[\w-]*){2}(?:\.[\w-]+){0,2})?"));
    // A token inside another word would be decoded again and again.
    if !scan::starts_word(line, start) {
        return None;
    }
    let token = TOKEN.captures(&line[start..line.len().min(start + MAX_TOKEN)])?;
    let header = token.name("header")?.as_bytes();
    let header_end = header.len().min(MAX_HEADER);
    let decoded = URL_SAFE.decode(&header[..header_end]).unwrap_or_default();
    let has = |key: &&[u8]| memchr::memmem::find(&decoded, key).is_some();
    let is_header =
        decoded.starts_with(b"{\"") && [&b"\"alg\""[..], b"\"typ\"", b"\"enc\"", b"\"kid\""].iter().any(has);
    if is_header && token.name("rest").is_some() {
        let end = start + token.get(0)?.end();
        found.push(FoundSecret { range: start..end, label: "jwt", why: "a web token whose header decodes" });
        return Some(end);
    }
    (header_end > MAX_NESTED_TOKEN && !is_header).then_some(start + header_end)
}

/// Finds values of `Cookie:` and `Set-Cookie:` that identify a person. Returns the end of the
/// cookies.
pub(super) fn cookies(line: &[u8], word: &Range<usize>, found: &mut Vec<FoundSecret>) -> Option<usize> {
    // Dates contain spaces, and so do malformed cookies.
    static COOKIE: LazyLock<Regex> =
        LazyLock::new(|| compiled(r#"^ *(?<name>[^\s;"'=]+)(?:=(?<s>[^\s;"']*))?(?:[^;"']{0,128};)?"#));
    static NAMES: LazyLock<Regex> =
        LazyLock::new(|| compiled("(?i)sess|sid|auth|token|jwt|csrf|remember|login"));
    let mut at = word.end;
    let limit = line.len().min(word.end + MAX_TOKEN);
    while let Some(cookie) = COOKIE.captures(&line[at..limit]) {
        if let Some(secret) = cookie.name("s") {
            let (range, text) = (at + secret.start()..at + secret.end(), secret.as_bytes());
            let is_named = NAMES.is_match(&cookie["name"]);
            if is_named && value::is_secret(text, ValueQuoting::Quoted, NameKind::Token)
                || value::is_random(text, 24) && text.len() < 4096
            {
                found.push(FoundSecret::value(
                    line,
                    range,
                    "cookie",
                    "value of a cookie that identifies someone",
                ));
            }
        }
        at += cookie[0].len();
        if !cookie[0].ends_with(b";") {
            break;
        }
    }
    (at > word.end).then_some(at)
}

/// Finds the secret after an AWS key id on its line, as in exported tables.
pub(super) fn beside_aws_key(line: &[u8], at: usize, found: &mut Vec<FoundSecret>) {
    static BESIDE: LazyLock<Regex> =
        LazyLock::new(|| compiled(r#"^[ ,:;|\t"']{1,48}(?<s>[[:alnum:]+/]{40})(?:$|[^[:alnum:]+/])"#));
    if let Some(secret) = BESIDE.captures(&line[at..]).and_then(|beside| beside.name("s"))
        && value::is_random(secret.as_bytes(), 40)
    {
        let range = at + secret.start()..at + secret.end();
        found.push(FoundSecret { range, label: "aws-secret-key", why: "what follows an AWS access key id" });
    }
}
