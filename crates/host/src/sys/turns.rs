//! How soon a process gets its turn on a busy machine.
//!
//! The scheduler takes sessions in turn, and a new session waits behind everyone else's work: on a machine with more work
//! than processors a start took 5 to 10 ms instead of one. Whoever asks for short turns gets the same share of the
//! processor, but sooner. Our own processes around a command do; the command itself has turns as long as anyone's.

use std::mem;

use libc::sched_attr;

/// The shortest slice the kernel allows, in nanoseconds.
const SHORT: u64 = 100_000;

#[expect(clippy::cast_possible_truncation, reason = "the structure has 48 bytes")]
const SCHED_ATTR_SIZE: u32 = mem::size_of::<sched_attr>() as u32;

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
        let attributes = sched_attr {
            size: SCHED_ATTR_SIZE,
            sched_policy: libc::SCHED_OTHER.cast_unsigned(),
            sched_flags: 0,
            sched_nice: libc::getpriority(libc::PRIO_PROCESS, 0),
            sched_priority: 0,
            sched_runtime: turn,
            sched_deadline: 0,
            sched_period: 0,
        };
        libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0);
    }
}
