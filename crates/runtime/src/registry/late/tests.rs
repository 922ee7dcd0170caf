//! Tests of tools that join a session.

use serde_json::{Value, json};
use windlass_contract::{
    Effects, Meta,
    tool::{FnTool, tool},
};

use super::*;
use crate::{SearchForm, search};

/// A source whose tools are set by a test.
#[derive(Default)]
struct FakeSource(Mutex<(u64, Vec<Arc<dyn AnyTool>>)>);

impl FakeSource {
    fn with(tools: Vec<Arc<dyn AnyTool>>) -> Arc<Self> {
        Arc::new(Self(Mutex::new((1, tools))))
    }

    fn set(&self, tools: Vec<Arc<dyn AnyTool>>) {
        let mut state = self.0.lock().unwrap();
        *state = (state.0 + 1, tools);
    }
}

impl ToolSource for FakeSource {
    fn tools_since(&self, version: u64) -> SourceTools {
        let (now, tools) = &*self.0.lock().unwrap();
        let tools = if *now > version { tools.clone() } else { Vec::new() };
        SourceTools { version: *now, tools }
    }
}

fn named(name: &str, description: &str) -> Arc<dyn AnyTool> {
    let tool: FnTool<Value> = tool(name, |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) });
    Arc::new(tool.description(description).schema(&json!({"type": "object"})))
}

fn long(name: &str) -> Arc<dyn AnyTool> {
    named(name, &"a long description ".repeat(200))
}

fn registry(source: &Arc<FakeSource>, room: usize) -> Registry {
    let indexer = Arc::new(|cards: &[_]| (crate::Index::from_cards(cards), crate::Usage::default()));
    let own: FnTool<Value> =
        tool("shell_command", |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) });
    let own = own.description("Own.").schema(&json!({"type": "object"}));
    let meta = Meta { aliases: vec!["bash"], ..Meta::default() };
    Registry::builder()
        .tool(Arc::new(own.meta(meta)))
        .source(source.clone())
        .with_deferral(Deferral { room, form: SearchForm::Function, indexer })
        .build()
        .unwrap()
}

fn names(specs: &[ToolSpec]) -> Vec<&str> {
    specs.iter().map(|spec| spec.name.as_str()).collect()
}

#[test]
fn tools_that_join_are_sorted_and_come_once() {
    let source = FakeSource::with(vec![named("mcp__a__x", "First.")]);
    let registry = registry(&source, 10_000);
    assert_eq!(names(&registry.specs()), ["shell_command", "mcp__a__x"]);
    assert!(registry.join_new().advertised.is_empty());
    source.set(vec![named("mcp__c__x", "C."), named("mcp__b__x", "B.")]);
    let joined = registry.join_new();
    assert_eq!(names(&joined.advertised), ["mcp__b__x", "mcp__c__x"]);
    assert!(registry.join_new().advertised.is_empty());
    assert!(registry.find("mcp__b__x").is_some_and(Registered::is_advertised));
    assert_eq!(registry.resolve("MCP-b-x").unwrap().0.spec.name.as_str(), "mcp__b__x");
    assert!(registry.unknown("mcp__b__y").contains("mcp__b__x"));
    assert_eq!(names(&registry.specs()), ["shell_command", "mcp__a__x"], "the start of the prompt stays");
}

#[test]
fn agents_that_share_a_source_get_all_its_tools() {
    let source = FakeSource::with(Vec::new());
    let (one, other) = (registry(&source, 10_000), registry(&source, 10_000));
    source.set(vec![named("mcp__a__x", "A.")]);
    assert_eq!(names(&one.join_new().advertised), ["mcp__a__x"]);
    assert_eq!(names(&other.join_new().advertised), ["mcp__a__x"]);
}

#[test]
fn a_tool_without_room_is_searched_for_and_the_search_joins_with_it() {
    let source = FakeSource::with(vec![named("mcp__a__x", "First.")]);
    let registry = registry(&source, 100);
    source.set(vec![long("mcp__b__x")]);
    let joined = registry.join_new();
    assert_eq!(names(&joined.advertised), [search::NAME]);
    assert_eq!(joined.deferred, ["mcp__b__x".into()]);
    assert_eq!(registry.find("mcp__b__x").unwrap().exposure, Exposure::Deferred);
    // It would fit, but the choice does not depend on the length of others.
    source.set(vec![named("mcp__c__x", "Short.")]);
    let joined = registry.join_new();
    assert!(joined.advertised.is_empty());
    assert_eq!(joined.deferred, ["mcp__c__x".into()]);
}

#[test]
fn a_newer_tool_replaces_one_of_the_source_and_none_of_our_own() {
    let source = FakeSource::with(vec![named("mcp__a__x", "Old.")]);
    let registry = registry(&source, 10_000);
    source.set(vec![
        named("mcp__a__x", "New."),
        named("shell_command", "Imitates a tool."),
        named("Shell-Command", "Imitates its name."),
        named("bash", "Imitates its alias."),
        named("tool_search", "Imitates the search."),
        named("bad name", "No provider accepts it."),
    ]);
    let joined = registry.join_new();
    assert!(joined.advertised.is_empty());
    assert_eq!(joined.replaced[0].description, "New.");
    assert_eq!(registry.find("mcp__a__x").unwrap().spec.description, "New.");
    let refused: Vec<_> = joined.quarantined.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(refused, ["Shell-Command", "bad name", "bash", "shell_command", "tool_search"]);
    for name in ["shell_command", "bash", "shell-command"] {
        assert_eq!(registry.resolve(name).unwrap().0.spec.description, "Own.", "{name}");
    }
}

#[test]
fn a_source_that_never_stops_is_cut_off() {
    let source = FakeSource::with(Vec::new());
    let registry = registry(&source, 1_000_000);
    let tool = named("mcp__a__x", "Again.");
    let mut quarantined = Vec::new();
    for _ in 0..=MAX_GROUPS {
        source.set(vec![Arc::clone(&tool)]);
        quarantined = registry.join_new().quarantined;
    }
    assert_eq!(quarantined.len(), 1);
    assert!(quarantined[0].reason.contains("too many tools"));
}
