//! The seccomp filter of a confined command: rules as data, each with the reason for it.
//!
//! The kernel runs the filter at every system call. A filter sees the call's number and its
//! arguments as numbers, never what a pointer leads to. What depends on a path is left to mounts
//! and Landlock; what depends on a socket address goes to the [broker](crate::sys) by user
//! notification. [`program`] turns the rules into BPF.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, EAFNOSUPPORT, ENOSYS, EOPNOTSUPP, EPERM, SOCK_DGRAM, SOCK_RAW,
    SOCK_SEQPACKET, SOCK_STREAM,
};

mod program;
#[cfg(test)]
mod tests;

use FilterAction::{Errno, UserNotif};
use ValueTest::{HasBits, Is, IsNot, LacksBits, NotNull};
use program::FilterProgram;

/// One instruction of a filter.
pub(crate) use libc::sock_filter as Instruction;

/// Constants of `<linux/fs.h>` and `<linux/ioprio.h>` that `libc` does not have, under their kernel
/// names.
const FS_IOC_RESVSP: u32 = 0x4030_5828;
const FS_IOC_RESVSP64: u32 = 0x4030_582a;
const FS_IOC_ZERO_RANGE: u32 = 0x4030_5839;
const IOPRIO_WHO_USER: u32 = 3;

/// System calls that `libc` does not have for every architecture. Since 424 the number is the same
/// on all of ours.
const SYS_QUOTACTL_FD: i64 = 443;
const SYS_MEMFD_SECRET: i64 = 447;
const SYS_OPEN_TREE_ATTR: i64 = 467;

/// In `libc` its type depends on the C library.
const PRIO_USER: u32 = 2;

/// `libc` has it as an `int`.
const F_SETLEASE: u32 = libc::F_SETLEASE.cast_unsigned();

/// A lease under its newer name, which `libc` does not have.
const F_SETDELEG: u32 = 1024 + 16;

/// `libc` has it as an `int`.
const PR_SET_DUMPABLE: u32 = libc::PR_SET_DUMPABLE.cast_unsigned();

/// Process id of the first process in a PID namespace, which supervises the command.
const INIT_PID: u32 = 1;

/// The environment in which a filter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FilterScope {
    pub(crate) sockets: AllowedSockets,
    pub(crate) processes: VisibleProcesses,
}

/// Sockets that a command may create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedSockets {
    /// Connected pairs only: a filter cannot tell whom any other socket talks to.
    Pairs,
    /// Internet and local ones. Every call that carries an address is put before the broker, which
    /// knows the sockets that belong to the command.
    Watched,
    /// Internet ones, because the network was granted, and pairs.
    Internet,
}

/// Processes within reach of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VisibleProcesses {
    /// Processes of its own PID namespace, which may debug one another, and PID 1.
    Own,
    /// All processes of the user.
    Everyones,
}

/// A rule: the action for a system call if all its tests match.
type SyscallRule = (i64, &'static [ArgumentTest], FilterAction);

/// An argument of a system call by its place, and what is tested about it.
type ArgumentTest = (u32, ValueTest);

/// A test of one argument. All but `NotNull` look at the low 32 bits: the kernel takes these
/// arguments as `int`.
#[derive(Debug, Clone, Copy)]
enum ValueTest {
    Is(u32),
    IsNot(u32),
    HasBits(u32),
    LacksBits(u32),
    /// Tests all 64 bits.
    NotNull,
}

/// The action of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FilterAction {
    /// Fails with this error.
    Errno(i32),
    /// Notifies PID 1 (`SECCOMP_RET_USER_NOTIF`).
    UserNotif,
}

/// The number of an `ioctl`, of which the kernel takes 32 bits; its type depends on the C library.
#[expect(clippy::cast_possible_truncation, reason = "the kernel takes an `unsigned int`")]
const fn request(number: libc::Ioctl) -> u32 {
    number as u32
}

/// No tests: the rule always matches.
const ALWAYS: &[ArgumentTest] = &[];

/// Any flag that makes a namespace, for `clone` and `unshare`.
const CLONE_NEW_ANY: u32 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWTIME)
    .cast_unsigned();

/// Denied to every command. Each line, or the first of a few, says why.
///
/// Newer calls are treated as the older ones they stand for, up to 470. Let through are
/// `process_mrelease` (`kill` comes first), `cachestat` (`mincore`), `fchmodat2` (`fchmodat`),
/// `statmount` and `listmount` (`/proc/self/mountinfo`), `lsm_*` (`/proc/self/attr`), `mseal`
/// (`mprotect`), `*xattrat` (`*xattr`), `file_getattr` and `file_setattr` (the `ioctl`s
/// `FS_IOC_FSGETXATTR` and `FS_IOC_FSSETXATTR`), `listns` (`/proc/PID/ns`): mounts and the kernel's
/// own checks hold for them all the same.
#[rustfmt::skip]
const EVERYWHERE: &[SyscallRule] = &[
    (libc::SYS_mount, ALWAYS, Errno(EPERM)),              // uncovering what is covered
    (libc::SYS_umount2, ALWAYS, Errno(EPERM)),
    (libc::SYS_open_tree, ALWAYS, Errno(EPERM)),          // the newer ways to mount
    (libc::SYS_move_mount, ALWAYS, Errno(EPERM)),
    (libc::SYS_fsopen, ALWAYS, Errno(EPERM)),
    (libc::SYS_fsconfig, ALWAYS, Errno(EPERM)),
    (libc::SYS_fsmount, ALWAYS, Errno(EPERM)),
    (libc::SYS_fspick, ALWAYS, Errno(EPERM)),
    (libc::SYS_mount_setattr, ALWAYS, Errno(EPERM)),
    (SYS_OPEN_TREE_ATTR, ALWAYS, Errno(EPERM)),           // `open_tree` and `mount_setattr` in one
    (libc::SYS_pivot_root, ALWAYS, Errno(EPERM)),         // leaving our view of the files
    (libc::SYS_chroot, ALWAYS, Errno(EPERM)),
    (libc::SYS_setns, ALWAYS, Errno(EPERM)),              // entering the namespaces of others
    (libc::SYS_unshare, &[(0, HasBits(CLONE_NEW_ANY))], Errno(EPERM)), // namespaces open large parts of the kernel
    (libc::SYS_clone, &[(0, HasBits(CLONE_NEW_ANY))], Errno(EPERM)),
    (libc::SYS_clone3, ALWAYS, Errno(ENOSYS)),            // its flags are behind a pointer; libraries fall back to `clone`
    (libc::SYS_process_vm_readv, ALWAYS, Errno(EPERM)),   // the memory and descriptors of other processes
    (libc::SYS_process_vm_writev, ALWAYS, Errno(EPERM)),
    (libc::SYS_process_madvise, ALWAYS, Errno(EPERM)),
    (libc::SYS_pidfd_getfd, ALWAYS, Errno(EPERM)),
    (libc::SYS_kcmp, ALWAYS, Errno(EPERM)),
    (libc::SYS_io_uring_setup, ALWAYS, Errno(EPERM)),     // calls that no filter sees
    (libc::SYS_io_uring_enter, ALWAYS, Errno(EPERM)),
    (libc::SYS_io_uring_register, ALWAYS, Errno(EPERM)),
    (SYS_MEMFD_SECRET, ALWAYS, Errno(ENOSYS)),            // memory that is in no count; as where the kernel has it switched off
    (libc::SYS_keyctl, ALWAYS, Errno(EPERM)),             // the user's keys, which are in no namespace
    (libc::SYS_add_key, ALWAYS, Errno(EPERM)),
    (libc::SYS_request_key, ALWAYS, Errno(EPERM)),
    (libc::SYS_bpf, ALWAYS, Errno(EPERM)),                // large and often broken parts of the kernel
    (libc::SYS_perf_event_open, ALWAYS, Errno(EPERM)),
    (libc::SYS_userfaultfd, ALWAYS, Errno(EPERM)),
    (libc::SYS_fanotify_init, ALWAYS, Errno(EPERM)),      // watching what others do
    (libc::SYS_open_by_handle_at, ALWAYS, Errno(EPERM)),  // opening files around every path
    (libc::SYS_quotactl, ALWAYS, Errno(EPERM)),           // from here on: administration of the machine
    (SYS_QUOTACTL_FD, ALWAYS, Errno(EPERM)),
    (libc::SYS_kexec_load, ALWAYS, Errno(EPERM)),
    (libc::SYS_kexec_file_load, ALWAYS, Errno(EPERM)),
    (libc::SYS_init_module, ALWAYS, Errno(EPERM)),
    (libc::SYS_finit_module, ALWAYS, Errno(EPERM)),
    (libc::SYS_delete_module, ALWAYS, Errno(EPERM)),
    (libc::SYS_reboot, ALWAYS, Errno(EPERM)),
    (libc::SYS_swapon, ALWAYS, Errno(EPERM)),
    (libc::SYS_swapoff, ALWAYS, Errno(EPERM)),
    (libc::SYS_acct, ALWAYS, Errno(EPERM)),
    (libc::SYS_syslog, ALWAYS, Errno(EPERM)),
    (libc::SYS_settimeofday, ALWAYS, Errno(EPERM)),
    (libc::SYS_clock_settime, ALWAYS, Errno(EPERM)),
    (libc::SYS_sethostname, ALWAYS, Errno(EPERM)),
    (libc::SYS_setdomainname, ALWAYS, Errno(EPERM)),
    (libc::SYS_vhangup, ALWAYS, Errno(EPERM)),
    (libc::SYS_ioctl, &[(1, Is(request(libc::TIOCSTI)))], Errno(EPERM)),   // typing into the user's terminal
    (libc::SYS_ioctl, &[(1, Is(request(libc::TIOCLINUX)))], Errno(EPERM)), // pasting into a console
    (libc::SYS_ioctl, &[(1, Is(request(libc::TIOCCONS)))], Errno(EPERM)),  // taking over the console's output
    // A lease on a file outside, which reading it is enough for, has others wait who open it.
    (libc::SYS_fcntl, &[(1, Is(F_SETLEASE))], Errno(EPERM)),
    (libc::SYS_fcntl, &[(1, Is(F_SETDELEG))], Errno(EPERM)),
];

/// Old calls that only one architecture has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const ARCHITECTURE: &[SyscallRule] = &[
    (libc::SYS_iopl, ALWAYS, Errno(EPERM)),       // talking to devices directly
    (libc::SYS_ioperm, ALWAYS, Errno(EPERM)),
    (libc::SYS_modify_ldt, ALWAYS, Errno(EPERM)), // segments for 16-bit programs, a frequent source of kernel holes
];
#[cfg(not(target_arch = "x86_64"))]
const ARCHITECTURE: &[SyscallRule] = &[];

/// Keeps the command from starving PID 1, which counts what it uses and brokers its connections.
/// Both run as the same user, so the kernel would allow it. glibc passes the caller's own thread
/// number to `sched_*`, so only PID 1 is out.
#[rustfmt::skip]
const OWN_PROCESSES: &[SyscallRule] = &[
    (libc::SYS_prlimit64, &[(0, IsNot(0)), (2, NotNull)], Errno(EPERM)),   // RLIMIT_NOFILE of 0 would blind PID 1
    (libc::SYS_sched_setaffinity, &[(0, Is(INIT_PID))], Errno(EPERM)),     // one processor for all of us
    (libc::SYS_sched_setscheduler, &[(0, Is(INIT_PID))], Errno(EPERM)),    // SCHED_IDLE
    (libc::SYS_sched_setparam, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_sched_setattr, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_setpriority, &[(1, Is(INIT_PID))], Errno(EPERM)),           // PID 1, or its process group
    (libc::SYS_setpriority, &[(0, Is(PRIO_USER))], Errno(EPERM)), // everyone of this user
    (libc::SYS_ioprio_set, &[(1, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_ioprio_set, &[(0, Is(IOPRIO_WHO_USER))], Errno(EPERM)),
    (libc::SYS_kill, &[(0, Is(INIT_PID))], Errno(EPERM)),                  // SIGTERM has PID 1 end everything
    (libc::SYS_tkill, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_tgkill, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_tgkill, &[(1, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_rt_sigqueueinfo, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_rt_tgsigqueueinfo, &[(0, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_rt_tgsigqueueinfo, &[(1, Is(INIT_PID))], Errno(EPERM)),
    (libc::SYS_pidfd_open, &[(0, Is(INIT_PID))], Errno(EPERM)),            // for `pidfd_send_signal`
    // Answered with success and not done: PID 1 could not count the memory of such a process.
    // `ssh-agent` does it.
    (libc::SYS_prctl, &[(0, Is(PR_SET_DUMPABLE)), (1, Is(0))], Errno(0)),
];

/// Rules for commands that can see the user's other processes.
#[rustfmt::skip]
const EVERYONES_PROCESSES: &[SyscallRule] = &[
    (libc::SYS_ptrace, ALWAYS, Errno(EPERM)),                          // controlling another process
    (libc::SYS_prlimit64, &[(0, IsNot(0))], Errno(EPERM)),             // its limits and its priority
    (libc::SYS_setpriority, &[(1, IsNot(0))], Errno(EPERM)),
    (libc::SYS_setpriority, &[(0, Is(PRIO_USER))], Errno(EPERM)),
    (libc::SYS_sched_setaffinity, &[(0, IsNot(0))], Errno(EPERM)),
    (libc::SYS_sched_setscheduler, &[(0, IsNot(0))], Errno(EPERM)),
    (libc::SYS_sched_setparam, &[(0, IsNot(0))], Errno(EPERM)),
    (libc::SYS_sched_setattr, &[(0, IsNot(0))], Errno(EPERM)),
    (libc::SYS_ioprio_set, &[(1, IsNot(0))], Errno(EPERM)),
    (libc::SYS_ioprio_set, &[(0, Is(IOPRIO_WHO_USER))], Errno(EPERM)),
    (libc::SYS_shmget, ALWAYS, Errno(EPERM)),                          // SysV IPC of the whole machine: no IPC namespace
    (libc::SYS_shmat, ALWAYS, Errno(EPERM)),
    (libc::SYS_shmctl, ALWAYS, Errno(EPERM)),
    (libc::SYS_shmdt, ALWAYS, Errno(EPERM)),
    (libc::SYS_msgget, ALWAYS, Errno(EPERM)),
    (libc::SYS_msgsnd, ALWAYS, Errno(EPERM)),
    (libc::SYS_msgrcv, ALWAYS, Errno(EPERM)),
    (libc::SYS_msgctl, ALWAYS, Errno(EPERM)),
    (libc::SYS_semget, ALWAYS, Errno(EPERM)),
    (libc::SYS_semop, ALWAYS, Errno(EPERM)),
    (libc::SYS_semtimedop, ALWAYS, Errno(EPERM)),
    (libc::SYS_semctl, ALWAYS, Errno(EPERM)),
    (libc::SYS_mq_open, ALWAYS, Errno(EPERM)),                         // POSIX queues of the whole machine
    (libc::SYS_mq_unlink, ALWAYS, Errno(EPERM)),
];

/// Calls that carry an address of a socket, which the broker must see. It performs them itself.
#[rustfmt::skip]
const BROKERED: &[SyscallRule] = &[
    (libc::SYS_connect, ALWAYS, UserNotif),
    (libc::SYS_sendto, &[(4, NotNull)], UserNotif), // without an address it goes where `connect` went
    (libc::SYS_sendmsg, ALWAYS, UserNotif),         // the address is behind a pointer
    (libc::SYS_sendmmsg, ALWAYS, UserNotif),
];

/// Rules for a disk limit: blocks that are reserved without writing are not in any `write_bytes`.
/// Programs fall back to writing.
#[rustfmt::skip]
const DISK_LIMITED: &[SyscallRule] = &[
    (libc::SYS_fallocate, &[(1, LacksBits(libc::FALLOC_FL_PUNCH_HOLE.cast_unsigned()))], Errno(EOPNOTSUPP)),
    (libc::SYS_ioctl, &[(1, Is(FS_IOC_RESVSP))], Errno(EOPNOTSUPP)), // `fallocate` under its older names
    (libc::SYS_ioctl, &[(1, Is(FS_IOC_RESVSP64))], Errno(EOPNOTSUPP)),
    (libc::SYS_ioctl, &[(1, Is(FS_IOC_ZERO_RANGE))], Errno(EOPNOTSUPP)),
];

/// Families of sockets with the types that may be made of each. All others fail. `SOCK_RAW` of
/// `AF_UNIX` is a datagram socket under another name; of the internet families it reads what
/// belongs to others.
type SocketTypes = &'static [(i32, &'static [i32])];

const INTERNET: SocketTypes = &[
    (AF_INET, &[SOCK_STREAM, SOCK_DGRAM]),
    (AF_INET6, &[SOCK_STREAM, SOCK_DGRAM]),
    (AF_NETLINK, &[SOCK_DGRAM, SOCK_RAW]), // interfaces and addresses, for `getaddrinfo`
];
const INTERNET_AND_UNIX: SocketTypes = &[
    (AF_UNIX, &[SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET]),
    (AF_INET, &[SOCK_STREAM, SOCK_DGRAM]),
    (AF_INET6, &[SOCK_STREAM, SOCK_DGRAM]),
    (AF_NETLINK, &[SOCK_DGRAM, SOCK_RAW]),
];

/// Pairs. One of datagrams can send to any address, so it needs the broker.
const CONNECTED_PAIRS: SocketTypes = &[(AF_UNIX, &[SOCK_STREAM, SOCK_SEQPACKET])];
const BROKERED_PAIRS: SocketTypes = &[(AF_UNIX, &[SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET])];

/// Returns the filter for a scope.
pub(crate) fn filter(scope: FilterScope) -> Vec<Instruction> {
    build(scope, &[])
}

/// Returns the filter for a scope in which what is written to disk is limited.
pub(crate) fn filter_with_disk_limit(scope: FilterScope) -> Vec<Instruction> {
    build(scope, DISK_LIMITED)
}

fn build(scope: FilterScope, more: &[SyscallRule]) -> Vec<Instruction> {
    let mut program = FilterProgram::new();
    let processes = match scope.processes {
        VisibleProcesses::Own => OWN_PROCESSES,
        VisibleProcesses::Everyones => EVERYONES_PROCESSES,
    };
    let (sockets, brokered, pairs) = match scope.sockets {
        AllowedSockets::Pairs => (None, &[][..], CONNECTED_PAIRS),
        AllowedSockets::Internet => (Some(INTERNET), &[][..], CONNECTED_PAIRS),
        AllowedSockets::Watched => (Some(INTERNET_AND_UNIX), BROKERED, BROKERED_PAIRS),
    };
    let mut rules: Vec<SyscallRule> =
        [EVERYWHERE, ARCHITECTURE, processes, brokered, more].into_iter().flatten().copied().collect();
    match sockets {
        Some(allowed) => program.socket_types(libc::SYS_socket, allowed, EAFNOSUPPORT),
        None => rules.push((libc::SYS_socket, ALWAYS, Errno(EPERM))),
    }
    program.socket_types(libc::SYS_socketpair, pairs, EPERM);
    program.rules(rules);
    program.finish()
}
