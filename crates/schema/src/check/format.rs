//! Formats of text that can be checked cheaply. Other formats are left to the tool. So is
//! everything that a server's own library may accept: pydantic reads dates as times, Python reads
//! UUIDs without dashes, browsers read any text after a scheme.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A format: its name, its description, and the function that checks it.
type Format = (&'static str, &'static str, fn(&str) -> bool);

const FORMATS: [Format; 10] = [
    ("date-time", "a date and time such as 2026-01-31T08:30:00Z", is_date_time),
    // It may have a time, which tools ignore or require to be midnight.
    ("date", "a date such as 2026-01-31", is_date_time),
    ("time", "a time such as 08:30:00Z", is_time),
    ("email", "an email address", is_email),
    ("hostname", "the name of a host", is_hostname),
    ("ipv4", "an IPv4 address", |text| text.parse::<Ipv4Addr>().is_ok()),
    ("ipv6", "an IPv6 address", |text| text.parse::<Ipv6Addr>().is_ok()),
    ("uri", "a URI with its scheme, such as https://example.com", is_uri),
    ("url", "a URL with its scheme, such as https://example.com", is_uri),
    ("uuid", "a UUID such as 123e4567-e89b-12d3-a456-426614174000", is_uuid),
];

/// Returns the description of the expected format if the text does not have it.
pub(super) fn broken(name: &str, text: &str) -> Option<&'static str> {
    let (_, words, has) = FORMATS.iter().find(|(each, ..)| *each == name)?;
    (!has(text)).then_some(words)
}

/// Accepts a date with or without a time, and a number. For many tools a date is its first moment,
/// and a number is seconds since 1970.
fn is_date_time(text: &str) -> bool {
    let is_seconds = || text.parse::<f64>().is_ok_and(f64::is_finite);
    let parts = || text.split_once(['T', 't', ' ', '_']);
    is_day(text) || is_seconds() || parts().is_some_and(|(date, time)| is_day(date) && is_time(time))
}

fn is_day(text: &str) -> bool {
    let [year, month, day] = parts::<3>(text, '-')
        .map_or([None; 3], |[year, month, day]| [number(year, 4), number(month, 2), number(day, 2)]);
    let (Some(year), Some(month), Some(day)) = (year, month, day) else { return false };
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if is_leap => 29,
        2 => 28,
        _ => 0,
    };
    (1..=days).contains(&day)
}

/// Accepts a time of day. Seconds and zone may be omitted, which RFC 3339 forbids and nearly every
/// tool allows.
fn is_time(text: &str) -> bool {
    let (clock, zone) = text.split_at(text.find(['Z', 'z', '+', '-']).unwrap_or(text.len()));
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, "0"));
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let is_zone = match zone.as_bytes().first() {
        None => true,
        Some(b'Z' | b'z') => zone.len() == 1,
        Some(_) => is_offset(&zone[1..]),
    };
    is_fraction && is_zone && (is_clock::<3>(clock) || is_clock::<2>(clock))
}

/// Accepts hours, optionally with minutes, optionally with a colon between them.
fn is_offset(text: &str) -> bool {
    let (hours, minutes) = text.split_at_checked(2).unwrap_or((text, ""));
    is_clock::<1>(hours)
        && (minutes.is_empty() || is_clock::<2>(text) || is_clock::<2>(&format!("{hours}:{minutes}")))
}

/// Accepts hours and minutes, optionally with seconds, which may be 60.
fn is_clock<const PARTS: usize>(text: &str) -> bool {
    const MAX_PARTS: [u32; 3] = [23, 59, 60];
    let keeps = |(part, most): (&str, u32)| number(part, 2).is_some_and(|part| part <= most);
    parts::<PARTS>(text, ':').is_some_and(|parts| parts.into_iter().zip(MAX_PARTS).all(keeps))
}

fn is_email(text: &str) -> bool {
    let is_plain = |c: char| !c.is_whitespace() && !c.is_control();
    text.rsplit_once('@').is_some_and(|(name, host)| {
        let is_name =
            !name.is_empty() && name.len() <= 64 && !name.contains('@') && name.chars().all(is_plain);
        is_name && is_hostname(host)
    })
}

fn is_hostname(text: &str) -> bool {
    let is_label = |label: &str| {
        // Names of containers and services contain underscores.
        let is_letter = |c: char| c.is_alphanumeric() || "-_".contains(c);
        (1..=63).contains(&label.len())
            && label.chars().all(is_letter)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= 253 && text.strip_suffix('.').unwrap_or(text).split('.').all(is_label)
}

fn is_uri(text: &str) -> bool {
    let is_scheme = |scheme: &str| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    };
    let is_rest = |rest: &str| !rest.is_empty() && !rest.contains(char::is_control);
    text.split_once(':').is_some_and(|(scheme, rest)| is_scheme(scheme) && is_rest(rest))
}

fn is_uuid(text: &str) -> bool {
    let bare = text.strip_prefix("urn:uuid:").unwrap_or(text);
    let bare =
        bare.strip_prefix('{').and_then(|bare| bare.strip_suffix('}')).unwrap_or(bare).replace('-', "");
    bare.len() == 32 && bare.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the parts between separators if their number is `COUNT`.
fn parts<const COUNT: usize>(text: &str, separator: char) -> Option<[&str; COUNT]> {
    let parts: Vec<_> = text.splitn(COUNT + 1, separator).collect();
    parts.try_into().ok()
}

/// Parses a number with this number of digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_from_what_only_looks_like_them() {
        let rows: [(&str, &[&str], &[&str]); 9] = [
            (
                "date-time",
                &[
                    "2026-01-31T08:30:00Z",
                    "2024-02-29t23:59:60.5+05:30",
                    "2026-01-31 08:30",
                    "2026-01-31T08:30:00",
                    "2026-01-31T08:30:00,5+0530",
                    "2026-01-31",
                    "1769848200",
                ],
                &["", "2026-01-3", "2026-01-31T8:30", "2025-02-29T00:00:00Z", "2026-01-31T24:00:00Z", "T"],
            ),
            (
                "date",
                &["2026-12-31", "2000-02-29", "2026-12-31T00:00:00"],
                &["2026-13-01", "1900-02-29", "26-1-1", "2026-01-01x", ""],
            ),
            (
                "time",
                &["08:30:00Z", "08:30:00.123+01:00", "08:30", "08:30:00", "08:30+01", "08:30-0130"],
                &[
                    "08",
                    "8:30:00Z",
                    "08:30ZZ",
                    "08:30:00.Z",
                    "08:30:00+1",
                    "08:30+01:",
                    "08:30+013",
                    "中Z",
                    "08:30+中",
                ],
            ),
            (
                "email",
                &["a.b+c@example.com", "用户@例子.中国"],
                &["a@", "@b.c", "a b@c.d", "a@b@c.d", "a@b..c"],
            ),
            ("hostname", &["localhost", "a-b.example.", "my_db"], &["", "-a.b", "a b", &"a".repeat(64)]),
            ("ipv4", &["127.0.0.1"], &["256.0.0.1", "1.2.3", "::1"]),
            ("ipv6", &["::1", "fe80::1:2"], &["127.0.0.1", ":::"]),
            (
                "uri",
                &["https://x.y/z?q=1#f", "mailto:a@b", "https://x/{a b}"],
                &["x.y/z", "1http://x", "http:", "a:\n"],
            ),
            (
                "uuid",
                &["123e4567-e89b-12d3-a456-426614174000", "{123E4567e89b12d3a456426614174000}"],
                &["123e4567-e89b-12d3-a456-42661417400", "x", "", "123e4567e89b12d3a45642661417400z"],
            ),
        ];
        for (name, right, wrong) in rows {
            assert!(right.iter().all(|text| broken(name, text).is_none()), "{name} {right:?}");
            for text in wrong {
                assert!(broken(name, text).is_some(), "{name} {text:?}");
            }
        }
        assert_eq!(broken("uint32", "x"), None);
    }
}
