//! Values of several words: the text after "X is", next to a word of the slot's name, or after a
//! preposition.

use super::{mention::is_cjk, slot::ParameterSlot, words};

/// Words that end a phrase.
const ENDS: &str = " with in on at for from to by of and or that which who is are was using under over near between during within before after \
while when where if because so then please can could would should will may not without including considering based as into about per via be has have i you my ";

/// Returns the value that the text states for a slot: `LABEL is V`, `LABEL: V`, `LABEL=V`, `LABEL 是
/// V`.
pub(super) fn stated(text: &str, slot: &ParameterSlot) -> Option<String> {
    assigned(text, slot.own_name())
        .or_else(|| place_after_preposition(text, slot))
        .or_else(|| chinese(text, slot))
}

/// Parses `key=value` and `key: value`, where the key is written as in the schema.
fn assigned(text: &str, name: &str) -> Option<String> {
    if name.len() < 2 {
        return None;
    }
    let lower = text.to_ascii_lowercase();
    let spaced = name.to_ascii_lowercase().replace('_', " ");
    for key in [name.to_ascii_lowercase(), spaced] {
        for (at, _) in lower.match_indices(&key) {
            let inside = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
            let rest = text[at + key.len()..].trim_start();
            let value = ["=", ": ", "：", "is ", "as ", "- "].iter().find_map(|sign| rest.strip_prefix(sign));
            let value = value.filter(|_| !inside).map(|value| clause(value.trim_start()));
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                return Some(value.to_owned());
            }
        }
    }
    None
}

/// Returns the text up to the end of its clause.
fn clause(text: &str) -> &str {
    let mut end = text.len();
    for (at, c) in text.char_indices() {
        let next = text[at + c.len_utf8()..].chars().next();
        let stops =
            "\n;；，。、！？".contains(c) || ",.!?".contains(c) && next.is_none_or(char::is_whitespace);
        if stops || text[at..].starts_with(" and ") || at > 300 {
            end = at;
            break;
        }
    }
    text[..end].trim().trim_matches(['"', '\'', '“', '”', '‘', '’', '`'])
}

/// Parses `L是V`, `L为V`, `L叫V`, where the description of the slot contains L.
fn chinese(text: &str, slot: &ParameterSlot) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    for piece in text.split(['，', '。', '；', '\n', '！', '？', ',', '：']) {
        for sign in ["是", "为", "叫做", "名叫", "叫", "设为", "设置为"] {
            let Some((label, value)) = piece.split_once(sign) else { continue };
            let value = value.trim().trim_matches(['“', '”', '"', '\'', '《', '》', '「', '」', '‘', '’']);
            let near: String = label.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect();
            let score = words::shared(&near, &slot.description);
            if score >= 2
                && !value.is_empty()
                && value.chars().count() <= 40
                && best.as_ref().is_none_or(|(most, _)| score > *most)
            {
                best = Some((score, value.to_owned()));
            }
        }
    }
    best.map(|(_, value)| value)
}

/// Parses `从A到B` and `在A` for parameters that are places, origins or destinations.
fn place_after_preposition(text: &str, slot: &ParameterSlot) -> Option<String> {
    const PARTS: [(&[&str], &[char], &[char]); 3] = [
        (
            &["出发", "起点", "起始", "始发", "来源"],
            &['从'],
            &['到', '去', '至', '飞', '前', '出', '开', '的'],
        ),
        (&["到达", "目的", "终点", "抵达"], &['到', '去', '至', '往'], &['的', '旅', '出', '和', '玩']),
        (
            &["城市", "地区", "地点", "位置", "国家", "地址", "省", "区域"],
            &['在', '去', '到'],
            &['的', '找', '有', '旅', '附', '举', '生', '工', '和', '从', '玩', '市', '参'],
        ),
    ];
    let (_, leads, ends) =
        PARTS.iter().find(|(parts, ..)| parts.iter().any(|part| slot.description.contains(part)))?;
    let pieces = text.split(['，', '。', '；', '\n', '！', '？', ',', ' ']);
    pieces.into_iter().find_map(|piece| {
        let (at, lead) = piece.char_indices().find(|(_, c)| leads.contains(c))?;
        let rest = &piece[at + lead.len_utf8()..];
        let value = &rest[..rest.find(|c| ends.contains(&c)).unwrap_or(rest.len())];
        (2..=10).contains(&value.chars().count()).then(|| value.to_owned())
    })
}

/// Parses a Chinese list: `A、B和C`.
pub(super) fn chinese_list(text: &str) -> Option<Vec<String>> {
    let pieces = text.split(['，', '。', '；', '\n', '！', '？', ',', '：']);
    let mut pieces: Vec<&str> = pieces.filter(|piece| piece.contains('、') || piece.contains('和')).collect();
    pieces.sort_by_key(|piece| !piece.contains('、'));
    let piece = pieces.first().filter(|piece| piece.contains(is_cjk))?;
    let mut items: Vec<&str> = piece.split(['、', '和', '与', '及']).collect();
    let first = items.first_mut()?;
    let begin = first.char_indices().rev().find(|(_, c)| "是有括为较虑析用要含下在".contains(*c));
    *first = begin.map_or(*first, |(at, c)| &first[at + c.len_utf8()..]);
    let last = items.last_mut()?;
    *last = &last[..last.find(['的', '等', '在', '这', '之']).unwrap_or(last.len())];
    let short = items.iter().all(|item| (1..=12).contains(&item.trim().chars().count()));
    (short && items.len() > 1).then(|| items.into_iter().map(|item| item.trim().to_owned()).collect())
}

/// Returns an example from the description that also occurs in the request: `(e.g., light, dark,
/// sepia)`, `如"技术"或"市场"`.
pub(super) fn described_example(text: &str, slot: &ParameterSlot) -> Option<String> {
    let lower = text.to_lowercase();
    let begins =
        ["e.g.", "such as", "like ", "for example", "example", "options", "one of", "如", "：", ":", "("];
    let at =
        begins.iter().filter_map(|begin| slot.description.find(begin).map(|at| at + begin.len())).min()?;
    let listed = slot.description[at..].split([
        ',', '，', '、', '(', ')', '（', '）', '\'', '"', '“', '”', '‘', '’', '或', '.', '。', ';', ':', '/',
        '和', '等',
    ]);
    let listed = listed.flat_map(|each| each.split(" or ")).flat_map(|each| each.split(" and "));
    let mut listed: Vec<&str> =
        listed.map(str::trim).filter(|each| each.chars().count() >= 2 && each.len() <= 40).collect();
    listed.sort_by_key(|each| std::cmp::Reverse(each.len()));
    listed.into_iter().find(|each| says(&lower, &each.to_lowercase())).map(str::to_owned)
}

/// Returns true if a text contains a word or phrase, as whole words where words have borders.
pub(super) fn says(lower: &str, phrase: &str) -> bool {
    place(lower, phrase).is_some()
}

/// Returns the position of a word or phrase; see [`says`].
pub(super) fn place(lower: &str, phrase: &str) -> Option<usize> {
    if phrase.is_empty() {
        return None;
    }
    let border = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric() || is_cjk(c));
    lower.match_indices(phrase).map(|(at, _)| at).find(|at| {
        let after = lower[at + phrase.len()..].chars().next();
        let after = if after == Some('s') { lower[at + phrase.len()..].chars().nth(1) } else { after };
        phrase.contains(is_cjk) || border(lower[..*at].chars().next_back()) && border(after)
    })
}

/// Returns the words before or after a word of the slot's name: `jazz music` for a genre of music,
/// `topic of X`.
pub(super) fn adjacent_words(text: &str, slot: &ParameterSlot) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    let idle = |word: &str| {
        ENDS.contains(&format!(" {} ", plain(word)))
            || "the a an me this all some any what how".split(' ').any(|each| each == plain(word))
    };
    let labels: Vec<&String> = slot.name.iter().filter(|word| word.len() > 2).collect();
    for (at, word) in words.iter().enumerate() {
        if !labels.iter().any(|label| **label == words::stem(&plain(word))) {
            continue;
        }
        // `the topic of X`, `the question X`
        if words
            .get(at + 1)
            .is_some_and(|next| ["of", "about", "named", "called"].contains(&plain(next).as_str()))
        {
            let phrase = phrase_until(&words[at + 2..], &idle);
            if !phrase.is_empty() {
                return Some(phrase);
            }
        }
        let before = words[..at].last().filter(|before| !idle(before) && !before.ends_with([',', '.']));
        if let Some(before) = before {
            return Some(before.trim_matches(|c: char| !c.is_alphanumeric()).to_owned());
        }
    }
    None
}

/// Returns the topic of the request: the words after a preposition such as `about`.
pub(super) fn topic(text: &str) -> Option<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let idle = |word: &str| {
        ENDS.contains(&format!(" {} ", word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()))
    };
    ["about", "of", "for", "on"].iter().find_map(|lead| {
        let at = words.iter().position(|word| word.eq_ignore_ascii_case(lead))?;
        let phrase = phrase_until(&words[at + 1..], &idle);
        (!phrase.is_empty()).then_some(phrase)
    })
}

fn phrase_until(words: &[&str], idle: &dyn Fn(&str) -> bool) -> String {
    let mut taken = Vec::new();
    for word in words
        .iter()
        .skip_while(|word| ["the", "a", "an", "my", "your"].contains(&word.to_lowercase().as_str()))
        .take(6)
    {
        if idle(word) {
            break;
        }
        taken.push(word.trim_matches(|c: char| ",.?!;:\"'".contains(c)));
        if word.ends_with([',', '.', '?', '!', ';', ':']) {
            break;
        }
    }
    taken.join(" ")
}
