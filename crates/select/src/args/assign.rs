//! Which slot gets which mention: every pair is scored, and the best is taken first.

use serde_json::{Number, Value, json};

use super::{
    Context,
    mention::{Kind as Mentioned, Mention, Unit, is_cjk, mentions},
    phrase,
    slot::{Kind, Slot},
    valid, words,
};

/// Below this an optional parameter stays empty.
const SURE: i32 = 9;

/// What a mention loses for a slot that cannot take it as it is. If it is still the best, it was meant and is wrong.
const UNFIT: i32 = 2;

/// A value for each slot, where the text has one.
pub(super) fn assign(text: &str, slots: &[Slot], context: &Context) -> Vec<Option<Value>> {
    let mut values = vec![None; slots.len()];
    let lower = text.to_lowercase();
    for (slot, value) in slots.iter().zip(&mut values) {
        *value = chosen(&lower, slot).or_else(|| said_so(&lower, slot));
    }
    let mut mentions = mentions(text, context.today);
    mentions.retain(|mention| !is_choice(mention, slots, &values));
    add_files(text, &mut mentions, context);
    contend(text, slots, &mut mentions, &mut values);
    for (slot, value) in slots.iter().zip(&mut values) {
        if value.is_none() {
            // What is only near a slot and does not fit it was not meant for it.
            let is_meant = |value: &Value| valid::fits(slot, value) || phrase::stated(text, slot).is_some();
            *value =
                worded(text, slot).filter(is_meant).or_else(|| context.earlier.get(slot.own_name()).cloned());
        }
    }
    values
}

/// A word of an enum that the text says; all of them for a list.
fn chosen(lower: &str, slot: &Slot) -> Option<Value> {
    let mut said: Vec<(usize, usize, &Value)> = slot
        .choices
        .iter()
        .filter_map(|choice| {
            let word = choice.as_str()?.to_lowercase();
            let spoken = word.replace(['_', '-'], " ");
            let at = [&word, &spoken]
                .into_iter()
                .find_map(|word| phrase::place(lower, word))
                .or_else(|| stemmed(lower, &spoken))
                .or_else(|| synonym(&word).iter().find_map(|other| phrase::place(lower, other)))?;
            Some((at, word.len(), choice))
        })
        .collect();
    said.sort_by_key(|(at, length, _)| (*at, std::cmp::Reverse(*length)));
    if slot.list {
        return (!said.is_empty()).then(|| said.into_iter().map(|(_, _, choice)| choice.clone()).collect());
    }
    said.into_iter().max_by_key(|(at, length, _)| (*length, *at)).map(|(_, _, choice)| choice.clone())
}

/// Where a text says a word in another form.
fn stemmed(lower: &str, word: &str) -> Option<usize> {
    let stem = words::stem(word);
    let long = stem.len() >= 4 && !word.contains(' ') && word.is_ascii();
    long.then(|| lower.find(&format!(" {stem}"))).flatten()
}

/// Verbs that ask for the same.
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

/// Whether a text asks for what a yes-or-no parameter is about.
fn said_so(lower: &str, slot: &Slot) -> Option<Value> {
    if slot.kind != Kind::Boolean || slot.list {
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
    let told: Vec<String> = words::words(lower);
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
    let place = name.iter().filter_map(|word| told.iter().position(|each| each == *word)).min()?;
    let all = name.iter().filter(|word| told.contains(word)).count() * 2 >= name.len();
    let not = told[place.saturating_sub(4)..place]
        .iter()
        .any(|word| ["not", "no", "without", "exclud", "don", "except", "avoid"].contains(&word.as_str()));
    all.then_some(Value::Bool(!not))
}

/// Whether a mention is the word of an enum that was taken already.
fn is_choice(mention: &Mention, slots: &[Slot], values: &[Option<Value>]) -> bool {
    let same = |value: &Value| value.as_str().is_some_and(|word| word.eq_ignore_ascii_case(&mention.text));
    slots.iter().zip(values).any(|(slot, value)| {
        !slot.choices.is_empty()
            && value.as_ref().is_some_and(|value| {
                same(value) || value.as_array().is_some_and(|items| items.iter().any(same))
            })
    })
}

/// Words that are files, because the context says so.
fn add_files(text: &str, mentions: &mut Vec<Mention>, context: &Context) {
    for file in context.files.iter().take(2_000) {
        let taken =
            |start: usize| mentions.iter().any(|mention| mention.start <= start && start < mention.end);
        if let Some(start) = phrase::place(text, file).filter(|start| !taken(*start)) {
            mentions.push(Mention {
                kind: Mentioned::Path,
                start,
                end: start + file.len(),
                text: file.clone(),
            });
        }
    }
    mentions.sort_by_key(|mention| mention.start);
}

/// Gives mentions to slots, the best pair first.
fn contend(text: &str, slots: &[Slot], mentions: &mut [Mention], values: &mut [Option<Value>]) {
    let mut pairs = Vec::new();
    for (at, slot) in slots.iter().enumerate().filter(|(at, _)| values[*at].is_none()) {
        for (place, mention) in mentions.iter().enumerate() {
            let score = score(
                text,
                slot,
                mention,
                place.checked_sub(1).map(|before| &mentions[before]),
                mentions.get(place + 1),
            );
            if score <= 0 || !(slot.required || score >= SURE) {
                continue;
            }
            let score = if suits(slot, mention) { score } else { score - UNFIT };
            if score > 0 {
                pairs.push((score, at, place));
            }
        }
    }
    // Among equals the earlier parameter gets the earlier mention.
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
        let joined = (slot.kind == Kind::Text && wants_state(slot))
            .then(|| mentions.get(place + 1))
            .flatten()
            .filter(|next| {
                next.kind == Mentioned::Name && text.get(mentions[place].end..next.start) == Some(", ")
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

/// Whether nothing in the schema of a slot speaks against a mention.
fn suits(slot: &Slot, mention: &Mention) -> bool {
    slot.list || value_of(slot, mention).is_none_or(|value| valid::fits(slot, &value))
}

fn wants_state(slot: &Slot) -> bool {
    if slot.is_about(&["location", "place", "destination", "loc", "address"]) {
        return true;
    }
    let description = slot.description.to_lowercase();
    ["city and state", "city, state", "city and country", "city, country", ", ca", ", ny", ", wa"]
        .iter()
        .any(|form| description.contains(form))
}

/// The mentions around one that are listed with it: same kind, with only commas and conjunctions between.
fn run(text: &str, mentions: &[Mention], place: usize, used: &[bool]) -> std::ops::Range<usize> {
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

/// A mention as the value of a slot, if it can be one.
fn value_of(slot: &Slot, mention: &Mention) -> Option<Value> {
    match (slot.kind, &mention.kind) {
        (Kind::Integer, Mentioned::Number { value, .. }) if value.fract() == 0.0 && value.abs() < 9e15 => {
            format!("{value:.0}").parse::<i64>().ok().map(Value::from)
        }
        (Kind::Number, Mentioned::Number { value, unit }) => {
            let share = *unit == Unit::Percent
                && ["decimal", "0.05", "between 0 and 1", "fraction"]
                    .iter()
                    .any(|word| slot.description.to_lowercase().contains(word));
            let share = share
                || *unit == Unit::Percent
                    && slot.is_about(&["rate", "interest"])
                    && !slot.description.contains(is_cjk)
                    && !slot.description.to_lowercase().contains("percent");
            let value = if share { (value / 100.0 * 1e12).round() / 1e12 } else { *value };
            Number::from_f64(value).map(Value::Number)
        }
        (Kind::Text, Mentioned::Date(date)) => {
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
        (Kind::Text, Mentioned::Time(minutes)) => {
            Some(json!(format!("{:02}:{:02}", minutes / 60, minutes % 60)))
        }
        (Kind::Text, Mentioned::Number { unit: Unit::Percent, .. }) => {
            Some(json!(format!("{}%", mention.text)))
        }
        (Kind::Text, _) => Some(json!(mention.text)),
        (Kind::Integer | Kind::Number | Kind::Boolean, _) => None,
    }
}

/// How well a mention fits a slot; nothing if it cannot.
fn score(
    text: &str,
    slot: &Slot,
    mention: &Mention,
    previous: Option<&Mention>,
    next: Option<&Mention>,
) -> i32 {
    if value_of(slot, mention).is_none() || !slot.choices.is_empty() {
        return 0;
    }
    let fit = fit(slot, mention);
    let label = words::words(&mention.text).iter().all(|word| slot.name.contains(word));
    if fit <= 0 || label {
        return 0;
    }
    let sentence = text[..mention.start].rfind(['\n', '。', '！', '？']).map_or(0, |at| at + 1);
    let from = previous.map_or(0, |previous| previous.end).max(sentence).min(mention.start);
    let until = next.map_or(text.len(), |next| next.start).max(mention.end);
    let before = text.get(from..mention.start).unwrap_or_default();
    let after = text.get(mention.end..until).unwrap_or_default();
    fit + near(slot, before, after)
        + led(slot, mention, text.get(sentence..mention.start).unwrap_or_default())
}

/// Parameters that no sum of money and no share can be.
const TIMES: [&str; 10] = ["year", "time", "month", "day", "period", "term", "age", "duration", "count", "n"];

/// Whether the kinds agree.
fn fit(slot: &Slot, mention: &Mention) -> i32 {
    let dated =
        slot.tells_of(&["date"]) || slot.is_about(&["day", "日期"]) || slot.description.contains("日期");
    let timed = slot.is_about(&["time"]);
    let coded = slot.is_about(&["id", "code", "number", "no", "sku", "uuid", "isbn", "serial", "key"])
        || slot.description.contains("标识")
        || slot.description.contains("编号")
        || slot.description.contains("代码");
    match &mention.kind {
        Mentioned::Number { unit, .. } if slot.kind != Kind::Text => match unit {
            Unit::Percent
                if slot.tells_of(&[
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
            Unit::Money
                if slot.tells_of(&[
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
            Unit::Money | Unit::Percent if slot.is_about(&TIMES) => 0,
            Unit::Money | Unit::Percent => 1,
            // "two given numbers": how many there are, more often than one of them.
            Unit::None if mention.text.starts_with(|c: char| c.is_ascii_alphabetic()) => 1,
            Unit::None => 3,
        },
        Mentioned::Number { .. } => {
            i32::from(coded) * 4
                + i32::from(slot.is_about(&["year", "age", "size", "period", "duration"])) * 4
        }
        Mentioned::Date(_) => {
            if dated {
                12
            } else {
                i32::from(slot.is_about(&["start", "end", "from", "to", "when"])) * 6
            }
        }
        Mentioned::Time(_) => i32::from(timed) * 12,
        Mentioned::Email => {
            i32::from(
                slot.tells_of(&["email", "mail", "recipient", "to", "contact", "address", "account"])
                    || slot.description.contains("邮"),
            ) * 12
        }
        Mentioned::Url => {
            i32::from(
                slot.tells_of(&["url", "link", "website", "uri", "site", "page"])
                    || slot.description.contains("网")
                    || slot.description.contains("链接"),
            ) * 12
        }
        Mentioned::Path => {
            if slot.tells_of(&["path", "file", "image", "dir", "directory", "folder", "document", "filename"])
                || slot.description.contains("文件")
                || slot.description.contains("路径")
            {
                12
            } else {
                2
            }
        }
        Mentioned::Code if coded => 9,
        Mentioned::Code => 3,
        Mentioned::Quoted => {
            if dated || timed {
                1
            } else {
                5
            }
        }
        Mentioned::Name if dated || timed || coded => 1,
        Mentioned::Name => 4,
    }
}

/// How close the words of the slot are to the mention.
fn near(slot: &Slot, before: &str, after: &str) -> i32 {
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
            || unit_of(word).iter().any(|unit| slot.name.contains(&words::stem(unit)));
        let told = slot.about.contains(word)
            || unit_of(word).iter().any(|unit| slot.about.contains(&words::stem(unit)));
        let weight = if named {
            4
        } else if told {
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

/// What a unit measures.
fn unit_of(word: &str) -> &'static [&'static str] {
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

/// What the preposition before a mention says about its part.
fn led(slot: &Slot, mention: &Mention, before: &str) -> i32 {
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
    if matches!(mention.kind, Mentioned::Number { .. }) {
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

/// What is said about a slot without being a token of its own.
fn worded(text: &str, slot: &Slot) -> Option<Value> {
    if slot.kind != Kind::Text || !slot.choices.is_empty() {
        return None;
    }
    if slot.list
        && slot.description.contains(is_cjk)
        && let Some(items) = phrase::listed(text).filter(|_| slot.required)
    {
        return Some(Value::from(items));
    }
    let said = phrase::stated(text, slot).or_else(|| phrase::exemplified(text, slot));
    let said = said.or_else(|| slot.required.then(|| phrase::beside(text, slot)).flatten());
    let said = said.or_else(|| {
        (slot.required
            && slot.is_about(&[
                "topic", "query", "subject", "keyword", "term", "search", "item", "product", "content",
                "text",
            ]))
        .then(|| phrase::topic(text))
        .flatten()
    })?;
    if !slot.list {
        return Some(Value::String(said));
    }
    let items = said
        .split(['、', ',', '，', '和'])
        .flat_map(|item| item.split(" and "))
        .map(str::trim)
        .filter(|item| !item.is_empty());
    Some(items.map(|item| Value::String(item.to_owned())).collect())
}
