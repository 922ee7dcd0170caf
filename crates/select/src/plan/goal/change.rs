//! Requests that change files. An order is followed only if every word of it is understood: `delete line 3 of a.txt` is not
//! an order to delete `a.txt`.

use super::{Goal, vocabulary::is_covered};
use crate::plan::{phrases::Phrase, pieces::Piece, reading::Reading, words::Word};

/// Verbs that only look: where one of them comes first, a later `change` or `new` is not an order.
const LOOKING: [Word; 6] = [Word::Show, Word::Find, Word::Search, Word::Count, Word::Who, Word::Compare];

/// Words that may stand in any order without changing what it says.
const POLITE: &str = " please can could would should shall may you kindly just now the a an my this that file files named called for me to into from as in i we want ok okay but ";
const POLITE_CHINESE: &str = "请 帮我 给我 麻烦 你能不能 能不能 你可以 可以 你能 您能 把 将 给 在 这个 那个 这 那 一个 文件 一下 吧 吗 名为 名叫 叫 了 到 为 成 的 里 中 但 但是";

pub(super) fn delete(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Delete, &LOOKING) {
        return None;
    }
    // `delete that from a.txt` means a part of it.
    let within = reading.pieces.iter().any(|piece| match piece {
        Piece::Word(word) => ["from", "in"].contains(&word.to_lowercase().as_str()),
        Piece::Glyphs(text) => text.contains(['里', '中']),
        _ => false,
    });
    let plain = !within && says_only(reading, "delete remove rm erase", "删除 删掉 移除 删了 删 掉");
    Some(match names(reading).as_slice() {
        [file] if plain => Goal::Delete { file: file.clone() },
        [_] => Goal::Say(Phrase::NeedsModel),
        _ => Goal::Say(Phrase::WhichFile),
    })
}

/// `delete the directory build`, 把 build 目录删掉.
pub(super) fn delete_directory(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Delete, &LOOKING) || !reading.has(Word::Directory) {
        return None;
    }
    let name = only_name(
        reading,
        "delete remove rm erase whole entire all everything its contents inside with including and it",
        "删除 删掉 移除 删了 删 掉 整个 及其 以及 连同 里面 其中 所有 全部 内容 东西 一起 一并 和 都",
    )?;
    Some(Goal::DeleteDirectory { name })
}

/// `make a directory called tmp`, 新建目录 tmp.
pub(super) fn make_directory(reading: &Reading) -> Option<Goal> {
    let wanted = reading.has(Word::Directory) || reading.words().next() == Some("mkdir");
    if !reading.begins_with(Word::Create, &LOOKING) || !wanted {
        return None;
    }
    let path = only_name(reading, "create make mkdir new add empty", "新建 创建 建立 建 空 新 添加")?;
    Some(Goal::MakeDirectory { path })
}

/// `copy a.txt to b.txt`, 把 a.txt 复制为 b.txt.
pub(super) fn copy(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Copy, &LOOKING) {
        return None;
    }
    let plain = says_only(
        reading,
        "copy cp duplicate make create of under name new",
        "复制 拷贝 副本 做 一个 一份 新建 创建 份 个",
    );
    Some(match names(reading).as_slice() {
        [from, to] if plain && in_order(reading) => Goal::Copy { from: from.clone(), to: to.clone() },
        [_] => Goal::Say(Phrase::CopyName),
        [] => Goal::Say(Phrase::WhichFile),
        _ => Goal::Say(Phrase::NeedsModel),
    })
}

/// `append "x" to a.txt`, 在 a.txt 末尾追加“x”.
pub(super) fn append(reading: &Reading) -> Option<Goal> {
    let [names, quoted] = [reading.names(), reading.quoted()];
    let is_added = reading.pieces.iter().any(adds) && names.len() == 1 && quoted.len() == 1;
    if !is_added && !reading.begins_with(Word::Append, &LOOKING) {
        return None;
    }
    // 加一行: one line is what is added anyway.
    let pieces = reading.pieces.iter().filter(|piece| **piece != Piece::Number(1));
    let plain = are_known(
        pieces,
        reading,
        "append add write put insert line text at end of",
        "追加 加到 添加 增加 加上 加入 加进 加 写 末尾 最后 结尾 行 文本 内容 往 向 尾部 里面",
    );
    match (&names[..], &quoted[..]) {
        ([file], [text]) if plain => {
            Some(Goal::Append { file: (*file).to_owned(), text: (*text).to_owned() })
        }
        ([_], []) => Some(Goal::Say(Phrase::WhichText)),
        ([], [_]) => Some(Goal::Say(Phrase::WhichFile)),
        _ => None,
    }
}

/// `add`, 添加: with a text and a file that is what an order to append says.
fn adds(piece: &Piece) -> bool {
    match piece {
        Piece::Word(word) => word.eq_ignore_ascii_case("add"),
        // 加一行 ends in a number.
        Piece::Glyphs(text) => {
            text.ends_with('加') || ["添加", "加上", "加入", "加进"].iter().any(|word| text.contains(word))
        }
        _ => false,
    }
}

/// The one name in a request that has no other words but these and polite ones: a directory may be called like any word.
fn only_name(reading: &Reading, english: &str, chinese: &str) -> Option<String> {
    let allowed = format!("{POLITE}{english} directory folder dir ");
    let chinese = format!("{chinese} 目录 文件夹");
    let mut found = None;
    for piece in &reading.pieces {
        let name = match piece {
            Piece::Word(word) if allowed.contains(&format!(" {} ", word.to_lowercase())) => continue,
            Piece::Glyphs(text) if is_known(reading, text, &chinese) => continue,
            // 一个目录
            Piece::Number(1) => continue,
            Piece::Name(name) | Piece::Quoted(name) | Piece::Word(name) | Piece::Symbol(name) => name,
            Piece::Glyphs(_) | Piece::Number(_) | Piece::Range(..) | Piece::Option(_) => return None,
        };
        if found.is_some() || name.contains('*') {
            return None;
        }
        found = Some(name.trim_end_matches('/').to_owned());
    }
    found.filter(|name| !name.is_empty())
}

pub(super) fn rename(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Rename, &LOOKING) {
        return None;
    }
    let plain =
        says_only(reading, "rename move mv directory folder name", "重命名 改名 移动 移到 挪到 目录 文件夹");
    Some(match names(reading).as_slice() {
        [from, to] if plain && in_order(reading) => Goal::Rename { from: from.clone(), to: to.clone() },
        [_] => Goal::Say(Phrase::NewName),
        [] => Goal::Say(Phrase::WhichFile),
        _ => Goal::Say(Phrase::NeedsModel),
    })
}

/// Whether the first name is the old one and becomes the second: `A to B`, `cp A B`, but not `A and B` or `to A from B`.
fn in_order(reading: &Reading) -> bool {
    let is_name = |piece: &Piece| matches!(piece, Piece::Name(_) | Piece::Quoted(_));
    let mut places = reading.pieces.iter().enumerate().filter(|(_, piece)| is_name(piece)).map(|(at, _)| at);
    let (Some(first), Some(second)) = (places.next(), places.next()) else { return false };
    let says = |pieces: &[Piece], words: &[&str]| {
        let is = |word: &str| words.contains(&word.to_lowercase().as_str());
        pieces.iter().any(|piece| matches!(piece, Piece::Word(word) if is(word)))
    };
    let (before, between) = (&reading.pieces[..first], &reading.pieces[first + 1..second]);
    let leads = says(between, &["to", "into", "as", "called", "named"])
        || between
            .iter()
            .any(|piece| matches!(piece, Piece::Glyphs(text) if text.ends_with(['为', '成', '到', '叫'])));
    let is_command = between.is_empty() && says(before, &["cp", "mv"]);
    (leads || is_command)
        && !says(before, &["to", "into", "as"])
        && !says(&reading.pieces[first..], &["from"])
}

pub(super) fn create(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Create, &LOOKING) {
        return None;
    }
    let [path] = reading.names()[..] else { return None };
    let plain = says_only(
        reading,
        "create make new touch write add empty with content contents containing contain contains text saying says which and put",
        "新建 创建 建立 建 里面 写入 写上 写 内容 是 包含 空 新 并 且 在 生成 文本",
    );
    let content = match reading.quoted()[..] {
        [] => String::new(),
        [content] => format!("{content}\n"),
        _ => return None,
    };
    plain.then(|| Goal::Create { path: path.to_owned(), content })
}

/// `replace "A" with "B" in F`, 把 F 里的 "A" 改成 "B": the first text is the old one.
pub(super) fn replace(reading: &Reading) -> Option<Goal> {
    if !reading.begins_with(Word::Replace, &LOOKING) {
        return None;
    }
    let quoted = reading.quoted();
    match (&quoted[..], &reading.names()[..]) {
        ([old, new], names) if is_joined(reading) && says_only(reading, REPLACING, REPLACING_CHINESE) => {
            let [file] = names else { return Some(Goal::Say(Phrase::WhichFile)) };
            let [file, old, new] = [file, old, new].map(|text| (*text).to_owned());
            Some(Goal::Replace { file, old, new })
        }
        (_, names) => set_value(reading).or_else(|| {
            // `what did I change` is a question, and so is any change of nothing in particular.
            let is_question = names.is_empty() && reading.after(&["replace", "substitute", "set"]).is_none();
            (!is_question).then_some(Goal::Say(Phrase::WhichText))
        }),
    }
}

const REPLACING: &str =
    "replace change substitute all every occurrence occurrences of word text string with by";
const REPLACING_CHINESE: &str = "替换 改成 改为 换成 修改为 换为 所有 全部 文本 字符串 每个 都";

/// `change KEY to VALUE in F`, 把 F 里的 KEY 改成 VALUE: the value of that name, never the name, and never any other text.
fn set_value(reading: &Reading) -> Option<Goal> {
    const SETTING: &str = " change set the value of to in please file can could you ";
    const SETTING_CHINESE: &str = "改成 改为 换成 修改为 换为 设为 设成 设置为 值 把 将 文件";
    let at = reading.pieces.windows(3).position(|three| sets(&three[1]))?;
    let (Piece::Word(key) | Piece::Symbol(key)) = &reading.pieces[at] else { return None };
    let value = match &reading.pieces[at + 2] {
        Piece::Glyphs(_) | Piece::Range(..) | Piece::Option(_) => return None,
        piece => piece.to_string(),
    };
    let others = reading.pieces.iter().enumerate().filter(|(place, _)| *place != at && *place != at + 2);
    let mut file = None;
    for (_, piece) in others {
        match piece {
            Piece::Word(word) if SETTING.contains(&format!(" {} ", word.to_lowercase())) => {}
            Piece::Glyphs(text) if is_known(reading, text, SETTING_CHINESE) => {}
            Piece::Name(name) if file.is_none() && !name.contains('*') => file = Some(name.clone()),
            _ => return None,
        }
    }
    Some(Goal::SetValue { file, key: key.clone(), value })
}

/// `to`, 改成: what stands before it gets what stands after it.
fn sets(piece: &Piece) -> bool {
    match piece {
        Piece::Word(word) => word.eq_ignore_ascii_case("to"),
        Piece::Glyphs(glyphs) => glyphs.ends_with(['为', '成']),
        _ => false,
    }
}

/// Whether what stands between the first quotation and the second makes the one the other. `A for B`, `A and B` do not say
/// which of them goes.
fn is_joined(reading: &Reading) -> bool {
    let is_quoted = |piece: &Piece| matches!(piece, Piece::Quoted(_));
    let between = reading.pieces.iter().skip_while(|piece| !is_quoted(piece)).skip(1);
    between.take_while(|piece| !is_quoted(piece)).any(joins)
}

/// `with`, 改成: what stands before it becomes what stands after it.
fn joins(piece: &Piece) -> bool {
    match piece {
        Piece::Word(word) => ["with", "to", "by", "into"].contains(&word.as_str()),
        Piece::Glyphs(glyphs) => glyphs.ends_with(['为', '成']),
        _ => false,
    }
}

/// Names of files; a quotation is one too.
fn names(reading: &Reading) -> Vec<String> {
    let names = reading.pieces.iter().filter_map(|piece| match piece {
        Piece::Name(name) | Piece::Quoted(name) if !name.contains('*') => Some(name.clone()),
        _ => None,
    });
    names.collect()
}

/// Whether a request has no words but these and polite ones.
pub(super) fn says_only(reading: &Reading, english: &str, chinese: &str) -> bool {
    are_known(reading.pieces.iter(), reading, english, chinese)
}

fn are_known<'a>(
    mut pieces: impl Iterator<Item = &'a Piece>,
    reading: &Reading,
    english: &str,
    chinese: &str,
) -> bool {
    let allowed = format!("{POLITE}{english} ");
    pieces.all(|piece| match piece {
        Piece::Quoted(_) | Piece::Name(_) => true,
        Piece::Word(word) => allowed.contains(&format!(" {} ", word.to_lowercase())),
        Piece::Glyphs(text) => is_known(reading, text, chinese),
        Piece::Symbol(_) | Piece::Number(_) | Piece::Range(..) | Piece::Option(_) => false,
    })
}

/// Whether a Chinese text has no words but these and polite ones.
fn is_known(reading: &Reading, text: &str, words: &str) -> bool {
    // A Chinese name of a file is among the words as well.
    let names = reading.names().into_iter().any(|name| name.starts_with(text));
    names || is_covered(text, &format!("{words} {POLITE_CHINESE}"), &[])
}
