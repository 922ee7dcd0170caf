//! Addresses of sockets, and to whom one leads.

use std::{
    ffi::c_int,
    mem,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::fd::RawFd,
};

use super::{
    InternetAddress, MAX_ADDRESS_BYTES,
    caller::{CallerThread, OwnedDescriptor},
    sock_diag,
};
use crate::sys::{landlock::last_errno, proc_files::write_path, shared_namespaces::NetworkNamespace};

/// The family as addresses begin with it.
#[expect(clippy::cast_possible_truncation, reason = "it is 1")]
const AF_UNIX: libc::sa_family_t = libc::AF_UNIX as libc::sa_family_t;

/// Bytes before the path of a `struct sockaddr_un`.
const PATH_OFFSET: usize = mem::offset_of!(libc::sockaddr_un, sun_path);

/// The port of name servers (DNS).
pub(crate) const NAME_SERVER_PORT: u16 = 53;

/// A copy of an address.
#[derive(Clone, Copy)]
pub(crate) struct SocketAddress {
    pub(super) bytes: [u8; MAX_ADDRESS_BYTES],
    pub(super) length: usize,
}

/// The receiver that an address leads to.
pub(super) enum ResolvedTarget {
    /// The address is all there is to it.
    Address(SocketAddress),
    /// A local socket of the command's own, by its file.
    Own(OwnedDescriptor),
    /// A socket of another process.
    Foreign,
}

impl SocketAddress {
    /// Returns the address of the local socket behind a descriptor: exactly the file that was
    /// checked.
    pub(super) fn through(file: RawFd) -> Self {
        let mut bytes = [0_u8; MAX_ADDRESS_BYTES];
        bytes[..PATH_OFFSET].copy_from_slice(&AF_UNIX.to_ne_bytes());
        let written = write_path(&mut bytes[PATH_OFFSET..], b"/proc/self/fd/", file.cast_unsigned(), b"");
        Self { bytes, length: PATH_OFFSET + written + 1 }
    }

    fn family(&self) -> c_int {
        c_int::from(libc::sa_family_t::from_ne_bytes([self.bytes[0], self.bytes[1]]))
    }

    /// Returns the address and the port of the internet families.
    fn internet(&self) -> Option<(IpAddr, u16)> {
        let port = u16::from_be_bytes([self.bytes[2], self.bytes[3]]);
        match self.family() {
            libc::AF_INET => Some((ipv4(*self.bytes.first_chunk()?), port)),
            libc::AF_INET6 => Some((ipv6(self.bytes.first_chunk::<24>()?), port)),
            _ => None,
        }
    }

    /// Returns whether it leads out of a network that has a loopback only. A name server on the
    /// loopback is one of the machine's, too: a command has no right to listen there.
    pub(super) fn leads_outside(&self) -> bool {
        self.internet().is_some_and(|(ip, port)| {
            port == NAME_SERVER_PORT || !(ip.to_canonical().is_loopback() || ip.is_unspecified())
        })
    }

    pub(super) fn is_name_server(&self) -> bool {
        self.internet().is_some_and(|(_, port)| port == NAME_SERVER_PORT)
    }

    /// Returns the beginning, which holds all of an internet address.
    pub(crate) fn start(&self) -> InternetAddress {
        self.bytes.first_chunk().copied().unwrap_or_default()
    }

    /// Finds out to whom this address leads, on a socket of this family.
    pub(super) fn resolve(
        &self,
        caller: &CallerThread,
        family: c_int,
        network: NetworkNamespace,
    ) -> Result<ResolvedTarget, c_int> {
        // `AF_UNSPEC` ends a connection.
        if family != libc::AF_UNIX || self.family() == libc::AF_UNSPEC || self.length <= PATH_OFFSET {
            return Ok(ResolvedTarget::Address(*self));
        }
        let path = self.bytes.get(PATH_OFFSET..self.length).unwrap_or_default();
        match (path.first(), network) {
            (None | Some(0), NetworkNamespace::Own) => Ok(ResolvedTarget::Address(*self)),
            // Abstract names are those of the whole machine here.
            (None | Some(0), NetworkNamespace::Host) => Ok(ResolvedTarget::Foreign),
            _ => {
                let file = open(caller.thread(), path)?;
                let is_foreign = network == NetworkNamespace::Own && !sock_diag::is_bound_here(file.0)?;
                let refused = is_foreign || is_on_read_only(file.0)?;
                Ok(if refused { ResolvedTarget::Foreign } else { ResolvedTarget::Own(file) })
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

/// Returns the address and the port of a `struct sockaddr_in` or `sockaddr_in6`; `None` for other
/// families.
pub(crate) fn socket_address(start: &InternetAddress) -> Option<SocketAddr> {
    let mut bytes = [0; MAX_ADDRESS_BYTES];
    bytes[..start.len()].copy_from_slice(start);
    SocketAddress { bytes, length: start.len() }.internet().map(SocketAddr::from)
}

fn ipv4([_, _, _, _, a, b, c, d]: [u8; 8]) -> IpAddr {
    Ipv4Addr::new(a, b, c, d).into()
}

fn ipv6(start: &[u8; 24]) -> IpAddr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&start[8..]);
    Ipv6Addr::from(octets).into()
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
fn open(thread: u32, path: &[u8]) -> Result<OwnedDescriptor, c_int> {
    let name = caller_path(thread, path);
    let mut place = [0_u8; 32];
    write_path(&mut place[..31], b"/proc/", thread, b"/cwd");
    let flags = libc::O_PATH | libc::O_CLOEXEC;
    // SAFETY: both names end in a zero: their arrays are longer than what was put there.
    unsafe {
        let directory = OwnedDescriptor::from_result(libc::open(place.as_ptr().cast(), flags).into())?;
        OwnedDescriptor::from_result(libc::openat(directory.0, name.as_ptr().cast(), flags).into())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_beyond_the_loopback_and_name_servers_lead_outside() {
        let address = |text: &str| {
            let mut bytes = [0; MAX_ADDRESS_BYTES];
            let (family, port) = match text.parse().unwrap() {
                SocketAddr::V4(v4) => {
                    bytes[4..8].copy_from_slice(&v4.ip().octets());
                    (libc::AF_INET, v4.port())
                }
                SocketAddr::V6(v6) => {
                    bytes[8..24].copy_from_slice(&v6.ip().octets());
                    (libc::AF_INET6, v6.port())
                }
            };
            bytes[..2].copy_from_slice(&libc::sa_family_t::try_from(family).unwrap().to_ne_bytes());
            bytes[2..4].copy_from_slice(&port.to_be_bytes());
            SocketAddress { bytes, length: 28 }
        };
        for outside in ["1.1.1.1:80", "[2606:4700::1111]:443", "10.0.0.1:53", "127.0.0.53:53", "[::1]:53"] {
            assert!(address(outside).leads_outside(), "{outside}");
            assert_eq!(socket_address(&address(outside).start()), Some(outside.parse().unwrap()));
        }
        for inside in
            ["127.0.0.1:8080", "127.9.9.9:1", "0.0.0.0:80", "[::1]:80", "[::]:80", "[::ffff:127.0.0.1]:80"]
        {
            assert!(!address(inside).leads_outside(), "{inside}");
        }
        assert!(!SocketAddress::through(3).leads_outside());
        assert_eq!(socket_address(&[0; 28]), None);
    }
}
