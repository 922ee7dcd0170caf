//! Starts a command behind walls with namespaces: a first process that builds the view of the files and stays as init,
//! and from it the command.

use std::{
    collections::BTreeMap,
    ffi::{c_int, c_void},
    fs::{self, File},
    io::{self, PipeReader, Read},
    mem,
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::fs::MetadataExt,
    },
    path::Path,
    ptr,
    time::Duration,
};

use super::{
    Failure, LastWords, Pid, Plan, StartError, Started, Stdio,
    commons::{BORROWED, Commons, Door, Network},
    hear,
    hold::{Canary, Files, Hold, Reach},
    init,
    init::{Init, Last, NAME_BYTES, Over},
    landlock::Handled,
    mounts, plan,
    split::{Stack, borrow, close_all_but, copy, place_standard},
    without_signals,
};
use crate::{blueprint::Blueprint, program::Program};

/// What walls stand on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// The version of Landlock; 0 if there is none.
    pub(crate) landlock: u32,
    pub(crate) commons: &'a Commons,
}

/// Starts a program behind these walls.
pub(crate) fn start(
    program: &Program,
    blueprint: &Blueprint,
    ground: Standing<'_>,
    stdio: Stdio,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = super::report_pipe()?;
    let (words, last_words) = super::report_pipe()?;
    let files = match ground.landlock {
        0 => Files::Mounts,
        version => Files::Made(Handled::writing(version), &blueprint.writable),
    };
    let network = if blueprint.own_network { Reach::NotIn(our_network()?) } else { Reach::Granted };
    let canary = Canary { file: blueprint.forbidden.as_deref(), network };
    let hold = Hold { rlimits: &blueprint.rlimits, files, filter: &blueprint.filter, listens: true, canary };
    let pointers = program.pointers();
    let plan = plan(program, &pointers, &stdio, report.as_raw_fd());
    let given = [plan.input, plan.output, plan.error];
    // By then they are where they belong.
    let plan = Plan { hold: Some(hold), parent: 0, input: 0, output: 1, error: 2, ..plan };
    let network = if blueprint.own_network { Network::Own } else { Network::Everyones };
    let confined = Confined {
        plan,
        given,
        blueprint,
        door: ground.commons.door(network),
        network,
        last_words: last_words.as_raw_fd(),
        stack: Stack::new(),
    };
    let started = without_signals(|| split(&confined));
    let started = started.map_err(|error| StartError::Confine("making namespaces".to_owned(), error))?;
    drop((stdio, report, last_words));
    let started = hear(started, &mut reports, &blueprint.steps)?;
    Ok(Started { last_words: Some(words), ..started })
}

/// Puts up walls, finds that they hold, and ends. What this machine cannot do is the error.
pub(crate) fn rehearse(blueprint: &Blueprint, ground: Standing<'_>) -> Result<(), StartError> {
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
    match start(&program, blueprint, ground, stdio) {
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
    door: Door,
    network: Network,
    last_words: RawFd,
    stack: Stack,
}

/// The number of the network this process is in.
fn our_network() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

/// Makes the first process.
///
/// A process with threads cannot enter a user namespace. A child that borrows our memory can, and makes the first
/// process there: as a child of ours, not its own.
fn split(confined: &Confined<'_>) -> io::Result<Started> {
    extern "C" fn main(passed: *mut c_void) -> c_int {
        // SAFETY: it is the pair passed to `clone` below, whose caller stands still until we have ended.
        let (confined, made) = unsafe { &mut *passed.cast::<(&Confined<'_>, io::Result<Started>)>() };
        *made = go_ahead(confined);
        0
    }
    let mut passed = (confined, Err(io::ErrorKind::Other.into()));
    let stack = Stack::new();
    // SAFETY: the stack is an aligned allocation that nobody else uses; it and `passed` live until `clone` returns, which
    // CLONE_VFORK delays until the child has ended.
    let pid = unsafe { libc::clone(main, stack.top(), BORROWED, (&raw mut passed).cast()) };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Pid(pid).collect(0)?;
    passed.1
}

fn go_ahead(confined: &Confined<'_>) -> io::Result<Started> {
    confined.door.enter().map_err(io::Error::from_raw_os_error)?;
    let flags = libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_PARENT;
    // SAFETY: signals are blocked since before we were made; the copy calls nothing but `first_process`, which only
    // makes system calls, and has its own copy of everything `confined` points to.
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
        // A group is enough to be killed by. A session of its own would also make the scheduler treat it as a stranger
        // to us, who waits behind everyone else's work each time it wakes; the command has one.
        libc::setpgid(0, 0);
        let command = match prepare(confined).and_then(|()| borrow(plan, &confined.stack)) {
            Ok(command) => command,
            Err(failure) => failure.send(plan.report),
        };
        for descriptor in [0, 1, 2, plan.report] {
            libc::close(descriptor);
        }
        Init {
            command: command.pid,
            listener: command.listener,
            network: confined.network,
            last_words: confined.last_words,
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
    init::keep_memory_private();
    mounts::build(&confined.blueprint.steps).map_err(|(step, errno)| Failure::mount(step, errno))
}

/// Reads what init wrote. To be called when it has written or ended: then reading cannot block.
pub(super) fn last_words(mut pipe: &PipeReader) -> LastWords {
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
        cpu: Some(Duration::from_micros(last.cpu_micros)),
        killed: names.map(|name| text(&name[..NAME_BYTES])).collect(),
        all_gone: last.all_gone == 1,
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
