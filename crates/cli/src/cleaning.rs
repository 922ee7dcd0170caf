//! Removes what is beyond the limits of retention, in the background.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use windlass::record::RetentionLimits;

use crate::{problem::chain, setup::Setup};

/// A thread that enforces the limits. Dropping it stops it after the file it is at.
pub(crate) struct Cleaning {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Cleaning {
    /// Starts, if it is time.
    pub(crate) fn start(setup: &Setup) -> Option<Self> {
        let (home, limits) = (setup.home.clone(), RetentionLimits::from(setup.retention()));
        if !RetentionLimits::is_due(&home) {
            return None;
        }
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let work = move || {
            let go_on = || !stop.load(Ordering::Relaxed);
            if let Err(error) = limits.enforce_if_due(&home, &go_on) {
                // Nothing depends on it but room on the disk.
                crate::note(&format!("warning: cannot remove what is too old: {}", chain(&error)));
            }
        };
        // A machine without room for a thread has other worries; it is done the next time.
        let thread = thread::Builder::new().name("retention".to_owned()).spawn(work).ok()?;
        Some(Self { is_stopped, thread: Some(thread) })
    }
}

impl Drop for Cleaning {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, there would be nothing to do about it here.
            let _ended = thread.join();
        }
    }
}
