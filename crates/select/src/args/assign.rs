//! Assigns a value to each slot: an enum value, a mention, or a phrase about the slot.

use serde_json::Value;

use super::{
    InferenceContext, idiom,
    matching::match_mentions,
    mention::{MentionKind, ValueMention, is_cjk, mentions},
    phrase,
    slot::{ParameterSlot, SlotKind},
    valid, words,
};

/// Returns a value for each slot, where the text has one.
pub(super) fn assign(text: &str, slots: &[ParameterSlot], context: &InferenceContext) -> Vec<Option<Value>> {
    let mut values = vec![None; slots.len()];
    let lower = text.to_lowercase();
    for (slot, value) in slots.iter().zip(&mut values) {
        *value = enum_value(&lower, slot).or_else(|| boolean_value(&lower, slot));
    }
    let mut mentions = mentions(text, context.today);
    mentions.retain(|mention| !is_choice(mention, slots, &values));
    let taken = idiom::fill(text, slots, &mut values);
    let overlaps = |mention: &ValueMention| {
        taken.iter().any(|place| place.start < mention.end && mention.start < place.end)
    };
    mentions.retain(|mention| !overlaps(mention));
    add_files(text, &mut mentions, context);
    match_mentions(text, slots, &mut mentions, &mut values);
    for (slot, value) in slots.iter().zip(&mut values) {
        if value.is_none() {
            // A value that only stands near a slot and does not fit it was not meant for it.
            let is_meant = |value: &Value| valid::fits(slot, value) || phrase::stated(text, slot).is_some();
            *value = phrase_value(text, slot)
                .filter(is_meant)
                .or_else(|| context.earlier.get(slot.own_name()).cloned());
        }
    }
    values
}

/// Returns the enum value that the text contains; all of them for a list.
fn enum_value(lower: &str, slot: &ParameterSlot) -> Option<Value> {
    let mut found: Vec<(usize, usize, &Value)> = slot
        .choices
        .iter()
        .filter_map(|choice| {
            let word = choice.as_str()?.to_lowercase();
            let spaced = word.replace(['_', '-'], " ");
            let at = [&word, &spaced]
                .into_iter()
                .find_map(|word| phrase::place(lower, word))
                .or_else(|| stemmed(lower, &spaced))
                .or_else(|| synonym(&word).iter().find_map(|other| phrase::place(lower, other)))?;
            Some((at, word.len(), choice))
        })
        .collect();
    found.sort_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)));
    if slot.list {
        return (!found.is_empty()).then(|| found.into_iter().map(|(_, _, choice)| choice.clone()).collect());
    }
    found.into_iter().max_by_key(|(at, length, _)| (*length, *at)).map(|(_, _, choice)| choice.clone())
}

/// Returns the position of a word in another inflected form.
fn stemmed(lower: &str, word: &str) -> Option<usize> {
    let stem = words::stem(word);
    let long = stem.len() >= 4 && !word.contains(' ') && word.is_ascii();
    long.then(|| lower.find(&format!(" {stem}"))).flatten()
}

/// Returns verbs that ask for the same operation.
fn synonym(word: &str) -> &'static [&'static str] {
    match word {
        "add" | "create" => &["create", "add", "new", "添加", "新建"],
        "delete" | "remove" => &["remove", "delete", "cancel", "删除"],
        "update" => &["change", "modify", "edit", "更新", "修改"],
        "complete" => &["done", "finish"],
        "asc" | "ascending" => &["smallest first", "lowest first", "升序"],
        "desc" | "descending" => &["largest first", "highest first", "降序"],
        _ => &[],
    }
}

/// Returns the value of a boolean parameter that the text asks for, or asks to leave out.
fn boolean_value(lower: &str, slot: &ParameterSlot) -> Option<Value> {
    if slot.kind != SlotKind::Boolean || slot.list {
        return None;
    }
    if slot.description.contains(is_cjk) {
        let core =
            slot.description.trim_start_matches("是否").split(['。', '，', '（']).next().unwrap_or_default();
        let core: String = ["包括", "包含", "需要", "考虑", "显示", "进行", "启用", "提供"]
            .iter()
            .fold(core.to_owned(), |core, word| core.replace(word, ""));
        let shared = words::shared(&core, lower);
        let enough = shared >= 3 || shared >= 2 && shared * 2 >= core.chars().count();
        let not = ["不", "无需", "没有", "别"].iter().any(|not| {
            core.char_indices().any(|(at, _)| {
                core[at..].chars().nth(1).is_some_and(|second| {
                    let pair: String = core[at..].chars().take(1).chain([second]).collect();
                    lower.find(&pair).is_some_and(|place| {
                        lower[..place]
                            .chars()
                            .rev()
                            .take(5)
                            .collect::<Vec<_>>()
                            .iter()
                            .rev()
                            .collect::<String>()
                            .contains(not)
                    })
                })
            })
        });
        return enough.then_some(Value::Bool(!not));
    }
    let words: Vec<String> = words::words(lower);
    let name: Vec<&String> = slot
        .name
        .iter()
        .filter(|word| {
            ![
                "includ", "is", "has", "show", "enabl", "us", "with", "need", "requir", "only", "get",
                "return", "includ",
            ]
            .contains(&word.as_str())
        })
        .collect();
    let place = name.iter().filter_map(|word| words.iter().position(|each| each == *word)).min()?;
    let all = name.iter().filter(|word| words.contains(word)).count() * 2 >= name.len();
    let not = words[place.saturating_sub(4)..place]
        .iter()
        .any(|word| ["not", "no", "without", "exclud", "don", "except", "avoid"].contains(&word.as_str()));
    all.then_some(Value::Bool(!not))
}

/// Returns true if the mention is an enum value that was already taken.
fn is_choice(mention: &ValueMention, slots: &[ParameterSlot], values: &[Option<Value>]) -> bool {
    let same = |value: &Value| value.as_str().is_some_and(|word| word.eq_ignore_ascii_case(&mention.text));
    slots.iter().zip(values).any(|(slot, value)| {
        !slot.choices.is_empty()
            && value.as_ref().is_some_and(|value| {
                same(value) || value.as_array().is_some_and(|items| items.iter().any(same))
            })
    })
}

/// Adds the words that are paths according to the context.
fn add_files(text: &str, mentions: &mut Vec<ValueMention>, context: &InferenceContext) {
    for file in context.files.iter().take(2_000) {
        let taken =
            |start: usize| mentions.iter().any(|mention| mention.start <= start && start < mention.end);
        if let Some(start) = phrase::place(text, file).filter(|start| !taken(*start)) {
            mentions.push(ValueMention {
                kind: MentionKind::Path,
                start,
                end: start + file.len(),
                text: file.clone(),
            });
        }
    }
    mentions.sort_by_key(|mention| mention.start);
}

/// Returns a phrase about the slot that is not a token by itself.
fn phrase_value(text: &str, slot: &ParameterSlot) -> Option<Value> {
    if slot.kind != SlotKind::Text || !slot.choices.is_empty() {
        return None;
    }
    if slot.list
        && slot.description.contains(is_cjk)
        && let Some(items) = phrase::chinese_list(text).filter(|_| slot.required)
    {
        return Some(Value::from(items));
    }
    let phrase_text = phrase::stated(text, slot).or_else(|| phrase::described_example(text, slot));
    let phrase_text =
        phrase_text.or_else(|| slot.required.then(|| phrase::adjacent_words(text, slot)).flatten());
    let phrase_text = phrase_text.or_else(|| {
        (slot.required
            && slot.is_about(&[
                "topic", "query", "subject", "keyword", "term", "search", "item", "product", "content",
                "text",
            ]))
        .then(|| phrase::topic(text))
        .flatten()
    })?;
    if !slot.list {
        return Some(Value::String(phrase_text));
    }
    let items = phrase_text
        .split(['、', ',', '，', '和'])
        .flat_map(|item| item.split(" and "))
        .map(str::trim)
        .filter(|item| !item.is_empty());
    Some(items.map(|item| Value::String(item.to_owned())).collect())
}
