//! Tests of building a registry.

use serde_json::{Value, json};
use windlass_contract::{
    Effects,
    meta::Example,
    tool::{FnTool, tool},
};

use super::*;

fn named(name: &str, schema: &Value) -> FnTool<Value> {
    tool(name, |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) })
        .description("Does it.")
        .schema(schema)
}

fn with_meta(name: &str, meta: Meta) -> Arc<dyn AnyTool> {
    Arc::new(named(name, &json!({"type": "object"})).meta(meta))
}

#[test]
fn all_mistakes_are_reported_together_with_the_names_of_their_tools() {
    let example = Example { request: "do it", input: r#"{"x":1}"# };
    let errors = Registry::builder()
        .tool(with_meta("c", Meta { aliases: vec!["d"], ..Meta::default() }))
        .tool(Arc::new(named("bad name", &json!({"type": "object"})).description(" ")))
        .tool(Arc::new(named("a", &json!({"properties": {"x": {"default": 1}}, "required": ["x"]}))))
        .tool(Arc::new(
            named("b/c", &json!({"type": "string"})).meta(Meta { aliases: vec!["c"], ..Meta::default() }),
        ))
        .tool(with_meta("d", Meta::default()))
        .tool(Arc::new(
            named("e", &json!({"properties": {"x": {"type": "string"}}}))
                .meta(Meta { examples: vec![example], ..Meta::default() }),
        ))
        .build()
        .unwrap_err();
    assert_eq!(
        errors.to_string().lines().collect::<Vec<_>>(),
        [
            "tool `bad name`: the name must be 1 to 64 letters, digits, `_` or `-`",
            "tool `bad name`: there is no description, and a model cannot guess what the tool is for",
            "tool `a`: parameter `x` is required and has a default; it can only be one of them",
            "tool `b/c`: the name must be 1 to 64 letters, digits, `_` or `-`",
            "tool `b/c`: parameters must be a JSON Schema of type `object`, found type \"string\"",
            "tool `e`: an example does not work: `arguments.x` must be string, found integer",
        ]
    );
}

#[test]
fn a_name_that_is_none_is_told_on_one_short_line() {
    let problem = |name: &str| {
        let tool = named(name, &json!({"type": "object"})).description("Does it.");
        Registry::builder().tool(Arc::new(tool)).build().unwrap_err().to_string()
    };
    let why = "the name must be 1 to 64 letters, digits, `_` or `-`";
    assert_eq!(problem("evil\nname\u{1b}[31m"), format!(r"tool `evil\nname\u{{1b}}[31m`: {why}"));
    assert_eq!(problem(&"x".repeat(100_000)), format!("tool `{}…`: {why}", "x".repeat(64)));
}

#[test]
fn a_foreign_tool_that_cannot_be_understood_is_left_out_alone() {
    let registry = Registry::builder()
        .tool(Arc::new(named("own", &json!({"type": "object"}))))
        .foreign(Arc::new(named("z", &json!({"type": "object"}))))
        .foreign(Arc::new(named("m", &json!({"properties": {"a": {"$ref": "#/gone"}}}))))
        .foreign(Arc::new(named("b", &json!({"type": "object"}))))
        .build()
        .unwrap();
    let names: Vec<_> = registry.specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(names, ["own".into(), "b".into(), "z".into()]);
    assert_eq!(
        registry.quarantined(),
        [Quarantined {
            name: "m".into(),
            reason: "`$ref` at `/properties/a` points to `#/gone`, which is not in the schema".into()
        }]
    );
}

#[test]
fn a_foreign_tool_that_is_called_like_the_search_is_left_out_alone() {
    for room in [0, 10_000] {
        let deferral =
            Deferral { room, form: SearchForm::Function, indexer: Arc::new(|_| Default::default()) };
        let foreign = |name: &str| Arc::new(named(name, &json!({"type": "object"})));
        let builder = Registry::builder().foreign(foreign("tool_search")).foreign(foreign("b"));
        let registry = builder.with_deferral(deferral).build().unwrap();
        assert!(registry.find("b").is_some());
        let reason = "the name `tool_search` is taken".to_owned();
        assert_eq!(registry.quarantined(), [Quarantined { name: "tool_search".into(), reason }]);
    }
}

#[test]
fn aliases_and_hidden_tools_are_callable_but_not_advertised() {
    let registry = Registry::builder()
        .tool(with_meta("shell", Meta { aliases: vec!["container.exec"], ..Meta::default() }))
        .hidden(with_meta("old", Meta::default()))
        .build()
        .unwrap();
    assert_eq!(registry.specs().len(), 1);
    assert_eq!(registry.find("container.exec").unwrap().spec.name, "shell".into());
    assert!(registry.find("old").is_some());
    assert!(registry.find("unknown").is_none());
}

#[test]
fn a_tool_has_its_own_name_before_any_alias_or_fallback_has_it() {
    let alias = |name: &'static str| Meta { aliases: vec![name], ..Meta::default() };
    let registry = Registry::builder()
        .tool(with_meta("shell_command", alias("Bash")))
        .tool(with_meta("read_file", alias("Read")))
        .fallback(with_meta("run_command", Meta::default()))
        .fallback(with_meta("spare", Meta::default()))
        .user_tool(with_meta("Bash", Meta::default()))
        .foreign(with_meta("run_command", Meta::default()))
        .build()
        .unwrap();
    let found = |name: &str| registry.find(name).map(|tool| tool.spec.name.to_string()).unwrap();
    assert_eq!([found("Bash"), found("Read")], ["Bash", "read_file"]);
    assert!(registry.find("run_command").unwrap().is_advertised());
    assert_eq!(registry.find("spare").unwrap().exposure, Exposure::Hidden);
}

#[test]
fn a_listed_tool_that_cannot_be_used_is_left_out_alone_and_the_order_stays() {
    let listed = |name: &str, schema: Value| Arc::new(named(name, &schema));
    let registry = Registry::builder()
        .listed(listed("z", json!({"type": "object"})))
        .listed(listed("bad name", json!({"type": "object"})))
        .listed(listed("a", json!({"type": "object"})))
        .listed(listed("a", json!({"type": "object"})))
        .build()
        .unwrap();
    let names: Vec<_> = registry.specs().into_iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["z", "a"]);
    let reasons: Vec<_> = registry.quarantined().iter().map(|tool| tool.reason.as_str()).collect();
    assert_eq!(reasons, ["the name must be 1 to 64 letters, digits, `_` or `-`", "the name `a` is taken"]);
}

#[test]
fn a_name_in_another_case_or_name_space_is_read_and_told_unless_it_may_mean_two() {
    let registry = Registry::builder()
        .tool(with_meta("read_file", Meta { aliases: vec!["Read"], ..Meta::default() }))
        .tool(with_meta("run_it", Meta::default()))
        .tool(with_meta("runIt", Meta::default()))
        .hidden(with_meta("secret", Meta::default()))
        .build()
        .unwrap();
    let resolved = |name: &str| registry.resolve(name).map(|(tool, note)| (tool.spec.name.to_string(), note));
    for name in ["readFile", "read-file", "functions.read_file", "READ"] {
        let note = format!("the tool `{name}` was read as `read_file`");
        assert_eq!(resolved(name), Some(("read_file".to_owned(), Some(note))));
    }
    assert_eq!(resolved("Read"), Some(("read_file".to_owned(), None)));
    assert_eq!(resolved("run-it"), None);
    assert_eq!(resolved("r\u{435}ad_file"), None, "a letter that only looks the same");
    assert_eq!(
        registry.unknown("raed_file"),
        "there is no tool `raed_file`; there are, the nearest first: read_file, run_it, runIt"
    );
    assert!(registry.unknown("secrets").contains("first: secret, "), "{}", registry.unknown("secrets"));
}

#[test]
fn a_list_of_allowed_tools_leaves_out_all_others() {
    let tool = |name: &'static str| {
        let body = |_: serde_json::Value, _: windlass_contract::Cx| async {
            Ok(windlass_contract::Output::from(""))
        };
        let made = windlass_contract::tool::tool(name, |_| windlass_contract::Effects::none(), body);
        std::sync::Arc::new(made.description("A test."))
    };
    let all = ["read", "write", "mcp__a__x", "mcp__b__x"];
    let builder = all.into_iter().fold(Registry::builder(), |builder, name| builder.tool(tool(name)));
    let registry = builder.only(vec!["read".to_owned(), "mcp__a__*".to_owned()]).build().unwrap();
    let names: Vec<_> = registry.specs().iter().map(|spec| spec.name.to_string()).collect();
    assert_eq!(names, ["read", "mcp__a__x"]);
    assert!(registry.find("write").is_none(), "it cannot be called either");
}
