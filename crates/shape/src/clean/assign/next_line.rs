//! Finds values on a line after the one with their name.

use std::{ops::Range, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    FoundSecret, MAX_PHRASE, NAMED_BY_KEY, NameKind, PendingForm, PendingSecret, ScannedLine, SecretName,
    ValueQuoting, compiled, is_quote, value,
};

/// Minimum length of a line that follows a bare name.
const MIN_ALONE: usize = 10;

const NAMED_BEFORE: &str = "value of a name in a line before";

/// Checks a line whose secret the line before announced. On failure returns the state for the next
/// line.
pub(in crate::clean) fn find_pending(
    line: &ScannedLine<'_>,
    pending: PendingSecret,
) -> Result<FoundSecret, Option<PendingSecret>> {
    let range = match pending.form {
        PendingForm::Value => return announced(line, pending),
        PendingForm::Whole => {
            let range = inside(line, b" \t\r");
            let is_secret = value::is_secret(&line[range.clone()], ValueQuoting::Quoted, pending.kind);
            is_secret.then_some(range).ok_or(None)?
        }
        PendingForm::Element => {
            let range = element(line).ok_or(None)?;
            let is_secret = value::is_secret(&line[range.clone()], ValueQuoting::Quoted, pending.kind);
            is_secret.then_some(range).ok_or(None)?
        }
        PendingForm::Alone => {
            let range = inside(line, b" \t\r\"',");
            if range.is_empty() {
                return Err(pending.later());
            }
            let text = &line[range.clone()];
            let is_quoted = range.start > 0 && is_quote(line[range.start - 1]);
            let is_secret = is_quoted && value::is_secret(text, ValueQuoting::Quoted, pending.kind)
                || value::is_random(text, MIN_ALONE);
            is_secret.then_some(range).ok_or(None)?
        }
    };
    Ok(FoundSecret::value(line, range, pending.kind.label(), NAMED_BEFORE))
}

/// Returns the content of an element that fills the line.
fn element(line: &[u8]) -> Option<Range<usize>> {
    let range = inside(line, b" \t\r");
    let start = range.start + 1 + memchr::memchr(b'>', line[range.clone()].strip_prefix(b"<")?)? + 1;
    Some(start..start + memchr::memmem::find(line.get(start..range.end)?, b"</")?)
}

/// Strips these bytes from both ends of a line.
fn inside(line: &[u8], around: &[u8]) -> Range<usize> {
    let is_text = |byte: &u8| !around.contains(byte);
    let start = line.iter().position(is_text).unwrap_or(line.len());
    start..line.iter().rposition(is_text).map_or(start, |last| last + 1)
}

/// Returns the value of `value:` or `default =`.
fn announced(line: &ScannedLine<'_>, pending: PendingSecret) -> Result<FoundSecret, Option<PendingSecret>> {
    const BETWEEN: [&[u8]; 4] = [b"type", b"description", b"sensitive", b"nullable"];
    let start = line.iter().position(|byte| !b" \t\"'-,{".contains(byte)).ok_or(None)?;
    let word = line[start..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let name = start..start + word;
    if ![&b"value"[..], b"default"].iter().any(|each| line[name.clone()].eq_ignore_ascii_case(each)) {
        return Err(pending.later().filter(|_| BETWEEN.contains(&&line[name])));
    }
    let seen = SecretName { line, name, kind: pending.kind, why: NAMED_BEFORE };
    seen.value().ok_or_else(|| {
        seen.is_followed_by_block().then_some(PendingSecret::new(PendingForm::Whole, pending.kind))
    })
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
    /// Returns the secret that a later line may hold: the `value:` after `name: DB_PASSWORD`, on
    /// this line or the next, or the block after `password: |`.
    pub(super) fn pending(&self, found: &mut Vec<FoundSecret>) -> Option<PendingSecret> {
        let rest = self.line[self.name.end..].trim_ascii_end();
        let form = match rest {
            _ if rest.len() > MAX_PHRASE => None,
            b"</key>" => Some(PendingForm::Element),
            _ if BLOCK.is_match(rest) => Some(PendingForm::Whole),
            _ if NOTHING.is_match(rest) => Some(PendingForm::Alone),
            _ if self.kind == NameKind::Password && PROSE.is_match(rest) => Some(PendingForm::Alone),
            _ => None,
        };
        if let Some(form) = form {
            return Some(PendingSecret::new(form, self.kind));
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
        rest.iter()
            .all(|byte| b"\"', {:".contains(byte))
            .then(|| PendingSecret::new(PendingForm::Value, self.kind))
    }

    /// Returns true if the value is in the next lines.
    fn is_followed_by_block(&self) -> bool {
        BLOCK.is_match(self.line[self.name.end..].trim_ascii_end())
    }
}
