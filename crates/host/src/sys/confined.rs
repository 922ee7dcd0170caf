//! Starts a command behind walls with namespaces: a first process that builds the view of the files and stays as init,
//! and from it the command.

use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_int},
    fs::{self, File},
    io::{self, PipeReader, Read},
    mem,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::fs::MetadataExt,
    },
    path::Path,
    ptr,
};

use super::{
    Failure, LastWords, Plan, StartError, Started, Stdio, hear,
    hold::{Canary, Files, Hold, Reach},
    init,
    init::{Init, Last, NAME_BYTES, Over},
    keyhole::Network,
    landlock::{Handled, last_errno},
    mounts, plan,
    split::{Stack, borrow, close_all_but, copy, place_standard},
    without_signals,
};
use crate::{blueprint::Blueprint, program::Program};

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
    let confined = Confined {
        plan,
        given,
        blueprint,
        uid_map,
        gid_map,
        last_words: last_words.as_raw_fd(),
        stack: Stack::new(),
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
    stack: Stack,
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

/// Makes the first process.
fn split(confined: &Confined<'_>, own_network: bool) -> io::Result<Started> {
    let network = if own_network { libc::CLONE_NEWNET } else { 0 };
    let flags = libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP
        | network;
    // SAFETY: our caller has blocked signals; the copy calls nothing but `first_process`, which only makes system
    // calls, and has its own copy of everything `confined` points to.
    unsafe {
        match copy(flags, libc::SIGKILL)? {
            Some(started) => Ok(started),
            None => first_process(confined),
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
        let command = match prepare(confined).and_then(|()| borrow(plan, &confined.stack)) {
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
    place_standard(confined.given)?;
    close_all_but([plan.report, confined.last_words]);
    become_the_user(confined).map_err(Failure::user)?;
    init::keep_memory_private();
    mounts::build(&confined.blueprint.steps).map_err(|(step, errno)| Failure::mount(step, errno))?;
    if confined.blueprint.own_network {
        loopback_up().map_err(Failure::loopback)?;
    }
    Ok(())
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
