//! Turns rules into a BPF program, in the layout the kernel evaluates fastest.

use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W,
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF, seccomp_data, sock_filter,
};

use super::{ArgumentTest, FilterAction, SocketTypes, SyscallRule, ValueTest};

/// Instructions, as `<linux/bpf_common.h>` composes them.
pub(super) const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
pub(super) const AND: u32 = BPF_ALU | BPF_AND | BPF_K;
pub(super) const JUMP_IF_EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;
pub(super) const JUMP_IF_AT_LEAST: u32 = BPF_JMP | BPF_JGE | BPF_K;
pub(super) const JUMP_IF_BITS: u32 = BPF_JMP | BPF_JSET | BPF_K;
pub(super) const RETURN: u32 = BPF_RET | BPF_K;

/// Constants of `<linux/audit.h>`, `<asm/unistd.h>` and `<net.h>` that `libc` does not have, under
/// their kernel names.
#[cfg(target_arch = "x86_64")]
pub(super) const AUDIT_ARCH_NATIVE: u32 = AUDIT_ARCH_X86_64;
#[cfg(target_arch = "aarch64")]
pub(super) const AUDIT_ARCH_NATIVE: u32 = AUDIT_ARCH_AARCH64;
#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH_X86_64: u32 = libc::EM_X86_64 as u32 | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE;
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH_AARCH64: u32 = libc::EM_AARCH64 as u32 | __AUDIT_ARCH_64BIT | __AUDIT_ARCH_LE;
const __AUDIT_ARCH_64BIT: u32 = 0x8000_0000;
const __AUDIT_ARCH_LE: u32 = 0x4000_0000;

/// Calls of the x32 interface carry this bit. No other architecture has calls with such numbers.
pub(super) const __X32_SYSCALL_BIT: u32 = 0x4000_0000;

/// The type of a socket is in these bits, beside `SOCK_CLOEXEC` and `SOCK_NONBLOCK`.
const SOCK_TYPE_MASK: u32 = 0xf;

/// Calls in one block.
const BLOCK: usize = 10;

/// The answer of most rules.
const EPERM: FilterAction = FilterAction::Errno(libc::EPERM);

/// Stands for the distance to the common `return` until that is known.
const TO_EPERM: u8 = u8::MAX;

/// Offsets of the system call number and the architecture.
pub(super) const NUMBER: u32 = offset(std::mem::offset_of!(seccomp_data, nr));
pub(super) const ARCH: u32 = offset(std::mem::offset_of!(seccomp_data, arch));

#[expect(clippy::cast_possible_truncation, reason = "the structure has 64 bytes")]
const fn offset(bytes: usize) -> u32 {
    bytes as u32
}

/// Returns the offset of the low half of an argument; both architectures are little-endian.
pub(super) const fn argument(place: u32) -> u32 {
    offset(std::mem::offset_of!(seccomp_data, args)) + 8 * place
}

/// The value that a filter returns.
pub(super) fn returned(action: FilterAction) -> u32 {
    match action {
        FilterAction::Errno(errno) => SECCOMP_RET_ERRNO | errno.cast_unsigned(),
        FilterAction::UserNotif => SECCOMP_RET_USER_NOTIF,
    }
}

/// A filter under construction. Between its parts the number of the call is loaded.
#[derive(Debug)]
pub(super) struct FilterProgram {
    instructions: Vec<sock_filter>,
}

impl FilterProgram {
    /// Begins with what refuses the calls of other architectures: a 32-bit program on a 64-bit
    /// machine has other numbers for the same calls.
    pub(super) fn new() -> Self {
        let mut program = Self { instructions: Vec::new() };
        program.push(LOAD, 0, 0, ARCH);
        program.push(JUMP_IF_EQUAL, 1, 0, AUDIT_ARCH_NATIVE);
        program.push(RETURN, 0, 0, returned(FilterAction::Errno(libc::ENOSYS)));
        program.push(LOAD, 0, 0, NUMBER);
        program.push(JUMP_IF_AT_LEAST, 0, 1, __X32_SYSCALL_BIT);
        program.push(RETURN, 0, 0, returned(FilterAction::Errno(libc::ENOSYS)));
        program
    }

    /// Allows what no rule named.
    pub(super) fn finish(mut self) -> Vec<sock_filter> {
        self.push(RETURN, 0, 0, SECCOMP_RET_ALLOW);
        self.instructions
    }

    #[expect(clippy::cast_possible_truncation, reason = "instructions of classic BPF have 16 bits")]
    fn push(&mut self, code: u32, jt: u8, jf: u8, k: u32) {
        self.instructions.push(sock_filter { code: code as u16, jt, jf, k });
    }

    /// Adds rules, in order of their numbers and in blocks that are left as soon as a number lies
    /// beyond. The kernel evaluates the filter for every call there is when it is installed, to
    /// cache what is always allowed; in one long list that took 0.15 ms. It also compiles it, which
    /// takes 0.15 µs for each instruction: so a block returns `EPERM`, which most rules do, in one
    /// place.
    pub(super) fn rules(&mut self, mut rules: Vec<SyscallRule>) {
        // Rules for the same call keep their order, and stay in one block.
        rules.sort_by_key(|(number, ..)| *number);
        let calls: Vec<_> = rules.chunk_by(|one, other| one.0 == other.0).collect();
        for block in calls.chunks(BLOCK) {
            let mut inside = Self { instructions: Vec::new() };
            for rule in block.iter().copied().flatten() {
                inside.rule(rule);
            }
            inside.push(RETURN, 0, 0, SECCOMP_RET_ALLOW);
            inside.push(RETURN, 0, 0, returned(EPERM));
            inside.resolve();
            let last = block.last().and_then(|call| call.first()).map_or(0, |(number, ..)| *number);
            self.push(JUMP_IF_AT_LEAST, length(&inside.instructions), 0, number_of(last + 1));
            self.instructions.append(&mut inside.instructions);
        }
    }

    fn rule(&mut self, (number, tests, action): &SyscallRule) {
        match tests {
            [] if *action == EPERM => self.push(JUMP_IF_EQUAL, TO_EPERM, 0, number_of(*number)),
            [] => {
                self.push(JUMP_IF_EQUAL, 0, 1, number_of(*number));
                self.push(RETURN, 0, 0, returned(*action));
            }
            _ => {
                let mut rest: u8 = tests.iter().map(|(_, test)| test.length()).sum::<u8>() + 1;
                self.push(JUMP_IF_EQUAL, 0, rest + 1, number_of(*number));
                for test in *tests {
                    rest -= test.1.length();
                    self.test(*test, rest);
                }
                self.push(RETURN, 0, 0, returned(*action));
                self.push(LOAD, 0, 0, NUMBER);
            }
        }
    }

    /// Has every jump to the common `return` lead to the last instruction.
    fn resolve(&mut self) {
        let last = self.instructions.len().saturating_sub(1);
        for (at, instruction) in self.instructions.iter_mut().enumerate() {
            let distance = u8::try_from(last - at).unwrap_or(u8::MAX).saturating_sub(1);
            if instruction.jt == TO_EPERM {
                instruction.jt = distance;
            }
        }
    }

    /// Goes on if the test holds, and past the next `rest` instructions if not.
    fn test(&mut self, (place, test): ArgumentTest, rest: u8) {
        self.push(LOAD, 0, 0, argument(place));
        match test {
            ValueTest::Is(value) => self.push(JUMP_IF_EQUAL, 0, rest, value),
            ValueTest::IsNot(value) => self.push(JUMP_IF_EQUAL, rest, 0, value),
            ValueTest::HasBits(bits) => self.push(JUMP_IF_BITS, 0, rest, bits),
            ValueTest::LacksBits(bits) => self.push(JUMP_IF_BITS, rest, 0, bits),
            ValueTest::NotNull => {
                self.push(JUMP_IF_EQUAL, 0, 2, 0);
                self.push(LOAD, 0, 0, argument(place) + 4);
                self.push(JUMP_IF_EQUAL, rest, 0, 0);
            }
        }
    }

    /// Lets a call make sockets of these families and types, and has it fail for all others.
    pub(super) fn socket_types(&mut self, call: i64, allowed: SocketTypes, errno: i32) {
        let mut inside = Self { instructions: Vec::new() };
        for (family, types) in allowed {
            let count = length(types);
            inside.push(LOAD, 0, 0, argument(0));
            inside.push(JUMP_IF_EQUAL, 0, 3 + count, family.cast_unsigned());
            inside.push(LOAD, 0, 0, argument(1));
            inside.push(AND, 0, 0, SOCK_TYPE_MASK);
            for (left, kind) in (0..count).rev().zip(*types) {
                // To the `return` that allows, or on to the next; past the last, to the next
                // family.
                inside.push(JUMP_IF_EQUAL, left, u8::from(left == 0), kind.cast_unsigned());
            }
            inside.push(RETURN, 0, 0, SECCOMP_RET_ALLOW);
        }
        inside.push(RETURN, 0, 0, returned(FilterAction::Errno(errno)));
        self.push(JUMP_IF_EQUAL, 0, length(&inside.instructions), number_of(call));
        self.instructions.append(&mut inside.instructions);
    }
}

impl ValueTest {
    /// The number of its instructions.
    fn length(self) -> u8 {
        match self {
            Self::Is(_) | Self::IsNot(_) | Self::HasBits(_) | Self::LacksBits(_) => 2,
            Self::NotNull => 4,
        }
    }
}

fn number_of(call: i64) -> u32 {
    u32::try_from(call).unwrap_or(u32::MAX)
}

/// A jump reaches 255 instructions; a test sees to it that no block is longer.
fn length<T>(items: &[T]) -> u8 {
    u8::try_from(items.len()).unwrap_or(u8::MAX)
}
