//! Tests of what fits and what does not, and of what it takes to tell.

use serde_json::json;

use super::{budget::GLANCES, *};

/// Counts the visits a check takes, if it comes to its end.
fn visits(schema: &Value, value: &Value) -> Option<usize> {
    let root = schema.as_object().unwrap();
    let mut check = SchemaCheck::new(root);
    check.object(root, ValueAt::root(value)).ok()?;
    Some(check.budget.spent())
}

#[test]
fn references_that_multiply_end_the_check_and_not_the_session() {
    for union in ["anyOf", "oneOf", "allOf"] {
        let twice = |at: usize| {
            let next = json!({"$ref": format!("#/$defs/{}", at + 1)});
            (at.to_string(), json!({union: [next, next]}))
        };
        let mut defs: Map<String, Value> = (0..30).map(twice).collect();
        defs.insert("30".into(), json!({"type": "string"}));
        let schema = json!({"$ref": "#/$defs/0", "$defs": defs});
        assert_eq!(visits(&schema, &json!({})), None, "{union}");
        assert_eq!(check(schema.as_object().unwrap(), &json!({})), ["`arguments` is too complex to check"]);
    }
}

#[test]
fn what_is_nested_too_deep_is_refused_also_where_it_must_not_fit() {
    let list = json!({"items": {"$ref": "#/$defs/list"}});
    let deep = (0..80).fold(json!([]), |inside, _| json!([inside]));
    for schema in [
        json!({"$ref": "#/$defs/list"}),
        json!({"not": {"$ref": "#/$defs/list"}}),
        json!({"if": {"$ref": "#/$defs/list"}, "then": false}),
        json!({"anyOf": [{"$ref": "#/$defs/list"}, {"type": "array"}]}),
    ] {
        let whole = json!({"properties": {"x": schema}, "$defs": {"list": list}});
        assert_eq!(
            problems(&whole, &json!({"x": deep})),
            "`arguments` is nested more than 64 deep",
            "{schema}"
        );
    }
}

#[test]
fn a_value_may_be_as_deep_as_is_said_whatever_leads_to_its_parts() {
    let rest = json!({"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/link"}]}]});
    let link = json!({"properties": {"next": rest}, "unevaluatedProperties": false});
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/link"}}, "$defs": {"link": link}});
    let chain = |length| json!({"x": (1..length).fold(json!({}), |next, _| json!({"next": next}))});
    assert_eq!(problems(&schema, &chain(64)), "");
    assert_eq!(problems(&schema, &chain(65)), "`arguments` is nested more than 64 deep");
}

#[test]
fn honest_arguments_take_about_one_visit_per_value() {
    let tree = json!({"properties": {"children": {"items": {"anyOf": [{"type": "string"}, {"$ref": "#"}]}}}});
    let leaves = |count: usize| json!({"children": vec!["leaf"; count]});
    assert_eq!(visits(&tree, &leaves(1000)), Some(2 + 1000 / GLANCES + 2 * 1000));
    let twigs = json!({"children": vec![leaves(9); 100]});
    assert_eq!(visits(&tree, &twigs), Some(2 + 100 / GLANCES + 100 * (4 + 1 + 2 * 9)));
}

/// The problems of a value, one a line.
fn problems(schema: &Value, value: &Value) -> String {
    crate::Schema::new(schema).unwrap().check(value).join("\n")
}

/// A schema for the member `x`, values that fit, and values that do not with what is said of them.
type Row = (Value, Vec<Value>, Vec<(Value, &'static str)>);

#[track_caller]
fn verify(rows: impl IntoIterator<Item = Row>) {
    for (schema, fit, unfit) in rows {
        let tree = json!({"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}});
        let list = json!({"type": "array", "items": {"type": "integer"}});
        let whole = json!({"properties": {"x": schema, "y": list}, "$defs": {"tree": tree}});
        for value in fit {
            assert_eq!(problems(&whole, &json!({"x": value})), "", "{schema} {value}");
        }
        for (value, said) in unfit {
            assert_eq!(problems(&whole, &json!({"x": value})), said, "{schema} {value}");
        }
    }
}

#[test]
fn text_and_constants_are_checked() {
    verify([
        (
            json!({"pattern": "^[a-z]+$"}),
            vec![json!("abc"), json!(1)],
            vec![(json!("aBc"), r#"`arguments.x` must match the pattern `^[a-z]+$`, found "aBc""#)],
        ),
        (
            json!({"format": "date"}),
            vec![json!("2026-01-31")],
            vec![(
                json!("31.1.2026"),
                r#"`arguments.x` must be a date such as 2026-01-31, found "31.1.2026""#,
            )],
        ),
        (
            json!({"const": 3}),
            vec![json!(3), json!(3.0)],
            vec![(json!(4), "`arguments.x` must be one of 3, found 4")],
        ),
        (
            json!({"const": [{"a": 1}]}),
            vec![json!([{"a": 1.0}])],
            vec![(json!([{"a": true}]), r#"`arguments.x` must be one of [{"a":1}], found [{"a":true}]"#)],
        ),
        // From 2^53 on, several whole numbers are the same fraction.
        (
            json!({"enum": [9_007_199_254_740_993_u64]}),
            vec![json!(9_007_199_254_740_993_u64)],
            vec![(
                json!(9_007_199_254_740_992_u64),
                "`arguments.x` must be one of 9007199254740993, found 9007199254740992",
            )],
        ),
        (
            json!({"const": 3, "enum": [1, 3.0]}),
            vec![json!(3)],
            vec![(json!(1), "`arguments.x` must be one of 3, found 1")],
        ),
        (
            json!({"const": 3, "enum": [1, 2]}),
            vec![],
            vec![(json!(3), "`arguments.x` must be one of no values, found 3")],
        ),
        (
            json!({"minimum": 3, "exclusiveMinimum": true, "maximum": 5, "exclusiveMaximum": false}),
            vec![json!(3.5), json!(5)],
            vec![
                (json!(3), "`arguments.x` must be more than 3"),
                (json!(6), "`arguments.x` must be at most 5"),
            ],
        ),
        (
            json!({"maxLength": 2.0}),
            vec![json!("ab")],
            vec![(json!("abc"), "`arguments.x` must have at most 2.0 characters")],
        ),
        (
            json!({"uniqueItems": true}),
            vec![json!([1, true, "1", [1], {"a": 1}])],
            vec![(json!([{"a": 1}, {"a": 1.0}]), "`arguments.x` must not have the same item twice")],
        ),
    ]);
}

#[test]
fn lists_are_checked() {
    verify([
        (
            json!({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": {"type": "boolean"}}),
            vec![json!([]), json!(["a", 1, true])],
            vec![(
                json!([1, 1, 1]),
                "`arguments.x[0]` must be string, found integer\n`arguments.x[2]` must be boolean, found integer",
            )],
        ),
        (
            json!({"items": [{"type": "string"}], "additionalItems": false}),
            vec![json!(["a"])],
            vec![(json!(["a", "b"]), "`arguments.x[1]` must not match the schema in `not`")],
        ),
        (
            json!({"type": "array", "contains": {"type": "integer"}, "maxContains": 2}),
            vec![json!(["a", 1]), json!([1, 2])],
            vec![
                (json!(["a"]), "`arguments.x` must have at least 1 items that match `contains`"),
                (json!([1, 2, 3]), "`arguments.x` must have at most 2 items that match `contains`"),
            ],
        ),
        // What cannot be checked may be of the form, and may not be.
        (
            json!({"contains": {"anyOf": [{"pattern": "\\Aa", "type": "string"}, {"const": 1}]}, "maxContains": 1}),
            vec![json!(["a", "b"]), json!(["a", 1])],
            vec![
                (json!([2]), "`arguments.x` must have at least 1 items that match `contains`"),
                (json!(["a", 1, 1]), "`arguments.x` must have at most 1 items that match `contains`"),
            ],
        ),
        // The old form beside the new one is for older readers.
        (
            json!({
                "prefixItems": [{"type": "string"}, {"type": "integer"}],
                "items": [{"type": "string"}, {"type": "integer"}],
                "additionalItems": false
            }),
            vec![json!(["a", 1]), json!(["a", 1, "b"])],
            vec![(json!(["a", "b"]), "`arguments.x[1]` must be integer, found string")],
        ),
    ]);
}

#[test]
fn objects_are_checked() {
    verify([
        (
            json!({"patternProperties": {"^n_": {"type": "integer"}}, "additionalProperties": false}),
            vec![json!({"n_a": 1})],
            vec![(
                json!({"n_a": "1", "b": 2}),
                "`arguments.x.b` is not known\n`arguments.x.n_a` must be integer, found string",
            )],
        ),
        (
            json!({"type": "object", "propertyNames": {"maxLength": 2}}),
            vec![json!({"ab": 1})],
            vec![(json!({"abc": 1}), "`arguments.x.abc` must have at most 2 characters")],
        ),
        (
            json!({"type": "object", "dependentRequired": {"card": ["address"]}}),
            vec![json!({}), json!({"card": 1, "address": 2})],
            vec![(json!({"card": 1}), "`arguments.x.address` is missing")],
        ),
        (
            json!({"type": "object", "dependentSchemas": {"card": {"properties": {"zip": {"type": "string"}}}}}),
            vec![json!({"zip": 1})],
            vec![(json!({"card": 1, "zip": 1}), "`arguments.x.zip` must be string, found integer")],
        ),
        (
            json!({"type": "object", "dependencies": {"a": ["b"], "c": {"required": ["d"]}}}),
            vec![json!({"a": 1, "b": 1})],
            vec![(json!({"a": 1, "c": 1}), "`arguments.x.b` is missing\n`arguments.x.d` is missing")],
        ),
        // The words of two drafts beside each other.
        (
            json!({
                "dependencies": {"a": ["b"], "c": {"required": ["d"]}},
                "dependentRequired": {"a": ["e"]},
                "dependentSchemas": {"c": {"required": ["f"]}}
            }),
            vec![json!({"a": 1, "b": 1, "e": 1}), json!({"c": 1, "d": 1, "f": 1})],
            vec![
                (json!({"a": 1, "b": 1}), "`arguments.x.e` is missing"),
                (json!({"a": 1, "e": 1}), "`arguments.x.b` is missing"),
                (json!({"c": 1, "d": 1}), "`arguments.x.f` is missing"),
                (json!({"c": 1, "f": 1}), "`arguments.x.d` is missing"),
            ],
        ),
    ]);
}

#[test]
fn unions_conditions_and_references_are_checked() {
    verify([
        (
            json!({
                "type": "object",
                "if": {"properties": {"kind": {"const": "b"}}, "required": ["kind"]},
                "then": {"required": ["size"]},
                "else": {"required": ["name"]}
            }),
            vec![json!({"kind": "b", "size": 1}), json!({"kind": "a", "name": 1})],
            vec![
                (json!({"kind": "b"}), "`arguments.x.size` is missing"),
                (json!({}), "`arguments.x.name` is missing"),
            ],
        ),
        (
            json!({"not": {"type": "string"}}),
            vec![json!(1)],
            vec![(json!("a"), "`arguments.x` must not match the schema in `not`")],
        ),
        (
            json!({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 5}]}),
            vec![json!(3), json!(5.5)],
            vec![
                (json!(6), "`arguments.x` matches more than one schema in `oneOf`"),
                (json!(1.5), "`arguments.x` matches none of the allowed forms"),
            ],
        ),
        (
            json!({"anyOf": [
                {"type": "object", "properties": {"a": {"type": "object", "required": ["b"]}}, "required": ["a"]},
                {"type": "string"}
            ]}),
            vec![json!("s"), json!({"a": {"b": 1}})],
            vec![(
                json!({"a": {}}),
                "`arguments.x` matches none of the allowed forms; in the closest one, `arguments.x.a.b` is missing",
            )],
        ),
        (
            json!({"allOf": [{"minimum": 1}, {"maximum": 3}]}),
            vec![json!(2)],
            vec![(json!(0), "`arguments.x` must be at least 1")],
        ),
        (
            json!({"$ref": "#/$defs/tree", "maxProperties": 1}),
            vec![json!({"left": {"left": {}}})],
            vec![(
                json!({"left": {"left": 1}, "b": 1}),
                "`arguments.x.left.left` must be object, found integer\n`arguments.x` must have at most 1 members",
            )],
        ),
        (
            json!({"$ref": "#/properties/y/items"}),
            vec![json!(1)],
            vec![(json!("a"), "`arguments.x` must be integer, found string")],
        ),
    ]);
}

#[test]
fn what_nobody_spoke_of_is_checked() {
    let unknown = "`arguments.x.b` is not known";
    verify([
        (
            json!({
                "allOf": [{"properties": {"a": {"type": "integer"}}}],
                "anyOf": [{"properties": {"c": true}}, {"properties": {"b": {"type": "string"}}}],
                "unevaluatedProperties": false
            }),
            vec![json!({"a": 1, "c": 1}), json!({"b": "x", "c": 1}), json!(3)],
            vec![(json!({"b": 1}), unknown), (json!({"d": 1}), "`arguments.x.d` is not known")],
        ),
        // What a form says that does not fit does not count, nor what must not be there.
        (
            json!({
                "if": {"properties": {"a": {"const": 1}}, "required": ["a"]},
                "then": {"patternProperties": {"^b": true}},
                "not": {"properties": {"b": false}, "required": ["b", "z"]},
                "unevaluatedProperties": {"type": "string"}
            }),
            vec![json!({"a": 1, "b": 1}), json!({"b": "x"})],
            vec![(json!({"b": 1}), "`arguments.x.b` must be string, found integer")],
        ),
        // A schema does not know what is said beside it.
        (
            json!({"allOf": [{"properties": {"b": true}}, {"unevaluatedProperties": false}]}),
            vec![json!({})],
            vec![(json!({"b": 1}), unknown)],
        ),
        // Inside of a member, nothing has been seen yet.
        (
            json!({
                "properties": {"a": {"properties": {"b": true}}, "left": {"$ref": "#/$defs/tree"}},
                "dependentSchemas": {"d": {"properties": {"d": true}}},
                "unevaluatedProperties": false
            }),
            vec![json!({"a": {"b": 1}, "left": {"b": 1}, "d": 1})],
            vec![(json!({"a": {"b": 1}, "b": 1}), unknown)],
        ),
        (
            json!({"additionalProperties": true, "unevaluatedProperties": false}),
            vec![json!({"b": 1})],
            vec![],
        ),
        (
            json!({"prefixItems": [true], "contains": {"type": "string"}, "unevaluatedItems": {"type": "null"}}),
            vec![json!([1, "a", null]), json!(["a"])],
            vec![(json!([1, 2, "a"]), "`arguments.x[1]` must be null, found integer")],
        ),
        (json!({"allOf": [{"items": true}], "unevaluatedItems": false}), vec![json!([1, 2])], vec![]),
        (
            json!({"anyOf": [{"prefixItems": [true, {"const": 2}]}, {"prefixItems": [true]}], "unevaluatedItems": false}),
            vec![json!([1, 2]), json!([1])],
            vec![(json!([1, 3]), "`arguments.x[1]` must not match the schema in `not`")],
        ),
        // Whether the form fits is not known, and so is what it would have seen.
        (
            json!({
                "if": {"properties": {"a": {"pattern": "\\Aa"}}},
                "then": {"properties": {"b": true}},
                "unevaluatedProperties": false
            }),
            vec![json!({"a": "a", "b": 1})],
            vec![],
        ),
    ]);
}

#[test]
fn references_find_names_wherever_they_are() {
    let text = |value: Value| vec![(value, "`arguments.x` must be string, found integer")];
    let node = json!({"$id": "http://x/node", "type": "object", "$dynamicAnchor": "node", "properties": {"next": {"$dynamicRef": "#node"}}});
    verify([
        (
            json!({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "string"}}}),
            vec![],
            text(json!(1)),
        ),
        (
            json!({"$id": "http://x/a/b", "$ref": "../c#/$defs/d~1e%25", "$defs": {
                "c": {"$id": "/c", "$defs": {"d/e%": {"$ref": "#f"}, "f": {"$anchor": "f", "type": "string"}}},
                "f": {"$anchor": "f", "type": "integer"}
            }}),
            vec![json!("a")],
            text(json!(1)),
        ),
        // Draft 7 had anchors in `$id`.
        (
            json!({"$ref": "#old", "definitions": {"a": {"$id": "#old", "type": "string"}}}),
            vec![],
            text(json!(1)),
        ),
        // The same list, whose items are what the first to enter it says.
        (
            json!({"$id": "http://x/strict", "$dynamicAnchor": "node", "$ref": "node", "unevaluatedProperties": false,
                "$defs": {"node": node}}),
            vec![json!({"next": {"next": {}}})],
            vec![(json!({"next": {"b": 1}}), "`arguments.x.next.b` is not known")],
        ),
        (
            json!({"$ref": "http://x/node", "$defs": {"node": node}}),
            vec![json!({"next": {"b": 1}})],
            vec![(json!({"next": {"next": 1}}), "`arguments.x.next.next` must be object, found integer")],
        ),
    ]);
}

#[test]
fn what_cannot_be_checked_passes_and_turns_nothing_around() {
    for pattern in ["(?i)b", r"\Aa", "(((a{100}){100}){100})", "[", &"a".repeat(3000)] {
        let unknown = json!({"type": "string", "pattern": pattern});
        for schema in [
            unknown.clone(),
            json!({"not": unknown}),
            json!({"oneOf": [unknown, {"type": "string"}]}),
            json!({"if": unknown, "then": {"const": 1}, "else": {"const": 2}}),
            json!({"type": "string", "propertyNames": unknown}),
        ] {
            let whole = json!({"properties": {"x": schema}});
            assert_eq!(problems(&whole, &json!({"x": "text"})), "", "{schema}");
        }
        let named = json!({"properties": {"x": {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": false}}});
        assert_eq!(problems(&named, &json!({"x": {"b": 1}})), "");
    }
}

#[test]
fn patterns_that_take_others_forever_take_no_time() {
    let schema = json!({"properties": {"x": {"items": {"type": "string", "pattern": "^(a+)+$"}}}});
    let wrong = format!("{}!", "a".repeat(8_000));
    assert!(
        problems(&schema, &json!({"x": [wrong]}))
            .starts_with("`arguments.x[0]` must match the pattern `^(a+)+$`")
    );
    assert!(problems(&schema, &json!({"x": vec![wrong; 1000]})).ends_with(" more problems"));
    // Too long to search: left to the tool.
    assert_eq!(problems(&schema, &json!({"x": [format!("{}!", "a".repeat(10_000))]})), "");
    // Going back takes forever: left to the tool as well.
    let schema = json!({"properties": {"x": {"pattern": r"^(a+)+\1$"}}});
    assert_eq!(problems(&schema, &json!({"x": format!("{}!", "a".repeat(100))})), "");
    // Hundreds of patterns, each of which takes a table to read: so are all but the first.
    let many: Map<String, Value> = (0..500).map(|at| (format!("^{at}\\p{{L}}+$"), json!({}))).collect();
    let schema = json!({"patternProperties": many, "additionalProperties": false});
    assert_eq!(problems(&schema, &json!({"x": 1})), "");
}

#[test]
fn what_takes_long_to_look_at_costs_more_visits() {
    let names: Vec<_> = (0..1600).map(|at| format!("n{at}")).collect();
    let dependent: Map<String, Value> = names.iter().map(|name| (name.clone(), json!({}))).collect();
    for (schema, value, expected) in [
        (json!({"enum": names}), json!("n1"), 1 + 100),
        // And what is said of those that are none of them.
        (json!({"enum": names}), json!([1, [2, 3]]), 1 + 100 * 5 + 3),
        (json!({"enum": []}), json!(names), 1 + 100 + 100 + 2),
        (json!({"required": names}), json!({}), 1 + 100),
        (json!({"dependentRequired": dependent}), json!({}), 1 + 100),
        (json!({"dependentSchemas": dependent}), json!({}), 1 + 100),
        (json!({"uniqueItems": true}), json!([1, [2, 3]]), 1 + 5),
        (json!({"maxLength": 1}), json!("x".repeat(10_240)), 1 + 10),
        (json!({}), json!(names), 1 + 100),
        (json!({}), json!(dependent), 1 + 100),
    ] {
        assert_eq!(visits(&schema, &value), Some(expected), "{schema:.60} {value:.60}");
    }
}

#[test]
fn no_more_problems_are_written_than_are_told() {
    let schema = json!({"items": {"type": "string"}});
    let root = schema.as_object().unwrap();
    let (mut check, numbers) = (SchemaCheck::new(root), json!(vec![1; 50_000]));
    check.object(root, ValueAt::root(&numbers)).unwrap();
    assert_eq!((check.problems.told.len(), check.problems.more), (MAX_PROBLEMS, 50_000 - MAX_PROBLEMS));
}

#[test]
fn problems_stay_readable_however_many_and_long() {
    let missing = json!({"required": ["n".repeat(2_000_000)]});
    assert!(problems(&missing, &json!({})).len() < 500);
    let schema = json!({"properties": {"x": {"items": {"enum": (0..1000).collect::<Vec<_>>()}}}});
    let said = problems(&schema, &json!({"x": vec!["y".repeat(1000); 500]}));
    let lines: Vec<_> = said.lines().collect();
    assert_eq!((lines.len(), lines[20]), (21, "and 480 more problems"));
    assert!(lines[0].len() < 400 && lines[0].contains("29, 970 more, found"), "{}", lines[0]);
}

#[test]
fn schemas_that_lead_back_to_themselves_end_before_the_stack_does() {
    for rest in [
        json!({"not": {"not": {"$ref": "#/$defs/x"}}}),
        json!({"if": {"allOf": [{"$ref": "#/$defs/x"}]}}),
        json!({"anyOf": [{"oneOf": [{"$ref": "#/$defs/x"}]}], "unevaluatedProperties": false}),
        json!({"dependentSchemas": {"a": {"$ref": "#/$defs/x"}}, "unevaluatedProperties": false}),
    ] {
        let schema = json!({"properties": {"x": {"$ref": "#/$defs/x"}}, "$defs": {"x": rest}});
        let found = problems(&schema, &json!({"x": {"a": 1}}));
        assert_eq!(found, "`arguments` is too complex to check", "{rest}");
    }
}
