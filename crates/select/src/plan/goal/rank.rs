//! Requests for files in an order: the largest, the newest, those above a size.

use super::PlanGoal;
use crate::plan::{
    parsed_request::{LineSelection, ParsedRequest, SearchScope},
    tokens::RequestToken,
    words::WordClass,
};

/// A list of files in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::plan) struct FileRanking {
    pub(in crate::plan) order: RankOrder,
    pub(in crate::plan) scope: SearchScope,
    /// Maximum number of files.
    pub(in crate::plan) count: usize,
    /// The test for `find`, if only some files are wanted.
    pub(in crate::plan) limit: Option<String>,
    /// The lines of the first file to show.
    pub(in crate::plan) then: Option<LineSelection>,
}

/// The order of files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum RankOrder {
    Largest,
    Smallest,
    Newest,
    Oldest,
}

/// Default number of files.
pub(in crate::plan) const DEFAULT_RANKED_FILES: usize = 10;

/// Default number of lines of the first file.
const DEFAULT_SHOWN_LINES: u64 = 10;

const ORDERS: [(WordClass, RankOrder); 7] = [
    (WordClass::Largest, RankOrder::Largest),
    (WordClass::Larger, RankOrder::Largest),
    (WordClass::Smallest, RankOrder::Smallest),
    (WordClass::Smaller, RankOrder::Smallest),
    (WordClass::Newest, RankOrder::Newest),
    (WordClass::Oldest, RankOrder::Oldest),
    (WordClass::Size, RankOrder::Largest),
];

pub(super) fn rank(request: &ParsedRequest) -> Option<PlanGoal> {
    let (word, order) = *ORDERS.iter().find(|(word, _)| request.has(*word))?;
    // `the largest and the smallest` are two questions.
    if ORDERS.iter().any(|(other, by)| *by != order && *other != WordClass::Size && request.has(*other)) {
        return None;
    }
    let one_file = word == WordClass::Size && request.names().len() == 1;
    if !request.has(WordClass::File) && !one_file {
        return None;
    }
    let limit = match word {
        WordClass::Larger => Some(format!("-size +{}c", size(request)?)),
        WordClass::Smaller => Some(format!("-size -{}c", size(request)?)),
        WordClass::Newest => days(request).map(|days| format!("-mtime -{days}")),
        _ => None,
    };
    let part = Some(request.part()).filter(|_| request.has(WordClass::Line));
    let shows = request.has(WordClass::Show) && request.has(WordClass::First);
    let then = part.or_else(|| shows.then_some(LineSelection::First(DEFAULT_SHOWN_LINES)));
    let several =
        request.words().any(|word| word.eq_ignore_ascii_case("files")) || request.text.contains("哪些");
    let single = matches!(word, WordClass::Largest | WordClass::Smallest) && !several;
    let count = request.number().filter(|_| limit.is_none() && then.is_none());
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(if single {
        1
    } else {
        DEFAULT_RANKED_FILES
    });
    let scope = SearchScope { glob: request.scope().glob.filter(|_| !one_file), ..request.scope() };
    Some(PlanGoal::Rank(FileRanking { order, scope, count, limit, then }))
}

/// Returns the named size, in bytes.
fn size(request: &ParsedRequest) -> Option<u64> {
    let at = request.tokens.iter().position(|token| matches!(token, RequestToken::Number(_)))?;
    let RequestToken::Number(number) = request.tokens[at] else { return None };
    let unit = match request.tokens.get(at + 1) {
        Some(RequestToken::Word(unit) | RequestToken::Symbol(unit)) => unit.to_lowercase(),
        _ => String::new(),
    };
    let times = match unit.as_str() {
        "k" | "kb" | "kib" | "kilobytes" => 1 << 10,
        "m" | "mb" | "mib" | "megabytes" => 1 << 20,
        "g" | "gb" | "gib" | "gigabytes" => 1 << 30,
        "b" | "byte" | "bytes" => 1,
        // Lines, days or another unit.
        _ => return None,
    };
    number.checked_mul(times)
}

/// Returns the named period, in days.
fn days(request: &ParsedRequest) -> Option<u64> {
    let number = request.number().unwrap_or(1);
    let unit = |words: &[&str], glyphs: &[char]| {
        request.words().any(|word| words.contains(&word.to_lowercase().as_str()))
            || request.text.contains(glyphs)
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
