//! Whether programs wait for someone to type, from what the kernel says about their threads.
//!
//! Those on a terminal do if one thread of the terminal's foreground group is in a system call that only input on that terminal can
//! end, and no thread of the group is at work. Whatever cannot be read counts as not known. Programs that also wait for
//! a timer or for other files (a server that takes commands, most event loops) are not said to wait.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::OwnedFd,
        unix::fs::{FileExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use crate::sys::terminal::{foreground, own_group};

/// `/dev/tty`, which is the terminal of whoever opens it.
const OWN_TERMINAL: u64 = libc::makedev(5, 0);

/// More descriptors than this are not waited for by anyone who only waits for input.
const MOST_WATCHED: u64 = 16;

/// Looks at what happens on a terminal.
#[derive(Debug)]
pub(crate) struct Watcher {
    ours: OwnedFd,
    /// The file system and the device that are the command's end.
    theirs: (u64, u64),
}

impl Watcher {
    pub(crate) fn new(ours: &OwnedFd, theirs: &OwnedFd) -> io::Result<Self> {
        let found = File::from(theirs.try_clone()?).metadata()?;
        Ok(Self { ours: ours.try_clone()?, theirs: (found.dev(), found.rdev()) })
    }

    /// Whether everyone in the foreground stands still, and someone until input comes.
    pub(crate) fn sees_waiting(&self) -> bool {
        self.look().unwrap_or(false)
    }

    /// Whether another group than ours is in the foreground of the terminal. Nothing if it is not our own terminal.
    pub(crate) fn is_behind(&self) -> Option<bool> {
        foreground(&self.ours).map(|group| group != own_group())
    }

    /// Whether one of some processes is in a system call that only input on this terminal can end.
    pub(crate) fn sees_any_wait(&self, processes: &[u32]) -> bool {
        processes.iter().map(|pid| Path::new("/proc").join(pid.to_string())).any(|process| {
            let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
            let calls = threads.filter_map(|thread| fs::read_to_string(thread.path().join("syscall")).ok());
            calls.filter_map(|text| Call::read(&text)).any(|call| self.is_wait(&call, &process))
        })
    }

    fn look(&self) -> Option<bool> {
        let group = foreground(&self.ours)?;
        let mut waits = false;
        for entry in fs::read_dir("/proc").ok()?.flatten() {
            let path = entry.path();
            if !is_number(&path) || !is_in(&path, group) {
                continue;
            }
            for thread in fs::read_dir(path.join("task")).ok()?.flatten() {
                let text = fs::read_to_string(thread.path().join("syscall")).ok()?;
                match Call::read(&text) {
                    Some(call) => waits |= self.is_wait(&call, &path),
                    // It runs, or is in no system call.
                    None => return Some(false),
                }
            }
        }
        Some(waits)
    }

    /// Whether nothing but input on this terminal ends the call.
    fn is_wait(&self, call: &Call, process: &Path) -> bool {
        let [first, second, third, _, fifth] = call.arguments;
        let only = |descriptors: Option<Vec<u64>>| {
            descriptors.is_some_and(|all| {
                !all.is_empty() && all.iter().all(|each| self.is_this_terminal(process, *each))
            })
        };
        match call.number {
            libc::SYS_read | libc::SYS_readv => self.is_this_terminal(process, first),
            libc::SYS_pselect6 if fifth == 0 => only(selected(process, first, second)),
            libc::SYS_ppoll if third == 0 => only(polled(process, first, second)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_select if fifth == 0 => only(selected(process, first, second)),
            #[cfg(target_arch = "x86_64")]
            libc::SYS_poll if third == u64::from(u32::MAX) || third == u64::MAX => {
                only(polled(process, first, second))
            }
            _ => false,
        }
    }

    fn is_this_terminal(&self, process: &Path, descriptor: u64) -> bool {
        let found = fs::metadata(process.join("fd").join(descriptor.to_string()));
        found.is_ok_and(|found| found.rdev() == OWN_TERMINAL || (found.dev(), found.rdev()) == self.theirs)
    }
}

fn is_number(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}

/// Whether a process belongs to a group and has not ended.
fn is_in(process: &Path, group: u32) -> bool {
    let stat = fs::read_to_string(process.join("stat")).unwrap_or_default();
    // The name, in brackets, may hold anything.
    let mut fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_whitespace();
    let state = fields.next();
    fields.nth(1).is_some_and(|field| field == group.to_string()) && !matches!(state, Some("Z" | "X"))
}

/// A system call a thread is in.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    number: i64,
    arguments: [u64; 5],
}

impl Call {
    /// From the kernel's words: a number and arguments; none for a thread that runs.
    fn read(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let number = words.next()?.parse().ok().filter(|number| *number >= 0)?;
        let mut arguments = [0; 5];
        for (argument, word) in arguments.iter_mut().zip(words) {
            *argument = u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, arguments })
    }
}

/// The descriptors in a set of those below `count` that are waited for to become readable.
fn selected(process: &Path, count: u64, set: u64) -> Option<Vec<u64>> {
    let mut bits = [0; 128];
    let length = usize::try_from(count.div_ceil(8)).ok().filter(|length| *length <= bits.len())?;
    memory(process, set, &mut bits[..length])?;
    let is_set = |at: &u64| bits[usize::try_from(at / 8).unwrap_or(0)] & (1 << (at % 8)) != 0;
    Some((0..count).filter(is_set).collect())
}

/// The descriptors of a list of `count`.
fn polled(process: &Path, list: u64, count: u64) -> Option<Vec<u64>> {
    /// A descriptor, what is waited for, what has happened.
    const ENTRY_BYTES: u64 = 8;
    (0..Some(count).filter(|count| *count <= MOST_WATCHED)?)
        .map(|at| {
            let mut number = [0; 4];
            memory(process, list.checked_add(at * ENTRY_BYTES)?, &mut number)?;
            Some(u64::from(u32::from_ne_bytes(number)))
        })
        .collect()
}

fn memory(process: &Path, address: u64, into: &mut [u8]) -> Option<()> {
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
        assert_eq!(Call::read(read), Some(Call { number: 0, arguments }));
        assert_eq!(Call::read("running\n"), None);
        assert_eq!(Call::read("-1 0x7ffe 0x7fb5\n"), None);
        assert_eq!(Call::read(""), None);
    }
}
