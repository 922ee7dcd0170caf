//! The loop of an interactive session: keys and events in, pictures out.

use std::{
    io,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use ratatui_textarea::Key;
use rustix::process::Signal;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};
use windlass::{AgentBuilder, BuildError, ThreadId};

use crate::{
    app::App,
    composer::Composer,
    earlier::EarlierConversation,
    end_watch::{EndProcess, EndWatch},
    event_queue::EventQueue,
    external_editor::ExternalEditor,
    file_index::FileIndex,
    frame_clock::FrameClock,
    notifications::NotificationSettings,
    plain_session::PlainLoop,
    render::{Theme, status::SessionStatus},
    session_core::{LoopAction, SessionCore, attached, probe_mechanism, revoke_arguments},
    session_worker::{SessionWorker, TurnPlace, WorkerError},
    settings::{AgentSource, OfferedPrompt, SessionLinks, SessionSettings},
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
    /// The settings that can be changed.
    pub settings: SessionSettings,
    /// The prompts and skills that can be sent as `/NAME`.
    pub prompts: Vec<OfferedPrompt>,
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
    /// Makes agents with other settings.
    pub agents: &'a dyn AgentSource,
    /// The queue to the screen. Questions of MCP servers reach it through a
    /// [`QueueElicitor`](crate::QueueElicitor).
    pub queue: Arc<EventQueue>,
    /// Facts for the status line.
    pub info: SessionInfo,
    /// The part of the terminal that shows it.
    pub display: Display,
    /// A session of lines without a picture, for screen readers.
    pub is_plain: bool,
    /// Returns the earlier conversation, if the session is resumed. It is called once, after the
    /// agent is built.
    pub earlier: EarlierConversation,
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
    /// A text above the first message.
    pub note: Option<String>,
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
        let queue = self.queue;
        let links = SessionLinks::default();
        let place = TurnPlace { cwd: self.info.cwd.clone(), model: self.info.status.model.clone() };
        let worker = SessionWorker::start(attached(agent, &links, &queue), Arc::clone(&queue), place)?;
        probe_mechanism(self.agents, Arc::clone(&queue));
        let end = EndWatch::start(Some(worker.stopper()), self.end_process)?;
        let composer = Composer::new(self.history.load(), FileIndex::new(self.info.cwd.clone()))
            .with_vi_keys(self.info.vi_keys)
            .with_prompts(self.info.prompts.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let screen =
            if self.is_plain { None } else { Some(Screen::open(self.display, self.detects_background)?) };
        let mut info = self.info;
        if let Some(is_light) = screen.as_ref().and_then(Screen::has_light_background) {
            info.theme = if is_light { Theme::light() } else { Theme::dark() };
        }
        let mut app = App::new(info, composer);
        app.share(links.clone(), self.agents.secrets());
        app.add_earlier(&(self.earlier)(), screen.as_ref().map_or_else(terminal::width, Screen::width));
        self.note.iter().for_each(|note| app.note(note));
        if let Some(prompt) = self.prompt {
            app.submit(prompt, Instant::now());
        }
        let (agents, history, commands) = (self.agents, self.history, self.commands);
        let core = SessionCore { app, worker, links, agents, queue, history, commands, end };
        let Some(screen) = screen else { return Ok(run_plain(core, &runtime)) };
        let running = SessionLoop {
            core,
            screen,
            notifications: self.notifications,
            editor: self.editor,
            events: None,
            frames: FrameClock::default(),
            stopped_itself: false,
            leaving: None,
        };
        running.run_to_end(&runtime)
    }
}

/// Runs a session of lines.
fn run_plain(core: SessionCore<'_>, runtime: &tokio::runtime::Runtime) -> SessionEnd {
    let mut running = PlainLoop { core, asked: None };
    // Ctrl-C is a signal here. It cancels the turn.
    let result = terminal::lent_to_program(|| runtime.block_on(running.run()));
    let SessionCore { app, worker, end, .. } = running.core;
    worker.finish(MAX_END_TIME);
    // A terminal that is gone was noticed by the watch, too.
    let by_person = result.unwrap_or(false);
    SessionEnd { thread: app.thread().cloned(), signal: last_signal(end, by_person) }
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
    core: SessionCore<'a>,
    screen: Screen,
    notifications: NotificationSettings,
    editor: ExternalEditor,
    /// Opened when there is a runtime.
    events: Option<TerminalEvents>,
    frames: FrameClock,
    /// Set after the session has stopped its own process, which then is continued by a signal.
    stopped_itself: bool,
    leaving: Option<Leaving>,
}

impl SessionLoop<'_> {
    fn run_to_end(mut self, runtime: &tokio::runtime::Runtime) -> Result<SessionEnd, TuiError> {
        let result = runtime.block_on(self.run());
        let Self { core: SessionCore { mut app, worker, end, .. }, mut screen, leaving, .. } = self;
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
            self.arm_question().await?;
        }
        let wake = self.frames.next().or_else(|| self.core.app.next_change(now));
        let sleep = tokio::time::sleep(wake.map_or(Duration::ZERO, |wake| wake - now));
        tokio::select! {
            event = next_event(&mut self.events) => match event {
                Some(event) => self.on_terminal(event?)?,
                None => self.leaving = Some(Leaving::Signal),
            },
            () = self.core.queue.changed() => {
                let now = Instant::now();
                self.core.queue.drain().into_iter().for_each(|message| self.core.on_message(message, now));
                self.frames.change();
            }
            () = sleep, if wake.is_some() => {
                self.core.app.on_tick();
                self.frames.change();
            }
            _ = continued.recv() => self.on_continued()?,
            () = self.core.end.requested() => self.leaving = Some(Leaving::Signal),
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
        self.core.app.set_width(width);
        let (finished, height) = (self.core.app.take_finished(), self.core.app.height(width, now));
        self.frames.drawn(now);
        for notice in self.core.app.take_notices() {
            self.notifications.notify(&notice, self.core.app.thread(), self.core.app.cwd())?;
        }
        self.screen.draw(finished, height, |frame, area| self.core.app.view(frame, area, now))
    }

    /// Begins the time after which a question that has just been drawn takes keys.
    async fn arm_question(&mut self) -> io::Result<()> {
        if self.core.app.has_new_question() {
            self.drop_early_keys().await?;
            // What is printed above the question is finished only now.
            self.frames.change();
        }
        // Not the time at which drawing began: a slow terminal may have taken long.
        self.core.app.drawn(Instant::now());
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
                    self.core.app.on_key(&key, Instant::now());
                }
                TerminalEvent::Key(_) | TerminalEvent::Paste(_) | TerminalEvent::Scrolled(_) => {}
            }
        }
    }

    fn on_terminal(&mut self, event: TerminalEvent) -> io::Result<()> {
        self.frames.change();
        match event {
            TerminalEvent::Key(key) if self.screen.scrolls_by(&key) => {}
            TerminalEvent::Key(key) => self.core.app.on_key(&key, Instant::now()),
            TerminalEvent::Scrolled(lines) => self.screen.scroll(lines),
            TerminalEvent::Paste(text) => self.core.app.on_paste(&text),
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
        for text in self.core.app.take_submitted() {
            self.core.remember(&text);
        }
        for action in self.core.app.take_actions() {
            let done = match self.core.act(action) {
                None => Ok(()),
                Some(LoopAction::Program(arguments)) => self.run_program(&arguments),
                Some(LoopAction::RevokeRule(id)) => {
                    let ran = self.run_program(&revoke_arguments(id));
                    self.core.reload_rules();
                    ran
                }
                Some(LoopAction::Rewind(arguments)) => self.rewind(&arguments),
                Some(LoopAction::Copy(text)) => terminal::copy(&text),
                Some(LoopAction::Clear) => {
                    self.core.app.add_space(self.screen.rows());
                    Ok(())
                }
                Some(LoopAction::Edit) => self.edit(),
                Some(LoopAction::Suspend) => self.suspend(),
                Some(LoopAction::Quit) => {
                    self.leaving = Some(Leaving::Person);
                    Ok(())
                }
            };
            if let Err(error) = done {
                self.core.app.note(&error.to_string());
            }
            self.frames.change();
        }
    }

    fn rewind(&mut self, arguments: &[String]) -> io::Result<()> {
        self.draw(Instant::now())?;
        let commands = self.core.commands;
        let run = || SessionCore::run_program(commands, arguments);
        let screen = &mut self.screen;
        let events = &mut self.events;
        let (ran, taken_back) = self.core.rewind(|| {
            let mut lend = || screen.lend(|| terminal::lent_to_program(run));
            match events {
                Some(events) => events.paused(lend),
                None => lend(),
            }
        });
        if let Some(message) = taken_back.filter(|_| self.core.app.input().is_empty()) {
            self.core.app.set_input(&message);
            self.core.app.note("the message is in the input: change it, or send it again");
        }
        ran
    }

    fn run_program(&mut self, arguments: &[String]) -> io::Result<()> {
        let commands = self.core.commands;
        let run = || SessionCore::run_program(commands, arguments);
        // What comes before its output.
        self.draw(Instant::now())?;
        // Ctrl-C at a question of the command must not end the session.
        self.with_screen(|screen| screen.lend(|| terminal::lent_to_program(run)))
    }

    /// Lets the person write the message in an editor.
    fn edit(&mut self) -> io::Result<()> {
        let (text, editor) = (self.core.app.input(), self.editor.clone());
        let is_ending = self.core.end.flag();
        let edit = || terminal::lent_to_program(|| editor.edit(&text, is_ending));
        let edited = self.with_screen(|screen| screen.lend(edit))??;
        self.core.app.set_input(&edited);
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
