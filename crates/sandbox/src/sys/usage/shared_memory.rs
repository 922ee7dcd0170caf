//! Memory that belongs to no process alone: memfds, shared mappings, files in tmpfs.

use std::{
    cell::Cell,
    ffi::{CStr, c_int},
    mem,
    os::fd::RawFd,
};

use super::{
    super::{
        landlock::last_errno,
        proc_files::{self, ProcDirectory, ProcReadError, number_at, unless_gone, write_path},
    },
    BLOCK_BYTES,
};
use crate::denials::{MAX_DESCRIPTORS, MAX_MAPPINGS};

/// Maximum number of distinct objects. More are counted once for each process.
const MAX_OBJECTS: usize = 512;

/// Descriptors that are looked at one by one, where a process hides its list of them.
const MAX_HIDDEN_DESCRIPTORS: u64 = 4096;

/// `KCMP_FILES` of `<linux/kcmp.h>` and `PIDFD_THREAD` of `<linux/pidfd.h>`, which `libc` does not
/// have.
const KCMP_FILES: c_int = 2;
const PIDFD_THREAD: c_int = libc::O_EXCL;

/// Bytes that the kernel takes for a file in tmpfs without its content: the file, its name, and the
/// unit in which it counts extended attributes (`BOGO_INODE_SIZE`).
const INODE_BYTES: u64 = 1024;

/// Objects on the kernel's own tmpfs, where memfds and shared mappings are.
pub(super) struct SharedMemory {
    /// The device of that tmpfs; 0 before the first round.
    device: u64,
    objects: [MemoryObject; MAX_OBJECTS],
    count: usize,
    /// Bytes of those that did not fit.
    overflow_bytes: u64,
    round: u32,
    /// Numbers of descriptors and mappings that this round may still visit.
    descriptors_left: u32,
    mappings_left: u32,
}

/// One object. It is remembered as large as it was seen, for as long as it is seen: of one that is
/// only mapped, just the mapping can be measured.
#[derive(Clone, Copy)]
struct MemoryObject {
    inode: u64,
    bytes: u64,
    /// The last round in which it was seen; and in which it was open, so that its size is known.
    seen: u32,
    measured: u32,
}

impl SharedMemory {
    pub(super) fn new() -> Self {
        let nothing = MemoryObject { inode: 0, bytes: 0, seen: 0, measured: 0 };
        Self {
            device: 0,
            objects: [nothing; MAX_OBJECTS],
            count: 0,
            overflow_bytes: 0,
            round: 0,
            descriptors_left: 0,
            mappings_left: 0,
        }
    }

    /// Begins a round.
    pub(super) fn begin(&mut self) -> Result<(), ProcReadError> {
        if self.device == 0 {
            self.device = device_of_memfds()?;
        }
        // What was not seen in the last round is gone.
        let mut kept = 0;
        for at in 0..self.count {
            if self.objects[at].seen == self.round {
                self.objects[kept] = self.objects[at];
                kept += 1;
            }
        }
        (self.count, self.overflow_bytes) = (kept, 0);
        self.round = self.round.wrapping_add(1);
        (self.descriptors_left, self.mappings_left) = (MAX_DESCRIPTORS, MAX_MAPPINGS);
        Ok(())
    }

    /// Bytes of all objects seen in this round.
    pub(super) fn bytes(&self) -> u64 {
        let seen = self.objects[..self.count].iter().filter(|object| object.seen == self.round);
        seen.fold(self.overflow_bytes, |sum, object| sum.saturating_add(object.bytes))
    }

    /// Tells whether an object of an earlier round was not seen yet in this one: it may still be
    /// mapped.
    pub(super) fn has_unseen(&self) -> bool {
        self.objects[..self.count].iter().any(|object| object.seen != self.round)
    }

    /// Adds an object of a known size.
    fn add(&mut self, inode: u64, bytes: u64) {
        let round = self.round;
        self.see(MemoryObject { inode, bytes, seen: round, measured: round });
    }

    /// Adds an object that is mapped up to so many bytes from its beginning.
    fn add_mapped(&mut self, inode: u64, bytes: u64) {
        self.see(MemoryObject { inode, bytes, seen: self.round, measured: 0 });
    }

    fn see(&mut self, now: MemoryObject) {
        let (round, bytes) = (self.round, now.bytes);
        let known = self.objects[..self.count].iter_mut().find(|object| object.inode == now.inode);
        if let Some(object) = known {
            // A measured size counts, whatever is mapped. One process may have mapped a page,
            // another all of it.
            *object = match (now.measured == round, object.measured == round) {
                (true, _) => now,
                (false, true) => MemoryObject { seen: round, ..*object },
                (false, false) => MemoryObject { bytes: object.bytes.max(bytes), ..now },
            };
        } else if let Some(free) = self.objects.get_mut(self.count) {
            *free = now;
            self.count += 1;
        } else {
            self.overflow_bytes = self.overflow_bytes.saturating_add(bytes);
        }
    }

    /// Adds what a process with so many threads has open. A thread may have a descriptor table of
    /// its own.
    pub(super) fn add_open_files(&mut self, pid: u32, threads: u64) -> Result<(), ProcReadError> {
        self.add_descriptors(pid)?;
        if threads < 2 {
            return Ok(());
        }
        proc_files::each_thread(pid, |thread| {
            if has_same_files(pid, thread) { Ok(()) } else { self.add_descriptors(thread) }
        })
    }

    /// Adds what is in the descriptor table of a thread.
    fn add_descriptors(&mut self, pid: u32) -> Result<(), ProcReadError> {
        let mut path = [0_u8; 40];
        let length = write_path(&mut path[..39], b"/proc/", pid, b"/fd");
        let listed = ProcDirectory::open(&path[..=length]).and_then(|directory| {
            directory.each_number(|number| {
                spend(&mut self.descriptors_left)?;
                let state = stat_at(directory.0, number);
                self.add_file(state)
            })
        });
        match listed {
            Ok(()) | Err(ProcReadError::Gone) => Ok(()),
            // A process that is not dumpable belongs to root, who is not known in this namespace.
            Err(ProcReadError::Failed(libc::EACCES | libc::EPERM)) => self.add_hidden_descriptors(pid),
            Err(unread) => Err(unread),
        }
    }

    fn add_file(&mut self, state: Result<libc::stat, ProcReadError>) -> Result<(), ProcReadError> {
        match state {
            Ok(state) if state.st_dev == self.device => {
                self.add(state.st_ino, state.st_blocks.cast_unsigned() * BLOCK_BYTES);
                Ok(())
            }
            Ok(_) | Err(ProcReadError::Gone) => Ok(()),
            Err(unread) => Err(unread),
        }
    }

    /// Duplicates each descriptor there may be, as PID 1 may by its capabilities.
    fn add_hidden_descriptors(&mut self, pid: u32) -> Result<(), ProcReadError> {
        let slots = |text: &[u8]| proc_files::number_after(text, b"\nFDSize:");
        let slots = unless_gone(proc_files::number(pid, b"/status", slots))?;
        if slots > MAX_HIDDEN_DESCRIPTORS {
            return Err(ProcReadError::Failed(libc::EMFILE));
        }
        let process = match pidfd_open(pid) {
            Err(ProcReadError::Gone) => return Ok(()),
            process => process?,
        };
        for number in 0..slots {
            spend(&mut self.descriptors_left)?;
            // SAFETY: takes and gives numbers.
            let copy = unsafe { libc::syscall(libc::SYS_pidfd_getfd, process.0, number, 0) };
            match RawFd::try_from(copy).ok().filter(|copy| *copy >= 0).map(ProcDirectory) {
                Some(copy) => self.add_file(stat(copy.0))?,
                None => match last_errno() {
                    libc::EBADF => {}
                    libc::ESRCH => return Ok(()),
                    errno => return Err(ProcReadError::Failed(errno)),
                },
            }
        }
        Ok(())
    }

    /// Adds what a process has mapped.
    pub(super) fn add_mappings(&mut self, pid: u32) -> Result<(), ProcReadError> {
        let maps = match proc_files::open(pid, b"/maps") {
            Ok(maps) => ProcDirectory(maps),
            Err(ProcReadError::Gone) => return Ok(()),
            Err(unread) => return Err(unread),
        };
        let left = Cell::new(self.mappings_left);
        let read = |room: &mut [u8]| {
            if left.get() == 0 {
                return Err(ProcReadError::TooMany);
            }
            // SAFETY: the rest of a local buffer, with its length.
            let read = unsafe { libc::read(maps.0, room.as_mut_ptr().cast(), room.len()) };
            match usize::try_from(read) {
                Ok(read) => Ok(read),
                Err(_) if last_errno() == libc::ESRCH => Ok(0),
                Err(_) => Err(ProcReadError::Failed(last_errno())),
            }
        };
        each_line(read, |line| {
            left.set(left.get().saturating_sub(1));
            if let Some((inode, bytes)) = mapping(line, self.device) {
                self.add_mapped(inode, bytes);
            }
        })?;
        self.mappings_left = left.get();
        Ok(())
    }
}

/// The most of a line that is looked at. What comes behind is the name of a file, which may be as
/// long as a command likes.
pub(crate) const MAX_LINE_BYTES: usize = 8192;

/// Shows every line of a text that is read piece by piece, long ones up to [`MAX_LINE_BYTES`].
pub(crate) fn each_line<E>(
    mut read: impl FnMut(&mut [u8]) -> Result<usize, E>,
    mut show: impl FnMut(&[u8]),
) -> Result<(), E> {
    let mut buffer = [0_u8; MAX_LINE_BYTES];
    // A line that fills the buffer was shown: the rest of it is none.
    let (mut filled, mut is_rest) = (0, false);
    loop {
        let length = read(&mut buffer[filled..])?;
        filled += length;
        let mut begin = 0;
        while let Some(end) = buffer[begin..filled].iter().position(|byte| *byte == b'\n') {
            if !mem::take(&mut is_rest) {
                show(&buffer[begin..begin + end]);
            }
            begin += end + 1;
        }
        let is_last = length == 0 && filled > begin;
        if is_last || filled - begin == buffer.len() {
            if !mem::replace(&mut is_rest, true) {
                show(&buffer[begin..filled]);
            }
            filled = 0;
        } else {
            buffer.copy_within(begin..filled, 0);
            filled -= begin;
        }
        if length == 0 {
            return Ok(());
        }
    }
}

/// Takes one from what a round may still look at.
fn spend(left: &mut u32) -> Result<(), ProcReadError> {
    *left = left.checked_sub(1).ok_or(ProcReadError::TooMany)?;
    Ok(())
}

/// Tells whether two threads share their descriptor table. If that is unknown, both are visited.
fn has_same_files(one: u32, other: u32) -> bool {
    // SAFETY: takes and gives numbers.
    one == other || unsafe { libc::syscall(libc::SYS_kcmp, one, other, KCMP_FILES, 0, 0) } == 0
}

/// Opens a pidfd of a thread. Kernels before 6.9 have none but of the first thread of a process.
fn pidfd_open(pid: u32) -> Result<ProcDirectory, ProcReadError> {
    // SAFETY: takes and gives numbers.
    let open = |flags: c_int| unsafe { libc::syscall(libc::SYS_pidfd_open, pid, flags) };
    let opened = match open(PIDFD_THREAD) {
        ..0 if last_errno() == libc::EINVAL => open(0),
        opened => opened,
    };
    match RawFd::try_from(opened) {
        Ok(descriptor @ 0..) => Ok(ProcDirectory(descriptor)),
        _ => Err(ProcReadError::from_errno(last_errno())),
    }
}

/// The inode of an object on this device, and up to which byte of it a line of `/proc/PID/maps`
/// says that it is mapped. SysV segments are counted for themselves. A line is: begin-end rights
/// offset major:minor inode name.
pub(crate) fn mapping(line: &[u8], device: u64) -> Option<(u64, u64)> {
    let mut fields = line.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let mut range = fields.next()?.split(|byte| *byte == b'-').map(hexadecimal);
    let (begin, end) = (range.next()??, range.next()??);
    let offset = hexadecimal(fields.nth(1)?)?;
    let mut numbers = fields.next()?.split(|byte| *byte == b':').map(hexadecimal);
    let (major, minor) = (numbers.next()??, numbers.next()??);
    let number = libc::makedev(u32::try_from(major).ok()?, u32::try_from(minor).ok()?);
    let inode = number_at(fields.next()?)?;
    let is_sysv = fields.next().is_some_and(|name| name.starts_with(b"/SYSV"));
    (number == device && !is_sysv).then(|| (inode, offset.saturating_add(end.saturating_sub(begin))))
}

fn hexadecimal(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}

/// The device of the kernel's own tmpfs, learnt from a memfd of our own.
fn device_of_memfds() -> Result<u64, ProcReadError> {
    // SAFETY: a constant C string and a number; the descriptor is new.
    let memfd = unsafe { libc::memfd_create(c"".as_ptr(), libc::MFD_CLOEXEC) };
    if memfd < 0 {
        return Err(ProcReadError::Failed(last_errno()));
    }
    let memfd = ProcDirectory(memfd);
    stat(memfd.0).map(|state| state.st_dev)
}

fn stat(descriptor: RawFd) -> Result<libc::stat, ProcReadError> {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut state: libc::stat = mem::zeroed();
        if libc::fstat(descriptor, &raw mut state) < 0 {
            return Err(ProcReadError::from_errno(last_errno()));
        }
        Ok(state)
    }
}

/// The file that a numbered entry of a directory leads to.
fn stat_at(directory: RawFd, number: u64) -> Result<libc::stat, ProcReadError> {
    let mut name = [0_u8; 12];
    let number = u32::try_from(number).map_err(|_| ProcReadError::Failed(libc::EINVAL))?;
    write_path(&mut name[..11], b"", number, b"");
    // SAFETY: all zeros is a valid value, and it lives across the call; the name ends in a zero,
    // since its array is longer.
    unsafe {
        let mut state: libc::stat = mem::zeroed();
        if libc::fstatat(directory, name.as_ptr().cast(), &raw mut state, 0) < 0 {
            return Err(ProcReadError::from_errno(last_errno()));
        }
        Ok(state)
    }
}

/// Bytes in use on a tmpfs: by content, and by files and extended attributes as such, which the
/// kernel counts as inodes.
pub(super) fn in_tmpfs(path: &CStr) -> Result<u64, ProcReadError> {
    // SAFETY: all zeros is a valid value, and it lives across the call; the path is a C string.
    unsafe {
        let mut file_system: libc::statvfs = mem::zeroed();
        if libc::statvfs(path.as_ptr(), &raw mut file_system) < 0 {
            return Err(ProcReadError::Failed(last_errno()));
        }
        let content = file_system.f_blocks.saturating_sub(file_system.f_bfree) * file_system.f_bsize;
        Ok(content + file_system.f_files.saturating_sub(file_system.f_ffree) * INODE_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_mappings_on_the_device_of_memfds_are_counted() {
        let device = libc::makedev(0, 1);
        let mapped = |line: &str| mapping(line.as_bytes(), device);
        assert_eq!(mapped("7f00-8f00 rw-s 00000000 00:01 42 /memfd:x (deleted)"), Some((42, 0x1000)));
        assert_eq!(
            mapped("7f00-8f00 rw-s 00000000 00:01 42                 /dev/zero (deleted)"),
            Some((42, 0x1000))
        );
        assert_eq!(mapped("7f00-8f00 r--p 00000000 00:01 42 /memfd:SYSV (deleted)"), Some((42, 0x1000)));
        assert_eq!(mapped("7f00-8f00 rw-s 00000000 00:01 42 /SYSV00000000 (deleted)"), None);
        assert_eq!(mapped("7f00-8f00 rw-s 00000000 08:01 42 /home/x"), None);
        assert_eq!(mapped("7f00-8f00 rw-p 00000000 00:00 0 "), None);
        assert_eq!(mapped(""), None);
    }

    #[test]
    fn an_object_counts_once_and_as_large_as_it_was_seen() {
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        shared.add(7, 600);
        shared.add(7, 600);
        assert_eq!(shared.bytes(), 600);
        shared.begin().unwrap();
        assert_eq!((shared.bytes(), shared.has_unseen()), (0, true));
        shared.add_mapped(7, 4);
        assert_eq!((shared.bytes(), shared.has_unseen()), (600, false), "only a page of it is mapped now");
        shared.begin().unwrap();
        shared.begin().unwrap();
        assert_eq!((shared.bytes(), shared.has_unseen()), (0, false), "it is gone");
    }

    #[test]
    fn an_object_counts_up_to_the_last_byte_of_it_that_is_mapped() {
        let device = libc::makedev(0, 1);
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        for line in [
            "1000-2000 rw-s 00000000 00:01 42 /memfd:x (deleted)",
            "8000-a000 rw-s 00004000 00:01 42 /memfd:x (deleted)",
        ] {
            let (inode, bytes) = mapping(line.as_bytes(), device).unwrap();
            shared.add_mapped(inode, bytes);
        }
        assert_eq!(shared.bytes(), 0x6000, "the small mapping comes first");
        shared.add(42, 0x2000);
        shared.add_mapped(42, 0x6000);
        assert_eq!(shared.bytes(), 0x2000, "it is open, so its size is known");
    }

    #[test]
    fn sizes_that_a_number_cannot_hold_are_no_small_sum() {
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        shared.add_mapped(1, 4096);
        shared.add_mapped(2, u64::MAX - 4095);
        assert_eq!(shared.bytes(), u64::MAX);
    }

    #[test]
    fn the_end_of_a_long_line_is_not_taken_for_a_line() {
        let name = "x".repeat(2 * MAX_LINE_BYTES);
        let text = format!("first\n1 {name}\n{name} 0-ffff rw-s 0 00:01 42 /fake\nlast");
        let (mut rest, mut lines) = (text.as_bytes(), Vec::new());
        let read = |room: &mut [u8]| -> Result<usize, ()> {
            let length = rest.len().min(room.len()).min(4000);
            room[..length].copy_from_slice(&rest[..length]);
            rest = &rest[length..];
            Ok(length)
        };
        each_line(read, |line| lines.push(line.len())).unwrap();
        assert_eq!(lines, [5, MAX_LINE_BYTES, MAX_LINE_BYTES, 4]);
    }

    #[test]
    fn objects_that_do_not_fit_are_counted_each_time() {
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        for inode in 0..MAX_OBJECTS as u64 {
            shared.add(inode, 1);
        }
        shared.add(9999, 10);
        shared.add(9999, 10);
        assert_eq!(shared.bytes(), MAX_OBJECTS as u64 + 20);
    }

    #[test]
    fn a_memfd_and_a_shared_mapping_of_this_process_are_found() {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        // SAFETY: a constant C string; the descriptor is new; new memory is asked for and never
        // given back.
        let memfd = unsafe {
            let memfd = OwnedFd::from_raw_fd(libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC));
            assert_eq!(libc::write(memfd.as_raw_fd(), [1_u8; 8192].as_ptr().cast(), 8192), 8192);
            let (rights, flags) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
            let mapped = libc::mmap(std::ptr::null_mut(), 3 << 20, rights, flags, -1, 0);
            assert_ne!(mapped, libc::MAP_FAILED);
            memfd
        };
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        shared.add_open_files(std::process::id(), 2).unwrap();
        let open = shared.bytes();
        assert!(open >= 8192, "{memfd:?}: {open}");
        shared.add_mappings(std::process::id()).unwrap();
        assert!(shared.bytes() >= open + (3 << 20));
    }

    #[test]
    fn a_memfd_in_the_descriptor_table_of_a_thread_is_found() {
        use std::sync::mpsc::channel;
        let (ready, wait_ready) = channel();
        let (done, wait_done) = channel::<()>();
        let thread = std::thread::spawn(move || {
            // SAFETY: a constant C string; the descriptor is in the table of this thread alone, and
            // ends with it.
            unsafe {
                assert_eq!(libc::unshare(libc::CLONE_FILES), 0);
                let memfd = libc::memfd_create(c"test".as_ptr(), libc::MFD_CLOEXEC);
                assert_eq!(libc::ftruncate(memfd, 1 << 20), 0);
                assert_eq!(libc::fallocate(memfd, 0, 0, 1 << 20), 0);
            }
            ready.send(()).unwrap();
            let _closed = wait_done.recv();
        });
        wait_ready.recv().unwrap();
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        shared.add_open_files(std::process::id(), 1).unwrap();
        let before = shared.bytes();
        shared.add_open_files(std::process::id(), 2).unwrap();
        assert!(shared.bytes() >= before + (1 << 20), "{before} {}", shared.bytes());
        drop(done);
        thread.join().unwrap();
    }

    #[test]
    fn a_round_looks_at_no_more_than_it_has_time_for() {
        let mut shared = SharedMemory::new();
        shared.begin().unwrap();
        (shared.descriptors_left, shared.mappings_left) = (2, 2);
        assert_eq!(shared.add_open_files(std::process::id(), 1), Err(ProcReadError::TooMany));
        assert_eq!(shared.add_mappings(std::process::id()), Err(ProcReadError::TooMany));
        shared.begin().unwrap();
        shared.add_open_files(std::process::id(), 1).unwrap();
    }

    #[test]
    fn a_tmpfs_can_be_asked_for() {
        in_tmpfs(c"/dev/shm").unwrap();
    }
}
