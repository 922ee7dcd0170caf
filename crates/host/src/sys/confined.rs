//! Starts a command behind walls with namespaces: a first process that builds the view of the files and stays as init,
//! and from it the command.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_int, c_long, c_void},
    fs::{self, File},
    io::{self, PipeReader, Read},
    mem,
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
        unix::fs::MetadataExt,
    },
    path::Path,
    ptr,
};

use super::{
    Failure, LastWords, Pid, Plan, StartError, Started, Stdio, become_program, hear,
    hold::{Canary, Files, Hold, Reach},
    init,
    init::{Init, Last, NAME_BYTES, Over},
    keyhole::Network,
    landlock::{Handled, last_errno},
    mounts, plan, without_signals,
};
use crate::{blueprint::Blueprint, program::Program};

/// 64 KiB, of u128 for the alignment stacks need.
const STACK_LENGTH: usize = 4096;

/// Starts a program behind these walls.
pub(crate) fn start(
    program: &Program,
    blueprint: &Blueprint,
    landlock_version: u32,
    stdio: Stdio,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = super::report_pipe()?;
    let (words, last_words) = super::report_pipe()?;
    let files = if landlock_version == 0 {
        Files::Mounts
    } else {
        Files::Made(Handled::writing(landlock_version), &blueprint.writable)
    };
    let network = if blueprint.own_network { Reach::NotIn(our_network()?) } else { Reach::Granted };
    let canary = Canary { file: blueprint.forbidden.as_deref(), network };
    let hold = Hold { rlimits: &blueprint.rlimits, files, filter: &blueprint.filter, listens: true, canary };
    let pointers = program.pointers();
    let plan = plan(program, &pointers, &stdio, report.as_raw_fd());
    let given = [plan.input, plan.output, plan.error];
    // By then they are where they belong.
    let plan = Plan { hold: Some(hold), parent: 0, input: 0, output: 1, error: 2, ..plan };
    let (uid_map, gid_map) = identity_maps()?;
    let mut stack = Vec::<u128>::with_capacity(STACK_LENGTH);
    let confined = Confined {
        plan,
        given,
        blueprint,
        uid_map,
        gid_map,
        last_words: last_words.as_raw_fd(),
        // SAFETY: one past the end of the allocation.
        stack: unsafe { stack.as_mut_ptr().add(STACK_LENGTH).cast() },
    };
    let started = without_signals(|| split(&confined, blueprint.own_network));
    let started = started.map_err(|error| StartError::Confine("making namespaces".to_owned(), error))?;
    drop((stdio, report, last_words));
    let started = hear(started, &mut reports, &blueprint.steps)?;
    Ok(Started { last_words: Some(words), ..started })
}

/// Puts up walls, finds that they hold, and ends. What this machine cannot do is the error.
pub(crate) fn rehearse(blueprint: &Blueprint, landlock_version: u32) -> Result<(), StartError> {
    let null = || File::open("/dev/null").map(OwnedFd::from);
    let stdio = Stdio { input: null()?, output: null()?, error: null()? };
    let command = windlass_contract::Command {
        argv: vec!["/bin/true".to_owned()],
        cwd: None,
        env: BTreeMap::new(),
        time_limit: None,
    };
    let program = Program::new(&command, &BTreeMap::new(), Path::new("/"));
    let program = program.map_err(|error| io::Error::other(error.to_string()))?;
    match start(&program, blueprint, landlock_version, stdio) {
        Ok(started) => started.pid.collect(0).map(drop).map_err(StartError::from),
        // The walls stood: only the program is missing.
        Err(StartError::Program(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Everything the first process needs, prepared beforehand.
struct Confined<'a> {
    plan: Plan<'a>,
    given: [RawFd; 3],
    blueprint: &'a Blueprint,
    uid_map: CString,
    gid_map: CString,
    last_words: RawFd,
    stack: *mut c_void,
}

/// The number of the network this process is in.
fn our_network() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

/// The user is the same inside as outside, and nobody else is anybody.
fn identity_maps() -> io::Result<(CString, CString)> {
    // SAFETY: take and give numbers.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let map = |id| CString::new(format!("{id} {id} 1")).map_err(io::Error::from);
    Ok((map(user)?, map(group)?))
}

/// Makes the first process, with a copy of our memory, since it outlives the start. Copying the tables of a small
/// program takes some 0.2 ms.
fn split(confined: &Confined<'_>, own_network: bool) -> io::Result<Started> {
    let network = if own_network { libc::CLONE_NEWNET } else { 0 };
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP
        | network
        | libc::CLONE_PIDFD
        | libc::SIGCHLD;
    let mut ended: RawFd = -1;
    // SAFETY: without CLONE_VM and with no stack this is a `fork`; the one pointer is to where the kernel writes a
    // descriptor. The child calls nothing but `first_process`, which only makes system calls.
    let pid = unsafe { libc::syscall(libc::SYS_clone, c_long::from(flags), 0, &raw mut ended, 0, 0) };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `confined` points to.
        0 => unsafe { first_process(confined) },
        pid => {
            let pid = Pid(libc::pid_t::try_from(pid).map_err(io::Error::other)?);
            // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
            Ok(Started { pid, ended: unsafe { OwnedFd::from_raw_fd(ended) }, last_words: None })
        }
    }
}

/// Builds the walls, starts the command, and stays as init.
///
/// # Safety
///
/// To be called in a fresh child only, with all signals blocked.
unsafe fn first_process(confined: &Confined<'_>) -> ! {
    let plan = &confined.plan;
    // SAFETY: passed on from the caller; what is called only makes system calls on numbers and on what `confined` holds.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if abandoned(plan.report) {
            libc::_exit(127);
        }
        libc::setsid();
        let command = match prepare(confined).and_then(|()| fork_command(confined)) {
            Ok(command) => command,
            Err(failure) => failure.send(plan.report),
        };
        for descriptor in [0, 1, 2, plan.report] {
            libc::close(descriptor);
        }
        let network = if confined.blueprint.own_network { Network::Own } else { Network::Everyones };
        let last_words = confined.last_words;
        Init {
            command: command.pid,
            listener: command.listener,
            network,
            last_words,
            watch: confined.blueprint.watch,
        }
        .run()
    }
}

/// Whether nobody is left to hear a report: then the parent died before it could be told to take us along.
fn abandoned(report: RawFd) -> bool {
    let mut state = libc::pollfd { fd: report, events: 0, revents: 0 };
    // SAFETY: one element, which lives across the call.
    unsafe { libc::poll(&raw mut state, 1, 0) };
    state.revents & libc::POLLERR != 0
}

/// # Safety
///
/// As for [`first_process`].
unsafe fn prepare(confined: &Confined<'_>) -> Result<(), Failure> {
    let plan = &confined.plan;
    // SAFETY: numbers only.
    unsafe {
        for (from, to) in confined.given.iter().zip(0..) {
            if libc::dup2(*from, to) < 0 {
                return Err(Failure::program(last_errno()));
            }
        }
        let (one, other) = (plan.report.cast_unsigned(), confined.last_words.cast_unsigned());
        let (low, high) = (one.min(other), one.max(other));
        close_range(3, low.wrapping_sub(1));
        close_range(low + 1, high.wrapping_sub(1));
        close_range(high + 1, u32::MAX);
    }
    become_the_user(confined).map_err(Failure::user)?;
    init::keep_memory_private();
    mounts::build(&confined.blueprint.steps).map_err(|(step, errno)| Failure::mount(step, errno))?;
    if confined.blueprint.own_network {
        loopback_up().map_err(Failure::loopback)?;
    }
    Ok(())
}

/// Nothing to close is fine, and so is a kernel without the call: what Rust opened closes on `exec`.
fn close_range(first: u32, last: u32) {
    if first <= last {
        // SAFETY: numbers only; nothing above the standard three is used but what the caller leaves out.
        unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    }
}

fn become_the_user(confined: &Confined<'_>) -> Result<(), c_int> {
    write_file(c"/proc/self/setgroups", c"deny")?;
    write_file(c"/proc/self/uid_map", &confined.uid_map)?;
    write_file(c"/proc/self/gid_map", &confined.gid_map)
}

fn write_file(path: &CStr, text: &CStr) -> Result<(), c_int> {
    // SAFETY: both are C strings, and the descriptor is closed where it was opened.
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        if file < 0 {
            return Err(last_errno());
        }
        let written = libc::write(file, text.as_ptr().cast(), text.to_bytes().len());
        let result = if written < 0 { Err(last_errno()) } else { Ok(()) };
        libc::close(file);
        result
    }
}

/// A new network has a loopback that is down.
fn loopback_up() -> Result<(), c_int> {
    /// IFF_UP and IFF_RUNNING.
    const UP_AND_RUNNING: libc::c_short = 0x41;
    // SAFETY: all zeros is a valid request, which lives across the calls; the descriptor is closed where it was made.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(last_errno());
        }
        let mut request: libc::ifreq = mem::zeroed();
        request.ifr_name[0] = b'l'.cast_signed();
        request.ifr_name[1] = b'o'.cast_signed();
        request.ifr_ifru.ifru_flags = UP_AND_RUNNING;
        let set = libc::ioctl(socket, libc::SIOCSIFFLAGS as libc::Ioctl, &raw mut request);
        let result = if set < 0 { Err(last_errno()) } else { Ok(()) };
        libc::close(socket);
        result
    }
}

struct Command {
    pid: libc::pid_t,
    listener: RawFd,
}

/// Starts the command. It borrows our memory and our descriptors until it calls `exec`: that is how the listener of
/// its filter comes to us.
///
/// # Safety
///
/// As for [`first_process`].
unsafe fn fork_command(confined: &Confined<'_>) -> Result<Command, Failure> {
    extern "C" fn main(passed: *mut c_void) -> c_int {
        // SAFETY: it is the pair passed to `clone` below, which stands still until we no longer use it.
        unsafe {
            let (plan, listener) = &mut *passed.cast::<(&Plan<'_>, RawFd)>();
            become_program(plan, listener)
        }
    }
    let mut passed = (&confined.plan, -1);
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
    // SAFETY: the stack is one past the end of an aligned allocation that nobody else uses; `passed` and what it points
    // to live until `clone` returns, which CLONE_VFORK delays until the child no longer uses our memory.
    let pid = unsafe { libc::clone(main, confined.stack, flags, (&raw mut passed).cast()) };
    if pid < 0 { Err(Failure::program(last_errno())) } else { Ok(Command { pid, listener: passed.1 }) }
}

/// Reads what init wrote. To be called when it has ended: then reading cannot block.
pub(super) fn last_words(pipe: &mut PipeReader) -> LastWords {
    let mut bytes = [0_u8; mem::size_of::<Last>()];
    if pipe.read_exact(&mut bytes).is_err() {
        return LastWords::default();
    }
    // SAFETY: the structure is plain numbers, so any bytes are valid, and the array has its size.
    let last: Last = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
    let names = last.names.iter().take(usize::try_from(last.killed).unwrap_or(0));
    LastWords {
        exit: Some(super::exit(last.status)),
        over: [(Over::Memory, "memory"), (Over::Processes, "processes"), (Over::Disk, "disk")]
            .into_iter()
            .find_map(|(over, name)| (over as u32 == last.over).then_some(name)),
        refused: (last.refused > 0).then(|| address_text(&last.refused_path)),
        killed: names.map(|name| text(&name[..NAME_BYTES])).collect(),
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The path in a local address; an abstract one begins with a zero.
fn address_text(address: &[u8]) -> String {
    match address.get(2..) {
        Some([0, name @ ..]) => format!("@{}", text(name)),
        Some(path) => text(path),
        None => String::new(),
    }
}
