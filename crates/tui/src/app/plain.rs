//! The session without a picture: lines in, lines out.

use std::time::Instant;

use ratatui::text::Line;
use ratatui_textarea::{Input, Key};
use windlass::Answer;

use super::App;

impl App {
    pub(crate) fn is_working(&self) -> bool {
        self.working.is_some()
    }

    pub(crate) fn has_question(&mut self) -> bool {
        self.panel.is_open() || self.elicitations.is_open()
    }

    /// Returns the lines of a question, once.
    pub(crate) fn new_question(&mut self) -> Vec<Line<'static>> {
        if !self.panel.is_open() {
            return self.new_elicitation();
        }
        let now = Instant::now();
        let mut lines = self.panel.print(self.transcript.width(), &self.info.theme, now);
        // The last line is for keys.
        lines.pop();
        self.panel.drawn(now);
        lines
    }

    /// Returns the lines of the next step of a question of a server, once.
    fn new_elicitation(&mut self) -> Vec<Line<'static>> {
        if !self.elicitations.is_open() {
            return Vec::new();
        }
        let mut lines = self.elicitations.print(self.transcript.width(), &self.info.theme);
        if !lines.is_empty() {
            lines.push(Line::raw(self.elicitations.prompt()));
        }
        lines
    }

    /// Returns the line of the call that began last.
    pub(crate) fn newest_call(&self) -> Option<Line<'static>> {
        let lines = self.transcript.live_lines(Instant::now());
        lines.into_iter().rev().find(|line| line.to_string().starts_with('•'))
    }

    /// Takes a message. The terminal shows it already.
    pub(crate) fn submit_line(&mut self, line: &str, now: Instant) {
        let is_sent = !self.is_working() && !line.trim_start().starts_with('/');
        self.submit(line.to_owned(), now);
        if is_sent {
            self.take_finished();
        }
    }

    /// Answers the question with a line: a letter or its word, and for `n` a note. An empty line is
    /// a no.
    pub(crate) fn answer_with(&mut self, line: &str) {
        if !self.panel.is_open() && self.elicitations.is_open() {
            self.elicitations.on_line(line);
            return self.elicitations.take_problem().iter().for_each(|problem| self.note(problem));
        }
        let (word, note) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let letter = match word.to_ascii_lowercase().as_str() {
            "" => return self.press([Key::Esc]),
            "y" | "yes" if note.is_empty() => 'y',
            "s" | "session" if note.is_empty() => 's',
            "p" | "project" if note.is_empty() => 'p',
            "a" | "always" if note.is_empty() => 'a',
            "q" | "quit" if note.is_empty() => 'q',
            "n" | "no" => {
                let note = note.chars().map(Key::Char);
                return self.press([Key::Char('n')].into_iter().chain(note).chain([Key::Enter]));
            }
            _ => return self.note("answer with one of the letters above"),
        };
        // The line is the confirmation that a single key would need.
        self.press(std::iter::repeat_n(Key::Char(letter), if letter == 'a' { 2 } else { 1 }));
    }

    fn press(&mut self, keys: impl IntoIterator<Item = Key>) {
        let now = Instant::now();
        for key in keys {
            let input = Input { key, ..Input::default() };
            self.panel.arm(now);
            if self.panel.on_key(&input, now) == Some(Answer::Abort) {
                self.cancel();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;
    use windlass::{Beyond, CommandLine, Effects, Question};

    use super::*;
    use crate::{
        app::tests::app,
        event_queue::{PendingQuestion, SessionMessage},
    };

    fn asked(app: &mut App) -> oneshot::Receiver<Answer> {
        let argv = ["bash", "-c", "make"].map(str::to_owned).to_vec();
        let question = Question {
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
        };
        let (answer, given) = oneshot::channel();
        let question = windlass_fakes::clean(question);
        let pending = PendingQuestion { question, answer };
        app.on_message(SessionMessage::Question(Box::new(pending)), Instant::now());
        given
    }

    #[test]
    fn a_question_is_shown_once_and_answered_by_a_line() {
        let cases = [
            ("y", Answer::Once),
            ("Yes", Answer::Once),
            ("", Answer::Deny(String::new())),
            ("n use git mv", Answer::Deny("use git mv".into())),
            ("q", Answer::Abort),
        ];
        for (line, expected) in cases {
            let mut app = app();
            let mut given = asked(&mut app);
            assert!(app.new_question().iter().any(|line| line.to_string().contains("make")));
            assert!(app.new_question().is_empty());
            for unclear in ["maybe", "y please", "s"] {
                app.answer_with(unclear);
                assert!(given.try_recv().is_err(), "{unclear}");
            }
            app.answer_with(line);
            assert_eq!(given.try_recv(), Ok(expected), "{line}");
            assert!(!app.has_question());
        }
    }
}
