//! The process that made a call: its memory, its descriptors, and whether it still waits.

use std::{
    ffi::{c_int, c_void},
    mem,
    os::fd::RawFd,
    ptr,
};

use super::{CONNECT_DEADLINE_MILLIS, MAX_ADDRESS_BYTES, SocketAddress, option};
use crate::sys::{landlock::last_errno, proc_files};

#[expect(clippy::cast_possible_truncation, reason = "it is 16")]
const TIMEVAL_BYTES: libc::socklen_t = mem::size_of::<libc::timeval>() as libc::socklen_t;

/// A thread that is blocked in a system call until the broker answers.
pub(super) struct CallerThread {
    listener: RawFd,
    notification: libc::seccomp_notif,
}

impl CallerThread {
    pub(super) fn new(listener: RawFd, notification: libc::seccomp_notif) -> Self {
        Self { listener, notification }
    }

    pub(super) fn number(&self) -> c_int {
        self.notification.data.nr
    }

    pub(super) fn arguments(&self) -> [u64; 6] {
        self.notification.data.args
    }

    pub(super) fn thread(&self) -> u32 {
        self.notification.pid
    }

    /// Tells whether the call still waits. If it does not, the thread's number may belong to
    /// another by now.
    pub(super) fn is_valid(&self) -> bool {
        let id = self.notification.id;
        // SAFETY: the number is a local that lives across the call.
        unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const id) == 0 }
    }

    /// Fails if the call no longer waits. To be asked after everything was read, and before it is
    /// used.
    pub(super) fn check_valid(&self) -> Result<(), c_int> {
        if self.is_valid() { Ok(()) } else { Err(libc::EINTR) }
    }

    /// A handle of the caller. Threads other than the first can be named since Linux 6.9; before
    /// that only the process, which has the same descriptors unless somebody unshared them.
    fn pidfd(&self) -> Result<OwnedDescriptor, c_int> {
        // SAFETY: only numbers are passed, and the descriptor is new.
        unsafe {
            let mut opened = libc::syscall(libc::SYS_pidfd_open, self.thread(), libc::PIDFD_THREAD);
            if opened < 0 {
                opened = libc::syscall(libc::SYS_pidfd_open, self.thread(), 0);
            }
            OwnedDescriptor::from_result(opened)
        }
    }

    /// A duplicate of one of the caller's descriptors.
    pub(super) fn descriptor(&self, number: u64) -> Result<OwnedDescriptor, c_int> {
        let pidfd = self.pidfd()?;
        duplicate(&pidfd, number)
    }

    /// Duplicates of several, one after the other into `to`; all or none.
    pub(super) fn descriptors(&self, numbers: &[u8], to: &mut [RawFd]) -> Result<usize, c_int> {
        let pidfd = self.pidfd()?;
        let mut count = 0;
        for (number, place) in numbers.chunks_exact(mem::size_of::<c_int>()).zip(to.iter_mut()) {
            let number = number.try_into().map_or(u32::MAX, u32::from_ne_bytes);
            match duplicate(&pidfd, u64::from(number)) {
                Ok(descriptor) => *place = mem::ManuallyDrop::new(descriptor).0,
                Err(errno) => {
                    to.iter().take(count).for_each(|open| drop(OwnedDescriptor(*open)));
                    return Err(errno);
                }
            }
            count += 1;
        }
        Ok(count)
    }

    /// Copies bytes of the caller's memory: all, or it is an error.
    pub(super) fn read(&self, address: u64, to: &mut [u8]) -> Result<(), c_int> {
        let theirs = [remote(address, to.len())?];
        let wanted = to.len();
        if self.read_vector(&theirs, to)? == wanted { Ok(()) } else { Err(libc::EFAULT) }
    }

    /// Copies bytes from several pieces of the caller's memory; their number.
    pub(super) fn read_vector(&self, theirs: &[libc::iovec], to: &mut [u8]) -> Result<usize, c_int> {
        let ours = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        if to.is_empty() {
            return Ok(0);
        }
        let count = libc::c_ulong::try_from(theirs.len()).map_err(|_| libc::EMSGSIZE)?;
        let thread = self.thread().cast_signed();
        // SAFETY: our side is a slice that lives across the call; theirs are addresses in another
        // process, which the kernel checks.
        let read = unsafe { libc::process_vm_readv(thread, &raw const ours, 1, theirs.as_ptr(), count, 0) };
        usize::try_from(read).map_err(|_| libc::EFAULT)
    }

    /// Writes a number to the caller's memory.
    pub(super) fn write_number(&self, address: u64, number: u32) -> Result<(), c_int> {
        let bytes = number.to_ne_bytes();
        let ours = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let theirs = remote(address, bytes.len())?;
        let thread = self.thread().cast_signed();
        // SAFETY: our side is a local that lives across the call and is only read; theirs is an
        // address in another process, which the kernel checks.
        let written = unsafe { libc::process_vm_writev(thread, &raw const ours, 1, &raw const theirs, 1, 0) };
        if usize::try_from(written) == Ok(bytes.len()) { Ok(()) } else { Err(libc::EFAULT) }
    }

    /// Copies an address of a socket. Its length is an `int`.
    pub(super) fn address(&self, address: u64, length: u64) -> Result<SocketAddress, c_int> {
        let length = usize::try_from(length & u64::from(u32::MAX)).map_err(|_| libc::EINVAL)?;
        let mut bytes = [0_u8; MAX_ADDRESS_BYTES];
        self.read(address, bytes.get_mut(..length).ok_or(libc::EINVAL)?)?;
        Ok(SocketAddress { bytes, length })
    }

    /// The number of the process the thread is in.
    pub(super) fn process(&self) -> Result<u32, c_int> {
        let found = proc_files::number(self.thread(), b"/status", |text| {
            proc_files::number_after(text, b"\nTgid:\t")
        });
        found.ok().and_then(|number| u32::try_from(number).ok()).ok_or(libc::ESRCH)
    }

    /// Tells whether a signal waits for the caller that it neither blocks nor ignores. While we
    /// perform its call, only a fatal one wakes it.
    pub(super) fn has_signal(&self) -> bool {
        let mut waits = false;
        // A caller that cannot be looked at is gone, or goes on waiting.
        let _gone = proc_files::read(self.thread(), b"/status", |text| {
            let set = |label: &[u8]| proc_files::bits_after(text, label).unwrap_or(0);
            let pending = set(b"\nSigPnd:\t") | set(b"\nShdPnd:\t");
            waits = pending & !set(b"\nSigBlk:\t") & !set(b"\nSigIgn:\t") != 0;
        });
        waits
    }

    /// The time after which a blocking call is given up: as the socket says (`SO_SNDTIMEO`), and
    /// for `connect` at the latest when the kernel gives up.
    pub(super) fn deadline(&self, now: i64) -> i64 {
        let is_connect = i64::from(self.number()) == libc::SYS_connect;
        let latest = if is_connect { now.saturating_add(CONNECT_DEADLINE_MILLIS) } else { i64::MAX };
        self.send_timeout().map_or(latest, |millis| latest.min(now.saturating_add(millis)))
    }

    /// The error of a call that was given up.
    pub(super) fn timeout_error(&self) -> c_int {
        let is_connect = i64::from(self.number()) == libc::SYS_connect;
        let is_local = || -> Result<bool, c_int> {
            let socket = self.descriptor(self.arguments()[0])?;
            Ok(option(socket.0, libc::SO_DOMAIN)? == libc::AF_UNIX)
        };
        match (self.send_timeout(), is_connect) {
            (None, true) => libc::ETIMEDOUT,
            (Some(_), true) if !is_local().unwrap_or(true) => libc::EINPROGRESS,
            _ => libc::EAGAIN,
        }
    }

    /// The socket's own limit on how long a send or `connect` may block, in milliseconds.
    fn send_timeout(&self) -> Option<i64> {
        let socket = self.descriptor(self.arguments()[0]).ok()?;
        // SAFETY: all zeros is a valid value; both are locals of the sizes the call expects.
        let time = unsafe {
            let mut time: libc::timeval = mem::zeroed();
            let mut size = TIMEVAL_BYTES;
            let (level, name) = (libc::SOL_SOCKET, libc::SO_SNDTIMEO);
            libc::getsockopt(socket.0, level, name, (&raw mut time).cast(), &raw mut size);
            time
        };
        let millis = time.tv_sec.saturating_mul(1000).saturating_add(time.tv_usec / 1000);
        (millis > 0).then_some(millis)
    }
}

/// A piece of another process's memory.
pub(super) fn remote(address: u64, length: usize) -> Result<libc::iovec, c_int> {
    let address = usize::try_from(address).map_err(|_| libc::EFAULT)?;
    Ok(libc::iovec { iov_base: ptr::with_exposed_provenance_mut::<c_void>(address), iov_len: length })
}

fn duplicate(pidfd: &OwnedDescriptor, number: u64) -> Result<OwnedDescriptor, c_int> {
    let number = number & u64::from(u32::MAX);
    // SAFETY: only numbers are passed, and the descriptor is new.
    unsafe { OwnedDescriptor::from_result(libc::syscall(libc::SYS_pidfd_getfd, pidfd.0, number, 0)) }
}

/// A descriptor that is closed when it is dropped.
#[derive(Debug)]
pub(super) struct OwnedDescriptor(pub(super) RawFd);

impl OwnedDescriptor {
    /// Takes the result of a system call that makes a descriptor.
    pub(super) fn from_result(result: libc::c_long) -> Result<Self, c_int> {
        RawFd::try_from(result).ok().filter(|number| *number >= 0).map(Self).ok_or_else(last_errno)
    }
}

impl Drop for OwnedDescriptor {
    fn drop(&mut self) {
        // SAFETY: it is ours, and is not used afterwards.
        unsafe { libc::close(self.0) };
    }
}

/// Tells whether calls on a descriptor block.
pub(super) fn blocks(descriptor: RawFd) -> Result<bool, c_int> {
    Ok(flags(descriptor)? & libc::O_NONBLOCK == 0)
}

pub(super) fn flags(descriptor: RawFd) -> Result<c_int, c_int> {
    // SAFETY: takes and gives numbers.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    if flags < 0 { Err(last_errno()) } else { Ok(flags) }
}

pub(super) fn set_flags(descriptor: RawFd, flags: c_int) -> Result<(), c_int> {
    // SAFETY: takes numbers.
    if unsafe { libc::fcntl(descriptor, libc::F_SETFL, flags) } < 0 { Err(last_errno()) } else { Ok(()) }
}

/// `struct __user_cap_header_struct` of `<linux/capability.h>`, which `libc` does not have.
#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: c_int,
}

const _LINUX_CAPABILITY_VERSION_3: u32 = 0x2008_0522;

/// Effective, permitted and inheritable capabilities; the low and the high half of each.
type CapabilitySets = [[u32; 3]; 2];

/// Does something without PID 1's capabilities in effect. The kernel would lend them to the caller:
/// on a netlink socket that the caller has connected, it checks who sends, not who made the socket.
pub(super) fn without_capabilities<T>(act: impl FnOnce() -> Result<T, c_int>) -> Result<T, c_int> {
    let mut held: CapabilitySets = [[0; 3]; 2];
    let header = CapabilityHeader { version: _LINUX_CAPABILITY_VERSION_3, pid: 0 };
    let set = |capabilities: &CapabilitySets| {
        // SAFETY: both structures have the sizes of this version and live across the call.
        let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, capabilities.as_ptr()) };
        if set < 0 { Err(last_errno()) } else { Ok(()) }
    };
    // SAFETY: both structures have the sizes of this version and live across the call.
    if unsafe { libc::syscall(libc::SYS_capget, &raw const header, held.as_mut_ptr()) } < 0 {
        return Err(last_errno());
    }
    set(&held.map(|[_, permitted, inheritable]| [0, permitted, inheritable]))?;
    let result = act();
    set(&held)?;
    result
}
