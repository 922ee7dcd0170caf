//! What the commands of one machine share: a user namespace, and in it a network, a host name and a place among the
//! cgroups. Making a network takes the kernel longer than all mounts together, so it is made once.
//!
//! Nobody lives there between two commands: descriptors keep it, and it goes with the last of them, however this
//! process ends. Commands that run at the same time share the loopback; everything else is each command's own.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    io, mem,
    net::TcpListener,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use super::{
    Pid, StartError, arena::Arena, failure::Failure, hold::Part, landlock::last_errno, without_signals,
};

/// What a child does that borrows our memory and our descriptors. We stand still until it has ended.
const BORROWED: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;

/// Namespaces that are kept, each with where it is found. The first gives the powers to enter the others.
const KEPT: [(&CStr, c_int); 4] = [
    (c"/proc/self/ns/user", libc::CLONE_NEWUSER),
    (c"/proc/self/ns/net", libc::CLONE_NEWNET),
    (c"/proc/self/ns/uts", libc::CLONE_NEWUTS),
    (c"/proc/self/ns/cgroup", libc::CLONE_NEWCGROUP),
];

/// `ifr_flags` is a short, the flags are ints.
#[expect(clippy::cast_possible_truncation, reason = "IFF_UP and IFF_RUNNING are below 0x80")]
const IFF_UP_RUNNING: libc::c_short = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;

#[expect(clippy::cast_possible_truncation, reason = "address families are small")]
const SIN_FAMILY: libc::sa_family_t = libc::AF_INET as libc::sa_family_t;

#[expect(clippy::cast_possible_truncation, reason = "the structure has 16 bytes")]
const SOCKADDR_IN_SIZE: libc::socklen_t = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// Namespaces, kept by their descriptors.
#[derive(Debug)]
pub(crate) struct Commons([OwnedFd; KEPT.len()]);

impl Commons {
    /// Makes them, and finds that the network outside cannot be reached from inside.
    pub(crate) fn make() -> Result<Self, StartError> {
        let (uid_map, gid_map) = identity_maps()?;
        // Where there is no loopback, there is nothing to be reached.
        let outside = TcpListener::bind(("127.0.0.1", 0)).and_then(|listener| {
            let port = listener.local_addr()?.port();
            Ok((listener, port))
        });
        let port = outside.as_ref().ok().map(|(_, port)| *port);
        let mut making = Making { uid_map, gid_map, port, kept: [-1; KEPT.len()], failure: None };
        let arena = Arena::new()?;
        let stack = arena.stack()?;
        let flags = KEPT.iter().fold(BORROWED, |flags, (_, kind)| flags | kind);
        // SAFETY: the stack is an aligned allocation that nobody else uses; it and `making` live until `clone` returns,
        // which CLONE_VFORK delays until the child has ended.
        let pid = without_signals(|| unsafe { libc::clone(furnish, stack, flags, (&raw mut making).cast()) });
        if pid < 0 {
            return Err(StartError::Confine("making namespaces".to_owned(), io::Error::last_os_error()));
        }
        Pid(pid).collect(0)?;
        // SAFETY: what is not -1 the child has opened for us in our own table, and nobody else knows of it.
        let kept = making.kept.map(|kept| (kept >= 0).then(|| unsafe { OwnedFd::from_raw_fd(kept) }));
        match (making.failure, kept) {
            (None, [Some(user), Some(network), Some(name), Some(cgroup)]) => {
                Ok(Self([user, network, name, cgroup]))
            }
            (failure, _) => Err(failure.unwrap_or(Failure::user(libc::EIO)).explain(&[])),
        }
    }

    /// What a child needs to enter.
    pub(super) fn door(&self, network: Network) -> Door {
        let mut kept = self.0.each_ref().map(OwnedFd::as_raw_fd);
        if network == Network::Everyones {
            kept[1] = -1;
        }
        Door(kept)
    }
}

/// Whose network a command is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Network {
    Own,
    Everyones,
}

/// The namespaces to enter; -1 for one that is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Door([RawFd; KEPT.len()]);

impl Door {
    /// Whose network is behind it.
    pub(super) fn network(self) -> Network {
        if self.0[1] < 0 { Network::Everyones } else { Network::Own }
    }

    /// Enters. To be called in a child with a single thread.
    pub(super) fn enter(self) -> Result<(), c_int> {
        for (kept, (_, kind)) in self.0.into_iter().zip(KEPT) {
            // SAFETY: takes numbers only.
            if kept >= 0 && unsafe { libc::setns(kept, kind) } < 0 {
                return Err(last_errno());
            }
        }
        Ok(())
    }
}

/// What the child that makes them works with.
struct Making {
    uid_map: CString,
    gid_map: CString,
    port: Option<u16>,
    kept: [RawFd; KEPT.len()],
    failure: Option<Failure>,
}

extern "C" fn furnish(making: *mut c_void) -> c_int {
    // SAFETY: it is the one passed to `clone`, whose caller stands still until we have ended.
    let making = unsafe { &mut *making.cast::<Making>() };
    making.failure = making.carry_out().err();
    0
}

impl Making {
    fn carry_out(&mut self) -> Result<(), Failure> {
        write_file(c"/proc/self/setgroups", c"deny").map_err(Failure::user)?;
        write_file(c"/proc/self/uid_map", &self.uid_map).map_err(Failure::user)?;
        write_file(c"/proc/self/gid_map", &self.gid_map).map_err(Failure::user)?;
        loopback_up().map_err(Failure::loopback)?;
        if self.port.is_some_and(reaches) {
            return Err(Failure::hold((Part::CanaryReached, libc::EPERM)));
        }
        for (kept, (path, _)) in self.kept.iter_mut().zip(KEPT) {
            // SAFETY: a constant C string.
            *kept = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            if *kept < 0 {
                return Err(Failure::user(last_errno()));
            }
        }
        Ok(())
    }
}

/// The user is the same inside as outside, and nobody else is anybody.
fn identity_maps() -> io::Result<(CString, CString)> {
    // SAFETY: take and give numbers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let map = |id| CString::new(format!("{id} {id} 1")).map_err(io::Error::from);
    Ok((map(user)?, map(group)?))
}

fn write_file(path: &CStr, text: &CStr) -> Result<(), c_int> {
    // SAFETY: both are C strings, and the descriptor is closed where it was opened.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(last_errno());
        }
        let written = libc::write(file, text.as_ptr().cast(), text.to_bytes().len());
        let result = if written < 0 { Err(last_errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

/// A new network has a loopback that is down.
fn loopback_up() -> Result<(), c_int> {
    // SAFETY: all zeros is a valid request, which lives across the calls; the descriptor is closed where it was made.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(last_errno());
        }
        let mut request: libc::ifreq = mem::zeroed();
        ptr::copy_nonoverlapping(c"lo".as_ptr(), request.ifr_name.as_mut_ptr(), 2);
        request.ifr_ifru.ifru_flags = IFF_UP_RUNNING;
        let set = libc::ioctl(socket, libc::SIOCSIFFLAGS as libc::Ioctl, &raw mut request);
        let result = if set < 0 { Err(last_errno()) } else { Ok(()) };
        libc::close(socket);
        result
    }
}

/// Whether someone outside, who listens on this port of the machine's loopback, can be reached.
fn reaches(port: u16) -> bool {
    // SAFETY: all zeros is a valid address, which lives across the call; the descriptor is closed where it was made.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        let mut address: libc::sockaddr_in = mem::zeroed();
        address.sin_family = SIN_FAMILY;
        address.sin_port = port.to_be();
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let connected = libc::connect(socket, ptr::from_ref(&address).cast(), SOCKADDR_IN_SIZE) == 0;
        libc::close(socket);
        connected
    }
}
