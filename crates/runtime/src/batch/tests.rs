//! Tests of the whole way of a call, and of many at once. Tools are closures; nothing leaves the
//! process.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::sync::{Barrier, Notify};
use windlass_contract::{
    Effects, Event, Input, Journal, Output, ToolError,
    outcome::Status,
    policy::{ApprovalPolicy, SandboxMode},
    tool::tool,
};
use windlass_fakes::{EchoMachine, EventRecorder, MemoryJournal};
use windlass_shape::Shaper;

use super::*;
use crate::{Gate, Policy, Reason, Registry, Review};

/// A world in which tools write down when they begin and end.
struct World {
    log: Arc<Mutex<Vec<String>>>,
    release: Arc<Notify>,
    meeting: Arc<Barrier>,
    journal: Arc<MemoryJournal>,
    watcher: Arc<EventRecorder>,
    stop: Stop,
}

impl World {
    fn new() -> Self {
        Self {
            log: Arc::default(),
            release: Arc::default(),
            meeting: Arc::new(Barrier::new(2)),
            journal: Arc::default(),
            watcher: Arc::default(),
            stop: Stop::default(),
        }
    }

    /// `read`s and `write`s log their argument; `wait` reads until released; `meet` writes when two
    /// of them run; `fail` and `crash` do as they say.
    fn batch(&self) -> Batch {
        let log = |effects: fn(&Value) -> Effects, name: &'static str| {
            let (log, release) = (Arc::clone(&self.log), Arc::clone(&self.release));
            let meeting = Arc::clone(&self.meeting);
            let body = move |args: Value, cx: windlass_contract::Cx| {
                let (log, release, meeting) = (Arc::clone(&log), Arc::clone(&release), Arc::clone(&meeting));
                async move {
                    let who = args["who"].as_str().unwrap_or(name).to_owned();
                    let say = |what: &str| log.lock().unwrap().push(format!("{who} {what}"));
                    say("begins");
                    match name {
                        "wait" => release.notified().await,
                        "meet" => _ = meeting.wait().await,
                        "fail" => return Err(ToolError::failed("no luck")),
                        "crash" => panic!("on purpose"),
                        "hang" => std::future::pending().await,
                        "obey" => {
                            cx.cancel.cancelled().await;
                            return Err(ToolError::cancelled());
                        }
                        _ => tokio::task::yield_now().await,
                    }
                    say("ends");
                    Ok(Output::from(who.as_str()))
                }
            };
            Arc::new(tool(name, effects, body).description("A test."))
        };
        let registry = Registry::builder()
            .tool(log(|_| Effects::read("x"), "read"))
            .tool(log(|args| Effects::write(args["path"].as_str().unwrap_or("x")), "write"))
            .tool(log(|args| Effects::write(args["path"].as_str().unwrap_or("x")), "meet"))
            .tool(log(|_| Effects::read("x"), "wait"))
            .tool(log(|_| Effects::none(), "fail"))
            .tool(log(|_| Effects::none(), "crash"))
            .tool(log(|_| Effects::read("x"), "hang"))
            .tool(log(|_| Effects::read("x"), "obey"))
            .tool(log(|_| panic!("over effects"), "confused"))
            .build()
            .unwrap();
        let policy = Policy {
            cwd: "/".into(),
            approval: ApprovalPolicy::Never,
            sandbox: SandboxMode::DangerFullAccess,
            ..Policy::default()
        };
        let toolbox = Toolbox {
            registry,
            gate: Gate::new(policy, None),
            sandbox: Arc::new(EchoMachine),
            shaper: Shaper::default(),
            review: Review::default(),
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            events: Arc::clone(&self.watcher) as _,
            hooks: None,
        };
        Batch::new(Arc::new(toolbox), self.stop.clone())
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap().clone()
    }
}

fn call(id: &str, name: &str) -> ToolCall {
    let input = Input::Json(format!(r#"{{"who":"{id}"}}"#));
    ToolCall { id: id.into(), name: name.into(), input }
}

fn call_on(id: &str, name: &str, path: &str) -> ToolCall {
    let input = Input::Json(format!(r#"{{"who":"{id}","path":"{path}"}}"#));
    ToolCall { input, ..call(id, name) }
}

async fn results(batch: Batch) -> Vec<(String, Status, String)> {
    let done = batch.finish().await;
    done.into_iter()
        .map(|FinishedCall { call, outcome, .. }| (call.id.to_string(), outcome.status, outcome.text()))
        .collect()
}

#[tokio::test]
async fn reads_of_a_file_overlap_and_a_write_to_it_waits_for_them() {
    let world = World::new();
    let mut batch = world.batch();
    for (id, name) in [("r1", "wait"), ("r2", "read"), ("w1", "write"), ("r3", "read"), ("w2", "write")] {
        batch.submit(call(id, name));
    }
    // r2 overlaps with r1, which still waits; w1 may not start, and r3 may not overtake it.
    batch.step().await;
    assert_eq!(world.log(), ["r1 begins", "r2 begins", "r2 ends"]);
    world.release.notify_one();
    let done = results(batch).await;
    let ids: Vec<_> = done.iter().map(|(id, ..)| id.as_str()).collect();
    assert_eq!(ids, ["r1", "r2", "w1", "r3", "w2"]);
    assert_eq!(
        world.log()[3..],
        ["r1 ends", "w1 begins", "w1 ends", "r3 begins", "r3 ends", "w2 begins", "w2 ends"]
    );
}

#[tokio::test(start_paused = true)]
async fn writes_to_different_files_run_at_the_same_time() {
    let world = World::new();
    let mut batch = world.batch();
    batch.submit(call_on("a", "meet", "one"));
    batch.submit(call_on("b", "meet", "two"));
    // Each ends only while the other runs.
    let done = tokio::time::timeout(std::time::Duration::from_mins(1), results(batch)).await;
    let done = done.expect("they met");
    assert!(done.iter().all(|(_, status, _)| *status == Status::Success), "{done:?}");
}

#[tokio::test]
async fn writes_to_one_file_keep_their_order_and_hold_up_nothing_else() {
    let world = World::new();
    let mut batch = world.batch();
    batch.submit(call("r1", "wait"));
    for (id, path) in [("w1", "x"), ("w2", "./x"), ("other", "y"), ("w3", "sub/../x")] {
        batch.submit(call_on(id, "write", path));
    }
    batch.step().await;
    assert_eq!(world.log(), ["r1 begins", "other begins", "other ends"]);
    world.release.notify_one();
    results(batch).await;
    let expected = ["r1 ends", "w1 begins", "w1 ends", "w2 begins", "w2 ends", "w3 begins", "w3 ends"];
    assert_eq!(world.log()[3..], expected);
}

#[tokio::test]
async fn a_failing_write_cancels_none_of_the_others() {
    let world = World::new();
    let mut batch = world.batch();
    batch.submit(call("a", "crash"));
    batch.submit(call_on("b", "write", "one"));
    batch.submit(call("c", "fail"));
    batch.submit(call_on("d", "write", "two"));
    let statuses: Vec<_> = results(batch).await.into_iter().map(|(_, status, _)| status).collect();
    assert_eq!(statuses, [Status::Error, Status::Success, Status::Error, Status::Success]);
}

#[tokio::test]
async fn one_failing_call_leaves_its_siblings_alone() {
    let world = World::new();
    let mut batch = world.batch();
    for (id, name) in [("a", "fail"), ("b", "crash"), ("c", "gone"), ("d", "confused"), ("e", "read")] {
        batch.submit(call(id, name));
    }
    batch.submit(ToolCall { id: "f".into(), name: "read".into(), input: Input::Text("x".into()) });
    batch.submit(ToolCall { id: "g".into(), name: "gone".into(), input: Input::Text("x".into()) });
    let expected = [
        ("a", Status::Error, "no luck"),
        ("b", Status::Error, "the tool crashed; this is a bug in the tool"),
        ("c", Status::NotFound, "unsupported call: gone\n"),
        ("d", Status::Error, "the tool crashed over its input; this is a bug in the tool"),
        ("e", Status::Success, "e"),
        ("f", Status::Error, "tool read invoked with incompatible payload"),
        ("g", Status::NotFound, "unsupported custom tool call: gone\n"),
    ];
    let results = results(batch).await;
    assert_eq!(results.len(), expected.len());
    for (result, (id, status, text)) in results.iter().zip(expected) {
        assert_eq!((result.0.as_str(), result.1), (id, status));
        assert!(result.2.starts_with(text), "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopping_ends_every_call_and_each_still_gets_its_output() {
    let world = World::new();
    let mut batch = world.batch();
    for (id, name) in [("a", "hang"), ("b", "obey"), ("c", "write")] {
        batch.submit(call(id, name));
    }
    tokio::task::yield_now().await;
    world.stop.stop(Reason::TimeLimit);
    world.stop.stop(Reason::Interrupted);
    let done = results(batch).await;
    assert_eq!(world.log(), ["a begins", "b begins"], "a call that had not begun must not begin");
    for (id, status, text) in done {
        assert_eq!(status, Status::Rejected, "{id}");
        assert!(text.starts_with("aborted: the turn's time limit was reached after "), "{id}: {text}");
    }
}

#[tokio::test]
async fn the_intent_is_on_record_before_anything_happens() {
    let world = World::new();
    let mut batch = world.batch();
    batch.submit(call("a", "write"));
    results(batch).await;
    assert_eq!(world.journal.types(), ["intent", "outcome"]);
    let events = world.watcher.events();
    assert!(matches!(&events[..], [Event::CallStarted { .. }, Event::CallEnded { .. }]), "{events:?}");
}

#[tokio::test]
async fn what_cannot_be_written_down_is_not_done() {
    let world = World::new();
    world.journal.break_down();
    let mut batch = world.batch();
    batch.submit(call("a", "write"));
    let done = results(batch).await;
    assert_eq!(world.log(), [""; 0]);
    assert_eq!(done[0].2, "not run, because it could not be written down first");
}

/// Never answers.
struct Nobody;

impl windlass_contract::approval::Approver for Nobody {
    fn ask<'a>(
        &'a self,
        _: &'a windlass_contract::Clean<windlass_contract::approval::Question>,
    ) -> windlass_contract::BoxFuture<'a, windlass_contract::approval::Answer> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_stopped_turn_does_not_wait_for_an_answer() {
    let world = World::new();
    let mut batch = world.batch();
    let toolbox = Arc::get_mut(&mut batch.toolbox).unwrap();
    let policy = Policy {
        cwd: "/".into(),
        approval: ApprovalPolicy::Untrusted,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    toolbox.gate = Gate::new(policy, Some(Arc::new(Nobody)));
    batch.submit(call("a", "write"));
    tokio::task::yield_now().await;
    world.stop.stop(Reason::Interrupted);
    let done = results(batch).await;
    assert_eq!(done[0].1, Status::Rejected);
    assert_eq!(world.log(), [""; 0]);
}
