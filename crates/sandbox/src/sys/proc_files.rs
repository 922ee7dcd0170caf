//! Reads the small files of `/proc` about processes.
//!
//! Allocates nothing and takes no locks: the first process of a sandbox uses it.

use std::{
    ffi::{c_char, c_int},
    mem,
    os::fd::RawFd,
};

use super::landlock::last_errno;

/// Bytes of a file that are looked at. A `status` is that long for a user in a thousand groups.
const TEXT_BYTES: usize = 8192;

/// Reason why information about a process could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProcReadError {
    /// The process has ended.
    Gone,
    /// Anything else, such as too many open files.
    Failed(c_int),
    /// There is more of it than can be read in time.
    TooMany,
}

impl ProcReadError {
    pub(super) fn from_errno(errno: c_int) -> Self {
        match errno {
            libc::ENOENT | libc::ESRCH => Self::Gone,
            errno => Self::Failed(errno),
        }
    }
}

/// Treats a process that has ended as zero, and passes on every other error.
pub(super) fn unless_gone(result: Result<u64, ProcReadError>) -> Result<u64, ProcReadError> {
    match result {
        Err(ProcReadError::Gone) => Ok(0),
        result => result,
    }
}

/// A directory that is closed when it is dropped.
pub(super) struct ProcDirectory(pub(super) RawFd);

impl ProcDirectory {
    /// Opens a directory; the path ends in a zero.
    pub(super) fn open(path: &[u8]) -> Result<Self, ProcReadError> {
        debug_assert_eq!(path.last(), Some(&0));
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends in a zero.
        match unsafe { libc::open(path.as_ptr().cast::<c_char>(), flags) } {
            ..0 => Err(ProcReadError::from_errno(last_errno())),
            directory => Ok(Self(directory)),
        }
    }

    /// Visits every entry whose name begins with a number.
    pub(super) fn each_number(
        &self,
        mut visit: impl FnMut(u64) -> Result<(), ProcReadError>,
    ) -> Result<(), ProcReadError> {
        let mut buffer = [0_u64; 1024];
        loop {
            let size = mem::size_of_val(&buffer);
            // SAFETY: the buffer is a local of that size.
            let read = unsafe { libc::syscall(libc::SYS_getdents64, self.0, buffer.as_mut_ptr(), size) };
            let read = usize::try_from(read).map_err(|_| ProcReadError::from_errno(last_errno()))?;
            if read == 0 {
                return Ok(());
            }
            // SAFETY: the kernel has filled that many bytes, and any bytes are valid.
            let mut entries = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), read) };
            // A `struct linux_dirent64` is: inode 8, offset 8, length 2, type 1, name.
            while let Some(length) =
                entries.get(16..18).map(|bytes| usize::from(u16::from_ne_bytes([bytes[0], bytes[1]])))
            {
                if let Some(number) = number_at(entries.get(19..length).unwrap_or_default()) {
                    visit(number)?;
                }
                entries = entries.get(length..).unwrap_or_default();
            }
        }
    }
}

impl Drop for ProcDirectory {
    fn drop(&mut self) {
        // SAFETY: it is ours, and is not used afterwards.
        unsafe { libc::close(self.0) };
    }
}

/// Visits every process but the first, collected or not.
pub(super) fn each_pid(mut visit: impl FnMut(u32) -> Result<(), ProcReadError>) -> Result<(), ProcReadError> {
    ProcDirectory::open(b"/proc\0")?.each_number(|pid| match u32::try_from(pid) {
        Ok(pid @ 2..) => visit(pid),
        _ => Ok(()),
    })
}

/// Visits a living thread of every process but the first. The first thread may have ended before
/// the others: then `/proc` shows nothing of the process under its own number, but all of it under
/// that of another thread.
pub(super) fn each_living(
    mut visit: impl FnMut(u32) -> Result<(), ProcReadError>,
) -> Result<(), ProcReadError> {
    each_pid(
        |pid| if is_over(state(pid)) { living_thread(pid)?.map_or(Ok(()), &mut visit) } else { visit(pid) },
    )
}

/// Returns a thread of a process that has not ended.
fn living_thread(pid: u32) -> Result<Option<u32>, ProcReadError> {
    let mut living = None;
    each_thread(pid, |thread| {
        living = living.or_else(|| Some(thread).filter(|thread| !is_over(state(*thread))));
        Ok(())
    })?;
    Ok(living)
}

/// Visits every thread of a process. None if it has ended.
pub(super) fn each_thread(
    pid: u32,
    mut visit: impl FnMut(u32) -> Result<(), ProcReadError>,
) -> Result<(), ProcReadError> {
    let mut path = [0_u8; 40];
    let length = write_path(&mut path[..39], b"/proc/", pid, b"/task");
    let listed = ProcDirectory::open(&path[..=length]).and_then(|directory| {
        directory.each_number(|thread| u32::try_from(thread).map_or(Ok(()), &mut visit))
    });
    match listed {
        Err(ProcReadError::Gone) => Ok(()),
        listed => listed,
    }
}

/// Visits every process but the first that has not ended. What cannot be read is left out.
pub(super) fn each_process(mut visit: impl FnMut(u32)) {
    // For uses that do no harm if a process is left out; counting reads errors itself.
    let _visited = each_pid(|pid| {
        if !is_over(state(pid)) {
            visit(pid);
        }
        Ok(())
    });
}

/// Tells whether a process in this state has ended and only waits to be collected, or is gone.
pub(super) fn is_over(state: u8) -> bool {
    matches!(state, b'Z' | b'X' | 0)
}

/// The letter for what a process does; 0 if it is gone.
pub(super) fn state(pid: u32) -> u8 {
    let mut state = 0;
    let _gone = read(pid, b"/stat", |text| state = state_in(text).unwrap_or(0));
    state
}

/// The state of a process: the third field of its `stat`, of which the second is a name in
/// brackets.
pub(crate) fn state_in(stat: &[u8]) -> Option<u8> {
    after_name(stat)?.first().copied()
}

/// The parent of a process: the fourth field.
pub(crate) fn parent_in(stat: &[u8]) -> Option<u64> {
    nth_number(after_name(stat)?, 1)
}

/// The ticks a process took, and those it has collected: the fourteenth field and the three after
/// it.
pub(crate) fn cpu_ticks_in(stat: &[u8]) -> Option<u64> {
    let fields = after_name(stat)?;
    (11..15).map(|field| nth_number(fields, field)).sum()
}

fn after_name(stat: &[u8]) -> Option<&[u8]> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    stat.get(name_end + 2..)
}

/// A number in a file about a process; 0 if it cannot be read.
pub(super) fn number_in(pid: u32, file: &[u8], pick: impl Fn(&[u8]) -> Option<u64>) -> u64 {
    number(pid, file, pick).unwrap_or(0)
}

/// A number in a file about a process.
pub(super) fn number(
    pid: u32,
    file: &[u8],
    pick: impl Fn(&[u8]) -> Option<u64>,
) -> Result<u64, ProcReadError> {
    let mut found = None;
    read(pid, file, |text| found = pick(text))?;
    found.ok_or(ProcReadError::Failed(libc::EBADMSG))
}

/// Shows the beginning of a file about a process.
pub(super) fn read(pid: u32, file: &[u8], show: impl FnOnce(&[u8])) -> Result<(), ProcReadError> {
    let mut text = [0_u8; TEXT_BYTES];
    let descriptor = open(pid, file)?;
    // SAFETY: the buffer is a local of that length; the descriptor was opened above and is used no
    // more.
    let (read, errno) = unsafe {
        let read = libc::read(descriptor, text.as_mut_ptr().cast(), text.len());
        let errno = last_errno();
        libc::close(descriptor);
        (read, errno)
    };
    let length = usize::try_from(read).map_err(|_| ProcReadError::from_errno(errno))?;
    match text.get(..length) {
        Some(text) if !text.is_empty() => show(text),
        // A file that is empty belongs to a process that ends.
        _ => return Err(ProcReadError::Gone),
    }
    Ok(())
}

/// Opens a file about a process.
pub(super) fn open(pid: u32, file: &[u8]) -> Result<RawFd, ProcReadError> {
    let mut path = [0_u8; 40];
    write_path(&mut path[..39], b"/proc/", pid, file);
    // SAFETY: the path ends in a zero, since its array is longer.
    match unsafe { libc::open(path.as_ptr().cast::<c_char>(), libc::O_RDONLY | libc::O_CLOEXEC) } {
        ..0 => Err(ProcReadError::from_errno(last_errno())),
        descriptor => Ok(descriptor),
    }
}

/// The number at the beginning of a text, if it begins with one.
pub(crate) fn number_at(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut value = None;
    for digit in digits {
        value = Some(value.unwrap_or(0_u64).wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    }
    value
}

/// The number after so many spaces.
pub(crate) fn nth_number(text: &[u8], spaces: usize) -> Option<u64> {
    let mut rest = text;
    for _ in 0..spaces {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        rest = rest.get(space + 1..)?;
    }
    number_at(rest)
}

/// The number behind a label, and blanks.
pub(crate) fn number_after(text: &[u8], label: &[u8]) -> Option<u64> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    number_at(text.get(at + label.len()..)?.trim_ascii_start())
}

/// The set of bits behind a label, in hexadecimal digits.
pub(crate) fn bits_after(text: &[u8], label: &[u8]) -> Option<u64> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    let digits = text.get(at + label.len()..)?;
    let length = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    u64::from_str_radix(std::str::from_utf8(&digits[..length]).ok()?, 16).ok()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_the_kernel_puts_them() {
        let stat = b"7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 42 0 99 1";
        assert_eq!(
            (state_in(stat), parent_in(stat), cpu_ticks_in(stat)),
            (Some(b'S'), Some(1), Some(5 + 6 + 7 + 8))
        );
        assert_eq!(nth_number(b"100 25 3\n", 1), Some(25));
        assert_eq!(
            number_after(b"rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n", b"\nwrite_bytes: "),
            Some(4096)
        );
        assert_eq!(bits_after(b"Q:\t1\nSigBlk:\t0000000000010a00\n", b"\nSigBlk:\t"), Some(0x1_0a00));
        assert_eq!(number_after(b"Name:\tx\nVmSwap:\t      12 kB\n", b"\nVmSwap:"), Some(12));
        assert_eq!((number_at(b"x"), number_at(b"12/x"), nth_number(b"1", 3)), (None, Some(12), None));
    }

    #[test]
    fn paths_with_numbers_are_written_whole_or_cut_between_parts() {
        let mut path = [0; 40];
        let length = write_path(&mut path, b"/proc/", 4_294_967_295, b"/comm");
        assert_eq!(&path[..length], b"/proc/4294967295/comm");
        assert_eq!(write_path(&mut [0; 8], b"/proc/", 1234, b""), 6);
    }

    #[test]
    fn a_process_that_is_gone_is_told_from_one_that_cannot_be_read() {
        let own = std::process::id();
        assert!(number(own, b"/stat", parent_in).is_ok_and(|parent| parent > 0));
        assert_eq!(number(own, b"/stat", |_| None), Err(ProcReadError::Failed(libc::EBADMSG)));
        let never = u32::MAX;
        assert_eq!(number(never, b"/stat", parent_in), Err(ProcReadError::Gone));
        assert_eq!(ProcReadError::from_errno(libc::EMFILE), ProcReadError::Failed(libc::EMFILE));
        assert_eq!(
            unless_gone(Err(ProcReadError::Failed(libc::EMFILE))),
            Err(ProcReadError::Failed(libc::EMFILE))
        );
    }
}
