//! Requests for files in an order: the largest, the newest, those above a size.

use super::PlanGoal;
use crate::plan::{
    pieces::RequestToken,
    reading::{LineSelection, ParsedRequest, SearchScope},
    words::WordClass,
};

/// Files in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct FileRanking {
    pub(in crate::plan) order: RankOrder,
    pub(in crate::plan) scope: SearchScope,
    /// How many at most.
    pub(in crate::plan) count: usize,
    /// `find`'s own test, if only some are wanted.
    pub(in crate::plan) limit: Option<String>,
    /// Show this of the first.
    pub(in crate::plan) then: Option<LineSelection>,
}

/// By what files are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum RankOrder {
    Largest,
    Smallest,
    Newest,
    Oldest,
}

/// How many files are listed where the request does not say how many.
pub(in crate::plan) const RANKED: usize = 10;

/// How many lines of the first are shown where the request does not say how many.
const SHOWN_LINES: u64 = 10;

const ORDERS: [(WordClass, RankOrder); 7] = [
    (WordClass::Largest, RankOrder::Largest),
    (WordClass::Larger, RankOrder::Largest),
    (WordClass::Smallest, RankOrder::Smallest),
    (WordClass::Smaller, RankOrder::Smallest),
    (WordClass::Newest, RankOrder::Newest),
    (WordClass::Oldest, RankOrder::Oldest),
    (WordClass::Size, RankOrder::Largest),
];

pub(super) fn rank(reading: &ParsedRequest) -> Option<PlanGoal> {
    let (word, order) = *ORDERS.iter().find(|(word, _)| reading.has(*word))?;
    // `the largest and the smallest` are two questions.
    if ORDERS.iter().any(|(other, by)| *by != order && *other != WordClass::Size && reading.has(*other)) {
        return None;
    }
    let one_file = word == WordClass::Size && reading.names().len() == 1;
    if !reading.has(WordClass::File) && !one_file {
        return None;
    }
    let limit = match word {
        WordClass::Larger => Some(format!("-size +{}c", size(reading)?)),
        WordClass::Smaller => Some(format!("-size -{}c", size(reading)?)),
        WordClass::Newest => days(reading).map(|days| format!("-mtime -{days}")),
        _ => None,
    };
    let part = Some(reading.part()).filter(|_| reading.has(WordClass::Line));
    let shows = reading.has(WordClass::Show) && reading.has(WordClass::First);
    let then = part.or_else(|| shows.then_some(LineSelection::First(SHOWN_LINES)));
    let several =
        reading.words().any(|word| word.eq_ignore_ascii_case("files")) || reading.text.contains("哪些");
    let single = matches!(word, WordClass::Largest | WordClass::Smallest) && !several;
    let count = reading.number().filter(|_| limit.is_none() && then.is_none());
    let count =
        count.and_then(|count| usize::try_from(count).ok()).unwrap_or(if single { 1 } else { RANKED });
    let scope = SearchScope { glob: reading.scope().glob.filter(|_| !one_file), ..reading.scope() };
    Some(PlanGoal::Rank(FileRanking { order, scope, count, limit, then }))
}

/// A size that is named, in bytes.
fn size(reading: &ParsedRequest) -> Option<u64> {
    let at = reading.pieces.iter().position(|piece| matches!(piece, RequestToken::Number(_)))?;
    let RequestToken::Number(number) = reading.pieces[at] else { return None };
    let unit = match reading.pieces.get(at + 1) {
        Some(RequestToken::Word(unit) | RequestToken::Symbol(unit)) => unit.to_lowercase(),
        _ => String::new(),
    };
    let times = match unit.as_str() {
        "k" | "kb" | "kib" | "kilobytes" => 1 << 10,
        "m" | "mb" | "mib" | "megabytes" => 1 << 20,
        "g" | "gb" | "gib" | "gigabytes" => 1 << 30,
        "b" | "byte" | "bytes" => 1,
        // Lines, days, or whatever else.
        _ => return None,
    };
    number.checked_mul(times)
}

/// A time that is named, in days.
fn days(reading: &ParsedRequest) -> Option<u64> {
    let number = reading.number().unwrap_or(1);
    let unit = |words: &[&str], glyphs: &[char]| {
        reading.words().any(|word| words.contains(&word.to_lowercase().as_str()))
            || reading.text.contains(glyphs)
    };
    if unit(&["day", "days", "today"], &['天']) {
        Some(number)
    } else if unit(&["week", "weeks"], &['周']) {
        number.checked_mul(7)
    } else if unit(&["month", "months"], &['月']) {
        number.checked_mul(30)
    } else {
        None
    }
}
