//! When to draw.

use std::time::{Duration, Instant};

/// At most 60 pictures in a second.
const FRAME: Duration = Duration::from_millis(17);

/// Decides when the next picture is drawn: only after a change, and not too soon after the last.
#[derive(Debug, Default)]
pub(crate) struct FrameClock {
    has_change: bool,
    drawn: Option<Instant>,
}

impl FrameClock {
    /// Notes that the picture is no longer right.
    pub(crate) fn change(&mut self) {
        self.has_change = true;
    }

    /// Notes that it was drawn.
    pub(crate) fn drawn(&mut self, now: Instant) {
        (self.has_change, self.drawn) = (false, Some(now));
    }

    /// Returns true if it is to be drawn now.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.has_change && self.drawn.is_none_or(|drawn| now.saturating_duration_since(drawn) >= FRAME)
    }

    /// Returns the time at which it is to be drawn again. There is none without a change.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.drawn.filter(|_| self.has_change).map(|drawn| drawn + FRAME)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_changes_is_drawn_at_most_sixty_times_a_second_and_the_last_change_is_drawn() {
        let (start, mut clock, mut count) = (Instant::now(), FrameClock::default(), 0);
        for millisecond in 0..1000 {
            let now = start + Duration::from_millis(millisecond);
            clock.change();
            if clock.is_due(now) {
                clock.drawn(now);
                count += 1;
            }
        }
        assert!((50..=60).contains(&count), "{count}");
        let last = clock.next().unwrap();
        assert!(clock.is_due(last));
        clock.drawn(last);
        assert_eq!(clock.next(), None);
        assert!(!clock.is_due(last + Duration::from_mins(1)));
    }
}
