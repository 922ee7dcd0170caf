//! Tests of the turn loop against a scripted model. Nothing leaves the process.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use windlass_contract::{
    BoxFuture, Effects, Input, Journal, Output,
    model::{ModelInfo, ModelStream},
    policy::{ApprovalPolicy, SandboxMode},
    remote::{SourceTools, ToolSource},
    tool::tool,
};
use windlass_fakes::{EchoMachine, EventRecorder, MemoryJournal};
use windlass_runtime::{Gate, Policy, Registry, RegistryBuilder, Review, Secrets, Shaper};

use windlass_contract::ToolCall;

use crate::SessionBudget;

use super::*;
use crate::{CompactAt, history::RecordedHistory};

mod answers;
mod budget;
mod compaction;
mod joining;
mod retries;
mod steering;

/// Plays one list of events per request, and keeps what it was sent.
struct FakeModel {
    info: ModelInfo,
    answers: Mutex<std::collections::VecDeque<Vec<Step>>>,
    heard: Mutex<Vec<Vec<Value>>>,
    /// The answers to requests for a summary, which are not among the heard ones.
    summaries: Mutex<std::collections::VecDeque<Vec<Step>>>,
    /// The names of the tools in each request.
    tools: Mutex<Vec<Vec<String>>>,
}

/// The next step of the fake model.
enum Step {
    Event(ModelEvent),
    Fail(ModelError),
    /// As the first step: fails before the answer begins.
    Refuse(ModelError),
    /// Says nothing more.
    Hang,
    /// The session can no longer be written down.
    BreakJournal(Arc<MemoryJournal>),
    /// Waits until this number of calls has run.
    AfterCalls(Arc<AtomicUsize>, usize),
    /// The user sends a message.
    Steer(SteeringInput, &'static str),
}

struct FakeStream(std::vec::IntoIter<Step>);

impl ModelClient for FakeModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        if !prompt.instructions.is_empty() {
            assert!(prompt.tools.get().is_empty(), "a summary needs no tools");
            let steps = self.summaries.lock().unwrap().pop_front().expect("a summary too many");
            return Box::pin(async { Ok(Box::new(FakeStream(steps.into_iter())) as Box<dyn ModelStream>) });
        }
        let history = prompt.history.iter().map(|entry| serde_json::to_value(&entry.get().body).unwrap());
        self.heard.lock().unwrap().push(history.collect());
        let tools = prompt.tools.get().iter().map(|spec| spec.name.to_string());
        self.tools.lock().unwrap().push(tools.collect());
        let steps = self.answers.lock().unwrap().pop_front().expect("a request too many");
        Box::pin(async {
            match steps.first() {
                Some(Step::Refuse(error)) => Err(error.clone()),
                _ => Ok(Box::new(FakeStream(steps.into_iter())) as Box<dyn ModelStream>),
            }
        })
    }
}

impl ModelStream for FakeStream {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        Box::pin(async {
            loop {
                match self.0.next() {
                    Some(Step::Event(event)) => return Some(Ok(event)),
                    Some(Step::Fail(error) | Step::Refuse(error)) => return Some(Err(error)),
                    Some(Step::Hang) => std::future::pending().await,
                    Some(Step::BreakJournal(journal)) => journal.break_down(),
                    Some(Step::AfterCalls(ran, count)) => {
                        while ran.load(Ordering::SeqCst) < count {
                            tokio::task::yield_now().await;
                        }
                    }
                    Some(Step::Steer(steering, text)) => {
                        steering.push(vec![Content::Text(text.to_owned())]);
                    }
                    None => return None,
                }
            }
        })
    }
}

struct World {
    model: FakeModel,
    journal: Arc<MemoryJournal>,
    watcher: Arc<EventRecorder>,
    ran: Arc<AtomicUsize>,
    stop: Stop,
    steering: SteeringInput,
    sandbox: SandboxMode,
    output_schema: Option<AnswerSchema>,
    window: Option<u64>,
    compact_at: CompactAt,
    budget: SessionBudget,
    source: Option<Arc<dyn ToolSource>>,
}

struct Ended {
    result: Result<(), AgentError>,
    answer: String,
    usage: Usage,
    refusals: Vec<windlass_contract::outcome::Refusal>,
}

impl World {
    fn new(answers: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let info = ModelInfo {
            provider: "fake".into(),
            model: "m".into(),
            wire: "fake",
            request_retries: 3,
            stream_retries: 2,
            retry_budget: Duration::from_mins(2),
        };
        let answers = Mutex::new(answers.into_iter().collect());
        Self {
            model: FakeModel {
                info,
                answers,
                heard: Mutex::default(),
                summaries: Mutex::default(),
                tools: Mutex::default(),
            },
            journal: Arc::default(),
            watcher: Arc::default(),
            ran: Arc::default(),
            stop: Stop::default(),
            steering: SteeringInput::default(),
            sandbox: SandboxMode::DangerFullAccess,
            output_schema: None,
            window: None,
            compact_at: CompactAt::Off,
            budget: SessionBudget::default(),
            source: None,
        }
    }

    async fn turn(&self) -> Ended {
        let ran = Arc::clone(&self.ran);
        let count = tool(
            "count",
            |_: &Value| Effects::write("x"),
            move |_: Value, _| {
                let number = ran.fetch_add(1, Ordering::SeqCst) + 1;
                async move { Ok(Output::from(format!("ran {number}"))) }
            },
        );
        let hang = tool("hang", |_: &Value| Effects::read("x"), |_: Value, _| std::future::pending());
        let own = Registry::builder()
            .tool(Arc::new(count.description("Counts.")))
            .tool(Arc::new(hang.description("Hangs.")));
        let registry = self.source.iter().cloned().fold(own, RegistryBuilder::source).build().unwrap();
        let policy = Policy {
            cwd: "/".into(),
            approval: ApprovalPolicy::Never,
            sandbox: self.sandbox,
            ..Policy::default()
        };
        let toolbox = Arc::new(Toolbox {
            registry,
            gate: Gate::new(policy, None),
            sandbox: Arc::new(EchoMachine),
            shaper: Shaper::default(),
            review: Review::default(),
            journal: Arc::clone(&self.journal) as Arc<dyn Journal>,
            events: Arc::clone(&self.watcher) as _,
            hooks: None,
        });
        let mut history = ConversationHistory::new(
            RecordedHistory::default(),
            Arc::clone(&self.journal) as Arc<dyn Journal>,
            Secrets::default(),
        );
        history.push(Item::message(Role::User, "go")).unwrap();
        let thread = "t".into();
        let mut offered = OfferedTools::from_history(&[], &[], &toolbox.registry);
        let output_schema = self.output_schema.as_ref();
        let fixed =
            RequestConstants { thread: &thread, instructions: "", parallel_calls: true, output_schema };
        let mut gauge = ContextGauge::new(self.window, self.compact_at);
        let mut counter = TokenCounter::new(None);
        let mut turn = Turn {
            model: &self.model,
            toolbox: &toolbox,
            events: &*self.watcher,
            history: &mut history,
            offered: &mut offered,
            fixed,
            stop: &self.stop,
            steering: &self.steering,
            mentions: None,
            sub_agents: None,
            reviews: &ReviewExchange::default(),
            spending: TokenSpending::new(Some(1000)).with_budget(self.budget.clone(), None),
            loop_detector: LoopDetector::default(),
            counter: &mut counter,
            gauge: &mut gauge,
            refusals: TurnRefusals::default(),
            answer: String::new(),
            declined: false,
        };
        let result = turn.run().await;
        let Turn { answer, spending, refusals, .. } = turn;
        Ended { result, answer, usage: spending.reported(), refusals: refusals.list() }
    }

    /// The warnings that were given.
    fn warnings(&self) -> Vec<String> {
        let warnings = self.watcher.events().into_iter().filter_map(|event| match event {
            Event::Warning { message } => Some(message),
            _ => None,
        });
        warnings.collect()
    }

    /// The tries that were announced, as which of how many, with their reasons.
    fn retries(&self) -> Vec<(u32, u32, String)> {
        let retries = self.watcher.events().into_iter().filter_map(|event| match event {
            Event::Retrying { attempt, of, reason, .. } => Some((attempt, of, reason)),
            _ => None,
        });
        retries.collect()
    }

    /// Returns the number of requests that the model was sent.
    fn requests(&self) -> usize {
        self.model.heard.lock().unwrap().len()
    }

    /// Returns a summary of the n-th request to the model.
    fn heard(&self, request: usize) -> Vec<String> {
        let heard = self.model.heard.lock().unwrap();
        let short = |body: &Value| match body["kind"].as_str().unwrap() {
            "call" => format!("call {}", body["id"].as_str().unwrap()),
            "output" => {
                let texts =
                    body["content"].as_array().unwrap().iter().map(|part| part["text"].as_str().unwrap());
                format!("{} -> {}", body["call"].as_str().unwrap(), texts.collect::<Vec<_>>().join("\n"))
            }
            "message" => format!(
                "{}: {}",
                body["role"].as_str().unwrap(),
                body["content"][0]["text"].as_str().unwrap()
            ),
            other => other.to_owned(),
        };
        heard[request].iter().map(short).collect()
    }
}

fn call(id: &str, name: &str) -> Step {
    let call = ToolCall { id: id.into(), name: name.into(), input: Input::Json("{}".into()) };
    Step::Event(ModelEvent::Item(Body::Call(call).into()))
}

fn says(text: &str) -> Step {
    Step::Event(ModelEvent::Item(Item::message(Role::Assistant, text)))
}

fn done(tokens: u64) -> Step {
    let usage = Usage { input_tokens: tokens, ..Usage::default() };
    Step::Event(ModelEvent::Completed { usage: Some(usage), finish: Finish::Done })
}

fn broken() -> Step {
    Step::Fail(ModelError::StreamBroken { cause: "on purpose".into() })
}

fn unreachable() -> ModelError {
    ModelError::Unreachable { url: "URL".into(), cause: "on purpose".into() }
}

fn refused() -> Vec<Step> {
    vec![Step::Refuse(unreachable())]
}

#[tokio::test]
async fn calls_go_out_and_outputs_come_back_until_the_model_answers() {
    let world = World::new([
        vec![says("let me see"), call("c1", "count"), call("c2", "count"), done(5)],
        vec![says("two"), done(7)],
    ]);
    let ended = world.turn().await;
    ended.result.unwrap();
    assert_eq!((ended.answer.as_str(), ended.usage.input_tokens), ("two", 12));
    assert_eq!(
        world.heard(1),
        ["user: go", "assistant: let me see", "call c1", "call c2", "c1 -> ran 1", "c2 -> ran 2"]
    );
}

#[tokio::test]
async fn an_answer_that_never_stops_asking_is_not_heard_out() {
    let mut asks: Vec<_> = (0..MAX_CALLS).map(|number| call(&format!("c{number}"), "count")).collect();
    asks.extend([says("and"), call("more", "count"), Step::Hang]);
    let world = World::new([asks, vec![says("ok"), done(0)]]);
    let ended = world.turn().await;
    assert_eq!((ended.answer.as_str(), world.ran.load(Ordering::SeqCst)), ("ok", MAX_CALLS));
    assert!(!world.heard(1).contains(&"call more".to_owned()));
    let warned = |event: &Event| matches!(event, Event::Warning { message } if message.contains("128 calls"));
    assert_eq!(world.watcher.events().iter().filter(|event| warned(event)).count(), 1);
}

#[tokio::test]
async fn what_was_said_before_a_limit_stays_said() {
    let cut = ModelError::Cut { reason: "length".into() };
    let unending = ModelError::Unending { after: Duration::from_mins(30) };
    for error in [cut, unending] {
        let world = World::new([vec![says("half an ans"), Step::Fail(error)]]);
        let ended = world.turn().await;
        assert_eq!((ended.answer.as_str(), world.retries()), ("half an ans", vec![]));
        ended.result.unwrap_err();
    }
}

#[tokio::test]
async fn a_call_starts_while_the_stream_goes_on() {
    let world = World::new([]);
    let steps = vec![call("c1", "count"), Step::AfterCalls(Arc::clone(&world.ran), 1), done(0)];
    world.model.answers.lock().unwrap().extend([steps, vec![says("ok"), done(0)]]);
    assert_eq!(world.turn().await.answer, "ok");
}

#[tokio::test(start_paused = true)]
async fn a_remark_before_a_call_is_never_the_answer() {
    let asks = |last| vec![says("Let me look."), call("c1", "count"), last];
    let no_answer = Event::Warning { message: "the model ended its turn without an answer".into() };
    for (ending, answer) in
        [(vec![done(0)], ""), (vec![says(" \n"), done(0)], ""), (vec![says("one"), says(""), done(0)], "one")]
    {
        let world = World::new([asks(done(0)), ending]);
        let ended = world.turn().await;
        ended.result.unwrap();
        assert_eq!(ended.answer, answer);
        assert_eq!(world.watcher.events().contains(&no_answer), answer.is_empty());
    }
    let world = World::new([asks(broken()), vec![done(0)]]);
    assert_eq!(world.turn().await.answer, "");
}

#[tokio::test]
async fn what_is_not_on_record_is_not_announced() {
    let world = World::new([]);
    let steps = vec![
        says("kept"),
        call("c1", "count"),
        Step::BreakJournal(Arc::clone(&world.journal)),
        says("lost"),
        done(0),
    ];
    world.model.answers.lock().unwrap().push_back(steps);
    assert!(matches!(world.turn().await.result, Err(AgentError::Journal(_))));
    let events = world.watcher.events();
    let messages: Vec<_> = events.iter().filter(|event| matches!(event, Event::Message { .. })).collect();
    assert_eq!(messages, [&Event::Message { text: "kept".into() }]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_after_a_call_never_runs_it_twice() {
    let world = World::new([
        vec![call("c1", "count"), says("half a thought"), broken()],
        vec![says("done"), done(0)],
    ]);
    let ended = world.turn().await;
    ended.result.unwrap();
    assert_eq!(world.ran.load(Ordering::SeqCst), 1);
    assert_eq!(world.heard(1), ["user: go", "call c1", "c1 -> ran 1"]);
    assert_eq!(world.retries().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_keeps_breaking_ends_the_turn_with_its_reason() {
    let world = World::new([vec![broken()], vec![broken()], vec![broken()]]);
    let error = world.turn().await.result.unwrap_err();
    assert_eq!(
        error.to_string(),
        "the answer broke off: on purpose; check the server and the connection to it"
    );
}

#[tokio::test]
async fn what_would_fail_again_is_not_tried_again() {
    let refused = ModelError::InvalidRequest { status: 400, message: "no".into() };
    let world = World::new([vec![Step::Fail(refused.clone())]]);
    assert!(matches!(world.turn().await.result, Err(AgentError::Model(error)) if error == refused));
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_leaves_every_call_with_its_output() {
    let world = World::new([vec![call("c1", "hang"), call("c2", "count"), Step::Hang]]);
    let interrupt = async {
        tokio::task::yield_now().await;
        world.stop.stop(Reason::Interrupted);
    };
    let (ended, ()) = tokio::join!(world.turn(), interrupt);
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::Interrupted))));
    assert_eq!(world.ran.load(Ordering::SeqCst), 0, "a waiting call must not start");
    let outputs = world.journal.lines().into_iter().filter(|line| line["type"] == "outputs");
    assert_eq!(
        outputs.map(|line| line["payload"]["calls"].clone()).collect::<Vec<_>>(),
        [json!(["c1", "c2"])]
    );
}

#[tokio::test]
async fn a_turn_ends_when_its_tokens_are_used() {
    let world = World::new([vec![call("c1", "count"), done(1000)]]);
    let ended = world.turn().await;
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::TokenLimit))));
}

#[tokio::test]
async fn tokens_that_no_server_reports_are_estimated() {
    let silent = || Step::Event(ModelEvent::Completed { usage: None, finish: Finish::Done });
    let asks = |id: &str| vec![says(&"word ".repeat(300)), call(id, "count"), silent()];
    let world = World::new([asks("c1"), asks("c2")]);
    let ended = world.turn().await;
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::TokenLimit))));
    assert_eq!((world.requests(), ended.usage), (2, Usage::default()));
}

#[tokio::test]
async fn an_answer_without_end_is_stopped_by_the_token_limit() {
    for piece in [ModelEvent::TextDelta, ModelEvent::ReasoningDelta, ModelEvent::CallDelta] {
        let pieces = (0..9).map(|_| Step::Event(piece("word ".repeat(100))));
        let world = World::new([pieces.chain([Step::Hang]).collect()]);
        assert!(matches!(world.turn().await.result, Err(AgentError::Stopped(Reason::TokenLimit))));
    }
}

#[tokio::test]
async fn a_model_that_repeats_what_fails_is_told_and_then_stopped() {
    let world = World::new((0..9).map(|id| vec![call(&format!("c{id}"), "nope"), done(1)]));
    let ended = world.turn().await;
    assert!(matches!(ended.result, Err(AgentError::Stopped(Reason::Looping))));
    let (second, third) = (world.heard(2).pop().unwrap(), world.heard(3).pop().unwrap());
    assert!(second.contains("2 times in a row") && !second.contains("is ended"), "{second}");
    assert!(third.contains("3 times in a row") && third.contains("is ended"), "{third}");
    let why = "`nope` was called again and failed again, 8 times, and nothing else came of the turn";
    assert!(world.watcher.events().contains(&Event::Warning { message: why.into() }));
}

#[tokio::test]
async fn what_was_refused_is_listed_and_what_was_allowed_is_not() {
    let answers = || [vec![call("c1", "count"), done(0)], vec![says("no"), done(0)]];
    let world = World { sandbox: SandboxMode::ReadOnly, ..World::new(answers()) };
    let refusals = world.turn().await.refusals;
    assert_eq!(refusals.len(), 1);
    assert!(!refusals[0].made_up_for);
    assert_eq!(
        refusals[0].reason,
        "writing is not allowed in a read-only sandbox; rejected by user approval settings"
    );
    assert_eq!(World::new(answers()).turn().await.refusals, []);
}
