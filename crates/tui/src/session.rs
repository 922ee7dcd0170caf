//! The loop of an interactive session: keys and events in, pictures out.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use windlass::{AgentBuilder, BuildError, ThreadId};

use crate::{
    app::{App, AppAction},
    approver::QueueApprover,
    composer::Composer,
    earlier::EarlierEntry,
    end_watch::{EndProcess, EndWatch},
    event_queue::{EventQueue, QueueSink},
    external_editor::ExternalEditor,
    file_index::FileIndex,
    frame_clock::FrameClock,
    notifications::NotificationSettings,
    plain_session::PlainLoop,
    render::{Theme, status::SessionStatus},
    session_worker::{SessionWorker, WorkOrder, WorkerError},
    terminal::{self, Screen, TerminalEvent, TerminalEvents},
};

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
    /// Facts for the status line.
    pub info: SessionInfo,
    /// The part of the terminal that shows it.
    pub display: Display,
    /// A session of lines without a picture, for screen readers.
    pub is_plain: bool,
    /// The earlier conversation, if the session is resumed.
    pub earlier: Vec<EarlierEntry>,
    /// The ways of notifying.
    pub notifications: NotificationSettings,
    /// The editor for messages.
    pub editor: ExternalEditor,
    /// Asks the terminal for its background, and uses the colours for it.
    pub detects_background: bool,
    /// Ends the process when the session cannot end in order: the terminal hangs.
    pub end_process: EndProcess,
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
    /// The signal that ended it, if not the person did.
    pub signal: Option<i32>,
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
    /// Runs the session until the person leaves, with an agent that has no event sink and no
    /// approver yet. The terminal is restored in any case.
    pub fn run(self, agent: AgentBuilder) -> Result<SessionEnd, TuiError> {
        let queue = Arc::new(EventQueue::default());
        let agent = agent
            .events(Arc::new(QueueSink(Arc::clone(&queue))))
            .approver(Arc::new(QueueApprover(Arc::clone(&queue))));
        let worker = SessionWorker::start(agent, Arc::clone(&queue))?;
        let end = EndWatch::start(Some(worker.stopper()), self.end_process)?;
        let composer = Composer::new(self.history.load(), FileIndex::new(self.info.cwd.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let opened = SessionParts { worker, queue, end, composer, runtime };
        if self.is_plain { Ok(self.run_plain(opened)) } else { self.run_drawn(opened) }
    }

    fn run_plain(self, opened: SessionParts) -> SessionEnd {
        let SessionParts { worker, queue, end, composer, runtime } = opened;
        let mut app = App::new(self.info, composer);
        app.add_earlier(&self.earlier, terminal::width());
        if let Some(prompt) = self.prompt {
            app.submit(prompt, Instant::now());
        }
        let (history, commands) = (self.history, self.commands);
        let mut running = PlainLoop { app, worker, queue, history, commands, end };
        // Ctrl-C is a signal here. It cancels the turn.
        let result = terminal::lent_to_program(|| runtime.block_on(running.run()));
        let PlainLoop { app, worker, end, .. } = running;
        worker.finish(MAX_END_TIME);
        // A terminal that is gone was noticed by the watch, too.
        let by_person = result.unwrap_or(false);
        SessionEnd { thread: app.thread().cloned(), signal: last_signal(end, by_person) }
    }

    fn run_drawn(self, opened: SessionParts) -> Result<SessionEnd, TuiError> {
        let SessionParts { worker, queue, end, composer, runtime } = opened;
        let screen = Screen::open(self.display, self.detects_background)?;
        let mut info = self.info;
        if let Some(is_light) = screen.has_light_background() {
            info.theme = if is_light { Theme::light() } else { Theme::dark() };
        }
        let mut app = App::new(info, composer);
        app.add_earlier(&self.earlier, screen.width());
        if let Some(prompt) = self.prompt {
            app.submit(prompt, Instant::now());
        }
        let mut running = SessionLoop {
            app,
            screen,
            worker,
            queue,
            history: self.history,
            commands: self.commands,
            notifications: self.notifications,
            editor: self.editor,
            events: None,
            frames: FrameClock::default(),
            end,
            stopped_itself: false,
            leaving: None,
        };
        let result = runtime.block_on(running.run());
        let SessionLoop { mut app, mut screen, worker, leaving, end, .. } = running;
        worker.finish(MAX_END_TIME);
        let by_person = leaving == Some(Leaving::Person);
        if by_person {
            let finished = app.take_finished();
            screen.draw(finished, 1, |_frame, _area| {})?;
        }
        drop(screen);
        result?;
        Ok(SessionEnd { thread: app.thread().cloned(), signal: last_signal(end, by_person) })
    }
}

/// The parts that every session has.
struct SessionParts {
    worker: SessionWorker,
    queue: Arc<EventQueue>,
    end: EndWatch,
    composer: Composer,
    runtime: tokio::runtime::Runtime,
}

/// Returns the signal that ended the session. The watch goes on: a signal must end the process
/// also while it says its last words.
fn last_signal(end: EndWatch, by_person: bool) -> Option<i32> {
    let signal = if by_person { None } else { end.signal().or(Some(Signal::HUP.as_raw())) };
    std::mem::forget(end);
    signal
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
    notifications: NotificationSettings,
    editor: ExternalEditor,
    /// Opened when there is a runtime.
    events: Option<TerminalEvents>,
    frames: FrameClock,
    end: EndWatch,
    /// Set after the session has stopped its own process, which then is continued by a signal.
    stopped_itself: bool,
    leaving: Option<Leaving>,
}

impl SessionLoop<'_> {
    async fn run(&mut self) -> io::Result<()> {
        let mut continued = signal(SignalKind::from_raw(Signal::CONT.as_raw()))?;
        self.events = Some(self.screen.events());
        self.frames.change();
        self.act();
        while self.leaving.is_none() {
            if let Err(error) = self.step(&mut continued).await {
                // The terminal is gone.
                if error.raw_os_error() != Some(rustix::io::Errno::IO.raw_os_error()) {
                    return Err(error);
                }
                self.leaving = Some(Leaving::Signal);
            }
            self.act();
        }
        Ok(())
    }

    /// Draws if it is time, and waits for one thing to happen.
    async fn step(&mut self, continued: &mut SignalStream) -> io::Result<()> {
        let now = Instant::now();
        if self.frames.is_due(now) {
            self.draw(now)?;
        }
        let wake = self.frames.next().or_else(|| self.app.next_change(now));
        let sleep = tokio::time::sleep(wake.map_or(Duration::ZERO, |wake| wake - now));
        tokio::select! {
            event = next_event(&mut self.events) => match event {
                Some(event) => self.on_terminal(event?)?,
                None => self.leaving = Some(Leaving::Signal),
            },
            () = self.queue.changed() => {
                let now = Instant::now();
                self.queue.drain().into_iter().for_each(|message| self.app.on_message(message, now));
                self.frames.change();
            }
            () = sleep, if wake.is_some() => {
                self.app.on_tick();
                self.frames.change();
            }
            _ = continued.recv() => self.on_continued()?,
            () = self.end.requested() => self.leaving = Some(Leaving::Signal),
        }
        Ok(())
    }

    /// Takes the terminal back after something else stopped the process. A shell has changed the
    /// modes meanwhile.
    fn on_continued(&mut self) -> io::Result<()> {
        if !std::mem::take(&mut self.stopped_itself) {
            self.with_screen(Screen::take_back)?;
            self.frames.change();
        }
        Ok(())
    }

    fn draw(&mut self, now: Instant) -> io::Result<()> {
        let width = self.screen.width();
        self.app.set_width(width);
        let (finished, height) = (self.app.take_finished(), self.app.height(width, now));
        self.frames.drawn(now);
        for notice in self.app.take_notices() {
            self.notifications.notify(&notice, self.app.thread(), self.app.cwd())?;
        }
        self.screen.draw(finished, height, |frame, area| self.app.view(frame, area, now))
    }

    fn on_terminal(&mut self, event: TerminalEvent) -> io::Result<()> {
        self.frames.change();
        match event {
            TerminalEvent::Key(key) if self.screen.scrolls_by(&key) => {}
            TerminalEvent::Key(key) => self.app.on_key(&key, Instant::now()),
            TerminalEvent::Scrolled(lines) => self.screen.scroll(lines),
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
                AppAction::Edit => self.edit(),
                AppAction::Suspend => self.suspend(),
                AppAction::Quit => {
                    self.leaving = Some(Leaving::Person);
                    Ok(())
                }
            };
            if let Err(error) = done {
                self.app.note(&error.to_string());
            }
            self.frames.change();
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
        // Ctrl-C at a question of the command must not end the session.
        self.with_screen(|screen| screen.lend(|| terminal::lent_to_program(run)))
    }

    /// Lets the person write the message in an editor.
    fn edit(&mut self) -> io::Result<()> {
        let (text, editor) = (self.app.input(), self.editor.clone());
        let edit = || terminal::lent_to_program(|| editor.edit(&text));
        let edited = self.with_screen(|screen| screen.lend(edit))??;
        self.app.set_input(&edited);
        Ok(())
    }

    fn suspend(&mut self) -> io::Result<()> {
        let stop = || {
            let stopped = rustix::process::kill_current_process_group(Signal::TSTP);
            // The kernel may hand the signal to another thread. This one must not switch the
            // terminal back before the process stops.
            std::thread::sleep(STOP_TIME);
            stopped
        };
        self.stopped_itself = true;
        self.with_screen(|screen| screen.lend(stop))??;
        Ok(())
    }
}

async fn next_event(events: &mut Option<TerminalEvents>) -> Option<io::Result<TerminalEvent>> {
    events.as_mut()?.next().await
}
