//! Fail points of a commit, an undo or the application of a layer: one before each system call that
//! changes something. Tests make any of them fail, or run a concurrent action at any of them.

use std::io;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts fail points. Does nothing outside of tests.
#[derive(Debug, Default)]
pub(crate) struct FailPoints {
    #[cfg(test)]
    pub(crate) fault: Option<InjectedFault>,
    #[cfg(test)]
    pub(crate) concurrent: Option<ConcurrentAction>,
    #[cfg(test)]
    pub(crate) hits: AtomicUsize,
}

/// The error that a test injects.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) enum InjectedFault {
    /// This fail point fails.
    Error(usize),
    /// This fail point and all after it fail: the disk is left as by a killed process.
    Death(usize),
}

/// An action of someone else, called just before each fail point with its number.
#[cfg(test)]
pub(crate) struct ConcurrentAction(pub(crate) Box<dyn Fn(usize) + Send + Sync>);

#[cfg(test)]
impl std::fmt::Debug for ConcurrentAction {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("ConcurrentAction")
    }
}

impl FailPoints {
    /// Passes the next fail point.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests make these fail")]
    pub(crate) fn hit(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn hit(&self) -> io::Result<()> {
        let step = self.hits.fetch_add(1, Ordering::SeqCst);
        if let Some(ConcurrentAction(act)) = &self.concurrent {
            act(step);
        }
        let fails = match self.fault {
            Some(InjectedFault::Error(at)) => step == at,
            Some(InjectedFault::Death(at)) => step >= at,
            None => false,
        };
        if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}
