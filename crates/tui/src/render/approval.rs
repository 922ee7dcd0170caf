//! The approval panel: what is asked, why, and what each answer allows.
//!
//! No text of a model can pose as a part of the panel: the lines of a command have a bar before
//! them, and all other texts are on one logical line.

use std::path::PathBuf;

use ratatui::{
    style::Style,
    text::{Line, Span},
};
use windlass::{Beyond, Network, Question, counted};

use crate::render::{
    Theme,
    tool_call::shown_path,
    visible::{escapes, path_text, visible, visible_command},
    wrap::{HangingIndent, wrap_spans},
};
use marks::{DoubtfulParts, excerpt};
use subject::ApprovalSubject;
pub use subject::question_gist;

mod marks;
mod subject;

/// Maximum number of characters of the model's justification, and of each other reason.
const MAX_JUSTIFICATION_CHARS: usize = 300;
const MAX_REASON_CHARS: usize = 600;

/// Maximum number of unclear texts that are named.
const MAX_UNCLEAR: usize = 5;

/// Maximum number of files that are named for each effect.
const MAX_FILES: usize = 8;

/// Lines of the command that are kept on a screen with too little room, if there are as many.
const MIN_SUBJECT_LINES: usize = 5;

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

    /// Returns at most so many lines. The choices stay whole, and the command and the reasons keep
    /// their beginning and end.
    pub fn fitted(&self, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
        let room = rows.saturating_sub(self.choices.len());
        let kept = self.subject.len().min(MIN_SUBJECT_LINES).min(room);
        let reasons = without_middle(&self.reasons, room - kept, theme);
        let subject = without_middle(&self.subject, room - reasons.len(), theme);
        let lines = [subject, reasons, self.choices.clone()].concat();
        let over = lines.len().saturating_sub(rows);
        lines.into_iter().skip(over).collect()
    }
}

/// Returns the first and the last of many lines, with a line between them that counts the others.
fn without_middle(lines: &[Line<'static>], rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    if lines.len() <= rows {
        return lines.to_vec();
    }
    let Some(kept) = rows.checked_sub(1) else { return Vec::new() };
    let (first, last) = (kept - kept / 2, kept / 2);
    let hidden = counted((lines.len() - kept) as u64, "more line");
    let mark = Line::styled(format!("  ⋮ {hidden}, printed above"), theme.warning);
    [&lines[..first], &[mark], &lines[lines.len() - last..]].concat()
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
    let subject = ApprovalSubject::from_question(question);
    let doubtful = DoubtfulParts::from_question(question, &subject);
    let painter = PanelPainter { question, subject, width, theme, doubtful };
    ApprovalPanel { subject: painter.subject(), reasons: painter.reasons(), choices: painter.choices() }
}

struct PanelPainter<'a> {
    question: &'a Question,
    subject: ApprovalSubject,
    width: u16,
    theme: &'a Theme,
    doubtful: DoubtfulParts,
}

impl PanelPainter<'_> {
    fn subject(&self) -> Vec<Line<'static>> {
        let tool = Span::styled(visible_command(self.question.tool.as_str()).into_owned(), self.theme.tool);
        let wants = Span::raw(format!(" wants to {}:", self.subject.verb));
        let mut lines = self.wrap(&[tool, wants], 0);
        let bar = |sign| vec![Span::styled(sign, self.theme.border)];
        let indent = HangingIndent { first: bar("  │ "), rest: bar("  ┊ ") };
        for line in self.subject.text.split('\n') {
            let spans = self.doubtful.mark(&visible_command(line), self.theme.text, self.theme);
            lines.extend(wrap_spans(&spans, self.width, &indent));
        }
        if self.subject.change.is_empty() {
            return lines;
        }
        let title = if self.question.effects.writes.is_empty() { "with:" } else { "the change:" };
        lines.extend(self.wrap(&[Span::styled(format!("  {title}"), self.theme.dim)], 2));
        for line in self.subject.change.split('\n') {
            let spans = self.doubtful.mark(&visible(line), self.change_style(line), self.theme);
            lines.extend(wrap_spans(&spans, self.width, &indent));
        }
        lines
    }

    /// Returns the style of a line of a change, by its sign.
    fn change_style(&self, line: &str) -> Style {
        match line {
            _ if line.starts_with('+') => self.theme.added,
            _ if line.starts_with('-') => self.theme.removed,
            _ if line.starts_with("*** ") || line.starts_with("@@") => self.theme.heading,
            _ => self.theme.text,
        }
    }

    fn reasons(&self) -> Vec<Line<'static>> {
        let Question { effects, cwd, reason, unclear, .. } = self.question;
        let mut lines = self.fact("in", &path_text(cwd));
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
        let Question { effects, cwd, details, .. } = self.question;
        let shown = |path: &PathBuf| shown_path(path, cwd);
        let declared = effects.writes.iter().filter(|_| effects.has_program()).map(shown);
        // The file of an edit is written; reading it as well is no news.
        let reads = effects.reads.iter().filter(|path| !effects.writes.contains(path));
        let files: [(_, Vec<_>); 4] = [
            ("would create", details.creates.iter().map(shown).collect()),
            ("would write", declared.chain(details.writes.iter().cloned()).collect()),
            ("would delete", details.deletes.clone()),
            ("would read", reads.map(shown).collect()),
        ];
        let named = files.into_iter().filter(|(_, files)| !files.is_empty());
        let mut touched: Vec<_> = named.map(|(label, files)| (label, file_list(&files))).collect();
        if effects.network == Network::Any {
            touched.push(("would use", "the network".to_owned()));
        }
        touched.extend(effects.outward.iter().map(|effect| ("beware", format!("it {}", effect.in_words()))));
        if !escapes(&self.subject.text).is_empty() || !escapes(&self.subject.change).is_empty() {
            let text = "some characters are invisible or look like others; they are written as `\\u{…}`";
            touched.push(("beware", text.to_owned()));
        }
        if self.subject.has_counted_blanks {
            touched.push(("beware", "long runs of blanks are not shown but counted".to_owned()));
        }
        touched
    }

    fn choices(&self) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        for part in self.doubtful.found().filter(|part| *part != self.subject.text) {
            let label = Span::styled("  look at: ", self.theme.warning);
            let part = excerpt(part, MAX_REASON_CHARS);
            lines.extend(self.wrap(&[label, Span::styled(part, self.theme.danger)], 4));
        }
        lines.extend(self.confinement());
        let choices = ApprovalChoice::from_question(self.question);
        lines.extend(choices.into_iter().flat_map(|choice| self.choice(choice)));
        lines
    }

    fn choice(&self, choice: ApprovalChoice) -> Vec<Line<'static>> {
        let effects = &self.question.effects;
        let same = match (&effects.command, &effects.typed) {
            (Some(_), _) => "the same command in the same place",
            (None, Some(_)) => "the same text in the same place",
            (None, None) if effects.remote.is_some() => "any call of this tool, whatever its arguments are",
            (None, None) if effects.writes.is_empty() => "the same call",
            // The answer is kept by the names of the files.
            (None, None) => "any change of the same files",
        };
        let allows = self.question.rule.as_ref().map(|rule| rule.allows.as_str()).unwrap_or_default();
        let text = match choice {
            ApprovalChoice::Once => "yes, once".to_owned(),
            ApprovalChoice::Session => format!("yes, for this session: {same}"),
            ApprovalChoice::Project => format!("yes, always in this project: {allows}"),
            ApprovalChoice::Always => "yes, always and everywhere: the same".to_owned(),
            ApprovalChoice::Deny => "no, and write a note to the model".to_owned(),
            ApprovalChoice::Stop => "no, and stop the turn".to_owned(),
        };
        let key = Span::styled(format!("  {}  ", choice.key()), self.theme.key);
        let text = Span::styled(visible_command(&text).into_owned(), self.theme.text);
        wrap_spans(&[text], self.width, &HangingIndent::from_marker(key))
    }

    /// Describes how a call that is allowed would be held, whichever yes is given.
    fn confinement(&self) -> Vec<Line<'static>> {
        let (text, style) = match (&self.question.beyond, &self.question.effects.remote) {
            (_, Some(remote)) => {
                (format!("that of the server, which {}", remote.reach.in_words()), self.theme.text)
            }
            (Beyond::Nothing, None) => ("the current mode".to_owned(), self.theme.text),
            (Beyond::Wider { writable, network }, None) => {
                let cwd = &self.question.cwd;
                let places = writable.iter().map(|path| format!("`{}` writable", shown_path(path, cwd)));
                let more: Vec<_> = places.chain(network.then(|| "the network".to_owned())).collect();
                (format!("on, with {} as well", more.join(" and ")), self.theme.text)
            }
            (Beyond::Everything, None) => {
                ("NONE: a yes runs it WITHOUT the sandbox".to_owned(), self.theme.danger)
            }
        };
        let label = Span::styled("  sandbox: ", self.theme.dim);
        self.wrap(&[label, Span::styled(visible_command(&text).into_owned(), style)], 4)
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

/// Names the first of many files, and counts the others.
fn file_list(files: &[String]) -> String {
    let named: Vec<_> = files.iter().take(MAX_FILES).map(|file| excerpt(file, MAX_REASON_CHARS)).collect();
    let more = files.len().saturating_sub(MAX_FILES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", named.join(", "))
}
