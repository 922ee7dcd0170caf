//! Local datagrams and brokered sends in the sandbox: they work among a command's own sockets, and
//! reach nobody outside.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]

use std::{
    collections::BTreeMap,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Sandbox,
    effects::Network,
    grant::{Confinement, Limits, Mechanism, Quota, SandboxRules},
    host::{Command, Exit, FinishedCommand, Layer, Proof},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

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

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    async fn python(&self, quota: Quota, script: &str) -> FinishedCommand {
        self.python_with(Network::None, quota, script).await
    }

    async fn python_with(&self, network: Network, quota: Quota, script: &str) -> FinishedCommand {
        let directory = self.place.path().to_owned();
        let walls = SandboxRules { writable: vec![directory.clone()], network, ..SandboxRules::default() };
        let limits = Limits { default_time: Duration::from_mins(1), quota, ..Limits::default() };
        let grant = issue_grant(directory, &Effects::none(), limits, Confinement::Sandboxed(walls));
        let host = self.machine.confine(&grant).unwrap();
        let argv = ["python3", "-c", script].map(str::to_owned).to_vec();
        let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
        host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap()
    }
}

fn printed(finished: &FinishedCommand) -> String {
    String::from_utf8_lossy(&finished.output).into_owned()
}

/// A datagram socket outside that a command can see.
fn daemon(at: &Path) -> UnixDatagram {
    let daemon = UnixDatagram::bind(at).unwrap();
    daemon.set_nonblocking(true).unwrap();
    daemon
}

#[tokio::test]
async fn datagrams_reach_a_commands_own_sockets() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import os, socket as s
server = s.socket(s.AF_UNIX, s.SOCK_DGRAM); server.bind('own')
client = s.socket(s.AF_UNIX, s.SOCK_DGRAM)
client.sendto(b'sendto', 'own'); print(server.recv(99))
client.sendmsg([b'send', b'msg'], [], 0, 'own'); print(server.recv(99))
client.connect('own'); client.send(b'connected'); print(server.recv(99))
hidden = s.socket(s.AF_UNIX, s.SOCK_DGRAM); hidden.bind('\0name'); client.sendto(b'abstract', '\0name'); print(hidden.recv(99))
a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); a.send(b'pair'); print(b.recv(99))
";
    let finished = workspace.python(Quota::default(), script).await;
    let expected = "b'sendto'\nb'sendmsg'\nb'connected'\nb'abstract'\nb'pair'\n";
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), expected));
    assert_eq!(finished.report.denials, []);
}

#[tokio::test]
async fn no_datagram_reaches_a_socket_outside() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let daemon = daemon(&workspace.path("daemon"));
    let script = r"
import array, os, socket as s
def tried(name, act):
    try: act(); print(name, 'SENT')
    except OSError as error: print(name, error.errno)
c = s.socket(s.AF_UNIX, s.SOCK_DGRAM)
a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)
rights = [(s.SOL_SOCKET, s.SCM_RIGHTS, array.array('i', [os.open('/etc/hostname', os.O_RDONLY)]))]
for path in ['daemon', os.getcwd() + '/daemon', './x/../daemon'.replace('x/../', ''), '/proc/self/cwd/daemon']:
    tried('sendto', lambda: c.sendto(b'x', path))
    tried('sendmsg', lambda: c.sendmsg([b'x'], rights, 0, path))
    tried('pair', lambda: a.sendmsg([b'x'], rights, 0, path))
    tried('connect', lambda: c.connect(path))
os.symlink('daemon', 'link')
tried('link', lambda: c.sendto(b'x', 'link'))
tried('raw pair', lambda: s.socketpair(s.AF_UNIX, s.SOCK_RAW))
tried('raw', lambda: s.socket(s.AF_UNIX, s.SOCK_RAW))
";
    let finished = workspace.python(Quota::default(), script).await;
    let text = printed(&finished);
    assert_eq!(finished.report.exit, Exit::Code(0), "{text}");
    assert!(!text.contains("SENT"), "{text}");
    assert_eq!(text.matches(" 13\n").count(), 17, "EACCES for each: {text}");
    assert_eq!(daemon.recv(&mut [0; 9]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let told = finished.report.denials.iter().find(|denial| denial.layer == Layer::Network).unwrap();
    assert_eq!((told.what.as_str(), told.proof), ("daemon", Proof::Observed));
}

#[tokio::test]
async fn a_descriptor_or_an_address_that_is_exchanged_meanwhile_is_no_way_out() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let daemon = daemon(&workspace.path("daemon"));
    let script = r"
import ctypes, os, socket as s, threading, time
libc = ctypes.CDLL(None, use_errno=True)
own = s.socket(s.AF_UNIX, s.SOCK_DGRAM); own.bind('own0000')
own.setblocking(False)
unix = s.socket(s.AF_UNIX, s.SOCK_DGRAM); udp = s.socket(s.AF_INET, s.SOCK_DGRAM)
sink = s.socket(s.AF_INET, s.SOCK_DGRAM); sink.bind(('127.0.0.1', 0))
used = os.dup(unix.fileno())
name = ctypes.create_string_buffer(b'\x01\x00own0000\0', 110)
done = False
def exchange():
    while not done:
        os.dup2(udp.fileno(), used); name[2:9] = b'daemon\0'
        os.dup2(unix.fileno(), used); name[2:9] = b'own0000'
threads = [threading.Thread(target=exchange) for _ in range(2)]
for thread in threads: thread.start()
end = time.time() + 1.5
sent = 0
while time.time() < end:
    sent += libc.sendto(used, b'x', 1, s.MSG_DONTWAIT, name, 110) == 1
    try: own.recv(9)
    except BlockingIOError: pass
done = True
print('sent' if sent else 'nothing was ever sent')
";
    let finished = workspace.python(Quota::default(), script).await;
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), "sent\n"));
    assert_eq!(daemon.recv(&mut [0; 9]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn streams_and_descriptors_pass_through_the_broker_unharmed() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import hashlib, os, signal, socket as s, struct, threading
big = os.urandom(3 << 20)
server = s.create_server(('127.0.0.1', 0)); client = s.create_connection(server.getsockname()); peer = server.accept()[0]
got = []
def read():
    left = len(big)
    while left: got.append(peer.recv(1 << 16)); left -= len(got[-1])
reader = threading.Thread(target=read); reader.start()
print(client.sendmsg([big[:1000], b'', big[1000:]]) == len(big)); reader.join(); print(b''.join(got) == big)
a, b = s.socketpair(); r, w = os.pipe()
if os.fork() == 0:
    s.send_fds(b, [b'fd'], [w]); os._exit(0)
text, passed, _, _ = s.recv_fds(a, 9, 2); os.write(passed[0], b'through'); print(text, os.read(r, 99))
a, b = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM); b.setsockopt(s.SOL_SOCKET, s.SO_PASSCRED, 1)
a.sendmsg([b'x']); print(struct.unpack('3i', b.recvmsg(9, 99)[1][0][2])[0] == os.getpid())
forged = [(s.SOL_SOCKET, s.SCM_CREDENTIALS, struct.pack('3i', 1, os.getuid(), os.getgid()))]
try: a.sendmsg([b'x'], forged)
except PermissionError: print('not forged')
a, b = s.socketpair(); b.close()
child = os.fork()
if child == 0:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL); a.sendmsg([b'x']); os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGPIPE)
";
    let finished = workspace.python(Quota::default(), script).await;
    let expected = "True\nTrue\nb'fd' b'through'\nTrue\nnot forged\nTrue\n";
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), expected));
}

#[tokio::test]
async fn pid_1_lends_no_capability_to_a_netlink_socket() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import socket as s, struct
down = struct.pack('IHHIIBxHiII', 32, 16, 5, 2, 0, 0, 0, 1, 0, 1) # RTM_NEWLINK: take the loopback down
n = s.socket(s.AF_NETLINK, s.SOCK_RAW, 0); n.bind((0, 0))
n.sendmsg([down]); print(struct.unpack('i', n.recv(999)[16:20])[0])
n.sendto(down, (0, 0)); print(struct.unpack('i', n.recv(999)[16:20])[0])
";
    let finished = workspace.python(Quota::default(), script).await;
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), "-1\n-1\n"), "EPERM");
}

#[tokio::test]
async fn a_call_that_has_to_wait_keeps_nothing_else_waiting() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import socket as s, threading, time
server = s.socket(s.AF_UNIX); server.bind('\0full'); server.listen(0)
def connect(): s.socket(s.AF_UNIX).connect('\0full'); time.sleep(100)
for _ in range(3): threading.Thread(target=connect, daemon=True).start(); time.sleep(0.05)
begin = time.time()
other = s.create_server(('127.0.0.1', 0)); s.create_connection(other.getsockname())
print('served' if time.time() - begin < 5 else 'late', flush=True)
memory = bytearray(300 << 20); time.sleep(20); print('not counted')
";
    let quota = Quota { memory_bytes: Some(100 << 20), ..Quota::default() };
    let begin = Instant::now();
    let finished = workspace.python(quota, script).await;
    assert_eq!(printed(&finished), "served\n");
    assert!(
        finished.report.denials.iter().any(|denial| denial.what == "memory"),
        "{:?}",
        finished.report.denials
    );
    assert!(begin.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn a_full_backlog_is_waited_for_and_a_socket_that_does_not_block_is_told() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import errno, socket as s, struct, threading, time
server = s.socket(s.AF_UNIX); server.bind('st'); server.listen(0)
accepted = []
def accept():
    time.sleep(0.3)
    for _ in range(3): accepted.append(server.accept())
thread = threading.Thread(target=accept); thread.start(); begin = time.time()
clients = [s.socket(s.AF_UNIX) for _ in range(3)]
for client in clients: client.connect('st')
thread.join(); print(time.time() - begin > 0.2)
more = [s.socket(s.AF_UNIX) for _ in range(3)]
for client in more: client.setblocking(False)
print(errno.EAGAIN in [client.connect_ex('st') for client in more])
patient = s.socket(s.AF_UNIX); patient.setsockopt(s.SOL_SOCKET, s.SO_SNDTIMEO, struct.pack('ll', 0, 300000))
begin = time.time(); print(patient.connect_ex('st') == errno.EAGAIN, time.time() - begin > 0.2)
";
    let finished = workspace.python(Quota::default(), script).await;
    assert_eq!(
        (finished.report.exit, printed(&finished).as_str()),
        (Exit::Code(0), "True\nTrue\nTrue True\n")
    );
}

#[tokio::test]
async fn a_signal_interrupts_a_call_that_waits() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let script = r"
import signal, socket as s, time
server = s.socket(s.AF_UNIX); server.bind('st'); server.listen(0)
first = s.socket(s.AF_UNIX); first.connect('st')
def alarm(*_): raise TimeoutError('interrupted')
signal.signal(signal.SIGALRM, alarm); signal.setitimer(signal.ITIMER_REAL, 0.3)
begin = time.time()
try: s.socket(s.AF_UNIX).connect('st')
except TimeoutError as error: print(error, time.time() - begin < 5)
a, b = s.socketpair(); signal.setitimer(signal.ITIMER_REAL, 0.3); sent = 0
try:
    while True: sent += a.sendmsg([b'x' * 4096])
except TimeoutError as error: print(error, sent > 0)
";
    let finished = workspace.python(Quota::default(), script).await;
    assert_eq!(
        (finished.report.exit, printed(&finished).as_str()),
        (Exit::Code(0), "interrupted True\ninterrupted True\n")
    );
}

#[tokio::test]
async fn a_granted_network_is_reached_through_the_broker_too() {
    let Some(workspace) = Workspace::on(Mechanism::Namespaces) else { return };
    let server = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = server.local_addr().unwrap().port();
    let script = format!(
        "import socket as s; c = s.create_connection(('127.0.0.1', {port})); c.sendmsg([b'x']); print('connected')"
    );
    let finished = workspace.python_with(Network::Any, Quota::default(), &script).await;
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), "connected\n"));
}

#[tokio::test]
async fn without_namespaces_there_are_no_pairs_that_can_send_to_an_address() {
    let Some(workspace) = Workspace::on(Mechanism::Landlock) else { return };
    let daemon = daemon(&workspace.path("daemon"));
    let script = r"
import ctypes, socket as s
for kind in [s.SOCK_DGRAM, s.SOCK_RAW]:
    try: a, b = s.socketpair(s.AF_UNIX, kind); a.sendto(b'x', 'daemon'); print('SENT')
    except PermissionError: print('denied')
a, b = s.socketpair(); a.sendmsg([b'x']); print(b.recv(9))
libc = ctypes.CDLL(None, use_errno=True)
for call in [libc.semctl, libc.msgctl, libc.shmctl]:
    print(call(0, 0, 0), ctypes.get_errno())
";
    let finished = workspace.python(Quota::default(), script).await;
    let expected = "denied\ndenied\nb'x'\n-1 1\n-1 1\n-1 1\n";
    assert_eq!((finished.report.exit, printed(&finished).as_str()), (Exit::Code(0), expected));
    assert_eq!(daemon.recv(&mut [0; 9]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}
