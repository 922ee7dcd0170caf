//! A session of lines, for screen readers and terminals that cannot move their cursor: nothing is
//! drawn twice, and the terminal itself edits the input.

use std::{
    io::{self, BufRead, Write},
    sync::mpsc as permits,
    thread,
    time::Instant,
};

use ratatui::text::Line;
use ratatui_textarea::{Input, Key};
use rustix::termios::{QueueSelector, tcflush};
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::mpsc,
};
use windlass::Event;

use crate::{
    approval_panel::QUIET_TIME,
    event_queue::SessionMessage,
    session_core::{LoopAction, SessionCore, revoke_arguments},
};

/// The beginning of the line at which the person writes.
const PROMPT: &str = "> ";

/// The same for the answer to a question.
const ANSWER_PROMPT: &str = "Your answer, then Enter: ";

/// A session of lines that runs.
pub(crate) struct PlainLoop<'a> {
    pub(crate) core: SessionCore<'a>,
    /// The time at which the last question was shown.
    pub(crate) asked: Option<Instant>,
}

impl PlainLoop<'_> {
    /// Runs until the person leaves. Returns false if a signal ended it.
    pub(crate) async fn run(&mut self) -> io::Result<bool> {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut lines = LineInput::start()?;
        let mut output = PlainOutput::default();
        loop {
            if self.act() {
                output.add(self.core.app.take_finished());
                output.show_last()?;
                return Ok(true);
            }
            output.add(self.core.app.take_finished());
            let question = self.core.app.new_question();
            if !question.is_empty() {
                self.asked = Some(Instant::now());
                // What was typed before it is no answer. If this fails, the terminal is gone.
                let _gone = tcflush(io::stdin(), QueueSelector::IFlush);
                output.add(question);
            }
            output.show(self.core.app.has_question(), self.core.app.is_working())?;
            tokio::select! {
                line = lines.next() => {
                    output.is_at_prompt = false;
                    let Some(line) = line else {
                        output.is_at_prompt = true;
                        output.show_last()?;
                        return Ok(true);
                    };
                    self.on_line(&line);
                }
                () = self.core.queue.changed() => self.take_messages(&mut output),
                _ = interrupt.recv() => {
                    let control_c = Input { key: Key::Char('c'), ctrl: true, ..Input::default() };
                    self.core.app.on_key(&control_c, Instant::now());
                }
                () = self.core.end.requested() => return Ok(false),
            }
        }
    }

    fn take_messages(&mut self, output: &mut PlainOutput) {
        let now = Instant::now();
        for message in self.core.queue.drain() {
            let is_call = matches!(&message, SessionMessage::Event(event) if matches!(**event, Event::CallStarted { .. }));
            match message {
                SessionMessage::ServerPrompt(fetched) => self.core.app.send_server_prompt(*fetched, now),
                message => self.core.on_message(message, now),
            }
            output.add(self.core.app.take_finished());
            if is_call {
                output.add(self.core.app.newest_call().into_iter().collect());
            }
        }
    }

    fn on_line(&mut self, line: &str) {
        let is_early = self.asked.is_some_and(|asked| asked.elapsed() < QUIET_TIME);
        if self.core.app.has_question() && is_early {
            self.core.app.note("that was too early to be an answer");
        } else if self.core.app.has_question() {
            self.core.app.answer_with(line);
        } else if !line.trim().is_empty() {
            self.core.remember(line);
            self.core.app.submit_line(line, Instant::now());
        }
    }

    /// Does what the app wants done. Returns true if the person leaves.
    fn act(&mut self) -> bool {
        for action in self.core.app.take_actions() {
            match self.core.act(action) {
                Some(LoopAction::Program(arguments)) => {
                    SessionCore::run_program(self.core.commands, &arguments);
                }
                Some(LoopAction::RevokeRule(id)) => {
                    SessionCore::run_program(self.core.commands, &revoke_arguments(id));
                    self.core.reload_rules();
                }
                Some(LoopAction::Rewind(arguments)) => {
                    let commands = self.core.commands;
                    let ((), taken_back) =
                        self.core.rewind(|| SessionCore::run_program(commands, &arguments));
                    if let Some(message) = taken_back {
                        self.core.app.note(&format!("the message was: {message}"));
                    }
                }
                Some(LoopAction::Copy(_)) => self.core.app.note("not with plain lines: nothing was copied"),
                // The terminal stops the process by itself, edits the line, and clears itself.
                None | Some(LoopAction::Suspend | LoopAction::Edit | LoopAction::Clear) => {}
                Some(LoopAction::Quit) => return true,
            }
        }
        false
    }
}

/// Lines on their way to the terminal.
#[derive(Debug, Default)]
struct PlainOutput {
    waiting: String,
    is_at_prompt: bool,
}

impl PlainOutput {
    fn add(&mut self, lines: Vec<Line<'static>>) {
        for line in lines {
            self.waiting.push_str(line.to_string().trim_end());
            self.waiting.push('\n');
        }
    }

    /// Writes what waits, and ends the line of the prompt.
    fn show_last(&mut self) -> io::Result<()> {
        let begin = if std::mem::take(&mut self.is_at_prompt) { "\n" } else { "" };
        let text = std::mem::take(&mut self.waiting);
        let mut stdout = io::stdout();
        stdout.write_all(format!("{begin}{text}").as_bytes())?;
        stdout.flush()
    }

    /// Writes what waits, and the prompt if it is the person's turn.
    fn show(&mut self, has_question: bool, is_working: bool) -> io::Result<()> {
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() && self.is_at_prompt {
            return Ok(());
        }
        let is_turn = has_question || !is_working;
        let prompt = if has_question { ANSWER_PROMPT } else { PROMPT };
        let begin = if self.is_at_prompt { "\n" } else { "" };
        let prompt = if is_turn { prompt } else { "" };
        self.is_at_prompt = is_turn;
        let mut stdout = io::stdout();
        stdout.write_all(format!("{begin}{text}{prompt}").as_bytes())?;
        stdout.flush()
    }
}

/// Reads lines, each only when it is wanted: a command of the program may read in between.
struct LineInput {
    permits: permits::Sender<()>,
    lines: mpsc::UnboundedReceiver<Option<String>>,
    is_reading: bool,
}

impl LineInput {
    fn start() -> io::Result<Self> {
        let (permits, permitted) = permits::channel();
        let (send, lines) = mpsc::unbounded_channel();
        // The thread ends with the process: a blocking read cannot be cancelled.
        thread::Builder::new().name("windlass-lines".to_owned()).spawn(move || {
            while permitted.recv().is_ok() {
                let mut line = Vec::new();
                let read = io::stdin().lock().read_until(b'\n', &mut line);
                let line = matches!(read, Ok(1..)).then(|| String::from_utf8_lossy(&line).into_owned());
                if send.send(line).is_err() {
                    return;
                }
            }
        })?;
        Ok(Self { permits, lines, is_reading: false })
    }

    /// Waits for a line. There is none after the end of the input.
    async fn next(&mut self) -> Option<String> {
        if !self.is_reading {
            self.permits.send(()).ok()?;
            self.is_reading = true;
        }
        let line = self.lines.recv().await;
        self.is_reading = false;
        line.flatten().map(|line| line.trim_end_matches(['\r', '\n']).to_owned())
    }
}
