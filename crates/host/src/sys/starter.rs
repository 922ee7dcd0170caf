//! A small process that makes the first processes of commands.
//!
//! A copy of this process would have to copy the tables of all its memory, 3 ms for 200 MB, and every page we write to
//! afterwards would be copied, too. A starter is such a copy once: it gives back the memory it does not need, enters
//! what its commands share, and makes small copies of itself. It sees our descriptors as they are, and its children are
//! ours. What it has of us otherwise (user, limits, cgroup, umask) is as it was when it was made.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{c_int, c_long, c_void},
    fs, io, mem,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::net::UnixStream,
    },
    ptr,
    sync::OnceLock,
};

use super::{
    Pid, Started,
    arena::Arena,
    child,
    commons::{Door, Network},
    hold, init,
    landlock::last_errno,
    without_signals,
};

/// Smaller pieces of memory are not worth a call, and some of them are needed.
const SMALL: usize = 128 * 1024;

/// What the first process of a command does.
pub(super) trait First: Copy {
    /// # Safety
    ///
    /// To be called in a fresh child only, with all signals blocked.
    unsafe fn run(&self) -> !;
}

/// The starters of one thread, each made for the first command that needs it. They end with the thread.
#[derive(Debug, Default)]
pub(crate) struct Starters([Option<(Place, Starter)>; 4]);

/// Where a starter stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Where we do.
    Here,
    /// Here, without a way to more privileges.
    Fenced,
    /// In the namespaces that commands share.
    Behind(Door),
}

impl Starters {
    /// The starter at a place.
    pub(super) fn at(&mut self, place: Place) -> io::Result<&mut Starter> {
        let slot = match place {
            Place::Here => &mut self.0[0],
            Place::Fenced => &mut self.0[1],
            Place::Behind(door) if door.network() == Network::Own => &mut self.0[2],
            Place::Behind(_) => &mut self.0[3],
        };
        let usable = slot.take().filter(|(stands, starter)| *stands == place && starter.lives());
        let (_, starter) = match usable {
            Some(usable) => slot.insert(usable),
            None => slot.insert((place, Starter::make(place)?)),
        };
        starter.arena.clear();
        Ok(starter)
    }
}

/// One of them. Dropped, it ends.
#[derive(Debug)]
pub(super) struct Starter {
    pid: Pid,
    ended: OwnedFd,
    orders: UnixStream,
    /// The starter's end. Its table of descriptors is ours.
    _desk: UnixStream,
    pub(super) arena: Arena,
}

/// What is to be made, and what it does then.
#[repr(C)]
struct Order {
    flags: c_int,
    run: unsafe fn(*const c_void) -> !,
    with: *const c_void,
}

/// The number and the descriptor of what was made; or -1 and an error.
#[repr(C)]
struct Answer {
    pid: libc::pid_t,
    detail: c_int,
}

impl Starter {
    fn make(place: Place) -> io::Result<Self> {
        let (orders, desk) = UnixStream::pair()?;
        let arena = Arena::new()?;
        let spare = arena.list(spare().into_iter())?;
        let (us, number) = (std::process::id().cast_signed(), desk.as_raw_fd());
        // SAFETY: signals are blocked, and the copy calls nothing but `serve`, which only makes system calls.
        let made = without_signals(|| unsafe {
            match copy(libc::CLONE_FILES)? {
                None => serve(place, us, number, spare),
                Some(made) => Ok(made),
            }
        });
        let (pid, ended) = made.map_err(io::Error::from_raw_os_error)?;
        // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
        let ended = unsafe { OwnedFd::from_raw_fd(ended) };
        let starter = Self { pid: Pid(pid), ended, orders, _desk: desk, arena };
        match starter.hear()? {
            Answer { pid: 0, .. } => Ok(starter),
            Answer { detail, .. } => Err(io::Error::from_raw_os_error(detail)),
        }
    }

    /// Has a child made that runs `first`, which must be in the arena. `kill_signal` is what has it and everything below
    /// it die.
    pub(super) fn start<T: First>(&self, flags: c_int, kill_signal: c_int, first: &T) -> io::Result<Started> {
        /// # Safety
        ///
        /// As for [`First::run`]; `with` is a `T`.
        unsafe fn run<T: First>(with: *const c_void) -> ! {
            // SAFETY: passed on from the caller.
            unsafe { (*with.cast::<T>()).run() }
        }
        let order = Order { flags, run: run::<T>, with: ptr::from_ref(first).cast() };
        say(self.orders.as_raw_fd(), &order).map_err(io::Error::from_raw_os_error)?;
        match self.hear()? {
            Answer { pid: ..=0, detail } => Err(io::Error::from_raw_os_error(detail)),
            Answer { pid, detail } => {
                // SAFETY: the starter has made this descriptor for us in the table we share, and knows of it no more.
                let ended = unsafe { OwnedFd::from_raw_fd(detail) };
                Ok(Started {
                    pid: Pid(pid),
                    kill_signal,
                    ended,
                    last_words: None,
                    heard: OnceLock::new(),
                    leaf: None,
                })
            }
        }
    }

    /// Waits for an answer; an error if there will be none.
    fn hear(&self) -> io::Result<Answer> {
        let [answer, ended] = [self.orders.as_raw_fd(), self.ended.as_raw_fd()].map(init::event);
        let mut waiting = [answer, ended];
        loop {
            // SAFETY: the array lives across the call and has that many elements.
            if unsafe { libc::poll(waiting.as_mut_ptr(), 2, -1) } > 0 {
                break;
            }
            if last_errno() != libc::EINTR {
                return Err(io::Error::last_os_error());
            }
        }
        if waiting[0].revents == 0 {
            return Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "the process that starts commands is gone",
            ));
        }
        listen(self.orders.as_raw_fd()).ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }

    fn lives(&self) -> bool {
        let mut ended = init::event(self.ended.as_raw_fd());
        // SAFETY: one element, which lives across the call.
        unsafe { libc::poll(&raw mut ended, 1, 0) == 0 }
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        self.pid.kill();
        // Nothing is left to be done about it.
        drop(self.pid.collect(0));
    }
}

/// The starter's work: follows orders until it is killed, as it is with the thread that made it.
fn serve(place: Place, parent: libc::pid_t, desk: RawFd, spare: &[(usize, usize)]) -> ! {
    let stands = settle(place, parent, spare);
    let ready = Answer { pid: stands.err().map_or(0, |_| -1), detail: stands.err().unwrap_or(0) };
    if say(desk, &ready).is_err() || stands.is_err() {
        exit();
    }
    loop {
        let Some(Order { flags, run, with }) = listen(desk) else { exit() };
        // SAFETY: signals are blocked. An order comes from our parent, whose addresses are ours: it was our program when
        // we were made, and `with` is in memory that we share.
        let answer = unsafe {
            match copy(flags | libc::CLONE_PARENT) {
                Ok(None) => run(with),
                Ok(Some((pid, detail))) => Answer { pid, detail },
                Err(detail) => Answer { pid: -1, detail },
            }
        };
        if say(desk, &answer).is_err() {
            exit();
        }
    }
}

/// Goes where the starter is to stand, and sees to what all its children would have to see to.
fn settle(place: Place, parent: libc::pid_t, spare: &[(usize, usize)]) -> Result<(), c_int> {
    match place {
        Place::Here => {}
        Place::Fenced => hold::bound_privileges(),
        Place::Behind(door) => {
            door.enter()?;
            hold::bound_privileges();
        }
    }
    init::keep_memory_private();
    child::default_actions();
    // SAFETY: numbers, a constant C string, and memory of ours that nothing here uses.
    unsafe {
        libc::prctl(libc::PR_SET_NAME, c"windlass-starter".as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() != parent {
            exit();
        }
        for (begin, length) in spare {
            libc::madvise(ptr::with_exposed_provenance_mut(*begin), *length, libc::MADV_DONTNEED);
        }
    }
    Ok(())
}

fn exit() -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(127) }
}

/// Pieces of this process's memory that no starter needs: all large ones that are no file's and not this thread's stack.
fn spare() -> Vec<(usize, usize)> {
    let here = 0_u8;
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(|line| spare_piece(line, (&raw const here).addr())).collect()
}

/// A line is: begin-end, rights, offset, device, inode, name.
fn spare_piece(line: &str, stack: usize) -> Option<(usize, usize)> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let (range, rights, inode) = (fields.first()?, *fields.get(1)?, *fields.get(4)?);
    let name = fields.get(5).copied().unwrap_or_default();
    let (begin, end) = range.split_once('-')?;
    let (begin, end) = (usize::from_str_radix(begin, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let is_memory = inode == "0" && rights == "rw-p" && matches!(name, "" | "[heap]");
    let is_spare = is_memory && end - begin >= SMALL && !(begin..end).contains(&stack);
    is_spare.then_some((begin, end - begin))
}

/// Makes a process with a copy of our memory, in new namespaces where `flags` has them: its number and a descriptor of
/// it. Nothing is returned in the copy.
///
/// # Safety
///
/// All signals are blocked. The copy only makes system calls, and ends: nothing else is safe in a copy of a program with
/// threads.
unsafe fn copy(flags: c_int) -> Result<Option<(libc::pid_t, RawFd)>, c_int> {
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut ended: RawFd = -1;
    // SAFETY: without CLONE_VM and with no stack this is a `fork`; the one pointer is to where the kernel writes a
    // descriptor. The rest is the caller's word.
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut ended, 0, 0) };
    match libc::pid_t::try_from(pid) {
        Ok(0) => Ok(None),
        // Kernels before 5.2 do not know the descriptor.
        Ok(pid @ 1..) if ended < 0 => {
            Pid(pid).kill();
            Err(libc::ENOSYS)
        }
        Ok(pid @ 1..) => Ok(Some((pid, ended))),
        _ => Err(last_errno()),
    }
}

/// Sends a structure of plain numbers through a socket.
fn say<T>(socket: RawFd, what: &T) -> Result<(), c_int> {
    // SAFETY: as many bytes as the structure has.
    let sent = unsafe { libc::write(socket, ptr::from_ref(what).cast(), mem::size_of::<T>()) };
    if sent < 0 { Err(last_errno()) } else { Ok(()) }
}

/// Receives one; nothing if there is nobody who could send any more. Structures are short, and come whole.
fn listen<T>(socket: RawFd) -> Option<T> {
    let mut heard = mem::MaybeUninit::<T>::uninit();
    // SAFETY: the structure is filled with what `say` took from one of its kind, or not used.
    unsafe {
        let read = libc::read(socket, heard.as_mut_ptr().cast(), mem::size_of::<T>());
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
        assert!(starter.hear().is_err());
        assert_ne!(starters.at(Place::Here).unwrap().pid.0, first);
    }

    #[test]
    fn large_memory_that_is_no_files_and_no_stack_is_spare() {
        let piece = |line| spare_piece(line, 0x5000_0000);
        assert_eq!(piece("7f00-7f01 r"), None);
        assert_eq!(piece("10000000-10100000 rw-p 00000000 00:00 0 [heap]"), Some((0x1000_0000, 0x10_0000)));
        assert_eq!(piece("10000000-10100000 rw-p 00000000 00:00 0 "), Some((0x1000_0000, 0x10_0000)));
        for line in [
            "10000000-10001000 rw-p 00000000 00:00 0 ",
            "10000000-10100000 r--p 00000000 00:00 0 ",
            "10000000-10100000 rw-s 00000000 00:01 7 /dev/zero (deleted)",
            "10000000-10100000 rw-p 00000000 00:00 0 [stack]",
            "4ff00000-50100000 rw-p 00000000 00:00 0 ",
        ] {
            assert_eq!(piece(line), None, "{line}");
        }
    }
}
