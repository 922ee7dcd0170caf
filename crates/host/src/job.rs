//! A command that stops and goes on with this process, as a shell and its terminal want it.
//!
//! The command has a session of its own, so what a terminal sends on Ctrl-Z reaches this process alone. Were only this one
//! stopped, the command would go on reading what a person types for the shell. For the same reason the terminal stops nobody
//! who reads from it in the background: here it is noticed, a moment later, and ends as it would have.

use std::{
    convert::Infallible,
    future::{self, poll_fn},
    io,
    task::{Context, Poll},
};
#[cfg(target_os = "linux")]
use std::{os::fd::AsFd, time::Duration};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::sys::{
    Pid,
    halt::{act_by_default, is_ignored},
};
#[cfg(target_os = "linux")]
use crate::{sys::halt::can_be_continued, waiting::Watcher};

/// How soon it is looked whether a command in the background reads from our terminal: often at first, when it is
/// started or continued, and then seldom, since a job may stay there for days and a look costs some milliseconds.
#[cfg(target_os = "linux")]
const SOON: Duration = Duration::from_millis(20);
#[cfg(target_os = "linux")]
const LATEST: Duration = Duration::from_millis(500);

/// The wishes that we stop, heard from the moment this is made.
#[derive(Debug)]
pub(crate) struct Halts(Vec<(i32, Signal)>);

impl Halts {
    /// Takes the signals over from the system, but for those that are to have no effect.
    pub(crate) fn listen() -> io::Result<Self> {
        let heard =
            [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].into_iter().filter(|kind| !is_ignored(*kind));
        heard.map(|kind| Ok((kind, signal(SignalKind::from_raw(kind))?))).collect::<io::Result<_>>().map(Self)
    }

    /// Stops a command and everything below it, and then this process, whenever it is wished, and has them go on after
    /// it. To be dropped before the command is collected.
    pub(crate) async fn pass_on(mut self, command: Pid) -> Infallible {
        loop {
            let wish = tokio::select! {
                wish = self.next() => wish,
                () = reads_behind(command), if self.has(libc::SIGTTIN) => libc::SIGTTIN,
            };
            command.stop_all();
            act_by_default(wish);
            command.continue_all();
        }
    }

    fn has(&self, wanted: i32) -> bool {
        self.0.iter().any(|(kind, _)| *kind == wanted)
    }

    async fn next(&mut self) -> i32 {
        let mut wished = |cx: &mut Context<'_>| {
            self.0.iter_mut().find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind))
        };
        poll_fn(|cx| wished(cx).map_or(Poll::Pending, Poll::Ready)).await
    }
}

/// Returns when somebody of a command waits for what is typed on our terminal while another job is in its foreground; never,
/// if we would not be stopped for it. In the foreground it is asked who is there, and no more: others can put us behind
/// without our being told.
#[cfg(target_os = "linux")]
async fn reads_behind(command: Pid) {
    let input = io::stdin().as_fd().try_clone_to_owned();
    if let Ok(watcher) = input.and_then(|input| Watcher::new(&input, &input)) {
        let mut pause = SOON;
        loop {
            // Before each look, so that one which finds what the last has found keeps nothing else from its turn.
            tokio::time::sleep(pause).await;
            pause = LATEST.min(pause * 2);
            let Some(is_behind) = watcher.is_behind() else { break };
            if is_behind && watcher.sees_any_wait(&command.all()) {
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
async fn reads_behind(_command: Pid) {
    future::pending().await
}
