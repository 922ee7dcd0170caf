//! Requests for files in an order: the largest, the newest, those above a size.

use super::Goal;
use crate::plan::{
    pieces::Piece,
    reading::{Part, Reading, Scope},
    words::Word,
};

/// Files in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct Rank {
    pub(in crate::plan) order: Order,
    pub(in crate::plan) scope: Scope,
    /// How many at most.
    pub(in crate::plan) count: usize,
    /// `find`'s own test, if only some are wanted.
    pub(in crate::plan) limit: Option<String>,
    /// Show this of the first.
    pub(in crate::plan) then: Option<Part>,
}

/// By what files are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum Order {
    Largest,
    Smallest,
    Newest,
    Oldest,
}

/// How many files are listed where the request does not say how many.
pub(in crate::plan) const RANKED: usize = 10;

/// How many lines of the first are shown where the request does not say how many.
const SHOWN_LINES: u64 = 10;

const ORDERS: [(Word, Order); 7] = [
    (Word::Largest, Order::Largest),
    (Word::Larger, Order::Largest),
    (Word::Smallest, Order::Smallest),
    (Word::Smaller, Order::Smallest),
    (Word::Newest, Order::Newest),
    (Word::Oldest, Order::Oldest),
    (Word::Size, Order::Largest),
];

pub(super) fn rank(reading: &Reading) -> Option<Goal> {
    let (word, order) = *ORDERS.iter().find(|(word, _)| reading.has(*word))?;
    // `the largest and the smallest` are two questions.
    if ORDERS.iter().any(|(other, by)| *by != order && *other != Word::Size && reading.has(*other)) {
        return None;
    }
    let one_file = word == Word::Size && reading.names().len() == 1;
    if !reading.has(Word::File) && !one_file {
        return None;
    }
    let limit = match word {
        Word::Larger => Some(format!("-size +{}c", size(reading)?)),
        Word::Smaller => Some(format!("-size -{}c", size(reading)?)),
        Word::Newest => days(reading).map(|days| format!("-mtime -{days}")),
        _ => None,
    };
    let part = Some(reading.part()).filter(|_| reading.has(Word::Line));
    let shows = reading.has(Word::Show) && reading.has(Word::First);
    let then = part.or_else(|| shows.then_some(Part::First(SHOWN_LINES)));
    let several =
        reading.words().any(|word| word.eq_ignore_ascii_case("files")) || reading.text.contains("哪些");
    let single = matches!(word, Word::Largest | Word::Smallest) && !several;
    let count = reading.number().filter(|_| limit.is_none() && then.is_none());
    let count =
        count.and_then(|count| usize::try_from(count).ok()).unwrap_or(if single { 1 } else { RANKED });
    let scope = Scope { glob: reading.scope().glob.filter(|_| !one_file), ..reading.scope() };
    Some(Goal::Rank(Rank { order, scope, count, limit, then }))
}

/// A size that is named, in bytes.
fn size(reading: &Reading) -> Option<u64> {
    let at = reading.pieces.iter().position(|piece| matches!(piece, Piece::Number(_)))?;
    let Piece::Number(number) = reading.pieces[at] else { return None };
    let unit = match reading.pieces.get(at + 1) {
        Some(Piece::Word(unit) | Piece::Symbol(unit)) => unit.to_lowercase(),
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
fn days(reading: &Reading) -> Option<u64> {
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
