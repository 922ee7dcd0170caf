//! Tools that join while a turn runs.

use super::*;

/// Has a tool as soon as a call has run, and a tool with a name of ours.
struct LateSource(Arc<AtomicUsize>);

impl ToolSource for LateSource {
    fn tools_since(&self, version: u64) -> SourceTools {
        if version > 0 || self.0.load(Ordering::SeqCst) == 0 {
            return SourceTools { version, tools: Vec::new() };
        }
        let named = |name| {
            let late = tool(name, |_: &Value| Effects::none(), |_: Value, _| async { Ok("late".into()) });
            Arc::new(late.description("Late.")) as _
        };
        SourceTools { version: 1, tools: vec![named("mcp__a__late"), named("count")] }
    }
}

#[tokio::test]
async fn a_tool_that_joins_is_offered_at_the_end_of_the_next_request_and_can_be_called() {
    let mut world = World::new([
        vec![call("c1", "count"), done(0)],
        vec![call("c2", "mcp__a__late"), call("c3", "count"), done(0)],
        vec![says("ok"), done(0)],
    ]);
    world.source = Some(Arc::new(LateSource(Arc::clone(&world.ran))));
    world.turn().await.result.unwrap();
    let tools = world.model.tools.lock().unwrap();
    assert_eq!(
        *tools,
        [&["count", "hang"][..], &["count", "hang", "mcp__a__late"], &["count", "hang", "mcp__a__late"]]
    );
    let heard = world.heard(2);
    assert!(heard.contains(&"c2 -> late".to_owned()), "{heard:?}");
    assert!(heard.contains(&"c3 -> ran 2".to_owned()), "the tool of ours is still ours: {heard:?}");
    let warned = world.watcher.events().into_iter().filter_map(|event| match event {
        Event::Warning { message } => Some(message),
        _ => None,
    });
    assert_eq!(warned.collect::<Vec<_>>(), ["the tool `count` is left out: the name `count` is taken"]);
}
