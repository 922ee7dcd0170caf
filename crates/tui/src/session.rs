//! The loop of an interactive session: keys and events in, pictures out.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ratatui_textarea::Key;
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use windlass::{AgentBuilder, BuildError, ThreadId};

use crate::{
    app::{App, AppAction},
    approver::QueueApprover,
    composer::Composer,
    event_queue::{EventQueue, QueueSink},
    file_index::FileIndex,
    render::{Theme, status::SessionStatus},
    session_worker::{SessionWorker, TurnPlace, WorkOrder, WorkerError},
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
    /// Set if the input takes the keys of vi.
    pub vi_keys: bool,
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
        let builder = self
            .builder
            .events(Arc::new(QueueSink(Arc::clone(&queue))))
            .approver(Arc::new(QueueApprover(Arc::clone(&queue))));
        let place = TurnPlace { cwd: self.info.cwd.clone(), model: self.info.status.model.clone() };
        let worker = SessionWorker::start(builder, Arc::clone(&queue), place)?;
        let composer = Composer::new(self.history.load(), FileIndex::new(self.info.cwd.clone()))
            .with_vi_keys(self.info.vi_keys);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let screen = Screen::open(self.display)?;
        let mut running = SessionLoop {
            app: App::new(self.info, composer),
            screen,
            worker,
            queue,
            history: self.history,
            commands: self.commands,
            events: None,
            dirty: true,
            leaving: None,
        };
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
                self.arm_question().await?;
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
                    let now = Instant::now();
                    self.queue.drain().into_iter().for_each(|message| self.app.on_message(message, now));
                    self.dirty = true;
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

    /// Begins the time after which a question that has just been drawn takes keys.
    async fn arm_question(&mut self) -> io::Result<()> {
        if self.app.has_new_question() {
            self.drop_early_keys().await?;
            // What is printed above the question is finished only now.
            self.dirty = true;
        }
        // Not the time at which drawing began: a slow terminal may have taken long.
        self.app.drawn(Instant::now());
        Ok(())
    }

    /// Drops the keys and pasted texts that arrived before a question was visible: they are meant
    /// for something else. Ctrl-C stops the turn in any case.
    async fn drop_early_keys(&mut self) -> io::Result<()> {
        loop {
            // Polled by the task itself, because the stream wakes the one that asked first.
            let event = tokio::select! {
                biased;
                event = next_event(&mut self.events) => event,
                () = std::future::ready(()) => None,
            };
            let Some(event) = event else { return Ok(()) };
            match event? {
                TerminalEvent::Resized => self.with_screen(Screen::resize)?,
                TerminalEvent::Key(key) if key.ctrl && key.key == Key::Char('c') => {
                    self.app.on_key(&key, Instant::now());
                }
                TerminalEvent::Key(_) | TerminalEvent::Paste(_) => {}
            }
        }
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
        if self.worker.send(order) { Ok(()) } else { Err(io::Error::other("the agent has ended")) }
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
