//! The namespaces that the commands of one machine share: user, network, UTS and cgroup. Made once,
//! because a network namespace takes the kernel longer than all mounts together, and because a
//! command must reach the server that another one runs on the loopback interface.
//!
//! No process lives there between two commands: descriptors keep the namespaces, and they go with
//! the last descriptor, however this process ends. Mount, PID and IPC namespaces are new for each
//! command.

use std::{
    ffi::{CStr, CString, c_int, c_void},
    fs,
    io::{self, Read, Write},
    mem,
    net::TcpListener,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
};

use crate::id_maps::IdMaps;

use super::{
    ChildPid, StartError, arena::SharedArena, landlock::last_errno, restrictions::RestrictionStep,
    start_error::StartFailure, without_signals,
};

/// As `vfork`, with a shared descriptor table: we stand still until the child has ended.
const VFORK_FLAGS: c_int = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;

/// The shared namespaces, each with its path. The user namespace is first: it gives the
/// capabilities to enter the others.
const NAMESPACES: [(&CStr, c_int); 4] = [
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

/// The shared namespaces, kept by their descriptors.
#[derive(Debug)]
pub(crate) struct SharedNamespaces([OwnedFd; NAMESPACES.len()]);

impl SharedNamespaces {
    /// Creates the namespaces, and tests that the host's loopback interface cannot be reached from
    /// inside.
    pub(crate) fn new() -> Result<Self, StartError> {
        let (_listener, port) = listen_outside();
        let maps = Some(identity_maps()?);
        let mut setup = NamespaceSetup { maps, port, fds: [-1; NAMESPACES.len()], failure: None };
        let arena = SharedArena::new()?;
        let stack = arena.stack()?;
        let flags = NAMESPACES.iter().fold(VFORK_FLAGS, |flags, (_, kind)| flags | kind);
        // SAFETY: the stack is an aligned allocation with no other user; it and `setup` live until
        // `clone` returns, which CLONE_VFORK delays until the child has ended.
        let pid = without_signals(|| unsafe { libc::clone(set_up, stack, flags, (&raw mut setup).cast()) });
        if pid < 0 {
            return Err(StartError::Confine("making namespaces".to_owned(), io::Error::last_os_error()));
        }
        ChildPid(pid).reap(0)?;
        setup.finish()
    }

    /// Creates the namespaces with more ids than the user's own. Only a process outside may map
    /// those, so the child is a copy of this process that waits for its maps; it still shares the
    /// descriptor table, and sends the numbers of what it has opened.
    #[expect(clippy::disallowed_methods, reason = "files of the kernel below /proc")]
    pub(crate) fn with_id_maps(maps: &IdMaps) -> Result<Self, StartError> {
        let (_listener, port) = listen_outside();
        let (mut report, report_writer) = super::report_pipe()?;
        let (go, mut go_writer) = io::pipe()?;
        let setup = NamespaceSetup { maps: None, port, fds: [-1; NAMESPACES.len()], failure: None };
        let mut waiting = WaitingSetup { setup, go: go.as_raw_fd(), report: report_writer.as_raw_fd() };
        let arena = SharedArena::new()?;
        let stack = arena.stack()?;
        let flags =
            NAMESPACES.iter().fold(libc::CLONE_FILES | libc::SIGCHLD, |flags, (_, kind)| flags | kind);
        // SAFETY: the stack is an aligned allocation with no other user. Without CLONE_VM the child
        // works on its own copy of `waiting`, and makes system calls only.
        let pid = without_signals(|| unsafe {
            libc::clone(set_up_after_go, stack, flags, (&raw mut waiting).cast())
        });
        if pid < 0 {
            return Err(StartError::Confine("making namespaces".to_owned(), io::Error::last_os_error()));
        }
        let [uid_map, gid_map] = maps.lines();
        let written = fs::write(format!("/proc/{pid}/setgroups"), "deny")
            .and_then(|()| fs::write(format!("/proc/{pid}/uid_map"), uid_map))
            .and_then(|()| fs::write(format!("/proc/{pid}/gid_map"), gid_map))
            .and_then(|()| go_writer.write_all(&[1]));
        // The child has the same table: once this end is closed, it waits no longer.
        drop(go_writer);
        ChildPid(pid).reap(0)?;
        written.map_err(|error| {
            StartError::Confine("writing the uid map of a user namespace".to_owned(), error)
        })?;
        drop(report_writer);
        let mut bytes = [0; mem::size_of::<SetupReport>()];
        report.read_exact(&mut bytes)?;
        waiting.setup.take_report(bytes);
        waiting.setup.finish()
    }

    /// Returns the descriptors of the namespaces to enter.
    pub(super) fn fds(&self, network: NetworkNamespace) -> NamespaceFds {
        let mut fds = self.0.each_ref().map(OwnedFd::as_raw_fd);
        if network == NetworkNamespace::Host {
            fds[1] = -1;
        }
        NamespaceFds(fds)
    }
}

/// The network namespace of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NetworkNamespace {
    /// The one that the commands of this machine share.
    Own,
    /// The one of this process.
    Host,
}

/// The descriptors of the namespaces to enter; -1 for one that is not entered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NamespaceFds([RawFd; NAMESPACES.len()]);

impl NamespaceFds {
    /// Returns the network namespace that is entered.
    pub(super) fn network(self) -> NetworkNamespace {
        if self.0[1] < 0 { NetworkNamespace::Host } else { NetworkNamespace::Own }
    }

    /// Enters the namespaces by `setns`. A process with several threads cannot enter a user
    /// namespace.
    pub(super) fn enter(self) -> Result<(), c_int> {
        for (fd, (_, kind)) in self.0.into_iter().zip(NAMESPACES) {
            // SAFETY: takes numbers only.
            if fd >= 0 && unsafe { libc::setns(fd, kind) } < 0 {
                return Err(last_errno());
            }
        }
        Ok(())
    }
}

/// Listens on the loopback interface of the host, for the test that it cannot be reached. Without
/// such an interface there is nothing to be reached.
fn listen_outside() -> (Option<TcpListener>, Option<u16>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).ok();
    let port =
        listener.as_ref().and_then(|listener| listener.local_addr().ok()).map(|address| address.port());
    (listener, port)
}

/// The descriptors and the failure of a [`NamespaceSetup`], as a child sends them.
type SetupReport = ([u8; 4 * NAMESPACES.len()], [u8; 8]);

/// A setup whose maps are written by the parent, which sends a byte to `go` then.
struct WaitingSetup {
    setup: NamespaceSetup,
    go: RawFd,
    report: RawFd,
}

extern "C" fn set_up_after_go(waiting: *mut c_void) -> c_int {
    // SAFETY: the pointer is to this process's copy of what was passed to `clone`; the locals live
    // across the calls.
    unsafe {
        let waiting = &mut *waiting.cast::<WaitingSetup>();
        let mut go = 0_u8;
        if libc::read(waiting.go, (&raw mut go).cast(), 1) == 1 {
            waiting.setup.failure = waiting.setup.carry_out().err();
            let report = waiting.setup.to_report();
            libc::write(waiting.report, report.as_ptr().cast(), report.len());
        }
        libc::_exit(0)
    }
}

/// The work of the child that creates the namespaces.
struct NamespaceSetup {
    /// `uid_map` and `gid_map`, unless the parent writes them.
    maps: Option<(CString, CString)>,
    port: Option<u16>,
    fds: [RawFd; NAMESPACES.len()],
    failure: Option<StartFailure>,
}

extern "C" fn set_up(setup: *mut c_void) -> c_int {
    // SAFETY: the pointer is the one passed to `clone`, whose caller stands still until we have
    // ended.
    let setup = unsafe { &mut *setup.cast::<NamespaceSetup>() };
    setup.failure = setup.carry_out().err();
    0
}

impl NamespaceSetup {
    /// Takes what the child has opened.
    fn finish(self) -> Result<SharedNamespaces, StartError> {
        // SAFETY: what is not -1 the child has opened for us in our own table, and has no other
        // owner.
        let fds = self.fds.map(|fd| (fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) }));
        match (self.failure, fds) {
            (None, [Some(user), Some(network), Some(uts), Some(cgroup)]) => {
                Ok(SharedNamespaces([user, network, uts, cgroup]))
            }
            (failure, _) => Err(failure.unwrap_or(StartFailure::user_namespace(libc::EIO)).explain(&[])),
        }
    }

    fn to_report(&self) -> [u8; mem::size_of::<SetupReport>()] {
        let mut report = [0; mem::size_of::<SetupReport>()];
        let (fds, failure) = report.split_at_mut(4 * NAMESPACES.len());
        for (place, fd) in fds.chunks_exact_mut(4).zip(self.fds) {
            place.copy_from_slice(&fd.to_ne_bytes());
        }
        failure.copy_from_slice(&self.failure.map_or(StartFailure::NONE, StartFailure::write));
        report
    }

    fn take_report(&mut self, report: [u8; mem::size_of::<SetupReport>()]) {
        let (fds, failure) = report.split_at(4 * NAMESPACES.len());
        for (fd, bytes) in self.fds.iter_mut().zip(fds.chunks_exact(4)) {
            *fd = bytes.try_into().map_or(-1, RawFd::from_ne_bytes);
        }
        let failure = failure.try_into().unwrap_or(StartFailure::NONE);
        self.failure = (failure != StartFailure::NONE).then(|| StartFailure::read(failure));
    }

    fn carry_out(&mut self) -> Result<(), StartFailure> {
        if let Some((uid_map, gid_map)) = &self.maps {
            write_file(c"/proc/self/setgroups", c"deny").map_err(StartFailure::user_namespace)?;
            write_file(c"/proc/self/uid_map", uid_map).map_err(StartFailure::user_namespace)?;
            write_file(c"/proc/self/gid_map", gid_map).map_err(StartFailure::user_namespace)?;
        }
        bring_loopback_up().map_err(StartFailure::loopback)?;
        if self.port.is_some_and(can_connect) {
            return Err(StartFailure::restriction((RestrictionStep::NetworkTest, libc::EPERM)));
        }
        for (fd, (path, _)) in self.fds.iter_mut().zip(NAMESPACES) {
            // SAFETY: a constant C string.
            *fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
            if *fd < 0 {
                return Err(StartFailure::user_namespace(last_errno()));
            }
        }
        Ok(())
    }
}

/// Returns the `uid_map` and `gid_map` that map the user and group to themselves and no others.
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

/// Brings the loopback interface of a new network namespace up.
fn bring_loopback_up() -> Result<(), c_int> {
    // SAFETY: all zeros is a valid request, which lives across the calls; the descriptor is closed
    // where it was made.
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

/// Returns whether a listener on this port of the host's loopback interface can be reached.
fn can_connect(port: u16) -> bool {
    // SAFETY: all zeros is a valid address, which lives across the call; the descriptor is closed
    // where it was made.
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
