//! Scores how well a mention fits a slot: by its kind, the words around it and the preposition
//! before it.

use super::{
    matching::value_of,
    mention::{MentionKind, NumberUnit, ValueMention, is_cjk},
    slot::{ParameterSlot, SlotKind},
    words,
};

/// Returns the score of a mention for a slot; 0 if it cannot be its value.
pub(super) fn score(
    text: &str,
    slot: &ParameterSlot,
    mention: &ValueMention,
    previous: Option<&ValueMention>,
    next: Option<&ValueMention>,
) -> i32 {
    if value_of(slot, mention).is_none() || !slot.choices.is_empty() {
        return 0;
    }
    let kind_score = kind_score(slot, mention);
    let label = words::words(&mention.text).iter().all(|word| slot.name.contains(word));
    if kind_score <= 0 || label {
        return 0;
    }
    let sentence = text[..mention.start].rfind(['\n', '。', '！', '？']).map_or(0, |at| at + 1);
    let from = previous.map_or(0, |previous| previous.end).max(sentence).min(mention.start);
    let until = next.map_or(text.len(), |next| next.start).max(mention.end);
    let before = text.get(from..mention.start).unwrap_or_default();
    let after = text.get(mention.end..until).unwrap_or_default();
    kind_score
        + nearby_words_score(slot, before, after)
        + preposition_score(slot, mention, text.get(sentence..mention.start).unwrap_or_default())
}

/// Words of parameters that can be neither an amount of money nor a percentage.
const TIMES: [&str; 10] = ["year", "time", "month", "day", "period", "term", "age", "duration", "count", "n"];

/// Scores the kind of the mention against the slot.
fn kind_score(slot: &ParameterSlot, mention: &ValueMention) -> i32 {
    let dated =
        slot.describes(&["date"]) || slot.is_about(&["day", "日期"]) || slot.description.contains("日期");
    let timed = slot.is_about(&["time"]);
    let coded = slot.is_about(&["id", "code", "number", "no", "sku", "uuid", "isbn", "serial", "key"])
        || slot.description.contains("标识")
        || slot.description.contains("编号")
        || slot.description.contains("代码");
    match &mention.kind {
        MentionKind::Number { unit, .. } if slot.kind != SlotKind::Text => number_score(slot, mention, *unit),
        MentionKind::Number { .. } => {
            i32::from(coded) * 4
                + i32::from(slot.is_about(&["year", "age", "size", "period", "duration"])) * 4
        }
        MentionKind::Date(_) => {
            if dated {
                12
            } else {
                i32::from(slot.is_about(&["start", "end", "from", "to", "when"])) * 6
            }
        }
        MentionKind::Time(_) => i32::from(timed) * 12,
        MentionKind::Email => {
            i32::from(
                slot.describes(&["email", "mail", "recipient", "to", "contact", "address", "account"])
                    || slot.description.contains("邮"),
            ) * 12
        }
        MentionKind::Url => {
            i32::from(
                slot.describes(&["url", "link", "website", "uri", "site", "page"])
                    || slot.description.contains("网")
                    || slot.description.contains("链接"),
            ) * 12
        }
        MentionKind::Path => {
            if slot.describes(&[
                "path",
                "file",
                "image",
                "dir",
                "directory",
                "folder",
                "document",
                "filename",
            ]) || slot.description.contains("文件")
                || slot.description.contains("路径")
            {
                12
            } else {
                2
            }
        }
        MentionKind::Code if coded => 9,
        MentionKind::Code => 3,
        MentionKind::Quoted => {
            if dated || timed {
                1
            } else {
                5
            }
        }
        MentionKind::Name if dated || timed || coded => 1,
        MentionKind::Name => 4,
    }
}

/// Scores the unit of a number against the slot.
fn number_score(slot: &ParameterSlot, mention: &ValueMention, unit: NumberUnit) -> i32 {
    match unit {
        NumberUnit::Percent
            if slot.describes(&[
                "rate",
                "percent",
                "percentage",
                "ratio",
                "probability",
                "level",
                "discount",
                "tax",
            ]) =>
        {
            8
        }
        NumberUnit::Money
            if slot.describes(&[
                "amount",
                "price",
                "cost",
                "budget",
                "principal",
                "money",
                "investment",
                "salary",
                "income",
                "loan",
                "payment",
                "value",
                "fee",
            ]) =>
        {
            8
        }
        NumberUnit::Money | NumberUnit::Percent if slot.is_about(&TIMES) => 0,
        NumberUnit::Money | NumberUnit::Percent => 1,
        // In "two given numbers" the word is a count more often than one of the numbers.
        NumberUnit::None if mention.text.starts_with(|c: char| c.is_ascii_alphabetic()) => 1,
        NumberUnit::None => 3,
    }
}

/// Scores how close the words of the slot are to the mention.
fn nearby_words_score(slot: &ParameterSlot, before: &str, after: &str) -> i32 {
    let mut score = 0;
    let behind: Vec<String> = words::words(before);
    for (distance, word) in behind.iter().rev().take(6).enumerate() {
        let weight = if slot.name.contains(word) {
            4
        } else if slot.about.contains(word) {
            2
        } else {
            continue;
        };
        score += weight * (7 - i32::try_from(distance).unwrap_or(6)) / 3;
    }
    for (distance, word) in words::words(after).iter().take(2).enumerate() {
        let named = slot.name.contains(word)
            || measured_quantities(word).iter().any(|unit| slot.name.contains(&words::stem(unit)));
        let described = slot.about.contains(word)
            || measured_quantities(word).iter().any(|unit| slot.about.contains(&words::stem(unit)));
        let weight = if named {
            4
        } else if described {
            3
        } else {
            continue;
        };
        score += weight * (3 - i32::try_from(distance).unwrap_or(2)) / 2;
    }
    if slot.description.contains(is_cjk) {
        let tail: String = before.chars().rev().take(10).collect::<Vec<_>>().into_iter().rev().collect();
        let head: String = after.chars().take(5).collect();
        let shared = |text: &str| i32::try_from(words::shared(text, &slot.description)).unwrap_or(0);
        let (tail, head) = (shared(&tail), shared(&head));
        score += if tail >= 2 { tail * 4 } else { tail } + if head >= 2 { head * 3 } else { head };
    }
    score
}

/// Returns the quantities that a unit measures.
fn measured_quantities(word: &str) -> &'static [&'static str] {
    match word {
        "kg" | "kilogram" | "pound" | "lb" | "lbs" | "gram" | "g" => &["weight", "mass", "kilogram", "kg"],
        "cm" | "met" | "m" | "km" | "mile" | "mil" | "feet" | "foot" | "inch" | "kilomet" | "centimet" => {
            &["height", "length", "distance", "radius", "width", "meter", "km"]
        }
        "hour" | "minut" | "second" | "day" | "week" | "month" | "year" | "hr" | "min" => {
            &["time", "duration", "period", "term"]
        }
        "degre" | "celsiu" | "fahrenheit" | "c" | "f" => &["temperature", "angle", "temp"],
        "people" | "person" | "guest" | "adult" => {
            &["people", "guest", "party", "passenger", "size", "person"]
        }
        "mph" | "kmh" => &["speed", "velocity"],
        _ => &[],
    }
}

/// Scores the preposition before a mention against the role of the slot.
fn preposition_score(slot: &ParameterSlot, mention: &ValueMention, before: &str) -> i32 {
    const LEADS: [(&[&str], &[&str]); 5] = [
        (
            &["from", "从"],
            &["start", "origin", "departure", "source", "from", "depart", "begin", "starting", "initial"],
        ),
        (
            &["to", "until", "到", "去", "至"],
            &["end", "destination", "arrival", "target", "to", "final", "recipient", "dest"],
        ),
        (
            &["in", "at", "near", "around", "在", "within"],
            &[
                "location", "city", "place", "country", "region", "state", "area", "address", "venue",
                "county", "where", "town", "site",
            ],
        ),
        (&["by"], &["author", "artist", "creator", "director", "by", "composer", "painter", "writer"]),
        (&["on"], &["date", "day", "platform", "when"]),
    ];
    if matches!(mention.kind, MentionKind::Number { .. }) {
        return 0;
    }
    let trimmed = before.trim_end().trim_end_matches(" the").trim_end();
    let last = trimmed.rsplit(|c: char| c.is_whitespace()).next().unwrap_or_default().to_lowercase();
    let mut score = 0;
    for (leads, parts) in LEADS {
        let leads = leads.iter().any(|lead| last == *lead || !lead.is_ascii() && trimmed.ends_with(lead));
        let parts = slot.is_about(parts);
        score += match (leads, parts) {
            (true, true) => 10,
            (true, false)
                if slot.is_about(&["start", "end", "origin", "destination", "departure", "arrival"]) =>
            {
                -4
            }
            _ => 0,
        };
    }
    score
}
