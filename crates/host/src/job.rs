//! A command that stops and goes on with this process, as a shell and its terminal want it.
//!
//! The command has a session of its own, so what a terminal sends on Ctrl-Z reaches this process alone. Were only this one
//! stopped, the command would go on reading what a person types for the shell.

use std::{
    convert::Infallible,
    future::poll_fn,
    io,
    task::{Context, Poll},
};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::sys::{
    Pid,
    halt::{act_by_default, is_ignored},
};

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
            let wish = self.next().await;
            command.stop_all();
            act_by_default(wish);
            command.continue_all();
        }
    }

    async fn next(&mut self) -> i32 {
        let mut wished = |cx: &mut Context<'_>| {
            self.0.iter_mut().find_map(|(kind, signal)| signal.poll_recv(cx).is_ready().then_some(*kind))
        };
        poll_fn(|cx| wished(cx).map_or(Poll::Pending, Poll::Ready)).await
    }
}
