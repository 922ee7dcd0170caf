//! Tests of searching for tools, and of what is left to be searched for.

use serde_json::Value;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Sandbox,
    event::Silent,
    grant::{Confinement, Limits},
    remote::{SourceTools, UnlistedServer},
    tool::{FnTool, tool},
};
use windlass_fakes::{EchoMachine, issue_grant, run_parsed};

use super::*;
use crate::{Deferral, Exposure, Registry, RegistryBuilder};

fn named(name: &str, description: &str) -> Arc<dyn AnyTool> {
    let tool: FnTool<Value> = tool(name, |_: &Value| Effects::none(), |_: Value, _| async { Ok("".into()) });
    Arc::new(tool.description(description).schema(&json!({"type": "object"})))
}

fn index(cards: &[Card]) -> (Index, Usage) {
    (Index::from_cards(cards), Usage::default())
}

fn registry(room: usize, form: SearchForm) -> Registry {
    let brought = [
        named("get_weather", "The weather of a city. More."),
        named("send_email", "Send a message to someone."),
        named("mail-letter", "Post a letter."),
    ];
    let builder = Registry::builder().tool(named("own", &"Part of the program, and long. ".repeat(99)));
    let builder = brought.into_iter().fold(builder, RegistryBuilder::user_tool);
    builder.with_deferral(Deferral { room, form, indexer: Arc::new(index) }).build().unwrap()
}

fn names(registry: &Registry) -> Vec<String> {
    registry.specs().iter().map(|spec| spec.name.to_string()).collect()
}

#[test]
fn what_there_is_room_for_is_told_and_what_not_is_searched_for() {
    let roomy = registry(10_000, SearchForm::Function);
    assert_eq!(names(&roomy), ["own", "get_weather", "send_email", "mail-letter"]);
    assert!(roomy.find(NAME).is_none());
    let full = registry(10, SearchForm::Function);
    assert_eq!(names(&full), ["own", NAME]);
    assert_eq!(full.find("send_email").unwrap().exposure, Exposure::Deferred);
    let spec = &full.find(NAME).unwrap().spec;
    assert!(matches!(spec.kind, SpecKind::Function { .. }) && spec.description.contains("There are 3 more"));
    let by_wire = registry(10, SearchForm::Wire);
    assert!(matches!(by_wire.find(NAME).unwrap().spec.kind, SpecKind::Search { .. }));
}

async fn found(query: &str) -> (String, Vec<String>) {
    let registry = registry(0, SearchForm::Function);
    let input = Input::Json(json!({"query": query, "limit": 2}).to_string());
    let ready = Arc::clone(&registry.find(NAME).unwrap().tool).prepare(&input).unwrap();
    let grant = issue_grant("/".into(), &Effects::none(), Limits::default(), Confinement::InProcess);
    let host = EchoMachine.confine(&grant).unwrap();
    let cx = Cx { id: "c".into(), host, cancel: CancellationToken::new(), events: Arc::new(Silent) };
    let output = run_parsed(&ready, &cx).await.unwrap();
    let tools = output.content.iter().filter_map(|part| match part {
        Content::Tool(spec) => Some(spec.name.to_string()),
        _ => None,
    });
    (Content::join(&output.content), tools.collect())
}

#[tokio::test]
async fn what_fits_is_found_and_a_name_always_wins() {
    let (said, tools) = found("will it rain").await;
    assert_eq!(tools[0], "get_weather");
    assert!(
        said.starts_with("These tools can be called from now on:\n- get_weather: The weather of a city."),
        "{said}"
    );
    // `message` is in the description of another; the name is written in another way.
    let (_, tools) = found("mailLetter message").await;
    assert_eq!(tools[0], "mail-letter");
}

#[tokio::test]
async fn where_nothing_fits_the_nearest_are_named_and_none_is_found() {
    let (said, tools) = found("zzyzx").await;
    assert!(said.starts_with("No tool fits. The nearest, by name:\n- "), "{said}");
    assert_eq!((said.lines().count(), tools.len()), (4, 0));
}

#[test]
fn a_search_that_leaves_nothing_names_the_nearest() {
    let registry = registry(10_000, SearchForm::Function);
    let deferral = Deferral { room: 0, form: SearchForm::Function, indexer: Arc::new(index) };
    let search = ToolSearch::new(registry.tools().iter(), &deferral, None);
    let nearest = search.find("get_weather", 0).nearest;
    assert_eq!(nearest[0].name.as_str(), "get_weather");
}

#[test]
fn a_search_for_nothing_is_refused() {
    let registry = registry(0, SearchForm::Function);
    let problem = |input: &str| {
        let tool = Arc::clone(&registry.find(NAME).unwrap().tool);
        tool.prepare(&Input::Search(input.to_owned())).err().unwrap().message
    };
    assert_eq!(problem(r#"{"query": " "}"#), "query must not be empty");
    assert_eq!(problem(r#"{"query": "x", "limit": 0}"#), "limit must be greater than zero");
}

/// A source with one server, which lists a tool when it is started.
#[derive(Default)]
struct LazyServer(std::sync::atomic::AtomicBool);

impl ToolSource for LazyServer {
    fn tools_since(&self, _: u64) -> SourceTools {
        SourceTools { version: 1, tools: Vec::new() }
    }

    fn unlisted(&self) -> Vec<UnlistedServer> {
        let is_listed = self.0.load(std::sync::atomic::Ordering::SeqCst);
        let names = if is_listed { &["broken"][..] } else { &["Tracker", "broken"] };
        let server = |name: &&str| UnlistedServer { server: (*name).into(), state: "not started".into() };
        names.iter().map(server).collect()
    }

    fn held_back(&self) -> Vec<String> {
        vec!["`send` of MCP server `mail`: it is new".to_owned(); 40]
    }

    fn start_server<'a>(&'a self, server: &'a str) -> BoxFuture<'a, ()> {
        assert_eq!(server, "Tracker");
        self.0.store(true, std::sync::atomic::Ordering::SeqCst);
        Box::pin(async {})
    }
}

#[tokio::test]
async fn a_search_for_the_name_of_a_server_starts_it() {
    let source = Arc::new(LazyServer::default());
    let deferral = Deferral { room: 10_000, form: SearchForm::Function, indexer: Arc::new(index) };
    let registry = Registry::builder().source(source.clone()).with_deferral(deferral).build().unwrap();
    assert_eq!(names(&registry), [NAME], "there is a search although there is room");
    let spec = &registry.find(NAME).unwrap().spec;
    assert!(spec.description.ends_with("starts a server: `Tracker`, `broken`."), "{}", spec.description);
    let cancel = CancellationToken::new();
    let said = servers::report(&*source, "weather", &cancel).await;
    assert!(said.contains("`Tracker` (not started), `broken` (not started)"), "{said}");
    assert!(!source.0.load(std::sync::atomic::Ordering::SeqCst), "it was not asked for");
    let said = servers::report(&*source, "issues in the tracker", &cancel).await;
    assert!(said.starts_with("\nStarted: `Tracker`. Search again"), "{said}");
    assert!(said.contains("`broken` (not started)"), "{said}");
    let held = "\nTools that cannot be called until the user approves them:\n- `send` of MCP server `mail`: it is new\n";
    assert!(said.contains(held) && said.ends_with("\n- and 10 more"), "{said}");
}
