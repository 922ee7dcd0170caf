//! Secrets known by their place: in addresses, headers, cookies, and what else has a place for them.

use std::ops::Range;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{
    bytes::ByteSet,
    found::{Found, Next},
    line::Line,
    name::NameKind,
    option::unquoted,
    rules, spoken,
    value::{self, Written},
};

/// The longest user and password of an address.
pub(super) const MAX_AUTHORITY: usize = 1024;

/// The longest token of a header.
const MAX_TOKEN: usize = 16 * 1024;

/// The longest rest of a date in a cookie: ` 21 Oct 2026 07:28:00 GMT`.
const MAX_DATE: usize = 32;
/// How long a cookie may be that is not written as it should be, and how many are looked at behind it.
const MAX_PART: usize = 512;
const MAX_COOKIES: usize = 32;

/// A longer token that is no secret is not looked into.
pub(super) const LONG_TOKEN: usize = 128;

/// A shorter user of an address is no key.
const MIN_KEY_USER: usize = 16;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
pub(super) const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
pub(super) const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// `scheme://user:password@host`: only the password goes.
pub(super) fn url(line: &Line<'_>, mark: Range<usize>, found: &mut Vec<Found>) -> Next {
    static ENDS: ByteSet = ByteSet::new(b"/\"'`<>\\ \t\n\r\x0c");
    let none = Next::at(mark.end);
    let rest = &line[mark.end..];
    let rest = &rest[..rest.len().min(MAX_AUTHORITY)];
    let mut end = ENDS.until(rest);
    // `DOMAIN\user`; but not the end of a line that is written in a string.
    if let [b'\\', after, ..] = rest[end..]
        && after.is_ascii_alphabetic()
        && !b"nrtu".contains(&after)
    {
        end += 1 + ENDS.until(&rest[end + 1..]);
    }
    let Some(at_sign) = memchr::memrchr(b'@', &rest[..end]) else { return none };
    let (user, password) = match memchr::memchr(b':', &rest[..at_sign]) {
        Some(colon) => (&rest[..colon], colon + 1..at_sign),
        None => (&rest[..0], 0..at_sign),
    };
    let secret = &rest[password.clone()];
    let is_secret = if password.start > 0 {
        value::is_password(secret) && secret != user
    } else {
        let is_public = memchr::memmem::find(&rest[at_sign..end], b"sentry").is_some();
        value::is_random(secret, 20) && !is_public || rules::key_at(secret).is_some()
    };
    if is_secret {
        let range = mark.end + password.start..mark.end + password.end;
        found.push(Found::value(line, range, "url-password", "password in an address"));
        // The user may be the half of a key that is known by itself.
        return if user.len() < MIN_KEY_USER { Next::at(mark.end + at_sign) } else { none };
    }
    none
}

/// `sig=…` and `signature=…` in addresses that are signed.
pub(super) fn signature(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    if !word.start.checked_sub(1).is_some_and(|at| b"?&-_; ,".contains(&line[at])) {
        return Next::at(word.end);
    }
    let range = token(line, skip(line, word.end, b"\""));
    let text = &line[range.clone()];
    if text.len() < 20 || !value::is_secret(text, Written::Quoted, NameKind::Token) {
        return beyond(&word, &range);
    }
    let resume = range.end;
    found.push(Found { range, label: "url-signature", why: "signature of an address" });
    Next::at(resume)
}

/// `Authorization: scheme value`, and the same without a scheme.
pub(super) fn authorization(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let at = skip(line, word.end, b"\\\"'] ");
    if at >= line.len() || !b":=,".contains(&line[at]) {
        return Next::at(word.end);
    }
    let at = skip(line, at + 1, b"=>\\\"' ");
    let first = token(line, at);
    let is_scheme =
        line.get(first.end) == Some(&b' ') && line[first.clone()].iter().all(u8::is_ascii_alphabetic);
    let is_basic = line[first.clone()].eq_ignore_ascii_case(b"basic");
    let range = if is_scheme { token(line, first.end + 1) } else { first };
    let text = &line[range.clone()];
    let is_secret = is_basic && is_basic_pair(text)
        || value::is_secret(text, Written::Bare, NameKind::Token)
        || rules::key_rule(text).is_some();
    if is_secret && !text.starts_with(b"AWS4-") {
        let resume = range.end;
        found.push(Found::value(line, range, "authorization", "value of an Authorization header"));
        return Next::at(resume);
    }
    beyond(&word, &range)
}

/// `Bearer value` anywhere.
pub(super) fn bearer(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let range = token(line, skip(line, word.end, b" :="));
    let text = &line[range.clone()];
    if range.start > word.end && value::is_random_or_typed(text, 12) {
        let resume = range.end;
        found.push(Found::value(line, range, "bearer-token", "what follows `Bearer`"));
        return Next::at(resume);
    }
    beyond(&word, &range)
}

/// `Basic value` anywhere, if that is a user and a password in base64.
pub(super) fn basic(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let range = token(line, word.end);
    if range.len() >= 8 && is_basic_pair(&line[range.clone()]) {
        let resume = range.end;
        found.push(Found { range, label: "basic-auth", why: "a user and a password in base64" });
        return Next::at(resume);
    }
    beyond(&word, &range)
}

/// `"auth": "…"` and `_auth=…` of registries: a user and a password, also in base64. `?auth=…`, `X-Auth: …`: what is random.
pub(super) fn registry(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let at = skip(line, word.end, b"\\\"' ");
    let before = &line[..word.start];
    let is_header = before.len() >= 2 && before[before.len() - 2..].eq_ignore_ascii_case(b"x-");
    let is_alone = before.last().is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-');
    if !(is_alone || is_header) || at >= line.len() || !b":=".contains(&line[at]) {
        return Next::at(word.end);
    }
    let range = token(line, skip(line, at + 1, b"\\\"' "));
    let (text, resume) = (&line[range.clone()], range.end);
    let (label, why) = if range.len() >= 8 && is_basic_pair(text) {
        ("basic-auth", "a user and a password in base64")
    } else if value::is_random(text, 24) && !text.contains(&b'(') {
        ("authorization", "what someone is known by")
    } else if range.len() > LONG_TOKEN {
        return beyond(&word, &range);
    } else {
        return spoken::pair(line, word, found);
    };
    found.push(Found::value(line, range, label, why));
    Next::at(resume)
}

/// `Cookie:` and `Set-Cookie:`: values that identify someone.
pub(super) fn cookie(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    const NAMES: &[&[u8]] = &[b"sess", b"sid", b"auth", b"token", b"jwt", b"csrf", b"remember", b"login"];
    static ENDS: ByteSet = ByteSet::new(b";\"' \t\n\r\x0c");
    let mut at = word.end;
    // Where others go on looking: behind what was read as nothing but cookies, and no more than so far.
    let (mut resume, mut further) = (None, MAX_COOKIES);
    loop {
        let start = skip(line, at, b" ");
        let stop = start + ENDS.until(&line[start..]);
        let equals = memchr::memchr(b'=', &line[start..stop]);
        if equals.is_none() && at == word.end {
            // Where no cookie is, something else may be.
            resume = Some(beyond(&word, &(start..stop)));
        }
        // Others only say something about the one before: `HttpOnly`.
        if let Some(equals) = equals {
            let name = line[start..start + equals].to_ascii_lowercase();
            let range = start + equals + 1..stop;
            let text = &line[range.clone()];
            let is_named = NAMES.iter().any(|each| memchr::memmem::find(&name, each).is_some());
            if is_named && value::is_secret(text, Written::Quoted, NameKind::Token)
                || value::is_random(text, 24) && text.len() < 4096
            {
                found.push(Found::value(line, range, "cookie", "value of a cookie that identifies someone"));
            }
        }
        let rest = &line[stop..line.len().min(stop + MAX_PART)];
        let part = memchr::memchr(b';', rest).map(|length| &rest[..length]);
        // A date has spaces in it.
        let is_date = |byte: &u8| byte.is_ascii_alphanumeric() || b" :,-".contains(byte);
        if part.is_none_or(|part| part.len() > MAX_DATE || !part.iter().all(is_date)) {
            resume.get_or_insert(Next::at(stop));
        }
        further -= usize::from(resume.is_some());
        match (part, resume) {
            (Some(part), next) if further > 0 => (at, resume) = (stop + part.len() + 1, next),
            (_, next) => return next.unwrap_or(Next::at(stop)),
        }
    }
}

/// `session=…` outside of a header, as in options of programs.
pub(super) fn session(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let range = token(line, word.end);
    let text = &line[range.clone()];
    // Where it has no capitals it is the name of a session.
    if value::is_random(text, 24) && text.iter().any(u8::is_ascii_uppercase) {
        let resume = range.end;
        found.push(Found::value(line, range, "cookie", "value of a cookie that identifies someone"));
        return Next::at(resume);
    }
    beyond(&word, &range)
}

/// `{"username": "…", "key": "…"}`
pub(super) fn account(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let before = &line[word.start.saturating_sub(MAX_AUTHORITY)..word.start];
    let range = unquoted(line, skip(line, word.end, b" "));
    if value::is_random(&line[range.clone()], 20) && memchr::memmem::find(before, b"\"username\"").is_some() {
        found.push(Found::value(line, range, "key", "key of an account"));
    }
    Next::at(word.end)
}

/// `jdbc:oracle:thin:user/password@host`, `sqlplus user/password@host`
pub(super) fn oracle(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let rest = &line[word.end..line.len().min(word.end + MAX_AUTHORITY)];
    if let Some(slash) = memchr::memchr2(b'/', b'@', rest).filter(|at| rest[*at] == b'/')
        && let Some(length) = memchr::memchr(b'@', &rest[slash + 1..])
    {
        let start = word.end + slash + 1;
        let range = start..start + length;
        if value::is_password(&line[range.clone()]) {
            found.push(Found::value(line, range, "url-password", "password in an address"));
        }
    }
    Next::at(word.end)
}

/// `IDENTIFIED BY 'password'`
pub(super) fn identified(line: &Line<'_>, word: Range<usize>, found: &mut Vec<Found>) -> Next {
    let rest = &line[word.end..];
    let by = rest.windows(4).take(64).position(|window| window.eq_ignore_ascii_case(b" by "));
    let start = by.map(|by| skip(line, word.end + by + 4, b" "));
    if let Some(start) = start.filter(|start| matches!(line.get(*start), Some(b'\'' | b'"')))
        && let Some(length) = memchr::memchr(line[start], &line[start + 1..])
    {
        let range = start + 1..start + 1 + length;
        if value::is_password(&line[range.clone()]) {
            found.push(Found::value(line, range, "password", "password of a database user"));
        }
    }
    Next::at(word.end)
}

/// `host:5432:database:user:password`, as in `.pgpass`.
pub(super) fn pgpass(line: &Line<'_>, mark: Range<usize>, found: &mut Vec<Found>) -> Next {
    let rest = &line[mark.end..];
    // The rest of a long line is no password, and a line of nothing but marks would cost its square.
    if rest.len() > MAX_AUTHORITY {
        return Next::at(mark.end);
    }
    let fields: Vec<_> = rest.trim_ascii_end().splitn(3, |byte| *byte == b':').collect();
    if let [database, user, password] = fields[..] {
        let is_name = |text: &[u8]| {
            !text.is_empty() && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"_-*.".contains(byte))
        };
        // What is behind another mark is looked at when that one is.
        let is_last = memchr::memmem::find(password, &line[mark.clone()]).is_none();
        let is_named = is_last && is_name(database) && is_name(user);
        if is_named && value::is_password(password) && !password.contains(&b' ') {
            let start = mark.end + database.len() + user.len() + 2;
            found.push(Found {
                range: start..start + password.len(),
                label: "password",
                why: "last field of a `.pgpass` line",
            });
        }
    }
    Next::at(mark.end)
}

fn is_basic_pair(text: &[u8]) -> bool {
    text.len() < 4096
        && !value::is_placeholder(text)
        && STANDARD.decode(text).is_ok_and(|pair| {
            let text = str::from_utf8(&pair).unwrap_or_default();
            text.split_once(':').is_some_and(|(_, password)| password.len() > 2)
                && !text.contains(char::is_control)
        })
}

/// Past all of these bytes.
pub(super) fn skip(line: &[u8], at: usize, bytes: &[u8]) -> usize {
    at + line[at.min(line.len())..].iter().take(48).take_while(|byte| bytes.contains(byte)).count()
}

/// Where to go on after a word that is followed by no secret: behind what follows, if that is long. A line of nothing but
/// such words would cost its square otherwise.
pub(super) fn beyond(word: &Range<usize>, token: &Range<usize>) -> Next {
    Next::at(if token.len() > LONG_TOKEN { token.end } else { word.end })
}

/// What tokens of headers and addresses are made of.
fn token(line: &[u8], at: usize) -> Range<usize> {
    static PART: ByteSet = ByteSet::new(b"-._~+/=%{}$<>()").and_alphanumeric();
    at..at + PART.run(&line[at.min(line.len())..line.len().min(at + MAX_TOKEN)])
}
