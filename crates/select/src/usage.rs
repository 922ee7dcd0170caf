//! What became of earlier calls: how often a tool succeeded, how lately it was used, and what it was the answer to.
//!
//! Plain numbers in, from whoever records calls; they have forgotten what is long past. A clock is not read here: the caller
//! says how long ago a tool was called.

use std::{collections::HashMap, time::Duration};

use crate::{index::MAX_EXAMPLE_BYTES, text};

/// A tool that was used this long ago counts half as recent as one that was used now.
const RECENT_HALF_LIFE: Duration = Duration::from_secs(3600);

/// What a tool nobody has used is credited with: three calls of four.
const UNUSED_SUCCESS: f32 = 0.75;

/// From where on success makes recent use a reason to use a tool again: that it failed lately is none.
const MIN_SUCCESS: f32 = 0.5;

/// A request counts half as much after this long. Far longer than recent use: what someone asks for is asked again next month.
const REQUEST_HALF_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);

/// What became of earlier calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// How every tool stands that was called, by the key of its card.
    records: HashMap<String, UsageRecord>,
    requests: Vec<AnsweredRequest>,
}

/// A request, and the tools whose calls for it succeeded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnsweredRequest {
    pub(crate) request: String,
    pub(crate) tools: Vec<String>,
    /// What it counts: 1 for now, 0 for never.
    pub(crate) weight: f32,
}

/// How one tool stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UsageRecord {
    success: f32,
    recent: f32,
}

impl Default for UsageRecord {
    fn default() -> Self {
        Self { success: UNUSED_SUCCESS, recent: 0.0 }
    }
}

impl Usage {
    /// Says how likely calls of a tool succeed, from 0 to 1, and how long ago it was called.
    pub fn add(&mut self, key: &str, success: f32, age: Duration) {
        let success = success.clamp(0.0, 1.0);
        let worth = ((success - MIN_SUCCESS) / (1.0 - MIN_SUCCESS)).max(0.0);
        let recent = worth * faded(age, RECENT_HALF_LIFE);
        self.records.insert(key.to_owned(), UsageRecord { success, recent });
    }

    /// Says which tools were the answer to a request, by name, and how long ago. The newest are said first: of many for one
    /// tool, only the first count.
    pub fn add_request(&mut self, request: &str, tools: Vec<String>, age: Duration) {
        let request = text::cut(request, MAX_EXAMPLE_BYTES).to_owned();
        self.requests.push(AnsweredRequest { request, tools, weight: faded(age, REQUEST_HALF_LIFE) });
    }

    pub(crate) fn requests(&self) -> &[AnsweredRequest] {
        &self.requests
    }

    /// What is known of a tool.
    pub fn record(&self, key: &str) -> UsageRecord {
        self.records.get(key).copied().unwrap_or_default()
    }
}

impl UsageRecord {
    /// How likely a call succeeds, from 0 to 1.
    pub fn success(self) -> f32 {
        self.success
    }

    /// How lately it was used with success: 1 for now, 0 for never.
    pub fn recent(self) -> f32 {
        self.recent
    }
}

fn faded(age: Duration, half_life: Duration) -> f32 {
    (-age.as_secs_f32() / half_life.as_secs_f32()).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_use_fades_and_is_no_credit_to_what_fails() {
        let mut usage = Usage::default();
        usage.add("now", 1.0, Duration::ZERO);
        usage.add("then", 1.0, Duration::from_secs(2 * 3600));
        usage.add("broken", 0.4, Duration::ZERO);
        for (key, recent) in [("now", 1.0), ("then", 0.25), ("broken", 0.0), ("never", 0.0)] {
            assert!((usage.record(key).recent() - recent).abs() < f32::EPSILON, "{key}");
        }
        assert!((usage.record("never").success() - UNUSED_SUCCESS).abs() < f32::EPSILON);
    }
}
