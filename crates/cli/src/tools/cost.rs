//! `windlass tools cost`: what it costs to tell a model about tools.

use std::{collections::BTreeMap, path::Path};

use serde_json::{Value, json};
use windlass::{Exposure, Registered};

use super::pretty;
use crate::{brought, problem::Problem, setup::Setup};

/// Runs the command.
pub(super) fn run(setup: &Setup, tools: Option<&Path>, json: bool) -> Result<String, Problem> {
    let builder = brought::added(setup.tools()?, tools)?;
    let toolbox = builder.toolbox().map_err(|errors| Problem::usage(errors.to_string()))?;
    brought::tell(toolbox.registry.quarantined());
    let known = toolbox.registry.tools().iter().filter(|tool| tool.exposure != Exposure::Hidden);
    let costs = Costs {
        window: setup.context_window(),
        rows: known.map(|tool| (tool, tool.spec.tokens())).collect(),
    };
    Ok(if json { pretty(&costs.data()) } else { costs.table() })
}

/// Tools with what each costs in tokens.
struct Costs<'a> {
    window: u64,
    rows: Vec<(&'a Registered, usize)>,
}

impl Costs<'_> {
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
        // Four places are more than a count of tokens by the bytes is good for.
        let tenths = told as u64 * 1000 / self.window.max(1);
        out.push_str(&format!(
            "\n{:width$}  {told:>7}  {}.{} % of the {} tokens the model can read\n",
            "told",
            tenths / 10,
            tenths % 10,
            self.window
        ));
        if deferred > 0 {
            out.push_str(&format!("{:width$}  {deferred:>7}  only if they are found\n", "not told"));
        }
        out
    }
}
