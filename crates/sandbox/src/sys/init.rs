//! PID 1 of a sandbox: waits for the command, reaps orphans, counts what is used, brokers
//! connections. When it ends, the kernel kills everything else in its PID namespace.
//!
//! It never blocks but in `poll`, and takes orders from outside its namespace only: what it guards
//! cannot stop it.
//!
//! Like all code of the child, it allocates nothing and takes no locks.

use std::{ffi::c_int, mem, os::fd::RawFd};

pub(super) use super::proc_files::{each_process, number_in, parent_in, state};
use super::{
    connect_broker::{ConnectBroker, InternetAddress, RefusedCalls},
    proc_files::{self, cpu_ticks_in, each_pid, is_over},
    remount_watch::{CoveredPaths, RemountWatch},
    shared_namespaces::NetworkNamespace,
    usage::{ExceededLimit, UsageCounter},
};
use crate::namespace_plan::UsageLimits;

/// Time that processes left behind by the command may go on, as the `tee` in `make > >(tee log)`
/// must.
pub(super) const SETTLING_MILLIS: i64 = 50;

/// Maximum time for a command to end after SIGTERM.
pub(super) const GRACE_MILLIS: i64 = 200;

/// Maximum number of killed processes that are named in the report.
pub(super) const MAX_NAMED: usize = 8;

/// The unit of processor time in `/proc` (`USER_HZ`): a hundredth of a second.
const TICK_MICROS: u64 = 10_000;

/// Maximum length of a process name, with a zero.
pub(super) const NAME_BYTES: usize = 16;

/// The report to the parent at the end. Smaller than what a pipe takes at once.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct FinalReport {
    /// The status of the command, as `wait` returns it.
    pub(super) status: c_int,
    /// The limit it met: see [`ExceededLimit`].
    pub(super) over: u32,
    /// The number of refused connections and sends; and the address of the first.
    pub(super) refused: u32,
    pub(super) refused_path: [u8; 128],
    /// The first address outside of the session's own network; zeros if there was none.
    pub(super) offline: InternetAddress,
    /// Processor time of all processes, ended or killed.
    pub(super) cpu_micros: u64,
    /// The number of processes killed at the end; and the names of the first.
    pub(super) killed: u32,
    pub(super) names: [[u8; NAME_BYTES]; MAX_NAMED],
    /// 1 if all processes had ended by then. Otherwise they end with PID 1.
    pub(super) all_gone: u32,
}

impl FinalReport {
    /// Returns the report to send if PID 1 ends before the command is reaped, which kills the
    /// command.
    pub(super) fn new() -> Self {
        // SAFETY: all zeros is a valid value of this plain structure.
        let nothing: Self = unsafe { mem::zeroed() };
        // In a status the signal that killed stands as it is.
        Self { status: libc::SIGKILL, ..nothing }
    }
}

/// Maximum number of signals that are read before other work is done.
const MAX_SIGNALS_AT_ONCE: usize = 64;

/// State of PID 1 in a sandbox.
pub(super) struct InitProcess {
    pub(super) command: libc::pid_t,
    pub(super) listener: RawFd,
    pub(super) network: NetworkNamespace,
    pub(super) exit_pipe: RawFd,
    pub(super) watch: UsageLimits,
    pub(super) covered: CoveredPaths<'static>,
}

impl InitProcess {
    /// Looks after the sandbox until the command and what it left behind are gone or must go.
    pub(super) fn run(&self) -> ! {
        let mut last = FinalReport::new();
        let mut refusals = RefusedCalls::default();
        let signals = signals();
        let mut deadline = i64::MAX;
        let mut broker = ConnectBroker::new(self.listener, self.network);
        let mut counter = UsageCounter::new(self.watch, now());
        let mut covers = RemountWatch::new(self.covered, now());
        loop {
            let next = deadline.min(covers.due()).min(counter.due()).min(broker.due());
            let [mounts, names] = covers.events();
            let mut waiting =
                [event(signals), event(broker.listener()), hangup_event(self.exit_pipe), mounts, names];
            wait(&mut waiting, next.saturating_sub(now()));
            let now = now();
            if waiting[3].revents | waiting[4].revents != 0 || now >= covers.due() {
                covers.check();
            }
            if waiting[0].revents != 0 && take_outside_termination_request(signals) {
                // SAFETY: takes numbers only; -1 is everyone in this namespace but us.
                unsafe { libc::kill(-1, libc::SIGTERM) };
                deadline = deadline.min(now.saturating_add(GRACE_MILLIS));
            }
            broker.retry(now, &mut refusals);
            if waiting[1].revents & libc::POLLIN != 0 {
                broker.receive(now, &mut refusals);
            } else if waiting[1].revents != 0 {
                // Everyone under the filter is ending, and not yet to be collected. `poll` would
                // return at once, again and again, and keep the processor from those who have to
                // end.
                broker.close();
            }
            match bury(self.command, &mut last.status) {
                ReapedProcesses::All => {
                    last.all_gone = 1;
                    break;
                }
                ReapedProcesses::Command => deadline = deadline.min(now.saturating_add(SETTLING_MILLIS)),
                ReapedProcesses::Others => {}
            }
            if now >= counter.due() {
                last.over = counter.count(now) as u32;
            }
            // The parent is gone, perhaps since before we could ask for a signal.
            let abandoned = waiting[2].revents != 0;
            if last.over != ExceededLimit::Nothing as u32 || abandoned || now >= deadline {
                break;
            }
        }
        (last.refused, last.refused_path) = (refusals.count, refusals.first.unwrap_or(last.refused_path));
        last.offline = refusals.offline.map_or(last.offline, |address| address.start());
        last.cpu_micros = cpu_of_collected();
        if last.all_gone == 0 {
            survivors(&mut last);
        }
        // SAFETY: the structure is a local that lives across the call.
        unsafe {
            libc::write(self.exit_pipe, (&raw const last).cast(), mem::size_of::<FinalReport>());
            libc::_exit(0)
        }
    }
}

fn wait(waiting: &mut [libc::pollfd], millis: i64) {
    let count = waiting.len() as libc::nfds_t;
    // SAFETY: the slice lives across the call and has that many elements; one of -1 is ignored.
    unsafe { libc::poll(waiting.as_mut_ptr(), count, c_int::try_from(millis.max(0)).unwrap_or(-1)) };
}

/// Collects every process that has ended, and the status of the command.
pub(super) fn bury(command: libc::pid_t, status: &mut c_int) -> ReapedProcesses {
    let mut reaped = ReapedProcesses::Others;
    loop {
        let mut how = 0;
        // SAFETY: `how` lives across the call.
        match unsafe { libc::waitpid(-1, &raw mut how, libc::WNOHANG | libc::__WALL) } {
            0 => return reaped,
            -1 => return ReapedProcesses::All,
            pid if pid == command => {
                *status = how;
                reaped = ReapedProcesses::Command;
            }
            _ => {}
        }
    }
}

/// The processes that were reaped.
pub(super) enum ReapedProcesses {
    Command,
    Others,
    All,
}

/// Milliseconds on the monotonic clock.
pub(super) fn now() -> i64 {
    now_micros() / 1000
}

/// Microseconds on the monotonic clock.
pub(super) fn now_micros() -> i64 {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut time: libc::timespec = mem::zeroed();
        libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time);
        time.tv_sec * 1_000_000 + time.tv_nsec / 1000
    }
}

pub(super) fn event(descriptor: RawFd) -> libc::pollfd {
    libc::pollfd { fd: descriptor, events: libc::POLLIN, revents: 0 }
}

/// Returns the `poll` entry that reports a pipe without a reader.
fn hangup_event(pipe: RawFd) -> libc::pollfd {
    libc::pollfd { fd: pipe, events: 0, revents: 0 }
}

/// A signalfd for ended children and for orders to end. All signals are blocked already.
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

/// Empties the descriptor and returns true if there was a SIGTERM.
pub(super) fn take_termination_request(signals: RawFd) -> bool {
    any_signal(signals, |signal| signal.ssi_signo == libc::SIGTERM.cast_unsigned())
}

/// Empties the descriptor and returns true if a SIGTERM came from outside our PID namespace.
fn take_outside_termination_request(signals: RawFd) -> bool {
    any_signal(signals, is_sigterm_from_outside)
}

/// Tells whether a signal is a `SIGTERM` that `kill` has sent from outside our PID namespace: then
/// the sender has no number here. `F_SETSIG` sends signals without a sender, too, but not as
/// `SI_USER`, which only the kernel can say.
fn is_sigterm_from_outside(signal: &libc::signalfd_siginfo) -> bool {
    signal.ssi_signo == libc::SIGTERM.cast_unsigned()
        && signal.ssi_code == libc::SI_USER
        && signal.ssi_pid == 0
}

/// Reads signals; tells whether any of them is one of these. Bounded: others could send them as
/// fast as they are read.
fn any_signal(signals: RawFd, is_one: impl Fn(&libc::signalfd_siginfo) -> bool) -> bool {
    let mut any = false;
    for _ in 0..MAX_SIGNALS_AT_ONCE {
        // SAFETY: all zeros is a valid value, and it lives across the call.
        let info = unsafe {
            let mut info: libc::signalfd_siginfo = mem::zeroed();
            let size = mem::size_of::<libc::signalfd_siginfo>();
            if libc::read(signals, (&raw mut info).cast(), size) <= 0 {
                return any;
            }
            info
        };
        any |= is_one(&info);
    }
    any
}

/// Reports the processes that are still there, and their processor time: they will not be
/// collected.
fn survivors(last: &mut FinalReport) {
    // What cannot be read is missing in a report, and harms nothing.
    let _visited = each_pid(|pid| {
        last.cpu_micros += number_in(pid, b"/stat", cpu_ticks_in) * TICK_MICROS;
        if !is_over(state(pid)) {
            name_killed(last, pid);
        }
        Ok(())
    });
}

/// Processor time of all processes that this one has collected, and that those have.
pub(super) fn cpu_of_collected() -> u64 {
    let used = usage_of_collected();
    let micros = |time: libc::timeval| time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_usec.cast_unsigned();
    micros(used.ru_utime) + micros(used.ru_stime)
}

/// Resources used by all processes that this one has collected, and that those have.
pub(super) fn usage_of_collected() -> libc::rusage {
    // SAFETY: all zeros is a valid value, and it lives across the call.
    unsafe {
        let mut used: libc::rusage = mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut used);
        used
    }
}

/// Writes down one that is to be killed.
pub(super) fn name_killed(last: &mut FinalReport, pid: u32) {
    if let Some(name) = usize::try_from(last.killed).ok().and_then(|index| last.names.get_mut(index)) {
        let _gone = proc_files::read(pid, b"/comm", |text| {
            let length =
                text.iter().position(|byte| *byte == b'\n').unwrap_or(text.len()).min(NAME_BYTES - 1);
            name[..length].copy_from_slice(&text[..length]);
        });
    }
    last.killed += 1;
}

/// Keeps others from reading the memory of this process and of its copies: it is a copy of the
/// parent's.
pub(super) fn keep_memory_private() {
    // SAFETY: takes numbers only.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sigterm_from_outside_the_namespace_is_an_order() {
        let signal = |signo: c_int, code, pid| {
            // SAFETY: all zeros is a valid value of this plain structure.
            let mut info: libc::signalfd_siginfo = unsafe { mem::zeroed() };
            (info.ssi_signo, info.ssi_code, info.ssi_pid) = (signo.cast_unsigned(), code, pid);
            is_sigterm_from_outside(&info)
        };
        let from_fcntl = -5; // SI_SIGIO
        assert!(signal(libc::SIGTERM, libc::SI_USER, 0));
        assert!(!signal(libc::SIGTERM, libc::SI_USER, 7), "from one of those it guards");
        assert!(!signal(libc::SIGTERM, from_fcntl, 0), "from a descriptor that one of them has set up");
        assert!(!signal(libc::SIGTERM, libc::SI_QUEUE, 0));
        assert!(!signal(libc::SIGCHLD, libc::SI_USER, 0));
    }
}
