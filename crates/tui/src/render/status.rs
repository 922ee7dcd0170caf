//! The status line. On narrow screens its parts become shorter, and then the least important ones
//! are dropped.

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
    let with_short = |long: StatusPart, short| StatusPart { shorter: Some(Box::new(short)), ..long };
    let tokens = (status.tokens > 0).then(|| {
        let long = part(1, format!("{} tokens", short_number(status.tokens)), theme.dim);
        with_short(long, part(7, format!("{} tok", shortest_number(status.tokens)), theme.dim))
    });
    let directory = part(4, status.directory.clone(), theme.text);
    let directory = match short_directories(&status.directory) {
        Some((shorter, name)) => {
            let name = part(9, name, theme.text);
            with_short(directory, with_short(part(5, shorter, theme.text), name))
        }
        None => StatusPart { importance: 9, ..directory },
    };
    let context = status.context_percent.map(|percent| {
        let short = part(8, format!("ctx {percent} %"), context_style);
        with_short(part(5, format!("context {percent} %"), context_style), short)
    });
    // In plan mode nothing is asked.
    let approval = (!status.plan_mode).then(|| {
        let name = status.approval.name();
        with_short(part(6, format!("ask: {name}"), theme.text), part(11, name.to_owned(), theme.text))
    });
    let provider = status.provider.clone().filter(|provider| *provider != status.model);
    [
        status.plan_mode.then(|| part(14, "PLAN MODE".to_owned(), theme.warning)),
        Some(part(12, status.model.clone(), theme.tool)),
        provider.map(|provider| part(0, provider, theme.dim)),
        Some(directory),
        status.branch.clone().map(|branch| part(3, format!("on {branch}"), theme.dim)),
        Some(sandbox_part(status, theme)),
        approval,
        context,
        tokens,
        processes.map(|processes| part(10, processes, theme.text)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns `~/…/name` and `name` for a directory, if they are shorter.
fn short_directories(directory: &str) -> Option<(String, String)> {
    let (above, name) = directory.rsplit_once('/').filter(|(_, name)| !name.is_empty())?;
    let start = if above.starts_with("~/") { "~/…/" } else { "…/" };
    let shorter = if above.contains('/') { format!("{start}{name}") } else { directory.to_owned() };
    Some((shorter, name.to_owned()))
}

/// Returns `workspace-write (namespaces, network off)`, with shorter forms: a network that is on is
/// named as long as there is room. Without a sandbox, the
/// network is no setting.
fn sandbox_part(status: &SessionStatus, theme: &Theme) -> StatusPart {
    let mode = status.sandbox.as_str();
    if matches!(mode, "unconfined" | "danger-full-access") {
        let span = Span::styled("NO SANDBOX", theme.warning);
        return StatusPart { importance: 13, span, shorter: None };
    }
    let (network, network_importance, style) = match status.network {
        Network::Any if mode != "read-only" => ("NETWORK ON", 12, theme.warning),
        Network::Any | Network::None => ("network off", 6, theme.text),
    };
    let form = |importance, text: String, shorter| {
        let span = Span::styled(visible_command(&text).into_owned(), style);
        StatusPart { importance, span, shorter }
    };
    let shortest = form(13, mode.to_owned(), None);
    let short = form(network_importance, format!("{mode} ({network})"), Some(Box::new(shortest)));
    match &status.mechanism {
        Some(mechanism) => form(2, format!("{mode} ({mechanism}, {network})"), Some(Box::new(short))),
        None => short,
    }
}

fn joined_columns(parts: &[StatusPart]) -> usize {
    let separators = parts.len().saturating_sub(1) * columns(&[Span::raw(SEPARATOR)]);
    parts.iter().map(|part| part.span.width()).sum::<usize>() + separators
}

/// Writes a number without a fraction: `950`, `12k`, `4M`.
fn shortest_number(number: u64) -> String {
    match number {
        0..1_000 => number.to_string(),
        1_000..1_000_000 => format!("{}k", number / 1_000),
        _ => format!("{}M", number / 1_000_000),
    }
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
