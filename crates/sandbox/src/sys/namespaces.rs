//! Starts a command in namespaces: forks its first process, which builds the mount namespace and
//! stays as PID 1, and from it the command.

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
    ChildStdio, ExecPlan, ExitReport, StartError, StartFailure, StartedChild,
    arena::SharedArena,
    connect_broker::address::socket_address,
    exec_plan,
    init::{FinalReport, InitProcess, NAME_BYTES},
    landlock::HandledAccess,
    mounts,
    remount_watch::CoveredPaths,
    restrictions::{ChildRestrictions, EscapeTest, LandlockRules, NetworkTest, SeccompFilter},
    shared_namespaces::{NetworkNamespace, SharedNamespaces},
    usage::ExceededLimit,
    vfork::{close_all_but, dup_standard, vfork_exec},
    zygote::{FirstProcess, ZygoteContext, Zygotes, report_begun},
};
use crate::{
    namespace_plan::{MountStep, NamespacePlan, UsageLimits, WritablePath},
    program::Program,
};

/// The parts of the kernel that a start in namespaces needs, as found on this machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamespaceSupport<'a> {
    /// The Landlock ABI version; 0 if there is none.
    pub(crate) landlock: u32,
    pub(crate) shared: &'a SharedNamespaces,
}

/// Starts a program in namespaces, restricted by a plan.
pub(crate) fn start(
    program: &Program,
    blueprint: &NamespacePlan,
    support: NamespaceSupport<'_>,
    stdio: ChildStdio,
    zygotes: &mut Zygotes,
) -> Result<StartedChild, StartError> {
    let failed = |error| StartError::Confine("making namespaces".to_owned(), error);
    let stdio = stdio.above_standard()?;
    let (exit_pipe, exit_writer) = super::report_pipe()?;
    let network = if blueprint.own_network { NetworkNamespace::Own } else { NetworkNamespace::Host };
    let zygote = zygotes.get(ZygoteContext::Namespaces(support.shared.fds(network))).map_err(failed)?;
    let arena = &zygote.arena;
    let restrictions = restrictions(blueprint, support.landlock, arena)?;
    let plan = exec_plan(arena.exec_program(program)?, &stdio, zygote.report_fd());
    let given = [plan.input, plan.output, plan.error];
    // By then the first process has moved them to 0, 1 and 2.
    let plan =
        ExecPlan { restrictions: Some(restrictions), parent: 0, input: 0, output: 1, error: 2, ..plan };
    let steps = blueprint.steps.iter().map(|step| step.moved(|text| arena.text(text)));
    let first = arena.put(InitStart {
        plan,
        given,
        steps: arena.try_list(steps)?,
        covered: CoveredPaths::from_steps(&blueprint.steps, arena)?,
        watch: blueprint.watch,
        network,
        exit_pipe: exit_writer.as_raw_fd(),
        stack: arena.stack()?,
    })?;
    let started = zygote.start(libc::SIGKILL, first).map_err(failed)?;
    let started = started.map_err(|failure| failure.explain(&blueprint.steps))?;
    drop((stdio, exit_writer));
    Ok(StartedChild { exit_pipe: Some(exit_pipe), ..started })
}

/// Writes the restrictions of the command to the arena, where the zygote sees them.
fn restrictions<'a>(
    blueprint: &NamespacePlan,
    landlock: u32,
    arena: &'a SharedArena,
) -> io::Result<ChildRestrictions<'a>> {
    let writable: Vec<_> = blueprint.writable.iter().map(WritablePath::borrowed).collect();
    let files = match landlock {
        0 => LandlockRules::Mounts,
        abi => LandlockRules::Made(HandledAccess::writing(abi), &writable),
    };
    let network =
        if blueprint.own_network { NetworkTest::NotIn(host_network()?) } else { NetworkTest::Granted };
    let canary = EscapeTest { file: blueprint.forbidden.as_deref(), network };
    let (cgroup, rlimits) = (blueprint.cgroup, &blueprint.rlimits);
    let filter = SeccompFilter::Own(&blueprint.filter);
    ChildRestrictions { cgroup, rlimits, files, filter, canary }.copy_to(arena)
}

/// Starts a command that ends at once, with its tests of escape. An error says what this machine
/// cannot do.
#[expect(clippy::disallowed_methods, reason = "a device")]
pub(crate) fn rehearse(blueprint: &NamespacePlan, support: NamespaceSupport<'_>) -> Result<(), StartError> {
    let null = || File::open("/dev/null").map(OwnedFd::from);
    let stdio = ChildStdio { input: null()?, output: null()?, error: null()? };
    let command = windlass_contract::host::Command {
        argv: vec!["/bin/true".to_owned()],
        cwd: None,
        env: BTreeMap::new(),
        time_limit: None,
    };
    let program = Program::new(&command, &BTreeMap::new(), Path::new("/"));
    let program = program.map_err(|error| io::Error::other(error.to_string()))?;
    match start(&program, blueprint, support, stdio, &mut Zygotes::default()) {
        Ok(started) => started.pid.reap(0).map(drop).map_err(StartError::from),
        // The sandbox worked: only the program is missing.
        Err(StartError::Program(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Everything PID 1 needs, prepared before the fork.
#[derive(Clone, Copy)]
struct InitStart<'a> {
    plan: ExecPlan<'a>,
    given: [RawFd; 3],
    steps: &'a [MountStep<&'a CStr>],
    covered: CoveredPaths<'a>,
    watch: UsageLimits,
    network: NetworkNamespace,
    exit_pipe: RawFd,
    stack: *mut c_void,
}

/// Returns the inode number of this process's network namespace.
fn host_network() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}

impl FirstProcess for InitStart<'_> {
    unsafe fn run(&self) -> ! {
        let plan = &self.plan;
        // SAFETY: passed on from the caller; what is called only makes system calls on numbers and
        // on what `self` holds.
        unsafe {
            // A process group is enough to be killed by. A session of its own would have its own
            // autogroup, whose processes wait behind all other work each time they wake; the
            // command has one.
            libc::setpgid(0, 0);
            let command = match self.prepare().and_then(|()| vfork_exec(plan, self.stack)) {
                Ok(command) => command,
                Err(failure) => failure.send(plan.report),
            };
            let init = InitProcess {
                command: command.pid,
                listener: command.listener,
                network: self.network,
                exit_pipe: self.exit_pipe,
                watch: self.watch,
                covered: self.covered.to_private_memory(),
            };
            for descriptor in [0, 1, 2, self.cgroup()] {
                libc::close(descriptor);
            }
            report_begun(plan.report);
            init.run()
        }
    }
}

impl InitStart<'_> {
    /// Returns the descriptor of `cgroup.procs`; -1 without a cgroup.
    fn cgroup(&self) -> RawFd {
        self.plan.restrictions.and_then(|restrictions| restrictions.cgroup).unwrap_or(-1)
    }

    fn prepare(&self) -> Result<(), StartFailure> {
        dup_standard(self.given)?;
        // Some steps use descriptors of ours.
        mounts::build(self.steps).map_err(|(step, errno)| StartFailure::mount(step, errno))?;
        close_all_but([self.plan.report, self.exit_pipe, self.cgroup()]);
        Ok(())
    }
}

/// Reads the report of a first process. To be called when it has written or ended: then reading
/// cannot block.
pub(super) fn read_exit_report(mut pipe: &PipeReader) -> ExitReport {
    let mut bytes = [0_u8; mem::size_of::<FinalReport>()];
    if pipe.read_exact(&mut bytes).is_err() {
        return ExitReport::default();
    }
    // SAFETY: the structure is plain numbers, so any bytes are valid, and the array has its size.
    let last: FinalReport = unsafe { ptr::read_unaligned(bytes.as_ptr().cast()) };
    let names = last.names.iter().take(usize::try_from(last.killed).unwrap_or(0));
    ExitReport {
        exit: Some(super::exit_from_status(last.status)),
        over: ExceededLimit::describe(last.over),
        held_back: None,
        refused: (last.refused > 0).then(|| address_text(&last.refused_path)),
        offline: socket_address(&last.offline),
        cpu: Some(Duration::from_micros(last.cpu_micros)),
        killed: names.map(|name| text(&name[..NAME_BYTES])).collect(),
        all_gone: last.all_gone == 1,
    }
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Returns the path of a `sockaddr_un`; an abstract one begins with a zero byte.
pub(crate) fn address_text(address: &[u8]) -> String {
    match address.get(2..) {
        Some([0, name @ ..]) => format!("@{}", text(name)),
        Some(path) => text(path),
        None => String::new(),
    }
}
