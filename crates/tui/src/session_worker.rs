//! The thread on which the agent works. Nothing that the terminal does can slow it.

use std::{
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc as ready},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{
    runtime::{Builder, Handle},
    sync::mpsc,
};
use windlass::{
    Agent, AgentBuilder, BuildError, CommandSessions, Event, Input, ModelClient, Reason, SpecKind, Stop,
    ToolCall, shell_quote,
};

use crate::{
    event_queue::{EventQueue, SessionMessage},
    prompt_images::{PromptContent, load_content},
    settings::SessionSettings,
};

/// Names of tools that run a command line, with the parameter that takes it.
const SHELL_TOOLS: [(&str, &str); 2] = [("shell_command", "command"), ("exec_command", "cmd")];

/// Work for the agent.
#[derive(Debug)]
pub(crate) enum WorkOrder {
    /// A turn.
    Turn(String),
    /// A command of the person, through the same pipeline as a call of the model.
    Shell(String),
    /// A shorter conversation. The text says what to keep; it may be empty.
    Compact(String),
    /// Other settings.
    Rebuild(Box<AgentRebuild>),
    /// Give the session up until the next order, which must be a `Rebuild`. Others can then write
    /// its file.
    Release(ready::Sender<()>),
}

/// Replaces the agent by one with other settings that goes on with the same session.
pub(crate) struct AgentRebuild {
    pub(crate) settings: SessionSettings,
    pub(crate) builder: AgentBuilder,
    /// The agent with the present settings, if the other one cannot be built.
    pub(crate) former: AgentBuilder,
    /// The model stays the same, with its connection.
    pub(crate) keeps_model: bool,
}

impl fmt::Debug for AgentRebuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRebuild").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Facts that a message is read by: where its files are, and whether its model takes images.
#[derive(Debug)]
pub(crate) struct TurnPlace {
    pub(crate) cwd: PathBuf,
    pub(crate) model: String,
}

/// The agent on its thread.
#[derive(Debug)]
pub(crate) struct SessionWorker {
    orders: mpsc::UnboundedSender<WorkOrder>,
    stopper: WorkerStopper,
    runtime: Handle,
    thread: JoinHandle<()>,
}

/// Stops the agent, from any thread.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkerStopper {
    current: Arc<Mutex<Stop>>,
    /// Stops everything.
    ending: Stop,
    /// Stopped when the thread has ended.
    ended: Stop,
}

impl WorkerStopper {
    /// Stops everything. The thread ends when its commands have.
    pub(crate) fn stop(&self, reason: Reason) {
        self.ending.stop(reason);
        self.current().stop(reason);
    }

    /// Returns true if the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.reason().is_some()
    }

    fn cancel(&self) {
        self.current().stop(Reason::Interrupted);
    }

    fn current(&self) -> MutexGuard<'_, Stop> {
        // A stop is whole at any time.
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reason why the agent does not work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkerError {
    #[error(transparent)]
    Build(#[from] BuildError),
    #[error("cannot start the thread of the agent")]
    Thread(#[source] io::Error),
    #[error("the thread of the agent has ended")]
    Ended,
}

impl SessionWorker {
    /// Starts the thread, and waits until the agent is built.
    pub(crate) fn start(
        builder: AgentBuilder,
        queue: Arc<EventQueue>,
        place: TurnPlace,
    ) -> Result<Self, WorkerError> {
        // At most one order at a time: the screen sends the next one when the agent is idle.
        let (orders, received) = mpsc::unbounded_channel();
        let stopper = WorkerStopper::default();
        let (send, built) = ready::channel();
        let worker = WorkerThread { orders: received, stopper: stopper.clone(), queue, place };
        let thread = thread::Builder::new()
            .name("windlass-agent".to_owned())
            .spawn(move || worker.run(builder, &send))
            .map_err(WorkerError::Thread)?;
        let runtime = built.recv().map_err(|_| WorkerError::Ended)??;
        Ok(Self { orders, stopper, runtime, thread })
    }

    /// Sends an order. Returns false if the thread has ended.
    pub(crate) fn send(&self, order: WorkOrder) -> bool {
        self.orders.send(order).is_ok()
    }

    /// Makes the agent give up the session until it is rebuilt. Returns false if there is no agent.
    pub(crate) fn release(&self) -> bool {
        let (released, waits) = ready::channel();
        self.send(WorkOrder::Release(released)) && waits.recv().is_ok()
    }

    /// Ends a command that runs across calls, also while a turn runs.
    pub(crate) fn end_command(&self, commands: CommandSessions, id: u32) {
        self.runtime.spawn(async move { commands.end(id).await });
    }

    /// Stops the current order.
    pub(crate) fn cancel(&self) {
        self.stopper.cancel();
    }

    /// Returns a handle that stops the agent.
    pub(crate) fn stopper(&self) -> WorkerStopper {
        self.stopper.clone()
    }

    /// Stops everything and waits for the end, up to a limit.
    pub(crate) fn finish(self, limit: Duration) {
        self.stopper.stop(Reason::Interrupted);
        drop(self.orders);
        let deadline = Instant::now() + limit;
        while !self.thread.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Tells the screen if the thread panics, because no other message would come.
struct PanicReport(Arc<EventQueue>);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if thread::panicking() {
            let message = "the agent has crashed; `windlass resume` goes on with this session".to_owned();
            self.0.push(SessionMessage::Event(Box::new(Event::Warning { message })));
            self.0.push(SessionMessage::Idle);
        }
    }
}

struct WorkerThread {
    orders: mpsc::UnboundedReceiver<WorkOrder>,
    stopper: WorkerStopper,
    queue: Arc<EventQueue>,
    place: TurnPlace,
}

/// Reports the end of the thread, also after a panic.
struct EndReport(Stop);

impl Drop for EndReport {
    fn drop(&mut self) {
        self.0.stop(Reason::Interrupted);
    }
}

impl WorkerThread {
    fn run(mut self, builder: AgentBuilder, built: &ready::Sender<Result<Handle, WorkerError>>) {
        let _ended = EndReport(self.stopper.ended.clone());
        let _report = PanicReport(Arc::clone(&self.queue));
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            // The receiver waits for this message.
            Err(error) => return drop(built.send(Err(WorkerError::Thread(error)))),
        };
        runtime.block_on(async {
            let mut agent = match builder.build() {
                Ok(agent) => agent,
                Err(error) => return drop(built.send(Err(error.into()))),
            };
            let _waits = built.send(Ok(Handle::current()));
            while let Some(order) = self.next_order().await {
                let stop = Stop::default();
                *self.stopper.current() = stop.clone();
                if self.stopper.ending.reason().is_some() {
                    break;
                }
                match order {
                    WorkOrder::Turn(text) => self.run_turn(&mut agent, text, &stop).await,
                    WorkOrder::Shell(command) => self.run_command(&agent, &command, &stop).await,
                    WorkOrder::Compact(wish) => self.compact(&mut agent, &wish, &stop).await,
                    WorkOrder::Rebuild(rebuild) => match self.rebuild(agent, *rebuild) {
                        Some(next) => agent = next,
                        None => return,
                    },
                    WorkOrder::Release(released) => match self.release(agent, &released).await {
                        Some(next) => agent = next,
                        None => return,
                    },
                }
                self.queue.push(SessionMessage::Idle);
            }
            agent.end_session("prompt_input_exit").await;
            agent.toolbox().sandbox.close().await;
        });
    }

    async fn next_order(&mut self) -> Option<WorkOrder> {
        tokio::select! {
            order = self.orders.recv() => order,
            _ending = self.stopper.ending.stopped() => None,
        }
    }

    /// Gives up the session until the next order.
    async fn release(&mut self, agent: Agent, released: &ready::Sender<()>) -> Option<Agent> {
        let client = Arc::clone(agent.model_client());
        drop(agent);
        let _waits = released.send(());
        match self.next_order().await {
            Some(WorkOrder::Rebuild(rebuild)) => self.build(client, *rebuild),
            // The session ends.
            _ => None,
        }
    }

    /// Replaces the agent between two turns. Returns `None` if there is no agent any more.
    fn rebuild(&mut self, agent: Agent, rebuild: AgentRebuild) -> Option<Agent> {
        let client = Arc::clone(agent.model_client());
        // The file of a session has one writer.
        drop(agent);
        self.build(client, rebuild)
    }

    fn build(&mut self, client: Arc<dyn ModelClient>, rebuild: AgentRebuild) -> Option<Agent> {
        let AgentRebuild { settings, mut builder, former, keeps_model } = rebuild;
        if keeps_model {
            builder = builder.model(Arc::clone(&client));
        }
        let (agent, changed) = match builder.build() {
            Ok(agent) => (Some(agent), Ok(settings)),
            Err(error) => (former.model(client).build().ok(), Err(error.to_string())),
        };
        if let Ok(settings) = &changed {
            self.place.model.clone_from(&settings.model);
        }
        self.queue.push(SessionMessage::Changed(Box::new(changed)));
        if agent.is_none() {
            let message = "there is no agent any more; leave, and go on with `windlass resume`".to_owned();
            self.queue.push(SessionMessage::Event(Box::new(Event::Warning { message })));
            self.queue.push(SessionMessage::Idle);
        }
        agent
    }

    async fn run_turn(&self, agent: &mut Agent, text: String, stop: &Stop) {
        let warn = |message| self.queue.push(SessionMessage::Event(Box::new(Event::Warning { message })));
        match load_content(text, &self.place.cwd, &self.place.model) {
            Ok(PromptContent { content, warning }) => {
                warning.into_iter().for_each(warn);
                // Events tell how it ends.
                drop(agent.run(content, stop).await);
            }
            Err(problem) => warn(format!("{problem}; the message was not sent (Up brings it back)")),
        }
    }

    async fn compact(&self, agent: &mut Agent, wish: &str, stop: &Stop) {
        let wish = Some(wish).filter(|wish| !wish.is_empty());
        // An event tells how it ends.
        if let Err(error) = agent.compact(wish, stop).await {
            let message = format!("the conversation stays as it was: {error}");
            self.queue.push(SessionMessage::Event(Box::new(Event::Warning { message })));
        }
    }

    async fn run_command(&self, agent: &Agent, command: &str, stop: &Stop) {
        let registry = &agent.toolbox().registry;
        let found = SHELL_TOOLS.into_iter().find(|(name, _)| {
            registry.resolve(name).is_some_and(|(tool, _)| !matches!(tool.spec.kind, SpecKind::Custom { .. }))
        });
        let Some((name, parameter)) = found else {
            let message = format!("this session has no tool that runs `{}`", shell_quote(command));
            let event = Event::Warning { message };
            return self.queue.push(SessionMessage::Event(Box::new(event)));
        };
        let input = Input::Json(format!("{{\"{parameter}\": {}}}", json_string(command)));
        let call = ToolCall { id: "person".into(), name: name.into(), input };
        // Events tell how it ends.
        let _finished = agent.toolbox().call(call, stop).await;
    }
}

/// Returns a text as a JSON string.
fn json_string(text: &str) -> String {
    let mut json = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
