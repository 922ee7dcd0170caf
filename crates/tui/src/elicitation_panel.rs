//! The panel with a question of an MCP server or of the agent.

use std::{collections::VecDeque, time::Instant};

use ratatui::text::{Line, Span};
use ratatui_textarea::{Input, Key};
use tokio::sync::oneshot;
use windlass::{
    ElicitationAnswer,
    mcp::question_dialogue::{DialogueStep, QuestionDialogue},
};

use crate::{
    approval_panel::QUIET_TIME,
    event_queue::PendingElicitation,
    render::{
        Theme,
        visible::{count_blanks, visible_prose},
        wrap::{HangingIndent, wrap_spans},
    },
};

/// Maximum length of an answer to one field.
const MAX_TYPED_BYTES: usize = 16 * 1024;

/// Maximum number of blanks in a row; longer runs are counted instead of shown.
const MAX_BLANKS: usize = 8;

/// The mark of the lines that a server has written.
const QUOTED: &str = "  | ";

/// The questions that wait, the first of which is shown.
#[derive(Debug, Default)]
pub(crate) struct ElicitationQueue {
    waiting: VecDeque<WaitingElicitation>,
    /// The time since which the first question is visible and no key was pressed.
    quiet_since: Option<Instant>,
    /// The value of a field, while it is typed.
    typed: String,
    /// The reason that the last line was not understood.
    problem: Option<String>,
    /// The lines were printed for a session of lines, or above a small screen.
    is_printed: bool,
}

#[derive(Debug)]
struct WaitingElicitation {
    dialogue: QuestionDialogue,
    answer: oneshot::Sender<ElicitationAnswer>,
}

impl ElicitationQueue {
    /// Adds a question. One that cannot be asked is declined.
    pub(crate) fn push(&mut self, pending: PendingElicitation) {
        let PendingElicitation { question, answer } = pending;
        match QuestionDialogue::new(&question) {
            Some(dialogue) => self.waiting.push_back(WaitingElicitation { dialogue, answer }),
            None => send(answer, ElicitationAnswer::Decline),
        }
    }

    /// Returns true if a question waits. Those that a server has taken back are removed.
    pub(crate) fn is_open(&mut self) -> bool {
        while self.waiting.front().is_some_and(|first| first.answer.is_closed()) {
            self.next();
        }
        !self.waiting.is_empty()
    }

    /// Returns true if the first question has not been drawn yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.waiting.is_empty() && self.quiet_since.is_none()
    }

    /// Notes that the first question is visible from now on.
    pub(crate) fn drawn(&mut self, now: Instant) {
        if self.is_new() {
            self.quiet_since = Some(now);
        }
    }

    fn is_armed(&self, now: Instant) -> bool {
        self.quiet_since.is_some_and(|since| now.duration_since(since) >= QUIET_TIME)
    }

    /// Returns the time at which keys will be accepted, if they are not yet.
    pub(crate) fn armed_at(&self, now: Instant) -> Option<Instant> {
        self.quiet_since.map(|since| since + QUIET_TIME).filter(|armed| *armed > now)
    }

    fn takes_text(&self) -> bool {
        self.waiting.front().is_some_and(|first| first.dialogue.takes_text())
    }

    /// Takes a pasted text. It can only be a part of a value.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if self.takes_text() {
            self.add_typed(text.lines().next().unwrap_or_default());
        }
    }

    /// Takes a key. Returns true if the person stops the turn.
    pub(crate) fn on_key(&mut self, key: &Input, now: Instant) -> bool {
        if key.ctrl && key.key == Key::Char('c') {
            // Stopping sends nothing, so it needs no quiet time. The question goes away with its
            // call: an answer could reach the model before the turn is stopped.
            return true;
        }
        if !self.is_armed(now) {
            self.quiet_since = self.quiet_since.map(|_| now);
            return false;
        }
        let is_plain = !key.ctrl && !key.alt;
        match key.key {
            Key::Esc => self.answer(ElicitationAnswer::Cancel),
            Key::Enter if self.takes_text() => {
                let line = std::mem::take(&mut self.typed);
                self.on_line(&line);
            }
            Key::Backspace => drop(self.typed.pop()),
            Key::Char('u') if key.ctrl => self.typed.clear(),
            Key::Char(c) if is_plain && self.takes_text() => self.add_typed(c.encode_utf8(&mut [0; 4])),
            Key::Char(c) if is_plain => {
                self.on_line(c.encode_utf8(&mut [0; 4]));
                if self.problem.is_some() {
                    // It may be the first of many: a word, or a late answer of the terminal.
                    self.quiet_since = Some(now);
                }
            }
            _ => {}
        }
        false
    }

    /// Takes a whole line.
    pub(crate) fn on_line(&mut self, line: &str) {
        let Some(first) = self.waiting.front_mut() else { return };
        self.problem = None;
        match first.dialogue.on_line(line) {
            DialogueStep::Continue => self.is_printed = false,
            DialogueStep::Again(problem) => self.problem = Some(problem),
            DialogueStep::Answered(answer) => self.answer(answer),
        }
    }

    /// Takes the reason that the last line was not understood.
    pub(crate) fn take_problem(&mut self) -> Option<String> {
        self.problem.take()
    }

    fn answer(&mut self, answer: ElicitationAnswer) {
        if let Some(first) = self.next() {
            send(first.answer, answer);
        }
    }

    fn next(&mut self) -> Option<WaitingElicitation> {
        let first = self.waiting.pop_front();
        *self = Self { waiting: std::mem::take(&mut self.waiting), ..Self::default() };
        first
    }

    fn add_typed(&mut self, text: &str) {
        if self.typed.len() + text.len() <= MAX_TYPED_BYTES {
            self.typed.push_str(text);
        }
    }

    /// Returns the lines to be printed: those of this step, once.
    pub(crate) fn print(&mut self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        if std::mem::replace(&mut self.is_printed, true) { Vec::new() } else { self.facts(width, theme) }
    }

    /// Returns the text before the answer.
    pub(crate) fn prompt(&self) -> String {
        self.waiting.front().map(|first| first.dialogue.prompt()).unwrap_or_default()
    }

    /// Returns the panel as lines.
    pub(crate) fn lines(&self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        let mut lines = self.facts(width, theme);
        let Some(first) = self.waiting.front() else { return lines };
        let problem = self.problem.iter().map(|problem| (problem.clone(), theme.warning));
        let prompt = match self.is_armed(now) {
            true if first.dialogue.takes_text() => {
                (format!("{}{}▏", first.dialogue.prompt(), self.typed), theme.text)
            }
            true => (format!("{}(Esc dismisses it)", first.dialogue.prompt()), theme.text),
            false => (format!("{}(keys count in a moment)", first.dialogue.prompt()), theme.dim),
        };
        for (text, style) in problem.chain([prompt]) {
            let text = Span::styled(visible_prose(&text).into_owned(), style);
            lines.extend(wrap_spans(&[text], width, &HangingIndent::default()));
        }
        lines
    }

    /// Returns what the person reads before the prompt.
    fn facts(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let Some(first) = self.waiting.front() else { return Vec::new() };
        let mut lines = Vec::new();
        for (at, text) in first.dialogue.lines().iter().enumerate() {
            let style = match text {
                _ if at == 0 => theme.heading,
                text if text.starts_with("careful: ") => theme.warning,
                _ => theme.text,
            };
            let indent = if text.starts_with(QUOTED) {
                HangingIndent { first: Vec::new(), rest: vec![Span::raw(QUOTED)] }
            } else {
                HangingIndent { first: Vec::new(), ..HangingIndent::from_columns(4) }
            };
            let text = visible_prose(&count_blanks(text, MAX_BLANKS)).into_owned();
            lines.extend(wrap_spans(&[Span::styled(text, style)], width, &indent));
        }
        lines
    }
}

fn send(to: oneshot::Sender<ElicitationAnswer>, answer: ElicitationAnswer) {
    // The server may have taken the question back at this moment.
    let _withdrawn = to.send(answer);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;
    use windlass::{Asker, ChoiceOption, ChoiceQuestion, Elicitation, ElicitationForm};

    use super::*;

    fn asked() -> (ElicitationQueue, oneshot::Receiver<ElicitationAnswer>) {
        let schema = json!({"type": "object", "required": ["name"],
            "properties": {"name": {"type": "string", "minLength": 2}}});
        let form = ElicitationForm::Fields { schema };
        let message = "Who are you? This line is longer than the panel is wide.".to_owned();
        let question = Elicitation { asker: Asker::Server("demo".into()), message, form };
        let (answer, given) = oneshot::channel();
        let mut panel = ElicitationQueue::default();
        panel.push(PendingElicitation { question, answer });
        (panel, given)
    }

    fn press(panel: &mut ElicitationQueue, keys: &str, now: Instant) {
        for c in keys.chars() {
            let key = if c == '\n' { Key::Enter } else { Key::Char(c) };
            assert!(!panel.on_key(&Input { key, ..Input::default() }, now));
        }
    }

    fn shown(panel: &ElicitationQueue, now: Instant) -> Vec<String> {
        panel.lines(40, &Theme::no_colour(), now).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_form_is_filled_with_keys_and_sent_after_a_look_at_it() {
        let (mut panel, mut given) = asked();
        let start = Instant::now();
        panel.drawn(start);
        let now = start + Duration::from_secs(1);
        let lines = shown(&panel, now);
        assert_eq!(lines[0], "MCP server `demo` asks, in its own");
        assert!(lines[2..4].iter().all(|line| line.starts_with("  | ")), "{lines:#?}");
        press(&mut panel, "yA\n", now);
        assert!(shown(&panel, now).iter().any(|line| line.starts_with("expected: text")));
        press(&mut panel, "Adx", now);
        panel.on_key(&Input { key: Key::Backspace, ..Input::default() }, now);
        panel.on_paste("a\nsecond line");
        press(&mut panel, "\n", now);
        let lines = shown(&panel, now);
        assert!(lines.contains(&"  name: Ada".to_owned()), "{lines:#?}");
        assert!(given.try_recv().is_err());
        press(&mut panel, "y", now);
        assert_eq!(given.try_recv(), Ok(ElicitationAnswer::Accept(json!({"name": "Ada"}))));
        assert!(!panel.is_open());
    }

    #[test]
    fn a_question_of_the_agent_is_answered_with_one_key_or_with_a_text() {
        let option = |label: &str| ChoiceOption { label: label.to_owned(), description: String::new() };
        let asked = || {
            let (id, header, question) = ("db".to_owned(), "DB".to_owned(), "Which one?".to_owned());
            let questions =
                vec![ChoiceQuestion { id, header, question, options: vec![option("a"), option("b")] }];
            let form = ElicitationForm::Choices { questions };
            let question = Elicitation { asker: Asker::Agent, message: String::new(), form };
            let (answer, given) = oneshot::channel();
            let mut panel = ElicitationQueue::default();
            panel.push(PendingElicitation { question, answer });
            (panel, given)
        };
        let start = Instant::now();
        let now = start + Duration::from_secs(1);
        for (keys, expected) in [("2", "b"), ("ob 7\n", "b 7"), ("9o/back\n1", "a")] {
            let (mut panel, mut given) = asked();
            panel.drawn(start);
            assert!(shown(&panel, now).contains(&"  2  b".to_owned()));
            let mut pressed = now;
            for key in keys.split_inclusive(['9']) {
                press(&mut panel, key, pressed);
                pressed += Duration::from_secs(1);
            }
            assert_eq!(given.try_recv(), Ok(ElicitationAnswer::Accept(json!({"db": expected}))), "{keys}");
        }
        let (mut panel, mut given) = asked();
        panel.drawn(start);
        panel.on_paste("2\n");
        assert!(given.try_recv().is_err(), "a pasted text chooses nothing");
        assert!(!panel.on_key(&Input { key: Key::Esc, ..Input::default() }, now), "the turn goes on");
        assert_eq!(given.try_recv(), Ok(ElicitationAnswer::Cancel));
    }

    #[test]
    fn keys_before_the_question_was_visible_for_a_while_do_not_answer_it() {
        let (mut panel, mut given) = asked();
        let start = Instant::now();
        press(&mut panel, "n", start + Duration::from_secs(9));
        panel.drawn(start);
        press(&mut panel, "n", start + Duration::from_millis(299));
        assert!(given.try_recv().is_err());
        press(&mut panel, "x", start + Duration::from_millis(700));
        press(&mut panel, "n", start + Duration::from_millis(900));
        assert!(given.try_recv().is_err(), "a wrong letter begins the quiet time again");
        press(&mut panel, "n", start + Duration::from_millis(1300));
        assert_eq!(given.try_recv(), Ok(ElicitationAnswer::Decline));
    }

    #[test]
    fn escape_dismisses_and_control_c_stops_the_turn_without_an_answer() {
        let start = Instant::now();
        for (key, ctrl, stops) in [(Key::Esc, false, false), (Key::Char('c'), true, true)] {
            let (mut panel, mut given) = asked();
            panel.drawn(start);
            let key = Input { key, ctrl, ..Input::default() };
            assert_eq!(panel.on_key(&key, start + Duration::from_secs(1)), stops);
            assert_eq!(given.try_recv().ok(), (!stops).then_some(ElicitationAnswer::Cancel));
        }
    }

    #[test]
    fn a_question_that_the_server_takes_back_goes_away() {
        let (mut panel, given) = asked();
        assert!(panel.is_open());
        drop(given);
        assert!(!panel.is_open());
    }
}
