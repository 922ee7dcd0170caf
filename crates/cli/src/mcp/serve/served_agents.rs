//! The tools `windlass` and `windlass-reply`: whole agents for clients.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serde::Deserialize;
use serde_json::{Map, Value, json};
use windlass::{
    AgentError, CallWords, Clean, Content, Event, EventSink, Reason, Stop, ThreadId, first_line,
    mcp::{
        ToolHints,
        definition::RemoteToolDefinition,
        pool::RemoteProgress,
        result::{RemoteContent, RemoteResult},
        serve::{ProgressReporter, ServedCall},
    },
    record::Which,
};

use super::{agent_choice::AgentChoice, client_questions::AgentApprover};
use crate::{args::CommonOptions, problem::chain, setup::ProgramSetup};

/// Name of the tool that starts an agent.
pub(super) const START_TOOL: &str = "windlass";
/// Name of the tool that continues one.
pub(super) const REPLY_TOOL: &str = "windlass-reply";
/// Maximum number of conversations that can be continued.
const MAX_THREADS: usize = 256;

/// The agents of clients.
pub(super) struct ServedAgents {
    common: CommonOptions,
    threads: Mutex<HashMap<String, Arc<ServedThread>>>,
}

/// A conversation with its settings. One turn runs at a time.
struct ServedThread {
    choice: AgentChoice,
    turn: tokio::sync::Mutex<()>,
}

/// Arguments of the tool that continues an agent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AgentReply {
    #[serde(rename = "threadId", alias = "conversationId")]
    thread: String,
    prompt: String,
}

impl ServedAgents {
    /// Creates the tools, for agents with the options of this program.
    pub(super) fn new(common: CommonOptions) -> Self {
        Self { common, threads: Mutex::default() }
    }

    /// Returns the definitions of the tools.
    pub(super) fn definitions() -> [RemoteToolDefinition; 2] {
        let reply = json!({
            "type": "object",
            "properties": {
                "threadId": {"type": "string", "description": "The `threadId` that the tool `windlass` returned"},
                "prompt": {"type": "string", "description": "The next message"},
            },
            "required": ["threadId", "prompt"],
            "additionalProperties": false,
        });
        let start = "Give a task to a Windlass agent, and wait until it has finished. It works with its own model and \
                     tools in the directory served, in the sandbox of the server.";
        let more =
            "Send another message to an agent that `windlass` has started here, and wait for its answer.";
        [definition(START_TOOL, start, &AgentChoice::schema()), definition(REPLY_TOOL, more, &reply)]
    }

    /// Runs one turn of an agent.
    pub(super) async fn call(
        &self,
        call: ServedCall,
        ceiling: &ProgramSetup,
        roots: Option<&[PathBuf]>,
    ) -> RemoteResult {
        let arguments = Value::Object(call.arguments.clone());
        let turn = if call.tool == START_TOOL { self.start(arguments) } else { self.reply(arguments) };
        let (thread, id, prompt) = match turn {
            Ok(turn) => turn,
            Err(problem) => return RemoteResult::failed(problem),
        };
        let Ok(_turn) = thread.turn.try_lock() else {
            return RemoteResult::failed("a turn of this conversation is running");
        };
        let setup = match thread.choice.setup(&self.common, ceiling, roots) {
            Ok(setup) => setup,
            Err(problem) => return RemoteResult::failed(problem),
        };
        match run(&setup, id, prompt, call).await {
            Ok((id, answer)) => {
                let failed = answer.is_err();
                let text = answer.unwrap_or_else(|error| chain(&error));
                self.keep(&id, &thread);
                result(&id, text, failed)
            }
            Err(problem) => RemoteResult::failed(problem),
        }
    }

    fn start(&self, arguments: Value) -> Result<(Arc<ServedThread>, Option<ThreadId>, String), String> {
        let choice: AgentChoice = serde_json::from_value(arguments).map_err(|error| error.to_string())?;
        if self.threads.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAX_THREADS {
            return Err(format!("this server has started {MAX_THREADS} agents; restart it"));
        }
        let prompt = choice.prompt.clone();
        Ok((Arc::new(ServedThread { choice, turn: tokio::sync::Mutex::default() }), None, prompt))
    }

    fn reply(&self, arguments: Value) -> Result<(Arc<ServedThread>, Option<ThreadId>, String), String> {
        let reply: AgentReply = serde_json::from_value(arguments).map_err(|error| error.to_string())?;
        let threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = threads.get(&reply.thread).cloned();
        // Earlier sessions may have had other limits.
        let thread = thread.ok_or("`threadId` is none of the conversations that this server has started")?;
        Ok((thread, Some(reply.thread.as_str().to_owned().into()), reply.prompt))
    }

    fn keep(&self, id: &ThreadId, thread: &Arc<ServedThread>) {
        let mut threads = self.threads.lock().unwrap_or_else(PoisonError::into_inner);
        threads.entry(id.to_string()).or_insert_with(|| Arc::clone(thread));
    }
}

/// Runs a turn to its end, or until the client cancels it.
async fn run(
    setup: &ProgramSetup,
    resumed: Option<ThreadId>,
    prompt: String,
    call: ServedCall,
) -> Result<(ThreadId, Result<String, AgentError>), String> {
    let machine = setup.machine().map_err(|problem| problem.message)?;
    let builder = match call.elicitor {
        Some(elicitor) => {
            let approver = Arc::new(AgentApprover::new(Arc::clone(&elicitor), &setup.cwd));
            setup.attended_agent(machine).map(|builder| builder.approver(approver).elicitor(elicitor))
        }
        None => setup.agent(machine),
    };
    let builder = builder.map_err(|problem| problem.message)?;
    let events = AgentProgress { progress: call.progress, steps: AtomicU64::new(0) };
    let mut builder = builder.events(Arc::new(events)).single_turn();
    if let Some(thread) = resumed {
        builder = builder.resume(Which::Id(thread));
    }
    let mut agent = builder.build().map_err(|error| setup.explain(&error).message)?;
    let (stop, thread) = (Stop::default(), agent.thread().clone());
    let mut turn = std::pin::pin!(agent.run(vec![Content::Text(prompt)], &stop));
    let report = tokio::select! {
        report = &mut turn => report,
        () = call.cancel.cancelled() => {
            stop.stop(Reason::Interrupted);
            turn.await
        }
    };
    Ok((thread, report.end))
}

/// Sends the steps of an agent to its client as progress.
struct AgentProgress {
    progress: ProgressReporter,
    steps: AtomicU64,
}

impl EventSink for AgentProgress {
    fn emit(&self, event: &Clean<Event>) {
        let message = match &**event {
            Event::Message { text } => first_line(text),
            Event::CallStarted { call, effects } => {
                CallWords::new(call, effects, &|path| path.display().to_string()).to_string()
            }
            Event::Warning { message } => first_line(message),
            _ => return,
        };
        let steps = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        #[expect(clippy::cast_precision_loss, reason = "a turn has fewer steps than 2^52")]
        self.progress.report(RemoteProgress { progress: steps as f64, total: None, message: Some(message) });
    }
}

fn result(thread: &ThreadId, text: String, is_error: bool) -> RemoteResult {
    let structured = json!({"threadId": thread.to_string(), "content": text});
    let content = vec![RemoteContent::Text { text }];
    RemoteResult { content, structured_content: Some(structured), is_error }
}

fn definition(name: &str, description: &str, input: &Value) -> RemoteToolDefinition {
    let output = json!({
        "type": "object",
        "properties": {
            "threadId": {"type": "string", "description": "Id of the conversation, for `windlass-reply`"},
            "content": {"type": "string", "description": "The answer of the agent"},
        },
        "required": ["threadId", "content"],
    });
    let object = |value: &Value| -> Map<String, Value> { value.as_object().cloned().unwrap_or_default() };
    RemoteToolDefinition {
        name: name.to_owned(),
        title: None,
        description: Some(description.to_owned()),
        input_schema: object(input),
        output_schema: Some(object(&output)),
        hints: ToolHints {
            read_only: Some(false),
            destructive: Some(true),
            idempotent: None,
            open_world: Some(true),
        },
    }
}
