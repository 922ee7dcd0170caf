//! Values that stand in a line after the one with their name.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    Form, Found, Line, MAX_PHRASE, NAMED_BY_KEY, NameKind, Pending, SecretName, Written, compiled, is_quote,
    value,
};

/// How long a line must be that follows a name and nothing else.
const MIN_ALONE: usize = 10;

const NAMED_BEFORE: &str = "value of a name in a line before";

/// Looks at a line whose secret was announced by the one before. It may be in the next one still.
pub(in crate::clean) fn find_pending(line: &Line<'_>, pending: Pending) -> Result<Found, Option<Pending>> {
    let range = match pending.form {
        Form::Value => return announced(line, pending),
        Form::Whole => {
            let range = inside(line, b" \t\r");
            let is_secret = value::is_secret(&line[range.clone()], Written::Quoted, pending.kind);
            is_secret.then_some(range).ok_or(None)?
        }
        Form::Element => {
            let range = element(line).ok_or(None)?;
            let is_secret = value::is_secret(&line[range.clone()], Written::Quoted, pending.kind);
            is_secret.then_some(range).ok_or(None)?
        }
        Form::Alone => {
            let range = inside(line, b" \t\r\"',");
            if range.is_empty() {
                return Err(pending.later());
            }
            let text = &line[range.clone()];
            let is_quoted = range.start > 0 && is_quote(line[range.start - 1]);
            let is_secret = is_quoted && value::is_secret(text, Written::Quoted, pending.kind)
                || value::is_random(text, MIN_ALONE);
            is_secret.then_some(range).ok_or(None)?
        }
    };
    Ok(Found::value(line, range, pending.kind.label(), NAMED_BEFORE))
}

/// What is inside of the element that a line is.
fn element(line: &[u8]) -> Option<Range<usize>> {
    let range = inside(line, b" \t\r");
    let start = range.start + 1 + memchr::memchr(b'>', line[range.clone()].strip_prefix(b"<")?)? + 1;
    Some(start..start + memchr::memmem::find(line.get(start..range.end)?, b"</")?)
}

/// A line without these bytes at its ends.
fn inside(line: &[u8], around: &[u8]) -> Range<usize> {
    let is_text = |byte: &u8| !around.contains(byte);
    let start = line.iter().position(is_text).unwrap_or(line.len());
    start..line.iter().rposition(is_text).map_or(start, |last| last + 1)
}

/// The value of `value:` or `default =`.
fn announced(line: &Line<'_>, pending: Pending) -> Result<Found, Option<Pending>> {
    const BETWEEN: [&[u8]; 4] = [b"type", b"description", b"sensitive", b"nullable"];
    let start = line.iter().position(|byte| !b" \t\"'-,{".contains(byte)).ok_or(None)?;
    let word = line[start..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = start..start + word;
    if ![&b"value"[..], b"default"].iter().any(|each| line[name.clone()].eq_ignore_ascii_case(each)) {
        return Err(pending.later().filter(|_| BETWEEN.contains(&&line[name])));
    }
    let seen = SecretName { line, name, kind: pending.kind, why: NAMED_BEFORE };
    seen.value().ok_or_else(|| seen.is_followed_by_block().then_some(Pending::new(Form::Whole, pending.kind)))
}

/// `name: |`, with the value in the next lines.
static BLOCK: LazyLock<Regex> = LazyLock::new(|| compiled(r"^: [|>][-+]?$"));
/// `name:`, `name=\`, `"name":`
static NOTHING: LazyLock<Regex> = LazyLock::new(|| compiled(r#"^["']?(?::|=|=\\|: \\| =| = \\)$"#));
/// `use the following password to go on:`
static PROSE: LazyLock<Regex> = LazyLock::new(|| compiled(r#"^["']? [A-Za-z ]{0,58}:$"#));
/// `"password": {"sensitive": true, "value": …`
static OBJECT: LazyLock<Regex> = LazyLock::new(|| compiled(r#"^":\s*\{"#));

impl SecretName<'_> {
    /// Returns what a later line may hold: `name: DB_PASSWORD` with its `value:` behind it or in the next line;
    /// `password: |` with the value there.
    pub(super) fn pending(&self, found: &mut Vec<Found>) -> Option<Pending> {
        let rest = self.line[self.name.end..].trim_ascii_end();
        let form = match rest {
            _ if rest.len() > MAX_PHRASE => None,
            b"</key>" => Some(Form::Element),
            _ if BLOCK.is_match(rest) => Some(Form::Whole),
            _ if NOTHING.is_match(rest) => Some(Form::Alone),
            _ if self.kind == NameKind::Password && PROSE.is_match(rest) => Some(Form::Alone),
            _ => None,
        };
        if let Some(form) = form {
            return Some(Pending::new(form, self.kind));
        }
        if !OBJECT.is_match(rest) && !self.follows(&NAMED_BY_KEY) {
            return None;
        }
        let is_value = |window: &[u8]| window.eq_ignore_ascii_case(b"value");
        if let Some(at) = rest.windows(5).take(MAX_PHRASE).position(is_value) {
            let start = self.name.end + at;
            found.extend(SecretName { name: start..start + 5, ..*self }.value());
            return None;
        }
        rest.iter().all(|byte| b"\"', {:".contains(byte)).then(|| Pending::new(Form::Value, self.kind))
    }

    /// Returns whether the value is in the next lines.
    fn is_followed_by_block(&self) -> bool {
        BLOCK.is_match(self.line[self.name.end..].trim_ascii_end())
    }
}
