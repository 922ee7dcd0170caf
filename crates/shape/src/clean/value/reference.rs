//! Recognizes values that are not literal: code that computes them, and references to something
//! else.

use std::sync::LazyLock;

use regex::bytes::Regex;

use super::{tally::ByteTally, wordy::is_wordy};
use crate::clean::bytes::compiled;

/// Matches calls, indices, types and operators. `==` at the end is base64 padding.
static CODE: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^[&*@$!%^|.?]|[()\[\]{}<>`]|::|->|\?\.|==(?:.?[^=]|=.)"));

/// Prefixes of hashes, URLs and places in other stores.
static ELSEWHERE: LazyLock<Regex> = LazyLock::new(|| {
    compiled(
        r"^(?:!vault|\$(?:2[aby]\$|argon2|[156]\$|apr1\$)|0x[[:xdigit:]]*$|ENC\[|MD5:|SHA256:|arn:|awskms|data:|env:|file:|gs://|https?://|kms:|keyring:|md5:|op://|projects/|pbkdf2|ref\+|sha(?:1|256|512):|sha(?:1|256|384|512)-|secretsmanager:|ssh-(?:rsa|ed25519)|s3://|ssm:|urn:|uuid:|vault:|\{(?:SSHA|crypt)\})",
    )
});

/// Prefixes of rooted paths.
static ROOTED: LazyLock<Regex> = LazyLock::new(|| compiled(r"^(?:/|\.{1,2}/|~/|\\\\|.:[\\/].)"));

/// Matches the end of a fingerprint, a PGP key id.
static KEY_ID: LazyLock<Regex> = LazyLock::new(|| compiled(r"^[0-9A-F]{16}(?:[0-9A-F]{24})?$"));

/// Returns true if this is code rather than text: a call, an index, a path of names, a type.
pub(super) fn is_expression(value: &[u8], tally: ByteTally) -> bool {
    tally.joints + tally.symbols > 0 && (CODE.is_match(value) || is_path_of_names(value))
}

/// Returns true for `var.db_password`, `process.env.API_KEY`, `settings.SECRET_KEY2`.
fn is_path_of_names(value: &[u8]) -> bool {
    value.contains(&b'.')
        && value.split(|byte| *byte == b'.').all(|part| {
            part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') && is_wordy(part)
        })
}

/// Returns true if this refers to something else: a URL, a path, a version, a time, a number, a
/// hash.
pub(super) fn is_reference(value: &[u8], tally: ByteTally) -> bool {
    // `1.2.3`, `v2.0-rc1`, `2026-01-02T03:04:05Z`, `10.0.0.1:80`, `30s`, `15min`.
    let is_version_or_time = || {
        let starts = value.strip_prefix(b"v").unwrap_or(value).first().is_some_and(u8::is_ascii_digit);
        starts && tally.joints > 0 && tally.letters() <= 4 && tally.symbols == 0
    };
    matches!(value.len(), 16 | 40) && KEY_ID.is_match(value)
        || value.starts_with(b"0x") && ELSEWHERE.is_match(value)
        || tally.joints + tally.symbols > 0
            && (tally.letters() == 0 && tally.joints > 0
                || ELSEWHERE.is_match(value)
                || is_path(value)
                || is_version_or_time())
}

fn is_path(value: &[u8]) -> bool {
    let is_file = |part: &[u8]| {
        part.iter().rposition(|byte| *byte == b'.').is_some_and(|dot| {
            let extension = &part[dot + 1..];
            (1..=5).contains(&extension.len())
                && extension.iter().all(u8::is_ascii_lowercase)
                && is_wordy(&part[..dot])
        })
    };
    let (mut all, mut wordy) = (0, 0);
    for part in value.split(|byte| b"/\\".contains(byte)).filter(|part| !part.is_empty()) {
        all += 1;
        wordy += usize::from(is_wordy(part) || is_file(part));
    }
    wordy > 0 && wordy * 2 >= all && ROOTED.is_match(value)
        || all > 1 && wordy == all
        || value.len() < 40 && is_file(value)
}
