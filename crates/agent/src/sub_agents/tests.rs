//! Tests of agents that start agents, with a model that answers by what it is sent.

use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};
use windlass_contract::{
    BoxFuture, Clean, Effects, Input, Output, ToolCall,
    approval::{Answer, Approver, Question},
    item::{Body, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
    policy::{ApprovalPolicy, SandboxMode},
    tool::tool,
};
use windlass_fakes::EventRecorder;
use windlass_runtime::{Policy, Reason, Stop};

use super::*;
use crate::{Agent, AgentError};

/// The parts of a conversation that the model of a test decides by.
struct Seen {
    /// The last message to it.
    task: String,
    /// The outputs of calls since then.
    outputs: Vec<String>,
    tools: Vec<String>,
}

enum Say {
    Text(&'static str),
    Words(String),
    Calls(Vec<(&'static str, Value)>),
    Hang,
    Crash,
}

struct ReactiveModel<F> {
    info: ModelInfo,
    say: F,
    calls: AtomicU64,
}

struct ReactiveStream(std::collections::VecDeque<ModelEvent>, bool);

impl<F: Fn(&Seen) -> Say + Send + Sync> ModelClient for ReactiveModel<F> {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        let tools = prompt.tools.get().iter().map(|spec| spec.name.to_string()).collect();
        let mut seen = Seen { task: String::new(), outputs: Vec::new(), tools };
        for entry in prompt.history {
            match &entry.get().body {
                Body::Message { role: Role::User, content } => {
                    let text = Content::join(content);
                    if !text.starts_with('<') {
                        (seen.task, seen.outputs) = (text, Vec::new());
                    }
                }
                Body::Output { content, .. } => seen.outputs.push(Content::join(content)),
                _ => {}
            }
        }
        let item = |body| ModelEvent::Item(windlass_contract::Item::from(body));
        let message =
            |text: String| item(Body::Message { role: Role::Assistant, content: vec![Content::Text(text)] });
        let (mut events, hangs) = match (self.say)(&seen) {
            Say::Text(text) => (vec![message(text.to_owned())], false),
            Say::Words(text) => (vec![message(text)], false),
            Say::Calls(calls) => {
                let call = |(name, arguments): (&str, Value)| {
                    let id = format!("c{}", self.calls.fetch_add(1, Ordering::SeqCst));
                    let input = Input::Json(arguments.to_string());
                    item(Body::Call(ToolCall { id: id.as_str().into(), name: name.into(), input }))
                };
                (calls.into_iter().map(call).collect(), false)
            }
            Say::Hang => (Vec::new(), true),
            Say::Crash => panic!("on purpose"),
        };
        if !hangs {
            let usage = Some(Usage { input_tokens: 10, output_tokens: 1, ..Usage::default() });
            events.push(ModelEvent::Completed { usage, finish: Finish::Done });
        }
        Box::pin(async move { Ok(Box::new(ReactiveStream(events.into(), hangs)) as Box<dyn ModelStream>) })
    }
}

impl ModelStream for ReactiveStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async {
            match self.0.pop_front() {
                Some(event) => Some(Ok(event)),
                None if self.1 => std::future::pending().await,
                None => None,
            }
        })
    }
}

fn builder(say: impl Fn(&Seen) -> Say + Send + Sync + 'static) -> (AgentBuilder, Arc<EventRecorder>) {
    let info = ModelInfo {
        provider: "fake".into(),
        model: "m".into(),
        wire: "fake",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: Duration::ZERO,
    };
    let events = Arc::new(EventRecorder::default());
    let policy = Policy {
        cwd: "/".into(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let model = Arc::new(ReactiveModel { info, say, calls: AtomicU64::new(0) });
    let builder = Agent::builder().model(model).policy(policy).events(events.clone());
    (builder.sub_agents(SubAgentSettings::default()), events)
}

fn id_in(output: &str) -> String {
    let output: Value = serde_json::from_str(output.lines().next().unwrap()).unwrap();
    output["agent_id"].as_str().unwrap_or_else(|| panic!("{output}")).to_owned()
}

fn spawn(message: &str) -> (&'static str, Value) {
    ("spawn_agent", json!({ "message": message }))
}

fn wait_for(ids: &[String]) -> Say {
    Say::Calls(vec![("wait", json!({ "ids": ids }))])
}

/// Starts children on these tasks, waits for each of them, and answers with the last states.
fn delegate(seen: &Seen, tasks: &[&str]) -> Say {
    let count = tasks.len();
    if seen.outputs.is_empty() {
        return Say::Calls(tasks.iter().map(|task| spawn(task)).collect());
    }
    let ids: Vec<_> = seen.outputs[..count].iter().map(|output| id_in(output)).collect();
    match seen.outputs.len() - count {
        done if done < count => wait_for(&ids[done..=done]),
        _ => Say::Words(seen.outputs[count..].join("\n")),
    }
}

async fn run(agent: &mut Agent, text: &str) -> crate::TurnReport {
    agent.run(vec![Content::Text(text.to_owned())], &Stop::default()).await
}

#[tokio::test]
async fn children_work_at_once_and_their_answers_and_costs_reach_the_parent() {
    // Neither child answers before both have begun.
    let begun = Arc::new(tokio::sync::Barrier::new(2));
    let (builder, events) = builder(|seen| match seen.task.as_str() {
        "go" => delegate(seen, &["one", "two"]),
        task if seen.outputs.is_empty() => {
            assert!(!seen.tools.iter().any(|tool| tool == "spawn_agent"), "a child of {task} is too deep");
            Say::Calls(vec![("meet", json!({}))])
        }
        "one" => Say::Text("first done"),
        _ => Say::Text("second done"),
    });
    let meet = move |_: Value, _: Cx| {
        let begun = Arc::clone(&begun);
        async move {
            begun.wait().await;
            Ok(Output::from("met"))
        }
    };
    let meet = tool("meet", |_: &Value| Effects::none(), meet).description("Meets the other.");
    let mut agent = builder.tool(Arc::new(meet)).build().unwrap();
    let report = run(&mut agent, "go").await;
    let answer = report.end.unwrap();
    assert!(answer.contains(r#"{"completed":"first done"}"#), "{answer}");
    assert!(answer.contains(r#"{"completed":"second done"}"#), "{answer}");
    // Four requests of the parent, two of each child.
    assert_eq!((report.usage.input_tokens, report.usage.output_tokens), (80, 8));
    let spent = agent.budget().spent().into_iter();
    let spent: Vec<_> = spent.map(|(spender, spent)| (spender, spent.requests, spent.tokens)).collect();
    let expected = [("root/default-1", 2, 22), ("root/default-2", 2, 22), ("session", 4, 44)];
    assert_eq!(spent, expected.map(|(spender, requests, tokens)| (spender.to_owned(), requests, tokens)));
    let states: Vec<_> = events
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::AgentUpdated { agent, status, activity: None, .. } => {
                Some(format!("{agent} {}", status.name()))
            }
            _ => None,
        })
        .collect();
    for state in ["root/default-1 running", "root/default-2 running", "root/default-1 completed"] {
        assert!(states.iter().any(|each| each == state), "{states:?}");
    }
}

#[tokio::test]
async fn a_stopped_turn_stops_the_agents_and_every_call_has_its_output() {
    let (builder, events) = builder(|seen| match seen.task.as_str() {
        "go" => delegate(seen, &["hang"]),
        _ => Say::Hang,
    });
    let mut agent = builder.build().unwrap();
    let stop = Stop::default();
    let interrupt = async {
        let works =
            |event: &Event| matches!(event, Event::CallStarted { call, .. } if call.name.as_str() == "wait");
        while !events.events().iter().any(works) {
            tokio::task::yield_now().await;
        }
        stop.stop(Reason::Interrupted);
    };
    let (report, ()) = tokio::join!(agent.run(vec![Content::Text("go".into())], &stop), interrupt);
    assert!(matches!(report.end, Err(AgentError::Stopped(Reason::Interrupted))));
    let ended = events.events().iter().filter(|event| matches!(event, Event::CallEnded { .. })).count();
    assert_eq!(ended, 2);
    let agents = agent.sub_agents.as_ref().unwrap();
    let states: Vec<_> = agents.children().values().map(|child| child.status()).collect();
    assert_eq!(states, [AgentStatus::Interrupted]);
}

#[tokio::test]
async fn an_agent_that_still_works_at_the_end_of_the_turn_is_stopped_and_can_go_on() {
    let (builder, events) = builder(|seen| match (seen.task.as_str(), seen.outputs.len()) {
        ("go", 0) => Say::Calls(vec![spawn("hang")]),
        ("go", _) => Say::Words(id_in(&seen.outputs[0])),
        ("hang", _) => Say::Hang,
        ("try again", _) => Say::Text("now it worked"),
        (id, 0) => Say::Calls(vec![("send_input", json!({"id": id, "message": "try again"}))]),
        (id, 1) => wait_for(&[id.to_owned()]),
        (id, 2) => Say::Calls(vec![("close_agent", json!({ "id": id }))]),
        _ => Say::Words(seen.outputs.join("\n")),
    });
    let mut agent = builder.build().unwrap();
    let id = run(&mut agent, "go").await.end.unwrap();
    let is_told =
        |event: &Event| matches!(event, Event::Warning { message } if message.contains("`root/default-1`"));
    assert!(events.events().iter().any(is_told));
    let answer = run(&mut agent, &id).await.end.unwrap();
    assert!(answer.contains("submission_id"), "{answer}");
    assert!(answer.contains(r#"{"completed":"now it worked"}"#), "{answer}");
    assert!(agent.sub_agents.as_ref().unwrap().children().is_empty(), "it was closed");
}

#[tokio::test]
async fn there_are_at_most_as_many_agents_as_allowed_and_closing_one_makes_room() {
    let (builder, _) = builder(|seen| match (seen.task.as_str(), seen.outputs.len()) {
        ("go", 0) => Say::Calls(vec![spawn("work"), spawn("work")]),
        ("go", 2) => Say::Calls(vec![("close_agent", json!({ "id": id_in(&seen.outputs[0]) }))]),
        ("go", 3) => Say::Calls(vec![spawn("work")]),
        ("go", _) => Say::Words(seen.outputs.join("\n")),
        _ => Say::Text("done"),
    });
    let settings = SubAgentSettings { max_agents: 1, ..SubAgentSettings::default() };
    let mut agent = builder.sub_agents(settings).build().unwrap();
    let answer = run(&mut agent, "go").await.end.unwrap();
    let lines: Vec<_> = answer.lines().filter(|line| line.contains("agent")).collect();
    assert!(lines[0].contains("agent_id") && lines[1].contains("there may be no more"), "{answer}");
    assert!(lines.last().is_some_and(|line| line.contains("agent_id")), "{answer}");
}

#[tokio::test]
async fn a_child_that_crashes_loops_or_gets_nothing_to_do_is_an_error_and_nothing_hangs() {
    let (builder, _) = builder(|seen| match seen.task.as_str() {
        "go" => delegate(seen, &["crash", "loop"]),
        "empty" if seen.outputs.is_empty() => Say::Calls(vec![
            spawn(" "),
            ("spawn_agent", json!({"message": "x", "agent_type": "pirate"})),
            ("wait", json!({"ids": []})),
            ("send_input", json!({"id": "x", "message": "m"})),
            ("wait", json!({"ids": ["x"]})),
        ]),
        "empty" => Say::Words(seen.outputs.join("\n")),
        "crash" => Say::Crash,
        _ => Say::Calls(vec![("no_such_tool", json!({}))]),
    });
    let mut agent = builder.build().unwrap();
    let answer = run(&mut agent, "go").await.end.unwrap();
    assert!(answer.contains("internal error") && answer.contains("went in circles"), "{answer}");
    let answer = run(&mut agent, "empty").await.end.unwrap();
    for expected in [
        "Empty message can't be sent to an agent",
        "there is no agent type `pirate`; there are default, explorer, worker",
        "ids must be non-empty",
        "agent with id x not found",
        r#"{"x":"not_found"}"#,
    ] {
        assert!(answer.contains(expected), "{expected}: {answer}");
    }
}

/// Says yes, and keeps the reasons for the questions.
#[derive(Default)]
struct KeepsReasons(Mutex<Vec<String>>);

impl Approver for KeepsReasons {
    fn ask<'a>(&'a self, question: &'a Clean<Question>) -> BoxFuture<'a, Answer> {
        self.0.lock().unwrap().push(question.reason.clone());
        Box::pin(async { Answer::Session })
    }
}

#[tokio::test]
async fn questions_of_children_name_them_and_an_approval_counts_for_all() {
    let (builder, _) = builder(|seen| match seen.task.as_str() {
        "go" => delegate(seen, &["one", "two"]),
        _ if seen.outputs.is_empty() => Say::Calls(vec![("write", json!({}))]),
        _ => Say::Text("done"),
    });
    let person = Arc::new(KeepsReasons::default());
    let write = tool("write", |_: &Value| Effects::write("/x"), |_: Value, _| async { Ok(Output::from("")) });
    let policy = Policy {
        cwd: "/".into(),
        approval: ApprovalPolicy::Untrusted,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let builder =
        builder.tool(Arc::new(write.description("Writes."))).policy(policy).approver(person.clone());
    run(&mut builder.build().unwrap(), "go").await.end.unwrap();
    let reasons = person.0.lock().unwrap();
    assert_eq!(reasons.len(), 1, "{reasons:?}");
    assert!(reasons[0].starts_with("the agent `root/default-"), "{reasons:?}");
}

#[tokio::test]
async fn a_role_narrows_the_tools_and_the_sandbox_and_never_widens_them() {
    let tools = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&tools);
    let (builder, _) = builder(move |seen| match (seen.task.as_str(), seen.outputs.len()) {
        ("go", 0) => Say::Calls(vec![("spawn_agent", json!({"message": "task", "agent_type": "reader"}))]),
        ("go", 1) => wait_for(&[id_in(&seen.outputs[0])]),
        ("go", _) => Say::Text("done"),
        _ => {
            heard.lock().unwrap().clone_from(&seen.tools);
            Say::Text("done")
        }
    });
    let named = |name: &'static str| {
        let body = |_: Value, _: Cx| async { Ok(Output::from("")) };
        Arc::new(tool(name, |_: &Value| Effects::none(), body).description("A test."))
    };
    let role = AgentRole {
        sandbox: Some(SandboxMode::DangerFullAccess),
        tools: Some(vec!["look*".to_owned()]),
        ..AgentRole::default()
    };
    let settings =
        SubAgentSettings { roles: [("reader".to_owned(), role)].into(), ..SubAgentSettings::default() };
    let policy = Policy { cwd: "/".into(), ..Policy::default() };
    let builder = builder.policy(policy).tool(named("look_at")).tool(named("change")).sub_agents(settings);
    let mut agent = builder.build().unwrap();
    run(&mut agent, "go").await.end.unwrap();
    assert_eq!(*tools.lock().unwrap(), ["look_at"]);
    let narrowed = agent.sub_agents.as_ref().unwrap().builder("reader", "root/reader-1").unwrap();
    assert_eq!(narrowed.policy.sandbox, SandboxMode::ReadOnly);
}
