//! The size of the terminals that programs are given.

use std::io;

use tokio::sync::watch;

use crate::sys::terminal;

/// The window that programs on a terminal print to. Copies are the same window: when it changes, so do the terminals of all
/// that run, and their programs are told.
#[derive(Debug, Clone)]
pub struct Window {
    size: watch::Sender<Size>,
    seen: watch::Receiver<Size>,
}

/// How much fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) columns: u16,
}

/// Where nobody looks, the size that terminals have always had.
impl Default for Window {
    fn default() -> Self {
        Self::new(24, 80)
    }
}

impl Window {
    /// One of so many lines and characters in each.
    pub fn new(rows: u16, columns: u16) -> Self {
        let (size, seen) = watch::channel(Size { rows, columns });
        Self { size, seen }
    }

    /// As large as the terminal this process writes to, if there is one.
    pub fn of_terminal() -> Self {
        let window = Self::default();
        window.follow_terminal();
        window
    }

    /// Takes the size of that terminal now.
    pub fn follow_terminal(&self) {
        let (output, error) = (io::stdout(), io::stderr());
        if let Some(Size { rows, columns }) = terminal::size(&error).or_else(|| terminal::size(&output)) {
            self.resize(rows, columns);
        }
    }

    /// Changes its size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let new = Size { rows, columns };
        self.size.send_if_modified(|size| std::mem::replace(size, new) != new);
    }

    /// Its size now.
    pub(crate) fn size(&mut self) -> Size {
        *self.seen.borrow_and_update()
    }

    /// Waits for a size other than the one last seen.
    pub(crate) async fn changed(&mut self) -> Size {
        // This window holds the sender, so it cannot be gone.
        let _changed = self.seen.changed().await;
        self.size()
    }
}
