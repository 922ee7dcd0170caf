//! Keeps programs that a lasting approval starts outside of the sandbox apart from sandboxed
//! commands.
//!
//! A sandboxed command can put settings into the workspace that a program outside would obey, such
//! as a new `.git/config`. They are removed when the command ends. Until then no program may run
//! outside without a question, and while such a program runs, no sandboxed command starts.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock},
    time,
};

/// Maximum time that a sandboxed command waits for a program outside to end.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// A lock that sandboxed commands share and that a program outside needs for itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutsideLock(Arc<RwLock<()>>);

/// A held [`OutsideLock`]. It is released when this is dropped.
#[derive(Debug)]
pub(crate) enum OutsideLockGuard {
    Sandboxed { _shared: OwnedRwLockReadGuard<()> },
    Outside { _exclusive: OwnedRwLockWriteGuard<()> },
}

impl OutsideLock {
    /// Locks for a sandboxed command. Waits for a program outside, but returns `None` if that takes
    /// too long.
    pub(crate) async fn lock_sandboxed(&self) -> Option<OutsideLockGuard> {
        let shared = time::timeout(MAX_WAIT, Arc::clone(&self.0).read_owned()).await.ok()?;
        Some(OutsideLockGuard::Sandboxed { _shared: shared })
    }

    /// Locks for a program outside. Returns `None` if a sandboxed command or another such program
    /// runs.
    pub(crate) fn lock_outside(&self) -> Option<OutsideLockGuard> {
        let exclusive = Arc::clone(&self.0).try_write_owned().ok()?;
        Some(OutsideLockGuard::Outside { _exclusive: exclusive })
    }

    /// Returns true if a sandboxed command or a program outside runs.
    pub(crate) fn is_held(&self) -> bool {
        self.0.try_write().is_err()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn sandboxed_commands_share_it_and_a_program_outside_has_it_alone() {
        let lock = OutsideLock::default();
        let first = lock.lock_sandboxed().await.unwrap();
        let second = lock.lock_sandboxed().await.unwrap();
        assert!(lock.lock_outside().is_none());
        drop((first, second));
        assert!(!lock.is_held());
        let outside = lock.lock_outside().unwrap();
        assert!(lock.is_held());
        assert!(lock.lock_outside().is_none());
        let waited = time::timeout(Duration::from_millis(20), lock.lock_sandboxed()).await;
        assert!(waited.is_err(), "it waits");
        let waiting = tokio::spawn({
            let lock = lock.clone();
            async move { lock.lock_sandboxed().await.is_some() }
        });
        tokio::task::yield_now().await;
        drop(outside);
        assert!(waiting.await.unwrap());
    }
}
