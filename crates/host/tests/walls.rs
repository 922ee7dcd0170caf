//! Attacks on the sandbox and everyday work in it, on every rung this machine has. Effects are
//! checked from outside.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in the helpers of a test, too, a failed unwrap is a failed test")]
#![expect(clippy::print_stderr, reason = "what is skipped is said aloud")]
#![expect(clippy::disallowed_methods, reason = "tests do what users and commands do")]

use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    net::TcpListener,
    os::unix::{fs::MetadataExt, net::UnixListener},
    path::{Path, PathBuf},
    process,
    time::Duration,
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use windlass_contract::{
    Effects, Host, Sandbox,
    effects::Network,
    grant::{Confinement, Held, Limits, Mechanism, Quota, SandboxRules},
    host::{Command, Exit, FinishedCommand, Layer, Proof, Whole},
};
use windlass_fakes::issue_grant;
use windlass_host::Machine;

/// Far more than any of these commands needs.
const FOREVER: Duration = Duration::from_mins(1);

const RUNGS: [Mechanism; 2] = [Mechanism::Namespaces, Mechanism::Landlock];

/// A workspace, a place outside, a home with secrets, and a machine.
struct World {
    place: TempDir,
    machine: Machine,
}

impl World {
    /// None, and a word about it, where this machine lacks the rung.
    fn on(rung: Mechanism) -> Option<Self> {
        // Not in /tmp: there is a private one inside, and what is not seen proves nothing.
        let place = tempfile::tempdir_in("/var/tmp").unwrap();
        for directory in ["ws", "out", "home/.ssh", "home/.aws"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        let world = Self { machine: machine(place.path(), rung), place };
        world.write("out/victim", "original");
        world.write("home/.ssh/id", "SECRET");
        world.write("home/.bashrc", "rc");
        world.write("ws/file", "data");
        let found = world.machine.diagnose().rung;
        if found != Some(rung) {
            eprintln!("skipped: this machine has no rung `{}`, but {found:?}", rung.name());
            return None;
        }
        Some(world)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    fn walls(&self) -> SandboxRules {
        SandboxRules { writable: vec![self.path("ws")], ..SandboxRules::default() }
    }

    /// Runs a script in the workspace. `@` in it stands for the place.
    async fn run(&self, walls: SandboxRules, quota: Quota, script: &str) -> (FinishedCommand, Held) {
        let limits = Limits { default_time: FOREVER, quota, ..Limits::default() };
        let confinement = Confinement::Sandboxed(walls);
        let grant = issue_grant(self.path("ws"), &Effects::none(), limits, confinement);
        let host = self.machine.confine(&grant).unwrap();
        let script = script.replace('@', self.place.path().to_str().unwrap());
        let finished = run(&*host, &script).await;
        (finished, host.held())
    }

    async fn script(&self, script: &str) -> (Exit, String) {
        let (finished, _) = self.run(self.walls(), Quota::default(), script).await;
        (finished.report.exit, String::from_utf8_lossy(&finished.output).into_owned())
    }

    /// Returns the state of everything outside: names, contents, modes.
    fn outside(&self) -> Vec<String> {
        let listed = process::Command::new("sh")
            .arg("-c")
            .arg("cd \"$1\" && find out home -printf '%p %m %y %s %T@\\n' -type f -exec cat {} \\; | sort")
            .arg("sh")
            .arg(self.place.path())
            .output()
            .unwrap();
        String::from_utf8_lossy(&listed.stdout).lines().map(str::to_owned).collect()
    }
}

async fn run(host: &dyn Host, script: &str) -> FinishedCommand {
    let argv = ["bash", "-c", script].map(str::to_owned).to_vec();
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
    host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap()
}

fn machine(place: &Path, rung: Mechanism) -> Machine {
    let home = place.join("home").to_str().unwrap().to_owned();
    let variables = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &home), ("GIT_CONFIG_NOSYSTEM", "1")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let names = ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"]
        .map(|name| (format!("GIT_{name}"), "t".to_owned()));
    let machine = Machine::for_one_command(variables.into_iter().chain(names).collect());
    if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine }
}

/// Returns true if a program is there to test with.
fn have(program: &str) -> bool {
    let found = process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output().unwrap();
    if !found.status.success() {
        eprintln!("skipped: there is no `{program}`");
    }
    found.status.success()
}

/// Ways to change something outside the workspace.
const WRITES: &[&str] = &[
    "echo x > @/out/new",
    "echo x >> @/out/victim",
    ": > @/out/victim",
    "truncate -s 0 @/out/victim",
    "rm -f @/out/victim",
    "mv @/out/victim stolen",
    "mv file @/out/file",
    "mkdir @/out/d",
    "mkfifo @/out/f",
    "ln -s @/out/new l && echo x > l",
    "ln -s @/out d && echo x > d/new",
    "ln @/out/victim h && echo x >> h",
    "ln file @/out/h",
    "cd .. && echo x > out/new",
    "echo x > /proc/self/cwd/../out/new",
    "echo x > /proc/self/root/@/out/new",
    "echo x > /proc/$PPID/cwd/../out/new",
    "exec 9>@/out/new",
    "dd if=/dev/zero of=@/out/victim conv=notrunc count=1",
    "cp file @/home/.bashrc",
    "echo key >> @/home/.ssh/authorized_keys",
    "python3 -c 'import os; os.open(\"@/out/new\", os.O_CREAT|os.O_WRONLY)'",
    "unshare -Urm sh -c 'mount -o remount,rw,bind /; echo x > @/out/new'",
    "perl -e 'open F, \">>@/out/victim\"; print F 1'",
];

/// The same for what only mounts can stop.
const CHANGES: &[&str] = &[
    "chmod 777 @/out/victim",
    "chmod u+s @/out/victim",
    "touch -d 2001-01-01 @/out/victim",
    "chown $(id -u) @/out/victim; touch -a -m @/out/victim",
    "setfattr -n user.x -v y @/out/victim",
    "chattr +d @/out/victim",
];

#[tokio::test]
async fn nothing_outside_the_roots_can_be_changed() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let before = world.outside();
        let changes = if rung == Mechanism::Namespaces { CHANGES } else { &[] };
        for script in WRITES.iter().chain(changes) {
            world.script(script).await;
            assert_eq!(world.outside(), before, "{}: {script}", rung.name());
        }
    }
}

#[tokio::test]
async fn a_read_only_command_changes_nothing_at_all() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let script = "echo x > new; echo x >> file; rm -f file; mkdir d; touch $TMPDIR/t && echo made";
        let (finished, held) = world.run(SandboxRules::default(), Quota::default(), script).await;
        assert_eq!(String::from_utf8_lossy(&finished.output).lines().last(), Some("made"), "{}", rung.name());
        assert_eq!(world.read("ws/file"), "data");
        assert_eq!(fs::read_dir(world.path("ws")).unwrap().count(), 1);
        assert_eq!((held.rung, held.writable, held.network), (rung, Vec::new(), Network::None));
    }
}

/// Ways to read what may not be read.
const READS: &[&str] = &[
    "cat ~/.ssh/id",
    "ln -s ~/.ssh l; cat l/id",
    "ln ~/.ssh/id h; cat h",
    "cat /proc/self/root/@/home/.ssh/id",
    "cp -r ~/.ssh copy; cat copy/id",
    "mv ~/.ssh moved; cat moved/id",
    "mv ~ moved; cat moved/.ssh/id",
    "chmod -R 777 ~/.ssh; cat ~/.ssh/id",
    "tar c ~/.ssh | strings",
    "unshare -Urm sh -c 'umount -l ~/.ssh; cat ~/.ssh/id'",
    "cd ~/.ssh && cat id",
    "python3 -c 'print(open(\"@/home/.ssh/id\").read())'",
];

#[tokio::test]
async fn secrets_of_the_home_directory_cannot_be_read() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        for script in READS {
            let (_, output) = world.script(script).await;
            assert!(!output.contains("SECRET"), "{}: {script}: {output}", rung.name());
        }
        let again = SandboxRules { readable_again: vec![world.path("home/.ssh")], ..world.walls() };
        let (finished, _) = world.run(again, Quota::default(), "cat ~/.ssh/id").await;
        assert_eq!(finished.output, b"SECRET", "{}: what is granted can be read", rung.name());
    }
}

#[tokio::test]
async fn what_is_hidden_inside_the_workspace_stays_hidden_wherever_it_is_moved() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    fs::create_dir(world.path("ws/conf")).unwrap();
    world.write("ws/conf/env", "SECRET");
    let walls = SandboxRules { unreadable: vec![world.path("ws/conf/env")], ..world.walls() };
    for script in ["mv conf other; cat other/env", "cat conf/env other/env x/env", "mv other x; ln -s x conf"]
    {
        let (finished, _) = world.run(walls.clone(), Quota::default(), script).await;
        assert!(!String::from_utf8_lossy(&finished.output).contains("SECRET"), "{script}");
    }
    assert_eq!(world.read("ws/conf/env"), "SECRET");
}

#[tokio::test]
async fn what_the_lower_rung_cannot_hide_it_refuses_to_run() {
    let Some(world) = World::on(Mechanism::Landlock) else { return };
    let walls = SandboxRules { unreadable: vec![world.path("ws/file")], ..world.walls() };
    let limits = Limits::default();
    let grant = issue_grant(world.path("ws"), &Effects::none(), limits, Confinement::Sandboxed(walls));
    let argv = vec!["true".to_owned()];
    let command = Command { argv, cwd: None, env: BTreeMap::new(), time_limit: None };
    let host = world.machine.confine(&grant).unwrap();
    let error = host.run(&command, &CancellationToken::new(), &|_| {}).await.unwrap_err();
    assert!(error.to_string().contains("cannot be hidden"), "{error}");
}

#[tokio::test]
async fn nobody_outside_can_be_reached() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        if !have("python3") {
            return;
        }
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let local = UnixListener::bind(world.path("out/s")).unwrap();
        let inside = UnixListener::bind(world.path("ws/s")).unwrap();
        tcp.set_nonblocking(true).unwrap();
        local.set_nonblocking(true).unwrap();
        inside.set_nonblocking(true).unwrap();
        let connect = |family: &str, kind: &str, to: &str| {
            format!(
                "python3 -c 'import socket as s; c = s.socket(s.AF_{family}, s.SOCK_{kind}); c.connect({to})'"
            )
        };
        for script in [
            format!("exec 3<>/dev/tcp/127.0.0.1/{port}"),
            connect("INET", "STREAM", &format!("(\"127.0.0.1\", {port})")),
            connect("INET6", "STREAM", &format!("(\"::ffff:127.0.0.1\", {port})")),
            connect("UNIX", "STREAM", "\"@/out/s\""),
            connect("UNIX", "STREAM", "\"../out/s\""),
            connect("UNIX", "STREAM", "\"s\""),
            format!("ln -sf @/out/s l; {}", connect("UNIX", "STREAM", "\"l\"")),
            connect("UNIX", "DGRAM", "\"@/out/s\""),
        ] {
            let (exit, output) = world.script(&script).await;
            assert_ne!(exit, Exit::Code(0), "{}: {script}: {output}", rung.name());
            assert!(tcp.accept().is_err(), "{}: {script}", rung.name());
            assert!(local.accept().is_err() && inside.accept().is_err(), "{}: {script}", rung.name());
        }
    }
}

#[tokio::test]
async fn a_refused_connection_is_told_as_observed() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    if !have("python3") {
        return;
    }
    let _daemon = UnixListener::bind(world.path("out/s")).unwrap();
    let script = "python3 -c 'import socket as s; s.socket(s.AF_UNIX).connect(\"@/out/s\")'";
    let (finished, _) = world.run(world.walls(), Quota::default(), script).await;
    let socket = world.path("out/s").to_str().unwrap().to_owned();
    let told = finished.report.denials.iter().find(|denial| denial.layer == Layer::Network).unwrap();
    assert_eq!((&told.what, told.proof), (&socket, Proof::Observed));
}

/// Ways to do harm through the kernel; each prints `HARM` if it works.
const KERNEL: &[&str] = &[
    "unshare -U true && echo HARM",
    "unshare -m true && echo HARM",
    "mount -t tmpfs x . && echo HARM",
    "chroot / true && echo HARM",
    "mknod n b 254 0 && echo HARM",
    "echo 1 > /proc/sys/kernel/domainname && echo HARM",
    "echo x > /dev/kmsg && echo HARM",
    "mkdir /sys/fs/cgroup/windlass-test && echo HARM",
    "head -c1 /dev/vda /dev/sda /dev/nvme0n1 2>/dev/null | grep -q . && echo HARM",
    "python3 -c 'import ctypes; c = ctypes.CDLL(None); print(\"HARM\" if c.syscall(425, 4, 0) != -1 else 1)'",
    "python3 -c 'import ctypes; c = ctypes.CDLL(None); print(\"HARM\" if c.syscall(250, 1, 0) != -1 else 1)'",
    "grep -q 'CapEff:\t0*$' /proc/self/status || echo HARM",
    "grep -q 'CapBnd:\t0*$' /proc/self/status || test $(id -u) != 0 || echo HARM",
    "grep -q 'NoNewPrivs:\t1' /proc/self/status || echo HARM",
];

#[tokio::test]
async fn the_kernel_does_no_favours() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        for script in KERNEL {
            // What is not a matter of walls but of the user's rights needs root to fail at.
            let (_, output) = world.script(script).await;
            assert!(!output.contains("HARM"), "{}: {script}: {output}", rung.name());
        }
    }
}

#[tokio::test]
async fn other_processes_are_neither_seen_nor_touched() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let mut sleeper = process::Command::new("sleep").arg("300").spawn().unwrap();
    let id = sleeper.id();
    let script = format!("kill -9 {id}; renice 5 {id}; cat /proc/{id}/cmdline; ls -d /proc/[0-9]* | wc -l");
    let (_, output) = world.script(&script).await;
    assert!(sleeper.try_wait().unwrap().is_none());
    let seen: u32 = output.lines().last().unwrap().parse().unwrap();
    assert!(seen < 8, "{output}");
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[tokio::test]
async fn our_own_memory_is_not_the_commands_to_read() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let script =
        "head -c1 /proc/1/mem; cat /proc/1/environ /proc/1/maps | head -c1; ls /proc/1/fd /proc/1/root";
    let (exit, output) = world.script(&format!("{script} && echo HARM")).await;
    assert_ne!(exit, Exit::Code(0), "{output}");
    assert!(!output.contains("HARM"), "{output}");
}

#[tokio::test]
async fn a_long_output_can_be_read_again_and_nothing_beside_it() {
    for rung in RUNGS {
        let Some(mut world) = World::on(rung) else { continue };
        fs::create_dir_all(world.path("home/.windlass/sessions")).unwrap();
        world.write("home/.windlass/sessions/secret", "SECRET");
        world.machine =
            world.machine.clone().with_output_files(world.path("home/.windlass/outputs/thread"), 1000);
        let (finished, _) = world.run(world.walls(), Quota::default(), "seq 1000").await;
        let Some(Whole::File { path, bytes: 3893, complete: true }) = &finished.report.whole else {
            panic!("{:?}", finished.report.whole)
        };
        let path = path.to_str().unwrap();
        let (exit, output) = world.script(&format!("tail -n 1 {path}; ls -A ~/.windlass")).await;
        let seen = if rung == Mechanism::Namespaces { "1000\noutputs\n" } else { "1000\n" };
        assert!(
            output.starts_with(seen) && (exit == Exit::Code(0) || rung == Mechanism::Landlock),
            "{output}"
        );
        for attempt in
            [format!("echo >> {path}"), format!("rm {path}"), "cat ~/.windlass/sessions/secret".into()]
        {
            let (exit, output) = world.script(&attempt).await;
            assert!(exit != Exit::Code(0) && !output.contains("SECRET"), "{rung:?}: {attempt}: {output}");
        }
    }
}

#[tokio::test]
async fn everything_a_command_starts_dies_with_it_and_is_named() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    assert!(process::Command::new("mkfifo").arg(world.path("ws/tether")).status().unwrap().success());
    let tether = world.path("ws/tether");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        fs::File::open(tether).unwrap().read_to_string(&mut text).unwrap();
        text
    });
    let script = "exec 3>tether; (setsid sh -c 'sleep 300 & sleep 300' &) ; echo begun >&3
        until grep -qsx sleep /proc/[0-9]*/comm; do :; done; exit 4";
    let (finished, _) = world.run(world.walls(), Quota::default(), script).await;
    assert_eq!(finished.report.exit, Exit::Code(4));
    // The pipe ends only when all its holders have closed it.
    assert_eq!(reader.join().unwrap(), "begun\n");
    assert!(finished.report.killed.contains(&"sleep".to_owned()), "{:?}", finished.report.killed);
}

#[tokio::test]
async fn death_by_a_signal_is_told_from_an_exit_code() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        assert_eq!(world.script("kill -9 $$").await.0, Exit::Signal(9));
        assert_eq!(world.script("exit 137").await.0, Exit::Code(137));
    }
}

#[tokio::test]
async fn limits_end_what_exceeds_them() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let none = Quota::default();
    let mega = Some(16 << 20);
    let killed = Exit::Signal(libc::SIGKILL);
    let cases = [
        (
            "processes",
            Quota { processes: Some(20), ..none },
            "for i in $(seq 60); do sleep 60 & done; wait",
            killed,
        ),
        (
            "memory",
            Quota { memory_bytes: Some(64 << 20), ..none },
            "python3 -c 'b = bytearray(1 << 30); print(1)'",
            killed,
        ),
        (
            "disk",
            Quota { disk_bytes: mega, ..none },
            "for i in $(seq 40); do head -c 4M /dev/zero > f$i; done",
            killed,
        ),
        (
            "processor time",
            Quota { cpu_seconds: Some(1), ..none },
            "exec bash -c 'while :; do :; done'",
            Exit::Signal(libc::SIGXCPU),
        ),
        (
            "file size",
            Quota { file_bytes: mega, ..none },
            "exec head -c 64M /dev/zero > big",
            Exit::Signal(libc::SIGXFSZ),
        ),
    ];
    for (what, quota, script, exit) in cases {
        let (finished, held) = world.run(world.walls(), quota, script).await;
        let told: Vec<_> =
            finished.report.denials.iter().map(|denial| (denial.layer, denial.what.as_str())).collect();
        assert_eq!(
            (told, held.quota, finished.report.exit),
            (vec![(Layer::Limit, what)], quota, exit),
            "{script}"
        );
    }
    let quota = Quota { open_files: Some(32), ..none };
    let script = "exec 40>/dev/null && echo open";
    let (finished, _) = world.run(world.walls(), quota, script).await;
    assert!(!String::from_utf8_lossy(&finished.output).contains("open\n"));
}

/// Makes `touch @/out/pwn` a program, and everything in a git directory that could run it.
const PLANT: &str = "\
plant() { mkdir -p $1/hooks; printf '#!/bin/sh\\ntouch @/out/pwn\\n' > @/ws/evil; chmod +x @/ws/evil
  for h in pre-commit post-commit post-index-change; do cp @/ws/evil $1/hooks/$h; done
  printf '[core]\\n\\tfsmonitor = @/ws/evil\\n\\thooksPath = @/ws/hk\\n' >> $1/config; mkdir -p @/ws/hk
  cp @/ws/evil @/ws/hk/pre-commit; }; ";

/// A workspace's state, set up from outside, and an attack on it.
const PLANTING: &[(&str, &str)] = &[
    ("git init -q .", "plant .git"),
    ("git init -q .", "mv .git g; cp -r g .git; plant .git"),
    ("git init -q .", "rm -rf .git; git init -q .; plant .git"),
    ("git init -q .", "cp -r .git e; plant e; echo ../e > .git/commondir"),
    ("git init -q .", "rm -rf .git/hooks; mkdir hk; ln -s ../hk .git/hooks; plant .git"),
    ("git init -q .; mv .git real; ln -s real .git", "plant real; rm .git; cp -r real .git; plant .git"),
    (
        "git init -q .; mv .git real; echo 'gitdir: real' > .git",
        "plant real; rm -f .git; git init -q .; plant .git",
    ),
    (
        "git init -q .; git init -q sub; git -C sub commit -q --allow-empty -m s; git add sub; git commit -qm s",
        "plant sub/.git; mv sub s2; cp -r s2 sub; plant sub/.git",
    ),
    (
        "git init -q ../main; git -C ../main commit -q --allow-empty -m m; rm -rf ../ws/*; git -C ../main worktree add -qf ../ws",
        "plant ../main/.git; rm -f .git; git init -q .; plant .git",
    ),
    (
        "git init -q ../lib; git -C ../lib commit -q --allow-empty -m l; git init -q .
         git -c protocol.file.allow=always submodule --quiet add ../lib a/b; git commit -qm s; git submodule --quiet deinit -f --all",
        "plant .git/modules/a/b",
    ),
    (
        "git init -q .; git commit -q --allow-empty -m i",
        "git init -q --bare .git/modules/m; plant .git/modules/m; git -C .git/modules/m config core.bare false
         cp .git/modules/m/hooks/pre-commit .git/modules/m/hooks/post-checkout; G=.git/modules/m; T=$(git mktree < /dev/null)
         T=$(git --git-dir=$G mktree < /dev/null); C=$(git --git-dir=$G -c user.name=a -c user.email=a commit-tree $T -m x)
         git --git-dir=$G update-ref refs/heads/master $C; git --git-dir=$G config core.worktree ../../../m
         printf '[submodule \"m\"]\n\tpath = m\n\turl = ./m\n' > .gitmodules; git add .gitmodules
         git update-index --add --cacheinfo 160000,$C,m",
    ),
    ("git init -q .; git config core.hooksPath .husky; mkdir .husky", "plant .husky; cp .husky/hooks/* .husky/"),
    ("git init -q .; git config core.hooksPath hk/_", "mkdir -p hk/_; plant hk; cp hk/hooks/* hk/_"),
    ("true", "git init -q .; plant .git"),
    ("true", "git init -q --bare r; echo 'gitdir: r' > .git; git -C r config core.bare false; plant r"),
    ("true", "git init -q r; plant r/.git; ln -s r/.git .git"),
    (
        "true",
        "git init -q --bare r; mv r/* .; git config -f config core.bare false; git config -f config core.worktree .; plant .",
    ),
];

/// The same below the workspace: a directory that the user enters later, and an attack that turns
/// it into a repository.
const PLANTING_BELOW: &[(&str, &str)] = &[
    ("a/b/c/d", "git init -q a/b/c/d; plant a/b/c/d/.git"),
    ("sub", "git init -q --bare sub; git config -f sub/config core.bare false; git config -f sub/config core.worktree .; plant sub"),
    (
        "sub",
        "git init -q --bare r; git config -f r/config core.bare false; plant r; mkdir sub
         echo ref: refs/heads/m > sub/HEAD; echo ../r > sub/commondir; git config -f r/config core.worktree @/ws/sub",
    ),
    ("z/z", "for i in $(seq 300); do mkdir -p m$i/n; done; git init -q z/z; plant z/z/.git"),
    ("z/z", "mkdir z; for i in $(seq 2000); do : > z/f$i; done; git init -q z/z; plant z/z/.git"),
];

#[tokio::test]
async fn git_of_the_user_runs_nothing_a_command_has_planted() {
    if !have("git") {
        return;
    }
    let top = PLANTING.iter().map(|(setup, attack)| (*setup, *attack, "."));
    let below = PLANTING_BELOW.iter().map(|(entered, attack)| ("true", *attack, *entered));
    let all: Vec<_> = top.chain(below).collect();
    for rung in RUNGS {
        for (setup, attack, entered) in &all {
            let Some(world) = World::on(rung) else { break };
            let identity =
                "export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t GIT_COMMITTER_NAME=t GIT_COMMITTER_EMAIL=t; ";
            let outside = |script: &str| {
                let script = format!("{identity}{script}");
                let mut shell = process::Command::new("bash");
                shell.args(["-c", &script]).current_dir(world.path("ws")).env("HOME", world.path("home"));
                assert!(shell.output().unwrap().status.success(), "{script}");
            };
            outside(setup);
            world.script(&format!("{PLANT}{attack}")).await;
            outside(&format!(
                "cd {entered}; git submodule update --init; git status; git diff; git commit -q --allow-empty -m user; true"
            ));
            assert!(!world.path("out/pwn").exists(), "{}: {setup}: {attack}", rung.name());
        }
    }
}

#[tokio::test]
async fn a_name_from_an_earlier_command_changes_no_protected_file() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::create_dir(world.path("ws/old")).unwrap();
        world.write("ws/old/.envrc", "mine");
        world.script("git init -q n; ln n/.git/config z; mkdir wt; cp old/.envrc y; ln y wt/.envrc").await;
        world.script("echo '[core] fsmonitor = evil' > z; echo evil > y").await;
        assert!(!world.read("ws/n/.git/config").contains("evil"), "{}", rung.name());
        assert!(!world.path("ws/wt/.envrc").exists(), "{}: it had another name", rung.name());
    }
}

#[tokio::test]
async fn protected_names_cannot_be_made_or_changed() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::create_dir(world.path("ws/.vscode")).unwrap();
        world.write("ws/.vscode/tasks.json", "mine");
        let script = "echo x > .vscode/tasks.json; mv .vscode v; mkdir .vscode; echo x > .vscode/tasks.json
            mkdir .windlass; echo x > .windlass/config.toml; echo x > .envrc; mkdir e; ln -s e .codex; echo x > .mcp.json";
        let (finished, _) = world.run(world.walls(), Quota::default(), script).await;
        assert_eq!(world.read("ws/.vscode/tasks.json"), "mine", "{}", rung.name());
        for name in [".windlass", ".envrc", ".codex", ".mcp.json"] {
            assert!(world.path("ws").join(name).symlink_metadata().is_err(), "{}: {name}", rung.name());
            let told = finished.report.denials.iter().filter(|denial| denial.proof == Proof::Observed);
            assert!(told.map(|denial| &denial.what).any(|what| what.ends_with(name)), "{name} is told of");
            let aside = world.path("ws").join(format!("{name}.windlass-refused"));
            assert!(aside.symlink_metadata().is_ok(), "{name} is not lost");
        }
    }
}

#[tokio::test]
async fn protected_names_below_a_root_are_protected_too() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        fs::create_dir_all(world.path("ws/old/.vscode")).unwrap();
        fs::create_dir_all(world.path("ws/a/b")).unwrap();
        world.write("ws/old/.vscode/tasks.json", "mine");
        let script = "cp -r old copy; echo x > old/.vscode/tasks.json; mv old moved; echo x > a/b/.envrc
            for i in $(seq 300); do mkdir -p m$i/n; done; mkdir -p new/deep/er a/.windlass copy/.codex
            echo x > new/deep/er/.mcp.json; mkdir e; ln -s e a/b/.vscode; mkdir -p node_modules/p/.vscode";
        let (finished, _) = world.run(world.walls(), Quota::default(), script).await;
        assert_eq!(world.read("ws/old/.vscode/tasks.json"), "mine", "{}", rung.name());
        assert_eq!(world.read("ws/copy/.vscode/tasks.json"), "mine", "{}: a copy is no danger", rung.name());
        assert!(world.path("ws/node_modules/p/.vscode").exists());
        for name in ["a/b/.envrc", "new/deep/er/.mcp.json", "a/.windlass", "copy/.codex", "a/b/.vscode"] {
            assert!(world.path("ws").join(name).symlink_metadata().is_err(), "{}: {name}", rung.name());
            let told = finished.report.denials.iter().filter(|denial| denial.proof == Proof::Observed);
            assert!(told.map(|denial| &denial.what).any(|what| what.ends_with(name)), "{name} is told of");
            let aside = world.path("ws").join(format!("{name}.windlass-refused"));
            assert!(aside.symlink_metadata().is_ok(), "{name} is not lost");
        }
    }
}

#[tokio::test]
async fn a_bare_repository_that_a_command_makes_can_be_used() {
    if !have("git") {
        return;
    }
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let script = "git init -q --bare server.git; git init -q --bare other.git";
        assert_eq!(world.script(script).await, (Exit::Code(0), String::new()), "{}", rung.name());
        let script =
            "git clone -q server.git client 2>&1; cd client; git commit -q --allow-empty -m x; git push -q";
        let (exit, said) = world.script(script).await;
        assert_eq!(exit, Exit::Code(0), "{}: {said}", rung.name());
    }
}

/// Everyday work: program needed, script, and what it must print last.
const EVERYDAY: &[(&str, &str, &str)] = &[
    ("bash", "pwd", "@/ws"),
    ("bash", "diff <(echo a) <(echo a) && echo same", "same"),
    ("bash", "cat <<E\n$(head -c 200000 /dev/zero | tr '\\0' a)\nE\necho done", "done"),
    ("bash", "f=$(mktemp) && echo x > $f && cat $f", "x"),
    ("bash", "echo x > $TMPDIR/y && cat $TMPDIR/y", "x"),
    ("bash", "(sleep 0.1; echo bg > bg) & wait; cat bg", "bg"),
    ("bash", "mkfifo p; echo fifo > p & cat p", "fifo"),
    (
        "git",
        "git init -q n && cd n && git config user.name x && git commit -q --allow-empty -m m && git log --format=%s",
        "m",
    ),
    (
        "git",
        "git init -q . && git add -A && git commit -qm m && echo y >> file && git stash -q && git stash pop -q && git branch b && git worktree add -q wt 2>/dev/null && git -C wt commit -q --allow-empty -m w && git -C wt log -1 --format=%s",
        "w",
    ),
    (
        "git",
        "git init -q a && git -C a commit -q --allow-empty -m c && git clone -q a b && git -C b log --format=%s",
        "c",
    ),
    ("cc", "printf 'int main(){return 0;}' > m.c && cc -o m m.c && ./m && echo built", "built"),
    (
        "python3",
        "python3 -c 'import asyncio as a\nasync def f():\n p = await a.create_subprocess_exec(\"echo\", \"aio\"); await p.wait()\na.run(f())'",
        "aio",
    ),
    (
        "go",
        "printf 'module x\n' > go.mod && printf 'package main\nfunc main() { println(\"gone\") }\n' > m.go && go run . 2>&1",
        "gone",
    ),
    (
        "node",
        "node -e 'require(\"child_process\").exec(\"echo node\", (e, o) => process.stdout.write(o))'",
        "node",
    ),
];

/// Commands that need namespaces.
const HARDER: &[(&str, &str, &str)] = &[
    ("python3", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'", "[1]"),
    ("bash", "echo x > /tmp/y && cat /tmp/y", "x"),
    (
        "python3",
        "python3 -c 'import socket as s, threading as t\na = s.create_server((\"127.0.0.1\", 0))\nt.Thread(target=lambda: a.accept()[0].sendall(b\"served\")).start()\nprint(s.create_connection(a.getsockname()).recv(9).decode())'",
        "served",
    ),
    (
        "python3",
        "python3 -c 'import socket as s, threading as t\na = s.socket(s.AF_UNIX); a.bind(\"own\"); a.listen()\nt.Thread(target=lambda: a.accept()[0].sendall(b\"served\")).start()\nc = s.socket(s.AF_UNIX); c.connect(\"own\"); print(c.recv(9).decode())'",
        "served",
    ),
    (
        "python3",
        "python3 -c 'from multiprocessing import shared_memory as s; m = s.SharedMemory(create=True, size=9); m.unlink(); print(m.size > 8)'",
        "True",
    ),
    ("strace", "strace -o t true && grep -c execve t", "1"),
    ("script", "script -qc 'echo pty' /dev/null", "pty"),
];

#[tokio::test]
async fn everyday_work_goes_on() {
    for rung in RUNGS {
        let harder = if rung == Mechanism::Namespaces { HARDER } else { &[] };
        for (_, script, expected) in EVERYDAY.iter().chain(harder).filter(|(program, ..)| have(program)) {
            let Some(world) = World::on(rung) else { break };
            let (exit, output) = world.script(script).await;
            let expected = expected.replace('@', world.place.path().to_str().unwrap());
            let last = output.lines().last().unwrap_or_default().trim();
            assert_eq!(
                (exit, last),
                (Exit::Code(0), expected.as_str()),
                "{}: {script}: {output}",
                rung.name()
            );
        }
    }
}

#[tokio::test]
async fn a_workspace_in_the_systems_temporary_directory_is_seen() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let workspace = tempfile::tempdir_in("/tmp").unwrap();
    let walls = SandboxRules { writable: vec![workspace.path().to_owned()], ..SandboxRules::default() };
    let script = format!("echo x > {}/made; ls -A /tmp | wc -l", workspace.path().display());
    let (finished, _) = world.run(walls, Quota::default(), &script).await;
    assert_eq!(finished.output, b"1\n");
    assert_eq!(fs::read_to_string(workspace.path().join("made")).unwrap(), "x\n");
}

#[tokio::test]
async fn a_machine_keeps_temporary_files_from_one_command_to_the_next() {
    for rung in RUNGS {
        let Some(mut world) = World::on(rung) else { continue };
        let path = ("PATH".to_owned(), "/usr/bin:/bin".to_owned());
        let machine = Machine::new(BTreeMap::from([path]));
        world.machine = if rung == Mechanism::Landlock { machine.without_namespaces() } else { machine };
        assert_eq!(world.script("echo kept > $TMPDIR/f").await.0, Exit::Code(0));
        assert_eq!(world.script("cat $TMPDIR/f").await, (Exit::Code(0), "kept\n".to_owned()));
    }
}

#[tokio::test]
async fn commands_of_a_machine_share_a_network_and_nothing_else() {
    let Some(world) = World::on(Mechanism::Namespaces) else { return };
    let Some(other) = World::on(Mechanism::Namespaces) else { return };
    // All must run at the same time: the number of a namespace that is gone may be used again.
    let script = "for kind in net user pid mnt ipc; do readlink /proc/self/ns/$kind; done; : > @/ws/ready-NUMBER; \
                  until [ -e @/ws/go ]; do sleep 0.01; done";
    let all_run = async {
        let ready = |world: &World| {
            let names = fs::read_dir(world.path("ws")).unwrap().flatten().map(|entry| entry.file_name());
            names.filter(|name| name.to_string_lossy().starts_with("ready-")).count()
        };
        while ready(&world) < 2 || ready(&other) < 1 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for world in [&world, &other] {
            fs::write(world.path("ws/go"), "").unwrap();
        }
    };
    let one = script.replace("NUMBER", "1");
    let two = script.replace("NUMBER", "2");
    let (one, two, third, ()) =
        tokio::join!(world.script(&one), world.script(&two), other.script(&one), all_run);
    let namespaces = |output: &str| output.lines().take(5).map(str::to_owned).collect::<Vec<_>>();
    let [one, two, third] = [one, two, third].map(|(_, output)| namespaces(&output));
    let shared = |these: &[String], those: &[String]| {
        these.iter().zip(those).map(|(this, that)| this == that).collect::<Vec<_>>()
    };
    assert_eq!(shared(&one, &two), [true, true, false, false, false], "{one:?} {two:?}");
    assert_eq!(shared(&one, &third), [false; 5], "{one:?} {third:?}");
    let ours = ["net", "user"].map(|kind| fs::read_link(format!("/proc/self/ns/{kind}")).unwrap());
    assert!(!one.iter().any(|name| ours.contains(&name.into())), "{one:?}");
    // Entering them in borrowed memory must not change what others may do with this process.
    let owner = |path: &Path| fs::metadata(path).unwrap().uid();
    assert_eq!(owner(Path::new("/proc/self/environ")), owner(&world.path("ws")));
}

#[tokio::test]
async fn a_granted_network_is_the_users_and_files_stay_held() {
    for rung in RUNGS {
        let Some(world) = World::on(rung) else { continue };
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        let walls = SandboxRules { network: Network::Any, ..world.walls() };
        let script =
            format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo x > @/out/new; echo $WINDLASS_SANDBOX");
        let (finished, _) = world.run(walls, Quota::default(), &script).await;
        server.set_nonblocking(true).unwrap();
        assert!(server.accept().is_ok(), "{}", rung.name());
        assert!(!world.path("out/new").exists());
        let output = String::from_utf8_lossy(&finished.output);
        assert_eq!(output.lines().last(), Some(rung.name()));
    }
}
