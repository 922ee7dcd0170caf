//! The time limit of a call. Progress extends it; it stands still while a person is asked.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use super::running_calls::InFlightCall;

/// Progress extends the time limit up to this many times the limit.
const MAX_EXTENSION: u32 = 5;

/// The time limit of a call. Progress extends it; it stands still while a person is asked.
pub(super) struct CallClock<'a> {
    pub(super) limit: Duration,
    deadline: Instant,
    last_deadline: Instant,
    running: &'a InFlightCall,
}

impl<'a> CallClock<'a> {
    pub(super) fn new(limit: Duration, running: &'a InFlightCall) -> Self {
        let now = Instant::now();
        let far = Duration::from_hours(24 * 365);
        let total = limit.saturating_mul(MAX_EXTENSION).min(far);
        let deadline = now + limit.min(far);
        Self { limit, deadline, last_deadline: now + total, running }
    }

    /// Grants the limit once more, within the total.
    pub(super) fn extend(&mut self) {
        self.deadline = (Instant::now() + self.limit).min(self.last_deadline);
    }

    /// Waits for the deadline.
    pub(super) async fn ring(&mut self) {
        let mut waiting = self.running.waiting_for_person.subscribe();
        loop {
            if *waiting.borrow_and_update() == 0 {
                tokio::select! {
                    () = sleep_until(self.deadline) => return,
                    _ = waiting.wait_for(|count| *count > 0) => {}
                }
            }
            let began = Instant::now();
            // The sender lives as long as the call.
            let _ = waiting.wait_for(|count| *count == 0).await;
            let paused = began.elapsed();
            self.deadline += paused;
            self.last_deadline += paused;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn progress_extends_the_limit_up_to_five_times() {
        let running = InFlightCall::new(None);
        let limit = Duration::from_secs(10);
        let mut clock = CallClock::new(limit, &running);
        let began = Instant::now();
        for _ in 0..20 {
            tokio::select! {
                () = clock.ring() => break,
                () = tokio::time::sleep(Duration::from_secs(8)) => clock.extend(),
            }
        }
        assert_eq!(began.elapsed().as_secs(), 50);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_of_a_person_does_not_count() {
        let running = InFlightCall::new(None);
        let mut clock = CallClock::new(Duration::from_secs(10), &running);
        let began = Instant::now();
        let person = async {
            tokio::time::sleep(Duration::from_secs(4)).await;
            running.waiting_for_person.send_modify(|count| *count += 1);
            tokio::time::sleep(Duration::from_mins(10)).await;
            running.waiting_for_person.send_modify(|count| *count -= 1);
        };
        tokio::join!(clock.ring(), person);
        assert_eq!(began.elapsed().as_secs(), 610);
    }
}
