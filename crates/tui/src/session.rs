//! The loop of an interactive session: keys and events in, pictures out.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use windlass::{AgentBuilder, BuildError, ThreadId, record::Which};

use crate::{
    app::{App, AppAction, SessionList},
    approver::QueueApprover,
    composer::Composer,
    event_queue::{EventQueue, QueueSink, SessionMessage},
    file_index::FileIndex,
    render::{Theme, status::SessionStatus},
    session_worker::{AgentRebuild, SessionWorker, WorkOrder, WorkerError},
    settings::{AgentSource, SessionLinks, SessionSettings, approval_list, model_list},
    terminal::{Screen, TerminalEvent, TerminalEvents},
};

/// At most 60 pictures in a second.
const FRAME: Duration = Duration::from_millis(17);

/// Time that the agent may take to end when the person leaves.
const MAX_END_TIME: Duration = Duration::from_secs(5);

/// More than the kernel needs to stop the process.
const STOP_TIME: Duration = Duration::from_millis(50);

/// The part of the terminal that shows the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// Below the earlier output of the terminal. Finished text becomes part of its scrollback.
    Inline,
    /// On the alternate screen.
    Fullscreen,
}

/// Facts about the session, for the screen.
#[derive(Debug, Clone)]
pub struct SessionInfo {
    /// The working directory.
    pub cwd: PathBuf,
    /// The status line. Tokens and processes are counted by the session.
    pub status: SessionStatus,
    /// The colours.
    pub theme: Theme,
    /// The settings that can be changed.
    pub settings: SessionSettings,
}

/// Keeps what the person wrote. Implemented by the program, called by the session.
pub trait PromptHistory {
    /// Returns earlier messages, oldest first.
    fn load(&self) -> Vec<String>;
    /// Adds a message. The error is one line for a person.
    fn append(&self, text: &str) -> Result<(), String>;
}

/// Runs commands of the program while the session lends it the terminal. Implemented by the
/// program, called by the session for commands such as `/undo`.
pub trait ProgramCommands: Sync {
    /// Runs a command with these arguments. It may print and ask.
    fn run(&self, arguments: &[String]);
}

/// An interactive session that has not started.
pub struct InteractiveSession<'a> {
    /// The agent, without event sink and approver.
    pub builder: AgentBuilder,
    /// Makes agents with other settings.
    pub agents: &'a dyn AgentSource,
    /// Facts for the status line.
    pub info: SessionInfo,
    /// The part of the terminal that shows it.
    pub display: Display,
    /// The first message.
    pub prompt: Option<String>,
    /// Keeps messages.
    pub history: &'a dyn PromptHistory,
    /// Runs commands of the program.
    pub commands: &'a dyn ProgramCommands,
}

impl std::fmt::Debug for InteractiveSession<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InteractiveSession").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The end of a session.
#[derive(Debug)]
pub struct SessionEnd {
    /// Its id.
    pub thread: Option<ThreadId>,
    /// A signal ended it, and not the person.
    pub by_signal: bool,
}

/// The reason why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum TuiError {
    /// The agent cannot be built.
    #[error(transparent)]
    Build(BuildError),
    /// The terminal cannot be used.
    #[error("cannot use the terminal")]
    Terminal(#[from] io::Error),
    /// There is no thread for the agent.
    #[error("cannot start the agent")]
    Worker,
}

impl From<WorkerError> for TuiError {
    fn from(error: WorkerError) -> Self {
        match error {
            WorkerError::Build(error) => Self::Build(error),
            WorkerError::Thread(error) => Self::Terminal(error),
            WorkerError::Ended => Self::Worker,
        }
    }
}

impl InteractiveSession<'_> {
    /// Runs the session until the person leaves. The terminal is restored in any case.
    pub fn run(self) -> Result<SessionEnd, TuiError> {
        let queue = Arc::new(EventQueue::default());
        let links = SessionLinks::default();
        let worker = SessionWorker::start(attached(self.builder, &links, &queue), Arc::clone(&queue))?;
        probe_mechanism(self.agents, Arc::clone(&queue));
        let composer = Composer::new(self.history.load(), FileIndex::new(self.info.cwd.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let screen = Screen::open(self.display)?;
        let mut running = SessionLoop {
            app: App::new(self.info, composer),
            screen,
            worker,
            links,
            agents: self.agents,
            queue,
            history: self.history,
            commands: self.commands,
            events: None,
            dirty: true,
            leaving: None,
        };
        running.app.share(running.links.clone(), self.agents.secrets());
        if let Some(prompt) = self.prompt {
            running.app.submit(prompt, Instant::now());
        }
        let result = runtime.block_on(running.run());
        let SessionLoop { mut app, mut screen, worker, leaving, .. } = running;
        worker.finish(MAX_END_TIME);
        if leaving == Some(Leaving::Person) {
            let finished = app.take_finished();
            screen.draw(finished, 1, |_frame, _area| {})?;
        }
        drop(screen);
        result?;
        Ok(SessionEnd { thread: app.thread().cloned(), by_signal: leaving == Some(Leaving::Signal) })
    }
}

/// Connects an agent with the screen.
fn attached(builder: AgentBuilder, links: &SessionLinks, queue: &Arc<EventQueue>) -> AgentBuilder {
    links
        .share(builder)
        .events(Arc::new(QueueSink(Arc::clone(queue))))
        .approver(Arc::new(QueueApprover(Arc::clone(queue))))
}

/// Finds out what confines commands, on a thread of its own. If there is none, the status line does
/// without it.
fn probe_mechanism(agents: &dyn AgentSource, queue: Arc<EventQueue>) {
    let probe = agents.mechanism_probe();
    let run = move || queue.push(SessionMessage::Mechanism(probe()));
    let _thread = std::thread::Builder::new().name("windlass-probe".to_owned()).spawn(run);
}

/// The cause of the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    Person,
    Signal,
}

struct SessionLoop<'a> {
    app: App,
    screen: Screen,
    worker: SessionWorker,
    links: SessionLinks,
    agents: &'a dyn AgentSource,
    queue: Arc<EventQueue>,
    history: &'a dyn PromptHistory,
    commands: &'a dyn ProgramCommands,
    /// Opened when there is a runtime.
    events: Option<TerminalEvents>,
    dirty: bool,
    leaving: Option<Leaving>,
}

impl SessionLoop<'_> {
    async fn run(&mut self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        self.events = Some(TerminalEvents::open());
        let mut drawn = None::<Instant>;
        self.act();
        while self.leaving.is_none() {
            let now = Instant::now();
            if self.dirty && drawn.is_none_or(|drawn| now.duration_since(drawn) >= FRAME) {
                self.draw(now)?;
                drawn = Some(now);
            }
            let next_frame = drawn.filter(|_| self.dirty).map(|drawn| drawn + FRAME);
            let wake = next_frame.or_else(|| self.app.next_change(now));
            let sleep = tokio::time::sleep(wake.map_or(Duration::ZERO, |wake| wake - now));
            tokio::select! {
                event = next_event(&mut self.events) => match event {
                    Some(event) => self.on_terminal(event?)?,
                    None => self.leaving = Some(Leaving::Signal),
                },
                () = self.queue.changed() => {
                    self.on_messages();
                }
                () = sleep, if wake.is_some() => {
                    self.app.on_tick();
                    self.dirty = true;
                }
                _ = terminate.recv() => self.leaving = Some(Leaving::Signal),
                _ = hang_up.recv() => self.leaving = Some(Leaving::Signal),
                _ = interrupt.recv() => self.leaving = Some(Leaving::Signal),
            }
            self.act();
        }
        Ok(())
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        let width = self.screen.width();
        self.app.set_width(width);
        let (finished, height) = (self.app.take_finished(), self.app.height(width, now));
        self.dirty = false;
        if self.app.take_bell() {
            Screen::ring()?;
        }
        self.screen.draw(finished, height, |frame, area| self.app.view(frame, area, now))
    }

    fn on_messages(&mut self) {
        let now = Instant::now();
        for message in self.queue.drain() {
            if matches!(message, SessionMessage::Idle) {
                self.app.set_branch(self.agents.branch());
            }
            self.app.on_message(message, now);
        }
        self.dirty = true;
    }

    fn on_terminal(&mut self, event: TerminalEvent) -> io::Result<()> {
        self.dirty = true;
        match event {
            TerminalEvent::Key(key) => self.app.on_key(&key, Instant::now()),
            TerminalEvent::Paste(text) => self.app.on_paste(&text),
            TerminalEvent::Resized => self.with_screen(Screen::resize)?,
        }
        Ok(())
    }

    /// Does something with the screen while nothing else reads from the terminal.
    fn with_screen<T>(&mut self, work: impl FnOnce(&mut Screen) -> T) -> T {
        match &mut self.events {
            Some(events) => events.paused(|| work(&mut self.screen)),
            None => work(&mut self.screen),
        }
    }

    /// Does what the app wants done.
    fn act(&mut self) {
        for text in self.app.take_submitted() {
            if let Err(problem) = self.history.append(&text) {
                self.app.note(&problem);
            }
        }
        for action in self.app.take_actions() {
            let done = match action {
                AppAction::Prompt(text) => self.order(WorkOrder::Turn(text)),
                AppAction::Shell(command) => self.order(WorkOrder::Shell(command)),
                AppAction::Cancel => {
                    self.worker.cancel();
                    Ok(())
                }
                AppAction::Program(arguments) => self.run_program(&arguments),
                AppAction::Change(settings) => self.change(settings),
                AppAction::List(list) => {
                    self.list(list);
                    Ok(())
                }
                AppAction::RevokeRule(id) => self.revoke_rule(id),
                AppAction::EndCommand(id) => {
                    self.worker.end_command(self.links.commands.clone(), id);
                    Ok(())
                }
                AppAction::Suspend => self.suspend(),
                AppAction::Quit => {
                    self.leaving = Some(Leaving::Person);
                    Ok(())
                }
            };
            if let Err(error) = done {
                self.app.note(&error.to_string());
            }
            self.dirty = true;
        }
    }

    fn order(&mut self, order: WorkOrder) -> io::Result<()> {
        if self.worker.send(order) {
            return Ok(());
        }
        self.queue.push(SessionMessage::Idle);
        Err(io::Error::other("the agent has ended; leave, and go on with `windlass resume`"))
    }

    /// Replaces the agent by one with these settings. The screen learns the result as a message.
    fn change(&mut self, settings: SessionSettings) -> io::Result<()> {
        let now = self.app.settings();
        let keeps_model = (&settings.model, &settings.provider) == (&now.model, &now.provider);
        let thread = self.app.thread().cloned();
        let built = thread.ok_or_else(|| "the session has not begun".to_owned()).and_then(|thread| {
            let agent = |settings: &SessionSettings| {
                let builder = self.agents.agent(settings)?.resume(Which::Id(thread.clone()));
                Ok::<_, String>(attached(builder, &self.links, &self.queue))
            };
            Ok((agent(&settings)?, agent(now)?))
        });
        match built {
            Ok((builder, former)) => {
                let rebuild = AgentRebuild { settings, builder, former, keeps_model };
                self.order(WorkOrder::Rebuild(Box::new(rebuild)))
            }
            Err(problem) => {
                self.queue.push(SessionMessage::Changed(Box::new(Err(problem))));
                self.queue.push(SessionMessage::Idle);
                Ok(())
            }
        }
    }

    fn list(&mut self, list: SessionList) {
        let shown = match list {
            SessionList::Models => Ok(model_list(self.app.settings(), &self.agents.models())),
            SessionList::Approvals => self.agents.rules().map(|rules| {
                approval_list(self.app.settings().approval, &self.links.approvals.list(), &rules)
            }),
            SessionList::Diff => {
                let thread = self.app.thread().cloned();
                let diff = thread.map_or(Ok(String::new()), |thread| self.agents.session_diff(&thread));
                diff.map(|diff| {
                    self.app.show_diff(&diff);
                    String::new()
                })
            }
        };
        match shown {
            Ok(text) if text.is_empty() => {}
            Ok(text) | Err(text) => self.app.note(&text),
        }
    }

    /// Removes a rule, and gives the agent the remaining ones.
    fn revoke_rule(&mut self, id: String) -> io::Result<()> {
        let ran = self.run_program(&["policy".to_owned(), "revoke".to_owned(), id]);
        self.change(self.app.settings().clone()).and(ran)
    }

    fn run_program(&mut self, arguments: &[String]) -> io::Result<()> {
        let commands = self.commands;
        // On a thread of its own, because it may have a runtime of its own.
        let run = || {
            std::thread::scope(|scope| {
                // A panic was reported already.
                let _panicked = scope.spawn(|| commands.run(arguments)).join();
            });
        };
        self.with_screen(|screen| screen.lend(run))
    }

    fn suspend(&mut self) -> io::Result<()> {
        let stop = || {
            let stopped = rustix::process::kill_current_process_group(Signal::TSTP);
            // The kernel may hand the signal to another thread. This one must not switch the
            // terminal back before the process stops.
            std::thread::sleep(STOP_TIME);
            stopped
        };
        self.with_screen(|screen| screen.lend(stop))??;
        Ok(())
    }
}

async fn next_event(events: &mut Option<TerminalEvents>) -> Option<io::Result<TerminalEvent>> {
    events.as_mut()?.next().await
}
