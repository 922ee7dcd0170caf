//! The panel that asks a person about a call.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use ratatui::text::{Line, Span};
use ratatui_textarea::{Input, Key};
use windlass::{Answer, Question, counted};

use crate::{
    event_queue::PendingQuestion,
    render::{
        Theme,
        approval::{ApprovalPanel, question_gist, render_approval},
        wrap::{HangingIndent, cut_spans, wrap_spans},
    },
};

/// Keys count only after the panel has been visible for so long without a key. A person who is
/// typing when it appears must not answer it by accident.
pub(crate) const QUIET_TIME: Duration = Duration::from_millis(300);

/// Maximum number of questions that wait and are shown, one line each.
const MAX_SHOWN_WAITING: usize = 3;

/// Maximum length of a note to the model.
const MAX_NOTE_BYTES: usize = 16 * 1024;

/// The questions that wait, the first of which is shown.
#[derive(Debug, Default)]
pub(crate) struct QuestionQueue {
    waiting: VecDeque<PendingQuestion>,
    /// The time since which the first question is visible and no key was pressed.
    quiet_since: Option<Instant>,
    /// The note to the model, while it is typed.
    note: Option<String>,
    /// The key of the answer that allows it everywhere was pressed, and must be pressed again.
    confirms_always: bool,
    /// The first question is too long for the screen and was printed above it.
    printed: bool,
    /// The number of questions answered since none waited.
    answered: usize,
    /// The first question at a width, because a long one takes time.
    rendered: Option<(u16, ApprovalPanel)>,
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

    /// Takes a pasted text. It never answers, but it can be part of a note.
    pub(crate) fn on_paste(&mut self, text: &str) {
        if let Some(note) = &mut self.note {
            text.split_whitespace().for_each(|word| push_note(note, &format!("{word} ")));
        }
    }

    /// Takes the next key at once: the person has sent a whole line.
    pub(crate) fn arm(&mut self, now: Instant) {
        self.quiet_since = now.checked_sub(QUIET_TIME);
    }

    /// Returns true if keys are accepted.
    fn is_armed(&self, now: Instant) -> bool {
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
        if key.ctrl && key.key == Key::Char('c') {
            // Stopping allows nothing, so it needs no quiet time.
            self.answer(Answer::Abort);
            return Some(Answer::Abort);
        }
        if !self.is_armed(now) {
            self.quiet_since = self.quiet_since.map(|_| now);
            return None;
        }
        let effect = match &mut self.note {
            Some(note) => typed_note(note, key),
            None if std::mem::take(&mut self.confirms_always) => confirmed(key),
            None => self.chosen(key),
        };
        match effect {
            KeyEffect::None => {
                // It may be the first of many: a word, or a late answer of the terminal.
                if self.note.is_none() {
                    self.quiet_since = Some(now);
                }
                None
            }
            KeyEffect::ConfirmAlways => {
                // A key that is held down does not confirm.
                (self.confirms_always, self.quiet_since) = (true, Some(now));
                None
            }
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
            KeyEffect::DenyAll => {
                while !self.waiting.is_empty() {
                    self.answer(Answer::Deny(String::new()));
                }
                Some(Answer::Deny(String::new()))
            }
        }
    }

    /// Answers the first question. A yes for the session also answers all others that ask the same:
    /// it covers them to the letter.
    fn answer(&mut self, answer: Answer) {
        let Some(first) = self.next() else { return };
        if answer == Answer::Session {
            let (same, others): (VecDeque<_>, _) =
                self.waiting.drain(..).partition(|other| asks_the_same(&first.question, &other.question));
            self.waiting = others;
            self.answered += same.len();
            for question in same {
                send(question, answer.clone());
            }
        }
        self.answered = if self.waiting.is_empty() { 0 } else { self.answered + 1 };
        send(first, answer);
    }

    fn next(&mut self) -> Option<PendingQuestion> {
        (self.quiet_since, self.note, self.printed, self.rendered) = (None, None, false, None);
        self.confirms_always = false;
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
            Key::Char('a') if plain && rule => return KeyEffect::ConfirmAlways,
            Key::Char('n') if plain => return KeyEffect::BeginNote,
            Key::Char('N') if plain && self.waiting.len() > 1 => return KeyEffect::DenyAll,
            Key::Char('q') if plain => Answer::Abort,
            Key::Esc => Answer::Deny(String::new()),
            _ => return KeyEffect::None,
        };
        KeyEffect::Answer(answer)
    }

    /// Returns the panel as lines.
    pub(crate) fn lines(&mut self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        self.fitted_lines(width, usize::MAX, theme, now)
    }

    /// Returns the panel in at most so many lines, if they suffice for the choices.
    pub(crate) fn fitted_lines(
        &mut self,
        width: u16,
        rows: usize,
        theme: &Theme,
        now: Instant,
    ) -> Vec<Line<'static>> {
        let Some(first) = self.waiting.front() else { return Vec::new() };
        if self.rendered.as_ref().is_none_or(|(rendered, _)| *rendered != width) {
            self.rendered = Some((width, render_approval(&first.question, width, theme)));
        }
        let mut lines = self.place_in_burst(theme);
        let end = [self.waiting_lines(width, theme), self.prompt_lines(width, theme, now)].concat();
        let room = rows.saturating_sub(lines.len() + end.len());
        if let Some((_, panel)) = &self.rendered {
            lines.extend(panel.fitted(room, theme));
        }
        lines.extend(end);
        // On a very small screen, the end stays.
        lines.split_off(lines.len().saturating_sub(rows))
    }

    /// Returns the line that says which of several questions this is.
    fn place_in_burst(&self, theme: &Theme) -> Vec<Line<'static>> {
        let all = self.answered + self.waiting.len();
        let place = || Line::styled(format!("Question {} of {all}", self.answered + 1), theme.heading);
        (all > 1).then(place).into_iter().collect()
    }

    /// Returns the questions behind the first one, and the answers that concern them.
    fn waiting_lines(&self, width: u16, theme: &Theme) -> Vec<Line<'static>> {
        let mut waiting = self.waiting.iter();
        let Some(first) = waiting.next() else { return Vec::new() };
        let others = waiting.len();
        if others == 0 {
            return Vec::new();
        }
        let same = waiting.clone().filter(|other| asks_the_same(&first.question, &other.question)).count();
        let mut lines = Vec::new();
        if same > 0 {
            let text = format!(
                "     s also answers {}, which {same_is} the same",
                counted(same as u64, "question"),
                same_is = if same == 1 { "is" } else { "are" }
            );
            lines.push(cut_spans(&[Span::styled(text, theme.dim)], width));
        }
        let key = Span::styled("  N  ", theme.key);
        lines.push(cut_spans(&[key, Span::raw(format!("no to all {}, without a note", others + 1))], width));
        for (at, other) in waiting.take(MAX_SHOWN_WAITING).enumerate() {
            let text = format!("  next {}: {}", at + 1, question_gist(&other.question));
            lines.push(cut_spans(&[Span::styled(text, theme.dim)], width));
        }
        let more = others.saturating_sub(MAX_SHOWN_WAITING);
        lines.extend((more > 0).then(|| Line::styled(format!("  and {more} more"), theme.dim)));
        lines
    }

    fn prompt_lines(&self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        let (text, style) = match &self.note {
            Some(note) => (format!("Why not? Enter sends the note, Esc goes back: {note}▏"), theme.text),
            None if self.confirms_always => {
                let text = "Press a again to allow it everywhere (Esc: back)";
                (text.to_owned(), theme.warning)
            }
            None if self.is_armed(now) => ("Allow it? (Esc: no)".to_owned(), theme.text),
            None => ("Allow it? (keys count in a moment)".to_owned(), theme.dim),
        };
        wrap_spans(&[Span::styled(text, style)], width, &HangingIndent::default())
    }
}

/// Returns true if a yes for the session to one question covers the other one.
fn asks_the_same(first: &Question, other: &Question) -> bool {
    !first.keys.is_empty() && *other == Question { call: other.call.clone(), ..first.clone() }
}

fn send(question: PendingQuestion, answer: Answer) {
    // The call may have been cancelled at this moment; then there is nothing to answer.
    let _cancelled = question.answer.send(answer);
}

fn push_note(note: &mut String, text: &str) {
    if note.len() + text.len() <= MAX_NOTE_BYTES {
        note.push_str(text);
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
    /// Asks for the key of the answer that allows it everywhere again.
    ConfirmAlways,
    /// A no to all questions that wait.
    DenyAll,
}

/// Takes the key after the one that allows it everywhere.
fn confirmed(key: &Input) -> KeyEffect {
    match key.key {
        Key::Char('a') | Key::Enter if !key.ctrl && !key.alt => KeyEffect::Answer(Answer::Always),
        _ => KeyEffect::None,
    }
}

/// Takes a key of the note.
fn typed_note(note: &mut String, key: &Input) -> KeyEffect {
    match key.key {
        Key::Enter => return KeyEffect::Answer(Answer::Deny(note.trim().to_owned())),
        Key::Esc => return KeyEffect::EndNote,
        Key::Backspace => drop(note.pop()),
        Key::Char(c) if !key.ctrl && !key.alt => push_note(note, c.encode_utf8(&mut [0; 4])),
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
            details: windlass::QuestionDetails::default(),
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
        let later = later + Duration::from_secs(1);
        for c in ['n', 'n', 'o'] {
            assert_eq!(panel.on_key(&key(c), later), None);
        }
        let enter = Input { key: Key::Enter, ..Input::default() };
        assert_eq!(panel.on_key(&enter, later), Some(Answer::Deny("no".into())));
        assert_eq!(given[0].try_recv(), Ok(Answer::Deny("no".into())));
    }

    #[test]
    fn only_a_second_key_allows_it_everywhere() {
        let (mut panel, mut given) = panel(&["make"]);
        let mut question: Question = (*panel.waiting[0].question).clone();
        question.rule = Some(windlass::Offer { toml: String::new(), allows: "every `make`".into() });
        panel.waiting[0].question = windlass_fakes::clean(question);
        let start = Instant::now();
        panel.drawn(start);
        let times: Vec<_> = (1..=5).map(|count| start + count * QUIET_TIME).collect();
        assert_eq!(panel.on_key(&key('a'), times[0]), None);
        assert_eq!(shown(&mut panel, 99).last().unwrap(), "Press a again to allow it everywhere (Esc: back)",);
        assert_eq!(panel.on_key(&key('y'), times[1]), None, "another key only goes back");
        assert_eq!(panel.on_key(&key('a'), times[2]), None);
        assert_eq!(panel.on_key(&key('a'), times[2]), None, "a key that is held down");
        assert!(given[0].try_recv().is_err());
        let enter = Input { key: Key::Enter, ..Input::default() };
        assert_eq!(panel.on_key(&enter, times[3]), Some(Answer::Always));
        assert_eq!(given[0].try_recv(), Ok(Answer::Always));
    }

    fn shown(panel: &mut QuestionQueue, rows: usize) -> Vec<String> {
        let lines = panel.fitted_lines(60, rows, &Theme::no_colour(), Instant::now());
        lines.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn several_questions_are_counted_and_can_be_denied_at_once() {
        let (mut panel, mut given) = panel(&["one", "two", "three", "four", "five"]);
        let start = Instant::now();
        panel.drawn(start);
        let lines = shown(&mut panel, 99);
        assert_eq!(lines[0], "Question 1 of 5");
        let end = &lines[lines.len() - 6..];
        assert_eq!(end[..2], ["  N  no to all 5, without a note", "  next 1: shell_command two"]);
        assert_eq!(end[4..], ["  and 1 more", "Allow it? (keys count in a moment)"]);
        let later = start + Duration::from_secs(1);
        assert_eq!(panel.on_key(&key('y'), later), Some(Answer::Once));
        assert_eq!(shown(&mut panel, 99)[0], "Question 2 of 5");
        panel.drawn(later);
        let denied = Answer::Deny(String::new());
        assert_eq!(panel.on_key(&key('N'), later + QUIET_TIME), Some(denied.clone()));
        let answers: Vec<_> = given.iter_mut().map(|given| given.try_recv().unwrap()).collect();
        assert_eq!(answers, [&[Answer::Once][..], &vec![denied; 4]].concat());
        assert!(!panel.is_open());
    }

    #[test]
    fn a_yes_for_the_session_answers_the_same_question_and_no_other() {
        let (mut panel, mut given) = panel(&["make", "make", "make -B"]);
        for waiting in &mut panel.waiting {
            let mut question: Question = (*waiting.question).clone();
            question.keys = vec!["key".into()];
            waiting.question = windlass_fakes::clean(question);
        }
        let start = Instant::now();
        panel.drawn(start);
        assert!(
            shown(&mut panel, 99).contains(&"     s also answers 1 question, which is the same".to_owned())
        );
        assert_eq!(panel.on_key(&key('s'), start + QUIET_TIME), Some(Answer::Session));
        assert_eq!(given[0].try_recv(), Ok(Answer::Session));
        assert_eq!(given[1].try_recv(), Ok(Answer::Session));
        assert!(given[2].try_recv().is_err());
        assert_eq!(shown(&mut panel, 99)[0], "Question 3 of 3");
    }

    #[test]
    fn a_long_command_keeps_its_ends_and_all_choices_in_little_room() {
        let command: String = (0..5000).map(|number| format!("echo line {number}\n")).collect();
        let (mut panel, _given) = panel(&[&command]);
        let lines = shown(&mut panel, 14);
        assert_eq!(lines.len(), 14, "{lines:#?}");
        assert_eq!(lines[1], "  │ echo line 0");
        assert!(lines.iter().any(|line| line.contains("more lines, printed above")), "{lines:#?}");
        assert!(lines.iter().any(|line| line.starts_with("  y  yes")), "{lines:#?}");
        assert_eq!(lines[12], "  q  no, and stop the turn");
        for rows in 0..14 {
            let lines = shown(&mut panel, rows);
            assert_eq!(lines.len(), rows);
            assert!(lines.last().is_none_or(|line| line.starts_with("Allow it?")), "{lines:#?}");
        }
    }

    #[test]
    fn control_c_stops_at_once_and_a_paste_is_only_ever_a_note() {
        let (mut panel, mut given) = panel(&["one", "two"]);
        let stop = Input { ctrl: true, ..key('c') };
        assert_eq!(panel.on_key(&stop, Instant::now()), Some(Answer::Abort));
        let start = Instant::now();
        panel.drawn(start);
        panel.on_paste("y\n");
        assert!(given[1].try_recv().is_err());
        panel.on_key(&key('n'), start + QUIET_TIME);
        panel.on_paste("not\nthis");
        panel.on_key(&Input { key: Key::Enter, ..Input::default() }, start + QUIET_TIME);
        assert_eq!(given[1].try_recv(), Ok(Answer::Deny("not this".into())));
    }

    #[test]
    fn the_question_of_a_cancelled_call_goes_away() {
        let (mut panel, given) = panel(&["make"]);
        assert!(panel.is_open());
        drop(given);
        assert!(!panel.is_open());
    }
}
