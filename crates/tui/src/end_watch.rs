//! Requests to end: signals, and a terminal that is gone.
//!
//! They are watched by threads of their own, because the thread that draws may wait for a terminal
//! that does not read, and the one that reads may spin on a terminal that is gone.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, poll};
use tokio::{
    runtime::Builder,
    signal::unix::{SignalKind, signal},
    sync::Notify,
};
use windlass::Reason;

use crate::{session_worker::WorkerStopper, terminal};

/// Time that the agent may take to end its commands and its record.
const MAX_AGENT_TIME: Duration = Duration::from_secs(5);

/// Time that the thread that draws may take after that, and again after the terminal was told to
/// throw away what it did not read.
const MAX_DRAWING_TIME: Duration = Duration::from_millis(500);

/// Ends the process with the exit code for a signal.
pub type EndProcess = fn(signal: i32) -> !;

/// Watches for requests to end, until it is dropped.
#[derive(Debug)]
pub(crate) struct EndWatch(Arc<EndState>);

#[derive(Debug)]
struct EndState {
    /// The signal that asked to end, or 0.
    signal: AtomicI32,
    requested: Notify,
    is_over: AtomicBool,
    stopper: Option<WorkerStopper>,
    end_process: EndProcess,
}

impl EndWatch {
    /// Starts the threads. They end with the process, whose signals they handle from now on.
    pub(crate) fn start(stopper: Option<WorkerStopper>, end_process: EndProcess) -> io::Result<Self> {
        let state = Arc::new(EndState {
            signal: AtomicI32::new(0),
            requested: Notify::new(),
            is_over: AtomicBool::new(false),
            stopper,
            end_process,
        });
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let inside = runtime.enter();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut quit = signal(SignalKind::quit())?;
        let mut hang_up = signal(SignalKind::hangup())?;
        drop(inside);
        let signals = Arc::clone(&state);
        let wait = async move {
            loop {
                let kind = tokio::select! {
                    _ = terminate.recv() => SignalKind::terminate(),
                    _ = interrupt.recv() => SignalKind::interrupt(),
                    _ = quit.recv() => SignalKind::quit(),
                    _ = hang_up.recv() => SignalKind::hangup(),
                };
                if kind != SignalKind::interrupt() || !terminal::is_lent_to_program() {
                    signals.request(kind);
                }
            }
        };
        thread::Builder::new().name("windlass-signals".to_owned()).spawn(move || runtime.block_on(wait))?;
        let terminal = Arc::clone(&state);
        thread::Builder::new().name("windlass-hang-up".to_owned()).spawn(move || terminal.await_hang_up())?;
        Ok(Self(state))
    }

    /// Returns the signal that asked to end.
    pub(crate) fn signal(&self) -> Option<i32> {
        self.0.signal()
    }

    /// Returns a function that says whether there was a request to end, for other work.
    pub(crate) fn flag(&self) -> impl Fn() -> bool + use<> {
        let state = Arc::clone(&self.0);
        move || state.signal().is_some()
    }

    /// Waits for a request to end.
    pub(crate) async fn requested(&self) {
        if self.signal().is_none() {
            self.0.requested.notified().await;
        }
    }
}

impl Drop for EndWatch {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::SeqCst);
    }
}

impl EndState {
    fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Waits until the terminal is gone.
    fn await_hang_up(self: &Arc<Self>) {
        let stdin = io::stdin();
        loop {
            // No event is asked for. That the other side is gone is reported in any case.
            let mut sources = [PollFd::new(&stdin, PollFlags::empty())];
            match poll(&mut sources, None) {
                Err(error) if error == rustix::io::Errno::INTR => {}
                Ok(_) if sources[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => {
                    return self.request(SignalKind::hangup());
                }
                // A system that cannot watch a terminal this way. Its signal is watched anyway.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Ends in order, and in time even if that is not possible.
    fn request(self: &Arc<Self>, kind: SignalKind) {
        if self.is_over.load(Ordering::SeqCst) {
            return;
        }
        let signal = kind.as_raw_value();
        let earlier = self.signal.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
        if earlier.is_err() {
            // A closing terminal asks more than once by itself. Others insist.
            if kind != SignalKind::hangup() {
                self.end_now();
            }
            return;
        }
        if let Some(stopper) = &self.stopper {
            stopper.stop(Reason::Terminated);
        }
        self.requested.notify_one();
        let ending = Arc::clone(self);
        let thread = thread::Builder::new().name("windlass-end".to_owned());
        if thread.spawn(move || ending.end_in_time()).is_err() {
            self.end_in_time();
        }
    }

    /// Ends the process if the thread that draws does not.
    fn end_in_time(&self) {
        let deadline = Instant::now() + MAX_AGENT_TIME;
        let has_ended = || self.stopper.as_ref().is_none_or(WorkerStopper::has_ended);
        while !has_ended() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(MAX_DRAWING_TIME);
        terminal::discard_unread();
        thread::sleep(MAX_DRAWING_TIME);
        self.end_now();
    }

    fn end_now(&self) {
        terminal::restore_without_waiting();
        (self.end_process)(self.signal().unwrap_or(SignalKind::terminate().as_raw_value()));
    }
}
