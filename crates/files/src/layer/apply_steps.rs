//! The steps of applying a layer, one for each thing the system is asked for, so that tests can end the process at any.

use std::io;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts steps.
#[derive(Debug, Default)]
pub(super) struct ApplySteps {
    #[cfg(test)]
    pub(super) fault: Option<ApplyFault>,
    #[cfg(test)]
    pub(super) taken: AtomicUsize,
}

/// What goes wrong.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(super) enum ApplyFault {
    /// This step fails.
    Error(usize),
    /// This step and all after it fail: what is left on disk is what a killed process would leave.
    Death(usize),
}

impl ApplySteps {
    /// Takes the next step.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests make steps fail")]
    pub(super) fn take(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(test)]
    pub(super) fn take(&self) -> io::Result<()> {
        let step = self.taken.fetch_add(1, Ordering::SeqCst);
        let fails = match self.fault {
            Some(ApplyFault::Error(at)) => step == at,
            Some(ApplyFault::Death(at)) => step >= at,
            None => false,
        };
        if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}
