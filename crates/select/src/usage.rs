//! What became of earlier calls: how often a tool succeeded, and how lately it was used.
//!
//! Plain numbers in, so that whoever records calls can fill it. A clock is not read here: the caller says what age a
//! call has.

use std::{collections::HashMap, time::Duration};

/// Half of what is known about success is forgotten in this time.
const SUCCESS_HALF_LIFE: Duration = Duration::from_secs(14 * 24 * 3600);

/// A tool that was used this long ago counts half as recent as one that was used now.
const RECENT_HALF_LIFE: Duration = Duration::from_secs(3600);

/// What a tool nobody has used is credited with: three calls of four. It takes a few real calls to weigh more, so one
/// failure does not sink a tool and one success does not lift it.
const PRIOR: (f32, f32) = (3.0, 1.0);

/// Statistics of every tool that was ever called, by the key of its card.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage(HashMap<String, Record>);

/// What became of one tool's calls. The counts fade, so that they say how things are and not how they were.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Record {
    successes: f32,
    failures: f32,
    recent: f32,
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It did what it was asked to.
    Success,
    /// It did not.
    Failure,
}

impl Usage {
    /// Adds a call that ended so long ago. The order of calls does not matter.
    pub fn add(&mut self, key: &str, ending: Ending, age: Duration) {
        let record = self.0.entry(key.to_owned()).or_default();
        match ending {
            Ending::Success => record.successes += fade(age, SUCCESS_HALF_LIFE),
            Ending::Failure => record.failures += fade(age, SUCCESS_HALF_LIFE),
        }
        record.recent = record.recent.max(fade(age, RECENT_HALF_LIFE));
    }

    /// What is known of a tool.
    pub fn of(&self, key: &str) -> Record {
        self.0.get(key).copied().unwrap_or_default()
    }
}

impl Record {
    /// How likely a call succeeds, from 0 to 1.
    pub fn success(self) -> f32 {
        let (successes, failures) = PRIOR;
        (self.successes + successes) / (self.successes + self.failures + successes + failures)
    }

    /// How lately it was used: 1 for now, 0 for never.
    pub fn recent(self) -> f32 {
        self.recent
    }
}

fn fade(age: Duration, half_life: Duration) -> f32 {
    (-age.as_secs_f32() / half_life.as_secs_f32()).exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn one_failure_does_not_sink_a_tool_and_many_do() {
        let mut usage = Usage::default();
        usage.add("x", Ending::Failure, NOW);
        assert!(usage.of("x").success() > 0.5);
        (0..20).for_each(|_| usage.add("x", Ending::Failure, NOW));
        assert!(usage.of("x").success() < 0.2);
    }

    #[test]
    fn what_is_long_past_is_forgotten() {
        let mut usage = Usage::default();
        (0..20).for_each(|_| usage.add("x", Ending::Failure, Duration::from_secs(365 * 24 * 3600)));
        assert!((usage.of("x").success() - usage.of("never used").success()).abs() < 0.01);
        assert!(usage.of("x").recent() < 0.01);
    }
}
