//! Prices of models, and what an answer costs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass_contract::model::Usage;

/// Prices of a model in US dollars per million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ModelPrices {
    /// Tokens that the model reads. Without this and `output`, the cost is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub input: Option<TokenPrice>,
    /// Those of them that come from the server's cache. Unset means the price of `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub cached_input: Option<TokenPrice>,
    /// Those of them that go to the server's cache. Unset means the price of `input`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub cache_write: Option<TokenPrice>,
    /// Tokens that the model writes, its reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0.0))]
    pub output: Option<TokenPrice>,
}

/// Number of parts of a dollar that a price counts in.
const PARTS_PER_DOLLAR: f64 = 1e6;

/// A price in millionths of a dollar per million tokens, so that sums are exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct TokenPrice(u64);

impl TryFrom<f64> for TokenPrice {
    type Error = &'static str;

    fn try_from(dollars: f64) -> Result<Self, Self::Error> {
        if !(0.0..=1e6).contains(&dollars) {
            return Err("a price is from 0 to 1000000");
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 1e12")]
        Ok(Self((dollars * PARTS_PER_DOLLAR).round() as u64))
    }
}

impl From<TokenPrice> for f64 {
    fn from(price: TokenPrice) -> Self {
        MoneySpent(u128::from(price.0) * 1_000_000).dollars()
    }
}

impl TokenPrice {
    fn times(self, tokens: u64) -> MoneySpent {
        MoneySpent(u128::from(self.0) * u128::from(tokens))
    }
}

impl ModelPrices {
    /// Returns the cost of answers; `None` if it is unknown.
    pub fn cost(&self, usage: &Usage) -> Option<MoneySpent> {
        let (input, output) = (self.input?, self.output?);
        let cached = usage.cached_input_tokens.min(usage.input_tokens);
        let written = usage.cache_write_input_tokens.min(usage.input_tokens - cached);
        let plain = usage.input_tokens - cached - written;
        let parts = [
            input.times(plain),
            self.cached_input.unwrap_or(input).times(cached),
            self.cache_write.unwrap_or(input).times(written),
            output.times(usage.output_tokens),
        ];
        Some(parts.into_iter().fold(MoneySpent::default(), MoneySpent::plus))
    }
}

/// An amount of money, in millionths of a millionth of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MoneySpent(u128);

impl MoneySpent {
    /// Converts an amount of dollars; negative ones are nothing.
    pub fn from_dollars(dollars: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        Self((dollars.max(0.0) * 1e12).round() as u128)
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "15 digits are enough to show")]
        let parts = self.0 as f64;
        parts / 1e12
    }

    /// Returns the sum.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self(self.0.saturating_add(more.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_has_its_price_once() {
        let prices: ModelPrices =
            toml::from_str("input = 3.0\ncached_input = 0.3\ncache_write = 3.75\noutput = 15.0").unwrap();
        let usage = Usage {
            input_tokens: 1_000_000,
            cached_input_tokens: 400_000,
            cache_write_input_tokens: 100_000,
            output_tokens: 10_000,
            reasoning_output_tokens: 9_000,
        };
        let expected = 500_000.0 * 3.0 + 400_000.0 * 0.3 + 100_000.0 * 3.75 + 10_000.0 * 15.0;
        assert_eq!(prices.cost(&usage), Some(MoneySpent::from_dollars(expected / 1e6)));
        // A server may report more cached tokens than it read.
        let odd = Usage { input_tokens: 10, cached_input_tokens: 20, ..Usage::default() };
        assert_eq!(prices.cost(&odd), Some(MoneySpent::from_dollars(10.0 * 0.3 / 1e6)));
        assert_eq!(ModelPrices { output: None, ..prices }.cost(&usage), None);
    }

    #[test]
    fn a_price_is_kept_as_it_was_written() {
        for text in ["input = 0.025\noutput = 1.1\n", "input = 0.0\noutput = 75.0\n"] {
            let prices: ModelPrices = toml::from_str(text).unwrap();
            assert_eq!(toml::to_string(&prices).unwrap(), text);
        }
        for wrong in ["input = -1.0\noutput = 1.0", "input = nan\noutput = 1.0"] {
            assert!(toml::from_str::<ModelPrices>(wrong).is_err(), "{wrong}");
        }
    }
}
