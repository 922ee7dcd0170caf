//! Job control: stops and continues a command together with this process.
//!
//! The command has a session of its own, so the SIGTSTP of Ctrl-Z reaches this process alone. If
//! only this process stopped, the command would go on reading what a person types for the shell.
//! For the same reason the kernel sends no SIGTTIN to a command that reads from our terminal in the
//! background: it is detected here, a moment later, and stopped as the kernel would have.

use std::{
    convert::Infallible,
    future::{self, poll_fn},
    io,
    task::{Context, Poll},
};
#[cfg(target_os = "linux")]
use std::{os::fd::AsFd, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};

#[cfg(target_os = "linux")]
use windlass_sandbox::job_signals::can_be_continued;
use windlass_sandbox::{
    ChildPid,
    job_signals::{is_ignored, raise_default},
};

#[cfg(target_os = "linux")]
use crate::input_wait::InputWatcher;

/// The first pause between two checks whether a command in the background reads from our terminal,
/// and the longest. Each pause is twice as long, since a job may stay there for days and a check
/// costs some milliseconds.
#[cfg(target_os = "linux")]
const FIRST_PAUSE: Duration = Duration::from_millis(20);
#[cfg(target_os = "linux")]
const MAX_PAUSE: Duration = Duration::from_millis(500);

/// SIGTSTP, SIGTTIN and SIGTTOU to this process, handled from the moment this is made.
#[derive(Debug)]
pub(crate) struct StopSignals(Vec<(i32, Signal)>);

impl StopSignals {
    /// Installs handlers, but for signals that are ignored.
    pub(crate) fn listen() -> io::Result<Self> {
        let handled =
            [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].into_iter().filter(|kind| !is_ignored(*kind));
        handled
            .map(|kind| Ok((kind, signal(SignalKind::from_raw(kind))?)))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// At each signal stops a command with all its descendants, then this process, and continues
    /// them after it. To be dropped before the command is reaped.
    pub(crate) async fn forward_to(mut self, command: ChildPid) -> Infallible {
        loop {
            let signal = tokio::select! {
                signal = self.next() => signal,
                () = background_read(command), if self.has(libc::SIGTTIN) => libc::SIGTTIN,
            };
            command.stop_all();
            raise_default(signal);
            command.continue_all();
        }
    }

    fn has(&self, wanted: i32) -> bool {
        self.0.iter().any(|(kind, _)| *kind == wanted)
    }

    async fn next(&mut self) -> i32 {
        let mut received = |cx: &mut Context<'_>| {
            self.0.iter_mut().find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind))
        };
        poll_fn(|cx| received(cx).map_or(Poll::Pending, Poll::Ready)).await
    }
}

/// Returns when a process of a command waits for input on our terminal while another job is in its
/// foreground; never, if we would not be stopped for it. In the foreground only `tcgetpgrp` is
/// asked each time: another program can put us in the background without a signal.
#[cfg(target_os = "linux")]
async fn background_read(command: ChildPid) {
    let input = io::stdin().as_fd().try_clone_to_owned();
    if let Ok(watcher) = input.and_then(|input| InputWatcher::new(&input, &input)) {
        let mut pause = FIRST_PAUSE;
        loop {
            // Before each check, so that checks that find the same again do not starve other tasks.
            tokio::time::sleep(pause).await;
            pause = MAX_PAUSE.min(pause * 2);
            let Some(in_background) = watcher.is_in_background() else { break };
            if in_background && watcher.any_waits_for_input(&command.descendants()) {
                if can_be_continued() {
                    return;
                }
                break;
            }
        }
    }
    future::pending().await
}

#[cfg(not(target_os = "linux"))]
async fn background_read(_command: ChildPid) {
    future::pending().await
}
