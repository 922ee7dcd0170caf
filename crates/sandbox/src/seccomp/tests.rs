//! Tests of the filter, by an interpreter of the few instructions it has.

use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_USER_NOTIF};

use super::{
    program::{
        __X32_SYSCALL_BIT, AND, ARCH, AUDIT_ARCH_NATIVE, JUMP_IF_AT_LEAST, JUMP_IF_BITS, JUMP_IF_EQUAL, LOAD,
        NUMBER, RETURN, argument, returned,
    },
    *,
};

/// Runs a filter as the kernel would.
fn judge(program: &[libc::sock_filter], arch: u32, number: i64, arguments: [u64; 6]) -> u32 {
    let mut loaded = 0_u32;
    let mut at = 0;
    loop {
        let libc::sock_filter { code, jt, jf, k } = program[at];
        let jump = |yes: bool| usize::from(if yes { jt } else { jf });
        at += 1;
        match u32::from(code) {
            LOAD => loaded = load(k, arch, number, arguments),
            AND => loaded &= k,
            JUMP_IF_EQUAL => at += jump(loaded == k),
            JUMP_IF_AT_LEAST => at += jump(loaded >= k),
            JUMP_IF_BITS => at += jump(loaded & k != 0),
            RETURN => return k,
            other => panic!("{other}"),
        }
    }
}

fn load(offset: u32, arch: u32, number: i64, arguments: [u64; 6]) -> u32 {
    let place = |offset: u32| usize::try_from((offset - argument(0)) / 8).unwrap();
    match offset {
        NUMBER => u32::try_from(number).unwrap(),
        ARCH => arch,
        low if low % 8 == 0 => u32::try_from(arguments[place(low)] & u64::from(u32::MAX)).unwrap(),
        high => u32::try_from(arguments[place(high)] >> 32).unwrap(),
    }
}

const OWN: FilterScope = FilterScope { sockets: AllowedSockets::Watched, processes: VisibleProcesses::Own };
const SHARED: FilterScope =
    FilterScope { sockets: AllowedSockets::Pairs, processes: VisibleProcesses::Everyones };
const ONLINE: FilterScope =
    FilterScope { sockets: AllowedSockets::Internet, processes: VisibleProcesses::Everyones };

fn call<const N: usize>(scope: FilterScope, number: i64, arguments: [u64; N]) -> u32 {
    judge(&filter(scope), AUDIT_ARCH_NATIVE, number, padded(arguments))
}

fn padded<const N: usize>(arguments: [u64; N]) -> [u64; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&arguments);
    all
}

fn errno(errno: i32) -> u32 {
    returned(Errno(errno))
}

#[test]
fn leases_are_refused_and_other_calls_of_fcntl_are_not() {
    for scope in [OWN, SHARED, ONLINE] {
        for lease in [F_SETLEASE, F_SETDELEG] {
            assert_eq!(call(scope, libc::SYS_fcntl, [3, lease.into()]), errno(EPERM), "{scope:?}");
        }
        for other in [libc::F_GETFL, libc::F_SETLK, libc::F_GETLEASE, libc::F_DUPFD_CLOEXEC] {
            let other = u64::from(other.cast_unsigned());
            assert_eq!(call(scope, libc::SYS_fcntl, [3, other]), SECCOMP_RET_ALLOW, "{scope:?}");
        }
    }
}

#[test]
fn everyday_calls_are_let_through() {
    for scope in [OWN, SHARED, ONLINE] {
        for number in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_wait4, libc::SYS_futex] {
            assert_eq!(call(scope, number, []), SECCOMP_RET_ALLOW);
        }
        assert_eq!(call(scope, libc::SYS_clone, [0x11]), SECCOMP_RET_ALLOW, "fork");
        assert_eq!(call(scope, libc::SYS_ioctl, [0, 0x5401]), SECCOMP_RET_ALLOW, "asking about a terminal");
        assert_eq!(call(scope, libc::SYS_socketpair, [1, 1 | 0o2_000_000]), SECCOMP_RET_ALLOW);
        assert_eq!(call(scope, libc::SYS_sendto, [3, 7, 1, 0]), SECCOMP_RET_ALLOW, "send");
        assert_eq!(call(scope, libc::SYS_fallocate, [3, 0]), SECCOMP_RET_ALLOW);
    }
}

/// Arguments for which all tests of a rule hold.
fn fitting(tests: &[ArgumentTest]) -> [u64; 6] {
    let mut arguments = [0; 6];
    for (place, test) in tests {
        arguments[*place as usize] = match test {
            Is(value) | HasBits(value) => u64::from(*value),
            IsNot(value) => u64::from(*value) + 77,
            LacksBits(bits) => u64::from(!*bits),
            NotNull => 1 << 40,
        };
    }
    arguments
}

#[test]
fn every_rule_holds_in_its_scope() {
    for (scope, own) in [
        (OWN, [OWN_PROCESSES, BROKERED].concat()),
        (SHARED, EVERYONES_PROCESSES.to_vec()),
        (ONLINE, EVERYONES_PROCESSES.to_vec()),
    ] {
        for (number, tests, verdict) in EVERYWHERE.iter().chain(ARCHITECTURE).chain(&own) {
            assert_eq!(call(scope, *number, fitting(tests)), returned(*verdict), "{number} {tests:?}");
        }
    }
    for (number, tests, verdict) in DISK_LIMITED {
        let judged = judge(&filter_with_disk_limit(OWN), AUDIT_ARCH_NATIVE, *number, fitting(tests));
        assert_eq!(judged, returned(*verdict), "{number}");
    }
}

#[test]
fn newer_calls_are_treated_as_the_older_ones_they_stand_for() {
    for scope in [OWN, SHARED, ONLINE] {
        let judged = |number| call(scope, number, []);
        assert_eq!(judged(467), judged(libc::SYS_open_tree), "open_tree_attr");
        assert_eq!(judged(443), judged(libc::SYS_quotactl), "quotactl_fd");
        assert_eq!(judged(447), errno(ENOSYS), "memfd_secret");
        for (newer, older) in
            [(463, libc::SYS_setxattr), (466, libc::SYS_removexattr), (469, libc::SYS_ioctl)]
        {
            assert_eq!(judged(newer), judged(older), "{newer}");
        }
    }
}

#[test]
fn what_no_rule_names_is_let_through() {
    for (scope, own) in [(OWN, [OWN_PROCESSES, BROKERED].concat()), (SHARED, EVERYONES_PROCESSES.to_vec())] {
        for number in (0..1000).filter(|number| ![libc::SYS_socket, libc::SYS_socketpair].contains(number)) {
            let named = EVERYWHERE.iter().chain(ARCHITECTURE).chain(&own).any(|(named, ..)| *named == number);
            if !named {
                assert_eq!(call(scope, number, [0; 6]), SECCOMP_RET_ALLOW, "{number}");
            }
        }
    }
}

#[test]
fn no_jump_is_longer_than_an_instruction_can_say() {
    for scope in [OWN, SHARED, ONLINE] {
        let program = filter_with_disk_limit(scope);
        for (at, instruction) in program.iter().enumerate() {
            let longest = instruction.jt.max(instruction.jf);
            let end = program.len() - 1;
            assert!(longest < u8::MAX && (at == end || at + 1 + usize::from(longest) <= end), "{at}");
        }
    }
}

#[test]
fn other_numberings_of_calls_are_no_way_around() {
    const I386: u32 = 0x4000_0003;
    assert_eq!(judge(&filter(OWN), I386, 359, padded([2, 1])), errno(ENOSYS));
    assert_eq!(call(OWN, i64::from(__X32_SYSCALL_BIT) + 41, [2, 1]), errno(ENOSYS));
}

#[test]
fn sockets_are_what_their_scope_says() {
    const AF_PACKET: i32 = 17;
    const AF_VSOCK: i32 = 40;
    let denied = errno(EAFNOSUPPORT);
    let socket = |scope, family: i32, kind: i32| {
        call(
            scope,
            libc::SYS_socket,
            [family, kind | libc::SOCK_CLOEXEC].map(|word| u64::from(word.cast_unsigned())),
        )
    };
    for (family, kind, own, online) in [
        (AF_UNIX, SOCK_STREAM, SECCOMP_RET_ALLOW, denied),
        (AF_UNIX, SOCK_DGRAM, SECCOMP_RET_ALLOW, denied),
        (AF_UNIX, SOCK_SEQPACKET, SECCOMP_RET_ALLOW, denied),
        (AF_UNIX, SOCK_RAW, denied, denied),
        (AF_INET, SOCK_STREAM, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW),
        (AF_INET6, SOCK_DGRAM, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW),
        (AF_INET, SOCK_RAW, denied, denied),
        (AF_NETLINK, SOCK_RAW, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW),
        (AF_PACKET, SOCK_RAW, denied, denied),
        (AF_PACKET, SOCK_DGRAM, denied, denied),
        (AF_VSOCK, SOCK_STREAM, denied, denied),
    ] {
        let judged = [OWN, SHARED, ONLINE].map(|scope| socket(scope, family, kind));
        assert_eq!(judged, [own, errno(EPERM), online], "{family} {kind}");
    }
    for (kind, own, shared) in [
        (SOCK_STREAM, SECCOMP_RET_ALLOW, SECCOMP_RET_ALLOW),
        (SOCK_DGRAM, SECCOMP_RET_ALLOW, errno(EPERM)),
        (SOCK_RAW, errno(EPERM), errno(EPERM)),
    ] {
        let judged = [OWN, SHARED, ONLINE]
            .map(|scope| call(scope, libc::SYS_socketpair, [1, u64::from(kind.cast_unsigned()), 0]));
        assert_eq!(judged, [own, shared, shared], "pair {kind}");
    }
}

#[test]
fn an_address_is_seen_by_the_broker_in_either_half_of_its_pointer() {
    for pointer in [1_u64, 1 << 32, 0x7fff_1234_5678] {
        assert_eq!(call(OWN, libc::SYS_sendto, [3, 0, 0, 0, pointer]), SECCOMP_RET_USER_NOTIF);
    }
    for number in [libc::SYS_connect, libc::SYS_sendmsg, libc::SYS_sendmmsg] {
        assert_eq!(call(OWN, number, [3]), SECCOMP_RET_USER_NOTIF);
        assert_eq!(call(SHARED, number, [3]), SECCOMP_RET_ALLOW);
    }
}

#[test]
fn only_pid_1_is_out_of_reach_among_ones_own_processes() {
    for number in [libc::SYS_kill, libc::SYS_tkill, libc::SYS_tgkill, libc::SYS_sched_setaffinity] {
        assert_eq!(call(OWN, number, [1, 15]), errno(EPERM));
        for pid in [0, 77, u64::from(u32::MAX), 1 << 32] {
            let expected = if pid & 0xffff_ffff == 1 { errno(EPERM) } else { SECCOMP_RET_ALLOW };
            assert_eq!(call(OWN, number, [pid, 15]), expected, "{number} {pid}");
        }
    }
    assert_eq!(call(OWN, libc::SYS_tgkill, [77, 1, 15]), errno(EPERM));
    let null = 0;
    assert_eq!(call(OWN, libc::SYS_prlimit64, [77, 7, 0x1000]), errno(EPERM));
    assert_eq!(call(OWN, libc::SYS_prlimit64, [77, 7, null]), SECCOMP_RET_ALLOW, "reading a limit");
    assert_eq!(call(OWN, libc::SYS_prlimit64, [0, 7, 0x1000]), SECCOMP_RET_ALLOW);
    assert_eq!(call(OWN, libc::SYS_setpriority, [0, 77, 5]), SECCOMP_RET_ALLOW);
    assert_eq!(call(OWN, libc::SYS_ptrace, [0]), SECCOMP_RET_ALLOW);
}

#[test]
fn among_other_processes_only_oneself_may_be_changed() {
    assert_eq!(call(SHARED, libc::SYS_prlimit64, [0, 7, 0x1000]), SECCOMP_RET_ALLOW);
    assert_eq!(call(SHARED, libc::SYS_prlimit64, [77, 7, 0]), errno(EPERM));
    assert_eq!(call(SHARED, libc::SYS_sched_setaffinity, [77]), errno(EPERM));
    assert_eq!(call(SHARED, libc::SYS_ptrace, [0]), errno(EPERM));
    assert_eq!(call(SHARED, libc::SYS_semctl, [0]), errno(EPERM));
    assert_eq!(call(OWN, libc::SYS_semctl, [0]), SECCOMP_RET_ALLOW, "an IPC namespace of its own");
}

#[test]
fn with_a_disk_limit_blocks_are_not_reserved_and_holes_may_be_punched() {
    let program = filter_with_disk_limit(OWN);
    let fallocate = |mode| judge(&program, AUDIT_ARCH_NATIVE, libc::SYS_fallocate, padded([3, mode]));
    assert_eq!(fallocate(0), errno(EOPNOTSUPP));
    let (keep_size, punch_hole) = (1, 2);
    assert_eq!(fallocate(keep_size), errno(EOPNOTSUPP));
    assert_eq!(fallocate(keep_size | punch_hole), SECCOMP_RET_ALLOW);
}
