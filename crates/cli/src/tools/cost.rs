//! `windlass tools cost`: prints the token cost of describing tools to a model.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use windlass::{Exposure, Registered};

use super::pretty;
use crate::{problem::CliProblem, setup::ProgramSetup, user_tools};

/// Runs the command.
pub(super) fn run(setup: &ProgramSetup, tools: Option<&Path>, json: bool) -> Result<String, CliProblem> {
    let builder = user_tools::with_user_tools(setup.tools(setup.machine()?)?, tools)?;
    let toolbox = builder.toolbox().map_err(|errors| CliProblem::usage(errors.to_string()))?;
    user_tools::report_quarantined(toolbox.registry.quarantined());
    let known = toolbox.registry.tools().iter().filter(|tool| tool.exposure != Exposure::Hidden);
    let costs = ToolCosts {
        window: setup.context_window(),
        rows: known.map(|tool| (tool, tool.spec.tokens())).collect(),
    };
    Ok(if json { pretty(&costs.data()) } else { costs.table() })
}

/// Tools with their token costs.
struct ToolCosts<'a> {
    window: u64,
    rows: Vec<(&'a Registered, usize)>,
}

impl ToolCosts<'_> {
    fn sum(&self, exposure: Exposure) -> usize {
        self.rows.iter().filter(|(tool, _)| tool.exposure == exposure).map(|(_, tokens)| tokens).sum()
    }

    fn categories(&self) -> BTreeMap<&'static str, usize> {
        let mut sums = BTreeMap::new();
        for (tool, tokens) in &self.rows {
            *sums.entry(tool.meta.category.title()).or_default() += tokens;
        }
        sums
    }

    fn data(&self) -> Value {
        let tools = self.rows.iter().map(|(tool, tokens)| {
            json!({"name": tool.spec.name, "category": tool.meta.category, "tokens": tokens, "exposure": tool.exposure})
        });
        let categories = self.categories().into_iter();
        json!({
            "context_window": self.window,
            "told_tokens": self.sum(Exposure::Advertised),
            "deferred_tokens": self.sum(Exposure::Deferred),
            "categories": categories.map(|(name, tokens)| json!({"category": name, "tokens": tokens})).collect::<Value>(),
            "tools": tools.collect::<Value>(),
        })
    }

    fn table(&self) -> String {
        let names = self.rows.iter().map(|(tool, _)| tool.spec.name.as_str().len());
        let width = names.max().unwrap_or(0).max(12);
        let mut out = String::new();
        for (tool, tokens) in &self.rows {
            let deferred = if tool.exposure == Exposure::Deferred { "  found by tool_search" } else { "" };
            out.push_str(&format!("{:width$}  {tokens:>7}{deferred}\n", tool.spec.name.as_str()));
        }
        out.push('\n');
        for (category, tokens) in self.categories() {
            out.push_str(&format!("{category:width$}  {tokens:>7}\n"));
        }
        let (told, deferred) = (self.sum(Exposure::Advertised), self.sum(Exposure::Deferred));
        // An estimate of tokens by bytes is not accurate to four digits.
        let tenths = told as u64 * 1000 / self.window.max(1);
        out.push_str(&format!(
            "\n{:width$}  {told:>7}  {}.{} % of the context window of {} tokens\n",
            "offered",
            tenths / 10,
            tenths % 10,
            self.window
        ));
        if deferred > 0 {
            out.push_str(&format!("{:width$}  {deferred:>7}  only if found by tool_search\n", "deferred"));
        }
        out
    }
}
