//! The steps of a change, of an undo or of applying a layer, one for each thing the system is asked for, so that tests can make
//! any of them fail, or have a person act at any of them.

use std::io;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};

/// Goes through the steps of a change.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    #[cfg(test)]
    pub(crate) fault: Option<Fault>,
    #[cfg(test)]
    pub(crate) meanwhile: Option<Meanwhile>,
    #[cfg(test)]
    pub(crate) taken: AtomicUsize,
}

/// What goes wrong.
#[cfg(test)]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fault {
    /// This step fails.
    Error(usize),
    /// This step and all after it fail: what is left on disk is what a killed process would leave.
    Death(usize),
}

/// What someone else does just before each step, by its number.
#[cfg(test)]
pub(crate) struct Meanwhile(pub(crate) Box<dyn Fn(usize) + Send + Sync>);

#[cfg(test)]
impl std::fmt::Debug for Meanwhile {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Meanwhile")
    }
}

impl Steps {
    /// Takes the next step.
    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "only tests make steps fail")]
    pub(crate) fn take(&self) -> io::Result<()> {
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn take(&self) -> io::Result<()> {
        let step = self.taken.fetch_add(1, Ordering::SeqCst);
        if let Some(Meanwhile(act)) = &self.meanwhile {
            act(step);
        }
        let fails = match self.fault {
            Some(Fault::Error(at)) => step == at,
            Some(Fault::Death(at)) => step >= at,
            None => false,
        };
        if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}
