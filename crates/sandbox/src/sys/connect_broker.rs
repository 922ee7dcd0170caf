//! Brokers the calls of a command that carry the address of a socket: `connect`, `sendto`,
//! `sendmsg`, `sendmmsg`. The filter puts them before PID 1 of the sandbox by user notification.
//!
//! A local socket is reached by a path, and neither read-only mounts nor a network namespace keep
//! anyone from one that belongs to a program outside. A filter cannot read paths, and what a
//! pointer or a descriptor leads to can change after it was looked at. So no call is let through
//! (`SECCOMP_USER_NOTIF_FLAG_CONTINUE`): PID 1 performs it with its own copy of the address, on its
//! own duplicate of the caller's socket.
//!
//! PID 1 never blocks here. What cannot be done at once is tried again later, with all its checks,
//! until the caller is gone or a deadline passes.

use std::{ffi::c_int, mem, os::fd::RawFd, ptr};

use super::{landlock::last_errno, shared_namespaces::NetworkNamespace};

pub(crate) mod address;
mod caller;
pub(crate) mod send;
mod sock_diag;

use address::{ResolvedTarget, SocketAddress};
use caller::CallerThread;
use send::SendBuffers;

/// Maximum number of calls that may wait at the same time. One more fails with `EAGAIN`.
const MAX_PENDING: usize = 64;

/// Time between two attempts: doubles from the first to the last while nothing happens.
const FIRST_RETRY_MILLIS: i64 = 1;
const LAST_RETRY_MILLIS: i64 = 16;

/// Time after which a blocking `connect` fails. The kernel gives up on TCP after 127 s itself.
const CONNECT_DEADLINE_MILLIS: i64 = 130_000;

/// The error of a refused call.
const REFUSED: c_int = libc::EACCES;

/// The longest address, as in `struct sockaddr_storage`.
pub(crate) const MAX_ADDRESS_BYTES: usize = 128;

/// A broker for one listener.
pub(super) struct ConnectBroker {
    listener: RawFd,
    network: NetworkNamespace,
    pending: [Option<PendingCall>; MAX_PENDING],
    buffers: SendBuffers,
}

/// A call that could not be finished yet.
#[derive(Clone, Copy)]
struct PendingCall {
    notification: libc::seccomp_notif,
    /// Bytes of a stream that are already sent; for `connect`, 1 once it has begun.
    progress: usize,
    next_try: i64,
    pause: i64,
    deadline: i64,
}

/// The outcome of one attempt.
enum ConnectAttempt {
    Done(Result<usize, c_int>),
    /// Would have blocked, and the caller's socket does block.
    WouldBlock {
        progress: usize,
    },
    /// Was refused: the target is not the command's own.
    Refused(SocketAddress),
    /// Led out of the session's own network, where nothing answers.
    Offline(SocketAddress, Result<usize, c_int>),
}

impl ConnectAttempt {
    /// Returns the attempt, marked if its address leads out of the session's own network.
    fn mark_offline(self, address: Option<SocketAddress>, network: NetworkNamespace) -> Self {
        match (self, address) {
            (Self::Done(result), Some(address))
                if network == NetworkNamespace::Own && address.leads_outside() =>
            {
                Self::Offline(address, result)
            }
            (attempt, _) => attempt,
        }
    }
}

/// The start of an internet address: a `struct sockaddr_in6` is no longer.
pub(super) type InternetAddress = [u8; mem::size_of::<libc::sockaddr_in6>()];

/// Refused calls, for the report.
#[derive(Default)]
pub(super) struct RefusedCalls {
    pub(super) count: u32,
    pub(super) first: Option<[u8; MAX_ADDRESS_BYTES]>,
    /// The first address outside of the session's own network; a name server's only if there is no
    /// other.
    pub(super) offline: Option<SocketAddress>,
}

impl RefusedCalls {
    fn note_offline(&mut self, address: SocketAddress) {
        if self.offline.is_none_or(|noted| noted.is_name_server() && !address.is_name_server()) {
            self.offline = Some(address);
        }
    }
}

impl ConnectBroker {
    pub(super) fn new(listener: RawFd, network: NetworkNamespace) -> Self {
        Self { listener, network, pending: [None; MAX_PENDING], buffers: SendBuffers::new() }
    }

    /// Returns the descriptor to wait on; -1 when all who could call are gone.
    pub(super) fn listener(&self) -> RawFd {
        self.listener
    }

    /// Forgets the listener: every process under the filter is ending.
    pub(super) fn close(&mut self) {
        self.listener = -1;
        self.pending = [None; MAX_PENDING];
    }

    /// Returns the time of the next attempt, if any call waits for one.
    pub(super) fn due(&self) -> i64 {
        self.pending.iter().flatten().map(|call| call.next_try).min().unwrap_or(i64::MAX)
    }

    /// Takes the next call from the listener, which must be readable, and performs it.
    pub(super) fn receive(&mut self, now: i64, refusals: &mut RefusedCalls) {
        // SAFETY: all zeros is a valid value of this plain structure, and what the kernel wants to
        // find there.
        let mut notification: libc::seccomp_notif = unsafe { mem::zeroed() };
        // SAFETY: the structure is as the kernel defines it and lives across the call.
        let received =
            unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut notification) };
        if received < 0 {
            return;
        }
        let call = PendingCall {
            notification,
            progress: 0,
            next_try: now,
            pause: FIRST_RETRY_MILLIS,
            deadline: i64::MAX,
        };
        if let Some(waiting) = self.attempt(call, now, refusals) {
            match self.pending.iter_mut().find(|slot| slot.is_none()) {
                Some(slot) => *slot = Some(waiting),
                None => self.give_up(&waiting, libc::EAGAIN),
            }
        }
    }

    /// Tries again what is due.
    pub(super) fn retry(&mut self, now: i64, refusals: &mut RefusedCalls) {
        for index in 0..MAX_PENDING {
            if let Some(call) = self.pending[index].filter(|call| call.next_try <= now) {
                self.pending[index] = self.attempt(call, now, refusals);
            }
        }
    }

    /// Performs a call and answers it; or gives it back to be tried again.
    fn attempt(&mut self, call: PendingCall, now: i64, refusals: &mut RefusedCalls) -> Option<PendingCall> {
        let caller = CallerThread::new(self.listener, call.notification);
        let attempt = if i64::from(caller.number()) == libc::SYS_connect {
            connect(&caller, self.network, call.progress > 0)
        } else {
            send::send(&caller, self.network, &mut self.buffers, call.progress)
        };
        match attempt {
            ConnectAttempt::Done(result) => self.answer(&call.notification, result),
            ConnectAttempt::Refused(address) => {
                refusals.count += 1;
                refusals.first.get_or_insert(address.bytes);
                self.answer(&call.notification, Err(REFUSED));
            }
            ConnectAttempt::Offline(address, result) => {
                refusals.note_offline(address);
                self.answer(&call.notification, result);
            }
            ConnectAttempt::WouldBlock { progress } => {
                if !caller.is_valid() {
                    return None;
                }
                let waiting = call.put_off(&caller, progress, now);
                if caller.has_signal() {
                    self.give_up(&waiting, libc::EINTR);
                } else if now < waiting.deadline {
                    return Some(waiting);
                } else {
                    self.give_up(&waiting, caller.timeout_error());
                }
            }
        }
        None
    }

    /// Answers a call that is not tried again: with the bytes a stream has taken, or with the
    /// error.
    fn give_up(&self, call: &PendingCall, errno: c_int) {
        let caller = CallerThread::new(self.listener, call.notification);
        let is_connect = i64::from(caller.number()) == libc::SYS_connect;
        let result = match call.progress {
            sent if sent > 0 && !is_connect => send::finish(&caller, sent),
            _ => Err(errno),
        };
        self.answer(&call.notification, result);
    }

    /// Answers a call. If the caller is gone by now, the answer is not missed.
    fn answer(&self, notification: &libc::seccomp_notif, result: Result<usize, c_int>) {
        let (val, error) = match result {
            Ok(count) => (i64::try_from(count).unwrap_or(i64::MAX), 0),
            Err(errno) => (0, -errno),
        };
        let response = libc::seccomp_notif_resp { id: notification.id, val, error, flags: 0 };
        // SAFETY: the structure is as the kernel defines it and lives across the call.
        unsafe { libc::ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const response) };
    }
}

impl PendingCall {
    /// The same call, to be tried again.
    fn put_off(self, caller: &CallerThread, progress: usize, now: i64) -> Self {
        let pause = if progress > self.progress { FIRST_RETRY_MILLIS } else { self.pause };
        let deadline = if self.deadline == i64::MAX { caller.deadline(now) } else { self.deadline };
        let next_pause = (pause * 2).min(LAST_RETRY_MILLIS);
        Self { progress, next_try: now.saturating_add(pause), pause: next_pause, deadline, ..self }
    }
}

/// Connects the caller's socket, without waiting.
fn connect(caller: &CallerThread, network: NetworkNamespace, has_begun: bool) -> ConnectAttempt {
    match try_connect(caller, network, has_begun) {
        Ok(attempt) => attempt,
        Err(errno) => ConnectAttempt::Done(Err(errno)),
    }
}

fn try_connect(
    caller: &CallerThread,
    network: NetworkNamespace,
    has_begun: bool,
) -> Result<ConnectAttempt, c_int> {
    let [socket, address, length, ..] = caller.arguments();
    let socket = caller.descriptor(socket)?;
    let address = caller.address(address, length)?;
    caller.check_valid()?;
    let (family, blocks) = (option(socket.0, libc::SO_DOMAIN)?, caller::blocks(socket.0)?);
    // The file stays open until it is connected to: the address leads through its descriptor.
    let target = address.resolve(caller, family, network)?;
    let target_address = match &target {
        ResolvedTarget::Address(address) => *address,
        ResolvedTarget::Own(file) => SocketAddress::through(file.0),
        ResolvedTarget::Foreign => return Ok(ConnectAttempt::Refused(address)),
    };
    let connected = without_waiting(socket.0, blocks, || {
        caller::without_capabilities(|| {
            match target_address.connect(socket.0) {
                // On a loopback it is there by now.
                Err(libc::EINPROGRESS) if blocks => target_address.connect(socket.0),
                result => result,
            }
        })
    })?;
    drop(target);
    let attempt = match connected {
        Err(libc::EAGAIN) if blocks && family == libc::AF_UNIX => ConnectAttempt::WouldBlock { progress: 0 },
        Err(libc::EALREADY | libc::EINPROGRESS) if blocks => ConnectAttempt::WouldBlock { progress: 1 },
        Err(libc::EISCONN) if has_begun => ConnectAttempt::Done(Ok(0)),
        result => ConnectAttempt::Done(result.map(|()| 0)),
    };
    Ok(attempt.mark_offline(Some(target_address), network))
}

/// Does something while a socket does not block. Whether it does is a property that the caller
/// shares, so it is put back at once.
fn without_waiting<T>(socket: RawFd, blocks: bool, act: impl FnOnce() -> T) -> Result<T, c_int> {
    if !blocks {
        return Ok(act());
    }
    let flags = caller::flags(socket)?;
    caller::set_flags(socket, flags | libc::O_NONBLOCK)?;
    let result = act();
    caller::set_flags(socket, flags)?;
    Ok(result)
}

/// Reads an option of a socket that is an `int`.
fn option(socket: RawFd, name: c_int) -> Result<c_int, c_int> {
    let mut value: c_int = 0;
    let mut size: libc::socklen_t = 4;
    // SAFETY: both are locals of the sizes the call expects.
    let got = unsafe {
        libc::getsockopt(socket, libc::SOL_SOCKET, name, ptr::from_mut(&mut value).cast(), &raw mut size)
    };
    if got < 0 { Err(last_errno()) } else { Ok(value) }
}
