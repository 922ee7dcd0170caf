//! Secrets given to functions that take one at a known place: `jwt.sign(payload, "secret")`.

use std::ops::Range;

use super::{
    bytes::ByteSet,
    found::{Found, Next},
    line::Line,
    name::NameKind,
    value::{self, Written},
};

/// What is called, and which of its arguments is the secret.
const CALLS: &[(&str, usize)] = &[
    ("mysqli(", 2),
    ("mysqli_connect(", 2),
    ("pdo(", 2),
    ("getconnection(", 2),
    (".login(", 1),
    ("auth=(", 1),
    ("auth(", 1),
    ("auth_basic(", 1),
    ("basicauth(", 1),
    ("credentials(", 1),
    ("credential(", 1),
    ("authentication(", 1),
    ("jwt.sign(", 1),
    ("jwt.encode(", 1),
    ("jwt.verify(", 1),
    ("jwt.decode(", 1),
    ("fernet(", 0),
    ("hmac.new(", 0),
    ("aes.new(", 0),
    ("createhmac(", 1),
];

/// How long the arguments of a call may be.
const MAX_ARGUMENTS: usize = 512;
/// How deep what is in them may be. Every call goes deeper that is not over, so that in a line of nothing but calls no more than
/// so many are read for each.
const MAX_DEPTH: usize = 8;

/// The calls above, for the search.
pub(super) fn names() -> impl Iterator<Item = &'static [u8]> {
    CALLS.iter().map(|(name, _)| name.as_bytes())
}

/// Looks at the arguments of such a call.
pub(super) fn called(line: &Line<'_>, name: Range<usize>, found: &mut Vec<Found>) -> Next {
    let next = Next::at(name.end);
    let called = &line[name.clone()];
    let Some((_, nth)) = CALLS.iter().find(|(each, _)| called.eq_ignore_ascii_case(each.as_bytes())) else {
        return next;
    };
    let limit = line.len().min(name.end + MAX_ARGUMENTS);
    if let Some(range) = quoted_argument(&line[..limit], name.end, *nth)
        && value::is_secret(&line[range.clone()], Written::Quoted, NameKind::Password)
    {
        found.push(Found::value(line, range, "secret", "argument of a function that takes a secret"));
    }
    next
}

/// The quoted text that is the argument with this number.
fn quoted_argument(line: &[u8], from: usize, nth: usize) -> Option<Range<usize>> {
    static SIGNS: ByteSet = ByteSet::new(b"\"'()[]{},");
    let (mut at, mut number, mut depth) = (from, 0, 0_usize);
    while number <= nth && depth <= MAX_DEPTH {
        at += SIGNS.until(&line[at..]);
        match line.get(at)? {
            quote @ (b'"' | b'\'') => {
                let inside = at + 1..at + 1 + memchr::memchr(*quote, &line[at + 1..])?;
                if number == nth && depth == 0 {
                    return Some(inside);
                }
                at = inside.end;
            }
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => number += usize::from(depth == 0),
        }
        at += 1;
    }
    None
}
