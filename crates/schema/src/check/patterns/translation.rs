//! Translation of ECMAScript patterns for `regex`.
//!
//! The two differ in the meaning of `\d`, `\s`, `\w`, `\b` and `.`, in sets and in escapes. `regex`
//! has neither look-around nor backreferences. Most patterns with look-around look ahead from the
//! start of the text (`^(?!.*\.\.)(?=.*\d)…`). These need no support: each look-ahead becomes an
//! expression of its own.

/// Maximum nesting depth of groups.
const MAX_DEPTH: usize = 50;
/// Maximum number of parts of a pattern, including repetitions.
const MAX_SIZE: usize = 20_000;
/// Number of parts of a class with characters beyond ASCII, and of one for which Unicode has a
/// table.
const WIDE: usize = 12;
const TABLE: usize = 500;

const DIGITS: &str = "0-9";
const LETTERS: &str = "0-9A-Z_a-z";
const SPACES: &str =
    r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}-\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
const NO_LINE_END: &str = r"[^\n\r\x{2028}\x{2029}]";

/// A pattern as expressions of `regex`.
#[derive(Debug)]
pub(super) struct PatternTranslation {
    /// The expressions. The flag is true if the text must contain it, false if it must not.
    pub(super) parts: Vec<(String, bool)>,
    /// Approximate number of states of all expressions.
    pub(super) size: usize,
}

/// Translates a pattern. Returns `None` if it is invalid, has different meanings in different
/// engines, or has no equivalent.
pub(super) fn translate(pattern: &str) -> Option<PatternTranslation> {
    let mut translator = PatternTranslator { rest: pattern, out: String::new(), depth: 1 };
    let (mut parts, mut size) = (Vec::new(), 1);
    while let Some((wanted, rest)) = look_ahead(translator.rest, parts.is_empty()) {
        translator.rest = rest;
        translator.out.push_str("^(?:");
        size += translator.either()?;
        translator.took(")").then_some(())?;
        translator.out.push(')');
        parts.push((std::mem::take(&mut translator.out), wanted));
    }
    if parts.is_empty() {
        size += translator.either()?;
    } else {
        // Of several alternatives, only the first would have to begin like that.
        translator.out.push('^');
        size += translator.all()?;
    }
    parts.push((translator.out, true));
    (translator.rest.is_empty() && size <= MAX_SIZE).then_some(PatternTranslation { parts, size })
}

/// Parses the beginning of a look-ahead at the start of the text. Returns true for a positive one,
/// false for a negative one, and the rest.
fn look_ahead(rest: &str, is_first: bool) -> Option<(bool, &str)> {
    let rest = if is_first { rest.strip_prefix('^')? } else { rest };
    let found = |mark: &str, wanted: bool| Some((wanted, rest.strip_prefix(mark)?));
    found("(?=", true).or_else(|| found("(?!", false))
}

struct PatternTranslator<'a> {
    rest: &'a str,
    out: String,
    depth: usize,
}

/// An element of a pattern that a quantifier applies to.
#[derive(Clone, Copy)]
enum PatternAtom {
    /// A position, which has no length.
    Place,
    /// An element with this number of parts.
    Parts(usize),
}

impl PatternTranslator<'_> {
    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    fn took(&mut self, text: &str) -> bool {
        let rest = self.rest.strip_prefix(text);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn either(&mut self) -> Option<usize> {
        let mut size = self.all()?;
        while self.took("|") {
            self.out.push('|');
            size += 1 + self.all()?;
        }
        Some(size)
    }

    fn all(&mut self) -> Option<usize> {
        let mut size = 0;
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let atom = self.atom()?;
            size += self.repeated(atom)?;
        }
        (size <= MAX_SIZE).then_some(size)
    }

    fn atom(&mut self) -> Option<PatternAtom> {
        match self.take()? {
            place @ ('^' | '$') => {
                self.out.push(place);
                Some(PatternAtom::Place)
            }
            '.' => {
                self.out.push_str(NO_LINE_END);
                Some(PatternAtom::Parts(WIDE))
            }
            '(' => self.group(),
            '[' => self.set(),
            '\\' if self.rest.starts_with(['b', 'B']) => {
                let edge = self.take()?;
                self.out.push_str(&format!("(?-u:\\{edge})"));
                Some(PatternAtom::Place)
            }
            '\\' => {
                let class = self.class()?;
                self.out.push_str(&format!("[{}]", class.text));
                Some(PatternAtom::Parts(class.size))
            }
            // There is nothing to repeat. Other engines read `{,5}` as "at most 5".
            '*' | '+' | '?' => None,
            '{' if self.rest.starts_with(',') || count(self.rest).is_some() => None,
            c => {
                self.out.push_str(&literal(c));
                Some(PatternAtom::Parts(c.len_utf8()))
            }
        }
    }

    /// Parses a quantifier, if there is one, and returns the resulting number of parts.
    fn repeated(&mut self, atom: PatternAtom) -> Option<usize> {
        let times = match self.rest.as_bytes().first() {
            Some(b'*' | b'+' | b'?') => Some((0, Some(1), 0)),
            Some(b'{') => count(&self.rest[1..]),
            _ => None,
        };
        let Some((least, most, length)) = times else {
            return Some(if let PatternAtom::Parts(parts) = atom { parts } else { 1 });
        };
        // A quantifier on an element without length is a mistake.
        let PatternAtom::Parts(parts) = atom else { return None };
        let (mark, rest) = self.rest.split_at(1 + length);
        self.out.push_str(mark);
        self.rest = rest;
        if self.took("?") {
            self.out.push('?');
        }
        // In some engines a second mark makes the quantifier possessive; here it is an error.
        let is_wrong = self.rest.starts_with(['*', '+', '?']) || most.is_some_and(|most| most < least);
        let size = (parts + 1).saturating_mul(most.unwrap_or(least).max(1));
        (!is_wrong && size <= MAX_SIZE).then_some(size)
    }

    fn group(&mut self) -> Option<PatternAtom> {
        self.depth += 1;
        self.rest = group(self.rest).filter(|_| self.depth <= MAX_DEPTH)?;
        self.out.push_str("(?:");
        let size = self.either()?;
        self.out.push(')');
        self.depth -= 1;
        self.took(")").then_some(PatternAtom::Parts(size))
    }

    /// Parses the escape of a character class after a backslash, inside and outside sets.
    fn class(&mut self) -> Option<CharacterClass> {
        let class = match self.take()? {
            'd' => CharacterClass::new(DIGITS, 1),
            'D' => CharacterClass::without(DIGITS),
            'w' => CharacterClass::new(LETTERS, 1),
            'W' => CharacterClass::without(LETTERS),
            's' => CharacterClass::new(SPACES, WIDE),
            'S' => CharacterClass::without(SPACES),
            sign @ ('p' | 'P') => {
                let (name, rest) = self.rest.strip_prefix('{')?.split_once('}')?;
                self.rest = rest;
                let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_=".contains(&byte));
                is_name.then(|| CharacterClass::new(&format!("\\{sign}{{{name}}}"), TABLE))?
            }
            't' => CharacterClass::only('\t'),
            'n' => CharacterClass::only('\n'),
            'v' => CharacterClass::only('\u{b}'),
            'f' => CharacterClass::only('\u{c}'),
            'r' => CharacterClass::only('\r'),
            '0' if !self.rest.starts_with(|c: char| c.is_ascii_digit()) => CharacterClass::only('\0'),
            'c' => {
                let letter = self.take().filter(char::is_ascii_alphabetic)?;
                CharacterClass::only(char::from(u8::try_from(letter).ok()? % 32))
            }
            'x' => CharacterClass::only(self.hex(2).and_then(char::from_u32)?),
            'u' => CharacterClass::only(self.unicode()?),
            // Backreferences, and letters with another meaning elsewhere, mostly the end of the
            // text.
            c if c.is_alphanumeric() => return None,
            c => CharacterClass::only(c),
        };
        Some(class)
    }

    fn unicode(&mut self) -> Option<char> {
        if self.took("{") {
            let (digits, rest) = self.rest.split_once('}')?;
            self.rest = rest;
            return char::from_u32(u32::from_str_radix(digits, 16).ok()?);
        }
        let first = self.hex(4)?;
        if !(0xd800..0xdc00).contains(&first) || !self.took("\\u") {
            return char::from_u32(first);
        }
        // A surrogate pair of UTF-16.
        let second = self.hex(4).filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    /// Parses a set up to its end.
    fn set(&mut self) -> Option<PatternAtom> {
        let others = self.took("^");
        if others && self.took("]") {
            // Any character; other engines read all up to the next bracket as the set.
            self.out.push_str("(?s:.)");
            return (!self.rest.contains(']')).then_some(PatternAtom::Parts(WIDE));
        }
        let (mut text, mut size) = (String::new(), usize::from(others) * WIDE);
        while !self.took("]") {
            let first = self.item()?;
            size += first.size;
            text.push_str(&first.text);
            let range = self.rest.strip_prefix('-').filter(|rest| !rest.starts_with(']'));
            let (Some(rest), Some(from)) = (range, first.single) else { continue };
            self.rest = rest;
            let last = self.item()?;
            size += last.size;
            // A range cannot end in a class, so the dash is literal.
            text.push_str(if last.single.is_some() { "-" } else { r"\-" });
            text.push_str(&last.text);
            if last.single.is_some_and(|to| to < from) {
                return None;
            }
        }
        // The empty set matches nothing; other engines do not read the bracket as its end.
        let mark = if others { "^" } else { "" };
        self.out.push_str(&format!("[{mark}{text}]"));
        (!text.is_empty()).then_some(PatternAtom::Parts(size))
    }

    /// Parses one item of a set.
    fn item(&mut self) -> Option<CharacterClass> {
        match self.take()? {
            '\\' if self.took("b") => Some(CharacterClass::only('\u{8}')),
            '\\' => self.class(),
            // A POSIX class, such as `[:alpha:]`.
            '[' if self.rest.strip_prefix(':').is_some_and(|rest| rest.contains(":]")) => None,
            c => Some(CharacterClass::only(c)),
        }
    }
}

/// Characters, in the notation of a set.
struct CharacterClass {
    text: String,
    size: usize,
    /// The character, if there is only one.
    single: Option<char>,
}

impl CharacterClass {
    fn new(text: &str, size: usize) -> Self {
        Self { text: text.to_owned(), size, single: None }
    }

    fn without(text: &str) -> Self {
        Self::new(&format!("[^{text}]"), WIDE)
    }

    fn only(c: char) -> Self {
        Self { text: literal(c), size: if c.is_ascii() { 1 } else { WIDE }, single: Some(c) }
    }
}

/// Escapes a literal character, for use inside and outside sets.
fn literal(c: char) -> String {
    if c.is_ascii_alphanumeric() { c.to_string() } else { format!("\\x{{{:x}}}", u32::from(c)) }
}

/// Parses the beginning of a group after the parenthesis, and returns the rest. Returns `None` for
/// flags, look-around and unknown syntax.
fn group(rest: &str) -> Option<&str> {
    let Some(rest) = rest.strip_prefix('?') else { return Some(rest) };
    if let Some(rest) = rest.strip_prefix(':') {
        return Some(rest);
    }
    // With a `P` it is Python's notation, with the same meaning.
    let (name, rest) = rest.strip_prefix('P').unwrap_or(rest).strip_prefix('<')?.split_once('>')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_$".contains(c));
    is_name.then_some(rest)
}

/// Parses `2}`, `2,}` or `2,3}`. Returns the bounds and the length of the text.
fn count(text: &str) -> Option<(usize, Option<usize>, usize)> {
    let (inside, _) = text.split_once('}')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse().unwrap_or(usize::MAX))
    };
    let (least, most) = match inside.split_once(',') {
        None => (number(inside)?, Some(number(inside)?)),
        Some((least, "")) => (number(least)?, None),
        Some((least, most)) => (number(least)?, Some(number(most)?)),
    };
    Some((least, most, inside.len() + 1))
}
