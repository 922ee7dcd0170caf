//! The budget of a session.

use std::{collections::BTreeMap, num::NonZeroU64, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de::Error};
use windlass::{BudgetLimits, MoneySpent, ToolBudget};

/// Limits of a session with all that it starts. When one is reached, the turn ends (exit code 4).
/// Unset means no limit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BudgetSettings {
    /// Maximum number of turns.
    pub(crate) max_turns: Option<NonZeroU64>,
    /// Maximum number of requests to the model.
    pub(crate) max_requests: Option<NonZeroU64>,
    /// Maximum number of tool calls.
    pub(crate) max_calls: Option<NonZeroU64>,
    /// Maximum number of tokens, read and written.
    pub(crate) max_tokens: Option<NonZeroU64>,
    /// Maximum cost in US dollars. The model needs `prices`.
    #[serde(deserialize_with = "dollars")]
    #[schemars(range(min = 0.0))]
    pub(crate) max_cost_usd: Option<f64>,
    /// Maximum duration of all turns together, in seconds.
    pub(crate) max_time_sec: Option<NonZeroU64>,
    /// Limits of single tools, by name.
    pub(crate) tools: BTreeMap<String, ToolBudgetSettings>,
}

/// Limits of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolBudgetSettings {
    /// Maximum number of calls.
    pub(crate) max_calls: Option<NonZeroU64>,
    /// Maximum duration of all calls together, in seconds. A running call is not ended.
    pub(crate) max_time_sec: Option<NonZeroU64>,
}

impl BudgetSettings {
    pub(crate) fn limits(&self) -> BudgetLimits {
        let number = |limit: Option<NonZeroU64>| limit.map(NonZeroU64::get);
        let time = |limit: Option<NonZeroU64>| number(limit).map(Duration::from_secs);
        let tool = |(name, tool): (&String, &ToolBudgetSettings)| {
            (name.clone(), ToolBudget { calls: number(tool.max_calls), time: time(tool.max_time_sec) })
        };
        BudgetLimits {
            turns: number(self.max_turns),
            requests: number(self.max_requests),
            calls: number(self.max_calls),
            tokens: number(self.max_tokens),
            cost: self.max_cost_usd.map(MoneySpent::from_dollars),
            time: time(self.max_time_sec),
            tools: self.tools.iter().map(tool).collect(),
        }
    }
}

fn dollars<'de, D: Deserializer<'de>>(from: D) -> Result<Option<f64>, D::Error> {
    let dollars = Option::<f64>::deserialize(from)?;
    let is_amount = dollars.is_none_or(|dollars| dollars > 0.0 && dollars <= 1e9);
    if is_amount { Ok(dollars) } else { Err(D::Error::custom("not an amount above 0")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_in_the_units_of_their_keys() {
        let read = |text: &str| toml::from_str::<BudgetSettings>(text);
        let set = read("max_calls = 3\nmax_cost_usd = 0.5\n[tools.shell]\nmax_time_sec = 60").unwrap();
        let shell = ToolBudget { calls: None, time: Some(Duration::from_mins(1)) };
        let expected = BudgetLimits {
            calls: Some(3),
            cost: Some(MoneySpent::from_dollars(0.5)),
            tools: [("shell".to_owned(), shell)].into(),
            ..BudgetLimits::default()
        };
        assert_eq!(set.limits(), expected);
        for wrong in ["max_cost_usd = 0", "max_cost_usd = -1", "max_cost_usd = nan", "max_calls = 0"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
