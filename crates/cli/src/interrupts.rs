//! Signals: Ctrl-C, requests to end, a terminal that is gone, a resized window.

use std::{
    fs::File,
    future::poll_fn,
    io,
    sync::atomic::{AtomicBool, AtomicU8, Ordering},
    task::Poll,
    thread,
};

use tokio::{
    runtime::Builder,
    signal::unix::{Signal, SignalKind, signal},
};
use windlass::{
    Reason, Stop,
    host::{Window, is_ignored},
};

use crate::{exit::ProgramExit, problem::CliProblem};

/// More descriptors than the signal handler needs.
const RESERVED_DESCRIPTORS: usize = 8;

/// The exit code after an interrupt. Signals concern the whole process, so this does, too.
static CODE: AtomicU8 = AtomicU8::new(130);

/// Set while there is an interactive session, which ends itself in order.
static HAS_SESSION: AtomicBool = AtomicBool::new(false);

/// Leaves it to an interactive session to end the process.
pub(crate) fn leave_to_session() {
    HAS_SESSION.store(true, Ordering::SeqCst);
}

/// Returns the exit code for the first request to end.
pub(crate) fn code() -> u8 {
    CODE.load(Ordering::SeqCst)
}

/// Sets the exit code to that of a signal.
pub(crate) fn remember(signal: i32) {
    let request = EndRequest::ALL.into_iter().find(|request| request.kind().as_raw_value() == signal);
    CODE.store(request.map_or(130, EndRequest::code), Ordering::SeqCst);
}

/// Watches signals from now on: the first request stops the work in order, the second ends the
/// process. The window size follows the terminal.
///
/// The thread is never joined; it ends with the process. It is a separate thread because everything
/// else may be blocked in a write to a reader that never comes. The second signal would be lost
/// then.
pub(crate) fn watch(stop: Stop, window: Window) -> Result<(), CliProblem> {
    start(stop, window).map_err(|error| CliProblem::failed(format!("cannot watch for Ctrl-C: {error}")))
}

fn start(stop: Stop, window: Window) -> io::Result<()> {
    // The library panics if it cannot get its few descriptors. Opened here beforehand, their lack
    // is an error.
    let room = (0..RESERVED_DESCRIPTORS).map(|_| File::open("/dev/null")).collect::<io::Result<Vec<_>>>()?;
    drop(room);
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let inside = runtime.enter();
    let mut requests = EndRequest::ALL
        .into_iter()
        .filter(|request| !request.is_unwanted())
        .map(|request| Ok((request, signal(request.kind())?)))
        .collect::<io::Result<Vec<_>>>()?;
    let mut resized = signal(SignalKind::window_change())?;
    drop(inside);
    let watch = async move {
        loop {
            let request = tokio::select! {
                request = next(&mut requests) => request,
                _ = resized.recv() => {
                    window.follow_terminal();
                    continue;
                }
            };
            if stop.reason().is_none() {
                CODE.store(request.code(), Ordering::SeqCst);
                stop.stop(Reason::Interrupted);
            } else if request.is_insistent() && !HAS_SESSION.load(Ordering::SeqCst) {
                ProgramExit::Interrupted.now();
            }
        }
    };
    thread::Builder::new().name("windlass-signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(())
}

async fn next(requests: &mut [(EndRequest, Signal)]) -> EndRequest {
    poll_fn(|cx| {
        let heard = requests
            .iter_mut()
            .find_map(|(request, signal)| signal.poll_recv(cx).is_ready().then_some(*request));
        heard.map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// A request to end.
#[derive(Debug, Clone, Copy)]
enum EndRequest {
    Interrupt,
    Terminate,
    /// Ctrl-\.
    Quit,
    /// The terminal is gone.
    HangUp,
}

impl EndRequest {
    const ALL: [Self; 4] = [Self::Interrupt, Self::Terminate, Self::Quit, Self::HangUp];

    fn kind(self) -> SignalKind {
        match self {
            Self::Interrupt => SignalKind::interrupt(),
            Self::Terminate => SignalKind::terminate(),
            Self::Quit => SignalKind::quit(),
            Self::HangUp => SignalKind::hangup(),
        }
    }

    /// Returns true if it is ignored, as under `nohup`.
    fn is_unwanted(self) -> bool {
        match self {
            Self::Interrupt | Self::Terminate => false,
            Self::Quit | Self::HangUp => is_ignored(self.kind().as_raw_value()),
        }
    }

    /// Returns true if a second request ends the process at once. A closing terminal sends it twice
    /// by itself, once through the shell and once through the kernel.
    fn is_insistent(self) -> bool {
        !matches!(self, Self::HangUp)
    }

    fn code(self) -> u8 {
        match self {
            Self::Interrupt | Self::Terminate => 130,
            Self::Quit => 131,
            Self::HangUp => 129,
        }
    }
}
