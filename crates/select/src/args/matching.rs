//! Matches mentions with slots: every pair is scored, and the best pair is taken first.

use serde_json::{Number, Value, json};

use super::{
    mention::{MentionKind, NumberUnit, ValueMention, is_cjk},
    score::score,
    slot::{ParameterSlot, SlotKind},
    valid,
};

/// Minimum score at which an optional parameter gets a value.
const MIN_OPTIONAL_SCORE: i32 = 9;

/// Subtracted from the score of a mention that breaks the schema of the slot. If the mention still
/// wins, it was meant for the slot and is reported as invalid.
const INVALID_PENALTY: i32 = 2;

/// Assigns mentions to slots, the best pair first.
pub(super) fn match_mentions(
    text: &str,
    slots: &[ParameterSlot],
    mentions: &mut [ValueMention],
    values: &mut [Option<Value>],
) {
    let mut pairs = Vec::new();
    let has_path = slots.iter().any(names_path);
    for (at, slot) in slots.iter().enumerate().filter(|(at, _)| values[*at].is_none()) {
        for (place, mention) in mentions.iter().enumerate() {
            // A command is spelled out or quoted. A bare name is what the request is about.
            let is_command = ["command", "cmd"].contains(&slot.own_name());
            if is_command && mention.kind != MentionKind::Quoted {
                continue;
            }
            let is_file = mention
                .text
                .rsplit('/')
                .next()
                .is_some_and(|last| last.trim_start_matches('.').contains('.'));
            if mention.kind == MentionKind::Path && is_file && slot.is_about(&["dir", "workdir", "cwd"]) {
                continue;
            }
            // A path goes to the parameter that is named after paths, if there is one, and never to
            // a text next to it.
            if has_path && mention.kind == MentionKind::Path && !names_path(slot) {
                continue;
            }
            let score = score(
                text,
                slot,
                mention,
                place.checked_sub(1).map(|before| &mentions[before]),
                mentions.get(place + 1),
            );
            if score <= 0 || !(slot.required || score >= MIN_OPTIONAL_SCORE) {
                continue;
            }
            let score = if is_valid_for(slot, mention) { score } else { score - INVALID_PENALTY };
            if score > 0 {
                pairs.push((score, at, place));
            }
        }
    }
    // Among equal scores the earlier parameter gets the earlier mention.
    pairs.sort_by_key(|(score, at, place)| (std::cmp::Reverse(*score), *at, *place));
    let mut used = vec![false; mentions.len()];
    for (_, at, place) in pairs {
        if values[at].is_some() || used[place] {
            continue;
        }
        let slot = &slots[at];
        if slot.list {
            let run = run(text, mentions, place, &used);
            let items: Vec<Value> =
                run.clone().filter_map(|place| value_of(slot, &mentions[place])).collect();
            run.for_each(|place| used[place] = true);
            values[at] = Some(Value::Array(items));
            continue;
        }
        let joined = (slot.kind == SlotKind::Text && wants_state(slot))
            .then(|| mentions.get(place + 1))
            .flatten()
            .filter(|next| {
                next.kind == MentionKind::Name && text.get(mentions[place].end..next.start) == Some(", ")
            });
        values[at] = match joined {
            Some(next) => {
                used[place + 1] = true;
                Some(Value::String(text[mentions[place].start..next.end].to_owned()))
            }
            None => value_of(slot, &mentions[place]),
        };
        used[place] = true;
    }
}

fn names_path(slot: &ParameterSlot) -> bool {
    slot.is_about(&["path", "file", "filename", "dir", "directory", "folder", "image", "document"])
}

/// Returns true if the schema of the slot allows the mention.
fn is_valid_for(slot: &ParameterSlot, mention: &ValueMention) -> bool {
    slot.list || value_of(slot, mention).is_none_or(|value| valid::fits(slot, &value))
}

fn wants_state(slot: &ParameterSlot) -> bool {
    if slot.is_about(&["location", "place", "destination", "loc", "address"]) {
        return true;
    }
    let description = slot.description.to_lowercase();
    ["city and state", "city, state", "city and country", "city, country", ", ca", ", ny", ", wa"]
        .iter()
        .any(|form| description.contains(form))
}

/// Returns the mentions that are listed together with one: of the same kind, with only commas and
/// conjunctions between them.
fn run(text: &str, mentions: &[ValueMention], place: usize, used: &[bool]) -> std::ops::Range<usize> {
    let linked = |a: usize, b: usize| {
        let between = text.get(mentions[a].end..mentions[b].start).unwrap_or("x");
        let between: String = between
            .to_lowercase()
            .chars()
            .filter(|c| !c.is_whitespace() && !",、，()[]（）%".contains(*c))
            .collect();
        let same = std::mem::discriminant(&mentions[a].kind) == std::mem::discriminant(&mentions[b].kind);
        same && !used[a]
            && !used[b]
            && ["", "and", "or", "和", "与", "及", "以及", "&", "vs"].contains(&between.as_str())
            && !text.get(mentions[a].end..mentions[b].start).unwrap_or_default().contains(')')
    };
    let mut start = place;
    while start > 0 && linked(start - 1, start) {
        start -= 1;
    }
    let mut end = place + 1;
    while end < mentions.len() && linked(end - 1, end) {
        end += 1;
    }
    start..end
}

/// Converts a mention to the value of a slot, if possible.
pub(super) fn value_of(slot: &ParameterSlot, mention: &ValueMention) -> Option<Value> {
    match (slot.kind, &mention.kind) {
        (SlotKind::Integer, MentionKind::Number { value, .. })
            if value.fract() == 0.0 && value.abs() < 9e15 =>
        {
            format!("{value:.0}").parse::<i64>().ok().map(Value::from)
        }
        (SlotKind::Number, MentionKind::Number { value, unit }) => {
            let share = *unit == NumberUnit::Percent
                && ["decimal", "0.05", "between 0 and 1", "fraction"]
                    .iter()
                    .any(|word| slot.description.to_lowercase().contains(word));
            let share = share
                || *unit == NumberUnit::Percent
                    && slot.is_about(&["rate", "interest"])
                    && !slot.description.contains(is_cjk)
                    && !slot.description.to_lowercase().contains("percent");
            let value = if share { (value / 100.0 * 1e12).round() / 1e12 } else { *value };
            Number::from_f64(value).map(Value::Number)
        }
        (SlotKind::Text, MentionKind::Date(date)) => {
            let form = slot.description.to_lowercase();
            Some(if form.contains("mm/dd/yyyy") {
                json!(format!("{:02}/{:02}/{}", date.month, date.day, date.year))
            } else if form.contains("dd/mm/yyyy") {
                json!(format!("{:02}/{:02}/{}", date.day, date.month, date.year))
            } else if form.contains("dd-mm-yyyy") {
                json!(format!("{:02}-{:02}-{}", date.day, date.month, date.year))
            } else {
                json!(date.to_string())
            })
        }
        (SlotKind::Text, MentionKind::Time(minutes)) => {
            Some(json!(format!("{:02}:{:02}", minutes / 60, minutes % 60)))
        }
        (SlotKind::Text, MentionKind::Number { unit: NumberUnit::Percent, .. }) => {
            Some(json!(format!("{}%", mention.text)))
        }
        (SlotKind::Text, _) => Some(json!(mention.text)),
        (SlotKind::Integer | SlotKind::Number | SlotKind::Boolean, _) => None,
    }
}
