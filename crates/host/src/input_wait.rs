//! Detects programs that wait for input on a terminal, from `/proc/PID/task/TID/syscall`.
//!
//! The foreground group of a terminal waits if one of its threads is in a system call that only
//! input on that terminal can end, and no thread of the group runs. If something cannot be read,
//! the group does not count as waiting. Programs that also wait for a timer or other files (a
//! server that takes commands, most event loops) do not count as waiting.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use windlass_sandbox::terminal::{foreground_group, own_group};

/// `/dev/tty`, the controlling terminal of the process that opens it.
const DEV_TTY: u64 = libc::makedev(5, 0);

/// A program that polls more descriptors than this waits for more than input.
const MAX_POLLED: u64 = 16;

/// The shortest and the longest timer of an event loop that does not count: with a shorter one it
/// works.
const LONG_TIMEOUT_MILLIS: u64 = 1000;
const MAX_TIMEOUT_MILLIS: u64 = i32::MAX.cast_unsigned() as u64;

/// Watches one terminal.
#[derive(Debug)]
pub(crate) struct InputWatcher {
    ours: OwnedFd,
    /// `st_dev` and `st_rdev` of the command's end.
    theirs: (u64, u64),
}

impl InputWatcher {
    pub(crate) fn new(ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<Self> {
        let found = File::from(theirs.try_clone()?).metadata()?;
        Ok(Self { ours: ours.try_clone()?, theirs: (found.dev(), found.rdev()) })
    }

    /// Returns whether no thread of the foreground group runs, and one waits for input.
    pub(crate) fn foreground_waits_for_input(&self) -> bool {
        self.check_foreground().unwrap_or(false)
    }

    /// Returns whether another group than ours is in the foreground of the terminal; `None` if it
    /// is not our controlling terminal.
    pub(crate) fn is_in_background(&self) -> Option<bool> {
        foreground_group(&self.ours).map(|group| group != own_group())
    }

    /// Returns whether one of these processes is in a system call that only input on this terminal
    /// can end.
    pub(crate) fn any_waits_for_input(&self, processes: &[u32]) -> bool {
        any_waits(processes, &|process, descriptor| self.is_this_terminal(process, descriptor))
    }

    fn check_foreground(&self) -> Option<bool> {
        let group = foreground_group(&self.ours)?;
        let mut waits = false;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let path = entry.path();
            if !is_pid(&path) || !is_in(&path, group) {
                continue;
            }
            for thread in fs::read_dir(path.join("task")).ok()?.flatten() {
                let text = fs::read_to_string(thread.path().join("syscall")).ok()?;
                match SyscallState::parse(&text) {
                    Some(call) => {
                        let is_input = |process: &Path, each| self.is_this_terminal(process, each);
                        waits |= call.is_input_wait(&path, &is_input);
                    }
                    // It runs, or is in no system call.
                    None => return Some(false),
                }
            }
        }
        Some(waits)
    }

    fn is_this_terminal(&self, process: &Path, descriptor: u64) -> bool {
        let found = fs::metadata(process.join("fd").join(descriptor.to_string()));
        found.is_ok_and(|found| found.rdev() == DEV_TTY || (found.dev(), found.rdev()) == self.theirs)
    }
}

/// Tells whether a descriptor of a process, by its directory in `/proc`, is a terminal that counts.
type IsInput<'a> = &'a dyn Fn(&Path, u64) -> bool;

/// Returns whether one of these processes waits for input on any terminal, one that they have made
/// included.
pub(crate) fn any_waits_on_terminal(processes: &[u32]) -> bool {
    /// The devices of `devpts` (`UNIX98_PTY_SLAVE_MAJOR` and the seven after it).
    const PTS_MAJOR: std::ops::RangeInclusive<u32> = 136..=143;
    any_waits(processes, &|process, descriptor| {
        let found = fs::metadata(process.join("fd").join(descriptor.to_string()));
        found.is_ok_and(|found| found.rdev() == DEV_TTY || PTS_MAJOR.contains(&libc::major(found.rdev())))
    })
}

/// Returns the names of the programs of these processes, in the order in which they were started.
pub(crate) fn program_names(processes: &[u32]) -> Vec<String> {
    /// The field of `/proc/PID/stat` behind the name that is the time of the start, counted from
    /// the state.
    const STARTTIME: usize = 19;
    let mut named: Vec<_> = processes
        .iter()
        .filter_map(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in brackets, may hold anything.
            let (before, rest) = stat.rsplit_once(')')?;
            let name = before.split_once('(')?.1.to_owned();
            let begun: u64 = rest.split_whitespace().nth(STARTTIME)?.parse().ok()?;
            Some((begun, *pid, name))
        })
        .collect();
    named.sort();
    named.into_iter().map(|(_, _, name)| name).collect()
}

fn any_waits(processes: &[u32], is_input: IsInput<'_>) -> bool {
    processes.iter().map(|pid| Path::new("/proc").join(pid.to_string())).any(|process| {
        let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
        let calls = threads.filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok());
        calls.filter_map(|text| SyscallState::parse(&text)).any(|call| call.is_input_wait(&process, is_input))
    })
}

fn is_pid(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Returns whether a process belongs to a group and has not ended.
fn is_in(process: &Path, group: u32) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let state = fields.next();
    fields.nth(1).is_some_and(|field| field == group.to_string()) && !matches!(state, Some("Z" | "X"))
}

/// The system call that a thread is in.
#[derive(Debug, PartialEq, Eq)]
struct SyscallState {
    number: i64,
    arguments: [u64; 5],
}

impl SyscallState {
    /// Parses `/proc/PID/task/TID/syscall`: a number and arguments; `None` for a thread that runs.
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut arguments = [0; 5];
        for (argument, word) in arguments.iter_mut().zip(words) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments })
    }

    /// Returns whether only input on a terminal that counts can end the call.
    fn is_input_wait(&self, process: &Path, is_input: IsInput<'_>) -> bool {
        let [first, second, third, fourth, fifth] = self.arguments;
        let only = |descriptors: Option<Vec<u64>>| {
            descriptors.is_some_and(|all| !all.is_empty() && all.iter().all(|each| is_input(process, *each)))
        };
        // An `int` of -1.
        let forever = |timeout: u64| timeout == u64::from(u32::MAX) || timeout == u64::MAX;
        // Event loops have timers of their own: Node.js has one at a prompt.
        let is_long = |timeout: u64| (LONG_TIMEOUT_MILLIS..=MAX_TIMEOUT_MILLIS).contains(&timeout);
        match self.number {
            libc::SYS_read | libc::SYS_readv => is_input(process, first),
            libc::SYS_pselect6 if fifth == 0 => only(selected(process, first, second)),
            libc::SYS_ppoll if third == 0 => only(polled(process, first, second)),
            libc::SYS_epoll_pwait if forever(fourth) || is_long(fourth) => {
                epoll_waits(process, first, is_input)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_epoll_wait if forever(fourth) || is_long(fourth) => {
                epoll_waits(process, first, is_input)
            }
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select if fifth == 0 => only(selected(process, first, second)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll if forever(third) => only(polled(process, first, second)),
            _ => false,
        }
    }
}

/// Returns whether an `epoll` instance waits for input on a terminal that counts, and for nothing
/// else but what the process itself can send, as the event loop of Node.js does.
fn epoll_waits(process: &Path, epoll: u64, is_input: IsInput<'_>) -> bool {
    let info = fs::read_to_string(process.join("fdinfo").join(epoll.to_string())).unwrap_or_default();
    let watched = info.lines().filter_map(|line| {
        let mut words = line.strip_prefix("tfd:")?.split_whitespace();
        let descriptor: u64 = words.next()?.parse().ok()?;
        let events = u32::from_str_radix(words.nth(1)?, 16).ok()?;
        Some((descriptor, events & libc::EPOLLIN.cast_unsigned() != 0))
    });
    let mut waits = false;
    for (descriptor, reads) in watched {
        if is_input(process, descriptor) {
            waits |= reads;
        } else if !is_own_event(process, descriptor) {
            return false;
        }
    }
    waits
}

/// Returns whether nothing but the process itself can make a descriptor readable: an `eventfd`, or
/// a pipe of which it has both ends.
fn is_own_event(process: &Path, descriptor: u64) -> bool {
    let target = |path: &Path| fs::read_link(path).ok();
    let Some(own) = target(&process.join("fd").join(descriptor.to_string())) else { return false };
    let name = own.to_string_lossy();
    if !name.starts_with("pipe:") {
        return name == "anon_inode:[eventfd]" || name == "anon_inode:[io_uring]";
    }
    let all = fs::read_dir(process.join("fd")).into_iter().flatten().flatten();
    all.filter(|entry| target(&entry.path()).as_ref() == Some(&own)).nth(1).is_some()
}

/// Returns the descriptors in the read set of a `select`.
fn selected(process: &Path, count: u64, set: u64) -> Option<Vec<u64>> {
    let mut bits = [0; 128];
    let length = usize::try_from(count.div_ceil(8)).ok().filter(|length| *length <= bits.len())?;
    read_memory(process, set, &mut bits[..length])?;
    let is_set = |at: &u64| bits[usize::try_from(at / 8).unwrap_or(0)] & (1 << (at % 8)) != 0;
    Some((0..count).filter(is_set).collect())
}

/// Returns the descriptors of a `poll`.
fn polled(process: &Path, list: u64, count: u64) -> Option<Vec<u64>> {
    /// The size of `struct pollfd`.
    const ENTRY_BYTES: u64 = 8;
    (0..Some(count).filter(|count| *count <= MAX_POLLED)?)
        .map(|at| {
            let mut number = [0; 4];
            read_memory(process, list.checked_add(at * ENTRY_BYTES)?, &mut number)?;
            Some(u64::from(u32::from_ne_bytes(number)))
        })
        .collect()
}

/// Reads memory of another process.
fn read_memory(process: &Path, address: u64, into: &mut [u8]) -> Option<()> {
    let memory: PathBuf = process.join("mem");
    File::open(memory).and_then(|memory| memory.read_exact_at(into, address)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_as_the_kernel_writes_them() {
        let read = "0 0x3 0x7f00 0x400 0x22 0xffffffffffffffff 0x0 0x7ffe 0x7fb5\n";
        let arguments = [3, 0x7f00, 0x400, 0x22, u64::MAX];
        assert_eq!(SyscallState::parse(read), Some(SyscallState { number: 0, arguments }));
        assert_eq!(SyscallState::parse("running\n"), None);
        assert_eq!(SyscallState::parse("-1 0x7ffe 0x7fb5\n"), None);
        assert_eq!(SyscallState::parse(""), None);
    }
}
