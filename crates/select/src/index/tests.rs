//! Tests of the index.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn card(name: &str, description: &str) -> Card {
    Card { name: name.to_owned(), description: description.to_owned(), ..Card::default() }
}

fn tools() -> Vec<Card> {
    let text = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    vec![
        Card {
            parameters: text,
            ..card("get_weather", "Current weather conditions and forecast for a city.")
        },
        card("send_email", "Send an email message to a recipient."),
        card("delete_file", "Remove a file from disk."),
        card("read_file", "Read the contents of a text file."),
        card("convert_currency", "Convert an amount of money from one currency to another."),
        card("translateText", "Translate text into another language."),
    ]
}

fn index(cards: &[Card]) -> Index {
    let mut index = Index::new();
    for card in cards {
        index.add(card);
    }
    index
}

fn found<'a>(index: &'a Index, request: &str) -> Vec<&'a str> {
    let hits = index.search(&ToolRequest::new(request), 3);
    hits.into_iter().filter_map(|hit| index.name(hit.id)).collect()
}

#[test]
fn words_find_the_tool_that_has_them() {
    let index = index(&tools());
    assert_eq!(found(&index, "What will the weather be in Oslo?")[0], "get_weather");
    assert_eq!(found(&index, "please email Ann")[0], "send_email");
}

#[test]
fn other_words_of_the_same_meaning_find_it_too() {
    let index = index(&tools());
    assert_eq!(found(&index, "Is it raining outside, how hot is it?")[0], "get_weather");
    assert_eq!(found(&index, "how many dollars are 30 euros")[0], "convert_currency");
}

#[test]
fn a_general_search_is_found_by_what_people_look_for() {
    let mut cards = tools();
    cards.push(card("web_search", "Perform a web search."));
    cards.push(card("latest_release", "The latest release of a project."));
    assert_eq!(found(&index(&cards), "Find news about climate change")[0], "web_search");
}

#[test]
fn pasted_data_does_not_drown_the_request() {
    let mut cards = tools();
    cards.push(card("decode_image", "Show a picture that is written in base64."));
    let data = "email/File+send/delete+Currency/".repeat(20);
    assert_eq!(found(&index(&cards), &format!("What is in this base64 picture? {data}"))[0], "decode_image");
}

#[test]
fn a_chinese_request_finds_an_english_tool() {
    let index = index(&tools());
    assert_eq!(found(&index, "明天上海的天气怎么样")[0], "get_weather");
    assert_eq!(found(&index, "把这句话翻译成法语")[0], "translateText");
    assert_eq!(found(&index, "删除这个文件")[0], "delete_file");
}

#[test]
fn a_name_always_wins_however_it_is_written() {
    let index = index(&tools());
    for request in [
        "translate_text",
        "Translate-Text",
        "weather weather weather, use translateText",
        "用translate_text查天气",
    ] {
        assert_eq!(found(&index, request)[0], "translateText", "{request}");
    }
}

#[test]
fn a_tool_of_the_same_name_and_server_is_replaced() {
    let mut index = index(&tools());
    let id = index.add(&card("read_file", "Play music."));
    assert_eq!(index.len(), 6);
    assert_eq!(index.name(id), Some("read_file"));
    index.add(&Card { server: "other".to_owned(), ..card("read_file", "Something else.") });
    assert_eq!(index.len(), 7);
}

#[test]
fn odd_requests_get_an_answer() {
    let index = index(&tools());
    for request in ["", " ", "🌦🌦", "Какая погода?", "天気はどうですか", "ما هو الطقس", "\u{0}\u{ffff}", "???"]
    {
        assert_eq!(found(&index, request).len(), 3, "{request}");
    }
    assert_eq!(found(&index, &"weather ".repeat(130_000))[0], "get_weather");
    assert_eq!(found(&Index::new(), "weather"), Vec::<&str>::new());
}

#[test]
fn odd_tools_do_no_harm() {
    let schemas = [
        json!(null),
        json!([]),
        json!("x"),
        json!({"properties": 7}),
        json!({"properties": {"": {"enum": 3}}}),
    ];
    let mut index = index(&tools());
    for (at, schema) in schemas.into_iter().enumerate() {
        index.add(&Card { parameters: schema, ..card(&format!("odd{at}"), "") });
    }
    index.add(&card("", ""));
    index.add(&card(&"long".repeat(100_000), &"x ".repeat(1_000_000)));
    let mut deep = json!({});
    (0..100).for_each(|_| deep = json!({"properties": {"a": deep}}));
    index.add(&Card { parameters: deep, ..card("deep", "") });
    assert_eq!(found(&index, "weather")[0], "get_weather");
}

#[test]
fn fifty_thousand_tools_are_searched_like_six() {
    let mut index = index(&tools());
    for at in 0..50_000 {
        index.add(&card(&format!("tool{at}"), ""));
    }
    assert_eq!(index.len(), 50_006);
    assert_eq!(found(&index, "weather")[0], "get_weather");
    assert_eq!(found(&index, "tool4711")[0], "tool4711");
}

#[test]
fn a_removed_tool_is_not_found_and_its_place_is_used_again() {
    let mut index = index(&tools());
    let id = index.search(&ToolRequest::new("weather"), 1)[0].id;
    assert!(index.remove(id));
    assert!(!index.remove(id));
    assert!(!found(&index, "weather").contains(&"get_weather"));
    assert_eq!(index.add(&tools()[0]), id);
    assert_eq!(found(&index, "weather")[0], "get_weather");
}

#[test]
fn what_is_saved_comes_back() {
    let whole = index(&tools());
    let mut back = Index::from_bytes(&whole.to_bytes()).unwrap();
    assert_eq!(back.digest(), whole.digest());
    let request = ToolRequest::new("what is the weather in Paris");
    assert_eq!(back.search(&request, 6), whole.search(&request, 6));
    back.add(&card("stock_price", "Price of a share."));
    assert_eq!(found(&back, "share price")[0], "stock_price");
}

#[test]
fn the_digest_tells_cards_apart_and_not_their_order() {
    let mut turned = tools();
    turned.reverse();
    assert_eq!(index(&turned).digest(), index(&tools()).digest());
    turned[0].description.push('!');
    assert_ne!(index(&turned).digest(), index(&tools()).digest());
}

#[test]
fn a_list_of_which_a_little_changes_has_the_number_it_had() {
    let many = |changed: usize| -> Vec<_> {
        (0..200).map(|at| card(&format!("tool{at}"), if at < changed { "new" } else { "old" })).collect()
    };
    let kin = Index::family_hash(&many(0));
    assert_eq!(kin, Index::family_hash(&many(200)), "what is said of a tool does not count");
    let mut fewer = many(0);
    let lost = (0..200).filter(|at| {
        let card = fewer.remove(*at);
        let other = Index::family_hash(&fewer) != kin;
        fewer.insert(*at, card);
        other
    });
    assert_eq!(lost.count(), 1, "only one tool matters");
    assert_ne!(
        kin,
        Index::family_hash(
            &many(0)[..100].iter().map(|each| card(&format!("{}b", each.name), "")).collect::<Vec<_>>()
        )
    );
}

#[test]
fn a_saved_index_renewed_forgets_the_words_of_tools_that_are_gone() {
    let cards = |round: usize| -> Vec<_> {
        (0..50).map(|at| card(&format!("tool{at}"), &format!("word{round}x{at}"))).collect()
    };
    let fresh = index(&cards(0)).to_bytes().len();
    let renew = |saved: Index, round| Index::from_bytes(&saved.renewed(&cards(round)).to_bytes()).unwrap();
    let renewed = (1..20).fold(index(&cards(0)), renew);
    assert!(renewed.matches_cards(&cards(19)));
    assert!(renewed.to_bytes().len() < 2 * fresh, "{} bytes, at first {fresh}", renewed.to_bytes().len());
}

proptest! {
    #[test]
    fn coming_and_going_leaves_what_a_new_index_would_be(moves in prop::collection::vec((0_usize..6, any::<bool>()), 0..30)) {
        let cards = tools();
        let mut walked = Index::new();
        let mut ids = vec![None; cards.len()];
        for (at, comes) in moves {
            if comes {
                ids[at] = Some(walked.add(&cards[at]));
            } else if let Some(id) = ids[at].take() {
                walked.remove(id);
            }
        }
        let kept: Vec<_> = cards.iter().zip(&ids).filter(|(_, id)| id.is_some()).map(|(card, _)| card.clone()).collect();
        let fresh = index(&kept);
        prop_assert_eq!(walked.digest(), fresh.digest());
        let request = ToolRequest::new("read the weather file and email it");
        let scores = |index: &Index| {
            let hits = index.search(&request, 10).into_iter();
            let mut scores: Vec<_> = hits.map(|hit| (index.name(hit.id).unwrap().to_owned(), hit.score.to_bits())).collect();
            scores.sort();
            scores
        };
        prop_assert_eq!(scores(&walked), scores(&fresh));
    }

    #[test]
    fn a_saved_index_renewed_is_what_a_new_one_would_be(order in prop::sample::subsequence((0..6).collect::<Vec<usize>>(), 0..=6).prop_shuffle(), changed in any::<[bool; 6]>()) {
        let saved = Index::from_bytes(&index(&tools()).to_bytes()).unwrap();
        let card = |at: usize| {
            let card = tools().remove(at);
            let description = if changed[at] { "Weather by email." } else { &card.description }.to_owned();
            Card { description, ..card }
        };
        let cards: Vec<_> = order.into_iter().map(card).collect();
        prop_assert_eq!(saved.matches_cards(&cards), cards == tools());
        let renewed = saved.renewed(&cards);
        prop_assert!(renewed.matches_cards(&cards));
        let request = ToolRequest::new("read the weather file and email it");
        // Terms have other numbers, so that sums are made in another order.
        let scores = |index: &Index| {
            let hits = index.search(&request, 10).into_iter();
            let mut scores: Vec<_> = hits.map(|hit| (hit.id, (hit.score * 1e4).round())).collect();
            scores.sort_by_key(|(id, _)| *id);
            scores
        };
        prop_assert_eq!(scores(&renewed), scores(&index(&cards)));
    }

    #[test]
    fn damage_is_told_and_never_a_panic(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<prop::sample::Index>()) {
        let bytes = index(&tools()).to_bytes();
        let mut changed = bytes.clone();
        let at = at.index(bytes.len());
        changed[at] = byte;
        prop_assert_eq!(Index::from_bytes(&changed).is_ok(), changed == bytes);
        prop_assert!(Index::from_bytes(&bytes[..cut.index(bytes.len())]).is_err());
        // Even with a sum that fits.
        let sum = saved::checksum(&changed[..bytes.len() - 8]);
        changed[bytes.len() - 8..].copy_from_slice(&sum.to_le_bytes());
        let _either = Index::from_bytes(&changed);
    }

    #[test]
    fn any_text_can_be_asked(text in any::<String>()) {
        let index = index(&tools());
        prop_assert_eq!(index.search(&ToolRequest::new(&text), 10).len(), 6);
    }
}

fn likenesses(index: &Index, request: &str) -> Vec<(String, f32)> {
    let mut hits = index.search(&ToolRequest::new(request), 10);
    hits.retain(|hit| hit.likeness > 0.0);
    hits.into_iter().map(|hit| (index.name(hit.id).unwrap().to_owned(), hit.likeness)).collect()
}

#[test]
fn what_a_tool_was_the_answer_to_finds_it_again() {
    let day = |days: u64| Duration::from_secs(days * 24 * 3600);
    let request = "do I need my umbrella in Oslo";
    let found = |usage: &Usage| {
        let mut index = index(&[card("one", "Look it up."), card("two", "Look it up.")]);
        index.remember(usage);
        likenesses(&index, "will I need an umbrella today")
    };
    let answered = |tools: &[&str], age| {
        let mut usage = Usage::default();
        usage.add_request(request, tools.iter().map(|tool| (*tool).to_owned()).collect(), age);
        found(&usage)
    };
    let fresh = answered(&["two", "unknown"], day(0));
    assert_eq!(fresh.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["two"]);
    let old = answered(&["two"], day(30));
    assert!((old[0].1 * 2.0 - fresh[0].1).abs() < 1e-3, "half after a month: {old:?} {fresh:?}");
    let shared = answered(&["one", "two"], day(0));
    assert!((shared[0].1 * 2.0 - fresh[0].1).abs() < 1e-3, "half for each of two: {shared:?} {fresh:?}");
    let mut usage = Usage::default();
    usage.add_request("yes, go on", vec!["two".to_owned()], day(0));
    assert_eq!(found(&usage), [], "what is said of anything says nothing");
}

#[test]
fn what_was_asked_is_bounded_and_never_saved() {
    let cards = [card("one", "Look it up."), card("two", "Look it up.")];
    let mut known = index(&cards);
    let plain = known.to_bytes();
    let mut usage = Usage::default();
    for at in 0..1000 {
        usage.add_request(&format!("request about subject{at}"), vec!["one".to_owned()], Duration::ZERO);
    }
    known.remember(&usage);
    let id = known.search(&ToolRequest::new("one"), 1)[0].id;
    assert_eq!(known.entry(id).unwrap().uses.len(), MAX_USES);
    assert_eq!(known.to_bytes(), plain);
    assert!(known.remove(id));
    known.add(&cards[0]);
    assert_eq!(likenesses(&known, "request about subject1"), [], "a tool that was removed takes it along");
}
