//! Addresses of sockets, and to whom one leads.

use std::{ffi::c_int, mem, os::fd::RawFd};

use super::{
    MAX_ADDRESS_BYTES,
    caller::{Caller, Descriptor},
    sock_diag,
};
use crate::sys::{landlock::last_errno, proc_files::write_path, shared_namespaces::NetworkNamespace};

/// The family as addresses begin with it.
#[expect(clippy::cast_possible_truncation, reason = "it is 1")]
const AF_UNIX: libc::sa_family_t = libc::AF_UNIX as libc::sa_family_t;

/// Bytes before the path of a `struct sockaddr_un`.
const PATH_OFFSET: usize = mem::offset_of!(libc::sockaddr_un, sun_path);

/// A copy of an address.
#[derive(Clone, Copy)]
pub(super) struct SocketAddress {
    pub(super) bytes: [u8; MAX_ADDRESS_BYTES],
    pub(super) length: usize,
}

/// To whom an address leads.
pub(super) enum Target {
    /// The address is all there is to it.
    Address(SocketAddress),
    /// A local socket of the command's own, by its file.
    Own(Descriptor),
    /// Somebody else's.
    Foreign,
}

impl SocketAddress {
    /// The address of the local socket behind a descriptor: exactly the file that was looked at.
    pub(super) fn through(file: RawFd) -> Self {
        let mut bytes = [0_u8; MAX_ADDRESS_BYTES];
        bytes[..PATH_OFFSET].copy_from_slice(&AF_UNIX.to_ne_bytes());
        let written = write_path(&mut bytes[PATH_OFFSET..], b"/proc/self/fd/", file.cast_unsigned(), b"");
        Self { bytes, length: PATH_OFFSET + written + 1 }
    }

    fn family(&self) -> c_int {
        c_int::from(libc::sa_family_t::from_ne_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// Finds out to whom this address leads, on a socket of this family.
    pub(super) fn resolve(
        &self,
        caller: &Caller,
        family: c_int,
        network: NetworkNamespace,
    ) -> Result<Target, c_int> {
        // `AF_UNSPEC` ends a connection.
        if family != libc::AF_UNIX || self.family() == libc::AF_UNSPEC || self.length <= PATH_OFFSET {
            return Ok(Target::Address(*self));
        }
        let path = self.bytes.get(PATH_OFFSET..self.length).unwrap_or_default();
        match (path.first(), network) {
            (None | Some(0), NetworkNamespace::Own) => Ok(Target::Address(*self)),
            // Abstract names are those of the whole machine here.
            (None | Some(0), NetworkNamespace::Host) => Ok(Target::Foreign),
            _ => {
                let file = open(caller.thread(), path)?;
                let is_foreign = network == NetworkNamespace::Own && !sock_diag::is_bound_here(file.0)?;
                let refused = is_foreign || is_on_read_only(file.0)?;
                Ok(if refused { Target::Foreign } else { Target::Own(file) })
            }
        }
    }

    /// Connects a socket to it.
    pub(super) fn connect(&self, socket: RawFd) -> Result<(), c_int> {
        let length = libc::socklen_t::try_from(self.length).map_err(|_| libc::EINVAL)?;
        // SAFETY: the address is at least as long as said.
        let connected = unsafe { libc::connect(socket, self.bytes.as_ptr().cast(), length) };
        if connected < 0 { Err(last_errno()) } else { Ok(()) }
    }
}

/// A path that ends in a zero: the longest of an address, with the number of a thread in it.
pub(crate) type CallerPath = [u8; MAX_ADDRESS_BYTES + 32];

/// Returns the path in the address of a local socket as it leads us where it leads the caller.
pub(crate) fn caller_path(thread: u32, path: &[u8]) -> CallerPath {
    let mut name = [0_u8; MAX_ADDRESS_BYTES + 32];
    let length = path.iter().position(|byte| *byte == 0).unwrap_or(path.len()).min(MAX_ADDRESS_BYTES);
    match path[..length].strip_prefix(b"/proc/self") {
        // For us that would be our own.
        Some(rest) => {
            write_path(&mut name, b"/proc/", thread, rest);
        }
        None => name[..length].copy_from_slice(&path[..length]),
    }
    name
}

/// Opens what a path leads to for the caller, without touching it.
fn open(thread: u32, path: &[u8]) -> Result<Descriptor, c_int> {
    let name = caller_path(thread, path);
    let mut place = [0_u8; 32];
    write_path(&mut place[..31], b"/proc/", thread, b"/cwd");
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: both names end in a zero: their arrays are longer than what was put there.
    unsafe {
        let directory = Descriptor::from_result(libc::open(place.as_ptr().cast(), flags).into())?;
        Descriptor::from_result(libc::openat(directory.0, name.as_ptr().cast(), flags).into())
    }
}

fn is_on_read_only(file: RawFd) -> Result<bool, c_int> {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut found: libc::statvfs = mem::zeroed();
        if libc::fstatvfs(file, &raw mut found) < 0 {
            return Err(last_errno());
        }
        Ok(found.f_flag & libc::ST_RDONLY != 0)
    }
}
