//! Idioms about files and commands that name the parameter of a value: `the first 10 lines`,
//! `replace A with B`, `run X`, `10 seconds`. Values in such an idiom are not matched again.

use std::ops::Range;

use serde_json::Value;

use super::slot::{ParameterSlot, SlotKind};

/// A word of a request and its byte range. A quotation is one word, without its quotes.
struct IdiomToken<'a> {
    text: &'a str,
    place: Range<usize>,
}

impl IdiomToken<'_> {
    fn is(&self, words: &[&str]) -> bool {
        words.iter().any(|word| self.text.eq_ignore_ascii_case(word))
    }

    fn number(&self) -> Option<i64> {
        self.text.parse().ok()
    }
}

/// Fills the values that idioms give, and returns the byte ranges they used.
pub(super) fn fill(text: &str, slots: &[ParameterSlot], values: &mut [Option<Value>]) -> Vec<Range<usize>> {
    let tokens = tokens(text);
    let mut taken = Vec::new();
    let mut put = |names: &[&str], value: Value, place: Range<usize>| {
        let at = slots.iter().position(|slot| names.contains(&slot.own_name()));
        if let Some(at) = at.filter(|at| values[*at].is_none()) {
            values[at] = Some(value);
            taken.push(place);
        }
    };
    if let Some((old, new)) = replacement(&tokens) {
        put(&["old_string", "old_text", "old"], old.text.into(), old.place.clone());
        put(&["new_string", "new_text", "new"], new.text.into(), new.place.clone());
    }
    if let Some((from, to, place)) = lines(&tokens) {
        put(&["offset"], from.into(), place.clone());
        put(&["limit"], (to - from + 1).into(), place);
    }
    if let Some((count, place)) = first_lines(text, &tokens) {
        put(&["limit"], count.into(), place);
    }
    if let Some(place) = command(text, &tokens) {
        put(&["command", "cmd"], text[place.clone()].into(), place);
    }
    if let Some((milliseconds, place)) = duration(&tokens) {
        put(&["timeout_ms", "yield_time_ms"], milliseconds.into(), place);
    }
    if let Some((sought, place)) = search_pattern(&tokens) {
        put(&["pattern", "query"], sought.text.into(), sought.place.clone());
        if let Some(place) = place {
            put(&["path"], place.text.into(), place.place.clone());
        }
    }
    // No parameter takes lines from the end, so their number must not go to another parameter.
    if let Some(place) = last_lines(text, &tokens) {
        taken.push(place);
    }
    let is_integer = |at: usize| matches!(slots[at].kind, SlotKind::Integer | SlotKind::Number);
    for (at, value) in values.iter_mut().enumerate() {
        if value.as_ref().is_some_and(Value::is_number) && !is_integer(at) {
            *value = None;
        }
    }
    taken
}

fn tokens(text: &str) -> Vec<IdiomToken<'_>> {
    const QUOTES: [(char, char); 4] = [('"', '"'), ('`', '`'), ('“', '”'), ('\'', '\'')];
    let (mut tokens, mut at) = (Vec::new(), 0);
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let close = QUOTES.iter().find(|(open, _)| *open == c).map(|(_, close)| *close);
        let inner = close
            .and_then(|close| Some((c.len_utf8(), rest[c.len_utf8()..].find(close)? + c.len_utf8(), close)));
        if let Some((from, to, close)) = inner {
            tokens.push(IdiomToken { text: &rest[from..to], place: at + from..at + to });
            at += to + close.len_utf8();
        } else if c.is_whitespace() || ",;，；。".contains(c) {
            at += c.len_utf8();
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || ",;，；。".contains(c)).unwrap_or(rest.len());
            tokens.push(IdiomToken {
                text: rest[..end].trim_end_matches(['.', '?', '!', ':']),
                place: at..at + end,
            });
            at += end;
        }
    }
    tokens
}

/// Parses `replace A with B`.
fn replacement<'t, 'a>(tokens: &'t [IdiomToken<'a>]) -> Option<(&'t IdiomToken<'a>, &'t IdiomToken<'a>)> {
    tokens.windows(4).find_map(|four| match four {
        [verb, old, with, new]
            if verb.is(&["replace", "substitute", "change"]) && with.is(&["with", "by", "to"]) =>
        {
            Some((old, new))
        }
        _ => None,
    })
}

/// Parses `lines 5 to 10` and `lines 5-10`. Returns both ends.
fn lines(tokens: &[IdiomToken<'_>]) -> Option<(i64, i64, Range<usize>)> {
    let at = tokens.iter().position(|token| token.is(&["line", "lines"]))?;
    let from = tokens.get(at + 1)?;
    let (ends, place) = if let Some((first, last)) = from.text.split_once('-') {
        ((first.parse().ok()?, last.parse().ok()?), from.place.clone())
    } else {
        let to = tokens.get(at + 2).filter(|token| token.is(&["to", "through"])).and(tokens.get(at + 3));
        let last = to.unwrap_or(from);
        ((from.number()?, last.number()?), from.place.start..last.place.end)
    };
    (ends.0 <= ends.1).then_some((ends.0, ends.1, place))
}

/// Parses `the first 10 lines` and 前10行.
fn first_lines(text: &str, tokens: &[IdiomToken<'_>]) -> Option<(i64, Range<usize>)> {
    counted(tokens, &["first", "top"]).or_else(|| chinese_count(text, '前'))
}

/// Parses `the last 10 lines` and 最后10行.
fn last_lines(text: &str, tokens: &[IdiomToken<'_>]) -> Option<Range<usize>> {
    counted(tokens, &["last", "final", "bottom"])
        .or_else(|| chinese_count(text, '后'))
        .map(|(_, place)| place)
}

fn counted(tokens: &[IdiomToken<'_>], words: &[&str]) -> Option<(i64, Range<usize>)> {
    tokens.windows(3).find_map(|three| match three {
        [word, count, noun] if word.is(words) && noun.is(&["line", "lines", "rows"]) => {
            Some((count.number()?, count.place.clone()))
        }
        _ => None,
    })
}

/// Parses a number between a mark and 行.
fn chinese_count(text: &str, mark: char) -> Option<(i64, Range<usize>)> {
    let start = text.find(mark)? + mark.len_utf8();
    let end = start + text[start..].find('行')?;
    Some((text[start..end].trim().parse().ok()?, start..end))
}

/// Returns the command after `run`, up to the words that describe it.
fn command(text: &str, tokens: &[IdiomToken<'_>]) -> Option<Range<usize>> {
    let at =
        tokens.iter().position(|token| token.is(&["run", "execute", "运行", "执行"])).filter(|at| *at < 2)?;
    let rest = &tokens[at + 1..];
    let rest =
        rest.iter().position(|token| !token.is(&["the", "this", "command", "命令"])).map(|at| &rest[at..])?;
    let first = rest.first()?;
    // A quotation is the whole command.
    if first.place.start > 0 && text[..first.place.start].ends_with(['"', '`', '“', '\'']) {
        return Some(first.place.clone());
    }
    let end = rest
        .iter()
        .position(|token| token.is(&["with", "in", "and", "for", "then", "using", "within", "on"]));
    let last = rest.get(end.unwrap_or(rest.len()).checked_sub(1)?)?;
    Some(first.place.start..last.place.end)
}

/// Parses `10 seconds` and `2 minutes`. Returns milliseconds.
fn duration(tokens: &[IdiomToken<'_>]) -> Option<(i64, Range<usize>)> {
    const UNITS: [(&[&str], i64); 3] = [
        (&["ms", "millisecond", "milliseconds"], 1),
        (&["s", "sec", "secs", "second", "seconds"], 1_000),
        (&["min", "mins", "minute", "minutes"], 60_000),
    ];
    tokens.windows(2).find_map(|pair| {
        let (_, times) = UNITS.iter().find(|(words, _)| pair[1].is(words))?;
        Some((pair[0].number()?.checked_mul(*times)?, pair[0].place.clone()))
    })
}

/// Parses `search for A in B`. Returns the pattern and the place.
fn search_pattern<'t, 'a>(
    tokens: &'t [IdiomToken<'a>],
) -> Option<(&'t IdiomToken<'a>, Option<&'t IdiomToken<'a>>)> {
    let at =
        tokens.windows(2).position(|pair| pair[0].is(&["search", "look", "grep"]) && pair[1].is(&["for"]))?;
    let sought = tokens.get(at + 2)?;
    match tokens.get(at + 3) {
        None => Some((sought, None)),
        Some(word) if word.is(&["in", "under", "below"]) => match &tokens[at + 4..] {
            [place] if !place.is(&["it", "here", "files", "everything"]) => Some((sought, Some(place))),
            _ => None,
        },
        Some(_) => None,
    }
}
