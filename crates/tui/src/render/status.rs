//! The status line. On narrow screens it drops its least important parts.

use ratatui::text::{Line, Span};
use windlass::{ApprovalPolicy, Network};

use crate::render::{
    Theme,
    visible::visible_command,
    wrap::{columns, cut_spans},
};

/// The sign between two parts.
const SEPARATOR: &str = " · ";

/// The content of the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStatus {
    /// The model, or a word for the offline rules.
    pub model: String,
    /// The provider of the model.
    pub provider: Option<String>,
    /// The working directory, as a person writes it (`~/project`).
    pub directory: String,
    /// The git branch.
    pub branch: Option<String>,
    /// The mode of the sandbox (`SandboxMode::name`).
    pub sandbox: String,
    /// The mechanism of the sandbox, if it is known (`Mechanism::name`).
    pub mechanism: Option<String>,
    /// The network that commands have in a sandbox where they may write.
    pub network: Network,
    /// Plan mode is on.
    pub plan_mode: bool,
    /// The approval policy.
    pub approval: ApprovalPolicy,
    /// The part of the context that is used.
    pub context_percent: Option<u8>,
    /// Tokens of the session.
    pub tokens: u64,
    /// Processes that run now.
    pub processes: usize,
}

/// Renders the status as one line.
pub fn render_status(status: &SessionStatus, width: u16, theme: &Theme) -> Line<'static> {
    let has_room = |parts: &[StatusPart]| joined_columns(parts) <= usize::from(width);
    let mut parts = parts(status, theme);
    while !has_room(&parts) && parts.len() > 1 {
        let least = parts.iter().enumerate().min_by_key(|(_, part)| part.importance).map_or(0, |(at, _)| at);
        match parts[least].shorter.take() {
            Some(shorter) => parts[least] = *shorter,
            None => drop(parts.remove(least)),
        }
    }
    let mut spans = Vec::new();
    for (at, part) in parts.into_iter().enumerate() {
        if at > 0 {
            spans.push(Span::styled(SEPARATOR, theme.dim));
        }
        spans.push(part.span);
    }
    cut_spans(&spans, width)
}

/// A part of the status line. The least important one is dropped first.
struct StatusPart {
    importance: u8,
    span: Span<'static>,
    /// A shorter form, which is more important.
    shorter: Option<Box<StatusPart>>,
}

/// Returns the parts from left to right. What guards the machine is dropped last.
fn parts(status: &SessionStatus, theme: &Theme) -> Vec<StatusPart> {
    let part = |importance, text: String, style| {
        let span = Span::styled(visible_command(&text).into_owned(), style);
        StatusPart { importance, span, shorter: None }
    };
    let nearly_full = status.context_percent.is_some_and(|percent| percent >= 80);
    let context_style = if nearly_full { theme.warning } else { theme.text };
    let processes = (status.processes > 0).then(|| format!("{} running", status.processes));
    let tokens = (status.tokens > 0).then(|| format!("{} tokens", short_number(status.tokens)));
    let name =
        status.directory.rsplit('/').next().filter(|name| !name.is_empty() && *name != status.directory);
    let name = name.map(|name| Box::new(part(5, name.to_owned(), theme.text)));
    // In plan mode nothing is asked.
    let approval = (!status.plan_mode).then(|| format!("ask: {}", status.approval.name()));
    [
        status.plan_mode.then(|| part(12, "PLAN MODE".to_owned(), theme.warning)),
        Some(part(10, status.model.clone(), theme.tool)),
        status.provider.clone().map(|provider| part(0, provider, theme.dim)),
        Some(StatusPart { shorter: name, ..part(4, status.directory.clone(), theme.text) }),
        status.branch.clone().map(|branch| part(3, format!("on {branch}"), theme.dim)),
        Some(sandbox_part(status, theme)),
        approval.map(|approval| part(8, approval, theme.text)),
        status.context_percent.map(|percent| part(6, format!("context {percent} %"), context_style)),
        tokens.map(|tokens| part(1, tokens, theme.dim)),
        processes.map(|processes| part(7, processes, theme.text)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns `workspace-write (namespaces, network off)`, with shorter forms. Without a sandbox, the
/// network is no setting.
fn sandbox_part(status: &SessionStatus, theme: &Theme) -> StatusPart {
    let mode = status.sandbox.as_str();
    if matches!(mode, "unconfined" | "danger-full-access") {
        let span = Span::styled("NO SANDBOX", theme.warning);
        return StatusPart { importance: 11, span, shorter: None };
    }
    let (network, style) = match status.network {
        Network::Any if mode != "read-only" => ("NETWORK ON", theme.warning),
        Network::Any | Network::None => ("network off", theme.text),
    };
    let form = |importance, text: String, shorter| {
        let span = Span::styled(visible_command(&text).into_owned(), style);
        StatusPart { importance, span, shorter }
    };
    let shortest = form(11, mode.to_owned(), None);
    let short = form(9, format!("{mode} ({network})"), Some(Box::new(shortest)));
    match &status.mechanism {
        Some(mechanism) => form(2, format!("{mode} ({mechanism}, {network})"), Some(Box::new(short))),
        None => short,
    }
}

fn joined_columns(parts: &[StatusPart]) -> usize {
    let separators = parts.len().saturating_sub(1) * columns(&[Span::raw(SEPARATOR)]);
    parts.iter().map(|part| part.span.width()).sum::<usize>() + separators
}

/// Writes a number with at most four digits: `950`, `12.3k`, `4.5M`.
fn short_number(number: u64) -> String {
    let tenths = |unit: u64| format!("{}.{}", number / unit, number % unit * 10 / unit);
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", tenths(1_000)),
        _ => format!("{}M", tenths(1_000_000)),
    }
}
