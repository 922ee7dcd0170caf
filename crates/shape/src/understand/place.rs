//! Parses places in files, such as `file:line:column`.

use windlass_contract::insight::Place;

/// Maximum length of the file name before a place's first colon.
const MAX_PREFIX_BYTES: usize = 512;

/// Parses the place that a line begins with, `file:line:` or `file:line:column:`. Returns it with
/// the rest.
pub(super) fn leading(line: &str) -> Option<(Place, &str)> {
    let colon = colon(line)?;
    let (file, rest) = (&line[..colon], &line[colon + 1..]);
    if !is_file(file) {
        return None;
    }
    let (number, rest) = number(rest)?;
    let (column, rest) = match rest.strip_prefix(':').and_then(self::number) {
        Some((column, rest)) => (Some(column), rest),
        None => (None, rest),
    };
    Some((at(file, number, column), rest.strip_prefix(':')?))
}

/// Returns the index of the first colon that a digit follows.
pub(super) fn colon(line: &str) -> Option<usize> {
    let head = &line.as_bytes()[..line.len().min(MAX_PREFIX_BYTES)];
    memchr::memchr_iter(b':', head).find(|at| head.get(at + 1).is_some_and(u8::is_ascii_digit))
}

/// Parses a text that is only a place, `file:line` or `file:line:column`, with an optional final
/// colon.
pub(super) fn alone(text: &str) -> Option<Place> {
    let text = text.trim().trim_end_matches(':');
    let (rest, last) = text.rsplit_once(':')?;
    let last = last.parse().ok()?;
    if let Some((file, line)) = rest.rsplit_once(':')
        && let Ok(line) = line.parse()
    {
        return is_file(file).then(|| at(file, line, Some(last)));
    }
    is_file(rest).then(|| at(rest, last, None))
}

/// Parses the digits that a text begins with. Returns the number with the rest.
pub(super) fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// Builds a place.
pub(super) fn at(file: &str, line: u32, column: Option<u32>) -> Place {
    Place { file: Some(file.to_owned()), line: Some(line), column }
}

/// Returns true if this may be a file name, and not a time, a URL or a sentence.
pub(super) fn is_file(name: &str) -> bool {
    let last = name.rsplit(['/', '\\']).next().unwrap_or_default();
    !name.starts_with(char::is_whitespace)
        && !name.contains("://")
        && !name.contains(": ")
        && last.contains('.')
        && last.contains(|c: char| c.is_alphabetic())
}

/// Returns the file extension without its dot.
pub(super) fn extension(place: &Place) -> &str {
    place.file.as_deref().and_then(|file| file.rsplit_once('.')).map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_from_times_and_addresses() {
        assert_eq!(leading("a/b.c:3:5: x").unwrap(), (at("a/b.c", 3, Some(5)), " x"));
        assert_eq!(leading("b.py:2: error: y").unwrap(), (at("b.py", 2, None), " error: y"));
        assert_eq!(alone("./src/lib.rs:22:9:"), Some(at("./src/lib.rs", 22, Some(9))));
        assert_eq!(alone("t.py:9"), Some(at("t.py", 9, None)));
        for line in [
            "12:30:45: up",
            "http://h.de:80: x",
            "127.0.0.1:80:1: x",
            "note: a.c:1:1: x",
            " a.c:1:1: x",
            "a.c:1 x",
            ":1:",
            "a.c:99999999999: x",
        ] {
            assert_eq!(leading(line), None, "{line}");
        }
    }
}
