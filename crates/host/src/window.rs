//! The window size of the terminals that programs run on.

use std::io;

use tokio::sync::watch;

use windlass_sandbox::terminal::{self, WindowSize};

/// The window that programs on a terminal print to. Clones are the same window: when its size
/// changes, so does that of all running terminals, and their programs get SIGWINCH.
#[derive(Debug, Clone)]
pub struct Window {
    size: watch::Sender<WindowSize>,
    seen: watch::Receiver<WindowSize>,
}

/// 24 rows of 80 columns, the customary default.
impl Default for Window {
    fn default() -> Self {
        Self::new(24, 80)
    }
}

impl Window {
    /// Creates a window of this size.
    pub fn new(rows: u16, columns: u16) -> Self {
        let (size, seen) = watch::channel(WindowSize { rows, columns });
        Self { size, seen }
    }

    /// Creates a window as large as the terminal this process writes to, if there is one.
    pub fn of_terminal() -> Self {
        let window = Self::default();
        window.follow_terminal();
        window
    }

    /// Takes over the present size of that terminal.
    pub fn follow_terminal(&self) {
        let (output, error) = (io::stdout(), io::stderr());
        if let Some(WindowSize { rows, columns }) = terminal::size(&error).or_else(|| terminal::size(&output))
        {
            self.resize(rows, columns);
        }
    }

    /// Changes the size.
    pub fn resize(&self, rows: u16, columns: u16) {
        let new = WindowSize { rows, columns };
        self.size.send_if_modified(|size| std::mem::replace(size, new) != new);
    }

    /// Returns the present size and marks it as seen.
    pub(crate) fn size(&mut self) -> WindowSize {
        *self.seen.borrow_and_update()
    }

    /// Waits until the size differs from the one last seen.
    pub(crate) async fn changed(&mut self) -> WindowSize {
        // This window holds the sender, so it cannot be gone.
        let _changed = self.seen.changed().await;
        self.size()
    }
}
