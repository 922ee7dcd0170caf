//! Control data of a message (`cmsg(3)`): descriptors are replaced by duplicates of the caller's,
//! credentials are the caller's own.

use std::{ffi::c_int, mem, os::fd::RawFd};

use crate::sys::connect_broker::caller::{CallerThread, OwnedDescriptor};

/// Maximum size of the control data of one message. `SCM_MAX_FD` descriptors take 1 KiB.
pub(crate) const MAX_CONTROL_BYTES: usize = 4096;

/// Maximum number of descriptors that can be passed at once, as in `<net/scm.h>`.
const SCM_MAX_FD: usize = 253;

const CMSGHDR_BYTES: usize = mem::size_of::<libc::cmsghdr>();
const ALIGNMENT: usize = mem::align_of::<libc::cmsghdr>();
const UCRED_BYTES: usize = mem::size_of::<libc::ucred>();
const INT_BYTES: usize = mem::size_of::<c_int>();

/// Control data under preparation, aligned as the kernel wants it.
#[repr(C, align(8))]
pub(crate) struct ControlData {
    bytes: [u8; MAX_CONTROL_BYTES],
    length: usize,
    passed: [RawFd; SCM_MAX_FD],
    passed_count: usize,
}

/// One header, with the data behind it.
struct ControlHeader {
    at: usize,
    end: usize,
    level: c_int,
    kind: c_int,
}

impl ControlData {
    /// Takes control data, of which no more than [`MAX_CONTROL_BYTES`] are kept.
    #[cfg(any(test, fuzzing))]
    pub(crate) fn from_bytes(data: &[u8]) -> Self {
        let mut bytes = [0; MAX_CONTROL_BYTES];
        let length = data.len().min(bytes.len());
        bytes[..length].copy_from_slice(&data[..length]);
        Self { bytes, length, passed: [-1; SCM_MAX_FD], passed_count: 0 }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Copies the caller's control data and makes it ours. Without a local socket only its form is
    /// checked: the kernel ignores descriptors and credentials there. Must be followed by
    /// [`close_passed`](Self::close_passed).
    pub(super) fn prepare(
        &mut self,
        caller: &CallerThread,
        at: u64,
        length: u64,
        is_local: bool,
    ) -> Result<(), c_int> {
        let length = usize::try_from(length).map_err(|_| libc::ENOBUFS)?;
        (self.length, self.passed_count) = (length, 0);
        let copied = self.bytes.get_mut(..length).ok_or(libc::ENOBUFS)?;
        caller.read(at, copied)?;
        if !is_local {
            return Ok(());
        }
        let process = caller.process()?;
        let translated = self.translate(process, |numbers, to| caller.descriptors(numbers, to));
        if translated.is_err() {
            self.close_passed();
        }
        translated
    }

    /// Closes the duplicates of what was passed on.
    pub(super) fn close_passed(&mut self) {
        let count = mem::take(&mut self.passed_count);
        self.passed[..count].iter().for_each(|descriptor| drop(OwnedDescriptor(*descriptor)));
    }

    /// Makes the control data of a process ours. `duplicate` puts duplicates of its descriptors,
    /// which come as bytes, into the array, and returns how many.
    pub(crate) fn translate(
        &mut self,
        process: u32,
        mut duplicate: impl FnMut(&[u8], &mut [RawFd]) -> Result<usize, c_int>,
    ) -> Result<(), c_int> {
        let (mut at, mut has_credentials) = (0, false);
        while self.length.saturating_sub(at) >= CMSGHDR_BYTES {
            let header = self.header(at)?;
            match (header.level, header.kind) {
                (libc::SOL_SOCKET, libc::SCM_RIGHTS) => self.replace_descriptors(&header, &mut duplicate)?,
                (libc::SOL_SOCKET, libc::SCM_CREDENTIALS) => {
                    self.check_credentials(&header, process)?;
                    has_credentials = true;
                }
                _ => {}
            }
            at = header.end.next_multiple_of(ALIGNMENT);
        }
        // The kernel ignores what is too short for a header. With more behind it, it would be one,
        // and hide what is added.
        self.length = self.length.min(at);
        if has_credentials { Ok(()) } else { self.add_credentials(process) }
    }

    fn header(&self, at: usize) -> Result<ControlHeader, c_int> {
        let word = |at: usize| self.bytes.get(at..at + INT_BYTES)?.try_into().ok().map(c_int::from_ne_bytes);
        let length =
            self.bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map(u64::from_ne_bytes);
        let length = length.and_then(|length| usize::try_from(length).ok()).ok_or(libc::EINVAL)?;
        let end = at.checked_add(length).ok_or(libc::EINVAL)?;
        if length < CMSGHDR_BYTES || end > self.length {
            return Err(libc::EINVAL);
        }
        let (level, kind) = (word(at + 8).ok_or(libc::EINVAL)?, word(at + 12).ok_or(libc::EINVAL)?);
        Ok(ControlHeader { at: at + CMSGHDR_BYTES, end, level, kind })
    }

    /// Puts duplicates in the place of the caller's descriptors.
    fn replace_descriptors(
        &mut self,
        header: &ControlHeader,
        duplicate: &mut impl FnMut(&[u8], &mut [RawFd]) -> Result<usize, c_int>,
    ) -> Result<(), c_int> {
        let numbers = &mut self.bytes[header.at..header.end];
        let room = &mut self.passed[self.passed_count..];
        if numbers.len() / INT_BYTES > room.len() {
            return Err(libc::EINVAL);
        }
        let count = duplicate(numbers, room)?;
        for (number, descriptor) in numbers.chunks_exact_mut(INT_BYTES).zip(&room[..count]) {
            number.copy_from_slice(&descriptor.to_ne_bytes());
        }
        self.passed_count += count;
        Ok(())
    }

    /// A process may only say that it is itself. There is one user and one group in its namespace.
    fn check_credentials(&self, header: &ControlHeader, process: u32) -> Result<(), c_int> {
        let said = self.bytes[header.at..header.end].get(..INT_BYTES).and_then(|pid| pid.try_into().ok());
        if said.map(u32::from_ne_bytes) == Some(process) { Ok(()) } else { Err(libc::EPERM) }
    }

    /// Says who the caller is, since we are who sends: for receivers with `SO_PASSCRED`.
    fn add_credentials(&mut self, process: u32) -> Result<(), c_int> {
        let begin = self.length.next_multiple_of(ALIGNMENT);
        let end = begin + CMSGHDR_BYTES + UCRED_BYTES;
        let place = self.bytes.get_mut(begin..end).ok_or(libc::ENOBUFS)?;
        // SAFETY: both take nothing and give a number.
        let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
        let length = (CMSGHDR_BYTES + UCRED_BYTES) as u64;
        let words =
            [libc::SOL_SOCKET.cast_unsigned(), libc::SCM_CREDENTIALS.cast_unsigned(), process, user, group];
        place[..8].copy_from_slice(&length.to_ne_bytes());
        for (to, word) in place[8..].chunks_exact_mut(INT_BYTES).zip(words) {
            to.copy_from_slice(&word.to_ne_bytes());
        }
        self.length = begin + (CMSGHDR_BYTES + UCRED_BYTES).next_multiple_of(ALIGNMENT);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header with so much data behind it as it says, or not.
    fn message(length: u64, data: &[u8]) -> Vec<u8> {
        let words = [libc::SOL_SOCKET, libc::SCM_CREDENTIALS].map(c_int::to_ne_bytes).concat();
        [&length.to_ne_bytes()[..], &words, data].concat()
    }

    #[test]
    fn a_header_that_reaches_beyond_the_data_is_refused() {
        assert_eq!(
            ControlData::from_bytes(&message(20, &[0; 4])).header(0).map(|header| (header.at, header.end)),
            Ok((16, 20))
        );
        for length in [0, 15, 21, u64::MAX] {
            assert_eq!(
                ControlData::from_bytes(&message(length, &[0; 4])).header(0).map(|header| header.end),
                Err(libc::EINVAL)
            );
        }
    }

    #[test]
    fn a_process_says_that_it_is_itself_or_nothing() {
        let own = ControlData::from_bytes(&message(28, &[7_u32, 0, 0].map(u32::to_ne_bytes).concat()));
        let header = own.header(0).unwrap();
        assert_eq!(
            (own.check_credentials(&header, 7), own.check_credentials(&header, 8)),
            (Ok(()), Err(libc::EPERM))
        );
    }

    #[test]
    fn the_beginning_of_a_header_does_not_hide_the_credentials_behind_it() {
        let mut control = ControlData::from_bytes(&40_u64.to_ne_bytes());
        control.translate(77, |_, _| Ok(0)).unwrap();
        let added = control.header(0).unwrap();
        assert_eq!((control.length, added.level, added.kind), (32, libc::SOL_SOCKET, libc::SCM_CREDENTIALS));
        assert_eq!(control.check_credentials(&added, 77), Ok(()));
    }

    #[test]
    fn credentials_are_added_behind_what_is_there() {
        let mut control = ControlData::from_bytes(&message(20, &[9; 4]));
        control.add_credentials(77).unwrap();
        let added = control.header(24).unwrap();
        assert_eq!((control.length, added.kind), (56, libc::SCM_CREDENTIALS));
        assert_eq!(control.check_credentials(&added, 77), Ok(()));
    }
}
