//! Asks the kernel by `NETLINK_SOCK_DIAG` which local sockets were bound in this network namespace.

use std::{ffi::c_int, mem, os::fd::RawFd};

use super::caller::OwnedDescriptor;
use crate::sys::landlock::last_errno;

/// Constants of `<linux/sock_diag.h>` and `<linux/unix_diag.h>` that `libc` does not have, under
/// their kernel names.
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const UDIAG_SHOW_VFS: u32 = 0x2;
const UNIX_DIAG_VFS: u16 = 1;

/// `struct unix_diag_req`, likewise.
#[repr(C)]
#[derive(Clone, Copy)]
struct UnixDiagReq {
    sdiag_family: u8,
    sdiag_protocol: u8,
    pad: u16,
    udiag_states: u32,
    udiag_ino: u32,
    udiag_show: u32,
    udiag_cookie: [u32; 2],
}

/// Length of `struct unix_diag_msg`, behind which the attributes begin.
const UNIX_DIAG_MSG_BYTES: usize = 16;

const NLMSGHDR_BYTES: usize = mem::size_of::<libc::nlmsghdr>();
const NLATTR_BYTES: usize = mem::size_of::<libc::nlattr>();

#[repr(C)]
struct DumpRequest {
    header: libc::nlmsghdr,
    request: UnixDiagReq,
}

/// Tells whether a socket file was bound in this network namespace.
pub(super) fn is_bound_here(file: RawFd) -> Result<bool, c_int> {
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
    // `struct unix_diag_vfs` has the kernel's own form of the device, and the lower half of the
    // inode's number.
    let device = (libc::major(found.st_dev) << 20) | libc::minor(found.st_dev);
    let inode = u32::try_from(found.st_ino & u64::from(u32::MAX)).map_err(|_| libc::EINVAL)?;
    is_listed(inode, device)
}

/// Looks through the local sockets of this network namespace for one bound to this file.
fn is_listed(inode: u32, device: u32) -> Result<bool, c_int> {
    // SAFETY: takes numbers only, and the descriptor is new.
    let kernel = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        OwnedDescriptor::from_result(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_SOCK_DIAG).into())?
    };
    let request = dump_request();
    let size = mem::size_of::<DumpRequest>();
    // SAFETY: the request is a local of that size that lives across the call.
    if unsafe { libc::send(kernel.0, (&raw const request).cast(), size, 0) } < 0 {
        return Err(last_errno());
    }
    let mut buffer = [0_u8; 16 * 1024];
    loop {
        // SAFETY: the buffer is a local of that length.
        let read = unsafe { libc::recv(kernel.0, buffer.as_mut_ptr().cast(), buffer.len(), 0) };
        let mut rest = buffer.get(..usize::try_from(read).map_err(|_| last_errno())?).unwrap_or_default();
        while let Some((length, kind)) = header(rest) {
            match c_int::from(kind) {
                libc::NLMSG_DONE | libc::NLMSG_ERROR => return Ok(false),
                _ if names(rest.get(NLMSGHDR_BYTES..length).unwrap_or_default(), inode, device) => {
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

#[expect(clippy::cast_possible_truncation, reason = "the request has 40 bytes")]
const DUMP_REQUEST_BYTES: u32 = mem::size_of::<DumpRequest>() as u32;

#[expect(clippy::cast_possible_truncation, reason = "flags of netlink have 16 bits")]
const DUMP_FLAGS: u16 = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;

#[expect(clippy::cast_possible_truncation, reason = "it is 1")]
const AF_UNIX: u8 = libc::AF_UNIX as u8;

/// Asks for all local sockets, in every state, with the files they are bound to.
fn dump_request() -> DumpRequest {
    let header = libc::nlmsghdr {
        nlmsg_len: DUMP_REQUEST_BYTES,
        nlmsg_type: SOCK_DIAG_BY_FAMILY,
        nlmsg_flags: DUMP_FLAGS,
        nlmsg_seq: 0,
        nlmsg_pid: 0,
    };
    let request = UnixDiagReq {
        sdiag_family: AF_UNIX,
        sdiag_protocol: 0,
        pad: 0,
        udiag_states: u32::MAX,
        udiag_ino: 0,
        udiag_show: UDIAG_SHOW_VFS,
        udiag_cookie: [0; 2],
    };
    DumpRequest { header, request }
}

/// Length and type of the message at the beginning.
fn header(bytes: &[u8]) -> Option<(usize, u16)> {
    let length = usize::try_from(u32::from_ne_bytes(bytes.get(..4)?.try_into().ok()?)).ok()?;
    let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
    (NLMSGHDR_BYTES..=bytes.len()).contains(&length).then_some((length, kind))
}

/// Tells whether a message about a socket says that it is bound to this file: by a `struct nlattr`
/// of type `UNIX_DIAG_VFS` with a `struct unix_diag_vfs`.
fn names(message: &[u8], inode: u32, device: u32) -> bool {
    let mut rest = message.get(UNIX_DIAG_MSG_BYTES..).unwrap_or_default();
    loop {
        let word = |at: usize| rest.get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let half = |at: usize| rest.get(at..at + 2)?.try_into().ok().map(u16::from_ne_bytes);
        let (Some(length), Some(kind)) = (half(0), half(2)) else { return false };
        if kind == UNIX_DIAG_VFS
            && word(NLATTR_BYTES) == Some(inode)
            && word(NLATTR_BYTES + 4) == Some(device)
        {
            return true;
        }
        if usize::from(length) < NLATTR_BYTES {
            return false;
        }
        rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
}
