//! The zygote: a small process, forked once, that forks the first process of each command.
//!
//! A fork of this process copies its page tables, 3 ms for 200 MB, and every page written
//! afterwards. A zygote is such a copy made once: it gives back the memory it does not need, enters
//! the namespaces that commands share, and forks small copies of itself with `CLONE_PARENT`, so its
//! children are ours. It shares our descriptor table (`CLONE_FILES`); each child gets a copy of it.
//! User, limits, cgroup, umask and confinement of this process are as they were when the zygote was
//! forked.
//!
//! An order is written to memory that both sides map ([`SharedArena`]), and its address is sent
//! through a socket. Like all code of the child, the zygote allocates nothing and takes no locks.

use std::{
    ffi::{c_int, c_void},
    io, mem,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    ptr,
    sync::OnceLock,
};

use super::{
    ChildPid, StartFailure, StartedChild,
    arena::SharedArena,
    init,
    landlock::last_errno,
    shared_namespaces::{NamespaceFds, NetworkNamespace},
    without_signals,
};
use crate::seccomp::{self, AllowedSockets, FilterScope, VisibleProcesses};

mod worker;

use worker::{ZygoteWorker, fork_with_pidfd, unneeded_memory};

/// Time to wait for a report before the child gets SIGCONT. Longer than a start takes, except on
/// the busiest machine, where a needless SIGCONT does no harm.
const CONTINUE_MILLIS: c_int = 100;

/// The work of the first process of a command.
pub(super) trait FirstProcess: Copy {
    /// Starts the command and stays with it.
    ///
    /// # Safety
    ///
    /// To be called in a fresh child only, with all signals blocked.
    unsafe fn run(&self) -> !;
}

/// The zygotes of one thread, each forked for the first command that needs it. They are killed with
/// the thread.
#[derive(Debug, Default)]
pub struct Zygotes([Option<(ZygoteContext, ZygoteProcess)>; 5]);

/// The confinement that a zygote passes on to its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ZygoteContext {
    /// None: that of this process.
    Host,
    /// A seccomp filter that leaves these sockets, and `no_new_privs`.
    Filtered(AllowedSockets),
    /// The namespaces that the commands of a machine share.
    Namespaces(NamespaceFds),
}

impl ZygoteContext {
    /// Returns the `CLONE_NEW*` flags of the namespaces that each command has for itself.
    fn own_namespaces(self) -> c_int {
        match self {
            Self::Host | Self::Filtered(_) => 0,
            Self::Namespaces(_) => libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC,
        }
    }
}

impl Zygotes {
    /// Returns the zygote with this context, with an empty arena. Forks one if there is none or it
    /// was killed.
    pub(super) fn get(&mut self, context: ZygoteContext) -> io::Result<&mut ZygoteProcess> {
        let slot = match context {
            ZygoteContext::Host => &mut self.0[0],
            ZygoteContext::Filtered(AllowedSockets::Internet) => &mut self.0[1],
            ZygoteContext::Filtered(_) => &mut self.0[2],
            ZygoteContext::Namespaces(fds) if fds.network() == NetworkNamespace::Own => &mut self.0[3],
            ZygoteContext::Namespaces(_) => &mut self.0[4],
        };
        let usable = slot.take().filter(|(has, zygote)| *has == context && zygote.is_alive());
        let (_, zygote) = match usable {
            Some(usable) => slot.insert(usable),
            None => slot.insert((context, ZygoteProcess::fork(context)?)),
        };
        zygote.arena.clear();
        Ok(zygote)
    }
}

/// One zygote. Killed and reaped when dropped.
#[derive(Debug)]
pub(super) struct ZygoteProcess {
    pid: ChildPid,
    pidfd: OwnedFd,
    orders: MessageChannel,
    replies: MessageChannel,
    /// The first process of a command reports here that the command has begun, or why it has not.
    reports: MessageChannel,
    /// A pidfd of this process, for children that check whether it still lives.
    _parent: OwnedFd,
    pub(super) arena: SharedArena,
}

/// A socket pair for messages in one direction. Both ends are in the descriptor table that we share
/// with the zygote, so there is no end of file: a reader also polls the pidfd of the other process.
/// One pair per direction, because reading from a stream socket also wakes a poll on its other end.
#[derive(Debug)]
struct MessageChannel {
    reader: UnixStream,
    writer: UnixStream,
}

impl MessageChannel {
    fn new() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        Ok(Self { reader, writer })
    }

    fn reader(&self) -> RawFd {
        self.reader.as_raw_fd()
    }

    fn writer(&self) -> RawFd {
        self.writer.as_raw_fd()
    }
}

/// An order to the zygote: fork a child that calls `run(argument)`.
#[repr(C)]
struct ForkOrder {
    run: unsafe fn(*const c_void) -> !,
    argument: *const c_void,
}

/// The answer: the child's PID and its pidfd; or -1 and an `errno`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ForkReply {
    pid: libc::pid_t,
    pidfd_or_errno: c_int,
}

/// A child that was forked and has not reported yet.
struct ForkedChild {
    pid: ChildPid,
    pidfd: OwnedFd,
}

impl ZygoteProcess {
    fn fork(context: ZygoteContext) -> io::Result<Self> {
        let (orders, replies, reports) =
            (MessageChannel::new()?, MessageChannel::new()?, MessageChannel::new()?);
        let arena = SharedArena::new()?;
        let unneeded = arena.list(unneeded_memory().into_iter())?;
        let filter = match context {
            ZygoteContext::Filtered(sockets) => {
                seccomp::filter(FilterScope { sockets, processes: VisibleProcesses::Everyones })
            }
            ZygoteContext::Host | ZygoteContext::Namespaces(_) => Vec::new(),
        };
        let filter = arena.list(filter.into_iter())?;
        let parent = ChildPid(std::process::id().cast_signed()).pidfd()?;
        let worker = ZygoteWorker {
            context,
            parent: std::process::id().cast_signed(),
            parent_pidfd: parent.as_raw_fd(),
            orders: orders.reader(),
            replies: replies.writer(),
        };
        // SAFETY: signals are blocked, and the copy calls nothing but `serve`, which only makes
        // system calls.
        let forked = without_signals(|| unsafe {
            match fork_with_pidfd(libc::CLONE_FILES)? {
                None => worker.serve(unneeded, filter),
                Some(forked) => Ok(forked),
            }
        });
        let (pid, pidfd) = forked.map_err(io::Error::from_raw_os_error)?;
        // SAFETY: the kernel has just made this descriptor for us, and no other owner knows it.
        let pidfd = unsafe { OwnedFd::from_raw_fd(pidfd) };
        let zygote = Self { pid: ChildPid(pid), pidfd, orders, replies, reports, _parent: parent, arena };
        let reply = zygote.receive_reply()?;
        if reply.pid < 0 { Err(io::Error::from_raw_os_error(reply.pidfd_or_errno)) } else { Ok(zygote) }
    }

    /// Returns the descriptor for the report of a first process.
    pub(super) fn report_fd(&self) -> RawFd {
        self.reports.writer()
    }

    /// Has a child run `first`, which must be in the arena, and waits for its report. `kill_signal`
    /// makes it kill everything below it.
    pub(super) fn start<T: FirstProcess>(
        &self,
        kill_signal: c_int,
        first: &T,
    ) -> io::Result<Result<StartedChild, StartFailure>> {
        /// # Safety
        ///
        /// As for [`FirstProcess::run`]; `argument` points to a `T`.
        unsafe fn run<T: FirstProcess>(argument: *const c_void) -> ! {
            // SAFETY: passed on from the caller.
            unsafe { (*argument.cast::<T>()).run() }
        }
        let order = ForkOrder { run: run::<T>, argument: ptr::from_ref(first).cast() };
        // Without a reply to this order, the next reply could be taken for it: another zygote is
        // forked then.
        let reply = self.request_fork(&order).inspect_err(|_| self.pid.kill())?;
        let child = ForkedChild::from_reply(reply)?;
        let report = self.receive_report(&child);
        if let Ok(Some(StartFailure::NONE)) = report {
            let ForkedChild { pid, pidfd } = child;
            let (exit_pipe, exit_report, cgroup) = (None, OnceLock::new(), None);
            return Ok(Ok(StartedChild { pid, kill_signal, pidfd, exit_pipe, exit_report, cgroup }));
        }
        child.pid.kill();
        child.pid.reap(0)?;
        // A report that came after we stopped waiting must not pass for that of the next child.
        while is_readable(self.reports.reader()) && receive::<[u8; 8]>(self.reports.reader()).is_some() {}
        match report? {
            Some(report) => Ok(Err(StartFailure::read(report))),
            None => Err(gone()),
        }
    }

    fn request_fork(&self, order: &ForkOrder) -> io::Result<ForkReply> {
        send(self.orders.writer(), order).map_err(io::Error::from_raw_os_error)?;
        // The report comes after the reply: waiting for the later of the two saves a wake-up.
        wait_readable(self.reports.reader(), &self.pidfd, CONTINUE_MILLIS)?;
        self.receive_reply()
    }

    fn receive_reply(&self) -> io::Result<ForkReply> {
        let has_reply = wait_readable(self.replies.reader(), &self.pidfd, -1)?;
        if has_reply { receive(self.replies.reader()).ok_or_else(gone) } else { Err(gone()) }
    }

    /// Waits for the report of a child; none if it ended without one. A command without namespaces
    /// may send SIGSTOP to its first process before that has reported, so the child is continued
    /// from time to time.
    fn receive_report(&self, child: &ForkedChild) -> io::Result<Option<[u8; 8]>> {
        let reader = self.reports.reader();
        loop {
            if wait_readable(reader, &child.pidfd, CONTINUE_MILLIS)? {
                return Ok(receive(reader));
            }
            if is_readable(child.pidfd.as_raw_fd()) {
                // It may have reported between the two calls.
                return Ok(if is_readable(reader) { receive(reader) } else { None });
            }
            child.pid.wake();
        }
    }

    fn is_alive(&self) -> bool {
        !is_readable(self.pidfd.as_raw_fd())
    }
}

impl Drop for ZygoteProcess {
    fn drop(&mut self) {
        self.pid.kill();
        // An error means that it was reaped elsewhere.
        drop(self.pid.reap(0));
    }
}

impl ForkedChild {
    fn from_reply(reply: ForkReply) -> io::Result<Self> {
        match reply {
            ForkReply { pid: ..=0, pidfd_or_errno: errno } => Err(io::Error::from_raw_os_error(errno)),
            ForkReply { pid, pidfd_or_errno: pidfd } => {
                // SAFETY: the zygote has made this descriptor for us in the table we share, and
                // uses it no more.
                Ok(Self { pid: ChildPid(pid), pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) } })
            }
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that starts commands was killed")
}

/// Waits until there is a message, or the process has ended, or the time is over. Returns whether
/// there is a message.
fn wait_readable(reader: RawFd, pidfd: &OwnedFd, millis: c_int) -> io::Result<bool> {
    let mut events = [reader, pidfd.as_raw_fd()].map(init::event);
    // SAFETY: the array lives across the call and has that many elements.
    while unsafe { libc::poll(events.as_mut_ptr(), 2, millis) } < 0 {
        if last_errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(events[0].revents != 0)
}

fn is_readable(fd: RawFd) -> bool {
    let mut event = init::event(fd);
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut event, 1, 0) == 1 }
}

/// Reports that a command has begun. From then on the next order may overwrite the arena.
pub(super) fn report_begun(report: RawFd) {
    // If it cannot be sent, the reader has ended, and this process is killed with it.
    let _sent = send(report, &StartFailure::NONE);
    // SAFETY: takes a number.
    unsafe { libc::close(report) };
}

/// Sends a structure of plain numbers.
fn send<T>(writer: RawFd, message: &T) -> Result<(), c_int> {
    // SAFETY: as many bytes as the structure has.
    let sent = unsafe { libc::write(writer, ptr::from_ref(message).cast(), mem::size_of::<T>()) };
    if sent < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Receives a message that [`send`] sent as the same type. Messages are short and come whole.
fn receive<T>(reader: RawFd) -> Option<T> {
    let mut message = mem::MaybeUninit::<T>::uninit();
    // SAFETY: the buffer has the given size, and is used only if all of it was filled by `send`
    // from a value of the type.
    unsafe {
        let read = libc::read(reader, message.as_mut_ptr().cast(), mem::size_of::<T>());
        (usize::try_from(read) == Ok(mem::size_of::<T>())).then(|| message.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy)]
    struct Leave(RawFd);

    impl FirstProcess for Leave {
        unsafe fn run(&self) -> ! {
            report_begun(self.0);
            // SAFETY: takes a number.
            unsafe { libc::_exit(7) }
        }
    }

    #[derive(Clone, Copy)]
    struct Vanish;

    impl FirstProcess for Vanish {
        unsafe fn run(&self) -> ! {
            // SAFETY: takes a number.
            unsafe { libc::_exit(7) }
        }
    }

    #[test]
    fn a_zygote_that_was_killed_is_replaced() {
        let mut zygotes = Zygotes::default();
        let first = zygotes.get(ZygoteContext::Host).unwrap().pid.0;
        assert_eq!(zygotes.get(ZygoteContext::Host).unwrap().pid.0, first);
        let zygote = zygotes.get(ZygoteContext::Host).unwrap();
        zygote.pid.kill();
        while zygote.is_alive() {}
        assert_ne!(zygotes.get(ZygoteContext::Host).unwrap().pid.0, first);
    }

    #[test]
    fn a_dropped_zygote_is_reaped() {
        let mut zygotes = Zygotes::default();
        let pid = zygotes.get(ZygoteContext::Host).unwrap().pid;
        drop(zygotes);
        assert!(pid.try_reap().is_err(), "it is no child of ours any more");
    }

    #[test]
    fn a_child_is_ours_and_one_that_ends_without_a_report_is_an_error() {
        let mut zygotes = Zygotes::default();
        let zygote = zygotes.get(ZygoteContext::Host).unwrap();
        for _ in 0..2 {
            let vanish = zygote.arena.put(Vanish).unwrap();
            let error = zygote.start(libc::SIGKILL, vanish).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
            let leave = zygote.arena.put(Leave(zygote.report_fd())).unwrap();
            let child = zygote.start(libc::SIGKILL, leave).unwrap().unwrap();
            assert_eq!(child.pid.reap(0).unwrap(), Some(windlass_contract::host::Exit::Code(7)));
        }
    }
}
