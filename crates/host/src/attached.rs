//! A command on this process's own standard descriptors, for a person who wants to run something confined.

use std::{
    fs::File,
    io::{self, PipeReader, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Denial,
    grant::Held,
    host::{Exit, HostError},
};
use windlass_sandbox::{ChildStdio, Program, denials};

use crate::{
    job_control::StopSignals,
    launch::Launch,
    process,
    spawner::{SpawnRequest, Spawner},
};

/// How the standard descriptors are passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    /// As they are.
    Inherited,
    /// The outputs through this process, which ends the command when they exceed so many bytes together.
    Limited(u64),
}

/// How a command on our own descriptors went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    /// How it ended.
    pub exit: Exit,
    /// Wall time.
    pub duration: Duration,
    /// What was still running at the end and was killed, by name.
    pub killed: Vec<String>,
    /// What the sandbox is known to have stopped.
    pub denials: Vec<Denial>,
    /// What held it; absent if it was stopped before it began.
    pub held: Option<Held>,
}

impl Streams {
    pub(crate) async fn run(
        self,
        program: Program,
        launch: Launch,
        time_limit: Duration,
        spawner: &Spawner,
        cancel: &CancellationToken,
    ) -> Result<Attached, HostError> {
        let name = program.name().to_owned();
        // Ours alone to cancel when the output is too long.
        let stop = cancel.child_token();
        let opened = StopSignals::listen().and_then(|stop_signals| Ok((stop_signals, self.open(&stop)?)));
        let (stop_signals, (stdio, relay)) =
            opened.map_err(|source| HostError::Spawn { program: name, source })?;
        let request = SpawnRequest { program, stdio, launch };
        let streams = process::Streams::Ours(stop_signals);
        let end = process::attend(request, time_limit, spawner, &stop, streams).await?;
        let (mut exit, mut denials) = (end.exit, end.denials);
        if relay.finish() {
            // Whether it was still there to be killed or had just ended is a matter of luck, which nobody should build on.
            if exit != Exit::TimedOut && !cancel.is_cancelled() {
                exit = Exit::KILLED;
            }
            denials.push(denials::limit("output"));
        }
        Ok(Attached { exit, duration: end.duration, killed: end.killed, denials, held: end.held })
    }

    fn open(self, stop: &CancellationToken) -> io::Result<(ChildStdio, Relay)> {
        let input = copy(io::stdin().as_fd().try_clone_to_owned(), process::null_device().map(File::from))?;
        let [out, err] =
            [io::stdout().as_fd().try_clone_to_owned(), io::stderr().as_fd().try_clone_to_owned()];
        let sink = || File::options().write(true).open("/dev/null");
        let (out, err) = (copy(out, sink())?, copy(err, sink())?);
        let Self::Limited(limit_bytes) = self else {
            return Ok((ChildStdio { input, output: out, error: err }, Relay::default()));
        };
        let mut relay = Relay::default();
        let left = Arc::new(AtomicU64::new(limit_bytes));
        let mut through = |to: OwnedFd| -> io::Result<OwnedFd> {
            let (reader, writer) = io::pipe()?;
            let (left, stop) = (Arc::clone(&left), stop.clone());
            relay.0.push(thread::spawn(move || pump(reader, File::from(to), &left, &stop)));
            Ok(writer.into())
        };
        let stdio = ChildStdio { input, output: through(out)?, error: through(err)? };
        Ok((stdio, relay))
    }
}

/// A descriptor that is closed here is replaced by nothing at all.
fn copy(own: io::Result<OwnedFd>, instead: io::Result<File>) -> io::Result<OwnedFd> {
    own.or_else(|_| instead.map(OwnedFd::from))
}

/// Threads that pass output on, and say whether it was too much.
#[derive(Debug, Default)]
struct Relay(Vec<JoinHandle<bool>>);

impl Relay {
    /// Waits until all that was written is passed on; whether it was too much. The command is gone by now, so the pipes
    /// are at their end.
    fn finish(self) -> bool {
        // A thread that panicked has nothing more to pass on. All are waited for.
        let over: Vec<_> = self.0.into_iter().map(|thread| thread.join().unwrap_or(false)).collect();
        over.contains(&true)
    }
}

/// Passes on what may be, and ends the command when it wants more: then it was too much. When nobody takes it any more,
/// the command finds its pipe closed, as it would without us.
fn pump(mut from: PipeReader, mut to: File, left: &AtomicU64, stop: &CancellationToken) -> bool {
    let mut chunk = [0; 16 * 1024];
    while let Ok(read @ 1..) = from.read(&mut chunk) {
        let wanted = read as u64;
        let before =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(wanted)));
        let allowed = before.unwrap_or(0).min(wanted);
        let passed = usize::try_from(allowed).unwrap_or(read);
        let taken = to.write_all(&chunk[..passed]).is_ok();
        if allowed < wanted {
            stop.cancel();
            return true;
        }
        if !taken {
            return false;
        }
    }
    false
}
