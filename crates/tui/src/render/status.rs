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
    /// The mechanism of the sandbox, or its mode (`Mechanism::name`, `SandboxMode::name`).
    pub sandbox: String,
    /// The network that commands have.
    pub network: Network,
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
    let mut parts = parts(status, theme);
    while joined_columns(&parts) > usize::from(width) && parts.len() > 1 {
        let least = parts.iter().enumerate().min_by_key(|(_, part)| part.importance).map_or(0, |(at, _)| at);
        parts.remove(least);
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
}

/// Returns the parts from left to right. What guards the machine is dropped last.
fn parts(status: &SessionStatus, theme: &Theme) -> Vec<StatusPart> {
    let part = |importance, text: String, style| {
        let span = Span::styled(visible_command(&text).into_owned(), style);
        StatusPart { importance, span }
    };
    let (network, network_style) = match status.network {
        Network::None => ("network off", theme.text),
        Network::Any => ("NETWORK ON", theme.warning),
    };
    let has_sandbox = !matches!(status.sandbox.as_str(), "unconfined" | "danger-full-access");
    let sandbox_style = if has_sandbox { theme.text } else { theme.warning };
    let sandbox = if has_sandbox { status.sandbox.clone() } else { "NO SANDBOX".to_owned() };
    let nearly_full = status.context_percent.is_some_and(|percent| percent >= 80);
    let context_style = if nearly_full { theme.warning } else { theme.text };
    let processes = (status.processes > 0).then(|| format!("{} running", status.processes));
    let tokens = (status.tokens > 0).then(|| format!("{} tokens", short_number(status.tokens)));
    [
        Some(part(8, status.model.clone(), theme.tool)),
        status.provider.clone().map(|provider| part(0, provider, theme.dim)),
        Some(part(4, status.directory.clone(), theme.text)),
        status.branch.clone().map(|branch| part(2, format!("on {branch}"), theme.dim)),
        Some(part(9, sandbox, sandbox_style)),
        Some(part(7, network.to_owned(), network_style)),
        Some(part(6, format!("ask: {}", status.approval.name()), theme.text)),
        status.context_percent.map(|percent| part(5, format!("context {percent} %"), context_style)),
        tokens.map(|tokens| part(1, tokens, theme.dim)),
        processes.map(|processes| part(3, processes, theme.text)),
    ]
    .into_iter()
    .flatten()
    .collect()
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
