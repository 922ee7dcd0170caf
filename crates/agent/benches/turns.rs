//! Measures the turn loop without a server: the cost of a call beside the work of its tool, early
//! and late in a session, and of a compaction: `cargo bench -p windlass-agent`.

use std::{
    error::Error,
    io::{self, Write},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use serde_json::Value;
use windlass_agent::{Agent, CompactAt, ContextSettings};
use windlass_contract::{
    BoxFuture, Effects, Input, Item, Output, ToolCall,
    item::{Body, Role},
    model::{Finish, ModelClient, ModelError, ModelEvent, ModelInfo, ModelStream, Prompt},
    policy::{ApprovalPolicy, SandboxMode},
    tool::tool,
};
use windlass_runtime::{Policy, Stop};

/// Calls in a long session.
const CALLS: usize = 5000;

/// Size of the output of each call.
const OUTPUT_BYTES: usize = 1000;

/// Asks for one call per answer, and notes when each request came.
struct CallingModel {
    info: ModelInfo,
    calls: usize,
    asked: AtomicUsize,
    times: Mutex<Vec<Instant>>,
}

struct Events(std::vec::IntoIter<ModelEvent>);

impl ModelStream for Events {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<ModelEvent, ModelError>>> {
        let event = self.0.next().map(Ok);
        Box::pin(async { event })
    }
}

impl ModelClient for CallingModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    fn open<'a>(&'a self, prompt: Prompt<'a>) -> BoxFuture<'a, Result<Box<dyn ModelStream>, ModelError>> {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        let item = if prompt.tools.get().is_empty() {
            Item::message(Role::Assistant, "a summary")
        } else if number < self.calls {
            let input = Input::Json(format!("{{\"number\":{number}}}"));
            Body::Call(ToolCall { id: format!("c{number}").as_str().into(), name: "work".into(), input })
                .into()
        } else {
            Item::message(Role::Assistant, "done")
        };
        let completed = ModelEvent::Completed { usage: None, finish: Finish::Done };
        let events = vec![ModelEvent::Item(item), completed];
        Box::pin(async { Ok(Box::new(Events(events.into_iter())) as Box<dyn ModelStream>) })
    }
}

fn agent(calls: usize, home: &std::path::Path) -> Result<(Agent, Arc<CallingModel>), Box<dyn Error>> {
    let info = ModelInfo {
        provider: "bench".into(),
        model: "bench".into(),
        wire: "bench",
        request_retries: 0,
        stream_retries: 0,
        retry_budget: Duration::ZERO,
    };
    let (asked, times) = (AtomicUsize::new(0), Mutex::default());
    let model = Arc::new(CallingModel { info, calls, asked, times });
    let work = tool(
        "work",
        |_: &Value| Effects::none(),
        |arguments: Value, _| async move { Ok(Output::from(format!("{arguments} {}", "x".repeat(OUTPUT_BYTES)))) },
    );
    let policy = Policy {
        cwd: "/".into(),
        approval: ApprovalPolicy::Never,
        sandbox: SandboxMode::DangerFullAccess,
        ..Policy::default()
    };
    let context = ContextSettings { compact_at: Some(CompactAt::Off), ..ContextSettings::default() };
    let agent = Agent::builder()
        .model(Arc::clone(&model) as Arc<dyn ModelClient>)
        .tool(Arc::new(work.description("Works.")))
        .policy(policy)
        .context(context)
        .home(home.to_owned())
        .build()?;
    Ok((agent, model))
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<(), Box<dyn Error>> {
    let home = tempfile::tempdir()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = io::stdout();

    let (mut long, model) = agent(CALLS, home.path())?;
    runtime.block_on(async { long.ask("work").await })?;
    let times = model.times.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let costs: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let early = median(costs[10..110].to_vec());
    let late = median(costs[CALLS - 100..CALLS].to_vec());
    writeln!(out, "a call: {early:.1?} after 10 calls, {late:.1?} after {CALLS}")?;

    let (mut short, _model) = agent(1000, home.path())?;
    runtime.block_on(async { short.ask("work").await })?;
    let began = Instant::now();
    let report = runtime.block_on(async { short.compact(None, &Stop::default()).await })?;
    let took = began.elapsed();
    writeln!(
        out,
        "compaction of 1000 calls with 1 MB of outputs: {took:.1?}, {} to {} tokens ({})",
        report.tokens_before,
        report.tokens_after,
        report.method.name()
    )?;
    Ok(())
}
