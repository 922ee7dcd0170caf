//! Requests that only read: show, list, find, search, count.

use super::{PlanGoal, SearchOutput, change::says_only};
use crate::plan::{
    parsed_request::{LOG_FILES, LineSelection, ParsedRequest, SearchScope},
    phrases::AnswerPhrase,
    tokens::RequestToken,
    words::{self, WordClass},
};

/// Default number of lines around a place.
const CONTEXT_LINES: u64 = 3;

pub(super) fn count(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.has(WordClass::Count) {
        return None;
    }
    let scope = request.scope();
    let texts = terms(request);
    if texts.iter().any(|text| is_kind_of_lines(request, text)) {
        return Some(PlanGoal::Say(AnswerPhrase::Unclear));
    }
    let whole_word = asks_for_word(request);
    Some(match request {
        _ if !texts.is_empty() => PlanGoal::Search { texts, scope, want: SearchOutput::Count, whole_word },
        _ if request.has(WordClass::Line) => PlanGoal::CountLines(scope),
        _ if request.has(WordClass::File) => PlanGoal::CountFiles(scope),
        _ => PlanGoal::Search {
            texts: vec![search_word(request)?],
            scope,
            want: SearchOutput::Count,
            whole_word: false,
        },
    })
}

/// Tells whether an unquoted text names a kind of lines, as in *lines of TypeScript* and 多少行 JSON.
/// Known languages are part of the scope; others must not become a text to look for.
fn is_kind_of_lines(request: &ParsedRequest, text: &str) -> bool {
    let whole = request.text.to_lowercase();
    let text = text.to_lowercase();
    ["lines of ", "lines of the ", "行"].iter().any(|before| {
        whole.contains(&format!("{before}{text}")) || whole.contains(&format!("{before} {text}"))
    })
}

/// Tells whether a text is to be found as a word of its own: *the word port*.
fn asks_for_word(request: &ParsedRequest) -> bool {
    request.words().any(|word| word == "word") || request.text.contains("单词")
}

pub(super) fn define(request: &ParsedRequest) -> Option<PlanGoal> {
    let item = request.has_any(&[WordClass::Function, WordClass::Item]);
    let show = item && request.has(WordClass::Show) && !request.has(WordClass::Defined);
    if !show && !request.has(WordClass::Defined)
        || !request.names().is_empty()
        || request.has(WordClass::File)
    {
        return None;
    }
    let after = request.after(&["function", "fn", "def", "method", "func", "struct", "class"]);
    let chinese = request.tokens.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(name), RequestToken::Glyphs(text)]
            if ["函数", "方法", "结构体", "类"].iter().any(|kind| text.starts_with(kind)) =>
        {
            Some(name.as_str())
        }
        _ => None,
    });
    let first = request.words().find(|word| !is_common(word));
    let name = request.terms().first().copied().or(chinese).or(after).or(first)?;
    Some(PlanGoal::Define { name: name.to_owned(), show })
}

pub(super) fn search(request: &ParsedRequest) -> Option<PlanGoal> {
    let verb = request.has_any(&[
        WordClass::Search,
        WordClass::Find,
        WordClass::Show,
        WordClass::List,
        WordClass::Around,
    ]);
    let kind = request.kind().is_some();
    let by_name = request.has(WordClass::File) && !request.has(WordClass::Search) && !kind;
    let mut texts = used_name(request).map_or_else(|| terms(request), |name| vec![name]);
    if !verb || (by_name && texts.is_empty()) {
        return None;
    }
    if texts.is_empty() {
        texts.push(search_word(request).or_else(|| context_subject(request))?);
    }
    let both = request.words().any(|word| ["and", "both"].contains(&word)) || request.text.contains('和');
    let want = if request.has(WordClass::Around) {
        SearchOutput::Around(request.number().unwrap_or(CONTEXT_LINES))
    } else if request.has(WordClass::File) && !kind {
        // Files with both texts are another question than files with either.
        if texts.len() > 1 && both {
            return None;
        }
        SearchOutput::Files
    } else {
        SearchOutput::Places
    };
    let mut scope = request.scope();
    scope.place = scope.place.filter(|place| !texts.contains(place));
    Some(PlanGoal::Search {
        texts,
        scope,
        want,
        whole_word: asks_for_usages(request) || asks_for_word(request),
    })
}

/// Returns true if it asks for the uses of something.
fn asks_for_usages(request: &ParsedRequest) -> bool {
    const USES: &str = " use uses used using usage usages call calls caller callers reference references ";
    let chinese = ["用到", "使用", "引用", "调用", "用了"].iter().any(|verb| request.text.contains(verb));
    chinese || request.words().any(|word| USES.contains(&format!(" {} ", word.to_lowercase())))
}

/// Returns a text after `use` that only looks like a file: `console.log`.
fn used_name(request: &ParsedRequest) -> Option<String> {
    const VERBS: [&str; 10] =
        ["use", "uses", "using", "call", "calls", "contain", "contains", "containing", "mention", "mentions"];
    let name = request.tokens.windows(2).find_map(|pair| match pair {
        [RequestToken::Word(verb), RequestToken::Name(name)] if VERBS.contains(&verb.as_str()) => Some(name),
        [RequestToken::Glyphs(text), RequestToken::Name(name)] => {
            let verbs = ["用到", "用到了", "使用", "使用了", "调用", "调用了", "包含", "用了"];
            verbs.iter().any(|verb| text.ends_with(verb)).then_some(name)
        }
        _ => None,
    })?;
    (!name.contains(['/', '*'])).then(|| name.clone())
}

fn terms(request: &ParsedRequest) -> Vec<String> {
    request.terms().into_iter().map(str::to_owned).collect()
}

/// Returns the plain word to search for: after the verb, or the only English word in a Chinese
/// request.
fn search_word(request: &ParsedRequest) -> Option<String> {
    const MARKS: &str = " for of calls grep word text string contain contains containing mention mentions mentioning use uses using say says called occurrences ";
    if !request.has(WordClass::Search) {
        return None;
    }
    let place = request.scope().place;
    // `csv files` gives the kind of files.
    let kind = request.kind();
    let is_kind = |word: &str| kind.is_some() && words::extension(word) == kind.as_deref();
    let is_mark = |word: &str| MARKS.contains(&format!(" {} ", word.to_lowercase()));
    let last = request.words().enumerate().filter(|(_, word)| is_mark(word)).last();
    let after =
        last.and_then(|(at, _)| request.words().skip(at + 1).find(|word| !is_common(word) && !is_kind(word)));
    let only = || {
        let chinese = request.tokens.iter().any(|token| matches!(token, RequestToken::Glyphs(_)));
        request.words().find(|word| chinese && !is_common(word) && !is_kind(word))
    };
    after.or_else(only).filter(|word| Some(*word) != place.as_deref()).map(str::to_owned)
}

/// Returns the text whose surrounding lines are wanted: `fn main` as in code, or the name of a
/// function.
fn context_subject(request: &ParsedRequest) -> Option<String> {
    const WRITTEN: [&str; 7] = ["fn", "def", "func", "struct", "class", "enum", "trait"];
    if !request.has(WordClass::Around) {
        return None;
    }
    let written = WRITTEN.iter().find_map(|word| Some(format!("{word} {}", request.after(&[word])?)));
    written.or_else(|| request.after(&["function", "method"]).map(str::to_owned))
}

/// Returns true for words that are never the search text.
fn is_common(word: &str) -> bool {
    const COMMON: &str = " the a an all any every each of in is it are was for to and with that this my our me where do does we you what what's which who tell need see \
        find search show grep look please file files line lines word text string function functions fn def method defined definition implemented \
        code git rust python here there can could would i be have has struct class enum trait type interface usages references name names named called \
        everything content contents first last top largest biggest ";
    COMMON.contains(&format!(" {} ", word.to_lowercase()))
}

pub(super) fn find(request: &ParsedRequest) -> Option<PlanGoal> {
    let wants = request.has_any(&[WordClass::Find, WordClass::List, WordClass::Show]);
    let shows_log = request.means_log() && !request.has(WordClass::File);
    if !wants || request.has(WordClass::Create) || shows_log {
        return None;
    }
    let scope = request.scope();
    let marked = request.after(&["named", "called"]).filter(|name| !name.contains('*'));
    let within =
        || request.has(WordClass::Named).then(|| request.words().find(|word| !is_common(word))).flatten();
    let described =
        marked.or_else(within).filter(|_| request.has(WordClass::File) && request.names().is_empty());
    let asked = request
        .names()
        .first()
        .copied()
        .filter(|_| request.has(WordClass::Find) && !request.has(WordClass::Show));
    match (described.or(asked), &scope.glob) {
        (_, Some(_)) => Some(PlanGoal::FindFiles { scope, name: None }),
        (Some(name), None) => {
            Some(PlanGoal::FindFiles { scope: SearchScope::default(), name: Some(name.to_owned()) })
        }
        (None, None) => None,
    }
}

/// Recognises a request to list a directory, if every word of it is understood.
pub(super) fn list(request: &ParsedRequest) -> Option<PlanGoal> {
    let listed = request.has_any(&[WordClass::List, WordClass::Find])
        || (request.has(WordClass::Show) && request.has(WordClass::Directory));
    if !listed || !request.names().iter().all(|name| name.ends_with('/')) {
        return None;
    }
    let only = || request.words().filter(|word| !is_common(word) && !is_verb(word)).map(str::to_owned).next();
    let directory = request.scope().place.or_else(|| only().filter(|_| request.has(WordClass::List)));
    let words = "find list ls dir what what's is are there any directory directories folder folders under inside here show see which content contents of";
    let place = directory.as_deref().unwrap_or_default();
    let plain = says_only(
        request,
        &format!("{words} {}", place.to_lowercase()),
        &format!(
            "列出 列一下 列 有什么 有哪些 有 都有 哪些 目录 文件夹 下面 下 里面 内 东西 看看 看一下 查看 看 显示 当前 {place}"
        ),
    );
    let here = directory.is_some()
        || request.has_any(&[WordClass::File, WordClass::Directory])
        || request.tokens.len() == 1;
    (plain && here).then_some(PlanGoal::List { directory })
}

pub(super) fn show(request: &ParsedRequest) -> Option<PlanGoal> {
    let part = match request.part() {
        // A number is a line number only after the word `line`: `20 lines around` something is not
        // line 20.
        LineSelection::Lines(line, to) if line == to && request.has(WordClass::Around) => {
            let named = request.tokens.windows(2).any(
                |pair| matches!(pair, [RequestToken::Word(word), RequestToken::Number(_)] if word.eq_ignore_ascii_case("line")),
            );
            let from = line.saturating_sub(CONTEXT_LINES).max(1);
            (named || request.text.contains('第'))
                .then_some(LineSelection::Lines(from, line.saturating_add(CONTEXT_LINES)))?
        }
        part => part,
    };
    let several = (request.has(WordClass::First) || request.text.contains('前'))
        && (request.has(WordClass::Last) || request.text.contains('后'));
    if several || part.is_single() && request.opens_range() {
        return None;
    }
    let names = request.names();
    if let [name, ..] = names[..] {
        let alone = request.tokens.len() == 1;
        let asks =
            request.has_any(&[WordClass::Show, WordClass::List]) || part != LineSelection::Whole || alone;
        let directory = name.ends_with('/').then(|| PlanGoal::List { directory: Some(name.to_owned()) });
        let files = names.into_iter().map(str::to_owned).collect();
        return asks.then(|| directory.unwrap_or(PlanGoal::Show { files, part }));
    }
    if request.means_log() && (request.has(WordClass::Show) || part != LineSelection::Whole) {
        return Some(PlanGoal::Show { files: vec![LOG_FILES.to_owned()], part });
    }
    let word = request.words().find(|word| !is_common(word) && !is_verb(word));
    let file = request.terms().first().copied().or(word)?;
    // `the notes file` is one file; `hidden files` is an unknown kind of files.
    let many = request.has(WordClass::File) && request.words().all(|word| word != "file");
    (request.has(WordClass::Show) && !many).then(|| PlanGoal::Show { files: vec![file.to_owned()], part })
}

/// Returns true if a word asks to show or list something.
fn is_verb(word: &str) -> bool {
    let word = format!(" {} ", word.to_lowercase());
    WordClass::Show.place(&word).or(WordClass::List.place(&word)).is_some()
}
