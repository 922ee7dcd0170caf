//! Whom a confined command may call: answers the `connect` calls that the filter puts before us. Runs in the init
//! process of a sandbox, which has the same view of files and network as the command.
//!
//! A local socket is reached by a path, and neither read-only mounts nor a network namespace keep anyone from
//! connecting to one that belongs to a program outside. Filters cannot read paths, and what a pointer leads to can
//! change after it was looked at. So the connection is made here, with a copy of the address and of the descriptor.

use std::{
    ffi::{c_int, c_void},
    mem,
    os::fd::RawFd,
    ptr,
};

use super::{landlock::last_errno, shared_namespaces::NetworkNamespace as Network};

const RECEIVE: libc::Ioctl = 0xc050_2100_u32 as libc::Ioctl;
const SEND: libc::Ioctl = 0xc018_2101_u32 as libc::Ioctl;
const IS_VALID: libc::Ioctl = 0x4008_2102_u32 as libc::Ioctl;

/// Lets the call go on as if it had not been asked about.
const GO_ON: u32 = 1;

/// The longest address there is.
const ADDRESS_BYTES: usize = 128;

#[repr(C)]
#[derive(Clone, Copy)]
struct Question {
    id: u64,
    thread: u32,
    flags: u32,
    number: c_int,
    architecture: u32,
    instruction: u64,
    arguments: [u64; 6],
}

#[repr(C)]
struct Answer {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// What came of a question.
pub(super) enum Verdict {
    Done,
    /// A local socket of someone else, by its path.
    Refused([u8; ADDRESS_BYTES]),
}

/// Takes the next question from the listener and answers it.
pub(super) fn answer(listener: RawFd, network: Network) -> Verdict {
    // SAFETY: all zeros is a valid value of this plain structure, and what the kernel wants to find there.
    let mut question: Question = unsafe { mem::zeroed() };
    // SAFETY: the structure is as the kernel defines it and lives across the call.
    if unsafe { libc::ioctl(listener, RECEIVE, &raw mut question) } < 0 {
        return Verdict::Done;
    }
    let mut address = [0_u8; ADDRESS_BYTES];
    let decided = decide(listener, &question, network, &mut address);
    let (error, flags) = match decided {
        Ok(Decision::Connected) => (0, 0),
        Ok(Decision::GoOn) => (0, GO_ON),
        Err(errno) => (-errno, 0),
    };
    let reply = Answer { id: question.id, value: 0, error, flags };
    // SAFETY: as above. If the caller is gone by now, nobody misses the answer.
    unsafe { libc::ioctl(listener, SEND, &raw const reply) };
    if decided == Err(REFUSED) { Verdict::Refused(address) } else { Verdict::Done }
}

/// What a refused caller is told.
const REFUSED: c_int = libc::EACCES;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Decision {
    Connected,
    GoOn,
}

fn decide(
    listener: RawFd,
    question: &Question,
    network: Network,
    address: &mut [u8; ADDRESS_BYTES],
) -> Result<Decision, c_int> {
    let length = usize::try_from(question.arguments[2]).unwrap_or(usize::MAX).min(ADDRESS_BYTES);
    let socket = Descriptor(borrow(question)?);
    read_address(question, &mut address[..length])?;
    // SAFETY: the number lives across the call. If the asker has ended, its number may be another's by now.
    if unsafe { libc::ioctl(listener, IS_VALID, &raw const question.id) } < 0 {
        return Err(libc::EINTR);
    }
    let family = family(socket.0)?;
    if family != libc::AF_UNIX {
        // What cannot be a local socket needs no care; and far connections take longer than we may stand still. The
        // asker could exchange the descriptor while we look, so in everyone's network daemons' sockets are hidden, too.
        return match network {
            Network::Host => Ok(Decision::GoOn),
            Network::Own => connect(socket.0, address, length),
        };
    }
    let path = address.get(2..length).unwrap_or_default();
    match (path.first(), network) {
        (None | Some(0), Network::Own) => connect(socket.0, address, length),
        // Abstract ones are everyone's here.
        (None | Some(0), Network::Host) => Err(REFUSED),
        _ => {
            let target = Descriptor(open(question.thread, path)?);
            if network == Network::Own && !is_own(target.0)? || on_read_only(target.0)? {
                return Err(REFUSED);
            }
            connect_through(socket.0, target.0)
        }
    }
}

/// A descriptor that is closed when we are done with it.
struct Descriptor(RawFd);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it is ours, and nobody uses it afterwards.
        unsafe { libc::close(self.0) };
    }
}

/// The asker's socket.
fn borrow(question: &Question) -> Result<RawFd, c_int> {
    // Threads other than the first can be named since Linux 6.9; without this flag they are unknown.
    const THREAD: c_int = libc::O_EXCL;
    let descriptor = c_int::try_from(question.arguments[0] & 0xffff_ffff).map_err(|_| libc::EBADF)?;
    // SAFETY: only numbers are passed.
    unsafe {
        let mut asker = libc::syscall(libc::SYS_pidfd_open, question.thread, THREAD);
        if asker < 0 {
            asker = libc::syscall(libc::SYS_pidfd_open, question.thread, 0);
        }
        let asker = Descriptor(descriptor_of(asker)?);
        descriptor_of(libc::syscall(libc::SYS_pidfd_getfd, asker.0, descriptor, 0))
    }
}

fn descriptor_of(result: libc::c_long) -> Result<RawFd, c_int> {
    RawFd::try_from(result).ok().filter(|number| *number >= 0).ok_or_else(last_errno)
}

fn read_address(question: &Question, address: &mut [u8]) -> Result<(), c_int> {
    let ours = libc::iovec { iov_base: address.as_mut_ptr().cast(), iov_len: address.len() };
    let theirs = libc::iovec {
        iov_base: ptr::with_exposed_provenance_mut::<c_void>(
            usize::try_from(question.arguments[1]).map_err(|_| libc::EFAULT)?,
        ),
        iov_len: address.len(),
    };
    // SAFETY: our side is a slice that lives across the call; theirs is an address in another process, which the
    // kernel checks.
    let read = unsafe {
        libc::process_vm_readv(question.thread.cast_signed(), &raw const ours, 1, &raw const theirs, 1, 0)
    };
    if usize::try_from(read).is_ok_and(|read| read == address.len()) { Ok(()) } else { Err(libc::EFAULT) }
}

fn family(socket: RawFd) -> Result<c_int, c_int> {
    let mut family: c_int = 0;
    let mut size: libc::socklen_t = 4;
    // SAFETY: both are locals of the sizes the call expects.
    let got = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, libc::SO_DOMAIN, (&raw mut family).cast(), &raw mut size)
    };
    if got < 0 { Err(last_errno()) } else { Ok(family) }
}

fn connect(socket: RawFd, address: &[u8; ADDRESS_BYTES], length: usize) -> Result<Decision, c_int> {
    let length = libc::socklen_t::try_from(length).map_err(|_| libc::EINVAL)?;
    // SAFETY: the address is at least as long as said.
    let connected = unsafe { libc::connect(socket, address.as_ptr().cast(), length) };
    if connected < 0 { Err(last_errno()) } else { Ok(Decision::Connected) }
}

/// Opens what a path leads to for the asker, without touching it.
fn open(thread: u32, path: &[u8]) -> Result<RawFd, c_int> {
    let mut name = [0_u8; ADDRESS_BYTES];
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
    name.get_mut(..length).ok_or(libc::ENAMETOOLONG)?.copy_from_slice(&path[..length]);
    let mut place = [0_u8; 32];
    write_path(&mut place, b"/proc/", thread, b"/cwd");
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: both names end in a zero: their arrays are longer than what was put there.
    unsafe {
        let directory =
            Descriptor(descriptor_of(libc::c_long::from(libc::open(place.as_ptr().cast(), flags)))?);
        descriptor_of(libc::c_long::from(libc::openat(directory.0, name.as_ptr().cast(), flags)))
    }
}

/// AF_UNIX, as addresses begin with it.
const LOCAL: u16 = 1;

/// Connects to exactly the file that was looked at.
fn connect_through(socket: RawFd, target: RawFd) -> Result<Decision, c_int> {
    let mut address = [0_u8; ADDRESS_BYTES];
    address[..2].copy_from_slice(&LOCAL.to_ne_bytes());
    let number = target.cast_unsigned();
    let length = 2 + write_path(&mut address[2..], b"/proc/self/fd/", number, b"") + 1;
    connect(socket, &address, length)
}

/// Writes a path with a number in it; its length. The rest of `to` stays as it is.
pub(super) fn write_path(to: &mut [u8], before: &[u8], number: u32, after: &[u8]) -> usize {
    let mut digits = [0_u8; 10];
    let mut begin = digits.len();
    let mut rest = number;
    loop {
        begin -= 1;
        digits[begin] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let mut length = 0;
    for part in [before, &digits[begin..], after] {
        if let Some(room) = to.get_mut(length..length + part.len()) {
            room.copy_from_slice(part);
            length += part.len();
        }
    }
    length
}

fn on_read_only(file: RawFd) -> Result<bool, c_int> {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut found: libc::statvfs = mem::zeroed();
        if libc::fstatvfs(file, &raw mut found) < 0 {
            return Err(last_errno());
        }
        Ok(found.f_flag & libc::ST_RDONLY != 0)
    }
}

/// Whether a socket file was bound in the command's own network, by asking the kernel for all that were.
fn is_own(file: RawFd) -> Result<bool, c_int> {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    let found = unsafe {
        let mut found: libc::stat = mem::zeroed();
        if libc::fstat(file, &raw mut found) < 0 {
            return Err(last_errno());
        }
        found
    };
    if found.st_mode & libc::S_IFMT != libc::S_IFSOCK {
        return Err(libc::ECONNREFUSED);
    }
    let device = (libc::major(found.st_dev) << 20) | libc::minor(found.st_dev);
    // The kernel's list has the lower half of the number.
    bound_here((found.st_ino & u64::from(u32::MAX)).try_into().map_err(|_| libc::EINVAL)?, device)
}

const HEADER_BYTES: usize = 16;

/// Looks through the list of local sockets of this network for one bound to this file.
fn bound_here(inode: u32, device: u32) -> Result<bool, c_int> {
    const SOCK_DIAG: c_int = 4;
    // SAFETY: takes numbers only.
    let kernel = unsafe { libc::socket(libc::AF_NETLINK, libc::SOCK_RAW | libc::SOCK_CLOEXEC, SOCK_DIAG) };
    let kernel = Descriptor(descriptor_of(libc::c_long::from(kernel))?);
    let request = list_request();
    // SAFETY: the request is a local that lives across the call.
    if unsafe { libc::send(kernel.0, request.as_ptr().cast(), request.len(), 0) } < 0 {
        return Err(last_errno());
    }
    let mut buffer = [0_u8; 16 * 1024];
    loop {
        // SAFETY: the buffer is a local of that length.
        let read = unsafe { libc::recv(kernel.0, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let mut rest = buffer.get(..usize::try_from(read).map_err(|_| last_errno())?).unwrap_or_default();
        while let Some((length, kind)) = header(rest) {
            match kind {
                // The end of the list, or an error.
                2 | 3 => return Ok(false),
                _ if names(rest.get(HEADER_BYTES..length).unwrap_or_default(), inode, device) => {
                    return Ok(true);
                }
                _ => rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default(),
            }
        }
        if read == 0 {
            return Ok(false);
        }
    }
}

/// Asks for all local sockets, and the files they are bound to.
fn list_request() -> [u8; 40] {
    let mut request = [0_u8; 40];
    request[..4].copy_from_slice(&40_u32.to_ne_bytes());
    request[4..6].copy_from_slice(&20_u16.to_ne_bytes()); // SOCK_DIAG_BY_FAMILY
    request[6..8].copy_from_slice(&0x301_u16.to_ne_bytes()); // a request for a dump
    request[16] = 1; // AF_UNIX
    request[20..24].copy_from_slice(&u32::MAX.to_ne_bytes()); // in every state
    request[28..32].copy_from_slice(&2_u32.to_ne_bytes()); // with the file
    request
}

/// Length and kind of the message at the beginning.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?);
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    usize::try_from(length)
        .ok()
        .filter(|length| (HEADER_BYTES..=bytes.len()).contains(length))
        .map(|length| (length, kind))
}

/// Whether a message about a socket says that it is bound to this file.
fn names(message: &[u8], inode: u32, device: u32) -> bool {
    const FILE: u16 = 1;
    let mut rest = message.get(16..).unwrap_or_default();
    loop {
        let word = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let half = |at: usize| rest.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
        let (Some(length), Some(kind)) = (half(0), half(2)) else { return false };
        if kind == FILE && word(4) == Some(inode) && word(8) == Some(device) {
            return true;
        }
        if length < 4 {
            return false;
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
}
