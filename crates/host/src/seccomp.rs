//! Which system calls a confined command may not make: rules as data, and the filter program made of them.
//!
//! A filter is a list of simple instructions the kernel runs at every call. It sees numbers, never what a pointer
//! leads to, so what depends on a path is left to mounts and Landlock.

use libc::{EAFNOSUPPORT, ENOSYS, EPERM};

use Rule::{Ask, Bits, Equals, Never, Unless};

/// One instruction, laid out as the kernel reads it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// What a filter leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scope {
    pub(crate) sockets: Sockets,
    pub(crate) processes: Processes,
}

/// Which sockets may be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// Connected pairs only: whom any other socket talks to cannot be told from numbers.
    Pairs,
    /// Internet and local ones, because the network is the command's own. Every `connect` is put before the listener
    /// of the filter, which knows the sockets that belong to the command.
    Watched,
    /// Internet ones, because the network was granted, and pairs.
    Internet,
}

/// Which processes there are to harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Processes {
    /// The command's own, which may debug one another.
    Own,
    /// All of the user's.
    Everyones,
}

/// What happens to a call. Numbers are the argument's place, its value, and the error.
#[derive(Debug, Clone, Copy)]
enum Rule {
    /// Fails always.
    Never(i32),
    /// Fails if the argument has any of these bits.
    Bits(u32, u32, i32),
    /// Fails if the argument is this.
    Equals(u32, u32, i32),
    /// Fails unless the argument is this.
    Unless(u32, u32, i32),
    /// Is put before the listener.
    Ask,
}

type Rules = &'static [(i64, Rule)];

/// Any flag that makes a namespace, for `clone` and `unshare`.
const NEW_NAMESPACE: u32 = 0x7e02_0080;

/// What no command may do, wherever it runs. Each line, or the first of a few, says what we refuse.
#[rustfmt::skip]
const ALWAYS: Rules = &[
    (libc::SYS_mount, Never(EPERM)),              // uncovering what is covered
    (libc::SYS_umount2, Never(EPERM)),
    (libc::SYS_open_tree, Never(EPERM)),          // the newer ways to mount
    (libc::SYS_move_mount, Never(EPERM)),
    (libc::SYS_fsopen, Never(EPERM)),
    (libc::SYS_fsconfig, Never(EPERM)),
    (libc::SYS_fsmount, Never(EPERM)),
    (libc::SYS_fspick, Never(EPERM)),
    (libc::SYS_mount_setattr, Never(EPERM)),
    (libc::SYS_pivot_root, Never(EPERM)),         // leaving our view of the files
    (libc::SYS_chroot, Never(EPERM)),
    (libc::SYS_setns, Never(EPERM)),              // entering the namespaces of others
    (libc::SYS_unshare, Bits(0, NEW_NAMESPACE, EPERM)), // namespaces give powers over large parts of the kernel
    (libc::SYS_clone, Bits(0, NEW_NAMESPACE, EPERM)),
    (libc::SYS_clone3, Never(ENOSYS)),            // hides its flags behind a pointer; libraries fall back to `clone`
    (libc::SYS_process_vm_readv, Never(EPERM)),   // the memory and descriptors of other processes
    (libc::SYS_process_vm_writev, Never(EPERM)),
    (libc::SYS_process_madvise, Never(EPERM)),
    (libc::SYS_pidfd_getfd, Never(EPERM)),
    (libc::SYS_kcmp, Never(EPERM)),
    (libc::SYS_io_uring_setup, Never(EPERM)),     // calls that no filter sees
    (libc::SYS_io_uring_enter, Never(EPERM)),
    (libc::SYS_io_uring_register, Never(EPERM)),
    (libc::SYS_keyctl, Never(EPERM)),             // the user's keys, which are in no namespace
    (libc::SYS_add_key, Never(EPERM)),
    (libc::SYS_request_key, Never(EPERM)),
    (libc::SYS_bpf, Never(EPERM)),                // large and often broken parts of the kernel
    (libc::SYS_perf_event_open, Never(EPERM)),
    (libc::SYS_userfaultfd, Never(EPERM)),
    (libc::SYS_fanotify_init, Never(EPERM)),      // watching what others do
    (libc::SYS_open_by_handle_at, Never(EPERM)),  // opening files around every path
    (libc::SYS_quotactl, Never(EPERM)),           // from here on: what runs a machine, not a program
    (libc::SYS_kexec_load, Never(EPERM)),
    (libc::SYS_kexec_file_load, Never(EPERM)),
    (libc::SYS_init_module, Never(EPERM)),
    (libc::SYS_finit_module, Never(EPERM)),
    (libc::SYS_delete_module, Never(EPERM)),
    (libc::SYS_reboot, Never(EPERM)),
    (libc::SYS_swapon, Never(EPERM)),
    (libc::SYS_swapoff, Never(EPERM)),
    (libc::SYS_acct, Never(EPERM)),
    (libc::SYS_syslog, Never(EPERM)),
    (libc::SYS_settimeofday, Never(EPERM)),
    (libc::SYS_clock_settime, Never(EPERM)),
    (libc::SYS_sethostname, Never(EPERM)),
    (libc::SYS_setdomainname, Never(EPERM)),
    (libc::SYS_vhangup, Never(EPERM)),
    (libc::SYS_ioctl, Equals(1, TIOCSTI, EPERM)), // typing into the user's terminal
    (libc::SYS_ioctl, Equals(1, TIOCLINUX, EPERM)), // pasting into a console
    (libc::SYS_ioctl, Equals(1, TIOCCONS, EPERM)),  // taking over the console's output
];

const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;
const TIOCCONS: u32 = 0x541d;

/// Old calls that only one architecture has.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OF_THE_ARCHITECTURE: Rules = &[
    (libc::SYS_iopl, Never(EPERM)),       // talking to devices directly
    (libc::SYS_ioperm, Never(EPERM)),
    (libc::SYS_modify_ldt, Never(EPERM)), // for programs of another age, and a source of holes
];
#[cfg(not(target_arch = "x86_64"))]
const OF_THE_ARCHITECTURE: Rules = &[];

/// Where other people's processes are in sight.
#[rustfmt::skip]
const AMONG_OTHERS: Rules = &[
    (libc::SYS_ptrace, Never(EPERM)),                   // controlling another process
    (libc::SYS_prlimit64, Unless(0, 0, EPERM)),         // changing the limits or the priority of another process
    (libc::SYS_setpriority, Unless(1, 0, EPERM)),
    (libc::SYS_sched_setaffinity, Unless(0, 0, EPERM)),
    (libc::SYS_sched_setscheduler, Unless(0, 0, EPERM)),
    (libc::SYS_sched_setparam, Unless(0, 0, EPERM)),
    (libc::SYS_sched_setattr, Unless(0, 0, EPERM)),
    (libc::SYS_ioprio_set, Unless(1, 0, EPERM)),
    (libc::SYS_shmget, Never(EPERM)),                   // memory, queues and locks shared across the machine
    (libc::SYS_shmat, Never(EPERM)),
    (libc::SYS_shmctl, Never(EPERM)),
    (libc::SYS_msgget, Never(EPERM)),
    (libc::SYS_msgsnd, Never(EPERM)),
    (libc::SYS_msgrcv, Never(EPERM)),
    (libc::SYS_semget, Never(EPERM)),
    (libc::SYS_semop, Never(EPERM)),
    (libc::SYS_mq_open, Never(EPERM)),
    (libc::SYS_mq_unlink, Never(EPERM)),
];

/// The filter for a scope.
pub(crate) fn filter(scope: Scope) -> Vec<Instruction> {
    let mut program = Program::default();
    program.only_our_calls();
    let among_others = match scope.processes {
        Processes::Own => &[][..],
        Processes::Everyones => AMONG_OTHERS,
    };
    let mut rules: Vec<_> = ALWAYS.iter().chain(OF_THE_ARCHITECTURE).chain(among_others).copied().collect();
    match scope.sockets {
        Sockets::Pairs => rules.push((libc::SYS_socket, Never(EPERM))),
        Sockets::Internet => program.sockets(&[(INET, BOTH_KINDS), (INET6, BOTH_KINDS), (NETLINK, RAW_KIND)]),
        Sockets::Watched => {
            program.sockets(&[
                (UNIX, CONNECTED_KINDS),
                (INET, BOTH_KINDS),
                (INET6, BOTH_KINDS),
                (NETLINK, RAW_KIND),
            ]);
            rules.push((libc::SYS_connect, Ask));
        }
    }
    program.pairs();
    program.rules(rules);
    program.push(RETURN, 0, 0, ALLOW);
    program.instructions
}

/// Families of sockets.
const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;

/// Kinds of sockets, as bits of `1 << kind`: stream 1, datagram 2, raw 3, sequenced 5. A local datagram socket can send
/// to any address without connecting, which nobody could watch.
const CONNECTED_KINDS: u32 = 1 << 1 | 1 << 5;
const BOTH_KINDS: u32 = 1 << 1 | 1 << 2;
const RAW_KIND: u32 = 1 << 2 | 1 << 3;

/// What the filter language can do, as far as it is needed here.
const LOAD: u16 = 0x20;
const AND: u16 = 0x54;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

/// What it can answer.
const ALLOW: u32 = 0x7fff_0000;
const NOTIFY: u32 = 0x7fc0_0000;
const FAIL: u32 = 0x0005_0000;

/// Where the kernel puts the number, the architecture and the arguments.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

#[cfg(target_arch = "x86_64")]
const OUR_ARCHITECTURE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OUR_ARCHITECTURE: u32 = 0xc000_00b7;

/// Calls of the x32 interface carry this bit. No other architecture has calls with such numbers.
const X32: u32 = 0x4000_0000;

/// Where the low half of an argument is; both architectures put it first. The kernel ignores the rest of these.
fn argument(place: u32) -> u32 {
    16 + 8 * place
}

fn fail(errno: i32) -> u32 {
    FAIL | errno.cast_unsigned()
}

#[derive(Default)]
struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    fn push(&mut self, code: u16, if_true: u8, if_false: u8, value: u32) {
        self.instructions.push(Instruction { code, if_true, if_false, value });
    }

    /// A 32-bit program on a 64-bit machine has other numbers for the same calls.
    fn only_our_calls(&mut self) {
        self.push(LOAD, 0, 0, ARCHITECTURE);
        self.push(IF_EQUAL, 1, 0, OUR_ARCHITECTURE);
        self.push(RETURN, 0, 0, fail(ENOSYS));
        self.push(LOAD, 0, 0, NUMBER);
        self.push(IF_AT_LEAST, 0, 1, X32);
        self.push(RETURN, 0, 0, fail(ENOSYS));
    }

    /// All of them, in order of their numbers and in blocks that are left as soon as a number lies beyond. The kernel
    /// walks the filter for each call there is when it is put in force; in one long list that took 0.15 ms.
    fn rules(&mut self, mut rules: Vec<(i64, Rule)>) {
        const BLOCK: usize = 8;
        // Rules for the same call keep their order, and stay in one block.
        rules.sort_by_key(|(number, _)| *number);
        let calls: Vec<_> = rules.chunk_by(|one, other| one.0 == other.0).collect();
        for block in calls.chunks(BLOCK) {
            let mut inside = Self::default();
            for (number, rule) in block.iter().copied().flatten() {
                inside.rule(*number, *rule);
            }
            inside.push(RETURN, 0, 0, ALLOW);
            let last = block.last().and_then(|call| call.first()).map_or(0, |(number, _)| *number);
            let beyond = u32::try_from(last + 1).unwrap_or(u32::MAX);
            let length = u8::try_from(inside.instructions.len()).unwrap_or(u8::MAX);
            self.push(IF_AT_LEAST, length, 0, beyond);
            self.instructions.append(&mut inside.instructions);
        }
    }

    /// Expects the number to be loaded, and leaves it so.
    fn rule(&mut self, number: i64, rule: Rule) {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        let (test, place, value, errno) = match rule {
            Never(errno) => {
                self.push(IF_EQUAL, 0, 1, number);
                return self.push(RETURN, 0, 0, fail(errno));
            }
            Ask => {
                self.push(IF_EQUAL, 0, 1, number);
                return self.push(RETURN, 0, 0, NOTIFY);
            }
            Bits(place, bits, errno) => ((IF_ANY_BIT, 0, 1), place, bits, errno),
            Equals(place, value, errno) => ((IF_EQUAL, 0, 1), place, value, errno),
            Unless(place, value, errno) => ((IF_EQUAL, 1, 0), place, value, errno),
        };
        let (code, if_true, if_false) = test;
        self.push(IF_EQUAL, 0, 4, number);
        self.push(LOAD, 0, 0, argument(place));
        self.push(code, if_true, if_false, value);
        self.push(RETURN, 0, 0, fail(errno));
        self.push(LOAD, 0, 0, NUMBER);
    }

    /// Sockets of these families and kinds, and no others.
    fn sockets(&mut self, allowed: &[(u32, u32)]) {
        /// The kind is in the low bits, beside flags.
        const KIND: u32 = 0xf;
        let length: usize = allowed.iter().map(|(_, kinds)| 4 + kinds.count_ones() as usize + 1).sum();
        let number = u32::try_from(libc::SYS_socket).unwrap_or(u32::MAX);
        self.push(IF_EQUAL, 0, u8::try_from(length + 2).unwrap_or(u8::MAX), number);
        for (family, kinds) in allowed {
            let count = u8::try_from(kinds.count_ones()).unwrap_or(u8::MAX);
            self.push(LOAD, 0, 0, argument(0));
            self.push(IF_EQUAL, 0, 3 + count, *family);
            self.push(LOAD, 0, 0, argument(1));
            self.push(AND, 0, 0, KIND);
            let kinds = (0..KIND).filter(|kind| kinds & (1 << kind) != 0);
            for (index, kind) in kinds.enumerate() {
                // To the `return` that allows, or on to the next; past the last, to the next family.
                let left = count - u8::try_from(index).unwrap_or(u8::MAX) - 1;
                self.push(IF_EQUAL, left, u8::from(left == 0), kind);
            }
            self.push(RETURN, 0, 0, ALLOW);
        }
        self.push(RETURN, 0, 0, fail(EAFNOSUPPORT));
        self.push(LOAD, 0, 0, NUMBER);
    }

    /// Pairs are local. One of datagrams could still send to any address.
    fn pairs(&mut self) {
        let number = u32::try_from(libc::SYS_socketpair).unwrap_or(u32::MAX);
        self.push(IF_EQUAL, 0, 7, number);
        self.push(LOAD, 0, 0, argument(0));
        self.push(IF_EQUAL, 0, 3, UNIX);
        self.push(LOAD, 0, 0, argument(1));
        self.push(AND, 0, 0, 0xf);
        self.push(IF_EQUAL, 0, 1, 2);
        self.push(RETURN, 0, 0, fail(EPERM));
        self.push(LOAD, 0, 0, NUMBER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a filter as the kernel would.
    fn judge(scope: Scope, architecture: u32, number: i64, arguments: [u32; 3]) -> u32 {
        let program = filter(scope);
        let mut loaded = 0_u32;
        let mut at = 0;
        loop {
            let Instruction { code, if_true, if_false, value } = program[at];
            let jump = |yes: bool| usize::from(if yes { if_true } else { if_false });
            at += 1;
            match code {
                LOAD => {
                    loaded = match value {
                        NUMBER => u32::try_from(number).unwrap(),
                        ARCHITECTURE => architecture,
                        place => arguments[usize::try_from((place - 16) / 8).unwrap()],
                    }
                }
                AND => loaded &= value,
                IF_EQUAL => at += jump(loaded == value),
                IF_AT_LEAST => at += jump(loaded >= value),
                IF_ANY_BIT => at += jump(loaded & value != 0),
                RETURN => return value,
                other => panic!("{other}"),
            }
        }
    }

    const OWN: Scope = Scope { sockets: Sockets::Watched, processes: Processes::Own };
    const SHARED: Scope = Scope { sockets: Sockets::Pairs, processes: Processes::Everyones };
    const ONLINE: Scope = Scope { sockets: Sockets::Internet, processes: Processes::Everyones };

    fn call(scope: Scope, number: i64, arguments: [u32; 3]) -> u32 {
        judge(scope, OUR_ARCHITECTURE, number, arguments)
    }

    #[test]
    fn everyday_calls_are_let_through() {
        for scope in [OWN, SHARED, ONLINE] {
            for number in
                [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_wait4, libc::SYS_futex]
            {
                assert_eq!(call(scope, number, [0; 3]), ALLOW);
            }
            assert_eq!(call(scope, libc::SYS_clone, [0x11, 0, 0]), ALLOW, "fork");
            assert_eq!(call(scope, libc::SYS_ioctl, [0, 0x5401, 0]), ALLOW, "asking about a terminal");
            assert_eq!(call(scope, libc::SYS_socketpair, [UNIX, 1 | 0o2_000_000, 0]), ALLOW);
        }
    }

    #[test]
    fn every_rule_that_always_holds_holds_in_every_scope() {
        for scope in [OWN, SHARED, ONLINE] {
            for (number, rule) in ALWAYS.iter().chain(OF_THE_ARCHITECTURE) {
                let (arguments, errno) = match rule {
                    Never(errno) => ([0; 3], *errno),
                    Bits(_, bits, errno) => ([*bits, 0, 0], *errno),
                    Equals(_, value, errno) => ([0, *value, 0], *errno),
                    other => panic!("{other:?}"),
                };
                assert_eq!(call(scope, *number, arguments), fail(errno), "{number}");
            }
        }
    }

    #[test]
    fn what_no_rule_names_is_let_through() {
        let special = [libc::SYS_socket, libc::SYS_socketpair, libc::SYS_connect];
        for number in 0..1000 {
            let named = |rules: Rules| rules.iter().any(|(named, _)| *named == number);
            if !named(ALWAYS) && !named(OF_THE_ARCHITECTURE) && !special.contains(&number) {
                assert_eq!(call(OWN, number, [0; 3]), ALLOW, "{number}");
                if !named(AMONG_OTHERS) {
                    assert_eq!(call(SHARED, number, [0; 3]), ALLOW, "{number}");
                }
            }
        }
        for (number, rule) in AMONG_OTHERS {
            let expected = match rule {
                Never(errno) | Unless(_, _, errno) => fail(*errno),
                other => panic!("{other:?}"),
            };
            assert_eq!(call(SHARED, *number, [9; 3]), expected, "{number}");
        }
    }

    #[test]
    fn other_numberings_of_calls_are_no_way_around() {
        const I386: u32 = 0x4000_0003;
        assert_eq!(judge(OWN, I386, 359, [INET, 1, 0]), fail(ENOSYS));
        assert_eq!(call(OWN, i64::from(X32) + 41, [INET, 1, 0]), fail(ENOSYS));
    }

    #[test]
    fn sockets_are_what_their_scope_says() {
        let socket =
            |scope, family, kind: u32| call(scope, libc::SYS_socket, [family, kind | 0o2_000_000, 0]);
        for (family, kind, expected) in [
            (UNIX, 1, [ALLOW, fail(EPERM), fail(EAFNOSUPPORT)]),
            (UNIX, 2, [fail(EAFNOSUPPORT), fail(EPERM), fail(EAFNOSUPPORT)]),
            (UNIX, 5, [ALLOW, fail(EPERM), fail(EAFNOSUPPORT)]),
            (INET, 1, [ALLOW, fail(EPERM), ALLOW]),
            (INET6, 2, [ALLOW, fail(EPERM), ALLOW]),
            (INET, 3, [fail(EAFNOSUPPORT), fail(EPERM), fail(EAFNOSUPPORT)]),
            (NETLINK, 3, [ALLOW, fail(EPERM), ALLOW]),
            (17, 3, [fail(EAFNOSUPPORT), fail(EPERM), fail(EAFNOSUPPORT)]),
            (40, 1, [fail(EAFNOSUPPORT), fail(EPERM), fail(EAFNOSUPPORT)]),
        ] {
            let judged = [OWN, SHARED, ONLINE].map(|scope| socket(scope, family, kind));
            assert_eq!(judged, expected, "{family} {kind}");
        }
        assert_eq!(
            call(OWN, libc::SYS_socketpair, [UNIX, 2, 0]),
            fail(EPERM),
            "pairs that can send anywhere"
        );
        assert_eq!(call(OWN, libc::SYS_connect, [3, 0, 0]), NOTIFY);
        assert_eq!(call(SHARED, libc::SYS_connect, [3, 0, 0]), ALLOW);
    }

    #[test]
    fn among_other_processes_only_oneself_may_be_changed() {
        assert_eq!(call(SHARED, libc::SYS_prlimit64, [0, 7, 0]), ALLOW);
        assert_eq!(call(SHARED, libc::SYS_prlimit64, [77, 7, 0]), fail(EPERM));
        assert_eq!(call(OWN, libc::SYS_prlimit64, [77, 7, 0]), ALLOW);
        assert_eq!(call(SHARED, libc::SYS_ptrace, [0; 3]), fail(EPERM));
        assert_eq!(call(OWN, libc::SYS_ptrace, [0; 3]), ALLOW);
    }
}
