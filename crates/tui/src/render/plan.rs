//! The model's plan as a checklist.

use ratatui::{
    style::Modifier,
    text::{Line, Span},
};
use windlass::{Plan, PlanStatus, PlanStep};

use crate::render::{
    Theme,
    visible::visible_command,
    wrap::{HangingIndent, wrap_spans},
};

/// Renders the plan: its explanation, the progress, and a line per step.
pub fn render_plan(plan: &Plan, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let done = plan.plan.iter().filter(|step| step.status == PlanStatus::Completed).count();
    let title = [
        Span::styled("Plan", theme.heading),
        Span::styled(format!("  {done} of {} done", plan.plan.len()), theme.dim),
    ];
    let mut lines = wrap_spans(&title, width, &HangingIndent::default());
    if let Some(explanation) = &plan.explanation {
        let spans = [Span::styled(visible_command(explanation).into_owned(), theme.dim)];
        lines.extend(wrap_spans(&spans, width, &HangingIndent::from_columns(2)));
    }
    lines.extend(plan.plan.iter().flat_map(|step| render_step(step, width, theme)));
    lines
}

fn render_step(step: &PlanStep, width: u16, theme: &Theme) -> Vec<Line<'static>> {
    let (mark, mark_style, style) = match step.status {
        PlanStatus::Pending => ("  [ ] ", theme.dim, theme.text),
        PlanStatus::InProgress => ("  [>] ", theme.warning, theme.text.add_modifier(Modifier::BOLD)),
        PlanStatus::Completed => ("  [x] ", theme.success, theme.dim),
    };
    let text = Span::styled(visible_command(&step.step).into_owned(), style);
    wrap_spans(&[text], width, &HangingIndent::from_marker(Span::styled(mark, mark_style)))
}
