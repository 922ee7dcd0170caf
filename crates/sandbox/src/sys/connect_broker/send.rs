//! Sends for the caller: `sendto`, `sendmsg`, `sendmmsg`.
//!
//! Every attempt reads the message anew, checks it, and sends what it has read. What another thread
//! of the caller changes meanwhile is either seen and checked, or not sent.

use std::{
    ffi::{c_int, c_void},
    mem, ptr,
};

use super::{
    ConnectAttempt, NetworkNamespace, ResolvedTarget, SocketAddress,
    caller::{self, CallerThread, OwnedDescriptor},
    option,
};
use crate::sys::landlock::last_errno;

pub(crate) mod control;

use control::ControlData;

/// The most pieces a message may have (`UIO_MAXIOV`).
const UIO_MAXIOV: usize = 1024;

/// Bytes sent at once. No local datagram is longer; a stream goes on with the next piece.
const MAX_DATA_BYTES: usize = 512 * 1024;

/// Maximum number of pieces of a stream that are sent before other work is done.
const MAX_PIECES: usize = 4;

/// `struct user_msghdr` of the kernel's `<linux/socket.h>`.
#[repr(C)]
#[derive(Clone, Copy)]
struct UserMsghdr {
    msg_name: u64,
    msg_namelen: u32,
    pad: u32,
    msg_iov: u64,
    msg_iovlen: u64,
    msg_control: u64,
    msg_controllen: u64,
    msg_flags: u32,
    pad_end: u32,
}

const USER_MSGHDR_BYTES: usize = mem::size_of::<UserMsghdr>();

/// Memory for one message, mapped for the first.
pub(super) struct SendBuffers(*mut MessageBuffers);

struct MessageBuffers {
    vector: [libc::iovec; UIO_MAXIOV],
    control: ControlData,
    data: [u8; MAX_DATA_BYTES],
}

impl SendBuffers {
    pub(super) fn new() -> Self {
        Self(ptr::null_mut())
    }

    fn get(&mut self) -> Option<&mut MessageBuffers> {
        if self.0.is_null() {
            let (rights, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
            let size = mem::size_of::<MessageBuffers>();
            // SAFETY: asks for new memory and takes none away.
            let place = unsafe { libc::mmap(ptr::null_mut(), size, rights, flags, -1, 0) };
            if place == libc::MAP_FAILED {
                return None;
            }
            self.0 = place.cast();
        }
        // SAFETY: it was mapped above with the size of the structure, aligned to a page and filled
        // with zeros, which are a valid value of it; it is never unmapped, and `self` is borrowed
        // for as long as what is given.
        unsafe { self.0.as_mut() }
    }
}

/// A message as the caller has described it. Numbers are addresses in its memory.
struct UserMessage {
    socket: u64,
    flags: c_int,
    name: Option<(u64, u64)>,
    control: (u64, u64),
    /// Address and length of the `iovec` array; `None` for the one piece of `sendto`.
    vector: Option<(u64, u64)>,
    piece: libc::iovec,
}

impl UserMessage {
    fn read(caller: &CallerThread) -> Result<Self, c_int> {
        let [socket, second, third, fourth, name, name_length] = caller.arguments();
        // The kernel takes an `int`.
        let flags = |word: u64| u32::try_from(word & u64::from(u32::MAX)).unwrap_or(0).cast_signed();
        let none = libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 };
        match i64::from(caller.number()) {
            libc::SYS_sendto => Ok(Self {
                socket,
                flags: flags(fourth),
                name: (name_length != 0).then_some((name, name_length)),
                control: (0, 0),
                vector: None,
                piece: caller::remote(second, usize::try_from(third).map_err(|_| libc::EINVAL)?)?,
            }),
            libc::SYS_sendmsg => Self::described(caller, second, socket, flags(third), none),
            libc::SYS_sendmmsg => Self::described(caller, second, socket, flags(fourth), none),
            _ => Err(libc::ENOSYS),
        }
    }

    fn described(
        caller: &CallerThread,
        at: u64,
        socket: u64,
        flags: c_int,
        piece: libc::iovec,
    ) -> Result<Self, c_int> {
        let mut bytes = [0_u8; USER_MSGHDR_BYTES];
        caller.read(at, &mut bytes)?;
        // SAFETY: the structure is plain numbers, so any bytes are valid, and the array has its
        // size.
        let header: UserMsghdr = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
        let has_name = header.msg_name != 0 && header.msg_namelen != 0;
        Ok(Self {
            socket,
            flags,
            name: has_name.then_some((header.msg_name, u64::from(header.msg_namelen))),
            control: (header.msg_control, header.msg_controllen),
            vector: Some((header.msg_iov, header.msg_iovlen)),
            piece,
        })
    }

    /// Copies the description of the pieces; how many there are, and how long they are together.
    fn read_vector(&self, caller: &CallerThread, to: &mut [libc::iovec]) -> Result<(usize, usize), c_int> {
        let count = match self.vector {
            None => {
                to[0] = self.piece;
                1
            }
            Some((at, count)) => {
                let count = usize::try_from(count).map_err(|_| libc::EMSGSIZE)?;
                let places = to.get_mut(..count).ok_or(libc::EMSGSIZE)?;
                let size = mem::size_of_val(places);
                // SAFETY: the slice is that long, and any bytes are valid in it: pointers there are
                // never followed.
                let bytes = unsafe { std::slice::from_raw_parts_mut(places.as_mut_ptr().cast(), size) };
                caller.read(at, bytes)?;
                count
            }
        };
        let mut total = 0_usize;
        for piece in &to[..count] {
            total = total
                .checked_add(piece.iov_len)
                .filter(|total| isize::try_from(*total).is_ok())
                .ok_or(libc::EINVAL)?;
        }
        Ok((count, total))
    }
}

/// Sends a message, from the byte on that is to come next.
pub(super) fn send(
    caller: &CallerThread,
    network: NetworkNamespace,
    buffers: &mut SendBuffers,
    progress: usize,
) -> ConnectAttempt {
    let Some(buffers) = buffers.get() else { return ConnectAttempt::Done(Err(libc::ENOBUFS)) };
    let mut destination = None;
    let attempt = match try_send(caller, network, buffers, (progress, &mut destination)) {
        Ok(ConnectAttempt::Done(Ok(sent))) => ConnectAttempt::Done(finish(caller, sent)),
        Ok(attempt) => attempt,
        Err(errno) => ConnectAttempt::Done(Err(errno)),
    };
    attempt.mark_offline(destination, network)
}

/// The result of a call that has sent so many bytes. `sendmmsg` has sent one message.
pub(super) fn finish(caller: &CallerThread, sent: usize) -> Result<usize, c_int> {
    if i64::from(caller.number()) != libc::SYS_sendmmsg {
        return Ok(sent);
    }
    let at = caller.arguments()[1].saturating_add(USER_MSGHDR_BYTES as u64);
    caller.write_number(at, u32::try_from(sent).map_err(|_| libc::EINVAL)?)?;
    Ok(1)
}

fn try_send(
    caller: &CallerThread,
    network: NetworkNamespace,
    buffers: &mut MessageBuffers,
    (progress, destination): (usize, &mut Option<SocketAddress>),
) -> Result<ConnectAttempt, c_int> {
    if i64::from(caller.number()) == libc::SYS_sendmmsg && caller.arguments()[2] & u64::from(u32::MAX) == 0 {
        return Ok(ConnectAttempt::Done(Ok(0)));
    }
    let message = UserMessage::read(caller)?;
    // Nothing would tell the caller when its memory is free again.
    if message.flags & libc::MSG_ZEROCOPY != 0 {
        return Err(libc::ENOBUFS);
    }
    let socket = caller.descriptor(message.socket)?;
    let outgoing = OutgoingMessage::new(caller, network, &message, socket)?;
    let outgoing = match outgoing {
        Ok(outgoing) => outgoing,
        Err(foreign) => return Ok(ConnectAttempt::Refused(foreign)),
    };
    *destination = outgoing.destination;
    outgoing.send(caller, &message, buffers, progress)
}

/// A checked destination and the socket to send on.
struct OutgoingMessage {
    socket: OwnedDescriptor,
    family: c_int,
    is_stream: bool,
    waits: bool,
    destination: Option<SocketAddress>,
    /// Keeps the file of the destination open.
    _file: Option<OwnedDescriptor>,
}

impl OutgoingMessage {
    /// Checks the destination; gives its address if it is not the command's own.
    fn new(
        caller: &CallerThread,
        network: NetworkNamespace,
        message: &UserMessage,
        socket: OwnedDescriptor,
    ) -> Result<Result<Self, SocketAddress>, c_int> {
        let family = option(socket.0, libc::SO_DOMAIN)?;
        let name = message.name.map(|(at, length)| caller.address(at, length)).transpose()?;
        caller.check_valid()?;
        let (destination, file) = match name {
            None => (None, None),
            Some(name) => match name.resolve(caller, family, network)? {
                ResolvedTarget::Address(address) => (Some(address), None),
                ResolvedTarget::Own(file) => (Some(SocketAddress::through(file.0)), Some(file)),
                ResolvedTarget::Foreign => return Ok(Err(name)),
            },
        };
        let is_stream = option(socket.0, libc::SO_TYPE)? == libc::SOCK_STREAM;
        let waits = message.flags & libc::MSG_DONTWAIT == 0 && caller::blocks(socket.0)?;
        Ok(Ok(Self { socket, family, is_stream, waits, destination, _file: file }))
    }

    fn send(
        &self,
        caller: &CallerThread,
        message: &UserMessage,
        buffers: &mut MessageBuffers,
        progress: usize,
    ) -> Result<ConnectAttempt, c_int> {
        let mut sent = progress;
        for _ in 0..MAX_PIECES {
            let (count, total) = message.read_vector(caller, &mut buffers.vector)?;
            if !self.is_stream && total > MAX_DATA_BYTES {
                return Err(libc::EMSGSIZE);
            }
            let rest = skip(&mut buffers.vector[..count], sent);
            let length = total.saturating_sub(sent).min(MAX_DATA_BYTES);
            let data = &mut buffers.data[..length];
            if caller.read_vector(rest, data)? != length {
                return Err(libc::EFAULT);
            }
            // What goes along with a message goes with its first byte.
            let control = if sent == 0 { message.control } else { (0, 0) };
            match self.send_piece(caller, data, (control, message.flags), &mut buffers.control) {
                Ok(more) => sent += more,
                Err(libc::EAGAIN) if self.waits => return Ok(ConnectAttempt::WouldBlock { progress: sent }),
                Err(errno) if sent == 0 => return Err(errno),
                Err(_) => return Ok(ConnectAttempt::Done(Ok(sent))),
            }
            if !self.is_stream || sent >= total || !self.waits {
                return Ok(ConnectAttempt::Done(Ok(sent)));
            }
        }
        Ok(ConnectAttempt::WouldBlock { progress: sent })
    }

    fn send_piece(
        &self,
        caller: &CallerThread,
        data: &[u8],
        ((at, length), flags): ((u64, u64), c_int),
        control: &mut ControlData,
    ) -> Result<usize, c_int> {
        let is_local = self.family == libc::AF_UNIX;
        control.prepare(caller, at, length, is_local)?;
        let send = || {
            caller.check_valid()?;
            self.send_message(data, control, flags | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL)
        };
        // A local socket needs them to say who the caller is (`SCM_CREDENTIALS`), which was
        // checked.
        let result = if is_local { send() } else { caller::without_capabilities(send) };
        control.close_passed();
        if result == Err(libc::EPIPE) && self.is_stream && flags & libc::MSG_NOSIGNAL == 0 {
            // SAFETY: takes numbers only; the caller still waits.
            unsafe { libc::syscall(libc::SYS_tkill, caller.thread(), libc::SIGPIPE) };
        }
        result
    }

    fn send_message(&self, data: &[u8], control: &ControlData, flags: c_int) -> Result<usize, c_int> {
        let mut piece =
            libc::iovec { iov_base: data.as_ptr().cast_mut().cast::<c_void>(), iov_len: data.len() };
        let control = control.bytes();
        // SAFETY: all zeros is a valid value. The name, the piece and the control data live across
        // the call, are as long as said, and are only read.
        let sent = unsafe {
            let mut message: libc::msghdr = mem::zeroed();
            if let Some(destination) = &self.destination {
                message.msg_name = destination.bytes.as_ptr().cast_mut().cast();
                message.msg_namelen = libc::socklen_t::try_from(destination.length).unwrap_or(0);
            }
            message.msg_iov = &raw mut piece;
            message.msg_iovlen = 1;
            message.msg_control = control.as_ptr().cast_mut().cast();
            message.msg_controllen = control.len() as _;
            libc::sendmsg(self.socket.0, &raw const message, flags)
        };
        usize::try_from(sent).map_err(|_| last_errno())
    }
}

/// The pieces behind so many bytes.
fn skip(mut pieces: &mut [libc::iovec], mut bytes: usize) -> &[libc::iovec] {
    while let [first, ..] = pieces
        && bytes >= first.iov_len
        && bytes > 0
    {
        bytes -= first.iov_len;
        pieces = pieces.split_at_mut(1).1;
    }
    if let [first, ..] = pieces {
        first.iov_base = first.iov_base.wrapping_byte_add(bytes);
        first.iov_len -= bytes;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(lengths: &[usize]) -> Vec<libc::iovec> {
        let piece =
            |length: &usize| libc::iovec { iov_base: ptr::without_provenance_mut(1000), iov_len: *length };
        lengths.iter().map(piece).collect()
    }

    #[test]
    fn a_stream_goes_on_behind_the_bytes_that_are_sent() {
        let rest = |lengths: &[usize], bytes| {
            let mut pieces = pieces(lengths);
            skip(&mut pieces, bytes)
                .iter()
                .map(|piece| (piece.iov_base.addr(), piece.iov_len))
                .collect::<Vec<_>>()
        };
        assert_eq!(rest(&[4, 0, 6], 0), [(1000, 4), (1000, 0), (1000, 6)]);
        assert_eq!(rest(&[4, 0, 6], 3), [(1003, 1), (1000, 0), (1000, 6)]);
        assert_eq!(rest(&[4, 0, 6], 4), [(1000, 0), (1000, 6)]);
        assert_eq!(rest(&[4, 0, 6], 7), [(1003, 3)]);
        assert_eq!(rest(&[4, 0, 6], 10), []);
    }
}
