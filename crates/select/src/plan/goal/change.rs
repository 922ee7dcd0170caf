//! Requests that change files. An order is followed only if every word of it is understood: `delete
//! line 3 of a.txt` is not an order to delete `a.txt`.

use super::{PlanGoal, vocabulary::is_covered};
use crate::plan::{
    parsed_request::ParsedRequest, phrases::AnswerPhrase, tokens::RequestToken, words::WordClass,
};

/// Classes of verbs that only read. After one of them, `change` or `new` is not an order.
const LOOKING: [WordClass; 6] = [
    WordClass::Show,
    WordClass::Find,
    WordClass::Search,
    WordClass::Count,
    WordClass::Who,
    WordClass::Compare,
];

/// Words that may occur in any order without changing its meaning.
const POLITE: &str = " please can could would should shall may you kindly just now the a an my this that file files named called for me to into from as in i we want ok okay but ";
const POLITE_CHINESE: &str = "请 帮我 给我 麻烦 你能不能 能不能 你可以 可以 你能 您能 把 将 给 在 这个 那个 这 那 一个 文件 一下 吧 吗 名为 名叫 叫 了 到 为 成 的 里 中 但 但是";

pub(super) fn delete(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Delete, &LOOKING) {
        return None;
    }
    // `delete that from a.txt` means a part of the file.
    let within = request.tokens.iter().any(|token| match token {
        RequestToken::Word(word) => ["from", "in"].contains(&word.to_lowercase().as_str()),
        RequestToken::Glyphs(text) => text.contains(['里', '中']),
        _ => false,
    });
    let plain = !within && says_only(request, "delete remove rm erase", "删除 删掉 移除 删了 删 掉");
    Some(match names(request).as_slice() {
        [file] if plain => PlanGoal::Delete { file: file.clone() },
        [_] => PlanGoal::Say(AnswerPhrase::NeedsModel),
        _ => PlanGoal::Say(AnswerPhrase::WhichFile),
    })
}

/// Recognises `delete the directory build`, 把 build 目录删掉.
pub(super) fn delete_directory(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Delete, &LOOKING) || !request.has(WordClass::Directory) {
        return None;
    }
    let name = only_name(
        request,
        "delete remove rm erase whole entire all everything its contents inside with including and it",
        "删除 删掉 移除 删了 删 掉 整个 及其 以及 连同 里面 其中 所有 全部 内容 东西 一起 一并 和 都",
    )?;
    Some(PlanGoal::DeleteDirectory { name })
}

/// Recognises `make a directory called tmp`, 新建目录 tmp.
pub(super) fn make_directory(request: &ParsedRequest) -> Option<PlanGoal> {
    let wanted = request.has(WordClass::Directory) || request.words().next() == Some("mkdir");
    if !request.begins_with(WordClass::Create, &LOOKING) || !wanted {
        return None;
    }
    let path = only_name(request, "create make mkdir new add empty", "新建 创建 建立 建 空 新 添加")?;
    Some(PlanGoal::MakeDirectory { path })
}

/// Recognises `copy a.txt to b.txt`, 把 a.txt 复制为 b.txt.
pub(super) fn copy(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Copy, &LOOKING) {
        return None;
    }
    let plain = says_only(
        request,
        "copy cp duplicate make create of under name new",
        "复制 拷贝 副本 做 一个 一份 新建 创建 份 个",
    );
    Some(match names(request).as_slice() {
        [from, to] if plain && in_order(request) => PlanGoal::Copy { from: from.clone(), to: to.clone() },
        [_] => PlanGoal::Say(AnswerPhrase::CopyName),
        [] => PlanGoal::Say(AnswerPhrase::WhichFile),
        _ => PlanGoal::Say(AnswerPhrase::NeedsModel),
    })
}

/// Recognises `append "x" to a.txt`, 在 a.txt 末尾追加“x”.
pub(super) fn append(request: &ParsedRequest) -> Option<PlanGoal> {
    let [names, quoted] = [request.names(), request.quoted()];
    let is_added = request.tokens.iter().any(adds) && names.len() == 1 && quoted.len() == 1;
    if !is_added && !request.begins_with(WordClass::Append, &LOOKING) {
        return None;
    }
    // 加一行 asks for one line, which is the default.
    let tokens = request.tokens.iter().filter(|token| **token != RequestToken::Number(1));
    let plain = are_known(
        tokens,
        request,
        "append add write put insert line text at end of",
        "追加 加到 添加 增加 加上 加入 加进 加 写 末尾 最后 结尾 行 文本 内容 往 向 尾部 里面",
    );
    match (&names[..], &quoted[..]) {
        ([file], [text]) if plain => {
            Some(PlanGoal::Append { file: (*file).to_owned(), text: (*text).to_owned() })
        }
        ([_], []) => Some(PlanGoal::Say(AnswerPhrase::WhichText)),
        ([], [_]) => Some(PlanGoal::Say(AnswerPhrase::WhichFile)),
        _ => None,
    }
}

/// Returns true for `add` and 添加, which mean append if there is a text and a file.
fn adds(token: &RequestToken) -> bool {
    match token {
        RequestToken::Word(word) => word.eq_ignore_ascii_case("add"),
        // 加一行 ends in a number.
        RequestToken::Glyphs(text) => {
            text.ends_with('加') || ["添加", "加上", "加入", "加进"].iter().any(|word| text.contains(word))
        }
        _ => false,
    }
}

/// Returns the only name in a request that otherwise has just these words and polite ones. A
/// directory can have any word as its name.
fn only_name(request: &ParsedRequest, english: &str, chinese: &str) -> Option<String> {
    let allowed = format!("{POLITE}{english} directory folder dir ");
    let chinese = format!("{chinese} 目录 文件夹");
    let mut found = None;
    for token in &request.tokens {
        let name = match token {
            RequestToken::Word(word) if allowed.contains(&format!(" {} ", word.to_lowercase())) => continue,
            RequestToken::Glyphs(text) if is_known(request, text, &chinese) => continue,
            // 一个目录
            RequestToken::Number(1) => continue,
            RequestToken::Name(name)
            | RequestToken::Quoted(name)
            | RequestToken::Word(name)
            | RequestToken::Symbol(name) => name,
            RequestToken::Glyphs(_)
            | RequestToken::Number(_)
            | RequestToken::Range(..)
            | RequestToken::Option(_) => return None,
        };
        if found.is_some() || name.contains('*') {
            return None;
        }
        found = Some(name.trim_end_matches('/').to_owned());
    }
    found.filter(|name| !name.is_empty())
}

pub(super) fn rename(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Rename, &LOOKING) {
        return None;
    }
    let plain =
        says_only(request, "rename move mv directory folder name", "重命名 改名 移动 移到 挪到 目录 文件夹");
    Some(match names(request).as_slice() {
        [from, to] if plain && in_order(request) => PlanGoal::Rename { from: from.clone(), to: to.clone() },
        [_] => PlanGoal::Say(AnswerPhrase::NewName),
        [] => PlanGoal::Say(AnswerPhrase::WhichFile),
        _ => PlanGoal::Say(AnswerPhrase::NeedsModel),
    })
}

/// Returns true if the first name is the old one and the second the new one: `A to B`, `cp A B`,
/// but not `A and B` or `to A from B`.
fn in_order(request: &ParsedRequest) -> bool {
    let is_name = |token: &RequestToken| matches!(token, RequestToken::Name(_) | RequestToken::Quoted(_));
    let mut places = request.tokens.iter().enumerate().filter(|(_, token)| is_name(token)).map(|(at, _)| at);
    let (Some(first), Some(second)) = (places.next(), places.next()) else { return false };
    let says = |tokens: &[RequestToken], words: &[&str]| {
        let is = |word: &str| words.contains(&word.to_lowercase().as_str());
        tokens.iter().any(|token| matches!(token, RequestToken::Word(word) if is(word)))
    };
    let (before, between) = (&request.tokens[..first], &request.tokens[first + 1..second]);
    let leads = says(between, &["to", "into", "as", "called", "named"])
        || between.iter().any(
            |token| matches!(token, RequestToken::Glyphs(text) if text.ends_with(['为', '成', '到', '叫'])),
        );
    let is_command = between.is_empty() && says(before, &["cp", "mv"]);
    (leads || is_command)
        && !says(before, &["to", "into", "as"])
        && !says(&request.tokens[first..], &["from"])
}

pub(super) fn create(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Create, &LOOKING) {
        return None;
    }
    let [path] = request.names()[..] else { return None };
    let plain = says_only(
        request,
        "create make new touch write add empty with content contents containing contain contains text saying says which and put",
        "新建 创建 建立 建 里面 写入 写上 写 内容 是 包含 空 新 并 且 在 生成 文本",
    );
    let content = match request.quoted()[..] {
        [] => String::new(),
        [content] => format!("{content}\n"),
        _ => return None,
    };
    plain.then(|| PlanGoal::Create { path: path.to_owned(), content })
}

/// Recognises `replace "A" with "B" in F`, 把 F 里的 "A" 改成 "B". The first text is the old one.
pub(super) fn replace(request: &ParsedRequest) -> Option<PlanGoal> {
    if !request.begins_with(WordClass::Replace, &LOOKING) {
        return None;
    }
    let quoted = request.quoted();
    match (&quoted[..], &request.names()[..]) {
        ([old, new], names) if is_joined(request) && says_only(request, REPLACING, REPLACING_CHINESE) => {
            let [file] = names else { return Some(PlanGoal::Say(AnswerPhrase::WhichFile)) };
            let [file, old, new] = [file, old, new].map(|text| (*text).to_owned());
            Some(PlanGoal::Replace { file, old, new })
        }
        (_, names) => set_value(request).or_else(|| {
            // `what did I change` is a question, and so is any change without an object.
            let is_question = names.is_empty() && request.after(&["replace", "substitute", "set"]).is_none();
            (!is_question).then_some(PlanGoal::Say(AnswerPhrase::WhichText))
        }),
    }
}

const REPLACING: &str =
    "replace change substitute all every occurrence occurrences of word text string with by";
const REPLACING_CHINESE: &str = "替换 改成 改为 换成 修改为 换为 所有 全部 文本 字符串 每个 都";

/// Recognises `change KEY to VALUE in F`, 把 F 里的 KEY 改成 VALUE. It sets the value of that key, and
/// changes neither the key nor any other text.
fn set_value(request: &ParsedRequest) -> Option<PlanGoal> {
    const SETTING: &str = " change set the value of to in please file can could you ";
    const SETTING_CHINESE: &str = "改成 改为 换成 修改为 换为 设为 设成 设置为 值 把 将 文件";
    let at = request.tokens.windows(3).position(|three| sets(&three[1]))?;
    let (RequestToken::Word(key) | RequestToken::Symbol(key)) = &request.tokens[at] else { return None };
    let value = match &request.tokens[at + 2] {
        RequestToken::Glyphs(_) | RequestToken::Range(..) | RequestToken::Option(_) => return None,
        token => token.to_string(),
    };
    let others = request.tokens.iter().enumerate().filter(|(place, _)| *place != at && *place != at + 2);
    let mut file = None;
    for (_, token) in others {
        match token {
            RequestToken::Word(word) if SETTING.contains(&format!(" {} ", word.to_lowercase())) => {}
            RequestToken::Glyphs(text) if is_known(request, text, SETTING_CHINESE) => {}
            RequestToken::Name(name) if file.is_none() && !name.contains('*') => file = Some(name.clone()),
            _ => return None,
        }
    }
    Some(PlanGoal::SetValue { file, key: key.clone(), value })
}

/// Returns true for `to` and 改成, between a key and its new value.
fn sets(token: &RequestToken) -> bool {
    match token {
        RequestToken::Word(word) => word.eq_ignore_ascii_case("to"),
        RequestToken::Glyphs(glyphs) => glyphs.ends_with(['为', '成']),
        _ => false,
    }
}

/// Returns true if the words between two quotations say that the second replaces the first. `A for
/// B` and `A and B` are ambiguous.
fn is_joined(request: &ParsedRequest) -> bool {
    let is_quoted = |token: &RequestToken| matches!(token, RequestToken::Quoted(_));
    let between = request.tokens.iter().skip_while(|token| !is_quoted(token)).skip(1);
    between.take_while(|token| !is_quoted(token)).any(joins)
}

/// Returns true for `with` and 改成, between the old and the new text.
fn joins(token: &RequestToken) -> bool {
    match token {
        RequestToken::Word(word) => ["with", "to", "by", "into"].contains(&word.as_str()),
        RequestToken::Glyphs(glyphs) => glyphs.ends_with(['为', '成']),
        _ => false,
    }
}

/// Returns the names of files, including quotations.
fn names(request: &ParsedRequest) -> Vec<String> {
    let names = request.tokens.iter().filter_map(|token| match token {
        RequestToken::Name(name) | RequestToken::Quoted(name) if !name.contains('*') => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// Returns true if a request has only these words and polite ones.
pub(super) fn says_only(request: &ParsedRequest, english: &str, chinese: &str) -> bool {
    are_known(request.tokens.iter(), request, english, chinese)
}

fn are_known<'a>(
    mut tokens: impl Iterator<Item = &'a RequestToken>,
    request: &ParsedRequest,
    english: &str,
    chinese: &str,
) -> bool {
    let allowed = format!("{POLITE}{english} ");
    tokens.all(|token| match token {
        RequestToken::Quoted(_) | RequestToken::Name(_) => true,
        RequestToken::Word(word) => allowed.contains(&format!(" {} ", word.to_lowercase())),
        RequestToken::Glyphs(text) => is_known(request, text, chinese),
        RequestToken::Symbol(_)
        | RequestToken::Number(_)
        | RequestToken::Range(..)
        | RequestToken::Option(_) => false,
    })
}

/// Returns true if a Chinese text has only these words and polite ones.
fn is_known(request: &ParsedRequest, text: &str, words: &str) -> bool {
    // The Chinese name of a file is also a token of text.
    let names = request.names().into_iter().any(|name| name.starts_with(text));
    names || is_covered(text, &format!("{words} {POLITE_CHINESE}"), &[])
}
