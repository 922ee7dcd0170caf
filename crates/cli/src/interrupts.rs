//! Signals: Ctrl-C, requests to end, a terminal that is gone, and that the window has changed.

use std::{
    fs::File,
    future::poll_fn,
    io,
    sync::atomic::{AtomicU8, Ordering},
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

use crate::{exit::Exit, problem::Problem};

/// More than watching takes.
const DESCRIPTORS: usize = 8;

/// What the process ends with once it was interrupted. Signals are the whole process's, so this is too.
static CODE: AtomicU8 = AtomicU8::new(130);

/// The code that tells of the first request to end.
pub(crate) fn code() -> u8 {
    CODE.load(Ordering::SeqCst)
}

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
    let mut requests = Request::ALL
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
            } else if request.is_insistent() {
                Exit::Interrupted.now();
            }
        }
    };
    thread::Builder::new().name("windlass-signals".to_owned()).spawn(move || runtime.block_on(watch))?;
    Ok(())
}

async fn next(requests: &mut [(Request, Signal)]) -> Request {
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
enum Request {
    Interrupt,
    Terminate,
    /// Ctrl-\.
    Quit,
    /// The terminal is gone.
    HangUp,
}

impl Request {
    const ALL: [Self; 4] = [Self::Interrupt, Self::Terminate, Self::Quit, Self::HangUp];

    fn kind(self) -> SignalKind {
        match self {
            Self::Interrupt => SignalKind::interrupt(),
            Self::Terminate => SignalKind::terminate(),
            Self::Quit => SignalKind::quit(),
            Self::HangUp => SignalKind::hangup(),
        }
    }

    /// Whether it is to have no effect, as under `nohup`.
    fn is_unwanted(self) -> bool {
        match self {
            Self::Interrupt | Self::Terminate => false,
            Self::Quit | Self::HangUp => is_ignored(self.kind().as_raw_value()),
        }
    }

    /// Whether a second time means: at once. A terminal that goes away says so twice by itself, once through the shell and
    /// once through the kernel.
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
