//! Results of earlier calls: the success rate of each tool, its last use, and the requests it
//! answered.
//!
//! The caller provides plain numbers that already forget old calls. This module reads no clock: the
//! caller passes the age of a call.

use std::{collections::HashMap, time::Duration};

use crate::{index::MAX_EXAMPLE_BYTES, text};

/// Time after which a use counts half as recent.
const RECENT_HALF_LIFE: Duration = Duration::from_hours(1);

/// Success rate of a tool that was never used.
const UNUSED_SUCCESS: f32 = 0.75;

/// Minimum success rate at which recent use is a reason to use a tool again. A recent failure is
/// not.
const MIN_SUCCESS: f32 = 0.5;

/// Time after which a request counts half. It is much longer than for recent use, as people ask for
/// the same again a month later.
const REQUEST_HALF_LIFE: Duration = Duration::from_hours(720);

/// Results of earlier calls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// The record of every called tool, by the key of its card.
    records: HashMap<String, UsageRecord>,
    requests: Vec<AnsweredRequest>,
}

/// A request, and the tools whose calls for it succeeded.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct AnsweredRequest {
    pub(crate) request: String,
    pub(crate) tools: Vec<String>,
    /// The weight by age: 1 for now, 0 for never.
    pub(crate) weight: f32,
}

/// The record of one tool.
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
    /// Sets the success rate of a tool, from 0 to 1, and the age of its last call.
    pub fn add(&mut self, key: &str, success: f32, age: Duration) {
        let success = success.clamp(0.0, 1.0);
        let worth = ((success - MIN_SUCCESS) / (1.0 - MIN_SUCCESS)).max(0.0);
        let recent = worth * decay(age, RECENT_HALF_LIFE);
        self.records.insert(key.to_owned(), UsageRecord { success, recent });
    }

    /// Adds a request with the names of the tools that answered it, and its age. Add the newest
    /// first: of many requests for one tool only the first count.
    pub fn add_request(&mut self, request: &str, tools: Vec<String>, age: Duration) {
        let request = text::cut(request, MAX_EXAMPLE_BYTES).to_owned();
        self.requests.push(AnsweredRequest { request, tools, weight: decay(age, REQUEST_HALF_LIFE) });
    }

    pub(crate) fn requests(&self) -> &[AnsweredRequest] {
        &self.requests
    }

    /// Returns the record of a tool.
    pub fn record(&self, key: &str) -> UsageRecord {
        self.records.get(key).copied().unwrap_or_default()
    }
}

impl UsageRecord {
    /// Returns the success rate, from 0 to 1.
    pub fn success(self) -> f32 {
        self.success
    }

    /// Returns how recent the last successful use is: 1 for now, 0 for never.
    pub fn recent(self) -> f32 {
        self.recent
    }
}

fn decay(age: Duration, half_life: Duration) -> f32 {
    (-age.as_secs_f32() / half_life.as_secs_f32()).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recent_use_fades_and_is_no_credit_to_what_fails() {
        let mut usage = Usage::default();
        usage.add("now", 1.0, Duration::ZERO);
        usage.add("then", 1.0, Duration::from_hours(2));
        usage.add("broken", 0.4, Duration::ZERO);
        for (key, recent) in [("now", 1.0), ("then", 0.25), ("broken", 0.0), ("never", 0.0)] {
            assert!((usage.record(key).recent() - recent).abs() < f32::EPSILON, "{key}");
        }
        assert!((usage.record("never").success() - UNUSED_SUCCESS).abs() < f32::EPSILON);
    }
}
