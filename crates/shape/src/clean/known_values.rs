//! Finds secrets by their value, also in base64, percent-encoding and JSON strings.

use std::ops::Range;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::{Engine, engine::general_purpose};
use windlass_contract::secret_names::is_secret_name;

use super::{
    bytes::ByteSet,
    name::{self, NameKind},
    value::{self, ValueQuoting},
};

/// Minimum length of a value. Shorter ones would redact ordinary words.
const MIN_BYTES: usize = 8;
/// Maximum length of a searched piece of a value, so that the longest fits into one window.
const MAX_PIECE_BYTES: usize = 1024;
/// Minimum length of a searched line of a multi-line value.
const MIN_LINE_BYTES: usize = 16;
/// Minimum length of a base64 value without the characters that depend on its neighbours.
const MIN_BASE64_BYTES: usize = 11;
/// Minimum length of a value of several words.
const MIN_PASSPHRASE_BYTES: usize = 12;
/// Maximum number of values; no configuration has more.
const MAX_VALUES: usize = 1000;

/// Length of the base64 pieces that are searched for. Programs wrap base64, and both parts of a
/// wrapped value must be found.
const WRAPPED_BYTES: usize = 16;
/// Distance between the starts of two pieces.
const WRAPPED_STEP: usize = 8;
/// Maximum length of the text around a piece that belongs to it.
const MAX_WRAPPED_SIDE: usize = 128;

/// Known values to redact.
#[derive(Debug, Default)]
pub(super) struct KnownValues {
    values: Vec<KnownValue>,
    search: Option<AhoCorasick>,
    /// The value of each search pattern.
    owners: Vec<ValuePattern>,
}

#[derive(Debug)]
struct ValuePattern {
    value: usize,
    /// True if the pattern is a piece of a base64 value, whose rest may be around it.
    is_piece: bool,
}

#[derive(Debug)]
struct KnownValue {
    name: String,
    text: Vec<u8>,
}

impl KnownValues {
    /// Selects the values that can be searched for without redacting ordinary words.
    pub(super) fn new(values: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut known = Self::default();
        let mut needles = Vec::new();
        for (name, text) in values.into_iter().take(MAX_VALUES) {
            let text = password_in(&text).unwrap_or(text);
            if !is_usable(&text) && !is_passphrase(&name, &text) {
                continue;
            }
            for needle in forms(&text) {
                needles.push(needle);
                known.owners.push(ValuePattern { value: known.values.len(), is_piece: false });
            }
            for piece in wrapped_forms(&text) {
                needles.push(piece);
                known.owners.push(ValuePattern { value: known.values.len(), is_piece: true });
            }
            known.values.push(KnownValue { name, text: text.into_bytes() });
        }
        if !needles.is_empty() {
            known.search = AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(&needles).ok();
        }
        known
    }

    /// Returns the ranges of known values in a text, with their indices.
    pub(super) fn find<'a>(&'a self, text: &'a [u8]) -> impl Iterator<Item = (Range<usize>, usize)> + 'a {
        let matches = self.search.iter().flat_map(move |search| search.find_iter(text));
        matches.map(|found| {
            let owner = &self.owners[found.pattern().as_usize()];
            let range = if owner.is_piece { in_base64(text, found.range()) } else { found.range() };
            (range, owner.value)
        })
    }

    pub(super) fn name(&self, value: usize) -> &str {
        &self.values[value].name
    }

    pub(super) fn text(&self, value: usize) -> &[u8] {
        &self.values[value].text
    }
}

/// Returns true if a variable is a credential: its name says so, or its value has the format of
/// one.
pub(super) fn is_credential(name: &str, text: &str) -> bool {
    let is_named = is_secret_name(name) || name::kind(name.as_bytes()).is_some();
    is_named || password_in(text).is_some() || super::rules::key_rule(text.as_bytes()).is_some()
}

fn is_usable(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_key =
        super::rules::key_at(bytes).is_some() || memchr::memmem::find(bytes, b"PRIVATE KEY-----").is_some();
    bytes.len() >= MIN_BYTES
        && (is_key || value::is_secret(bytes, ValueQuoting::Environment, NameKind::Password))
}

/// Returns true for several words or lines in a variable whose name says that it is a secret.
fn is_passphrase(name: &str, text: &str) -> bool {
    let text = text.trim();
    text.len() >= MIN_PASSPHRASE_BYTES && text.contains(char::is_whitespace) && is_secret_name(name)
}

/// Returns the password of a URL such as `postgres://user:password@host/`.
fn password_in(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (user, _) = authority.rsplit_once('@')?;
    let (_, password) = user.split_once(':')?;
    Some(password.to_owned())
}

/// Returns the encodings in which a value may appear.
fn forms(value: &str) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    if value.trim().contains('\n') && value.len() <= MAX_PIECE_BYTES {
        forms.push(json(value.trim()).into_bytes());
    }
    let lines = value.lines().map(str::trim).filter(|line| !line.starts_with("-----"));
    let least = if value.contains('\n') { MIN_LINE_BYTES } else { MIN_BYTES };
    for line in lines.filter(|line| line.len() >= least) {
        for piece in line.as_bytes().chunks(MAX_PIECE_BYTES).filter(|piece| piece.len() >= MIN_BYTES) {
            forms.push(piece.to_vec());
            forms.extend(base64_forms(piece));
        }
        if line.len() <= MAX_PIECE_BYTES {
            forms.extend(
                [
                    percent(line, true),
                    percent(line, false),
                    percent(line, true).replace("%20", "+"),
                    json(line),
                ]
                .map(String::into_bytes),
            );
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

/// Returns the value in base64 at each of the three alignments, without the end characters that
/// hold bits of neighbours.
fn base64_forms(piece: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3_usize {
        let mut padded = vec![0; before];
        padded.extend_from_slice(piece);
        let first = (before * 8).div_ceil(6);
        let last = padded.len() * 8 / 6;
        for engine in [general_purpose::STANDARD_NO_PAD, general_purpose::URL_SAFE_NO_PAD] {
            let encoded = engine.encode(&padded).into_bytes();
            if last > first + MIN_BASE64_BYTES {
                forms.push(encoded[first..last].to_vec());
            }
        }
    }
    forms
}

/// Returns pieces of the base64 value, such that one stays whole on each side of a line end.
fn wrapped_forms(value: &str) -> Vec<Vec<u8>> {
    let is_short = !value.contains('\n') && value.len() <= MAX_PIECE_BYTES;
    let forms = if is_short { base64_forms(value.as_bytes()) } else { Vec::new() };
    let mut pieces: Vec<_> = forms
        .iter()
        .flat_map(|form| form.windows(WRAPPED_BYTES).step_by(WRAPPED_STEP).map(<[u8]>::to_vec))
        .collect();
    pieces.sort();
    pieces.dedup();
    pieces
}

/// Expands a piece to the base64 around it.
fn in_base64(text: &[u8], piece: Range<usize>) -> Range<usize> {
    static BASE64: ByteSet = ByteSet::new(b"+/-_").and_alphanumeric();
    BASE64.expand(text, &piece, MAX_WRAPPED_SIDE)
}

fn percent(text: &str, capitals: bool) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        byte if capitals => format!("%{byte:02X}"),
        byte => format!("%{byte:02x}"),
    };
    text.bytes().map(encode).collect()
}

fn json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides(value: &str, text: &str) -> bool {
        KnownValues::new([("NAME".to_owned(), value.to_owned())]).find(text.as_bytes()).next().is_some()
    }

    #[test]
    fn a_value_is_found_in_every_encoding() {
        let value = "pl\"um/tree 42".replace(' ', "+");
        for prefix in ["", "a", "ab"] {
            let encoded = general_purpose::STANDARD.encode(format!("{prefix}{value}zz"));
            assert!(hides(&value, &encoded), "{prefix}");
        }
        assert!(hides(&value, "x=pl%22um%2Ftree%2B42&y"));
        assert!(hides(&value, r#"{"x": "pl\"um/tree+42"}"#));
    }

    #[test]
    fn a_value_in_base64_is_found_on_both_sides_of_a_line_end() {
        let value = "q8Zk2mPv0Lr7Tb4Xc9Wd1Ye6Uf3Ig5Oh8Jn2Ks7A";
        for before in 20..100 {
            let encoded = general_purpose::STANDARD.encode(format!("{}{value} and more", "x".repeat(before)));
            let wrapped: Vec<_> =
                encoded.as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line)).collect();
            let wrapped = wrapped.join("\n");
            let known = KnownValues::new([("NAME".to_owned(), value.to_owned())]);
            let found: usize = known.find(wrapped.as_bytes()).map(|(range, _)| range.len()).sum();
            // The part that is not found must be too short to guess the value from it.
            assert!(found + 24 >= value.len() * 4 / 3, "{before}: {found}");
        }
    }

    #[test]
    fn ordinary_words_are_not_searched_for() {
        for value in ["true", "production", "localhost", "development", "/usr/local/bin", "8080", "changeme"]
        {
            assert!(!hides(value, value), "{value}");
        }
    }

    #[test]
    fn of_an_address_only_the_password_is_searched_for() {
        let known = KnownValues::new([("URL".to_owned(), "postgres://app:q8Zk2mPv0Lr7@db/x".to_owned())]);
        let found: Vec<_> = known.find(b"db q8Zk2mPv0Lr7").collect();
        assert_eq!(found, [(3..15, 0)]);
    }
}
