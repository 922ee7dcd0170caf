//! The budget of a session: what it may spend, and who has spent what.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use windlass_contract::model::Usage;
use windlass_runtime::Reason;

use crate::{ModelPrices, MoneySpent};

/// Limits of a session together with all that it starts. By default there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetLimits {
    /// Maximum number of turns.
    pub turns: Option<u64>,
    /// Maximum number of requests to the model.
    pub requests: Option<u64>,
    /// Maximum number of tool calls.
    pub calls: Option<u64>,
    /// Maximum number of tokens, read and written.
    pub tokens: Option<u64>,
    /// Maximum cost.
    pub cost: Option<MoneySpent>,
    /// Maximum duration of all turns together.
    pub time: Option<Duration>,
    /// Limits of single tools, by name.
    pub tools: BTreeMap<String, ToolBudget>,
}

/// Limits of one tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ToolBudget {
    /// Maximum number of calls.
    pub calls: Option<u64>,
    /// Maximum duration of all calls together. A running call is not ended.
    pub time: Option<Duration>,
}

/// Amounts that were spent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BudgetSpent {
    /// Number of turns.
    pub turns: u64,
    /// Number of requests to the model.
    pub requests: u64,
    /// Number of tool calls.
    pub calls: u64,
    /// Number of tokens, read and written. Those that no server reported are estimated.
    pub tokens: u64,
    /// The cost of tokens whose price is known.
    pub cost: MoneySpent,
    /// Number of tokens whose price is not known.
    pub unpriced_tokens: u64,
    /// The duration of turns.
    pub time: Duration,
    /// Number and duration of the calls of each tool.
    pub tools: BTreeMap<String, (u64, Duration)>,
}

/// A budget and what was spent of it. Clones share both; each spends in the name of its spender.
/// A child session draws from the budget of its parent with [`for_spender`](Self::for_spender).
#[derive(Debug, Clone)]
pub struct SessionBudget {
    shared: Arc<SharedBudget>,
    spender: Arc<str>,
}

#[derive(Debug, Default)]
struct SharedBudget {
    limits: BudgetLimits,
    spent: Mutex<BTreeMap<Arc<str>, BudgetSpent>>,
}

impl Default for SessionBudget {
    fn default() -> Self {
        Self::new(BudgetLimits::default())
    }
}

impl SessionBudget {
    /// Creates a budget of which nothing is spent. Its spender is `session`.
    pub fn new(limits: BudgetLimits) -> Self {
        let shared = SharedBudget { limits, spent: Mutex::default() };
        Self { shared: Arc::new(shared), spender: "session".into() }
    }

    /// Returns the same budget for another spender.
    #[must_use]
    pub fn for_spender(&self, name: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), spender: name.into() }
    }

    /// Returns the limits.
    pub fn limits(&self) -> &BudgetLimits {
        &self.shared.limits
    }

    /// Returns what each spender has spent.
    pub fn spent(&self) -> BTreeMap<String, BudgetSpent> {
        self.state().iter().map(|(spender, spent)| (spender.to_string(), spent.clone())).collect()
    }

    /// Returns what all spenders have spent together.
    pub fn total(&self) -> BudgetSpent {
        total(&self.state())
    }

    /// Returns the limit that is reached, if one is: no request may follow.
    pub fn reached(&self) -> Option<Reason> {
        let (limits, spent) = (self.limits(), self.total());
        if limits.tokens.is_some_and(|limit| spent.tokens >= limit) {
            return Some(Reason::TokenBudget);
        }
        if limits.cost.is_some_and(|limit| spent.cost >= limit) {
            return Some(Reason::CostBudget);
        }
        limits.time.is_some_and(|limit| spent.time >= limit).then_some(Reason::TimeBudget)
    }

    /// Returns true if tokens that are not counted yet exceed the budget. Called for every piece of
    /// a stream.
    pub(crate) fn is_exceeded_by(&self, arriving: u64) -> bool {
        let limit = self.limits().tokens;
        limit.is_some_and(|limit| self.total().tokens.saturating_add(arriving) > limit)
    }

    /// Returns the time that is left; `None` if there is no limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        Some(self.limits().time?.saturating_sub(self.total().time))
    }

    /// Counts a turn, or returns the limit that does not allow it.
    pub(crate) fn begin_turn(&self) -> Result<(), Reason> {
        self.begin(self.limits().turns, Reason::TurnBudget, |spent| &mut spent.turns)
    }

    /// Counts a request, or returns the limit that does not allow it.
    pub(crate) fn begin_request(&self) -> Result<(), Reason> {
        self.begin(self.limits().requests, Reason::RequestBudget, |spent| &mut spent.requests)
    }

    /// Counts a call, or returns the limit that does not allow it.
    pub(crate) fn begin_call(&self, tool: &str) -> Result<(), Reason> {
        if let Some(limits) = self.limits().tools.get(tool) {
            let (calls, time) = self.total().tools.get(tool).copied().unwrap_or_default();
            let is_used_up = limits.calls.is_some_and(|limit| calls >= limit)
                || limits.time.is_some_and(|limit| time >= limit);
            if is_used_up {
                return Err(Reason::ToolBudget);
            }
        }
        self.begin(self.limits().calls, Reason::CallBudget, |spent| &mut spent.calls)?;
        self.spend(|spent| spent.tools.entry(tool.to_owned()).or_default().0 += 1);
        Ok(())
    }

    fn begin(
        &self,
        limit: Option<u64>,
        reason: Reason,
        count: impl Fn(&mut BudgetSpent) -> &mut u64,
    ) -> Result<(), Reason> {
        // Under one lock, so that two spenders cannot both take the last one.
        let mut state = self.state();
        if limit.is_some_and(|limit| *count(&mut total(&state)) >= limit) {
            return Err(reason);
        }
        *count(state.entry(Arc::clone(&self.spender)).or_default()) += 1;
        Ok(())
    }

    /// Counts the duration of a call.
    pub(crate) fn end_call(&self, tool: &str, duration: Duration) {
        self.spend(|spent| {
            let time = &mut spent.tools.entry(tool.to_owned()).or_default().1;
            *time = time.saturating_add(duration);
        });
    }

    /// Counts the duration of a turn.
    pub(crate) fn add_time(&self, duration: Duration) {
        self.spend(|spent| spent.time = spent.time.saturating_add(duration));
    }

    /// Counts tokens, at these prices.
    pub(crate) fn add_usage(&self, usage: &Usage, prices: Option<&ModelPrices>) {
        self.spend(|spent| {
            spent.tokens = spent.tokens.saturating_add(usage.total());
            match prices.and_then(|prices| prices.cost(usage)) {
                Some(cost) => spent.cost = spent.cost.plus(cost),
                None => spent.unpriced_tokens = spent.unpriced_tokens.saturating_add(usage.total()),
            }
        });
    }

    fn spend(&self, change: impl FnOnce(&mut BudgetSpent)) {
        change(self.state().entry(Arc::clone(&self.spender)).or_default());
    }

    fn state(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, BudgetSpent>> {
        self.shared.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn total(spenders: &BTreeMap<Arc<str>, BudgetSpent>) -> BudgetSpent {
    let mut all = BudgetSpent::default();
    for spent in spenders.values() {
        all.turns = all.turns.saturating_add(spent.turns);
        all.requests = all.requests.saturating_add(spent.requests);
        all.calls = all.calls.saturating_add(spent.calls);
        all.tokens = all.tokens.saturating_add(spent.tokens);
        all.cost = all.cost.plus(spent.cost);
        all.unpriced_tokens = all.unpriced_tokens.saturating_add(spent.unpriced_tokens);
        all.time = all.time.saturating_add(spent.time);
        for (tool, (calls, time)) in &spent.tools {
            let sum = all.tools.entry(tool.clone()).or_default();
            *sum = (sum.0.saturating_add(*calls), sum.1.saturating_add(*time));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
        Usage { input_tokens, output_tokens, ..Usage::default() }
    }

    #[test]
    fn spenders_draw_from_one_budget_and_are_told_apart() {
        let budget =
            SessionBudget::new(BudgetLimits { calls: Some(3), tokens: Some(100), ..Default::default() });
        let child = budget.for_spender("child");
        assert_eq!([budget.begin_call("a"), child.begin_call("a"), child.begin_call("b")], [Ok(()); 3]);
        assert_eq!([budget.begin_call("a"), child.begin_call("b")], [Err(Reason::CallBudget); 2]);
        budget.add_usage(&usage(40, 10), None);
        assert_eq!(
            (budget.reached(), budget.is_exceeded_by(50), budget.is_exceeded_by(51)),
            (None, false, true)
        );
        child.add_usage(&usage(50, 0), None);
        assert_eq!(budget.reached(), Some(Reason::TokenBudget));
        let spent = budget.spent();
        assert_eq!((spent["session"].calls, spent["child"].calls), (1, 2));
        assert_eq!((spent["session"].tokens, spent["child"].tokens), (50, 50));
    }

    #[test]
    fn a_tool_has_limits_of_its_own() {
        let once = ToolBudget { calls: Some(1), time: None };
        let short = ToolBudget { calls: None, time: Some(Duration::from_secs(2)) };
        let tools = [("once".to_owned(), once), ("short".to_owned(), short)].into();
        let budget = SessionBudget::new(BudgetLimits { tools, ..Default::default() });
        assert_eq!([budget.begin_call("once"), budget.begin_call("once")], [Ok(()), Err(Reason::ToolBudget)]);
        budget.end_call("short", Duration::from_secs(1));
        assert_eq!(budget.begin_call("short"), Ok(()));
        budget.end_call("short", Duration::from_secs(1));
        assert_eq!(budget.begin_call("short"), Err(Reason::ToolBudget));
        assert_eq!(budget.begin_call("other"), Ok(()));
        assert_eq!(budget.total().calls, 3);
    }

    #[test]
    fn money_is_counted_where_prices_are_known_and_time_always() {
        let limits = BudgetLimits {
            cost: Some(MoneySpent::from_dollars(1.0)),
            time: Some(Duration::from_secs(5)),
            ..Default::default()
        };
        let budget = SessionBudget::new(limits);
        let prices: ModelPrices = toml::from_str("input = 1.0\noutput = 2.0").unwrap();
        budget.add_usage(&usage(500_000, 100_000), Some(&prices));
        budget.add_usage(&usage(1_000_000, 0), None);
        assert_eq!((budget.reached(), budget.total().unpriced_tokens), (None, 1_000_000));
        budget.add_time(Duration::from_secs(4));
        assert_eq!(budget.time_left(), Some(Duration::from_secs(1)));
        budget.add_usage(&usage(0, 150_000), Some(&prices));
        assert_eq!(budget.reached(), Some(Reason::CostBudget));
        assert_eq!(SessionBudget::default().time_left(), None);
    }
}
