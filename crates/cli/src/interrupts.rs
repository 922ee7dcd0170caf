//! Signals: Ctrl-C and requests to end, and that the window has changed.

use std::{fs::File, io, thread};

use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
};
use windlass::{Reason, Stop, host::Window};

use crate::{exit::Exit, problem::Problem};

/// More than watching takes.
const DESCRIPTORS: usize = 8;

/// Watches from now on: the first request stops the work in order, the second ends the process. The window follows the
/// terminal.
///
/// The thread for it is never joined, it ends with the process. It is a thread of its own because everything else may
/// be waiting in a write for a reader that never comes, and then nothing else could hear the second signal.
pub(crate) fn watch(stop: Stop, window: Window) -> Result<(), Problem> {
    start(stop, window).map_err(|error| Problem::failed(format!("cannot watch for Ctrl-C: {error}")))
}

fn start(stop: Stop, window: Window) -> io::Result<()> {
    // The library panics where it cannot have the few descriptors it needs. Asked for beforehand, their lack is an error.
    let room = (0..DESCRIPTORS).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>()?;
    drop(room);
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut resized = signal(SignalKind::window_change())?;
    drop(inside);
    let watch = async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
                _ = resized.recv() => {
                    window.follow_terminal();
                    continue;
                }
            }
            if stop.reason().is_some() {
                Exit::Interrupted.now();
            }
            stop.stop(Reason::Interrupted);
        }
    };
    thread::Builder::new().name("windlass-signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(())
}
