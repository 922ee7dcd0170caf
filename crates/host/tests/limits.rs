//! Limits that PID 1 of the sandbox keeps, against commands that try to get around them.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

use std::{collections::BTreeMap, time::Duration};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    grant::{Accounting, Confinement, DefaultLimits, Held, Limits, Mechanism, Quota, SandboxRules},
    host::{Command, Exit, FinishedCommand},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

const MEGABYTE: u64 = 1 << 20;

struct Workspace {
    place: TempDir,
    machine: Machine,
}

impl Workspace {
    /// None, and a word about it, where this machine lacks what holds a command.
    fn on(rung: Mechanism) -> Option<Self> {
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        let path = ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned());
        let machine = Machine::for_one_command(BTreeMap::from([path]));
        let machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        let found = machine.diagnose().rung;
        if found != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`, but {found:?}", rung.name());
            return None;
        }
        Some(Self { place, machine })
    }

    async fn run(&self, quota: Quota, argv: &[&str]) -> (FinishedCommand, Held) {
        let directory = self.place.path().to_owned();
        let walls = SandboxRules { writable: vec![directory.clone()], ..SandboxRules::default() };
        let limits = Limits { default_time: Duration::from_mins(1), quota, ..Limits::default() };
        let grant = issue_grant(directory, &Effects::none(), limits, Confinement::Sandboxed(walls));
        let host = self.machine.confine(&grant).unwrap();
        let argv = argv.iter().map(ToString::to_string).collect();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        let finished = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap();
        (finished, host.held())
    }
}

/// The limits that a command met, and what it printed.
fn met(finished: &FinishedCommand) -> (Vec<&str>, String) {
    let met = finished.report.denials.iter().map(|denial| denial.what.as_str()).collect();
    (met, String::from_utf8_lossy(&finished.output).into_owned())
}

/// Scripts for Python that take 300 MB without any process having them, and would print `through`.
const HIDDEN_MEMORY: [(&str, &str); 13] = [
    ("memfd", "fd = os.memfd_create('x')\nfor _ in range(300): os.write(fd, b'x' * (1 << 20))"),
    ("shared mapping", "m = mmap.mmap(-1, 300 << 20)\nfor at in range(0, 300 << 20, 4096): m[at] = 1"),
    (
        "one page of each memfd stays mapped",
        "kept = []\nfor _ in range(20):\n  fd = os.memfd_create('x'); [os.write(fd, b'x' * (1 << 20)) for _ in range(15)]\n  \
         time.sleep(0.02); kept.append(mmap.mmap(fd, 4096)); os.close(fd)",
    ),
    (
        "SysV segment",
        "l = ctypes.CDLL(None); l.shmat.restype = ctypes.c_void_p; s = l.shmget(0, 300 << 20, 0o1600)\n\
         p = l.shmat(s, None, 0); ctypes.memset(p, 1, 300 << 20); l.shmdt(ctypes.c_void_p(p))",
    ),
    ("/dev/shm", "f = open('/dev/shm/x', 'wb')\nfor _ in range(300): f.write(b'x' * (1 << 20)); f.flush()"),
    (
        "a process whose first thread has ended",
        "def fill():\n  time.sleep(0.2); x = [bytearray(b'x' * (1 << 20)) for _ in range(300)]; time.sleep(2)\n  \
         os.write(1, b'through'); os._exit(0)\n\
         import threading; threading.Thread(target=fill).start(); time.sleep(0.1)\n\
         ctypes.CDLL(None).pthread_exit(None)",
    ),
    (
        "a process that hides its descriptors",
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); fd = os.memfd_create('x')\n\
         for _ in range(300): os.write(fd, b'x' * (1 << 20))",
    ),
    (
        "a thread with a descriptor table of its own",
        "def fill():\n  ctypes.CDLL(None).unshare(0x400); fd = os.memfd_create('x')\n  \
         [os.write(fd, b'x' * (1 << 20)) for _ in range(300)]; time.sleep(2)\n\
         import threading; t = threading.Thread(target=fill); t.start(); t.join()",
    ),
    (
        "message queues",
        "l = ctypes.CDLL(None); m = ctypes.create_string_buffer(b'\\1' + bytes(8199), 8200)\n\
         for _ in range(19200):\n  q = l.msgget(0, 0o1600); l.msgsnd(q, m, 8192, 0o4000); l.msgsnd(q, m, 8192, 0o4000)",
    ),
    ("semaphores", "l = ctypes.CDLL(None)\nfor _ in range(150): l.semget(0, 32000, 0o1600)"),
    (
        "page tables",
        "l = ctypes.CDLL(None); l.mmap.restype = ctypes.c_void_p\n\
         p = l.mmap(None, ctypes.c_size_t(150 << 30), 1, 0x4022, -1, ctypes.c_long(0))\n\
         l.madvise(ctypes.c_void_p(p), ctypes.c_size_t(150 << 30), 15)\n\
         for at in range(0, 150 << 30, 2 << 20): ctypes.c_char.from_address(p + at).value",
    ),
    ("empty files", "for at in range(300000): os.mknod(f'/dev/shm/{at}')"),
    (
        "extended attributes",
        "for at in range(5000):\n  f = f'/dev/shm/{at}'; os.mknod(f); os.setxattr(f, 'user.a', b'x' * 60000)",
    ),
];

#[tokio::test]
async fn memory_counts_wherever_it_is() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let quota = Quota { memory_bytes: Some(100 * MEGABYTE), ..Quota::default() };
    for (what, script) in HIDDEN_MEMORY {
        let script =
            format!("import ctypes, mmap, os, time\n{script}\ntime.sleep(2); print('through', flush=True)");
        let (finished, _) = workspace.run(quota, &["python3", "-c", &script]).await;
        let (met, printed) = met(&finished);
        assert!(!printed.contains("through"), "{what}: {printed}");
        // What has no room in /dev/shm fails before anyone has to count. Older kernels have no such
        // attributes there.
        let fails = match what {
            "/dev/shm" => printed.contains("No space left"),
            "extended attributes" => printed.contains("not supported"),
            _ => false,
        };
        assert!(met == ["memory"] || fails, "{what}: {met:?} {printed}");
    }
    let script = "fd = __import__('os').memfd_create('x'); __import__('time').sleep(0.1); print('through')";
    let (finished, _) = workspace.run(quota, &["python3", "-c", script]).await;
    assert_eq!(met(&finished), (vec![], "through\n".to_owned()), "little is not too much");
}

#[tokio::test]
async fn what_takes_too_long_to_count_is_ended_in_time_and_much_less_is_not() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let quota = Quota { memory_bytes: Some(1000 * MEGABYTE), ..Quota::default() };
    let holding = |processes: u32, each: u32| {
        format!(
            "import os, resource, time\nhard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n\
             resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))\n\
             if hard < {each}: print('few'); raise SystemExit\n\
             for _ in range({processes}):\n  \
               if os.fork() == 0:\n    \
                 for _ in range({each} - 10): os.dup(0)\n    \
                 time.sleep(30); os._exit(0)\n\
             time.sleep({}); print('through', flush=True); os.killpg(0, 9)",
            if processes > 4 { 20 } else { 2 }
        )
    };
    let (finished, _) = workspace.run(quota, &["python3", "-c", &holding(2, 20_000)]).await;
    let (denials, printed) = met(&finished);
    assert_eq!(denials, Vec::<&str>::new(), "{printed}");
    if printed.contains("few") {
        eprintln!("skipped: this machine allows few open files");
        return;
    }
    let (finished, _) = workspace.run(quota, &["python3", "-c", &holding(16, 20_000)]).await;
    assert_eq!(met(&finished), (vec!["open files and mappings"], String::new()));
    assert!(finished.report.denials[0].rule.contains("131072 open files"), "{:?}", finished.report.denials);
}

#[tokio::test]
async fn what_orphans_write_is_counted_and_blocks_are_not_reserved() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let quota = Quota { disk_bytes: Some(50 * MEGABYTE), ..Quota::default() };
    let script = "for i in $(seq 10); do (head -c 20M /dev/zero > f$i &); \
         while [ \"$(stat -c %s f$i 2>/dev/null)\" != 20971520 ]; do sleep 0.01; done; sleep 0.05; done; echo through";
    let (finished, _) = workspace.run(quota, &["bash", "-c", script]).await;
    assert_eq!(met(&finished), (vec!["disk"], String::new()));
    let script = "import os\nf = os.open('big', os.O_RDWR | os.O_CREAT)\n\
         try: os.posix_fallocate(f, 0, 10 << 20); print('written')\nexcept OSError as e: print(e.errno)\n\
         import ctypes, fcntl\n\
         try: fcntl.ioctl(f, 0x4030582a, b'\\0' * 48); print('reserved')\nexcept OSError as e: print(e.errno)";
    let (finished, _) = workspace.run(quota, &["python3", "-c", script]).await;
    assert_eq!(met(&finished), (vec![], "written\n95\n".to_owned()), "glibc writes instead");
}

#[tokio::test]
async fn a_command_cannot_change_or_signal_pid_1() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import ctypes, os, resource, signal, subprocess, time
libc = ctypes.CDLL(None, use_errno=True)
def tried(name, act):
    try: act(); print(name, 'worked')
    except PermissionError: print(name, 'denied')
tried('prlimit', lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
tried('affinity', lambda: os.sched_setaffinity(1, {0}))
tried('scheduler', lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
tried('priority', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
tried('user', lambda: os.setpriority(os.PRIO_USER, 0, 19))
tried('kill', lambda: os.kill(1, signal.SIGTERM))
tried('pidfd', lambda: os.pidfd_open(1))
# A descriptor of its directory is as good as a pidfd, and the signal is not heard.
directory = os.open('/proc/1', os.O_RDONLY)
libc.syscall(424, directory, signal.SIGTERM, None, 0); time.sleep(0.5)
child = subprocess.Popen(['sleep', '9'])
resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 64)); os.sched_setaffinity(0, os.sched_getaffinity(0))
os.sched_setaffinity(child.pid, {min(os.sched_getaffinity(0))}); os.setpriority(os.PRIO_PROCESS, child.pid, 5)
child.terminate(); print('child', child.wait())
signal.signal(signal.SIGTERM, lambda *_: print('heard', flush=True)); os.kill(0, signal.SIGTERM)
";
    let (finished, _) = workspace.run(Quota::default(), &["python3", "-c", script]).await;
    let names = ["prlimit", "affinity", "scheduler", "priority", "user", "kill", "pidfd"];
    let denied: String = names.map(|name| format!("{name} denied\n")).concat();
    assert_eq!(
        (finished.report.exit, met(&finished)),
        (Exit::Code(0), (vec![], format!("{denied}child -15\nheard\n")))
    );
}

#[tokio::test]
async fn default_limits_hold_and_are_in_the_receipt() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let defaults =
        DefaultLimits { memory_bytes: Some(100 * MEGABYTE), processes: Some(20), open_files: Some(99) };
    let quota = Quota { defaults, ..Quota::default() };
    let memory = "x = bytearray(300 << 20); __import__('time').sleep(2); print('through')";
    let (finished, held) = workspace.run(quota, &["python3", "-c", memory]).await;
    assert_eq!(met(&finished), (vec!["memory"], String::new()));
    assert_eq!((held.quota, held.accounting), (quota, Some(Accounting::Counted)));
    let processes = "for i in $(seq 60); do sleep 1 & done 2> /dev/null; sleep 1; echo through";
    let (finished, _) = workspace.run(quota, &["bash", "-c", processes]).await;
    assert_eq!(met(&finished), (vec!["processes"], String::new()));
    let (finished, _) = workspace.run(quota, &["bash", "-c", "ulimit -Hn"]).await;
    assert_eq!(met(&finished), (vec![], "99\n".to_owned()));
    // One that was asked for takes the place of the default.
    let more = Quota { memory_bytes: Some(1000 * MEGABYTE), ..quota };
    let (finished, _) = workspace.run(more, &["python3", "-c", memory]).await;
    assert_eq!(met(&finished), (vec![], "through\n".to_owned()));
}

#[tokio::test]
async fn default_limits_that_cannot_be_kept_are_told_and_refuse_nothing() {
    let Some(workspace) = Workspace::on(Mechanism::Landlock) else { return };
    let defaults = DefaultLimits { memory_bytes: Some(MEGABYTE), processes: Some(1), open_files: Some(99) };
    let (finished, held) =
        workspace.run(Quota { defaults, ..Quota::default() }, &["bash", "-c", "ulimit -Hn"]).await;
    assert_eq!((finished.report.exit, met(&finished).1.as_str()), (Exit::Code(0), "99\n"));
    assert_eq!(held.accounting, None);
    let told = |what: &str| held.not_covered.iter().any(|line| line.starts_with(what));
    assert!(told("the default limit on memory") && told("the default limit on processes"), "{held:?}");
}
