//! The thread on which the agent works. Nothing that the terminal does can slow it.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError, mpsc as ready},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use tokio::{runtime::Builder, sync::mpsc};
use windlass::{
    Agent, AgentBuilder, BuildError, Event, Input, Reason, SpecKind, Stop, ToolCall, shell_quote,
};

use crate::{
    event_queue::{EventQueue, SessionMessage},
    prompt_images::{PromptContent, load_content},
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
    current: Arc<Mutex<Stop>>,
    thread: JoinHandle<()>,
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
        let current = Arc::new(Mutex::new(Stop::default()));
        let (send, built) = ready::channel();
        let worker = WorkerThread { orders: received, current: Arc::clone(&current), queue, place };
        let thread = thread::Builder::new()
            .name("windlass-agent".to_owned())
            .spawn(move || worker.run(builder, &send))
            .map_err(WorkerError::Thread)?;
        built.recv().map_err(|_| WorkerError::Ended)??;
        Ok(Self { orders, current, thread })
    }

    /// Sends an order. Returns false if the thread has ended.
    pub(crate) fn send(&self, order: WorkOrder) -> bool {
        self.orders.send(order).is_ok()
    }

    /// Stops the current order.
    pub(crate) fn cancel(&self) {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).stop(Reason::Interrupted);
    }

    /// Stops everything and waits for the end, up to a limit.
    pub(crate) fn finish(self, limit: Duration) {
        self.cancel();
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
    current: Arc<Mutex<Stop>>,
    queue: Arc<EventQueue>,
    place: TurnPlace,
}

impl WorkerThread {
    fn run(mut self, builder: AgentBuilder, built: &ready::Sender<Result<(), WorkerError>>) {
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
            let _waits = built.send(Ok(()));
            while let Some(order) = self.orders.recv().await {
                let stop = Stop::default();
                *self.current.lock().unwrap_or_else(PoisonError::into_inner) = stop.clone();
                match order {
                    WorkOrder::Turn(text) => self.run_turn(&mut agent, text, &stop).await,
                    WorkOrder::Shell(command) => self.run_command(&agent, &command, &stop).await,
                }
                self.queue.push(SessionMessage::Idle);
            }
            agent.toolbox().sandbox.close().await;
        });
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
