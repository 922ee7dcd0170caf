//! A small process that makes the first processes of commands.
//!
//! A copy of this process would have to copy the tables of all its memory, 3 ms for 200 MB, and every page we write to
//! afterwards would be copied, too. A starter is such a copy once: it gives back the memory it does not need, enters
//! what its commands share, and makes small copies of itself. Its children are ours. One of them stands by, made when
//! the command before it is over: while it runs, it has the processors to itself. It sees our descriptors as they are
//! until it is given something to do. What it has of us otherwise (user, limits, cgroup, umask, what already confines
//! us) is as it was when the starter was made.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    cell::Cell,
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
    Failure, Pid, Started,
    arena::Arena,
    commons::{Door, Network},
    init,
    landlock::last_errno,
    without_signals,
};
use crate::seccomp::{self, Processes, Scope, Sockets};

mod post;

use post::{Post, copy, spare};

/// What the first process of a command does.
pub(super) trait First: Copy {
    /// # Safety
    ///
    /// To be called in a fresh child only, with all signals blocked.
    unsafe fn run(&self) -> !;
}

/// The starters of one thread, each made for the first command that needs it. They end with the thread.
#[derive(Debug, Default)]
pub(crate) struct Starters([Option<(Place, Starter)>; 5]);

/// Where a starter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Where we do.
    Here,
    /// Here, under a filter that leaves these sockets, without a way to more privileges.
    Fenced(Sockets),
    /// In the namespaces that commands share.
    Behind(Door),
}

impl Place {
    /// What each command has for itself there.
    fn namespaces(self) -> c_int {
        match self {
            Self::Here | Self::Fenced(_) => 0,
            Self::Behind(_) => libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC,
        }
    }
}

impl Starters {
    /// The starter at a place.
    pub(super) fn at(&mut self, place: Place) -> io::Result<&mut Starter> {
        let slot = match place {
            Place::Here => &mut self.0[0],
            Place::Fenced(Sockets::Internet) => &mut self.0[1],
            Place::Fenced(_) => &mut self.0[2],
            Place::Behind(door) if door.network() == Network::Own => &mut self.0[3],
            Place::Behind(_) => &mut self.0[4],
        };
        let usable = slot.take().filter(|(stands, starter)| *stands == place && starter.lives());
        let (_, starter) = match usable {
            Some(usable) => slot.insert(usable),
            None => slot.insert((place, Starter::make(place)?)),
        };
        starter.arena.clear();
        Ok(starter)
    }

    /// Has somebody stand by at every place where a command was started. To be called when there is time for it.
    pub(crate) fn prepare(&self) {
        self.0.iter().flatten().for_each(|(_, starter)| starter.prepare());
    }
}

/// One of them. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Starter {
    pid: Pid,
    ended: OwnedFd,
    /// Where the starter is told to make the next child, and says whom it has made.
    orders: Line,
    /// Where the child that stands by is told what to do.
    work: Line,
    /// This process.
    _us: OwnedFd,
    /// Whether the starter has been told to make a child that we have not been told of.
    expected: Cell<bool>,
    pub(super) arena: Arena,
}

/// A connection to processes that share our table of descriptors: all ends are in it. One pair of sockets for each
/// direction: whoever reads from a socket also wakes the one who waits at its other end. No pipes: from a pipe one who was
/// killed may still take a task.
#[derive(Debug)]
struct Line {
    down: (UnixStream, UnixStream),
    up: (UnixStream, UnixStream),
}

/// One end of a line.
#[derive(Debug, Clone, Copy)]
struct End {
    ear: RawFd,
    mouth: RawFd,
}

impl Line {
    fn new() -> io::Result<Self> {
        Ok(Self { down: UnixStream::pair()?, up: UnixStream::pair()? })
    }

    fn ours(&self) -> End {
        End { ear: self.up.0.as_raw_fd(), mouth: self.down.1.as_raw_fd() }
    }

    fn theirs(&self) -> End {
        End { ear: self.down.0.as_raw_fd(), mouth: self.up.1.as_raw_fd() }
    }
}

/// That one more child is to be made.
#[repr(C)]
struct Another(u8);

/// What a child is to do.
#[repr(C)]
struct Task {
    run: unsafe fn(*const c_void) -> !,
    with: *const c_void,
}

/// The number and the descriptor of what was made; or -1 and an error.
#[repr(C)]
#[derive(Clone, Copy)]
struct Made {
    pid: libc::pid_t,
    detail: c_int,
}

/// A child that was not told what to do yet.
#[derive(Debug)]
struct Ready {
    pid: Pid,
    ended: OwnedFd,
}

impl Starter {
    fn make(place: Place) -> io::Result<Self> {
        let (orders, work) = (Line::new()?, Line::new()?);
        let arena = Arena::new()?;
        let spare = arena.list(spare().into_iter())?;
        let filter = match place {
            Place::Fenced(sockets) => seccomp::filter(Scope { sockets, processes: Processes::Everyones }),
            Place::Here | Place::Behind(_) => Vec::new(),
        };
        let filter = arena.list(filter.into_iter())?;
        let us = Pid(std::process::id().cast_signed()).descriptor()?;
        let post = Post {
            place,
            parent: std::process::id().cast_signed(),
            us: us.as_raw_fd(),
            orders: orders.theirs(),
            work: work.theirs(),
        };
        // SAFETY: signals are blocked, and the copy calls nothing but `serve`, which only makes system calls.
        let made = without_signals(|| unsafe {
            match copy(libc::CLONE_FILES)? {
                None => post.serve(spare, filter),
                Some(made) => Ok(made),
            }
        });
        let (pid, ended) = made.map_err(io::Error::from_raw_os_error)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        let ended = unsafe { OwnedFd::from_raw_fd(ended) };
        // Until it has spoken it looks at the arena.
        speaks(orders.ours(), &ended, -1)?;
        Ok(Self { pid: Pid(pid), ended, orders, work, _us: us, expected: Cell::new(true), arena })
    }

    /// Where a child says that it has begun, or why not.
    pub(super) fn report(&self) -> RawFd {
        self.work.theirs().mouth
    }

    /// Has a child run `first`, which must be in the arena, and waits until it has begun. `kill_signal` is what has it
    /// and everything below it die. Until then it sees our descriptors.
    pub(super) fn start<T: First>(
        &self,
        kill_signal: c_int,
        first: &T,
    ) -> io::Result<Result<Started, Failure>> {
        /// # Safety
        ///
        /// As for [`First::run`]; `with` is a `T`.
        unsafe fn run<T: First>(with: *const c_void) -> ! {
            // SAFETY: passed on from the caller.
            unsafe { (*with.cast::<T>()).run() }
        }
        let task = Task { run: run::<T>, with: ptr::from_ref(first).cast() };
        // One that stood by may have been killed. That one made just now was, too, is somebody's intent.
        let (Ready { pid, ended }, said) = match self.give(&task)? {
            Some(said) => said,
            None => self.give(&task)?.ok_or_else(gone)?,
        };
        if said == Failure::NONE {
            let (last_words, heard, leaf) = (None, OnceLock::new(), None);
            return Ok(Ok(Started { pid, kill_signal, ended, last_words, heard, leaf }));
        }
        pid.kill();
        pid.collect(0)?;
        Ok(Err(Failure::read(said)))
    }

    /// Has the next child made, unless it already is.
    fn prepare(&self) {
        // A starter that is gone is noticed when it is needed.
        let told = self.expected.get() || say(self.orders.ours().mouth, &Another(0)).is_ok();
        self.expected.set(told);
    }

    /// Gives the child that stands by something to do, and hears what it says; nothing if it was gone before.
    fn give(&self, task: &Task) -> io::Result<Option<(Ready, [u8; 8])>> {
        // If it could not be made when there was time, it may be possible now that it is needed.
        let ready = self.ready().or_else(|_| self.ready())?;
        let given = say(self.work.ours().mouth, task).map_err(io::Error::from_raw_os_error);
        let said = given.and_then(|()| self.hear_out(&ready));
        if let Ok(Some(said)) = said {
            return Ok(Some((ready, said)));
        }
        // Whoever goes on listening would take the task of another.
        ready.pid.kill();
        ready.pid.collect(0)?;
        let untouched = self.take_back();
        said.and_then(|_: Option<[u8; 8]>| if untouched { Ok(None) } else { Err(gone()) })
    }

    /// What a child says that was given something to do; nothing if it has ended. What it starts without walls may stop it
    /// before it has said a word, and is not to keep us waiting.
    fn hear_out(&self, ready: &Ready) -> io::Result<Option<[u8; 8]>> {
        /// Longer than a start takes, but on the busiest machine, where it does no harm.
        const WAKE_MILLIS: c_int = 100;
        loop {
            if let said @ Some(_) = hear(self.work.ours(), &ready.ended, WAKE_MILLIS)? {
                return Ok(said);
            }
            if is_readable(ready.ended.as_raw_fd()) {
                // It may have said something since.
                return hear(self.work.ours(), &ready.ended, 0);
            }
            ready.pid.wake();
        }
    }

    /// The child that stands by, or will as soon as it is made.
    fn ready(&self) -> io::Result<Ready> {
        self.prepare();
        let made = hear(self.orders.ours(), &self.ended, -1)?.ok_or_else(gone)?;
        self.expected.set(false);
        Ready::from(made)
    }

    /// Takes back a task that nobody has taken, if there is one: what was begun is not to be begun again.
    fn take_back(&self) -> bool {
        let ear = self.work.theirs().ear;
        is_readable(ear) && listen::<Task>(ear).is_some()
    }

    fn lives(&self) -> bool {
        !is_readable(self.ended.as_raw_fd())
    }
}

fn is_readable(descriptor: RawFd) -> bool {
    let mut state = init::event(descriptor);
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut state, 1, 0) == 1 }
}

impl Drop for Starter {
    fn drop(&mut self) {
        /// A starter that is stopped says nothing, and is not waited for. Its child ends with this thread.
        const PATIENCE_MILLIS: c_int = 100;
        let made = self.expected.get().then(|| hear(self.orders.ours(), &self.ended, PATIENCE_MILLIS));
        let ready = made.and_then(Result::ok).flatten().map(Ready::from);
        for pid in ready.and_then(Result::ok).map(|ready| ready.pid).into_iter().chain([self.pid]) {
            pid.kill();
            // Nothing is left to be done about it.
            drop(pid.collect(0));
        }
    }
}

impl Ready {
    fn from(made: Made) -> io::Result<Self> {
        match made {
            Made { pid: ..=0, detail } => Err(io::Error::from_raw_os_error(detail)),
            Made { pid, detail } => {
                // SAFETY: the starter has made this descriptor for us in the table we share, and knows of it no more.
                let ended = unsafe { OwnedFd::from_raw_fd(detail) };
                Ok(Self { pid: Pid(pid), ended })
            }
        }
    }
}

fn gone() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "the process that starts commands is gone")
}

/// Waits until somebody has said something, as long as they live: nothing if they do not.
fn hear<T>(line: End, ended: &OwnedFd, millis: c_int) -> io::Result<Option<T>> {
    Ok(if speaks(line, ended, millis)? { listen(line.ear) } else { None })
}

/// Whether somebody has said something before they ended and within this time.
fn speaks(line: End, ended: &OwnedFd, millis: c_int) -> io::Result<bool> {
    let mut waiting = [line.ear, ended.as_raw_fd()].map(init::event);
    // SAFETY: the array lives across the call and has that many elements.
    while unsafe { libc::poll(waiting.as_mut_ptr(), 2, millis) } < 0 {
        if last_errno() != libc::EINTR {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(waiting[0].revents != 0)
}

/// Says that a command has begun. From then on the next task may be where this one was.
pub(super) fn begun(report: RawFd) {
    // Who does not hear it has ended, and so have we.
    let _heard = say(report, &Failure::NONE);
    // SAFETY: takes a number.
    unsafe { libc::close(report) };
}

/// Sends a structure of plain numbers.
fn say<T>(mouth: RawFd, what: &T) -> Result<(), c_int> {
    // SAFETY: as many bytes as the structure has.
    let sent = unsafe { libc::write(mouth, ptr::from_ref(what).cast(), mem::size_of::<T>()) };
    if sent < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Receives one; nothing if there is nobody who could send any more. Structures are short, and come whole.
fn listen<T>(ear: RawFd) -> Option<T> {
    let mut heard = mem::MaybeUninit::<T>::uninit();
    // SAFETY: the structure is filled with what `say` took from one of its kind, or not used.
    unsafe {
        let read = libc::read(ear, heard.as_mut_ptr().cast(), mem::size_of::<T>());
        (usize::try_from(read) == Ok(mem::size_of::<T>())).then(|| heard.assume_init())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_killed_is_replaced() {
        let mut starters = Starters::default();
        let first = starters.at(Place::Here).unwrap().pid.0;
        assert_eq!(starters.at(Place::Here).unwrap().pid.0, first);
        let starter = starters.at(Place::Here).unwrap();
        starter.pid.kill();
        while starter.lives() {}
        assert_ne!(starters.at(Place::Here).unwrap().pid.0, first);
    }

    #[test]
    fn nobody_is_left_to_be_collected_when_they_end() {
        let mut starters = Starters::default();
        let starter = starters.at(Place::Here).unwrap();
        let made: Made = hear(starter.orders.ours(), &starter.ended, -1).unwrap().unwrap();
        say(starter.orders.theirs().mouth, &made).unwrap();
        let pids = [starter.pid, Pid(made.pid)];
        drop(starters);
        assert!(pids.iter().all(|pid| pid.try_collect().is_err()), "they are no children of ours any more");
    }

    #[test]
    fn a_child_that_could_not_be_made_before_is_made_when_it_is_needed() {
        let mut starters = Starters::default();
        let starter = starters.at(Place::Here).unwrap();
        let ready = starter.ready().unwrap();
        let full = Made { pid: -1, detail: libc::EAGAIN };
        say(starter.orders.theirs().mouth, &full).unwrap();
        starter.expected.set(true);
        assert!(starter.ready().is_err());
        let next = starter.ready().unwrap();
        for child in [ready, next] {
            child.pid.kill();
            child.pid.collect(0).unwrap();
        }
    }

    #[test]
    fn a_child_that_was_killed_while_it_stood_by_is_replaced() {
        #[derive(Clone, Copy)]
        struct Leave(RawFd);
        impl First for Leave {
            unsafe fn run(&self) -> ! {
                begun(self.0);
                // SAFETY: takes a number.
                unsafe { libc::_exit(7) }
            }
        }
        let mut starters = Starters::default();
        let starter = starters.at(Place::Here).unwrap();
        let made: Made = hear(starter.orders.ours(), &starter.ended, -1).unwrap().unwrap();
        Pid(made.pid).kill();
        say(starter.orders.theirs().mouth, &made).unwrap();
        for _ in 0..2 {
            let leave = starter.arena.put(Leave(starter.report())).unwrap();
            let child = starter.start(libc::SIGKILL, leave).unwrap().unwrap();
            assert_eq!(child.pid.collect(0).unwrap(), Some(windlass_contract::Exit::Code(7)));
        }
    }
}
