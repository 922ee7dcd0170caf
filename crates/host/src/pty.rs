//! A command that goes on from call to call: on a terminal, or without input.
//!
//! One task per session reads what it prints, whether anybody looks or not, so that it never stands still because of us;
//! it keeps as much as the grant's limit, and a long output whole in a file. When the last handle is dropped the task is,
//! and with it the child.

use std::{
    convert::Infallible,
    io,
    os::fd::OwnedFd,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    sync::{Mutex as AsyncMutex, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    BoxFuture,
    grant::Held,
    host::{Ended, Exit, HostError, Keyboard, Listener, Printed, Session},
};
use windlass_sandbox::{
    ChildStdio, Program,
    terminal::{self, PtyPair},
};

#[cfg(target_os = "linux")]
use windlass_sandbox::ChildPid;

#[cfg(target_os = "linux")]
use crate::input_wait::{self, InputWatcher};
use crate::{
    denial_check::DenialCheck,
    kept::Kept,
    launch::Launch,
    process::{self, Capture},
    spawner::{RunningChild, SpawnRequest, Spawner},
    spending::Meter,
    undo_recorder::CommandTicket,
    window::Window,
};

/// A command that is about to be started.
pub(crate) struct Opening {
    pub(crate) program: Program,
    pub(crate) launch: Launch,
    pub(crate) keyboard: Keyboard,
    pub(crate) window: Window,
    pub(crate) kept: Kept,
    /// How long it may go on, and how much it may print.
    pub(crate) time_left: Duration,
    pub(crate) output_limit: Option<u64>,
    pub(crate) wall: Meter,
    pub(crate) cpu: Meter,
    pub(crate) output: Listener,
    /// Held until it is gone: then its changes are recorded.
    pub(crate) ticket: Option<CommandTicket>,
}

impl Opening {
    /// Starts it.
    pub(crate) async fn start(self, spawner: &Spawner) -> Result<Running, HostError> {
        let Self {
            program,
            launch,
            keyboard,
            window,
            kept,
            time_left,
            output_limit,
            wall,
            cpu,
            output,
            ticket,
        } = self;
        let line = program.line();
        let streams = Streams::open(keyboard, &window);
        let streams =
            streams.map_err(|source| HostError::Spawn { program: program.name().to_owned(), source })?;
        let Streams { stdio, reader, keys, frame } = streams;
        let check = DenialCheck::new(&program, &launch);
        let child = spawner.spawn(SpawnRequest { program, stdio, launch }).await?;
        let held = child.held().clone();
        #[cfg(target_os = "linux")]
        let pid = child.pid();
        let seen = Arc::new(Seen::new(kept));
        let end = CancellationToken::new();
        let attendant = Attendant {
            child,
            reader,
            frame,
            seen: Arc::clone(&seen),
            end: end.clone(),
            time_left,
            output_limit,
            wall,
            cpu,
            output,
            ticket,
            check,
        };
        let task = tokio::spawn(attendant.attend());
        Ok(Running {
            line,
            held,
            keys,
            seen,
            end,
            task,
            #[cfg(target_os = "linux")]
            pid,
        })
    }
}

/// What a session's program reads from and writes to, and our ends of it.
struct Streams {
    stdio: ChildStdio,
    reader: pipe::Receiver,
    keys: Option<Keys>,
    frame: Option<Frame>,
}

/// Our end of a terminal, for typing. A terminal is read and written as a pipe is.
#[derive(Debug)]
struct Keys {
    writer: AsyncMutex<pipe::Sender>,
    #[cfg(target_os = "linux")]
    watcher: Arc<InputWatcher>,
}

/// Our end of a terminal, for its size, which follows the window's.
#[derive(Debug)]
struct Frame {
    ours: OwnedFd,
    window: Window,
}

impl Frame {
    /// Goes on as long as someone waits for it.
    async fn follow(mut self) -> Infallible {
        loop {
            let size = self.window.changed().await;
            // A terminal that is gone needs no size.
            let _set = terminal::set_size(&self.ours, size);
        }
    }
}

impl Streams {
    fn open(keyboard: Keyboard, window: &Window) -> io::Result<Self> {
        if keyboard == Keyboard::Absent {
            let (reader, writer) = process::pipe()?;
            let error = writer.try_clone()?;
            let input = process::null_device()?;
            let stdio = ChildStdio { input, output: writer, error };
            return Ok(Self { stdio, reader, keys: None, frame: None });
        }
        let mut window = window.clone();
        let PtyPair { ours, theirs } = PtyPair::open(window.size())?;
        let keys = Keys::new(&ours, &theirs)?;
        let frame = Some(Frame { ours: ours.try_clone()?, window });
        let stdio = ChildStdio { input: theirs.try_clone()?, output: theirs.try_clone()?, error: theirs };
        let reader = pipe::Receiver::from_owned_fd_unchecked(ours)?;
        Ok(Self { stdio, reader, keys: Some(keys), frame })
    }
}

impl Keys {
    fn new(ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<Self> {
        let writer = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        #[cfg(target_os = "linux")]
        let watcher = Arc::new(InputWatcher::new(ours, theirs)?);
        #[cfg(not(target_os = "linux"))]
        let _unused = theirs;
        Ok(Self {
            writer: AsyncMutex::new(writer),
            #[cfg(target_os = "linux")]
            watcher,
        })
    }
}

/// What the session's task works with.
struct Attendant {
    child: RunningChild,
    reader: pipe::Receiver,
    frame: Option<Frame>,
    seen: Arc<Seen>,
    end: CancellationToken,
    time_left: Duration,
    output_limit: Option<u64>,
    /// Counts until this is over.
    wall: Meter,
    cpu: Meter,
    output: Listener,
    ticket: Option<CommandTicket>,
    check: DenialCheck,
}

impl Attendant {
    /// Reads until the end, and leaves nothing behind.
    async fn attend(self) {
        let Self { mut child, reader, frame, seen, end, time_left, output_limit, output, .. } = self;
        let pass_on = |bytes: &[u8]| {
            seen.progress.send_modify(|progress| progress.printed_bytes += bytes.len() as u64);
            output(bytes);
        };
        let mut capture = Capture::new(reader, &seen.kept, output_limit, &pass_on);
        let stop = process::stop(time_left, &end);
        let stay = process::stay(&mut child, Instant::now(), stop, Some(&mut capture));
        let end = match frame {
            None => stay.await,
            Some(frame) => tokio::select! {
                end = stay => end,
                never = frame.follow() => match never {},
            },
        };
        // Before anyone hears that it is over.
        drop(self.wall);
        self.cpu.settle(end.as_ref().ok().and_then(|end| end.cpu));
        let mut ended = end.map_or_else(
            // We have lost track of it; dropping the child kills it.
            |_lost| Ended { exit: Exit::KILLED, killed: Vec::new(), denials: Vec::new() },
            |end| Ended { exit: end.exit, killed: end.killed, denials: end.denials },
        );
        let held = child.held().clone();
        drop(child);
        drop(self.ticket);
        ended.denials = self.check.complete(ended.denials, ended.exit, &seen.kept.look(), held).await;
        seen.close(ended);
    }
}

/// What a session has printed, and whether it is over.
#[derive(Debug)]
struct Seen {
    kept: Kept,
    progress: watch::Sender<Progress>,
    ended: OnceLock<Ended>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    printed_bytes: u64,
    over: bool,
}

impl Seen {
    fn new(kept: Kept) -> Self {
        Self { kept, progress: watch::Sender::default(), ended: OnceLock::new() }
    }

    /// Nothing more will be printed.
    fn close(&self, ended: Ended) {
        // It is closed once.
        let _first = self.ended.set(ended);
        self.progress.send_modify(|progress| progress.over = true);
    }
}

/// A session that was started.
#[derive(Debug)]
pub(crate) struct Running {
    line: String,
    held: Held,
    keys: Option<Keys>,
    seen: Arc<Seen>,
    end: CancellationToken,
    task: JoinHandle<()>,
    /// Of the first process, as long as it has not ended.
    #[cfg(target_os = "linux")]
    pid: ChildPid,
}

impl Running {
    /// The command, on one line and not too long.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Tells it to end, without waiting.
    pub(crate) fn tell_to_end(&self) {
        self.end.cancel();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Session for Running {
    fn write<'a>(&'a self, bytes: &'a [u8]) -> BoxFuture<'a, io::Result<usize>> {
        Box::pin(async move {
            let keys = self.keys.as_ref().ok_or(io::ErrorKind::BrokenPipe)?;
            keys.writer.lock().await.write(bytes).await
        })
    }

    fn take(&self, shown_bytes: usize) -> BoxFuture<'_, Printed> {
        Box::pin(self.seen.kept.take(shown_bytes))
    }

    fn progress(&self, beyond: u64) -> BoxFuture<'_, u64> {
        Box::pin(async move {
            let mut progress = self.seen.progress.subscribe();
            let news = progress.wait_for(|now| now.over || now.printed_bytes > beyond).await;
            // The sender is ours, so it cannot be gone.
            news.map_or(beyond, |now| now.printed_bytes)
        })
    }

    #[cfg(target_os = "linux")]
    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async move {
            let Some(keys) = self.keys.as_ref().filter(|_| self.ended().is_none()) else { return false };
            let watcher = Arc::clone(&keys.watcher);
            tokio::task::spawn_blocking(move || watcher.foreground_waits_for_input()).await.unwrap_or(false)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
    }

    #[cfg(target_os = "linux")]
    fn running(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let pid = self.pid;
            if self.ended().is_some() {
                return Vec::new();
            }
            let look = move || input_wait::program_names(&pid.descendants());
            tokio::task::spawn_blocking(look).await.unwrap_or_default()
        })
    }

    fn ended(&self) -> Option<Ended> {
        self.seen.ended.get().cloned()
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.tell_to_end();
            let mut progress = self.seen.progress.subscribe();
            // The sender is ours, so it cannot be gone.
            drop(progress.wait_for(|now| now.over).await);
        })
    }

    fn held(&self) -> Held {
        self.held.clone()
    }
}
