//! Key formats: the table in `rules.txt`, and matching one of its patterns.

use std::{ops::Range, sync::LazyLock};

use super::{bytes::Bytes, value};

/// The longest repetition a pattern without an upper end may match.
const MAX_REPEAT: usize = 4096;

/// The format of one kind of key.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) label: &'static str,
    /// What it is, for a report.
    pub(super) what: &'static str,
    /// What its keys begin with.
    pub(super) prefix: &'static str,
    has_checksum: bool,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Literal(&'static [u8]),
    Class { class: u8, least: usize, most: usize },
}

/// What has the form of a key.
struct Form {
    end: usize,
    /// The part that is random in a real one: others may be numbers of accounts.
    longest: Range<usize>,
}

/// All rules, in the order of the table: the first that matches counts.
pub(super) static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    include_str!("rules.txt").lines().filter(|line| !line.starts_with('#')).filter_map(parse).collect()
});

/// Rules by the first two bytes of their keys, each list in the order of the table.
static BY_START: LazyLock<Starts> = LazyLock::new(|| {
    let mut starts = Starts { lists: [0; PLACES], rules: vec![Vec::new()] };
    for rule in RULES.iter() {
        if let Some([first, second]) = rule.prefix.as_bytes().first_chunk() {
            let list = &mut starts.lists[place(*first, *second)];
            if *list == 0 {
                *list = u8::try_from(starts.rules.len()).unwrap_or(0);
                starts.rules.push(Vec::new());
            }
            starts.rules[usize::from(*list)].push(rule);
        }
    }
    starts
});

/// Small enough to stay near the processor: this is asked for every value.
const PLACES: usize = 1 << 12;

struct Starts {
    /// Which list belongs to a place; the first one is empty.
    lists: [u8; PLACES],
    rules: Vec<Vec<&'static Rule>>,
}

/// Where two bytes belong. Others may belong there too: a rule says itself whether it matches.
fn place(first: u8, second: u8) -> usize {
    usize::from(first & 63) << 6 | usize::from(second & 63)
}

fn parse(line: &'static str) -> Option<Rule> {
    let (label, rest) = line.split_once(char::is_whitespace)?;
    let (checksum, rest) = rest.trim_start().split_once(char::is_whitespace)?;
    let (pattern, what) = rest.trim_start().split_once(char::is_whitespace)?;
    let prefix = &pattern[..pattern.find('%')?];
    let parts = parts(pattern)?;
    Some(Rule { label, what: what.trim(), prefix, has_checksum: checksum == "crc32", parts })
}

fn parts(pattern: &'static str) -> Option<Vec<Part>> {
    let mut pieces = pattern.split('%');
    let mut parts = vec![Part::Literal(pieces.next()?.as_bytes())];
    for piece in pieces {
        let (class, rest) = piece.split_once('{')?;
        let (counts, literal) = rest.split_once('}')?;
        let (least, most) = match counts.split_once(',') {
            None => (counts.parse().ok()?, counts.parse().ok()?),
            Some((least, "")) => (least.parse().ok()?, MAX_REPEAT),
            Some((least, most)) => (least.parse().ok()?, most.parse().ok()?),
        };
        parts.push(Part::Class { class: *class.as_bytes().first()?, least, most });
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.as_bytes()));
        }
    }
    Some(parts)
}

/// What a class stands for.
fn bytes(class: u8) -> &'static Bytes {
    static DIGIT: Bytes = Bytes::of(b"0123456789");
    static SMALL_HEX: Bytes = Bytes::of(b"0123456789abcdef");
    static HEX: Bytes = Bytes::of(b"0123456789abcdefABCDEF");
    static CAPITAL: Bytes = Bytes::of(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    static SMALL: Bytes = Bytes::of(b"0123456789abcdefghijklmnopqrstuvwxyz");
    static LETTER: Bytes = Bytes::of(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    static URL_SAFE: Bytes = Bytes::alphanumeric_and(b"_-");
    static BASE64: Bytes = Bytes::alphanumeric_and(b"+/");
    static WORD: Bytes = Bytes::alphanumeric_and(b"");
    match class {
        b'd' => &DIGIT,
        b'h' => &SMALL_HEX,
        b'H' => &HEX,
        b'U' => &CAPITAL,
        b'l' => &SMALL,
        b'a' => &LETTER,
        b'u' => &URL_SAFE,
        b'b' => &BASE64,
        _ => &WORD,
    }
}

impl Rule {
    /// Where a key that starts at the start of the text ends, if there is one.
    pub(super) fn end(&self, text: &[u8]) -> Option<usize> {
        let Form { end, longest } = self.form(text)?;
        let key = &text[self.prefix.len()..end];
        let is_cut_short =
            matches!(self.parts.last(), Some(Part::Class { class: b'h' | b'H' | b'U' | b'w', .. }))
                && text.get(end).is_some_and(u8::is_ascii_alphanumeric);
        // Three letters say little: a name in code may begin with them.
        let is_name =
            self.prefix.len() <= 3 && key.iter().all(u8::is_ascii_alphabetic) && !value::is_unlike_words(key);
        let is_real = !is_cut_short
            && !is_name
            && (!value::is_placeholder_key(&text[longest]) || self.checksum_holds(key));
        is_real.then_some(end)
    }

    /// What has the form of a key, also if it was made up.
    fn form(&self, text: &[u8]) -> Option<Form> {
        let mut form = Form { end: 0, longest: 0..0 };
        for part in &self.parts {
            let start = form.end;
            match *part {
                Part::Literal(literal) => {
                    form.end += text[start..].starts_with(literal).then_some(literal.len())?;
                }
                Part::Class { class, least, most } => {
                    let run = bytes(class).run(&text[start..text.len().min(start + most)]);
                    form.end += (run >= least).then_some(run)?;
                    form.longest = if run > form.longest.len() { start..form.end } else { form.longest };
                }
            }
        }
        Some(form)
    }

    /// Whether the last six characters are the checksum of the others, in base 62.
    fn checksum_holds(&self, key: &[u8]) -> bool {
        let Some((body, check)) = key.split_last_chunk::<6>().filter(|_| self.has_checksum) else {
            return false;
        };
        base62(crc32(body)) == *check
    }
}

/// The rule and the end of a key that starts here.
pub(super) fn key_at(text: &[u8]) -> Option<(&'static Rule, usize)> {
    rules_at(text).iter().find_map(|rule| Some((*rule, rule.end(text)?)))
}

/// What only has the form of a key and starts at this place of a line; nothing, if there is no such thing.
pub(super) fn made_up_at(line: &[u8], at: usize) -> Range<usize> {
    let text = &line[at..];
    at..at + rules_at(text).iter().find_map(|rule| rule.form(text)).map_or(0, |form| form.end)
}

/// The rules whose keys may begin as this text does.
fn rules_at(text: &[u8]) -> &'static [&'static Rule] {
    let starts = &*BY_START;
    let list = text.first_chunk().map_or(0, |[first, second]| starts.lists[place(*first, *second)]);
    &starts.rules[usize::from(list)]
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0_u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

fn base62(mut number: u32) -> [u8; 6] {
    const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let mut text = [b'0'; 6];
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(number % 62) as usize];
        number /= 62;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        let lines =
            include_str!("rules.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
        assert_eq!(RULES.len(), lines.count());
        for rule in RULES.iter() {
            assert!(rule.prefix.len() >= 3, "{}", rule.label);
            assert!(!rule.what.is_empty() && rule.what.len() < 60, "{}", rule.label);
        }
    }

    #[test]
    fn checksums_are_those_of_zip_in_base_62() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        assert_eq!(&base62(61 + 62), b"00001z");
    }

    #[test]
    fn a_right_checksum_makes_a_key_of_what_looks_like_a_placeholder() {
        let body = "x".repeat(30);
        let check = String::from_utf8(base62(crc32(body.as_bytes())).to_vec()).unwrap();
        let real = format!("ghp_{body}{check}");
        assert_eq!(key_at(real.as_bytes()).map(|(rule, end)| (rule.label, end)), Some(("github-token", 40)));
        assert!(key_at(format!("ghp_{body}xxxxxx").as_bytes()).is_none());
    }
}
