//! The code that runs in a zygote and in its children before they have an order: system calls only.

use std::{
    ffi::{c_int, c_long},
    fs,
    os::fd::RawFd,
    ptr,
};

use super::{ForkOrder, ForkReply, ZygoteContext, receive, send};
use crate::{
    seccomp::Instruction,
    sys::{ChildPid, child, init, landlock::last_errno, restrictions},
};

/// Smaller mappings are not worth a call, and some of them are needed.
const MIN_UNNEEDED_BYTES: usize = 128 * 1024;

/// A zygote from the inside.
#[derive(Clone, Copy)]
pub(super) struct ZygoteWorker {
    pub(super) context: ZygoteContext,
    pub(super) parent: libc::pid_t,
    /// Readable when the parent has ended.
    pub(super) parent_pidfd: RawFd,
    pub(super) orders: RawFd,
    pub(super) replies: RawFd,
}

impl ZygoteWorker {
    /// Forks a child for each order until it is killed, as it is with the thread that forked it.
    pub(super) fn serve(self, unneeded: &[(usize, usize)], filter: &[Instruction]) -> ! {
        let ready = match self.set_up(unneeded, filter) {
            Ok(()) => ForkReply { pid: 0, pidfd_or_errno: 0 },
            Err(errno) => ForkReply { pid: -1, pidfd_or_errno: errno },
        };
        if send(self.replies, &ready).is_err() || ready.pid < 0 {
            exit();
        }
        let flags = self.context.own_namespaces() | libc::CLONE_PARENT;
        while let Some(order) = receive(self.orders) {
            // SAFETY: signals are blocked, and the copy only makes system calls.
            let reply = unsafe {
                match fork_with_pidfd(flags) {
                    Ok(None) => self.run_order(&order),
                    Ok(Some((pid, pidfd))) => ForkReply { pid, pidfd_or_errno: pidfd },
                    Err(errno) => ForkReply { pid: -1, pidfd_or_errno: errno },
                }
            };
            if send(self.replies, &reply).is_err() {
                break;
            }
        }
        exit()
    }

    /// Carries out an order, in the child.
    fn run_order(self, order: &ForkOrder) -> ! {
        let mut parent = init::event(self.parent_pidfd);
        // SAFETY: numbers, and one element which lives across the call; signals are blocked. An
        // order comes from our parent, whose addresses are ours: it was our program when the zygote
        // was forked, and `argument` is in memory that we share.
        unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            // A parent that died before that call sends no signal. In a PID namespace of its own a
            // child cannot tell by `getppid`.
            if libc::poll(&raw mut parent, 1, 0) != 0 {
                exit();
            }
            (order.run)(order.argument)
        }
    }

    /// Enters the context, and does once what all children would have to do.
    fn set_up(self, unneeded: &[(usize, usize)], filter: &[Instruction]) -> Result<(), c_int> {
        if let ZygoteContext::Namespaces(fds) = self.context {
            fds.enter()?;
        }
        if self.context != ZygoteContext::Host {
            restrictions::drop_bounding_set();
            restrictions::join_new_keyring();
        }
        init::keep_memory_private();
        child::default_actions();
        // SAFETY: numbers, a constant C string, and memory of ours that nothing here uses.
        unsafe {
            // What a terminal sends to our group, such as SIGINT, is not meant for a command that
            // comes after it.
            libc::setpgid(0, 0);
            libc::prctl(libc::PR_SET_NAME, c"windlass-zygote".as_ptr());
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != self.parent {
                exit();
            }
            for (begin, length) in unneeded {
                let mapping = ptr::with_exposed_provenance_mut(*begin);
                libc::madvise(mapping, *length, libc::MADV_DONTNEED);
                libc::madvise(mapping, *length, libc::MADV_DONTFORK);
            }
        }
        match self.context {
            ZygoteContext::Filtered(_) => restrictions::filter_all(filter),
            ZygoteContext::Host | ZygoteContext::Namespaces(_) => Ok(()),
        }
    }
}

fn exit() -> ! {
    // SAFETY: takes a number.
    unsafe { libc::_exit(127) }
}

/// Lists mappings of this process that no zygote needs: large anonymous ones but for this thread's
/// stack, and those without any permission.
#[expect(clippy::disallowed_methods, reason = "a file of the kernel's")]
pub(super) fn unneeded_memory() -> Vec<(usize, usize)> {
    let here = 0_u8;
    // `errno` is in the thread-local storage of this thread, next to what the C library knows of
    // the thread. The kernel makes one mapping of it and a large one beside it.
    // SAFETY: takes nothing, and gives an address.
    let thread_local = unsafe { libc::__errno_location() };
    let needed = [(&raw const here).addr(), thread_local.addr()];
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    maps.lines().filter_map(|line| unneeded_mapping(line, needed)).collect()
}

/// Reads a line of `/proc/self/maps`: begin-end, permissions, offset, device, inode, name. A
/// mapping with an address that is needed stays.
fn unneeded_mapping(line: &str, needed: [usize; 2]) -> Option<(usize, usize)> {
    let fields: Vec<_> = line.split_ascii_whitespace().collect();
    let (range, rights, inode) = (fields.first()?, *fields.get(1)?, *fields.get(4)?);
    let name = fields.get(5).copied().unwrap_or_default();
    let (begin, end) = range.split_once('-')?;
    let (begin, end) = (usize::from_str_radix(begin, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
    let is_memory = inode == "0" && matches!(name, "" | "[heap]");
    let is_needed = needed.iter().any(|address| (begin..end).contains(address));
    let is_large = rights == "rw-p" && end - begin >= MIN_UNNEEDED_BYTES && !is_needed;
    (is_memory && (is_large || rights == "---p")).then_some((begin, end - begin))
}

/// Forks, with the given `CLONE_*` flags. Returns the PID and the pidfd of the child, and `None` in
/// the child.
///
/// # Safety
///
/// All signals are blocked. The child only makes system calls, and ends: nothing else is safe in a
/// fork of a program with threads.
pub(super) unsafe fn fork_with_pidfd(flags: c_int) -> Result<Option<(libc::pid_t, RawFd)>, c_int> {
    let flags = flags | libc::CLONE_PIDFD | libc::SIGCHLD;
    let mut pidfd: RawFd = -1;
    // SAFETY: without CLONE_VM and with no stack this is a `fork`; the one pointer is to a local
    // where the kernel writes a descriptor. The caller promises that the child only makes system
    // calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut pidfd, 0, 0) };
    match libc::pid_t::try_from(pid) {
        Ok(0) => Ok(None),
        // Kernels before 5.2 do not know CLONE_PIDFD.
        Ok(pid @ 1..) if pidfd < 0 => {
            ChildPid(pid).kill();
            Err(libc::ENOSYS)
        }
        Ok(pid @ 1..) => Ok(Some((pid, pidfd))),
        _ => Err(last_errno()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_anonymous_memory_but_stack_and_thread_local_storage_is_not_needed() {
        let piece = |line| unneeded_mapping(line, [0x5000_0000, 0x6000_0000]);
        assert_eq!(piece("5ff00000-60001000 rw-p 00000000 00:00 0 "), None, "thread-local storage");
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
