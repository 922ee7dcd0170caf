//! Patterns as ECMAScript writes them.

use std::rc::Rc;

use regex_syntax::hir::{Class, HirKind};

use super::set::{self, Set};

/// How deep groups may be nested.
const MAX_DEPTH: usize = 50;

/// What a pattern is made of.
#[derive(Debug, Clone)]
pub(super) enum Node {
    One(Rc<Set>),
    Start,
    End,
    /// Whether there is the edge of a word.
    Edge(bool),
    All(Vec<Node>),
    Either(Vec<Node>),
    Group(usize, Box<Node>),
    /// What a group has found. Of several with the same name, only one can have.
    Again(Vec<usize>),
    Look {
        behind: bool,
        wanted: bool,
        inside: Box<Node>,
    },
    Repeat {
        inside: Box<Node>,
        least: usize,
        most: Option<usize>,
        greedy: bool,
        /// The groups inside, which forget what they found each time.
        groups: std::ops::Range<usize>,
    },
}

/// Reads a pattern. None if it cannot be read, or is read as different things by different engines.
pub(super) fn parse(pattern: &str) -> Option<Node> {
    let mut parser = Parser { rest: pattern, names: names(pattern), groups: 0, depth: 0 };
    let node = parser.either()?;
    let groups = parser.names.len();
    parser.rest.is_empty().then(|| close(node, groups)).flatten()
}

/// Refuses to go back to groups that are not there.
fn close(node: Node, groups: usize) -> Option<Node> {
    fn is_sound(node: &Node, groups: usize) -> bool {
        match node {
            Node::Again(all) => !all.is_empty() && all.iter().all(|group| *group < groups),
            Node::All(nodes) | Node::Either(nodes) => nodes.iter().all(|node| is_sound(node, groups)),
            Node::Group(_, inside) | Node::Look { inside, .. } | Node::Repeat { inside, .. } => {
                is_sound(inside, groups)
            }
            Node::One(_) | Node::Start | Node::End | Node::Edge(_) => true,
        }
    }
    is_sound(&node, groups).then_some(node)
}

/// The groups of a pattern with their names, which may be referred to before they come.
fn names(pattern: &str) -> Vec<Option<&str>> {
    let (mut names, mut in_set, mut chars) = (Vec::new(), false, pattern.chars());
    while let Some(c) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '[' => in_set = true,
            ']' => in_set = false,
            '(' if !in_set => match group(chars.as_str()) {
                Some(Kind::Plain) => names.push(None),
                Some(Kind::Named(name)) => names.push(Some(name)),
                _ => {}
            },
            _ => {}
        }
    }
    names
}

/// What opens after a parenthesis.
enum Kind<'a> {
    Plain,
    Named(&'a str),
    Silent,
    Look { behind: bool, wanted: bool },
}

/// Reads what comes after a parenthesis. None for flags and for what only others know.
fn group(rest: &str) -> Option<Kind<'_>> {
    const LOOKS: [(&str, bool, bool); 4] =
        [("=", false, true), ("!", false, false), ("<=", true, true), ("<!", true, false)];
    let Some(rest) = rest.strip_prefix('?') else { return Some(Kind::Plain) };
    if rest.starts_with(':') {
        return Some(Kind::Silent);
    }
    if let Some((_, behind, wanted)) = LOOKS.iter().find(|(mark, ..)| rest.starts_with(mark)) {
        return Some(Kind::Look { behind: *behind, wanted: *wanted });
    }
    // With a `P` it is Python's, and the same.
    let (name, _) = rest.strip_prefix('P').unwrap_or(rest).strip_prefix('<')?.split_once('>')?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_$".contains(c));
    is_name.then_some(Kind::Named(name))
}

struct Parser<'a> {
    rest: &'a str,
    names: Vec<Option<&'a str>>,
    groups: usize,
    depth: usize,
}

impl Parser<'_> {
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

    fn either(&mut self) -> Option<Node> {
        let mut forms = vec![self.all()?];
        while self.took("|") {
            forms.push(self.all()?);
        }
        if forms.len() == 1 { forms.pop() } else { Some(Node::Either(forms)) }
    }

    fn all(&mut self) -> Option<Node> {
        let mut nodes = Vec::new();
        while !self.rest.is_empty() && !self.rest.starts_with(['|', ')']) {
            let groups = self.groups;
            let node = self.one()?;
            nodes.push(self.repeated(node, groups)?);
        }
        Some(Node::All(nodes))
    }

    fn one(&mut self) -> Option<Node> {
        let node = match self.take()? {
            '^' => Node::Start,
            '$' => Node::End,
            '.' => Node::One(Rc::new(Set::of(&set::LINE_ENDS, true))),
            '(' => return self.group(),
            '[' => Node::One(Rc::new(self.set()?)),
            '\\' => return self.escape(),
            // Nothing to repeat; and at most so many, to others.
            '*' | '+' | '?' => return None,
            '{' if self.rest.starts_with(',') || count(self.rest).is_some() => return None,
            c => literal(c),
        };
        Some(node)
    }

    fn repeated(&mut self, node: Node, groups: usize) -> Option<Node> {
        let times = match self.rest.as_bytes().first() {
            Some(b'*') => Some((0, None, 0)),
            Some(b'+') => Some((1, None, 0)),
            Some(b'?') => Some((0, Some(1), 0)),
            Some(b'{') => count(&self.rest[1..]),
            _ => None,
        };
        let Some((least, most, length)) = times else { return Some(node) };
        self.rest = &self.rest[1 + length..];
        let greedy = !self.took("?");
        // To some engines a second mark means never to go back; here it is an error. And what has no length is not
        // repeated by anybody who means it.
        let is_wrong = self.rest.starts_with(['*', '+', '?']) || most.is_some_and(|most| most < least);
        if is_wrong || matches!(node, Node::Start | Node::End | Node::Edge(_)) {
            return None;
        }
        Some(Node::Repeat { inside: Box::new(node), least, most, greedy, groups: groups..self.groups })
    }

    fn group(&mut self) -> Option<Node> {
        self.depth += 1;
        let kind = group(self.rest).filter(|_| self.depth <= MAX_DEPTH)?;
        self.rest = match kind {
            Kind::Plain => self.rest,
            Kind::Silent => &self.rest[2..],
            Kind::Named(_) => self.rest.split_once('>')?.1,
            Kind::Look { behind, .. } => &self.rest[2 + usize::from(behind)..],
        };
        let number = self.groups;
        self.groups += usize::from(matches!(kind, Kind::Plain | Kind::Named(_)));
        let inside = self.either()?;
        self.depth -= 1;
        self.took(")").then(|| match kind {
            Kind::Plain | Kind::Named(_) => Node::Group(number, Box::new(inside)),
            Kind::Silent => inside,
            Kind::Look { behind, wanted } => Node::Look { behind, wanted, inside: Box::new(inside) },
        })
    }

    fn escape(&mut self) -> Option<Node> {
        let start = self.rest;
        let node = match self.take()? {
            'b' => Node::Edge(true),
            'B' => Node::Edge(false),
            'k' => {
                let (name, rest) = self.rest.strip_prefix('<')?.split_once('>')?;
                self.rest = rest;
                let named = (0..self.names.len()).filter(|at| self.names[*at] == Some(name));
                Node::Again(named.collect())
            }
            '1'..='9' => {
                let digits = start.len() - start.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                self.rest = &start[digits..];
                Node::Again(vec![start[..digits].parse::<usize>().ok()? - 1])
            }
            _ => {
                self.rest = start;
                Node::One(Rc::new(self.class()?))
            }
        };
        Some(node)
    }

    /// What comes after a backslash and stands for characters, in sets and outside.
    fn class(&mut self) -> Option<Set> {
        let set = match self.take()? {
            'd' => Set::of(&set::DIGITS, false),
            'D' => Set::of(&set::DIGITS, true),
            'w' => Set::of(&set::LETTERS, false),
            'W' => Set::of(&set::LETTERS, true),
            's' => Set::of(&set::SPACES, false),
            'S' => Set::of(&set::SPACES, true),
            'p' => self.property(false)?,
            'P' => self.property(true)?,
            't' => Set::only('\t'),
            'n' => Set::only('\n'),
            'v' => Set::only('\u{b}'),
            'f' => Set::only('\u{c}'),
            'r' => Set::only('\r'),
            '0' if !self.rest.starts_with(|c: char| c.is_ascii_digit()) => Set::only('\0'),
            'c' => {
                let letter = self.take().filter(char::is_ascii_alphabetic)?;
                Set::only(char::from(u8::try_from(letter).ok()? % 32))
            }
            'x' => Set::only(self.hex(2).and_then(char::from_u32)?),
            'u' => Set::only(self.unicode()?),
            // Other letters mean nothing here, and something to others: ends of texts, mostly.
            c if c.is_alphanumeric() => return None,
            c => Set::only(c),
        };
        Some(set)
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
        // Two halves of a character, as UTF-16 has it.
        let second = self.hex(4).filter(|second| (0xdc00..0xe000).contains(second))?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let (digits, rest) = self.rest.split_at_checked(digits)?;
        self.rest = rest;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| u32::from_str_radix(digits, 16).ok())?
    }

    fn property(&mut self, others: bool) -> Option<Set> {
        let (name, rest) = self.rest.strip_prefix('{')?.split_once('}')?;
        self.rest = rest;
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_=".contains(&byte)) {
            return None;
        }
        let known = regex_syntax::parse(&format!("\\p{{{name}}}")).ok()?;
        let HirKind::Class(Class::Unicode(class)) = known.kind() else { return None };
        let ranges = class.iter().map(|range| (range.start(), range.end())).collect();
        Some(Set { ranges, others })
    }

    /// A set, up to its end.
    fn set(&mut self) -> Option<Set> {
        let mut set = Set { others: self.took("^"), ..Set::default() };
        // All characters; or, to others, all but those up to the next end.
        if set.others && self.rest.strip_prefix(']').is_some_and(|rest| rest.contains(']')) {
            return None;
        }
        while !self.took("]") {
            let (first, single) = self.item()?;
            let range = self.rest.strip_prefix('-').filter(|rest| !rest.starts_with(']'));
            let (Some(rest), Some(from)) = (range, single) else {
                set.add(first);
                continue;
            };
            self.rest = rest;
            let (last, to) = self.item()?;
            if let Some(to) = to {
                if to < from {
                    return None;
                }
                set.ranges.push((from, to));
            } else {
                // From something to digits is no range: a dash like any other.
                set.ranges.push(('-', '-'));
                set.add(first);
                set.add(last);
            }
        }
        set.sort();
        // Nothing at all fits the empty set, and to others it is not the end of the set.
        (set.others || !set.ranges.is_empty()).then_some(set)
    }

    /// One item of a set, and the character if it is one.
    fn item(&mut self) -> Option<(Set, Option<char>)> {
        let item = match self.take()? {
            '\\' if self.took("b") => Set::only('\u{8}'),
            '\\' => self.class()?,
            // A class of POSIX, such as `[:alpha:]`.
            '[' if self.rest.strip_prefix(':').is_some_and(|rest| rest.contains(":]")) => return None,
            c => Set::only(c),
        };
        let single = match item.ranges.as_slice() {
            [(first, last)] if first == last && !item.others => Some(*first),
            _ => None,
        };
        Some((item, single))
    }
}

fn literal(c: char) -> Node {
    Node::One(Rc::new(Set::only(c)))
}

/// Reads `2}`, `2,}` or `2,3}`: the bounds, and how long they are.
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
