//! The first process of a sandbox: waits for the command, buries orphans, counts what is used, answers at the keyhole.
//! When it ends, the kernel kills everything else in its process namespace, wherever it has hidden.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{
    ffi::{c_char, c_int},
    mem,
    os::fd::RawFd,
};

use super::{
    keyhole::{self, Verdict, write_path},
    remount_watch::{CoveredPaths as Covered, RemountWatch as Covers},
    shared_namespaces::NetworkNamespace as Network,
};
use crate::blueprint::Watch;

/// How long what the command left behind may go on, as the `tee` in `make > >(tee log)` must.
pub(super) const SETTLING_MILLIS: i64 = 50;

/// How long a command that was told to end may take.
pub(super) const GRACE_MILLIS: i64 = 200;

/// How often what is used is counted.
const COUNTING_MILLIS: i64 = 5;

/// How many of those that had to be killed are named.
pub(super) const NAMED: usize = 8;

/// What the kernel counts by in `/proc`: a hundred a second, whatever its own clock does.
const TICK_MICROS: u64 = 10_000;

/// The longest name of a process, with a zero.
pub(super) const NAME_BYTES: usize = 16;

/// What the parent is told at the end. Smaller than what a pipe takes at once.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// How the command ended, as `wait` says it.
    pub(super) status: c_int,
    /// Which limit it met: see [`Over`].
    pub(super) over: u32,
    /// How many connections were refused; and the first of them.
    pub(super) refused: u32,
    pub(super) refused_path: [u8; 128],
    /// How much time of the processors all took who have ended, or were killed in the end.
    pub(super) cpu_micros: u64,
    /// How many were killed in the end; and the names of the first.
    pub(super) killed: u32,
    pub(super) names: [[u8; NAME_BYTES]; NAMED],
    /// Whether everyone had ended by then: 1 if so. Else they end with who writes this.
    pub(super) all_gone: u32,
}

impl Last {
    /// As long as the command is not collected: who writes this then ends, and kills it by that.
    pub(super) fn before_the_end() -> Self {
        // SAFETY: all zeros is a valid value of this plain structure.
        let nothing: Self = unsafe { mem::zeroed() };
        // In a status the signal that killed stands as it is.
        Self { status: libc::SIGKILL, ..nothing }
    }
}

/// Limits that are counted here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Over {
    Nothing = 0,
    Memory = 1,
    Processes = 2,
    Disk = 3,
}

/// What the init process works with.
pub(super) struct Init {
    pub(super) command: libc::pid_t,
    pub(super) listener: RawFd,
    pub(super) network: Network,
    pub(super) last_words: RawFd,
    pub(super) watch: Watch,
    pub(super) covered: Covered<'static>,
}

impl Init {
    /// Looks after the sandbox until the command and what it left behind are gone or must go.
    pub(super) fn run(&self) -> ! {
        let mut last = Last::before_the_end();
        let signals = signals();
        let counts = self.watch != Watch::default();
        let mut deadline = i64::MAX;
        let mut listener = self.listener;
        let mut covers = Covers::new(self.covered, now());
        loop {
            let now = now();
            let next = deadline.min(covers.due()).saturating_sub(now);
            let left = if counts { COUNTING_MILLIS } else { i64::MAX }.min(next);
            let [mounts, names] = covers.events();
            let mut waiting =
                [event(signals), event(listener), event_of_loss(self.last_words), mounts, names];
            // SAFETY: the array lives across the call and has that many elements; one of -1 is ignored.
            unsafe { libc::poll(waiting.as_mut_ptr(), 5, c_int::try_from(left.max(0)).unwrap_or(-1)) };
            if waiting[3].revents | waiting[4].revents != 0 || now >= covers.due() {
                covers.check();
            }
            if waiting[0].revents != 0 && told_to_end(signals) {
                // SAFETY: takes numbers only; -1 is everyone in this namespace but us.
                unsafe { libc::kill(-1, libc::SIGTERM) };
                deadline = deadline.min(now.saturating_add(GRACE_MILLIS));
            }
            if waiting[1].revents & libc::POLLIN != 0 {
                self.answer(&mut last);
            } else if waiting[1].revents != 0 {
                // Everyone who could ask is ending, and not yet to be collected. Looking on would return at once,
                // again and again, and keep the processor from those who have to end.
                listener = -1;
            }
            match bury(self.command, &mut last.status) {
                Buried::All => {
                    last.all_gone = 1;
                    break;
                }
                Buried::Command => deadline = deadline.min(now.saturating_add(SETTLING_MILLIS)),
                Buried::Others => {}
            }
            if counts {
                last.over = self.count() as u32;
            }
            // Who started us is gone and may have been before we could ask to be told.
            let abandoned = waiting[2].revents != 0;
            if last.over != 0 || abandoned || now >= deadline {
                break;
            }
        }
        last.cpu_micros = cpu_of_collected();
        if last.all_gone == 0 {
            survivors(&mut last);
        }
        // SAFETY: the structure is a local that lives across the call.
        unsafe {
            libc::write(self.last_words, (&raw const last).cast(), mem::size_of::<Last>());
            libc::_exit(0)
        }
    }

    fn answer(&self, last: &mut Last) {
        if let Verdict::Refused(address) = keyhole::answer(self.listener, self.network) {
            if last.refused == 0 {
                last.refused_path = address;
            }
            last.refused += 1;
        }
    }

    /// Adds up what all processes use.
    fn count(&self) -> Over {
        let (mut memory, mut processes, mut written) = (0_u64, 0_u64, 0_u64);
        each_process(|pid| {
            processes += number_in(pid, b"/stat", threads).max(1);
            if self.watch.memory_bytes > 0 {
                memory += number_in(pid, b"/statm", |text| nth_number(text, 1)) * 4096;
            }
            if self.watch.disk_bytes > 0 {
                written += number_in(pid, b"/io", |text| number_after(text, b"\nwrite_bytes: "));
            }
        });
        let over = |used, limit| limit > 0 && used > limit;
        if over(memory, self.watch.memory_bytes) {
            Over::Memory
        } else if over(processes, self.watch.processes) {
            Over::Processes
        } else if over(written, self.watch.disk_bytes) {
            Over::Disk
        } else {
            Over::Nothing
        }
    }
}

/// Collects everyone who has ended, and says how the command did.
pub(super) fn bury(command: libc::pid_t, status: &mut c_int) -> Buried {
    let mut buried = Buried::Others;
    loop {
        let mut how = 0;
        // SAFETY: `how` lives across the call.
        match unsafe { libc::waitpid(-1, &raw mut how, libc::WNOHANG | libc::__WALL) } {
            0 => return buried,
            -1 => return Buried::All,
            pid if pid == command => {
                *status = how;
                buried = Buried::Command;
            }
            _ => {}
        }
    }
}

/// Who was collected.
pub(super) enum Buried {
    Command,
    Others,
    All,
}

pub(super) fn now() -> i64 {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}

pub(super) fn event(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// For a pipe, when nobody is left to read from it.
fn event_of_loss(pipe: RawFd) -> libc::pollfd {
    libc::pollfd { fd: pipe, events: 0, revents: 0 }
}

/// A descriptor that tells of ended children and of the wish that we end. All signals are held back already.
pub(super) fn signals() -> RawFd {
    // SAFETY: all zeros is a valid set to be emptied; it lives across the calls.
    unsafe {
        let mut set: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::signalfd(-1, &raw const set, libc::SFD_NONBLOCK | libc::SFD_CLOEXEC)
    }
}

/// Empties the descriptor; whether we are to end.
pub(super) fn told_to_end(signals: RawFd) -> bool {
    let mut told = false;
    loop {
        // SAFETY: all zeros is a valid value, and it lives across the call.
        let signal = unsafe {
            let mut info: libc::signalfd_siginfo = mem::zeroed();
            let size = mem::size_of::<libc::signalfd_siginfo>();
            if libc::read(signals, (&raw mut info).cast(), size) <= 0 {
                return told;
            }
            info.ssi_signo
        };
        told |= signal == libc::SIGTERM.cast_unsigned();
    }
}

/// Writes down who is still there, and what they took: nobody will collect them.
fn survivors(last: &mut Last) {
    each_number(|pid| {
        last.cpu_micros += number_in(pid, b"/stat", cpu_ticks) * TICK_MICROS;
        if !is_over(pid) {
            name_killed(last, pid);
        }
    });
}

/// What everyone took whom this process has collected, and whom they have.
pub(super) fn cpu_of_collected() -> u64 {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    let used = unsafe {
        let mut used: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used);
        used
    };
    let micros = |time: libc::timeval| time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned();
    micros(used.ru_utime) + micros(used.ru_stime)
}

/// Writes down one that is to be killed.
pub(super) fn name_killed(last: &mut Last, pid: u32) {
    if let Some(name) = usize::try_from(last.killed).ok().and_then(|index| last.names.get_mut(index)) {
        read_file(pid, b"/comm", |text| {
            let length =
                text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()).min(NAME_BYTES - 1);
            name[..length].copy_from_slice(&text[..length]);
        });
    }
    last.killed += 1;
}

/// Visits every process but this one that has not ended.
pub(super) fn each_process(mut visit: impl FnMut(u32)) {
    each_number(|pid| {
        if !is_over(pid) {
            visit(pid);
        }
    });
}

/// Visits every process but this one, collected or not.
fn each_number(mut visit: impl FnMut(u32)) {
    let mut buffer = [0_u64; 1024];
    // SAFETY: a constant C string.
    let directory =
        unsafe { libc::open(c"/proc".as_ptr(), libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC) };
    if directory < 0 {
        return;
    }
    loop {
        let size = mem::size_of_val(&buffer);
        // SAFETY: the buffer is a local of that size.
        let read = unsafe { libc::syscall(libc::SYS_getdents64, directory, buffer.as_mut_ptr(), size) };
        let Some(read) = usize::try_from(read).ok().filter(|read| *read > 0) else { break };
        // SAFETY: the kernel has filled that many bytes, and any bytes are valid.
        let mut entries = unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), read) };
        // An entry is: inode 8, offset 8, length 2, kind 1, name.
        while let Some(length) =
            entries.get(16..18).map(|bytes| usize::from(u16::from_ne_bytes([bytes[0], bytes[1]])))
        {
            let name = entries.get(19..length).unwrap_or_default();
            if let Some(pid) = number(name).filter(|pid| *pid > 1)
                && let Ok(pid) = u32::try_from(pid)
            {
                visit(pid);
            }
            entries = entries.get(length..).unwrap_or_default();
        }
    }
    // SAFETY: it was opened above and is used no more.
    unsafe { libc::close(directory) };
}

/// Whether a process has ended and only waits to be collected.
fn is_over(pid: u32) -> bool {
    matches!(state(pid), b'Z' | b'X' | 0)
}

/// The letter for what a process does; 0 if it is gone.
pub(super) fn state(pid: u32) -> u8 {
    let mut state = 0;
    read_file(pid, b"/stat", |text| {
        let name_end = text.iter().rposition(|byte| *byte == b')').unwrap_or(0);
        state = text.get(name_end + 2).copied().unwrap_or(0);
    });
    state
}

/// Whose child a process is: the fourth field.
pub(super) fn parent_in(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    nth_number(stat.get(name_end + 2..)?, 1)
}

/// How many threads a process has: the twentieth field, of which the second is a name in brackets.
fn threads(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    nth_number(stat.get(name_end + 2..)?, 17)
}

/// What a process took, and those it has collected: the fourteenth field and the three after it.
fn cpu_ticks(stat: &[u8]) -> Option<u64> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = stat.get(name_end + 2..)?;
    (11..15).map(|field| nth_number(fields, field)).sum()
}

pub(super) fn number_in(pid: u32, file: &[u8], pick: impl Fn(&[u8]) -> Option<u64>) -> u64 {
    let mut found = 0;
    read_file(pid, file, |text| found = pick(text).unwrap_or(0));
    found
}

/// Shows the beginning of a small file about a process. One that is gone shows nothing.
fn read_file(pid: u32, file: &[u8], show: impl FnOnce(&[u8])) {
    let mut path = [0_u8; 40];
    write_path(&mut path[..39], b"/proc/", pid, file);
    let mut text = [0_u8; 512];
    // SAFETY: the path ends in a zero, since its array is longer; the buffer is a local of that length.
    let read = unsafe {
        let descriptor = libc::open(path.as_ptr().cast::<c_char>(), libc::O_RDONLY | libc::O_CLOEXEC);
        if descriptor < 0 {
            return;
        }
        let read = libc::read(descriptor, text.as_mut_ptr().cast(), text.len());
        libc::close(descriptor);
        read
    };
    if let Some(text) = usize::try_from(read).ok().and_then(|read| text.get(..read)) {
        show(text);
    }
}

/// The number at the beginning of a text, if it begins with one.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let mut value = None;
    for digit in digits {
        value = Some(value.unwrap_or(0_u64).wrapping_mul(10).wrapping_add(u64::from(digit - b'0')));
    }
    value
}

/// The number after so many spaces.
fn nth_number(text: &[u8], spaces: usize) -> Option<u64> {
    let mut rest = text;
    for _ in 0..spaces {
        let space = rest.iter().position(|byte| *byte == b' ')?;
        rest = rest.get(space + 1..)?;
    }
    number(rest)
}

fn number_after(text: &[u8], label: &[u8]) -> Option<u64> {
    let at = text.windows(label.len()).position(|window| window == label)?;
    number(text.get(at + label.len()..)?)
}

/// Marks this process, and copies of it, as one whose memory nobody may look at: it is a copy of the parent's.
pub(super) fn keep_memory_private() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_where_the_kernel_puts_them() {
        let stat = b"7 (a b) c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 42 0 99 1";
        assert_eq!(
            (threads(stat), parent_in(stat), cpu_ticks(stat)),
            (Some(42), Some(1), Some(5 + 6 + 7 + 8))
        );
        assert_eq!(nth_number(b"100 25 3\n", 1), Some(25));
        assert_eq!(
            number_after(b"rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 0\n", b"\nwrite_bytes: "),
            Some(4096)
        );
        assert_eq!((number(b"x"), number(b"12/x"), nth_number(b"1", 3)), (None, Some(12), None));
    }

    #[test]
    fn paths_with_numbers_are_written_whole_or_cut_between_parts() {
        let mut path = [0; 40];
        let length = write_path(&mut path, b"/proc/", 4_294_967_295, b"/comm");
        assert_eq!(&path[..length], b"/proc/4294967295/comm");
        assert_eq!(write_path(&mut [0; 8], b"/proc/", 1234, b""), 6);
    }
}
