//! What a starter and the children that stand by do: system calls only.

use std::{
    ffi::{c_int, c_long},
    fs,
    os::fd::RawFd,
    ptr,
};

use super::{Another, End, Failure, Made, Place, Task, listen, say};
use crate::{
    seccomp::Instruction,
    sys::{Pid, child, hold, init, landlock::last_errno},
};

/// Smaller pieces of memory are not worth a call, and some of them are needed.
const SMALL: usize = 128 * 1024;

/// Where a starter works, in numbers.
#[derive(Clone, Copy)]
pub(super) struct Post {
    pub(super) place: Place,
    pub(super) parent: libc::pid_t,
    /// Readable when our parent has ended.
    pub(super) us: RawFd,
    pub(super) orders: End,
    pub(super) work: End,
}

impl Post {
    /// The starter's work: makes children until it is killed, as it is with the thread that made it.
    pub(super) fn serve(self, spare: &[(usize, usize)], filter: &[Instruction]) -> ! {
        if let Err(detail) = self.settle(spare, filter) {
            // If nobody hears it, nobody needs to.
            let _heard = say(self.orders.mouth, &Made { pid: -1, detail });
            exit();
        }
        let flags = self.place.namespaces() | libc::CLONE_PARENT | libc::CLONE_FILES;
        loop {
            // SAFETY: signals are blocked, and the copy only makes system calls.
            let made = unsafe {
                match copy(flags) {
                    Ok(None) => self.stand_by(),
                    Ok(Some((pid, detail))) => Made { pid, detail },
                    Err(detail) => Made { pid: -1, detail },
                }
            };
            if say(self.orders.mouth, &made).is_err() || listen::<Another>(self.orders.ear).is_none() {
                exit();
            }
        }
    }

    /// A child's work: waits until it is told what to do, and does it.
    fn stand_by(self) -> ! {
        let mut parent = init::event(self.us);
        // SAFETY: numbers, and one element which lives across the call.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // Who died before that will not be noticed any more. In a namespace of its own a child cannot tell from its
            // parent's number.
            if libc::poll(&raw mut parent, 1, 0) != 0 {
                exit();
            }
        }
        let Some(Task { run, with }) = listen(self.work.ear) else { exit() };
        // SAFETY: a number; signals are blocked. A task comes from our parent, whose addresses are ours: it was our
        // program when the starter was made, and `with` is in memory that we share.
        unsafe {
            if libc::unshare(libc::CLONE_FILES) < 0 {
                Failure::program(last_errno()).send(self.work.mouth);
            }
            run(with)
        }
    }

    /// Goes where the starter is to stand, and sees to what all its children would have to see to.
    fn settle(self, spare: &[(usize, usize)], filter: &[Instruction]) -> Result<(), c_int> {
        if let Place::Behind(door) = self.place {
            door.enter()?;
        }
        if self.place != Place::Here {
            hold::bound_privileges();
            hold::leave_keys();
        }
        init::keep_memory_private();
        child::default_actions();
        // SAFETY: numbers, a constant C string, and memory of ours that nothing here uses.
        unsafe {
            // What a terminal sends to us, such as Ctrl-C, is not meant for a command that comes after it.
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_NAME, c"windlass-starter".as_ptr());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != self.parent {
                exit();
            }
            for (begin, length) in spare {
                let piece = ptr::with_exposed_provenance_mut(*begin);
                libc::madvise(piece, *length, libc::MADV_DONTNEED);
                // Children need not even know that it was there.
                libc::madvise(piece, *length, libc::MADV_DONTFORK);
            }
        }
        if matches!(self.place, Place::Fenced(_)) { hold::filter_all(filter) } else { Ok(()) }
    }
}

fn exit() -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(127) }
}

/// Pieces of this process's memory that no starter needs: all large ones that are no file's and not this thread's stack, and
/// those that nobody can use anyway.
pub(super) fn spare() -> Vec<(usize, usize)> {
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
    let is_memory = inode == "0" && matches!(name, "" | "[heap]");
    let is_large = rights == "rw-p" && end - begin >= SMALL && !(begin..end).contains(&stack);
    (is_memory && (is_large || rights == "---p")).then_some((begin, end - begin))
}

/// Makes a process with a copy of our memory, in new namespaces where `flags` has them: its number and a descriptor of
/// it. Nothing is returned in the copy.
///
/// # Safety
///
/// All signals are blocked. The copy only makes system calls, and ends: nothing else is safe in a copy of a program with
/// threads.
pub(super) unsafe fn copy(flags: c_int) -> Result<Option<(libc::pid_t, RawFd)>, c_int> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_memory_that_is_no_files_and_no_stack_is_spare() {
        let piece = |line| spare_piece(line, 0x5000_0000);
        assert_eq!(piece("7f00-7f01 r"), None);
        assert_eq!(piece("10000000-10100000 rw-p 00000000 00:00 0 [heap]"), Some((0x1000_0000, 0x10_0000)));
        assert_eq!(piece("10000000-10100000 rw-p 00000000 00:00 0 "), Some((0x1000_0000, 0x10_0000)));
        assert_eq!(piece("10000000-10001000 ---p 00000000 00:00 0 "), Some((0x1000_0000, 0x1000)));
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
