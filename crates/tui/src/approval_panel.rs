//! The panel that asks a person about a call.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use ratatui::text::Line;
use ratatui_textarea::{Input, Key};
use windlass::{Answer, Question};

use crate::{
    event_queue::PendingQuestion,
    render::{Theme, approval::render_approval},
    text_lines::faint,
};

/// Keys count only after the panel has been visible for so long without a key. A person who is
/// typing when it appears must not answer it by accident.
const QUIET_TIME: Duration = Duration::from_millis(300);

/// The questions that wait, the first of which is shown.
#[derive(Debug, Default)]
pub(crate) struct QuestionQueue {
    waiting: VecDeque<PendingQuestion>,
    /// The time since which the first question is visible and no key was pressed.
    quiet_since: Option<Instant>,
    /// The note to the model, while it is typed.
    note: Option<String>,
    /// The first question is too long for the screen and was printed above it.
    printed: bool,
}

impl QuestionQueue {
    pub(crate) fn push(&mut self, question: PendingQuestion) {
        self.waiting.push_back(question);
    }

    /// Returns true if a question waits. Questions of cancelled calls are removed.
    pub(crate) fn is_open(&mut self) -> bool {
        while self.waiting.front().is_some_and(|first| first.answer.is_closed()) {
            self.next();
        }
        !self.waiting.is_empty()
    }

    /// Notes that the first question has been drawn.
    pub(crate) fn drawn(&mut self, now: Instant) {
        if !self.waiting.is_empty() && self.quiet_since.is_none() {
            self.quiet_since = Some(now);
        }
    }

    /// Returns true if keys are accepted.
    pub(crate) fn is_armed(&self, now: Instant) -> bool {
        self.quiet_since.is_some_and(|since| now.duration_since(since) >= QUIET_TIME)
    }

    /// Returns the time at which keys will be accepted, if they are not yet.
    pub(crate) fn armed_at(&self, now: Instant) -> Option<Instant> {
        self.quiet_since.map(|since| since + QUIET_TIME).filter(|armed| *armed > now)
    }

    /// Returns the lines of the first question to be printed above the panel, which has too little
    /// room for them. They are returned once.
    pub(crate) fn print(&mut self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        if std::mem::replace(&mut self.printed, true) { Vec::new() } else { self.lines(width, theme, now) }
    }

    /// Takes a key. Returns the answer that it gave.
    pub(crate) fn on_key(&mut self, key: &Input, now: Instant) -> Option<Answer> {
        if !self.is_armed(now) {
            self.quiet_since = self.quiet_since.map(|_| now);
            return None;
        }
        let effect = match &mut self.note {
            Some(note) => typed_note(note, key),
            None => self.chosen(key),
        };
        match effect {
            KeyEffect::None => None,
            KeyEffect::BeginNote => {
                self.note = Some(String::new());
                None
            }
            KeyEffect::EndNote => {
                self.note = None;
                None
            }
            KeyEffect::Answer(answer) => {
                self.answer(answer.clone());
                Some(answer)
            }
        }
    }

    /// Answers the first question.
    pub(crate) fn answer(&mut self, answer: Answer) {
        if let Some(PendingQuestion { answer: sender, .. }) = self.next() {
            // The call may have been cancelled at this moment; then there is nothing to answer.
            let _cancelled = sender.send(answer);
        }
    }

    fn next(&mut self) -> Option<PendingQuestion> {
        (self.quiet_since, self.note, self.printed) = (None, None, false);
        self.waiting.pop_front()
    }

    fn chosen(&self, key: &Input) -> KeyEffect {
        let Some(PendingQuestion { question, .. }) = self.waiting.front() else { return KeyEffect::None };
        let question: &Question = question;
        let (session, rule) = (!question.keys.is_empty(), question.rule.is_some());
        let plain = !key.ctrl && !key.alt;
        let answer = match key.key {
            Key::Char('y') if plain => Answer::Once,
            Key::Char('s') if plain && session => Answer::Session,
            Key::Char('p') if plain && rule => Answer::Project,
            Key::Char('a') if plain && rule => Answer::Always,
            Key::Char('n') if plain => return KeyEffect::BeginNote,
            Key::Char('q') if plain => Answer::Abort,
            Key::Char('c') if key.ctrl => Answer::Abort,
            Key::Esc => Answer::Deny(String::new()),
            _ => return KeyEffect::None,
        };
        KeyEffect::Answer(answer)
    }

    /// Returns the panel as lines.
    pub(crate) fn lines(&self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        let Some(first) = self.waiting.front() else { return Vec::new() };
        let mut lines = render_approval(&first.question, width, theme).into_lines();
        if self.waiting.len() > 1 {
            lines.push(faint(format!("{} more wait", self.waiting.len() - 1)));
        }
        lines.push(match &self.note {
            Some(note) => Line::from(format!("why not (Enter sends, Esc goes back): {note}▏")),
            None if self.is_armed(now) => Line::from("Allow it?"),
            None => faint("Allow it? (keys count in a moment)".to_owned()),
        });
        lines
    }
}

/// The effect of a key on the panel.
#[derive(Debug)]
enum KeyEffect {
    None,
    BeginNote,
    /// Back to the choices.
    EndNote,
    Answer(Answer),
}

/// Takes a key of the note.
fn typed_note(note: &mut String, key: &Input) -> KeyEffect {
    match key.key {
        Key::Enter => return KeyEffect::Answer(Answer::Deny(note.trim().to_owned())),
        Key::Esc => return KeyEffect::EndNote,
        Key::Char('c') if key.ctrl => return KeyEffect::Answer(Answer::Abort),
        Key::Backspace => drop(note.pop()),
        Key::Char(c) if !key.ctrl && !key.alt => note.push(c),
        _ => {}
    }
    KeyEffect::None
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot::{self, Receiver};
    use windlass::{Beyond, CommandLine, Effects};

    use super::*;

    fn question(command: &str) -> Question {
        let argv = ["bash", "-c", command].map(str::to_owned).to_vec();
        Question {
            call: "c".into(),
            tool: "shell_command".into(),
            effects: Effects::command(CommandLine { argv, cwd: None }),
            cwd: "/w".into(),
            reason: "why".into(),
            unclear: Vec::new(),
            beyond: Beyond::Nothing,
            keys: Vec::new(),
            rule: None,
        }
    }

    fn panel(commands: &[&str]) -> (QuestionQueue, Vec<Receiver<Answer>>) {
        let mut panel = QuestionQueue::default();
        let ask = |command: &&str| {
            let (answer, given) = oneshot::channel();
            let question = windlass_fakes::clean(question(command));
            panel.push(PendingQuestion { question, answer });
            given
        };
        let given = commands.iter().map(ask).collect();
        (panel, given)
    }

    fn key(c: char) -> Input {
        Input { key: Key::Char(c), ..Input::default() }
    }

    #[test]
    fn keys_before_the_panel_was_visible_for_a_while_do_not_answer_it() {
        let (mut panel, mut given) = panel(&["make"]);
        let start = Instant::now();
        assert_eq!(panel.on_key(&key('y'), start + Duration::from_secs(9)), None, "never drawn");
        panel.drawn(start);
        assert_eq!(panel.on_key(&key('y'), start + Duration::from_millis(299)), None);
        // The early key begins the quiet time again.
        assert_eq!(panel.on_key(&key('y'), start + Duration::from_millis(500)), None);
        assert!(given[0].try_recv().is_err());
        assert_eq!(panel.on_key(&key('y'), start + Duration::from_millis(800)), Some(Answer::Once));
        assert_eq!(given[0].try_recv(), Ok(Answer::Once));
    }

    #[test]
    fn a_second_question_needs_its_own_quiet_time() {
        let (mut panel, mut given) = panel(&["one", "two"]);
        let start = Instant::now();
        panel.drawn(start);
        let later = start + Duration::from_secs(1);
        assert_eq!(panel.on_key(&key('y'), later), Some(Answer::Once));
        assert_eq!(panel.on_key(&key('y'), later), None);
        panel.drawn(later);
        assert_eq!(panel.on_key(&key('y'), later + Duration::from_millis(10)), None);
        assert!(given[1].try_recv().is_err());
    }

    #[test]
    fn a_note_goes_to_the_model_and_only_offered_answers_count() {
        let (mut panel, mut given) = panel(&["make"]);
        let start = Instant::now();
        panel.drawn(start);
        let later = start + Duration::from_secs(1);
        for c in ['s', 'p', 'a', 'x'] {
            assert_eq!(panel.on_key(&key(c), later), None, "{c}");
        }
        for c in ['n', 'n', 'o'] {
            assert_eq!(panel.on_key(&key(c), later), None);
        }
        let enter = Input { key: Key::Enter, ..Input::default() };
        assert_eq!(panel.on_key(&enter, later), Some(Answer::Deny("no".into())));
        assert_eq!(given[0].try_recv(), Ok(Answer::Deny("no".into())));
    }

    #[test]
    fn the_question_of_a_cancelled_call_goes_away() {
        let (mut panel, given) = panel(&["make"]);
        assert!(panel.is_open());
        drop(given);
        assert!(!panel.is_open());
    }
}
