//! Finds the mentions of a request that could be values: quotations, numbers, dates, paths, codes
//! and names.

use super::{
    date::{self, CalendarDate},
    number,
};
use crate::text;

/// Maximum number of bytes that are read, and of mentions that are taken. Time grows with both.
const MAX_BYTES: usize = 20_000;
const MAX_MENTIONS: usize = 300;

/// A substring of the request that could be a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ValueMention {
    pub(super) kind: MentionKind,
    /// The byte range.
    pub(super) start: usize,
    pub(super) end: usize,
    /// The text as written, without quotes.
    pub(super) text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum MentionKind {
    Quoted,
    Number {
        value: f64,
        unit: NumberUnit,
    },
    Date(CalendarDate),
    /// `18:00`, as minutes since midnight.
    Time(u32),
    Email,
    Url,
    Path,
    /// Letters and digits together: `C12345`.
    Code,
    Name,
}

/// The unit next to a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberUnit {
    None,
    Percent,
    Money,
}

/// Returns the part of a request that is read.
pub(super) fn head(request: &str) -> &str {
    text::cut(request, MAX_BYTES)
}

/// Returns all mentions of a text, in order.
pub(super) fn mentions(text: &str, today: Option<CalendarDate>) -> Vec<ValueMention> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut fresh = true;
    while at < text.len() && found.len() < MAX_MENTIONS {
        let rest = &text[at..];
        let before = text[..at].chars().next_back();
        let inside = before.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
        let step = if inside { None } else { mention_at(rest, before, fresh, today) };
        let c = rest.chars().next().unwrap_or(' ');
        if let Some((kind, text, bytes)) = step {
            found.push(ValueMention { kind, start: at, end: at + bytes, text });
            at += bytes;
            fresh = false;
            continue;
        }
        if ".!?。！？\n:：".contains(c) {
            fresh = true;
        } else if c.is_alphanumeric() {
            fresh = false;
        }
        at += c.len_utf8();
    }
    found
}

type MentionMatch = (MentionKind, String, usize);

fn mention_at(
    rest: &str,
    before: Option<char>,
    fresh: bool,
    today: Option<CalendarDate>,
) -> Option<MentionMatch> {
    quoted(rest, before)
        .or_else(|| {
            date::read(rest, today)
                .map(|(date, bytes)| (MentionKind::Date(date), rest[..bytes].to_owned(), bytes))
        })
        .or_else(|| time(rest))
        .or_else(|| token(rest))
        .or_else(|| numeral(rest, before))
        .or_else(|| name(rest, fresh))
}

fn quoted(rest: &str, before: Option<char>) -> Option<MentionMatch> {
    const PAIRS: [(char, char); 9] = [
        ('"', '"'),
        ('\'', '\''),
        ('`', '`'),
        ('“', '”'),
        ('‘', '’'),
        ('《', '》'),
        ('「', '」'),
        ('『', '』'),
        ('＂', '＂'),
    ];
    let open = rest.chars().next()?;
    let (_, close) = PAIRS.iter().find(|(first, _)| *first == open)?;
    if open == '\'' && before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inner = &rest[open.len_utf8()..];
    let closes = |at: usize| {
        // The apostrophe of "it's" closes no quotation.
        open != '\'' || !inner[at + 1..].chars().next().is_some_and(char::is_alphanumeric)
    };
    let end = inner.match_indices(*close).map(|(at, _)| at).find(|at| closes(*at))?;
    let text = inner[..end].trim();
    let fits = !text.is_empty() && text.len() <= 2_000;
    fits.then(|| (MentionKind::Quoted, text.to_owned(), open.len_utf8() + end + close.len_utf8()))
}

/// Parses `18:00`, `6:30 PM`, `9 pm`.
fn time(rest: &str) -> Option<MentionMatch> {
    let hours = digits(rest);
    let hour: u32 = rest[..hours].parse().ok().filter(|hour| hours <= 2 && *hour < 25)?;
    let mut end = hours;
    let mut minute = 0;
    if let Some(after) = rest[end..].strip_prefix(':').filter(|after| digits(after) == 2) {
        minute = after[..2].parse().ok().filter(|minute| *minute < 60)?;
        end += 3;
    }
    let suffix = rest[end..].trim_start().get(..2).map(str::to_ascii_lowercase);
    let half = match suffix.as_deref() {
        Some("am") => Some(0),
        Some("pm") => Some(12),
        _ if end > hours => None,
        _ => return None,
    };
    if half.is_some() {
        end = rest.len() - rest[end..].trim_start().len() + 2;
    }
    let hour = half.map_or(hour, |half| hour % 12 + half);
    Some((MentionKind::Time(hour * 60 + minute), rest[..end].to_owned(), end))
}

/// Parses an address, a path or a code.
fn token(rest: &str) -> Option<MentionMatch> {
    let end = rest.find(|c: char| !c.is_ascii() || c.is_whitespace() || "\"'`,;()[]{}<>!?|".contains(c));
    let word = rest[..end.unwrap_or(rest.len())].trim_end_matches(['.', ':', ',']);
    let has = |c: char| word.contains(c);
    let letters = word.chars().any(|c| c.is_ascii_alphabetic());
    let digits = word.chars().any(|c| c.is_ascii_digit());
    let extension = word.rsplit_once('.').is_some_and(|(stem, end)| {
        !stem.is_empty()
            && (1..=5).contains(&end.len())
            && end.chars().all(|c| c.is_ascii_alphanumeric())
            && end.chars().any(|c| c.is_ascii_alphabetic())
    });
    let rooted = ["./", "../", "/", "~/"].iter().any(|root| word.starts_with(root));
    let filed = extension && !word.starts_with(|c: char| c.is_ascii_digit()) || has('*') && has('.');
    let steps = word.split('/').all(|step| step.len() > 1) && !word.eq_ignore_ascii_case("and/or");
    let nested = has('/') && steps && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-./*".contains(c));
    let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "_-#.:/+".contains(c));
    let mixed = letters && (has('_') || digits) && !has_unit(word) && plain;
    let hyphened = !letters && digits && word.matches('-').count() >= 2 && word.len() >= 7;
    let kind = if word.len() < 2 {
        return None;
    } else if word.contains("://") || word.starts_with("www.") {
        MentionKind::Url
    } else if word.split_once('@').is_some_and(|(who, host)| !who.is_empty() && host.contains('.')) {
        MentionKind::Email
    } else if letters && (rooted || filed || nested) {
        MentionKind::Path
    } else if mixed || hyphened {
        MentionKind::Code
    } else {
        return None;
    };
    Some((kind, word.to_owned(), word.len()))
}

/// Returns true if a word is a number with its unit or ending: `10kg`, `5th`, `3D`.
fn has_unit(word: &str) -> bool {
    let unit = word.trim_start_matches(|c: char| c.is_ascii_digit() || ".,".contains(c));
    let short = unit.len() <= 2 || unit.len() <= 4 && unit.chars().all(|c| c.is_ascii_lowercase());
    unit.len() < word.len() && short && unit.chars().all(|c| c.is_ascii_alphabetic())
}

fn numeral(rest: &str, before: Option<char>) -> Option<MentionMatch> {
    let money = rest.starts_with(['$', '€', '£', '¥', '￥']);
    let body = if money { rest.trim_start_matches(['$', '€', '£', '¥', '￥']) } else { rest };
    let skipped = rest.len() - body.len();
    let (mut value, mut end) = number_at(body, before)?;
    let after = body[end..].trim_start_matches(' ');
    let word_end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
    let scaled = number::scale(&after[..word_end].to_lowercase()).or_else(|| {
        after.chars().next().filter(|c| "万亿".contains(*c)).and_then(|c| number::scale(&c.to_string()))
    });
    if let Some(times) = scaled {
        value *= times;
        end = body.len() - after.len() + if after.starts_with(['万', '亿']) { 3 } else { word_end };
    }
    let after = body[end..].trim_start_matches(' ');
    let percent = after.starts_with(['%', '％']) || after.starts_with("percent");
    let unit = if money || after.starts_with('元') || after.starts_with("dollar") {
        NumberUnit::Money
    } else if percent {
        NumberUnit::Percent
    } else {
        NumberUnit::None
    };
    let end = skipped + end;
    Some((MentionKind::Number { value, unit }, rest[skipped..end].to_owned(), end))
}

/// Parses a number at the beginning of a text. Returns it with its length in bytes.
fn number_at(body: &str, before: Option<char>) -> Option<(f64, usize)> {
    let sign = usize::from(body.starts_with('-') && !before.is_some_and(char::is_alphanumeric));
    let number = &body[sign..];
    if number.starts_with(|c: char| c.is_ascii_digit()) || number.starts_with('.') && digits(&number[1..]) > 0
    {
        let mut end =
            number.find(|c: char| !c.is_ascii_digit() && c != ',' && c != '.').unwrap_or(number.len());
        end = number[..end].trim_end_matches([',', '.']).len();
        // `1,000` is one number; `1,2` is two.
        if let Some(comma) = number[..end].find(',') {
            let groups = number[..end]
                .split('.')
                .next()
                .unwrap_or_default()
                .split(',')
                .skip(1)
                .all(|group| group.len() == 3);
            end = if groups { end } else { comma };
        }
        let value: f64 = number[..end].replace(',', "").parse().ok()?;
        return Some((if sign == 1 { -value } else { value }, sign + end));
    }
    let end = body.find(|c: char| !number::is_chinese(c)).unwrap_or(body.len());
    let unit = body[end..].chars().next().filter(|c| {
        "个名位次年月天小分秒公元度级人件张本只条杯份岁米千克斤页部间晚周倍台辆种点".contains(*c)
    });
    // 一个 is an article more often than a count.
    if end > 0 && &body[..end] != "一" && (unit.is_some() || body[..end].chars().count() > 1) {
        return number::chinese(&body[..end]).map(|value| (value, end));
    }
    let end = body.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(body.len());
    number::word(&body[..end].to_ascii_lowercase()).map(|value| (value, end))
}

fn digits(text: &str) -> usize {
    text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())
}

/// Words that begin sentences and are no proper names.
const STARTERS: &str = " i i'm i've i'd i'll we you he she it they the a an this that these those what what's which who whose where when why how is are was were do does did \
can could would will should may please find get calculate compute show give tell create make set add remove delete update search look book order play \
send list check determine generate convert compare analyze provide identify retrieve fetch estimate predict evaluate help need want let use if for in on at \
from to with and or but also my our your his her hi hello hey sure yes no ok okay thanks thank track plan schedule start stop open close turn run solve \
simulate draw write read translate recommend suggest buy sell locate perform also then actually given using assuming consider mix plot say verify count reserve ";

/// Parses capitalised words that form one name, in any script with capitals. In Chinese text any
/// foreign word is a name.
fn name(rest: &str, fresh: bool) -> Option<MentionMatch> {
    let mut end = 0;
    let mut words = 0;
    while words < 8 {
        let next = rest[end..].strip_prefix(' ').filter(|_| words > 0).unwrap_or(&rest[end..]);
        let at = rest.len() - next.len();
        let link = ["of the ", "of ", "the ", "de ", "& ", "and the "]
            .iter()
            .find(|link| words > 0 && at > end && next.starts_with(**link));
        let next = link.map_or(next, |link| &next[link.len()..]);
        let at = rest.len() - next.len();
        let length = next
            .find(|c: char| !(c.is_alphanumeric() && !is_cjk(c) || "'’-.&+".contains(c)))
            .unwrap_or(next.len());
        let word = next[..length].trim_end_matches(['.', '-', '\'', '’', '+']);
        let word = word.strip_suffix("'s").or_else(|| word.strip_suffix("’s")).unwrap_or(word);
        let starter = STARTERS.contains(&format!(" {} ", word.to_lowercase().replace('’', "'")));
        let first = words == 0 && link.is_none();
        if !word.starts_with(char::is_uppercase)
            || (starter && (first || word == "I"))
            || (first && fresh && word.ends_with("ing"))
            || (!first && at == end)
        {
            break;
        }
        end = at + word.len();
        words += 1;
        if length != word.len() {
            break;
        }
    }
    end += if words > 0 { suffix_len(&rest[end..]) } else { 0 };
    let text = &rest[..end];
    // A single word at the beginning of a sentence is capitalised anyway.
    let lone =
        fresh && words == 1 && rest[end..].starts_with(' ') && text.chars().skip(1).all(char::is_lowercase);
    (words > 0 && !lone && text.len() < 200).then(|| (MentionKind::Name, text.to_owned(), end))
}

/// Returns the length of a suffix such as `@123` or `#1` that follows a name directly. It belongs
/// to the name, even if that makes the name wrong.
fn suffix_len(rest: &str) -> usize {
    let tail = rest.strip_prefix(['@', '#', '^']).unwrap_or_default();
    let end = tail.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(tail.len());
    if end > 0 { end + 1 } else { 0 }
}

/// Returns true for a Chinese character.
pub(super) fn is_cjk(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}
