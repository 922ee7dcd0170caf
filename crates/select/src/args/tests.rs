//! Tests of inference.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn inferred(request: &str, properties: &Value, required: &[&str]) -> Value {
    let schema = json!({"type": "object", "properties": properties, "required": required});
    let context = InferenceContext { today: CalendarDate::new(2024, 5, 6), ..InferenceContext::default() };
    let InferredArguments { args, missing, invalid: _ } = infer(request, &schema, &context);
    json!([args, missing])
}

#[test]
fn numbers_go_where_their_words_and_units_say() {
    let properties = json!({
        "height": {"type": "integer", "description": "Height in centimeters."},
        "weight": {"type": "integer", "description": "Weight in kilograms."},
        "rate": {"type": "number", "description": "Rate in decimal form."},
    });
    let cases = [
        ("a person who weighs 85 kg and is 180 cm tall", json!([{"height": 180, "weight": 85}, []])),
        (
            "weight of 85 kilograms and height of 180, at a rate of 5%",
            json!([{"height": 180, "weight": 85, "rate": 0.05}, []]),
        ),
        ("with a height of 1,800", json!([{"height": 1800}, ["weight"]])),
    ];
    for (request, expected) in cases {
        assert_eq!(inferred(request, &properties, &["weight", "height"]), expected, "{request}");
    }
}

#[test]
fn phrases_about_lines_commands_and_texts_say_which_parameter_they_fill() {
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let read = json!({"file_path": text, "offset": number, "limit": number});
    let shell = json!({"command": text, "workdir": text, "timeout_ms": number});
    let edit = json!({"path": text, "old_string": text, "new_string": text});
    let search = json!({"pattern": text, "path": text});
    for (request, properties, required, expected) in [
        ("show the first 10 lines of a.rs", &read, "file_path", json!({"file_path": "a.rs", "limit": 10})),
        ("显示 a.rs 的前10行", &read, "file_path", json!({"file_path": "a.rs", "limit": 10})),
        (
            "read lines 5 to 10 of a.rs",
            &read,
            "file_path",
            json!({"file_path": "a.rs", "offset": 5, "limit": 6}),
        ),
        (
            "show lines 5-10 of a.rs",
            &read,
            "file_path",
            json!({"file_path": "a.rs", "offset": 5, "limit": 6}),
        ),
        ("show the last 10 lines of a.rs", &read, "file_path", json!({"file_path": "a.rs"})),
        (
            "run ls -la with a timeout of 10 seconds",
            &shell,
            "command",
            json!({"command": "ls -la", "timeout_ms": 10_000}),
        ),
        ("run \"make -j4\" in build", &shell, "command", json!({"command": "make -j4"})),
        ("delete a.rs", &shell, "command", json!({})),
        (
            "replace foo with bar in a.rs",
            &edit,
            "path",
            json!({"path": "a.rs", "old_string": "foo", "new_string": "bar"}),
        ),
        ("search for \"fn main\" in src", &search, "pattern", json!({"pattern": "fn main", "path": "src"})),
    ] {
        let found = inferred(request, properties, &[required]);
        assert_eq!(found[0], expected, "{request}");
    }
}

#[test]
fn names_go_where_their_prepositions_say() {
    let properties = json!({
        "origin": {"type": "string", "description": "Where it begins."},
        "destination": {"type": "string", "description": "Where it ends."},
        "date": {"type": "string", "description": "When, as YYYY-MM-DD."},
    });
    let expected = json!([{"origin": "New York", "destination": "Los Angeles", "date": "2024-05-07"}, []]);
    let required = ["origin", "destination"];
    assert_eq!(inferred("Fly to Los Angeles from New York tomorrow", &properties, &required), expected);
    assert_eq!(inferred("Fly somewhere", &properties, &required), json!([{}, ["origin", "destination"]]));
}

#[test]
fn paths_patterns_and_quotations_are_told_apart() {
    let properties = json!({
        "path": {"type": "string", "description": "The file to look in."},
        "pattern": {"type": "string", "description": "The text to look for."},
    });
    let expected = json!([{"path": "src/main.rs", "pattern": "fn main"}, []]);
    assert_eq!(
        inferred("search for \"fn main\" in src/main.rs", &properties, &["path", "pattern"]),
        expected
    );
}

#[test]
fn a_word_is_a_path_if_the_context_knows_such_a_file() {
    let schema = json!({"properties": {"file": {"type": "string"}}, "required": ["file"]});
    let context =
        InferenceContext { files: vec!["Makefile".into(), "docs".into()], ..InferenceContext::default() };
    assert_eq!(json!(infer("what is in docs", &schema, &context).args), json!({"file": "docs"}));
    assert_eq!(infer("what is in there", &schema, &InferenceContext::default()).missing, ["file"]);
}

#[test]
fn what_an_earlier_result_said_fills_what_the_request_does_not() {
    let schema = json!({"properties": {"user_id": {"type": "string"}}, "required": ["user_id"]});
    let earlier = json!({"user_id": "u-1"}).as_object().cloned().unwrap();
    let context = InferenceContext { earlier, ..InferenceContext::default() };
    assert_eq!(json!(infer("show the profile", &schema, &context).args), json!({"user_id": "u-1"}));
    assert_eq!(json!(infer("show the profile of u-2", &schema, &context).args), json!({"user_id": "u-2"}));
}

#[test]
fn choices_switches_and_lists_are_read_from_the_text() {
    let properties = json!({
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]},
        "cities": {"type": "array", "items": {"type": "string"}, "description": "Cities to compare."},
        "include_humidity": {"type": "boolean"},
    });
    let request = "Compare the weather of Oslo, Bergen and Bodø in Fahrenheit, without humidity";
    let expected =
        json!([{"unit": "fahrenheit", "cities": ["Oslo", "Bergen", "Bodø"], "include_humidity": false}, []]);
    assert_eq!(inferred(request, &properties, &["cities"]), expected);
}

#[test]
fn chinese_requests_are_read_too() {
    let properties = json!({
        "name": {"type": "string", "description": "角色的名字"},
        "age": {"type": "integer", "description": "年龄"},
        "from": {"type": "string", "description": "出发城市"},
        "to": {"type": "string", "description": "到达城市"},
        "day": {"type": "string", "description": "出发日期"},
    });
    let cases = [
        ("角色名字叫李军，年龄是二十八岁。", json!([{"name": "李军", "age": 28}, []])),
        (
            "订一张从上海到北京的票，出发日期是5月8日",
            json!([{"from": "上海", "to": "北京", "day": "2024-05-08"}, []]),
        ),
    ];
    for (request, expected) in cases {
        assert_eq!(inferred(request, &properties, &[]), expected, "{request}");
    }
}

#[test]
fn objects_are_filled_from_within() {
    let properties = json!({"trip": {"type": "object", "properties": {
        "days": {"type": "integer"}, "city": {"type": "string"},
    }, "required": ["days", "city"]}});
    assert_eq!(
        inferred("3 days in Rome", &properties, &["trip"]),
        json!([{"trip": {"days": 3, "city": "Rome"}}, []])
    );
    assert_eq!(inferred("3 days", &properties, &["trip"]), json!([{"trip": {"days": 3}}, ["city"]]));
    assert_eq!(inferred("somewhere", &properties, &["trip"]), json!([{}, ["trip"]]));
}

#[test]
fn what_a_parameter_cannot_be_is_named_and_not_passed_on() {
    let rows = [
        (
            "Volatility of the ticker 'Goog'",
            json!({"type": "string", "pattern": "^[A-Z]+$"}),
            json!({}),
            true,
        ),
        (
            "Volatility of the ticker 'GOOG'",
            json!({"type": "string", "pattern": "^[A-Z]+$"}),
            json!({"ticker": "GOOG"}),
            false,
        ),
        ("Set the ticker threshold to 700", json!({"type": "integer", "maximum": 500}), json!({}), true),
        ("My ticker is user!example.com", json!({"type": "string", "format": "email"}), json!({}), true),
        (
            "The ticker date is 2021-09-31",
            json!({"type": "string", "description": "The date, as YYYY-MM-DD."}),
            json!({}),
            true,
        ),
        (
            "地区是San Francisco#1",
            json!({"type": "string", "description": "地区名称。应只包含字母和空格。"}),
            json!({}),
            true,
        ),
        // An example of the description, and a word that has to be translated first.
        (
            "类别是'锅具'",
            json!({"type": "string", "description": "类别，如'锅具'。", "pattern": "^(pots|knives)$"}),
            json!({"ticker": "锅具"}),
            false,
        ),
        (
            "用户的地区是加利福尼亚州",
            json!({"type": "string", "description": "用户所在的地区。", "pattern": "^[A-Za-z ]+$"}),
            json!({"ticker": "加利福尼亚州"}),
            false,
        ),
    ];
    for (request, property, args, is_invalid) in rows {
        let schema = json!({"properties": {"ticker": property}, "required": ["ticker"]});
        let invalid = if is_invalid { vec!["ticker".to_owned()] } else { vec![] };
        let expected =
            InferredArguments { args: args.as_object().unwrap().clone(), missing: vec![], invalid };
        assert_eq!(infer(request, &schema, &InferenceContext::default()), expected, "{request}");
    }
}

#[test]
fn a_schema_that_makes_no_sense_and_a_huge_request_are_survived() {
    for schema in [
        json!(null),
        json!([]),
        json!({"properties": 3}),
        json!({"properties": {"a": 1}, "required": [1, "b"]}),
    ] {
        infer("a is 1", &schema, &InferenceContext::default());
    }
    let schema =
        json!({"properties": {"a": {"type": "string"}, "b": {"type": "array"}}, "required": ["a", "b"]});
    for text in ["'a' 1 是 从上海、", "\"", "Ab "] {
        infer(&text.repeat(1_000_000 / text.len()), &schema, &InferenceContext::default());
    }
}

proptest! {
    #[test]
    fn no_request_is_too_odd(request in "\\PC{0,60}") {
        let properties = json!({"name": {"type": "string", "description": "名字, e.g. 'x'"}, "n": {"type": "number"}, "l": {"type": "array", "items": {"type": "integer"}}, "ok": {"type": "boolean", "description": "是否有效"}});
        let answer = inferred(&request, &properties, &["name", "n", "l"]);
        prop_assert_eq!(answer, inferred(&request, &properties, &["name", "n", "l"]));
    }

    #[test]
    fn no_mixture_of_signs_is_too_odd(request in "[a-cA-C0-9一二十年月日是为从到、，。'\"“”《》$%:./-]{0,40}") {
        let properties = json!({"name": {"type": "string", "description": "城市名字"}, "date": {"type": "string", "description": "出发日期"}, "n": {"type": "integer"}, "l": {"type": "array", "items": {"type": "string"}, "description": "列表"}});
        inferred(&request, &properties, &["name", "date", "n", "l"]);
    }
}
