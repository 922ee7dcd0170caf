//! The state of the session on the screen. It has no terminal and no agent: keys and events go in,
//! actions and a picture come out.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Modifier, Style},
    text::Line,
    widgets::Paragraph,
};
use ratatui_textarea::{Input, Key};
use windlass::{Answer, Event, Network, ThreadId};

use crate::{
    approval_panel::QuestionQueue,
    commands::{self, COMMANDS, KEYS, SlashCommand, THIS_SESSION},
    composer::{Composer, ComposerResult, shown_message},
    event_queue::SessionMessage,
    render::{
        status::{SessionStatus, render_status},
        visible::visible_prose,
    },
    session::SessionInfo,
    text_lines::faint,
    transcript::Transcript,
};

/// A second Ctrl-C within this time leaves the session.
const DOUBLE_PRESS: Duration = Duration::from_secs(2);

/// The end of a turn that took longer rings the bell.
const LONG_TURN: Duration = Duration::from_secs(10);

/// Maximum number of messages that wait for the end of the turn.
const MAX_QUEUED: usize = 32;

/// Something that the session must do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AppAction {
    /// Start a turn.
    Prompt(String),
    /// Run a command of the person in the sandbox.
    Shell(String),
    /// Hand the terminal to a command of the program.
    Program(Vec<String>),
    /// Stop the turn.
    Cancel,
    Suspend,
    Quit,
}

/// The session on the screen.
#[derive(Debug)]
pub(crate) struct App {
    info: SessionInfo,
    thread: Option<ThreadId>,
    transcript: Transcript,
    composer: Composer,
    panel: QuestionQueue,
    /// Messages that were sent while the agent worked.
    queued: VecDeque<String>,
    /// Since when the agent works.
    working: Option<Instant>,
    cancelled: bool,
    interrupted: Option<Instant>,
    actions: Vec<AppAction>,
    submitted: Vec<String>,
    /// The person may look elsewhere and is needed, or waits for an answer that is there.
    calls_person: bool,
}

impl App {
    pub(crate) fn new(info: SessionInfo, composer: Composer) -> Self {
        let transcript = Transcript::new(info.cwd.clone(), &info.theme);
        Self {
            info,
            thread: None,
            transcript,
            composer,
            panel: QuestionQueue::default(),
            queued: VecDeque::new(),
            working: None,
            cancelled: false,
            interrupted: None,
            actions: Vec::new(),
            submitted: Vec::new(),
            calls_person: false,
        }
    }

    pub(crate) fn set_width(&mut self, width: u16) {
        self.transcript.set_width(width);
    }

    pub(crate) fn thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    /// Takes the lines that are finished.
    pub(crate) fn take_finished(&mut self) -> Vec<Line<'static>> {
        self.transcript.take_finished()
    }

    /// Takes what must be done.
    pub(crate) fn take_actions(&mut self) -> Vec<AppAction> {
        std::mem::take(&mut self.actions)
    }

    /// Takes the messages to be added to the history of prompts.
    pub(crate) fn take_submitted(&mut self) -> Vec<String> {
        std::mem::take(&mut self.submitted)
    }

    /// Returns true once if the terminal should ring.
    pub(crate) fn take_bell(&mut self) -> bool {
        std::mem::take(&mut self.calls_person)
    }

    /// Adds a note of the program.
    pub(crate) fn note(&mut self, text: &str) {
        self.transcript.note(text);
    }

    /// Returns the time at which the picture changes by itself.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let clock = (self.working.is_some() || self.transcript.has_running_calls())
            .then(|| now + Duration::from_secs(1));
        let files = self.composer.awaits_files().then(|| now + Duration::from_millis(100));
        [clock, files, self.panel.armed_at(now)].into_iter().flatten().min()
    }

    /// Takes a message of the agent.
    pub(crate) fn on_message(&mut self, message: SessionMessage, now: Instant) {
        match message {
            SessionMessage::Event(event) => self.on_event(*event, now),
            SessionMessage::Question(question) => {
                self.panel.push(*question);
                self.calls_person = true;
            }
            SessionMessage::Idle => {
                let was_long = |since: Instant| now.saturating_duration_since(since) >= LONG_TURN;
                self.calls_person |= self.working.is_some_and(was_long);
                (self.working, self.cancelled) = (None, false);
                if let Some(next) = self.queued.pop_front() {
                    self.send(next, now);
                }
            }
        }
    }

    pub(crate) fn on_event(&mut self, event: Event, now: Instant) {
        if let Event::ThreadStarted { thread } = &event {
            self.thread = Some(thread.clone());
        }
        self.transcript.on_event(event, now);
    }

    pub(crate) fn on_paste(&mut self, text: &str) {
        if self.panel.is_open() {
            self.panel.on_paste(text);
        } else {
            self.composer.paste(text);
        }
    }

    /// Returns true if a question has appeared that no key may answer yet.
    pub(crate) fn has_new_question(&self) -> bool {
        self.panel.is_new()
    }

    /// Notes that the picture is on the screen, after all keys that were typed before were dropped.
    pub(crate) fn drawn(&mut self, now: Instant) {
        self.panel.drawn(now);
    }

    /// Called when time has passed.
    pub(crate) fn on_tick(&mut self) {
        if self.composer.awaits_files() {
            self.composer.complete();
        }
    }

    pub(crate) fn on_key(&mut self, key: &Input, now: Instant) {
        if self.panel.is_open() {
            if self.panel.on_key(key, now) == Some(Answer::Abort) {
                self.cancel();
            }
            return;
        }
        match key.key {
            Key::Char('c') if key.ctrl => self.interrupt(now),
            Key::Char('d') if key.ctrl && self.composer.is_empty() => self.actions.push(AppAction::Quit),
            Key::Char('z') if key.ctrl => self.actions.push(AppAction::Suspend),
            Key::Char('t') if key.ctrl => self.transcript.expand_last_call(),
            Key::Esc => {
                if !self.composer.back_out() && self.working.is_some() {
                    self.cancel();
                }
            }
            _ => {
                if let ComposerResult::Submitted(text) = self.composer.on_key(key) {
                    self.submitted.push(text.clone());
                    self.submit(text, now);
                }
            }
        }
    }

    fn interrupt(&mut self, now: Instant) {
        let again = self.interrupted.is_some_and(|first| now.duration_since(first) < DOUBLE_PRESS);
        self.interrupted = Some(now);
        if again {
            self.actions.push(AppAction::Quit);
        } else if self.working.is_some() {
            self.cancel();
        } else if !self.composer.is_empty() {
            self.composer.clear();
        } else {
            self.note("Ctrl-C again leaves the session");
        }
    }

    /// Stops the turn. Messages that wait for its end go back into the input: they were written for
    /// another situation.
    fn cancel(&mut self) {
        if self.working.is_none() || self.cancelled {
            return;
        }
        self.cancelled = true;
        self.actions.push(AppAction::Cancel);
        let queued: Vec<_> = self.queued.drain(..).collect();
        if !queued.is_empty() {
            let text = queued.into_iter().chain(Some(self.composer.text())).collect::<Vec<_>>().join("\n");
            self.composer.set_text(text.trim_end());
        }
    }

    /// Takes a complete message.
    pub(crate) fn submit(&mut self, text: String, now: Instant) {
        let trimmed = text.trim();
        if let Some((command, argument)) = commands::parse(trimmed) {
            let argument = argument.to_owned();
            self.run_command(command, &argument);
        } else if trimmed.starts_with('/') && !trimmed[1..].contains(['/', ' ', '\n']) {
            self.transcript.warning(&format!("there is no command `{trimmed}`; /help lists them"));
        } else if self.working.is_none() {
            self.send(text, now);
        } else if self.queued.len() < MAX_QUEUED {
            self.queued.push_back(text);
        } else {
            self.transcript.warning("too many messages wait; this one is in the input again");
            self.composer.set_text(&text);
        }
    }

    fn send(&mut self, text: String, now: Instant) {
        self.transcript.user(&shown_message(&text));
        self.working = Some(now);
        let command = text.trim().strip_prefix('!').map(|command| command.trim().to_owned());
        self.actions.push(match command {
            Some(command) => AppAction::Shell(command),
            None => AppAction::Prompt(text),
        });
    }

    fn run_command(&mut self, command: SlashCommand, argument: &str) {
        let status = &self.info.status;
        match command {
            SlashCommand::Help => self.help(),
            SlashCommand::Model => {
                let text = format!(
                    "model {} ({})",
                    status.model,
                    status.provider.as_deref().unwrap_or("no provider")
                );
                self.note(&text);
            }
            SlashCommand::Approvals => {
                let text = format!("approval policy: {}", status.approval.name());
                self.note(&text);
            }
            SlashCommand::Sandbox => {
                let text = {
                    let network = if status.network == Network::None { "off" } else { "on" };
                    format!("sandbox: {}, network {network}", status.sandbox)
                };
                self.note(&text);
            }
            SlashCommand::Plan => self.transcript.show_plan(),
            SlashCommand::Diff => self.transcript.show_diff(),
            SlashCommand::Expand => self.transcript.expand_last_call(),
            SlashCommand::Status => self.show_status(),
            SlashCommand::Program(_) if self.working.is_some() => {
                self.note("wait for the end of the turn, or cancel it");
            }
            SlashCommand::Program(first) => {
                let session = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
                let first = first
                    .iter()
                    .map(|word| if *word == THIS_SESSION { session.clone() } else { (*word).to_owned() });
                let arguments = first.chain(commands::words(argument)).collect();
                self.actions.push(AppAction::Program(arguments));
            }
            SlashCommand::Quit => self.actions.push(AppAction::Quit),
        }
    }

    fn help(&mut self) {
        for entry in COMMANDS {
            self.transcript.note(&format!("/{:<10} {}", entry.name, entry.help));
        }
        for (key, help) in KEYS {
            self.transcript.note(&format!("{key}: {help}"));
        }
    }

    fn show_status(&mut self) {
        let usage = self.transcript.usage();
        let thread = self.thread.as_ref().map(ToString::to_string).unwrap_or_default();
        let text = format!(
            "session {thread}\n{} in {}\n{} tokens in ({} cached), {} out",
            self.info.status.model,
            self.info.cwd.display(),
            usage.input_tokens,
            usage.cached_input_tokens,
            usage.output_tokens
        );
        self.note(&text);
    }

    /// Returns the lines above the input, and those of the input itself or of the panel.
    fn lower_lines(&mut self, width: u16, now: Instant) -> Vec<Line<'static>> {
        if self.panel.is_open() {
            self.panel.lines(width, &self.info.theme, now)
        } else {
            self.composer.choices(width, &self.info.theme)
        }
    }

    fn upper_lines(&self, now: Instant) -> Vec<Line<'static>> {
        let mut lines = self.transcript.live_lines(now);
        if let Some(since) = self.working {
            let word = if self.cancelled { "stopping" } else { "working" };
            let seconds = now.saturating_duration_since(since).as_secs();
            lines.push(faint(format!("… {word} {seconds} s (Esc cancels)")));
        }
        lines.extend(
            self.queued
                .iter()
                .map(|text| faint(format!("  next: {}", visible_prose(&text.replace('\n', " "))))),
        );
        lines
    }

    /// Returns the height that the picture needs.
    pub(crate) fn height(&mut self, width: u16, now: Instant) -> u16 {
        let input = if self.panel.is_open() { 0 } else { self.composer.rows(width.saturating_sub(2)) };
        let lines = self.upper_lines(now).len() + self.lower_lines(width, now).len();
        // One row for the space above and one for the status.
        u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(input).saturating_add(2)
    }

    /// Draws the picture. If there is too little room, the beginning of what is live is left out.
    pub(crate) fn view(&mut self, frame: &mut Frame<'_>, area: Rect, now: Instant) {
        let is_open = self.panel.is_open();
        let lower = self.lower_lines(area.width, now);
        let upper = self.upper_lines(now);
        let input = if is_open { 0 } else { self.composer.rows(area.width.saturating_sub(2)) };
        let room = area.height.saturating_sub(input + 1);
        let lower_rows = u16::try_from(lower.len()).unwrap_or(u16::MAX).min(room);
        let upper_rows = u16::try_from(upper.len()).unwrap_or(u16::MAX).min(room - lower_rows);
        let hidden = upper.len() - usize::from(upper_rows);
        let rows = Layout::vertical([
            Constraint::Length(upper_rows),
            Constraint::Fill(1),
            Constraint::Length(if is_open { lower_rows } else { input }),
            Constraint::Length(if is_open { 0 } else { lower_rows }),
            Constraint::Length(1),
        ])
        .split(area);
        let upper: Vec<_> = upper.into_iter().skip(hidden).collect();
        frame.render_widget(Paragraph::new(upper), rows[0]);
        if is_open {
            // A question that is too long for the screen is shortened in the panel, and printed
            // whole above it.
            let lower = if lower.len() > usize::from(lower_rows) {
                self.transcript.add(self.panel.print(area.width, &self.info.theme, now));
                self.panel.fitted_lines(area.width, lower_rows.into(), &self.info.theme, now)
            } else {
                lower
            };
            frame.render_widget(Paragraph::new(lower), rows[2]);
        } else {
            let [mark, text] =
                Layout::horizontal([Constraint::Length(2), Constraint::Fill(1)]).areas::<2>(rows[2]);
            frame.render_widget(
                Line::styled(self.composer.sign(), Style::new().add_modifier(Modifier::BOLD)),
                mark,
            );
            frame.render_widget(self.composer.area(), text);
            frame.render_widget(Paragraph::new(lower), rows[3]);
        }
        frame.render_widget(self.status(area.width), rows[4]);
    }

    fn status(&self, width: u16) -> Line<'static> {
        let tokens = self.transcript.usage().total();
        let processes = self.transcript.running_commands();
        let status = SessionStatus { tokens, processes, ..self.info.status.clone() };
        render_status(&status, width, &self.info.theme)
    }
}

/// Returns the part of a screen that a viewport of this height covers, at most.
pub(crate) fn fitting_height(height: u16, screen: Rect) -> u16 {
    height.clamp(1, screen.height.saturating_sub(1).max(1))
}

#[cfg(test)]
mod tests;
