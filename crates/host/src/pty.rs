//! A command that goes on from call to call: on a terminal, or without input.
//!
//! One task per session reads what it prints, whether anybody looks or not, so that it never stands still because of us;
//! it keeps as much as the grant's limit. When the last handle is dropped the task is, and with it the child.

use std::{
    fs::File,
    io, mem,
    os::fd::OwnedFd,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe,
    sync::{Mutex as AsyncMutex, watch},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use windlass_contract::{BoxFuture, Ended, Exit, Held, HostError, Keyboard, Listener, Printed, Session};

use crate::{
    capture::HeadTail,
    denials,
    enclosure::Enclosure,
    keeper::{Child, Keeper, Order},
    process::{self, Capture},
    program::Program,
    spending::Meter,
    sys::{Stdio, terminal::Terminal},
};

#[cfg(target_os = "linux")]
mod waiting;

/// A command that is about to be started.
pub(crate) struct Opening {
    pub(crate) program: Program,
    pub(crate) enclosure: Enclosure,
    pub(crate) keyboard: Keyboard,
    pub(crate) output_limit_bytes: usize,
    pub(crate) cpu: Meter,
    pub(crate) output: Listener,
}

impl Opening {
    /// Starts it.
    pub(crate) async fn start(self, keeper: &Keeper) -> Result<Running, HostError> {
        let name = self.program.name().to_owned();
        let streams = Streams::open(self.keyboard);
        let streams = streams.map_err(|source| HostError::Spawn { program: name.clone(), source })?;
        let Streams { stdio, reader, keys } = streams;
        let child = keeper.start(Order { program: self.program, stdio, enclosure: self.enclosure }).await?;
        let held = child.held().clone();
        let seen = Arc::new(Seen::new(self.output_limit_bytes));
        let end = CancellationToken::new();
        let (cpu, output) = (self.cpu, self.output);
        let attendant = Attendant { child, reader, seen: Arc::clone(&seen), end: end.clone(), cpu, output };
        let task = tokio::spawn(attendant.attend());
        Ok(Running { name, held, keys, seen, end, task })
    }
}

/// What a session's program reads from and writes to, and our ends of it.
struct Streams {
    stdio: Stdio,
    reader: pipe::Receiver,
    keys: Option<Keys>,
}

/// Our end of a terminal, for typing. A terminal is read and written as a pipe is.
#[derive(Debug)]
struct Keys {
    writer: AsyncMutex<pipe::Sender>,
    #[cfg(target_os = "linux")]
    watcher: Arc<waiting::Watcher>,
}

impl Streams {
    fn open(keyboard: Keyboard) -> io::Result<Self> {
        let Keyboard::Terminal { rows, columns } = keyboard else {
            let (reader, writer) = process::pipe()?;
            let error = writer.try_clone()?;
            let input = File::open("/dev/null")?.into();
            return Ok(Self { stdio: Stdio { input, output: writer, error }, reader, keys: None });
        };
        let Terminal { ours, theirs } = Terminal::open(rows, columns)?;
        let keys = Keys::new(&ours, &theirs)?;
        let stdio = Stdio { input: theirs.try_clone()?, output: theirs.try_clone()?, error: theirs };
        let reader = pipe::Receiver::from_owned_fd_unchecked(ours)?;
        Ok(Self { stdio, reader, keys: Some(keys) })
    }
}

impl Keys {
    fn new(ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<Self> {
        let writer = pipe::Sender::from_owned_fd_unchecked(ours.try_clone()?)?;
        #[cfg(target_os = "linux")]
        let watcher = Arc::new(waiting::Watcher::new(ours, theirs)?);
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
    child: Child,
    reader: pipe::Receiver,
    seen: Arc<Seen>,
    end: CancellationToken,
    cpu: Meter,
    output: Listener,
}

impl Attendant {
    /// Reads until the end, and leaves nothing behind.
    async fn attend(self) {
        let Self { mut child, reader, seen, end, cpu, output } = self;
        let sink = |bytes: &[u8]| {
            seen.push(bytes);
            output(bytes);
        };
        // What is kept is kept in `seen`, because it can be taken before the end.
        let mut capture = Capture::passing(reader, &sink);
        let stop = async {
            end.cancelled().await;
            Exit::Cancelled
        };
        let end = process::stay(&mut child, Instant::now(), stop, Some(&mut capture)).await;
        cpu.settle(end.as_ref().ok().and_then(|end| end.cpu));
        let ended = end.map_or_else(
            // We have lost track of it; dropping the child kills it.
            |_lost| Ended { exit: Exit::Signal(libc::SIGKILL), killed: Vec::new(), denials: Vec::new() },
            |end| Ended { exit: end.exit, killed: end.killed, denials: end.denials },
        );
        let held = child.held().clone();
        drop(child);
        seen.close(ended, &held);
    }
}

/// What a session has printed, and whether it is over.
#[derive(Debug)]
struct Seen {
    buffer: Mutex<Buffer>,
    limit_bytes: usize,
    progress: watch::Sender<Progress>,
    ended: OnceLock<Ended>,
}

#[derive(Debug)]
enum Buffer {
    Open(HeadTail),
    Over(Printed),
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    printed_bytes: u64,
    over: bool,
}

impl Seen {
    fn new(limit_bytes: usize) -> Self {
        Self {
            buffer: Mutex::new(Buffer::Open(HeadTail::new(limit_bytes))),
            limit_bytes,
            progress: watch::Sender::default(),
            ended: OnceLock::new(),
        }
    }

    fn buffer(&self) -> MutexGuard<'_, Buffer> {
        self.buffer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, bytes: &[u8]) {
        if let Buffer::Open(kept) = &mut *self.buffer() {
            kept.push(bytes);
        }
        self.progress.send_modify(|progress| progress.printed_bytes += bytes.len() as u64);
    }

    fn take(&self) -> Printed {
        match &mut *self.buffer() {
            Buffer::Open(kept) => printed(mem::replace(kept, HeadTail::new(self.limit_bytes))),
            Buffer::Over(rest) => mem::take(rest),
        }
    }

    /// Nothing more will be printed.
    fn close(&self, mut ended: Ended, held: &Held) {
        let rest = self.take();
        ended.denials.extend(denials::suspect(ended.exit, &rest.bytes, held));
        *self.buffer() = Buffer::Over(rest);
        // It is closed once.
        let _first = self.ended.set(ended);
        self.progress.send_modify(|progress| progress.over = true);
    }
}

fn printed(kept: HeadTail) -> Printed {
    let (bytes, gap) = kept.finish();
    Printed { bytes, gap }
}

/// A session that was started.
#[derive(Debug)]
pub(crate) struct Running {
    name: String,
    held: Held,
    keys: Option<Keys>,
    seen: Arc<Seen>,
    end: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    /// The program, as the command named it.
    pub(crate) fn name(&self) -> &str {
        &self.name
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

    fn take(&self) -> Printed {
        self.seen.take()
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
            tokio::task::spawn_blocking(move || watcher.sees_waiting()).await.unwrap_or(false)
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn waits_for_input(&self) -> BoxFuture<'_, bool> {
        Box::pin(async { false })
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
