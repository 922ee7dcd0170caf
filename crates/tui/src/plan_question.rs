//! The question after a plan.

use std::time::{Duration, Instant};

use ratatui::text::{Line, Span};
use ratatui_textarea::{Input, Key};

use crate::{
    render::{
        Theme,
        wrap::{HangingIndent, wrap_text},
    },
    text_lines::faint,
};

/// Keys count only after the question has been visible for so long without a key.
const QUIET_TIME: Duration = Duration::from_millis(300);

/// The choices, with their keys.
const CHOICES: [(char, PlanAnswer, &str); 3] = [
    ('y', PlanAnswer::Approve, "approve the plan: the former settings return, and the work begins"),
    ('k', PlanAnswer::KeepPlanning, "keep planning: write what should change (Esc)"),
    ('l', PlanAnswer::Leave, "leave plan mode without the plan"),
];

/// The answer of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanAnswer {
    Approve,
    KeepPlanning,
    Leave,
}

/// Asks what becomes of a plan.
#[derive(Debug, Default)]
pub(crate) struct PlanQuestion {
    /// The time since which it is visible and no key was pressed.
    quiet_since: Option<Instant>,
}

impl PlanQuestion {
    /// Returns true until it has been drawn.
    pub(crate) fn is_new(&self) -> bool {
        self.quiet_since.is_none()
    }

    /// Notes that it has been drawn.
    pub(crate) fn drawn(&mut self, now: Instant) {
        self.quiet_since.get_or_insert(now);
    }

    fn is_armed(&self, now: Instant) -> bool {
        self.quiet_since.is_some_and(|since| now.duration_since(since) >= QUIET_TIME)
    }

    /// Returns the time at which keys will be accepted, if they are not yet.
    pub(crate) fn armed_at(&self, now: Instant) -> Option<Instant> {
        self.quiet_since.map(|since| since + QUIET_TIME).filter(|armed| *armed > now)
    }

    /// Takes a key. Returns the answer that it gave.
    pub(crate) fn on_key(&mut self, key: &Input, now: Instant) -> Option<PlanAnswer> {
        if !self.is_armed(now) {
            self.quiet_since = self.quiet_since.map(|_| now);
            return None;
        }
        let answer = match key.key {
            Key::Esc => Some(PlanAnswer::KeepPlanning),
            Key::Char(c) if !key.ctrl && !key.alt => {
                CHOICES.iter().find(|(key, ..)| *key == c).map(|(_, answer, _)| *answer)
            }
            _ => None,
        };
        if answer.is_none() {
            // It may be the first of many: a word, or a late answer of the terminal.
            self.quiet_since = Some(now);
        }
        answer
    }

    pub(crate) fn lines(&self, width: u16, theme: &Theme, now: Instant) -> Vec<Line<'static>> {
        let title = "Plan mode: what becomes of this plan?";
        let title = if self.is_armed(now) { Line::styled(title, theme.heading) } else { faint(title.into()) };
        let choices = CHOICES.iter().flat_map(|(key, _, text)| {
            let indent = HangingIndent::from_marker(Span::raw(format!("  {key}  ")));
            wrap_text(text, theme.text, width, &indent).collect::<Vec<_>>()
        });
        [title].into_iter().chain(choices).collect()
    }
}
