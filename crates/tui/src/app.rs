//! The state of the session on the screen. It has no terminal and no agent: keys and events go in,
//! actions and a picture come out.

mod plain;

use std::{
    collections::VecDeque,
    path::Path,
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
use windlass::{Event, ThreadId, clean::Secrets};

use crate::{
    approval_panel::QuestionQueue,
    commands,
    composer::{Composer, ComposerResult, shown_message},
    earlier::{EarlierEntry, render_earlier},
    elicitation_panel::ElicitationQueue,
    event_queue::SessionMessage,
    notifications::{NoticeCollector, PersonNotice},
    plan_question::PlanQuestion,
    render::status::{SessionStatus, render_status},
    session::SessionInfo,
    settings::{PromptRequest, SessionLinks, SessionSettings},
    text_lines::faint,
    transcript::Transcript,
};
use pending::PendingMessage;
use work::{LastTurn, WorkKind};

mod pending;
mod questions;
mod slash;
mod work;

/// A second Ctrl-C within this time leaves the session.
const DOUBLE_PRESS: Duration = Duration::from_secs(2);

/// Something that the session must do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum AppAction {
    /// Start a turn.
    Prompt(String),
    /// Run a command of the person in the sandbox.
    Shell(String),
    /// Hand the terminal to a command of the program.
    Program(Vec<String>),
    /// Give the agent other settings.
    Change(SessionSettings),
    /// Fetch a prompt.
    ServerPrompt(PromptRequest),
    /// Show a list that the program has.
    List(SessionList),
    /// Remove a rule by its id, and forget it.
    RevokeRule(String),
    /// Take the session back, with these arguments of `windlass rewind`.
    Rewind(Vec<String>),
    /// End a command that runs across calls.
    EndCommand(u32),
    /// Begin a new session with the same settings.
    NewSession,
    /// Make the conversation shorter. The text says what to keep; it may be empty.
    Compact(String),
    /// Copy a text to the clipboard.
    Copy(String),
    /// Scroll everything off the screen.
    Clear,
    /// Stop the turn.
    Cancel,
    /// Open the input in an editor.
    Edit,
    Suspend,
    Quit,
}

/// A list that the program has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionList {
    Models,
    Approvals,
    /// MCP servers.
    Servers,
    /// All changes of the session.
    Diff,
}

/// The session on the screen.
#[derive(Debug)]
pub(crate) struct App {
    info: SessionInfo,
    thread: Option<ThreadId>,
    transcript: Transcript,
    composer: Composer,
    panel: QuestionQueue,
    elicitations: ElicitationQueue,
    plan_question: Option<PlanQuestion>,
    links: SessionLinks,
    secrets: Secrets,
    /// The number of running commands in the last picture.
    drawn_processes: usize,
    /// Messages that were sent while the agent worked.
    pending: VecDeque<PendingMessage>,
    /// Since when the agent works.
    working: Option<Instant>,
    work: WorkKind,
    last_turn: LastTurn,
    /// Tokens of the running turn so far.
    turn_tokens: u64,
    cancelled: bool,
    interrupted: Option<Instant>,
    actions: Vec<AppAction>,
    submitted: Vec<String>,
    /// Notices for a person who looks elsewhere.
    notices: NoticeCollector,
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
            elicitations: ElicitationQueue::default(),
            plan_question: None,
            links: SessionLinks::default(),
            secrets: Secrets::default(),
            drawn_processes: 0,
            pending: VecDeque::new(),
            working: None,
            work: WorkKind::Other,
            last_turn: LastTurn::Unknown,
            turn_tokens: 0,
            cancelled: false,
            interrupted: None,
            actions: Vec::new(),
            submitted: Vec::new(),
            notices: NoticeCollector::default(),
        }
    }

    /// Shares what the agent has, and hides these secrets in lists.
    pub(crate) fn share(&mut self, links: SessionLinks, secrets: Secrets) {
        self.transcript.set_secrets(secrets.clone());
        (self.links, self.secrets) = (links, secrets);
        self.set_settings(self.info.settings.clone());
    }

    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.info.settings
    }

    /// Sets the git branch of the working directory.
    pub(crate) fn set_branch(&mut self, branch: Option<String>) {
        self.info.status.branch = branch;
    }

    pub(crate) fn set_width(&mut self, width: u16) {
        self.transcript.set_width(width);
    }

    pub(crate) fn thread(&self) -> Option<&ThreadId> {
        self.thread.as_ref()
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.info.cwd
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

    /// Takes the notices for a person who looks elsewhere.
    pub(crate) fn take_notices(&mut self) -> Vec<PersonNotice> {
        self.notices.take()
    }

    /// Adds the earlier conversation of a session that is resumed.
    pub(crate) fn add_earlier(&mut self, entries: &[EarlierEntry], width: u16) {
        self.set_width(width);
        let lines = render_earlier(entries, &self.info.cwd, width, &self.info.theme);
        self.transcript.add(lines);
    }

    /// Returns the text that is being written.
    pub(crate) fn input(&self) -> String {
        self.composer.text()
    }

    /// Replaces the text that is being written.
    pub(crate) fn set_input(&mut self, text: &str) {
        self.composer.set_text(text);
    }

    /// Adds a note of the program.
    pub(crate) fn note(&mut self, text: &str) {
        self.transcript.note(text);
    }

    /// Adds blank lines.
    pub(crate) fn add_space(&mut self, rows: u16) {
        self.transcript.add(vec![Line::default(); rows.into()]);
    }

    /// Adds the diff of the session.
    pub(crate) fn show_diff(&mut self, diff: &str) {
        self.transcript.show_diff(diff);
    }

    /// Returns the time at which the picture changes by itself.
    pub(crate) fn next_change(&self, now: Instant) -> Option<Instant> {
        let has_clock = self.working.is_some() || self.transcript.has_running_calls();
        // One that has ended since it was drawn must disappear.
        let has_processes = self.drawn_processes > 0 || self.processes() > 0;
        let clock = (has_clock || has_processes).then(|| now + Duration::from_secs(1));
        let files = self.composer.awaits_files().then(|| now + Duration::from_millis(100));
        [clock, files, self.question_armed_at(now)].into_iter().flatten().min()
    }

    /// Takes a message of the agent.
    pub(crate) fn on_message(&mut self, message: SessionMessage, now: Instant) {
        match message {
            SessionMessage::Event(event) => self.on_event(*event, now),
            SessionMessage::Question(question) => {
                self.notices.on_question(question.question.tool.as_str(), &question.question.reason);
                self.panel.push(*question);
            }
            SessionMessage::Elicitation(question) => self.on_elicitation(*question),
            SessionMessage::ServerPrompt(fetched) => self.on_server_prompt(*fetched, now),
            SessionMessage::Changed(changed) => self.on_changed(*changed),
            SessionMessage::Mechanism(name) => self.info.status.mechanism = name.map(str::to_owned),
            SessionMessage::Idle => self.on_idle(now),
        }
    }

    pub(crate) fn on_event(&mut self, event: Event, now: Instant) {
        self.note_event(&event);
        self.transcript.on_event(event, now);
    }

    pub(crate) fn on_paste(&mut self, text: &str) {
        self.interrupted = None;
        if self.panel.is_open() {
            self.panel.on_paste(text);
        } else if self.elicitations.is_open() {
            self.elicitations.on_paste(text);
        } else if !self.is_asking() {
            self.composer.paste(text);
        }
    }

    /// Called when time has passed.
    pub(crate) fn on_tick(&mut self) {
        if self.composer.awaits_files() {
            self.composer.complete();
        }
    }

    pub(crate) fn on_key(&mut self, key: &Input, now: Instant) {
        if !(key.ctrl && key.key == Key::Char('c')) {
            self.interrupted = None;
        }
        if self.question_took_key(key, now) {
            return;
        }
        let waits = !self.pending.is_empty();
        match key.key {
            Key::Up if waits && (key.alt || self.composer.is_empty()) => drop(self.take_back()),
            Key::Char('c') if key.ctrl => self.interrupt(now),
            Key::Char('d') if key.ctrl && self.composer.is_empty() => self.actions.push(AppAction::Quit),
            Key::Char('z') if key.ctrl => self.actions.push(AppAction::Suspend),
            Key::Char('g') if key.ctrl => self.actions.push(AppAction::Edit),
            Key::Char('l') if key.ctrl => self.actions.push(AppAction::Clear),
            Key::Char('t') if key.ctrl => self.transcript.expand_call(None),
            Key::Esc => {
                if !self.composer.back_out() && self.working.is_some() {
                    self.cancel();
                }
            }
            _ => match self.composer.on_key(key) {
                ComposerResult::Submitted(text) => {
                    self.submitted.push(text.clone());
                    self.echo_command(&text);
                    self.submit(text, now);
                }
                ComposerResult::Unused if key.key == Key::Tab && self.working.is_some() => {
                    if let ComposerResult::Submitted(text) = self.composer.submit() {
                        self.submitted.push(text.clone());
                        self.queue(text);
                    }
                }
                ComposerResult::Used | ComposerResult::Unused => {}
            },
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
        self.take_all_back();
    }

    /// Takes a complete message.
    pub(crate) fn submit(&mut self, text: String, now: Instant) {
        let trimmed = text.trim();
        if let Some((command, argument)) = commands::parse(trimmed) {
            let argument = argument.to_owned();
            self.run_command(command, &argument, now);
        } else if let Some(request) = self.prompt_request(trimmed) {
            self.actions.push(AppAction::ServerPrompt(request));
        } else if slash::is_unknown_command(trimmed) {
            self.transcript.warning(&format!("there is no command `{trimmed}`; /help lists them"));
        } else {
            self.submit_message(text, now);
        }
    }

    /// Takes a complete message that is no command.
    fn submit_message(&mut self, text: String, now: Instant) {
        if self.working.is_none() {
            self.send(text, now);
        } else {
            self.steer(text);
        }
    }

    fn send(&mut self, text: String, now: Instant) {
        self.transcript.user(&shown_message(&text));
        self.working = Some(now);
        let command = text.trim().strip_prefix('!').map(|command| command.trim().to_owned());
        if command.is_none() {
            self.notices.on_prompt(&text);
        }
        self.work = if command.is_none() { WorkKind::Turn } else { WorkKind::Other };
        self.actions.push(match command {
            Some(command) => AppAction::Shell(command),
            None => AppAction::Prompt(text),
        });
    }

    /// Returns the number of commands that run.
    fn processes(&self) -> usize {
        self.transcript.running_commands() + self.links.commands.list().len()
    }

    fn upper_lines(&mut self, now: Instant) -> Vec<Line<'static>> {
        let mut lines = self.transcript.live_lines(now);
        if self.working.is_some() && self.is_asking() {
            lines.push(faint("… waits for you".to_owned()));
        } else if let Some(since) = self.working {
            let word = if self.cancelled { "stopping" } else { "working" };
            let seconds = now.saturating_duration_since(since).as_secs();
            let keys = match (self.composer.is_empty(), self.work) {
                (true, _) => "Esc cancels",
                (false, WorkKind::Turn) => "Enter: into this turn, Tab: next turn, Esc: cancel",
                (false, WorkKind::Other) => "Enter: send afterwards, Esc: cancel",
            };
            lines.push(faint(format!("… {word} {seconds} s ({keys})")));
        }
        lines.extend(self.pending_lines());
        lines
    }

    /// Returns the height that the picture needs.
    pub(crate) fn height(&mut self, width: u16, now: Instant) -> u16 {
        let input = if self.is_asking() { 0 } else { self.composer.rows(width.saturating_sub(2)) };
        let lines = self.upper_lines(now).len() + self.lower_lines(width, now).len();
        // One row for the space above and one for the status.
        u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(input).saturating_add(2)
    }

    /// Draws the picture. If there is too little room, the beginning of what is live is left out.
    pub(crate) fn view(&mut self, frame: &mut Frame<'_>, area: Rect, now: Instant) {
        let is_open = self.is_asking();
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
            let lower = self.fitted_question(lower, (area.width, lower_rows), now);
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
        self.drawn_processes = self.processes();
        frame.render_widget(self.status(area.width), rows[4]);
    }

    fn status(&self, width: u16) -> Line<'static> {
        let tokens = self.transcript.usage().total().saturating_add(self.turn_tokens);
        let processes = self.drawn_processes;
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
