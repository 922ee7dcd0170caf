//! Requests that only look: show, list, find, search, count.

use super::{PlanGoal, SearchOutput, change::says_only};
use crate::plan::{
    pieces::RequestToken,
    reading::{LOG_FILES, LineSelection, ParsedRequest, SearchScope},
    words::{self, WordClass},
};

/// Lines around a place where the request does not say how many.
const CONTEXT_LINES: u64 = 3;

pub(super) fn count(reading: &ParsedRequest) -> Option<PlanGoal> {
    if !reading.has(WordClass::Count) {
        return None;
    }
    let scope = reading.scope();
    let texts = terms(reading);
    Some(match reading {
        _ if !texts.is_empty() => {
            PlanGoal::Search { texts, scope, want: SearchOutput::Count, whole_word: false }
        }
        _ if reading.has(WordClass::Line) => PlanGoal::CountLines(scope),
        _ if reading.has(WordClass::File) => PlanGoal::CountFiles(scope),
        _ => PlanGoal::Search {
            texts: vec![sought(reading)?],
            scope,
            want: SearchOutput::Count,
            whole_word: false,
        },
    })
}

pub(super) fn define(reading: &ParsedRequest) -> Option<PlanGoal> {
    let item = reading.has_any(&[WordClass::Function, WordClass::Item]);
    let show = item && reading.has(WordClass::Show) && !reading.has(WordClass::Defined);
    if !show && !reading.has(WordClass::Defined)
        || !reading.names().is_empty()
        || reading.has(WordClass::File)
    {
        return None;
    }
    let after = reading.after(&["function", "fn", "def", "method", "func", "struct", "class"]);
    let chinese = reading.pieces.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(name), RequestToken::Glyphs(text)]
            if ["函数", "方法", "结构体", "类"].iter().any(|kind| text.starts_with(kind)) =>
        {
            Some(name.as_str())
        }
        _ => None,
    });
    let first = reading.words().find(|word| !is_common(word));
    let name = reading.terms().first().copied().or(chinese).or(after).or(first)?;
    Some(PlanGoal::Define { name: name.to_owned(), show })
}

pub(super) fn search(reading: &ParsedRequest) -> Option<PlanGoal> {
    let verb = reading.has_any(&[
        WordClass::Search,
        WordClass::Find,
        WordClass::Show,
        WordClass::List,
        WordClass::Around,
    ]);
    let kind = reading.kind().is_some();
    let by_name = reading.has(WordClass::File) && !reading.has(WordClass::Search) && !kind;
    let mut texts = used(reading).map_or_else(|| terms(reading), |name| vec![name]);
    if !verb || (by_name && texts.is_empty()) {
        return None;
    }
    if texts.is_empty() {
        texts.push(sought(reading).or_else(|| around(reading))?);
    }
    let both = reading.words().any(|word| ["and", "both"].contains(&word)) || reading.text.contains('和');
    let want = if reading.has(WordClass::Around) {
        SearchOutput::Around(reading.number().unwrap_or(CONTEXT_LINES))
    } else if reading.has(WordClass::File) && !kind {
        // Files that have the one and the other are another question than those that have either.
        if texts.len() > 1 && both {
            return None;
        }
        SearchOutput::Files
    } else {
        SearchOutput::Places
    };
    let mut scope = reading.scope();
    scope.place = scope.place.filter(|place| !texts.contains(place));
    Some(PlanGoal::Search { texts, scope, want, whole_word: asks_for_uses(reading) })
}

/// Whether it asks who uses something.
fn asks_for_uses(reading: &ParsedRequest) -> bool {
    const USES: &str = " use uses used using usage usages call calls caller callers reference references ";
    let chinese = ["用到", "使用", "引用", "调用", "用了"].iter().any(|verb| reading.text.contains(verb));
    chinese || reading.words().any(|word| USES.contains(&format!(" {} ", word.to_lowercase())))
}

/// What looks like a file and is a text all the same, as it stands after `use`: `console.log`.
fn used(reading: &ParsedRequest) -> Option<String> {
    const VERBS: [&str; 10] =
        ["use", "uses", "using", "call", "calls", "contain", "contains", "containing", "mention", "mentions"];
    let name = reading.pieces.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(verb), RequestToken::Name(name)] if VERBS.contains(&verb.as_str()) => Some(name),
        [RequestToken::Glyphs(text), RequestToken::Name(name)] => {
            let verbs = ["用到", "用到了", "使用", "使用了", "调用", "调用了", "包含", "用了"];
            verbs.iter().any(|verb| text.ends_with(verb)).then_some(name)
        }
        _ => None,
    })?;
    (!name.contains(['/', '*'])).then(|| name.clone())
}

fn terms(reading: &ParsedRequest) -> Vec<String> {
    reading.terms().into_iter().map(str::to_owned).collect()
}

/// A plain word that is looked for: after the verb, or the one word that stands in Chinese.
fn sought(reading: &ParsedRequest) -> Option<String> {
    const MARKS: &str = " for of calls grep word text string contain contains containing mention mentions mentioning use uses using say says called occurrences ";
    if !reading.has(WordClass::Search) {
        return None;
    }
    let place = reading.scope().place;
    // `csv files` says where to look.
    let kind = reading.kind();
    let is_kind = |word: &str| kind.is_some() && words::extension(word) == kind.as_deref();
    let is_mark = |word: &str| MARKS.contains(&format!(" {} ", word.to_lowercase()));
    let last = reading.words().enumerate().filter(|(_, word)| is_mark(word)).last();
    let after =
        last.and_then(|(at, _)| reading.words().skip(at + 1).find(|word| !is_common(word) && !is_kind(word)));
    let only = || {
        let chinese = reading.pieces.iter().any(|piece| matches!(piece, RequestToken::Glyphs(_)));
        reading.words().find(|word| chinese && !is_common(word) && !is_kind(word))
    };
    after.or_else(only).filter(|word| Some(*word) != place.as_deref()).map(str::to_owned)
}

/// What the lines around it are wanted of: `fn main` as code has it, or the name of a function.
fn around(reading: &ParsedRequest) -> Option<String> {
    const WRITTEN: [&str; 7] = ["fn", "def", "func", "struct", "class", "enum", "trait"];
    if !reading.has(WordClass::Around) {
        return None;
    }
    let written = WRITTEN.iter().find_map(|word| Some(format!("{word} {}", reading.after(&[word])?)));
    written.or_else(|| reading.after(&["function", "method"]).map(str::to_owned))
}

/// Words that are never what is looked for.
fn is_common(word: &str) -> bool {
    const COMMON: &str = " the a an all any every each of in is it are was for to and with that this my our me where do does we you what what's which who tell need see \
        find search show grep look please file files line lines word text string function functions fn def method defined definition implemented \
        code git rust python here there can could would i be have has struct class enum trait type interface usages references name names named called \
        everything content contents first last top largest biggest ";
    COMMON.contains(&format!(" {} ", word.to_lowercase()))
}

pub(super) fn find(reading: &ParsedRequest) -> Option<PlanGoal> {
    let wants = reading.has_any(&[WordClass::Find, WordClass::List, WordClass::Show]);
    let shows_log = reading.means_log() && !reading.has(WordClass::File);
    if !wants || reading.has(WordClass::Create) || shows_log {
        return None;
    }
    let scope = reading.scope();
    let marked = reading.after(&["named", "called"]).filter(|name| !name.contains('*'));
    let within =
        || reading.has(WordClass::Named).then(|| reading.words().find(|word| !is_common(word))).flatten();
    let described =
        marked.or_else(within).filter(|_| reading.has(WordClass::File) && reading.names().is_empty());
    let asked = reading
        .names()
        .first()
        .copied()
        .filter(|_| reading.has(WordClass::Find) && !reading.has(WordClass::Show));
    match (described.or(asked), &scope.glob) {
        (_, Some(_)) => Some(PlanGoal::FindFiles { scope, name: None }),
        (Some(name), None) => {
            Some(PlanGoal::FindFiles { scope: SearchScope::default(), name: Some(name.to_owned()) })
        }
        (None, None) => None,
    }
}

/// What is in a directory, if nothing is said that would make it another question.
pub(super) fn list(reading: &ParsedRequest) -> Option<PlanGoal> {
    let listed = reading.has_any(&[WordClass::List, WordClass::Find])
        || (reading.has(WordClass::Show) && reading.has(WordClass::Directory));
    if !listed || !reading.names().iter().all(|name| name.ends_with('/')) {
        return None;
    }
    let only = || reading.words().filter(|word| !is_common(word) && !is_verb(word)).map(str::to_owned).next();
    let directory = reading.scope().place.or_else(|| only().filter(|_| reading.has(WordClass::List)));
    let words = "find list ls dir what what's is are there any directory directories folder folders under inside here show see which content contents of";
    let place = directory.as_deref().unwrap_or_default();
    let plain = says_only(
        reading,
        &format!("{words} {}", place.to_lowercase()),
        &format!(
            "列出 列一下 列 有什么 有哪些 有 都有 哪些 目录 文件夹 下面 下 里面 内 东西 看看 看一下 查看 看 显示 当前 {place}"
        ),
    );
    let here = directory.is_some()
        || reading.has_any(&[WordClass::File, WordClass::Directory])
        || reading.pieces.len() == 1;
    (plain && here).then_some(PlanGoal::List { directory })
}

pub(super) fn show(reading: &ParsedRequest) -> Option<PlanGoal> {
    let part = match reading.part() {
        // A number is that of a line only after the word; `20 lines around` something are not line 20.
        LineSelection::Lines(line, to) if line == to && reading.has(WordClass::Around) => {
            let named = reading.pieces.windows(2).any(
                |pair| matches!(pair, [RequestToken::Word(word), RequestToken::Number(_)] if word.eq_ignore_ascii_case("line")),
            );
            let from = line.saturating_sub(CONTEXT_LINES).max(1);
            (named || reading.text.contains('第'))
                .then_some(LineSelection::Lines(from, line.saturating_add(CONTEXT_LINES)))?
        }
        part => part,
    };
    let several = (reading.has(WordClass::First) || reading.text.contains('前'))
        && (reading.has(WordClass::Last) || reading.text.contains('后'));
    if several || part.is_single() && reading.opens_range() {
        return None;
    }
    let names = reading.names();
    if let [name, ..] = names[..] {
        let alone = reading.pieces.len() == 1;
        let asks =
            reading.has_any(&[WordClass::Show, WordClass::List]) || part != LineSelection::Whole || alone;
        let directory = name.ends_with('/').then(|| PlanGoal::List { directory: Some(name.to_owned()) });
        let files = names.into_iter().map(str::to_owned).collect();
        return asks.then(|| directory.unwrap_or(PlanGoal::Show { files, part }));
    }
    if reading.means_log() && (reading.has(WordClass::Show) || part != LineSelection::Whole) {
        return Some(PlanGoal::Show { files: vec![LOG_FILES.to_owned()], part });
    }
    let word = reading.words().find(|word| !is_common(word) && !is_verb(word));
    let file = reading.terms().first().copied().or(word)?;
    // `the notes file` is one file; `hidden files` are a kind of which nothing is known here.
    let many = reading.has(WordClass::File) && reading.words().all(|word| word != "file");
    (reading.has(WordClass::Show) && !many).then(|| PlanGoal::Show { files: vec![file.to_owned()], part })
}

/// Whether a word asks to see something.
fn is_verb(word: &str) -> bool {
    let word = format!(" {} ", word.to_lowercase());
    WordClass::Show.place(&word).or(WordClass::List.place(&word)).is_some()
}
