//! What a request wants: the first rule that recognises it decides.

use super::{
    phrases::Phrase,
    pieces::Piece,
    reading::{Part, Reading, Scope},
    words::Word,
};

mod change;
mod command;
mod git;

pub(super) use git::Since;

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Goal {
    Show {
        file: String,
        part: Part,
    },
    Define {
        name: String,
        show: bool,
    },
    FindFiles {
        scope: Scope,
        name: Option<String>,
    },
    Rank(Rank),
    Search {
        text: String,
        scope: Scope,
        want: Want,
    },
    List {
        directory: Option<String>,
    },
    Layout,
    Run {
        command: String,
    },
    Test {
        filter: Option<String>,
        code: bool,
    },
    CountLines(Scope),
    CountFiles(Scope),
    CountFunctions(Scope),
    Compare {
        one: String,
        two: String,
    },
    Status,
    Log {
        count: u64,
        path: Option<String>,
    },
    Diff,
    ChangesSince(Since),
    Blame {
        file: String,
        line: Option<u64>,
    },
    Create {
        path: String,
        content: String,
    },
    Replace {
        file: String,
        old: String,
        new: String,
    },
    Rename {
        from: String,
        to: String,
    },
    Delete {
        file: String,
    },
    /// It cannot be done, or not without knowing more.
    Say(Phrase),
}

/// What is wanted of the places that are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Places,
    Files,
    Count,
    Around(u64),
}

/// Files in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) order: Order,
    pub(super) scope: Scope,
    /// How many at most.
    pub(super) count: usize,
    /// `find`'s own test, if only some are wanted.
    pub(super) limit: Option<String>,
    /// Show this of the first.
    pub(super) then: Option<Part>,
}

/// By what files are put in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Largest,
    Smallest,
    Newest,
    Oldest,
}

/// Lines around a place where the request does not say how many.
const CONTEXT_LINES: u64 = 3;

/// How many files are listed where the request does not say how many.
const RANKED: usize = 10;

/// Recognises one kind of request.
type Rule = fn(&Reading) -> Option<Goal>;

/// Narrow rules first: what changes something, then what needs judgement, then what only looks.
const RULES: [Rule; 22] = [
    change::delete,
    change::rename,
    change::replace,
    change::create,
    command::run,
    layout,
    judgement,
    command::test,
    compare,
    git::blame,
    git::status,
    git::log,
    git::changes,
    count,
    define,
    rank,
    search,
    find,
    list,
    show,
    command::which,
    greet,
];

impl Goal {
    /// What a request wants.
    pub(super) fn of(reading: &Reading) -> Self {
        RULES.iter().find_map(|rule| rule(reading)).unwrap_or(Self::Say(Phrase::Unclear))
    }
}

fn layout(reading: &Reading) -> Option<Goal> {
    let looks = reading.has_any(&[Word::Explain, Word::List, Word::Show]);
    let wanted = reading.has(Word::Layout) || (looks && reading.has(Word::Project));
    let other = [Word::Think, Word::Why, Word::File, Word::Count, Word::Search, Word::Test, Word::Commit];
    (wanted && reading.names().is_empty() && !reading.has_any(&other)).then_some(Goal::Layout)
}

/// What only a model could do, unless the request looks for something first.
fn judgement(reading: &Reading) -> Option<Goal> {
    let looks = [Word::Show, Word::Find, Word::Search, Word::Count, Word::List];
    let thinks = reading.begins_with(Word::Think, &looks)
        || reading.begins_with(Word::Create, &looks) && reading.has(Word::Code)
        || reading.has_any(&[Word::Why, Word::Explain]);
    thinks.then_some(Goal::Say(Phrase::NeedsModel))
}

fn compare(reading: &Reading) -> Option<Goal> {
    let names = reading.names();
    let [one, two] = names.as_slice() else { return None };
    reading.has(Word::Compare).then(|| Goal::Compare { one: (*one).to_owned(), two: (*two).to_owned() })
}

fn count(reading: &Reading) -> Option<Goal> {
    if !reading.has(Word::Count) {
        return None;
    }
    let scope = reading.scope();
    let term = reading.terms().first().map(|term| (*term).to_owned());
    Some(match term {
        Some(text) => Goal::Search { text, scope, want: Want::Count },
        None if reading.has(Word::Function) => Goal::CountFunctions(scope),
        None if reading.has(Word::Line) => Goal::CountLines(scope),
        None if reading.has(Word::File) => Goal::CountFiles(scope),
        None => {
            let text = sought(reading)?;
            Goal::Search { text, scope, want: Want::Count }
        }
    })
}

fn define(reading: &Reading) -> Option<Goal> {
    let show = reading.has(Word::Function) && reading.has(Word::Show) && !reading.has(Word::Defined);
    if !show && !reading.has(Word::Defined) {
        return None;
    }
    let after = reading.after(&["function", "fn", "def", "method", "func", "struct", "class"]);
    let before = reading.words().find(|word| !is_common(word));
    let name = reading.terms().first().copied().or(after).or(before)?;
    Some(Goal::Define { name: name.trim_end_matches("()").to_owned(), show })
}

fn rank(reading: &Reading) -> Option<Goal> {
    let orders = [
        (Word::Largest, Order::Largest),
        (Word::Larger, Order::Largest),
        (Word::Smallest, Order::Smallest),
        (Word::Smaller, Order::Smallest),
        (Word::Newest, Order::Newest),
        (Word::Oldest, Order::Oldest),
    ];
    let (word, order) = *orders.iter().find(|(word, _)| reading.has(*word))?;
    if !reading.has(Word::File) {
        return None;
    }
    let limit = match word {
        Word::Larger => Some(format!("-size +{}c", size(reading)?)),
        Word::Smaller => Some(format!("-size -{}c", size(reading)?)),
        Word::Newest => days(reading).map(|days| format!("-mtime -{days}")),
        _ => None,
    };
    let part = Some(reading.part()).filter(|_| reading.has(Word::Line));
    let then =
        part.or_else(|| (reading.has(Word::Show) && reading.has(Word::First)).then_some(Part::First(10)));
    let one =
        limit.is_none() && matches!(order, Order::Largest | Order::Smallest) && reading.number().is_none();
    let count = reading.number().filter(|_| limit.is_none() && then.is_none());
    let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(if one { 1 } else { RANKED });
    Some(Goal::Rank(Rank { order, scope: reading.scope(), count, limit, then }))
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
        _ => 1,
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

fn search(reading: &Reading) -> Option<Goal> {
    let verb = reading.has_any(&[Word::Search, Word::Find, Word::Show, Word::List, Word::Around]);
    let by_name = reading.has(Word::File) && !reading.has(Word::Search) && reading.kind().is_none();
    if !verb || by_name && reading.terms().is_empty() {
        return None;
    }
    let scope = reading.scope();
    let text = reading.terms().first().map(|term| (*term).to_owned()).or_else(|| sought(reading))?;
    let around = reading.number().unwrap_or(CONTEXT_LINES);
    let want = if reading.has(Word::Around) {
        Want::Around(around)
    } else if reading.has(Word::File) && reading.kind().is_none() {
        Want::Files
    } else {
        Want::Places
    };
    Some(Goal::Search { text, scope, want })
}

/// A plain word that is looked for: after the verb, or the one word that stands in Chinese.
fn sought(reading: &Reading) -> Option<String> {
    const MARKS: [&str; 18] = [
        "for",
        "grep",
        "word",
        "text",
        "string",
        "contain",
        "contains",
        "containing",
        "mention",
        "mentions",
        "mentioning",
        "use",
        "uses",
        "using",
        "say",
        "says",
        "called",
        "occurrences",
    ];
    if !reading.has(Word::Search) {
        return None;
    }
    let place = reading.scope().place;
    let marked =
        reading.words().enumerate().filter(|(_, word)| MARKS.contains(&word.to_lowercase().as_str()));
    let after = marked.last().and_then(|(at, _)| reading.words().skip(at + 1).find(|word| !is_common(word)));
    let only = || {
        let chinese = reading.pieces.iter().any(|piece| matches!(piece, Piece::Glyphs(_)));
        reading.words().find(|word| chinese && !is_common(word))
    };
    after.or_else(only).filter(|word| Some(*word) != place.as_deref()).map(str::to_owned)
}

/// Words that are never what is looked for.
fn is_common(word: &str) -> bool {
    const COMMON: &str = " the a an all any every each of in is it are was for to and with that this my our me where do does we you what which who \
        find search show grep look please file files line lines word text string function functions fn def method defined definition implemented \
        code git rust python here there can could would i be have has ";
    COMMON.contains(&format!(" {} ", word.to_lowercase()))
}

fn find(reading: &Reading) -> Option<Goal> {
    let scope = reading.scope();
    let named = reading.after(&["named", "called"]).map(str::to_owned);
    let wants = reading.has_any(&[Word::Find, Word::List, Word::Show]);
    let by_kind = scope.glob.is_some();
    let by_name = named.is_some() || (reading.has(Word::Find) && !reading.names().is_empty());
    if !wants || !(by_kind || by_name) {
        return None;
    }
    let name = named
        .or_else(|| (!by_kind).then(|| reading.names().first().map(|name| (*name).to_owned())).flatten());
    let scope = if name.is_some() { Scope { place: None, ..scope } } else { scope };
    Some(Goal::FindFiles { scope, name })
}

fn list(reading: &Reading) -> Option<Goal> {
    if !reading.has_any(&[Word::List, Word::Find]) || !reading.names().iter().all(|name| name.ends_with('/'))
    {
        return None;
    }
    let directory = reading.scope().place;
    let here =
        directory.is_some() || reading.has_any(&[Word::File, Word::Directory]) || reading.pieces.len() == 1;
    here.then_some(Goal::List { directory })
}

fn show(reading: &Reading) -> Option<Goal> {
    let part = reading.part();
    if let Some(name) = reading.names().first() {
        let alone = reading.pieces.len() == 1;
        let asks = reading.has(Word::Show) || reading.has(Word::List) || part != Part::Whole || alone;
        let directory = name.ends_with('/');
        return asks.then(|| {
            let file = (*name).to_owned();
            if directory { Goal::List { directory: Some(file) } } else { Goal::Show { file, part } }
        });
    }
    let word = reading
        .words()
        .find(|word| !is_common(word) && Word::Show.place(&format!(" {} ", word.to_lowercase())).is_none());
    let file = reading.terms().first().copied().or(word)?;
    reading.has(Word::Show).then(|| Goal::Show { file: file.to_owned(), part })
}

fn greet(reading: &Reading) -> Option<Goal> {
    reading.has(Word::Greet).then_some(Goal::Say(Phrase::Hello))
}
