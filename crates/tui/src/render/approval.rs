//! The approval panel: what is asked, why, and what each answer allows.
//!
//! No text of a model can pose as a part of the panel: the lines of a command have a bar before
//! them, and all other texts are on one logical line.

use ratatui::text::{Line, Span};
use windlass::{Beyond, Network, Offer, Question};

use crate::render::{
    Theme,
    tool_call::{shell_script, shown_path},
    visible::visible_command,
    wrap::{HangingIndent, wrap_spans},
};
use marks::{DoubtfulParts, excerpt};

mod marks;

/// Maximum number of characters of the model's justification, and of each other reason.
const MAX_JUSTIFICATION_CHARS: usize = 300;
const MAX_REASON_CHARS: usize = 600;

/// Maximum number of unclear texts that are named.
const MAX_UNCLEAR: usize = 5;

/// The panel in three parts. The caller may scroll `subject`; the others should stay visible.
#[derive(Debug, Clone, PartialEq)]
pub struct ApprovalPanel {
    /// The whole command, or the files to be written.
    pub subject: Vec<Line<'static>>,
    /// The effects of the call, and why it is asked.
    pub reasons: Vec<Line<'static>>,
    /// The doubtful part again, and the answers with their keys.
    pub choices: Vec<Line<'static>>,
}

impl ApprovalPanel {
    /// Returns all lines of the panel.
    pub fn into_lines(self) -> Vec<Line<'static>> {
        [self.subject, self.reasons, self.choices].concat()
    }
}

/// An answer that a question offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalChoice {
    /// Yes, this once.
    Once,
    /// Yes, and the same again in this session.
    Session,
    /// Yes, and keep the rule for this project.
    Project,
    /// Yes, and keep the rule for all projects.
    Always,
    /// No, with a note to the model.
    Deny,
    /// No, and stop the turn.
    Stop,
}

impl ApprovalChoice {
    /// Returns the answers to a question, in the order in which they are shown.
    pub fn from_question(question: &Question) -> Vec<Self> {
        let mut choices = vec![Self::Once];
        if !question.keys.is_empty() {
            choices.push(Self::Session);
        }
        if question.rule.is_some() {
            choices.extend([Self::Project, Self::Always]);
        }
        choices.extend([Self::Deny, Self::Stop]);
        choices
    }

    /// The key that gives the answer.
    pub fn key(self) -> char {
        match self {
            Self::Once => 'y',
            Self::Session => 's',
            Self::Project => 'p',
            Self::Always => 'a',
            Self::Deny => 'n',
            Self::Stop => 'q',
        }
    }
}

/// Renders a question.
pub fn render_approval(question: &Question, width: u16, theme: &Theme) -> ApprovalPanel {
    let painter = PanelPainter { question, width, theme, doubtful: DoubtfulParts::from_question(question) };
    ApprovalPanel { subject: painter.subject(), reasons: painter.reasons(), choices: painter.choices() }
}

struct PanelPainter<'a> {
    question: &'a Question,
    width: u16,
    theme: &'a Theme,
    doubtful: DoubtfulParts,
}

impl PanelPainter<'_> {
    fn subject(&self) -> Vec<Line<'static>> {
        let Question { tool, effects, cwd, .. } = self.question;
        let (verb, text) = match (&effects.command, &effects.typed) {
            (Some(command), _) if effects.terminal => {
                ("run, with a terminal to type to", shell_script(command))
            }
            (Some(command), _) => ("run", shell_script(command)),
            (None, Some(typed)) => ("type, to a program that runs", typed.display()),
            (None, None) if effects.writes.is_empty() => ("use", "the network".to_owned()),
            (None, None) => {
                let paths: Vec<_> = effects.writes.iter().map(|path| shown_path(path, cwd)).collect();
                ("write", paths.join("\n"))
            }
        };
        let tool = Span::styled(visible_command(tool.as_str()).into_owned(), self.theme.tool);
        let mut lines = self.wrap(&[tool, Span::raw(format!(" wants to {verb}:"))], 0);
        let bar = |sign| vec![Span::styled(sign, self.theme.border)];
        let indent = HangingIndent { first: bar("  │ "), rest: bar("  ┊ ") };
        for line in text.split('\n') {
            let spans = self.doubtful.mark(&visible_command(line), self.theme);
            lines.extend(wrap_spans(&spans, self.width, &indent));
        }
        lines
    }

    fn reasons(&self) -> Vec<Line<'static>> {
        let Question { effects, cwd, reason, unclear, .. } = self.question;
        let mut lines = self.fact("in", &cwd.to_string_lossy());
        for (label, text) in self.touched() {
            lines.extend(self.fact(label, &text));
        }
        lines.extend(self.fact("why asked", &excerpt(reason, MAX_REASON_CHARS)));
        for text in unclear.iter().take(MAX_UNCLEAR) {
            lines.extend(self.fact("unclear", &excerpt(text, MAX_REASON_CHARS)));
        }
        if unclear.len() > MAX_UNCLEAR {
            lines.extend(self.fact("unclear", &format!("… {} more", unclear.len() - MAX_UNCLEAR)));
        }
        let justification =
            effects.escalation.as_ref().and_then(|escalation| escalation.justification.as_ref());
        if let Some(text) = justification {
            lines.extend(self.fact("the model says", &excerpt(text, MAX_JUSTIFICATION_CHARS)));
        }
        lines
    }

    /// Returns what a yes would let the call touch.
    fn touched(&self) -> Vec<(&'static str, String)> {
        let Question { effects, cwd, .. } = self.question;
        let paths = |paths: &[std::path::PathBuf]| {
            paths.iter().map(|path| shown_path(path, cwd)).collect::<Vec<_>>().join(", ")
        };
        let mut touched = Vec::new();
        if effects.has_program() && !effects.writes.is_empty() {
            touched.push(("would write", paths(&effects.writes)));
        }
        if !effects.reads.is_empty() {
            touched.push(("would read", paths(&effects.reads)));
        }
        if effects.network == Network::Any {
            touched.push(("would use", "the network".to_owned()));
        }
        touched.extend(effects.outward.iter().map(|effect| ("beware", format!("it {}", effect.in_words()))));
        touched
    }

    fn choices(&self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for part in self.doubtful.found() {
            let label = Span::styled("  look at: ", self.theme.warning);
            let part = excerpt(part, MAX_REASON_CHARS);
            lines.extend(self.wrap(&[label, Span::styled(part, self.theme.danger)], 4));
        }
        let choices = ApprovalChoice::from_question(self.question);
        lines.extend(choices.into_iter().flat_map(|choice| self.choice(choice)));
        lines
    }

    fn choice(&self, choice: ApprovalChoice) -> Vec<Line<'static>> {
        let thing = match (&self.question.effects.command, &self.question.effects.typed) {
            (Some(_), _) => "command",
            (None, Some(_)) => "text",
            (None, None) => "change",
        };
        let allows = self.question.rule.as_ref().map(|rule| rule.allows.as_str()).unwrap_or_default();
        let held = self.confinement();
        let text = match choice {
            ApprovalChoice::Once => format!("yes, once: this {thing}, {held}"),
            ApprovalChoice::Session => {
                format!("yes, for this session: the same {thing} in the same place, {held}")
            }
            ApprovalChoice::Project => format!("yes, always in this project: {allows}, {held}"),
            ApprovalChoice::Always => format!("yes, always and everywhere: {allows}, {held}"),
            ApprovalChoice::Deny => "no, and write a note to the model".to_owned(),
            ApprovalChoice::Stop => "no, and stop the turn".to_owned(),
        };
        let key = Span::styled(format!("  {}  ", choice.key()), self.theme.key);
        let text = Span::styled(visible_command(&text).into_owned(), self.theme.text);
        let mut lines = wrap_spans(&[text], self.width, &HangingIndent::from_marker(key));
        if let (ApprovalChoice::Always, Some(rule)) = (choice, &self.question.rule) {
            lines.extend(self.rule(rule));
        }
        lines
    }

    /// Shows the rule of the two answers above it, to the letter.
    fn rule(&self, rule: &Offer) -> Vec<Line<'static>> {
        let mut lines = self.wrap(&[Span::styled("     the rule that p and a keep:", self.theme.dim)], 5);
        let bar = |sign| vec![Span::styled(sign, self.theme.border)];
        let indent = HangingIndent { first: bar("     │ "), rest: bar("     ┊ ") };
        for line in rule.toml.lines().filter(|line| !line.trim().is_empty()) {
            let spans = [Span::styled(visible_command(line).into_owned(), self.theme.code)];
            lines.extend(wrap_spans(&spans, self.width, &indent));
        }
        lines
    }

    /// Describes how a call that is allowed would be held.
    fn confinement(&self) -> String {
        match &self.question.beyond {
            Beyond::Nothing => "in the sandbox as it is".to_owned(),
            Beyond::Wider { writable, network } => {
                let cwd = &self.question.cwd;
                let places = writable.iter().map(|path| format!("`{}` writable", shown_path(path, cwd)));
                let more: Vec<_> = places.chain(network.then(|| "the network".to_owned())).collect();
                format!("in the sandbox, with {} as well", more.join(" and "))
            }
            Beyond::Everything => "WITHOUT the sandbox".to_owned(),
        }
    }

    fn fact(&self, label: &str, text: &str) -> Vec<Line<'static>> {
        let label = Span::styled(format!("  {label}: "), self.theme.dim);
        let text = Span::styled(visible_command(text).into_owned(), self.theme.text);
        self.wrap(&[label, text], 4)
    }

    fn wrap(&self, spans: &[Span<'_>], columns: usize) -> Vec<Line<'static>> {
        let indent = HangingIndent { first: Vec::new(), ..HangingIndent::from_columns(columns) };
        wrap_spans(spans, self.width, &indent)
    }
}
