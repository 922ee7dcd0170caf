//! Tests of the schema forms.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

#[test]
fn the_explicit_form_keeps_what_a_schema_says() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search",
        "type": "object",
        "properties": {
            "mode": {"enum": ["a", "b"], "description": "Which."},
            "count": {"type": "integer", "minimum": 1},
            "note": {"type": ["string", "null"]},
            "kind": {"const": "x"},
            "node": {"$ref": "#/definitions/Node"},
            "either": {"anyOf": [{"type": "string"}, {"type": "number"}]}
        },
        "required": ["mode"],
        "definitions": {
            "Node": {"properties": {"next": {"$ref": "#/definitions/Node"}}},
            "Unused": {"type": "string"}
        }
    });
    assert_eq!(
        Schema::new(&schema).unwrap().explicit(),
        json!({
            "type": "object",
            "properties": {
                "mode": {"enum": ["a", "b"], "description": "Which."},
                "count": {"type": "integer", "minimum": 1},
                "note": {"type": ["string", "null"]},
                "kind": {"enum": ["x"]},
                "node": {"$ref": "#/$defs/Node"},
                "either": {"anyOf": [{"type": "string"}, {"type": "number"}]}
            },
            "required": ["mode"],
            "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}
        })
    );
}

#[test]
fn nothing_is_added_to_what_is_only_asked() {
    let schema = json!({"type": "object", "properties": {"x": {
        "not": {"required": ["a"]},
        "if": {"items": {"minItems": 1}},
        "then": {"required": ["b"]}
    }}});
    assert_eq!(
        Schema::new(&schema).unwrap().explicit()["properties"]["x"],
        json!({
            "not": {"required": ["a"]},
            "if": {"items": {"minItems": 1}},
            "then": {"type": "object", "properties": {}, "required": ["b"]}
        })
    );
}

#[test]
fn what_cannot_be_understood_says_where_and_why() {
    let problem = |schema: Value| Schema::new(&schema).unwrap_err().to_string();
    assert_eq!(
        problem(json!({"type": "string"})),
        "parameters must be a JSON Schema of type `object`, found type \"string\""
    );
    assert_eq!(problem(json!([])), "parameters must be a JSON Schema of type `object`, found array");
    assert_eq!(
        problem(json!({"properties": {"a": {"$ref": "#/$defs/Gone"}}})),
        "`$ref` at `/properties/a` points to `#/$defs/Gone`, which is not in the schema"
    );
    assert_eq!(problem(json!({"properties": []})), "`properties` at `/` must be an object");
    assert_eq!(
        problem(json!({"properties": {"a": {"type": "strnig"}}})),
        "`type` at `/properties/a` must be the name of a JSON type, or a list of them"
    );
    let deep = (0..200).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    assert_eq!(problem(json!({"properties": {"a": deep}})), "nested more than 64 deep");
}

#[test]
fn checking_names_every_problem_with_its_path() {
    let schema = Schema::new(&json!({
        "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "mode": {"enum": ["fast", "slow"]},
            "list": {"type": "array", "items": {"type": "string"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "null"}]}
        },
        "required": ["path"],
        "additionalProperties": false
    }))
    .unwrap();
    assert_eq!(
        schema.check(&json!({"path": "a", "limit": 3.0, "mode": "fast", "list": ["x"], "either": null})),
        [""; 0]
    );
    assert_eq!(
        schema.check(&json!({"limit": 1.5, "mode": "mid", "list": ["x", 2], "either": 3, "extra": 1})),
        [
            "`arguments.path` is missing",
            "`arguments.either` matches none of the allowed forms",
            "`arguments.extra` is not known",
            "`arguments.limit` must be integer, found number",
            "`arguments.list[1]` must be string, found integer",
            r#"`arguments.mode` must be one of "fast", "slow", found "mid""#,
        ]
    );
    assert_eq!(schema.check(&json!([])), ["`arguments` must be object, found array"]);
}

#[test]
fn a_type_becomes_a_schema_a_model_can_read() {
    /// Count things.
    ///
    /// Not for
    /// anything else.
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Args {
        /// Where to
        /// look.
        path: std::path::PathBuf,
        /// How many.
        limit: Option<u32>,
        mode: Option<Mode>,
    }
    #[derive(schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Mode {
        Fast,
        VerySlow,
    }
    let (schema, description) = Schema::of::<Args>().unwrap();
    assert_eq!(description, "Count things.\n\nNot for anything else.");
    assert_eq!(
        schema.explicit(),
        json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where to look."},
                "limit": {"type": "integer", "minimum": 0, "description": "How many."},
                "mode": {"type": "string", "enum": ["fast", "very_slow"]}
            },
            "required": ["path"],
            "additionalProperties": false
        })
    );
}

#[test]
fn only_number_widths_are_dropped_from_the_formats_of_a_type() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Args {
        #[schemars(extend("format" = "uri"))]
        address: String,
        #[schemars(extend("format" = "int64"))]
        big: String,
        #[schemars(extend("format" = "unix-time"))]
        at: u64,
        ip: std::net::Ipv4Addr,
        share: f64,
        counts: Vec<Option<u32>>,
        size: usize,
        more: std::num::NonZeroU8,
    }
    let (schema, _) = Schema::of::<Args>().unwrap();
    let properties: Value =
        schema.properties().map(|(name, schema)| (name.to_owned(), schema.clone())).collect();
    assert_eq!(
        properties,
        json!({
            "address": {"type": "string", "format": "uri"},
            "big": {"type": "string", "format": "int64"},
            "at": {"type": "integer", "format": "unix-time", "minimum": 0},
            "ip": {"type": "string", "format": "ipv4"},
            "share": {"type": "number"},
            "counts": {"type": "array", "items": {"type": ["integer", "null"], "minimum": 0}},
            "size": {"type": "integer", "minimum": 0},
            "more": {"type": "integer", "minimum": 1, "maximum": 255}
        })
    );
}

#[test]
fn a_parameter_may_be_called_like_a_keyword() {
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Inner {
        format: Option<String>,
    }
    #[derive(schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Args {
        properties: Inner,
        required: Option<bool>,
        #[schemars(extend("default" = {"properties": {"format": "double"}, "type": "number", "format": "double"}))]
        items: Option<serde_json::Value>,
    }
    let (schema, _) = Schema::of::<Args>().unwrap();
    assert_eq!(
        schema.explicit(),
        json!({
            "type": "object",
            "properties": {
                "properties": {
                    "type": "object",
                    "properties": {"format": {"type": "string"}},
                    "additionalProperties": false
                },
                "required": {"type": "boolean"},
                "items": {"default": {"properties": {"format": "double"}, "type": "number", "format": "double"}}
            },
            "required": ["properties"],
            "additionalProperties": false
        })
    );
}

/// Values that look like schemas, right and wrong.
fn schema_like() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i32>().prop_map(|value| json!(value)),
        prop::sample::select(vec![
            "string",
            "integer",
            "object",
            "array",
            "#",
            "#/$defs/a",
            "#/properties/a",
            "a"
        ])
        .prop_map(|text| json!(text)),
    ];
    let keyword = prop::sample::select(vec![
        "type",
        "properties",
        "items",
        "prefixItems",
        "contains",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "dependencies",
        "patternProperties",
        "propertyNames",
        "pattern",
        "enum",
        "required",
        "$ref",
        "$defs",
        "const",
        "additionalProperties",
        "a",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::btree_map(keyword.clone().prop_map(str::to_owned), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn normalising_twice_is_normalising_once(value in schema_like()) {
        if let Ok(schema) = Schema::new(&value) {
            let once = schema.explicit();
            prop_assert_eq!(Schema::new(&once).unwrap().explicit(), once);
        }
    }

    #[test]
    fn checking_never_panics_or_hangs(schema in schema_like(), value in schema_like()) {
        if let Ok(schema) = Schema::new(&schema) {
            schema.check(&value);
        }
    }
}

#[test]
fn a_place_referred_to_many_times_is_kept_once() {
    let place = json!({"enum": (0..1000).collect::<Vec<_>>()});
    let mut properties: Map<String, Value> =
        (0..800).map(|at| (format!("p{at}"), json!({"$ref": "#/properties/place"}))).collect();
    properties.insert("place".into(), place.clone());
    // The name its definition would have is taken.
    let given = json!({"properties": properties, "$defs": {"properties.place": {"type": "string"}}});
    let whole = Schema::new(&given).unwrap().explicit();
    assert_eq!(whole["$defs"], json!({"properties.place_1": place}));
    assert_eq!(whole["properties"]["p799"], json!({"$ref": "#/$defs/properties.place_1"}));
}

#[test]
fn a_schema_that_its_references_make_too_long_is_refused() {
    let long = "x".repeat(200_000);
    let deep = (0..40).fold(json!({"enum": [long]}), |inside, _| json!({"not": inside}));
    let references =
        (0..40).map(|depth| json!({"$ref": format!("#/properties/deep{}", "/not".repeat(depth))}));
    let references: Vec<_> = references.collect();
    let given = json!({"properties": {"deep": deep, "a": {"anyOf": references}}});
    assert_eq!(Schema::new(&given), Err(SchemaError::TooLarge));
    assert_eq!(SchemaError::TooLarge.to_string(), "longer than 4 MB, or made so by its references");
    assert!(Schema::new(&json!({"properties": {"deep": deep, "a": {"anyOf": references[..9]}}})).is_ok());
}

#[test]
fn loading_looks_at_no_place_twice() {
    for keyword in ["definitions", "dependencies", "$defs", "properties", "items", "additionalItems"] {
        let deep = (0..60).fold(json!({}), |inside, _| json!({keyword: inside}));
        assert!(Schema::new(&deep).is_ok(), "{keyword}");
    }
    // The same name many times in one resource is one name, and no reason to write anything twice.
    let anchors = vec![json!({"$dynamicAnchor": "x"}); 20_000];
    let mut places = vec![json!({"$dynamicRef": "#x"}); 2_000];
    places.extend(anchors);
    let whole = Schema::new(&json!({"allOf": places})).unwrap().explicit();
    assert_eq!(whole["$defs"], json!({"x": {}}));
    // Names count, however short they are written.
    let long = "x".repeat(900);
    let named = vec![json!({"$id": "a"}); 5_000];
    assert_eq!(
        Schema::new(&json!({"$id": format!("http://{long}/"), "allOf": named})),
        Err(SchemaError::TooLarge)
    );
}

#[test]
fn a_type_in_several_parts_takes_the_members_of_all_of_them_and_no_others() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Args {
        name: String,
        #[serde(flatten)]
        shape: Shape,
        #[serde(flatten)]
        size: Size,
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(tag = "kind", rename_all = "snake_case")]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Shape {
        Circle { radius: u8 },
        Square { side: u8 },
    }
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Size {
        scale: Option<f64>,
    }
    let (schema, _) = Schema::of::<Args>().unwrap();
    let circle = json!({"name": "a", "kind": "circle", "radius": 3, "scale": 1.5});
    assert_eq!(schema.check(&circle), [""; 0], "{schema:?}");
    let other = json!({"name": "a", "kind": "circle", "radius": 3, "colour": "red"});
    assert_eq!(schema.check(&other), ["`arguments.colour` is not known"]);
    assert!(!schema.check(&json!({"name": "a", "kind": "circle", "radius": 300})).is_empty());
}
