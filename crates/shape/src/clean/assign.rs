//! Finds values that follow the name of a secret: `NAME=value`, `"name": "value"`, `--name value`,
//! `<name>value</name>`, and similar notations.

mod next_line;
mod separator;

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

pub(super) use self::next_line::find_pending;
use self::separator::NameSeparator;
use super::{
    bytes::{ByteSet, compiled},
    found_secret::{FoundSecret, PendingForm, PendingSecret, ScanResume},
    line::ScannedLine,
    name::{self, NameKind},
    value::{self, ValueQuoting},
};

/// Maximum length of a name on either side of the matched word.
const MAX_NAME_SIDE: usize = 64;
/// Maximum length of a phrase between a name and its separator: `Password for 'bob': `.
const MAX_PHRASE: usize = 60;
/// Maximum length of a line that is searched for a separator or a type.
const MAX_NEAR: usize = 256;

const NAMED: &str = "value of a name that says it is a secret";

/// Checks the name around a word, and the value after it.
pub(super) fn find(line: &ScannedLine<'_>, word: Range<usize>, found: &mut Vec<FoundSecret>) -> ScanResume {
    let name = name_around(line, &word);
    let Some(kind) = name::kind(&line[with_qualifier(line, &name)]) else { return ScanResume::at(word.end) };
    find_named(line, name, kind, found)
}

/// Checks the value after a name that is certainly one of a secret.
pub(super) fn find_named(
    line: &ScannedLine<'_>,
    name: Range<usize>,
    kind: NameKind,
    found: &mut Vec<FoundSecret>,
) -> ScanResume {
    let end = name.end;
    let seen = SecretName { line, name, kind, why: NAMED };
    if let Some(secret) = seen.value() {
        let resume = secret.range.end;
        found.push(secret);
        return ScanResume::at(resume);
    }
    ScanResume { resume: end, pending: seen.pending(found) }
}

/// Checks the value after a name in another language, if the name is a whole word.
pub(super) fn find_label(
    line: &ScannedLine<'_>,
    word: Range<usize>,
    kind: NameKind,
    found: &mut Vec<FoundSecret>,
) -> Option<ScanResume> {
    let is_part =
        |at: Option<usize>| at.is_some_and(|at| line.get(at).is_some_and(u8::is_ascii_alphanumeric));
    let is_whole = !is_part(word.start.checked_sub(1)) && !is_part(Some(word.end));
    is_whole.then(|| find_named(line, word, kind, found))
}

fn name_around(line: &[u8], word: &Range<usize>) -> Range<usize> {
    static NAME: ByteSet = ByteSet::new(b"_-.").and_alphanumeric();
    let Range { mut start, mut end } = NAME.expand(line, word, MAX_NAME_SIDE);
    // `\n` in a JSON string is not part of the name after it.
    let is_escaped = start > 0 && line[start - 1] == b'\\' && b"nrt".contains(&line[start]);
    start += usize::from(is_escaped && start < word.start);
    let is_joint = |byte: &&u8| matches!(byte, b'-' | b'.');
    start += line[start..word.start].iter().take_while(is_joint).count();
    end -= line[word.end..end].iter().rev().take_while(is_joint).count();
    start..end
}

/// Includes the qualifier before a lone `key`, as in `API key`.
fn with_qualifier(line: &[u8], name: &Range<usize>) -> Range<usize> {
    let Some(words) = line[..name.start].strip_suffix(b" ") else { return name.clone() };
    if !line[name.clone()].eq_ignore_ascii_case(b"key") {
        return name.clone();
    }
    let word = words.iter().rev().take(MAX_NAME_SIDE).take_while(|byte| byte.is_ascii_alphabetic()).count();
    words.len() - word..name.end
}

/// The name of a secret in a line.
struct SecretName<'a> {
    line: &'a ScannedLine<'a>,
    name: Range<usize>,
    kind: NameKind,
    /// The reason for redacting its value.
    why: &'static str,
}

/// Matches blanks, terminal colours, a YAML tag, and a PHP type before a value.
static LEAD: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^[ \t]{0,40}(?:\x1b\[[\d;]*m?)*(?:string\([^)]{0,24}\) |!![^ ]{0,40} +)?"));
/// Matches a value wrapped in one call: `[]byte("value")`, `SecretStr('value')`.
static WRAPPED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"^[\w.:\[\]&!]{0,60}\((?:"(?<d>[^"]*)"|'(?<s>[^']*)')"#));
/// Matches a type after the name: `: string = "value"`, ` string = "value"`.
static TYPED: LazyLock<Regex> = LazyLock::new(|| {
    compiled(r#"^[[:alnum:] <>\[\]&'?|_:.]{0,59}=[ \t]{0,40}(?:"(?<d>[^"]*)"|'(?<s>[^']*)')"#)
});
/// Matches a declaration, in which a type follows: `pub const API_KEY: KeyType`.
static DECLARED: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"\b(?:pub|const|static|let|mut|var|val|readonly|trait) $"));
/// Matches the text before a name that is the value of `name` or `key`.
static NAMED_BY_KEY: LazyLock<Regex> =
    LazyLock::new(|| compiled(r#"(?i)(?:^|[^a-z])(?:name|key|parametername|variable)[ \t"'=:>\\]+$"#));
/// Matches the text before a name that is an XML element.
static TAG: LazyLock<Regex> = LazyLock::new(|| compiled("<[[:alnum:]:]*$"));
/// Matches an owner that logs in with a hexadecimal token or secret. Without it such a value may be
/// a hash.
static OWNER: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"(?i)(?:auth|access|api|app|client|bearer|refresh|personal)\s*$"));

impl SecretName<'_> {
    fn byte(&self, at: usize) -> u8 {
        self.line.get(at).copied().unwrap_or(0)
    }

    fn text(&self) -> &[u8] {
        &self.line[self.name.clone()]
    }

    /// Returns the byte before the name and its quotes.
    fn before(&self) -> u8 {
        self.name.start.checked_sub(1).map_or(0, |at| self.line[at])
    }

    /// Returns true if a pattern matches the text before the name.
    fn follows(&self, pattern: &Regex) -> bool {
        pattern.is_match(&self.line[self.name.start.saturating_sub(MAX_NEAR)..self.name.start])
    }

    /// Returns the line from `at`, up to [`MAX_NEAR`] bytes.
    fn near(&self, at: usize) -> &[u8] {
        let rest = self.line.get(at..).unwrap_or_default();
        &rest[..rest.len().min(MAX_NEAR)]
    }

    /// Returns the quoted text that a pattern matches at `at`.
    fn quoted_by(&self, pattern: &Regex, at: usize) -> Option<Range<usize>> {
        let found = pattern.captures(self.near(at))?;
        let inside = found.name("d").or_else(|| found.name("s"))?;
        Some(at + inside.start()..at + inside.end())
    }

    /// Returns the value, if it is a secret.
    fn value(&self) -> Option<FoundSecret> {
        let (separator, at) = self.separator()?;
        // `/etc/passwd` is a file name, and `--- PASS: TestIt` reports a passed test.
        if self.before() == b'/' && !matches!(separator, NameSeparator::Assignment | NameSeparator::Tag)
            || self.line[..self.name.end].ends_with(b"--- PASS")
        {
            return None;
        }
        // Most values begin immediately.
        let is_led = matches!(self.byte(at), b' ' | b'\t' | b'\x1b' | b's' | b'!');
        let lead = is_led.then(|| LEAD.find(self.near(at))).flatten();
        let at = at + lead.map_or(0, |lead| lead.end());
        let (range, written) = self.token(at, separator);
        let (text, label, why) = (&self.line[range.clone()], self.kind.label(), self.why);
        if let Some(key) = FoundSecret::key(self.line, &range) {
            return Some(key);
        }
        let is_passphrase = || {
            let is_named = name::ends_with(self.text(), b"passphrase");
            written == ValueQuoting::Quoted && is_named && value::is_passphrase(text)
        };
        if self.accepts(separator, text, written, self.byte(range.end)) || is_passphrase() {
            return Some(FoundSecret { range, label, why });
        }
        let range = match separator {
            NameSeparator::Assignment => {
                let wrapped = self.quoted_by(&WRAPPED, at);
                wrapped
                    .filter(|range| value::is_random(&self.line[range.clone()], 12))
                    .or_else(|| self.after_type(range.end))
            }
            NameSeparator::Column => self.after_type(range.start),
            _ => None,
        };
        range.map(|range| FoundSecret::value(self.line, range, label, why))
    }

    /// Returns true if a text is a secret, given the separator before it and the byte after it.
    fn accepts(&self, separator: NameSeparator, text: &[u8], written: ValueQuoting, next: u8) -> bool {
        let kind = self.kind;
        match separator {
            NameSeparator::Assignment
                if written == ValueQuoting::Bare
                    && self.byte(self.name.end) == b':'
                    && self.follows(&DECLARED) =>
            {
                false
            }
            NameSeparator::Assignment | NameSeparator::Tag | NameSeparator::Flag => {
                value::is_secret(text, written, kind)
            }
            NameSeparator::Encoded => value::is_secret(text, ValueQuoting::Quoted, kind),
            // A name in a list of quoted names is not a value.
            NameSeparator::Quotes => {
                value::is_secret(text, written, kind) && text.len() >= 7 && !value::is_camel_case(text)
            }
            // Prose also mentions tokens and keys of other kinds.
            NameSeparator::Phrase => {
                let is_password = kind == NameKind::Password && text.len() >= 7;
                value::is_secret(text, written, kind) && (is_password || value::is_random(text, 12))
            }
            NameSeparator::Plain => value::is_password(text),
            // A word before a colon is a name, and a word after a dash is an option.
            NameSeparator::Column => {
                next != b':' && !text.starts_with(b"-") && self.accepts_alone(text, written)
            }
        }
    }

    /// Returns true if a text after mere space is a secret. Hashes have no capitals.
    fn accepts_alone(&self, text: &[u8], written: ValueQuoting) -> bool {
        let has_both_cases =
            text.iter().any(u8::is_ascii_uppercase) && text.iter().any(u8::is_ascii_lowercase);
        let has_digits = text.iter().any(u8::is_ascii_digit);
        let is_word = self.text().eq_ignore_ascii_case(b"password");
        let is_hex_key = self.kind == NameKind::Key && text.len() >= 64 || self.is_to_log_in_with(text);
        let is_password = || self.kind == NameKind::Password && value::is_secret(text, written, self.kind);
        (has_both_cases && has_digits || is_hex_key) && value::is_random(text, if is_word { 8 } else { 12 })
            || has_both_cases
                && text.len() >= 12
                && is_password()
                && (has_digits || value::is_unlike_words(text))
    }

    /// Returns true for `auth token …`, `app secret …`, and the `secret_id …` of a table.
    fn is_to_log_in_with(&self, text: &[u8]) -> bool {
        let name = self.text();
        let is_whole = name.eq_ignore_ascii_case(b"token") || name.eq_ignore_ascii_case(b"secret");
        text.len() >= 32 && (is_whole && self.follows(&OWNER) || name::ends_with(name, b"id"))
    }

    /// Parses `const apiKey: string = "value"` and `var apiKey string = "value"`.
    fn after_type(&self, at: usize) -> Option<Range<usize>> {
        let range = self.quoted_by(&TYPED, at)?;
        value::is_secret(&self.line[range.clone()], ValueQuoting::Quoted, self.kind).then_some(range)
    }

    /// Returns the value at `at`: the text between quotes, or up to a delimiter.
    fn token(&self, at: usize, separator: NameSeparator) -> (Range<usize>, ValueQuoting) {
        static MARKS: ByteSet = ByteSet::new(b"frbuFRBULN@");
        static ENDS: ByteSet = ByteSet::new(b"\"'` \t\n\r\x0c");
        let rest = self.line.get(at..).unwrap_or_default();
        // Read more than the maximum, so that a longer value is rejected.
        let rest = &rest[..rest.len().min(value::MAX_BYTES + 8)];
        if separator == NameSeparator::Tag {
            // `<user>:<password>@host` is not an element.
            let end = memchr::memchr(b'<', rest).filter(|end| rest[*end..].starts_with(b"</")).unwrap_or(0);
            return (at..at + end, ValueQuoting::Quoted);
        }
        let marks = MARKS.run(&rest[..rest.len().min(2)]);
        let slashes = rest[marks..].iter().take_while(|byte| **byte == b'\\').count();
        if let Some(quote) = rest.get(marks + slashes).filter(|byte| is_quote(**byte)) {
            let range = quoted(rest, marks + slashes, slashes, *quote, at);
            // `NAME=value` in prose about names. Base64 has `=` only at its end.
            let is_set = |pair: &[u8]| pair[0] == b'=' && pair[1] != b'=';
            let is_code = *quote == b'`' && self.line[range.clone()].windows(2).any(is_set);
            return (if is_code { at..at } else { range }, ValueQuoting::Quoted);
        }
        if separator == NameSeparator::Quotes {
            return (at..at, ValueQuoting::Quoted);
        }
        if separator == NameSeparator::Encoded {
            let end = rest.iter().position(|byte| !byte.is_ascii_alphanumeric() && !b"_-.~!*".contains(byte));
            return (at..at + end.unwrap_or(rest.len()), ValueQuoting::Quoted);
        }
        // In a language without spaces the text continues after a value.
        let is_ascii = self.line[self.name.clone()].is_ascii();
        let ends = if is_ascii { None } else { rest.iter().position(|byte| !byte.is_ascii()) };
        let rest = &rest[..ends.unwrap_or(rest.len())];
        if separator == NameSeparator::Assignment && self.is_environment() {
            let range = at..at + ENDS.until(rest);
            let text = &self.line[range.clone()];
            let has = |byte| memchr::memchr(byte, text).is_some();
            let is_call = memchr::memchr2(b'(', b'[', text).is_some() && (has(b')') || has(b'['));
            return (range, if is_call { ValueQuoting::Bare } else { ValueQuoting::Environment });
        }
        let text = self.line.value(at);
        (at..at + bare(&text[..text.len().min(rest.len())]), ValueQuoting::Bare)
    }

    /// Returns true if the name starts a line such as `NAME=value` or `export NAME=value`, without
    /// spaces around `=`.
    fn is_environment(&self) -> bool {
        let is_start = || {
            let before = self.line[..self.name.start].trim_ascii();
            before.is_empty() || [&b"export"[..], b"set", b"ENV", b"setx"].contains(&before)
        };
        self.byte(self.name.end) == b'=' && is_start() && !self.text().iter().any(u8::is_ascii_lowercase)
    }
}

/// Returns the range between an opening quote and the closing one with the same escaping.
fn quoted(rest: &[u8], open: usize, slashes: usize, quote: u8, at: usize) -> Range<usize> {
    let start = open + 1;
    let mut end = start;
    while let Some(length) = memchr::memchr2(quote, b'\\', rest.get(end..).unwrap_or_default()) {
        end += length;
        let escapes = rest[end..].iter().take_while(|byte| **byte == b'\\').count();
        if escapes <= slashes && rest.get(end + escapes) == Some(&quote) {
            return at + start..at + end;
        }
        end += escapes + 1;
    }
    at + start..at + rest.len().max(start)
}

/// Returns the length of an unquoted value. Brackets and full stops at its end belong to the
/// surrounding text. A value that is too long stays too long.
fn bare(text: &[u8]) -> usize {
    // A closing bracket belongs to the value if the value also opens one.
    let has_open = || text.iter().any(|byte| b"([{".contains(byte));
    let is_around = |byte: &u8| matches!(byte, b')' | b']' | b'}' | b'.' | b':');
    if text.len() > value::MAX_BYTES || !text.last().is_some_and(is_around) || has_open() {
        return text.len();
    }
    text.iter().rposition(|byte| !is_around(byte)).map_or(0, |last| last + 1)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}
