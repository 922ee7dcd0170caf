//! Values that are not there: code that makes them, and names of what is elsewhere.

use super::{
    tally::{BRACKET, DOT, OPERATOR, SLASH, Tally},
    wordy::is_wordy,
};

/// Whether this is code rather than text: a call, an index, a path of names, a type.
pub(super) fn is_expression(value: &[u8], tally: Tally) -> bool {
    // `==` at the end fills up base64.
    let unpadded = value.strip_suffix(b"==").unwrap_or(value);
    let has_operator = || unpadded.windows(2).any(|pair| matches!(pair, b"::" | b"->" | b"?." | b"=="));
    let starts_as_code =
        matches!(value.first(), Some(b'&' | b'*' | b'@' | b'$' | b'!' | b'%' | b'^' | b'|' | b'.' | b'?'));
    starts_as_code
        || tally.flags & BRACKET != 0
        || tally.flags & OPERATOR != 0 && has_operator()
        || tally.flags & DOT != 0 && is_path_of_names(value)
}

/// `var.db_password`, `process.env.API_KEY`, `settings.SECRET_KEY2`.
fn is_path_of_names(value: &[u8]) -> bool {
    value.split(|byte| *byte == b'.').all(|part| {
        part.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') && is_wordy(part)
    })
}

/// Whether this names something that is elsewhere: an address, a path, a version, a time, a number, a hash.
pub(super) fn is_reference(value: &[u8], tally: Tally) -> bool {
    if is_key_id(value) {
        return true;
    }
    if tally.joints + tally.symbols == 0 && !value.starts_with(b"0x") {
        return false;
    }
    let has_letters = tally.lower + tally.upper > 0;
    has_prefix(value)
        || !has_letters && tally.joints > 0
        || tally.flags & (SLASH | DOT) != 0 && is_path(value)
        || is_version_or_time(value, tally)
}

/// The end of a fingerprint, as PGP names keys.
fn is_key_id(value: &[u8]) -> bool {
    matches!(value.len(), 16 | 40) && value.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'A'..=b'F'))
}

/// Whether this begins as hashes, addresses and places of other stores do.
fn has_prefix(value: &[u8]) -> bool {
    let Some((first, rest)) = value.split_first() else { return false };
    let prefixes: &[&[u8]] = match first {
        b'!' => &[&b"vault"[..]],
        b'$' => &[&b"2a$"[..], b"2b$", b"2y$", b"argon2", b"6$", b"5$", b"1$", b"apr1$"],
        b'0' => {
            return rest.strip_prefix(b"x").is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        }
        b'E' => &[&b"NC["[..]],
        b'M' => &[&b"D5:"[..]],
        b'S' => &[&b"HA256:"[..]],
        b'a' => &[&b"rn:"[..], b"wskms"],
        b'd' => &[&b"ata:"[..]],
        b'e' => &[&b"nv:"[..]],
        b'f' => &[&b"ile:"[..]],
        b'g' => &[&b"s://"[..]],
        b'h' => &[&b"ttp://"[..], b"ttps://"],
        b'k' => &[&b"ms:"[..], b"eyring:"],
        b'm' => &[&b"d5:"[..]],
        b'o' => &[&b"p://"[..]],
        b'p' => &[&b"rojects/"[..], b"bkdf2"],
        b'r' => &[&b"ef+"[..]],
        b's' => &[
            &b"ha1:"[..],
            b"ha256:",
            b"ha512:",
            b"ha1-",
            b"ha256-",
            b"ha384-",
            b"ha512-",
            b"ecretsmanager:",
            b"sh-rsa",
            b"sh-ed25519",
            b"3://",
            b"sm:",
        ],
        b'u' => &[&b"rn:"[..], b"uid:"],
        b'v' => &[&b"ault:"[..]],
        b'{' => &[&b"SSHA}"[..], b"crypt}"],
        _ => return false,
    };
    prefixes.iter().any(|prefix| rest.starts_with(prefix))
}

fn is_path(value: &[u8]) -> bool {
    let rooted = [&b"/"[..], b"./", b"../", b"~/", b"\\\\"].iter().any(|start| value.starts_with(start))
        || value.len() > 3 && value[1] == b':' && b"\\/".contains(&value[2]);
    let parts = || value.split(|byte| b"/\\".contains(byte)).filter(|part| !part.is_empty());
    let is_file = |part: &[u8]| {
        part.iter().rposition(|byte| *byte == b'.').is_some_and(|dot| {
            let extension = &part[dot + 1..];
            (1..=5).contains(&extension.len())
                && extension.iter().all(u8::is_ascii_lowercase)
                && is_wordy(&part[..dot])
        })
    };
    let wordy = parts().filter(|part| is_wordy(part) || is_file(part)).count();
    let all = parts().count();
    rooted && wordy * 2 >= all && wordy > 0 || all > 1 && wordy == all || value.len() < 40 && is_file(value)
}

/// `1.2.3`, `v2.0-rc1`, `2026-01-02T03:04:05Z`, `10.0.0.1:80`, `30s`, `15min`.
fn is_version_or_time(value: &[u8], tally: Tally) -> bool {
    let digits_first = value.strip_prefix(b"v").unwrap_or(value).first().is_some_and(u8::is_ascii_digit);
    digits_first && tally.joints > 0 && tally.lower + tally.upper <= 4 && tally.symbols == 0
}
