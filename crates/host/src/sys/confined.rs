//! Starts a command behind walls with namespaces: a first process that builds the view of the files and stays as init,
//! and from it the command.

use std::{
    collections::BTreeMap,
    ffi::{CStr, c_void},
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
    Failure, LastWords, Plan, StartError, Started, Stdio,
    arena::Arena,
    commons::{Commons, Network},
    covers::Covered,
    hold::{Canary, Files, Filter, Hold, Reach},
    init::{Init, Last, NAME_BYTES},
    landlock::Handled,
    mounts, plan,
    split::{borrow, close_all_but, place_standard},
    starter::{First, Place, Starters, begun},
    usage::Over,
};
use crate::{
    blueprint::{Blueprint, Step, Watch, Writable},
    program::Program,
};

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
    starters: &mut Starters,
) -> Result<Started, StartError> {
    let making = |error| StartError::Confine("making namespaces".to_owned(), error);
    let stdio = stdio.above_standard()?;
    let (words, last_words) = super::report_pipe()?;
    let network = if blueprint.own_network { Network::Own } else { Network::Everyones };
    let maker = starters.at(Place::Behind(ground.commons.door(network))).map_err(making)?;
    let arena = &maker.arena;
    let hold = hold(blueprint, ground.landlock, arena)?;
    let plan = plan(arena.words(program)?, &stdio, maker.report());
    let given = [plan.input, plan.output, plan.error];
    // By then they are where they belong.
    let plan = Plan { hold: Some(hold), parent: 0, input: 0, output: 1, error: 2, ..plan };
    let steps = blueprint.steps.iter().map(|step| step.moved(|text| arena.text(text)));
    let confined = arena.put(Confined {
        plan,
        given,
        steps: arena.try_list(steps)?,
        covered: Covered::by(&blueprint.steps, arena)?,
        watch: blueprint.watch,
        network,
        last_words: last_words.as_raw_fd(),
        stack: arena.stack()?,
    })?;
    let started = maker.start(libc::SIGKILL, confined).map_err(making)?;
    let started = started.map_err(|failure| failure.explain(&blueprint.steps))?;
    drop((stdio, last_words));
    Ok(Started { last_words: Some(words), ..started })
}

/// What the command is held to, where the starter sees it.
fn hold<'a>(blueprint: &Blueprint, landlock: u32, arena: &'a Arena) -> io::Result<Hold<'a>> {
    let writable: Vec<_> = blueprint.writable.iter().map(Writable::borrowed).collect();
    let files = match landlock {
        0 => Files::Mounts,
        version => Files::Made(Handled::writing(version), &writable),
    };
    let network = if blueprint.own_network { Reach::NotIn(our_network()?) } else { Reach::Granted };
    let canary = Canary { file: blueprint.forbidden.as_deref(), network };
    let (cgroup, rlimits, filter) = (blueprint.cgroup, &blueprint.rlimits, Filter::Own(&blueprint.filter));
    Hold { cgroup, rlimits, files, filter, canary }.placed(arena)
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
    match start(&program, blueprint, ground, stdio, &mut Starters::default()) {
        Ok(started) => started.pid.collect(0).map(drop).map_err(StartError::from),
        // The walls stood: only the program is missing.
        Err(StartError::Program(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Everything the first process needs, prepared beforehand.
#[derive(Clone, Copy)]
struct Confined<'a> {
    plan: Plan<'a>,
    given: [RawFd; 3],
    steps: &'a [Step<&'a CStr>],
    covered: Covered<'a>,
    watch: Watch,
    network: Network,
    last_words: RawFd,
    stack: *mut c_void,
}

/// The number of the network this process is in.
fn our_network() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

impl First for Confined<'_> {
    /// Builds the walls, starts the command, and stays as init.
    unsafe fn run(&self) -> ! {
        let plan = &self.plan;
        // SAFETY: passed on from the caller; what is called only makes system calls on numbers and on what `self` holds.
        unsafe {
            // A group is enough to be killed by. A session of its own would also make the scheduler treat it as a
            // stranger to us, who waits behind everyone else's work each time it wakes; the command has one.
            libc::setpgid(0, 0);
            let command = match self.prepare().and_then(|()| borrow(plan, self.stack)) {
                Ok(command) => command,
                Err(failure) => failure.send(plan.report),
            };
            let init = Init {
                command: command.pid,
                listener: command.listener,
                network: self.network,
                last_words: self.last_words,
                watch: self.watch,
                covered: self.covered.kept(),
            };
            for descriptor in [0, 1, 2, self.cgroup()] {
                libc::close(descriptor);
            }
            begun(plan.report);
            init.run()
        }
    }
}

impl Confined<'_> {
    /// What the command goes into its cgroup by; -1 if it has none.
    fn cgroup(&self) -> RawFd {
        self.plan.hold.and_then(|hold| hold.cgroup).unwrap_or(-1)
    }

    fn prepare(&self) -> Result<(), Failure> {
        place_standard(self.given)?;
        close_all_but([self.plan.report, self.last_words, self.cgroup()]);
        mounts::build(self.steps).map_err(|(step, errno)| Failure::mount(step, errno))
    }
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
        over: Over::describe(last.over),
        held_back: None,
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
