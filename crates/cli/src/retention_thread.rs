//! Enforces the limits of retention in the background.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use windlass::record::RetentionLimits;

use crate::{problem::chain, setup::ProgramSetup};

/// A thread that enforces the limits. Dropping it stops it after the current file.
pub(crate) struct RetentionThread {
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl RetentionThread {
    /// Starts the thread, if a cleanup is due.
    pub(crate) fn start(setup: &ProgramSetup) -> Option<Self> {
        let (home, limits) = (setup.home.clone(), RetentionLimits::from(setup.retention()));
        if !RetentionLimits::is_due(&home) {
            return None;
        }
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&is_stopped);
        let work = move || {
            let go_on = || !stop.load(Ordering::Relaxed);
            if let Err(error) = limits.enforce_if_due(&home, &go_on) {
                // A failure only costs disk space.
                crate::note(&format!("warning: cannot remove old data: {}", chain(&error)));
            }
        };
        // Without a thread, the cleanup is left to the next run.
        let thread = thread::Builder::new().name("retention".to_owned()).spawn(work).ok()?;
        Some(Self { is_stopped, thread: Some(thread) })
    }
}

impl Drop for RetentionThread {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It does not panic, and if it did, there would be nothing to do about it here.
            let _ended = thread.join();
        }
    }
}
