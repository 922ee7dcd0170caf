//! The questions to the person: of the gate, of MCP servers, of the agent, and about a plan. One is
//! shown at a time, in this order.

use std::time::Instant;

use ratatui::text::Line;
use ratatui_textarea::{Input, Key};
use windlass::{Answer, Asker, mcp::short_name};

use super::App;
use crate::{event_queue::PendingElicitation, plan_question::PlanQuestion};

impl App {
    /// Takes a question of an MCP server or of the agent.
    pub(super) fn on_elicitation(&mut self, question: PendingElicitation) {
        let (name, what) = match &question.question.asker {
            Asker::Server(name) => (short_name(name), "an MCP server asks you something"),
            Asker::Agent => ("the agent".to_owned(), "the agent asks you something"),
        };
        self.notices.on_question(&name, what);
        self.elicitations.push(question);
    }

    /// Returns true if a question takes the keys.
    pub(super) fn is_asking(&mut self) -> bool {
        self.panel.is_open() || self.elicitations.is_open() || self.plan_question.is_some()
    }

    /// Returns true if a question has appeared that no key may answer yet.
    pub(crate) fn has_new_question(&mut self) -> bool {
        if self.panel.is_open() {
            return self.panel.is_new();
        }
        self.elicitations.is_new() || self.plan_question.as_ref().is_some_and(PlanQuestion::is_new)
    }

    /// Notes that the picture is on the screen, after all keys that were typed before were dropped.
    pub(crate) fn drawn(&mut self, now: Instant) {
        if self.panel.is_open() {
            self.panel.drawn(now);
        } else if self.elicitations.is_open() {
            self.elicitations.drawn(now);
        } else {
            self.plan_question.iter_mut().for_each(|question| question.drawn(now));
        }
    }

    /// Returns the time at which a question will take keys, if it does not yet.
    pub(super) fn question_armed_at(&self, now: Instant) -> Option<Instant> {
        let plan = self.plan_question.as_ref().and_then(|question| question.armed_at(now));
        [self.panel.armed_at(now), self.elicitations.armed_at(now), plan].into_iter().flatten().min()
    }

    /// Gives a key to the question that is shown. Returns false if it is for something else.
    pub(super) fn question_took_key(&mut self, key: &Input, now: Instant) -> bool {
        if self.panel.is_open() {
            if self.panel.on_key(key, now) == Some(Answer::Abort) {
                self.cancel();
            }
            return true;
        }
        if self.elicitations.is_open() {
            if self.elicitations.on_key(key, now) {
                self.cancel();
            }
            return true;
        }
        if let Some(question) = &mut self.plan_question
            && !(key.ctrl && matches!(key.key, Key::Char('c' | 'd' | 'z')))
        {
            if let Some(answer) = question.on_key(key, now) {
                self.answer_plan(answer, now);
            }
            return true;
        }
        false
    }

    /// Returns the lines of the question that is shown, or the choices for the input.
    pub(super) fn lower_lines(&mut self, width: u16, now: Instant) -> Vec<Line<'static>> {
        if self.panel.is_open() {
            self.panel.lines(width, &self.info.theme, now)
        } else if self.elicitations.is_open() {
            self.elicitations.lines(width, &self.info.theme, now)
        } else if let Some(question) = &self.plan_question {
            question.lines(width, &self.info.theme, now)
        } else {
            self.composer.choices(width, &self.info.theme)
        }
    }

    /// Returns a question in so many rows. One that is too long for the screen is printed whole
    /// above, and shortened here.
    pub(super) fn fitted_question(
        &mut self,
        mut lines: Vec<Line<'static>>,
        (width, rows): (u16, u16),
        now: Instant,
    ) -> Vec<Line<'static>> {
        let rows = usize::from(rows);
        if lines.len() <= rows {
            return lines;
        }
        if self.panel.is_open() {
            self.transcript.add(self.panel.print(width, &self.info.theme, now));
            return self.panel.fitted_lines(width, rows, &self.info.theme, now);
        }
        if self.elicitations.is_open() {
            self.transcript.add(self.elicitations.print(width, &self.info.theme));
            return lines.split_off(lines.len() - rows);
        }
        lines
    }
}
