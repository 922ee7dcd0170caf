//! System calls: starting a child, killing its group, collecting its end. All `unsafe` of the project is in this file
//! and those below it.
//!
//! On Linux the child borrows this process's memory until it calls `exec`, as with `vfork`. A `fork` copies page
//! tables instead, and that grows with the process that forks: 0.2 ms more than `posix_spawn` for a small one, 4 ms
//! more at 200 MB. What runs in the child is [`become_program`] and what it calls: no allocation, no locks, no panics.
#![expect(unsafe_code, reason = "this is the file the lint sends such code to")]

#[cfg(target_os = "linux")]
use std::{
    ffi::c_void,
    os::fd::{AsFd, FromRawFd},
};
use std::{
    ffi::{c_char, c_int},
    io::{self, PipeReader, Read},
    mem,
    os::fd::{AsRawFd, OwnedFd, RawFd},
    ptr,
};

#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use windlass_contract::Exit;

use crate::program::{Pointers, Program};

#[cfg(target_os = "linux")]
pub(crate) mod confined;
#[cfg(target_os = "linux")]
pub(crate) mod hold;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod keyhole;
#[cfg(target_os = "linux")]
pub(crate) mod landlock;
#[cfg(target_os = "linux")]
mod mounts;

#[cfg(target_os = "linux")]
use crate::blueprint::Step;
#[cfg(target_os = "linux")]
use hold::{Hold, Part};

/// Signals are numbered from 1 to this.
#[cfg(target_os = "linux")]
const LAST_SIGNAL: c_int = 64;
#[cfg(not(target_os = "linux"))]
const LAST_SIGNAL: c_int = 31;

/// A child that was started and not yet collected, so that its number cannot have passed to another process.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) pid: Pid,
    /// Readable once the child has ended.
    #[cfg(target_os = "linux")]
    ended: OwnedFd,
    /// Where the first process of a sandbox leaves word of how it went.
    #[cfg(target_os = "linux")]
    last_words: Option<PipeReader>,
}

impl Started {
    /// What the first process of a sandbox said. To be asked for when it has ended.
    #[cfg(target_os = "linux")]
    pub(crate) fn last_words(&mut self) -> LastWords {
        self.last_words.as_mut().map(confined::last_words).unwrap_or_default()
    }

    /// Nobody here leaves word.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn last_words(&mut self) -> LastWords {
        LastWords::default()
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(target_os = "linux")]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        // SAFETY: the descriptor stays open and ours while the registration lives, since that borrows it from `self`,
        // and a borrowed descriptor always gives the same number.
        let ended = unsafe { AsyncFd::register_with_interest(self.ended.as_fd(), Interest::READABLE) };
        ended?.readable().await.map(drop)
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(not(target_os = "linux"))]
    pub(crate) async fn ended(&self) -> io::Result<()> {
        let pid = self.pid;
        tokio::task::spawn_blocking(move || pid.wait()).await?
    }
}

/// What init said when it ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct LastWords {
    pub(crate) exit: Option<Exit>,
    pub(crate) over: Option<&'static str>,
    pub(crate) refused: Option<String>,
    pub(crate) killed: Vec<String>,
}

/// The three standard descriptors of a child.
#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) input: OwnedFd,
    pub(crate) output: OwnedFd,
    pub(crate) error: OwnedFd,
}

impl Stdio {
    /// The same descriptors once more, for another try.
    pub(crate) fn try_clone(&self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self { input: input.try_clone()?, output: output.try_clone()?, error: error.try_clone()? })
    }

    /// Moves them out of the way of the numbers they are to get.
    fn above_standard(self) -> io::Result<Self> {
        let Self { input, output, error } = self;
        Ok(Self {
            input: above_standard(input)?,
            output: above_standard(output)?,
            error: above_standard(error)?,
        })
    }
}

/// Why a child did not come to run its program.
#[derive(Debug)]
pub(crate) enum StartError {
    /// It could not go to its working directory.
    Directory(io::Error),
    /// It could not be confined, in this step.
    Confine(String, io::Error),
    /// Anything else.
    Program(io::Error),
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> Self {
        Self::Program(error)
    }
}

/// Starts a program in a session of its own, with the given descriptors and no others. On Linux the child is killed
/// when the calling thread ends.
pub(crate) fn start(
    program: &Program,
    stdio: Stdio,
    #[cfg(target_os = "linux")] hold: Option<Hold<'_>>,
) -> Result<Started, StartError> {
    let stdio = stdio.above_standard()?;
    let (mut reports, report) = report_pipe()?;
    let pointers = program.pointers();
    let plan = Plan {
        #[cfg(target_os = "linux")]
        hold,
        ..plan(program, &pointers, &stdio, report.as_raw_fd())
    };
    let started = without_signals(|| split(&plan))?;
    drop((stdio, report));
    hear(
        started,
        &mut reports,
        #[cfg(target_os = "linux")]
        &[],
    )
}

/// A pipe whose writing end stays out of the way of the standard descriptors.
fn report_pipe() -> io::Result<(PipeReader, OwnedFd)> {
    let (reader, writer) = io::pipe()?;
    Ok((reader, above_standard(writer.into())?))
}

/// Waits until the child has become its program, or says why it has not.
fn hear(
    started: Started,
    reports: &mut PipeReader,
    #[cfg(target_os = "linux")] steps: &[Step],
) -> Result<Started, StartError> {
    let mut message = [0; 8];
    match reports.read_exact(&mut message) {
        // The last writing end was closed by a successful `exec`.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(started),
        Err(error) => {
            started.pid.kill_group();
            started.pid.collect(0)?;
            Err(error.into())
        }
        Ok(()) => {
            started.pid.kill_group();
            started.pid.collect(0)?;
            let failure = Failure::read(message);
            #[cfg(target_os = "linux")]
            return Err(failure.explain(steps));
            #[cfg(not(target_os = "linux"))]
            Err(failure.explain())
        }
    }
}

/// Everything the child needs, prepared beforehand. The pointers are valid until [`start`] has heard from the child.
struct Plan<'a> {
    candidates: *const *const c_char,
    argv: *const *const c_char,
    env: *const *const c_char,
    cwd: *const c_char,
    input: RawFd,
    output: RawFd,
    error: RawFd,
    report: RawFd,
    /// Whose death ends the child; 0 where the kernel sees to it.
    parent: libc::pid_t,
    open_files: c_int,
    #[cfg(target_os = "linux")]
    hold: Option<Hold<'a>>,
    #[cfg(not(target_os = "linux"))]
    hold: std::marker::PhantomData<&'a ()>,
}

fn plan<'a>(program: &Program, pointers: &Pointers, stdio: &Stdio, report: RawFd) -> Plan<'a> {
    Plan {
        candidates: pointers.candidates.as_ptr(),
        argv: pointers.argv.as_ptr(),
        env: pointers.env.as_ptr(),
        cwd: program.cwd.as_ptr(),
        input: stdio.input.as_raw_fd(),
        output: stdio.output.as_raw_fd(),
        error: stdio.error.as_raw_fd(),
        report,
        parent: std::process::id().cast_signed(),
        open_files: open_file_limit(),
        #[cfg(target_os = "linux")]
        hold: None,
        #[cfg(not(target_os = "linux"))]
        hold: std::marker::PhantomData,
    }
}

/// What went wrong in the child, as it is sent to the parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Failure {
    kind: u8,
    detail: u16,
    errno: c_int,
}

impl Failure {
    const PROGRAM: u8 = 0;
    const DIRECTORY: u8 = 1;
    const HOLD: u8 = 2;
    const MOUNT: u8 = 3;
    const USER: u8 = 4;
    const LOOPBACK: u8 = 5;

    fn program(errno: c_int) -> Self {
        Self { kind: Self::PROGRAM, detail: 0, errno }
    }

    fn last(kind: u8) -> Self {
        Self { kind, detail: 0, errno: io::Error::last_os_error().raw_os_error().unwrap_or(0) }
    }

    fn write(self) -> [u8; 8] {
        let mut message = [self.kind; 8];
        message[2..4].copy_from_slice(&self.detail.to_ne_bytes());
        message[4..].copy_from_slice(&self.errno.to_ne_bytes());
        message
    }

    fn read(message: [u8; 8]) -> Self {
        let [kind, _, low, high, errno @ ..] = message;
        Self { kind, detail: u16::from_ne_bytes([low, high]), errno: c_int::from_ne_bytes(errno) }
    }

    /// Sends it and ends the child.
    fn send(self, report: RawFd) -> ! {
        let message = self.write();
        // SAFETY: the message is a local that lives across the call.
        unsafe {
            libc::write(report, message.as_ptr().cast(), message.len());
            libc::_exit(127)
        }
    }

    fn explain(self, #[cfg(target_os = "linux")] steps: &[Step]) -> StartError {
        let error = io::Error::from_raw_os_error(self.errno);
        #[cfg(target_os = "linux")]
        if let Some(step) = self.step(steps) {
            return StartError::Confine(step, error);
        }
        if self.kind == Self::DIRECTORY { StartError::Directory(error) } else { StartError::Program(error) }
    }
}

#[cfg(target_os = "linux")]
impl Failure {
    fn hold((part, errno): (Part, c_int)) -> Self {
        Self { kind: Self::HOLD, detail: part as u16, errno }
    }

    fn mount(step: usize, errno: c_int) -> Self {
        Self { kind: Self::MOUNT, detail: u16::try_from(step).unwrap_or(u16::MAX), errno }
    }

    fn user(errno: c_int) -> Self {
        Self { kind: Self::USER, detail: 0, errno }
    }

    fn loopback(errno: c_int) -> Self {
        Self { kind: Self::LOOPBACK, detail: 0, errno }
    }

    /// What could not be done, if it belongs to confining.
    fn step(self, steps: &[Step]) -> Option<String> {
        match self.kind {
            Self::HOLD => Some(Part::describe(self.detail).to_owned()),
            Self::MOUNT => Some(
                steps.get(usize::from(self.detail)).map_or_else(|| "mounting".to_owned(), Step::describe),
            ),
            Self::USER => Some("becoming the same user in a user namespace".to_owned()),
            Self::LOOPBACK => Some("switching the loopback network on".to_owned()),
            _ => None,
        }
    }
}

/// Makes the child. It shares our memory and we stand still until it calls `exec` or ends.
#[cfg(target_os = "linux")]
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    extern "C" fn main(plan: *mut c_void) -> c_int {
        // SAFETY: `plan` is the one passed to `clone` below, which outlives this child's use of it because the
        // parent's thread is suspended until then.
        unsafe { become_program(&*plan.cast::<Plan<'_>>(), &mut -1) }
    }
    // 64 KiB. The child's deepest frame is a few hundred bytes, and no handler can run on top of it. Of u128, for
    // the alignment stacks need.
    const STACK_LENGTH: usize = 4096;
    let mut stack = Vec::<u128>::with_capacity(STACK_LENGTH);
    let mut ended: RawFd = -1;
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PIDFD | libc::SIGCHLD;
    // SAFETY: the stack pointer is one past the end of an aligned allocation of STACK_LENGTH, and stacks grow down;
    // `stack` and `plan` live until `clone` returns, which CLONE_VFORK delays until the child no longer uses our
    // memory; the child's function never returns; with CLONE_PIDFD the one variadic argument is where the kernel
    // writes a descriptor, and `ended` has that type.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(STACK_LENGTH).cast();
        libc::clone(main, top, flags, ptr::from_ref(plan).cast_mut().cast(), &raw mut ended)
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    if ended < 0 {
        Pid(pid).kill_group();
        Pid(pid).collect(0)?;
        return Err(io::Error::new(io::ErrorKind::Unsupported, "this needs Linux 5.2 or later"));
    }
    // SAFETY: the kernel has just made this descriptor for us, and nobody else knows of it.
    let ended = unsafe { OwnedFd::from_raw_fd(ended) };
    Ok(Started { pid: Pid(pid), ended, last_words: None })
}

/// Makes the child, with a copy of our memory.
#[cfg(not(target_os = "linux"))]
fn split(plan: &Plan<'_>) -> io::Result<Started> {
    // SAFETY: the child calls nothing but `become_program`, which is safe after `fork` in a process with threads
    // because it only makes calls that are safe in signal handlers.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child, and it has its own copy of everything `plan` points to.
        0 => unsafe { become_program(plan, &mut -1) },
        pid => Ok(Started { pid: Pid(pid) }),
    }
}

/// Turns the child into the program, or reports why not and ends it.
///
/// # Safety
///
/// To be called in a fresh child only, with all signals blocked. The pointers of `plan` must be what their names say:
/// C strings, and lists of them that end in a null pointer.
unsafe fn become_program(plan: &Plan<'_>, listener: &mut RawFd) -> ! {
    // SAFETY: passed on from the caller.
    unsafe {
        let Err(failure) = prepare(plan).and_then(|()| hold(plan, listener)).and_then(|()| execute(plan));
        failure.send(plan.report)
    }
}

/// # Safety
///
/// As for [`become_program`].
unsafe fn prepare(plan: &Plan<'_>) -> Result<(), Failure> {
    let check = |result: c_int| if result < 0 { Err(Failure::last(Failure::PROGRAM)) } else { Ok(()) };
    // SAFETY: only numbers are passed, except for `cwd`, which is a C string by the caller's word.
    unsafe {
        check(libc::setsid())?;
        die_with_parent(plan.parent);
        default_signals();
        check(libc::dup2(plan.input, 0))?;
        check(libc::dup2(plan.output, 1))?;
        check(libc::dup2(plan.error, 2))?;
        close_others_on_exec(plan.open_files);
        if libc::chdir(plan.cwd) < 0 { Err(Failure::last(Failure::DIRECTORY)) } else { Ok(()) }
    }
}

/// Confines the child, if it is to be. From here on it can do nothing but become its program.
#[cfg(target_os = "linux")]
fn hold(plan: &Plan<'_>, listener: &mut RawFd) -> Result<(), Failure> {
    if let Some(hold) = &plan.hold {
        *listener = hold::apply(hold).map_err(Failure::hold)?;
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn hold(_plan: &Plan<'_>, _listener: &mut RawFd) -> Result<(), Failure> {
    Ok(())
}

/// Tries each candidate, by the rules of `execvp`: a missing one is passed over, one without permission too, but is
/// what we complain about in the end.
///
/// # Safety
///
/// As for [`become_program`].
unsafe fn execute(plan: &Plan<'_>) -> Result<std::convert::Infallible, Failure> {
    let mut failure = Failure::program(libc::ENOENT);
    let mut candidate = plan.candidates;
    // SAFETY: `candidates`, `argv` and `env` are lists of C strings that end in a null pointer, by the caller's word;
    // `candidate` moves on only from an element that is not that end.
    unsafe {
        while !(*candidate).is_null() {
            libc::execve(*candidate, plan.argv, plan.env);
            let this = Failure::last(Failure::PROGRAM);
            match this.errno {
                libc::ENOENT | libc::ENOTDIR => {}
                libc::EACCES => failure = this,
                _ => return Err(this),
            }
            candidate = candidate.add(1);
        }
    }
    Err(failure)
}

/// Has the kernel kill the child when the thread that made it is gone, and ends it at once if it already is.
#[cfg(target_os = "linux")]
fn die_with_parent(parent: libc::pid_t) {
    // SAFETY: both calls take and give numbers only.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if parent != 0 && libc::getppid() != parent {
            libc::_exit(127);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn die_with_parent(_parent: libc::pid_t) {}

/// Undoes what this process does with signals: handlers would run in shared memory, and `exec` keeps both ignored
/// signals (Rust ignores SIGPIPE) and blocked ones.
fn default_signals() {
    // SAFETY: all zeros is a valid `sigaction`, whose handler is then SIG_DFL, and `sigemptyset` makes a valid set;
    // the pointers are to locals that live across the calls. Signals that cannot be set fail without effect.
    unsafe {
        let action: libc::sigaction = mem::zeroed();
        for signal in 1..=LAST_SIGNAL {
            libc::sigaction(signal, &raw const action, ptr::null_mut());
        }
        let mut none: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut());
    }
}

/// Rust opens everything so that `exec` closes it, but a C library in the same process may not.
fn close_others_on_exec(open_files: c_int) {
    // SAFETY: `close_range` takes numbers only; marking descriptors in the child's own table changes nothing here.
    #[cfg(target_os = "linux")]
    if unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) } == 0 {
        return;
    }
    for descriptor in 3..open_files {
        // SAFETY: only numbers; a descriptor that is not open fails without effect.
        unsafe { libc::fcntl(descriptor, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// One more than the highest descriptor this process can have.
fn open_file_limit() -> c_int {
    // SAFETY: takes and gives a number.
    let limit = unsafe { libc::sysconf(libc::_SC_OPEN_MAX) };
    c_int::try_from(limit).unwrap_or(c_int::MAX)
}

/// Moves a descriptor out of the way of the three standard ones, which the child is about to replace.
fn above_standard(descriptor: OwnedFd) -> io::Result<OwnedFd> {
    // `try_clone` never gives one of the three.
    if descriptor.as_raw_fd() > 2 { Ok(descriptor) } else { descriptor.try_clone() }
}

/// Holds back all signals for this thread while `act` runs, so that no handler runs in a child that shares our memory.
fn without_signals<T>(act: impl FnOnce() -> T) -> T {
    // SAFETY: all zeros is a valid `sigset_t` to be filled; the pointers are to locals that live across the calls.
    let before = unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        let mut before: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before);
        before
    };
    let result = act();
    // SAFETY: `before` was filled by the call above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut()) };
    result
}

/// A child of ours. Only meaningful until it is collected.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pid(libc::pid_t);

impl Pid {
    /// Kills every process of the child's group. A group that is already gone is fine.
    pub(crate) fn kill_group(self) {
        // SAFETY: takes numbers only. The group has the child's number, and that cannot have passed to others while
        // the child is not collected.
        unsafe { libc::killpg(self.0, libc::SIGKILL) };
    }

    /// Asks the child to end. The first process of a sandbox passes it on to everyone.
    pub(crate) fn ask_to_end(self) {
        // SAFETY: takes numbers only; the number is the child's as long as it is not collected.
        unsafe { libc::kill(self.0, libc::SIGTERM) };
    }

    /// How the child ended, if it has. Gives its number back to the system.
    pub(crate) fn try_collect(self) -> io::Result<Option<Exit>> {
        self.collect(libc::WNOHANG)
    }

    /// Waits until the child has ended, without collecting it.
    #[cfg(not(target_os = "linux"))]
    fn wait(self) -> io::Result<()> {
        loop {
            // SAFETY: all zeros is a valid `siginfo_t` to be filled, and it lives across the call.
            let result = unsafe {
                let mut info: libc::siginfo_t = mem::zeroed();
                let id = self.0.cast_unsigned();
                libc::waitid(libc::P_PID, id, &raw mut info, libc::WEXITED | libc::WNOWAIT)
            };
            match (result, io::Error::last_os_error()) {
                (0, _) => return Ok(()),
                (_, error) if error.kind() == io::ErrorKind::Interrupted => {}
                (_, error) => return Err(error),
            }
        }
    }

    fn collect(self, flags: c_int) -> io::Result<Option<Exit>> {
        loop {
            let mut status = 0;
            // SAFETY: `status` lives across the call.
            let pid = unsafe { libc::waitpid(self.0, &raw mut status, flags) };
            if pid > 0 {
                return Ok(Some(exit(status)));
            }
            if pid == 0 {
                return Ok(None);
            }
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
    }
}

fn exit(status: c_int) -> Exit {
    if libc::WIFSIGNALED(status) {
        Exit::Signal(libc::WTERMSIG(status))
    } else {
        Exit::Code(libc::WEXITSTATUS(status))
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs::File, path::Path};

    use windlass_contract::Command;

    use super::*;

    #[test]
    fn only_the_three_standard_descriptors_are_passed_on() {
        // SAFETY: takes and gives a number. The copy is ours, and unlike anything Rust opens it survives `exec`.
        let leaky = unsafe { OwnedFd::from_raw_fd(libc::dup(2)) };
        let argv = ["ls", "/proc/self/fd"].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let program = Program::new(&command, &BTreeMap::new(), Path::new("/")).unwrap();
        let (mut reader, writer) = io::pipe().unwrap();
        let null = || OwnedFd::from(File::open("/dev/null").unwrap());
        let stdio = Stdio { input: null(), output: writer.into(), error: null() };
        let started = start(&program, stdio, None).unwrap();
        let mut seen = String::new();
        reader.read_to_string(&mut seen).unwrap();
        assert_eq!(started.pid.collect(0).unwrap(), Some(Exit::Code(0)));
        // 3 is the directory `ls` lists.
        assert_eq!(seen, "0\n1\n2\n3\n", "although {leaky:?} is open");
    }
}
