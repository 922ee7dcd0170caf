//! What became of earlier calls: how often a tool succeeded, and how lately it was used.
//!
//! Plain numbers in, from whoever records calls; they have forgotten what is long past. A clock is not read here: the caller
//! says how long ago a tool was called.

use std::{collections::HashMap, time::Duration};

/// A tool that was used this long ago counts half as recent as one that was used now.
const RECENT_HALF_LIFE: Duration = Duration::from_secs(3600);

/// What a tool nobody has used is credited with: three calls of four.
const UNUSED: f32 = 0.75;

/// From where on success makes recent use a reason to use a tool again: that it failed lately is none.
const LEAST_SUCCESS: f32 = 0.5;

/// How every tool stands that was called, by the key of its card.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage(HashMap<String, Record>);

/// How one tool stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record {
    success: f32,
    recent: f32,
}

impl Default for Record {
    fn default() -> Self {
        Self { success: UNUSED, recent: 0.0 }
    }
}

impl Usage {
    /// Says how likely calls of a tool succeed, from 0 to 1, and how long ago it was called.
    pub fn add(&mut self, key: &str, success: f32, age: Duration) {
        let success = success.clamp(0.0, 1.0);
        let worth = ((success - LEAST_SUCCESS) / (1.0 - LEAST_SUCCESS)).max(0.0);
        let faded = (-age.as_secs_f32() / RECENT_HALF_LIFE.as_secs_f32()).exp2();
        self.0.insert(key.to_owned(), Record { success, recent: worth * faded });
    }

    /// What is known of a tool.
    pub fn of(&self, key: &str) -> Record {
        self.0.get(key).copied().unwrap_or_default()
    }
}

impl Record {
    /// How likely a call succeeds, from 0 to 1.
    pub fn success(self) -> f32 {
        self.success
    }

    /// How lately it was used with success: 1 for now, 0 for never.
    pub fn recent(self) -> f32 {
        self.recent
    }
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
            assert!((usage.of(key).recent() - recent).abs() < f32::EPSILON, "{key}");
        }
        assert!((usage.of("never").success() - UNUSED).abs() < f32::EPSILON);
    }
}
