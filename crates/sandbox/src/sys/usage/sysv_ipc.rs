//! Memory of SysV IPC: segments, message queues and semaphores of this IPC namespace.
//!
//! The kernel tells how many there are. Of what it keeps for each, the most it can take is counted.

use std::{ffi::c_int, mem};

use super::super::{landlock::last_errno, proc_files::ProcReadError};

/// Constants and structures of `<sys/shm.h>` and `<sys/sem.h>` that `libc` does not have for every
/// C library.
const SHM_INFO: c_int = 14;
const SEM_INFO: c_int = 19;

#[repr(C)]
#[derive(Clone, Copy)]
struct ShmInfo {
    used_ids: c_int,
    shm_tot: libc::c_ulong,
    shm_rss: libc::c_ulong,
    shm_swp: libc::c_ulong,
    swap_attempts: libc::c_ulong,
    swap_successes: libc::c_ulong,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct SemInfo {
    semmap: c_int,
    semmni: c_int,
    semmns: c_int,
    semmnu: c_int,
    semmsl: c_int,
    semopm: c_int,
    semume: c_int,
    /// The number of sets, in the answer to `SEM_INFO`.
    semusz: c_int,
    semvmx: c_int,
    /// The number of semaphores in all sets, in the answer to `SEM_INFO`.
    semaem: c_int,
}

/// Bytes of a queue, and of a set of semaphores, without what is in it.
const QUEUE_BYTES: u64 = 512;

/// Bytes of a semaphore: a line of the cache. And of what the kernel keeps of one for each process
/// that used `SEM_UNDO`.
const SEMAPHORE_BYTES: u64 = 64;
const UNDO_BYTES: u64 = 2;

/// Bytes of the header of a message.
const MESSAGE_HEADER_BYTES: u64 = 48;

/// Bytes of all SysV IPC, used by so many processes.
pub(super) fn bytes(processes: u64) -> Result<u64, ProcReadError> {
    Ok(segments()? + messages()? + semaphores(processes)?)
}

fn segments() -> Result<u64, ProcReadError> {
    // SAFETY: all zeros is a valid value of this plain structure, which has the size that the
    // kernel fills and lives across the calls; the last takes and gives a number.
    let (result, info, page) = unsafe {
        let mut info: ShmInfo = mem::zeroed();
        let result = libc::shmctl(0, SHM_INFO, (&raw mut info).cast());
        (result, info, libc::sysconf(libc::_SC_PAGESIZE))
    };
    let page = u64::try_from(page).unwrap_or(4096);
    unless_absent(result, (info.shm_rss + info.shm_swp) * page)
}

fn messages() -> Result<u64, ProcReadError> {
    // SAFETY: all zeros is a valid value of this plain structure, which the kernel fills and which
    // lives across the call.
    let (result, info) = unsafe {
        let mut info: libc::msginfo = mem::zeroed();
        let result = libc::msgctl(0, libc::MSG_INFO, (&raw mut info).cast());
        (result, info)
    };
    unless_absent(result, message_bytes(info.msgpool, info.msgmap, info.msgtql))
}

/// Bytes of so many queues with so many messages of so many bytes. The kernel rounds each message
/// with its header up, at most to twice its size.
fn message_bytes(queues: c_int, messages: c_int, text_bytes: c_int) -> u64 {
    let [queues, messages, text_bytes] =
        [queues, messages, text_bytes].map(|count| u64::from(count.cast_unsigned()));
    queues * QUEUE_BYTES + 2 * (messages * MESSAGE_HEADER_BYTES + text_bytes)
}

fn semaphores(processes: u64) -> Result<u64, ProcReadError> {
    // SAFETY: all zeros is a valid value of this plain structure, which has the size that the
    // kernel fills and lives across the call.
    let (result, info) = unsafe {
        let mut info: SemInfo = mem::zeroed();
        let result = libc::semctl(0, 0, SEM_INFO, &raw mut info);
        (result, info)
    };
    unless_absent(result, semaphore_bytes(info.semusz, info.semaem, processes))
}

/// Bytes of so many sets with so many semaphores in all. Each process may have values to undo for
/// each semaphore.
fn semaphore_bytes(sets: c_int, semaphores: c_int, processes: u64) -> u64 {
    let [sets, semaphores] = [sets, semaphores].map(|count| u64::from(count.cast_unsigned()));
    sets * QUEUE_BYTES + semaphores * (SEMAPHORE_BYTES + UNDO_BYTES * processes)
}

/// Returns the result of a call, or nothing on a kernel without SysV IPC.
fn unless_absent(result: c_int, bytes: u64) -> Result<u64, ProcReadError> {
    match result {
        ..0 if last_errno() == libc::ENOSYS => Ok(0),
        ..0 => Err(ProcReadError::Failed(last_errno())),
        _ => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_the_kernel_keeps_is_counted() {
        assert_eq!(message_bytes(2, 3, 1000), 2 * 512 + 2 * (3 * 48 + 1000));
        assert_eq!(semaphore_bytes(2, 100, 10), 2 * 512 + 100 * (64 + 20));
        assert!(bytes(1).is_ok());
    }

    #[test]
    fn a_queue_and_a_set_are_seen_by_the_kernel() {
        let before = (messages().unwrap(), semaphores(1).unwrap());
        // SAFETY: takes and gives numbers; what is made is removed below.
        let (queue, set) = unsafe { (libc::msgget(libc::IPC_PRIVATE, 0o600), libc::semget(0, 1000, 0o600)) };
        let after = (messages().unwrap(), semaphores(1).unwrap());
        // SAFETY: takes and gives numbers.
        unsafe {
            libc::msgctl(queue, libc::IPC_RMID, std::ptr::null_mut());
            libc::semctl(set, 0, libc::IPC_RMID);
        }
        assert!(after.0 >= before.0 + QUEUE_BYTES, "{before:?} {after:?}");
        assert!(after.1 >= before.1 + 1000 * SEMAPHORE_BYTES, "{before:?} {after:?}");
    }
}
