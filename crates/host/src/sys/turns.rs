//! How soon a process gets its turn on a busy machine.
//!
//! The scheduler takes sessions in turn, and a new session waits behind everyone else's work: on a machine with more work
//! than processors a start took 5 to 10 ms instead of one. Whoever asks for short turns gets the same share of the
//! processor, but sooner. Our own processes around a command do; the command itself has turns as long as anyone's.

use std::ffi::c_int;

/// The shortest turn there is, in nanoseconds.
const SHORT: u64 = 100_000;

/// How long the structure is.
const SIZE: u32 = 48;

#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: c_int,
    priority: u32,
    turn: u64,
    deadline: u64,
    period: u64,
}

/// Asks for short turns, for this thread and those it starts.
pub(crate) fn short() {
    set(SHORT);
}

/// Goes back to turns of the usual length.
pub(super) fn usual() {
    set(0);
}

/// Kernels before 6.12 take it and do nothing; if another has reasons to refuse, the start is only slower.
fn set(turn: u64) {
    // SAFETY: numbers, and a local that lives across the call and says its own size.
    unsafe {
        // Whoever is not scheduled as usual has been put there by someone, and stays.
        if libc::sched_getscheduler(0) != libc::SCHED_OTHER {
            return;
        }
        let attributes = Attributes {
            size: SIZE,
            policy: 0,
            flags: 0,
            nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            priority: 0,
            turn,
            deadline: 0,
            period: 0,
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}
